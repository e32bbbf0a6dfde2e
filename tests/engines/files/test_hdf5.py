"""Voltages and visibilities in HDF5: round trips, files of several antennas, kills, full disks, damage."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps, VisibilityFile
from autotune.engines.files.formats.hdf5_voltages import VoltageFile, VoltageFiles
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.visibilities import VisibilityInfo
from autotune.engines.streams.voltages import VoltageInfo

from ..stand_ins import weights_of
from .common import full_disk, refused

RNG = np.random.default_rng(2)
SAMPLES = SampleInfo(10, 2, 1712e6, 4096, None, 7, "m000", (5.1e6, 2.0e6, -3.2e6), 1.284e9, 1.7e9)
VOLTAGES = VoltageInfo(32, 2, 8, 4, 64, SAMPLES, 1.284e9, 26750000.0)
BATCH = VOLTAGES.heap_samples


def heaps(info: VoltageInfo, n: int) -> np.ndarray:
    return RNG.integers(-128, 128, (n, *info.heap_shape), np.int8)


def write(path: Path, info: VoltageInfo, numbers: np.ndarray, values: np.ndarray, together: int = 1000) -> None:
    """Writes heaps of these batches, some at a time, from arrays that are used again."""
    file = VoltageFile(path, info)
    for start in range(0, len(numbers), together):
        some = [a[start : start + together].copy() for a in (numbers * info.heap_samples, values)]
        saturated = np.full((len(some[0]), info.n_pols), start, np.uint32)
        present = np.ones((len(some[0]), info.spectra_per_heap, info.n_pols), bool)
        file.write(*some, saturated, present)
        for array in (*some, saturated):
            array[...] = 99
    file.close()


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("n_pols", [1, 2])
@pytest.mark.parametrize("together", [1, 7, 1000])
def test_voltages_are_read_by_h5py(tmp_path: Path, bits: int, n_pols: int, together: int) -> None:
    info = replace(VOLTAGES, bits=bits, n_pols=n_pols, centre_frequency_hz=None)
    numbers = np.array([2**30, *range(2**30 + 2, 2**30 + 40)])
    values = heaps(info, len(numbers))
    write(tmp_path / "v.h5", info, numbers, values, together)
    with h5py.File(tmp_path / "v.h5", "r") as file:
        assert file["voltages"].dtype == np.int8 and (file["voltages"][:] == values).all()
        assert file["timestamps"].dtype == np.int64 and (file["timestamps"][:] == numbers * info.heap_samples).all()
        assert file["saturated"].dtype == np.uint32 and file["saturated"].shape == (len(numbers), n_pols)
        assert file["saturated"][-1, 0] == (len(numbers) - 1) // together * together
        assert file.attrs["bits"] == bits and file.attrs["step"] == 64
        assert "centre_frequency_hz" not in file.attrs
        assert file["samples"].attrs["antenna"] == b"m000" and file["samples"].attrs["position_m"][2] == -3.2e6


def test_large_heaps_are_cut_into_chunks(tmp_path: Path) -> None:
    info = replace(VOLTAGES, n_channels=1024, spectra_per_heap=640)  # 2.5 MiB
    write(tmp_path / "v.h5", info, np.arange(2), values := heaps(info, 2), 1)
    with h5py.File(tmp_path / "v.h5", "r") as file:
        assert file["voltages"].chunks == (1, 409, 640, 2, 2)
        assert (file["voltages"][:] == values).all()
    assert (tmp_path / "v.h5").stat().st_size < 2 * 3 * 409 * 2560 + 200_000  # nothing that was reserved is left


def read_all(source: VoltageFiles, room: int) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """Heaps and flags of each batch by its time."""
    values, flags, last = {}, {}, -1
    out = np.empty((room, len(source.antennas), *source.antennas[0].heap_shape), np.int8)
    while (chunk := source.read(out)) is not None:
        assert chunk.time > last and chunk.present.any(axis=1)[[0, -1]].all()
        for row, present in enumerate(chunk.present):
            last = chunk.time + row * BATCH
            values[last], flags[last] = out[row].copy(), present
    return values, flags


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("room", [1, 3, 100])
def test_files_of_antennas_make_batches(tmp_path: Path, bits: int, room: int) -> None:
    came = np.array(
        [[1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0] + [1] * 8]
    )
    infos = [replace(VOLTAGES, bits=bits, samples=replace(SAMPLES, antenna=f"m{n:03}")) for n in range(3)]
    values = np.stack([heaps(infos[0], came.shape[1]) for _ in came], axis=1)
    for antenna, some in enumerate(came.astype(bool)):
        numbers = np.flatnonzero(some) + 5
        write(tmp_path / f"{antenna}.h5", infos[antenna], numbers, values[some, antenna], 2)
    source = VoltageFiles([tmp_path / f"{antenna}.h5" for antenna in range(3)])
    assert source.antennas == tuple(infos) and not source.is_live
    found, flags = read_all(source, room)
    source.close()
    for batch, present in enumerate(came.T.astype(bool)):
        at = (batch + 5) * BATCH
        if present.any():
            assert (flags[at] == present).all() and (found[at][present] == values[batch][present]).all()
        else:
            assert at not in flags or not flags[at].any()


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("n_spectra", [3, 8, 21])
def test_spectra_that_are_missing_come_back(tmp_path: Path, bits: int, n_spectra: int) -> None:
    info = replace(VOLTAGES, bits=bits, spectra_per_heap=n_spectra)
    values, came = heaps(info, 9), RNG.random((2, 9, n_spectra, 2)) < 0.7
    came[0, 4], came[1, 3] = True, False
    for antenna, of_antenna in enumerate(came):
        file = VoltageFile(tmp_path / f"{antenna}.h5", info)
        file.write(np.arange(9) * info.heap_samples, values, np.zeros((9, 2), np.uint32), of_antenna)
        file.close()
    with h5py.File(tmp_path / "0.h5", "r") as read:
        bits_of = np.unpackbits(read["present"][:], axis=-1)
        assert np.array_equal(bits_of[..., :n_spectra].transpose(0, 2, 1), came[0])
        assert not bits_of[..., n_spectra:].any()
    source, out = VoltageFiles([tmp_path / "0.h5", tmp_path / "1.h5"]), np.zeros((5, 2, *info.heap_shape), np.int8)
    for first in (0, 5):
        batches = source.read(out)
        assert batches is not None and batches.present.all() and batches.time == first * info.heap_samples
        here = came[:, first : first + 5].swapaxes(0, 1)
        assert set(batches.holes) == set(map(tuple, np.argwhere(~here.all(axis=(2, 3))).tolist()))
        assert all(np.array_equal(there, here[place]) for place, there in batches.holes.items())
        shown = here.reshape(len(here), 2, 1, n_spectra, 2, *[1] * (bits == 8))
        assert np.array_equal(out[: len(here)], np.where(shown, values[first : first + 5, np.newaxis], 0))
    source.close()


def without(path: Path, dataset: str, *attributes: str) -> None:
    """Makes a file an older one, which has no such dataset."""
    with h5py.File(path, "r+") as file:
        del file[dataset]
        for name in attributes:
            del file.attrs[name]


def test_files_without_bitmaps_or_weights_are_read_as_whole(tmp_path: Path) -> None:
    write(tmp_path / "v.h5", VOLTAGES, np.arange(3), heaps(VOLTAGES, 3))
    without(tmp_path / "v.h5", "present")
    source = VoltageFiles([tmp_path / "v.h5"])
    batches = source.read(np.zeros((3, 1, *VOLTAGES.heap_shape), np.int8))
    assert batches is not None and batches.present.all() and not batches.holes
    present = np.array([True, False, True])
    file = VisibilityFile(tmp_path / "x.h5", VISIBILITIES)
    file.write(0, dumps(1)[0], weights_of(present, 4096), 0)
    file.close()
    without(tmp_path / "x.h5", "weights", "normalisation", "dump_spectra")
    with h5py.File(tmp_path / "x.h5", "r+") as changed:
        changed.attrs["channel_width_hz"] = SAMPLES.sample_rate_hz / 128
    read = VisibilityDumps(tmp_path / "x.h5")
    (dump,) = read
    assert read.info.dump_spectra == 4096 and np.array_equal(dump.weights, weights_of(present, 4096))


def test_a_file_is_read_while_it_grows(tmp_path: Path) -> None:
    info, values = VOLTAGES, heaps(VOLTAGES, 30)
    file = VoltageFile(tmp_path / "v.h5", info)
    source = VoltageFiles([tmp_path / "v.h5"])
    assert read_all(source, 4) == ({}, {})
    for number in range(0, 30, 3):
        some = np.arange(number, number + 3)
        file.write(some * BATCH, values[some], np.zeros((3, 2), np.uint32), np.ones((3, 4, 2), bool))
        found, _ = read_all(source, 4)
        assert sorted(found) == (some * BATCH).tolist()
        assert all((found[n * BATCH][0] == values[n]).all() for n in some)
    file.close()
    assert read_all(source, 4) == ({}, {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_channels": 64}, "n_channels is 64"),
        ({"step": 128}, "step is 128"),
        ({"bits": 4}, "bits is 4"),
        ({"n_pols": 1}, "n_pols is 1"),
        ({"samples": replace(SAMPLES, sync_time_unix=3.0)}, "sync_time_unix is 3, but in"),
        ({"samples": replace(SAMPLES, sample_rate_hz=3.0)}, "sample_rate_hz is 3.0"),
    ],
)
def test_files_that_do_not_fit_are_told(tmp_path: Path, change: dict[str, object], words: str) -> None:
    for name, info in (("a.h5", VOLTAGES), ("b.h5", replace(VOLTAGES, **change))):
        write(tmp_path / name, info, np.arange(2), heaps(info, 2))
    with refused("b.h5", words):
        VoltageFiles([tmp_path / "a.h5", tmp_path / "b.h5"])


@pytest.mark.parametrize("name", ["", "ü 3", "m" * 300])
def test_what_is_said_of_samples_is_read(tmp_path: Path, name: str) -> None:
    samples = SampleInfo(64, 2, 1 / 3, 8, 2**61, -(2**61), name)
    info = VoltageInfo(32, 2, 4, 4, 64, samples)
    write(tmp_path / "v.h5", info, np.arange(2), heaps(info, 2))
    source = VoltageFiles([tmp_path / "v.h5"])
    assert source.antennas == (info,)
    source.close()


@pytest.mark.parametrize("time", [None, 1.6e9, "1600000000.5", "1600000000.000000000007", "4800000001/3"])
@pytest.mark.parametrize("is_turned", [False, True])
def test_the_exact_time_of_samples_is_read(tmp_path: Path, time: float | str | None, is_turned: bool) -> None:
    info = replace(VOLTAGES, samples=replace(SAMPLES, sync_time_unix=time, is_turned=is_turned))
    write(tmp_path / "v.h5", info, np.arange(2), heaps(info, 2))
    with h5py.File(tmp_path / "v.h5", "r") as file:
        stored = file["samples"].attrs.get("sync_time_unix")
        assert type(stored) is (type(None) if time is None else np.float64 if str(time)[-1] in "05" else np.bytes_)
    source = VoltageFiles([tmp_path / "v.h5"])
    assert source.antennas == (info,)
    source.close()


def test_a_file_of_before_there_were_turned_bands_is_read(tmp_path: Path) -> None:
    write(tmp_path / "v.h5", VOLTAGES, np.arange(2), heaps(VOLTAGES, 2))
    with h5py.File(tmp_path / "v.h5", "r+") as file:
        del file["samples"].attrs["is_turned"]
    source = VoltageFiles([tmp_path / "v.h5"])
    assert source.antennas == (VOLTAGES,)
    source.close()


def test_nothing_is_written_over_or_out_of_order(tmp_path: Path) -> None:
    write(tmp_path / "v.h5", VOLTAGES, np.arange(2), heaps(VOLTAGES, 2))
    with refused("v.h5", "exists"):
        VoltageFile(tmp_path / "v.h5", VOLTAGES)
    file = VoltageFile(tmp_path / "w.h5", VOLTAGES)
    file.write(np.array([0, BATCH]), heaps(VOLTAGES, 2), np.zeros((2, 2), np.uint32), np.ones((2, 4, 2), bool))
    with refused("w.h5", "timestamps must rise"):
        file.write(np.array([BATCH]), heaps(VOLTAGES, 1), np.zeros((1, 2), np.uint32), np.ones((1, 4, 2), bool))
    file.close()
    assert len(read_all(VoltageFiles([tmp_path / "w.h5"]), 5)[0]) == 2


@pytest.mark.parametrize("limit", [3_000_000, 4_000_000, 5_000_000])
def test_a_full_disk_leaves_what_was_written(tmp_path: Path, limit: int) -> None:
    values = heaps(VOLTAGES, 40)
    file, n = VoltageFile(tmp_path / "v.h5", VOLTAGES), 0
    with full_disk(limit), refused("v.h5", "File too large", "are in it"):
        while True:
            n += 40
            file.write(np.arange(n - 40, n) * BATCH, values, np.zeros((40, 2), np.uint32), np.ones((40, 4, 2), bool))
    with full_disk(limit):
        file.close()
    found, _ = read_all(VoltageFiles([tmp_path / "v.h5"]), 1000)
    assert n > 40 and sorted(found) == [BATCH * k for k in range(n - 40)]
    assert all((found[k * BATCH][0] == values[k % 40]).all() for k in range(n - 40))


def test_a_disk_without_room_for_a_header_is_told(tmp_path: Path) -> None:
    with full_disk(1000), refused("v.h5", "cannot be made", "File too large"):
        VoltageFile(tmp_path / "v.h5", VOLTAGES)
    assert list(tmp_path.iterdir()) == []


def test_a_timestamp_that_was_not_written_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "v.h5", VOLTAGES, np.arange(5), heaps(VOLTAGES, 5))
    with h5py.File(tmp_path / "v.h5", "r+") as file:
        file["timestamps"].resize(7, axis=0)  # as a kill may leave it
    assert len(read_all(VoltageFiles([tmp_path / "v.h5"]), 50)[0]) == 5


WRITER = """
import sys
import numpy as np
from tests.engines.files.test_hdf5 import BATCH, VOLTAGES
from autotune.engines.files.formats.hdf5_voltages import VoltageFile
file = VoltageFile(sys.argv[1], VOLTAGES)
for n in range(10 ** 9):
    values = np.full((3, *VOLTAGES.heap_shape), n % 100, np.int8)
    file.write((3 * n + np.arange(3)) * BATCH, values, np.zeros((3, 2), np.uint32), np.ones((3, 4, 2), bool))
    print(n + 1, flush=True)
