"""Brings the samples of several stations to one clock: starts are aligned, and what cannot be correlated is refused."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import isclose, pi

import numpy as np

from ...core.errors import UsageError
from ..corrections.delays import DelayModel
from ..files.reading import Tell
from ..streams.samples import SampleInfo, Samples, Source
from ..x.engine import ROUNDING
from .inputs import Input

TOLD_REST = 1e-6  # samples: a smaller rest of a start is applied, and not told


class ShiftedSource:
    """A source whose times are so many samples later, as another zero of time has them."""

    def __init__(self, source: Source, n_samples: int, sync_time_unix: Fraction) -> None:
        self._source, self._n_samples = source, n_samples
        self.is_live = source.is_live
        first = source.info.first_timestamp + n_samples
        self.info = replace(source.info, first_timestamp=first, sync_time_unix=sync_time_unix)

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``."""
        samples = self._source.read(out)
        return None if samples is None else replace(samples, time=samples.time + self._n_samples)

    def close(self) -> None:
        self._source.close()


@dataclass(frozen=True)
class Station:
    """The samples of an antenna on the clock of the first one, and what is left of its start."""

    input: Input
    rest: float = 0.0  # samples, at most 1/2, by which each sample was taken later than its timestamp says
    phase: float = 0.0  # radians at the centre of the band that bring its samples to their timestamps

    def on_time(self, delays: Sequence[DelayModel]) -> list[DelayModel]:
        """Returns delays that bring samples to their timestamps besides."""
        return [model.later(self.rest, self.phase) for model in delays]


def stations(given: Sequence[Input], tell: Tell) -> list[Station]:
    """Returns the antennas of a correlation on the clock of the first one.

    Zeros of time differ by whole samples, which timestamps are shifted by, and a rest, which is a delay. Both are told.

    Raises:
        UsageError: when their sample rates differ, only some say when their time was 0, or they have no time in common.
    """
    infos = [each.info for each in given]
    first = infos[0]
    for info in infos[1:]:
        if not isclose(info.sample_rate_hz, first.sample_rate_hz, rel_tol=ROUNDING):
            rates = ", ".join(f"{_name(each)} has {each.sample_rate_hz!r} Hz" for each in (first, info))
            raise UsageError(f"antennas must have the same sample rate to be correlated; {rates}")
        if (info.sync_time_unix is None) != (first.sync_time_unix is None):
            known, unknown = (info, first) if first.sync_time_unix is None else (first, info)
            raise UsageError(
                f"{_name(unknown)} does not say when its time was 0 (sync_time_unix), and {_name(known)} does: they "
                "cannot be aligned; state it in the header of each, or give arrays no time"
            )
    aligned = [_aligned(each, first, tell) for each in given]
    _must_overlap([station.input.info for station in aligned])
    _tell_of_one_name(infos, tell)
    return aligned


def _aligned(given: Input, first: SampleInfo, tell: Tell) -> Station:
    info = given.info
    if info.sync_time_unix is None or first.sync_time_unix is None or info.sync_time_unix == first.sync_time_unix:
        return Station(given)
    offset = (info.sync_time_unix - first.sync_time_unix) * Fraction(first.sample_rate_hz)
    whole = round(offset)
    rest = float(offset - whole)
    # Samples v[n] of a falling band were multiplied by (-1)^n, with n as their own clock counts.
    phase = 0.0 if info.is_complex else pi / 2 * rest + pi * (whole % 2) if info.is_turned else -pi / 2 * rest
    left = f", and the rest of {rest:.6f} samples is delayed" if abs(rest) > TOLD_REST else ""
    tell(f"{_name(info)}: its time 0 is {whole} samples after that of {_name(first)}, which are counted{left}")
    source = ShiftedSource(given.source, whole, first.sync_time_unix)
    return Station(replace(given, source=source), rest, phase)


def _must_overlap(infos: Sequence[SampleInfo]) -> None:
    """Raises UsageError when antennas whose samples are known have no time in common."""
    known = [info for info in infos if info.n_samples]
    if not known:
        return
    late = max(known, key=lambda info: info.first_timestamp)
    early = min(known, key=lambda info: info.first_timestamp + (info.n_samples or 0))
    if late.first_timestamp < early.first_timestamp + (early.n_samples or 0):
        return
    is_one = late.antenna and late.antenna == early.antenna
    why = "both have one name: are they pieces of one recording?" if is_one else "check their clocks"
    spans = " and ".join(f"{_name(info)} has samples from {_span(info)}" for info in (early, late))
    raise UsageError(f"the antennas have no time in common: {spans}; {why}")


def _tell_of_one_name(infos: Sequence[SampleInfo], tell: Tell) -> None:
    for name, n in Counter(info.antenna for info in infos if info.antenna).items():
        if n > 1:
            tell(f"{n} antennas have the name {name!r}, and are correlated as {n}: are they one station?")


def _span(info: SampleInfo) -> str:
    """Returns when an antenna's samples begin and end, in UTC if that is known."""
    begin, end = info.first_timestamp, info.first_timestamp + (info.n_samples or 0)
    if info.sync_time_unix is None:
        return f"{begin} to {end}"
    return " to ".join(_utc(info.sync_time_unix + Fraction(n) / Fraction(info.sample_rate_hz)) for n in (begin, end))


def _utc(unix: Fraction) -> str:
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=round(unix * 10**6))
    return time.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")


def _name(info: SampleInfo) -> str:
    return info.antenna or "an antenna without a name"
