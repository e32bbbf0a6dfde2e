"""Gains of antennas in NumPy files: an array for each antenna in ``.npz``, by its name, or one for all in ``.npy``.

An array is complex or real, [n_channels, n_pols], [n_channels] for both polarisations, or a single number. In ``.npz``
the name "*" stands for all antennas that are not named.
"""

import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from ...core import schema
from ...core.errors import UsageError
from ..corrections.gains import Gains
from . import checks
from .reading import must_be_file, refuse

MAGIC = b"\x93NUMPY\x01\x00"  # includes the version, which np.save raises only for very long headers
HEADER = re.compile(r"\{'descr': (.+), 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*")
# damage makes zipfile raise these
DAMAGE = ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError
NUMBER = re.compile(r"'([<>|][fciu]\d\d?)'")


def read_gains(path: str | Path, n_channels: int, n_pols: int) -> dict[str, Gains]:
    """Returns gains by the antenna's name. ``checks.ALL_OTHERS``, "*", stands for the antennas that are not named.

    Raises:
        UsageError: for a file that cannot be read, is damaged or has another format, and for an array of another shape,
            without numbers, or with a value that is not finite. The text names the file and the array.
    """
    path = Path(path)
    if path.suffix not in (".npz", ".npy"):
        refuse(path, "its name must end in .npz, an array for each antenna, or .npy, one array for all")
    must_be_file(path)
    try:
        if path.suffix == ".npy":
            with open(path, "rb") as file:
                return {checks.ALL_OTHERS: _gains(file, n_channels, n_pols)}
        with zipfile.ZipFile(path) as archive:
            return {name: _of_antenna(archive, name, n_channels, n_pols) for name in _names(archive)}
    except OSError as error:
        refuse(path, f"it cannot be read: {error.strerror or error}")
    except (UsageError, schema.Unsound) as error:
        refuse(path, str(error))
    except DAMAGE as error:
        refuse(path, f"it is damaged, or not a NumPy file: {error}")


def _names(archive: zipfile.ZipFile) -> list[str]:
    members = archive.namelist()
    names = [schema.as_word(member.removesuffix(".npy")) for member in members]
    if len(set(names)) < len(names) or not 0 < len(names) <= checks.MOST_ANTENNAS:
        raise UsageError(f"it has {len(names)} arrays, {len(set(names))} different names: each antenna needs its own")
    return names


def _of_antenna(archive: zipfile.ZipFile, name: str, n_channels: int, n_pols: int) -> Gains:
    try:
        with archive.open(f"{name}.npy") as file:
            return _gains(file, n_channels, n_pols)
    except KeyError:
        raise UsageError(f"{name!r} is not an array; each member must be x.npy, where x is an antenna's name") from None
    except UsageError as error:
        raise UsageError(f"antenna {name!r}: {error}") from None


def _gains(file: IO[bytes], n_channels: int, n_pols: int) -> Gains:
    """Reads one array, but no more bytes than an allowed shape has."""
    start = file.read(len(MAGIC) + 2)
    header = HEADER.fullmatch(file.read(int.from_bytes(start[len(MAGIC) :], "little")).decode("latin-1"))
    if not start.startswith(MAGIC) or header is None:
        raise UsageError("it does not begin like an array: save it with np.save or np.savez")
    shape = tuple(int(n) for n in header[3].split(",") if n.strip())
    if shape not in ((), (n_channels,), (n_channels, n_pols)):
        wanted = f"[{n_channels}, {n_pols}], [{n_channels}] or []"
        raise UsageError(f"the gains have the shape {list(shape)}, must be {wanted}")
    number = NUMBER.fullmatch(header[1])
    if number is None:
        raise UsageError(f"the gains are of the type {schema.value_text(header[1])}, must be numbers")
    dtype = np.dtype(number[1])
    n_bytes = math.prod(shape) * dtype.itemsize
    data = file.read(n_bytes)
    if len(data) < n_bytes or file.read(1):  # reading on makes zipfile compare the checksum
        raise UsageError(
            f"the gains are not the {n_bytes} bytes that their header says: the file was cut off or damaged"
        )
    values = np.frombuffer(data, dtype).reshape(shape, order="F" if header[2] == "True" else "C")
    with np.errstate(over="ignore"):  # Gains refuses infinite values
        small = values.astype(np.complex64)
    return Gains(n_channels, n_pols, small[:, np.newaxis] if small.ndim == 1 else small)