"""


def test_a_kill_leaves_what_was_written(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.h5" for number in range(3)]
    for number, path in enumerate(paths):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
        for _ in range(4 + 5 * number):
            last = writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        said = writer.stdout.read().split()
        writer.wait()
        n_said = int(said[-1] if said else last)
        found, _ = read_all(VoltageFiles([path]), 50)
        assert len(found) in (3 * n_said, 3 * n_said + 3) and n_said > 3
        assert all((found[3 * n * BATCH][0] == n % 100).all() for n in range(n_said))


def test_damage_is_told_or_harmless(tmp_path: Path) -> None:
    write(tmp_path / "v.h5", VOLTAGES, np.arange(10), heaps(VOLTAGES, 10))
    data = (tmp_path / "v.h5").read_bytes()
    told = 0
    for case in range(150):
        rng = np.random.default_rng(case)
        spoilt = bytearray(data)
        for at in rng.integers(0, min(len(data), 8000 if case % 3 else len(data)), rng.integers(1, 4)):
            spoilt[at] = rng.integers(256)
        if case % 10 == 0:
            spoilt = spoilt[: rng.integers(len(data))]
        (tmp_path / "w.h5").write_bytes(spoilt)
        try:
            read_all(VoltageFiles([tmp_path / "w.h5"]), 4)
        except Exception as error:
            assert type(error).__name__ == "UsageError" and str(tmp_path) in str(error) and "\n" not in str(error)
            told += 1
    assert told > 20


DAMAGED_WHILE_OPEN = """
import sys
from pathlib import Path
import numpy as np
from tests.engines.files.test_hdf5 import BATCH, VOLTAGES, heaps, read_all
from autotune import UsageError
from autotune.engines.files.formats.hdf5_voltages import VoltageFile, VoltageFiles
folder, told, fine = Path(sys.argv[1]), 0, 0
file = VoltageFile(folder / "v.h5", VOLTAGES)
file.write(np.arange(10) * BATCH, heaps(VOLTAGES, 10), np.zeros((10, 2), np.uint32), np.ones((10, 4, 2), bool))
file._file._file.flush()
killed = (folder / "v.h5").read_bytes()  # as a kill leaves it
file.close()
closed = (folder / "v.h5").read_bytes()
assert killed[11] & 4 and not closed[11] & 4
for case in range(120):
    rng = np.random.default_rng(case)
    spoilt = bytearray(closed if case % 4 == 0 else killed)
    spoilt[11] |= 4 + case % 2
    for at in rng.integers(12, 8000, rng.integers(0, 4)):
        spoilt[at] = rng.integers(256)
    (folder / "w.h5").write_bytes(spoilt)
    try:
        read_all(VoltageFiles([folder / "w.h5"]), 4)
        fine += 1
    except UsageError as error:
        assert "w.h5" in str(error) and "\\n" not in str(error)
        told += 1
