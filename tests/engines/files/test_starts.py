"""Times of recordings are exact, UTC as astropy has it; what a header says too coarsely is told."""

from datetime import datetime
from fractions import Fraction
from pathlib import Path

import astropy.units as u
import numpy as np
import pytest
from astropy.time import Time
from astropy.utils.iers import LeapSeconds
from baseband import vdif

from autotune.engines.files.header_fields import overrides_of
from autotune.engines.files.opening import open_samples
from autotune.engines.jobs.inputs import antenna_input
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.times import LEAPS

from . import makers
from .common import refused

RNG = np.random.default_rng(6)
NIGHT = Fraction(1_767_250_800)  # 2026-01-01, 07:00:00


def first_moment(info: SampleInfo) -> Fraction:
    return info.sync_time_unix + info.first_timestamp / Fraction(info.sample_rate_hz)


def posix(time: Time) -> Fraction:
    """Seconds since 1970 of what the clock shows; `Time.unix` stretches days that have a leap second."""
    day, _, clock = time.isot.partition("T")
    hours, minutes, seconds = clock.split(":")
    date = datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()
    return Fraction(int(date)) + 3600 * int(hours) + 60 * int(minutes) + Fraction(seconds)


# ---------------------------------------------------------------------- leap seconds
def test_leap_seconds_are_those_that_astropy_knows() -> None:
    known = LeapSeconds.from_erfa()
    since = [Time(f"{row['year']}-{row['month']:02}-01").unix for row in known if row["year"] >= 2000]
    assert [round(each) for each in since] == list(LEAPS)


@pytest.mark.parametrize(
    ("epoch", "seconds"),
    [
        (11, 184 * 86400 - 1),  # 2005-12-31, 23:59:59
        (11, 184 * 86400 + 1),
        (17, 184 * 86400 + 1),  # 2009-01-01
        (24, 182 * 86400 + 5),  # 2012-07-01
        (30, 181 * 86400),  # 2015-06-30, 23:59:60 or so
        (30, 181 * 86400 + 1),
        (33, 184 * 86400 + 77),  # 2017-01-01
        (0, 18 * 365 * 86400),  # five of them
        (50, 300 * 86400),
    ],
)
def test_leap_seconds_since_the_epoch_of_vdif_are_counted(tmp_path: Path, epoch: int, seconds: int) -> None:
    payload = RNG.integers(0, 256, 800, np.uint8).tobytes()
    made = [makers.vdif_frame(payload, seconds, number, epoch=epoch) for number in range(4)]
    (tmp_path / "x.vdif").write_bytes(b"".join(made))
    info = open_samples(tmp_path / "x.vdif", sample_rate_hz=8e4).info
    with vdif.open(str(tmp_path / "x.vdif"), "rs", sample_rate=80 * u.kHz) as file:
        assert first_moment(info) == posix(file.start_time)
    zero = Time(2000 + epoch / 2, format="jyear")  # near it
    assert info.first_timestamp == seconds * 80_000 and abs(float(info.sync_time_unix) - zero.unix) < 2 * 86400


def test_two_epochs_of_vdif_say_the_same_moment(tmp_path: Path) -> None:
    payload, infos = RNG.integers(0, 256, 800, np.uint8).tobytes(), []
    for epoch, seconds in (
        (50, 777),
        (49, 777 + 184 * 86400),
        (33, 777 + 3106 * 86400 + 1),
    ):  # a leap second since 2016
        made = [makers.vdif_frame(payload, seconds, number, epoch=epoch) for number in range(2)]
        (tmp_path / "x.vdif").write_bytes(b"".join(made))
        infos.append(open_samples(tmp_path / "x.vdif", sample_rate_hz=8e4).info)
    assert {first_moment(info) for info in infos} == {posix(Time("2025-01-01T00:12:57"))}
    assert len({info.sync_time_unix for info in infos}) == 3


def test_dada_that_went_on_over_a_leap_second_is_in_utc(tmp_path: Path) -> None:
    said = {"TSAMP": 1, "UTC_START": "2016-12-31-23:59:00", "OBS_OFFSET": 100 * 10**6}
    makers.dada(tmp_path / "x", RNG.integers(-9, 9, (64, 1, 1, 1)), said)
    info = open_samples(tmp_path / "x").info
    assert first_moment(info) == Fraction(Time("2017-01-01T00:00:39").unix)
    assert open_samples(tmp_path / "x", sync_time_unix=5).info.sync_time_unix == 5


