"""Brings the samples of several stations to one clock, and refuses those that cannot be aligned."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isclose

import numpy as np

from ...core.errors import UsageError
from ..corrections.delays import DelayModel
from ..files.clocks import SAME, Offset, offset_from, span_text
from ..files.reading import Tell
from ..streams.samples import SampleInfo, Samples, Source
from ..x.engine import ROUNDING
from .inputs import Input

LEAST_REPORTED_REST = 1e-6  # samples: a smaller rest of a start is applied without a message


class ShiftedSource:
    """A source whose times are ``n_samples`` later, because they count from an earlier zero of time."""

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
    """The samples of an antenna on the clock of the first one, and the fraction of a sample that is left."""

    input: Input
    offset: Offset = SAME

    def on_time(self, delays: Sequence[DelayModel]) -> list[DelayModel]:
        """Returns the delays, plus the fractions of a sample that bring the samples to their timestamps."""
        on_time = [model.later(self.offset.rest, self.offset.phase) for model in delays]
        for late in self.input.late:
            start = late.start + self.offset.whole
            on_time = [
                model.later(late.rest, late.phase, start) if late.pol in (None, pol) else model
                for pol, model in enumerate(on_time)
            ]
        return on_time


def stations(inputs: Sequence[Input], tell: Tell) -> list[Station]:
    """Returns the antennas of a correlation on the clock of the first one.

    Zeros of time differ by a number of whole samples, by which timestamps are shifted, and by a rest, which becomes a
    delay. ``tell`` takes a line about both.

    Raises:
        UsageError: when bandwidths differ, only some headers say when time was 0, or there is no time in common.
    """
    infos = [each.info for each in inputs]
    first = infos[0]
    for info in infos[1:]:
        if not isclose(info.bandwidth_hz, first.bandwidth_hz, rel_tol=ROUNDING):
            rates = ", ".join(f"{_name(each)} has {each.sample_rate_hz!r} Hz" for each in (first, info))
            more = "; real samples of a band have twice the rate of complex ones" * (
                info.is_complex != first.is_complex
            )
            raise UsageError(f"antennas must have the same sample rate to be correlated; {rates}{more}")
        if (info.sync_time_unix is None) != (first.sync_time_unix is None):
            known, unknown = (info, first) if first.sync_time_unix is None else (first, info)
            raise UsageError(
                f"{_name(unknown)} does not say when its time was 0 (sync_time_unix), and {_name(known)} does: they "
                "cannot be aligned; state it in the header of each, or give arrays no time"
            )
    aligned = [_aligned(each, first, tell) for each in inputs]
    _must_overlap([station.input.info for station in aligned])
    _tell_of_one_name(infos, tell)
    return aligned


def _aligned(opened: Input, first: SampleInfo, tell: Tell) -> Station:
    info, offset = opened.info, offset_from(first, opened.info)
    if offset == SAME or first.sync_time_unix is None:
        return Station(opened)
    left = f", and the rest of {offset.rest:.6f} samples is delayed" if abs(offset.rest) > LEAST_REPORTED_REST else ""
    tell(f"{_name(info)}: its time 0 is {offset.whole} samples after that of {_name(first)}, which are counted{left}")
    source = ShiftedSource(opened.source, offset.whole, first.sync_time_unix)
    return Station(replace(opened, source=source), offset)


def _must_overlap(infos: Sequence[SampleInfo]) -> None:
    """Raises UsageError when antennas whose samples are known have no time in common."""
    recorded = [info for info in infos if info.n_samples]
    if not recorded:
        return
    late, early = max(recorded, key=lambda info: _span_s(info)[0]), min(recorded, key=lambda info: _span_s(info)[1])
    if _span_s(late)[0] < _span_s(early)[1]:
        return
    is_one = late.antenna and late.antenna == early.antenna
    pieces = "both have one name: if they are pieces of one recording, `autotune array` puts them together"
    why = pieces if is_one else "check their clocks"
    spans = " and ".join(f"{_name(info)} has samples from {span_text(info)}" for info in (early, late))
    raise UsageError(f"the antennas have no time in common: {spans}; {why}")


def _tell_of_one_name(infos: Sequence[SampleInfo], tell: Tell) -> None:
    for name, n in Counter(info.antenna for info in infos if info.antenna).items():
        if n > 1:
            tell(f"{n} antennas have the name {name!r}, and are correlated as {n}: are they one station?")


def _name(info: SampleInfo) -> str:
    return info.antenna or "an antenna without a name"


def _span_s(info: SampleInfo) -> tuple[Fraction, Fraction]:
    """Returns the begin and end of samples, in seconds since time was 0."""
    rate_hz = Fraction(info.sample_rate_hz)
    return info.first_timestamp / rate_hz, (info.first_timestamp + (info.n_samples or 0)) / rate_hz
