"""HDF5 files that grow heap by heap, and stay readable after a kill or on a full disk.

A file is written in HDF5's mode for one writer and many readers (SWMR), in which the file on disk is consistent at any
time: it may be read while it grows, and after the writer was killed (h5py: ``h5py.File(path, "r", swmr=True)``). Space
is reserved before each write, so that a full disk is noticed before HDF5 can write half of something. The datasets of a
file grow together; ``timestamps`` grows last, and its length is the number of complete elements.
"""

import ctypes
import errno
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import schema
from ..streams.phase_centre import PhaseCentre
from ..streams.times import stored_time
from . import checks
from .phase_centre_text import phase_centre_text
from .reading import must_be_file, refuse, refuse_existing

if TYPE_CHECKING:
    import h5py

FORMAT, TIMESTAMPS = "format", "timestamps"
UNWRITTEN = -(2**63)  # the fill value of timestamps: room was made, but the writer ended before it wrote one
CHUNK_BYTES, SMALL_BYTES = 1 << 20, 1 << 16  # about the bytes of a chunk, and of one with small elements
SMALL_ELEMENT = 1 << 12
RESERVED_BYTES = 1 << 16  # room for HDF5's metadata of the datasets
MOST_TOGETHER = 4096  # the most elements of a chunk
SUPERBLOCK = b"\x89HDF\r\n\x1a\n\x03"  # signature and version
MOST_ATTEMPTS = 20  # attempts to read metadata that a writer may be changing
OPEN = 4  # the flag of a file that is written in SWMR mode
CANNOT_RESERVE = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}  # errors of file systems that cannot reserve space


def package(path: Path) -> Any:
    """Returns h5py.

    Raises:
        UsageError: when it is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        refuse(path, f"HDF5 files need h5py ({error}): pip install h5py, or autotune's extra files")
    return h5py


@contextmanager
def one_line_errors(path: Path, what: str) -> Iterator[None]:
    """Turns h5py's errors about a file into one line."""
    try:
        yield
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, MemoryError) as error:
        refuse(path, f"{what}: {' '.join(str(error).split())[:200]}")


# ---------------------------------------------------------------------- writing
class GrowingFile:
    """An HDF5 file of datasets that grow together along their first axis.

    Args:
        path: the new file, which must not exist.
        kind: its attribute ``format``.
        attributes: other attributes of the file; those that are None are left out.
        groups: the attributes of each group, by its name.
        datasets: the dtype of each dataset, and the shape of its elements, by name.

    Raises:
        UsageError: when the file exists or cannot be made.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        attributes: Mapping[str, object],
        groups: Mapping[str, Mapping[str, object]],
        datasets: Mapping[str, tuple[Any, tuple[int, ...]]],
    ) -> None:
        self.path, self.n = path, 0
        self._last: int | None = None  # the newest timestamp
        self._made = {name: (np.dtype(dtype), shape) for name, (dtype, shape) in datasets.items()}
        self._made[TIMESTAMPS] = (np.dtype(np.int64), ())
        chunks = [(dtype.itemsize, *_chunk(dtype, shape)) for dtype, shape in self._made.values()]
        self._chunk_bytes = sum(math.prod(chunk) for chunk in chunks)
        h5py = package(path)
        if path.exists():
            refuse_existing(path)
        with one_line_errors(path, "it cannot be made"):
            self._file = h5py.File(path, "x", libver="latest")
        try:
            with one_line_errors(path, "it cannot be made"):
                self._reserve(0)
                _set(self._file, {FORMAT: kind, **attributes})
                for name, values in groups.items():
                    _set(self._file.create_group(name), values)
                for name, (dtype, shape) in self._made.items():
                    most, chunk = (None, *shape), _chunk(dtype, shape)
                    fill = UNWRITTEN if name == TIMESTAMPS else 0
                    self._file.create_dataset(name, (0, *shape), dtype, maxshape=most, chunks=chunk, fillvalue=fill)
                self._file.swmr_mode = True
        except BaseException:
            self._file.close()
            path.unlink()  # this call made it, and it is empty
            raise

    def append(self, timestamps: np.ndarray, **arrays: np.ndarray) -> None:
        """Append arrays [n, ..] to the datasets, and ``timestamps``, int64 [n]. Readers see them afterwards.

        Raises:
            UsageError: when they cannot be stored, or timestamps do not rise; earlier elements stay in the file.
        """
        n = len(timestamps)
        if not n:
            return
        times = timestamps if self._last is None else np.concatenate([[self._last], timestamps])
        if (np.diff(times) <= 0).any():
            refuse(self.path, f"timestamps must rise: {schema.value_text(str(times.tolist()))}")
        with one_line_errors(self.path, f"it cannot be written, {self._content_text()}"):
            self._reserve(sum(array.nbytes for array in arrays.values()) + timestamps.nbytes)
            for name, array in {**arrays, TIMESTAMPS: timestamps}.items():
                dataset = self._file[name]
                dataset.resize(self.n + n, axis=0)
                dataset[self.n :] = array
                dataset.flush()
        self.n, self._last = self.n + n, int(timestamps[-1])

    def close(self) -> None:
        """Close the file, and give unused reserved space back."""
        if self._file is not None:
            with one_line_errors(self.path, f"it cannot be closed, {self._content_text()}"):
                self._file.close()
                os.truncate(self.path, int.from_bytes(_superblock(self.path)[28:36], "little"))  # the content's end
            self._file = None

    def _content_text(self) -> str:
        content = "nothing is in it" if self._last is None else f"{self.n} are in it, to timestamp {self._last}"
        return f"and {content}"

    def _reserve(self, n_bytes: int) -> None:
        """Raises OSError when the disk has no room for ``n_bytes`` more and for HDF5's metadata."""
        n_bytes += self._chunk_bytes + RESERVED_BYTES
        reserve(self._file.id.get_vfd_handle(), self._file.id.get_filesize(), n_bytes)


