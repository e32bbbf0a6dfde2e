"""Voltages of one antenna in HDF5: a sink for an F-engine, and a source for an X-engine from several such files.

A file has the datasets ``voltages``, int8 [n_heaps, C, spectra_per_heap, n_pols, 2], without the last axis at 4 bits,
where the real part is in the low nibble; ``timestamps``, int64 [n_heaps]; ``saturated``, uint32 [n_heaps, n_pols]; and
``present``, uint8 [n_heaps, n_pols, n_bytes], a bitmap of the spectra that came, with the first in the highest bit.
Voltages of the others are 0. An older file without ``present`` has whole heaps. The file's attributes are the fields of
``VoltageInfo``, and those of the group ``samples`` the fields of ``SampleInfo``.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np

from ....core import schema
from ....core.errors import UsageError
from ...streams.samples import SampleInfo
from ...streams.times import time_text
from ...streams.voltages import REAL_LOW, Batches, VoltageInfo
from .. import checks
from ..hdf5 import SAMPLE_CHECKS, SAMPLE_NEEDED, GrowingFile, GrownFile, attributes, one_line_errors
from ..phase_centre_text import phase_centre_of_text
from ..reading import Tell, closed_on_error, refuse
from .interface import VOLTAGES

suffixes, holds, help = (".h5", ".hdf5"), VOLTAGES, "HDF5"
FORMAT, PRESENT = "autotune voltages 1", "present"
MOST_HEAP_BYTES = 1 << 31
AT_ONCE = 1 << 24  # bytes to read together
CHECKS = {
    "n_channels": checks.integer(1, checks.MOST_CHANNELS),
    "n_pols": checks.integer(1, 2),
    "bits": checks.voltage_bits,
    "spectra_per_heap": checks.integer(1, checks.MOST_SPECTRA),
    "step": checks.integer(1, checks.MOST_STEP),
    "centre_frequency_hz": checks.real,
    "channel_width_hz": checks.real,
    "gain": checks.REALS,
    "is_delayed": schema.as_flag,
    "phase_centre": phase_centre_of_text,
    "middle_samples": checks.below(checks.MOST_TIME),
}
NEEDED = ("n_channels", "n_pols", "bits", "spectra_per_heap", "step")
ALIKE = (*NEEDED, "centre_frequency_hz", "channel_width_hz", "phase_centre")
ALIKE_SAMPLES = ("sample_rate_hz", "sync_time_unix")
OF_SAMPLES_ONLY = ("n_pols", "step")  # ``correlate`` takes samples of antennas that differ in these


def write(path: Path, info: VoltageInfo, tell: Tell) -> "VoltageFile":
    """Makes a new file. Raises UsageError when it exists or cannot be made."""
    return VoltageFile(path, info)


def read(paths: Sequence[Path]) -> "VoltageFiles":
    """Opens the files of several antennas. Raises UsageError as ``VoltageFiles`` does."""
    return VoltageFiles(paths)


class VoltageFile:
    """A sink of voltages: an HDF5 file.

    Raises:
        UsageError: when it exists or cannot be made, or for voltages whose real part is in the high nibble.
    """

    def __init__(self, path: str | Path, info: VoltageInfo) -> None:
        if info.nibbles != REAL_LOW:
            refuse(Path(path), f"files have the real part in the low nibble; make the voltages with nibbles={REAL_LOW}")
        self.info = info
        self._file = GrowingFile(
            Path(path),
            FORMAT,
            attributes(info, but=["samples", "nibbles"]),
            {"samples": attributes(info.samples)},
            {
                "voltages": (np.int8, info.heap_shape),
                "saturated": (np.uint32, (info.n_pols,)),
                PRESENT: (np.uint8, _bitmap_shape(info)),
            },
        )

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Append heaps; see ``VoltageSink``."""
        bitmap = np.packbits(present.transpose(0, 2, 1), axis=-1)
        self._file.append(timestamps, voltages=voltages, saturated=saturated, present=bitmap)

    def close(self) -> None:
        self._file.close()


