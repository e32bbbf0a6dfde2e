"""`autotune array` puts the files of each antenna together, and says what their headers lack."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from autotune.engines.files.array_draft import array_text
from autotune.engines.files.array_file import ArrayFile, read_array
from autotune.engines.files.grouping import base_name, grouped
from autotune.engines.files.opening import open_samples
from autotune.engines.jobs.inputs import recordings

from ...commands import typed
from . import makers
from .common import refused
from .test_scans import dada_series, raw, vdif

RNG = np.random.default_rng(19)


def drafted(paths: Sequence[Path], folder: Path, **given: object) -> tuple[str, list[str]]:
    told: list[str] = []
    return array_text(grouped(recordings(paths, told.append), given, told.append), folder, given), told


def filled(text: str, folder: Path) -> ArrayFile:
    """What the file is when all that lacks is filled in by its examples."""
    lines = [line.removeprefix("# ") if " = " in line and line.startswith("# ") else line for line in text.splitlines()]
    text = "\n".join(line for line in lines if not line.startswith(("right_asc", "declination", "the header of")))
    (folder / "array.toml").write_text(text)
    return read_array(folder / "array.toml")


@pytest.mark.parametrize("seed", range(8))
def test_files_of_each_antenna_are_found_in_the_order_of_time(tmp_path: Path, seed: int) -> None:
    """Nights drawn at random: antennas of any number, in pieces and scans of names that do not sort by time."""
    rng = np.random.default_rng(seed)
    truth: dict[str, list[Path]] = {}
    for antenna in range(int(rng.integers(1, 5))):
        name, at = f"m{antenna:03}", int(rng.integers(0, 9000))
        for piece in rng.permutation(100)[: rng.integers(1, 5)].tolist():
            n = 8 * int(rng.integers(1, 50))
            path = raw(
                tmp_path / f"{name}_{piece:04}.toml", rng.integers(-9, 9, (1, n)), at, more=f'antenna = "{name}"\n'
            )
            truth.setdefault(name, []).append(path)
            at += n + int(rng.choice([0, 0, 1, 5000]))
    text, told = drafted([tmp_path], tmp_path)
    assert told == [] and {each["name"]: len(each["files"]) for each in tomllib.loads(text)["antenna"]} == {
        name: len(files) for name, files in truth.items()
    }
    array = filled(text, tmp_path)
    assert {each.name: list(each.files[0]) for each in array.antennas} == truth
    assert all(
        each.header["position_m"] == (0, 0, 0) and "centre_frequency_hz" in each.header for each in array.antennas
    )


def test_what_headers_lack_is_asked_for_once_if_it_is_alike(tmp_path: Path) -> None:
    for station, threads in (("On", (0, 1)), ("Wb", (2, 3, 5))):
        for piece, begin in enumerate((1990, 2002, 9000)):  # frames, of which 2000 are a second
            frames = [
                makers.vdif_frame(bytes(80), *divmod(begin + k, 2000), thread=thread, station=station)
                for k in range(12)
                for thread in threads
            ]
            (tmp_path / f"{station}.{piece:04}.vdif").write_bytes(b"".join(frames))
    text, _ = drafted([tmp_path], tmp_path)
    head, first, second = text.split("[[antenna]]\n")
    assert head.count("# sample_rate_hz = 160000.0\n") == 1 and "sample_rate_hz" not in first + second
    assert (
        'files = [\n    "On.0000.vdif",\n    "On.0001.vdif",\n    "On.0002.vdif",  # 3.493 s after the one before\n]'
        in first
    )
    assert (
        "threads" not in first
        and "threads [2, 3, 5], and none are chosen" in second
        and "# threads = [2, 3]\n" in second
    )
    assert [antenna.files[0][2].name for antenna in filled(text, tmp_path).antennas] == ["On.0002.vdif", "Wb.0002.vdif"]
    text, _ = drafted([tmp_path], tmp_path.parent, sample_rate_hz=160_000.0, threads=(2, 3))
    assert "\nsample_rate_hz = 160000.0\nthreads = [2, 3]\n" in text and f'"{tmp_path.name}/Wb.0000.vdif"' in text


def test_files_that_are_cut_between_threads_are_of_one_antenna(tmp_path: Path) -> None:
    frames = [(slot, thread) for slot in range(60) for thread in (0, 1)]
    sky = RNG.integers(-90, 90, (2, 60, 80))
    paths = [vdif(tmp_path / f"x.{k}", frames[a:b], sky) for k, (a, b) in enumerate(((0, 41), (41, 83), (83, 120)))]
    text, _ = drafted(paths, tmp_path, sample_rate_hz=160_000.0)
    (antenna,) = filled(text, tmp_path).antennas
    assert list(antenna.files[0]) == paths


def test_a_series_of_dada_follows_by_offsets_or_by_numbers(tmp_path: Path) -> None:
    sky = RNG.integers(-90, 90, (96, 1, 2, 1))
    for said, more in (
        ({}, ""),
        ({"OBS_OFFSET": 0}, "follow_on"),
        ({"OBS_OFFSET": 0, "FILE_NUMBER": None}, "follow_on"),
    ):
        paths = dada_series(tmp_path, sky, (0, 16, 32, 64, 96), **said)
        text, _ = drafted(paths[::-1], tmp_path)
        (antenna,) = filled(text, tmp_path).antennas
        assert list(antenna.files[0]) == paths and antenna.follow_on == bool(more)


def test_files_of_one_time_are_antennas_of_their_own(tmp_path: Path) -> None:
    """All have one TELESCOPE: those of each folder follow each other, and those without numbers are antennas each."""
    sky = RNG.integers(-90, 90, (64, 1, 2, 1))
    for folder in ("east", "west"):
        (tmp_path / folder).mkdir()
        dada_series(tmp_path / folder, sky, (0, 32, 64))
    text, _ = drafted([tmp_path / "east", tmp_path / "west"], tmp_path)
    assert [[file.parent.name for file in each.files[0]] for each in filled(text, tmp_path).antennas] == [
        ["east"] * 2,
        ["west"] * 2,
    ]
    for name in ("p.dada", "q.dada"):
        makers.dada(tmp_path / name, sky, {"TSAMP": 1})
    text, _ = drafted([tmp_path / "p.dada", tmp_path / "q.dada"], tmp_path)
    assert [each.name for each in filled(text, tmp_path).antennas] == [
        "p",
        "q",
    ] and text.count('several have the name "PKS"') == 2


def test_antennas_in_one_file_are_listed_with_their_names(tmp_path: Path) -> None:
    said = {"NANTS": 2, "ANTNMES": "1a,2b", "TBIN": 1e-6, "SYNCTIME": 1_700_000_000, "PIPERBLK": 64, "NPOL": 2}
    for piece in range(2):
        block = RNG.integers(-9, 9, (4, 64, 2, 2))
        makers.guppi(tmp_path / f"ata.{piece}.raw", [block], [640 + piece * 64], said)
    text, _ = drafted([tmp_path], tmp_path)
    array = filled(text, tmp_path)
    assert [(each.name, each.in_file, len(each.files[0])) for each in array.antennas] == [
        ("1a", "1a", 2),
        ("2b", "2b", 2),
    ]
    assert "channel=0 to 1\n# channel = 0\n" in text and "# n_pols = 2\n" in text


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("On.0000.vdif", "On"),
        ("On.vdif", "On"),
        ("2026-01-01-07:00:00_0000000000000000.000000.dada", ""),
        ("guppi_60000_12345_0017_m001_0001.0000.raw", "guppi_m001"),
        ("ea07-No0003_2026-01-01T07:00:00.vdif", "ea07_No0003"),
    ],
)
def test_names_without_their_numbers(name: str, base: str) -> None:
    assert base_name(name) == base


def test_the_command_writes_it_beside_the_recordings_and_correlate_runs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sky = RNG.integers(-60, 60, (2, 8192))
    for name in "ab":
        for piece, begin in enumerate((0, 4096)):
            own = sky[:, begin : begin + 4096] + RNG.integers(-30, 30, (2, 4096))
            raw(tmp_path / f"{name}{piece}.toml", own, begin, more=f'antenna = "{name}"\n')
    monkeypatch.chdir(tmp_path)
    typed(["array", ".", "--out", "array.toml"], monkeypatch)
    assert capsys.readouterr() == ("array.toml\n", "2 antennas of 4 files\n")
    typed(["array", "a0.toml", "b0.toml"], monkeypatch)
    assert [each["files"] for each in tomllib.loads(capsys.readouterr().out)["antenna"]] == [["a0.toml"], ["b0.toml"]]
    options = ["--channels", "16", "--taps", "4", "--spectra-per-heap", "16", "--accumulate", "4", "--device", "host"]
    typed(["correlate", "array.toml", *options, "--out", "x.h5"], monkeypatch)
    out, _ = capsys.readouterr()
    assert out.startswith("x.h5: 3 dumps of ") and "3 baselines" in out
    with refused("array.toml: it exists"):
        from autotune.cli.commands.array import array

        array([tmp_path], Path("array.toml"))
    found = [path.name for path in recordings([tmp_path], print)]
    assert (
        found == ["a0.toml", "a1.toml", "b0.toml", "b1.toml"]
        and "give it instead of its folder" in capsys.readouterr().out
    )


@pytest.mark.parametrize(("n_frames", "says"), [(7, "suggest at least 2800"), (13, "suggest 4000")])
def test_a_rate_is_a_lower_bound_where_the_file_ends_within_its_first_second(
    tmp_path: Path, n_frames: int, says: str
) -> None:
    """Ten frames of 400 samples a second."""
    frames = [makers.vdif_frame(bytes(400), 1000 + k // 10, k % 10) for k in range(n_frames)]
    (tmp_path / "x.vdif").write_bytes(b"".join(frames))
    with refused("give sample_rate_hz", says):
        open_samples(tmp_path / "x.vdif")
