"""Puts the voltages of several antennas together on the device, into chunks for an X-engine."""

from dataclasses import dataclass, field
from math import inf

import numpy as np

from ...core.errors import UsageError
from ..f.voltage_buffers import Voltages
from ..machine.backend import Backend, DeviceArray, Event
from ..x.stage import XStage


@dataclass
class JoinedChunk:
    """A chunk of batches on the device; antennas add to it one after the other."""

    voltages: DeviceArray  # int8 [batch, antenna, *heap_shape]
    present: np.ndarray  # bool [n_batches, n_antennas]
    used: Event | None = field(default=None)  # the event after which it may be filled again


class Joiner:
    """Takes each antenna's buffers of voltages, which begin at common times, and gives whole chunks to ``stage``.

    A chunk is given when every antenna is past it. Whoever steps antennas takes the one that is ``behind`` next, so
    only few chunks are open.

    Args:
        n_chunks: chunks that may be open, by what an antenna makes in one step.
    """

    def __init__(self, backend: Backend, stage: XStage, n_chunks: int) -> None:
        settings = stage.settings
        self._stage, self._copies = stage, backend.stream()
        self._length = settings.batches_per_chunk * settings.batch_samples
        self._reached: list[float] = [-inf] * settings.n_antennas
        shape = settings.batches_per_chunk, settings.n_antennas
        self._free = [
            JoinedChunk(backend.empty(settings.chunk_shape, np.int8), np.zeros(shape, bool)) for _ in range(n_chunks)
        ]
        self._open: dict[int, JoinedChunk] = {}

    def begins(self, antenna: int, time: int) -> None:
        """Say when the first heap of an antenna leaves, before anything is delivered."""
        self._reached[antenna] = time // self._length * self._length

    def behind(self) -> int | None:
        """Returns the antenna that has to go on, or None when all have ended."""
        antenna = min(range(len(self._reached)), key=self._reached.__getitem__)
        return None if self._reached[antenna] == inf else antenna

    def deliver(self, antenna: int, made: Voltages) -> tuple[Event, ...]:
        """Take a buffer of voltages; returns the event after which it is not needed."""
        assert made.done is not None
        events: tuple[Event, ...] = ()
        if made.heaps.any():
            joined = self._opened(made.time)
            self._copies.after(made.done)
            self._copies.copy(joined.voltages[:, antenna], made.voltages[:, 0])
            joined.present[:, antenna] = made.heaps
            events = (self._copies.record(),)
        self._reached[antenna] = made.time + self._length
        self._pass_on()
        return events

    def ended(self, antenna: int) -> None:
        """Say that nothing more comes from an antenna."""
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
            self._open[time] = joined
        return self._open[time]

    def _pass_on(self) -> None:
        """Gives the chunks that all antennas are past to the X-engine."""
        passed = min(self._reached)
        for time in sorted(self._open):
            if time >= passed:
                break
            joined = self._open.pop(time)
            self._stage.stream.after(self._copies.record())
            joined.used = self._stage.take(joined.voltages, time, joined.present)
            self._free.append(joined)
