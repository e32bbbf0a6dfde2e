"""Different zeros of time: timestamps are shifted by whole samples, and the rest becomes a delay."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import gcd, pi

from ..streams.samples import SampleInfo


@dataclass(frozen=True)
class Offset:
    """The time by which a stream's zero of time is later than that of another stream."""

    whole: int = 0  # samples
    rest: float = 0.0  # samples: each sample was taken so much later than its shifted timestamp
    phase: float = 0.0  # radians at the band's centre that bring the samples to these timestamps


SAME = Offset()


def offset_from(first: SampleInfo, info: SampleInfo, step: int = 1) -> Offset:
    """Returns the offset of ``info``'s zero from ``first``'s, in samples of ``info``.

    The zeros count as equal if one of them is not known.

    Args:
        step: samples; shifted timestamps are whole steps apart, and the rest is at most half a step.
    """
    zero = Fraction(0)
    if info.sync_time_unix is not None and first.sync_time_unix is not None:
        zero = (info.sync_time_unix - first.sync_time_unix) * Fraction(info.sample_rate_hz)
    moved = info.first_timestamp - first.first_timestamp
    whole = step * round((zero + moved) / step) - moved
    return offset_of(info, whole, float(zero - whole))


def offset_of(info: SampleInfo, whole: int, rest: float = 0.0) -> Offset:
    """Returns the offset by ``whole`` samples and a rest."""
    # Samples v[n] of a falling band were multiplied by (-1)^n, where n counts from their own zero.
    phase = 0.0 if info.is_complex else pi / 2 * rest + pi * (whole % 2) if info.is_turned else -pi / 2 * rest
    return Offset(whole, rest, phase)


def whole_bytes(info: SampleInfo) -> int:
    """Returns the smallest number of samples that fill whole bytes."""
    return 1 if info.is_complex else 8 // gcd(8, info.sample_bits)


def span_text(info: SampleInfo) -> str:
    """Returns text with the begin and end of the samples, in UTC if it is known."""
    begin, end = info.first_timestamp, info.first_timestamp + (info.n_samples or 0)
    if info.sync_time_unix is None:
        return f"{begin} to {end}"
    return " to ".join(_utc(info.sync_time_unix + Fraction(n) / Fraction(info.sample_rate_hz)) for n in (begin, end))


def _utc(unix: Fraction) -> str:
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=round(unix * 10**6))
    return time.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
