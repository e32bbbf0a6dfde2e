"""Opens recordings of samples in any known format."""

from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...core.errors import one_line
from ..streams.samples import Source
from . import formats
from .formats.interface import SAMPLES, SampleFormat
from .header_fields import overrides_of
from .joined_bytes import joined_name
from .other_formats import name_of
from .reading import Bytes, HeaderOverrides, Tell, closed_on_error, refuse, untold
from .statements import check_plausible
from .turned import LOWER, TurnedSource


def open_samples(path: str | Path, *, tell: Tell = untold, **header: Any) -> Source:
    """Opens a recording. Its content or its suffix decides the format (``formats``).

    Args:
        header: fields of the header that it lacks, or that replace its own. Every recording has ``sample_rate_hz``
            (samples per second of each polarisation), ``antenna`` (its name), ``position_m`` (geocentric x, y, z),
            ``centre_frequency_hz`` (of the samples' band), ``sync_time_unix`` (the time at which the stream's time was
            0, in seconds since 1970; text keeps all digits), ``channel`` (the one to read, if the file has several; two
            channels of VDIF or SigMF become the polarisations) and ``sideband`` ("lower" reverses the samples' band,
            which falls with frequency; "upper" does not, whatever the header says; without it the sign of BW (DADA) or
            OBSBW (GUPPI RAW), or the TOML header, decides). Each format declares others (``header_fields``).
        tell: takes lines for the user: about a start that is not exact to a tenth of a sample, or a reversed band.

    Raises:
        UsageError: for a file that does not exist or has no known format, for an unknown field, and for a header that
            is wrong or lacks a field that was not given, in one line.
    """
    return open_joined([Path(path)], overrides_of(header), tell)


def open_joined(paths: Sequence[Path], overrides: HeaderOverrides, tell: Tell) -> Source:
    """Opens a single file, or the pieces of a recording as one.

    Raises:
        UsageError: as ``open_samples`` does, and for several files of a format without ``read_joined``.
    """
    reader: Any = must_be_known(paths[0])
    overrides.replaced.clear()  # it notes what these files have of their own
    if len(paths) > 1 and not hasattr(reader, "read_joined"):
        refuse(joined_name(paths), f"files of {reader.help} are not read as one")
    source: Source = (
        reader.read(paths[0], overrides, tell) if len(paths) == 1 else reader.read_joined(paths, overrides, tell)
    )
    with closed_on_error([source]):
        check_plausible(paths[0], source.info, overrides, tell)
    for name, own in overrides.replaced.items():
        given = _shown(overrides.given[name])
        tell(one_line(f"{joined_name(paths)}: {name}={given} replaces {_shown(own)} of its header"))
    in_header = getattr(source, "falls", "")  # the field of the header that says that the band falls
    falls = in_header if overrides.sideband is None else f"sideband={LOWER}" if overrides.sideband == LOWER else ""
    if falls:
        tell(one_line(f"{joined_name(paths)}: its band falls with frequency ({falls}): it is turned round"))
        source = TurnedSource(source)
    return source


def _shown(value: Any) -> str:
    return f"{float(value):.15g}" if isinstance(value, Fraction | float) else str(value)


def can_be_joined(path: Path) -> bool:
    """Returns whether the format of a recording can read its pieces as one file."""
    return hasattr(must_be_known(path), "read_joined")


def antennas_in(path: Path) -> tuple[list[str], int]:
    """Returns the names of a recording's antennas, and the number of channels of each. GUPPI RAW may have several.

    A format whose files have one antenna gives one empty name and 0 channels.

    Raises:
        UsageError: when it cannot be read.
    """
    antennas_of = getattr(must_be_known(path), "antennas_of", None)
    return ([""], 0) if antennas_of is None else antennas_of(path)


def must_be_known(path: Path) -> SampleFormat:
    """Returns the format of a recording.

    Raises:
        UsageError: when it cannot be read, or its format is unknown.
    """
    sample_format = format_of(path)
    if sample_format is None:
        other = name_of(path)
        refuse(path, f"it is {other or 'not a recording'}: {neither()}")
    return sample_format


def neither() -> str:
    """Returns text for a file of unknown format: "neither .. nor ..", with all formats."""
    return f"neither {' nor '.join(formats.names(SAMPLES))}"


def format_of(path: Path) -> SampleFormat | None:
    """Returns the format of a recording; None if it is unknown.

    Raises:
        UsageError: when it cannot be read.
    """
    own = [each for each in formats.that_hold(SAMPLES) if hasattr(each, "recognises")]
    with closing(Bytes(path)) as file:
        sample_format: SampleFormat | None = next((f for f in own if f.recognises(file)), None)
    return formats.find(path.suffix, SAMPLES, "read") if sample_format is None else sample_format