class VoltageFiles:
    """A source of the voltages of several antennas, from one file of ``VoltageFile`` for each.

    Heaps with one timestamp are a batch. Files may grow meanwhile; each read takes the heaps that are there.

    Raises:
        UsageError: when a file is missing, is damaged, or does not fit the first one, or there is no file.
    """

    is_live = False

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self._files: list[_Heaps] = []
        if not paths:
            raise UsageError("there is no file of voltages to read")
        with closed_on_error(self._files):
            for path in paths:
                self._files.append(_Heaps(Path(path)))
            self.antennas = tuple(file.info for file in self._files)
            for file in self._files[1:]:
                file.must_fit(self._files[0])

    def read(self, out: np.ndarray) -> Batches | None:
        """Read the next batches into int8 [n_batches, n_antennas, *heap_shape]; see ``VoltageSource``.

        Raises:
            UsageError: when ``out`` has another shape, or a file is damaged.
        """
        info = self.antennas[0]
        if out.dtype != np.int8 or out.shape[1:] != (len(self._files), *info.heap_shape) or not len(out):
            raise UsageError(
                f"voltages are read into {out.dtype} {list(out.shape)}, must be int8 [n_batches, {len(self._files)}, "
                f"{', '.join(map(str, info.heap_shape))}]"
            )
        firsts = [first for file in self._files if (first := file.first()) is not None]
        if not firsts:
            return None
        present, holes = np.zeros(out.shape[:2], bool), dict[tuple[int, int], np.ndarray]()
        for antenna, file in enumerate(self._files):
            present[:, antenna], lacking = file.read(out, antenna, min(firsts))
            holes |= {(row, antenna): came for row, came in lacking.items()}
        n = int(np.flatnonzero(present.any(axis=1))[-1]) + 1
        return Batches(min(firsts) * info.heap_samples, present[:n], holes)

    @property
    def n_batches(self) -> int:
        """Returns the number of batches from the first to the last in the files now."""
        spans = [span for file in self._files if (span := file.span()) is not None]
        return max(last for _, last in spans) - min(first for first, _ in spans) + 1 if spans else 0

    def close(self) -> None:
        for file in self._files:
            file.close()


