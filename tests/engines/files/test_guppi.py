"""GUPPI RAW, as `baseband` writes and reads it: the same samples, at the same times, however cut."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.engines.files.opening import open_samples

from . import makers
from .baseband_files import RNG, START, guppi_file
from .common import read_all, read_file, refused


@pytest.mark.parametrize("n_pols", [2])
@pytest.mark.parametrize("overlap", [0, 16])
@pytest.mark.parametrize("channels_first", [True, False])
def test_guppi_is_read_as_baseband_does(tmp_path: Path, n_pols: int, overlap: int, channels_first: bool) -> None:
    expected = guppi_file(tmp_path / "x", n_pols, 4, overlap, channels_first)
    with refused("it has 4 channels"):
        open_samples(tmp_path / "x")
    for channel, packets in enumerate(((1,), (3, 4), (5,), (100,))):
        source = open_samples(tmp_path / "x", channel=channel)
        info = source.info
        assert (info.sample_bits, info.n_pols, info.packet, info.antenna) == (64, n_pols, 32, "GBT")
        assert info.sample_rate_hz == 250_000 and info.centre_frequency_hz == (1500 + 0.25 * (channel - 1.5)) * 1e6
        assert abs(info.sync_time_unix + info.first_timestamp / 250_000 - START.unix) < 1e-6
        assert info.first_timestamp == 1280
        read = read_all(source, packets)
        assert read.error == "" and read.received.all() and (expected[:, :, channel] == read.rows.T).all()


@pytest.mark.parametrize("came", [(0, 1, 2, 3), (0, 2, 3), (1, 3)])
@pytest.mark.parametrize("packets", [(1,), (3, 2), (40,)])
def test_samples_that_two_blocks_have_are_read_once(tmp_path: Path, came: tuple, packets: tuple[int, ...]) -> None:
    samples = RNG.integers(-99, 99, (2, 4 * 96 + 32, 2, 2))  # blocks of 128 that overlap by 32
    made = [samples[:, 96 * k : 96 * k + 128] for k in came]
    said = {"TBIN": "1E-6", "OVERLAP": 32, "PKTSIZE": 32 * 8}
    makers.guppi(tmp_path / "x", made, [3 * k for k in came], said)
    source = open_samples(tmp_path / "x", channel=1)
    flags = np.zeros(13, bool)
    for k in came:
        flags[3 * k : 3 * k + 4] = True
    flags = flags[3 * came[0] :]
    assert (source.info.packet, source.info.n_samples) == (32, 32 * len(flags))
    read = read_all(source, packets)
    assert (read.received == flags).all() and read.error == ""
    there = np.repeat(flags, 32)
    expected = samples[1, 96 * came[0] :].astype(np.float32) @ np.array([1, 1j])
    assert (read.rows.T[there] == expected[there]).all()


@pytest.mark.parametrize("width", [3.0, -3.0])
def test_antennas_of_one_guppi_file_have_their_own_centres_and_names(tmp_path: Path, width: float) -> None:
    samples = RNG.integers(-99, 99, (6, 64, 2, 2))  # of two antennas
    said = {"TBIN": "1E-6", "OBSFREQ": 1400.0, "OBSBW": width, "NANTS": 2, "ANTNMES": "1a,2b"}
    counted = {"SYNCTIME": 1_600_000_000, "PKTSTART": 640_000_000, "PIPERBLK": 64, "STT_IMJD": 59_999}
    makers.guppi(tmp_path / "x", [samples], [640_000_064], {**said, **counted})
    for channel in range(6):
        info = open_samples(tmp_path / "x", channel=channel).info
        assert info.centre_frequency_hz == 1.4e9 + (channel % 3 - 1) * 1e6 * np.sign(width)
        assert info.antenna == ("1a" if channel < 3 else "2b") and info.is_turned == (width < 0)
        assert info.sync_time_unix + info.first_timestamp / 10**6 == 1_600_000_640.000064
        read = read_all(open_samples(tmp_path / "x", channel=channel, sideband="upper"))
        assert (samples[channel].astype(np.float32) @ np.array([1, 1j]) == read.rows.T).all()
    with refused(tmp_path / "x", "2 antennas of 3 channels", "channel=0 to 5", "those of antenna 1 are 3 to 5"):
        open_samples(tmp_path / "x")
    makers.guppi(tmp_path / "x", [samples], [0], {**said, "ANTNMES": None})
    assert open_samples(tmp_path / "x", channel=4).info.antenna == "GBT1"
    makers.guppi(tmp_path / "x", [samples], [0], {**said, "NANTS": 4})
    with refused(tmp_path / "x", "OBSNCHAN=6 channels cannot be shared by NANTS=4 antennas"):
        open_samples(tmp_path / "x", channel=4)


def test_guppi_of_two_parts_or_polarisations_asks(tmp_path: Path) -> None:
    expected = guppi_file(tmp_path / "x", 1)
    with refused("NPOL=2", "n_pols=1 or n_pols=2"):
        open_samples(tmp_path / "x", channel=0)
    read = read_all(open_samples(tmp_path / "x", channel=3, n_pols=1))
    assert (expected[:, :, 3] == read.rows.T).all()


def test_the_time_of_guppi_may_count_blocks(tmp_path: Path) -> None:
    guppi_file(tmp_path / "x")
    data = (tmp_path / "x").read_bytes().replace(b"PKTSIZE =                  512", b"PIPERBLK=                    2")
    (tmp_path / "x").write_bytes(data)
    source = open_samples(tmp_path / "x", channel=0)
    assert source.info.packet == 64 and source.info.first_timestamp == 40 * 64
    read = read_all(source, (5,))  # PKTIDX has steps of 4, so each block leaves a hole of its own length
    assert read.received[0].tolist() == [*[True, True, False, False] * 5, True, True] and read.error == ""


def blocks(path: Path, n: int = 6) -> list[bytes]:
    data = path.read_bytes()
    size = len(data) // n
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(
    came=st.lists(st.booleans(), min_size=6, max_size=6), packets=st.lists(st.integers(1, 9), min_size=1, max_size=3)
)
@settings(max_examples=20, deadline=None)
def test_blocks_of_guppi_that_lack_are_missing(tmp_path_factory, came: list[bool], packets: list[int]) -> None:
    path = tmp_path_factory.mktemp("lack") / "x"
    expected = guppi_file(path)
    path.write_bytes(b"".join(block for block, there in zip(blocks(path), came, strict=True) if there))
    if not any(came):
        return
    read = read_all(open_samples(path, channel=1), packets)
    numbers = np.flatnonzero(came)
    flags = np.repeat(came, 4)[4 * numbers[0] : 4 * numbers[-1] + 4]
    assert (read.received == flags).all() and read.time == 1280 + 128 * numbers[0] and read.error == ""
    some = np.repeat(flags, 32)
    there = expected[128 * numbers[0] : 128 * (numbers[-1] + 1), :, 1]
    assert (read.rows.T[some] == there[some]).all()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"NBITS   =                    8", b"NBITS   =                    2", "only 4, 8 and 16 can be read"),
        (b"BLOCSIZE=                 2048", b"BLOCSIZE=                 2047", "BLOCSIZE"),
        (b"BLOCSIZE=                 2048", b"BLOCSIZE=       20480000000000", "BLOCSIZE"),
        (b"TBIN    = ", b"TBIM    = ", "lacks TBIN: give sample_rate_hz"),
        (b"OBSNCHAN= ", b"OBSNCHAN=x", "OBSNCHAN"),
        (b"NPOL    =                    4", b"NPOL    =                    3", "NPOL=3"),
    ],
)
def test_a_wrong_header_of_guppi_is_told(tmp_path: Path, old: bytes, new: bytes, words: str) -> None:
    guppi_file(tmp_path / "x")
    data = (tmp_path / "x").read_bytes()
    assert old in data
    (tmp_path / "x").write_bytes(data.replace(old, new, 1))
    with refused(tmp_path / "x", words):
        open_samples(tmp_path / "x", channel=0)


def test_a_block_of_another_kind_is_told(tmp_path: Path) -> None:
    guppi_file(tmp_path / "x")
    some = blocks(tmp_path / "x")
    some[3] = some[3].replace(b"OBSNCHAN=                    4", b"OBSNCHAN=                    8")
    (tmp_path / "x").write_bytes(b"".join(some))
    read = read_file(tmp_path / "x", channel=0)
    assert read.error == "" and read.received[0].tolist() == [True] * 12 + [False] * 4 + [True] * 8
    assert f"it is damaged at byte {3 * len(some[0])}; blocks that cannot be read there are missing" in read.lost


@pytest.mark.parametrize(
    ("index", "words"),
    [(41, "it is damaged at byte"), (46, "it is damaged at byte"), (10**8, "or an hour ahead, are left out: 1")],
)
def test_a_wrong_time_of_a_block_is_told(tmp_path: Path, index: int, words: str) -> None:
    guppi_file(tmp_path / "x")
    data, old = (tmp_path / "x").read_bytes(), b"PKTIDX  =                   48"
    assert data.count(old) == 1
    (tmp_path / "x").write_bytes(data.replace(old, b"PKTIDX  = %20d" % index))
    read = read_file(tmp_path / "x", channel=0)
    assert read.error == "" and words in read.lost and np.flatnonzero(~read.received[0]).tolist() == [8, 9, 10, 11]
