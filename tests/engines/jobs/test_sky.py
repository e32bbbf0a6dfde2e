"""A simulated sky from the commands that people type to files: the tutorial, a narrow band, and baselines in UVH5."""

import re
import sys
from math import cos, radians, sin
from pathlib import Path

import numpy as np
import pytest

from autotune.cli import program
from autotune.engines.files.delay_file import read_delays
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.jobs import Bands, Narrow, Running, correlate
from autotune.engines.sky.description import read_sky
from autotune.engines.sky.expected import theory_of
from autotune.engines.sky.simulated_recording import Recording
from autotune.engines.streams.visibilities import VisibilityInfo

ON_HOST = Running(device="host")

ROOT = Path(__file__).parents[3]
TUTORIAL, SKY = ROOT / "docs" / "engines-tutorial.md", ROOT / "docs" / "example" / "sky.toml"
LIGHT_M_S = 299792458.0


def smaller(folder: Path, n_samples: int, *changes: tuple[str, str]) -> Path:
    """The tutorial's sky, of fewer samples and antennas."""
    text = SKY.read_text()
    for before, after in [
        ("n_samples = 4194304", f"n_samples = {n_samples}"),
        ("n_antennas = 16", "n_antennas = 4"),
        *changes,
    ]:
        assert before in text
        text = text.replace(before, after)
    (folder / "sky.toml").write_text(text)
    return folder / "sky.toml"


def recorded(folder: Path, n_samples: int, *changes: tuple[str, str]) -> Path:
    for _ in Recording(smaller(folder, n_samples, *changes), folder / "night").write():
        pass
    return folder / "night"


