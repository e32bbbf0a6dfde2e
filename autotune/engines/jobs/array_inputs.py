"""Opens the antennas of a correlation, by path or from an array's file. One error lists all missing fields."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ..corrections.delays import DelayModel
from ..files import formats
from ..files.array_file import ArrayAntenna, ArrayFile, is_array_file, read_array
from ..files.formats.interface import VISIBILITIES
from ..files.lacking import look_at, not_said
from ..files.opening import antennas_in
from ..files.reading import LackingError, Tell, refuse
from ..streams.phase_centre import PhaseCentre
from ..streams.samples import SampleInfo
from .band_settings import Bands
from .inputs import Input, antenna_input, files_input, recordings

OF_ONE = ("antenna", "position_m")  # no two antennas can share these header fields
SAY_EACH = "say those of each in array.toml, which `autotune array` begins"


@dataclass(frozen=True)
class Needs:
    """The fields that a file of visibilities needs of each antenna."""

    path: Path | None
    names: tuple[str, ...] = ()

    def not_said_by(self, info: SampleInfo, lacking: Sequence[LackingError] = ()) -> list[str]:
        """Returns the needed fields that an antenna's header lacks, without those that ``lacking`` already names."""
        reported = {each.field for each in lacking}
        return [name for name in not_said(info, self.names) if name not in reported]


def needs_of(path: Path | None) -> Needs:
    """Returns the header fields that the format of this file of visibilities needs."""
    format_of_file = None if path is None else formats.find(path.suffix, VISIBILITIES, "write")
    return Needs(path, tuple(getattr(format_of_file, "needs", ())))


@dataclass(frozen=True)
class Opened:
    """The antennas to correlate, the bands to make of them, and the phase centre."""

    inputs: list[Input]
    bands: Bands
    phase_centre: PhaseCentre | None = None  # the one in the file of an array


def open_antennas(
    inputs: object, bands: Bands, header: Mapping[str, Any], needs: Needs, tell: Tell, stack: ExitStack
) -> Opened:
    """Opens recordings, folders of them, the file of an array, arrays of samples or sources; ``stack`` closes them.

    Args:
        header: fields that the headers of all antennas lack; empty with the file of an array.
        needs: fields that the output needs.

    Raises:
        UsageError: when there are no antennas, or one cannot be opened or lacks a needed field.
    """
    paths = [inputs] if isinstance(inputs, str | Path) else list(inputs)  # type: ignore[call-overload]
    if not paths:
        raise UsageError("there are no antennas to correlate")
    if (array := _array_of(paths)) is not None:
        if header:
            refuse(array.path, f"{', '.join(header)} cannot be given as well: write it in front of the file's tables")
        opened = _open_array(array, needs, tell, stack)
        return Opened(opened, _bands_of(array, bands, opened), array.phase_centre)
    are_files = all(isinstance(each, str | Path) for each in paths)
    wanted = [
        (samples, header_fields)
        for samples in (recordings(paths, tell) if are_files else paths)
        for header_fields in _headers(samples, header)
    ]
    if own := [name for name in OF_ONE if name in header and len(wanted) > 1]:
        raise UsageError(f"{own[0]} is of one antenna, and there are {len(wanted)}: {SAY_EACH}")
    antennas: list[Input] = []
    for samples, header_fields in wanted:
        antennas.append(antenna_input(samples, header_fields, f"m{len(antennas):03}", tell))
        stack.callback(antennas[-1].source.close)
    lacking = [
        f"{each.info.antenna} lacks {_list(lacks)}" for each in antennas if (lacks := needs.not_said_by(each.info))
    ]
    if lacking:
        refuse(needs.path or Path(), f"it needs what is not known: {'; '.join(lacking)}; {SAY_EACH}")
    return Opened(antennas, bands)


