"""Names formats that recordings and their companions come in, and that nothing here reads, by their first bytes."""

import re
from contextlib import closing
from pathlib import Path

import numpy as np

from .reading import Bytes

STARTS = {  # the first bytes of a file -> its format
    b"\xde\xc0\xde\x5c": "LWA (DRX, TBN, TBX or correlator frames)",
    b"\xde\xc0\xde\xc0": "LWA's spectrometer (DR spectra)",
    b"SIMPLE  =": "FITS (FITS-IDI, UVFITS or PSRFITS)",
    b"\x0c\x00\x00\x00HEADER_START": "SIGPROC (filterbank)",
    b"\x89HDF\r\n\x1a\n": "HDF5 of another kind",
    b"RIFF": "RIFF (WAV)",
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "ZIP",
}
TRACKS = (64, 32, 16)  # numbers of tracks that Mark 4 has
FRAME_BITS = 20_000  # bits of a frame in each track
SYNC_BITS = 32  # bits of the sync word in each track, all 1
LOOKED_AT = 2 * FRAME_BITS * TRACKS[0] // 8 + 1024  # bytes, which hold a whole frame of Mark 4


def name_of(path: Path) -> str:
    """Returns the name of a file's format; "" if it is unknown. Raises UsageError when it cannot be read."""
    with closing(Bytes(path)) as file:
        data = file.take(0, LOOKED_AT)
    start = data[:512].tobytes()
    named = next((name for begin, name in STARTS.items() if start.startswith(begin)), "")
    if not named and start[257:262] == b"ustar":
        return "tar"
    return named or _mark_4(data) or _gsb(path, start)


def _mark_4(data: np.ndarray) -> str:
    """Returns the name of Mark 4 for frames of a length, each with a header whose sync words are 1 in all tracks."""
    for n_tracks in TRACKS:
        n_frame, n_sync = FRAME_BITS * n_tracks // 8, SYNC_BITS * n_tracks // 8
        both = (data[:-n_frame] == 255) & (data[n_frame:] == 255)
        edges = np.flatnonzero(np.diff(both, prepend=False, append=False)).reshape(-1, 2)
        n_alike = np.diff(edges)
        if ((n_alike >= n_sync) & (n_alike < 2 * n_sync)).any():
            return f"Mark 4 of {n_tracks} tracks"
    return ""


def _gsb(path: Path, start: bytes) -> str:
    """Returns the name of GMRT's GSB for a file of timestamps, or samples beside one."""
    beside = path.with_name(path.name.split(".")[0] + ".timestamp")
    is_time = re.match(rb"\d{4}( \d\d){5} ", start) is not None
    return "GSB (GMRT)" if is_time or (beside != path and beside.is_file()) else ""
