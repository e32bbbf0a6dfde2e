"""A CUDA event is recorded again when nobody holds it, and not before."""

import gc
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.machine.gpu_backend import GpuEvents, GpuStream, pitch

TO, FROM, OTHER = 1 << 40, 2 << 40, 3 << 40  # addresses


class Runtime:
    """Notes what CUDA is asked for: events are numbered as they are made, streams by their pointers."""

    memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice = 1, 2, 3  # noqa: N815

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.n_events = self.n_streams = 0
        self.cuda = SimpleNamespace(Event=self.event, Stream=self.stream, runtime=self)

    def event(self, block: bool, disable_timing: bool) -> SimpleNamespace:
        self.n_events += 1
        self.done.append(("made", self.n_events, "timed" if not disable_timing else ""))
        return SimpleNamespace(ptr=self.n_events, synchronize=lambda: None, done=False)

    def stream(self, non_blocking: bool) -> SimpleNamespace:
        self.n_streams += 1
        return SimpleNamespace(ptr=100 + self.n_streams)

    def eventRecord(self, event: int, stream: int) -> None:  # noqa: N802
        self.done.append(("recorded", event, stream))

    def streamWaitEvent(self, stream: int, event: int) -> None:  # noqa: N802
        self.done.append(("waits", stream, event))

    def memcpy2DAsync(self, *given: int) -> None:  # noqa: N802
        self.done.append(("copied", *given))

    def memsetAsync(self, *given: int) -> None:  # noqa: N802
        self.done.append(("cleared", *given))


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    runtime = Runtime()
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=runtime.cuda))
    return runtime


def test_an_event_that_is_held_is_not_recorded_again(cuda: Runtime) -> None:
    events = GpuEvents()
    first, second = GpuStream(events, None), GpuStream(events, None)
    held, dropped = first.record(), first.record()
    second.after(dropped)
    del dropped
    gc.collect()
    again, new, timed = second.record(), second.record(), second.record(is_timed=True)
    assert cuda.done == [
        ("made", 1, ""),
        ("recorded", 1, 101),
        ("made", 2, ""),
        ("recorded", 2, 101),
        ("waits", 102, 2),  # for what 2 is now: it may be another one afterwards
        ("recorded", 2, 102),
        ("made", 3, ""),
        ("recorded", 3, 102),
        ("made", 4, "timed"),
        ("recorded", 4, 102),
    ]
    assert [event.event.ptr for event in (held, again, new, timed)] == [1, 2, 3, 4]


def test_an_engine_that_goes_on_makes_no_more_events(cuda: Runtime) -> None:
    stream = GpuStream(GpuEvents(), None)
    kept = [stream.record(is_timed=is_timed) for is_timed in (False, True) for _ in range(3)]
    for number in range(100):
        kept[number % 6] = stream.record(is_timed=number % 6 >= 3)
    assert cuda.n_events == 8  # one of each kind is recorded before the one of its place is dropped


def on_device(address: int, array: np.ndarray) -> Any:
    parts = {name: getattr(array, name) for name in ("shape", "strides", "dtype", "itemsize", "nbytes", "size")}
    return SimpleNamespace(data=SimpleNamespace(ptr=address), **parts)


def test_small_arrays_go_to_the_device_with_one_launch(cuda: Runtime) -> None:
    launches: list[tuple[Any, ...]] = []
    stream = GpuStream(GpuEvents(), lambda *given: launches.append(given))
    long, short = np.zeros((5000, 2), np.int64), np.zeros(3, np.uint8)
    stream.send([])
    stream.send([(on_device(TO, long), long), (on_device(OTHER, short), short)])
    ((grid, block, (given,), dynamic, on),) = launches
    assert (grid, block, dynamic, on.ptr) == ((40, 2, 1), (256, 1, 1), 0, 101)
    assert given.size == 1 and given["at"].tolist() == [
        (TO, long.ctypes.data, 80000),
        (OTHER, short.ctypes.data, 3),
        (0, 0, 0),
        (0, 0, 0),
    ]


def test_copies_are_of_one_piece_where_they_can_be(cuda: Runtime) -> None:
    stream, whole = GpuStream(GpuEvents(), None), np.zeros((4, 10, 2), np.float32)
    stream.copy_in(on_device(TO, whole), whole)
    some = whole[:, 3:7]
    stream.copy(on_device(TO, some), on_device(FROM, np.zeros((4, 4, 2), np.float32)))
    n_bytes, kinds = whole.nbytes, cuda
    assert cuda.done == [
        ("copied", TO, n_bytes, whole.ctypes.data, n_bytes, n_bytes, 1, kinds.memcpyHostToDevice, 101),
        ("copied", TO, 80, FROM, 32, 32, 4, kinds.memcpyDeviceToDevice, 101),
    ]
    with pytest.raises(UsageError, match="contiguous except along their first axis"):
        pitch(whole[:, :, :1])
    assert pitch(whole[:1]) == 80 and pitch(whole[:, :1]) == 80 and pitch(whole[0, :, 0]) == 8


def test_an_event_that_the_garbage_collector_hands_back_is_not_destroyed(
    cuda: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    destroyed = list[int]()

    class Event:
        def __init__(self, block: bool, disable_timing: bool) -> None:
            self.ptr = 7

        def __del__(self) -> None:
            destroyed.append(self.ptr)

    cuda.cuda.Event = Event
    events = GpuEvents()
    cycle: list[Any] = [GpuStream(events, None).record()]  # as an engine has, whose parts know each other
    cycle.append(cycle)
    del cycle
    gc.collect()
    again = GpuStream(events, None).record()
    assert again.event.ptr == 7 and not destroyed
