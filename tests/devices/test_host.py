"""The host device around the checker: compiling, caching, launching, buffers."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import Launch, TrialFailure, UsageError
from autotune.devices import host as module
from autotune.devices.base import CANARY_BYTES
from autotune.devices.host import toolchain
from autotune.system.cache import cache_dir

from ..family import gone
from ..waiting import wait_until
from .bench import Bench, variant

SCALE = """
extern "C" __global__ void pipe(float* out, const float* in, float factor, int n, unsigned long long offset)
{
    const size_t i = blockIdx.x * blockDim.x + threadIdx.x + offset;
    if (i < n)
        out[i] = factor * in[i];
}
"""  # called pipe, as a function of the C library is
WRITE_AT = """
extern "C" __global__ void write_at(unsigned char* out, long long at) { out[at] ^= 0xff; }
"""
NO_FUNCTION = """
extern "C" __global__ void null(unsigned char* out, long long at) { void (*volatile f)() = 0; f(); }
"""
ONE = Launch((1, 1, 1), (1, 1, 1))


def failure(host: Bench, text: str, kernel: str) -> TrialFailure:
    with pytest.raises(TrialFailure) as caught:
        module.compile(variant(text, kernel, "scale.cu.j2"), module.DEVICE)
    return caught.value


# ---------------------------------------------------------------------- compiling
def test_both_builds_are_made_and_then_found() -> None:
    given = variant(SCALE + "// made and found", "pipe")
    first = module.compile(given, module.DEVICE)
    second = module.compile(given, module.DEVICE)
    assert set(first.files) == {"check", "plain"}
    assert all(path.is_file() for path in first.files.values())
    assert (first.cached, second.cached) == (False, True)
    assert (first.key, first.files, first.compile_s) == (second.key, second.files, second.compile_s)
    assert first.registers is None and first.shared_bytes == 0


def test_only_the_named_build_is_made() -> None:
    binary = module.compile(variant(SCALE + "// one build", "pipe"), module.DEVICE, ("plain",))
    assert set(binary.files) == {"plain"}
    with pytest.raises(UsageError, match="'fast' is not a build of the host device"):
        module.compile(variant(SCALE, "pipe"), module.DEVICE, ("fast",))


def test_error_names_the_template_line(host: Bench) -> None:
    error = failure(host, SCALE.replace("factor *", "factr *"), "pipe")
    assert error.status == "compile_failed"
    assert "scale.cu.j2:6:" in error.message and "'factr'" in error.message


def test_kernel_that_is_not_there(host: Bench) -> None:
    error = failure(host, SCALE, "tube")
    assert error.status == "compile_failed"
    assert "defines no __global__ function called tube" in error.message


INSTANCES = """
namespace outer { namespace {
template <class T, int N, bool NEGATED> static __global__ void put(T* out) { out[0] = NEGATED ? -T(N) : T(N); }
} }
__device__ float put(float a) { return a; }
__global__ void put(float* out) { out[0] = put(7.0f); }
"""


@pytest.mark.parametrize(
    ("function", "value"),
    [
        ("outer::put<float, 3, true>", -3.0),
        ("outer::put<float, 64, false>", 64.0),
        ("outer::put<unsigned int, 3, false>", np.uint32(3).view(np.float32)),
        ("static_cast<void (*)(float*)>(put)", 7.0),
    ],
)
@pytest.mark.parametrize("build", ["check", "plain"])
def test_an_instance_is_what_its_expression_says(host: Bench, function: str, value: float, build: str) -> None:
    arguments = {"out": np.zeros(1, np.float32)}
    out = host.run(function, arguments, ONE, build=build, outputs=["out"], text=INSTANCES)["out"]
    assert out.tolist() == [value]


def test_an_instance_that_is_not_there(host: Bench) -> None:
    error = failure(host, INSTANCES, "outer::put<float, 3>")
    assert error.status == "compile_failed"
    assert "defines no __global__ function called outer::put<float, 3> (" in error.message


@pytest.mark.parametrize(
    ("line", "lacking"),
    [
        ("#include <cub/cub.cuh>", "CUB (cub/cub.cuh)"),
        ("#include <cuda/std/complex>", "libcu++ (cuda/std/complex)"),
        ("__device__ float t(cudaTextureObject_t x) { return tex2D<float>(x, 0.5f, 0.5f); }", "textures"),
        ('__device__ void b() { asm volatile("bar.sync 1, 64;" ::: "memory"); }', "inline PTX (bar.sync)"),
        ("__global__ void a();\n__device__ void b() { a<<<1, 1>>>(); }", "launches from device code (<<<...>>>)"),
    ],
)
def test_what_needs_a_gpu_is_skipped_in_one_line(host: Bench, line: str, lacking: str) -> None:
    use = "b();" if " b()" in line else "out[0] = t(0);" if " t(" in line else ""
    error = failure(host, f'{line}\nextern "C" __global__ void k(float* out) {{ {use} }}', "k")
    assert error.status == "skipped" and "\n" not in error.message
    assert error.message.endswith(f"the host device has no {lacking}; a GPU can tune it")


def test_what_a_gpu_needs_and_the_host_does_not_see_is_left_alone(host: Bench) -> None:
    text = """#ifndef AUTOTUNE_HOST
    #include <cub/cub.cuh>
    #endif
    extern "C" __global__ void k(float* out) { out[0] = 1; }"""
    assert host.load(text, "k", "plain")


def test_too_much_static_shared_memory(host: Bench) -> None:
    text = 'extern "C" __global__ void k(float* out) { __shared__ float s[12289]; s[0] = 1; out[0] = s[0]; }'
    error = failure(host, text, "k")
    assert error.status == "resources"
    assert "49156 bytes of static shared memory" in error.message


@pytest.mark.parametrize("step", ["-c", "-shared"])
def test_compiler_that_dies_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, step: str) -> None:
    given = variant(f"{SCALE}// torn at {step}", "pipe")
    module.compile(variant(SCALE, "pipe"), module.DEVICE)  # the shim's header is there
    before = set(cache_dir("host").glob("*.so"))
    working = toolchain.find_compiler()
    fake = tmp_path / "g++"  # at that step it writes half a file, and dies
    tear = 'for word; do last=$word; done; echo torn > "$last"; kill -9 $$'
    fake.write_text(f'#!/bin/sh\ncase " $* " in *" {step} "*) {tear};; esac\nexec g++ "$@"\n')
    fake.chmod(0o755)
    with monkeypatch.context() as patch:
        broken = toolchain.Compiler((str(fake),), working.version, True)
        patch.setattr("autotune.devices.host.build.find_compiler", lambda: broken)
        with pytest.raises(TrialFailure, match="signal 9"):
            module.compile(given, module.DEVICE)
    assert set(cache_dir("host").glob("*.so")) == before
    assert not module.compile(given, module.DEVICE).cached


def test_compiler_and_what_it_started_die_with_this_process() -> None:
    seconds = f"{10**6 + os.getpid()}.5"  # whoever runs these tests beside us sleeps for another time
    command = ["sh", "-c", f"sleep {seconds}; true"]  # as the driver of g++ starts the compiler proper
    script = f"from autotune.devices.host.toolchain import run_tool; print('up', flush=True); run_tool({command})"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None and parent.stdout.readline() == b"up\n"
    wait_until(lambda: _runs(f"sleep\0{seconds}\0"))
    parent.kill()
    parent.wait()
    wait_until(lambda: not _runs(f"sleep\0{seconds}\0"))


def _runs(command: str) -> bool:
    """Whether there is a process of that command line."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended while we looked
            lines.append(path.read_bytes())
    return command.encode() in lines


