"""An FX correlator in NumPy, float64 to the rounding, that knows nothing of chunks, batches or engines.

A voltage of the sky at the frequency f is a line of the recorded samples at f, or of a falling band at the mirror image
of f, conjugated. Samples that were taken a part of a sample later than their timestamps are turned back at the recorded
frequency.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .drawn import Night, Station


@dataclass(frozen=True)
class Heaps:
    """The heaps of one station by their times, on the clock of the first one."""

    values: dict[int, np.ndarray]  # complex integers [C, spectra, n_pols], 0 where a spectrum is missing
    there: dict[int, np.ndarray]  # bool [spectra, n_pols]
    n_missing: int  # heaps amid the samples of which nothing is there
    n_spectra_missing: int
    is_clipped: bool


def heaps_of(night: Night, station: Station, gains: np.ndarray) -> Heaps:
    """Returns the heaps of a station; ``gains``: float64 [n_pols]."""
    zero = night.stations[0].sync
    offset = (station.sync - zero) * Fraction(night.rate_hz)
    begin = station.first + round(offset)
    rest = float(offset - round(offset))
    c, spectra = night.n_channels, night.spectra_per_heap
    step = c if station.is_complex else 2 * c
    window, length = prototype(night.taps, step), spectra * step
    needed = length - step + window.size
    inside = range(-(-begin // length) * length, begin + station.n_read - needed + 1, length)
    values, there, clipped = {}, {}, False
    for time in inside:
        here = slice(time - begin, time - begin + needed)
        came = np.array([station.came[:, here][:, s * step :][:, : window.size].all(axis=1) for s in range(spectra)])
        if came.any():
            made = spectra_of(station.samples[:, here], window, station, rest) * gains[:, np.newaxis, np.newaxis]
            made[~came.T] = 0
            there[time] = came
            clipped |= bool(max(np.abs(made.real).max(), np.abs(made.imag).max()) > 127)
            parts = [np.clip(np.rint(part), -127, 127) for part in (made.real, made.imag)]
            values[time] = (parts[0] + 1j * parts[1]).transpose(2, 1, 0)
    n_there = sum(np.count_nonzero(came) for came in there.values())
    return Heaps(values, there, len(inside) - len(values), len(inside) * spectra * len(station.came) - n_there, clipped)


def spectra_of(samples: np.ndarray, window: np.ndarray, station: Station, rest: float) -> np.ndarray:
    """Returns complex128 [n_pols, n_spectra, C], in the order of the sky's frequency."""
    taps, step = window.shape
    rows = samples.reshape(len(samples), -1, step)
    n = rows.shape[1] - taps + 1
    folded = sum(window[tap] * rows[:, tap : tap + n] for tap in range(taps))
    if station.is_complex:
        frequency = (np.arange(step) - step // 2) / step
        lines = np.fft.fftshift(np.fft.fft(folded), axes=-1) * np.exp(-2j * np.pi * frequency * rest)
        mirrored = np.roll(lines[..., ::-1], 1, axis=-1)  # the line at -f in the place of the one at f
        return np.conj(mirrored) if station.falls else lines
    lines = np.fft.rfft(folded) * np.exp(-2j * np.pi * np.fft.rfftfreq(step) * rest)
    return np.conj(lines[..., :0:-1]) if station.falls else lines[..., :-1]


def prototype(taps: int, step: int) -> np.ndarray:
    """Returns a sinc under a Hann window, [taps, step]."""
    n = np.arange(taps * step)
    shape = 0.5 - 0.5 * np.cos(2 * np.pi * n / n.size)
    return (shape * np.sinc(n / step - taps / 2)).reshape(taps, step)


@dataclass(frozen=True)
class Dumps:
    """Sums of products by their times."""

    values: dict[int, np.ndarray]  # complex [C, n_baselines, 4]
    weights: dict[int, np.ndarray]  # int [n_baselines, 4]
    n_skipped: int  # of which nothing came


def dumps_of(night: Night, heaps: list[Heaps]) -> Dumps:
    """Returns the dumps of all stations."""
    step = night.n_channels * (1 if night.stations[0].is_complex else 2)
    length = night.spectra_per_heap * step
    times = sorted({time for one in heaps for time in one.values})
    values, weights = {}, {}
    if not times:
        return Dumps(values, weights, 0)
    dump = night.accumulate * length
    for start in range(-(-times[0] // dump) * dump, times[-1] + length - dump + 1, dump):
        batches = range(start, start + dump, length)
        if any(time in one.values for one in heaps for time in batches):
            values[start] = sum(products([one.values.get(time) for one in heaps], night.n_channels) for time in batches)
            flags = [[one.there.get(time) for one in heaps] for time in batches]
            each = [[None if came is None else came[np.newaxis].astype(complex) for came in row] for row in flags]
            weights[start] = sum(products(row, 1)[0].real.astype(int) for row in each)
    made = sorted(values)
    n_skipped = (made[-1] - made[0]) // dump + 1 - len(made) if made else 0
    return Dumps(values, weights, n_skipped)


def products(voltages: list[np.ndarray | None], n_channels: int) -> np.ndarray:
    """Returns the products aa, ba, ab, bb of antennas i and j, i <= j, summed over spectra: [C, n_baselines, 4]."""
    found = []
    for j, second in enumerate(voltages):
        for first in voltages[: j + 1]:
            for q in range(2):
                for p in range(2):
                    if first is None or second is None:
                        found.append(np.zeros(n_channels, complex))
                    else:
                        found.append((first[:, :, p] * second[:, :, q].conj()).sum(axis=1))
    return np.stack(found, axis=-1).reshape(n_channels, -1, 4)
