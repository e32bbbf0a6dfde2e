"""Rendered source and definition agree on arguments, constant memory holds its arrays, and textures are refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Array, TrialFailure, UsageError
from autotune.core.definition import array_constant, array_in
from autotune.devices import find_device
from autotune.rendering.render import render
from autotune.rendering.template_checks import check_arrays, check_order, check_textures
from autotune.source.registry import load_kernel
from autotune.sweep.request import problem_on

from ..conftest import DEFINITIONS

pytestmark = pytest.mark.quick

CONVOLVE = str(DEFINITIONS / "convolve.py")
NUMBERED = '// name\n#line 1 "image.cu.j2"\nint texture;\n/* tex2D(a, b) and\n texture<float> */\n%s\n'


def test_an_array_in_constant_memory_is_no_argument() -> None:
    kernel = load_kernel(CONVOLVE)
    variant = render(kernel, kernel.tuned[0], kernel.default_config(kernel.tuned[0], find_device("host").device))
    assert [(name, spec.n_bytes) for name, spec in variant.constants] == [("d_filter", 100)]


@pytest.mark.parametrize(
    ("specs", "status", "why"),
    [
        (
            {"image": array_constant("f4", 9)},
            "definition_failed",
            r"convolve.arrays\(\) states image as array_constant",
        ),
        ({"weights": array_in("f4", 9)}, "definition_failed", "the array weights, which is not in the arguments"),
        (
            {"a": array_constant("f4", 16384), "b": array_constant("u1", 1)},
            "resources",
            r"take 65537 bytes \(a 65536, b 1\), and a kernel has 65536; choose",
        ),
        ({"a": array_constant("f4", 16383), "b": array_constant("u1", 4)}, "", ""),
    ],
)
def test_arrays_that_cannot_be_passed(specs: dict[str, Array], status: str, why: str) -> None:
    kernel = load_kernel(CONVOLVE)
    if not status:
        check_arrays(kernel, kernel.arguments, specs)
        return
    with pytest.raises(TrialFailure, match=why) as caught:
        check_arrays(kernel, kernel.arguments, specs)
    assert caught.value.status == status


def test_a_problem_that_constant_memory_cannot_hold() -> None:
    kernel, host = load_kernel(CONVOLVE), find_device("host")
    assert problem_on(kernel, {"n_side": 128}, host) == replace(kernel.tuned[0], n_side=128)
    with pytest.raises(UsageError, match="convolve: arrays in constant memory take 66564 bytes"):
        problem_on(kernel, {"n_side": 129}, host)


@pytest.mark.parametrize(
    "line",
    [
        "texture<float, 2> image;",
        "void k(cudaTextureObject_t image);",
        "x = tex2D<float>(image, 0, 0);",
        "x = tex1Dfetch (image, 0);",
        "surf2Dwrite(x, image, 0, 0);",
    ],
)
def test_textures_are_refused_with_their_line(line: str) -> None:
    with pytest.raises(TrialFailure, match=r"^render_failed: image.cu.j2:4: textures and surfaces .* __ldg"):
        check_textures(NUMBERED % line, Path("image.cu.j2"))


def test_words_like_textures_are_not_refused() -> None:
    check_textures(NUMBERED % "int texture_of(int tex2Dish, surface s); // tex2D(x)", Path("image.cu.j2"))


@pytest.mark.parametrize(
    "line",
    ["#if OLD\ntexture<float> t;\n#else\n#endif", 'const char* s = "tex2D(x)";', "/* tex2D(x)\n*/ // texture<f>"],
)
def test_textures_that_are_no_code_or_may_be_none_are_not_refused(line: str) -> None:
    check_textures(NUMBERED % line, Path("image.cu.j2"))
    with pytest.raises(TrialFailure, match="textures and surfaces"):
        check_textures(NUMBERED % f"{line}\nsurface<void, 2> s;", Path("image.cu.j2"))


def test_one_of_several_signatures_must_have_the_order() -> None:
    kernel = load_kernel(CONVOLVE)
    old, new = "__global__ void f(int n, float* y) {}\n", "__global__ void f(float* y, int n) {}\n"
    check_order(kernel, "a::f<3>", ("y", "n"), f"#if 0\n{old}#endif\n{new}", Path("f.cu.j2"))
    both = "__global__ void f(\n#if A\nint n,\n#endif\nfloat* y, int n) {}"
    check_order(kernel, "f", ("y", "n"), both, Path("f.cu.j2"))
    with pytest.raises(TrialFailure, match=r"f\(\) in f.cu.j2 takes \(n, y\)"):
        check_order(kernel, "f", ("y", "n"), old, Path("f.cu.j2"))


def test_numbers_fit_constant_memory_as_any_array() -> None:
    spec: Any = array_constant(np.float32, 3, 4)
    assert (spec.read, spec.written, spec.constant, spec.n_bytes) == (True, False, True, 48)
    assert repr(spec) == repr(array_in(np.float32, 3, 4, align=1)), "records tell arrays by what is printed"


@pytest.mark.parametrize("kind", ["A<int, 3>", "std::array<A<B<1, 2>, 3>, 4> const &", "map<int, A<3, 4>> *"])
def test_commas_of_template_arguments_separate_nothing(kind: str) -> None:
    kernel = load_kernel(CONVOLVE)
    text = f"template <class T> __global__ void f(float *y, {kind} x, int n) {{ }}"
    check_order(kernel, "f", ("y", "x", "n"), text, Path("f.cu.j2"))
    with pytest.raises(TrialFailure, match=r"takes \(y, x, n\)"):
        check_order(kernel, "f", ("x", "y", "n"), text, Path("f.cu.j2"))
