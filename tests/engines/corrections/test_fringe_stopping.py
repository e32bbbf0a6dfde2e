"""Delays towards a direction: as pyuvdata's w and astropy's AltAz have them, to a tenth of a picosecond; and doubts."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from astropy import units
from astropy.coordinates import EarthLocation, SkyCoord
from astropy.time import Time
from astropy.utils import iers
from pyuvdata.utils import phasing
from pyuvdata.utils.times import get_lst_for_time

from autotune.core.errors import UsageError
from autotune.engines.corrections.delays import BEFORE, DelayModel, Piece
from autotune.engines.corrections.directions import direction_of_text, icrs_of, offline, towards
from autotune.engines.corrections.fringe_stopping import piece_length, stopping_models
from autotune.engines.streams.phase_centre import PhaseCentre
from autotune.engines.streams.samples import SampleInfo

from ..plain_array import LIGHT_M_S, PlainArray


def infos(array: PlainArray, n: int, **changes: object) -> list[SampleInfo]:
    """Samples of an array, ``n`` of each antenna."""
    said = {"n_samples": n, "first_timestamp": array.first, "centre_frequency_hz": array.centre_hz, **changes}
    said.setdefault("sync_time_unix", array.sync)
    return [
        SampleInfo(64, 2, array.rate_hz, 1, antenna=f"m{k}", **{"position_m": tuple(place), **said})
        for k, place in enumerate(array.positions_m.tolist())
    ]


def models(
    array: PlainArray, n: int, centre: PhaseCentre, middle: float = 0.0, **rest: object
) -> tuple[list, list[str]]:
    told: list[str] = []
    return stopping_models(infos(array, n, **rest), centre, middle, told.append), told


@pytest.mark.parametrize(("seed", "across_m", "centre_hz"), [(1, 300.0, 3e8), (2, 9900.0, 1.4e9), (3, 4000.0, 2.6e10)])
def test_delays_undo_those_of_astropy(seed: int, across_m: float, centre_hz: float) -> None:
    """What a station gets at u leaves at the middle's time u - tau(u): d = -tau(u), within 0.1 ps and 0.1 degree."""
    array = PlainArray(seed, across_m=across_m, rate_hz=1e6, centre_hz=centre_hz, n=5_000_000)
    source, middle = array.source(), 1000.5
    found, _ = models(array, array.n, PhaseCentre(source.dec.deg, right_ascension_deg=source.ra.deg), middle)
    u = np.linspace(0, array.n, 77).round()
    for tau, model in zip(array.tau_s(source, u) * array.rate_hz, found, strict=True):
        leaves = u - tau - middle  # the timestamp of a spectrum whose middle it is
        starts = np.array([piece.start for piece in model.pieces[1:]])
        pieces = [model.pieces[k] for k in np.searchsorted(starts, leaves + array.first, side="right")]
        since = [time + array.first - piece.start for time, piece in zip(leaves.tolist(), pieces, strict=True)]
        delay = np.array([piece.delay + piece.rate * t for piece, t in zip(pieces, since, strict=True)])
        phase = np.array([piece.phase + piece.phase_rate * t for piece, t in zip(pieces, since, strict=True)])
        assert np.abs(delay + tau).max() / array.rate_hz < 1e-13
        off = np.exp(1j * (phase - 2 * np.pi * centre_hz / array.rate_hz * tau))
        assert np.degrees(np.abs(np.angle(off))).max() < 0.1
    assert all(model.pieces[0].start == BEFORE and len(model.pieces) > 1 for model in found)


@pytest.mark.parametrize("when", ["2015-06-30T23:59:58.3", "2023-01-17T05:06:07.89", "2026-11-20T01:02:03"])
def test_directions_are_those_of_pyuvdata(when: str) -> None:
    """w of ``UVData.phase`` and UVW, of dates that were measured and that are only predicted; 3 km, 0.03 ps."""
    rng = np.random.default_rng(len(when))
    location = EarthLocation.from_geodetic(rng.uniform(-180, 180), rng.uniform(-70, 70), 1500.0)
    place, baseline = (rng.uniform(0, 6.2), rng.uniform(-1.4, 1.4)), rng.normal(size=3)
    baseline *= 3000 / np.linalg.norm(baseline)
    with offline():
        time = Time([when], scale="utc")
        sidereal = get_lst_for_time(time.jd, telescope_loc=location)
        ra, dec = phasing.transform_icrs_to_app(
            time_array=time, ra=np.array(place[:1]), dec=np.array(place[1:]), telescope_loc=location
        )
        uvw = phasing.calc_uvw(
            app_ra=ra,
            app_dec=dec,
            frame_pa=np.zeros(1),
            lst_array=sidereal,
            use_ant_pos=True,
            antenna_positions=np.array([np.zeros(3), baseline]),
            antenna_numbers=np.arange(2),
            ant_1_array=np.array([0]),
            ant_2_array=np.array([1]),
            telescope_lat=location.lat.rad,
            telescope_lon=location.lon.rad,
        )
    w = float((towards(place, location, time) @ baseline)[0])
    assert abs(w - uvw[0, 2]) / LIGHT_M_S < 3e-14
    apparent = PhaseCentre(
        np.degrees(dec[0]), None, np.degrees(sidereal[0] - ra[0]), location.lon.deg, Fraction(time[0].unix)
    )
    there = SkyCoord(*icrs_of(apparent, location), unit=units.rad)
    assert there.separation(SkyCoord(*place, unit=units.rad)).arcsec < 1e-3


