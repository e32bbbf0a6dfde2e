"""Finds the recordings in a folder."""

from pathlib import Path

from ...core.errors import UsageError, one_line
from . import formats
from .array_file import lists_antennas
from .formats.interface import SAMPLES, VISIBILITIES, VOLTAGES
from .opening import must_be_known
from .reading import Tell, refuse
from .toml import read_toml

MOST_TOML = 1 << 26  # bytes
OF_OTHERS = {".npz", ".png", ".svg", ".pdf", ".jpg", ".json", ".html"}
OF_OTHERS |= {".txt", ".md", ".log", ".csv", ".py", ".sh", ".yaml", ".yml", ".zip", ".gz"}
TO_BE_NAMED = {".npy", ".sigmf-data", ".sigmf-collection"}  # .npy may be gains; SigMF data follow from metadata
OURS = {"delay", "antenna", "array", "phase_centre", "noise", "source"}  # tables of TOML files that are not headers


def recordings_in(folder: Path, tell: Tell) -> list[Path]:
    """Returns the recordings in a folder, by name: TOML headers, and files whose content is a recording.

    A file that a header names does not count again. Hidden files, files whose suffix shows another purpose, arrays, and
    TOML with delays, antennas or a sky are left out without a word. ``tell`` takes a line about each other file that is
    left out.

    Raises:
        UsageError: when the folder cannot be read.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir())
    except OSError as error:
        refuse(folder, f"it cannot be read: {error.strerror}")
    recordings, named = set(), set()
    for path in paths:
        if path.suffix != ".toml":
            continue
        try:
            content = read_toml(path, MOST_TOML)
        except UsageError as error:
            tell(f"{error}; it is left out")
            continue
        if "file" in content:
            recordings.add(path)
            named.add(str(content["file"]))
        elif lists_antennas(content):
            tell(one_line(f"{path}: it is the file of an array, and left out: give it instead of its folder"))
        elif content and not OURS & content.keys():
            tell(one_line(f"{path}: it is not a header of samples, and left out"))
    for path in paths:
        if path.suffix == ".toml" or path.name in named or _is_other(path.suffix):
            continue
        try:
            must_be_known(path)
            recordings.add(path)
        except UsageError as error:
            tell(f"{error}; it is left out")
    return sorted(recordings)


def _is_other(suffix: str) -> bool:
    """Returns whether a suffix shows that a file is not a recording."""
    # the other formats hold samples, too
    suffixes = {*formats.suffixes(VOLTAGES, "read"), *formats.suffixes(VISIBILITIES, "write")}
    is_made = suffix in OF_OTHERS | suffixes and formats.find(suffix, SAMPLES, "read") is None
    return is_made or suffix in TO_BE_NAMED
