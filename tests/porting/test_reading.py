"""What is read of CUDA source and of a call: signatures, includes, expressions, and what is refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.kernel_tuner import tune_kernel
from autotune.porting.call import read_call
from autotune.porting.expressions import checked
from autotune.porting.signature import parameters
from autotune.porting.source import Source

SOURCE = """
// __global__ void scale(int wrong) {
__global__ void other(int n) {}
__global__ void __launch_bounds__(block_size_x)
scale(float *__restrict__ y, /* the input */ const float* x, const unsigned int n, const double a[], struct P p, half h)
{
    y[0] = x[0];
}
"""
X, N = np.zeros(8, np.float32), np.int32(8)


def test_parameters_of_a_kernel() -> None:
    found = parameters(SOURCE, "scale")
    assert [each.name for each in found] == ["y", "x", "n", "a", "p", "h"]
    assert [each.type for each in found] == ["float", "float", "unsigned int", "double", "P", "half"]
    assert [each.is_array for each in found] == [True, True, False, True, False, False]
    assert [each.is_const for each in found] == [False, True, True, True, False, False]
    assert found[2].dtype() == np.uint32 and found[4].dtype() is None
    with pytest.raises(UsageError, match="no kernel 'scal'; it has other, scale"):
        parameters(SOURCE, "scal")
    with pytest.raises(UsageError, match="is a template"):
        parameters("template <class T>\n__global__ void f(T *x) {}", "f")


def test_includes_in_quotes_are_put_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "a.h").write_text('#pragma once\n#include "b.h"\nint a;\n')
    (tmp_path / "inc" / "b.h").write_text("int b;\n")
    text = '#include <cuda_fp16.h>\n#include "a.h"\n#include "a.h"\n__global__ void f(int n) {}\n'
    (tmp_path / "k.cu").write_text(text)
    source = Source(str(tmp_path / "k.cu"), [tmp_path / "inc"])
    assert source.text.count("int a;") == 1 and source.text.index("int b;") < source.text.index("int a;")
    assert '#line 3 "k.cu"' in source.text and "#include <cuda_fp16.h>" in source.text
    (tmp_path / "inc" / "b.h").write_text('#include "b.h"\n')
    with pytest.raises(UsageError, match=r"does b\.h include itself"):
        Source(str(tmp_path / "k.cu"), [tmp_path / "inc"])
    with pytest.raises(UsageError, match=r"k\.cu uses textures \(texture<f\), which are not served"):
        (tmp_path / "k.cu").write_text("texture<float> t; // here\n")
        Source(str(tmp_path / "k.cu"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x * y + 1", 13),
        ("x == 3 and not y > 9 or x in (1, 2)", True),
        ("max(x, y) // min(x, 2) ** 2", 1),
        ("x / y if y != 4 else 7", 7),
    ],
)
def test_expressions_are_arithmetic(text: str, value: Any) -> None:
    assert eval(checked(text, ["x", "y"], "it"), {"c": {"x": 3, "y": 4}}) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "x.real",
        "[x for x in y]",
        "z + 1",
        "x +",
        "max(x, key=y)",
        "(lambda: x)()",
        "x[0]",
        "f'{x}'",
    ],
)
def test_expressions_are_nothing_else(text: str) -> None:
    with pytest.raises(UsageError, match="it"):
        checked(text, ["x", "y"], "it")


def test_the_grid_is_that_of_the_rules() -> None:
    space = {"block_size_x": [32, 64], "tile": [1, 3], "n_blocks": [7]}
    given = "__global__ void f(int n) {}", (1000, "n_blocks * 2"), [np.int32(1)], space

    def grid(**more: Any) -> tuple[int, int, int]:
        return read_call("f", *given, **more).grid({"block_size_x": 32, "tile": 3, "n_blocks": 7})

    assert grid() == (32, 14, 1)
    assert grid(divisors=(["block_size_x", "tile"], None, None)) == (11, 14, 1)
    assert grid(divisors=(["block_size_x/2"], [], None)) == (63, 14, 1)
    assert grid(divisors=(lambda p: p["tile"], "n_blocks", None)) == (334, 2, 1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"arguments": [X, X]}, r"takes 3 arguments \(y, x, n\); 2 were given"),
        ({"arguments": [X, X, 8]}, "the argument n is int, must be a NumPy number of int"),
        ({"arguments": [X, X, np.int64(8)]}, r"the argument n is int64, and the kernel takes int: give np\.int32"),
        ({"arguments": [X, 3, N]}, "the argument x is int, must be an array"),
        ({"tune_params": {}}, "tune_params is empty"),
        ({"tune_params": {"a b": [1]}}, "'a b' of tune_params is no name"),
        ({"tune_params": {"t": []}}, "the values of t must be numbers or texts"),
        ({"restrictions": ["u > 1"]}, "there is no 'u'; there are block_size_x"),
        ({"restrictions": lambda p: False}, "the restrictions allow no config"),
        ({"answer": [X]}, "answer has 1 entries, and f 3 arguments"),
        ({"answer": [None, None, None]}, "answer has None only"),
        ({"answer": [X[:4], None, None]}, r"the answer of y has the shape \[4\]"),
        ({"texmem_args": {"t": X}}, "texmem_args: textures are not served"),
        ({"observers": [1]}, "observers are not served"),
        ({"lang": "OpenCL"}, "kernels are CUDA C"),
        ({"compiler_options": ["--use_fast_math"]}, "--use_fast_math is not served"),
        ({"nonsense": 1}, "no argument 'nonsense'"),
        ({"verify": lambda a, b: True}, "give answer, too"),
    ],
)
def test_what_cannot_be_served_is_told(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "kernel_name": "f",
        "kernel_source": "__global__ void f(float *y, const float *x, int n) {}",
        "problem_size": 8,
        "arguments": [X.copy(), X, N],
        "tune_params": {"block_size_x": [32]},
        "device": "host",
        "results": tmp_path,
        "quiet": True,
    }
    with pytest.raises(UsageError, match=told):
        tune_kernel(**{**given, **change})
