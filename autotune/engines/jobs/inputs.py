"""Turns what people have into sources of samples: paths of recordings, NumPy arrays, or a source of their own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import UsageError
from ..files.header_fields import overrides_of
from ..files.opening import neither
from ..files.paired import open_paired
from ..files.reading import Tell, packet_of, start_of, tell_coarse, untold
from ..files.recordings_in import recordings_in
from ..files.scans import Late
from ..files.statements import check_plausible
from ..files.toml import read_toml
from ..files.turned import LOWER, TurnedSource
from ..streams.in_memory import ArraySource
from ..streams.samples import COMPLEX_BITS, SampleInfo, Source

HeaderFields = Mapping[str, Any]  # fields of a header, by name
MOST_TOML = 1 << 26  # bytes
INTEGERS = {np.dtype(np.int8): 8, np.dtype(np.int16): 16}


@dataclass(frozen=True)
class Input:
    """The samples of one antenna. ``again`` opens them from their beginning; None if they can be read only once."""

    source: Source
    again: Callable[[], Source] | None
    late: Sequence[Late] = ()  # the places where the fraction of a sample in their clock changes
    n_recorded: int | None = None  # samples of each polarisation without the gaps between files; None without gaps

    @property
    def info(self) -> SampleInfo:
        return self.source.info

    @property
    def n_to_read(self) -> int | None:
        """Returns the number of samples of each polarisation to read; None if it is not known."""
        return self.n_recorded or self.info.n_samples


def antenna_input(samples: Any, header: HeaderFields, name: str = "", tell: Tell = untold) -> Input:
    """Opens the samples of one antenna.

    Args:
        samples: a path that ``open_samples`` opens; an array, int8, int16 or complex64, [n] or [n_pols, n]; or a
            ``Source``.
        header: fields that the file's header lacks, or all fields of an array: those of ``SampleInfo`` that
            ``open_samples`` takes, by name.
        name: a name for the antenna if its header has none.
        tell: takes lines for the user.

    Raises:
        UsageError: for other types, and for what ``open_samples`` refuses.
    """
    if isinstance(samples, str | Path):
        return files_input([[Path(samples)]], header, name, tell)
    if isinstance(samples, np.ndarray):
        rows, info = _packed(samples, header, name)
        check_plausible(Path("the array"), info, overrides_of(header), tell)
        if header.get("sync_time_unix") is not None:
            tell_coarse(Path("the array"), info, start_of(header["sync_time_unix"]), tell)
        make = partial(_array_source, rows, info, header.get("sideband") == LOWER)
        return Input(make(), make)
    if hasattr(samples, "read") and hasattr(samples, "info"):
        return Input(samples, None)
    raise UsageError(f"samples are a path, a NumPy array or a source of samples, not {type(samples).__name__}")


def recordings(paths: Sequence[str | Path], tell: Tell) -> list[Path]:
    """Returns the paths that may be recordings. A folder stands for the recordings in it, by name.

    TOML files that are not headers of samples are left out.

    Raises:
        UsageError: when no path is left.
    """
    files = list(map(Path, paths))
    kept = []
    for path in files:
        if path.is_dir():
            kept += recordings_in(path, tell)
        elif len(files) > 1 and _is_other_toml(path):
            tell(f"{path}: it is not a header of samples, and left out")
        else:
            kept.append(path)
    if not kept:
        where = ", ".join(map(str, paths)) or "nothing"
        raise UsageError(f"there is no recording in {where}: {neither()}")
    return kept


def _is_other_toml(path: Path) -> bool:
    """Returns whether a file is TOML that names no file of samples: delays, or a simulated sky."""
    return path.suffix == ".toml" and path.is_file() and "file" not in read_toml(path, MOST_TOML)


def files_input(
    files: Sequence[Sequence[Path]], header: HeaderFields, name: str, tell: Tell, follow_on: bool = False
) -> Input:
    """Opens the files of one antenna with ``open_paired``. ``name`` is for an antenna whose header has no name."""
    source = open_paired(files, overrides_of(header), tell, follow_on)
    if not source.info.antenna:
        source.info = replace(source.info, antenna=name or files[0][0].stem)
    overrides = overrides_of({**header, "antenna": source.info.antenna})
    again = partial(open_paired, files, overrides, untold, follow_on)
    return Input(source, again, getattr(source, "late", ()), getattr(source, "n_recorded", None))


def _array_source(rows: np.ndarray, info: SampleInfo, falls: bool) -> Source:
    source = ArraySource(rows, info)
    return TurnedSource(source) if falls else source


def _packed(samples: np.ndarray, header: HeaderFields, name: str) -> tuple[np.ndarray, SampleInfo]:
    rows = np.atleast_2d(samples)
    is_complex = rows.dtype == np.complex64
    if rows.ndim != 2 or not 1 <= len(rows) <= 2 or not (is_complex or rows.dtype in INTEGERS):
        kind = f"{samples.dtype} {list(samples.shape)}"
        raise UsageError(f"samples are {kind}, must be int8, int16 or complex64, [n] or [n_pols, n] with 1 or 2 rows")
    bits = COMPLEX_BITS if is_complex else INTEGERS[rows.dtype]
    info = SampleInfo(
        sample_bits=bits,
        n_pols=len(rows),
        sample_rate_hz=1.0,
        packet=packet_of(Path("the array"), rows.shape[1], bits),
        antenna=name,
    )
    if is_complex:
        return np.ascontiguousarray(rows), overrides_of(header).over(info)
    big_endian = np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder(">")))
    return big_endian.view(np.uint8), overrides_of(header).over(info)