def test_no_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    toolchain.find_compiler.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"apt install g\+\+"):
            toolchain.find_compiler()
        assert module.identifiers() == []
        assert [finding.works for finding in module.findings()] == [False]
        monkeypatch.setenv("CXX", "no-such-compiler -O3")
        with pytest.raises(UsageError, match="CXX='no-such-compiler -O3'"):
            toolchain.find_compiler()
    finally:
        toolchain.find_compiler.cache_clear()


def test_describes_itself() -> None:
    assert module.identifiers() == ["host"]
    assert module.describe("host").max_shared_bytes == 232448
    assert "g++" in module.compiler(module.DEVICE)
    assert all(finding.works for finding in module.findings())


# ---------------------------------------------------------------------- launching
@pytest.mark.quick
@pytest.mark.parametrize("build", ["check", "plain"])
def test_launch_and_sample(host: Bench, build: str) -> None:
    function = host.load(SCALE, "pipe", build)
    data = np.random.default_rng(3).normal(size=1000).astype(np.float32)
    source = host.session.buffer("in", (1000,), data.dtype, written=False)
    target = host.session.buffer("out", (1000,), data.dtype, written=True)
    source.write(data)
    arguments = [target, source, np.float32(3), np.int32(1000), np.uint64(0)]
    launch = Launch((8, 1, 1), (128, 1, 1))
    target.poison(0xFF)
    function.launch(launch, arguments)
    np.testing.assert_array_equal(target.read(), 3 * data)
    target.poison(0xFF)
    samples = function.samples(launch, arguments, 3, cold=True)
    np.testing.assert_array_equal(target.read(), 3 * data)
    assert len(samples) == 3 and all(sample.seconds > 0 for sample in samples)


