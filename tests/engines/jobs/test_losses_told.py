"""Recordings with damage, by the command line: the result is whole, a line tells the loss, and --strict fails."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from autotune.engines import Bands, Running, correlate

from ..files import makers
from .test_jobs import type_

HOST = ["--device", "host"]
N, N_FRAME, DELAY = 300, 800, 9


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stations(n_stations: int = 2) -> list[np.ndarray]:
    """int8 [2, N * N_FRAME] of each: a common noise, which reaches each station DELAY later than the one before."""
    rng = np.random.default_rng(1)
    sky = rng.normal(0, 15, (2, N * N_FRAME + DELAY * n_stations))
    each = [
        sky[:, DELAY * (n_stations - k) :][:, : N * N_FRAME] + rng.normal(0, 8, (2, N * N_FRAME)) for k in (0, 1, 2)
    ]
    return [np.rint(rows).clip(-127, 127).astype(np.int8) for rows in each[:n_stations]]


def frames(rows: np.ndarray, name: str) -> list[bytes]:
    """Frames of 800 samples, 1000 a second, of two threads in turn."""
    rows = rows.view(np.uint8).reshape(2, N, N_FRAME) ^ 0x80
    made = ((k, t) for k in range(N) for t in (0, 1))
    return [makers.vdif_frame(rows[t, k].tobytes(), 77, k, thread=t, station=name) for k, t in made]


def blocks(rows: np.ndarray) -> list[np.ndarray]:
    """int8 [1, 4000, 2, 2] each: rows as the real parts of complex samples."""
    parts = np.stack([rows, np.zeros_like(rows)], axis=-1).reshape(2, -1, 4000, 2)
    return list(parts.transpose(1, 2, 0, 3)[:, np.newaxis])


OPTIONS = ["--channels", "50", "--spectra-per-heap", "40", "--accumulate", "5", *HOST]
RATE = ["--header", "sample_rate_hz=8e5"]
SAID = {"TBIN": "1.25E-6", "STT_IMJD": 60000, "PKTSIZE": 4, "OBSFREQ": 1400, "OBSBW": 0.8}


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_cut_off_recording_gives_output_picture_fringe_and_summary(folder, capsys, monkeypatch, is_cut) -> None:
    for name, rows in zip(("AA", "BB"), stations(), strict=True):
        data = b"".join(frames(rows, name))
        (folder / f"{name}.vdif").write_bytes(data[: -411 if name == "BB" and is_cut else None])
    words = ["correlate", "AA.vdif", "BB.vdif", *OPTIONS, *RATE, "--out", "x.h5", "--plot", "x.png"]
    code, out, err = type_(words, capsys, monkeypatch)
    assert code == 0 and (folder / "x.png").exists() and "BB is 9.00 samples" in out and "x.h5: 11 dumps" in out
    lines = [line for line in err.splitlines() if "BB.vdif" in line]
    at, frame = 600 * (N_FRAME + 32) - 411, "in the middle of frame 599: it was cut off, or is still being written"
    assert lines == [f"BB.vdif: it ends at byte {at}, {frame}; 421 bytes there are left out"] * is_cut
    with h5py.File("x.h5") as file:
        assert len(file["timestamps"]) == 11 and (file["weights"][:] == 200).all()
    code, out, err = type_([*words[:-4], "--strict", "--json", "--out", "y.h5", "--plot", "y.png"], capsys, monkeypatch)
    assert code == int(is_cut) and ("--strict: data of 1 recordings are lost" in err) == is_cut
    summary = json.loads(out)
    assert (summary["visibilities"], summary["picture"], summary["dumps_out"]) == ("y.h5", "y.png", 11)
    assert [one["what"] for one in summary["losses"]] == ["cut off"] * is_cut and summary["heaps_missing"] == 0
    assert [one["baseline"] for one in summary["fringes"]] == [["AA", "BB"]]
    assert summary["fringes"][0]["text"].startswith("AA - BB: BB is 9.00 samples")
    assert [one["antenna"] for one in summary["antennas"]] == ["AA", "BB"]


def test_the_other_stations_go_on_when_one_is_cut_off(folder, capsys, monkeypatch) -> None:
    made = stations(3)
    for name, rows in zip(("AA", "BB", "CC"), made, strict=True):
        data = b"".join(frames(rows, name))
        (folder / f"{name}.vdif").write_bytes(data if name != "AA" else data[: 241 * (N_FRAME + 32) + 100])
        said = {"TSAMP": 1.25, "FREQ": 1400, "BW": 0.4, "UTC_START": "2023-11-14-22:13:20", "FILE_SIZE": rows.size}
        makers.dada(folder / f"{name}.dada", rows.T.reshape(-1, 1, 2, 1), {**said, "TELESCOPE": name})
        makers.guppi(folder / f"{name}.raw", blocks(rows), range(0, 60 * 4000, 4000), SAID)
    for name, n in (("AA.dada", 96_001 * 2 + 4096 + 1), ("AA.raw", None)):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: n or len(data) * 24 // 60 + 5000])
    for kind, more in (("vdif", RATE), ("dada", []), ("raw", [])):
        words = ["correlate", *[f"{name}.{kind}" for name in ("AA", "BB", "CC")], *OPTIONS, *more]
        code, _, err = type_([*words, "--chunk", "16384", "--out", f"{kind}.h5"], capsys, monkeypatch)
        assert code == 0 and len([line for line in err.splitlines() if f"AA.{kind}: it ends" in line]) == 1, err
        with h5py.File(f"{kind}.h5") as file:
            weights = file["weights"][:, :, 0]
        assert len(weights) > 8 and (weights[:, 4] == 200).all() and (weights[-4:, :2] == 0).all()
        assert (weights[:3, 0] == 200).all()


@pytest.mark.parametrize("n", [3, 50, 130])
def test_threads_in_blocks_of_frames_and_doubles_give_all_heaps(folder, capsys, monkeypatch, n: int) -> None:
    a, b = (frames(rows, name) for rows, name in zip(stations(), ("AA", "BB"), strict=True))
    turns = [b[2 * k + t] for begin in range(0, N, n) for t in (0, 1) for k in range(begin, min(N, begin + n))]
    (folder / "a.vdif").write_bytes(b"".join(a))
    (folder / "b.vdif").write_bytes(b"".join(turns[:400] + turns[:400] + turns[400:]))
    words = ["correlate", "a.vdif", "b.vdif", *OPTIONS, *RATE, "--plot", "x.png", "--json", "--strict"]
    code, out, _ = type_(words, capsys, monkeypatch)
    summary = json.loads(out)
    assert code == 0 and summary["dumps_out"] == 11 and summary["share_missing"] == 0
    assert [(loss["what"], loss["n"]) for loss in summary["losses"]] == [("doubles", 400)]
    assert "BB is 9.00 samples" in summary["fringes"][0]["text"]


@pytest.mark.parametrize(
    ("order", "is_counted", "words"),
    [
        ([*range(7), 6, *range(7, 60)], True, "blocks that are there twice are read once: 1"),
        ([0, 1, 5, 4, 3, 2, *range(6, 60)], True, ""),
        (range(60), False, "its PKTIDX is 0 or missing: blocks are taken to follow one another"),
    ],
)
def test_odd_blocks_of_guppi_give_all_heaps(folder, capsys, monkeypatch, order, is_counted, words) -> None:
    for name, rows in zip(("a", "b"), stations(), strict=True):
        made, here = blocks(rows), range(60) if name == "a" else order
        indices = [k * 4000 * (is_counted or name == "a") for k in here]
        makers.guppi(folder / f"{name}.raw", [made[k] for k in here], indices, {**SAID, "TELESCOP": name})
    code, out, err = type_(["correlate", "a.raw", "b.raw", *OPTIONS, "--out", "x.h5"], capsys, monkeypatch)
    assert (
        code == 0
        and "missing" not in out
        and ([f"b.raw: {words}"] if words else []) == [line for line in err.splitlines() if line.startswith("b.raw")]
    )
    with h5py.File("x.h5") as file:
        assert (file["weights"][:] == 200).all() and len(file["weights"]) > 20


def test_channelise_tells_json_and_strict_too(folder, capsys, monkeypatch) -> None:
    (folder / "x.vdif").write_bytes(b"".join(frames(stations()[0], "AA"))[:-30])
    words = ["channelise", "x.vdif", "--channels", "50", "--spectra-per-heap", "40", *RATE, *HOST]
    code, out, err = type_([*words, "--out", "v.h5"], capsys, monkeypatch)
    assert code == 0 and out.startswith("v.h5: 59 heaps") and err.count("x.vdif: it ends at byte") == 1
    code, out, err = type_([*words, "--out", "w.h5", "--json", "--strict"], capsys, monkeypatch)
    summary = json.loads(out)
    assert code == 1 and [loss["n"] for loss in summary["losses"]] == [N_FRAME + 32 - 30]
    assert (summary["bands"][0]["voltages"], summary["bands"][0]["heaps_out"]) == ("w.h5", 59)
    with h5py.File("v.h5") as one, h5py.File("w.h5") as other:
        assert (one["voltages"][:] == other["voltages"][:]).all()


def test_python_has_the_losses_as_data(folder) -> None:
    for name, rows in zip(("AA", "BB"), stations(), strict=True):
        (folder / name).write_bytes(b"".join(frames(rows, name))[: -7 if name == "AA" else None])
    told: list[str] = []
    for strict in (False, True):
        running = Running(device="host", strict=strict, tell=told.append)
        bands = Bands(50, spectra_per_heap=40)
        made = correlate(["AA", "BB"], bands, header={"sample_rate_hz": 8e5}, accumulate=5, running=running)
        assert made.has_failed == strict and [(loss.path.name, loss.n) for loss in made.losses] == [("AA", 825)]
        assert made.losses[0] in told and len(made.timestamps) == 11
