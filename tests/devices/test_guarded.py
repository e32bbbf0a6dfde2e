"""Guarded memory of a GPU: on a driver that only takes notes, and, under -m gpu, on a real one."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from autotune import Launch, Tolerance, TrialFailure
from autotune.devices import find_device
from autotune.devices.base import CANARY_BYTES
from autotune.devices.cuda.guarded import (
    GUARD_BYTES,
    KEPT_BYTES,
    LARGEST_KEPT,
    SIGNATURES,
    Access,
    GuardedMemory,
    Location,
    Properties,
    Unavailable,
)

from .bench import Bench

pytestmark = pytest.mark.quick

PAGE = 2 << 20
WRITE_AT = 'extern "C" __global__ void write_at(unsigned char* out, long long at) { out[at] ^= 0xff; }'


class Driver:
    """Stands in for libcuda: notes what is reserved, created and mapped; ``fails`` names calls that return 2."""

    def __init__(self, fails: tuple[str, ...] = (), supported: int = 1, status: int = 2) -> None:
        self.fails, self.supported, self.status = fails, supported, status
        self.reserved: dict[int, int] = {}
        self.mapped: dict[int, int] = {}
        self.handles: dict[int, int] = {}  # with how many holds
        self.held: dict[int, int] = {}  # by what is mapped where
        self.called: list[str] = []
        self.next = 1 << 40

    def __getattr__(self, name: str) -> Any:
        if name not in SIGNATURES:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            assert len(arguments) == len(SIGNATURES[name])
            self.called.append(name)
            if name in self.fails:
                return self.status
            getattr(self, f"_{name}", lambda *_: None)(*arguments)
            return 0

        return call

    def _cuDeviceGetAttribute(self, found: Any, attribute: int, device: Any) -> None:  # noqa: N802
        found._obj.value = self.supported

    def _cuMemGetAllocationGranularity(self, found: Any, properties: Any, kind: int) -> None:  # noqa: N802
        found._obj.value = PAGE

    def _cuMemAddressReserve(self, found: Any, n_bytes: int, *_: int) -> None:  # noqa: N802
        found._obj.value, self.next = self.next, self.next + n_bytes
        self.reserved[found._obj.value] = n_bytes

    def _cuMemAddressFree(self, address: int, n_bytes: int) -> None:  # noqa: N802
        assert self.reserved.pop(address) == n_bytes

    def _cuMemCreate(self, found: Any, n_bytes: int, *_: Any) -> None:  # noqa: N802
        found._obj.value = len(self.handles) + 7
        self.handles[found._obj.value] = 1

    def _cuMemMap(self, address: int, n_bytes: int, offset: int, handle: int, flags: int) -> None:  # noqa: N802
        self.mapped[address] = n_bytes
        self.held[address] = handle
        self.handles[handle] += 1

    def _cuMemRelease(self, handle: int) -> None:  # noqa: N802
        self.handles[handle] -= 1

    def _cuMemUnmap(self, address: int, n_bytes: int) -> None:  # noqa: N802
        assert self.mapped.pop(address) == n_bytes and address - GUARD_BYTES in self.reserved
        self.handles[self.held.pop(address)] -= 1


def test_structures_are_laid_out_as_the_driver_has_them() -> None:
    assert (ctypes.sizeof(Location), ctypes.sizeof(Properties), ctypes.sizeof(Access)) == (8, 32, 12)
    assert (Properties.location.offset, Properties.win32_handle_meta_data.offset) == (8, 16)
    assert Properties.compression_type.offset == 24


def test_memory_lies_between_addresses_that_nobody_may_touch() -> None:
    driver = Driver()
    memory = GuardedMemory(0, driver)
    memory.release_waiting()
    mapping = memory.take(PAGE + 1)
    assert driver.mapped == {mapping.address: 2 * PAGE} and mapping.n_bytes == 2 * PAGE
    assert driver.reserved == {mapping.address - GUARD_BYTES: 2 * PAGE + 2 * GUARD_BYTES}
    assert driver.handles[max(driver.handles)] == 1, "the mapping alone holds the memory"


def test_what_is_given_back_serves_the_next_of_its_size() -> None:
    driver = Driver()
    memory = GuardedMemory(0, driver)
    first, second = memory.take(100), memory.take(PAGE)
    memory.give_back(first)
    n_calls = len(driver.called)
    assert memory.take(5) == first and len(driver.called) == n_calls
    memory.give_back(second)
    memory.release_waiting()
    assert list(driver.mapped) == [first.address] and len(driver.reserved) == 1


def test_only_so_much_waits() -> None:
    driver = Driver()
    memory = GuardedMemory(0, driver)
    memory.release_waiting()
    memory.give_back(memory.take(LARGEST_KEPT + 1))
    assert not driver.mapped and not driver.reserved
    taken = [memory.take(LARGEST_KEPT) for _ in range(KEPT_BYTES // LARGEST_KEPT + 1)]
    for mapping in taken:
        memory.give_back(mapping)
    assert sum(driver.mapped.values()) == KEPT_BYTES


@pytest.mark.parametrize("call", ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_call_that_fails_leaves_nothing(call: str) -> None:
    driver = Driver()
    memory = GuardedMemory(0, driver)
    memory.release_waiting()
    driver.fails = (call,)
    with pytest.raises(MemoryError, match=f"{call}: no room"):
        memory.take(1)
    assert not driver.reserved and not driver.mapped and not any(driver.handles.values())
    driver.fails = ()
    assert memory.take(1).n_bytes == PAGE


def test_what_waits_makes_room() -> None:
    driver = Driver()
    memory = GuardedMemory(0, driver)
    memory.give_back(memory.take(PAGE))
    driver.fails = ("cuMemCreate",)
    with pytest.raises(MemoryError):
        memory.take(2 * PAGE)
    assert not driver.mapped and driver.called.count("cuMemCreate") == 3  # one made, two asked for in vain


def test_a_lost_context_is_told_and_hides_nothing() -> None:
    driver = Driver(status=700)
    memory = GuardedMemory(0, driver)
    memory.release_waiting()
    mapping = memory.take(LARGEST_KEPT + 1)
    driver.fails = ("cuCtxSynchronize", "cuMemCreate", "cuMemUnmap")
    memory.give_back(mapping)  # while the launch's own failure is on its way
    with pytest.raises(TrialFailure, match="cuMemCreate: error 700") as failure:
        memory.take(1)
    assert failure.value.sticky and failure.value.status == "launch_failed"


def test_a_gpu_without_it_says_so() -> None:
    with pytest.raises(Unavailable, match="no virtual memory management"):
        GuardedMemory(0, Driver(supported=0))
    for call in ("cuMemGetAllocationGranularity", "cuMemCreate", "cuMemSetAccess"):
        with pytest.raises(Unavailable, match=f"does not work here .*{call}: error 801"):
            GuardedMemory(0, Driver((call,), status=801))


# ---------------------------------------------------------------------- on a GPU
@pytest.fixture(scope="module")
def gpu() -> Iterator[Bench]:
    yield Bench(find_device("cuda:0"))


@pytest.mark.gpu
@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("align", [1, 16, 256])
@pytest.mark.parametrize("n_bytes", [1, 4096, 100_003, PAGE])
def test_buffers_tell_what_was_written_beside_them(
    gpu: Bench, monkeypatch: pytest.MonkeyPatch, n_bytes: int, align: int, guarded: bool
) -> None:
    session: Any = gpu.session
    assert session.guarded is not None
    if not guarded:
        monkeypatch.setattr(session, "guarded", None)
    buffer: Any = session.buffer("out", (n_bytes,), np.dtype(np.uint8), written=True, align=align)
    data = np.random.default_rng(1).integers(0, 256, n_bytes, dtype=np.uint8)
    buffer.write(data)
    assert buffer.array.data.ptr % align == 0 and buffer.damage() is None
    assert not guarded or buffer._all.nbytes - buffer._end < CANARY_BYTES + align
    assert buffer.compare(data, Tolerance(), "data").n_bad == 0
    assert buffer.compare(data ^ 1, Tolerance(), "other").n_bad == n_bytes
    function = gpu.load(WRITE_AT, "write_at", "cubin")
    for at, told in (
        (-1, "the nearest 1 bytes before its start"),
        (-CANARY_BYTES, f"the nearest {CANARY_BYTES} bytes before its start"),
        (n_bytes, "the nearest 1 bytes past its end"),
        (n_bytes + CANARY_BYTES - 1, f"the nearest {CANARY_BYTES} bytes past its end"),
    ):
        for expected in (told, None):  # the second time it writes what was there
            function.launch(Launch((1, 1, 1), (1, 1, 1)), [buffer, np.int64(at)])
            damage = buffer.damage()
            assert damage is None if expected is None else expected in damage
    buffer.free()


@pytest.mark.gpu
def test_edge_sizes_cost_no_calls_of_the_driver(gpu: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    session: Any = gpu.session
    for _ in range(2):
        buffers = [session.buffer("a", (n,), np.dtype(np.float32), written=True, align=16) for n in (1, 1000)]
        for buffer in buffers:
            buffer.free()
        monkeypatch.setattr(session.guarded, "_map", None)  # from the second time on