@pytest.mark.parametrize(
    ("position", "argument", "complaint"),
    [
        (0, np.float32(1), "out is a pointer, but the argument is the number"),
        (2, "buffer", "factor is not a pointer, but the argument is the array"),
        (2, np.float64(1), "factor is a float of 4 bytes, the argument is float64"),
        (2, np.int32(1), "factor is a float of 4 bytes, the argument is int32"),
        (3, np.float32(1), "n is an integer of 4 bytes, the argument is float32"),
        (4, np.int32(1), "offset is an integer of 8 bytes, the argument is int32"),
        (4, None, r"it has 5 parameters \(out, in, factor, n, offset\), 4 arguments were given"),
    ],
)
def test_arguments_that_do_not_fit(host: Bench, position: int, argument: object, complaint: str) -> None:
    function = host.load(SCALE, "pipe", "plain")
    buffer = host.session.buffer("data", (4,), np.dtype(np.float32), written=True)
    arguments = [buffer, buffer, np.float32(1), np.int32(4), np.uint64(0)]
    arguments[position : position + 1] = [] if argument is None else [buffer if argument == "buffer" else argument]
    with pytest.raises(TrialFailure, match=complaint) as caught:
        function.launch(ONE, arguments)
    assert caught.value.status == "launch_failed"


@pytest.mark.parametrize(
    ("launch", "complaint"),
    [
        (Launch((1, 1, 1), (1024, 2, 1)), "2048 threads in a block, the device has 1024"),
        (Launch((1, 1, 1), (1, 1, 65)), "block.z is 65, it may be 1 to 64"),
        (Launch((1, 65536, 1), (1, 1, 1)), "grid.y is 65536, it may be 1 to 65535"),
        (Launch((0, 1, 1), (1, 1, 1)), "grid.x is 0, it may be 1 to"),
        (Launch((1, 1, 1), (1, 1, 1), 232449), "232449 bytes of shared memory, the device has 232448"),
    ],
)
def test_launch_that_the_device_cannot_hold(host: Bench, launch: Launch, complaint: str) -> None:
    function = host.load(SCALE, "pipe", "plain")
    with pytest.raises(TrialFailure, match=complaint) as caught:
        function.launch(launch, [])
    assert caught.value.status == "resources"


