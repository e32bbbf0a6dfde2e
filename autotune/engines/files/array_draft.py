"""Drafts the file of an array: the files of each antenna, and a comment for each field that their headers lack."""

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...core.units import counted
from .clocks import span_text
from .grouping import Group, base_name, gap_s
from .reading import LackingError
from .toml import quoted, written

HEAD = """\
# The antennas of an array, for `autotune correlate`. Paths begin at the folder of this file. Fields in front of the
# first table hold for all antennas that do not set them. Fields that headers lack are comments: fill them in.
"""
PLACES = {
    "centre_frequency_hz": ("1.4e9", "centre of the band, in Hz: UVH5 and Measurement Sets need it"),
    "sync_time_unix": ('"1700000000.0"', "when its time is 0, s since 1970: UVH5 and Measurement Sets need it"),
    "position_m": ("[0.0, 0.0, 0.0]", "geocentric x, y, z in m: UVH5 and Measurement Sets need it"),
}
CENTRE = """
# [phase_centre]
# right_ascension_deg = 0.0    # ICRS
# declination_deg = 0.0
"""


def array_text(groups: Sequence[Group], folder: Path, overrides: Mapping[str, Any]) -> str:
    """Returns the text of an array's file, which the user completes.

    Args:
        folder: the folder at which paths in the file begin.
        overrides: fields that all headers lack.
    """
    lacks = [_lacking(group) for group in groups]
    common = [line for line in lacks[0] if all(line in each for each in lacks) and not line.startswith("# position_m")]
    names = _names(groups)
    common = [written(name, value) for name, value in overrides.items()] + common
    parts = [HEAD, *([f"\n{''.join(common)}"] if common else []), CENTRE]
    for number, (group, lacking) in enumerate(zip(groups, lacks, strict=True)):
        own = [line for line in lacking if line not in common]
        parts.append(f"\n{_table(group, names[number], folder)}{''.join(own)}")
    return "".join(parts)


def _names(groups: Sequence[Group]) -> list[str]:
    """Returns a unique name for each antenna: from its header, its file or its folder, or else from a number."""
    unique, firsts = [f"m{number:03}" for number in range(len(groups))], [group.looks[0].path for group in groups]
    folders, files = [path.resolve().parent.name for path in firsts], [base_name(path.name) for path in firsts]
    for names in (folders, files, [group.name for group in groups]):  # the last kind whose name is unique wins
        unique = [name if name and names.count(name) == 1 else old for name, old in zip(names, unique, strict=True)]
    return unique


def _table(group: Group, name: str, folder: Path) -> str:
    first = group.looks[0].info
    lines = ["[[antenna]]\n", written("name", name), _files(group, folder)]
    if group.name not in ("", name):
        lines[1] = f"{lines[1].rstrip()}  # several have the name {quoted(group.name)}\n"
    if group.in_file is not None:
        lines.append(f"{written('antenna', group.in_file).rstrip()}  # the one to read of the antennas in its files\n")
    if group.follow_on:
        lines.append("follow_on = true  # all headers have one start: each file begins where the one before ends\n")
    has = f"{counted(first.n_pols, 'polarisation')} at {first.sample_rate_hz:g} samples a second"
    return "".join([*lines, f"# {has}, from {span_text(first).replace(' to ', ' on; the first file ends ')}\n"])


def _files(group: Group, folder: Path) -> str:
    paths = [quoted(os.path.relpath(look.path, folder)) for look in group.looks]
    if len(paths) == 1:
        return f"files = [{paths[0]}]\n"
    gaps = [0.0, *(float(gap_s(*each)) for each in pairwise(group.looks))]
    rate = group.looks[0].info.sample_rate_hz
    are_shown = [not group.follow_on and gap * rate > group.looks[0].overlap + 0.5 for gap in gaps]
    more = [
        f"  # {gap:.6g} s after the one before" if shown else "" for gap, shown in zip(gaps, are_shown, strict=True)
    ]
    return "files = [\n" + "".join(f"    {path},{text}\n" for path, text in zip(paths, more, strict=True)) + "]\n"


def _lacking(group: Group) -> list[str]:
    """Returns a line or two for each field that the headers of an antenna's files lack."""
    by_field: dict[str, LackingError] = {}
    for look in group.looks:
        for error in look.lacking:
            by_field.setdefault(error.field, error)
    lines = [f"# {error.why}\n# {written(name, error.example)}" for name, error in by_field.items()]
    first = group.looks[0].info
    missing = [(name, *text) for name, text in PLACES.items() if getattr(first, name) is None]
    return lines + [f"# {name} = {value}    # {why}\n" for name, value, why in missing]
