"""Engines on a GPU: voltages as on host, up to roundings of halves; visibilities exactly those of the voltages."""

from pathlib import Path

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.jobs import Bands, Narrow, Running, channelise, correlate
from autotune.engines.kernels.choice import CHAIN, CHANNELISE

pytestmark = pytest.mark.gpu

C, HEAP, N = 256, 64, 1 << 20
DELAYS = {
    f"m{i:03}": [DelayModel(Piece(0, 7.3 * i, 1e-6, 0.1)), DelayModel(Piece(0, -2.2 * i, -1e-6))] for i in range(5)
}
BANDS = Bands(C, taps=8, spectra_per_heap=HEAP, delays=DELAYS, narrow=(Narrow(0.2, 8, 64),), with_whole=True)


def noise(antenna: int) -> np.ndarray:
    common, own = (np.random.default_rng(seed).normal(0, 20, (2, N)) for seed in (99, antenna))
    return np.rint(np.clip(common + own, -127, 127)).astype(np.int8)


BANKS = pytest.mark.parametrize("bank", [CHAIN, CHANNELISE])


@BANKS
@pytest.mark.parametrize("bits", [8, 4])
def test_voltages_are_those_of_host(bits: int, bank: str) -> None:
    bands = Bands(C, 8, bits=bits, spectra_per_heap=HEAP, delays=DELAYS["m003"], narrow=BANDS.narrow, with_whole=True)
    there, here = (
        channelise(noise(3), bands, running=Running(device=device, filter_bank=by))
        for device, by in (("cuda", bank), ("host", CHAIN))
    )
    for gpu, host in zip(there.bands, here.bands, strict=True):
        assert gpu.kept is not None and host.kept is not None and len(host.kept.timestamps) > 4
        assert np.array_equal(gpu.kept.timestamps, host.kept.timestamps)
        parts = [kept.voltages.view(np.uint8).astype(int) for kept in (gpu.kept, host.kept)]
        if bits == 8:
            off = np.abs((parts[0] - parts[1] + 128) % 256 - 128)
            assert off.max() <= 1
        else:
            off = parts[0] != parts[1]
        assert np.mean(off != 0) < 1e-3


@BANKS
def test_chunks_change_nothing(bank: str) -> None:
    bands = Bands(C, 8, spectra_per_heap=HEAP, delays=DELAYS)
    whole, *others = (
        channelise(
            noise(1), bands, header={"antenna": "m001"}, running=Running(device="cuda", chunk=chunk, filter_bank=bank)
        )
        for chunk in (N, 1 << 17, 50_000)
    )
    for other in others:
        assert np.array_equal(whole.timestamps, other.timestamps)
        assert np.array_equal(whole.voltages, other.voltages)


def test_visibilities_are_exactly_those_of_the_voltages(tmp_path: Path) -> None:
    bands = Bands(C, 8, spectra_per_heap=HEAP, delays=DELAYS)
    antennas = [noise(antenna) for antenna in range(5)]
    together = correlate(antennas, bands, accumulate=3, running=Running(device="cuda"))
    paths = [tmp_path / f"m{number:03}.h5" for number in range(5)]
    for path, samples in zip(paths, antennas, strict=True):
        channelise(samples, bands, path, header={"antenna": path.stem}, running=Running(device="cuda"))
    there, here = (correlate(paths, accumulate=3, running=Running(device=device)) for device in ("cuda", "host"))
    assert len(there.timestamps) > 8 and there.present.all(axis=1).sum() > 5
    for other in (here, together):
        some = [number for number, time in enumerate(other.timestamps) if time in there.timestamps]
        assert len(some) >= len(there.timestamps) - 1
        assert np.array_equal(there.visibilities[np.isin(there.timestamps, other.timestamps)], other.visibilities[some])
