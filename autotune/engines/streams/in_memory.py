"""A source of samples in memory, and sinks that keep voltages and visibilities in memory."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import DTypeLike

from ...core.errors import UsageError
from .samples import SampleInfo, Samples


class ArraySource:
    """A source of the samples in an array. An incomplete packet at the end is left out.

    Args:
        samples: uint8 [n_pols, n_bytes], packed with ``info.sample_bits``, or complex64 [n_pols, n_samples].
        received: bool [n_pols, n_packets], False where a packet is missing.
        repeats: the number of times that the array is repeated, which makes a long stream from little memory.
    """

    is_live = False

    def __init__(
        self, samples: np.ndarray, info: SampleInfo, received: np.ndarray | None = None, repeats: int = 1
    ) -> None:
        width = info.packet if info.is_complex else info.packet * info.sample_bits // 8
        kind = np.complex64 if info.is_complex else np.uint8
        if samples.ndim != 2 or len(samples) != info.n_pols or samples.dtype != kind:
            kind_given, wanted = f"{samples.dtype} {list(samples.shape)}", f"{np.dtype(kind)} [{info.n_pols}, n]"
            raise UsageError(f"samples are {kind_given}; they must be {wanted}")
        if not info.is_complex and info.packet * info.sample_bits % 8:
            raise UsageError(f"packet={info.packet} samples of {info.sample_bits} bits are not whole bytes")
        self._samples, self._width = samples, width
        self._n_packets = samples.shape[1] // width
        if received is not None and received.shape != (info.n_pols, self._n_packets):
            wanted = f"[{info.n_pols}, {self._n_packets}]"
            raise UsageError(f"received has the shape {list(received.shape)}; it must be {wanted}")
        self._received = np.ones((info.n_pols, self._n_packets), bool) if received is None else received
        self._end = self._n_packets * repeats
        self._at = 0
        self.info = replace(info, n_samples=self._end * info.packet)

    def read(self, out: np.ndarray) -> Samples | None:
        """Fill ``out``; see ``samples.Source``."""
        first = self._at % self._n_packets if self._n_packets else 0
        n = min(out.shape[1] // self._width, self._end - self._at, self._n_packets - first)
        if n <= 0:
            return None
        out[:, : n * self._width] = self._samples[:, first * self._width : (first + n) * self._width]
        time = self.info.first_timestamp + self._at * self.info.packet
        self._at += n
        return Samples(time, self._received[:, first : first + n])

    def close(self) -> None:
        return


@dataclass
class KeptVoltages:
    """A sink that keeps everything. ``timestamps``: int64 [n]; ``voltages``: int8 [n, *heap_shape]."""

    _written: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Take heaps; see ``voltages.VoltageSink``."""
        self._written.append((timestamps.copy(), voltages.copy(), saturated.copy(), present.copy()))

    def close(self) -> None:
        return

    def _joined(self, place: int, dtype: DTypeLike) -> np.ndarray:
        return np.concatenate([each[place] for each in self._written]) if self._written else np.zeros(0, dtype)

    @property
    def timestamps(self) -> np.ndarray:
        return self._joined(0, np.int64)

    @property
    def voltages(self) -> np.ndarray:
        return self._joined(1, np.int8)

    @property
    def saturated(self) -> np.ndarray:
        """Returns uint32 [n, n_pols]."""
        return self._joined(2, np.uint32)

    @property
    def present(self) -> np.ndarray:
        """Returns whether each spectrum came: bool [n, spectra_per_heap, n_pols]."""
        return self._joined(3, bool)


@dataclass
class KeptVisibilities:
    """A sink that keeps everything."""

    timestamps: list[int] = field(default_factory=list)
    visibilities: list[np.ndarray] = field(default_factory=list)  # int32 [C, n_baselines, 4, 2]
    weights: list[np.ndarray] = field(default_factory=list)  # uint32 [n_baselines, 4]
    saturated: list[int] = field(default_factory=list)

    def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
        """Take a dump; see ``visibilities.VisibilitySink``."""
        self.timestamps.append(timestamp)
        self.visibilities.append(visibilities.copy())
        self.weights.append(weights.copy())
        self.saturated.append(saturated)

    def close(self) -> None:
        return
