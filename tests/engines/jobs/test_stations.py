"""Stations with clocks, files and bands of their own: brought to one clock, several in one file, or refused."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.files.opening import open_samples
from autotune.engines.jobs import Bands, Running, channelise, correlate

from ..files import makers
from ..files.common import refused

ON_HOST = Running(device="host")

C, HEAP = 16, 16
BANDS = Bands(C, 4, spectra_per_heap=HEAP)
RNG = np.random.default_rng(39)
RATE = 2_000_000
BEGIN = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)


def noise(n: int) -> np.ndarray:
    return RNG.normal(0, 20, (n, 1, 2, 1))


def recorded(path: Path, sky: np.ndarray, **said: object) -> Path:
    own = RNG.normal(0, 10, sky.shape)
    fields = {"TSAMP": 0.5, "FREQ": 1400, "BW": 1, "UTC_START": f"{BEGIN:%Y-%m-%d-%H:%M:%S}", "TELESCOPE": path.stem}
    makers.dada(path, np.rint(sky + own).clip(-127, 127), fields | said)
    return path


def coefficient(made: Any) -> float:
    v = made.visibilities[made.present.all(axis=1)].astype(float).sum(axis=0)[2:-2]
    return float(np.mean(np.hypot(*v[:, 1, 0].T) / np.sqrt(v[:, 0, 0, 0] * v[:, 2, 0, 0])))


@pytest.mark.parametrize("late", [1, 4321, 60_000])
def test_starts_are_aligned_by_the_headers(tmp_path: Path, late: int) -> None:
    sky, told = noise(1 << 17), []
    first = recorded(tmp_path / "a.dada", sky)
    start = BEGIN + timedelta(seconds=late / RATE)
    utc = f"{start:%Y-%m-%d-%H:%M:%S}.{start.microsecond:06}{'5' * (late % 2)}"
    second = recorded(tmp_path / "b.dada", sky[late:], UTC_START=utc)
    made = correlate([first, second], BANDS, accumulate=3, running=Running(device="host", tell=told.append))
    assert coefficient(made) == pytest.approx(0.8, abs=0.02)
    assert f"b: its time 0 is {late} samples after that of a, which are counted" in told
    length = 3 * HEAP * 2 * C
    assert made.present[:, 1].tolist() == [time >= late for time in made.timestamps.tolist()]
    assert len(made.timestamps) == (1 << 17) // length - ((1 << 17) % length < 3 * 2 * C)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"TSAMP": 1.0}, ["same sample rate", "a has 2000000.0 Hz", "b has 1000000.0 Hz"]),
        ({"FREQ": 1401}, ["same centre_frequency_hz", "a: 1400000000.0", "b: 1401000000.0"]),
        ({"UTC_START": None}, ["b does not say when its time was 0", "a does"]),
    ],
)
def test_antennas_that_differ_are_refused_with_both_values(tmp_path: Path, said: Any, words: list[str]) -> None:
    paths = [recorded(tmp_path / "a.dada", noise(1 << 14)), recorded(tmp_path / "b.dada", noise(1 << 14), **said)]
    with refused(*words):
        correlate(paths, BANDS, tmp_path / "x.h5", accumulate=2, running=ON_HOST)
    assert not (tmp_path / "x.h5").exists()


@pytest.mark.parametrize("name", ["b", "a"])
def test_stations_without_a_common_time_end_at_once(tmp_path: Path, name: str) -> None:
    first = recorded(tmp_path / "a.dada", noise(1 << 14))
    later = recorded(tmp_path / "b.dada", noise(1 << 14), UTC_START="2025-03-04-05:36:07", TELESCOPE=name)
    why = "check their clocks" if name == "b" else "if they are pieces of one recording"
    with refused("no time in common", "2025-03-04T05:06:07 to 2025-03-04T05:06:07.008192", "T05:36:07 to ", why):
        correlate([first, later], BANDS, tmp_path / "x.h5", accumulate=2, running=ON_HOST)


def test_two_inputs_of_one_station_are_told(tmp_path: Path) -> None:
    path, told = recorded(tmp_path / "a.dada", noise(1 << 14)), []
    made = correlate([path, path], BANDS, accumulate=2, running=Running(device="host", tell=told.append))
    assert coefficient(made) > 0.999 and len([line for line in told if "2 antennas have the name 'a'" in line]) == 1


def test_epochs_of_vdif_are_one_utc(tmp_path: Path) -> None:
    """The same instants, counted from two half-years, of which the first has leap days and leap seconds behind it."""
    sky, paths = noise(1 << 16)[:, 0, :, 0], []
    for epoch, station in ((50, "On"), (49, "Wb")):
        zero = datetime(2000 + epoch // 2, 1 + 6 * (epoch % 2), 1, tzinfo=UTC)
        second, frame = int((BEGIN - zero).total_seconds()), 8000
        data = np.rint(sky + RNG.normal(0, 10, sky.shape)).clip(-127, 127).astype(np.int8).view(np.uint8) ^ 0x80
        blocks = [
            makers.vdif_frame(
                data[k * frame : (k + 1) * frame, pol].tobytes(), second, k, thread=pol, epoch=epoch, station=station
            )
            for k in range(len(sky) // frame)
            for pol in range(2)
        ]
        paths.append(tmp_path / f"{station}.vdif")
        paths[-1].write_bytes(b"".join(blocks))
    header = {"sample_rate_hz": float(RATE)}
    made = correlate(paths, BANDS, accumulate=3, header=header, running=ON_HOST)
    assert made.present.all() and coefficient(made) == pytest.approx(0.8, abs=0.03)
    first, second = made.info.antennas
    assert first.first_timestamp == second.first_timestamp and first.sync_time_unix == second.sync_time_unix


@pytest.mark.parametrize("rest", [0.25, -0.4])
@pytest.mark.parametrize("falls", [False, True])
def test_the_rest_of_a_start_is_delayed_at_the_true_frequency(tmp_path: Path, rest: float, falls: bool) -> None:
    """Samples that were taken a part of a sample later than the first antenna's: fringes have no slope."""
    n = 1 << 16
    lines = np.fft.rfft(RNG.normal(0, 20, (2, n)))
    moved = np.fft.irfft(lines * np.exp(2j * np.pi * np.fft.rfftfreq(n) * rest), n)
    paths = []
    for name, rows, part in (("a", np.fft.irfft(lines, n), 0.0), ("b", moved, rest)):
        exact = Fraction(17 * 10**8) + Fraction(part) / RATE
        (tmp_path / f"{name}.bin").write_bytes(np.rint(rows).clip(-127, 127).astype(np.int8).tobytes())
        text = f'file = "{name}.bin"\nsample_bits = 8\nn_pols = 2\nsample_rate_hz = {RATE}\nantenna = "{name}"\n'
        text += f'sync_time_unix = "{exact.numerator}/{exact.denominator}"\n' + 'sideband = "lower"\n' * falls
        paths.append(tmp_path / f"{name}.toml")
        paths[-1].write_text(text)
    told: list[str] = []
    made = correlate(paths, BANDS, accumulate=4, running=Running(device="host", tell=told.append))
    assert len([line for line in told if f"the rest of {rest:.6f} samples is delayed" in line]) == 1
    v = made.visibilities[made.present.all(axis=1)].astype(float).sum(axis=0)[1:, 1, [0, 3]]
    assert np.degrees(np.abs(np.angle(v[..., 0] + 1j * v[..., 1]))).max() < 0.5


