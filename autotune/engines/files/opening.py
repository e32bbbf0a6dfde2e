"""Opens recordings of samples, whatever their format."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...core.errors import one_line
from ..streams.samples import Source
from . import formats
from .formats.interface import SAMPLES, SampleFormat
from .joined_bytes import joined_name
from .reading import Bytes, HeaderOverrides, Tell, refuse, untold
from .turned import LOWER, TurnedSource


def open_samples(
    path: str | Path,
    *,
    sample_rate_hz: float | None = None,
    antenna: str | None = None,
    position_m: tuple[float, float, float] | None = None,
    centre_frequency_hz: float | None = None,
    sync_time_unix: Fraction | float | str | None = None,
    channel: int | tuple[int, int] | None = None,
    threads: tuple[int, ...] | None = None,
    n_pols: int | None = None,
    order: str | None = None,
    sideband: str | None = None,
    tell: Tell = untold,
) -> Source:
    """Opens a recording, whose format its content or its name says (``formats``).

    Args:
        sample_rate_hz: of each polarisation. This and the next four take the place of what a header says.
        antenna: its name.
        position_m: of the antenna, geocentric x, y, z.
        centre_frequency_hz: of the band that the samples hold.
        sync_time_unix: when the stream's time was 0, in seconds since 1970; as text with all of its digits.
        channel: which one to read, of a file with several. Two, of VDIF: they are the polarisations.
        threads: of VDIF, which are the polarisations, if there are others.
        n_pols: of GUPPI RAW whose NPOL is 2, which may mean 1 or 2.
        order: of DADA with several channels and polarisations that does not say it, TFP or TPF.
        sideband: "lower", whose samples' band falls with frequency, is turned round; "upper" is not, whatever the
            header says. Without it the sign of BW (DADA) or OBSBW (GUPPI RAW) says it, or the TOML header.
        tell: takes lines about what was found: a start that is not known to a tenth of a sample, a band that
            was turned round.

    Raises:
        UsageError: for a file that is not there, is of no known format, or whose header is wrong or lacks what was not
            given, in one line.
    """
    given = HeaderOverrides(
        sample_rate_hz,
        antenna,
        position_m,
        centre_frequency_hz,
        sync_time_unix,
        channel,
        threads,
        n_pols,
        order,
        sideband,
    )
    return open_joined([Path(path)], given, tell)


def open_joined(paths: Sequence[Path], given: HeaderOverrides, tell: Tell) -> Source:
    """Opens files that are one recording, cut into pieces, as one; or a single file.

    Raises:
        UsageError: as ``open_samples`` does; and for several files of a format without ``read_joined``.
    """
    reader: Any = must_be_known(paths[0])
    if len(paths) > 1 and not hasattr(reader, "read_joined"):
        refuse(joined_name(paths), f"files of {reader.help} are not read as one")
    source: Source = reader.read(paths[0], given, tell) if len(paths) == 1 else reader.read_joined(paths, given, tell)
    in_header = getattr(source, "falls", "")  # how the header has that the band falls
    falls = in_header if given.sideband is None else f"sideband={LOWER}" if given.sideband == LOWER else ""
    if not falls:
        return source
    tell(one_line(f"{joined_name(paths)}: its band falls with frequency ({falls}): it is turned round"))
    return TurnedSource(source)


def can_be_joined(path: Path) -> bool:
    """Returns whether the format of a recording reads pieces of one as one file."""
    return hasattr(must_be_known(path), "read_joined")


def antennas_in(path: Path) -> tuple[list[str], int]:
    """Returns the names of a recording's antennas, and the channels of each, where there are several: GUPPI RAW may.

    Of a format whose files have one antenna there is one, without a name.

    Raises:
        UsageError: when it cannot be read.
    """
    antennas_of = getattr(must_be_known(path), "antennas_of", None)
    return ([""], 0) if antennas_of is None else antennas_of(path)


def must_be_known(path: Path) -> SampleFormat:
    """Returns the format of a recording.

    Raises:
        UsageError: when it cannot be read, or no format has it.
    """
    found = format_of(path)
    if found is None:
        refuse(path, f"it is not a recording: {neither()}")
    return found


def neither() -> str:
    """Returns what a file is not that no format has."""
    return f"neither {' nor '.join(formats.names(SAMPLES))}"


def format_of(path: Path) -> SampleFormat | None:
    """Returns the format of a recording; None if no format has it.

    Raises:
        UsageError: when it cannot be read.
    """
    own = [each for each in formats.that_hold(SAMPLES) if hasattr(each, "recognises")]
    file = Bytes(path)
    try:
        found: SampleFormat | None = next((f for f in own if f.recognises(file)), None)
    finally:
        file.close()
    if found is None:
        found = formats.find(path.suffix, SAMPLES, "read")
    return found