def reserve(file: int, offset: int, n_bytes: int) -> None:
    """Reserves ``n_bytes`` on the disk from ``offset`` on, if the file system can.

    Raises:
        OSError: when the disk has no room.
    """
    try:
        os.posix_fallocate(file, offset, n_bytes)
    except OSError as error:
        if error.errno not in CANNOT_RESERVE:
            raise


def _superblock(path: Path) -> bytes:
    """Returns the superblock of an HDF5 file (see the format's specification): version 3, which SWMR needs."""
    with path.open("rb") as file:
        start = file.read(36)
    if start[:9] != SUPERBLOCK or len(start) < 36:
        raise OSError(f"it begins with {start[:9]!r}, and must with {SUPERBLOCK!r}")
    return start


def _opened(h5py: Any, path: Path) -> Any:
    """Returns the file, open for reading.

    SWMR mode is used only if a writer has the file open, or had when it was killed. HDF5 then reads metadata with a
    wrong checksum again and again, since it might be half written. Each wait is twice as long as the one before, so the
    default number of attempts would take hours.
    """
    if not _superblock(path)[11] & OPEN:
        return h5py.File(path, "r")
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    with suppress(AttributeError, OSError):  # h5py may be built in another way
        ctypes.CDLL(h5py.h5p.__file__).H5Pset_metadata_read_attempts(ctypes.c_int64(access.id), MOST_ATTEMPTS)
    how = h5py.h5f.ACC_RDONLY | h5py.h5f.ACC_SWMR_READ
    return h5py.File(h5py.h5f.open(os.fsencode(path), how, fapl=access))


