"""UVH5 and Measurement Sets as pyuvdata reads them: every number, every flag, and the sign of a phase."""

import importlib
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from astropy.constants import c
from astropy.coordinates import ITRS, EarthLocation, SkyCoord
from astropy.time import Time
from astropy.utils import iers
from pyuvdata import UVData

from autotune.engines.files.formats import uvdata
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps, VisibilityFile
from autotune.engines.files.formats.uvdata import UvData, convert
from autotune.engines.files.formats.uvdata import write as uvdata_write
from autotune.engines.jobs.sinks import empty_removed
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.visibilities import VisibilityInfo

from ..stand_ins import weights_of
from .common import full_disk, refused

iers.conf.auto_download = False
RNG = np.random.default_rng(5)
RATE, DUMP, SPECTRA, N_CHANNELS = 1e6, 1 << 20, 1 << 16, 8
PLACES = [(5109e3, 2006e3, -3239e3), (5109.03e3, 2006.2e3, -3239.1e3), (5108.8e3, 2005.9e3, -3239e3)]
ANTENNAS = tuple(
    SampleInfo(10, 2, RATE, 4096, None, 0, f"m{number:03}", place, 1.4e9, 1.7e9) for number, place in enumerate(PLACES)
)
INFO = VisibilityInfo(N_CHANNELS, DUMP, SPECTRA, ANTENNAS, 1.4e9, 1e5)
J, I = np.tril_indices(3)  # noqa: E741
WEIGHTS = RNG.integers(1, SPECTRA + 1, (3, 6, 4))  # of three dumps
WEIGHTS[0], WEIGHTS[1, 2:4], WEIGHTS[1, 4, 2], WEIGHTS[2, :5] = SPECTRA, 0, 0, 0
FORMATS = ("x.uvh5", "x.ms")


def dumps(n: int = 3) -> np.ndarray:
    """int32 [n, C, 6, 4, 2], with real powers."""
    values = RNG.integers(-(2**31), 2**31, (n, N_CHANNELS, 6, 4, 2), np.int32)
    values[:, :, J == I, 0, 1] = values[:, :, J == I, 3, 1] = 0
    return values


def write(sink: UvData | VisibilityFile, values: np.ndarray, weights: np.ndarray = WEIGHTS) -> None:
    for number, each in enumerate(values):
        each[:, weights[number] == 0] = 0
        each[:, ~weights[number].any(axis=1)] = (-(2**31), 1)
        sink.write((5 + number) * DUMP, each, weights[number].astype(np.uint32), 0)
    sink.close()


