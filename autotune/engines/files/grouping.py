"""Groups files that are pieces and scans of one antenna, by their headers, their times and their names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from ...core.errors import UsageError
from .header_fields import overrides_of
from .lacking import Look, look_at
from .opening import antennas_in
from .reading import LackingError, Tell

ALIKE = ("sample_bits", "n_pols", "sample_rate_hz", "centre_frequency_hz", "is_turned")
RATE = "sample_rate_hz"
SEPARATORS = re.compile(r"[._:+ -]+|(?<=\d)T(?=\d)")


@dataclass(frozen=True)
class Group:
    """The files of one antenna, in the order of time."""

    looks: Sequence[Look]
    in_file: str | int | None = None  # its name or number, if its files have several antennas
    follow_on: bool = False  # whether the files do not say their times

    @property
    def name(self) -> str:
        return self.looks[0].info.antenna


def grouped(paths: Iterable[Any], overrides: Mapping[str, Any], tell: Tell) -> list[Group]:
    """Returns the antennas of some recordings, sorted by their first files. ``tell`` takes files that cannot be opened.

    Files with one antenna name in their headers belong to one antenna if they do not overlap in time. If they do, files
    with one file name, apart from numbers, belong together; if these overlap, files in one folder do; and if these
    overlap, each file is an antenna.

    Args:
        overrides: header fields for all files that lack them.

    Raises:
        UsageError: for a header field that is unknown or has a wrong value.
    """
    overrides_of(overrides)
    pairs: list[tuple[Look, str | int | None]] = []
    for path in paths:
        try:
            names, n_channels = antennas_in(path)
            pairs += [_look(path, overrides, names, number, n_channels) for number in range(len(names))]
        except UsageError as error:
            tell(f"{error}; it is left out")
    pairs = _at_one_rate(pairs, overrides)
    groups: list[Group] = []
    for _, some in groupby(sorted(pairs, key=_key), key=_key):
        looks, places = zip(*some, strict=True)
        groups += _split(looks, places[0])
    return sorted(groups, key=lambda group: (str(group.looks[0].path), str(group.in_file)))


def _look(
    path: Path, overrides: Mapping[str, Any], names: Sequence[str], number: int, n_channels: int
) -> tuple[Look, str | int | None]:
    """Returns a look at one antenna of a file, and the antenna's name or number if there are several."""
    if len(names) == 1:
        return look_at(path, overrides), None
    name, channel = names[number], overrides.get("channel", 0)
    look = look_at(path, {**overrides, "channel": number * n_channels + channel})
    if n_channels > 1 and "channel" not in overrides:
        why = f"it has {len(names)} antennas of {n_channels} channels each: choose one, channel=0 to {n_channels - 1}"
        look = replace(look, lacking=[*look.lacking, LackingError(path, why, "channel", 0)])
    return look, name if names.count(name) == 1 else number


def _at_one_rate(
    looks: Sequence[tuple[Look, str | int | None]], overrides: Mapping[str, Any]
) -> list[tuple[Look, str | int | None]]:
    """Returns the files. Those whose headers lack the rate get the largest rate that is estimated for any of them.

    The estimate from a file that is shorter than a second is too low.
    """
    rates = [each.example for look, _ in looks for each in look.lacking if each.field == RATE]
    pairs = []
    for look, place in looks:
        lacking = next((each for each in look.lacking if each.field == RATE), None)
        if lacking is not None and lacking.example != max(rates):
            with suppress(UsageError):  # it cannot have that rate
                again = look_at(look.path, {**overrides, RATE: max(rates)})
                better = LackingError(look.path, lacking.why, RATE, max(rates))
                look = replace(again, lacking=[better, *again.lacking])
        pairs.append((look, place))
    return pairs


def begin_s(look: Look) -> Fraction:
    """Returns the time at which a file begins, in seconds since 1970 or since its zero of time."""
    return (look.info.sync_time_unix or 0) + look.info.first_timestamp / Fraction(look.info.sample_rate_hz)


def gap_s(before: Look, later: Look) -> Fraction:
    """Returns the seconds from the end of a file to the beginning of a later one; negative if they overlap."""
    return begin_s(later) - begin_s(before) - (before.info.n_samples or 0) / Fraction(before.info.sample_rate_hz)


def base_name(name: str) -> str:
    """Returns a file's name without its numbers: On for On.0000.vdif and for On_2026-01-01T07:00:00_3.vdif."""
    stem = name.rpartition(".")[0] or name
    return "_".join(part for part in SEPARATORS.split(stem) if part and not part.isdigit())


def _key(pair: tuple[Look, str | int | None]) -> list[str]:
    """Returns the values that files of one antenna have in common."""
    look, in_file = pair
    name = look.info.antenna or f"\0{_base(look)}"
    values = [name, repr(in_file), str(look.info.sync_time_unix is None)]
    return [*values, *(str(getattr(look.info, name)) for name in ALIKE)]


def _split(looks: Sequence[Look], in_file: str | int | None) -> list[Group]:
    """Returns the antennas of files that may belong to one antenna."""
    ordered = sorted(looks, key=lambda look: (begin_s(look), look.number or 0, str(look.path)))
    if all(_follows(*each) for each in pairwise(ordered)):
        return [Group(ordered, in_file)]
    numbers = [look.number for look in ordered]
    if len({begin_s(look) for look in ordered}) == 1 and None not in numbers and len(set(numbers)) == len(numbers):
        return [Group(ordered, in_file, follow_on=True)]
    for kind in (_base, lambda look: str(look.path.parent)):
        if len({kind(look) for look in looks}) > 1:
            parts = groupby(sorted(looks, key=kind), key=kind)
            return [group for _, part in parts for group in _split(list(part), in_file)]
    return [Group([look], in_file) for look in looks]


def _base(look: Look) -> str:
    return base_name(look.path.name)


def _follows(before: Look, later: Look) -> bool:
    return later.path != before.path and gap_s(before, later) * Fraction(before.info.sample_rate_hz) >= -before.overlap
