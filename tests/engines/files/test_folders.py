"""What is a recording in a folder, and what is not a file."""

import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from autotune.engines.files.formats.hdf5_voltages import VoltageFiles
from autotune.engines.files.gain_file import read_gains
from autotune.engines.files.opening import open_samples
from autotune.engines.jobs.inputs import recordings

from . import makers
from .common import refused

RNG = np.random.default_rng(13)
HEADER = 'file = "{}"\nsample_bits = 8\nn_pols = 1\nsample_rate_hz = 1e6\n'


@pytest.fixture
def night(tmp_path: Path) -> Path:
    """A folder with a recording of each format."""
    folder = tmp_path / "night"
    folder.mkdir()
    makers.dada(folder / "b.dada", RNG.integers(-9, 9, (64, 1, 1, 1)), {"TSAMP": 1})
    makers.guppi(folder / "a.0000.raw", [RNG.integers(-9, 9, (1, 64, 2, 2))], [0], {"TBIN": "1E-6"})
    frames = [makers.vdif_frame(RNG.integers(0, 256, 160, np.uint8).tobytes(), 1, k) for k in range(5)]
    (folder / "d.vdif").write_bytes(b"".join(frames))
    (folder / "scan_17").write_bytes(b"".join(frames))
    (folder / "c.toml").write_text(HEADER.format("c.bin"))
    (folder / "c.bin").write_bytes(b"".join(frames))  # might be VDIF, and is not asked
    return folder


FOUND = ["a.0000.raw", "b.dada", "c.toml", "d.vdif", "scan_17"]


def names(*paths: Path) -> tuple[list[str], list[str]]:
    """What is found in folders, and what is told of it."""
    told: list[str] = []
    return [path.name for path in recordings(paths, told.append)], told


def test_a_folder_has_recordings_of_all_formats_by_name(night: Path) -> None:
    assert names(night) == (FOUND, [])
    for path in recordings([night], lambda line: None):
        open_samples(path, sample_rate_hz=8e4).close()


def test_what_is_plainly_something_else_is_ignored_without_a_word(night: Path) -> None:
    for name in (".hidden", ".x.toml", "v.h5", "v.uvh5", "spectrum.png", "gains.npz", "README.md", "x.svg"):
        (night / name).write_bytes(b"anything")
    (night / "delays.toml").write_text('[[delay]]\nantenna = "m000"\ndelay = 1.5\n')
    (night / "sky.toml").write_text("sample_rate_hz = 1e6\n[phase_centre]\nhour_angle_deg = 1\n")
    (night / "antennas.toml").write_text('[[antenna]]\nname = "m000"\n')
    (night / "v.ms").mkdir()
    (night / "earlier").mkdir()
    assert names(night) == (FOUND, [])


def test_what_is_unknown_or_unreadable_in_a_folder_is_told_and_left_out(night: Path) -> None:
    (night / "other.toml").write_text("colour = 1\n")
    (night / "broken.toml").write_text("= 1\n")
    (night / "list.toml").write_text("file = [1]\n")
    (night / "notes").write_bytes(b"what is this? " * 1000)
    (night / "gone").symlink_to(night / "nowhere")
    os.mkfifo(night / "pipe")
    found, told = names(night)
    assert [name for name in found if name != "list.toml"] == FOUND
    assert all("\n" not in line and "left out" in line for line in told)
    parts = {
        "other.toml": "not a header of samples",
        "broken.toml": "it is not TOML",
        "notes": "neither DADA nor GUPPI RAW nor Mark 5B nor an array of NumPy nor a TOML header of samples nor",
        "gone": "No such file",
        "pipe": "it is a pipe",
    }
    assert all(any(f"night/{name}: " in line and words in line for line in told) for name, words in parts.items())
    assert len(told) == len(parts)


def test_sigmf_in_a_folder_is_one_recording_and_arrays_are_none(night: Path) -> None:
    for name in ("s.sigmf-meta", "s.sigmf-data", "all.sigmf-collection"):
        (night / name).write_bytes(b"{}")
    np.save(night / "gains.npy", np.ones(8))
    assert names(night) == (sorted([*FOUND, "s.sigmf-meta"]), [])


def test_samples_at_random_are_no_vdif(night: Path) -> None:
    for case in range(300):
        data = np.random.default_rng(case).integers(0, 256, 40_000, np.uint8)
        data[8:11] = np.array([100], "<u4").view(np.uint8)[:3]  # a length that fits
        data[11] = 0
        data.tofile(night / "e.bin")
        assert names(night)[0] == FOUND


def test_other_toml_among_files_is_told(night: Path) -> None:
    (night / "delays.toml").write_text('[[delay]]\nantenna = "m000"\ndelay = 1.5\n')
    found, told = names(night / "c.toml", night / "delays.toml")
    assert found == ["c.toml"] and len(told) == 1 and "delays.toml: it is not a header of samples" in told[0]


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_bytes(b"nothing")
    with refused("there is no recording in", tmp_path, "DADA"):
        names(tmp_path)


# ---------------------------------------------------------------------- what is not a file
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device"])
def test_what_is_no_file_is_refused_for_what_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.bin"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(os.path.relpath(path))
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    (tmp_path / "x.toml").write_text(HEADER.format("x.bin"))
    for name, opens in (
        ("x.bin", open_samples),
        ("x.toml", open_samples),
        ("x.npy", lambda path: read_gains(path, 4, 1)),
        ("x.h5", lambda path: VoltageFiles([path])),
    ):
        if name not in ("x.bin", "x.toml"):
            (tmp_path / name).symlink_to(path)
        with refused(name.replace("toml", "bin"), f"it is a {kind}, but must be a file"):
            opens(tmp_path / name)


def test_standard_input_from_a_pipe_is_refused() -> None:
    end, other = os.pipe()
    try:
        with refused("it is a pipe, but must be a file: write its data to a file first"):
            open_samples(f"/dev/fd/{end}")
    finally:
        os.close(end)
        os.close(other)
    assert sys.platform == "linux"


def test_a_header_without_a_first_timestamp_begins_at_zero(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(64))
    (tmp_path / "x.toml").write_text(HEADER.format("x.bin"))
    assert open_samples(tmp_path / "x.toml").info.first_timestamp == 0