def coefficients(info: VisibilityInfo, values: np.ndarray, i: int, j: int) -> np.ndarray:
    """Correlation coefficients of products aa, complex [n_dumps, C]."""

    def product(i: int, j: int) -> np.ndarray:
        return np.asarray(values[:, :, j * (j + 1) // 2 + i, 0] @ [1, 1j])

    return np.asarray(product(i, j) / np.sqrt(product(i, i).real * product(j, j).real))


def theories(night: Path, info: VisibilityInfo, timestamps: np.ndarray, window: int, stopped: bool) -> list[np.ndarray]:
    """What ``coefficients`` are by theory, of all pairs i < j."""
    delays = read_delays(night / "delays.toml") if stopped else None
    theory = theory_of(read_sky(night / "sky.toml"), info, delays, window)
    rate = info.antennas[0].sample_rate_hz
    times = (timestamps + info.dump_samples / 2) / rate
    assert info.centre_frequency_hz is not None
    frequencies = info.centre_frequency_hz + (np.arange(info.n_channels) - info.n_channels / 2) * info.channel_width_hz
    return [
        theory(i, j, times, frequencies, integration_s=info.dump_samples / rate)
        for j in range(len(info.antennas))
        for i in range(j)
    ]


def agreement(found: list[np.ndarray], expected: list[np.ndarray], channels: slice) -> tuple[float, float]:
    """How well they agree: |sum of found x conj(expected)| over the product of norms, and the angle of the sum."""
    f, e = (np.concatenate([each[:, channels].ravel() for each in some]) for some in (found, expected))
    sum_ = np.vdot(e, f)
    return float(abs(sum_) / (np.linalg.norm(e) * np.linalg.norm(f))), float(np.angle(sum_))


def test_the_tutorial(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of the page runs, and the visibilities are those of theory."""
    commands = re.findall(r"^    (autotune .*)$", TUTORIAL.read_text(), re.MULTILINE)
    assert [command.split()[1] for command in commands] == ["sky", "channelise", "correlate"]
    smaller(tmp_path, 1 << 18)
    monkeypatch.chdir(tmp_path)
    for command in commands:
        words = command.replace("docs/example/sky.toml", "sky.toml").replace("--channels 128", "--channels 32").split()
        monkeypatch.setattr(sys, "argv", [*words, *(["--device", "host"] if words[1] != "sky" else [])])
        with pytest.raises(SystemExit) as end:
            program.main()
        assert end.value.code == 0, capsys.readouterr().err
    for name in ("m000.png", "vis.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    dumps = VisibilityDumps("vis.h5")
    whole = [dump for dump in dumps if dump.present.all()]
    assert len(whole) >= 2
    values = np.stack([dump.visibilities for dump in whole])
    found = [coefficients(dumps.info, values, i, j) for j in range(4) for i in range(j)]
    times = np.array([dump.timestamp for dump in whole])
    inner = slice(2, 30)
    like, angle = agreement(found, theories(tmp_path / "night", dumps.info, times, 16 * 64, True), inner)
    assert like > 0.98 and abs(angle) < 0.02  # noise is a tenth of the coefficients
    assert agreement(found, theories(tmp_path / "night", dumps.info, times, 16 * 64, False), inner)[0] < 0.9


def test_a_narrow_band_takes_the_delays_of_the_whole_one(tmp_path: Path) -> None:
    night = recorded(tmp_path, 1 << 19)
    bands = Bands(16, 4, spectra_per_heap=32, delays=night / "delays.toml", narrow=(Narrow(1290e6, 16, 128),))
    made = correlate(night, bands, accumulate=8, running=ON_HOST)
    whole = made.present.all(axis=1)
    assert made.info.centre_frequency_hz == 1290e6 and made.info.channel_width_hz == 64e6 / 256 and whole.sum() >= 3
    found = [coefficients(made.info, made.visibilities[whole], i, j) for j in range(4) for i in range(j)]
    expected = theories(night, made.info, made.timestamps[whole], (4 * 16 - 1) * 16 + 128, True)
    like, angle = agreement(found, expected, slice(2, 15))
    assert like > 0.97 and abs(angle) < 0.03


def test_baselines_in_uvh5_point_where_the_source_is(tmp_path: Path) -> None:
    """Data times exp(-2 pi i w), with w towards the source as ``UVData.phase`` has it, have no phase left."""
    pyuvdata = pytest.importorskip("pyuvdata")
    second = SKY.read_text()[SKY.read_text().index("[[source]]                       # a degree") :]
    night = recorded(tmp_path, 1 << 18, ("spacing_m = 400", "spacing_m = 60"), (second, ""))
    out = tmp_path / "vis.uvh5"
    correlate(night, Bands(32, 4, spectra_per_heap=64), out, accumulate=16, running=ON_HOST)  # fringes are not stopped
    observation = pyuvdata.UVData.from_file(str(out))
    latitude, hour_angle, declination = map(radians, (-30.7, 20, -30))
    towards = np.array(  # the source: east, north, up
        [
            -cos(declination) * sin(hour_angle),
            cos(latitude) * sin(declination) - sin(latitude) * cos(declination) * cos(hour_angle),
            sin(latitude) * sin(declination) + cos(latitude) * cos(declination) * cos(hour_angle),
        ]
    )
    is_cross = observation.ant_1_array != observation.ant_2_array
    w = observation.uvw_array[is_cross] @ towards / LIGHT_M_S
    data = observation.data_array[is_cross][:, 3:29, 0]
    turned = data * np.exp(-2j * np.pi * w[:, np.newaxis] * observation.freq_array[3:29])
    assert abs(w).max() * 1284e6 > 30  # cycles
    assert abs(turned.sum()) > 0.95 * abs(data).sum() and abs(np.angle(turned.sum())) < 0.05
    assert abs(data.sum()) < 0.5 * abs(data).sum()


def test_files_say_the_direction_whose_fringes_were_stopped(tmp_path: Path) -> None:
    """What delays have stopped is what pyuvdata makes of fringes that run, phased to what the file says."""
    pyuvdata = pytest.importorskip("pyuvdata")
    second = SKY.read_text()[SKY.read_text().index("[[source]]                       # a degree") :]
    night = recorded(tmp_path, 1 << 18, ("spacing_m = 400", "spacing_m = 60"), (second, ""))
    told: list[str] = []
    found = {}
    for name, delays in (("running", None), ("stopped", night / "delays.toml")):
        bands = Bands(32, 4, spectra_per_heap=64, delays=delays)
        correlate(
            night,
            bands,
            tmp_path / f"{name}.uvh5",
            accumulate=16,
            running=Running(device="host", tell=told.append),
        )
        found[name] = pyuvdata.UVData.from_file(str(tmp_path / f"{name}.uvh5"))
    assert not [line for line in told if "unprojected" in line]
    (running,), (stopped,) = ([*each.phase_center_catalog.values()] for each in found.values())
    assert running["cat_type"] == "unprojected" and stopped["cat_type"] == "sidereal"
    found["running"].phase(lon=stopped["cat_lon"], lat=stopped["cat_lat"], cat_name="there", phase_frame="icrs")
    for observation in found.values():
        is_cross = observation.ant_1_array != observation.ant_2_array
        data = observation.data_array[is_cross & ~observation.flag_array.any((1, 2))][:, 3:29, 0]
        assert abs(data.sum()) > 0.98 * abs(data).sum() and abs(np.angle(data.sum())) < 0.02
    assert np.allclose(found["running"].uvw_array, found["stopped"].uvw_array, atol=1e-3)


def test_delays_without_a_direction_are_told(tmp_path: Path) -> None:
    night = recorded(tmp_path, 1 << 18)
    text = (night / "delays.toml").read_text()
    (tmp_path / "delays.toml").write_text(text[: text.index("[phase_centre]")])
    told: list[str] = []
    bands = Bands(32, 4, spectra_per_heap=64, delays=tmp_path / "delays.toml")
    for name, n in (("x.h5", 0), ("x.uvh5", 1)):
        told.clear()
        correlate(night, bands, tmp_path / name, accumulate=16, running=Running(device="host", tell=told.append))
        assert len([line for line in told if "it says unprojected, though delays stop fringes" in line]) == n
