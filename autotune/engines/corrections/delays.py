"""Delays of one polarisation over time: piecewise linear, and exact in integers when they count samples.

An output at time t starts with sample t - coarse(t). The kernels after the filter bank apply the rest of the delay, the
fine part, and the phase. Times are samples of the input's clock, up to 2^62; floats only hold
differences to the start of a piece.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, pi
from operator import attrgetter
from typing import Protocol

import numpy as np

from ...core.errors import UsageError

LATEST = 1 << 62
LONGEST = float(1 << 40)  # samples: the longest delay of either sign, which floats hold to 1/4096 sample
BEFORE = -LATEST  # the start of the delay that holds before the first piece
_start = attrgetter("start")


@dataclass(frozen=True, slots=True)  # a phase centre may have many
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

    @property
    def is_constant(self) -> bool:
        return self.rate == 0 and self.phase_rate == 0

    def at(self, time: int) -> tuple[float, float]:
        """Returns the delay and the phase at a time; a constant piece may start too far back for a float."""
        since = 0.0 if self.is_constant else float(time - self.start)
        return self.delay + self.rate * since, self.phase + self.phase_rate * since


@dataclass(frozen=True)
class DelayedSpectra:
    """The delays of consecutive spectra, in runs with the same coarse delay."""

    begins: list[int]  # the first spectrum of each run; the first run begins with 0
    coarse: list[int]  # coarse delay of each run: samples by which its spectra start before their time
    fine: np.ndarray  # float64 [n]: the rest of the delay in samples, at most half a quantum
    phase: np.ndarray  # float64 [n]: radians, within +-pi

    def run(self, spectrum: int) -> tuple[int, int]:
        """Returns the coarse delay of a spectrum, and the end of its run: the spectrum after the last one."""
        number = bisect_right(self.begins, spectrum) - 1
        return self.coarse[number], self.begins[number + 1] if number + 1 < len(self.begins) else len(self.fine)


class Delays(Protocol):
    """The interface of one polarisation's delays for a plan."""

    def coarse_at(self, time: int) -> int:
        """Returns the samples by which a spectrum that leaves at ``time`` starts earlier."""

    def at(self, start: int, n: int, step: int) -> DelayedSpectra:
        """Returns the delays of the spectra at the times ``start`` + ``step`` i, i < n."""


