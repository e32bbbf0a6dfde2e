"""`autotune tune` takes a stranger's .cu file as it is: its launch, its numbers, its headers and its templates."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.core.errors import Status
from autotune.kernel_tuner import tune_kernel
from autotune.porting import launching
from autotune.porting.argument_texts import argument_value, number_in
from autotune.porting.cuda_signature import CudaParameter
from autotune.records.folder import SweepFolder
from autotune.records.trial import Trial
from autotune.source.registry import load_kernel

from ..commands import autotune

COPY = "(float *y, const float *x, int n) { int i = blockIdx.x * block_size_x + threadIdx.x; if (i < n) y[i] = x[i]; }"
ARGUMENTS = ("y=zeros:float32:1000", "x=random:float32:1000", "n=1000")
FLOATS, INTEGERS = CudaParameter("x", "float", True, True), CudaParameter("n", "int", False, False)


def tuned(folder: Path, text: str, kernel: str, *words: str, arguments: tuple[str, ...] = ARGUMENTS) -> dict[str, Any]:
    """Returns what `tune --json` prints for a kernel in this text; ``told``: what it prints to stderr."""
    (folder / "k.cu").write_text(text)
    given = [f"--arg={each}" for each in arguments]
    results = ("--results", str(folder / "results"), "--device", "host", "--json")
    done = autotune("tune", str(folder / "k.cu"), "--kernel", kernel, *given, *words, *results)
    assert done.returncode in (0, 1), done.stderr
    return {**json.loads(done.stdout), "told": done.stderr}


def trials_of(summary: dict[str, Any]) -> list[Trial]:
    return SweepFolder(Path(summary["path"])).trials()


# ---------------------------------------------------------------------- the launch
CONVOLVE = """
#include <cstdio>
#ifndef BX
#define BX 16
#endif
#ifndef TILE
#define TILE 1
#endif
#define DIVUP(a, b) (((a) + (b) - 1) / (b))
__global__ void smooth(float* out, const float* in, int width, int height)
{
    __shared__ float row[BX * TILE + 2];
    const int x0 = blockIdx.x * BX * TILE, y = blockIdx.y;
    for (int x = threadIdx.x; x < BX * TILE + 2; x += BX)
        row[x] = x0 + x < width + 2 ? in[y * (width + 2) + x0 + x] : 0;
    __syncthreads();
    for (int t = 0; t < TILE; t++)
        if (x0 + t * BX + threadIdx.x < width)
            out[y * width + x0 + t * BX + threadIdx.x] = row[t * BX + threadIdx.x] + row[t * BX + threadIdx.x + 2];
}
int main(int argc, char** argv)
{
    int w = atoi(argv[1]), h = atoi(argv[2]);
    float *out, *in;
    dim3 block(BX), grid(DIVUP(w, BX * TILE), h);
    smooth<<<grid, block>>>(out, in, w, h);
}
"""


@pytest.mark.parametrize("size", [(), ("--size", "70,5")])
def test_a_kernel_is_launched_as_its_source_launches_it(tmp_path: Path, size: tuple[str, ...]) -> None:
    x = np.random.default_rng(1).random((5, 72), np.float32)
    np.save(tmp_path / "in.npy", x)
    np.save(tmp_path / "answer.npy", x[:, :-2] + x[:, 2:])
    words = ("--param=BX=8,32", "--param=TILE=1,2", f"--answer=out={tmp_path}/answer.npy", *size)
    given = ("out=zeros:float32:5x70", f"in={tmp_path}/in.npy", "width=70", "height=5")
    summary = tuned(tmp_path, CONVOLVE, "smooth", *words, arguments=given)
    trials = trials_of(summary)
    assert [trial.status for trial in trials] == [Status.MEASURED] * 4
    for trial in trials:
        bx, tile = trial.config["BX"], trial.config["TILE"]
        assert (trial.grid, trial.block) == ((-(-70 // (bx * tile)), 5, 1), (bx, 1, 1))
    line = 1 + CONVOLVE[: CONVOLVE.index("smooth<<<")].count("\n")
    assert f"as k.cu:{line} launches it" in summary["told"].split("trial 1 ")[0]
    kernel = load_kernel(summary["definition"])
    other = kernel.problem({"width": 90, "height": 7})
    assert kernel.launch(other, trials[0].config).grid == (-(-90 // trials[0].config["BX"]), 7, 1)


def test_named_blocks_overrule_the_launch_of_the_source(tmp_path: Path) -> None:
    text = f"__global__ void f{COPY}\nint main() {{ int n; f<<<n / 2, 2>>>(0, 0, n); }}"
    summary = tuned(tmp_path, text, "f", "--size=1000", "--param=block_size_x=64,100")
    assert {(trial.grid, trial.block) for trial in trials_of(summary)} == {
        ((16, 1, 1), (64, 1, 1)),
        ((10, 1, 1), (100, 1, 1)),
    }
    swapped = text.replace("block_size_x", "B")
    summary = tuned(tmp_path, swapped, "f", "--size=1000", "--param=B=64,100", "--block-size-names=B")
    assert {trial.block for trial in trials_of(summary)} == {(64, 1, 1), (100, 1, 1)}


def test_without_a_size_and_a_launch_the_error_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(f"__global__ void f{COPY}\nint main() {{ f<<<rand(), 64>>>(0, 0, 9); }}")
    given = [f"--arg={each}" for each in ARGUMENTS]
    done = autotune("tune", str(tmp_path / "k.cu"), "--kernel=f", *given, "--param=block_size_x=64", "--device=host")
    assert done.returncode == 2 and "k.cu:2 launches it by rand()" in done.stderr and "give --size" in done.stderr


def test_failures_have_the_launch(tmp_path: Path) -> None:
    text = f"__global__ void f{COPY.replace('y[i] = x[i]', 'y[i + 1] = x[i]')}"
    summary = tuned(tmp_path, text, "f", "--size=1000", "--param=T=1,2")
    assert "(grid 1000x1x1, block 256x1x1)" in summary["told"]
    assert "no parameter is called block_size_x (256), block_size_y (1), block_size_z (1)" in summary["told"]


# ---------------------------------------------------------------------- public files
@pytest.mark.parametrize(
    ("text", "kernel", "words"),
    [
        (
            f'#ifdef HELPERS\n#include "helpers.h"\n#endif\n#if 0\n#include "old.h"\n#endif\n__global__ void f{COPY}',
            "f",
            (),
        ),
        (f'#include "cuda_runtime.h"\n#include "device_launch_parameters.h"\n__global__ void f{COPY}', "f", ()),
        (
            f"#include <cufft.h>\n#include <curand.h>\n__device__ cufftReal r;\n__global__ void f{COPY}",
            "f",
            (),
        ),
        (
            "template <const int BM, typename T> __global__ void f(T* y, const T* x, int n)"
            " { int i = blockIdx.x * BM + threadIdx.x; if (i < n) y[i] = x[i]; }",
            "f<BM, float>",
            ("--param=BM=64,128", "--restrict=BM == block_size_x"),
        ),
        (
            f'#include <nobody/has_this.hpp>\n#define auto __auto_type\n#include "guarded.h"\n'
            f"// who knows??!?!\nvoid host(int n) {{ nobody::f(n); }}\n__global__ void f{COPY}",
            "f",
            (),
        ),
        (
            "#define LAUNCH f<<<1, 2>>>(0)\ntexture<float, 1> t;\n"
            "struct Reader { __device__ float operator()(int i) const { return tex1Dfetch(t, i); } };\n"
            f"template <typename R> __global__ void g(float* y) {{ R r; y[0] = r(0); }}\n__global__ void f{COPY}",
            "f",
            (),
        ),
        (f'#include <regex>\n#include <atomic>\n#include "thrust/device_vector.h"\n__global__ void f{COPY}', "f", ()),
        (
            "#include <cufftXt.h>\n__device__ cudaTextureObject_t t;\n"
            "__device__ cufftComplex load(void* p, size_t i, void*, void*)"
            " { return make_float2(tex2D<float>(t, 0, 0), 0); }\n"
            f"__device__ cufftCallbackLoadC loader = load;\n__global__ void f{COPY}",
            "f",
            (),
        ),
        (
            f"static const int A = 1, TILE = 128, B = 2; __global__ void f{COPY.replace('= x', '= A * x')}",
            "f",
            ("--param=TILE=1",),
        ),
        (
            "__device__ int of(int i, int gridDim) { return i + 0 * gridDim; }\n"
            f"__global__ void f{COPY.replace('{ int', '{ bool b = threadIdx.x; b = __shfl_sync(~0u, b, 0); int')}",
            "f",
            (),
        ),
        (
            "struct Op { __device__ float operator()(float x) const { return x; } };\n"
            "template <typename T> __global__ void __launch_bounds__(256) f"
            f"{COPY.replace('= x[i]', '= T()(x[i])')}",
            "f<Op>",
            (),
        ),
        (
            '#include <cstdint>\n//:#include "old.h"\nnamespace d { typedef std::int8_t int8; }\n'
            f"__global__ void f{COPY.replace('{ int', '{ d::int8 e = 0; int')}",
            "f",
            (),
        ),
        (
            "#include <cxxabi.h>\n#include <typeinfo>\n"
            "const char* name(const std::type_info& t) { int s; return abi::__cxa_demangle(t.name(), 0, 0, &s); }\n"
            f"__global__ void f{COPY}",
            "f",
            (),
        ),
        (f"static constexpr unsigned int TILE = 128; __global__ void f{COPY}", "f", ("--param=TILE=1",)),
        (  # dynamic shared memory that is declared outside of functions
            "extern __shared__ float s[];\nnamespace other { extern __shared__ int t[]; }\n"
            "__global__ void f(float *y, const float *x, int n) { int i = blockIdx.x * block_size_x + threadIdx.x;"
            " s[threadIdx.x] = i < n ? x[i] : 0; __syncthreads();"
            " if (i < n) y[i] = __int_as_float(other::t[threadIdx.x]); }",
            "f",
            ("--shared=512",),
        ),
    ],
)
def test_public_files_run(tmp_path: Path, text: str, kernel: str, words: tuple[str, ...]) -> None:
    guarded = '/* of nobody, \xe9 */\n#ifndef G_H\n#define G_H\n#ifdef MORE\n#include "guarded.h"\n#endif\n#endif\n'
    (tmp_path / "guarded.h").write_bytes(guarded.encode("latin-1"))
    summary = tuned(tmp_path, text, kernel, "--size=1000", "--param=block_size_x=64,128", *words)
    assert [trial.status for trial in trials_of(summary)] == [Status.MEASURED] * 2
    if "nobody" in text:
        assert "left out where the compiler has no such header: nobody/has_this.hpp" in summary["told"]


def test_a_guess_before_a_loop_of_compare_and_swap_is_no_race(tmp_path: Path) -> None:
    text = """
    __global__ void f(unsigned *a, const float *x, int n) {
        int i = blockIdx.x * block_size_x + threadIdx.x;
        if (i >= n) return;
        unsigned old = *a, seen;
        do { seen = old; old = atomicCAS(a, seen, seen + (unsigned)x[i]); } while (old != seen);
    }"""
    x = np.arange(1000, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", np.array([int(x.sum())], np.uint32))
    given = ("a=zeros:uint32:1", f"x={tmp_path}/x.npy", "n=1000")
    words = ("--size=1000", "--param=block_size_x=64", f"--answer=a={tmp_path}/y.npy")
    assert tuned(tmp_path, text, "f", *words, arguments=given)["trials"] == {"measured": 1}
    racing = text.replace("old = atomicCAS(a, seen, seen + (unsigned)x[i])", "*a = seen + (unsigned)x[i]")
    assert "race on buffer a" in trials_of(tuned(tmp_path, racing, "f", *words, arguments=given))[0].message


def test_a_structure_may_have_a_constructor_that_copies(tmp_path: Path) -> None:
    text = """
    struct S { float a; int n; __host__ __device__ S(const S& o) { a = o.a; n = o.n; } };
    __global__ void f(float *y, S s) { int i = blockIdx.x * block_size_x + threadIdx.x; if (i < s.n) y[i] = s.a; }"""
    given = np.zeros((), np.dtype([("a", np.float32), ("n", np.int32)], align=True))
    given["a"], given["n"] = 2, 100
    np.save(tmp_path / "s.npy", given)
    np.save(tmp_path / "y.npy", np.full(100, 2, np.float32))
    words = ("--size=100", "--param=block_size_x=64", f"--answer=y={tmp_path}/y.npy")
    arguments = ("y=zeros:float32:100", f"s={tmp_path}/s.npy")
    assert tuned(tmp_path, text, "f", *words, arguments=arguments)["trials"] == {"measured": 1}


def test_what_another_file_defines_is_named(tmp_path: Path) -> None:
    calling = COPY.replace("= x[i]", "= far::away(x[i])")
    text = f"namespace far {{ __device__ float away(float); }}\n__global__ void f{calling}"
    (failed,) = trials_of(tuned(tmp_path, text, "f", "--size=1000", "--param=block_size_x=64"))
    assert "the source declares far::away and does not define it" in failed.message


def test_a_constant_of_a_class_may_be_a_parameter(tmp_path: Path) -> None:
    scaled = COPY.replace("= x", "= S::TILE * x")
    text = f"struct S {{\n  static const int TILE = 4;\n  enum {{ OTHER = 2 }};\n}};\n__global__ void f{scaled}"
    summary = tuned(tmp_path, text, "f", "--size=1000", "--param=block_size_x=64", "--param=TILE=4,8")
    assert (
        summary["trials"] == {"measured": 2}
        and "k.cu:2: const TILE has the value that the call gives" in summary["told"]
    )
    given = [f"--arg={each}" for each in ARGUMENTS]
    (tmp_path / "k.cu").write_text(text.replace("S::TILE", "S::OTHER"))
    done = autotune("tune", "k.cu", "--kernel", "f", "--size=9", "--param=OTHER=4,8", *given, cwd=tmp_path)
    assert done.returncode == 2 and "k.cu:5 has S::OTHER, so OTHER cannot be a macro" in done.stderr


def test_a_variable_of_another_file_is_named(tmp_path: Path) -> None:
    text = f"extern __constant__ float far[];\n__global__ void f{COPY.replace('= x[i]', '= far[0] * x[i]')}"
    (failed,) = trials_of(tuned(tmp_path, text, "f", "--size=1000", "--param=block_size_x=64"))
    assert failed.message.endswith("the source declares far and does not define it")


def test_a_kernel_without_arguments_is_tuned(tmp_path: Path) -> None:
    text = "__device__ int seen; __global__ void f() { seen = blockIdx.x; }"
    summary = tuned(tmp_path, text, "f", "--size=1000", "--param=block_size_x=64,128", arguments=())
    assert summary["trials"] == {"measured": 2}


@pytest.mark.parametrize(
    ("words", "arguments", "told"),
    [
        (("--param=n=64",), ARGUMENTS, "f has the parameters (float *y, const float *x, int 64"),
        ((), (*ARGUMENTS[:2], "n=1.5"), "n=1.5: the kernel takes int: 1.5 is not a whole number"),
        ((), ("y=1",), "f takes y, x, n; --arg gives y"),
    ],
)
def test_what_is_wrong_is_named(words: tuple[str, ...], arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(f"__global__ void f{COPY}")
    given = [f"--arg={each}" for each in arguments]
    words = ("--kernel", "f", "--size=9", "--param=block_size_x=64", *words)
    done = autotune("tune", "k.cu", *words, *given, cwd=tmp_path)
    assert done.returncode == 2 and told in done.stderr and done.stderr.count("\n") == 1


def test_dynamic_shared_memory_is_that_of_the_launch(tmp_path: Path) -> None:
    text = (
        "__global__ void rev(int* d, int n) { extern __shared__ int s[]; int t = threadIdx.x;"
        " s[t] = d[t]; __syncthreads(); d[t] = s[n - t - 1]; }\n"
        "int main() { int* d; const int n = 64; rev<<<1, n, n * sizeof(int)>>>(d, n); }"
    )
    x = np.arange(64, dtype=np.int32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", x[::-1])
    given = (f"d={tmp_path}/x.npy", "n=64")
    words = ("--size=64", "--param=block_size_x=64", f"--answer=d={tmp_path}/y.npy")
    assert tuned(tmp_path, text, "rev", *words, arguments=given)["trials"] == {"measured": 1}
    *_, failed = trials_of(tuned(tmp_path, text, "rev", *words, "--shared=0", arguments=given))
    assert "shared memory the dynamic array, which has 0" in failed.message


def test_a_missing_file_is_told_where_it_is_needed(tmp_path: Path) -> None:
    text = f'#if block_size_x > 100\n#include "wide.h"\n#endif\n__global__ void f{COPY}'
    summary = tuned(tmp_path, text, "f", "--size=1000", "--param=block_size_x=64,128")
    narrow, wide = trials_of(summary)
    assert narrow.status == Status.MEASURED and wide.status == Status.COMPILE_FAILED
    assert "k.cu:2" in wide.message and '"wide.h": there is no such file beside k.cu' in wide.message
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "wide.h").write_text("#define WIDE 1\n")
    summary = tuned(tmp_path, text, "f", "--size=1000", "--param=block_size_x=64,128", "-I", str(tmp_path / "folder"))
    assert summary["trials"] == {"measured": 2}


def test_headers_of_host_code_may_lack_theirs(tmp_path: Path) -> None:
    words = ("--size=1000", "--param=block_size_x=64")
    text = f'#include "host.h"\n__global__ void f{COPY}'
    too_old = "#ifndef OF_THERE\n#error there.h is too old\n#endif\n"
    (tmp_path / "host.h").write_text(f'#include "nobody/there.h"\n{too_old}')
    summary = tuned(tmp_path, text, "f", *words)
    assert summary["trials"] == {"measured": 1}
    assert "left out where the compiler has no such header: nobody/there.h" in summary["told"]
    (tmp_path / "host.h").write_text(too_old)
    assert "there.h is too old" in tuned(tmp_path, text, "f", *words)["told"]


OWN_DEFINES = """
#define BLOCK 64
#ifndef SHIFT
#define SHIFT 0
#endif
#define N \\
    1000
