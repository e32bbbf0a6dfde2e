"""Runs the engines on files that were drawn, and compares all that they make with the reference."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.files.opening import open_samples
from autotune.engines.jobs import Bands, Running, channelise, correlate

from .drawn import Night, Station
from .reference import Dumps, Heaps, dumps_of, heaps_of
from .written import write

MOST_COEFFICIENT, MOST_DEGREES = 1e-3, 0.5
LEAST_COHERENCE = 0.1  # of which the phase is compared
MOST_ROUNDED = 2  # parts of voltages of a sum that are rounded otherwise
RMS = 24.0  # of the parts of voltages that are correlated: rounded otherwise, one is 3e-4 of a coefficient


def faults(night: Night, folder: Path, device: str = "host") -> list[str]:
    """Returns what differs, in a line each."""
    files = write(night, folder)
    found = list(_heap_faults(night, *files[0], device))
    if len(night.stations) > 1:
        found += _dump_faults(night, files, folder, device)
    return found


# ---------------------------------------------------------------------- heaps of the first station
def _heap_faults(night: Night, path: Path, header: dict[str, Any], device: str) -> Iterator[str]:
    station = night.stations[0]
    bands = Bands(night.n_channels, night.taps, spectra_per_heap=night.spectra_per_heap)
    made = channelise(path, bands, header=header, running=Running(device=device, chunk=night.chunk))
    info, counters = made.bands[0].info, made.bands[0].counters
    yield from _label_faults(night, station, info.centre_frequency_hz, info.channel_width_hz)
    if info.samples.sync_time_unix != station.sync or info.samples.first_timestamp != station.first:
        yield f"the samples begin at {info.samples.first_timestamp} after {info.samples.sync_time_unix}"
    assert info.gain is not None
    expected = heaps_of(night, station, np.array(info.gain))
    times = made.timestamps.tolist()
    if times != sorted(expected.values):
        yield f"heaps of {_some(times)}, must be of {_some(sorted(expected.values))}"
        return
    if counters.heaps_missing != expected.n_missing:
        yield f"{counters.heaps_missing} heaps are missing, must be {expected.n_missing}"
    if counters.spectra_missing != expected.n_spectra_missing:
        yield f"{counters.spectra_missing} spectra are missing, must be {expected.n_spectra_missing}"
    if any(not np.array_equal(there, expected.there[time]) for time, there in zip(times, made.present, strict=True)):
        yield "other spectra are missing"
    for time, heap in zip(times, made.voltages.astype(float), strict=True):
        difference = np.abs(heap[..., 0] + 1j * heap[..., 1] - expected.values[time])
        if difference.max() > 1.5 or difference.mean() > 0.02:
            yield f"the heap of {time} differs by {difference.max():.3g}, {difference.mean():.3g} in the mean"
            return


def _label_faults(night: Night, station: Station, centre_hz: float | None, width_hz: float) -> Iterator[str]:
    width = night.rate_hz / night.n_channels / (1 if station.is_complex else 2)
    if centre_hz is None or abs(centre_hz - night.centre_hz) > 1e-3 or abs(width_hz / width - 1) > 1e-12:
        yield f"channels lie about {centre_hz} in steps of {width_hz}, must be {night.centre_hz}, {width}"


# ---------------------------------------------------------------------- dumps of all
def _dump_faults(night: Night, files: list[tuple[Path, dict[str, Any]]], folder: Path, device: str) -> Iterator[str]:
    gains = {station.name: gain_of(night, station) for station in night.stations}
    bands = Bands(night.n_channels, night.taps, spectra_per_heap=night.spectra_per_heap, gains=gains)
    sources = [open_samples(path, **header) for path, header in files]
    out = folder / "vis.h5" if night.seed % 2 else None
    expected_heaps, expected = expected_of(night)
    made = correlate(
        sources, bands, out, accumulate=night.accumulate, running=Running(device=device, chunk=night.chunk)
    )
    info, counters = made.info, made.counters
    yield from _label_faults(night, night.stations[0], info.centre_frequency_hz, info.channel_width_hz)
    yield from _clock_faults(night, info.antennas)
    n_dumps = len(expected.values)
    told = counters.dumps_out, counters.dumps_empty, counters.dumps_skipped
    if told != (n_dumps, 0, expected.n_skipped):
        yield f"{told} dumps are told, with data, without, skipped; must be {n_dumps}, 0, {expected.n_skipped}"
    missing = [f_counters.heaps_missing for f_counters in made.f_counters]
    if missing != [heaps.n_missing for heaps in expected_heaps]:
        yield f"{missing} heaps are missing, must be {[heaps.n_missing for heaps in expected_heaps]}"
    if out is not None:
        yield from file_faults(night, expected, out)
        return
    dumps = dict(zip(made.timestamps.tolist(), zip(made.visibilities, made.weights, strict=True), strict=True))
    yield from _faults_of_all(night, expected, dumps)


def expected_of(night: Night) -> tuple[list[Heaps], Dumps]:
    """Returns the heaps of each station, with its gain, and the dumps of all."""
    heaps = [heaps_of(night, s, np.full(len(s.samples), gain_of(night, s))) for s in night.stations]
    return heaps, dumps_of(night, heaps)


def file_faults(night: Night, expected: Dumps, path: Path) -> Iterator[str]:
    """Yields what differs in a file of visibilities, which is not made where no dump is expected."""
    dumps: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    if expected.values:
        file = VisibilityDumps(path)
        dumps = {dump.timestamp: (dump.visibilities, dump.weights) for dump in file}
        file.close()
    elif path.exists():
        yield f"{path} exists"
    yield from _faults_of_all(night, expected, dumps)


def _faults_of_all(night: Night, expected: Dumps, dumps: dict[int, tuple[np.ndarray, np.ndarray]]) -> Iterator[str]:
    if list(dumps) != sorted(expected.values):
        yield f"dumps of {_some(list(dumps))}, must be of {_some(sorted(expected.values))}"
        return
    for time, (visibilities, weights) in dumps.items():
        yield from _value_faults(time, visibilities, weights, expected, night.stations[0].is_complex)


def gain_of(night: Night, station: Station) -> float:
    """Returns the gain that gives voltages of white noise an rms of some 24."""
    step = night.n_channels * (1 if station.is_complex else 2)
    return float(RMS / np.sqrt(np.square(np.abs(station.samples)).mean() * step * 0.35))


def _clock_faults(night: Night, antennas: Any) -> Iterator[str]:
    first, rate = night.stations[0], Fraction(night.rate_hz)
    for station, info in zip(night.stations, antennas, strict=True):
        true = station.sync + station.first / rate
        if info.sync_time_unix != first.sync:
            yield f"the zero of {station.name} is {info.sync_time_unix}"
        elif abs(info.sync_time_unix + info.first_timestamp / rate - true) * rate > Fraction(1, 2):
            yield f"{station.name} begins at {info.first_timestamp}, which is not {float(true)!r}"


def _value_faults(
    time: int, visibilities: np.ndarray, weights: np.ndarray, expected: Dumps, is_complex: bool
) -> Iterator[str]:
    if not np.array_equal(weights, expected.weights[time]):
        yield f"the dump of {time} has the weights {weights.tolist()}, must be {expected.weights[time].tolist()}"
        return
    j, i = np.tril_indices(int(np.sqrt(2 * len(weights))))
    whole = weights.any(axis=1)
    if (visibilities[:, ~whole] != (-(2**31), 1)).any():
        yield f"the dump of {time} has values where a baseline has no data"
    if visibilities[:, whole][:, weights[whole] == 0].any():
        yield f"the dump of {time} has values where a product has no data"
    autos = [k for k in range(len(i)) if i[k] == j[k]]
    powers = expected.values[time][:, autos][:, :, [0, 3]].real  # [C, antenna, pol]
    scale = np.sqrt(powers[:, i][..., [0, 1, 0, 1]] * powers[:, j][..., [0, 0, 1, 1]])
    scale = np.where(scale > 0, scale, np.inf)
    values = (visibilities[..., 0] + 1j * visibilities[..., 1]) / scale
    reference = expected.values[time] / scale
    inner = slice(int(is_complex), None)  # the first channel of complex samples has both ends of their band
    values, reference = values[inner, whole], reference[inner, whole]
    off = np.abs(np.abs(values) - np.abs(reference))
    clear = np.abs(reference) > LEAST_COHERENCE
    turned = np.degrees(np.abs(np.angle(values[clear] * reference[clear].conj())))
    # Where few spectra came, one that is rounded otherwise is more of their sum.
    most = np.maximum(MOST_COEFFICIENT, MOST_ROUNDED / (RMS * np.maximum(weights[whole], 1)))
    if (off > most).any():
        yield f"coefficients of the dump of {time} are off by {off.max():.2e}"
    if turned.size and turned.max() > MOST_DEGREES:
        yield f"phases of the dump of {time} are off by {turned.max():.3g} degrees"


def _some(times: list[int]) -> str:
    return f"{times[:3]} .. {times[-2:]} ({len(times)})" if len(times) > 5 else str(times)


__all__ = ["Heaps", "faults"]
