"""Headers of C and C++ under NVRTC: each compiles alone, all together and beside CCCL's, and counts for the key."""

import pytest

from autotune import TrialFailure
from autotune.runtime import nvrtc

KERNEL = 'extern "C" __global__ void k(float* y, int n) { %s }'
OF_CCCL = ("array", "complex", "cub/cub.cuh", "functional", "tuple", "type_traits", "utility")  # seconds, together
FOR_BOTH = "".join(
    f"#include <cuda/std/{name}>\n" for name in ("cmath", "cstdint", "cfloat", "climits", "ctime", "limits")
)
USED = """
    printf("%d %llu", INT_MAX, (unsigned long long)UINT64_MAX);
    assert(n > 0);
    memcpy(y, y + 4, 8);
    memmove(y, y + 1, 9);
    uint32_t a = n;
    std::int64_t b = a;
    std::size_t c = b + offsetof(float2, y) + strlen("text");
    y[0] = std::numeric_limits<float>::max() + std::numeric_limits<int>::lowest() + M_PI + NAN + INFINITY + FLT_MAX;
    y[1] = std::sqrt(2.0f) + std::abs(-2.0f) + std::min(1.0f, 2.0f) + std::max(n, 2) + HUGE_VAL + fminf(1, n) + c;
    std::complex<float> z(1, 2);
    std::array<int, 3> numbers = {1, 2, 3};
    auto pair = std::make_tuple(1, 2.0f);
    static_assert(std::is_same<int, int>::value, "");
    y[2] = (z * z).real() + numbers[1] + std::get<1>(pair) + (y == NULL);
    __shared__ cub::BlockReduce<float, 128>::TempStorage shared;
    y[3] = cub::BlockReduce<float, 128>(shared).Sum(y[threadIdx.x]);
"""


def including(names: list[str], body: str = "y[0] = n;") -> str:
    return "".join(f"#include <{name}>\n" for name in names) + KERNEL % body


def test_each_header_stands_alone() -> None:
    for name in nvrtc.own_headers().keys() - set(OF_CCCL):
        nvrtc.compile_cubin(including([name]), "k", "sm_90")


@pytest.mark.parametrize("cccl_first", [True, False])
def test_all_headers_together_and_beside_cccl(cccl_first: bool) -> None:
    source = including(list(nvrtc.own_headers()), USED)
    nvrtc.compile_cubin(
        FOR_BOTH + source if cccl_first else source.replace("extern", FOR_BOTH + "extern"), "k", "sm_90"
    )


def test_no_name_is_there_unasked() -> None:
    with pytest.raises(TrialFailure, match='"uint32_t" is undefined'):
        nvrtc.compile_cubin(KERNEL % "uint32_t a = n;", "k", "sm_90")


@pytest.mark.parametrize("used", ["INFINITY + NAN", "M_PI", 'RAND_MAX + strlen("")'])
def test_what_headers_of_cuda_bring_along_is_there(used: str) -> None:
    nvrtc.compile_cubin(including(["cuda_runtime.h"], f"y[0] = {used};"), "k", "sm_90")


@pytest.mark.parametrize(
    "condition",
    [
        "CUDART_VERSION < 12000 || CUDART_VERSION % 10",
        "CUDA_VERSION != CUDART_VERSION",
        "CUDART_VERSION / 1000 != __CUDACC_VER_MAJOR__",
    ],
)
def test_the_version_of_cuda_is_told(condition: str) -> None:
    refused = f"#include <cuda.h>\n#if {condition}\n#error\n#endif\n"
    nvrtc.compile_cubin(refused + KERNEL % f"static_assert(CUDA_VERSION == {nvrtc.cudart_version()});", "k", "sm_90")


def test_the_key_depends_on_headers_that_are_included(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = including([]), including(["cuda_fp16.h"]), including(["stdint.h"])
    before = [nvrtc.cubin_key(source, "sm_90") for source in sources]
    changed = {**nvrtc.own_headers(), "limits.h": "#define CHAR_BIT 9\n"}  # stdint.h includes it
    monkeypatch.setattr(nvrtc, "own_headers", lambda: changed)
    after = [nvrtc.cubin_key(source, "sm_90") for source in sources]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, True, False]
