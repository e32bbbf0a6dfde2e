"""VDIF, DADA and GUPPI RAW alike: files that are cut off, grow, are damaged, or are none of these."""

from pathlib import Path

import numpy as np
import pytest

from autotune.core.errors import UsageError
from autotune.engines.files.opening import neither, open_samples

from .baseband_files import dada_file, guppi_file, vdif_file
from .common import read_all, read_file, refused

MAKERS = {
    "vdif": (lambda path: vdif_file(path, 2), {}),
    "dada": (lambda path: dada_file(path), {}),
    "guppi": (lambda path: guppi_file(path), {"channel": 2}),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_file_that_is_cut_off_gives_what_it_has(tmp_path: Path, kind: str) -> None:
    make, given = MAKERS[kind]
    make(tmp_path / "x")
    data, whole = (tmp_path / "x").read_bytes(), read_all(open_samples(tmp_path / "x", **given))
    for cut in sorted({0, 1, 31, 33, *np.random.default_rng(4).integers(0, len(data), 20).tolist()}):
        (tmp_path / "x").write_bytes(data[:cut])
        try:
            read = read_file(tmp_path / "x", (5,), **given)
        except Exception as error:
            assert type(error).__name__ == "UsageError" and "\n" not in str(error) and cut < len(data) * 0.6
            continue
        frames_end = cut % (112 if kind == "vdif" else len(data) // 6) == 0 and kind != "dada"
        assert read.error == "" and (frames_end or f"it ends at byte {cut}" in read.lost)
        if read.samples:
            n = read.received.shape[1]
            some = np.repeat(read.received, read.rows.shape[1] // n, axis=1)
            assert (read.rows[some] == whole.rows[:, : read.rows.shape[1]][some]).all()
            assert (n + 4) * whole.rows.nbytes // whole.received.shape[1] >= (cut - 6000) * whole.rows.nbytes / len(
                data
            )


@pytest.mark.parametrize("kind", MAKERS)
def test_a_file_is_read_while_it_grows(tmp_path: Path, kind: str) -> None:
    make, given = MAKERS[kind]
    make(tmp_path / "x")
    data, whole = (tmp_path / "x").read_bytes(), read_all(open_samples(tmp_path / "x", **given))
    first = {"vdif": 112, "dada": 4200, "guppi": len(data) // 6}[kind]
    (tmp_path / "x").write_bytes(data[:first])
    source, found, size = open_samples(tmp_path / "x", **given), [], first
    if kind == "vdif":
        source = open_samples(tmp_path / "x", **given, threads=(0,))
        whole = read_all(open_samples(path_of(tmp_path, data), threads=(0,)))
    while size < len(data):
        found.append(read_all(source, (3,), close=False))
        more = min(len(data), size + 777)
        with (tmp_path / "x").open("ab") as file:
            file.write(data[size:more])
        size = more
    found.append(read_all(source, (3,)))
    assert found[-1].error == ""
    assert (np.concatenate([read.rows for read in found if read.samples], axis=1) == whole.rows).all()


def path_of(folder: Path, data: bytes) -> Path:
    (folder / "whole").write_bytes(data)
    return folder / "whole"


@pytest.mark.parametrize("kind", MAKERS)
def test_damage_is_told_or_harmless(tmp_path: Path, kind: str) -> None:
    make, given = MAKERS[kind]
    make(tmp_path / "x")
    data, n_told = (tmp_path / "x").read_bytes(), 0
    for case in range(150):
        rng, spoilt = np.random.default_rng(case), bytearray(data)
        most = len(data) if case % 2 else 3000
        for at in rng.integers(0, most, rng.integers(1, 4)):
            spoilt[at] = rng.integers(256)
        (tmp_path / "x").write_bytes(spoilt)
        try:
            read = read_file(tmp_path / "x", (3,), no_flags=True, **given)
            n_told += bool(read.error or read.lost)
        except Exception as error:
            assert isinstance(error, UsageError) and "\n" not in str(error), (case, error)
            n_told += 1
    assert n_told > 1


def test_what_is_none_of_these_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"what is this? " * 100)
    with refused(tmp_path / "x", "it is not a recording: ", neither()):
        open_samples(tmp_path / "x")
    with refused("nothing", "cannot be opened: No such file"):
        open_samples(tmp_path / "nothing")
    with refused(tmp_path, "is a folder, but must be a file"):
        open_samples(tmp_path)
    (tmp_path / "x.vdif").write_bytes(bytes(10))
    with refused("x.vdif", "in the middle of its first header"):
        open_samples(tmp_path / "x.vdif")


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\xde\xc0\xde\x5c" + bytes(4124), "LWA (DRX"),
        (b"SIMPLE  =                    T".ljust(80) + b"BITPIX  =                    8".ljust(2800), "FITS"),
        (b"\x0c\x00\x00\x00HEADER_START\x09\x00\x00\x00nchans", "SIGPROC"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"x.vdif".ljust(257, b"\0") + b"ustar\x0000" + bytes(300), "tar"),
        (np.random.default_rng(4).bytes(60_000) + b"\xff" * 64 + np.random.default_rng(5).bytes(39_936), "a recording"),
        ((np.random.default_rng(4).bytes(20_000) + b"\xff" * 64 + bytes(19_936)) * 2, "Mark 4 of 16 tracks"),
    ],
)
def test_what_cannot_be_read_is_named_where_it_is_known(tmp_path: Path, start: bytes, name: str) -> None:
    (tmp_path / "x.dat").write_bytes(start)
    with refused("x.dat", f"it is {'not ' * (name == 'a recording')}{name}", "neither DADA nor GUPPI RAW"):
        open_samples(tmp_path / "x.dat")
