"""DADA, as `baseband` writes and reads it, and as MeerKAT's beamformer writes it."""

from pathlib import Path

import numpy as np
import pytest

from autotune.engines.files.opening import open_samples

from . import makers
from .baseband_files import RNG, START, dada_file, integers
from .common import read_all, read_file, refused


@pytest.mark.parametrize("n_pols", [1, 2])
@pytest.mark.parametrize("n_channels", [1, 4])
@pytest.mark.parametrize("is_complex", [False, True])
def test_dada_is_read_as_baseband_does(tmp_path: Path, n_pols: int, n_channels: int, is_complex: bool) -> None:
    expected = dada_file(tmp_path / "x", n_pols, n_channels, is_complex)
    for packets in ((1,), (3, 4), (1000,)):
        channel = n_channels - 1
        source = open_samples(tmp_path / "x", channel=channel, order="TPF")
        info = source.info
        assert (info.sample_bits, info.n_pols) == (64 if is_complex else 8, n_pols)
        assert (info.sample_rate_hz, info.antenna, info.packet, info.n_samples) == (8e6, "PKS", 8, 1000)
        width = 8.0 if is_complex else 4.0
        assert info.centre_frequency_hz == pytest.approx(1e6 * (1400 + width * (n_channels - 1) / 2))
        time = info.sync_time_unix + info.first_timestamp / 8e6
        assert info.first_timestamp == 24_000_000 and abs(time - START.unix) < 1e-6
        read = read_all(source, packets)
        assert read.error == "" and (integers(read, info.sample_bits) == expected[:, :, channel]).all()


def test_what_is_behind_the_samples_of_dada_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.engines.files.interleaved_bytes.AT_ONCE", 35)  # bytes: 17 samples
    expected = dada_file(tmp_path / "x")
    with (tmp_path / "x").open("ab") as file:
        file.write(bytes(500))
    read = read_all(open_samples(tmp_path / "x"), (9,))
    assert (integers(read, 8) == expected[:, :, 0]).all() and read.error == ""


def test_the_order_of_dada_is_asked_for_and_obeyed(tmp_path: Path) -> None:
    expected = dada_file(tmp_path / "x", 2, 4, True)
    with refused("lacks ORDER", "order='TFP'"):
        open_samples(tmp_path / "x", channel=1)
    data = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(data[:4096] + expected.view(np.float32).astype(np.int8).tobytes())
    assert (integers(read_all(open_samples(tmp_path / "x", channel=1, order="TPF")), 8) == expected[:, :, 1]).all()
    swapped = np.ascontiguousarray(expected.swapaxes(1, 2)).view(np.float32).astype(np.int8).tobytes()
    (tmp_path / "x").write_bytes(data[:4096] + swapped)
    assert (integers(read_all(open_samples(tmp_path / "x", channel=1, order="TFP")), 8) == expected[:, :, 1]).all()


@pytest.mark.parametrize("packets", [(1,), (3, 2), (40,)])
@pytest.mark.parametrize("n_heaps", [1, 3, 5])
def test_heaps_of_meerkats_beamformer_are_read(tmp_path: Path, n_heaps: int, packets: tuple[int, ...]) -> None:
    heaps = RNG.integers(-99, 99, (n_heaps, 2, 4, 256, 2))  # heap, polarisation, channel, time, part
    expected = heaps.astype(np.float32) @ np.array([1, 1j], np.complex64)
    said = {"NCHAN": 4, "NPOL": 2, "NDIM": 2, "INSTRUMENT": "MKBF", "TSAMP": 2, "FREQ": 800, "BW": 2}
    more = {"UTC_START": "2026-01-01-07:00:00", "OBS_OFFSET": 16 * 256 * 7, "PICOSECONDS": 5}
    size = {"FILE_SIZE": heaps.size}
    makers.dada(tmp_path / "x", heaps.reshape(-1, 1, 1, 1), {**said, **more, **size})
    told: list[str] = []
    for channel in range(4):
        source = open_samples(tmp_path / "x", channel=channel, tell=told.append)
        assert (source.info.packet, source.info.n_samples) == (256, 256 * n_heaps)
        assert source.info.first_timestamp == 256 * 7
        assert source.info.centre_frequency_hz == (800 + (channel - 1.5) / 2) * 1e6
        read = read_all(source, packets)
        assert read.error == "" and (read.rows == expected[:, :, channel].swapaxes(0, 1).reshape(2, -1)).all()
    assert len(told) == 4 and "PICOSECONDS=5, which is not added to UTC_START" in told[0]
    for more_bytes in (-1, 1000):  # a file that says nothing of its size ends within a heap
        makers.dada(tmp_path / "x", heaps.reshape(-1, 1, 1, 1), said)
        data = (tmp_path / "x").read_bytes()
        (tmp_path / "x").write_bytes(data[:more_bytes] if more_bytes < 0 else data + bytes(more_bytes))
        if n_heaps == 1 and more_bytes < 0:
            continue  # no heap is whole
        read = read_file(tmp_path / "x", packets, channel=1)
        assert read.received.shape[1] == n_heaps - (more_bytes < 0) and "in the middle of" in read.lost


def replaced(path: Path, *pairs: tuple[bytes, bytes]) -> None:
    """Changes text of a file, which is there once and keeps its length."""
    data = path.read_bytes()
    for old, new in pairs:
        assert data.count(old) == 1 and len(new) == len(old), (old, new)
        data = data.replace(old, new)
    path.write_bytes(data)


def test_dada_that_says_less_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    expected = dada_file(tmp_path / "x")
    replaced(tmp_path / "x", (b"FILE_SIZE 2000\n", b"FILE_SIZE 0\n   "), (b"UTC_START", b"UTC_STARK"))
    with (tmp_path / "x").open("ab") as file:
        file.write(b"a")
    source = open_samples(tmp_path / "x")
    assert abs(source.info.sync_time_unix + 3 - START.unix) < 1e-5  # by MJD_START
    read = read_file(tmp_path / "x")
    assert source.info.n_samples == 1000 and "1 bytes there are left out" in read.lost
    assert (integers(read, 8) == expected[:, :, 0]).all() and "at byte 6097, in the middle of a sample" in read.lost
    replaced(tmp_path / "x", (b"MJD_START", b"MJD_STARK"))
    assert open_samples(tmp_path / "x").info.sync_time_unix is None
    assert open_samples(tmp_path / "x", sync_time_unix=5).info.sync_time_unix == 5


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"NBIT 8", b"NBIT 2", "NBIT=2 bits, but only 8 can be read"),
        (b"NPOL 2", b"NPOL 3", "NPOL='3', must be an integer, 1 to 2"),
        (b"NDIM 1", b"NDIN 1", "lacks NDIM"),
        (b"TSAMP 0.125", b"TSAMQ 0.125", "lacks TSAMP: give sample_rate_hz"),
        (b"TSAMP 0.125", b"TSAMP -.125", "TSAMP"),
        (b"OBS_OFFSET 48000000", b"OBS_OFFSET 48000001", "in the middle of a sample"),
        (b"HDR_SIZE 4096", b"HDR_SIZE 0   ", "HDR_SIZE"),
        (b"FILE_SIZE 2000", b"FILE_SIZE 2E+3", "FILE_SIZE"),
    ],
)
def test_a_wrong_header_of_dada_is_told(tmp_path: Path, old: bytes, new: bytes, words: str) -> None:
    dada_file(tmp_path / "x")
    replaced(tmp_path / "x", (old, new))
    with refused(tmp_path / "x", words):
        open_samples(tmp_path / "x")
