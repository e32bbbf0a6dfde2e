"""Samples of every type in SigMF, arrays of NumPy and behind TOML headers, as NumPy and SigMF's library have them."""

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sigmf

from autotune import unpack_samples
from autotune.core.errors import UsageError
from autotune.engines import Bands, Running, channelise
from autotune.engines.files.formats import sigmf as our_sigmf
from autotune.engines.files.opening import open_samples
from autotune.engines.streams.samples import SampleInfo

from .common import RUBBISH, Read, read_all, read_file, refused

TYPES = [f"{part}{kind}" for part in "rc" for kind in ("i8", "u8")]
TYPES += [
    f"{part}{kind}_{order}" for part in "rc" for kind in ("i16", "u16", "i32", "u32", "f32") for order in ("le", "be")
]
GLOBAL = {"core:sample_rate": 2e6, "core:version": "1.2.0"}


def parts_of(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Numbers of a type, [*shape, part], as they lie in a file."""
    kind = np.dtype(f"{'>' if name.endswith('be') else '<'}{name[1]}{int(name[2:].partition('_')[0]) // 8}")
    made = rng.normal(0, 20, (*shape, 2 if name[0] == "c" else 1))
    if kind.kind == "f":
        return (3e-4 * made).astype(kind)
    made *= 65536 if kind.itemsize == 4 else 1
    return np.rint(made + (2 ** (8 * kind.itemsize - 1) if kind.kind == "u" else 0)).astype(kind)


def expected_of(parts: np.ndarray, info: SampleInfo, told: list[str]) -> np.ndarray:
    """What is read of numbers [.., part]: complex64, or integers."""
    offset = 2 ** (8 * parts.itemsize - 1) if parts.dtype.kind == "u" else 0
    wide = parts.astype(np.float64) - offset
    if info.is_complex:
        return (wide @ [1, 1j]).astype(np.complex64)
    if parts.itemsize <= 2 and parts.dtype.kind != "f":
        return wide[..., 0]
    scale = 2.0 ** int(told[0].rpartition("times 2^")[2])
    assert 250 < np.std(wide) * scale < 1100
    return np.rint(wide[..., 0] * scale)


def numbers(read: Read, info: SampleInfo) -> np.ndarray:
    """What was read, [n_pols, n]: complex64, or float64."""
    if info.is_complex:
        return read.rows
    n = read.rows.shape[1] * 8 // info.sample_bits
    return np.stack([unpack_samples(row, info.sample_bits, 0, n) for row in read.rows])


def recording(folder: Path, name: str, parts: np.ndarray, captures: list[dict], **said: object) -> Path:
    """Writes x.sigmf-meta, and parts, [n, channel, part], to x.sigmf-data."""
    meta = {"global": {**GLOBAL, "core:datatype": name, "core:num_channels": parts.shape[1], **said}}
    (folder / "x.sigmf-meta").write_text(json.dumps({**meta, "captures": captures, "annotations": []}))
    parts.tofile(folder / "x.sigmf-data")
    return folder / "x.sigmf-meta"


@pytest.mark.parametrize("name", TYPES)
def test_sigmf_is_read_as_its_library_does(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(TYPES.index(name))
    parts = parts_of(name, (333, 3), rng)
    path = recording(tmp_path, name, parts, [{"core:sample_start": 0, "core:frequency": 1e8}])
    theirs = sigmf.fromfile(str(path))
    theirs.autoscale = False
    for channel in (1, (2, 0)):
        told: list[str] = []
        source = open_samples(
            path if channel == 1 else path.with_suffix(".sigmf-data"), channel=channel, tell=told.append
        )
        info, places = source.info, [channel] if channel == 1 else list(channel)
        assert (info.sample_rate_hz, info.n_samples, info.centre_frequency_hz) == (2e6, 333, 1e8)
        found = numbers(read_all(source, (5, 2)), info)
        assert (found == expected_of(parts, info, told)[:, places].T).all()
        by_theirs = np.asarray(theirs.read_samples()).reshape(333, 3)[:, places].T
        if name[1] == "u":  # without scaling their offset stays
            half = 2 ** (8 * parts.itemsize - 1)
            by_theirs = by_theirs - half * (1 + 1j if info.is_complex else 1)
        scale = 1 if not told else 2.0 ** int(told[0].rpartition("times 2^")[2])
        atol = 0.7 if told else 300 if name[1:4] == "u32" else 0  # of unsigned ones float32 has lost the last bits
        assert np.allclose(found, by_theirs * scale, rtol=1e-6, atol=atol)


@pytest.mark.parametrize("seed", range(6))
def test_gaps_of_sigmf_are_missing_packets(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = str(rng.choice(["ri8", "ci16_le", "cu8"]))
    lengths = rng.integers(1, 60, rng.integers(2, 6))
    gaps = np.where(rng.random(len(lengths)) < 0.3, 0, rng.integers(0, 400, len(lengths)))
    headers = rng.integers(0, 9, len(lengths)) * (rng.random() < 0.5)
    offset, trailing = int(rng.integers(0, 99)), int(rng.integers(0, 9))
    parts = parts_of(name, (int(lengths.sum()), 1), rng)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    times = 1000 + starts[:-1] + np.cumsum(gaps)
    captures = [
        {"core:sample_start": int(s + offset), "core:global_index": int(t), "core:header_bytes": int(h)}
        for s, t, h in zip(starts, times, headers, strict=False)
    ]
    captures[0]["core:datetime"] = "2026-03-04T05:06:07.25Z"
    path = recording(tmp_path, name, parts, captures, **{"core:offset": offset, "core:trailing_bytes": trailing})
    pieces = [parts[s:e].tobytes() for s, e in pairwise(starts)]
    junk = [bytes([7]) * int(h) for h in headers]
    data = b"".join(a + b for a, b in zip(junk, pieces, strict=True)) + bytes(trailing)
    path.with_suffix(".sigmf-data").write_bytes(data)
    samples = expected_of(parts, SampleInfo(64 if name[0] == "c" else 8, 1, 1, 1), [])[:, 0]
    n = int(times[-1] + lengths[-1] - times[0])
    there, wanted = np.zeros(n, bool), np.zeros(n, samples.dtype)
    for start, time, length in zip(starts, times - times[0], lengths, strict=False):
        there[time : time + length], wanted[time : time + length] = True, samples[start : start + length]
    for packets in ((1,), (3, 50), (4096,)):
        source = open_samples(path)
        info = source.info
        read = read_all(source, packets, no_flags=True)
        assert read.error == "" and read.time == times[0] == info.first_timestamp and info.n_samples == n
        assert info.sync_time_unix == 1772600767 + Fraction(1, 4) - Fraction(int(times[0]), 2_000_000)
        flags = np.repeat(read.received[0], info.packet)
        assert (flags == there).all() and (numbers(read, info)[0][there] == wanted[there]).all()


@pytest.mark.parametrize(
    ("said", "captures", "words"),
    [
        ({"core:datatype": "ci24_le"}, None, "core:datatype is 'ci24_le', must be r or c, then i8"),
        ({"core:datatype": "ci16"}, None, "as ci16_le"),
        ({"core:sample_rate": -1}, None, "core:sample_rate"),
        ({"core:sample_rate": 1e300}, None, "core:sample_rate"),
        ({"core:num_channels": 10**18}, None, "core:num_channels"),
        ({"core:num_channels": 0}, None, "core:num_channels"),
        ({"core:offset": -1}, None, "core:offset"),
        ({"core:trailing_bytes": 10**18}, None, "holds 0 samples"),
        ({"core:trailing_bytes": -4}, None, "core:trailing_bytes"),
        ({"core:dataset": "x.wav"}, None, "a non-conforming dataset: call that file x.sigmf-data"),
        ({"core:metadata_only": True}, None, "it has no samples"),
        ({}, [{"core:sample_start": 10**18}], "holds 0 samples"),
        ({}, [{"core:sample_start": 0, "core:header_bytes": 10**18}], "holds 0 samples"),
        ({}, [{"core:sample_start": -1}], "core:sample_start"),
        ({}, [{"core:sample_start": 0.5}], "core:sample_start"),
        ({}, [{"core:global_index": 0}], "core:sample_start"),
        ({}, [{"core:sample_start": 5}, {"core:sample_start": 3}], "core:sample_start is too small"),
        ({}, [{"core:sample_start": 0, "core:global_index": 9}, {"core:sample_start": 5}], "global_index is too small"),
        (
            {},
            [{"core:sample_start": 0, "core:frequency": 1e9}, {"core:sample_start": 5, "core:frequency": 2e9}],
            "several frequencies, such as 1e+09 and 2e+09 Hz: divide it",
        ),
        (
            {},
            [{"core:sample_start": 0, "core:datetime": "today"}],
            "core:datetime is 'today', must be as 2026-01-02T03:04:05.678Z",
        ),
        ({}, [{"core:sample_start": k} for k in range(1 << 15)], "captures, more than"),
    ],
)
def test_wrong_metadata_are_told(tmp_path: Path, said: dict, captures: list | None, words: str) -> None:
    parts = parts_of("ci16_le", (100, 1), np.random.default_rng(0))
    path = recording(tmp_path, "ci16_le", parts, captures or [{"core:sample_start": 0}], **said)
    with refused("x.sigmf-", words):
        open_samples(path)


def test_what_of_sigmf_is_not_a_recording_says_what_to_do(tmp_path: Path) -> None:
    for name, words in (("x.sigmf", "unpack it with `tar xf x.sigmf`"), ("x.sigmf-collection", "lists recordings")):
        (tmp_path / name).write_bytes(b"x")
        with refused(name, words):
            open_samples(tmp_path / name)
    for data, words in ((b"[" * 100_000, "nested too deeply"), (b"{}", "lacks global"), (b'{"global": NaN}', "NaN")):
        (tmp_path / "x.sigmf-meta").write_bytes(data)
        with refused("x.sigmf-meta", words):
            open_samples(tmp_path / "x.sigmf-meta")


@pytest.mark.parametrize("name", ["x.sigmf-meta", "x.npy", "x.toml"])
def test_damage_is_told_or_harmless(tmp_path: Path, name: str) -> None:
    parts = parts_of("ci16_le", (300, 1), np.random.default_rng(0))
    recording(tmp_path, "ci16_le", parts, [{"core:sample_start": k, "core:global_index": 9 * k} for k in (0, 99)])
    np.save(tmp_path / "x.npy", parts[..., 0, 0])
    header = 'file = "x.sigmf-data"\nsample_type = "ci16_le"\nn_pols = 1\nsample_rate_hz = 1e6\nn_samples = 300\n'
    (tmp_path / "x.toml").write_text(header)
    data, n_told = (tmp_path / name).read_bytes(), 0
    for case in range(120):
        rng, spoilt = np.random.default_rng(case), bytearray(data)
        for at in rng.integers(0, min(len(data), 300), rng.integers(1, 4)):
            spoilt[at] = rng.choice([rng.integers(256), *b'0919-e"{}[],'])
        (tmp_path / name).write_bytes(spoilt[: rng.choice([len(data), len(data) - 1, len(data) // 2])])
        try:
            n_told += bool(read_all(open_samples(tmp_path / name), (512,), no_flags=True).error)
        except UsageError as error:
            assert "\n" not in str(error)
            n_told += 1
    assert n_told > 20


def test_a_time_of_sigmf_that_samples_do_not_count_to_is_told(tmp_path: Path) -> None:
    parts, told = parts_of("ci8", (100, 1), np.random.default_rng(0)), []
    times = [{"core:datetime": "2026-01-01T00:00:00.000000Z"}, {"core:datetime": "2026-01-01T00:00:00.500000Z"}]
    captures = [{"core:sample_start": 50 * k, **time} for k, time in enumerate(times)]
    open_samples(recording(tmp_path, "ci8", parts, captures), tell=told.append)
    assert any("core:global_index" in line and "0.5 s from the time" in line for line in told)
    assert our_sigmf.MOST_CAPTURES < 1 << 15


# ---------------------------------------------------------------------- arrays, and any file behind a TOML header
@pytest.mark.parametrize("kind", ["i1", "u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">u4", "<f4", ">f8", "<c8", ">c16"])
@pytest.mark.parametrize("shape", [(1001,), (2, 37), (1, 4096)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_read(tmp_path: Path, kind: str, shape: tuple[int, ...], order: str) -> None:
    rng, dtype = np.random.default_rng(sum(shape)), np.dtype(kind)
    if dtype.kind == "c":
        array = rng.normal(0, 9, (*shape, 2)) @ [1, 1j]
    else:
        array = parts_of(f"r{dtype.kind}{8 * dtype.itemsize}_{'be' if kind[0] == '>' else 'le'}", shape, rng)[..., 0]
    np.save(tmp_path / "x.npy", np.asarray(array.astype(dtype), order=order))
    told: list[str] = []
    source = open_samples(tmp_path / "x.npy", tell=told.append)
    info, parts = source.info, np.atleast_2d(np.load(tmp_path / "x.npy"))
    read = read_all(source, (7,))
    wanted = parts.astype(np.complex64) if dtype.kind == "c" else expected_of(parts[..., np.newaxis], info, told)
    assert info.sample_rate_hz == 1 and read.error == "" and (numbers(read, info) == wanted).all()
    assert bool(told) == (dtype.kind in "iuf" and (dtype.itemsize > 2))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((5, 2)), "array [5, 2], must be [n] or [n_pols, n] with 1 or 2 rows: transpose it"),
        (np.zeros((2, 3, 4)), "array [2, 3, 4]"),
        (np.zeros(0), "array [0]"),
        (np.zeros(5, bool), "array of bool"),
        (np.zeros(5, np.float16), "array of float16, must be of integers"),
        (np.array(["a"]), "array of <U1"),
        (np.array([None]), "array of object"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, array: np.ndarray, words: str) -> None:
    np.save(tmp_path / "x.npy", array)
    with refused("x.npy", words):
        open_samples(tmp_path / "x.npy")


def test_an_array_of_hostile_shape_is_told(tmp_path: Path) -> None:
    shapes = ["(1000, 1000)", "(-1000,)", "(10**18,)", "[" * 300, "(nan,)", "(0.5,)", f"({10**30},)", "5", "'a'"]
    for shape in [*shapes, f"(2, {10**18})", f"({10**18},)"]:
        text = f"{{'descr': '|i1', 'fortran_order': False, 'shape': {shape}, }}".ljust(500).encode()
        (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(1000))
        if shape != f"({10**18},)":
            with refused("x.npy: "):
                raise UsageError(read_file(tmp_path / "x.npy", (1 << 12,)).lost)
    read = read_file(tmp_path / "x.npy", (1 << 12,))
    assert f"after 1000 of {10**18} samples" in read.lost and read.received.sum() == 125
    with refused("give sample_rate_hz with centre_frequency_hz or sync_time_unix"):
        open_samples(tmp_path / "x.npy", centre_frequency_hz=1e9)


@pytest.mark.parametrize("name", ["ri8", "ru8", "ri16_le", "ci8", "cu8", "ci16_le", "ci16_be", "cf32_le", "rf64_be"])
@pytest.mark.parametrize("n_pols", [1, 2])
def test_a_toml_header_names_any_type(tmp_path: Path, name: str, n_pols: int) -> None:
    parts = parts_of(name, (1003, n_pols), np.random.default_rng(n_pols))
    parts.tofile(tmp_path / "x.dat")
    header = f'file = "x.dat"\nsample_type = "{name}"\nn_pols = {n_pols}\nsample_rate_hz = 1e6\nfirst_timestamp = 7\n'
    (tmp_path / "x.toml").write_text(header + f"missing = [[{n_pols - 1}, 40, 3]]\n")
    told: list[str] = []
    source = open_samples(tmp_path / "x.toml", tell=told.append)
    info, read = source.info, read_all(source, (64,))
    assert (info.first_timestamp, info.n_samples, info.packet) == (7, 1003, 1) and read.error == ""
    gone = np.zeros((n_pols, 1003), bool)
    gone[-1, 40:43] = True
    assert (read.received == ~gone).all()
    assert (numbers(read, info)[~gone] == expected_of(parts, info, told).T[~gone]).all()
    (tmp_path / "x.toml").write_text(header + "n_samples = 5000\n")
    read = read_file(tmp_path / "x.toml", (64,))
    assert "after 1003 of 5000 samples" in read.lost and read.received.shape[1] == 1003
    for more, words in (("sample_bits = 8\n", "has both"), ("n_samples = -5\n", "n_samples")):
        (tmp_path / "x.toml").write_text(header + more)
        with refused("x.toml", words):
            open_samples(tmp_path / "x.toml")
    (tmp_path / "x.toml").write_text(header.replace(name, "ci17"))
    with refused("sample_type is 'ci17', must be r or c"):
        open_samples(tmp_path / "x.toml")


@pytest.mark.parametrize("name", ["cf32_le", "rf32_le"])
def test_packets_with_numbers_that_are_not_finite_are_missing(tmp_path: Path, name: str) -> None:
    parts = parts_of(name, (64, 1), np.random.default_rng(4))
    parts[[5, 40, 41], 0, -1] = [np.nan, np.inf, -np.inf]
    read = read_all(open_samples(recording(tmp_path, name, np.tile(parts[:63], (1, 2, 1)), []), channel=1), (9,))
    assert np.flatnonzero(~read.received[0]).tolist() == [5, 40, 41]
    assert RUBBISH == 0xA5


def test_an_engine_makes_the_same_of_a_file_and_of_its_array(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    array = (rng.normal(0, 9, (2, 4001, 2)) @ [1, 1j]).astype(np.complex64)
    np.save(tmp_path / "x.npy", array)
    array.T.tofile(tmp_path / "x.dat")
    (tmp_path / "x.toml").write_text('file = "x.dat"\nsample_type = "cf32_le"\nn_pols = 2\nsample_rate_hz = 1e6\n')
    made = [
        channelise(given, Bands(8, 4, spectra_per_heap=8), running=Running(device="host"))
        for given in (array, tmp_path / "x.npy", tmp_path / "x.toml")
    ]
    assert len(made[0].timestamps) == 62  # of 497 spectra that lie in 4001 samples; of 4000 there are as many
    assert all((each.voltages == made[0].voltages).all() for each in made)
