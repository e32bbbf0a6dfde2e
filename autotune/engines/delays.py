"""Delays of one polarisation over time: piecewise linear, exact in integers where samples are counted.

The sample that an output at time t starts with is t - coarse(t). The kernels behind the filter bank apply what is left
of the delay, the fine part, and the phase. Times are samples of the input's clock, up to 2^62; floats only ever hold
differences to the start of a piece.
"""

from bisect import bisect_right
from dataclasses import dataclass
from math import isfinite, pi
from typing import Protocol

import numpy as np

from ..core.errors import UsageError

LATEST = 1 << 62
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
class Delayed:
    """The delay and the phase of each spectrum of a run."""

    first: np.ndarray  # int64 [n]: the sample with which the spectrum starts
    coarse: np.ndarray  # int64 [n], or [1] of them all: samples by which it starts earlier than it leaves
    fine: np.ndarray  # float64 [n]: samples that are left, at most half a quantum
    phase: np.ndarray  # float64 [n]: radians, within +-pi

    def until(self, n: int) -> "Delayed":
        """Returns the first ``n`` spectra of the run."""
        return Delayed(self.first[:n], self.coarse[:n], self.fine[:n], self.phase[:n])


class Delays(Protocol):
    """What a plan asks of the delays of one polarisation."""

    def at(self, start: int, n: int, step: int) -> Delayed: ...


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
        self._pieces = (*(p for p in self._pieces if p.start < piece.start), piece)

    def at(self, start: int, n: int, step: int, quantum: int = 1) -> Delayed:
        """Returns what happens to the spectra that leave at ``start`` + ``step`` i, for i < n.

        ``quantum``: coarse delays are multiples of so many samples (the decimation, of a narrow band).
        """
        pieces = self._pieces
        starts = [piece.start for piece in pieces]
        parts: list[Delayed] = []
        while n or not parts:
            number = max(bisect_right(starts, start) - 1, 0)
            is_last = number + 1 == len(pieces)
            n_here = n if is_last else min(n, -(-(starts[number + 1] - start) // step))
            parts.append(_of_piece(pieces[number], start, n_here, step, quantum))
            start, n = start + n_here * step, n - n_here
        return parts[0] if len(parts) == 1 else _joined(parts)


def _of_piece(piece: Piece, start: int, n: int, step: int, quantum: int) -> Delayed:
    steps = step * np.arange(n, dtype=np.int64)
    # Times since the first piece, which starts at -2^62, would overflow.
    is_constant = piece.rate == 0 and piece.phase_rate == 0
    since = np.zeros(n) if is_constant else (steps + (start - piece.start)).astype(np.float64)
    delay = piece.delay + piece.rate * since
    phase = piece.phase + piece.phase_rate * since
    whole = _nearest(delay, quantum)
    coarse = whole.astype(np.int64)
    return Delayed(start + steps - coarse, coarse, delay - whole, phase - _nearest(phase, 2 * pi))


def _nearest(values: np.ndarray, quantum: float) -> np.ndarray:
    """Returns the nearest multiples of ``quantum``, or [1] of them all; ``values`` rise, or they fall.

    A delay changes slowly: its coarse part is mostly the same over a run, which its ends tell.
    """
    ends: np.ndarray = quantum * np.rint(values[[0, -1]] / quantum) if len(values) else values
    if len(ends) and ends[0] == ends[1]:
        return ends[:1]
    return np.asarray(quantum * np.rint(values / quantum))


def _joined(parts: list[Delayed]) -> Delayed:
    return Delayed(
        first=np.concatenate([part.first for part in parts]),
        coarse=np.concatenate([np.broadcast_to(part.coarse, part.first.shape) for part in parts]),
        fine=np.concatenate([part.fine for part in parts]),
        phase=np.concatenate([part.phase for part in parts]),
    )


@dataclass(frozen=True)
class Decimated:
    """The delays of a stream, as those of its narrow band: times and delays are in samples of the narrow band."""

    model: DelayModel
    decimation: int

    def at(self, start: int, n: int, step: int) -> Delayed:
        """Returns what happens to the spectra that leave at ``start`` + ``step`` i; coarse delays are whole samples."""
        d = self.decimation
        found = self.model.at(start * d, n, step * d, quantum=d)
        return Delayed(found.first // d, found.coarse // d, found.fine / d, found.phase)
