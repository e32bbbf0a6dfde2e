"""Damaged files cost only the damage: cut off, doubled, exchanged and with holes, in each format, by seeds."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from autotune.engines.files.header_fields import overrides_of
from autotune.engines.files.losses import CUT_OFF, DOUBLES, LONGER, OUT_OF_ORDER, DataLoss, Heard
from autotune.engines.files.opening import open_samples
from autotune.engines.files.scans import open_scans
from autotune.engines.files.time_order import MOST_EARLY

from . import makers
from .common import Read, read_all, read_file, refused

N = 600  # frames or blocks
PAYLOAD = {"vdif": 160, "m5b": 10_000, "guppi": 2 * 64 * 4}
SIZE = {"vdif": 192, "m5b": 10_016}
GIVEN = {
    "vdif": {"sample_rate_hz": 8e4},
    "m5b": {"n_channels": 4, "sample_bits": 2, "sample_rate_hz": 1e7, "mjd": 56821, "channel": 1},
    "guppi": {"channel": 1},
}


def digits(number: int, n: int) -> int:
    return int(f"{number:0{n}}"[-n:], 16)


def frames(kind: str, seed: int, n: int = N) -> list[bytes]:
    """Frames, or blocks, in the order of time; VDIF has two threads, so its slots have two frames."""
    rng, made = np.random.default_rng(seed), []
    for k in range(n):
        if kind == "m5b":
            words = [0xABADDEED, k % 1000, digits(821, 3) << 20 | digits(3600 + k // 1000, 5), 0]
            made.append(np.array(words, "<u4").tobytes() + rng.bytes(10_000))
        elif kind == "vdif":
            made += [makers.vdif_frame(rng.bytes(160), 100 + k // 500, k % 500, thread=t) for t in (0, 1)]
        else:
            said = {"OBSNCHAN": 2, "NPOL": 4, "NBITS": 8, "BLOCSIZE": 512, "PKTSIZE": 512, "PKTFMT": "1SFA"}
            said |= {"TBIN": "1E-6", "PKTIDX": 7 + k, "STT_IMJD": 60000}
            head = "".join(makers.card(*each) for each in said.items()).encode() + b"END".ljust(80)
            made.append(head + rng.integers(-99, 99, 512).astype(np.int8).tobytes())
    return made


def seen(read: Read, whole: Read) -> tuple[np.ndarray, np.ndarray]:
    """Returns which packets of the whole recording came, and whether those are as they were: bool [n_pols, n]."""
    n, n_pols = whole.received.shape[1], len(whole.rows)
    came, same = np.zeros((n_pols, n), bool), np.zeros((n_pols, n), bool)
    if read.time is None:
        return came, ~came
    packet = Fraction(whole.rows.shape[1], n)  # elements of a packet
    assert packet.denominator == 1
    first = (read.time - whole.time) // PACKETS[whole.rows.dtype.str, n]
    flags = read.received
    assert first >= 0 and first + flags.shape[1] <= n
    came[:, first : first + flags.shape[1]] = flags
    found = read.rows.reshape(n_pols, flags.shape[1], -1)
    expected = whole.rows.reshape(n_pols, n, -1)[:, first : first + flags.shape[1]]
    same[:, first : first + flags.shape[1]] = (found == expected).all(axis=-1)
    return came, same


PACKETS: dict[tuple[str, int], int] = {}


def whole_of(path: Path, kind: str, made: list[bytes]) -> Read:
    path.write_bytes(b"".join(made))
    source = open_samples(path, **GIVEN[kind])
    packet = source.info.packet
    whole = read_all(source, (50,))
    PACKETS[whole.rows.dtype.str, whole.received.shape[1]] = packet
    assert whole.received.all() and whole.received.shape[1] == N
    return whole


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["vdif", "m5b", "guppi"])
def test_each_whole_frame_that_is_there_is_read(tmp_path: Path, kind: str, seed: int) -> None:
    rng, made = np.random.default_rng(seed), frames(kind, seed)
    whole, n_each = whole_of(tmp_path / "whole", kind, made), len(made) // N
    most = 60 if kind == "guppi" else 250
    order = np.arange(len(made))
    for _ in range(3):  # neighbours far apart change places
        at = int(rng.integers(1, len(made) - 2 * most))
        n = int(rng.integers(1, most // 2))
        part = order[at : at + 2 * n].copy()
        order[at : at + 2 * n] = np.concatenate([part[n:], part[:n]])
    keep = np.ones(len(made), bool)
    for at in rng.integers(n_each, len(made) - n_each, 5):
        keep[at : at + int(rng.integers(1, 20))] = False  # frames that were lost
    keep[[0, 1, -1, -2]] = True
    order = order[keep[order]]
    twice = np.sort(rng.choice(len(order) - 1, 9, replace=False))
    later = np.minimum(twice + rng.integers(1, most // 2, 9), len(order) - 1)
    order = np.insert(order, later, order[twice])
    n_cut = int(rng.integers(1, len(made[-1])))
    data = b"".join(made[k] for k in order)[:-n_cut]
    (tmp_path / "x").write_bytes(data)
    told: list[DataLoss] = []
    heard = Heard(told.append)
    read = read_all(open_samples(tmp_path / "x", tell=heard, **GIVEN[kind]), (int(rng.integers(1, 90)),), no_flags=True)
    assert read.error == ""
    came, same = seen(read, whole)
    there = np.zeros(len(made), bool)
    there[order[:-1]] = True  # the last one is cut
    expected = there.reshape(N, -1).T
    if kind == "guppi":  # what is there of the last block is read, too
        assert (came & ~expected).sum() <= 2
        came, same, expected = (each[:, : int(order[-1])] for each in (came, same, expected[[0, 0]]))
    assert (came == expected).all() and same[came].all()
    found = {loss.what: loss for loss in heard.losses}
    assert set(found) == {CUT_OFF, DOUBLES} and found[DOUBLES].n in (8, 9)
    assert f"it ends at byte {len(data)}, in the middle of" in found[CUT_OFF]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["vdif", "m5b", "guppi"])
def test_a_hole_costs_the_frames_that_it_touches(tmp_path: Path, kind: str, seed: int) -> None:
    rng, made = np.random.default_rng(seed), frames(kind, seed)
    whole, size = whole_of(tmp_path / "whole", kind, made), len(made[0])
    data, touched = b"".join(made), np.zeros(len(made), bool)
    for at in sorted((rng.choice(np.arange(9, len(made) - 9, 5), 3, replace=False) * size).tolist(), reverse=True):
        begin = at + int(rng.integers(size))
        end = begin + int(rng.integers(1, 2 * size))
        end += (end - begin) % size == 0
        data = data[:begin] + data[end:]
        touched[begin // size - 1 : -(-end // size) + 1] = True
    (tmp_path / "x").write_bytes(data)
    read = read_file(tmp_path / "x", (7,), no_flags=True, **GIVEN[kind])
    came, same = seen(read, whole)
    missed = (~came).T.reshape(-1) if kind == "vdif" else ~came[0]
    assert read.error == "" and not (missed & ~touched).any() and same[came].all()
    assert "it is damaged in" in read.lost or "it is damaged at" in read.lost


@pytest.mark.parametrize("kind", ["vdif", "m5b", "guppi"])
def test_what_is_too_late_costs_itself_only(tmp_path: Path, kind: str) -> None:
    made = frames(kind, 3)
    whole, each = whole_of(tmp_path / "whole", kind, made), len(made) // N
    late = made[20 * each : 23 * each]
    data = made[: 20 * each] + made[23 * each : 500 * each] + late + made[450 * each : 460 * each] + made[500 * each :]
    (tmp_path / "x").write_bytes(b"".join(data))
    heard = Heard(lambda line: None)
    read = read_all(open_samples(tmp_path / "x", tell=heard, **GIVEN[kind]), (11,))
    came, same = seen(read, whole)
    assert np.flatnonzero(~came[0]).tolist() == [20, 21, 22] and same[came].all()
    assert {loss.what: loss.n for loss in heard.losses} == {OUT_OF_ORDER: 3 * each, DOUBLES: 10 * each}
    assert [loss.is_harmless for loss in heard.losses] == [True, False]


@pytest.mark.parametrize("kind", ["vdif", "m5b", "guppi"])
def test_all_frames_twice_are_read_once_also_beyond_the_window(tmp_path: Path, kind: str) -> None:
    made = frames(kind, 4)
    whole, each = whole_of(tmp_path / "whole", kind, made), len(made) // N
    (tmp_path / "x").write_bytes(b"".join(made[: 400 * each] + made[: 400 * each] + made[400 * each :]))
    read = read_file(tmp_path / "x", (30,), **GIVEN[kind])
    came, same = seen(read, whole)
    assert came.all() and same.all() and f"are read once: {400 * each}" in read.lost and ";" not in read.lost


def test_threads_that_take_turns_of_any_length_within_the_window_are_read(tmp_path: Path) -> None:
    made = frames("vdif", 5)
    whole = whole_of(tmp_path / "whole", "vdif", made)
    for n in (3, 77, MOST_EARLY - 6):
        turns = [made[2 * k + t] for begin in range(0, N, n) for t in (0, 1) for k in range(begin, min(N, begin + n))]
        (tmp_path / "x").write_bytes(b"".join(turns))
        read = read_file(tmp_path / "x", (13,), **GIVEN["vdif"])
        came, same = seen(read, whole)
        assert came.all() and same.all() and read.lost == ""


@pytest.mark.parametrize("kind", ["vdif", "m5b", "guppi"])
def test_pieces_of_a_recording_that_share_frames_are_read_as_one(tmp_path: Path, kind: str) -> None:
    made = frames(kind, 6)
    whole, each = whole_of(tmp_path / "whole", kind, made), len(made) // N
    n_both = 0 if kind == "guppi" else 40
    (tmp_path / "x.1").write_bytes(b"".join(made[: 300 * each]))
    (tmp_path / "x.2").write_bytes(b"".join(made[(300 - n_both) * each :]))
    told: list[str] = []
    read = read_all(open_scans([tmp_path / "x.1", tmp_path / "x.2"], overrides_of(GIVEN[kind]), told.append), (9,))
    came, same = seen(read, whole)
    assert came.all() and same.all()
    assert any(f"are read once: {n_both * each}" in line for line in told) or not n_both


@pytest.mark.parametrize("has_index", [True, False])
def test_blocks_without_a_count_follow_one_another(tmp_path: Path, has_index: bool) -> None:
    blocks = list(np.random.default_rng(1).integers(-99, 99, (9, 2, 64, 2, 2)))
    said = {"TBIN": "1E-6", "STT_IMJD": 60000, "STT_SMJD": 5, "PKTSTART": 77} | ({} if has_index else {"PKTIDX": None})
    makers.guppi(tmp_path / "x", blocks, [0] * 9, said)
    told: list[str] = []
    source = open_samples(tmp_path / "x", channel=1, tell=told.append)
    assert (source.info.n_samples, source.info.first_timestamp) == (9 * 64, 0)
    assert source.info.sync_time_unix == (60000 - 40587) * 86400 + 5
    expected = np.concatenate(blocks, axis=1)[1].astype(np.float32) @ np.array([1, 1j])
    assert (expected == read_all(source, (4,)).rows.T).all()
    assert told == [f"{tmp_path / 'x'}: its PKTIDX is 0 or missing: blocks are taken to follow one another"]


# ---------------------------------------------------------------------- files without frames
@pytest.mark.parametrize("n_more", [0, 1, 2, 801])
def test_dada_is_read_past_its_file_size(tmp_path: Path, n_more: int) -> None:
    sky = np.random.default_rng(2).integers(-90, 90, (1000, 1, 2, 1))
    for number in (None, 3):
        makers.dada(tmp_path / "x", sky, {"TSAMP": 1, "FILE_SIZE": 2000 - 2 * (n_more // 2), "FILE_NUMBER": number})
        if n_more % 2:
            (tmp_path / "x").write_bytes((tmp_path / "x").read_bytes() + b"x")
        read = read_file(tmp_path / "x", (50,))
        n = 1000 - (0 if number is None else n_more // 2)
        assert (read.rows.view(np.int8) == sky[:n, 0, :, 0].T).all() and read.error == ""
        more = f"it has {n_more} bytes after those of its FILE_SIZE={2000 - 2 * (n_more // 2)}: they are read, too"
        assert (more in read.lost) == (n_more > 1 and number is None)
        assert ("in the middle of a sample" in read.lost) == (n_more % 2 == 1 and number is None)
        left = f"it has {n_more} bytes after its last stated sample: they are left out"
        assert (left in read.lost) == (n_more > 0 and number is not None)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["dada", "sigmf", "npy", "raw"])
def test_files_without_frames_are_read_to_their_last_whole_sample(tmp_path: Path, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(500, 3000))
    sky, path, given = rng.integers(-90, 90, (n, 2)).astype(np.int16), tmp_path / "x", {}
    if kind == "dada":
        makers.dada(path, sky.reshape(n, 1, 2, 1), {"TSAMP": 1, "FILE_SIZE": 2 * n * (seed % 2)})
        data, head, item = path, 4096, 1
    elif kind == "sigmf":
        (tmp_path / "x.sigmf-meta").write_text(
            '{"global": {"core:datatype": "ri16_le", "core:num_channels": 2, "core:sample_rate": 1e6},'
            '"captures": [{"core:sample_start": 0}]}'
        )
        path, data, head, item, given = tmp_path / "x.sigmf-meta", tmp_path / "x.sigmf-data", 0, 2, {"channel": (0, 1)}
        data.write_bytes(sky.astype("<i2").tobytes())
    elif kind == "npy":
        path = data = tmp_path / "x.npy"
        np.save(path, np.asfortranarray(sky.T))
        head, item = len(path.read_bytes()) - 4 * n, 2
    else:
        path, data, head, item = tmp_path / "x.toml", tmp_path / "x.dat", 0, 2
        path.write_text('file = "x.dat"\nsample_type = "ri16_le"\nn_pols = 2\nsample_rate_hz = 1e6\n')
        data.write_bytes(sky.astype("<i2").tobytes())
    n_bytes = int(rng.integers(4 * item, 2 * item * n))
    data.write_bytes(data.read_bytes()[: head + n_bytes])
    read = read_file(path, (40,), **given)
    n_whole = n_bytes // (2 * item)
    values = read.rows.view(np.int8 if item == 1 else ">i2")
    assert values.shape[1] == n_whole and (values == sky[:n_whole].T).all() and read.error == ""
    is_said = kind == "npy" or (kind == "dada" and seed % 2 == 1)
    assert (f"after {n_whole} of {n} samples" in read.lost) == is_said
    n_left = n_bytes % (2 * item)
    assert is_said or ("in the middle of a sample: it was cut off" in read.lost) == (n_left > 0)
    assert is_said or not n_left or f"{n_left} bytes there are left out" in read.lost


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2023-11-14T22:13:20Z", 0),
        ("2023-11-14T22:13:20.25+00:00", Fraction(1, 4)),
        ("2023-11-15T00:43:21+02:30", 1),
        ("2023-11-14T17:13:19-0500", -1),
    ],
)
def test_a_datetime_with_any_offset_from_utc_is_read(tmp_path: Path, text: str, seconds: Fraction) -> None:
    meta = '{"global": {"core:datatype": "ri8", "core:sample_rate": 8}, "captures": [{"core:sample_start": 0, '
    (tmp_path / "x.sigmf-meta").write_text(f'{meta}"core:datetime": "{text}"}}]}}')
    (tmp_path / "x.sigmf-data").write_bytes(bytes(64))
    assert open_samples(tmp_path / "x.sigmf-meta").info.sync_time_unix == 1_700_000_000 + seconds
    (tmp_path / "x.sigmf-meta").write_text(f'{meta}"core:datetime": "2023-11-14T22:13:20+25:00"}}]}}')
    with refused("core:datetime is '2023-11-14T22:13:20+25:00'"):
        open_samples(tmp_path / "x.sigmf-meta")


def test_losses_are_told_once_and_say_what_they_count(tmp_path: Path) -> None:
    makers.dada(tmp_path / "x", np.zeros((100, 1, 1, 1)), {"TSAMP": 1, "FILE_SIZE": 30})
    heard = Heard(lambda line: None)
    for _ in range(2):
        read_all(open_samples(tmp_path / "x", tell=heard))
    line = f"{tmp_path / 'x'}: it has 70 bytes after those of its FILE_SIZE=30: they are read, too"
    said = {"file": str(tmp_path / "x"), "what": LONGER, "n": 70, "unit": "bytes", "line": line}
    assert [loss.as_json() for loss in heard.losses] == [said] and heard.losses[0].is_harmless


@pytest.mark.parametrize("packets", [(1,), (300,)])
@pytest.mark.parametrize("kind", ["vdif", "m5b"])
def test_frames_that_come_late_after_a_gap_are_read(tmp_path: Path, kind: str, packets: tuple[int, ...]) -> None:
    made, n_threads = frames(kind, 5), 2 if kind == "vdif" else 1
    made = made[: 100 * n_threads] + made[450 * n_threads :]  # 350 frames are missing, more than may be late
    rng = np.random.default_rng(6)
    late = made[60 * n_threads : 100 * n_threads : 7 * n_threads]  # some come up to 150 frames too late, each alone
    rest = [frame for frame in made if frame not in late]
    for frame in late:
        rest.insert(int(rng.integers(110, 200)) * n_threads, frame)
    (tmp_path / "x").write_bytes(b"".join(rest))
    read = read_file(tmp_path / "x", packets, **GIVEN[kind])
    assert read.lost == "" and read.error == ""
    assert np.flatnonzero(~read.received.any(axis=0)).tolist() == list(range(100, 450))
