"""What sources have that the host device turns into C++: headers, versions, tiles, static variables."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from autotune import Launch, TrialFailure
from autotune.devices import host as module
from autotune.devices.host.build import read_facts

from .bench import Bench, variant


@pytest.mark.parametrize(
    "headers",
    [
        ("iostream", "complex"),
        ("exception", "fstream", "complex", "typeinfo"),
        ("sys/stat.h", "complex", "nvtx3/nvToolsExt.h", "unistd.h", "bitset"),
        ("complex", "of_another_standard", "cublas_v2.h", "immintrin.h"),
    ],
)
def test_headers_of_cpp_come_before_the_namespace(host: Bench, headers: tuple[str, ...]) -> None:
    included = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in headers)
    text = f"""{included}
    extern "C" __global__ void k(float* out) {{ out[0] = std::norm(std::complex<float>(out[0], 2.0f)); }}"""
    got = host.run(
        "k", {"out": np.ones(1, np.float32)}, Launch((1, 1, 1), (1, 1, 1)), build="check", outputs=["out"], text=text
    )
    assert got["out"] == 5.0


@pytest.mark.parametrize(
    "condition", ["CUDART_VERSION < 12000", "CUDART_VERSION % 10", "!defined(CUDA_VERSION) || CUDA_VERSION < 12000"]
)
def test_the_version_of_cuda_is_known(host: Bench, condition: str) -> None:
    text = f"#include <cuda.h>\n#if {condition}\n#error\n#endif\n__global__ void k() {{}}"
    assert host.load(text, "k", "plain")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#if 0\n#include <ia32intrin.h>\n#endif\n", "1"),
        (
            "#define WITH 1 // a\n#if WITH == 1 /* b\n*/\n#include <bitset>\n#else\n#include <ia32intrin.h>\n#endif\n",
            "WITH",
        ),
        ("#ifndef A_H\n#define A_H\n#include <bitset>\n#endif\n", "std::bitset<4>(1).count()"),
        ("#define T double\n#define max 3\n#include <algorithm>\n#include <bitset>\n", "T(max) - 2"),
        ('const char *text = "#include <ia32intrin.h>";\n/*\n#include <ia32intrin.h>\n*/\n#include <bitset>\n', "1"),
    ],
)
def test_headers_of_cpp_are_included_under_the_conditions_of_the_source(host: Bench, text: str, value: str) -> None:
    text += f"__global__ void k(float* out) {{ out[0] = {value}; }}"
    arguments, launch = {"out": np.zeros(1, np.float32)}, Launch((1, 1, 1), (1, 1, 1))
    assert host.run("k", arguments, launch, build="plain", outputs=["out"], text=text)["out"] == 1


ALLOWANCES = {  # macro -> a kernel that needs it, for which out[i] is 1
    "AUTOTUNE_EARLY_RETURNS": "if (threadIdx.x >= 60) return; __syncthreads(); out[threadIdx.x] = 1;",
    "AUTOTUNE_EARLY_RETURNS ": "if (threadIdx.x < 60) { __syncthreads(); out[threadIdx.x] = 1; }",
    "AUTOTUNE_UNSET_SHARED": "__shared__ float s[64]; if (threadIdx.x < 32) s[threadIdx.x] = 1; __syncthreads(); "
    "const float a = s[threadIdx.x]; out[threadIdx.x] = threadIdx.x < 32 ? a : 1;",
    "AUTOTUNE_INTS_WRAP": "int a = 2147483647 - blockIdx.x; a += int(threadIdx.x); out[threadIdx.x] = a == 0 ? 2 : 1;",
}


@pytest.mark.parametrize("needed", ALLOWANCES)
def test_what_is_refused_names_the_macro_that_allows_it(host: Bench, needed: str) -> None:
    text, macro = f"__global__ void k(float* out) {{ {ALLOWANCES[needed]} }}\n", needed.strip()
    arguments, launch = {"out": np.zeros(64, np.float32)}, Launch((1, 1, 1), (64, 1, 1))
    for refused in (text, f"#define {macro} 0\n{text}"):
        with pytest.raises(TrialFailure, match=f"define {macro}: -D {macro}=1"):
            host.run("k", arguments, launch, build="check", outputs=["out"], text=refused)
    for seed in range(4):
        got = host.run(
            "k", arguments, launch, build="check", outputs=["out"], text=f"#define {macro} 1\n{text}", seed=seed
        )
        assert (got["out"][:60] == 1).all()


@pytest.mark.parametrize("mode", ["rd", "ru", "rz"])
def test_operations_round_in_their_direction(host: Bench, mode: str) -> None:
    calls = ("__fadd_{0}(a, b)", "__fmul_{0}(a, b)", "__fdiv_{0}(a, b)", "__fsqrt_{0}(b)", "__fmaf_{0}(a, b, 1e-9f)")
    others = ("__double2float_{0}(1.0 / b)", "__int2float_{0}(16777217)", "float(__float2half_{0}(a))")
    whole = ("float(__int2half_{0}(-2049))", "float(__float2half_{0}(1e-9f))", "float(__float2half_{0}(1e6f))")
    body = "".join(f"out[{i}] = {call.format(mode)};" for i, call in enumerate((*calls, *others, *whole)))
    text = f"#include <cuda_fp16.h>\n__global__ void k(float* out, float a, float b) {{ {body} }}"
    a, b = np.float32(-1 / 3), np.float32(0.7)
    arguments = {"out": np.zeros(11, np.float32), "a": a, "b": b}
    got = host.run("k", arguments, Launch((1, 1, 1), (1, 1, 1)), build="plain", outputs=["out"], text=text)["out"]
    c, d = Fraction(float(a)), Fraction(float(b))
    exact = [c + d, c * d, c / d, Fraction(Decimal(float(b)).sqrt()), c * d + Fraction(float(np.float32(1e-9)))]
    exact += [
        Fraction(1 / float(b)),
        Fraction(16777217),
        c,
        Fraction(-2049),
        Fraction(float(np.float32(1e-9))),
        Fraction(10**6),
    ]
    for i, (found, value) in enumerate(zip(got, exact, strict=True)):
        dtype = np.float16 if i > 6 else np.float32
        near = dtype(float(value)) if i != 10 else dtype(np.inf)
        steps = sorted(
            {float(np.nextafter(near, dtype(-np.inf))), float(near), float(np.nextafter(near, dtype(np.inf)))}
        )
        below, above = (max(s for s in steps if s <= value), min(s for s in steps if s >= value))
        want = {"rd": below, "ru": above, "rz": below if value > 0 else above}[mode]
        assert float(found) == want, (calls + others + whole)[i]


@pytest.mark.parametrize("group", ["thread_block_tile<8>", "thread_block_tile<8, thread_block>", "auto"])
def test_tiles_are_tiles_of_any_parent(host: Bench, group: str) -> None:
    text = f"""#include <cooperative_groups.h>
    using namespace cooperative_groups;
    extern "C" __global__ void k(float* out) {{
        {group} tile = tiled_partition<8>(this_thread_block());
        thread_block_tile<8> same = tile;
        out[threadIdx.x] = tile.shfl(threadIdx.x, 0) + same.meta_group_rank() + 10 * same.meta_group_size();
    }}"""
    out = {"out": np.zeros(32, np.float32)}
    got = host.run("k", out, Launch((1, 1, 1), (32, 1, 1)), build="check", outputs=["out"], text=text)
    assert np.array_equal(got["out"], 40 + 9 * (np.arange(32) // 8))


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("static int count", "v"),
        ("static __shared__ int count", "s"),
        ("__shared__ static int count", "s"),
        ("int n = 0; __shared__ int count", "s"),
        ("static const int n = 2; __shared__ int count", "s"),
    ],
)
def test_shared_memory_is_told_from_variables_of_functions(declared: str, kind: str) -> None:
    text = f"{' ' * 10000}\n__global__ void k(int* out) {{ {declared}; count += 1; out[0] = count; }}"
    binary = module.compile(variant(text, "k"), module.DEVICE, ["plain"])
    kinds = {each.name: each.kind for each in read_facts(binary.files["plain"]).variables}
    assert kinds["count"] == kind
