"""The compiler: figures from ptxas, errors as data, one code with and without line information, a cache that holds."""

import json
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autotune import TrialFailure
from autotune.runtime import nvrtc

pytestmark = pytest.mark.quick

SCALE = """
extern "C" __global__ void other(float* x) { x[threadIdx.x] = 1.0f; }
extern "C" __global__ void scale(float* x, float a)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = a * tile[63 - threadIdx.x];
}
"""
SPILLING = """
extern "C" __global__ __launch_bounds__(1024, 2) void spilling(float* x)
{
    float kept[64];
    for (int i = 0; i < 64; ++i) kept[i] = x[i * 1024 + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 64; ++j)
        for (int i = 0; i < 64; ++i) kept[i] = kept[i] * kept[(i + 7) % 64] + kept[j];
    for (int i = 0; i < 64; ++i) x[i * 1024 + threadIdx.x] = kept[i];
}
"""
TOO_MUCH_SHARED = """
extern "C" __global__ void greedy(float* x)
{
    __shared__ float tile[64000];
    tile[threadIdx.x] = x[0];
    __syncthreads();
    x[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


def machine_code(cubin: bytes, kernel: str) -> bytes:
    """The section .text.<kernel> of an ELF file."""
    sections_at = struct.unpack_from("<Q", cubin, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, sections_at + i * size) for i in range(count)]
    for header in headers:
        name_at = headers[names][4] + header[0]
        if cubin[name_at : cubin.index(b"\0", name_at)].decode() == f".text.{kernel}":
            return cubin[header[4] : header[4] + header[5]]
    raise AssertionError(f"no code of {kernel}")


def test_version_has_a_patch_level() -> None:
    assert nvrtc.available() is None
    assert len(nvrtc.version().split(".")) == 3


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_120"])
def test_compiles_for_gpus_that_are_not_here(arch: str) -> None:
    cubin = nvrtc.compile_cubin(SCALE, "scale", arch)
    assert cubin.data[:4] == b"\x7fELF"
    assert cubin.arch == nvrtc.native_arch(arch)
    assert cubin.shared_bytes == 256, "of the kernel named, not of the other one"
    assert cubin.spill_bytes == 0
    assert cubin.registers is not None and 4 <= cubin.registers <= 64


def test_the_file_is_whole() -> None:
    """The section table ends the file's content: a lost last byte would cut a header."""
    data = nvrtc.compile_cubin(SCALE, "scale", "sm_80").data
    programs_at = struct.unpack_from("<Q", data, 0x20)[0]
    size, count = struct.unpack_from("<HH", data, 0x36)
    assert len(data) >= programs_at + size * count


def test_hopper_instructions_compile() -> None:
    source = 'extern "C" __global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }'
    assert nvrtc.compile_cubin(source, "k", "sm_90").registers is not None
    with pytest.raises(TrialFailure, match="compile_failed"):
        nvrtc.compile_cubin(source, "k", "sm_80")


def test_spills_are_counted() -> None:
    cubin = nvrtc.compile_cubin(SPILLING, "spilling", "sm_80")
    assert cubin.spill_bytes is not None and cubin.spill_bytes > 0
    assert cubin.registers == 32


def test_line_information_leaves_the_code_alone() -> None:
    options = [option for option in nvrtc.OPTIONS if option != "-lineinfo"]
    plain = nvrtc.compile_cubin(SCALE, "scale", "sm_90", options)
    numbered = nvrtc.compile_cubin('#line 7 "scale.cu.j2"\n' + SCALE, "scale", "sm_90")
    assert machine_code(plain.data, "scale") == machine_code(numbered.data, "scale")


def test_denormals_are_kept() -> None:
    """-ftz=true would turn the multiply into FMUL.FTZ: other bits in the instruction."""
    flushing = nvrtc.compile_cubin(SCALE, "scale", "sm_80", [*nvrtc.OPTIONS, "-ftz=true"])
    assert machine_code(flushing.data, "scale") != machine_code(
        nvrtc.compile_cubin(SCALE, "scale", "sm_80").data, "scale"
    )


def test_fp16_header_is_found() -> None:
    source = '#include <cuda_fp16.h>\nextern "C" __global__ void k(__half* x) { x[0] = __float2half(1.0f); }'
    assert nvrtc.compile_cubin(source, "k", "sm_80").data


def test_errors_name_the_template_and_are_few() -> None:
    wrong = '#line 17 "detect.cu.j2"\nextern "C" __global__ void k(float* x) { x[0] = a; b = 1; c = 1; d = 1; e = 1; }'
    with pytest.raises(TrialFailure) as raised:
        nvrtc.compile_cubin(wrong, "k", "sm_90")
    message = raised.value.message
    assert raised.value.status == "compile_failed"
    assert 'detect.cu.j2(17): error: identifier "a" is undefined' in message
    assert "identifier" in message and '"e"' not in message.replace("b = 1; c = 1; d = 1; e = 1;", "")
    assert "(2 more)" in message


def test_bad_instruction_is_a_compile_failure() -> None:
    with pytest.raises(TrialFailure, match=r"compile_failed: k for sm_80: .*instruction: 'nonsense'") as raised:
        nvrtc.compile_cubin('extern "C" __global__ void k() { asm volatile("nonsense;"); }', "k", "sm_80")
    assert raised.value.status == "compile_failed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('extern "C" __global__ void kk(float*) {}', 'identifier "k" is undefined'),
        ("__device__ void k(float*) {}", "Name expression cannot form address of a non-__global__"),
        ("template <class T> __global__ void k(T*) {}", "cannot determine which instance of function template"),
    ],
)
def test_a_kernel_that_is_not_there_is_a_compile_failure(text: str, why: str) -> None:
    with pytest.raises(TrialFailure, match=rf"no __global__ function called k \({why}") as failure:
        nvrtc.compile_cubin(text, "k", "sm_90")
    assert failure.value.status == "compile_failed"


