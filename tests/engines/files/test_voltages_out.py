"""Voltages as GUPPI RAW and VDIF: what is written is read back by this tree and by `baseband`, at the same times."""

import warnings
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import astropy.units as u
import numpy as np
import pytest
from baseband import guppi, vdif

from autotune.engines import Bands, Running, channelise
from autotune.engines.files import formats
from autotune.engines.files.formats.guppi_voltages import card
from autotune.engines.files.formats.interface import VOLTAGES
from autotune.engines.files.opening import open_samples
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import REAL_HIGH, VoltageInfo

from .common import full_disk, read_all, refused

START = Fraction("1772600767.000125")
INFO = VoltageInfo(
    n_channels=8,
    n_pols=2,
    bits=8,
    spectra_per_heap=24,
    step=16,
    samples=SampleInfo(8, 2, 2_048_000.0, 16, antenna="Ef", sync_time_unix=START),
    centre_frequency_hz=1.4e9,
    channel_width_hz=128_000.0,
)


def write(path: Path, info: VoltageInfo, numbers: np.ndarray, told: list[str] | None = None) -> np.ndarray:
    """Writes heaps of these numbers; returns what is in them, complex64 [n_channels, n_pols, n_spectra]."""
    rng, n = np.random.default_rng(len(numbers)), len(numbers)
    half = 1 << info.bits - 1
    shape = (n, info.n_channels, info.spectra_per_heap, info.n_pols, 2)
    parts = rng.integers(1 - half, half, shape).astype(np.int8)
    heaps = parts
    if info.bits == 4:
        low, high = (1, 0) if info.nibbles == REAL_HIGH else (0, 1)
        heaps = (parts[..., low] & 15 | parts[..., high] << 4).astype(np.int8)
    sink = formats.for_new(path, VOLTAGES).write(path, info, (told if told is not None else []).append)
    for some in np.array_split(np.arange(n), 3):
        saturated, present = np.zeros((len(some), info.n_pols), np.uint32), np.ones((len(some), 1, info.n_pols), bool)
        sink.write(numbers[some] * info.heap_samples, heaps[some], saturated, present)
    sink.close()
    samples = parts.astype(np.float32) @ np.array([1, 1j], np.complex64)
    return samples.transpose(1, 3, 0, 2).reshape(info.n_channels, info.n_pols, -1)


def begin_of(info: VoltageInfo, number: int) -> Fraction:
    assert info.samples.sync_time_unix is not None
    return info.samples.sync_time_unix + number * info.heap_samples / Fraction(info.samples.sample_rate_hz)