@pytest.mark.parametrize("across_m", [0.0, 120.0, 1000.0, 30e3])
@pytest.mark.parametrize("hz", [1e8, 1.4e9, 4e10])
def test_pieces_are_short_enough(across_m: float, hz: float) -> None:
    """A chord of the fastest curve that a baseline may have."""
    length, turn = piece_length(across_m, hz), 7.292115e-5
    t = np.linspace(-length / 2, length / 2, 101)
    curve = across_m / LIGHT_M_S * np.cos(turn * t)
    error = np.abs(curve - curve[0]).max()
    assert 0 < length <= 10 and error <= 1.001e-13 and error * hz * 360 <= 0.1001
    assert length == 10 or max(error / 1e-13, error * hz * 3600) > 0.999


def test_texts_of_directions() -> None:
    for text in ("12h29m06.7s +2d03m09s", "12:29:06.7 +02:03:09", "12 29 06.7 +2 3 9", "187.277916667d 2.0525d"):
        found = direction_of_text(text)
        assert found.right_ascension_deg == pytest.approx(187.277916667) and found.declination_deg == pytest.approx(
            2.0525
        )
        assert found.name == text
    for text in ("187.25 -2.5", " 187.25,  -2.5 "):
        assert direction_of_text(text) == PhaseCentre(-2.5, 187.25, name="187.25 -2.5")
    for text in ("3C 273", "", "12h", "10 95", "nan nan", "1 2 3"):
        with pytest.raises(UsageError, match="must be a right ascension and a declination"):
            direction_of_text(text)


def test_astropy_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "astropy", None)
    for call in (lambda: direction_of_text("1 2"), lambda: stopping_models([], PhaseCentre(1.0, 2.0), 0.0, print)):
        with pytest.raises(UsageError, match=r"a phase centre needs astropy .* autotune's extra uv"):
            call()


def test_doubts_are_told() -> None:
    array = PlainArray(4, across_m=12e3)
    source = array.source()
    there = PhaseCentre(source.dec.deg, source.ra.deg)
    assert "the longest baseline is 12.0 km" in models(array, 1000, there)[1][1]
    array = PlainArray(5)
    source = array.source()
    there, below = PhaseCentre(source.dec.deg, source.ra.deg), PhaseCentre(-source.dec.deg, (source.ra.deg + 180) % 360)
    assert len(models(array, 1000, there)[1]) == 1
    altitude = float(array.altitude_azimuth_deg[0])
    assert f"is {altitude:.1f} degrees below the horizon" in models(array, 1000, below)[1][1]
    with offline():
        soon = int(iers.earth_orientation_table.get().meta["predictive_mjd"]) + 60 - 40587  # days
    for days, words in ((soon, "is only predicted in"), (46296, "2096-10-02 is not in")):
        lines = models(array, 1000, there, sync_time_unix=Fraction(86400 * days), first_timestamp=0)[1]
        (line,) = [each for each in lines if "orientation" in each]
        assert words in line and "arc seconds" in line and "nothing is downloaded" in line


def test_a_model_plus_another_is_both() -> None:
    rng = np.random.default_rng(9)

    def drawn() -> DelayModel:
        starts = np.sort(rng.integers(-3000, 3000, 5)).tolist()
        return DelayModel(*(Piece(start, *(rng.normal(size=4) * [50, 1e-3, 2, 1e-3])) for start in starts))

    first, second = drawn(), drawn()
    both = first.plus(second)
    for time in (-5000, *rng.integers(-3500, 3500, 50).tolist(), 9000):
        here, there, found = (model.at(time, 1, 1) for model in (first, second, both))
        sums = [float(a.coarse[0] + a.fine[0]) for a in (here, there)]
        assert found.coarse[0] + found.fine[0] == pytest.approx(sum(sums), abs=1e-9)
        left = found.phase[0] - here.phase[0] - there.phase[0]
        assert abs(left - 2 * np.pi * round(left / (2 * np.pi))) < 1e-9
    assert DelayModel().plus(first).pieces == first.plus(DelayModel()).pieces == first.pieces
