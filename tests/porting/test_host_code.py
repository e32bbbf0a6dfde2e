"""Host code, and textures of other kernels, are left out of what is compiled; what device code uses stays."""

from pathlib import Path

import numpy as np
import pytest

from autotune import UsageError
from autotune.porting.source import KernelText

from .plain_cuda import BODY, PARAMETERS, X, call_of, outputs_of_call

F = f"__global__ void f{PARAMETERS} {BODY}"
LAUNCH = "f<<<(n + 63) / 64, dim3(64), 0, stream>>>(y, x, n); cudaDeviceSynchronize();"
HOST = {  # what stands beside the kernel, before or after it, and what is told of it
    "a launcher": (f"void launch{PARAMETERS} {{ {LAUNCH} }}\n", "launch (1 function)"),
    "main and a launcher": (
        f"static cudaStream_t stream;\ninline void launch{PARAMETERS}\n{{\n{LAUNCH}\n}}\nint main() {{ return 0; }}\n",
        "launch, main (2 functions and 1 declaration)",
    ),
    "a launcher of extern C": (f'extern "C" void launch{PARAMETERS} {{ {LAUNCH} }}\n', "launch (1 function)"),
    "a launcher in a namespace": (f"namespace a {{ int launch{PARAMETERS} {{ {LAUNCH} }} }}\n", "launch (1 function)"),
    "a launcher under a template": (
        "template <class T, int N> T *launch(T *y, const T *x, int n) { f<<<n, N>>>(y, x, n); return y; }\n"
        "template float *launch<float, 3>(float *, const float *, int);\n",
        "launch (1 function)",
    ),
    "a launcher called like the kernel": (
        "void f(std::vector<float> &y, const std::vector<float> &x) { f<<<1, 2>>>(y.data(), x.data(), y.size()); }\n",
        "f (1 function)",
    ),
    "a class": (
        "class Plan { public: Plan(int n) : n_(n) { cudaMalloc(&y_, n); } ~Plan(); void run(); "
        "private: int n_; float *y_; std::string name_; };\nPlan::~Plan() { cudaFree(y_); }\n"
        "void Plan::run() { f<<<1, 64>>>(y_, y_, n_); }\n",
        "~Plan, run (2 functions and 1 declaration)",
    ),
    "variables": (
        'std::vector<float> kept; static std::map<int, std::string> names = {{1, "a{b"}}; const char *text = "";\n'
        "const dim3 block(64); thrust::device_vector<int> v(3); float buffer[100]; extern int verbose;\n",
        "7 declarations",
    ),
    "names of others": (
        "using std::vector; namespace fs = std::filesystem; using namespace std;\n",
        "2 declarations",
    ),
    "tests of other libraries": (
        "TEST(Doubles, AllOfThem) { EXPECT_EQ(1, 1); }\nBENCHMARK(doubles);\n"
        'PYBIND11_MODULE(kernels, m) { m.def("f", &launch); }\n',
        "TEST, PYBIND11_MODULE (2 functions and 1 declaration)",
    ),
    "a macro makes it": (
        '#define API extern "C" int\n#define CHECK(call) if (call) exit(1)\n'
        "API launch(float *y)\n{\n#ifdef DEBUG\n    CHECK(cudaDeviceSynchronize());\n#endif\n    return 0;\n}\n",
        "launch (1 function)",
    ),
    "a function of host and one of the device": (
        "float twice(float a) { return std::pow(2, a); }\n__device__ float twice(float a, int) { return 2 * a; }\n",
        "twice (1 function)",
    ),
    "a lambda, a try block and a text": (
        'auto run = [](int n) { return n; };\nint main() try { puts("} __global__ void f(int) {"); } catch (...) { }\n',
        "main (1 function and 1 declaration)",
    ),
    "algorithms of Thrust": (
        "#include <thrust/device_vector.h>\n#include <thrust/transform.h> // for run\n"
        "struct Twice : thrust::unary_function<int, int> { __device__ int operator()(int a) { return 2 * a; } };\n"
        "void run(thrust::device_vector<int> &v) { thrust::transform(v.begin(), v.end(), v.begin(), Twice()); }\n",
        "run (1 function and 1 declaration)",
    ),
    "algorithms of CUB": (
        "#include <cub/cub.cuh>\nvoid sum(float *y, float *x, int n) { cub::DeviceReduce::Sum(0, n, x, y, n); }\n",
        "sum (1 function)",
    ),
    "headers of the host": (
        "#include <cublas_v2.h>\n#include <nvtx3/nvToolsExt.h>\n#include <sys/time.h>\n#include <unistd.h>\n"
        "#include <exception>\n#include <set>\nnamespace a { cublasHandle_t handle; }\n"
        "void nap() { nvtxRangePush(); sleep(1); }\n",
        "nap (1 function and 1 declaration)",
    ),
    "a class with virtual methods": (
        "class Plan { public: virtual ~Plan() {} virtual void run() = 0; virtual int size() const { return 1; } };\n",
        "1 declaration",
    ),
    "a handle of a class": (
        "typedef struct Plan *plan_t; using Plans = Plan *; struct Pair { plan_t one, two; };\n"
        "class Plan { std::vector<int> sizes; void run() {} };\n",
        "4 declarations",
    ),
}
KEPT = {  # what device code uses: it stays, and the kernel, which calls g(x), is what it was
    "a constexpr function": "constexpr float g(float a) { return 2 * a; }\n",
    "a constexpr template": "template <class T> constexpr T g(T a) { return 2 * a; }\n",
    "constants": "static const int TWO = 2; constexpr int n_of(int a) { return a; }\n"
    "constexpr float one[n_of(1)] = {1};\n"
    "__device__ float g(float a) { return TWO * a * one[0]; }\n",
    "a class with methods of both": "struct Scale { float by; Scale(float a) : by(a) {} "
    "void show() { std::cout << by; } "
    "__host__ __device__ float of(float a) const { return by * a; } };\n"
    "__device__ float g(float a) { Scale s{2.0f}; return s.of(a); }\n",
    "host and device": "#define BOTH __host__ __device__ __forceinline__\nBOTH float g(float a) { return 2 * a; }\n",
    "in a namespace": "namespace { namespace b { __device__ float h(float a); } using b::h; }\n"
    "__device__ float g(float a) { return h(a); }\nnamespace { __device__ float b::h(float a) { return 2 * a; } }\n",
    "structures": "typedef struct { float two; int n; } pair_t; struct Data { pair_t p; };\n"
    "__constant__ pair_t c = {2, 3};\n__device__ float g(float a) { Data d = {c}; return d.p.two * a; }\n",
    "operators": "struct V { float a; V() = default; constexpr V(float b) : a(b) {} constexpr float operator()() const "
    "{ return 2 * a; } void operator<<(int) { std::abort(); } };\n__device__ float g(float a) { return V(a)(); }\n",
    "a class without its variables": "static struct S { float two; } s = {2}, *at = &s;\n"
    "const struct T { int n; } sizes[] = {{1}, {2}}; extern struct U { int n; } u;\n"
    "__device__ float g(float a) { S b = {2}; T c = {1}; U d = {1}; return b.two * a * c.n * d.n; }\n",
    "a class without virtual methods of the host": 'struct Base { virtual const char *name() const { return ""; } '
    "virtual void show() = 0; virtual ~Base() = default; virtual __device__ float by() const = 0; };\n"
    "struct Two : Base { void show() override { std::cout << name(); } "
    "__device__ float by() const override { return 2; } };\n"
    "__device__ float g(float a) { Two two; const Base &base = two; return base.by() * a; }\n",
    "a handle": "struct Data { float by; void show() { std::cout << by; } }; typedef Data *handle;\n"
    "__device__ float g(float a) { Data data = {2}; handle at = &data; return at->by * a; }\n",
}
CALLED_ALIKE = {  # functions of the host, and what device code calls of others
    "cg::thread_rank(cg::this_thread_block())": "unsigned thread_rank(Plan plan) { return plan.rank; }\n",
    "std::min(1.0f, 2.0f)": "template <class T> T min(T a, T b) { return a < b ? a : b; }\n"
    "template float min<float>(float, float);\n",
    "::sqrtf(1.0f) + sync(1)": "__device__ int sync(int a) { return a; }\n"
    "template <class T> T sync(T *x) { f<<<1, 2>>>(x, x, 1); }\ntemplate float sync(float *);\n",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("case", HOST)
def test_host_code_is_left_out(case: str, is_first: bool, tmp_path: Path) -> None:
    beside, told = HOST[case]
    call = call_of(beside + F if is_first else F + beside)
    assert call.source.told == (f"left out of kernel.cu (not needed by the kernel): {told}",)
    assert call.source.text.count("\n") == (beside + F).count("\n"), "each line of the kernel stays where it is"
    assert np.array_equal(outputs_of_call(call, tmp_path, {"block_size_x": 64})["y"], 2 * X)


@pytest.mark.parametrize("case", KEPT)
def test_what_device_code_uses_stays(case: str, tmp_path: Path) -> None:
    call = call_of(KEPT[case] + F.replace("2 * x[i]", "g(x[i])"))
    assert np.array_equal(outputs_of_call(call, tmp_path, {"block_size_x": 64})["y"], 2 * X)


@pytest.mark.parametrize("called", CALLED_ALIKE)
def test_a_function_of_the_host_may_be_called_as_one_of_a_library(called: str, tmp_path: Path) -> None:
    headers = "#include <cooperative_groups.h>\n#include <algorithm>\nnamespace cg = cooperative_groups;\n"
    call = call_of(headers + CALLED_ALIKE[called] + F.replace("2 *", f"(2 + 0 * ({called})) *"))
    assert np.array_equal(outputs_of_call(call, tmp_path, {"block_size_x": 64})["y"], 2 * X)
    assert "(1 function" in call.source.told[0]


@pytest.mark.parametrize(
    "used",
    [
        "thrust::complex<float>(a).real()",
        "two(a).real(); }\ntypedef thrust::complex<float> two; void run() {",
        "th::max(a, a); }\nnamespace th = thrust; void run() {",
    ],
)
def test_an_include_of_thrust_stays_where_device_code_uses_it(used: str) -> None:
    include = "#include <thrust/complex.h>"
    assert include not in call_of(f"{include}\nvoid g(float a) {{ {used}; }}\n{F}").source.text
    call = call_of(f"{include}\n__device__ float g(float a) {{ return {used}; }}\n{F.replace('2 * x[i]', 'g(x[i])')}")
    assert include in call.source.text


def test_a_host_function_that_device_code_calls_is_for_the_compiler_to_refuse(tmp_path: Path) -> None:
    call = call_of("float g(float a) { return 2 * a; }\n" + F.replace("2 * x[i]", "g(x[i])"))
    assert "float g(float a)" in call.source.text and not call.source.told


def test_lines_of_the_preprocessor_stay() -> None:
    source = (
        f"#define A 2\nvoid host()\n{{\n#if 0\n  (\n#else\n#define B \\\n  3\n#endif\n}}\n{F.replace('2 *', 'B *')}"
    )
    text = KernelText(source).read("f", {}).text
    assert [line for line in text.split("\n") if line.strip()][:6] == [
        "#define A 2",
        "#if 0",
        "#else",
        "#define B \\",
        "  3",
        "#endif",
    ]


NOT_NEEDED = {  # device code beside a kernel that does not need it, and which a compiler may refuse
    "a kernel with CUB": "#include <cub/cub.cuh>\n__global__ void sum(float *y) { cub::BlockReduce<float, 32> all; }\n",
    "a kernel with cuRAND": "#include <curand_kernel.h>\n__device__ curandState states[64];\n"
    "__global__ void draw(float *y) { y[0] = curand_uniform(&states[threadIdx.x]); }\n",
    "a class with Thrust": "#include <thrust/version.h>\n#if THRUST_VERSION < 100500\n#error old\n#endif\n"
    "template <class T> struct Vector { __device__ T sum() { return thrust::reduce(a, a); } T *a; };\n",
    "instances of a class, by a macro": "#include <ostream>\n#define ALL(M) M(int) M(float) \\\n  M(double)\n"
    "template <class T> class Show { std::ostream &to; T by; };\n#define SHOW(T) template class Show<T>;\nALL(SHOW)\n",
    "a macro that is empty elsewhere": "class Reg { public: template <class T> Reg(T *a); };\n#ifdef _MSC_VER\n"
    "#define CTOR(type)\n#else\n#define CTOR(type) extern template Reg::Reg(type *a)\n#endif\nCTOR(bool);\n",
    "a macro of several declarations": "#define DECL(T, n) namespace fL { extern T F_##n; } using fL::F_##n\n"
    "class Host { public: virtual void f(); };\nDECL(Host, verbose);\n",
    "calls of macros over two lines": "#define G(name, op) template <class T> void f_##name(int n, T *y) { op; }\n"
    "G(a, y[0] =\n   n + 1)\nG(b, \\\n  std::abort())\n"
    "#define H(name) __global__ void name(std::string &y) {}\nH(\n c)\n",
    "a word that is empty here": '#if __GNUC__ > 3\n#define API __attribute__((visibility("default")))\n'
    "#else\n#define API\n#endif\nAPI bool other(bool from);\nAPI void more(std::string *s);\n",
    "attributes after a class": "class Flag { std::string name; } __attribute((unused));\n",
    "an operator of a type": "struct Odd { std::string s; };\n__device__ Odd operator+(Odd a, Odd b) { return a; }\n",
}


@pytest.mark.parametrize("case", NOT_NEEDED)
def test_device_code_that_the_kernel_does_not_need_is_left_out(case: str, tmp_path: Path) -> None:
    call = call_of(NOT_NEEDED[case] + F)
    assert "not needed by the kernel" in "".join(call.source.told)
    assert np.array_equal(outputs_of_call(call, tmp_path, {"block_size_x": 64})["y"], 2 * X)


NEEDED_ELSEWHERE = {  # g() of a kernel is only called in a branch, or not by its name
    "a branch that is read": "__device__ float g(float a) { return 2 * a; }\n"
    + F.replace("2 * x[i]", "\n#if WIDTH_OF_IT > 3\n2 * x[i]\n#else\ng(x[i])\n#endif\n"),
    "a branch that only the compiler takes": "__device__ float g(float a) { return 2 * a; }\n"
    + F.replace("2 * x[i]", "\n#if __GNUC__ > 3 || defined(__NVCC__)\ng(x[i])\n#else\n2 * x[i]\n#endif\n"),
    "a macro in a branch": "#if __GNUC__ > 3\n#define AT(a) g(a)\n#else\n#define AT(a) 2 * a\n#endif\n"
    "__device__ float g(float a) { return 2 * a; }\n" + F.replace("2 * x[i]", "\n#ifdef AT\nAT(x[i])\n#endif\n"),
    "an operator": "struct V { float a; };\n__device__ float h(float a) { return a; }\n"
    "__device__ V operator+(V a, V b) { return V{h(a.a) + h(b.a)}; }\n"
    + F.replace("2 * x[i]", "(V{x[i]} + V{x[i]}).a"),
    "a loop over a range": "struct R { float a[2]; };\n__device__ const float *begin(const R &r) { return r.a; }\n"
    "__device__ const float *end(const R &r) { return r.a + 2; }\n"
    "__device__ float g(float a) { R r{{a, a}}; float s = 0; for (float b : r) s += b; return s; }\n"
    + F.replace("2 * x[i]", "g(x[i])"),
    "a specialisation": "template <class T> struct Two; template <> struct Two<float> { static const int of = 2; };\n"
    + F.replace("2 *", "Two<float>::of *"),
    "a function with the name of a variable": "namespace u { __device__ int two() { return 2; } }\n"
    + F.replace("y[i] =", "{ const int two = u::two(); y[i] =").replace("2 * x[i];", "two * x[i]; }"),
    **{
        f"a branch of {macro}": f"#if defined(PURE)\n#define ARCH 0\n#elif defined({macro})\n#define ARCH 1\n#else\n"
        "#define ARCH 0\n#endif\ntemplate <class T> struct Two;\n#if ARCH == 1\ntemplate <> struct Two<float> "
        "{ static const int of = 2; };\n#endif\n"
        + F.replace("2 *", f"\n#ifdef {macro}\nTwo<float>::of *\n#else\n2 *\n#endif\n")
        for macro in ("__LP64__", "__x86_64__")
    },
    "enumerators": "enum Kind { NONE = -1, TWO = 2 };\ntypedef enum { THREE = 3 } Other;\n" + F.replace("2 *", "TWO *"),
    "a type that a macro makes with a host operator": "#include <ostream>\n#define OF(n) struct A##n { int v; }; \\\n"
    "inline std::ostream &operator<<(std::ostream &o, const A##n &a) { return o << a.v; } namespace r { \\\n"
    "typedef A##n B##n; }\n#define OTHER\nOF(2)\n" + F.replace("2 *", "r::B2{2}.v *"),
    "a method outside of its class": "struct V { float a; __device__ float twice(); __device__ V(float); };\n"
    "__device__ V::V(float b) : a(b) {}\n__device__ float V::twice() { return 2 * a; }\n"
    + F.replace("2 * x[i]", "V(x[i]).twice()"),
}


@pytest.mark.parametrize("case", NEEDED_ELSEWHERE)
def test_device_code_that_the_kernel_may_need_stays(case: str, tmp_path: Path) -> None:
    call = call_of(NEEDED_ELSEWHERE[case])
    assert np.array_equal(outputs_of_call(call, tmp_path, {"block_size_x": 64})["y"], 2 * X)


# ---------------------------------------------------------------------- textures
READS = (
    "__global__ void other(float *y, cudaTextureObject_t t) { y[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }\n"
)
TEXTURES = {
    "objects": READS,
    "references": "texture<float, 1, cudaReadModeElementType> t_x;\n"
    "__device__ float fetch(int i) { return tex1Dfetch(t_x, i); }\n"
    "__global__ void other(float *y) { y[0] = fetch(0); }\n",
    "a function of the device": "__device__ float fetch(cudaTextureObject_t t, int i) { return tex1D<float>(t, i); }\n",
}


@pytest.mark.parametrize("case", TEXTURES)
def test_textures_of_others_are_left_out(case: str, tmp_path: Path) -> None:
    call = call_of(TEXTURES[case] + F + "// a comment on tex2D(t, 0)\n")
    assert "(not needed by the kernel): " in call.source.told[0]
    assert np.array_equal(outputs_of_call(call, tmp_path, {"block_size_x": 64})["y"], 2 * X)


@pytest.mark.parametrize(
    "beside",
    [
        "#ifdef OLD_CUDA\ntexture<float> t_x;\n#endif\n",
        '__device__ const char *note = "tex1Dfetch(t, 0)";\n',
        "// texture<float> t_x;\n",
        "#if USE_TEXTURE == 1\n#define READ(i) tex1Dfetch(t_x, i)\n#endif\n",
    ],
)
def test_textures_that_are_not_compiled_are_nothing(beside: str, tmp_path: Path) -> None:
    call = call_of(beside + F, USE_TEXTURE=[0])
    assert "texture" not in "".join(call.source.told)
    assert np.array_equal(outputs_of_call(call, tmp_path, {"block_size_x": 64, "USE_TEXTURE": 0})["y"], 2 * X)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            TEXTURES["a function of the device"] + F.replace("2 * x[i]", "fetch(0, i)"),
            r"kernel.cu:1: fetch uses textures",
        ),
        (TEXTURES["references"] + F.replace("2 *", "fetch(i) *"), r"uses textures \(t"),
        ('#line 7 "k.h"\n' + F.replace("2 *", "tex1D<float>(n, i) *"), r"k.h:7: f uses textures"),
        (
            F.replace("2 *", "tex2D<float>(n, i, i) *"),
            r"kernel.cu:1: f uses textures \(tex2D\), which are not supported",
        ),
    ],
)
def test_textures_that_the_kernel_uses_are_refused(source: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        call_of(source)


@pytest.mark.parametrize(
    ("beside", "told"),
    [
        (
            "#ifdef __DRIVER_TYPES_H__\nconst char *name_of(cudaError_t e) { return cudaGetErrorName(e); }\n#endif\n",
            "name_of (1 function)",
        ),
        (
            "#if BY_A_HEADER >= 1\nint main() { return 0; }\n#else\nvoid other() {}\n#endif\n",
            "main, other (2 functions)",
        ),
        ("#ifndef A_H\n#define A_H\nvoid run();\n#endif\n", "run (1 function)"),
        ("struct Plan { ncclComm_t all; }; typedef struct { Handle_t one; } pair_t;\n", "2 declarations"),
        ("typedef pthread_t Thread; using Name = std::string; typedef unsigned int uint_t;\n", "3 declarations"),
    ],
)
def test_host_code_that_a_header_lets_in_is_left_out(beside: str, told: str, tmp_path: Path) -> None:
    call = call_of(beside + F)
    assert call.source.told == (f"left out of kernel.cu (not needed by the kernel): {told}",)
    defined = call.source.text.replace("#ifdef __DRIVER", "#define __DRIVER_TYPES_H__\n#ifdef __DRIVER")
    text = defined.replace("#if BY_A", "#define BY_A_HEADER 1\n#if BY_A")
    assert np.array_equal(outputs_of_call(call_of(text), tmp_path, {"block_size_x": 64})["y"], 2 * X)


def test_words_that_a_header_may_define_are_asked_for() -> None:
    source = "#if !WITH_CUDA\n#define __host__\n#define __device__\n#endif\n"
    source += "class V { float a; void show(); }; __host__ __device__ float twice(V v) { return 2; }\n"
    text = KernelText(source + F.replace("2 *", "twice({x[i]}) *")).read("f", {}).text
    assert "class V {" in text and "show" not in text and "__host__ __device__ float twice" in text
