"""Joins the voltages of several antennas on the device, into chunks for an X-engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from ...core.errors import UsageError
from ..f.voltage_buffers import Voltages
from ..machine.backend import Backend, DeviceArray, Event
from ..run.counters import XCounters
from ..x.stage import XStage


@dataclass
class JoinedChunk:
    """A chunk of batches on the device; antennas add to it one after the other."""

    voltages: DeviceArray  # int8 [batch, antenna, *heap_shape]
    present: np.ndarray  # bool [n_batches, n_antennas]
    holes: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)  # the same as in ``Batches``
    used: Event | None = field(default=None)  # the event after which the chunk may be filled again


class Joiner:
    """Takes each antenna's buffers of voltages, which begin at common times, and gives whole chunks to ``stage``.

    A chunk is given when every antenna that was not given up has passed it. The caller steps the first antenna of
    ``order`` next, so only few chunks are open. Late heaps of an antenna that was given up are counted and left out.

    Times are those of the first antenna: complex samples of a band are half as many as real ones.

    Args:
        heap_samples: samples of each antenna from one of its heaps to the next.
        n_chunks: the most open chunks, which follows from the samples in an antenna's step.
    """

    def __init__(
        self, backend: Backend, stage: XStage, heap_samples: Sequence[int], n_chunks: int, counters: XCounters
    ) -> None:
        settings = self._settings = stage.settings
        self._stage, self._copies, self._counters = stage, backend.stream(), counters
        self._heap_samples = heap_samples
        self.given_up: set[int] = set()
        self._passed = -inf  # chunks before this time were given
        self._length = settings.batches_per_chunk * settings.batch_samples
        self._reached: list[float] = [-inf] * settings.n_antennas
        shape = settings.batches_per_chunk, settings.n_antennas
        self._free = [
            JoinedChunk(backend.empty(settings.chunk_shape, np.int8), np.zeros(shape, bool)) for _ in range(n_chunks)
        ]
        for chunk in self._free if settings.alone else ():
            self._copies.zero(chunk.voltages)  # second polarisations that nobody fills stay 0
        self._open: dict[int, JoinedChunk] = {}

    def begins(self, antenna: int, time: int) -> None:
        """Set the time of an antenna's first heap, before any delivery."""
        self._reached[antenna] = self.joint_time(antenna, time) // self._length * self._length

    def joint_time(self, antenna: int, time: int) -> int:
        """Returns the time, in samples of the first antenna, of a heap that begins at ``time`` of an antenna's own."""
        return time // self._heap_samples[antenna] * self._settings.batch_samples

    def order(self) -> list[int]:
        """Returns the antennas that have not ended or been given up, the one furthest behind first."""
        going = (a for a, reached in enumerate(self._reached) if reached < inf and a not in self.given_up)
        return sorted(going, key=self._reached.__getitem__)

    def give_up(self, antenna: int) -> None:
        """Stop waiting for an antenna, until it ``returns``."""
        self.given_up.add(antenna)
        self._pass_on()

    def returns(self, antenna: int) -> None:
        """Wait again for an antenna, which has sent something."""
        self.given_up.discard(antenna)
        self._reached[antenna] = max(self._reached[antenna], self._passed)

    def deliver(self, antenna: int, voltages: Voltages) -> tuple[Event, ...]:
        """Take a buffer of voltages. Returns the event after which it is not needed."""
        assert voltages.done is not None
        events: tuple[Event, ...] = ()
        time = self.joint_time(antenna, voltages.time)
        if time < self._passed:
            with self._counters.lock:
                self._counters.heaps_late += int(np.count_nonzero(voltages.heaps))
            return events
        if voltages.heaps.any():
            joined = self._opened(time)
            self._copies.after(voltages.done)
            self._copy(joined.voltages[:, antenna], voltages, antenna in self._settings.alone)
            joined.present[:, antenna] = voltages.heaps
            joined.holes |= {(heap, antenna): voltages.present[heap] for heap in voltages.with_holes}
            events = (self._copies.record(),)
        self._reached[antenna] = time + self._length
        self._pass_on()
        return events

    def _copy(self, to: DeviceArray, voltages: Voltages, is_alone: bool) -> None:
        """Copies an antenna's voltages into its places in a chunk."""
        if not is_alone:
            self._copies.copy(to, voltages.voltages[:, 0])
            return
        for heap in np.flatnonzero(voltages.heaps).tolist():  # its first polarisations lie two apart in a chunk
            spectra = self._settings.n_channels * self._settings.spectra_per_heap
            places = to[heap].reshape(spectra, 2, -1)
            self._copies.copy(places[:, :1], voltages.voltages[heap, 0].reshape(spectra, 1, -1))

    def ended(self, antenna: int) -> None:
        """Note that an antenna has ended."""
        self._reached[antenna] = inf
        self._pass_on()

    def _opened(self, time: int) -> JoinedChunk:
        if time not in self._open:
            if not self._free:
                raise UsageError(
                    f"the antennas' streams are too far apart: at sample {time} {len(self._open)} chunks are open; "
                    "delays differ by more than max_delay_diff"
                )
            joined = self._free.pop(0)
            if joined.used is not None:
                self._copies.after(joined.used)
            joined.present[...] = False
            joined.holes.clear()
            self._open[time] = joined
        return self._open[time]

    def _pass_on(self) -> None:
        """Gives the chunks that all antennas have passed to the X-engine."""
        waited_for = [reached for a, reached in enumerate(self._reached) if a not in self.given_up]
        if self.given_up and all(reached == inf for reached in waited_for):
            return  # those that were given up may return
        self._passed = max(self._passed, min(waited_for))
        for time in sorted(self._open):
            if time >= self._passed:
                break
            joined = self._open.pop(time)
            self._stage.stream.after(self._copies.record())
            joined.used = self._stage.take(joined.voltages, time, joined.present, joined.holes)
            self._free.append(joined)
