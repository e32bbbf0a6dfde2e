"""Both ends of a recording, and runs that make nothing: by the command line, as people meet them."""

import os
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel
from autotune.engines.plots import visibility_picture, voltage_picture

from ..files import makers
from ..files.common import full_disk
from .test_jobs import type_

RNG = np.random.default_rng(9)
HOST = ["--device", "host"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def packed(folder: Path, n: int, first: int | None, missing: str = "[]") -> str:
    """A recording of two polarisations whose header has a first timestamp, or none."""
    (folder / "x.bin").write_bytes(np.rint(RNG.normal(0, 20, (2, n))).astype(np.int8).tobytes())
    text = 'file = "x.bin"\nsample_bits = 8\nn_pols = 2\nsample_rate_hz = 2e6\n' + f"missing = {missing}\n"
    (folder / "x.toml").write_text(text + ("" if first is None else f"first_timestamp = {first}\n"))
    return "x.toml"


def dada(folder: Path, name: str, n: int, n_pols: int = 2) -> str:
    samples = np.rint(RNG.normal(0, 20, (n, 1, n_pols, 1)))
    makers.dada(folder / name, samples, {"TSAMP": 1.0, "FREQ": 1284, "BW": 0.5, "UTC_START": "2023-11-14-22:13:20"})
    return name


@pytest.mark.parametrize("first", [None, 3200, 1_000_001])
def test_each_end_costs_the_part_of_a_heap_whatever_the_chunk(folder, capsys, monkeypatch, first: int | None) -> None:
    length, needed, n = 64 * 96, 64 * (96 + 15), 300_000
    begin = first or 0
    expected = range(-(-begin // length) * length, begin + n // 32 * 32 - needed + 1, length)
    words = ["channelise", packed(folder, n, first), "--channels", "32", "--spectra-per-heap", "96", *HOST]
    for chunk in (1000, 65536, 1 << 20):
        code, out, _ = type_([*words, "--chunk", str(chunk), "--out", f"{chunk}.h5"], capsys, monkeypatch)
        assert code == 0 and out.startswith(f"{chunk}.h5: {len(expected)} heaps of 32 channels")
        assert "left out" not in out  # what lies outside is not missing
        with h5py.File(f"{chunk}.h5") as file:
            assert file["timestamps"][:].tolist() == list(expected)


def titles(monkeypatch: pytest.MonkeyPatch, owner: type) -> list[str]:
    """What pictures have as their titles."""
    found: list[str] = []
    right = owner._title
    monkeypatch.setattr(owner, "_title", lambda self: found.append(right(self)) or found[-1])
    return found


def test_terminal_picture_and_file_count_the_same_heaps(folder, capsys, monkeypatch) -> None:
    seen = titles(monkeypatch, voltage_picture._Voltages)
    path = packed(folder, 1 << 18, 5000, "[[0, 80000, 19000], [1, 77000, 20000], [1, 200000, 100]]")
    words = ["channelise", path, "--channels", "16", "--spectra-per-heap", "64", "--out", "v.h5", "--plot", "v.png"]
    code, out, _ = type_([*words, *HOST], capsys, monkeypatch)
    found = re.search(r"(\d+) heaps of .*; (\d+) left out, .*; ([\d.]+) % of the spectra missing", out)
    assert code == 0 and found is not None, out
    n, n_missing, share = int(found[1]), int(found[2]), float(found[3])
    with h5py.File("v.h5") as file:
        times, bits = file["timestamps"][:] // (64 * 32), np.unpackbits(file["present"][:], axis=-1)
    assert n == len(times) and n_missing == times[-1] - times[0] + 1 - n > 4
    assert share == pytest.approx(100 * (1 - bits.sum() / (n + n_missing) / 128), abs=0.5)
    of_others = 100 * (1 - bits.mean())
    assert f"{n} heaps of 64 spectra, {n_missing} missing, {of_others:.2g} % of the others' spectra" in seen[0]


@pytest.mark.parametrize("chunk", ["3000", "1048576"])
@pytest.mark.parametrize("complete", [False, True])
def test_terminal_picture_and_file_count_the_same_dumps(folder, capsys, monkeypatch, chunk, complete) -> None:
    seen = titles(monkeypatch, visibility_picture._Visibilities)
    paths = [packed(folder, 1 << 18, 777, "[[0, 90000, 70000], [1, 90000, 70000]]"), "y.toml"]
    Path("y.toml").write_text(Path("x.toml").read_text().replace("777", "9777").replace("70000", "30000"))
    words = ["correlate", *paths, "--channels", "16", "--spectra-per-heap", "16", "--accumulate", "9", "--chunk", chunk]
    words += ["--complete-dumps"] * complete
    code, out, _ = type_([*words, "--out", "v.h5", "--plot", "v.png", *HOST], capsys, monkeypatch)
    empty = r" in (\d+) of them every antenna misses data;" if complete else "()"
    found = re.search(
        rf"(\d+) dumps of .*;{empty} (\d+) missing: no data for them arrived; ([\d.]+) % of the spectra missing", out
    )
    assert code == 0 and found is not None, out
    n, n_empty, n_missing = (int(number or 0) for number in found.groups()[:3])
    length = 9 * 16 * 32
    with h5py.File("v.h5") as file:
        times, present, weights = file["timestamps"][:], file["present"][:], file["weights"][:]
    assert float(found[4]) == pytest.approx(100 * (1 - weights.mean() / (9 * 16)), rel=0.06)
    assert (len(times), int((~weights.any(axis=(1, 2))).sum())) == (n, n_empty) and bool(n_empty) == complete
    if complete:
        assert np.array_equal(weights[:, 0] // (9 * 16), np.repeat(present[:, :1], 4, axis=1))
    assert n_missing == (times[-1] - times[0]) // length + 1 - n > 3
    assert f"{n} dumps of" in seen[0] and f"{n_missing} missing" in seen[0]
    assert times[0] >= 777 and times[-1] + length <= (1 << 18) + 9777


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (
            ["correlate", "a.dada", "a.dada", "--spectra-per-heap", "6"],
            2,
            "--spectra-per-heap 6: correlated heaps must",
        ),
        (["correlate", "a.dada", "a.dada", "--spectra-per-heap", "1048576"], 2, "--accumulate 4 batches of "),
        (
            ["correlate", "empty"],
            2,
            "there is no recording in empty: neither DADA nor GUPPI RAW nor Mark 5B nor an array of NumPy nor",
        ),
        (["channelise", "a.dada", "--spectra-per-heap", "1048576"], 2, "--spectra-per-heap 1048576 spectra need"),
        (["channelise", "pipe"], 2, "pipe: it is a pipe"),
        (["channelise", "lost.toml"], 1, "no spectrum is whole: "),
        (["correlate", "lost.toml", "lost.toml"], 1, "no spectrum has all of its samples, and each of "),
        (
            ["correlate", "some.toml", "some.toml", "--complete-dumps"],
            1,
            "no antenna is whole in any of 1 dumps, since",
        ),
        (["correlate", "short.dada", "short.dada", "--accumulate", "6"], 1, "no dump lies within the input"),
    ],
)
def test_what_makes_nothing_says_why_and_leaves_nothing(
    folder, capsys, monkeypatch, words: list[str], code: int, why: str
) -> None:
    dada(folder, "a.dada", 200_000)
    dada(folder, "short.dada", 6 * 256 * 128 + 1000)
    for name, pols in (("lost.toml", [[0, 1]] * 64), ("some.toml", [[0], [1]] * 32)):
        lacks = [[pol, 4096 * k, 1] for k, of_packet in enumerate(pols) for pol in of_packet]
        Path(packed(folder, 1 << 18, 0, str(lacks))).rename(name)
    Path("empty").mkdir()
    os.mkfifo("pipe")
    before = sorted(folder.rglob("*"))
    rest = ["--accumulate", "4"] if words[0] == "correlate" and "--accumulate" not in words else []
    given = [*words, *rest, "--channels", "64", "--out", "v.h5", "--plot", "v.png", *HOST]
    found, out, err = type_(given, capsys, monkeypatch)
    last = err.strip().splitlines()[-1]
    assert found == code and last.startswith("autotune: ") and why in last, err
    assert out == "" and sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("start", "delay", "rate", "why"),
    [
        (-(1 << 62), 0, 1e-3, r"a delay of x is 4\.612e\+15 samples while the samples last"),
        (-(1 << 62), 0, 0.9, "begin its piece nearer to the samples"),
        (-(1 << 50), 0, 0.5, "begin its piece nearer to the samples"),
        (0, 1e6, 0.999999, "delays grow so fast that no heap was found for samples from 0 on"),
    ],
)
def test_delays_that_outrun_the_samples_are_told_and_asked_for_no_longer(
    folder, capsys, monkeypatch, start: int, delay: float, rate: float, why: str
) -> None:
    asked, at = [0], DelayModel.at

    def counted(self: DelayModel, *args: int, **more: int) -> object:
        asked[0] += 1
        assert asked[0] < 30_000
        return at(self, *args, **more)

    monkeypatch.setattr(DelayModel, "at", counted)
    Path("d.toml").write_text(f"[[delay]]\nstart = {start}\ndelay = {delay}\nrate = {rate}\n")
    words = ["channelise", packed(folder, 40960, 0), "--channels", "32", "--delays", "d.toml", "--out", "v.h5", *HOST]
    code, out, err = type_(words, capsys, monkeypatch)
    last = err.strip().splitlines()[-1]
    assert code == 2 and out == "" and last.startswith("autotune: ") and re.search(why, last), err
    assert not Path("v.h5").exists()


@pytest.mark.parametrize("limit", [1000, 400_000])
def test_a_full_disk_ends_a_command_with_1(folder, capsys, monkeypatch, limit: int) -> None:
    words = ["channelise", packed(folder, 1 << 18, 0), "--channels", "16", "--spectra-per-heap", "64", "--out", "v.h5"]
    assert type_([*words, *HOST, "--out", "warm.h5"], capsys, monkeypatch)[0] == 0  # what it compiles is there
    with full_disk(limit):
        code, out, err = type_([*words, *HOST], capsys, monkeypatch)
    last = err.strip().splitlines()[-1]
    assert code == 1 and out == "" and last.startswith("autotune: v.h5: it cannot be") and "File too large" in last, err


def test_a_folder_has_recordings_of_every_format_and_is_silent_about_its_own_files(folder, capsys, monkeypatch) -> None:
    (folder / "night").mkdir()
    dada(folder / "night", "b.dada", 100_000)
    packed(folder / "night", 100_000, 0)
    text = (folder / "night" / "x.toml").read_text()
    (folder / "night" / "x.toml").write_text(
        text.replace("2e6", "1e6") + 'sync_time_unix = 1700000000\ncentre_frequency_hz = 1284e6\nantenna = "X"\n'
    )
    (folder / "night" / "delays.toml").write_text("[[delay]]\nstart = 0\n")
    words = ["correlate", "night", "--channels", "16", "--spectra-per-heap", "64", "--accumulate", "8", "--out", "v.h5"]
    code, _, err = type_([*words, *HOST], capsys, monkeypatch)
    assert code == 0 and "delays.toml" not in err, err
    with h5py.File("v.h5") as file:
        assert file["present"].shape[1] == 2
