"""Weights are those of the frames that were lost, and visibilities sums over the spectra that are there."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import h5py
import numpy as np
import pytest

from autotune.engines.jobs import Bands, Running, channelise, correlate
from autotune.engines.kernels.choice import CHAIN, CHANNELISE

from ...recordings.drawn import Night, Station
from ...recordings.written import write
from ..test_plans import counted

C, TAPS, FRAME, RATE_HZ = 8, 3, 512, 1.024e6
# frames, spectra of a heap, heaps of a dump: heaps are much shorter than a frame, or 100 frames long
SHORT, LONG, LONG_COMPLEX = (91, 4, 120), (331, 3200, 1), (331, 6400, 1)


def night(kind: str, n_frames: int, rng: np.random.Generator) -> Night:
    """Two antennas that each begin with a frame of their own, and lose some 3 % of the others."""
    stations, is_complex = [], kind == "guppi"
    for name in ("An", "Bn"):
        shape = (2, FRAME * n_frames, 2)
        parts = np.clip(np.rint(rng.normal(0, 30, shape)), -127, 127)
        came = rng.random((1 if kind == "guppi" else 2, n_frames)) >= 0.03  # a block has both polarisations
        came[:, [0, 1, -2, -1]] = True
        stations.append(
            Station(
                name,
                kind,
                8,
                is_complex,
                False,
                Fraction(1719792000),
                FRAME * int(rng.integers(3, 30)),
                FRAME,
                parts @ [1, 1j] if is_complex else parts[..., 0].astype(np.int64),
                np.repeat(np.broadcast_to(came, (2, n_frames)), FRAME, axis=1),
            )
        )
    return Night(1, RATE_HZ, 1e9, tuple(stations), C, TAPS, 0, 0, 0)


def files(drawn: Night, folder: Path) -> tuple[list[Path], dict[str, object]]:
    folder.mkdir()
    found = write(drawn, folder)
    return [path for path, _ in found], found[0][1]


def presence(station: Station, times: Sequence[int], step: int, heap: int) -> np.ndarray:
    """bool [n, n_pols]: whether all samples of the spectra that leave at ``times`` came, in heaps that lie inside."""
    found = np.zeros((len(times), 2), bool)
    for place, time in enumerate(times):
        first_of_heap, begin = time // heap * heap - station.first, time - station.first
        if first_of_heap >= 0 and first_of_heap + heap - step + TAPS * step <= station.n:
            found[place] = station.came[:, begin : begin + TAPS * step].all(axis=1)
    return found


CASES = pytest.mark.parametrize(
    ("kind", "n_frames", "spectra_per_heap", "n_heaps", "bank"),
    [
        ("toml", *SHORT, CHAIN),
        ("toml", *LONG, CHANNELISE),
        ("vdif", *SHORT, CHANNELISE),
        ("vdif", *LONG, CHAIN),
        ("guppi", *SHORT, CHANNELISE),
        ("guppi", *LONG_COMPLEX, CHAIN),
    ],
)


@pytest.mark.one_in(2)
@CASES
def test_weights_are_those_of_the_frames_that_came(
    tmp_path: Path, kind: str, n_frames: int, spectra_per_heap: int, n_heaps: int, bank: str
) -> None:
    check(tmp_path, kind, n_frames, spectra_per_heap, n_heaps, Running(device="host", chunk=30_000, filter_bank=bank))


@pytest.mark.gpu
@CASES
def test_weights_are_those_of_the_frames_that_came_on_a_gpu(
    tmp_path: Path, kind: str, n_frames: int, spectra_per_heap: int, n_heaps: int, bank: str
) -> None:
    check(tmp_path, kind, n_frames, spectra_per_heap, n_heaps, Running(device="cuda", chunk=30_000, filter_bank=bank))


def check(folder: Path, kind: str, n_frames: int, spectra_per_heap: int, n_heaps: int, running: Running) -> None:
    drawn = night(kind, n_frames, np.random.default_rng([len(kind), n_heaps]))
    paths, header = files(drawn, folder / "lossy")
    whole = replace(drawn, stations=tuple(replace(s, came=s.came | True) for s in drawn.stations))
    lossless, _ = files(whole, folder / "lossless")
    step = C if drawn.stations[0].is_complex else 2 * C
    bands = Bands(C, TAPS, spectra_per_heap=spectra_per_heap, gains=0.1)
    given = {"accumulate": n_heaps, "running": running}
    made = correlate(paths, bands, header=header, **given)
    length = n_heaps * spectra_per_heap
    assert len(made.timestamps) >= 2 and made.info.dump_spectra == length

    heaps = [channelise(path, bands, header=header, running=running) for path in lossless]
    voltages = []
    for each in heaps:
        spectra = each.voltages.astype(np.int64).transpose(0, 2, 1, 3, 4).reshape(-1, C, 2, 2)  # [time, C, pol, part]
        starts = (each.timestamps[:, np.newaxis] + step * np.arange(spectra_per_heap)).ravel()
        voltages.append(dict(zip(starts.tolist(), spectra, strict=True)))
    for dump, time in enumerate(made.timestamps.tolist()):
        times = range(time, time + length * step, step)
        there = np.stack([presence(station, times, step, spectra_per_heap * step) for station in drawn.stations])
        assert np.array_equal(made.weights[dump], counted(there.swapaxes(0, 1)[:, :, np.newaxis]))
        zero = np.zeros((C, 2, 2), np.int64)
        v = np.array([[antenna.get(t, zero) for t in times] for antenna in voltages]) @ [1, 1j]
        v *= there[:, :, np.newaxis]  # [antenna, time, C, pol]
        for baseline, (j, i) in enumerate([(0, 0), (1, 0), (1, 1)]):
            sums = np.einsum("tcp,tcq->cqp", v[i], v[j].conj()).reshape(C, 4)
            if not made.weights[dump, baseline].any():
                sums = np.full((C, 4), -(2**31) + 1j)
            assert np.array_equal(made.visibilities[dump, :, baseline] @ [1, 1j], sums)
    assert 0 < made.share_missing < 0.3 and (made.weights < length).any()

    apart = [folder / f"{number}.h5" for number in range(2)]
    for path, out in zip(paths, apart, strict=True):
        channelise(path, bands, out, header=header, running=running)
    again = correlate(apart, **given)
    assert np.array_equal(again.timestamps, made.timestamps)
    assert np.array_equal(again.visibilities, made.visibilities) and np.array_equal(again.weights, made.weights)
    complete = correlate(paths, bands, header=header, complete_dumps=True, **given)
    is_whole = (made.weights == length).all(axis=2)
    assert np.array_equal(complete.weights, np.where(is_whole[..., np.newaxis], length, [0] * 4))
    expected = np.where(is_whole[:, np.newaxis, :, np.newaxis, np.newaxis], made.visibilities, (-(2**31), 1))
    assert np.array_equal(complete.visibilities, expected)
    with h5py.File(apart[0]) as file:
        assert 0 < np.unpackbits(file["present"][:], axis=-1, count=spectra_per_heap).mean() < 1
