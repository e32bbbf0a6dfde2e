"""Delays of one polarisation over time: piecewise linear, exact in integers where samples are counted.

The sample that an output at time t starts with is t - coarse(t). The kernels behind the filter bank apply what is left
of the delay, the fine part, and the phase. Times are samples of the input's clock, up to 2^62; floats only ever hold
differences to the start of a piece.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from math import isfinite, pi
from typing import Protocol

import numpy as np

from ...core.errors import UsageError

LATEST = 1 << 62
LONGEST = float(1 << 40)  # samples of a delay, of either sign: floats hold it to a 4096th of a sample
BEFORE = -LATEST  # when the delay begins that holds before any piece


@dataclass(frozen=True)
class Piece:
    """A delay and a phase from ``start`` on: each is linear in the output's time t.

    delay(t) = delay + rate (t - start), samples; phase(t) = phase + phase_rate (t - start), radians. The sample x(t -
    delay(t)) leaves at t, so a positive delay makes a stream later.
    """

    start: int
    delay: float = 0.0
    rate: float = 0.0
    phase: float = 0.0
    phase_rate: float = 0.0

    def __post_init__(self) -> None:
        if not BEFORE <= self.start < LATEST:
            raise UsageError(f"a delay that starts at sample {self.start}: times lie within +-2^62")
        for name in ("delay", "rate", "phase", "phase_rate"):
            if not isfinite(getattr(self, name)):
                raise UsageError(f"{name}={getattr(self, name)} of the delay from sample {self.start} on is not finite")
        if abs(self.rate) >= 1:
            raise UsageError(f"rate={self.rate} of the delay from sample {self.start} on: time would run backwards")


@dataclass(frozen=True)
class DelayedRun:
    """A run of spectra that have the same coarse delay."""

    first: int  # the sample with which the first spectrum starts; those of the others follow in steps
    coarse: int  # samples by which a spectrum starts earlier than it leaves
    fine: np.ndarray  # float64 [n]: samples that are left, at most half a quantum
    phase: np.ndarray  # float64 [n]: radians, within +-pi


class Delays(Protocol):
    """The delays of one polarisation, as a plan asks for them."""

    def at(self, start: int, n: int, step: int) -> DelayedRun:
        """Returns the first spectra of those that leave at ``start`` + ``step`` i, i < n, up to a change of delay."""


class DelayModel:
    """The pieces of one polarisation. Before the first of them, the delay and the phase are 0.

    Another thread may add pieces while an engine runs: ``at`` sees all of a piece or none of it.
    """

    def __init__(self, *pieces: Piece) -> None:
        self._pieces: tuple[Piece, ...] = (Piece(BEFORE),)
        for piece in pieces:
            self.add(piece)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self._pieces

    def add(self, piece: Piece) -> None:
        """Add a piece; those that start at the same time or later are dropped."""
        n_kept = bisect_left(self._pieces, piece.start, key=lambda each: each.start)
        self._pieces = (*self._pieces[:n_kept], piece)

    def about(self, frequency: float) -> "DelayModel":
        """Returns the same delays with the phases that they give a frequency, in cycles a sample above the middle."""
        turn = -2 * pi * frequency
        return DelayModel(
            *(
                replace(each, phase=each.phase + turn * each.delay, phase_rate=each.phase_rate + turn * each.rate)
                for each in self.pieces
            )
        )

    def later(self, delay: float, phase: float) -> "DelayModel":
        """Returns a model with a constant delay, samples, and a constant phase, radians, besides, at all times."""
        return DelayModel(*(replace(each, delay=each.delay + delay, phase=each.phase + phase) for each in self.pieces))

    def extremes(self, begin: int, end: int) -> list[float]:
        """Returns the delays at both ends of each piece, as far as it holds from ``begin`` to ``end``; in samples."""
        pieces, found = self._pieces, []
        for piece, after in zip(pieces, [*(p.start for p in pieces[1:]), LATEST], strict=True):
            if piece.start <= end and after > begin:
                times = max(begin, piece.start), min(end, after)
                found += [piece.delay + piece.rate * float(time - piece.start) for time in times]
        return found

    def at(self, start: int, n: int, step: int, quantum: int = 1) -> DelayedRun:
        """Returns what happens to the spectra that leave at ``start`` + ``step`` i, i < n, up to a change.

        At least one of them; where the coarse delay changes, or another piece begins, the run ends.

        ``quantum``: coarse delays are multiples of so many samples (the decimation, of a narrow band).

        Raises:
            UsageError: where the delay has grown beyond LONGEST.
        """
        pieces = self._pieces
        starts = [piece.start for piece in pieces]
        number = max(bisect_right(starts, start) - 1, 0)
        piece = pieces[number]
        if number + 1 < len(pieces):
            n = min(n, -(-(starts[number + 1] - start) // step))
        # Times since the first piece, which starts at -2^62, would overflow a float's whole numbers.
        is_constant = piece.rate == 0 and piece.phase_rate == 0
        delay_here = piece.delay + piece.rate * (0.0 if is_constant else float(start - piece.start))
        if abs(delay_here) > LONGEST:
            why = f"the delay from sample {piece.start} on is {delay_here:.4g} samples at sample {start}"
            raise UsageError(f"{why}, and may be {LONGEST:.4g}; begin its piece nearer to the samples")
        coarse = quantum * round(delay_here / quantum)
        n = min(n, _n_until(delay_here - coarse, piece.rate * step, quantum))
        begin = start - piece.start
        since = np.zeros(n) if is_constant else np.arange(begin, begin + n * step, step).astype(np.float64)
        delay = piece.rate * since
        delay += piece.delay
        if quantum * round(float(delay[-1]) / quantum) != coarse:  # it rises or it falls: its ends tell
            n = int(np.argmax(quantum * np.rint(delay / quantum) != coarse))
        phase = piece.phase_rate * since[:n]
        phase += piece.phase
        if np.abs(phase[[0, -1]]).max() > pi:
            phase -= 2 * pi * np.rint(phase / (2 * pi))
        fine = delay[:n]
        fine -= coarse
        return DelayedRun(start - coarse, coarse, fine, phase)


def _n_until(fine: float, rate: float, quantum: int) -> int:
    """Returns a few more spectra than it takes ``fine`` to grow to half a quantum, by ``rate`` for each."""
    left = quantum / 2 - fine if rate > 0 else quantum / 2 + fine
    return int(min(left / abs(rate), LATEST)) + 2 if rate else LATEST


@dataclass(frozen=True)
class DecimatedDelays:
    """The delays of a stream, as those of its narrow band: times and delays are in samples of the narrow band."""

    model: DelayModel
    decimation: int

    def at(self, start: int, n: int, step: int) -> DelayedRun:
        """Returns what happens to the spectra that leave at ``start`` + ``step`` i; coarse delays are whole samples."""
        d = self.decimation
        found = self.model.at(start * d, n, step * d, quantum=d)
        return DelayedRun(found.first // d, found.coarse // d, found.fine / d, found.phase)