class _Heaps:
    """The heaps of one file, in the order of time. A batch's number is its time in heaps."""

    def __init__(self, path: Path) -> None:
        self._file = GrownFile(path, FORMAT, CHECKS, NEEDED)
        with closed_on_error([self._file]):
            samples = SampleInfo(**self._file.group("samples", SAMPLE_CHECKS, SAMPLE_NEEDED))
            self.info = VoltageInfo(**self._file.attributes, samples=samples)
            if math.prod(self.info.heap_shape) > MOST_HEAP_BYTES:
                refuse(path, f"its heaps have more than {MOST_HEAP_BYTES} bytes: {list(self.info.heap_shape)}")
            self._voltages = self._file.dataset("voltages", np.int8, self.info.heap_shape)
            has_bitmap = self._file.has(PRESENT)
            self._bitmap = self._file.dataset(PRESENT, np.uint8, _bitmap_shape(self.info)) if has_bitmap else None
            self._batches = np.zeros(0, np.int64)
            self._next = 0  # heap

    def must_fit(self, other: "_Heaps") -> None:
        """Raises UsageError when heaps of both files cannot be in one batch."""
        for name in ALIKE:
            self._same(name, getattr(self.info, name), getattr(other.info, name), other)
        for name in ALIKE_SAMPLES:
            self._same(name, getattr(self.info.samples, name), getattr(other.info.samples, name), other)

    def span(self) -> tuple[int, int] | None:
        """Returns the first and the last batch in the file now; None if it is empty."""
        times = self._file.timestamps() // self.info.heap_samples
        return (int(times[0]), int(times[-1])) if len(times) else None

    def first(self) -> int | None:
        """Returns the batch of the next heap; None if the file has no more now."""
        if self._next == len(self._batches):
            self._refresh()
        return int(self._batches[self._next]) if self._next < len(self._batches) else None

    def read(self, out: np.ndarray, antenna: int, first: int) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Reads heaps of ``len(out)`` batches from ``first`` on, into ``out[:, antenna]``.

        Returns whether each heap is there, bool [len(out)], and, for heaps that lack spectra, by row, whether each
        spectrum came: bool [spectra_per_heap, n_pols].
        """
        if len(self._batches) == 0 or self._batches[-1] < first + len(out):
            self._refresh()
        end = int(np.searchsorted(self._batches, first + len(out)))
        rows = self._batches[self._next : end] - first
        for heap, row, n in _runs(rows, max(1, AT_ONCE // math.prod(self.info.heap_shape))):
            heap += self._next
            with one_line_errors(self._file.path, f"heaps {heap} to {heap + n - 1} cannot be read"):
                out[row : row + n, antenna] = self._voltages[heap : heap + n]  # read_direct is 100 times slower there
        present, holes = np.zeros(len(out), bool), self._holes(self._next, end)
        present[rows] = True
        lacking = {int(rows[heap]): came for heap, came in holes.items()}
        for row, came in lacking.items():
            out[row, antenna][:, ~came] = 0
        self._next = end
        return present, lacking

    def close(self) -> None:
        self._file.close()

    def _holes(self, first: int, end: int) -> dict[int, np.ndarray]:
        """Returns the spectra that came, bool [spectra_per_heap, n_pols], of heaps from ``first`` that lack some."""
        if self._bitmap is None or first == end:
            return {}
        with one_line_errors(self._file.path, f"{PRESENT} of heaps {first} to {end - 1} cannot be read"):
            bits = np.unpackbits(self._bitmap[first:end], axis=-1, count=self.info.spectra_per_heap).astype(bool)
        lacks = np.flatnonzero(~bits.all(axis=(1, 2))).tolist()
        return {heap: bits[heap].T for heap in lacks}

    def _refresh(self) -> None:
        times = self._file.timestamps()
        with one_line_errors(self._file.path, "voltages cannot be read"):
            n = len(times)
            for dataset in filter(None, (self._voltages, self._bitmap)):
                dataset.id.refresh()
                n = min(n, len(dataset))
        wrong = np.flatnonzero(times % self.info.heap_samples)
        if wrong.size or n < len(times):
            heap = int(wrong[0]) if wrong.size else n
            what = (
                f"at {times[heap]}, in the middle of a batch of {self.info.heap_samples} samples"
                if wrong.size
                else "gone"
            )
            refuse(self._file.path, f"heap {heap} is {what}: the file is damaged")
        self._batches = times // self.info.heap_samples

    def _same(self, name: str, own: object, others: object, other: "_Heaps") -> None:
        if own != others:
            here, there = (time_text(each) if isinstance(each, Fraction) else each for each in (own, others))
            first = other._file.path.name
            more = "; samples that differ so can be correlated" if name in OF_SAMPLES_ONLY else ""
            refuse(self._file.path, f"{name} is {here}, but in {first} it is {there}: they must be the same{more}")


def _bitmap_shape(info: VoltageInfo) -> tuple[int, int]:
    """Returns the shape of a heap's bitmap of spectra, with whole bytes for each polarisation."""
    return info.n_pols, -(-info.spectra_per_heap // 8)


def _runs(rows: np.ndarray, most: int) -> Iterator[tuple[int, int, int]]:
    """Yields runs of consecutive rows: the index of the first one, its row, and the number of rows."""
    starts = [0, *(np.flatnonzero(np.diff(rows) != 1) + 1).tolist(), len(rows)]
    for start, end in pairwise(starts):
        for begin in range(start, end, most):
            yield begin, int(rows[begin]), min(most, end - begin)