__global__ void copy(float *y, const float *x) { int i = blockIdx.x * BLOCK + threadIdx.x; if (i < N) y[i] = x[i]; }
int main() { copy<<<(N + BLOCK - 1) / BLOCK, BLOCK>>>(y, x); }
#undef BLOCK
"""


def test_a_value_of_the_call_is_not_that_of_the_source(tmp_path: Path) -> None:
    x = np.random.default_rng(1).random(300, np.float32)
    np.save(tmp_path / "x.npy", x)
    given = ("y=zeros:float32:300", f"x={tmp_path}/x.npy")
    words = ("--param=BLOCK=32,128", "-DN=300", "-DSHIFT=1", f"--answer=y={tmp_path}/x.npy")
    summary = tuned(tmp_path, OWN_DEFINES, "copy", *words, arguments=given)
    assert [(trial.status, trial.grid) for trial in trials_of(summary)] == [
        ("measured", (10, 1, 1)),
        ("measured", (3, 1, 1)),
    ]
    told = [line for line in summary["told"].splitlines() if "that the call gives" in line]
    assert told == [
        "BLOCK has the value that the call gives, not that of k.cu:2",
        "N has the value that the call gives, not that of k.cu:6",
    ]


def test_launch_bounds_are_held(tmp_path: Path) -> None:
    text = f"#define TPB 64\n__global__ void __launch_bounds__(TPB * (1 + 1), 2) f{COPY}\n#undef TPB\n"
    summary = tuned(tmp_path, text, "f", "--size=1000", "--param=block_size_x=64,128,256")
    assert [trial.status for trial in trials_of(summary)] == [Status.MEASURED] * 2 + [Status.LAUNCH_FAILED]
    assert "256 threads in a block; its __launch_bounds__ say 128" in trials_of(summary)[2].message


def test_integers_that_wrap_are_told_with_the_macro_that_lets_them(tmp_path: Path) -> None:
    text = f"__global__ void f{COPY.replace('float', 'int').replace('x[i]', 'x[i] * 31 + 7')}"
    given = ("y=zeros:int32:1000", "x=random:int32:1000:-2147483648:2147483647", "n=1000")
    words = ("--size=1000", "--param=block_size_x=64")
    failed = trials_of(tuned(tmp_path, text, "f", *words, arguments=given))[0]
    assert failed.status == Status.LAUNCH_FAILED and "-D AUTOTUNE_INTS_WRAP=1" in failed.message
    summary = tuned(tmp_path, text, "f", *words, "-D", "AUTOTUNE_INTS_WRAP=1", arguments=given)
    assert summary["trials"] == {"measured": 1}


# ---------------------------------------------------------------------- numbers
@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("3000", 3000), ("-3", -3), ("+3", 3), ("0x10", 16), ("0b11", 3), ("7u", 7), ("5ULL", 5), ("1_000", 1000)),
        *(
            ("1'000'000", 1000000),
            (".5", 0.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1.5f", 1.5),
            ("1e-3", 1e-3),
            ("2.5L", 2.5),
        ),
        *(("0x1.8p1", 3.0), ("true", 1), ("inf", np.inf), ("-INFINITY", -np.inf)),
        *((each, None) for each in ("", "f", "1.5ff", "0x", "1e", "x.npy", "1..2", "--3", "_1", "1__0")),
    ],
)
def test_numbers_are_read_as_c_and_python_write_them(text: str, number: float | None) -> None:
    found = number_in(text)
    assert found == number and type(found) is type(number)


@pytest.mark.parametrize("text", ["1.5", "1e400", "3000000000", "inf", "int32:1e40"])
def test_a_number_that_an_integer_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"--arg n={text}"):
        argument_value(INTEGERS, text)


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64"])
def test_random_signed_integers_are_small_unless_they_have_ends(kind: str) -> None:
    array = argument_value(FLOATS, f"random:{kind}:5000")
    assert array.dtype == kind and np.abs(array.astype(np.int64)).max() == (128 if kind == "int8" else 100)
    ends = argument_value(FLOATS, f"random:{kind}:5000:0:9")
    assert (ends.min(), ends.max()) == (0, 9)


@pytest.mark.parametrize("text", ["random:int32:5:9:0", "random:int32:5:1", "zeros:int32:5:0:1", "random:int32:5:a:b"])
def test_wrong_ends_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the least and the largest"):
        argument_value(FLOATS, text)


def test_a_slow_launch_is_told_before_the_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launching, "SLOW_S", 0.0)
    n = 30_000
    source = f"__global__ void f{COPY}"
    arguments = [np.zeros(n, np.float32), np.ones(n, np.float32), np.int32(n)]
    tune_kernel("f", source, n, arguments, {"block_size_x": [64]}, device="host", results=tmp_path)
    told = capsys.readouterr().out
    assert "f: one checked launch takes about 0 s here" in told.split("trial 1")[0]
    assert "times smaller, in arrays, numbers and --size" in told


def test_tune_kernel_says_what_the_source_launches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = f"__global__ void f{COPY.replace('block_size_x', 'B')}\nint main() {{ int n; f<<<n / B, B>>>(0, 0, n); }}"
    arguments = [np.zeros(256, np.float32), np.ones(256, np.float32), np.int32(256)]
    tune_kernel("f", source, 1, arguments, {"B": [64]}, device="host", results=tmp_path)
    told = capsys.readouterr().out
    assert "the source says grid (n // B, 1, 1), block (B, 1, 1), as kernel.cu:2 launches it" in told
