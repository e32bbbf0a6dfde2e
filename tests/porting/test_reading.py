"""What is read of CUDA source and of a call: signatures, includes, expressions and grids."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.core.expressions import checked_expression
from autotune.porting.call import read_call
from autotune.porting.formulas import Formulas
from autotune.porting.sizes import sizes_of_call
from autotune.porting.source import KernelText

SOURCE = """
// __global__ void scale(int wrong) {
__global__ void other(int n) {}
__global__ void __launch_bounds__(block_size_x)
scale(float *__restrict__ y, /* the input */ const float* x, const unsigned int n, const double a[], struct P p, half h)
{
    y[0] = x[0];
}
"""


@pytest.mark.quick
def test_parameters_of_a_kernel() -> None:
    found = KernelText(SOURCE).read("scale", {}).parameters
    assert [each.name for each in found] == ["y", "x", "n", "a", "p", "h"]
    assert [each.type for each in found] == ["float", "float", "unsigned int", "double", "P", "half"]
    assert [each.is_array for each in found] == [True, True, False, True, False, False]
    assert [each.is_const for each in found] == [False, True, True, True, False, False]
    assert found[2].dtype() == np.uint32 and found[4].dtype() is None
    with pytest.raises(UsageError, match=r"kernel.cu has no kernel 'scal'; it has other, scale"):
        KernelText(SOURCE).read("scal", {})


def test_includes_in_quotes_are_put_in_their_place(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "a.h").write_text('#pragma once\n#include "b.h"\nint a;\n')
    (tmp_path / "inc" / "b.h").write_text("int b;\n")
    text = '#include <cuda_fp16.h>\n#include "a.h"\n#include "a.h"\n__global__ void f(int n) {}\n'
    (tmp_path / "k.cu").write_text(text)
    source = KernelText(str(tmp_path / "k.cu"), [tmp_path / "inc"])
    assert source.text.count("int a;") == 1 and source.text.index("int b;") < source.text.index("int a;")
    assert '#line 3 "k.cu"' in source.text and "#include <cuda_fp16.h>" in source.text
    (tmp_path / "inc" / "b.h").write_text('#include "b.h"\n')
    endless = KernelText(str(tmp_path / "k.cu"), [tmp_path / "inc"]).text
    assert '#error #include "b.h": b.h includes itself endlessly' in endless
    (tmp_path / "inc" / "b.h").write_text('// of nobody\n#ifndef B\n#define B\nint b;\n#include "b.h"\n#endif\n')
    guarded = KernelText(str(tmp_path / "k.cu"), [tmp_path / "inc"]).text
    assert guarded.count("int b;") == 1 and "#error" not in guarded


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
    assert eval(checked_expression(text, ["x", "y"], "it"), {"c": {"x": 3, "y": 4}}) == value


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
        checked_expression(text, ["x", "y"], "it")


def test_the_grid_is_that_of_the_rules() -> None:
    space = {"block_size_x": [32, 64], "tile": [1, 3], "n_blocks": [7]}
    given = "__global__ void f(int n) {}", (1000, "n_blocks * 2"), [np.int32(1)], space

    def grid(**more: Any) -> tuple[int, int, int]:
        call = read_call("f", *given, **more)
        return Formulas.of(call, sizes_of_call(call)).said({"block_size_x": 32, "tile": 3, "n_blocks": 7}).grid

    assert grid() == (32, 14, 1)
    assert grid(divisors=(["block_size_x", "tile"], None, None)) == (11, 14, 1)
    assert grid(divisors=(["block_size_x/2"], [], None)) == (63, 14, 1)
    assert grid(divisors=(lambda p: p["tile"], "n_blocks", None)) == (334, 2, 1)