def test_a_file_of_several_antennas_is_several_antennas(tmp_path: Path) -> None:
    """Antenna by antenna, channel by channel, as arrays write GUPPI RAW; times count from SYNCTIME."""
    n, sky = 1 << 14, RNG.normal(0, 20, (3, 1, 1 << 14, 2, 2))  # channel, antenna, time, polarisation, part
    data = np.rint(sky + RNG.normal(0, 10, (3, 2, n, 2, 2))).clip(-127, 127).astype(np.int8)
    blocks = np.split(data.transpose(1, 0, 2, 3, 4).reshape(6, n, 2, 2), 4, axis=1)
    said = {"NANTS": 2, "ANTNMES": "1a,2b", "TBIN": 1e-6, "OBSFREQ": 1500.0, "OBSBW": 3.0, "PIPERBLK": n // 4}
    path = tmp_path / "array.raw"
    makers.guppi(path, blocks, [10**9 + k * n // 4 for k in range(4)], {**said, "SYNCTIME": 1_700_000_000})
    made = correlate([path], BANDS, accumulate=4, header={"channel": 2}, running=ON_HOST)
    assert [info.antenna for info in made.info.antennas] == ["1a", "2b"]
    assert made.info.centre_frequency_hz == 1501e6 and made.info.antennas[0].sync_time_unix == 1_700_000_000
    assert made.timestamps[0] >= 10**9 and coefficient(made) == pytest.approx(0.8, abs=0.03)
    one = channelise(path, BANDS, header={"channel": 5}, running=ON_HOST)  # the same channel of the second antenna
    assert one.bands[0].info.samples.antenna == "2b" and one.bands[0].info.centre_frequency_hz == 1501e6
    with refused("array.raw: it has 2 antennas of 3 channels each", "channel=0 to 2"):
        correlate([path], BANDS, accumulate=4, header={"channel": 3}, running=ON_HOST)


def test_given_delays_are_kept_beside_the_rest(tmp_path: Path) -> None:
    """A delay that is given counts on the clock of the first antenna, and is added to what is left of a start."""
    n, late, rest = 1 << 16, 5000, 0.3
    sky = np.fft.rfft(RNG.normal(0, 20, (2, n)))
    shift = np.exp(2j * np.pi * np.fft.rfftfreq(n) * (rest - 7.6))  # b gets the waves 7.6 samples late
    rows = [np.fft.irfft(sky, n), np.fft.irfft(sky * shift, n)[:, late:]]
    zeros = [Fraction(1_700_000_000), 1_700_000_000 + (late + Fraction(rest)) / RATE]
    arrays = []
    for name, row, zero in zip("ab", rows, zeros, strict=True):
        header = {"sample_rate_hz": float(RATE), "sync_time_unix": zero, "antenna": name}
        (tmp_path / f"{name}.bin").write_bytes(np.rint(row).clip(-127, 127).astype(np.int8).tobytes())
        (tmp_path / f"{name}.toml").write_text(
            f'file = "{name}.bin"\nsample_bits = 8\nn_pols = 2\nsample_rate_hz = 1e6\n'
        )
        arrays.append(open_samples(tmp_path / f"{name}.toml", **header))
    delays = {"a": [DelayModel()] * 2, "b": [DelayModel(Piece(-9999, -7.6, phase=np.pi / 2 * 7.6))] * 2}
    bands = Bands(C, 4, spectra_per_heap=HEAP, delays=delays, gains=0.1)
    made = correlate(arrays, bands, accumulate=4, running=ON_HOST)
    v = made.visibilities[made.present.all(axis=1)].astype(float).sum(axis=0)[1:, 1, [0, 3]]
    assert np.degrees(np.abs(np.angle(v[..., 0] + 1j * v[..., 1]))).max() < 0.5
