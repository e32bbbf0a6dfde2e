"""Opens recordings of samples, whatever their format."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from ...core.errors import one_line
from ..streams.samples import Source
from .dada import DadaSamples, is_dada, open_dada
from .guppi import GuppiSamples, antennas_of, is_guppi, open_guppi
from .raw import RawSamples, open_raw
from .reading import Bytes, Given, Tell, refuse, untold
from .turned import LOWER, Turned
from .vdif import VdifSamples, open_vdif
from .vdif_frames import is_vdif

START = 4096  # bytes that say what a file is
UNKNOWN = "its content is none of VDIF, DADA and GUPPI RAW"


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
    """Opens a recording: packed samples by their TOML header (``x.toml``), VDIF, DADA or GUPPI RAW by content.

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
    path = Path(path)
    given = Given(
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
    source = _opened(path, given, tell)
    falls = source.falls if sideband is None else f"sideband={LOWER}" if sideband == LOWER else ""
    if not falls:
        return source
    tell(one_line(f"{path}: its band falls with frequency ({falls}): it is turned round"))
    return Turned(source)


def antennas_in(path: Path) -> tuple[int, int]:
    """Returns how many antennas a recording has, and the channels of each where there are several: GUPPI RAW may.

    Raises:
        UsageError: when it cannot be read.
    """
    return antennas_of(path) if path.suffix != ".toml" and opener_of(path) is open_guppi else (1, 0)


def _opened(path: Path, given: Given, tell: Tell) -> RawSamples | DadaSamples | GuppiSamples | VdifSamples:
    """Opens a recording as it is. ``falls`` of the source says how its header has that the band falls; "" if not."""
    if path.suffix == ".toml":
        return open_raw(path, given, tell)
    opens = opener_of(path)
    if opens is None:
        refuse(path, f"{UNKNOWN}, and its name is not that of a TOML header, x.toml")
    return opens(path, given, tell)


def opener_of(path: Path) -> Callable[[Path, Given, Tell], DadaSamples | GuppiSamples | VdifSamples] | None:
    """Returns what opens a file of such content; None if no format has it.

    Raises:
        UsageError: when it cannot be read.
    """
    file = Bytes(path)
    try:
        start, is_frames = file.take(0, START).tobytes(), is_vdif(file)
    finally:
        file.close()
    if is_dada(start):
        return open_dada
    if is_guppi(start):
        return open_guppi
    return open_vdif if path.suffix == ".vdif" or is_frames else None
