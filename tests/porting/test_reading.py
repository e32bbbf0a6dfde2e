"""What is read of CUDA source and of a call: signatures, includes, expressions and grids."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.core.expressions import checked_expression
from autotune.porting.call import read_call
from autotune.porting.formulas import Formulas
from autotune.porting.preprocessing import preprocessed
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


GUARDS = {
    "once": "#pragma once\nint a;\n",
    "a guard": "// a file\n#ifndef A_H // of A\n#define A_H\n#if 1\nint a;\n#endif\n#endif /* A_H */\n",
    "another guard": "#if !defined(A_H)\n#define A_H\nint a;\n#endif",
}


@pytest.mark.parametrize(
    ("includes", "n"),
    [
        ("{0}{0}", 1),
        ("#if N\n{0}#else\n{0}#endif\n", 2),
        ("#if N\n{0}#endif\n{0}{0}", 2),
        ("{0}#if N\n{0}#elif M\n{0}#endif\n", 1),
        ('#include "c.h"\n{0}', 1),
        ('#if N\n#include "c.h"\n#endif\n{0}', 2),
    ],
)
@pytest.mark.parametrize("guard", GUARDS)
def test_a_file_with_a_guard_is_put_where_a_condition_may_need_it(
    guard: str, includes: str, n: int, tmp_path: Path
) -> None:
    (tmp_path / "a.h").write_text(GUARDS[guard])
    (tmp_path / "c.h").write_text('#ifndef C_H\n#define C_H\n#include "a.h"\n#endif\n')
    (tmp_path / "k.cu").write_text(includes.format('#include "a.h"\n') + "__global__ void f(int n) {}\n")
    text = KernelText(str(tmp_path / "k.cu"))
    assert text.text.count("int a;") == n
    for value in (0, 1):  # where it stands twice, the preprocessor takes one
        assert preprocessed(text.text, {"N": value, "M": 1}).text.count("int a;") == 1


def test_a_file_that_opens_and_then_closes_is_put_twice(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#ifndef A_H\n#define A_H\nextern "C" {\n#else\n#undef A_H\n}\n#endif\n')
    (tmp_path / "k.cu").write_text('#include "a.h"\nint a;\n#include "a.h"\n__global__ void f(int n) {}\n')
    text = KernelText(str(tmp_path / "k.cu"))
    assert preprocessed(text.text, {}).text.split()[:6] == ["extern", '"C"', "{", "int", "a;", "}"]
    assert text.read("f", {}).parameters[0].name == "n"


def test_a_missing_file_of_another_folder_is_an_error_only_where_it_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text('#ifdef A\n#include "../absent.cu"\n#endif\n__global__ void f(int n) {}\n')
    text = KernelText(str(tmp_path / "k.cu")).text
    assert '#error #include "../absent.cu": there is no such file' in text and "<../" not in text


def test_a_file_that_has_more_than_its_guard_is_put_everywhere(tmp_path: Path) -> None:
    guard = "#ifndef ITEM\n#define ITEM(x) x\n#endif\n"
    for text in (f"{guard}ITEM(int a;)\n", f"int a;\n{guard}", f"{guard}#if 1\nint a;\n#endif\n"):
        (tmp_path / "a.h").write_text(text)
        (tmp_path / "k.cu").write_text('#include "a.h"\n#include "a.h"\n__global__ void f(int n) {}\n')
        assert KernelText(str(tmp_path / "k.cu")).text.count("int a;") == 2


def test_a_header_in_quotes_may_be_one_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text('#include "sys/param.h"\n__global__ void f(int n) {}\n')
    text = KernelText(str(tmp_path / "k.cu")).text
    assert "#if __has_include(<sys/param.h>)\n#include <sys/param.h>\n#else" in text and "#error" in text


def test_headers_that_make_a_source_too_large_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.porting.preprocessing.MOST_TOKENS", 2000)
    (folder := tmp_path / "boost").mkdir()
    (folder / "large.hpp").write_text("int one(int);\n" * 1000)
    (tmp_path / "k.cu").write_text("#include <large.hpp>\n__global__ void f(int n) {}\n")
    found = KernelText(tmp_path / "k.cu", [folder]).read("f", {})
    assert found.told[0].startswith("left out, since the source is too large with them") and "one" not in found.text
    (tmp_path / "k.cu").write_text("int one(int);\n" * 1000 + "__global__ void f(int n) {}\n")
    with pytest.raises(UsageError, match="has more than 2000 words, counted again in each macro, with the files that"):
        KernelText(tmp_path / "k.cu", [folder]).read("f", {})


def test_pointers_in_arguments_are_known() -> None:
    """A call cannot give the memory that they name."""
    text = """typedef struct { float x; float *data; int n; } P; typedef float *fp;
    struct Q { int a; P in; void (*f)(int); float *g() const; };
    struct R { int a; float b[3]; float *g() const { float *z = 0; return z; } };
    template <class T> struct V { T *at; };
    __global__ void k(float **a, float *b[], float c[][4], float (*d)[4], P e, const Q *f, R g, fp h, fp *i,
                      V<float> j, float *l, struct P m, float n[4]) { *j.at = *e.data + *m.data + *f->in.data; }"""
    found = {each.name: each.pointers for each in KernelText(text).read("k", {}).parameters if each.pointers}
    assert found == {k: (v,) for k, v in {**dict(a="a", b="b", e="data", f="in.data", i="i", j="at", m="data")}.items()}
    nested = "struct Out { struct In { float *at; }; };\n__global__ void k(Out::In p) { *p.at = 1; }"
    with pytest.raises(UsageError, match=r"the argument p, Out::In, holds a pointer \(at\) to memory"):
        read_call("k", nested, 1, [np.zeros(1, [("at", "i8")])[0]], {"B": [1]})
    with pytest.raises(UsageError, match=r"the argument p, cudaPitchedPtr, holds a pointer \(ptr\) to memory"):
        read_call("k", "__global__ void k(cudaPitchedPtr p) { }", 1, [np.zeros(4, "f4")], {"B": [1]})
    fields = [("ptr", "i8"), ("data", "i8"), ("n", "i8")]
    structure, given = "struct P { float *ptr; int *data; int n; };\n", [np.zeros(1, fields)]
    with pytest.raises(UsageError, match=r"k: the argument p, P, holds a pointer \(data\) to memory that a"):
        read_call("k", structure + "__global__ void k(P p) { *p.data = 1; }", 1, given, {"B": [1]})
    read_call("k", structure + "__global__ void k(P p) { p.n = 1; }", 1, given, {"B": [1]})  # it is not read


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
