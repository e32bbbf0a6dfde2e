"""Arrays in TOML: each antenna's files, in the order of time, and the header fields that are missing or wrong.

docs/engines-arrays.md has an example, and lists the keys: the settings of ``ArrayAntenna``, and all fields of a header
(``header_fields``). Those in front of the tables hold for all antennas that do not set them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from ...core import schema
from ...core.errors import UsageError
from ...system.setting import Setting, file_checks, in_files
from ..corrections.delays import BEFORE, DelayModel, Piece
from ..streams.phase_centre import PhaseCentre
from . import checks
from .delay_file import DELAY_FIELDS, N_POLS
from .header_fields import header_fields, overrides_of
from .phase_centre_text import phase_centre
from .reading import refuse
from .toml import checked, read_toml

MOST_BYTES = 1 << 26


# ---------------------------------------------------------------------- values of fields
def _files(value: object) -> Any:
    """Checks for a path, a list of paths, or two lists, one for each polarisation."""
    if isinstance(value, list) and any(isinstance(each, list) for each in value):
        files = schema.sequence_of(PATHS, N_POLS)(value)
    else:
        files = (PATHS([value] if isinstance(value, str) else value),)
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


@dataclass(frozen=True)
class ArrayAntenna:
    """The table of an antenna in an array's file."""

    files: Annotated[
        tuple[tuple[Path, ...], ...],
        Setting(
            "Paths, relative to the file's folder: one, or several in the order of time; or, where each polarisation "
            'has its own files, a list for each: `[["x.dada"], ["y.dada"]]`.',
            _files,
        ),
    ]
    header: Mapping[str, Any]  # fields of the header
    name: Annotated[str, Setting("The antenna's name.", schema.as_word, "the one in the header")] = ""
    in_file: Annotated[
        str | int | None,
        Setting("The antenna of files that hold several: its name in them, or its number.", _in_file, key="antenna"),
    ] = None
    follow_on: Annotated[
        bool,
        Setting("True: each file begins where the one before ends, whatever headers say.", schema.as_flag),
    ] = False
    delays: Annotated[
        tuple[DelayModel, ...] | None,
        Setting(
            "In samples: one number, one for each polarisation, or pieces `[{start = 0, delay = 3.5, rate = 1e-9}]` as "
            "in [a file of delays](engines-delays.md).",
            _delays,
        ),
    ] = None
    gains: Annotated[
        tuple[float, ...] | None, Setting("A number, or one for each polarisation; for all antennas or none.", _numbers)
    ] = None


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
    counts = Counter(antenna.name for antenna in antennas)
    wrong += [f"{n} antennas have the name {name!r}" for name, n in counts.items() if name and n > 1]
    if wrong or not tables:
        refuse(path, "; ".join(wrong) or "it has no [[antenna]]")
    direction = None if centre is None else checked(path, "[phase_centre]", phase_centre, centre)
    return ArrayFile(path, tuple(antennas), direction)


def _antenna(folder: Path, common: Mapping[str, object], table: object) -> ArrayAntenna:
    """Checks the table of one antenna. Raises Unsound or UsageError."""
    values = {**common, **schema.members_of({**file_checks(ArrayAntenna), **of_header()})(table)}
    if "files" not in values:
        raise schema.Unsound("lacks files")
    values["files"] = tuple(tuple(folder / file for file in files) for files in values["files"])
    header = {name: values.pop(name) for name in sorted(of_header().keys() & values.keys())}
    overrides_of(header)
    return ArrayAntenna(header=header, **{in_files(ArrayAntenna)[key].name: value for key, value in values.items()})


@cache
def of_header() -> Mapping[str, schema.Check]:
    """Returns the checks of the header's fields, of which ``antenna`` is called ``name`` here."""
    return {name: one.check for name, one in header_fields().items() if name != "antenna"}


def _whole(value: object) -> Any:
    tables = {"antenna": schema.sequence_of(lambda table: table), "phase_centre": lambda table: table}
    of_all = {key: check for key, check in file_checks(ArrayAntenna).items() if key != "name"}
    return schema.members_of({**of_all, **of_header(), **tables}, needed=("antenna",))(value)
