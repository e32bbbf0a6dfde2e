"""Checks what a header states, or a caller says, against physics, the clock and the data: what contradicts is refused.

``trust_header`` among the header's fields keeps a statement all the same, with a line that says what it contradicts.
"""

import time
from fractions import Fraction
from pathlib import Path

from ...core.errors import one_line
from ...core.units import counted
from ..corrections.directions import why_not_geocentric
from ..streams.samples import SampleInfo
from .frame_numbers import Counted
from .reading import HeaderOverrides, Tell, refuse

AHEAD_S = 86_400  # seconds by which a clock may be fast
LACKING = 4  # frames at ends of seconds that are not lost by chance
INSIST = "give another value, or keep it by trust_header (--trust-header)"


def contradicted(path: Path, overrides: HeaderOverrides, why: str, tell: Tell) -> None:
    """Raises UsageError for a statement that something contradicts; tells it, if the header is trusted."""
    if not overrides.trust_header:
        refuse(path, f"{why}; {INSIST}")
    tell(one_line(f"{path}: {why}; the header is trusted"))


def said_by(overrides: HeaderOverrides, name: str) -> str:
    """Returns where a field came from, in words."""
    return "as it was given" if name in overrides.given else "as its header says"


def check_plausible(path: Path, info: SampleInfo, overrides: HeaderOverrides, tell: Tell) -> None:
    """Raises UsageError for an antenna that is not on the Earth, a band that begins below 0 Hz, and an end in future.

    It is raised for names of more or fewer polarisations than there are, too, which nothing makes right.

    A centre of 0 Hz is that of a test bench, or of nothing that is known.
    """
    if info.polarisations and len(info.polarisations) != info.n_pols:
        stated = f"polarisations={info.polarisations}, {said_by(overrides, 'polarisations')}"
        refuse(path, f"{stated}, of {counted(info.n_pols, 'polarisation')}; name what is read, in its order")
    if info.position_m is not None and (why := why_not_geocentric(info)):
        contradicted(path, overrides, f"position_m, {said_by(overrides, 'position_m')}: {why}", tell)
    if info.centre_frequency_hz and (low_hz := lowest_hz(info)) < 0:
        stated = f"centre_frequency_hz={info.centre_frequency_hz:g}, {said_by(overrides, 'centre_frequency_hz')}"
        band = f"a band of {info.sample_rate_hz:g} samples per second begins at {low_hz:g} Hz"
        contradicted(path, overrides, f"{stated}: {band}, below 0: it may not be in Hz", tell)
    if info.sync_time_unix is not None:
        end = info.first_timestamp + (info.n_samples or 0)
        ahead_s = info.sync_time_unix + Fraction(end) / Fraction(info.sample_rate_hz)
        if (ahead_s := ahead_s - Fraction(time.time())) > AHEAD_S:
            start = f"sync_time_unix={float(info.sync_time_unix):.17g}, {said_by(overrides, 'sync_time_unix')}"
            contradicted(path, overrides, f"{start}: it ends {float(ahead_s) / 86_400:.6g} days in the future", tell)


def lowest_hz(info: SampleInfo) -> float:
    """Returns the lowest frequency of the samples' band, whose centre is known."""
    return (info.centre_frequency_hz or 0.0) - info.bandwidth_hz / 2


def check_frames(
    path: Path, overrides: HeaderOverrides, per_second: int, counted: Counted, said: str, rate_hz: float, tell: Tell
) -> None:
    """Raises UsageError for a rate that the frames' numbers contradict.

    Args:
        per_second: frames in a second, by the rate.
        counted: frames in a second, by their numbers.
        said: the fields from which ``per_second`` follows, and where they came from.
        rate_hz: the rate by the numbers.
    """
    lacking = per_second - counted.n
    if lacking < 0 or counted.n_ends * lacking >= LACKING:
        least = "" if counted.n_ends else "at least "
        why = f"{said}: {per_second} frames in a second, but their numbers count {least}{counted.n}, {rate_hz:.17g} Hz"
        contradicted(path, overrides, why, tell)
