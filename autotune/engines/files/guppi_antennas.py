"""The antennas of a GUPPI RAW file. Arrays write the channels of one antenna after those of the one before."""

import re
from pathlib import Path

from . import checks
from .reading import Header, HeaderOverrides, refuse


def antennas_of_header(header: Header) -> tuple[int, int]:
    """Returns the number of antennas, and the number of channels of each."""
    n_channels = header.integer("OBSNCHAN", 1, checks.MOST_CHANNELS)
    n_antennas = header.integer("NANTS", 1, n_channels, 1)
    if n_channels % n_antennas:
        refuse(header.path, f"its OBSNCHAN={n_channels} channels cannot be shared by NANTS={n_antennas} antennas")
    return n_antennas, n_channels // n_antennas


def channel_among(path: Path, overrides: HeaderOverrides, n_channels: int, n_antennas: int) -> int:
    """Returns the channel to read. With several antennas, channels count on from one antenna to the next."""
    if n_antennas > 1 and (not isinstance(overrides.channel, int) or not 0 <= overrides.channel < n_channels):
        each = n_channels // n_antennas
        refuse(
            path,
            f"it has {n_antennas} antennas of {each} channels: choose a channel of one, channel=0 to {n_channels - 1}; "
            f"those of antenna 1 are {each} to {2 * each - 1}",
        )
    return overrides.one_channel(path, n_channels)


def antenna_name(header: Header, number: int, n_antennas: int) -> str:
    """Returns the name of an antenna of the file."""
    if n_antennas == 1:
        return header.text("TELESCOP")
    names = [name.strip() for name in _antenna_names(header).split(",")]
    return names[number] if number < len(names) and names[number] else f"{header.text('TELESCOP')}{number}"


def _antenna_names(header: Header) -> str:
    """Returns the names of antennas with commas between, from ANTNMES, or from ANTNMS00 on if one card is too short."""
    parts = sorted(name for name in header.values if re.fullmatch(r"ANTNMS\d\d", name))
    return header.text("ANTNMES") or ",".join(header.text(name).strip(",") for name in parts)
