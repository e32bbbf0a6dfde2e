"""Gains that give voltages a level at which noise is quantised well."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from ...core.errors import UsageError
from ...core.packed_samples import unpack_samples
from ..f.chain import bank
from ..f.narrow_band import NarrowSettings
from ..f.voltage_buffers import BandSettings
from ..streams.samples import SampleInfo
from .inputs import Input

# Rms of the real part of a voltage, and of its imaginary part. 4 bits: 1 / 0.335, the best for 16 levels (A. R.
# Thompson, J. M. Moran, G. W. Swenson, Interferometry and Synthesis in Radio Astronomy, 2017, table 8.2). 8 bits: 18 dB
# below the largest, for interference; the noise of rounding is then 3e-4 of the power.
RMS = {4: 3.0, 8: 16.0}
LOOKED_AT = 1 << 18  # samples of each polarisation
MOST_READS = 64  # reads of LOOKED_AT samples before it gives up, if none of them came


def rms_of(opened: Input, info: SampleInfo) -> np.ndarray:
    """Returns the rms of each polarisation's first samples, float64 [n_pols].

    Raises:
        UsageError: for a source that cannot be read twice.
    """
    if opened.again is None:
        raise UsageError("gains must be given for samples that can be read only once, such as those of your own source")
    n_packets = max(1, LOOKED_AT // info.packet)
    source, length = opened.again(), n_packets * info.packet
    out = np.empty((info.n_pols, length if info.is_complex else length * info.sample_bits // 8), _dtype(info))
    sums, counts = np.zeros(info.n_pols), np.zeros(info.n_pols)
    try:
        for _ in range(MOST_READS):
            if counts.all() or (read := source.read(out)) is None:
                break
            for pol, came in enumerate(read.received):
                total, n = squares(out[pol], came, info)
                sums[pol] += total
                counts[pol] += n
    finally:
        source.close()
    return np.asarray(np.sqrt(sums / np.maximum(counts, 1)))


def squares(row: np.ndarray, came: np.ndarray, info: SampleInfo) -> tuple[float, int]:
    """Returns the sum of the squares of a polarisation's samples, in a Source's layout, and the number that came.

    ``came``: bool [n_packets].
    """
    n = len(came) * info.packet
    samples = row[:n] if info.is_complex else unpack_samples(row, info.sample_bits, 0, n)
    some = samples.reshape(len(came), -1)[came]
    wide = some.astype(np.complex128 if info.is_complex else np.float64)
    return float(np.square(np.abs(wide)).sum()), some.size


@dataclass(frozen=True)
class Level:
    """The gains that follow from the level of an antenna's samples."""

    rms: np.ndarray  # float64 [n_pols]: the rms of the samples
    gains: np.ndarray  # float64 [n_pols]
    bits: int  # bits of each part of a voltage


def level_of(rms: np.ndarray, settings: BandSettings | NarrowSettings) -> Level:
    """Returns the gains for samples of ``rms``, float64 [n_pols].

    White noise of rms sigma has, in one channel of the filter bank, the power sigma^2 times the sum of the squares of
    all weights; after a decimation by D its power is that divided by D.
    """
    band = bank(settings)
    decimation = settings.decimation if isinstance(settings, NarrowSettings) else 1
    growth = sqrt(float(np.square(band.weights, dtype=np.float64).sum()) / decimation / 2)
    return Level(rms, RMS[band.bits] / (np.where(rms > 0, rms, 1.0) * growth), band.bits)


def level_text(levels: Sequence[Level]) -> str:
    """Returns one line about the levels and gains of some antennas."""
    rms, gains = (_range(np.concatenate([getattr(level, name) for level in levels])) for name in ("rms", "gains"))
    return f"samples have an rms of {rms}: gains of {gains} give voltages of rms {RMS[levels[0].bits]:g}"


def _range(values: np.ndarray) -> str:
    low, high = f"{values.min():.4g}", f"{values.max():.4g}"
    return low if low == high else f"{low} to {high}"


def _dtype(info: SampleInfo) -> type[np.generic]:
    return np.complex64 if info.is_complex else np.uint8
