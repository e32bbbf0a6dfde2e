"""Which kernel a name means: signatures after the preprocessor, namespaces, templates and overloads."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.porting.source import KernelText

from .plain_cuda import BODY, PARAMETERS, N, X, call_of, outputs_of_call, variant_of

F = f"__global__ void f{PARAMETERS} {BODY}"
WRONG = "{ y[0] = 1 / 0; }\n"
PLAIN = {
    "another kernel is extern C": f'extern "C" __global__ void other{PARAMETERS} {BODY}{F}',
    "a comment has extern C": f'// no extern "C" here\n{F}',
    "extern C": f'extern "C" {F}',
    "a block of extern C": f'extern "C" {{ {F} }}',
    "one body for each value": f"#if M == 0\n{F}#else\n{F}#endif\n",
    "bounds first": f"__launch_bounds__(128) {F}",
    "bounds after static": f"__global__ static void __launch_bounds__(block_size_x, 1) f{PARAMETERS} {BODY}",
    "static": f"static {F}",
    "void first": f"void __global__ f{PARAMETERS} {BODY}",
    "attributes": f"[[maybe_unused]] __global__ void f{PARAMETERS} {BODY}",
    "a part of the list is left out": "__global__ void f(float *y,\n#if LDG == 1\nconst float *__restrict__ x,\n"
    f"#else\nconst float *x,\n#endif\nint n) {BODY}",
    "an old kernel": f"#if 0\n__global__ void f(float *y) {WRONG}#endif\n{F}",
    "an old kernel of another list": f"#ifdef OLD\n__global__ void f(int n, float *y) {WRONG}#endif\n{F}",
    "another branch": f"#if !defined(__CUDACC__) || !defined __CUDACC_RTC__\n#error old\n#else\n{F}#endif\n",
    "a comment has a kernel": f"/* __global__ void f(int a) {{ */ // __global__ void f(int b) {{\n{F}",
    "a text has a kernel": f'__device__ const char *s = "__global__ void f(int a) {{ /*";\n{F}',
    "a byte order mark": f"\ufeff{F}",
    "a macro makes it": f"#define KERNEL(name) \\\n    __global__ void name{PARAMETERS}\nKERNEL(f) {BODY}",
    "macros for words": "#define GLOBAL __global__\n#define REAL float\n"
    f"GLOBAL void f(REAL *y, const REAL *x, int n) {BODY}",
    "a device function of its name": f"__device__ float f(float a) {{ return 2 * a; }}\n{F}",
    "overloads of the device": "__device__ float f(float a) { return a; }\n"
    f"__device__ int f(int a) {{ return a; }}\n{F}",
    "in a namespace": f"namespace k {{\n{F}}}\n",
    "in an anonymous namespace": f"namespace {{\n{F}}}\n",
    "in nested namespaces": f"namespace a::b {{ namespace {{ __device__ float f(float a) {{ return a; }}\n{F} }} }}\n",
    "declared before": f"__global__ void f(float *, const float *, int);\n{F}",
    "types by other names": "using real = float; typedef real value; typedef const value *input; typedef unsigned u;\n"
    f"__global__ void f(value *y, input x, int n) {BODY}",
    "blanks at the ends of lines": f"#define A \\  \n 1\t \n{F}".replace("\n", " \r\n"),
}
SCALED = """
namespace fir {
struct P {};
template <class T, int N_THREADS, bool IS_NEGATED>
static __global__ void __launch_bounds__(N_THREADS) scaled(T *__restrict__ y, const T *x, int n)
{
    const int i = blockIdx.x * N_THREADS + threadIdx.x;
    if (i < n) y[i] = (IS_NEGATED ? -1 : 1) * x[i];
}
}
"""


@pytest.mark.parametrize("case", PLAIN)
def test_a_kernel_is_found_as_the_compiler_finds_it(case: str, tmp_path: Path) -> None:
    call = call_of(PLAIN[case], M=[1], LDG=[1, 0])
    assert [each.name for each in call.arguments] == ["y", "x", "n"]
    config = {"block_size_x": 64, "M": 1, "LDG": 0}
    assert np.array_equal(outputs_of_call(call, tmp_path, config)["y"], 2 * X)


@pytest.mark.parametrize("name", ["f", "k::f", "a::k::f"])
def test_a_name_may_say_the_namespace(name: str, tmp_path: Path) -> None:
    call = call_of(
        f"namespace a {{ namespace k {{\n{F}}} }}\nnamespace b {{ __global__ void g{PARAMETERS} {WRONG} }}", name
    )
    assert call.name == "f" and call.source.function == "a::k::f"
    assert np.array_equal(outputs_of_call(call, tmp_path, {"block_size_x": 64})["y"], 2 * X)


def test_a_name_that_several_have() -> None:
    source = f"namespace a {{ {F} }}\nnamespace b {{ {F} }}\n"
    with pytest.raises(UsageError, match=r"kernel.cu has 2 kernels 'f': say which one as a::f or b::f"):
        call_of(source)
    source = f"{F}__global__ void f(double *y, const double *x, int n) {BODY}"
    with pytest.raises(
        UsageError, match=r"as static_cast<void \(\*\)\(float \*, const float \*, int\)>\(f\) or static"
    ):
        call_of(source)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_cast_says_which_overload(dtype: str, tmp_path: Path) -> None:
    source = f"{F}__global__ void f(double *y, const double *x, int n) {{ if (blockIdx.x == 0) y[threadIdx.x] = 7; }}"
    name = f"static_cast<void (*)({dtype}*, const {dtype}*, int)>(f)"
    x = X.astype({"float": np.float32, "double": np.float64}[dtype])
    call = call_of(source, name, [np.zeros_like(x), x, np.int32(N)])
    y = outputs_of_call(call, tmp_path, {"block_size_x": 64})["y"]
    assert np.array_equal(y[:64], 2 * x[:64] if dtype == "float" else np.full(64, 7.0))


@pytest.mark.parametrize(
    ("name", "sign", "dtype"),
    [
        ("scaled<float, block_size_x, true>", -1, np.float32),
        ("fir::scaled<float, block_size_x, NEGATED>", -1, np.float32),
        ("scaled< unsigned int , 64 , false >", 1, np.uint32),
        ("::fir::scaled<TYPE, (block_size_x > 32 ? block_size_x : 32), 1 == 2>", 1, np.float64),
    ],
)
def test_a_name_may_be_an_instance_of_a_template(name: str, sign: int, dtype: Any, tmp_path: Path) -> None:
    x = X.astype(dtype)
    call = call_of(SCALED, name, [np.zeros_like(x), x, np.int32(N)], NEGATED=[True, False], TYPE=["double"])
    assert call.name == "scaled" and call.arguments[0].parameter is not None
    assert np.dtype(dtype) == np.dtype(
        {"float": "f4", "unsigned int": "u4", "double": "f8"}[call.arguments[0].parameter.type]
    )
    config = {"block_size_x": 64, "NEGATED": True, "TYPE": "double"}
    assert np.array_equal(outputs_of_call(call, tmp_path, config)["y"], sign * x)


def test_a_cast_names_the_types_of_each_config(tmp_path: Path) -> None:
    call = call_of(
        "__device__ float scaled(float);\n" + SCALED.replace("struct P {};", "__device__ int scaled(int);"),
        "scaled<TYPE,\n block_size_x, true>",
        TYPE=["float", "double"],
    )
    assert "\n" not in call.source.function
    kernels = [variant_of(call, tmp_path, {"block_size_x": 64, "TYPE": kind}).kernel for kind in ("float", "double")]
    casts = [f"static_cast<void (*)({t} *__restrict__, const {t} *, int)>" for t in ("float", "double")]
    assert [kernel.startswith(cast) for kernel, cast in zip(kernels, casts, strict=True)] == [True, True], kernels
    y = outputs_of_call(call, tmp_path, {"block_size_x": 64, "TYPE": "float"})["y"]
    assert np.array_equal(y, -X)


def test_another_instance_is_another_variant(tmp_path: Path) -> None:
    config = {"block_size_x": 64}
    names = ["scaled<float, 64, true>", "scaled<float, 64, false>"]
    first, second = (variant_of(call_of(SCALED, name), tmp_path / name[-2:], config) for name in names)
    assert first.kernel == "fir::scaled<float, 64, true>" and first.key != second.key
    assert first.source.splitlines()[2:] == second.source.splitlines()[2:], "their text is the same"


@pytest.mark.parametrize(
    ("source", "name", "types"),
    [
        ("template <class T, class U = T> __global__ void f(T *y, const U x, U n) {}", "f<float>", ["float"] * 3),
        (
            "template <class T, int N = 4> __global__ void f(T y[N], T x, unsigned long long int n = 3) {}",
            "f<int>",
            ["int", "int", "unsigned long long"],
        ),
        (
            "using real = double; template <class T = real, class... R> __global__ void f(T *const *y, T x, long n) {}",
            "f<>",
            ["double", "double", "long"],
        ),
        (
            "template <template <class> class V, class T> __global__ void f(V<T> *y, typename V<T>::type x, T n) {}",
            "f<Vec, short>",
            ["Vec<short>", "Vec<short>::type", "short"],
        ),
        (
            "namespace a { typedef float real; template <typename T> struct S {}; }\n"
            "__global__ void f(const a::real *y, a::S<int> x, std::uint32_t n) {}",
            "f",
            ["float", "a::S<int>", "uint32_t"],
        ),
        (
            "__global__ void f(float (*y)(int, int), struct P x, int unsigned n) {}",
            "f",
            ["float (*)(int, int)", "P", "unsigned int"],
        ),
        (
            "typedef float *array; __global__ void f(array y, float2 x, const __grid_constant__ int n) {}",
            "f",
            ["float", "float2", "int"],
        ),
    ],
)
def test_types_of_parameters(source: str, name: str, types: list[str]) -> None:
    found = KernelText(source + "\n").read(name, {}).parameters
    assert [each.type for each in found] == types and [each.name for each in found] == ["y", "x", "n"]


def test_pointers_and_const() -> None:
    source = "typedef float *fp; using cfp = const float *; template <class T> __global__ void f(fp a, cfp b, T c, "
    source += "float *const d, const float e[], fp *g, volatile float *h) {}\n"
    found = KernelText(source).read("f<const int *>", {}).parameters
    assert all(each.is_array for each in found)
    assert [each.is_const for each in found] == [False, True, True, False, True, False, False]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "scaled",
            r"is a template <class T, int N_THREADS, bool IS_NEGATED>: name an instance of it as scaled<T, N_THREAD",
        ),
        ("scaled<float, 3>", "The given name lacks IS_NEGATED"),
        ("scaled<float, 3, true, 4>", "The given name has 4 arguments for 3"),
        ("other::scaled<float, 3, true>", r"kernel.cu has no kernel 'other::scaled'; it has fir::scaled"),
        ("scaled<float", "is not a name in CUDA"),
        ("f(3)", "is not a name in CUDA"),
    ],
)
def test_a_name_that_means_no_kernel(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        call_of(SCALED, name)


def test_a_plain_kernel_has_no_arguments_in_angles() -> None:
    with pytest.raises(UsageError, match=r"f of kernel\.cu is not a template: name it without <float>"):
        call_of(F, "f<float>")


def test_a_header_that_includes_itself_behind_a_guard(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#ifndef A_H\n#define A_H\n#include "b.h"\n#define TWO 2\n#endif\n')
    (tmp_path / "b.h").write_text('#ifndef B_H\n#define B_H\n#include "a.h"\n#endif\n')
    (tmp_path / "k.cu").write_text(
        f'/* #include "none.h" */ // #include "a.h"\n#include "a.h"\n{F.replace("2 *", "TWO *")}'
    )
    call = call_of(tmp_path / "k.cu")
    assert np.array_equal(outputs_of_call(call, tmp_path / "results", {"block_size_x": 64})["y"], 2 * X)
