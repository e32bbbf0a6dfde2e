"""Mark 5B: read as `baseband` reads it, with what headers lack given, and past damage."""

from fractions import Fraction
from pathlib import Path

import astropy.units as u
import baseband.data
import numpy as np
import pytest
from astropy.time import Time
from baseband import mark5b

from autotune import unpack_samples
from autotune.engines.files.opening import open_samples

from .common import Read, read_all, read_file, refused

SAMPLE = Path(baseband.data.__file__).parent / "sample.m5b"
GIVEN = {"n_channels": 8, "sample_bits": 2, "sample_rate_hz": 32e6, "mjd": 56821}
SIZE = 10_016


def numbers(read: Read, bits: int) -> np.ndarray:
    return np.stack([unpack_samples(row, bits, 0, row.size * 8 // bits) for row in read.rows])


def levels(values: np.ndarray) -> np.ndarray:
    """What baseband reads, in units of the smallest level: -3, -1, 1 and 3."""
    return np.where(np.abs(values) > 2, 3, 1) * np.sign(values)


def recording(path: Path, bits: int, n_channels: int, start: str = "2014-06-13T23:59:59.995") -> np.ndarray:
    """Writes 40 frames, 1000 a second, by baseband; returns what it reads, [n, n_channels]."""
    n_samples = 80_000 // bits // n_channels
    rng, rate = np.random.default_rng(bits), 1000 * n_samples * u.Hz
    kind = {"sample_rate": rate, "nchan": n_channels, "bps": bits}
    with mark5b.open(str(path), "ws", time=Time(start), squeeze=False, **kind) as file:
        file.write(rng.normal(0, 2.2, (40 * n_samples, n_channels)).astype(np.float32))
    with mark5b.open(str(path), "rs", kday=56000, squeeze=False, **kind) as file:
        return levels(file.read())


def test_the_sample_of_baseband_is_read_as_it_does() -> None:
    with mark5b.open(str(SAMPLE), "rs", sample_rate=32 * u.MHz, kday=56000, nchan=8, bps=2, squeeze=False) as file:
        expected, start = levels(file.read()), file.start_time
    start.precision = 9
    for channel in (0, (7, 3)):
        source = open_samples(SAMPLE, channel=channel, **{**GIVEN, "mjd": 56821 + 499 * (channel == 0)})
        info, read = source.info, read_all(source, (1, 3))
        places = [channel] if channel == 0 else list(channel)
        assert (info.sample_bits, info.packet, info.n_samples) == (4, 5000, len(expected)) and read.error == ""
        assert (numbers(read, 4) == expected[:, places].T).all()
        assert info.sync_time_unix == (56821 - 40587) * 86400
        assert abs(float(info.sync_time_unix + Fraction(read.time, 32_000_000)) - start.unix) < 1e-6


@pytest.mark.parametrize(("bits", "n_channels"), [(1, 1), (1, 32), (2, 1), (2, 4), (2, 16)])
def test_any_bits_and_channels_are_read_over_midnight(tmp_path: Path, bits: int, n_channels: int) -> None:
    expected = recording(tmp_path / "x", bits, n_channels)
    n_samples = 80_000 // bits // n_channels
    given = {"n_channels": n_channels, "sample_bits": bits, "sample_rate_hz": 1000.0 * n_samples, "mjd": 57000}
    source = open_samples(tmp_path / "x", channel=n_channels - 1, **given)
    read = read_all(source, (7,))
    assert (numbers(read, 2 * bits)[0] == expected[:, n_channels - 1]).all() and read.received.all()
    begin = source.info.sync_time_unix + read.time / Fraction(1000 * n_samples)
    assert begin == int(Time("2014-06-13").unix) + 86399 + Fraction(995, 1000)


@pytest.mark.parametrize("seed", range(8))
def test_reading_goes_on_behind_damage(tmp_path: Path, seed: int) -> None:
    recording(tmp_path / "x.m5b", 2, 4)
    given = {"n_channels": 4, "sample_bits": 2, "sample_rate_hz": 1e7, "mjd": 56821, "channel": 1}
    whole = read_all(open_samples(tmp_path / "x.m5b", **given)).rows.reshape(40, -1)
    rng, data = np.random.default_rng(seed), (tmp_path / "x.m5b").read_bytes()
    n_events = int(rng.integers(1, 4))
    for frame in sorted(rng.choice(np.arange(0, 39, 4), n_events, replace=False).tolist(), reverse=True):
        at, n = SIZE * frame + int(rng.integers(SIZE)), int(rng.integers(1, SIZE))
        data = data[:at] + (data[at + n :] if rng.random() < 0.5 else rng.bytes(n) + data[at:])
    (tmp_path / "x.m5b").write_bytes(data)
    told: list[str] = []
    source = open_samples(tmp_path / "x.m5b", tell=told.append, **given)
    first = source.info.first_timestamp // 10_000 - (86400 * 1000 - 5)
    read = read_all(source, (6, 1))
    flags, rows = read.received[0], read.rows.reshape(-1, whole.shape[1])
    assert flags.sum() >= 40 - 3 * n_events and read.error == "" and len(told) == 1 and "damaged in" in told[0]
    assert (rows[flags] == whole[first : first + len(flags)][flags]).all()


def test_a_file_that_is_cut_off_or_of_other_times_is_told(tmp_path: Path) -> None:
    recording(tmp_path / "x.m5b", 2, 4)
    given = {"n_channels": 4, "sample_bits": 2, "sample_rate_hz": 1e7, "mjd": 56821, "channel": 1}
    data = (tmp_path / "x.m5b").read_bytes()
    (tmp_path / "x.m5b").write_bytes(data[: 11 * SIZE - 30])
    read = read_file(tmp_path / "x.m5b", **given)
    assert f"at byte {11 * SIZE - 30}, in the middle of frame 10" in read.lost and read.received.sum() == 10
    (tmp_path / "x.m5b").write_bytes(data[20 * SIZE :] + 2 * data)
    read = read_file(tmp_path / "x.m5b", **given)
    assert "are read once: 60" in read.lost and read.received.all() and read.received.sum() == 40 and read.error == ""


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"mjd": None}, "do not say mjd: give mjd"),
        ({"n_channels": None, "sample_rate_hz": None}, "do not say n_channels and sample_rate_hz: give n_channels"),
        ({"sample_bits": 4}, "samples of 1 or 2 bits"),
        ({"n_channels": 3}, "not 3 channels of 2 bits"),
        ({"n_channels": 32}, "at most 32 bits, not 32 channels of 2 bits"),
        ({"n_channels": 10**18}, "n_channels"),
        ({"sample_rate_hz": 32e6 + 1}, "not a whole number of frames of 5000 samples"),
        ({"channel": None}, "it has 8 channels, and none is chosen"),
    ],
)
def test_what_is_not_given_or_wrong_is_told(said: dict, words: str) -> None:
    with refused(words):
        open_samples(SAMPLE, **{"channel": 0, **GIVEN, **said})


def test_what_is_no_mark5b_is_told(tmp_path: Path) -> None:
    for data in (b"", b"x" * 30_000, SAMPLE.read_bytes()[:9000]):
        (tmp_path / "x.m5b").write_bytes(data)
        with refused("x.m5b: ", "frame"):
            open_samples(tmp_path / "x.m5b", channel=0, **GIVEN)
