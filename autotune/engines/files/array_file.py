"""Arrays in TOML: each antenna's files, in the order of time, and the header fields that are missing or wrong.

    sample_rate_hz = 64e6              # fields in front of the tables hold for all antennas that do not set them
    centre_frequency_hz = 1.4e9

    [phase_centre]                     # optional
    right_ascension_deg = 187.2779
    declination_deg = 2.0524

    [[antenna]]
    name = "On"
    files = ["On.0000.vdif", "On.0001.vdif"]     # relative to this file's folder; or a list for each polarisation
    threads = [0, 1]
    position_m = [3370606.0, 711917.0, 5349830.0]
    delays = 12.25                     # samples; or one for each polarisation; or pieces in [[antenna.delays]]
    gains = [0.5, 0.6]                 # one for both polarisations, or one for each

All fields of a header (``header_fields``) are allowed. In files with several antennas ``antenna`` chooses
one, by its name in the file or its number from 0, and ``channel`` is one of its own channels.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...core import schema
from ...core.errors import UsageError
from ..corrections.delays import BEFORE, DelayModel, Piece
from ..streams.phase_centre import PhaseCentre
from . import checks
from .delay_file import DELAY_FIELDS, N_POLS
from .header_fields import header_fields, overrides_of
from .phase_centre_text import phase_centre
from .reading import refuse
from .toml import checked, read_toml

MOST_BYTES = 1 << 26


@dataclass(frozen=True)
class ArrayAntenna:
    """The table of an antenna in an array's file."""

    files: tuple[tuple[Path, ...], ...]  # one list for both polarisations, or one for each
    header: Mapping[str, Any]  # fields of the header
    name: str = ""
    in_file: str | int | None = None  # its name or number, if its files have several antennas
    follow_on: bool = False  # whether each file begins where the one before ends, whatever time its header has
    delays: tuple[DelayModel, ...] | None = None  # one for each polarisation
    gains: tuple[float, ...] | None = None  # one for both polarisations, or one for each


@dataclass(frozen=True)
class ArrayFile:
    """The antennas of an array, and the direction it points at."""

    path: Path
    antennas: tuple[ArrayAntenna, ...]
    phase_centre: PhaseCentre | None = None


def is_array_file(path: Path) -> bool:
    """Returns whether a file is TOML that lists antennas with their files. Raises UsageError for broken TOML."""
    if path.suffix != ".toml" or not path.is_file():
        return False
    return lists_antennas(read_toml(path, MOST_BYTES))


def lists_antennas(content: Mapping[str, object]) -> bool:
    """Returns whether the content of TOML lists antennas with their files."""
    lists = [value for value in content.values() if isinstance(value, list)]
    tables = [each for value in lists for each in value if isinstance(each, dict)]
    return bool(tables) and ("files" in content or any("files" in each for each in tables))


def read_array(path: Path) -> ArrayFile:
    """Reads an array's file.

    Raises:
        UsageError: when it cannot be read or is wrong. One line names each wrong antenna, and suggests a known field
            for an unknown one.
    """
    content = checked(path, "it", _whole, read_toml(path, MOST_BYTES))
    tables, centre = content.pop("antenna"), content.pop("phase_centre", None)
    antennas, wrong = [], []
    for number, table in enumerate(tables, 1):
        try:
            antennas.append(_antenna(path.parent, content, table))
        except (schema.Unsound, UsageError) as error:
            name = table.get("name") if isinstance(table, dict) else None
            wrong.append(f"[[antenna]] {name if isinstance(name, str) else number} {error}")
    wrong += [
        f"{n} antennas have the name {name!r}" for name, n in _counts_of_names(antennas).items() if name and n > 1
    ]
    if wrong or not tables:
        refuse(path, "; ".join(wrong) or "it has no [[antenna]]")
    direction = None if centre is None else checked(path, "[phase_centre]", phase_centre, centre)
    return ArrayFile(path, tuple(antennas), direction)


def _counts_of_names(antennas: Sequence[ArrayAntenna]) -> Counter[str]:
    return Counter(antenna.name for antenna in antennas)


def _antenna(folder: Path, common: Mapping[str, object], table: object) -> ArrayAntenna:
    """Checks the table of one antenna. Raises Unsound or UsageError."""
    values = {**common, **_antenna_table(table)}
    if "files" not in values:
        raise schema.Unsound("lacks files")
    header = {name: values.pop(name) for name in sorted(of_header().keys() & values.keys())}
    overrides_of(header)
    return ArrayAntenna(
        files=tuple(tuple(folder / file for file in files) for files in values["files"]),
        header=header,
        name=values.get("name", ""),
        in_file=values.get("antenna"),
        follow_on=values.get("follow_on", False),
        delays=values.get("delays"),
        gains=values.get("gains"),
    )


# ---------------------------------------------------------------------- values of fields
def _any(value: object) -> object:
    return value


def _files(value: object) -> Any:
    """Checks for a path, a list of paths, or two lists, one for each polarisation."""
    is_paired = isinstance(value, list) and any(isinstance(each, list) for each in value)
    files = (
        schema.sequence_of(PATHS, N_POLS)(value)
        if is_paired
        else (PATHS([value] if isinstance(value, str) else value),)
    )
    if not all(each and all(each) for each in files):
        raise schema.Unsound("is empty, must be paths of files")
    return files


def _numbers(value: object) -> tuple[float, ...]:
    """Checks for one number for both polarisations, or a list with one for each."""
    numbers: tuple[float, ...] = checks.REALS(value if isinstance(value, list) else [value])
    if not 1 <= len(numbers) <= N_POLS:
        raise schema.Unsound(f"has {len(numbers)} numbers, must have one for each polarisation")
    return numbers


def _delays(value: object) -> tuple[DelayModel, ...]:
    """Checks for constant delays, or a list of tables as in a file of delays, but without the antenna."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        models = tuple(DelayModel() for _ in range(N_POLS))
        for each in schema.sequence_of(DELAY_OF_ONE)(value):
            values: dict[str, Any] = dict(each)
            pol = values.pop("pol", None)
            for model in models if pol is None else models[pol : pol + 1]:
                if len(model.pieces) > 1 and model.pieces[-1].start >= values["start"]:
                    raise schema.Unsound(f"has a piece from sample {values['start']} on after a later one")
                model.add(Piece(**values))
        return models
    delays = _numbers(value)
    return tuple(DelayModel(Piece(BEFORE, delay)) for delay in (delays if len(delays) == N_POLS else delays * N_POLS))


def _in_file(value: object) -> object:
    return schema.as_word(value) if isinstance(value, str) else schema.as_count(value)


PATHS = schema.sequence_of(schema.as_word)
DELAY_OF_ONE = schema.members_of({name: check for name, check in DELAY_FIELDS.items() if name != "antenna"}, ("start",))
OWN: Mapping[str, schema.Check] = {
    "files": _files,
    "antenna": _in_file,
    "follow_on": schema.as_flag,
    "delays": _delays,
    "gains": _numbers,
}


@cache
def of_header() -> Mapping[str, schema.Check]:
    """Returns the checks of the header's fields, of which ``antenna`` is called ``name`` here."""
    return {name: one.check for name, one in header_fields().items() if name != "antenna"}


def _antenna_table(value: object) -> Any:
    return schema.members_of({"name": schema.as_word, **of_header(), **OWN})(value)


def _whole(value: object) -> Any:
    tables = {"antenna": schema.sequence_of(_any), "phase_centre": _any}
    return schema.members_of({**of_header(), **OWN, **tables}, needed=("antenna",))(value)
