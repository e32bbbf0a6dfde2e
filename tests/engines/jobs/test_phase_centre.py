"""A phase centre by its coordinates: an independent array's source there has no phase, at any frequency or time."""

from collections.abc import Callable
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
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.files.formats.uvdata import convert
from autotune.engines.jobs import Bands, Narrow, Running, correlate, pointing
from autotune.engines.sky.description import read_sky
from autotune.engines.sky.simulated_recording import Recording
from autotune.engines.streams.phase_centre import PhaseCentre
from autotune.engines.streams.visibilities import VisibilityInfo

from ..plain_array import LIGHT_M_S, PlainArray

ON_HOST = Running(device="host")
C = 64
J, I = np.tril_indices(6)  # noqa: E741
CROSS = J != I
WIDE = Bands(C, 4, spectra_per_heap=8)


def inner(n_channels: int) -> slice:
    """Channels in which the source does not fade."""
    return slice(n_channels // 8 + 1, n_channels * 7 // 8)


def centre_of(source: SkyCoord) -> PhaseCentre:
    return PhaseCentre(source.dec.deg, right_ascension_deg=source.ra.deg, name="there")


@dataclass(frozen=True)
class Found:
    """Dumps that are whole, and the mean correlation coefficients of both polarisations.

    ``values``: complex [n_dumps, n_inner, n_cross], of inner channels.
    """

    info: VisibilityInfo
    timestamps: np.ndarray
    values: np.ndarray


def coefficients(info: VisibilityInfo, times: np.ndarray, visibilities: np.ndarray, present: np.ndarray) -> Found:
    whole = present.all(axis=1)
    values = visibilities[whole][:, inner(info.n_channels)][..., [0, 3], :] @ [1, 1j]
    power = values[:, :, J == I].real
    found = (values / np.sqrt(power[:, :, J] * power[:, :, I])).mean(axis=-1)
    return Found(info, times[whole], found[:, :, CROSS])


def correlated(night: Path, bands: Bands, at: PhaseCentre | str | None, running: Running = ON_HOST) -> Found:
    made = correlate(night, bands, batches_per_dump=8, phase_centre=at, running=running)
    return coefficients(made.info, made.timestamps, made.visibilities, made.present)


def stored(path: Path) -> Found:
    source = VisibilityDumps(path)
    dumps = list(source)
    source.close()
    times, present = np.array([dump.timestamp for dump in dumps]), np.array([dump.present for dump in dumps])
    return coefficients(source.info, times, np.array([dump.visibilities for dump in dumps]), present)


def largest_deg(found: np.ndarray, expected: np.ndarray | float = 1.0) -> float:
    """The largest phase of a channel and baseline, as a mean over either half of the dumps."""
    halves = np.array_split(found * np.conj(expected), 2)
    return float(max(np.degrees(np.abs(np.angle(half.mean(axis=0)))).max() for half in halves))


def channels(info: VisibilityInfo) -> np.ndarray:
    """The numbers of inner channels from the middle on."""
    return (np.arange(info.n_channels) - info.n_channels // 2)[inner(info.n_channels)]


def theory(array: PlainArray, found: Found, source: SkyCoord, centre: SkyCoord | None) -> np.ndarray:
    """e^(-2 pi i f (tau_i - tau_j)) in the middle of each dump, tau less that of the centre: [n_dumps, .., n_cross]."""
    times = found.timestamps - array.first + found.info.middle
    tau = array.tau_s(source, times) - (0 if centre is None else array.tau_s(centre, times))
    assert found.info.centre_frequency_hz is not None
    f = found.info.centre_frequency_hz + channels(found.info) * found.info.channel_width_hz
    late = (tau[I] - tau[J])[CROSS].T[:, np.newaxis]
    return np.asarray(np.exp(-2j * np.pi * f[:, np.newaxis] * late))


KINDS: dict[str, dict[str, bool]] = {
    "complex": {},
    "real": {"is_complex": False},
    "lower": {"is_complex": False, "is_lower": True},
    "narrow": {"is_complex": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_source_at_the_phase_centre_has_no_phase(tmp_path: Path, kind: str) -> None:
    array = PlainArray(seed=sorted(KINDS).index(kind) + 20, n=1 << 16, **KINDS[kind])
    source = array.source()
    narrow = (Narrow(array.centre_hz + 0.07 * array.rate_hz, 4, 64),) if kind == "narrow" else ()
    bands = replace(WIDE, n_channels=16, narrow=narrow) if narrow else WIDE
    found = correlated(array.write(tmp_path / "night", [(source, 1.0)]), bands, centre_of(source))
    assert len(found.values) >= 4 and largest_deg(found.values) < 0.5
    assert np.abs(found.values).min() > 0.98
    assert found.info.phase_centre == centre_of(source) and found.info.is_delayed


# A low rate, long filters and a high frequency: fringes turn 2 times a second, 6 degrees in half of a filter.
SLOW = {"rate_hz": 30e3, "centre_hz": 8.4e9}
LONG = Bands(16, 32, spectra_per_heap=4)


def test_fringes_stand_still_over_pieces(tmp_path: Path) -> None:
    array, told = PlainArray(seed=31, n=1 << 17, **SLOW), list[str]()
    source = array.source()
    night = array.write(tmp_path / "night", [(source, 1.0)])
    running = Running(device="host", tell=told.append)
    text = source.to_string("hmsdms", precision=9)
    found = correlated(night, LONG, text, running).values
    assert len(found) > 200 and largest_deg(found) < 0.5
    assert np.degrees(np.abs(np.angle(found))).max() < 2, "noise of a single dump"
    assert any("delays in 2 pieces of 3.86 s, within 0.1 ps and 0.1 degrees" in line for line in told)


WRONG: dict[str, Callable[[Piece], Piece]] = {
    "phases of the other sign": lambda piece: replace(piece, phase=-piece.phase, phase_rate=-piece.phase_rate),
    "phases that stand": lambda piece: replace(piece, phase_rate=0),
    "a piece that is half a filter late": lambda piece: replace(piece, start=piece.start + 256),
}


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SkyCoord]:
    array = PlainArray(seed=32, n=1 << 14, **SLOW)
    return array.write(tmp_path_factory.mktemp("slow") / "night", [(array.source(), 1.0)]), array.source()


def stopped(night: Path, centre: PhaseCentre) -> float:
    return largest_deg(correlated(night, LONG, centre).values)


def test_a_few_dumps_will_do(slow: tuple[Path, SkyCoord]) -> None:
    assert stopped(slow[0], centre_of(slow[1])) < 0.8


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_shows(slow: tuple[Path, SkyCoord], monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    right = pointing.stopping_models

    def models(*args: object) -> list[DelayModel]:
        return [DelayModel(*map(WRONG[wrong], model.pieces[1:])) for model in right(*args)]

    monkeypatch.setattr(pointing, "stopping_models", models)
    assert stopped(slow[0], centre_of(slow[1])) > 2


def test_an_arc_second_shows(slow: tuple[Path, SkyCoord]) -> None:
    """So there are precession, nutation and both aberrations in it, which are larger."""
    assert stopped(slow[0], centre_of(slow[1].directional_offset_by(70 * units.deg, 0.2 * units.arcsec))) > 2


@dataclass(frozen=True)
class Beside:
    """An array that sees a source a degree beside the phase centre, and its visibilities: running.h5, stopped.h5."""

    array: PlainArray
    centre: SkyCoord
    source: SkyCoord
    folder: Path


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Beside:
    array, folder = PlainArray(seed=40, n=1 << 17), tmp_path_factory.mktemp("beside")
    centre = array.source()
    source = centre.directional_offset_by(130 * units.deg, 1 * units.deg)
    night = array.write(folder / "night", [(source, 1.0)])
    for name, at in (("running", None), ("stopped", centre_of(centre))):
        correlate(night, WIDE, folder / f"{name}.h5", batches_per_dump=8, phase_centre=at, running=ON_HOST)
    return Beside(array, centre, source, folder)


def test_a_source_a_degree_beside_it_has_the_phase_of_theory(beside: Beside) -> None:
    """And what pyuvdata makes of fringes that run is what delays make of them; an image has its peak at the source."""
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
    assert found.info.middle_samples == length / 2 + 3 * C / 2  # half of 4 taps less half of one
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
    found = correlated(night, replace(WIDE, delays=tmp_path / "d.toml"), centre_of(centre))
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
        correlated(night, replace(WIDE, delays=tmp_path / "e.toml"), centre_of(centre))


SKY = """
sample_rate_hz = 4e6
centre_frequency_hz = 1.42e9
sample_bits = 8
n_pols = 2
n_samples = 200000
first_timestamp = 77
sync_time_unix = 1.712e9
seed = 3
[phase_centre]
hour_angle_deg = -31
declination_deg = 12
[noise]
level = 5
[array]
layout = "random"
n_antennas = 6
spacing_m = 300
latitude_deg = 34
longitude_deg = -107
[[source]]
l = 0
m = 0
flux = 30
"""


def test_a_simulated_skys_phase_centre_is_the_same_place(tmp_path: Path) -> None:
    """An apparent place, whose delays the recording has beside it."""
    (tmp_path / "sky.toml").write_text(SKY)
    for _ in Recording(tmp_path / "sky.toml", tmp_path / "night").write():
        pass
    centre = read_sky(tmp_path / "sky.toml").phase_centre
    found = correlated(tmp_path / "night", WIDE, centre).values
    assert largest_deg(found) < 1.5 and np.abs(found).mean() > 0.95


def test_what_cannot_be_is_told_before_anything_runs(beside: Beside, tmp_path: Path) -> None:
    centre, night = beside.centre, beside.folder / "night"
    samples = [np.zeros((2, 1 << 14), np.int8)] * 2

    def run(inputs: object = night, **rest: object) -> None:
        at = rest.pop("at", centre_of(centre))
        correlate(inputs, WIDE, tmp_path / "x.h5", batches_per_dump=1, phase_centre=at, running=ON_HOST, **rest)

    needed = (
        "position_m of antenna m000, centre_frequency_hz of antenna m000, sync_time_unix of antenna m000, position_m"
    )
    for words, call in {
        needed: lambda: run(samples, header={"sample_rate_hz": 1e6}),
        "must be a right ascension and a declination": lambda: run(at="3C 273"),
        "must have right_ascension_deg": lambda: run(at=PhaseCentre(5.0)),
        "declination_deg": lambda: run(at=PhaseCentre(95.0, 3.0)),
        "not geocentric": lambda: run(header={"position_m": (1.0, 2.0, 3.0)}),
        "a phase centre is for samples": lambda: run([tmp_path / "v.h5"]),
    }.items():
        with pytest.raises(UsageError, match=words):
            call()
    assert list(tmp_path.iterdir()) == []
