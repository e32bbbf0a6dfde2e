"""VDIF with damage: frames of other threads do not matter, and reading goes on behind lost or inserted bytes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.engines.files.opening import open_samples

from . import makers
from .common import Read, read_all, refused

RATE, N_FRAME = 8e4, 160  # 500 frames a second; bytes of a payload
SIZE = N_FRAME + 32


def recording(n_frames: int = 40, threads: tuple[int, ...] = (0, 1), first: int = 480) -> list[bytes]:
    """Frames of 8 bits over the end of a second: of each slot one of each thread."""
    rng, made = np.random.default_rng(9), []
    for number in range(first, first + n_frames):
        for thread in threads:
            payload = rng.integers(0, 256, N_FRAME, np.uint8).tobytes()
            made.append(makers.vdif_frame(payload, 100 + number // 500, number % 500, thread=thread))
    return made


def rows_of(made: list[bytes], n_threads: int = 2) -> np.ndarray:
    """uint8 [n_threads, n_frames, N_FRAME] of what is read."""
    payloads = np.frombuffer(b"".join(made), np.uint8).reshape(-1, n_threads, SIZE)[..., 32:] ^ 0x80
    return payloads.swapaxes(0, 1)


def read(path: Path, data: bytes, packets: tuple[int, ...] = (5,), **given: object) -> tuple[Read, list[str]]:
    path.write_bytes(data)
    told: list[str] = []
    found = read_all(open_samples(path, sample_rate_hz=RATE, tell=told.append, **given), packets, no_flags=True)
    return found, told


# ---------------------------------------------------------------------- other threads
@pytest.mark.parametrize("packets", [(1,), (7, 2), (100,)])
def test_only_wanted_threads_are_judged(tmp_path: Path, packets: tuple[int, ...]) -> None:
    made = recording(threads=(0, 1, 2, 3))
    rng, spoilt = np.random.default_rng(10), []
    for number, frame in enumerate(made):
        words = np.frombuffer(frame[:32], "<u4").copy()
        if number % 4 in (0, 2):
            words[0] = rng.integers(1 << 30)  # any time, valid or not
            words[1] = rng.integers(1 << 30)  # any number and epoch
            words[3] = int(words[3]) & 0x3FFFFFF | int(rng.integers(64)) << 26  # any coding
        spoilt.append(words.tobytes() + frame[32:])
    spoilt[0] = made[0]  # the first header says what a frame is
    found, told = read(tmp_path / "x", b"".join(spoilt), packets, threads=(1, 3))
    assert found.error == "" and told == [] and found.received.all() and found.received.shape == (2, 40)
    assert (found.rows.reshape(2, 40, -1) == rows_of(made, 4)[[1, 3]]).all()


def test_threads_of_which_others_have_another_second_are_read(tmp_path: Path) -> None:
    made = recording(threads=(0, 1, 2, 3))
    for number, frame in enumerate(made):
        if number % 2 == 0:
            made[number] = (1000).to_bytes(4, "little") + frame[4:]
    for threads in ((1, 3), (2, 0)):
        found, told = read(tmp_path / "x", b"".join(made), threads=threads)
        n = 40 if threads == (1, 3) else 20  # then the number starts again in one second
        assert found.received[:, :n].all() and (told == [] or n == 20)
        assert (found.rows.reshape(2, -1, N_FRAME)[:, :n] == rows_of(made, 4)[list(threads)][:, :n]).all()


# ---------------------------------------------------------------------- lost and inserted bytes
@pytest.mark.parametrize("packets", [(1,), (4, 9), (200,)])
@pytest.mark.parametrize("at", [0, 8, 31, 32, 100, SIZE - 1])
@pytest.mark.parametrize("change", [-8, -1, 1, 12, SIZE, 5 * SIZE + 3, -SIZE, -3 * SIZE - 5])
def test_reading_goes_on_behind_bytes_that_were_lost_or_came_in(
    tmp_path: Path, packets: tuple[int, ...], at: int, change: int
) -> None:
    made = recording()
    data, byte = b"".join(made), 20 * SIZE + at
    junk = np.random.default_rng(11).integers(0, 256, max(change, 0), np.uint8).tobytes()
    found, told = read(tmp_path / "x", data[:byte] + junk + data[byte + max(0, -change) :], packets)
    expected, flags = rows_of(made), found.received
    n_lost = -min(change, 0) // SIZE
    assert found.error == "" and flags.shape == (2, 40)
    assert (~flags).sum() <= 3 + n_lost and (not flags.all() or change % SIZE == 0)
    assert flags[:, :9].all() and flags[:, 13 + n_lost :].all()
    is_payload_cut = at >= 31 and change % SIZE == 0  # two halves of frames that fit: nobody can tell
    if not is_payload_cut:
        assert (found.rows.reshape(2, 40, -1)[flags] == expected[flags]).all()
    assert len(told) <= 1 and all("x: it is damaged at byte" in line for line in told)
    assert told or change % SIZE == 0


@pytest.mark.parametrize("n_lost", [1, 40, 100])
def test_the_frame_behind_a_cut_one_is_read_at_the_end_of_a_file(tmp_path: Path, n_lost: int) -> None:
    made = recording(threads=(0,))
    made[38] = made[38][:50] + made[38][50 + n_lost :]
    found, told = read(tmp_path / "x", b"".join(made))
    assert np.flatnonzero(~found.received[0]).tolist() == [38] and found.error == ""
    assert (found.rows[0, -N_FRAME:] == rows_of(made[39:], 1)[0, 0]).all() and len(told) == 1


@given(seed=st.integers(0, 2**32), packets=st.lists(st.integers(1, 9), min_size=1, max_size=3))
@settings(max_examples=40, deadline=None)
def test_what_is_read_of_a_damaged_file_is_right(tmp_path_factory, seed: int, packets: list[int]) -> None:
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("damage") / "x"
    made = recording(60)
    data, n_events = b"".join(made), int(rng.integers(1, 5))
    # A whole frame lies between two events: without one, a cut and what came in may add up to whole frames again.
    frames = rng.choice(np.arange(0, 118, 5), n_events, replace=False)
    for place in sorted((SIZE * frames + rng.integers(0, SIZE, n_events)).tolist(), reverse=True):
        n = int(rng.integers(1, 3 * SIZE))
        n += n % SIZE == 0
        cut, junk = (n, b"") if rng.random() < 0.5 else (0, rng.integers(0, 256, n, np.uint8).tobytes())
        data = data[:place] + junk + data[place + cut :]
    if rng.random() < 0.2:
        data = rng.bytes(int(rng.integers(1, 900))) + data
    path = path.with_suffix(".vdif")  # without the name nothing says what begins with damage
    found, told = read(path, data, tuple(packets))
    assert found.time is not None
    n_before = found.time // N_FRAME - (100 * 500 + 480)
    expected, flags = rows_of(made)[:, n_before:], found.received
    n_there = flags.shape[1]
    assert found.error == "" or (f"ends at byte {len(data)}, in the middle of" in found.error and frames.max() > 112)
    assert n_there + n_before >= 55 and flags.sum() >= 120 - 7 * n_events - 6
    assert (found.rows.reshape(2, n_there, -1)[flags] == expected[:, :n_there][flags]).all()
    assert len(told) == 1 and ": it is damaged " in told[0]


@pytest.mark.parametrize(("word", "bit"), [(2, 0), (2, 24), (1, 24), (3, 26), (0, 30)])
def test_a_damaged_header_costs_its_frame(tmp_path: Path, word: int, bit: int) -> None:
    made = recording()
    for number in (7, 50, 51):
        words = np.frombuffer(made[number][:32], "<u4").copy()
        words[word] ^= np.uint32(1 << bit)
        made[number] = words.tobytes() + made[number][32:]
    found, told = read(tmp_path / "x", b"".join(made))
    assert found.error == "" and np.argwhere(~found.received).tolist() == [[0, 25], [1, 3], [1, 25]]
    places = 2 if word == 2 else 3  # two frames in a row that have no length are one place
    assert told == [
        f"{tmp_path / 'x'}: it is damaged in {places} places, at first at byte {7 * SIZE}; frames that cannot be read "
        "there are missing"
    ]


def test_a_damaged_thread_among_the_first_frames_is_no_thread(tmp_path: Path) -> None:
    made = recording()
    words = np.frombuffer(made[4][:32], "<u4").copy()
    words[3] ^= np.uint32(139 << 16)
    made[4] = words.tobytes() + made[4][32:]
    found, told = read(tmp_path / "x", b"".join(made))
    assert found.error == "" and np.argwhere(~found.received).tolist() == [[0, 2]] and told == []


def test_where_no_header_comes_any_more_reading_ends_with_the_reason(tmp_path: Path) -> None:
    data = b"".join(recording())
    found, told = read(tmp_path / "x", data[: 31 * SIZE] + bytes(100_000))
    what = f"frame 31 at byte {31 * SIZE} is of another kind than the first one, and so is all after it"
    assert [f"{tmp_path / 'x'}: {what}; 100000 bytes there are left out"] == told and found.error == ""
    assert found.received.sum() == 31


def test_damage_is_told_when_reading_is_given_up(tmp_path: Path) -> None:
    data = b"".join(recording())
    (tmp_path / "x").write_bytes(data[: 11 * SIZE] + b"x" + data[11 * SIZE :])
    told: list[str] = []
    source = open_samples(tmp_path / "x", sample_rate_hz=RATE, tell=told.append)
    source.read(np.empty((2, 20 * N_FRAME), np.uint8))
    assert told == []
    source.close()
    assert len(told) == 1 and f"damaged at byte {11 * SIZE}" in told[0]


# ---------------------------------------------------------------------- how many samples there are
def test_vdif_says_how_many_samples_it_has(tmp_path: Path) -> None:
    made = recording()

    def n_samples(frames: list[bytes], more: bytes = b"", **given: object) -> int | None:
        (tmp_path / "x").write_bytes(b"".join(frames) + more)
        return open_samples(tmp_path / "x", sample_rate_hz=RATE, **given).info.n_samples

    assert n_samples(made) == 40 * N_FRAME == n_samples(made[:79]) == n_samples(made, b"cut off")
    assert n_samples(made[:40] + made[70:]) == 40 * N_FRAME  # with a hole
    assert n_samples(made[:60:2] + made[60::2], threads=(0,)) == 40 * N_FRAME
    far = makers.vdif_frame(bytes(N_FRAME), 2000, 0)
    assert n_samples([*made, far]) == 40 * N_FRAME  # one damaged time
    assert n_samples(made, bytes(3 * SIZE)) is None
    assert n_samples(made[:30], b"x" * 7 + b"".join(made[30:])) is None


@pytest.mark.parametrize("n_blocks", [1, 2, 7])
def test_guppi_says_how_many_samples_it_has(tmp_path: Path, n_blocks: int) -> None:
    blocks = list(np.random.default_rng(12).integers(-99, 99, (n_blocks, 2, 64, 2, 2)))
    indices = [*range(5, 4 + n_blocks), 9 + n_blocks]  # before the last one some lack
    said = {"TBIN": "1E-6", "PKTSIZE": 64 * 8}
    makers.guppi(tmp_path / "x", blocks, indices, said)
    n = (indices[-1] - indices[0] + 1) * 64
    source = open_samples(tmp_path / "x", channel=1)
    assert source.info.n_samples == n == read_all(source, (50,)).received.shape[1] * source.info.packet
    data = (tmp_path / "x").read_bytes()
    block = len(data) // n_blocks
    (tmp_path / "x").write_bytes(data[:-1])
    if n_blocks == 1:
        with refused("in the middle of block 0", "0 packets of it are read"):
            open_samples(tmp_path / "x", channel=1)
    else:
        assert open_samples(tmp_path / "x", channel=1).info.n_samples == (n_blocks - 1) * 64
    if n_blocks > 2:
        longer = (
            b"".join(data[k * block :][:block] for k in (0, 1)) + makers.card("MORE", 1).encode() + data[2 * block :]
        )
        (tmp_path / "x").write_bytes(longer)  # headers of unequal lengths are gone through
        assert open_samples(tmp_path / "x", channel=1).info.n_samples == n
        (tmp_path / "x").write_bytes(longer[: 3 * block] + b"x" + longer[3 * block :])
        assert open_samples(tmp_path / "x", channel=1).info.n_samples is None
