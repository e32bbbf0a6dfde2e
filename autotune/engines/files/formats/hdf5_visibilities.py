"""Visibilities in HDF5: a sink for an X-engine, and the source for other formats.

A file has the datasets ``visibilities``, int32 [n_dumps, C, n_baselines, n_products, 2]; ``timestamps``, int64
[n_dumps]; ``weights``, uint32 [n_dumps, n_baselines, n_products], the number of spectra in each product; ``present``,
bool [n_dumps, n_antennas], whether an antenna is complete; and ``saturated``, uint64 [n_dumps]. An older file without
``weights`` has dumps in which a baseline has all of its data or none. The file's attributes are the fields of
``VisibilityInfo``, and those of the groups ``antennas/0``, ``antennas/1`` and so on the fields of ``SampleInfo``.
``products`` names the products, if those of all baselines have the same names: ``RR LR RL LL`` with antenna i's first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....core import schema
from ...streams.samples import SampleInfo
from ...streams.visibilities import VisibilityInfo
from .. import checks
from ..hdf5 import SAMPLE_CHECKS, SAMPLE_NEEDED, GrowingFile, GrownFile, attributes, one_line_errors
from ..phase_centre_text import phase_centre_of_text
from ..reading import Tell, closed_on_error
from .interface import VISIBILITIES

suffixes, holds, help = (".h5", ".hdf5"), VISIBILITIES, "HDF5"
FORMAT = "autotune visibilities 1"
WEIGHTS = "weights"
NORMALISATION = "sums of products of quantised voltages over as many spectra as weights say, not divided by them"
NEEDED = ("n_channels", "n_antennas", "dump_samples")
CHECKS = {
    "n_channels": checks.integer(1, checks.MOST_CHANNELS),
    "n_antennas": checks.integer(1, checks.MOST_ANTENNAS),
    "dump_samples": checks.integer(1, checks.MOST_TIME),
    "n_pols": checks.integer(1, 2),
    "dump_spectra": checks.integer(1, checks.MOST_TIME),
    "normalisation": schema.as_word,
    "products": schema.as_word,
    "centre_frequency_hz": checks.real,
    "channel_width_hz": checks.real,
    "gains": checks.ROWS_OF_REALS,
    "is_delayed": schema.as_flag,
    "phase_centre": phase_centre_of_text,
    "middle_samples": checks.below(checks.MOST_TIME),
}


def write(path: Path, info: VisibilityInfo, tell: Tell) -> "VisibilityFile":
    """Makes a new file. Raises UsageError when it exists or cannot be made."""
    return VisibilityFile(path, info)


def read(path: Path) -> "VisibilityDumps":
    """Opens a file. Raises UsageError as ``VisibilityDumps`` does."""
    return VisibilityDumps(path)


class VisibilityFile:
    """A sink of visibilities: an HDF5 file.

    Raises:
        UsageError: when it exists or cannot be made.
    """

    def __init__(self, path: str | Path, info: VisibilityInfo) -> None:
        self.info, n_antennas = info, len(info.antennas)
        self._file = GrowingFile(
            Path(path),
            FORMAT,
            {
                **{"n_antennas": n_antennas, "normalisation": NORMALISATION, "products": " ".join(info.product_names)},
                **attributes(info, but=["antennas"]),
            },
            {f"antennas/{number}": attributes(samples) for number, samples in enumerate(info.antennas)},
            {
                "visibilities": (np.int32, (info.n_channels, info.n_baselines, info.n_products, 2)),
                WEIGHTS: (np.uint32, (info.n_baselines, info.n_products)),
                "present": (np.bool_, (n_antennas,)),
                "saturated": (np.uint64, ()),
            },
        )

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Append a dump; see ``VisibilitySink``."""
        self._file.append(
            np.array([timestamp], np.int64),
            visibilities=visibilities[np.newaxis],
            weights=weights[np.newaxis],
            present=self.info.whole_antennas(weights)[np.newaxis],
            saturated=np.array([saturated], np.uint64),
        )

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class Dump:
    """One dump of a file."""

    timestamp: int
    visibilities: np.ndarray  # int32 [C, n_baselines, n_products, 2]
    weights: np.ndarray  # uint32 [n_baselines, n_products]
    present: np.ndarray  # bool [n_antennas]: whether an antenna is complete
    saturated: int


class VisibilityDumps:
    """Reads the dumps of a file that ``VisibilityFile`` has made or is making.

    Raises:
        UsageError: when the file is missing, damaged or of another kind.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = GrownFile(Path(path), FORMAT, CHECKS, NEEDED)
        with closed_on_error([self._file]):
            stored = self._file.attributes
            groups = [f"antennas/{number}" for number in range(stored.pop("n_antennas"))]
            antennas = [SampleInfo(**self._file.group(name, SAMPLE_CHECKS, SAMPLE_NEEDED)) for name in groups]
            for derived in ("normalisation", "products"):
                stored.pop(derived, None)
            self.info = VisibilityInfo(
                **{"dump_spectra": _dump_spectra(stored, antennas)} | stored, antennas=tuple(antennas)
            )
            shape = (self.info.n_channels, self.info.n_baselines, self.info.n_products, 2)
            self._visibilities = self._file.dataset("visibilities", np.int32, shape)
            has_weights, of_dump = self._file.has(WEIGHTS), (self.info.n_baselines, self.info.n_products)
            self._weights = self._file.dataset(WEIGHTS, np.uint32, of_dump) if has_weights else None
            self._present = self._file.dataset("present", np.bool_, (len(antennas),))
            self._saturated = self._file.dataset("saturated", np.uint64, ())

    def timestamps(self) -> np.ndarray:
        """Returns the begins of the dumps in the file now, int64 [n_dumps], in samples."""
        return self._file.timestamps()

    def __iter__(self) -> Iterator[Dump]:
        """Yields the dumps in the file now.

        Raises:
            UsageError: when a dump cannot be read.
        """
        times = self.timestamps()
        with one_line_errors(self._file.path, "it cannot be read"):
            for dataset in filter(None, (self._visibilities, self._weights, self._present, self._saturated)):
                dataset.id.refresh()
        for number, time in enumerate(times.tolist()):
            with one_line_errors(self._file.path, f"dump {number} cannot be read"):
                values = self._visibilities[number]
                present, saturated = self._present[number], int(self._saturated[number])
                weights = self._all_or_none(present) if self._weights is None else self._weights[number]
            yield Dump(time, values, weights, present, saturated)

    def _all_or_none(self, present: np.ndarray) -> np.ndarray:
        """Returns the weights of a dump without them: a baseline has all spectra if both antennas are complete."""
        j, i = np.tril_indices(len(present))
        both = (present[i] & present[j])[:, np.newaxis]
        return np.where(both, self.info.dump_spectra, np.zeros(self.info.n_products, np.uint32)).astype(np.uint32)

    def close(self) -> None:
        self._file.close()


def _dump_spectra(stored: Mapping[str, Any], antennas: Sequence[SampleInfo]) -> int:
    """Returns the number of spectra in a dump of a file without weights; 1 if it lacks the channel width."""
    width = abs(stored.get("channel_width_hz", 0.0))
    return max(1, round(float(stored["dump_samples"] * width / antennas[0].sample_rate_hz)))
