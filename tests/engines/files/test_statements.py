"""What a header or a caller says is refused where data, physics or the clock contradict it, unless one insists."""

import time
from pathlib import Path

import numpy as np
import pytest

from autotune.engines.files.opening import open_samples
from autotune.engines.files.reading import untold
from autotune.engines.jobs.inputs import antenna_input, files_input

from . import makers
from .common import refused
from .test_mark5b import recording

RNG = np.random.default_rng(65)
ON_EARTH = (4_331_000.0, 523_000.0, 4_640_000.0)


def vdif(path: Path, per_second: int, begin: int, n: int, lost: tuple[int, ...] = ()) -> Path:
    """Writes ``n`` frames of 640 samples from number ``begin`` of a second on, ``per_second`` a second."""
    frames = []
    for frame in range(begin, begin + n):
        payload = RNG.integers(0, 256, 640, np.uint8).tobytes()
        if frame - begin not in lost:
            frames.append(makers.vdif_frame(payload, 777 + frame // per_second, frame % per_second))
    path.write_bytes(b"".join(frames))
    return path


@pytest.mark.parametrize(("factor", "n"), [(0.5, 90), (2, 90), (0.8, 90), (1.25, 90), (1.05, 250)])
def test_a_rate_that_frame_numbers_contradict_is_refused_with_theirs(tmp_path: Path, factor: float, n: int) -> None:
    path = vdif(tmp_path / "x.vdif", 100, 30, n)
    wrong = 64_000 * factor
    with refused("x.vdif", f"sample_rate_hz={wrong:g}, as it was given", "count 100, 64000 Hz", "trust_header"):
        open_samples(path, sample_rate_hz=wrong)
    assert open_samples(path, sample_rate_hz=64_000).info.sample_rate_hz == 64_000
    told: list[str] = []
    if factor > 1:
        open_samples(path, sample_rate_hz=wrong, trust_header=True, tell=told.append)
        assert len(told) == 1 and "the header is trusted" in told[0]


@pytest.mark.parametrize("lost", [(69,), (68, 69), (69, 70, 71), (66, 67, 69), tuple(range(20, 60))])
def test_frames_lost_near_a_second_s_end_say_nothing_of_the_rate(tmp_path: Path, lost: tuple[int, ...]) -> None:
    open_samples(vdif(tmp_path / "x.vdif", 100, 30, 120, lost), sample_rate_hz=64_000)


def test_without_the_end_of_a_second_only_too_large_numbers_contradict(tmp_path: Path) -> None:
    path = vdif(tmp_path / "x.vdif", 100, 30, 60)
    open_samples(path, sample_rate_hz=64_000 * 3)
    with refused("50 frames in a second, but their numbers count at least 90"):
        open_samples(path, sample_rate_hz=32_000)
    with refused("their numbers suggest at least 57600") as _:
        open_samples(path)
    with refused("suggest 64000 (--header sample_rate_hz=64000)"):
        open_samples(vdif(tmp_path / "y.vdif", 100, 30, 120))


def test_bits_and_channels_of_mark_5b_that_frame_numbers_contradict_are_refused(tmp_path: Path) -> None:
    recording(tmp_path / "x.m5b", 2, 4, "2014-06-13T23:59:58.980")
    given = {"n_channels": 4, "sample_bits": 2, "sample_rate_hz": 1e7, "mjd": 56821, "channel": 0}
    open_samples(tmp_path / "x.m5b", **given)
    for wrong in ({"sample_bits": 1}, {"n_channels": 8}, {"sample_rate_hz": 5e6}):
        with refused("x.m5b", "frames in a second, but their numbers count 1000"):
            open_samples(tmp_path / "x.m5b", **{**given, **wrong})


def test_values_that_physics_or_the_clock_exclude_are_refused(tmp_path: Path) -> None:
    samples = RNG.integers(-9, 9, (1000, 1, 1, 1))
    makers.dada(tmp_path / "x", samples, {"TSAMP": 1, "FREQ": 1400, "UTC_START": "2023-01-01-00:00:00"})
    wrong = {
        "centre_frequency_hz=1400, as it was given": {"centre_frequency_hz": 1400.0},
        "km from the Earth's centre, not geocentric": {"position_m": (4331.0, 523.0, 4640.0)},
        "days in the future": {"sync_time_unix": time.time() + 2 * 86400},
    }
    for words, header in wrong.items():
        for samples_of in (tmp_path / "x", np.zeros(1000, np.int8)):
            with refused(words, "trust_header"):
                antenna_input(samples_of, {"sample_rate_hz": 1e6, **header})
            told: list[str] = []
            antenna_input(samples_of, {"sample_rate_hz": 1e6, **header, "trust_header": True}, tell=told.append)
            assert len([line for line in told if words in line and "is trusted" in line]) == 1
    makers.dada(tmp_path / "y", samples, {"TSAMP": 1, "FREQ": 0.2, "UTC_START": "2023-01-01-00:00:00"})
    with refused("centre_frequency_hz=200000, as its header says", "begins at -50000 Hz"):
        open_samples(tmp_path / "y")
    for header in ({"centre_frequency_hz": 0.0}, {"centre_frequency_hz": 250e3, "position_m": ON_EARTH}):
        open_samples(tmp_path / "y", **header)


def test_what_replaces_a_header_is_told_once_for_each_file(tmp_path: Path) -> None:
    makers.dada(tmp_path / "x", RNG.integers(-9, 9, (1000, 1, 1, 1)), {"TSAMP": 1, "FREQ": 1400})
    told: list[str] = []
    header = {"sample_rate_hz": 2e6, "antenna": "PKS", "centre_frequency_hz": 1.3e9, "position_m": ON_EARTH}
    open_samples(tmp_path / "x", **header, tell=told.append)
    assert [line.removeprefix(f"{tmp_path / 'x'}: ") for line in told] == [
        "sample_rate_hz=2000000 replaces 1000000 of its header",
        "centre_frequency_hz=1300000000 replaces 1400000000 of its header",
    ]


def test_pieces_of_two_stations_are_refused_though_both_get_one_name(tmp_path: Path) -> None:
    vdif(tmp_path / "a.vdif", 100, 0, 150)
    frames = [makers.vdif_frame(bytes(640), 778, number, station="Ef") for number in range(50, 70)]
    (tmp_path / "b.vdif").write_bytes(b"".join(frames))
    header = {"sample_rate_hz": 64_000.0, "antenna": "m000"}
    files = [[tmp_path / "a.vdif", tmp_path / "b.vdif"]]
    with refused("b.vdif", "its antenna is 'Ef'", "that of", "a.vdif is 'On'"):
        files_input(files, header, "", untold)
    assert files_input(files, {**header, "trust_header": True}, "", untold).info.n_samples == 170 * 640
