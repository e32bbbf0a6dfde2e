"""Opens recordings of samples, whatever their format."""

from pathlib import Path

from ..stream import Source
from . import raw
from .reading import Given, refuse


def open_samples(
    path: str | Path,
    *,
    sample_rate_hz: float | None = None,
    antenna: str | None = None,
    position_m: tuple[float, float, float] | None = None,
    centre_frequency_hz: float | None = None,
    sync_time_unix: float | None = None,
) -> Source:
    """Opens a recording: packed samples by their TOML header, ``x.toml``.

    Args:
        sample_rate_hz: of each polarisation. This and what follows takes the place of what the header says.
        antenna: its name.
        position_m: of the antenna, geocentric x, y, z.
        centre_frequency_hz: of the band that the samples hold.
        sync_time_unix: when the stream's time was 0.

    Raises:
        UsageError: for a file that is not there, or whose header is wrong, in one line.
    """
    given = Given(sample_rate_hz, antenna, position_m, centre_frequency_hz, sync_time_unix)
    if Path(path).suffix == ".toml":
        return raw.open_raw(Path(path), given)
    refuse(Path(path), "its format is not known: it is no header of packed samples (.toml)")