INSTANCES = """
namespace outer { namespace {
template <class T, int N, bool NEGATED> static __global__ void put(T* out) { out[0] = NEGATED ? -T(N) : T(N); }
} }
__device__ float put(float a) { return a; }
__global__ void put(float* out) { __shared__ float s[99]; s[threadIdx.x] = put(7.0f); *out = s[3]; }
"""
CAST = "static_cast<void (*)(float*)>(put)"


def test_a_name_expression_says_which_instance(tmp_path: Path) -> None:
    first, second = "outer::put<float, 3, true>", "outer::put<double, 64, false>"
    cubin = nvrtc.cached_cubin(tmp_path, INSTANCES, first, "sm_90", also=(CAST, second))
    assert set(cubin.symbols) == {first, second, CAST} and len(set(cubin.symbols.values())) == 3
    assert cubin.symbol(CAST) == "_Z3putPf" and "putIfLi3ELb1EE" in cubin.symbol(first)
    assert [cubin.of(each).shared_bytes for each in (first, CAST, second)] == [0, 396, 0]
    again = nvrtc.cached_cubin(tmp_path, INSTANCES, first, "sm_90", also=(CAST, second))
    assert again.cached and again.symbols == cubin.symbols
    other = nvrtc.cached_cubin(tmp_path, INSTANCES, second, "sm_90")
    assert not other.cached and other.key != cubin.key


def test_a_name_is_found_without_extern_c() -> None:
    cubin = nvrtc.compile_cubin("static __global__ void k(float* x) { x[0] = 1; }", "k", "sm_90")
    assert cubin.symbol("k") == "_Z1kPf" and cubin.registers is not None
    assert cubin.key == nvrtc.cubin_key("static __global__ void k(float* x) { x[0] = 1; }", "sm_90")


def test_too_much_shared_memory_is_of_resources() -> None:
    with pytest.raises(TrialFailure, match="too much shared data") as raised:
        nvrtc.compile_cubin(TOO_MUCH_SHARED, "greedy", "sm_80")
    assert raised.value.status == "resources"


def test_unknown_architecture_lists_the_known() -> None:
    with pytest.raises(TrialFailure, match=r"sm_80.*sm_90"):
        nvrtc.compile_cubin(SCALE, "scale", "sm_12")


def test_missing_cupy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", None)
    nvrtc.version.cache_clear()
    reason = nvrtc.available()
    nvrtc.version.cache_clear()
    assert reason is not None and "pip install" in reason


def test_cache_returns_what_was_compiled(tmp_path: Path) -> None:
    first = nvrtc.cached_cubin(tmp_path / "new", SCALE, "scale", "sm_90")
    again = nvrtc.cached_cubin(tmp_path / "new", SCALE, "scale", "sm_90")
    assert (first.cached, again.cached) == (False, True)
    assert first.path is not None and first.path.read_bytes() == first.data
    assert (again.data, again.registers, again.log, again.path) == (first.data, first.registers, first.log, first.path)


def test_cache_tells_apart_what_differs(tmp_path: Path) -> None:
    keys = {
        nvrtc.cached_cubin(tmp_path, source, "scale", arch, options).key
        for source in (SCALE, SCALE + "// changed\n")
        for arch in ("sm_80", "sm_90")
        for options in (nvrtc.OPTIONS, (*nvrtc.OPTIONS, "--fmad=false"))
    }
    assert len(keys) == 8


@pytest.mark.parametrize("damage", ["cut", "flipped", "no figures", "torn figures"])
def test_damaged_cache_is_made_anew(tmp_path: Path, damage: str) -> None:
    good = nvrtc.cached_cubin(tmp_path, SCALE, "scale", "sm_80")
    assert good.path is not None
    about = good.path.with_suffix(".json")
    if damage == "cut":
        good.path.write_bytes(good.data[:100])
    elif damage == "flipped":
        good.path.write_bytes(good.data[:-200] + b"\xff" + good.data[-199:])
    elif damage == "no figures":
        about.unlink()
    else:
        about.write_text(about.read_text()[:40])
    again = nvrtc.cached_cubin(tmp_path, SCALE, "scale", "sm_80")
    assert not again.cached
    assert machine_code(again.data, "scale") == machine_code(good.data, "scale")
    assert json.loads(about.read_text())["registers"] == good.registers
    assert nvrtc.cached_cubin(tmp_path, SCALE, "scale", "sm_80").cached


def test_a_failure_is_not_cached(tmp_path: Path) -> None:
    with pytest.raises(TrialFailure):
        nvrtc.cached_cubin(tmp_path, "no C++", "k", "sm_80")
    assert not list(tmp_path.iterdir())


def test_threads_may_ask_for_one_thing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        cubins = list(pool.map(lambda _: nvrtc.cached_cubin(tmp_path, SCALE, "scale", "sm_80"), range(8)))
    assert len({cubin.key for cubin in cubins}) == 1
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".cubin", ".json"], "no temporary file is left"


def test_a_device_function_may_be_called_like_a_kernel() -> None:
    text = '__device__ float k(float v) { return v; }\nextern "C" __global__ void k(float* y) { y[0] = k(y[1]); }'
    assert nvrtc.compile_cubin(text, "k", "sm_90").symbols == {}
    with pytest.raises(TrialFailure, match="no __global__ function called k"):
        nvrtc.compile_cubin(text.replace('extern "C"', ""), "k", "sm_90")
