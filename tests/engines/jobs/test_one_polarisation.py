"""Antennas of one polarisation have the product aa that they have with another polarisation beside it, and no other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotune.core.errors import UsageError
from autotune.engines import Bands, Running, channelise, correlate
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.network.dump_outlet import DumpOutlet
from autotune.engines.network.endpoints import Endpoint

RNG = np.random.default_rng(9)
ON_HOST = Running(device="host")
RATE_HZ, N = 1e6, 1 << 13
PLACES = [(5109360.0 + 100 * number, 2006852.5, -3238948.0) for number in range(3)]


def stations(folder: Path, missing: str = "") -> list[Path]:
    """Three recordings of two polarisations, with a packet of the first one of station 1 missing."""
    found = []
    for number, place in enumerate(PLACES):
        name = f"m{number}"
        (folder / f"{name}.bin").write_bytes(RNG.integers(-90, 91, (2, N), np.int8).tobytes())
        found.append(folder / f"{name}.toml")
        found[-1].write_text(
            f'file = "{name}.bin"\nsample_bits = 8\nn_pols = 2\nsample_rate_hz = {RATE_HZ}\nantenna = "{name}"\n'
            f"position_m = {list(place)}\ncentre_frequency_hz = 1e9\nsync_time_unix = 1700000000\n"
            + (missing if number == 1 else "")
        )
    return found


def of_one(paths: list[Path], folder: Path) -> list[Path]:
    """The first polarisation of each alone."""
    folder.mkdir()
    for path in paths:
        rows = np.fromfile(path.with_suffix(".bin"), np.int8).reshape(2, N)
        (folder / f"{path.stem}.bin").write_bytes(rows[0].tobytes())
        (folder / path.name).write_text(path.read_text().replace("n_pols = 2", "n_pols = 1"))
    return [folder / path.name for path in paths]


@pytest.mark.parametrize(("bits", "by_kernels"), [(8, False), (4, False), (8, True)])
def test_it_is_the_product_of_the_first_of_two(tmp_path: Path, bits: int, by_kernels: bool) -> None:
    two = stations(tmp_path, missing="missing = [[0, 3000, 1]]\n")
    running, bands = replace(ON_HOST, kernels_on_host=by_kernels), Bands(8, 4, bits=bits, spectra_per_heap=16)
    both = correlate(two, bands, accumulate=2, running=running)
    one = correlate(of_one(two, tmp_path / "one"), bands, accumulate=2, running=running)
    assert one.visibilities.shape == (*both.visibilities.shape[:3], 1, 2) and len(one.timestamps) > 8
    there = both.weights.any(axis=2)  # a baseline without any data is marked
    assert np.array_equal(one.weights[..., 0], both.weights[..., 0]) and not one.weights.all()
    same = one.visibilities[..., 0, :] == both.visibilities[..., 0, :]
    assert same.transpose(0, 2, 1, 3)[there & (one.weights[..., 0] > 0)].all()
    assert np.array_equal(one.timestamps, both.timestamps)


@pytest.mark.parametrize("n_antennas", [1, 2, 3])
def test_files_of_voltages_give_the_same(tmp_path: Path, n_antennas: int) -> None:
    paths = of_one(stations(tmp_path, missing="missing = [[0, 3000, 1]]\n"), tmp_path / "one")[:n_antennas]
    bands = Bands(8, 4, spectra_per_heap=16)
    voltages = [tmp_path / f"{path.stem}.h5" for path in paths]
    for path, made in zip(paths, voltages, strict=True):
        channelise(path, bands, made, running=ON_HOST)
    apart = correlate(voltages, accumulate=2, running=ON_HOST)
    together = correlate(paths, bands, accumulate=2, running=ON_HOST)
    for name in ("visibilities", "weights", "timestamps"):
        assert np.array_equal(getattr(apart, name), getattr(together, name))


def test_files_and_pictures_have_it(tmp_path: Path) -> None:
    paths = of_one(stations(tmp_path), tmp_path / "one")
    bands = Bands(8, 4, spectra_per_heap=16)
    kept = correlate(paths, bands, accumulate=4, running=ON_HOST)
    stored = tmp_path / "x.h5"
    correlate(paths, bands, stored, accumulate=4, plot=tmp_path / "x.png", running=ON_HOST)
    dumps = list(VisibilityDumps(stored))
    assert np.array_equal([dump.visibilities for dump in dumps], kept.visibilities)
    assert np.array_equal([dump.weights for dump in dumps], kept.weights) and (tmp_path / "x.png").stat().st_size > 9999


@pytest.mark.parametrize("suffix", [".uvh5", ".ms"])
def test_others_read_it_as_xx(tmp_path: Path, suffix: str) -> None:
    pyuvdata = pytest.importorskip("pyuvdata")
    if suffix == ".ms":
        pytest.importorskip("casacore")
    paths, path = of_one(stations(tmp_path), tmp_path / "one"), tmp_path / f"x{suffix}"
    bands = Bands(8, 4, spectra_per_heap=16)
    made = correlate(paths, bands, path, accumulate=8, running=ON_HOST)
    found = pyuvdata.UVData.from_file(str(path))
    assert found.polarization_array.tolist() == [-5] and found.data_array.shape[1:] == (8, 1)
    assert found.Nbls == made.info.n_baselines == 6


def test_the_network_has_two(tmp_path: Path) -> None:
    info = correlate(of_one(stations(tmp_path), tmp_path / "one"), 8, accumulate=1, running=ON_HOST).info
    with pytest.raises(UsageError, match="antennas must have two polarisations"):
        DumpOutlet(info, "udp", [Endpoint("127.0.0.1", 9999)])