@pytest.mark.parametrize("suffix", [".raw", ".vdif"])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"n_pols": 1, "spectra_per_heap": 1},
        {"bits": 4},
        {"bits": 4, "nibbles": REAL_HIGH, "n_pols": 1},
        {"n_channels": 1, "spectra_per_heap": 1000},
        {"n_channels": 4096, "spectra_per_heap": 2},
    ],
)
def test_what_is_written_is_read_back(tmp_path: Path, suffix: str, changed: dict) -> None:
    info = replace(INFO, **changed)
    numbers = np.array([7, 8, 9, 12, 13, 20])
    path, told = tmp_path / f"x{suffix}", []
    expected = write(path, info, numbers, told)
    n, there = info.spectra_per_heap, np.repeat(np.isin(np.arange(7, 21), numbers), info.spectra_per_heap)
    for channel in {0, info.n_channels // 2, info.n_channels - 1}:
        source = open_samples(path, channel=channel)
        found, read = source.info, read_all(source, (5, 100), no_flags=True)
        assert found.sample_rate_hz == 128_000 and found.antenna == "Ef" and found.n_pols == info.n_pols
        assert found.sync_time_unix + read.time / Fraction(128_000) == begin_of(info, 7)
        assert found.n_samples == 14 * n and read.error == ""
        flags = np.repeat(read.received, found.packet, axis=1)
        assert (flags == there).all() and (read.rows[:, there] == expected[channel]).all()
        if suffix == ".raw":
            centre = 1.4e9 + (channel - info.n_channels / 2) * 128_000
            assert found.centre_frequency_hz == pytest.approx(centre, abs=1e-3) and not found.is_turned
    assert [line for line in told if "no frequencies" in line] == ([*told] if suffix == ".vdif" else [])


@pytest.mark.parametrize(("suffix", "n_pols"), [(".raw", 2), (".vdif", 1), (".vdif", 2)])  # NPOL=1 is not read there
def test_baseband_reads_the_same(tmp_path: Path, suffix: str, n_pols: int) -> None:
    info, path = replace(INFO, n_pols=n_pols), tmp_path / f"x{suffix}"
    expected = write(path, info, np.arange(40, 52))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = guppi if suffix == ".raw" else vdif
        with kind.open(str(path), "rs", squeeze=False) as file:
            read, start = file.read(), file.start_time
            assert file.sample_rate == 128 * u.kHz
            if suffix == ".raw":
                assert file.header0["TELESCOP"] == "Ef" and file.header0["OBSBW"] == 8 * 0.128
    if suffix == ".vdif":
        read = np.rint(read.view(np.float32) * (71 / 2) - 0.5).view(np.complex64)
    assert (read.transpose(2, 1, 0) == expected).all()
    assert abs(start.unix - float(begin_of(info, 40))) < 1e-6


def test_frames_of_vdif_are_as_long_as_packets_where_they_can_be(tmp_path: Path) -> None:
    info = replace(INFO, spectra_per_heap=4096, samples=replace(INFO.samples, sync_time_unix=Fraction(1772600767)))
    write(tmp_path / "x.vdif", info, np.arange(3))
    with vdif.open(str(tmp_path / "x.vdif"), "rb") as file:
        header = file.read_header()
    assert (header.edv, header.nchan, header.bps, header.samples_per_frame) == (1, 8, 8, 512)


@pytest.mark.parametrize(
    ("changed", "samples", "words"),
    [
        ({"n_channels": 12}, {}, "VDIF needs a power of two of channels, and 12 is not one"),
        (
            {"step": 17},
            {},
            "120470.588235 spectra in a second is not a whole number, as VDIF needs: name the file x.raw",
        ),
        ({"n_channels": 1 << 15, "step": 1 << 16}, {}, "choose --channels 2048, 4096, 8192, or name the file x.raw"),
        ({}, {"sample_rate_hz": 1e6 / 3}, "or x.h5 instead"),
        ({}, {"sync_time_unix": "1772600767.000001"}, "a second does not begin with a spectrum"),
        ({"n_channels": 1, "spectra_per_heap": 3}, {}, "heap of 3 spectra does not divide into frames"),
        ({}, {"sync_time_unix": None}, "give sync_time_unix"),
    ],
)
def test_what_vdif_cannot_have_is_refused_with_what_would_do(
    tmp_path: Path, changed: dict, samples: dict, words: str
) -> None:
    info = replace(INFO, **changed, samples=replace(INFO.samples, **samples))
    with refused("x.vdif: ", words):
        write(tmp_path / "x.vdif", info, np.arange(2))
    assert not (tmp_path / "x.vdif").exists()
    if info.samples.sync_time_unix is not None:
        write(tmp_path / "x.raw", info, np.arange(2))
        found = open_samples(tmp_path / "x.raw", channel=0).info
        assert found.sample_rate_hz == info.samples.sample_rate_hz / info.step
        assert found.sync_time_unix is not None and abs(found.sync_time_unix - begin_of(info, 0)) < 1e-18
    else:
        with refused("x.raw: ", "give sync_time_unix"):
            write(tmp_path / "x.raw", info, np.arange(2))


@pytest.mark.parametrize("suffix", [".raw", ".vdif"])
@pytest.mark.parametrize("date", ["2016-12-31T23:59:59", "2012-06-30T23:59:58", "2026-07-01T00:00:00", "2005-01-01"])
def test_times_about_leap_seconds_and_half_years_are_utc(tmp_path: Path, suffix: str, date: str) -> None:
    start = Fraction(int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp()))
    info = replace(INFO, samples=replace(INFO.samples, sync_time_unix=start - 3000))
    number = 3000 * 2_048_000 // info.heap_samples  # the first heap begins at that date
    write(tmp_path / f"x{suffix}", info, number + np.arange(4))
    source = open_samples(tmp_path / f"x{suffix}", channel=1)
    found = source.info
    assert found.sync_time_unix + found.first_timestamp / Fraction(128_000) == start


def test_a_time_before_vdif_is_told(tmp_path: Path) -> None:
    info = replace(INFO, samples=replace(INFO.samples, sync_time_unix=Fraction(10**8)))
    with refused("x.vdif: its first heap is at 100000000 s since 1970, but VDIF has only 2000 to 2031"):
        write(tmp_path / "x.vdif", info, np.arange(2))


