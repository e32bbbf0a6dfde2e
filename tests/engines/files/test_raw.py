"""Packed samples and their TOML header: round trips, files that are cut off, grow, are damaged, or fill the disk."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.engines.files.formats.raw import RawFile
from autotune.engines.files.opening import open_samples
from autotune.engines.streams.samples import SampleInfo

from .common import full_disk, read_all, read_file, refused

RNG = np.random.default_rng(1)
INFO = SampleInfo(10, 2, 1712e6, 4096, 24_000, 2**40 + 3, "m000", (5.1e6, 2.0e6, -3.2e6), 1.284e9, 1.7e9)


def packed(info: SampleInfo) -> np.ndarray:
    """uint8 [n_pols, n_bytes] of any content."""
    return RNG.integers(0, 256, (info.n_pols, -(-info.n_samples * info.sample_bits // 8)), np.uint8)


def write(path: Path, info: SampleInfo, rows: np.ndarray, chunk: int = 1 << 30) -> None:
    file, rows = RawFile(path, info), rows.view(np.complex64) if info.is_complex else rows
    for start in range(0, rows.shape[1], chunk):
        file.write(rows[:, start : start + chunk])
    file.close()


@pytest.mark.parametrize("bits", [2, 3, 8, 10, 12, 16, 64])
@pytest.mark.parametrize("n_pols", [1, 2])
@pytest.mark.parametrize("n_samples", [8, 1001, 1006, 24_000])
def test_what_is_written_is_read(tmp_path: Path, bits: int, n_pols: int, n_samples: int) -> None:
    info = SampleInfo(bits, n_pols, 1e9 / 3, 1, n_samples, -5, 'a "b" \\ ü', (6.37e6, -2.5, 1e-7), 1.4e9, 1.7e9 + 0.25)
    rows = packed(info)
    write(tmp_path / "x.toml", info, rows, 777)  # bytes, or complex samples
    source = open_samples(tmp_path / "x.toml")
    packet = max(n_samples & -n_samples, 8 // math.gcd(8, bits))
    assert source.info == SampleInfo(**{**info.__dict__, "packet": packet})
    for packets in ((1,), (3, 5), (1 << 14,)):
        read = read_all(open_samples(tmp_path / "x.toml"), packets)
        n = n_samples // packet * packet * bits // 8
        assert read.error == "" and read.time == -5 and read.received.all()
        assert (np.ascontiguousarray(read.rows).view(np.uint8) == rows[:, :n]).all()


def test_what_is_given_takes_the_place_of_the_header(tmp_path: Path) -> None:
    write(tmp_path / "x.toml", INFO, packed(INFO))
    source = open_samples(tmp_path / "x.toml", antenna="m063", sample_rate_hz=5e8, position_m=(1, 2, 6.37e6))
    assert (source.info.antenna, source.info.sample_rate_hz, source.info.position_m) == ("m063", 5e8, (1, 2, 6.37e6))
    assert source.info.centre_frequency_hz == INFO.centre_frequency_hz


@pytest.mark.parametrize(
    ("time", "line"),
    [
        (1.6e9, "sync_time_unix = 1600000000.0\n"),
        ("1600000000.000000000007", 'sync_time_unix = "1600000000.000000000007"\n'),
        ("4800000001/3", 'sync_time_unix = "4800000001/3"\n'),
    ],
)
def test_a_time_is_written_exactly(tmp_path: Path, time: float | str, line: str) -> None:
    info = replace(INFO, sync_time_unix=time)
    write(tmp_path / "x.toml", info, packed(info))
    assert line in (tmp_path / "x.toml").read_text()
    assert open_samples(tmp_path / "x.toml").info.sync_time_unix == info.sync_time_unix
    assert open_samples(tmp_path / "x.toml", sync_time_unix="1/3").info.sync_time_unix == Fraction(1, 3)


@given(cut=st.integers(0, 60_000), packets=st.lists(st.integers(1, 400), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_a_file_that_is_cut_off_gives_what_it_has(tmp_path_factory, cut: int, packets: list[int]) -> None:
    folder, rows = tmp_path_factory.mktemp("cut"), packed(INFO)
    write(folder / "x.toml", INFO, rows)
    data = (folder / "x.bin").read_bytes()
    (folder / "x.bin").write_bytes(data[:cut])
    read = read_file(folder / "x.toml", packets)
    n = max(0, (cut - 30_000) // 5 * 4)  # samples of both polarisations; 4 have 5 bytes
    if n:
        assert (read.rows == rows[:, : n * 10 // 8]).all()
    assert (read.time is not None) == (n > 0) and read.error == ""
    assert (read.lost == "") == (n == 24_000)
    assert read.lost == "" or f"ends at byte {cut}, after {n} of 24000 samples" in read.lost


def test_a_file_is_read_while_it_is_written(tmp_path: Path) -> None:
    rows = packed(INFO)
    file = RawFile(tmp_path / "x.toml", INFO)
    source, found = open_samples(tmp_path / "x.toml"), []
    for start in range(0, 30_000, 1700):
        file.write(rows[:, start : start + 1700])
        read = read_all(source, (7,), close=False)
        found += read.samples
        assert read.error == ""
    assert (np.concatenate(found, axis=1) == rows).all()


def test_one_polarisation_without_a_length_may_grow(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(
        'file = "x.raw"\nsample_bits = 8\nn_pols = 1\nsample_rate_hz = 100\nfirst_timestamp = 9\n'
    )
    (tmp_path / "x.raw").write_bytes(bytes(range(64)))
    source = open_samples(tmp_path / "x.toml")
    assert source.info == SampleInfo(8, 1, 100.0, 64, 64, 9)
    assert read_all(source, close=False).rows[0].tolist() == list(range(64))
    (tmp_path / "x.raw").write_bytes(bytes(range(150)))
    read = read_all(source)
    assert read.time == 73 and read.rows[0].tolist() == list(range(64, 128))


def test_of_two_polarisations_without_a_length_more_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(
        'file = "x.raw"\nsample_bits = 8\nn_pols = 2\nsample_rate_hz = 100\nfirst_timestamp = 9\n'
    )
    (tmp_path / "x.raw").write_bytes(bytes(65))
    with refused("x.raw", "65 bytes", "2 polarisations"):
        open_samples(tmp_path / "x.toml")
    (tmp_path / "x.raw").write_bytes(bytes(64))
    told: list[str] = []
    source = open_samples(tmp_path / "x.toml", tell=told.append)
    (tmp_path / "x.raw").write_bytes(bytes(66))
    assert read_all(source).received.shape == (2, 1)
    assert told == [f"{tmp_path / 'x.raw'}: it has 2 bytes after its last stated sample: they are left out"]


def test_a_full_disk_leaves_what_was_written(tmp_path: Path) -> None:
    rows = packed(INFO)
    file = RawFile(tmp_path / "x.toml", INFO)
    with full_disk(45_000), refused("x.bin", "the first 8000 samples", "File too large"):
        for start in range(0, 30_000, 10_000):
            file.write(rows[:, start : start + 10_000])
    file.close()
    read = read_all(open_samples(tmp_path / "x.toml"))
    assert read.rows.shape[1] >= 10_000 and (read.rows == rows[:, : read.rows.shape[1]]).all()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    write(tmp_path / "x.toml", INFO, packed(INFO))
    before = (tmp_path / "x.bin").read_bytes()
    with refused("x.toml", "exists"):
        RawFile(tmp_path / "x.toml", INFO)
    (tmp_path / "x.toml").unlink()
    with refused("x.bin", "exists"):
        RawFile(tmp_path / "x.toml", INFO)
    assert (tmp_path / "x.bin").read_bytes() == before and not (tmp_path / "x.toml").exists()


def test_more_than_was_said_is_refused(tmp_path: Path) -> None:
    file = RawFile(tmp_path / "x.toml", INFO)
    with refused("x.bin", "more than n_samples=24000"):
        file.write(np.zeros((2, 30_001), np.uint8))
    with refused("takes chunks"):
        file.write(np.zeros((1, 30), np.uint8))


@given(
    missing=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 23_900), st.integers(1, 100)), max_size=5),
    packets=st.lists(st.integers(1, 400), min_size=1, max_size=4),
)
@settings(max_examples=25, deadline=None)
def test_a_packet_with_a_missing_sample_is_missing(tmp_path_factory, missing: list, packets: list[int]) -> None:
    path, rows = tmp_path_factory.mktemp("missing") / "x.toml", packed(INFO)
    file = RawFile(path, INFO, missing)
    file.write(rows)
    file.close()
    expected = np.ones((2, 24_000), bool)
    for pol, first, n in missing:
        expected[pol, first : first + n] = False
    read = read_all(open_samples(path), packets, no_flags=True)
    assert (read.received == expected.reshape(2, -1, 64).all(axis=2)).all()
    there = np.repeat(read.received, 80, axis=1)
    assert (read.rows[there] == rows[there]).all()


def test_what_cannot_be_missing_is_not_written(tmp_path: Path) -> None:
    with refused("x.toml", "[0, 23999, 2] as number 1"):
        RawFile(tmp_path / "x.toml", INFO, [(0, 23_999, 2)])
    with refused("x.toml", "5000 missing ranges", "join some"):
        RawFile(tmp_path / "x.toml", INFO, [(0, i, 1) for i in range(5000)])
    assert not list(tmp_path.iterdir())


GOOD = {
    "file": '"x.bin"',
    "sample_bits": "10",
    "n_pols": "2",
    "n_samples": "1000",
    "sample_rate_hz": "1e9",
    "first_timestamp": "0",
    "antenna": '"m000"',
    "position_m": "[1, 2, 3]",
}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("file", '"../x.bin"', "in the header's folder"),
        ("file", '"/etc/passwd"', "in the header's folder"),
        ("file", '"y.bin"', "y.bin: it cannot be opened: No such file"),
        ("sample_bits", "1", "must be 2 to 16, or 64"),
        ("sample_bits", "true", "must be 2 to 16"),
        ("n_pols", "3", "1 to 2"),
        ("n_samples", "-1", "n_samples"),
        ("n_samples", "0", "holds 0 samples of each polarisation, fewer than"),
        ("sample_rate_hz", "0", "more than 0"),
        ("sample_rate_hz", "nan", "sample_rate_hz"),
        ("sample_rate_hz", None, "lacks sample_rate_hz"),
        ("first_timestamp", "0.5", "integer"),
        ("first_timestamp", str(2**62), "integer"),
        ("first_timestamp", str(-(2**62)), "integer"),
        ("antenna", '"a\\u001b[2Jb"', "printable"),
        ("sync_time_unix", '"today"', "sync_time_unix is 'today', must be seconds since 1970"),
        ("sync_time_unix", "inf", "sync_time_unix is inf"),
        ("position_m", "[1, 2]", "list of 3"),
        ("missing", "[[0, 1]]", "list of 3"),
        ("missing", "[[0, -1, 5]]", "-1"),
        ("missing", "[[0, 0, 5], [2, 0, 5]]", "[2, 0, 5] as number 2: there are 2 polarisations of 1000 samples"),
        ("missing", "[[1, 999, 2]]", "[1, 999, 2] as number 1"),
        ("missing", "[[1, 5, 0]]", "1 or more can be missing"),
        ("colour", "1", "which nothing here knows"),
        ("colour", "= 1", "it is not TOML"),
        ("colour", "[" * 5000, "it is not TOML"),
        ("colour", '"' + "x" * 70000 + '"', "longer than 65536 bytes"),
    ],
)
def test_a_wrong_header_is_told(tmp_path: Path, name: str, value: str | None, words: str) -> None:
    said = {**GOOD, name: value}
    (tmp_path / "x.bin").write_bytes(bytes(2500))
    (tmp_path / "x.toml").write_text("".join(f"{name} = {value}\n" for name, value in said.items() if value))
    with refused(tmp_path, words):
        open_samples(tmp_path / "x.toml")


@given(data=st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_any_bytes_are_no_traceback(tmp_path_factory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "x.toml"
    path.write_bytes(data)
    with refused("x.toml"):
        open_samples(path)
