"""The work that an engine gives to a device, kept, so that it can be given again without what planned it.

A ``Recorder`` stands between an engine and its backend, and passes on what the engine asks for. While it is recording
it also keeps each call that gives work to the device: launches, transforms, copies of small arrays from pinned memory,
clearing, events, with the arguments that were prepared for it. The same calls in the same order are the same work, with
the same kernels, sizes and arrays of the device. They come from the CPU one by one, as they do in an engine: no CUDA
graph is captured.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from autotune.core.config import Config
from autotune.core.definition import Kernel
from autotune.engines.machine.backend import Backend, DeviceArray, Event, Launcher, Sent, Stream, Transform

EVENT = "event"


class Call(NamedTuple):
    """One call that gives work to a device."""

    what: str  # a kernel's name, or the kind of work
    give: Callable[[], Any]


Work = Sequence[Call]  # of one chunk of samples; it ends with an event


class Recorder:
    """Implements ``autotune.engines.machine.backend.Backend`` by another backend."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.device, self.identifier = backend.device, backend.identifier
        self.pinned, self.empty, self.finish = backend.pinned, backend.empty, backend.finish
        self._kept: list[Call] | None = None

    @contextmanager
    def recording(self) -> Iterator[list[Call]]:
        """Keeps the calls that are made in the block; what they ask for is done in it, too."""
        self._kept = kept = list[Call]()
        try:
            yield kept
        finally:
            self._kept = None

    def give(self, what: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """Make a call, and keep it while recording."""
        if self._kept is not None:
            self._kept.append(Call(what, partial(call, *arguments)))
        return call(*arguments)

    def lasting(self, source: np.ndarray) -> np.ndarray:
        """Returns pinned memory whose values stay while calls are kept: an engine writes others to its own."""
        if self._kept is None:
            return source
        copy = self._backend.pinned(source.shape, source.dtype)
        copy[...] = source
        return copy

    def stream(self) -> "RecordedStream":
        return RecordedStream(self, self._backend.stream())

    def launcher(self, kernel: Kernel[Any], problem: Any, config: Config, source: str | None = None) -> Launcher:
        return RecordedLauncher(self, kernel.name, self._backend.launcher(kernel, problem, config, source))

    def fourier(self, length: int, n: int, is_complex: bool) -> Transform:
        transform = self._backend.fourier(length, n, is_complex)

        def recorded(output: DeviceArray, samples: DeviceArray, on: RecordedStream) -> None:
            self.give("Fourier transform", transform, output, samples, on.own)

        return recorded


class RecordedStream:
    """Implements ``autotune.engines.machine.backend.Stream`` by another stream, ``own``."""

    def __init__(self, recorder: Recorder, own: Stream) -> None:
        self._recorder, self.own = recorder, own

    def copy_in(self, to: DeviceArray, source: np.ndarray) -> None:
        self._recorder.give("copy in", self.own.copy_in, to, self._recorder.lasting(source))

    def send(self, pieces: Sequence[Sent]) -> None:
        self._recorder.give("send", self.own.send, [(to, self._recorder.lasting(source)) for to, source in pieces])

    def copy_out(self, to: np.ndarray, source: DeviceArray) -> None:
        self._recorder.give("copy out", self.own.copy_out, to, source)

    def copy(self, to: DeviceArray, source: DeviceArray) -> None:
        self._recorder.give("copy", self.own.copy, to, source)

    def zero(self, array: DeviceArray) -> None:
        self._recorder.give("zero", self.own.zero, array)

    def after(self, event: Any) -> None:
        self._recorder.give("wait", self.own.after, event)

    def record(self, is_timed: bool = False) -> Event:
        event: Event = self._recorder.give(EVENT, self.own.record, is_timed)
        return event


class RecordedLauncher:
    """Implements ``autotune.engines.machine.backend.Launcher`` by another launcher."""

    def __init__(self, recorder: Recorder, name: str, own: Launcher) -> None:
        self._recorder, self._name, self._own, self.config = recorder, name, own, own.config

    def __call__(
        self, problem: Any, arrays: Mapping[str, DeviceArray], inputs: Mapping[str, Any], on: RecordedStream
    ) -> None:
        self._recorder.give(self._name, self._own, problem, arrays, inputs, on.own)


def again(work: Work) -> Event:
    """Gives the work of a chunk to the device; returns the event that it is done."""
    assert work[-1].what == EVENT
    for _, give in work:
        last = give()
    event: Event = last
    return event


def timed(chunks: Sequence[Work], n_rounds: int, clock: Stream) -> tuple[float, int]:
    """Gives the work of all chunks to the device, so many times without a pause, and waits until it is done.

    A round before lets the device be at work when the time begins.

    Args:
        clock: a stream of its own, whose events follow the end of that round and the end of the last one.

    Returns:
        The seconds that the device took for a chunk, and how many chunks came late: the device had done the chunk
        before when the CPU had given all of theirs, and may have waited for them.
    """
    for work in chunks:
        before = again(work)
    clock.after(before)
    begin, n_late = clock.record(is_timed=True), 0
    for _ in range(n_rounds):
        for work in chunks:
            event = again(work)
            n_late += before.is_done()
            before = event
    clock.after(before)
    end = clock.record(is_timed=True)
    end.wait()
    return end.seconds_since(begin) / (n_rounds * len(chunks)), n_late


def content(chunks: Sequence[Work]) -> dict[str, float]:
    """Returns how many calls of each kind a chunk has, on average."""
    found = Counter(call.what for work in chunks for call in work)
    return {what: n / len(chunks) for what, n in found.items()}
