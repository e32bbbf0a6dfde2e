"""Gains in NumPy's files: shapes and types, and what is damaged or refused."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from autotune.core.errors import UsageError
from autotune.engines.files.gain_file import read_gains

from .common import refused

C = 5
RNG = np.random.default_rng(2)
FULL = RNG.normal(size=(C, 2)) + 1j * RNG.normal(size=(C, 2))


@pytest.mark.parametrize("n_pols", [1, 2])
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64, np.float32, ">c16", np.int8, np.uint16])
def test_arrays_of_each_shape(tmp_path: Path, n_pols: int, dtype: str) -> None:
    full = (np.abs(100 * FULL) if np.dtype(dtype).kind != "c" else FULL)[:, :n_pols].astype(dtype)
    arrays = {"m000": full, "m 001/x": full[:, 0], "*": full[0, 0], "m002": np.asfortranarray(full)}
    np.savez(tmp_path / "g.npz", **arrays)
    found = read_gains(tmp_path / "g.npz", C, n_pols)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        for channel, pol in np.ndindex(C, n_pols):
            expected = array[(channel, pol)[: array.ndim]]
            assert found[name].at(-7)[1][channel, pol] == np.complex64(expected)
    np.savez_compressed(tmp_path / "small.npz", **arrays)
    assert np.array_equal(read_gains(tmp_path / "small.npz", C, n_pols)["m000"].at(0)[1], found["m000"].at(0)[1])


def test_one_array_is_of_all_antennas(tmp_path: Path) -> None:
    np.save(tmp_path / "g.npy", FULL)
    assert list(read_gains(tmp_path / "g.npy", C, 2)) == ["*"]
    assert np.array_equal(read_gains(tmp_path / "g.npy", C, 2)["*"].at(0)[1], FULL.astype(np.complex64))


def test_an_array_of_as_many_channels_as_polarisations_is_of_channels(tmp_path: Path) -> None:
    np.save(tmp_path / "g.npy", np.array([1, 2]))
    assert read_gains(tmp_path / "g.npy", 2, 2)["*"].at(0)[1].tolist() == [[1, 1], [2, 2]]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (FULL.T, ["the shape [2, 5], must be [5, 2], [5] or []"]),
        (FULL[:, 0][:3], ["the shape [3]"]),
        (FULL[:, :1], ["the shape [5, 1]"]),
        (np.where(FULL.real > 0, np.nan, FULL), ["gains must be finite"]),
        (np.full((C, 2), 1e300), ["gains must be finite"]),
        (np.full((C, 2), "x"), ["U1", "must be numbers"]),
        (np.ones((C, 2), bool), ["b1", "must be numbers"]),
        (np.full((C, 2), None), ["|O", "must be numbers"]),
        (np.zeros(C, [("a", np.float32)]), ["must be numbers"]),
    ],
    ids=range(9),
)
def test_what_is_refused(tmp_path: Path, array: np.ndarray, words: list[str]) -> None:
    np.save(tmp_path / "g.npy", array)
    with refused("g.npy: ", *words):
        read_gains(tmp_path / "g.npy", C, 2)
    np.savez(tmp_path / "g.npz", m000=FULL, m001=array)
    with refused("g.npz: antenna 'm001': ", *words):
        read_gains(tmp_path / "g.npz", C, 2)


def test_files_that_are_none(tmp_path: Path) -> None:
    with refused("g.npy: ", "No such file"):
        read_gains(tmp_path / "g.npy", C, 2)
    with refused("g.txt: ", "must end in .npz"):
        read_gains(tmp_path / "g.txt", C, 2)
    (tmp_path / "g.npz").write_bytes(b"nothing")
    with refused("g.npz: ", "damaged"):
        read_gains(tmp_path / "g.npz", C, 2)
    np.savez(tmp_path / "empty.npz")
    with refused("empty.npz: ", "0 arrays"):
        read_gains(tmp_path / "empty.npz", C, 2)
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as archive:
        archive.writestr("m000.txt", b"nothing")
    with refused("g.npz: ", "'m000.txt' is not an array"):
        read_gains(tmp_path / "g.npz", C, 2)
    header = b"{'descr': '<c16', 'fortran_order': False, 'shape': (5, 99999999999), }"
    (tmp_path / "g.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with refused("g.npy: ", "the shape [5, 99999999999]"):
        read_gains(tmp_path / "g.npy", C, 2)


@pytest.mark.parametrize("kind", ["npy", "npz", "compressed"])
def test_damage_anywhere_is_told_or_harmless(tmp_path: Path, kind: str) -> None:
    file, save = io.BytesIO(), {"npz": np.savez, "compressed": np.savez_compressed}
    if kind == "npy":
        np.save(file, FULL)
    else:
        save[kind](file, m0=FULL)
    data, path = file.getvalue(), tmp_path / ("g.npy" if kind == "npy" else "g.npz")
    n_refused = 0
    for place in range(len(data)):
        for damaged in (data[:place], data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :]):
            path.write_bytes(damaged)
            try:
                for gains in read_gains(path, C, 2).values():
                    assert np.isfinite(gains.at(0)[1]).all()
            except UsageError as error:
                assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
                n_refused += 1
    assert n_refused > len(data)