class DelayModel:
    """The pieces of one polarisation. Before the first of them, the delay and the phase are 0.

    Another thread may add pieces while an engine runs: ``at`` sees a whole piece or none.
    """

    def __init__(self, *pieces: Piece) -> None:
        kept = [Piece(BEFORE)]
        for piece in pieces:
            while kept and kept[-1].start >= piece.start:
                kept.pop()
            kept.append(piece)
        self._pieces: tuple[Piece, ...] = tuple(kept)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self._pieces

    def add(self, piece: Piece) -> None:
        """Add a piece. Pieces that start at the same time or later are dropped."""
        n_kept = bisect_left(self._pieces, piece.start, key=lambda each: each.start)
        self._pieces = (*self._pieces[:n_kept], piece)

    def shift(self, samples: int) -> None:
        """Move all pieces to times that are so much later, but the one of the beginning."""
        self._pieces = tuple(replace(each, start=each.start + samples * (each.start != BEFORE)) for each in self.pieces)

    def about(self, frequency: float) -> "DelayModel":
        """Returns the same delays, with their phases at ``frequency``, in cycles per sample above the middle."""
        turn = -2 * pi * frequency
        return DelayModel(
            *(
                replace(each, phase=each.phase + turn * each.delay, phase_rate=each.phase_rate + turn * each.rate)
                for each in self.pieces
            )
        )

    def later(self, delay: float, phase: float, start: int = BEFORE) -> "DelayModel":
        """Returns a model with a constant delay, samples, and phase, radians, added from ``start`` on."""
        before = [each for each in self.pieces if each.start < start]
        held = [self._from(start), *(each for each in self.pieces if each.start > start)]
        return DelayModel(
            *before, *(replace(each, delay=each.delay + delay, phase=each.phase + phase) for each in held)
        )

    def plus(self, other: "DelayModel") -> "DelayModel":
        """Returns a model with the sums of both models' delays and phases."""
        starts = sorted({piece.start for model in (self, other) for piece in model.pieces})
        return DelayModel(*(_sum(self._from(start), other._from(start)) for start in starts))

    def _from(self, start: int) -> Piece:
        """Returns the piece that holds at ``start``, rewritten to start there."""
        piece = self._pieces[_number_at(self._pieces, start)]
        delay, phase = piece.at(start)
        return replace(piece, start=start, delay=delay, phase=phase)

    def extremes(self, begin: int, end: int) -> list[float]:
        """Returns the delays, in samples, at both ends of each piece between ``begin`` and ``end``."""
        pieces, delays = self._pieces, []
        for piece, after in zip(pieces, [*(p.start for p in pieces[1:]), LATEST], strict=True):
            if piece.start <= end and after > begin:
                times = max(begin, piece.start), min(end, after)
                delays += [piece.at(time)[0] for time in times]
        return delays

    def coarse_at(self, time: int, quantum: int = 1) -> int:
        """Returns the samples by which a spectrum that leaves at ``time`` starts earlier.

        ``quantum``: coarse delays are multiples of so many samples (the decimation, for a narrow band).

        Raises:
            UsageError: when the delay has grown beyond LONGEST.
        """
        pieces = self._pieces
        piece = pieces[_number_at(pieces, time)]
        return _coarse(piece, time, piece.at(time)[0], quantum)

    def at(self, start: int, n: int, step: int, quantum: int = 1) -> DelayedSpectra:
        """Returns the delays of the spectra at the times ``start`` + ``step`` i, i < n; n is at least 1.

        Raises:
            UsageError: as ``coarse_at``.
        """
        pieces = self._pieces
        spectra = DelayedSpectra([], [], np.empty(n), np.empty(n))
        begin, number = 0, _number_at(pieces, start)
        while begin < n:
            after = pieces[number + 1].start if number + 1 < len(pieces) else LATEST
            end = min(n, -(-(after - start) // step)) if after < LATEST else n
            if begin < end:
                _add(spectra, pieces[number], begin, end, start, step, quantum)
                begin = end
            number += 1
        return spectra


def _number_at(pieces: Sequence[Piece], time: int) -> int:
    """Returns the number of the piece that holds at a time."""
    return max(bisect_right(pieces, time, key=_start) - 1, 0)


def _sum(first: Piece, second: Piece) -> Piece:
    """Returns the sum of two pieces that start together."""
    return Piece(
        first.start,
        first.delay + second.delay,
        first.rate + second.rate,
        first.phase + second.phase,
        first.phase_rate + second.phase_rate,
    )


def _coarse(piece: Piece, time: int, delay: float, quantum: int) -> int:
    """Returns the coarse delay for a piece's ``delay`` at a time. Raises UsageError when it is too long."""
    if abs(delay) > LONGEST:
        why = f"the delay from sample {piece.start} on is {delay:.4g} samples at sample {time}"
        raise UsageError(f"{why}, and may be {LONGEST:.4g}; begin its piece nearer to the samples")
    return quantum * round(delay / quantum)


def _add(spectra: DelayedSpectra, piece: Piece, begin: int, end: int, start: int, step: int, quantum: int) -> None:
    """Adds the spectra from ``begin`` to ``end``, all of one piece."""
    delay, phase = spectra.fine[begin:end], spectra.phase[begin:end]
    first, last = start + begin * step, start + (end - 1) * step
    if piece.is_constant:
        delay[...], phase[...] = piece.delay, piece.phase
    else:
        since = np.arange(first - piece.start, last - piece.start + step, step).astype(np.float64)
        np.multiply(since, piece.rate, out=delay)
        delay += piece.delay
        np.multiply(since, piece.phase_rate, out=phase)
        phase += piece.phase
    if max(abs(float(phase[0])), abs(float(phase[-1]))) > pi:
        phase -= 2 * pi * np.rint(phase / (2 * pi))
    low, high = (_coarse(piece, time, float(delay[i]), quantum) for time, i in ((first, 0), (last, -1)))
    for run, until, coarse in _runs(delay, low, high, quantum):
        delay[run:until] -= coarse
        if not spectra.coarse or spectra.coarse[-1] != coarse:
            spectra.begins.append(begin + run)
            spectra.coarse.append(coarse)


def _runs(delay: np.ndarray, first: int, last: int, quantum: int) -> list[tuple[int, int, int]]:
    """Returns (begin, end, coarse delay) of each run. Delays must rise or fall monotonically, ``first`` to ``last``."""
    runs, begin, coarse, sign = [], 0, first, 1 if last > first else -1

    def risen(spectrum: int) -> int:
        return sign * quantum * round(float(delay[spectrum]) / quantum)

    while coarse != last:
        end = bisect_right(range(len(delay)), sign * coarse, begin, key=risen)
        runs.append((begin, end, coarse))
        begin, coarse = end, sign * risen(end)
    return [*runs, (begin, len(delay), last)]


@dataclass(frozen=True)
class DecimatedDelays:
    """The delays of a stream for its narrow band: times and delays are in samples of the narrow band."""

    model: DelayModel
    decimation: int

    def coarse_at(self, time: int) -> int:
        """Returns the samples by which a spectrum that leaves at ``time`` starts earlier."""
        return self.model.coarse_at(time * self.decimation, self.decimation) // self.decimation

    def at(self, start: int, n: int, step: int) -> DelayedSpectra:
        """Returns the delays of the spectra at the times ``start`` + ``step`` i; coarse delays are whole samples."""
        d = self.decimation
        spectra = self.model.at(start * d, n, step * d, quantum=d)
        return DelayedSpectra(
            spectra.begins, [coarse // d for coarse in spectra.coarse], spectra.fine / d, spectra.phase
        )