@pytest.mark.parametrize("name", FORMATS)
def test_pyuvdata_reads_what_was_written(tmp_path: Path, name: str) -> None:
    values = dumps()
    write(UvData(tmp_path / name, INFO), values)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    found = UVData.from_file(str(tmp_path / name))
    assert (found.Nblts, found.Nfreqs, found.Npols, found.Nants_data) == (18, N_CHANNELS, 4, 3)
    assert np.allclose(found.freq_array, 1.4e9 + (np.arange(8) - 4) * 1e5, rtol=0, atol=1)
    assert list(found.telescope.antenna_names) == [a.antenna for a in ANTENNAS]
    location = np.array([x.value for x in found.telescope.location.geocentric])
    assert np.allclose(found.telescope.antenna_positions + location, PLACES, rtol=0, atol=1e-3)
    middles = Time(1.7e9 + (5.5 + np.arange(3)) * DUMP / RATE, format="unix").jd
    assert np.allclose(np.unique(found.time_array), middles, rtol=0, atol=1e-3 / 86400)
    assert np.allclose(found.integration_time, DUMP / RATE)
    tolerance = 2**-23 if name == "x.uvh5" else 1e-5  # it is phased to a place on the sky, and back here
    if name == "x.ms":
        found.unproject_phase()
    for baseline, (j, i) in enumerate(zip(J, I, strict=True)):
        for product in range(4):
            pols = "xy"[product // 2] + "xy"[product % 2]  # of antenna j, and then of antenna i
            data, flags = found.get_data(j, i, pols), found.get_flags(j, i, pols)
            n_spectra = WEIGHTS[:, baseline, product, np.newaxis]
            good, shares = n_spectra[:, 0] > 0, found.get_nsamples(j, i, pols)
            sums = values[:, :, baseline, product, 0] + 1j * values[:, :, baseline, product, 1]
            expected = sums / np.maximum(n_spectra, 1)
            assert (flags == ~good[:, np.newaxis]).all() and (data[~good] == 0).all()
            assert (np.abs(data - expected)[good] <= tolerance * np.abs(expected)[good]).all()
            assert np.allclose(shares, n_spectra / SPECTRA, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", FORMATS)
def test_a_source_has_no_phase_where_it_is(tmp_path: Path, name: str) -> None:
    time = Time(1.7e9 + 5.5 * DUMP / RATE, format="unix", location=EarthLocation.from_geocentric(*PLACES[0], unit="m"))
    up = np.array(PLACES[0]) / np.linalg.norm(PLACES[0]) + [0.1, -0.2, 0.15]
    source = SkyCoord(ITRS(up / np.linalg.norm(up), obstime=time)).icrs
    direction = up / np.linalg.norm(up)
    frequencies = 1.4e9 + (np.arange(8) - 4) * 1e5
    early_s = np.array(PLACES) @ direction / c.value  # waves come to antennas nearer to the source earlier
    voltages = np.exp(2j * np.pi * early_s[:, np.newaxis] * frequencies)
    products = 1e6 * voltages[I] * voltages[J].conj()
    values = np.zeros((1, N_CHANNELS, 6, 4, 2), np.int32)
    for product in (0, 3):
        values[0, :, :, product, 0], values[0, :, :, product, 1] = np.rint([products.T.real, products.T.imag])
    values[:, :, J == I, :, 1] = 0
    write(UvData(tmp_path / name, INFO), values, np.full((1, 6, 4), 1))
    found = UVData.from_file(str(tmp_path / name))
    found.phase(ra=source.ra.rad, dec=source.dec.rad, cat_name="source", phase_frame="icrs", epoch="J2000")
    spread = np.ptp(np.angle(products), axis=0).max()
    assert spread > 2 and np.abs(np.angle(found.data_array[:, :, found.polarization_array == -5])).max() < 0.1


def test_a_conversion_keeps_what_it_is_made_of(tmp_path: Path) -> None:
    values = dumps()
    write(VisibilityFile(tmp_path / "x.h5", INFO), values)
    convert(tmp_path / "x.h5", tmp_path / "x.uvh5")
    with h5py.File(tmp_path / "x.uvh5") as file:
        found = file["Data/visdata"][:]
    assert found.dtype == np.complex64
    assert (found[:6, :, 1].real == (values[0, :, :, 1, 0].T / SPECTRA).astype(np.float32)).all()
    assert len(list(VisibilityDumps(tmp_path / "x.h5"))) == 3
    with refused("x.uvh5", "exists"):
        convert(tmp_path / "x.h5", tmp_path / "x.uvh5")


def test_many_dumps_are_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.engines.files.formats.uvdata.AT_ONCE", 2 * N_CHANNELS * 6 * 32)
    values = dumps(5)
    write(UvData(tmp_path / "x.uvh5", INFO), values, np.full((5, 6, 4), SPECTRA))
    found = UVData.from_file(str(tmp_path / "x.uvh5")).data_array.reshape(5, 6, N_CHANNELS, 4)
    for k, product in enumerate((0, 1, 2, 3)):
        expected = values[:, :, :, product, 0] + 1j * values[:, :, :, product, 1]
        pol = (-5, -7, -8, -6)[k]
        place = UVData.from_file(str(tmp_path / "x.uvh5")).polarization_array.tolist().index(pol)
        assert (found[..., place] == (expected.transpose(0, 2, 1) / SPECTRA).astype(np.complex64)).all()


@pytest.mark.parametrize("name", FORMATS)
def test_a_full_disk_leaves_the_visibilities(tmp_path: Path, name: str) -> None:
    values = dumps(60)
    sink = UvData(tmp_path / name, INFO)
    for number, each in enumerate(values):
        sink.write(number * DUMP, each, weights_of(np.ones(3, bool), SPECTRA), 0)
    with (
        full_disk(20_000),
        refused(tmp_path / name, "cannot be written", f"the visibilities are in {tmp_path / name}.h5"),
    ):
        sink.close()
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.h5"]
    assert len(list(VisibilityDumps(tmp_path / f"{name}.h5"))) == 60
    convert(tmp_path / f"{name}.h5", tmp_path / name)
    assert UVData.from_file(str(tmp_path / name)).Ntimes == 60


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"antenna": ""}, "antenna of antenna 0, antenna of antenna 1"),
        ({"position_m": None}, "position_m of antenna m000"),
        ({"sync_time_unix": None}, "sync_time_unix of antenna m000"),
        ({"position_m": (1.0, 2.0, 3.0)}, "km from the Earth's centre"),
        ({"antenna": "m1"}, "3 antennas have the name m1"),
        ({"sample_rate_hz": 1e12}, "dumps of less than"),
    ],
)
def test_what_lacks_is_told_before_anything_is_written(tmp_path: Path, change: dict[str, object], words: str) -> None:
    info = replace(INFO, antennas=tuple(replace(antenna, **change) for antenna in ANTENNAS))
    for name in FORMATS:
        with refused(tmp_path / name, words):
            UvData(tmp_path / name, info)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_left_of_an_engine_that_cannot_be_made(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(RuntimeError), ExitStack() as stack, empty_removed(stack, [path], list):
        stack.callback(UvData(path, INFO).close)
        assert [each.name for each in tmp_path.iterdir()] == [f"{name}.h5"]
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_other_things_that_cannot_be_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused("must end in .ms or .uvh5"):
        UvData(tmp_path / "x.fits", INFO)
    with refused("centre_frequency_hz, channel_width_hz"):
        UvData(tmp_path / "x.ms", replace(INFO, centre_frequency_hz=None, channel_width_hz=0.0))
    with refused("differ in sync_time_unix"):
        UvData(tmp_path / "x.ms", replace(INFO, antennas=(replace(ANTENNAS[0], sync_time_unix=1.0), *ANTENNAS[1:])))
    sink = UvData(tmp_path / "y.uvh5", INFO)
    sink.close()  # without a dump there is nothing to write
    assert not list(tmp_path.glob("y.*"))
    monkeypatch.setitem(sys.modules, "casacore.tables", None)
    with refused("x.ms", "pip install python-casacore", "write x.uvh5"):
        UvData(tmp_path / "x.ms", INFO)
    monkeypatch.setitem(sys.modules, "pyuvdata", None)
    with refused("x.uvh5", "pip install pyuvdata"):
        UvData(tmp_path / "x.uvh5", INFO)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with refused("x.h5", "pip install h5py"):
        VisibilityFile(tmp_path / "x.h5", INFO)
    importlib.invalidate_caches()


# ---------------------------------------------------------------------- names of polarisations
AIPS = {"RR": -1, "LL": -2, "RL": -3, "LR": -4, "XX": -5, "YY": -6, "XY": -7, "YX": -8}
CASA = {"RR": 5, "RL": 6, "LR": 7, "LL": 8, "XX": 9, "XY": 10, "YX": 11, "YY": 12}
NAMED = {"XY": "xy", "RL": "rl", "HV": "xy", "X": "x", "L": "l", "V": "y"}  # as the formats have them


def named(names: str) -> VisibilityInfo:
    antennas = tuple(replace(each, polarisations=names, n_pols=len(names)) for each in ANTENNAS)
    return replace(INFO, antennas=antennas, n_pols=len(names))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("names", NAMED)
def test_products_have_the_codes_of_their_names(tmp_path: Path, name: str, names: str) -> None:
    info, called, n = named(names), NAMED[names], len(names) ** 2
    values, weights = dumps()[..., :n, :], np.maximum(WEIGHTS[..., :n], 1)
    write(UvData(tmp_path / name, info), values, weights)
    found = UVData.from_file(str(tmp_path / name))
    assert sorted(found.polarization_array.tolist()) == sorted(AIPS[(a + b).upper()] for a in called for b in called)
    if name == "x.ms":
        found.unproject_phase()
    for baseline, (j, i) in enumerate(zip(J, I, strict=True)):
        for q, of_j in enumerate(called):
            for p, of_i in enumerate(called):
                product = len(called) * q + p
                sums = values[:, :, baseline, product, 0] + 1j * values[:, :, baseline, product, 1]
                expected = sums / weights[:, baseline, product, np.newaxis]
                data = found.get_data(j, i, of_j + of_i)
                assert (np.abs(data - expected) <= 1e-5 * np.abs(expected)).all()
    east = {"HV": "east", "V": "east"}.get(names)
    assert found.telescope.get_x_orientation_from_feeds() == east
    assert "nothing says what polarisations are" not in found.history


@pytest.mark.parametrize("names", NAMED)
def test_a_measurement_set_names_receptors_and_products(tmp_path: Path, names: str) -> None:
    tables = pytest.importorskip("casacore.tables")
    n = len(names) ** 2
    write(UvData(tmp_path / "x.ms", named(names)), dumps()[..., :n, :], np.maximum(WEIGHTS[..., :n], 1))
    with tables.table(str(tmp_path / "x.ms::FEED"), ack=False) as feed:
        receptors = feed.getcell("POLARIZATION_TYPE", 0)
        angles = feed.getcell("RECEPTOR_ANGLE", 0)
    with tables.table(str(tmp_path / "x.ms::POLARIZATION"), ack=False) as polarization:
        types, pairs = polarization.getcell("CORR_TYPE", 0), polarization.getcell("CORR_PRODUCT", 0)
    receptors = [each.upper() for each in receptors]
    assert {receptors[a] + receptors[b]: code for (a, b), code in zip(pairs.tolist(), types.tolist(), strict=True)} == {
        a + b: CASA[a + b] for a in NAMED[names].upper() for b in NAMED[names].upper()
    }
    if names == "HV":
        assert receptors == ["X", "Y"] and np.allclose(angles, [np.pi / 2, 0]), "perpendicular to the zenith is x"


@pytest.mark.parametrize("name", FORMATS)
def test_what_an_antenna_lacks_is_flagged(tmp_path: Path, name: str) -> None:
    """Antenna 1 has only Y: of its baselines the products with its X have the weight 0."""
    one = replace(ANTENNAS[1], n_pols=1, polarisations="Y")
    info = replace(
        named("XY"),
        antennas=tuple(one if k == 1 else replace(each, polarisations="XY") for k, each in enumerate(ANTENNAS)),
    )
    weights = np.where(info.possible(), SPECTRA, np.zeros((3, 6, 4), int))
    write(UvData(tmp_path / name, info), dumps(), weights)
    found = UVData.from_file(str(tmp_path / name))
    for j, i in zip(J, I, strict=True):
        for pols in ("xx", "xy", "yx", "yy"):
            is_there = (j != 1 or pols[0] == "y") and (i != 1 or pols[1] == "y")
            assert (found.get_flags(j, i, pols) == (not is_there)).all()
            assert (found.get_nsamples(j, i, pols) == is_there).all()
    whole = info.whole_antennas(weights)
    assert whole.all(), "absent is not missing"


def test_what_nothing_names_is_told(tmp_path: Path) -> None:
    told = list[str]()
    sink = uvdata_write(tmp_path / "x.uvh5", INFO, told.append)
    assert (
        [line for line in told if "polarisations are called x and y: nothing says what they are" in line] == told != []
    )
    write(sink, dumps())
    assert "nothing says what polarisations are" in UVData.from_file(str(tmp_path / "x.uvh5")).history
    mixed = replace(named("XY"), antennas=(*named("XY").antennas[:2], replace(ANTENNAS[2], polarisations="RL")))
    with refused("y.uvh5: its antennas have one pair of polarisations, not RL and XY: write x.h5"):
        uvdata_write(tmp_path / "y.uvh5", mixed, told.append)


# ---------------------------------------------------------------------- telescope, antennas, scans
def test_what_antennas_say_of_telescope_and_mount_is_in_both_formats(tmp_path: Path) -> None:
    from casacore.tables import table

    said = dict(telescope="MeerKAT", observer="A. Nonymous")
    antennas = [replace(ANTENNAS[0], mount="equatorial", dish_diameter_m=13.5, **said), replace(ANTENNAS[1], **said)]
    info = replace(INFO, antennas=(*antennas, replace(ANTENNAS[2], mount="fixed", **said)))
    for name in FORMATS:
        write(UvData(tmp_path / name, info), dumps())
        read = UVData.from_file(str(tmp_path / name))
        assert (read.telescope.name, read.extra_keywords["observer"]) == ("MeerKAT", "A. Nonymous")
        assert list(read.telescope.mount_type) == ["equatorial", "other", "fixed"]
        assert read.telescope.antenna_diameters.tolist() == [13.5, 0, 0]
    with table(str(tmp_path / "x.ms/OBSERVATION"), ack=False) as one:
        begin, end = one.getcell("TIME_RANGE", 0) - 40587 * 86400
    assert abs(begin - (1.7e9 + 5 * DUMP / RATE)) < 1e-3 and abs(end - (1.7e9 + 8 * DUMP / RATE)) < 1e-3


def test_what_nothing_says_is_unknown(tmp_path: Path) -> None:
    antennas = [replace(each, telescope=name) for each, name in zip(ANTENNAS, ("PKS", "Ef", "PKS"), strict=True)]
    for name in FORMATS:
        write(UvData(tmp_path / name, replace(INFO, antennas=tuple(antennas))), dumps())
        read = UVData.from_file(str(tmp_path / name))
        assert (read.telescope.name, read.extra_keywords["observer"]) == ("unknown", "unknown")
        assert read.telescope.mount_type is None or set(read.telescope.mount_type) == {"other"}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_in_parts_is_the_file_in_one(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, read = dumps(), []
    for at_once in (
        uvdata.AT_ONCE,
        2 * 6 * (N_CHANNELS * 4 * 8 + uvdata.METADATA_BYTES),
        1,
    ):  # three dumps, then two, then one at a time
        monkeypatch.setattr(uvdata, "AT_ONCE", at_once)
        path = tmp_path / f"{at_once}{name}"
        write(UvData(path, INFO), values.copy())
        read.append(UVData.from_file(str(path)))
        read[-1].filename, read[-1].history = None, ""
    assert read[1] == read[0] and read[2] == read[0]
    assert [each.name for each in tmp_path.glob(".*")] == []


def test_a_scan_begins_after_a_gap(tmp_path: Path) -> None:
    sink = UvData(tmp_path / "x.ms", INFO)
    for time, each in zip((5, 6, 9), dumps(), strict=True):
        sink.write(time * DUMP, each, np.full((6, 4), SPECTRA, np.uint32), 0)
    sink.close()
    assert UVData.from_file(str(tmp_path / "x.ms")).scan_number_array.tolist() == [1] * 12 + [2] * 6