def _chunk(dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of a chunk of about CHUNK_BYTES: several elements, or a part of one."""
    n_bytes = math.prod(shape) * dtype.itemsize
    most = SMALL_BYTES if n_bytes <= SMALL_ELEMENT else CHUNK_BYTES
    if n_bytes <= CHUNK_BYTES:
        return (max(1, min(MOST_TOGETHER, most // max(1, n_bytes))), *shape)
    return (1, max(1, shape[0] * CHUNK_BYTES // n_bytes), *shape[1:])


# ---------------------------------------------------------------------- reading
class GrownFile:
    """Reads a file that GrowingFile has made or is making.

    Args:
        kind: its attribute ``format``.
        checks: the checks of its other attributes; those in ``needed`` must be there.

    Raises:
        UsageError: from all methods, for a file that is damaged or of another kind.
    """

    def __init__(self, path: Path, kind: str, checks: Mapping[str, schema.Check], needed: Collection[str]) -> None:
        self.path = path
        h5py = package(path)
        must_be_file(path)
        if not path.exists():
            refuse(path, "there is no such file")
        with one_line_errors(path, "it cannot be read as HDF5"):
            self._file = _opened(h5py, path)
        with one_line_errors(path, "attributes cannot be read"):
            stored = _plain(self._file.attrs.get(FORMAT, ""))
        if stored != kind:
            refuse(path, f"its {FORMAT} is {schema.value_text(stored)}, must be {kind!r}")
        self.attributes = self.group("/", checks, needed)

    def group(self, name: str, checks: Mapping[str, schema.Check], needed: Collection[str]) -> dict[str, Any]:
        """Returns the attributes of a group, checked."""
        with one_line_errors(self.path, f"attributes of {name} cannot be read"):
            self._check_link(name)
            stored = {key: _plain(value) for key, value in self._file[name].attrs.items() if key != FORMAT}
        try:
            return dict(schema.members_of(checks, needed)(stored))
        except schema.Unsound as error:
            refuse(self.path, f"group {name} {error}")

    def has(self, name: str) -> bool:
        """Returns whether the file has a member of this name."""
        with one_line_errors(self.path, f"{name} cannot be read"):
            return name in self._file

    def dataset(self, name: str, dtype: Any, shape: tuple[int, ...]) -> "h5py.Dataset":
        """Returns the dataset ``name``, whose elements have this dtype and shape, and whose data are in this file."""
        with one_line_errors(self.path, f"{name} cannot be read"):
            self._check_link(name)
            dataset = self._file[name]
            _, *rest = dataset.shape
            plain = not dataset.external and not dataset.is_virtual
        if dataset.dtype != dtype or tuple(rest) != shape or not plain:
            refuse(
                self.path, f"{name} is {dataset.dtype} {list(dataset.shape)}, must be {np.dtype(dtype)} [n, *{shape}]"
            )
        return dataset

    def _check_link(self, name: str) -> None:
        """Refuses links to other files or names. Raises ValueError."""
        parts = [part for part in name.split("/") if part]
        for n in range(1, len(parts) + 1):
            link = self._file.get("/".join(parts[:n]), getlink=True)
            if type(link).__name__ != "HardLink":
                raise ValueError(f"it is a {type(link).__name__}, and its data must be in this file under this name")

    def timestamps(self) -> np.ndarray:
        """Returns the timestamps in the file now, int64 [n]; they rise."""
        dataset = self.dataset(TIMESTAMPS, np.int64, ())
        with one_line_errors(self.path, f"{TIMESTAMPS} cannot be read"):
            dataset.id.refresh()
            if dataset.size * 8 > dataset.id.get_storage_size():
                raise ValueError(f"there are {dataset.size} of them in {dataset.id.get_storage_size()} bytes")
            times = np.asarray(dataset[:])
        times = times[: np.argmax(np.append(times, UNWRITTEN) == UNWRITTEN)]
        if (np.diff(times) <= 0).any():
            refuse(self.path, f"{TIMESTAMPS} do not rise at number {int(np.argmax(np.diff(times) <= 0)) + 1}")
        return times

    def close(self) -> None:
        self._file.close()


def _plain(value: object) -> Any:
    """Returns an attribute as a Python value, not a NumPy one."""
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


# ---------------------------------------------------------------------- attributes
def _set(group: "h5py.Group", values: Mapping[str, object]) -> None:
    """Sets attributes. Text has a fixed length: HDF5 keeps other text without a checksum, and damage stops it."""
    for name, value in values.items():
        if value not in (None, ""):
            group.attrs[name] = np.bytes_(value.encode()) if isinstance(value, str) else value


SAMPLE_CHECKS = {
    **checks.CHECKS,
    "packet": checks.integer(1, checks.MOST_TIME),
    "is_turned": schema.as_flag,
    "first_pol": checks.integer(0, 1),
}
SAMPLE_NEEDED = (*checks.NEEDED, "first_timestamp", "packet")


def attributes(info: Any, but: Sequence[str] = ()) -> dict[str, object]:
    """Returns the fields of a dataclass as attributes, except ``but``. Times are floats if exact, else text."""
    return {field.name: _attribute(getattr(info, field.name)) for field in fields(info) if field.name not in but}


def _attribute(value: object) -> Any:
    if isinstance(value, PhaseCentre):
        return phase_centre_text(value)
    return stored_time(value) if isinstance(value, Fraction) else value
