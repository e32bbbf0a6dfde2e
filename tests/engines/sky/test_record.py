"""sky.toml and what is made of it: files, holes, seeds, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from autotune import unpack_samples
from autotune.engines.files.delay_file import read_delays
from autotune.engines.files.opening import open_samples
from autotune.engines.sky.description import read_sky
from autotune.engines.sky.simulated_recording import Recording
from autotune.engines.sky.sky_samples import BLOCK, SkySamples

from ..files.common import full_disk, read_all, refused

GOOD = """
sample_rate_hz = 1e6
sample_bits = 10
n_pols = 2
n_samples = 40960
first_timestamp = 77
sync_time_unix = 1.7e9
centre_frequency_hz = 1.4e9
seed = 3
[phase_centre]
hour_angle_deg = 10
declination_deg = -30.5
[noise]
level = 20
[array]
layout = "random"
n_antennas = 3
spacing_m = 100
latitude_deg = -30.7
longitude_deg = 21.4
height_m = 1050
[[source]]
l = 0
m = 0.001
flux = 0.5
[[tone]]
frequency_hz = 1.4e9
amplitude = 5
antennas = ["m001"]
[[hole]]
antenna = "m001"
pol = 1
start = 30000
n_samples = 5000
"""


def written(folder: Path, text: str) -> Path:
    (folder / "sky.toml").write_text(text)
    return folder / "sky.toml"


def recorded(folder: Path, text: str, seed: int | None = None) -> Path:
    recording = Recording(written(folder, text), folder / "night", seed)
    assert list(recording.write()) == list(range(recording.n_blocks))
    return folder / "night"


def test_a_recording_is_read_as_it_was_made(tmp_path: Path) -> None:
    night = recorded(tmp_path, GOOD)
    names = ["m000", "m001", "m002"]
    files = [f"{name}.{end}" for name in names for end in ("toml", "bin")]
    assert sorted(path.name for path in night.iterdir()) == sorted([*files, "delays.toml", "sky.toml"])
    assert (night / "sky.toml").read_text() == GOOD and list(read_delays(night / "delays.toml")) == names
    sky = read_sky(night / "sky.toml")
    blocks = SkySamples(sky)
    made = np.concatenate([np.stack(list(blocks.block(i))) for i in range(blocks.n_blocks)], axis=2)
    for antenna, name, samples in zip(sky.antennas, names, made, strict=True):
        source = open_samples(night / f"{name}.toml")
        info = source.info
        assert (info.antenna, info.position_m, info.first_timestamp) == (name, antenna.position_m, 77)
        assert (info.centre_frequency_hz, info.sync_time_unix, info.packet) == (1.4e9, 1.7e9, 4096)
        read = read_all(source, (3,))
        there = np.ones((2, 40960), bool)
        if name == "m001":
            there[1, 7 * 4096 : 9 * 4096] = False
        assert (np.repeat(read.received, 4096, axis=1) == there).all()
        found = np.stack([unpack_samples(row, 10, 0, 40960) for row in read.rows])
        assert np.array_equal(found[there], samples[there])
    data = np.frombuffer((night / "m001.bin").read_bytes()[51200:], np.uint8)
    hole = unpack_samples(data, 10, 0, 40960)
    assert not hole[30000:35000].any() and hole[29990:30000].any() and hole[35000:35010].any()
    assert BLOCK < 35000


def test_a_seed_is_kept_with_the_recording(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    given = recorded(tmp_path, GOOD.replace("seed = 3\n", ""), seed=3)
    again = recorded(tmp_path / "b", (given / "sky.toml").read_text())
    for path in given.iterdir():
        assert path.name == "sky.toml" or path.read_bytes() == (again / path.name).read_bytes()
    with refused("it has no seed", "--seed 1"):
        read_sky(written(tmp_path, GOOD.replace("seed = 3\n", "")))
    with refused("it has a seed, 3: leave that out, or --seed"):
        read_sky(written(tmp_path, GOOD), 3)


def test_a_duration_and_antennas_of_their_own(tmp_path: Path) -> None:
    start, end = GOOD.index("[array]"), GOOD.index("[[source]]")
    own = '[[antenna]]\nname = "m001"\nposition_m = [1e6, 2e6, 3e6]\n'
    text = GOOD[:start] + own + GOOD[end:].replace("n_samples = 5000", "n_samples = 1")
    sky = read_sky(written(tmp_path, text.replace("n_samples = 40960", "duration_s = 0.5")))
    assert sky.n_samples == 500_000 and [each.name for each in sky.antennas] == ["m001"]
    assert sky.holes[0].n_samples == 1 and sky.low == pytest.approx(1399.75)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("n_pols = 2", "n_pols = 3", ["it n_pols is 3", "1 to 2"]),
        ("n_pols = 2", "", ["it lacks n_pols"]),
        ("n_pols = 2", "n_pols = 2\ncolour = 1", ["'colour', which nothing here knows"]),
        ("sample_bits = 10", "sample_bits = 64", ["sample_bits is 64", "2 to 16"]),
        ("n_samples = 40960", "", ["either n_samples or duration_s"]),
        ("n_samples = 40960", "n_samples = 40960\nduration_s = 1", ["either n_samples or duration_s"]),
        ("n_samples = 40960", "duration_s = 1e6", ["86400 seconds at most"]),
        ("n_samples = 40960", "duration_s = 1e-6", ["it says 1 samples, must be 8 or more"]),
        ("centre_frequency_hz = 1.4e9", "centre_frequency_hz = 1e5", ["below a quarter of sample_rate_hz"]),
        ("declination_deg = -30.5", "declination_deg = 91", ["phase_centre declination_deg is 91", "-90 to 90"]),
        ("level = 20", "level = nan", ["noise level is nan"]),
        ('"random"', '"spiral"', ["array layout is 'spiral'", "east-west, random"]),
        ("n_antennas = 3", "n_antennas = 0", ["array n_antennas is 0"]),
        (
            "[array]",
            '[[antenna]]\nname = "a"\nposition_m = [1, 2, 3]\n[array]',
            ["either [[antenna]] tables or one [array"],
        ),
        ("m = 0.001", "m = 2", ["[[source]] 1 m is 2", "-1 to 1"]),
        ("l = 0", "l = 1", ["[[source]] 1 has l=1, m=0.001"]),
        ("flux = 0.5", "flux = -1", ["[[source]] 1 flux is -1"]),
        ("flux = 0.5", "", ["[[source]] 1 lacks flux"]),
        (
            "frequency_hz = 1.4e9\na",
            "frequency_hz = 1.5e9\na",
            ["[[tone]] 1", "the band is 1.39975e+09 to 1.40025e+09"],
        ),
        ('["m001"]', '["m009"]', ["[[tone]] 1 is at antenna 'm009', which is not there"]),
        ("start = 30000", "start = 36000", ["[[hole]] 1 is not within the 40960 samples"]),
        ('antenna = "m001"', 'antenna = "x"', ["[[hole]] 1 is not within"]),
        ("n_samples = 5000", "n_samples = 0", ["[[hole]] 1 is not within"]),
    ],
    ids=range(23),
)
def test_a_wrong_sky_is_told(tmp_path: Path, before: str, after: str, words: list[str]) -> None:
    assert before in GOOD
    with refused("sky.toml: ", *words):
        Recording(written(tmp_path, GOOD.replace(before, after)), tmp_path / "night")
    assert not (tmp_path / "night").exists()


@pytest.mark.parametrize("name", ["sky", "delays", "../x", "a/b", "", ".x", "*", "m\\u0007"])
def test_names_that_are_no_files(tmp_path: Path, name: str) -> None:
    start, end = GOOD.index("[array]"), GOOD.index("[[source]]")
    own = f'[[antenna]]\nname = "{name}"\nposition_m = [1e6, 2e6, 3e6]\n'
    with refused("sky.toml: [[antenna]] 1 name is "):
        read_sky(written(tmp_path, GOOD[:start] + own + GOOD[end:]))


def test_antennas_that_are_there_twice_or_not_at_all(tmp_path: Path) -> None:
    start, end = GOOD.index("[array]"), GOOD.index("[[source]]")
    own = '[[antenna]]\nname = "m001"\nposition_m = [1e6, 2e6, 3e6]\n'
    with refused("sky.toml: it has 2 antennas of 1 names"):
        read_sky(written(tmp_path, GOOD[:start] + 2 * own + GOOD[end:]))
    with refused("sky.toml: it has no antenna"):
        read_sky(written(tmp_path, "antenna = []\n" + GOOD[:start] + GOOD[end:]))


def test_nothing_is_written_over_and_a_full_disk_is_told(tmp_path: Path) -> None:
    night = recorded(tmp_path, GOOD)
    before = {path.name: path.read_bytes() for path in night.iterdir()}
    with refused("night: it is not empty"):
        Recording(tmp_path / "sky.toml", night)
    assert before == {path.name: path.read_bytes() for path in night.iterdir()}
    with refused("cannot be written to"):
        Recording(tmp_path / "sky.toml", tmp_path / "sky.toml")
    recording = Recording(tmp_path / "sky.toml", tmp_path / "small")
    with full_disk(60_000), refused("m000.bin", "File too large"):
        list(recording.write())
