"""VDIF, as `baseband` writes and reads it: the same samples, at the same times, whatever is lost or damaged."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.engines.files.opening import open_samples

from .baseband_files import EPOCH, START, integers, vdif_file
from .common import Read, read_all, read_file, refused


@pytest.mark.parametrize("edv", [1, 3, 0, False])
@pytest.mark.parametrize("bits", [2, 8])
@pytest.mark.parametrize("is_complex", [False, True])
def test_vdif_is_read_as_baseband_does(tmp_path: Path, bits: int, edv: int | bool, is_complex: bool) -> None:
    expected = vdif_file(tmp_path / "x.vdif", bits, is_complex=is_complex, edv=edv)
    (tmp_path / "x.vdif").rename(tmp_path / "x")  # by its content
    for packets in ((1,), (3, 4), (100,)):
        source = open_samples(tmp_path / "x", sample_rate_hz=None if edv in (1, 3) else 8e6)
        info = source.info
        assert (info.sample_bits, info.n_pols) == (64 if is_complex else 2 * bits if bits == 2 else 8, 2)
        assert info.sample_rate_hz == 8e6 and info.antenna == "Wb"
        assert info.sync_time_unix == EPOCH.unix
        assert info.first_timestamp == round((START - EPOCH).sec * 8_000_000)
        read = read_all(source, packets)
        assert read.error == "" and read.received.all() and read.time == info.first_timestamp
        assert (integers(read, info.sample_bits) == expected[:, :, 0]).all()


@pytest.mark.parametrize("bits", [2, 8])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_channel_of_vdif_is_chosen(tmp_path: Path, bits: int, is_complex: bool, n_threads: int) -> None:
    expected = vdif_file(tmp_path / "x.vdif", bits, n_threads, 4, is_complex)
    with refused("x.vdif", "it has 4 channels", "channel=0 to 3"):
        open_samples(tmp_path / "x.vdif")
    source = open_samples(tmp_path / "x.vdif", channel=2)
    assert (integers(read_all(source), source.info.sample_bits) == expected[:, :, 2]).all()
    source = open_samples(tmp_path / "x.vdif", channel=(3, 1), threads=(0,))
    assert (integers(read_all(source), source.info.sample_bits) == expected[:, 0, [3, 1]]).all()
    with refused("channel=1,4 are not two of them"):
        open_samples(tmp_path / "x.vdif", channel=(1, 4))


def test_threads_of_vdif_are_chosen(tmp_path: Path) -> None:
    expected = vdif_file(tmp_path / "x.vdif", 2, 3)
    with refused("x.vdif", "threads [0, 1, 2]", "threads=", "polarisations"):
        open_samples(tmp_path / "x.vdif")
    for threads in ((2,), (2, 0), (0, 1)):
        source = open_samples(tmp_path / "x.vdif", threads=threads)
        assert (integers(read_all(source), 4) == expected[:, list(threads), 0]).all()
    for threads in ((3,), (0, 0), (0, 1, 2)):
        with refused("threads [0, 1, 2]", list(threads)):
            open_samples(tmp_path / "x.vdif", threads=threads)


def frames(path: Path) -> np.ndarray:
    """uint8 [n_frames, n_bytes] of a file of `vdif_file`."""
    data = np.fromfile(path, np.uint8)
    return data.reshape(-1, 8 * int(data[8:12].view("<u4")[0] & 0xFFFFFF))


@given(seed=st.integers(0, 2**32), packets=st.lists(st.integers(1, 9), min_size=1, max_size=3))
@settings(max_examples=20, deadline=None)
def test_frames_of_vdif_come_in_any_order_or_not(tmp_path_factory, seed: int, packets: list[int]) -> None:
    path, rng = tmp_path_factory.mktemp("order") / "x.vdif", np.random.default_rng(seed)
    vdif_file(path, 2)
    all_frames = frames(path)
    whole = read_all(open_samples(path)).rows.reshape(2, 20, -1)
    order = np.argsort(np.arange(40) + rng.uniform(0, rng.choice([0.1, 4, 20]), 40))
    came = order[rng.random(40) > rng.choice([0, 0.2, 0.5])]
    invalid = came[rng.random(len(came)) > 0.9]
    all_frames[invalid, 3] |= 0x80
    if len(came) < 2:
        return
    all_frames[came].tofile(path)
    threads = tuple(sorted({*(came % 2).tolist()}))
    read = read_all(open_samples(path), packets, no_flags=True)
    first, last = came.min() // 2, came.max() // 2
    flags = np.zeros((20, 2), bool)
    flags.reshape(-1)[came] = True
    flags.reshape(-1)[invalid] = False
    flags = flags.T[list(threads), first : last + 1]
    n = read.received.shape[1]
    assert (read.received == flags[:, :n]).all() and not flags[:, n:].any() and read.error == ""
    kept = read.rows.reshape(len(threads), n, -1)
    assert (kept[flags[:, :n]] == whole[list(threads), first : first + n][flags[:, :n]]).all()


@pytest.mark.parametrize("packets", [(7, 3), (7,), (600,)])
def test_a_gap_of_vdif_is_missing_packets(tmp_path: Path, packets: tuple[int, ...]) -> None:
    vdif_file(tmp_path / "x.vdif", 8)
    some = frames(tmp_path / "x.vdif")
    words = some[24:, :8].copy().view("<u4")
    words[:, 1] += 500  # frames later, more than may come early
    some[24:, :8] = words.view(np.uint8)
    some.tofile(tmp_path / "x.vdif")
    read = read_all(open_samples(tmp_path / "x.vdif"), packets)
    assert read.received[0].tolist() == [True] * 12 + [False] * 500 + [True] * 8 and read.error == ""


def test_a_frame_of_vdif_waits_for_the_other_thread(tmp_path: Path) -> None:
    expected = vdif_file(tmp_path / "x.vdif", 2)
    data, found = (tmp_path / "x.vdif").read_bytes(), []
    (tmp_path / "x.vdif").write_bytes(data[: 3 * 112])
    source, out = open_samples(tmp_path / "x.vdif"), np.empty((2, 100 * 160), np.uint8)
    for n_frames in (9, 16, 19, 40):
        chunk = source.read(out)
        assert chunk.received.all()
        found.append(out[:, : chunk.received.shape[1] * 160].copy())
        (tmp_path / "x.vdif").write_bytes(data[: n_frames * 112])
    read = read_all(source, (100,))
    assert read.received.all()
    assert (integers(Read(0, [*found, *read.samples]), 4) == expected[:, :, 0]).all()


def test_a_damaged_time_of_one_frame_costs_that_frame(tmp_path: Path) -> None:
    for number in (0, 7, 38, 39):
        vdif_file(tmp_path / "x.vdif", 8)
        some = frames(tmp_path / "x.vdif")
        some[number, 2] ^= 0x10
        some.tofile(tmp_path / "x.vdif")
        read = read_all(open_samples(tmp_path / "x.vdif"), (3,))
        assert read.error == "" and np.argwhere(~read.received).tolist() == [[number % 2, number // 2]]


def test_vdif_of_another_kind_or_time_is_told(tmp_path: Path) -> None:
    vdif_file(tmp_path / "x.vdif", 8)
    good = frames(tmp_path / "x.vdif")
    for what, words in {
        "length": "frame 25 at byte 8800 is of another kind",  # as all that follow; alone, it is read over
        "epoch": "it is damaged in 15 places, at first at byte 8800",
        "later": "or an hour ahead, are left out: 15",
        "earlier": "more than 256 frames too late, or an hour ahead, are left out: 15",
    }.items():
        some = good.copy()
        if what == "length":
            some[25:, 8] ^= 1
        elif what == "epoch":
            some[25:, 7] ^= 1
        else:
            seconds = some[25:, :4].copy().view("<u4")
            seconds += np.uint32(4000 if what == "later" else 2**32 - 1)
            some[25:, :4] = seconds.view(np.uint8)
        some.tofile(tmp_path / "x.vdif")
        read = read_file(tmp_path / "x.vdif")
        assert words in read.lost and read.error == "" and read.received.sum() == 25


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [
        (8, 0, "length of 0 bytes"),
        (8, 4, "length of 32 bytes"),
        (11, 0x3F, "not whole bytes"),
        (15, 2 << 2, "samples of 3 bits, but only 1, 2, 4, 8 and 16 can be read"),
        (19, 0xAB, "Mark 5B"),
        (16, 0, "give sample_rate_hz"),
        (16, 5, "1e+07 Hz is not a whole number of frames of 296 samples"),
    ],
)
def test_a_wrong_header_of_vdif_is_told(tmp_path: Path, offset: int, value: int, words: str) -> None:
    vdif_file(tmp_path / "x.vdif", 8)
    some = frames(tmp_path / "x.vdif")
    if "296" in words:
        some = some[:, :328]
        some[:, 8] = 328 // 8
    some[:, offset] = value
    some.tofile(tmp_path / "x.vdif")
    with refused("x.vdif", words):
        open_samples(tmp_path / "x.vdif")


def test_vdif_without_a_rate_asks_for_it(tmp_path: Path) -> None:
    vdif_file(tmp_path / "x.vdif", 2, edv=0)
    with refused("x.vdif", "give sample_rate_hz", "their numbers suggest at least 6400"):
        open_samples(tmp_path / "x.vdif")
    with refused("x.vdif", "not a whole number of frames of 320 samples"):
        open_samples(tmp_path / "x.vdif", sample_rate_hz=8e6 + 1)
    with refused("sample_rate_hz is -1"):
        open_samples(tmp_path / "x.vdif", sample_rate_hz=-1.0)
