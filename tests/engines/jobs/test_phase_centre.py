"""A phase centre by its coordinates: an independent array's source there has no phase, at any frequency or time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from astropy import units
from astropy.coordinates import SkyCoord

from autotune.core.errors import UsageError
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.jobs import Narrow, Running, correlate, pointing
from autotune.engines.sky.description import read_sky
from autotune.engines.sky.simulated_recording import Recording
from autotune.engines.streams.phase_centre import PhaseCentre

from ...commands import typed
from ..plain_array import PlainArray
from .phases import BANDS, CROSS, ON_HOST, TAPS, C, I, J, centre_of, correlated, inner, largest_deg, stored

PER_DUMP = {"complex": 8, "real": 4, "lower": 4, "narrow": 2}  # heaps of a dump of 4096 samples
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
    bands = replace(BANDS, narrow=narrow)
    found = correlated(array.write(tmp_path / "night", [(source, 1.0)]), bands, centre_of(source), PER_DUMP[kind])
    assert len(found.values) >= 4 and largest_deg(found.values) < 0.5
    assert np.abs(found.values).min() > 0.98
    assert found.info.phase_centre == centre_of(source) and found.info.is_delayed


# A low rate, long filters and a high frequency: fringes turn 2 times a second, 2 degrees in half of a filter.
SLOW = {"rate_hz": 20e3, "centre_hz": 8.4e9}


def test_fringes_stand_still_over_pieces(tmp_path: Path) -> None:
    array, told = PlainArray(seed=31, n=90_112, **SLOW), list[str]()
    source = array.source()
    night = array.write(tmp_path / "night", [(source, 1.0)])
    running = Running(device="host", tell=told.append)
    text = source.to_string("hmsdms", precision=9)
    found = correlated(night, BANDS, text, 1, running).values
    assert len(found) > 150 and largest_deg(found) < 0.5
    assert np.degrees(np.abs(np.angle(found))).max() < 2, "noise of a single dump"
    assert any("linear over pieces of 3.86 s, within 0.1 ps and 0.1 degrees" in line for line in told)


def test_the_command(slow: tuple[Path, SkyCoord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night, source = slow
    text = f"{source.ra.deg:.9f} {source.dec.deg:.9f}"
    words = ["correlate", str(night), "--channels", str(C), "--taps", str(TAPS), "--spectra-per-heap", "32"]
    words += ["--accumulate", "1", "--phase-centre", text, "--device", "host", "--out", str(tmp_path / "x.h5")]
    typed(words, monkeypatch)
    found = stored(tmp_path / "x.h5")
    assert largest_deg(found.values) < 0.5
    assert found.info.phase_centre == PhaseCentre(*(round(x, 9) for x in (source.dec.deg, source.ra.deg)), name=text)


def test_the_file_of_an_array_says_it_with_delays_of_instruments(slow: tuple[Path, SkyCoord], tmp_path: Path) -> None:
    """Delays that one antenna's table has are added: they turn its channels, and the phase centre stops its fringes."""
    night, source = slow
    files = sorted(night.glob("m*.toml"))
    tables = [f'[[antenna]]\nfiles = "{file}"\n' for file in files]
    where = f"[phase_centre]\nright_ascension_deg = {source.ra.deg}\ndeclination_deg = {source.dec.deg}\n"
    (tmp_path / "array.toml").write_text(where + "\n".join(tables))
    found = correlated(tmp_path / "array.toml", BANDS, None, 1)
    assert largest_deg(found.values) < 0.5
    assert found.info.phase_centre is not None and found.info.is_delayed
    tables[2] += "delays = 0.25\n"
    (tmp_path / "array.toml").write_text(where + "\n".join(tables))
    turned = correlated(tmp_path / "array.toml", BANDS, None, 1)
    frequencies = (np.arange(C)[inner(C)] - C / 2) / C  # cycles a sample from the middle of the band, complex samples
    sides = (1.0 * (I == 2) - (J == 2))[CROSS]  # of the products of i times the conjugate of j
    assert largest_deg(turned.values / np.exp(-2j * np.pi * 0.25 * np.outer(frequencies, sides))) < 0.5


WRONG: dict[str, Callable[[Piece], Piece]] = {
    "phases of the other sign": lambda piece: replace(piece, phase=-piece.phase, phase_rate=-piece.phase_rate),
    "phases that stand": lambda piece: replace(piece, phase_rate=0),
    "a piece that is half a filter late": lambda piece: replace(piece, start=piece.start + TAPS * C // 2),
}


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SkyCoord]:
    array = PlainArray(seed=32, n=1 << 14, **SLOW)
    return array.write(tmp_path_factory.mktemp("slow") / "night", [(array.source(), 1.0)]), array.source()


def stopped(night: Path, centre: PhaseCentre) -> float:
    return largest_deg(correlated(night, BANDS, centre, 1).values)


def test_a_few_dumps_will_do(slow: tuple[Path, SkyCoord]) -> None:
    assert stopped(slow[0], centre_of(slow[1])) < 0.5


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_shows(slow: tuple[Path, SkyCoord], monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    right = pointing.stopping_models

    def models(*args: object) -> list[DelayModel]:
        return [DelayModel(*map(WRONG[wrong], model.pieces[1:])) for model in right(*args)]

    monkeypatch.setattr(pointing, "stopping_models", models)
    assert stopped(slow[0], centre_of(slow[1])) > 1.5


def test_an_arc_second_shows(slow: tuple[Path, SkyCoord]) -> None:
    """So there are precession, nutation and both aberrations in it, which are larger."""
    assert stopped(slow[0], centre_of(slow[1].directional_offset_by(70 * units.deg, 0.2 * units.arcsec))) > 2


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
    found = correlated(tmp_path / "night", BANDS, centre).values
    assert largest_deg(found) < 1.5 and np.abs(found).mean() > 0.95


def test_what_cannot_be_is_told_before_anything_runs(slow: tuple[Path, SkyCoord], tmp_path: Path) -> None:
    night, centre = slow
    samples = [np.zeros((2, 1 << 14), np.int8)] * 2

    def run(inputs: object = night, **rest: object) -> None:
        at = rest.pop("at", centre_of(centre))
        correlate(inputs, BANDS, tmp_path / "x.h5", accumulate=1, phase_centre=at, running=ON_HOST, **rest)

    tables = [
        f'[[antenna]]\nfiles = "{file}"\nposition_m = [1.0, 2.0, 3.0]\n' for file in sorted(night.glob("m*.toml"))
    ]
    (array := tmp_path / "array.toml").write_text("\n".join(tables))
    needed = (
        "position_m of antenna m000, centre_frequency_hz of antenna m000, sync_time_unix of antenna m000, position_m"
    )
    bench = {"sample_rate_hz": 1e6, "centre_frequency_hz": 0.0}
    for words, call in {
        needed: lambda: run(samples, header={"sample_rate_hz": 1e6}),
        "must be a right ascension and a declination": lambda: run(at="3C 273"),
        "must have right_ascension_deg": lambda: run(at=PhaseCentre(5.0)),
        "declination_deg": lambda: run(at=PhaseCentre(95.0, 3.0)),
        "not geocentric": lambda: run(array),
        "begins at -250000 Hz, and fringes": lambda: run(samples, header=bench),
        "only samples can be given a phase centre": lambda: run([tmp_path / "v.h5"]),
    }.items():
        with pytest.raises(UsageError, match=words):
            call()
    assert list(tmp_path.iterdir()) == [array]
