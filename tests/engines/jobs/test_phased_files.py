"""Visibilities of a source a degree beside a phase centre, as files say them: pyuvdata's, casacore's, and images."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from astropy import units
from astropy.coordinates import SkyCoord
from pyuvdata import UVData

from autotune.core.errors import UsageError
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.files.delay_file import write_delays
from autotune.engines.files.formats.uvdata import convert
from autotune.engines.jobs import correlate

from ..plain_array import LIGHT_M_S, PlainArray
from .phases import BANDS, CROSS, ON_HOST, C, I, J, centre_of, channels, correlated, inner, largest_deg, stored, theory


@dataclass(frozen=True)
class Beside:
    """An array that sees a source a degree beside the phase centre, and its visibilities: running.h5, stopped.h5."""

    array: PlainArray
    centre: SkyCoord
    source: SkyCoord
    folder: Path


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    array, folder = PlainArray(seed=40, n=90_112), tmp_path_factory.mktemp("beside")
    centre = array.source()
    source = centre.directional_offset_by(130 * units.deg, 1 * units.deg)
    night = array.write(folder / "night", [(source, 1.0)])
    for name, at in (("running", None), ("stopped", centre_of(centre))):
        correlate(night, BANDS, folder / f"{name}.h5", accumulate=8, phase_centre=at, running=ON_HOST)
    return Beside(array, centre, source, folder)


def test_a_source_a_degree_beside_it_has_the_phase_of_theory(beside: Beside) -> None:
    """pyuvdata phases running fringes to what delays make of them, and the image has its peak at the source."""
    array, centre, source = beside.array, beside.centre, beside.source
    files = {}
    for name, at in (("running", None), ("stopped", centre)):
        found = stored(beside.folder / f"{name}.h5")
        assert largest_deg(found.values, theory(array, found, source, at)) < 0.5
        convert(beside.folder / f"{name}.h5", beside.folder / f"{name}.uvh5")
        files[name] = UVData.from_file(str(beside.folder / f"{name}.uvh5"))
    files["running"].phase(lon=centre.ra.rad, lat=centre.dec.rad, cat_name="there", phase_frame="icrs")
    (said,) = files["stopped"].phase_center_catalog.values()
    assert (said["cat_name"], said["cat_frame"], said["cat_type"]) == ("there", "icrs", "sidereal")
    assert np.allclose(files["running"].uvw_array, files["stopped"].uvw_array, rtol=0, atol=1e-5)
    data = [each.data_array[~each.flag_array.all(axis=(1, 2))][:, inner(C), 0] for each in files.values()]
    cross = np.tile(CROSS, len(data[0]) // len(J))
    ratio = (data[0] * data[1].conj())[cross].reshape(-1, CROSS.sum(), data[0].shape[1])
    assert np.degrees(np.abs(np.angle(ratio.sum(axis=0)))).max() < 0.5
    l, m = towards(source, centre)  # noqa: E741
    for file in files.values():
        peak, place = image_peak(file, l, m)
        assert place == (l, m) and peak > 0.98
    wrong = files["stopped"].copy()
    wrong.data_array = wrong.data_array.conj()
    assert image_peak(wrong, l, m)[0] < 0.9


def towards(source: SkyCoord, centre: SkyCoord) -> tuple[float, float]:
    """Direction cosines of a source, to the east and north of the phase centre."""
    along = source.ra.rad - centre.ra.rad
    a, b = source.dec.rad, centre.dec.rad
    return float(np.cos(a) * np.sin(along)), float(np.sin(a) * np.cos(b) - np.cos(a) * np.sin(b) * np.cos(along))


def image_peak(file: UVData, l: float, m: float) -> tuple[float, tuple[float, float]]:  # noqa: E741
    """The largest of a direct Fourier sum about a place, of 1 for a point source, and where it is."""
    rows = (file.ant_1_array != file.ant_2_array) & ~file.flag_array.all(axis=(1, 2))
    data = file.data_array[rows][:, inner(C), 0]
    waves = file.uvw_array[rows][:, np.newaxis] * file.freq_array[inner(C)][:, np.newaxis] / LIGHT_M_S
    step = np.radians(15 / 3600)
    found = {}
    for x in l + step * np.arange(-4, 5):
        for y in m + step * np.arange(-4, 5):
            turned = np.exp(-2j * np.pi * (waves @ [x, y, np.sqrt(1 - x**2 - y**2) - 1]))
            found[x, y] = float((data * turned).sum().real / np.abs(data).sum())
    place = max(found, key=lambda each: found[each])
    return found[place], place


def test_a_measurement_set_says_it_all(beside: Beside) -> None:
    tables = pytest.importorskip("casacore.tables")
    array, centre, out = beside.array, beside.centre, beside.folder / "stopped.ms"
    convert(beside.folder / "stopped.h5", out)
    field, main = tables.table(str(out / "FIELD"), ack=False), tables.table(str(out), ack=False)
    assert field.getcol("NAME") == ["there"]
    seen = SkyCoord(*field.getcol("PHASE_DIR").reshape(2), unit="rad")
    assert seen.separation(centre).arcsec < 1e-6
    found = stored(beside.folder / "stopped.h5")
    length = found.info.dump_samples
    assert found.info.middle_samples == length / 2 + 7 * C / 2  # half of 8 taps less half of one
    times, is_flagged = main.getcol("TIME"), main.getcol("FLAG").all(axis=(1, 2))
    since = found.timestamps - array.first + found.info.middle
    seconds = np.repeat(array.times(since).mjd * 86400, len(J))
    assert np.allclose(times[~is_flagged], seconds, rtol=0, atol=1e-4)  # days have 64 bits there
    assert main.getcol("INTERVAL") == pytest.approx(length / array.rate_hz)
    assert (main.getcol("WEIGHT")[~is_flagged] > 0).all()
    first, second = (main.getcol(name)[~is_flagged] for name in ("ANTENNA1", "ANTENNA2"))
    tau = array.tau_s(centre, np.repeat(since, len(J)))
    rows = np.arange(len(first))
    w = LIGHT_M_S * (tau[second, rows] - tau[first, rows])  # as pyuvdata has it there
    assert np.abs(w).max() > 50
    assert np.allclose(main.getcol("UVW")[~is_flagged, 2], w, rtol=0, atol=1e-3)


def test_delays_of_a_file_are_added(beside: Beside, tmp_path: Path) -> None:
    array, centre, source, night = beside.array, beside.centre, beside.source, beside.folder / "night"
    late, phase = 2.3, 0.4
    model = DelayModel(Piece(array.first + 70000, late, phase=phase))
    write_delays(tmp_path / "d.toml", {"m1": [model], "*": [DelayModel(Piece(0))]})
    found = correlated(night, replace(BANDS, delays=tmp_path / "d.toml"), centre_of(centre))
    times = found.timestamps
    residual = found.values * theory(array, found, source, centre).conj()
    turned = np.exp(
        1j * (phase - 2 * np.pi * late * channels(found.info) / C)
    )  # of antenna 1, from the piece's start on
    sign = (I[CROSS] == 1) * 1 - (J[CROSS] == 1) * 1
    ends = times + found.info.dump_samples
    for some, holds in ((times > array.first + 70000, 1), (ends < array.first + 70000, 0)):
        expected = turned[:, np.newaxis] ** (sign * holds)
        left = (residual[some] * expected.conj()).mean(axis=0)
        assert some.sum() >= 3 and np.degrees(np.abs(np.angle(left))).max() < 1
    write_delays(tmp_path / "e.toml", {"*": [model]}, centre_of(source))
    with pytest.raises(UsageError, match="stop the fringes of there already"):
        correlated(night, replace(BANDS, delays=tmp_path / "e.toml"), centre_of(centre))