# ---------------------------------------------------------------------- DADA
@pytest.mark.parametrize(
    ("said", "start", "words"),
    [
        ({"UTC_START": "2026-01-01-07:00:00"}, NIGHT, ""),
        ({"UTC_START": "2026-01-01T07:00:00.000000000125"}, NIGHT + Fraction(1, 8 * 10**9), ""),
        ({"UTC_START": "2026-01-01-07:00:00.5"}, NIGHT + Fraction(1, 2), ""),
        ({"UTC_START": "2026-01-01-07:00:00.3"}, NIGHT + Fraction(3, 10), "0.1 s, which is 1e+05 samples"),
        ({"MJD_START": "61041.5"}, NIGHT + 18_000, ""),
        ({"MJD_START": "61041.291666666666666666666667"}, NIGHT + 2880 * Fraction(1, 10**23), ""),
        ({"MJD_START": "61041.2916666667"}, NIGHT + Fraction(288, 10**8), "MJD_START=61041.2916666667 says its start"),
        ({"UTC_START": "2026-01-01-07:00:00", "MJD_START": "61041.2917"}, NIGHT, ""),
        # of both, the finer one if they agree
        (
            {"UTC_START": "2026-01-01-07:00:00.25", "MJD_START": "61041.291669571759259"},
            NIGHT + Fraction("0.2509999999776"),
            "",
        ),
        (
            {"UTC_START": "2026-01-01-07:00:00.25", "MJD_START": "61041.391669571759259"},
            NIGHT + Fraction(1, 4),
            "UTC_START=2026-01-01-07:00:00.25 says its start to 0.01 s",
        ),
        ({"UTC_START": "2026-13-01-07:00:00", "MJD_START": "unset"}, None, ""),
    ],
)
def test_the_start_of_dada_is_exact(tmp_path: Path, said: dict, start: Fraction | None, words: str) -> None:
    makers.dada(tmp_path / "x", RNG.integers(-9, 9, (64, 1, 1, 1)), {"TSAMP": 1, **said})
    told: list[str] = []
    assert open_samples(tmp_path / "x", tell=told.append).info.sync_time_unix == start
    assert len(told) == bool(words) and words in "".join(told) and "\n" not in "".join(told)
    assert not told or ("x: " in told[0] and "give sync_time_unix as text" in told[0])
    told.clear()
    open_samples(tmp_path / "x", sync_time_unix="1700000000.125", tell=told.append)
    assert [line for line in told if " replaces " not in line] == []


@pytest.mark.parametrize(
    ("microseconds", "rate"), [("0.64", 1_562_500.0), ("1.28e-3", 781_250_000.0), ("3", 1e6 / 3), ("0.0007", 1e10 / 7)]
)
def test_the_rate_of_dada_is_rounded_once(tmp_path: Path, microseconds: str, rate: float) -> None:
    makers.dada(tmp_path / "x", RNG.integers(-9, 9, (64, 1, 1, 1)), {"TSAMP": microseconds})
    info = open_samples(tmp_path / "x").info
    assert info.sample_rate_hz == float(10**6 / Fraction(microseconds)) and abs(info.sample_rate_hz - rate) < 1e-3


# ---------------------------------------------------------------------- GUPPI RAW
@pytest.mark.parametrize(
    ("said", "start", "words"),
    [
        ({"STT_SMJD": 25_200, "STT_OFFS": 0}, NIGHT, ""),
        ({"STT_SMJD": 25_200, "STT_OFFS": "0.0"}, NIGHT, ""),
        ({"STT_SMJD": 25_200, "STT_OFFS": "0.123456789012"}, NIGHT + Fraction("0.123456789012"), ""),
        ({"STT_SMJD": 25_200, "STT_OFFS": "0.5"}, NIGHT + Fraction(1, 2), ""),
        ({"STT_SMJD": 25_200, "STT_OFFS": "0.25"}, NIGHT + Fraction(1, 4), "STT_OFFS=0.25 says its start to 0.01 s"),
        ({"STT_SMJD": 25_200, "STT_OFFS": "1.5E-07"}, NIGHT + Fraction("1.5E-7"), ""),
        ({"STT_SMJD": 1, "STT_OFFS": 0, "SYNCTIME": 1_767_250_000, "PKTSTART": 77}, NIGHT - 800, ""),
    ],
)
def test_the_start_of_guppi_is_exact(tmp_path: Path, said: dict, start: Fraction, words: str) -> None:
    block = RNG.integers(-9, 9, (1, 64, 2, 2))
    makers.guppi(tmp_path / "x", [block], [3], {"TBIN": "4E-7", "STT_IMJD": 61_041, **said})
    told: list[str] = []
    info = open_samples(tmp_path / "x", tell=told.append).info
    assert (info.sync_time_unix, info.first_timestamp, info.sample_rate_hz) == (start, 3 * 64, 2.5e6)
    assert len(told) == bool(words) and words in "".join(told)


# ---------------------------------------------------------------------- what is given
@pytest.mark.parametrize(
    ("time", "is_told"), [(1.6e9, False), (1600000000.1, True), ('"1600000000.1"', False), (1600000000, False)]
)
def test_a_time_of_a_toml_header_that_is_a_float_is_told(tmp_path: Path, time: object, is_told: bool) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(64))
    text = f'file = "x.bin"\nsample_bits = 8\nn_pols = 1\nsample_rate_hz = 1e7\nsync_time_unix = {time}\n'
    (tmp_path / "x.toml").write_text(text + "first_timestamp = 0\n")
    told: list[str] = []
    open_samples(tmp_path / "x.toml", tell=told.append)
    assert ["sync_time_unix=1600000000.1 says its start to 2.4e-07 s, which is 2.4 samples" in t for t in told] == [
        True
    ] * is_told


def test_a_float_is_told_where_its_steps_are_long(tmp_path: Path) -> None:
    makers.dada(tmp_path / "x", RNG.integers(-9, 9, (64, 1, 1, 1)), {"TSAMP": 1})
    for rate, n in ((1e5, 0), (1e6, 1)):
        told: list[str] = []
        header = {"sync_time_unix": 1600000000.3, "sample_rate_hz": rate}
        antenna_input(tmp_path / "x", header, tell=told.append)
        antenna_input(np.zeros(64, np.int8), header, tell=told.append)
        assert len([line for line in told if " replaces " not in line]) == 2 * n, told
    with refused("sync_time_unix is 'soon', must be seconds since 1970"):
        overrides_of({"sync_time_unix": "soon"})


def test_a_time_after_all_times_is_refused(tmp_path: Path) -> None:
    makers.dada(tmp_path / "x", RNG.integers(-9, 9, (64, 1, 1, 1)), {"TSAMP": 1, "MJD_START": "1e20"})
    with refused(tmp_path / "x", "MJD_START=1e20 is not a time of a recording"):
        open_samples(tmp_path / "x")
