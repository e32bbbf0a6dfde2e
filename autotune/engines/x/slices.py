"""Chooses the number of slices of a launch. Each slice of its batches has its own accumulators.

With few antennas a launch has few blocks, and slices make more. But each slice makes a dump slower, which adds them.
"""

from collections.abc import Iterator

from ...core.definition import ceil_div
from ...core.units import seconds_text
from ...recommend.duration import EXPECTED
from ..kernels.choice import Kernels
from .x_settings import XSettings, accumulate_fields, correlate_fields

CANDIDATES = (1, 2, 4, 8, 16, 32)
UNSURE = 1 / 8  # a predicted time counts longer by this share, since its median error is 8 %
MOST_BYTES = 1 << 30  # limit for the accumulators of several slices; one slice has no limit


def slices_of(settings: XSettings, kernels: Kernels, kind: str) -> int:
    """Returns ``settings.n_slices``, or if it is None the number that should make dumps fastest. It tells the reason.

    ``kind``: the kind of the device. On host there is 1 slice.

    Raises:
        UsageError: when the settings are not a problem of the kernels.
    """
    return kernels.decided(("n_slices", settings), lambda: _choice(settings, kernels, kind))


def _choice(settings: XSettings, kernels: Kernels, kind: str) -> tuple[int, str]:
    what = f"slices of {settings.n_antennas} antennas"
    if settings.n_slices is not None:
        return settings.n_slices, f"{what}: {settings.n_slices}; as asked for"
    if kind == "host":
        return 1, f"{what}: 1; as always on host"
    expected = list(_expected(settings, kernels))
    if not expected or expected[0][0] != 1:
        return 1, f"{what}: 1; no time of correlate and accumulate is known here"
    seconds, how = expected[0][1:3]
    n, least, how_least, _ = min(expected, key=lambda one: one[3])
    if n == 1:
        others = ", ".join(f"{seconds_text(time)} with {n}" for n, time, _, _ in expected[1:])
        return 1, f"{what}: 1; a dump takes {seconds_text(seconds)} ({how}){others and ', '}{others}"
    return n, f"{what}: {n}; a dump takes {seconds_text(least)} ({how_least}), {seconds_text(seconds)} with 1 ({how})"


def allowed_slices(settings: XSettings) -> list[int]:
    """Returns the candidates: at most one slice for each batch of a launch, and at most MOST_BYTES of accumulators."""
    most = settings.batches_per_launch
    return [n for n in CANDIDATES if n == 1 or (n <= most and n * settings.slice_bytes <= MOST_BYTES)]


def _expected(settings: XSettings, kernels: Kernels) -> Iterator[tuple[int, float, str, float]]:
    """Yields, for each number of slices with known times, the number, the seconds of a dump (its launches of correlate
    and one of accumulate), their origin, and the seconds with the share UNSURE added.
    """
    n = settings.batches_per_launch
    used = n if n < settings.batches_per_chunk else 0
    for n_slices in allowed_slices(settings):
        each = kernels.expected_time("correlate", **{**correlate_fields(settings, n_slices), "n_used": used})
        dump = kernels.expected_time("accumulate", **accumulate_fields(settings, n_slices))
        if each is not None and dump is not None:
            how = each.how if each.how == dump.how else f"correlate {each.how}, accumulate {dump.how}"
            launches = ceil_div(settings.accumulate, n) * each.seconds
            unsure = launches * (each.how == EXPECTED) + dump.seconds * (dump.how == EXPECTED)
            yield n_slices, launches + dump.seconds, how, launches + dump.seconds + UNSURE * unsure
