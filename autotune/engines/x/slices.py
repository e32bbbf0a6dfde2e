"""Chooses into how many slices the X-engine cuts the batches of a launch, each with accumulators of its own.

Few antennas make few blocks of a launch, and slices make more. Each of them makes a dump longer: all are added then.
"""

from collections.abc import Iterator

from ...core.units import seconds_text
from ..kernels.choice import Kernels
from .settings import XSettings, accumulate_fields, correlate_fields

CANDIDATES = (1, 2, 4, 8, 16, 32)
MOST_BYTES = 1 << 30  # of accumulators of several slices; one slice may have any


def slices_of(settings: XSettings, kernels: Kernels, kind: str) -> int:
    """Returns ``settings.n_slices``, or if it is None the number whose dumps are expected to take least; tells why.

    ``kind``: of the device. On host it is 1.

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
    found = list(_expected(settings, kernels))
    if not found or found[0][0] != 1:
        return 1, f"{what}: 1; no time of correlate and accumulate is known here"
    seconds, how = found[0][1:]
    n, least, how_least = min(found, key=lambda one: one[1])
    if n == 1:
        others = ", ".join(f"{seconds_text(time)} with {n}" for n, time, _ in found[1:])
        return 1, f"{what}: 1; a dump takes {seconds_text(seconds)} ({how}){others and ', '}{others}"
    return n, f"{what}: {n}; a dump takes {seconds_text(least)} ({how_least}), {seconds_text(seconds)} with 1 ({how})"


def _expected(settings: XSettings, kernels: Kernels) -> Iterator[tuple[int, float, str]]:
    """Yields numbers of slices with the seconds of a dump, all its launches of correlate and one of accumulate, and how
    they are known; those whose times are known.
    """
    for n_slices in CANDIDATES:
        fields = correlate_fields(settings, n_slices)
        n = min(fields["n_used"] or settings.batches_per_chunk, settings.batches_per_dump)
        if n_slices > n or (n_slices > 1 and n_slices * settings.slice_bytes > MOST_BYTES):
            return
        used = n if n < settings.batches_per_chunk else 0
        each = kernels.expected_time("correlate", **{**fields, "n_used": used})
        dump = kernels.expected_time("accumulate", **accumulate_fields(settings, n_slices))
        if each is not None and dump is not None:
            how = each.how if each.how == dump.how else f"correlate {each.how}, accumulate {dump.how}"
            yield n_slices, -(-settings.batches_per_dump // n) * each.seconds + dump.seconds, how