print(told, fine)
"""


def test_damage_in_a_file_that_says_it_is_being_written_is_not_read_for_ever(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DAMAGED_WHILE_OPEN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told, fine = map(int, done.stdout.split())
    assert told > 40 and fine > 20


@pytest.mark.parametrize("kind", ["external", "soft"])
@pytest.mark.parametrize("name", ["voltages", "timestamps", "samples"])
def test_links_to_data_elsewhere_are_refused(tmp_path: Path, name: str, kind: str) -> None:
    for each in ("v.h5", "other.h5"):
        write(tmp_path / each, VOLTAGES, np.arange(10), heaps(VOLTAGES, 10))
    with h5py.File(tmp_path / "v.h5", "r+") as file:
        if kind == "soft":
            file.move(name, "elsewhere")
            file[name] = h5py.SoftLink("/elsewhere")
        else:
            del file[name]
            file[name] = h5py.ExternalLink(str(tmp_path / "other.h5"), f"/{name}")
    with refused("v.h5", f"{name} cannot be read", f"{kind.title()}Link, and its data must be in this file"):
        read_all(VoltageFiles([tmp_path / "v.h5"]), 4)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("format", "other", "its format is 'other', must be"),
        ("bits", 5, "bits is 5, must be 4 or 8"),
        ("n_channels", 2**40, "n_channels"),
        ("n_channels", 33, "voltages is int8"),
        ("step", 63, "in the middle of a batch"),
        ("colour", 1, "which nothing here knows"),
    ],
)
def test_wrong_attributes_are_told(tmp_path: Path, name: str, value: object, words: str) -> None:
    write(tmp_path / "v.h5", VOLTAGES, np.arange(10), heaps(VOLTAGES, 10))
    with h5py.File(tmp_path / "v.h5", "r+") as file:
        file.attrs[name] = value
    with refused("v.h5", words):
        read_all(VoltageFiles([tmp_path / "v.h5"]), 4)


def test_data_that_lie_elsewhere_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "v.h5", VOLTAGES, np.arange(10), heaps(VOLTAGES, 10))
    (tmp_path / "secret").write_bytes(bytes(100_000))
    with h5py.File(tmp_path / "v.h5", "r+") as file:
        del file["voltages"]
        size = int(np.prod(VOLTAGES.heap_shape)) * 10
        file.create_dataset("voltages", (10, *VOLTAGES.heap_shape), "i1", external=[(tmp_path / "secret", 0, size)])
    with refused("v.h5", "voltages"):
        VoltageFiles([tmp_path / "v.h5"])


def test_what_is_no_hdf5_is_told(tmp_path: Path) -> None:
    (tmp_path / "v.h5").write_bytes(b"no" * 1000)
    with refused("v.h5", "cannot be read as HDF5"):
        VoltageFiles([tmp_path / "v.h5"])
    with refused("w.h5", "no such file"):
        VoltageFiles([tmp_path / "w.h5"])


VISIBILITIES = VisibilityInfo(
    16, 4096 * 128, 4096, (SAMPLES, replace(SAMPLES, antenna="m001", position_m=None), SAMPLES), 1.284e9, 1e6
)


def dumps(n: int) -> np.ndarray:
    return RNG.integers(-(2**31), 2**31, (n, 16, 6, 4, 2), np.int32)


def test_visibilities_are_read_by_h5py_and_again(tmp_path: Path) -> None:
    values, file = dumps(5), VisibilityFile(tmp_path / "x.h5", VISIBILITIES)
    weights = np.stack([weights_of(np.array([True, number % 2 == 0, False]), 4096) for number in range(5)])
    weights[2, 2, 1] -= 1  # of a product of polarisations
    for number, each in enumerate(values):
        file.write(2**60 + number, each, weights[number], 2**63 + number)
    file.close()
    with h5py.File(tmp_path / "x.h5", "r") as found:
        assert found["visibilities"].dtype == np.int32 and (found["visibilities"][:] == values).all()
        assert found["present"].dtype == np.bool_ and found["present"].shape == (5, 3)
        assert found["weights"].dtype == np.uint32 and np.array_equal(found["weights"][:], weights)
        assert b"not divided" in found.attrs["normalisation"] and found.attrs["dump_spectra"] == 4096
        assert found["saturated"].dtype == np.uint64 and found["saturated"][1] == 2**63 + 1
        assert found["timestamps"][4] == 2**60 + 4 and found["antennas/1"].attrs["antenna"] == b"m001"
    source = VisibilityDumps(tmp_path / "x.h5")
    assert source.info == VISIBILITIES
    for number, dump in enumerate(source):
        assert (dump.visibilities == values[number]).all() and dump.saturated == 2**63 + number
        assert dump.present.tolist() == [True, number == 0 or number == 4, False] and dump.timestamp == 2**60 + number
        assert np.array_equal(dump.weights, weights[number])
    source.close()
    with refused("x.h5", "its format is 'autotune visibilities 1', must be 'autotune voltages 1'"):
        VoltageFiles([tmp_path / "x.h5"])


def test_a_full_disk_leaves_the_dumps_before(tmp_path: Path) -> None:
    values, file = dumps(400), VisibilityFile(tmp_path / "x.h5", VISIBILITIES)
    n = 0
    with full_disk(800_000), refused("x.h5", "File too large", "to timestamp"):
        for n, each in enumerate(values):
            file.write(n, each, weights_of(np.ones(3, bool)), 0)
    file.close()
    assert n > 100
    assert [(dump.visibilities == values[dump.timestamp]).all() for dump in VisibilityDumps(tmp_path / "x.h5")] == [
        True
    ] * n


def test_nothing_of_files_is_imported_with_the_package() -> None:
    code = "import sys, autotune, autotune.engines.files.opening, autotune.engines.files.formats.hdf5_voltages; "
    code += "sys.exit(bool({'h5py', 'pyuvdata', 'astropy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 0