@pytest.mark.parametrize("suffix", [".raw", ".vdif"])
def test_a_full_disk_leaves_whole_heaps(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    expected = write(path, INFO, np.arange(9))
    size = path.stat().st_size
    path.unlink()
    with full_disk(size * 5 // 9 + 100), refused(f"x{suffix}: it cannot be written: File too large"):
        write(path, INFO, np.arange(9))
    read = read_all(open_samples(path, channel=3))
    assert read.error == "" and read.rows.shape[1] == 24 * 5
    assert (read.rows == expected[3, :, : read.rows.shape[1]]).all()
    with refused(f"x{suffix}: it exists"):
        write(path, INFO, np.arange(9))


def test_cards_are_those_of_fits() -> None:
    assert card("TELESCOP", "a'b\nü" + "x" * 90).startswith("TELESCOP= 'a''b??xxx") and len(card("X", "y" * 99)) == 80
    assert card("TBIN", Fraction(1, 3)).rstrip() == "TBIN    = 0.333333333333333333333333333333"
    assert card("N", Fraction(5)).rstrip() == "N       =                  5.0" and card("K", 7).rstrip().endswith(" 7")
    assert card("T", Fraction(1, 2 * 10**9)).rstrip() == "T       =                5E-10"


@pytest.mark.parametrize("is_complex", [False, True])
def test_a_tone_lies_where_it_was_and_turns_as_it_did(tmp_path: Path, is_complex: bool) -> None:
    """Made by the engine, a tone 0.2 of a channel above the centre of channel 5 has that frequency in the file."""
    n, rate, width = 8000, 1.6e6, 1e5
    n_channels = 16 if is_complex else 8
    offset = (5 - n_channels // 2 + 0.2) * width  # from the centre of the band
    cycles = (offset if is_complex else offset + rate / 4) / rate * np.arange(n)
    tone = np.exp(2j * np.pi * cycles) * 20
    given = tone.astype(np.complex64) if is_complex else np.rint(tone.real).astype(np.int8)
    header = {"sample_rate_hz": rate, "centre_frequency_hz": 1e9, "sync_time_unix": 1_700_000_000}
    for suffix in (".raw", ".vdif"):
        path = tmp_path / f"x{suffix}"
        channelise(given, Bands(n_channels, 4, spectra_per_heap=8), path, header=header, running=Running(device="host"))
        source = open_samples(path, channel=5)
        power = np.abs(np.fft.fft(read_all(source, (999,)).rows[0]))
        assert source.info.sample_rate_hz == width
        assert np.fft.fftfreq(len(power))[power.argmax()] == pytest.approx(0.2, abs=0.01)
        if suffix == ".raw":
            assert source.info.centre_frequency_hz == 1e9 + (5 - n_channels // 2) * width


@pytest.mark.parametrize("suffix", [".raw", ".vdif"])
def test_a_heap_that_lacks_a_spectrum_is_missing(tmp_path: Path, suffix: str) -> None:
    """These formats cannot say which spectra of a heap came; HDF5 does, and keeps the heap."""
    rng, n = np.random.default_rng(8), 1 << 14
    (tmp_path / "x.bin").write_bytes(rng.integers(-99, 100, (2, n), np.int8).tobytes())
    (tmp_path / "x.toml").write_text(
        'file = "x.bin"\nsample_bits = 8\nn_pols = 2\nsample_rate_hz = 1.6e6\nsync_time_unix = 1700000000\n'
        "missing = [[1, 9000, 1]]\n"
    )
    bands, running = Bands(8, 4, spectra_per_heap=8), Running(device="host")
    kept = channelise(tmp_path / "x.toml", bands, running=running)
    whole = kept.present.all(axis=(1, 2))
    assert whole[0] and whole[-1] and kept.present[~whole].any(axis=(1, 2)).all()
    made = channelise(tmp_path / "x.toml", bands, tmp_path / f"x{suffix}", running=running)
    (band,) = made.bands
    assert band.counters.heaps_out == np.count_nonzero(whole)
    source = open_samples(tmp_path / f"x{suffix}", channel=3)
    found = read_all(source, (999,))
    voltages = kept.voltages[:, 3].astype(np.float32) @ [1, 1j]  # [heap, spectrum, pol]
    received = np.repeat(np.concatenate(found.flags, axis=1), source.info.packet, axis=1)[0].reshape(-1, 8)
    assert np.array_equal(received.all(axis=1), whole)
    assert np.array_equal(found.rows[0].reshape(-1, 8)[received.all(axis=1)], voltages[whole, :, 0])