def test_missing_barrier_shows_in_the_plain_build_too(host: Bench) -> None:
    """What is left to the hardware varies with the seed, so that numbers alone show many races."""
    text = """
    extern "C" __global__ void race(int* out) {
        __shared__ int s[64];
        s[threadIdx.x] = threadIdx.x;
        out[threadIdx.x] = s[63 - threadIdx.x];
    }"""
    outputs = set()
    for seed in range(6):
        arguments = {"out": np.zeros(64, np.int32)}
        got = host.run(
            "race", arguments, Launch((1, 1, 1), (64, 1, 1)), build="plain", outputs=["out"], text=text, seed=seed
        )
        outputs.add(got["out"].tobytes())
    assert len(outputs) > 2


def test_a_seed_is_one_schedule(host: Bench) -> None:
    text = """
    extern "C" __global__ void order(int* next, int* out) {
        out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1);
    }"""
    orders = []
    for seed in (0, 1, 2, 2, 3):
        arguments = {"next": np.zeros(1, np.int32), "out": np.zeros(192, np.int32)}
        launch = Launch((3, 1, 1), (64, 1, 1))
        got = host.run("order", arguments, launch, build="plain", outputs=["next", "out"], text=text, seed=seed)
        assert sorted(got["out"]) == list(range(192))
        orders.append(got["out"].tolist())
    assert orders[0] == list(range(192))
    assert orders[1] == list(range(191, -1, -1))
    assert orders[2] == orders[3]
    assert len({tuple(order) for order in orders}) == 4


def test_next_launch_is_sound_after_a_failed_one(host: Bench) -> None:
    text = """
    extern "C" __global__ void half(int* out, int stop) {
        if (stop && threadIdx.x == 40) __trap();
        int v = __shfl_xor_sync(0xffffffffu, (int)threadIdx.x, 1);
        __syncthreads();
        out[threadIdx.x] = v;
    }"""
    launch = Launch((2, 1, 1), (64, 1, 1))
    for build in ("check", "plain"):
        for stop in (1, 0, 1, 0):
            function = host.load(text, "half", build)
            out = host.session.buffer("out", (64,), np.dtype(np.int32), written=True)
            if stop:
                with pytest.raises(TrialFailure, match=r"__trap\(\) \[text.cu.j2:3\]"):
                    function.launch(launch, [out, np.int32(stop)])
            elif build == "plain":  # two blocks write the same, which the check build calls a race
                function.launch(launch, [out, np.int32(stop)])
                np.testing.assert_array_equal(out.read(), np.arange(64) ^ 1)


# ---------------------------------------------------------------------- buffers
@pytest.mark.parametrize("n_bytes", [1, 255, 256, 257, 4096, 100_000])
@pytest.mark.parametrize("place", ["first", "last", "before", "long before", "after", "long after"])
def test_canaries(host: Bench, n_bytes: int, place: str) -> None:
    at = {
        "first": 0,
        "last": n_bytes - 1,
        "before": -1,
        "long before": -CANARY_BYTES,
        "after": n_bytes,
        "long after": n_bytes + CANARY_BYTES - 1,
    }[place]
    buffer = host.session.buffer("out", (n_bytes,), np.dtype(np.uint8), written=True)
    assert buffer.damage() is None
    host.load(WRITE_AT, "write_at", "plain").launch(ONE, [buffer, np.int64(at)])
    damage = buffer.damage()
    if 0 <= at < n_bytes:
        assert damage is None
        assert buffer.read()[at] == 0xFF
    elif at < 0:
        assert damage == f"out: 1 bytes before its start were overwritten, the last at start - {-at}"
    else:
        assert damage == f"out: 1 bytes past its end were overwritten, the first at end + {at - n_bytes}"
    with pytest.raises(TrialFailure) if damage else nullcontext():
        host.load(WRITE_AT, "write_at", "check").launch(ONE, [buffer, np.int64(at)])