def _headers(samples: object, header: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns a header for each antenna of a recording. In a file of several antennas, ``channel`` tells them apart."""
    names, n_channels = antennas_in(Path(samples)) if isinstance(samples, str | Path) else ([""], 0)
    if len(names) == 1:
        return [header]
    path = Path(str(samples))
    channels = [_one_channel(path, header, len(names), n_channels, number) for number in range(len(names))]
    return [{**header, "channel": channel} for channel in channels]


def _array_of(paths: Sequence[Any]) -> ArrayFile | None:
    """Returns the array if the input is its file, else None. Raises UsageError for such a file among other inputs."""
    array_files = [path for path in paths if isinstance(path, str | Path) and is_array_file(Path(path))]
    if array_files and len(paths) > 1:
        refuse(Path(array_files[0]), "it is the file of an array, which is given alone: name all files in it")
    return read_array(Path(array_files[0])) if array_files else None


def _open_array(array: ArrayFile, needs: Needs, tell: Tell, stack: ExitStack) -> list[Input]:
    """Opens the antennas of an array's file. Raises UsageError that lists in one line what each antenna lacks."""
    inputs, wrong = [], []
    for number, antenna in enumerate(array.antennas):
        name = antenna.name or f"m{number:03}"
        header = {**antenna.header, **({"antenna": antenna.name} if antenna.name else {})}
        try:
            header |= _channel_of(antenna, header)
            inputs.append(files_input(antenna.files, header, name, tell, antenna.follow_on))
        except LackingError as error:
            wrong.append(f"[[antenna]] {name}: {antenna.files[0][0]}: {_all_lacking(error, antenna, header, needs)}")
        except UsageError as error:
            wrong.append(f"[[antenna]] {name}: {error}")
        else:
            stack.callback(inputs[-1].source.close)
            if lacks := needs.not_said_by(inputs[-1].info):
                wrong.append(f"[[antenna]] {inputs[-1].info.antenna} lacks {_list(lacks)}, which {needs.path} needs")
    if wrong:
        refuse(array.path, "; ".join(wrong))
    return inputs


def _bands_of(array: ArrayFile, bands: Bands, inputs: Sequence[Input]) -> Bands:
    """Returns bands with the delays and the gains from an array's file.

    Raises:
        UsageError: when ``bands`` has them, too, or only some antennas of the file have gains.
    """
    names = [each.info.antenna for each in inputs]
    delays = {name: antenna.delays for name, antenna in zip(names, array.antennas, strict=True)}
    gains = {name: antenna.gains for name, antenna in zip(names, array.antennas, strict=True)}
    for what, of_antennas, besides in (("delays", delays, bands.delays), ("gains", gains, bands.gains)):
        if besides is not None and any(each is not None for each in of_antennas.values()):
            refuse(array.path, f"it has {what} of antennas, and {what} are given as well: leave one of the two out")
    if any(each is not None for each in delays.values()):
        none = [DelayModel(), DelayModel()]
        bands = replace(bands, delays={name: none if each is None else each for name, each in delays.items()})
    if any(each is not None for each in gains.values()):
        if lacking := [name for name, each in gains.items() if each is None]:
            refuse(array.path, f"some of its antennas have gains, but {', '.join(lacking)} lacks them")
        bands = replace(bands, gains={name: np.array([each]) for name, each in gains.items()})
    return bands


def _channel_of(antenna: ArrayAntenna, header: Mapping[str, Any]) -> dict[str, int]:
    """Returns the channel to read as a header field; empty when the file holds one antenna.

    Raises:
        UsageError: when a file is not there, or the choice of an antenna in it is missing or wrong.
    """
    for file in chain(*antenna.files):
        if not file.exists():
            refuse(file, "it is not there; paths in the file of an array begin at its folder")
    path = antenna.files[0][0]
    names, n_channels = antennas_in(path)
    if len(names) == 1 and antenna.in_file in (None, 0, names[0]):
        return {}
    number = antenna.in_file
    if isinstance(number, str):
        number = names.index(number) if number in names else None
    if number is None or not 0 <= number < len(names):
        problem = "none is chosen" if antenna.in_file is None else f"antenna = {antenna.in_file!r} is not one of them"
        refuse(path, f"it has the antennas {', '.join(names)}, and {problem}")
    return {"channel": _one_channel(path, header, len(names), n_channels, number)}


def _list(names: Sequence[str]) -> str:
    """Returns the names as text: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _one_channel(path: Path, header: Mapping[str, Any], n_antennas: int, n_channels: int, antenna: int) -> int:
    """Returns the channel of a file to read for one of its antennas. Raises LackingError when ``header`` names none."""
    channel = header.get("channel", 0 if n_channels == 1 else None)
    if not isinstance(channel, int) or not 0 <= channel < n_channels:
        why = (
            f"it has {n_antennas} antennas of {n_channels} channels each: choose one channel of each, channel=0 to "
            f"{n_channels - 1}"
        )
        raise LackingError(path, why, "channel", antenna * n_channels)
    return antenna * n_channels + channel


def _all_lacking(error: LackingError, antenna: ArrayAntenna, header: Mapping[str, Any], needs: Needs) -> str:
    """Returns an error's text, followed by the other fields that an antenna's header lacks or that the output needs."""
    try:
        look = look_at(antenna.files[0][0], {**header, error.field: error.example})
    except UsageError:
        return error.why
    lacks = needs.not_said_by(look.info, look.lacking)
    more = [f"{needs.path} also needs {_list(lacks)}"] if lacks else []
    return "; ".join([error.why, *(each.why for each in look.lacking), *more])