@pytest.mark.parametrize("align", [1, 16, 256])
@pytest.mark.parametrize("n_bytes", [0, 1, 4096, 100_003])
def test_a_buffer_ends_where_its_addresses_do(host: Bench, n_bytes: int, align: int) -> None:
    buffer = host.session.buffer("out", (n_bytes,), np.dtype(np.uint8), written=True, align=align)
    address = buffer.address  # type: ignore[attr-defined]
    assert address % align == 0 and _access(address) == "rw-p"
    assert _access(address + n_bytes + CANARY_BYTES - 1) == "rw-p"
    for distance in (CANARY_BYTES + align, 1 << 20, 1 << 29):
        assert _access(address + n_bytes + distance) == "---p", f"{distance} bytes past the end"
    for distance in (2 * 4096 + align, 1 << 20, 1 << 29):
        assert _access(address - distance) == "---p", f"{distance} bytes before the start"


def _access(address: int) -> str:
    """What this process may do at an address; "---p" where something is mapped that nobody may touch."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= address < last:
            return line.split()[1]
    return ""


@pytest.mark.quick
def test_buffer_holds_one_shape_and_type(host: Bench) -> None:
    buffer = host.session.buffer("weights", (3, 2), np.dtype(np.complex64), written=False)
    values = np.arange(6, dtype=np.complex64).reshape(3, 2)
    buffer.write(values)
    np.testing.assert_array_equal(buffer.read(), values)
    with pytest.raises(ValueError, match=r"weights holds complex64 \(3, 2\), cannot take complex64 \(2, 3\)"):
        buffer.write(values.T)
    with pytest.raises(ValueError, match="cannot take complex128"):
        buffer.write(values.astype(np.complex128))


def test_empty_buffer(host: Bench) -> None:
    buffer = host.session.buffer("empty", (0, 4), np.dtype(np.float32), written=True)
    assert buffer.read().shape == (0, 4)
    assert buffer.damage() is None


def _crash(text: str, kernel: str, at: int) -> None:
    from autotune.devices import find_device

    bench = Bench(find_device("host"))
    buffer = bench.session.buffer("out", (100,), np.dtype(np.uint8), written=True)
    bench.load(text, kernel, "plain").launch(ONE, [buffer, np.int64(at)])


@pytest.mark.parametrize(
    ("text", "kernel", "at"),
    [
        (WRITE_AT, "write_at", 512 + 156),  # a page beyond the canary
        (WRITE_AT, "write_at", -5000),
        (NO_FUNCTION, "null", 1),
    ],
)
def test_a_real_crash_kills_its_process_only(text: str, kernel: str, at: int) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_crash, args=(text, kernel, at))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGSEGV


FORK = """
int fork_process() asm("fork");
extern "C" __global__ void copies(int* out, int stays)
{
    const int child = fork_process();
    if (stays && child == 0)
        for (;;)
            ;
    *out = child;
}
"""


def _fork(stays: int, answers: Any) -> None:
    from autotune.devices import find_device

    bench = Bench(find_device("host"))
    buffer = bench.session.buffer("out", (1,), np.dtype(np.int32), written=True)
    bench.load(FORK, "copies", "plain").launch(ONE, [buffer, np.int32(stays)])
    answers.send((os.getpid(), int(buffer.read()[0])))
    time.sleep(600)  # until the test ends it


@pytest.mark.parametrize("stays", [0, 1])
def test_processes_that_a_kernel_forks_end_with_the_launch_or_with_their_parent(stays: int) -> None:
    context = multiprocessing.get_context("spawn")
    answers, there = context.Pipe(duplex=False)
    process = context.Process(target=_fork, args=(stays, there))
    process.start()
    parent, child = answers.recv()
    assert parent == process.pid and child > 0
    assert not answers.poll(0.5), "the copy went on with what its parent was doing"
    if stays:
        assert not gone(child)
    process.kill()
    process.join()
    wait_until(lambda: gone(child))
