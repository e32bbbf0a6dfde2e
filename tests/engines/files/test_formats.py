"""VDIF, DADA and GUPPI RAW, as `baseband` writes and reads them: the same samples, at the same times, however cut."""

import warnings
from pathlib import Path

import astropy.units as u
import numpy as np
import pytest
from astropy.time import Time
from baseband import dada, guppi, vdif
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune import unpack_samples
from autotune.core.errors import UsageError
from autotune.engines.files.opening import neither, open_samples

from . import makers
from .common import Read, read_all, refused

RNG = np.random.default_rng(3)
START = Time("2026-02-03T04:05:06", precision=9)
RATE = 8 * u.MHz
EPOCH = Time("2026-01-01T00:00:00")  # of VDIF


def integers(read: Read, bits: int) -> np.ndarray:
    """What was read as numbers: int64 [n, n_pols], or complex64."""
    if read.rows.dtype == np.complex64:
        return read.rows.T
    n = read.rows.shape[1] * 8 // bits
    return np.stack([unpack_samples(row, bits, 0, n) for row in read.rows], axis=1).astype(np.int64)


# ---------------------------------------------------------------------- VDIF
def vdif_file(
    path: Path, bits: int, n_threads: int = 2, n_channels: int = 1, is_complex: bool = False, edv=1, n_frames: int = 20
) -> np.ndarray:
    """Writes frames of 320 samples; returns what `baseband` reads, [n, n_threads, n_channels], in units of a level."""
    kind = dict(edv=edv, time=START, bps=bits, nchan=n_channels, complex_data=is_complex, samples_per_frame=320)
    if edv in (1, 3):
        kind["sample_rate"] = RATE
    if edv == 3:  # frames of this kind have one length
        kind["samples_per_frame"] = 5000 * 8 // bits // n_channels // (2 if is_complex else 1)
    header = vdif.VDIFHeader.fromvalues(station="Wb", thread_id=0, **kind)
    values = RNG.normal(0, 2.5, (n_frames * header.samples_per_frame, n_threads, n_channels, 2))
    values = values @ [1, 1j] if is_complex else values[..., 0]
    with vdif.open(str(path), "ws", header0=header, sample_rate=RATE, nthread=n_threads, squeeze=False) as file:
        file.write(values.astype(np.complex64 if is_complex else np.float32))
    with vdif.open(str(path), "rs", sample_rate=RATE, squeeze=False) as file:
        assert file.start_time == START
        read = file.read()
    if bits == 8:
        levels = read.view(np.float32) * (71 / 2)  # -127.5 to 127.5
        return np.rint(levels - 0.5).view(read.dtype)
    one_or_three = np.where(np.abs(read.view(np.float32)) > 2, 3, 1) * np.sign(read.view(np.float32))
    return one_or_three.astype(np.float32).view(read.dtype)


@pytest.mark.parametrize("edv", [1, 3, 0, False])
@pytest.mark.parametrize("bits", [2, 8])
@pytest.mark.parametrize("is_complex", [False, True])
def test_vdif_is_read_as_baseband_does(tmp_path: Path, bits: int, edv: int | bool, is_complex: bool) -> None:
    expected = vdif_file(tmp_path / "x.vdif", bits, is_complex=is_complex, edv=edv)
    (tmp_path / "x.vdif").rename(tmp_path / "x")  # by its content
    for packets in ((1,), (3, 4), (100,)):
        source = open_samples(tmp_path / "x", sample_rate_hz=None if edv in (1, 3) else 8e6)
        info = source.info
        assert (info.sample_bits, info.n_pols) == (64 if is_complex else 2 * bits if bits == 2 else 8, 2)
        assert info.sample_rate_hz == 8e6 and info.antenna == "Wb"
        assert info.sync_time_unix == EPOCH.unix
        assert info.first_timestamp == round((START - EPOCH).sec * 8_000_000)
        read = read_all(source, packets)
        assert read.error == "" and read.received.all() and read.time == info.first_timestamp
        assert (integers(read, info.sample_bits) == expected[:, :, 0]).all()


@pytest.mark.parametrize("bits", [2, 8])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_channel_of_vdif_is_chosen(tmp_path: Path, bits: int, is_complex: bool, n_threads: int) -> None:
    expected = vdif_file(tmp_path / "x.vdif", bits, n_threads, 4, is_complex)
    with refused("x.vdif", "it has 4 channels", "channel=0 to 3"):
        open_samples(tmp_path / "x.vdif")
    source = open_samples(tmp_path / "x.vdif", channel=2)
    assert (integers(read_all(source), source.info.sample_bits) == expected[:, :, 2]).all()
    source = open_samples(tmp_path / "x.vdif", channel=(3, 1), threads=(0,))
    assert (integers(read_all(source), source.info.sample_bits) == expected[:, 0, [3, 1]]).all()
    with refused("channel=1,4 are not two of them"):
        open_samples(tmp_path / "x.vdif", channel=(1, 4))


def test_threads_of_vdif_are_chosen(tmp_path: Path) -> None:
    expected = vdif_file(tmp_path / "x.vdif", 2, 3)
    with refused("x.vdif", "threads [0, 1, 2]", "threads=", "polarisations"):
        open_samples(tmp_path / "x.vdif")
    for threads in ((2,), (2, 0), (0, 1)):
        source = open_samples(tmp_path / "x.vdif", threads=threads)
        assert (integers(read_all(source), 4) == expected[:, list(threads), 0]).all()
    for threads in ((3,), (0, 0), (0, 1, 2)):
        with refused("threads [0, 1, 2]", list(threads)):
            open_samples(tmp_path / "x.vdif", threads=threads)


def frames(path: Path) -> np.ndarray:
    """uint8 [n_frames, n_bytes] of a file of `vdif_file`."""
    data = np.fromfile(path, np.uint8)
    return data.reshape(-1, 8 * int(data[8:12].view("<u4")[0] & 0xFFFFFF))


@given(seed=st.integers(0, 2**32), packets=st.lists(st.integers(1, 9), min_size=1, max_size=3))
@settings(max_examples=20, deadline=None)
def test_frames_of_vdif_come_in_any_order_or_not(tmp_path_factory, seed: int, packets: list[int]) -> None:
    path, rng = tmp_path_factory.mktemp("order") / "x.vdif", np.random.default_rng(seed)
    vdif_file(path, 2)
    all_frames = frames(path)
    whole = read_all(open_samples(path)).rows.reshape(2, 20, -1)
    order = np.argsort(np.arange(40) + rng.uniform(0, rng.choice([0.1, 4, 20]), 40))
    came = order[rng.random(40) > rng.choice([0, 0.2, 0.5])]
    invalid = came[rng.random(len(came)) > 0.9]
    all_frames[invalid, 3] |= 0x80
    if len(came) < 2:
        return
    all_frames[came].tofile(path)
    threads = tuple(sorted({*(came % 2).tolist()}))
    read = read_all(open_samples(path), packets, no_flags=True)
    first, last = came.min() // 2, came.max() // 2
    flags = np.zeros((20, 2), bool)
    flags.reshape(-1)[came] = True
    flags.reshape(-1)[invalid] = False
    flags = flags.T[list(threads), first : last + 1]
    n = read.received.shape[1]
    assert (read.received == flags[:, :n]).all() and not flags[:, n:].any() and read.error == ""
    kept = read.rows.reshape(len(threads), n, -1)
    assert (kept[flags[:, :n]] == whole[list(threads), first : first + n][flags[:, :n]]).all()


@pytest.mark.parametrize("packets", [(7, 3), (7,), (600,)])
def test_a_gap_of_vdif_is_missing_packets(tmp_path: Path, packets: tuple[int, ...]) -> None:
    vdif_file(tmp_path / "x.vdif", 8)
    some = frames(tmp_path / "x.vdif")
    words = some[24:, :8].copy().view("<u4")
    words[:, 1] += 500  # frames later, more than may come early
    some[24:, :8] = words.view(np.uint8)
    some.tofile(tmp_path / "x.vdif")
    read = read_all(open_samples(tmp_path / "x.vdif"), packets)
    assert read.received[0].tolist() == [True] * 12 + [False] * 500 + [True] * 8 and read.error == ""


def test_a_frame_of_vdif_waits_for_the_other_thread(tmp_path: Path) -> None:
    expected = vdif_file(tmp_path / "x.vdif", 2)
    data, found = (tmp_path / "x.vdif").read_bytes(), []
    (tmp_path / "x.vdif").write_bytes(data[: 3 * 112])
    source, out = open_samples(tmp_path / "x.vdif"), np.empty((2, 100 * 160), np.uint8)
    for n_frames in (9, 16, 19, 40):
        chunk = source.read(out)
        assert chunk.received.all()
        found.append(out[:, : chunk.received.shape[1] * 160].copy())
        (tmp_path / "x.vdif").write_bytes(data[: n_frames * 112])
    read = read_all(source, (100,))
    assert read.received.all()
    assert (integers(Read(0, [*found, *read.samples]), 4) == expected[:, :, 0]).all()


def test_a_damaged_time_of_one_frame_costs_that_frame(tmp_path: Path) -> None:
    for number in (0, 7, 38, 39):
        vdif_file(tmp_path / "x.vdif", 8)
        some = frames(tmp_path / "x.vdif")
        some[number, 2] ^= 0x10
        some.tofile(tmp_path / "x.vdif")
        read = read_all(open_samples(tmp_path / "x.vdif"), (3,))
        assert read.error == "" and np.argwhere(~read.received).tolist() == [[number % 2, number // 2]]


def test_vdif_of_another_kind_or_time_is_told(tmp_path: Path) -> None:
    vdif_file(tmp_path / "x.vdif", 8)
    good = frames(tmp_path / "x.vdif")
    for what, words in {
        "length": "frame 25 at byte 8800 is of another kind",  # as all that follow; alone, it is read over
        "epoch": "frame 25 at byte 8800 is of another kind",
        "later": "s later than the one before",
        "earlier": "is -1 s later than the one before",
    }.items():
        some = good.copy()
        if what == "length":
            some[25:, 8] ^= 1
        elif what == "epoch":
            some[25:, 7] ^= 1
        else:
            seconds = some[25:, :4].copy().view("<u4")
            seconds += np.uint32(4000 if what == "later" else 2**32 - 1)
            some[25:, :4] = seconds.view(np.uint8)
        some.tofile(tmp_path / "x.vdif")
        read = read_all(open_samples(tmp_path / "x.vdif"))
        assert words in read.error and "frame 25 at byte 8800" in read.error
        assert read.received.sum() == 25


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [
        (8, 0, "length of 0 bytes"),
        (8, 4, "length of 32 bytes"),
        (11, 0x3F, "not whole bytes"),
        (15, 2 << 2, "samples of 3 bits, but only 1, 2, 4, 8 and 16 can be read"),
        (19, 0xAB, "Mark 5B"),
        (16, 0, "give sample_rate_hz"),
        (16, 5, "1e+07 Hz is not a whole number of frames of 296 samples"),
    ],
)
def test_a_wrong_header_of_vdif_is_told(tmp_path: Path, offset: int, value: int, words: str) -> None:
    vdif_file(tmp_path / "x.vdif", 8)
    some = frames(tmp_path / "x.vdif")
    if "296" in words:
        some = some[:, :328]
        some[:, 8] = 328 // 8
    some[:, offset] = value
    some.tofile(tmp_path / "x.vdif")
    with refused("x.vdif", words):
        open_samples(tmp_path / "x.vdif")


def test_vdif_without_a_rate_asks_for_it(tmp_path: Path) -> None:
    vdif_file(tmp_path / "x.vdif", 2, edv=0)
    with refused("x.vdif", "give sample_rate_hz"):
        open_samples(tmp_path / "x.vdif")
    with refused("x.vdif", "not a whole number of frames of 320 samples"):
        open_samples(tmp_path / "x.vdif", sample_rate_hz=8e6 + 1)
    with refused("sample_rate_hz is -1"):
        open_samples(tmp_path / "x.vdif", sample_rate_hz=-1.0)


# ---------------------------------------------------------------------- DADA
def dada_file(path: Path, n_pols: int = 2, n_channels: int = 1, is_complex: bool = False, n: int = 1000) -> np.ndarray:
    """Writes samples; returns what `baseband` reads, [n, n_pols, n_channels]."""
    header = dada.DADAHeader.fromvalues(
        time=START,
        offset=3 * u.s,
        npol=n_pols,
        nchan=n_channels,
        bps=8,
        complex_data=is_complex,
        sample_rate=RATE,
        samples_per_frame=n,
        FREQ=1400.0,
        TELESCOPE="PKS",
    )
    values = np.rint(RNG.normal(0, 40, (n, n_pols, n_channels, 2)).clip(-127, 127))
    values = values @ [1, 1j] if is_complex else values[..., 0]
    with dada.open(str(path), "ws", header0=header, squeeze=False) as file:
        file.write(values.astype(np.complex64 if is_complex else np.float32))
    with dada.open(str(path), "rs", squeeze=False) as file:
        return file.read()


@pytest.mark.parametrize("n_pols", [1, 2])
@pytest.mark.parametrize("n_channels", [1, 4])
@pytest.mark.parametrize("is_complex", [False, True])
def test_dada_is_read_as_baseband_does(tmp_path: Path, n_pols: int, n_channels: int, is_complex: bool) -> None:
    expected = dada_file(tmp_path / "x", n_pols, n_channels, is_complex)
    for packets in ((1,), (3, 4), (1000,)):
        channel = n_channels - 1
        source = open_samples(tmp_path / "x", channel=channel, order="TPF")
        info = source.info
        assert (info.sample_bits, info.n_pols) == (64 if is_complex else 8, n_pols)
        assert (info.sample_rate_hz, info.antenna, info.packet, info.n_samples) == (8e6, "PKS", 8, 1000)
        width = 8.0 if is_complex else 4.0
        assert info.centre_frequency_hz == pytest.approx(1e6 * (1400 + width * (n_channels - 1) / 2))
        time = info.sync_time_unix + info.first_timestamp / 8e6
        assert info.first_timestamp == 24_000_000 and abs(time - START.unix) < 1e-6
        read = read_all(source, packets)
        assert read.error == "" and (integers(read, info.sample_bits) == expected[:, :, channel]).all()


def test_what_is_behind_the_samples_of_dada_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.engines.files.interleaved_bytes.AT_ONCE", 35)  # bytes: 17 samples
    expected = dada_file(tmp_path / "x")
    with (tmp_path / "x").open("ab") as file:
        file.write(bytes(500))
    read = read_all(open_samples(tmp_path / "x"), (9,))
    assert (integers(read, 8) == expected[:, :, 0]).all() and read.error == ""


def test_the_order_of_dada_is_asked_for_and_obeyed(tmp_path: Path) -> None:
    expected = dada_file(tmp_path / "x", 2, 4, True)
    with refused("lacks ORDER", "order='TFP'"):
        open_samples(tmp_path / "x", channel=1)
    data = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(data[:4096] + expected.view(np.float32).astype(np.int8).tobytes())
    assert (integers(read_all(open_samples(tmp_path / "x", channel=1, order="TPF")), 8) == expected[:, :, 1]).all()
    swapped = np.ascontiguousarray(expected.swapaxes(1, 2)).view(np.float32).astype(np.int8).tobytes()
    (tmp_path / "x").write_bytes(data[:4096] + swapped)
    assert (integers(read_all(open_samples(tmp_path / "x", channel=1, order="TFP")), 8) == expected[:, :, 1]).all()


@pytest.mark.parametrize("packets", [(1,), (3, 2), (40,)])
@pytest.mark.parametrize("n_heaps", [1, 3, 5])
def test_heaps_of_meerkats_beamformer_are_read(tmp_path: Path, n_heaps: int, packets: tuple[int, ...]) -> None:
    heaps = RNG.integers(-99, 99, (n_heaps, 2, 4, 256, 2))  # heap, polarisation, channel, time, part
    expected = heaps.astype(np.float32) @ np.array([1, 1j], np.complex64)
    said = {"NCHAN": 4, "NPOL": 2, "NDIM": 2, "INSTRUMENT": "MKBF", "TSAMP": 2, "FREQ": 800, "BW": 2}
    more = {"UTC_START": "2026-01-01-07:00:00", "OBS_OFFSET": 16 * 256 * 7, "PICOSECONDS": 5}
    size = {"FILE_SIZE": heaps.size}
    makers.dada(tmp_path / "x", heaps.reshape(-1, 1, 1, 1), {**said, **more, **size})
    told: list[str] = []
    for channel in range(4):
        source = open_samples(tmp_path / "x", channel=channel, tell=told.append)
        assert (source.info.packet, source.info.n_samples) == (256, 256 * n_heaps)
        assert source.info.first_timestamp == 256 * 7
        assert source.info.centre_frequency_hz == (800 + (channel - 1.5) / 2) * 1e6
        read = read_all(source, packets)
        assert read.error == "" and (read.rows == expected[:, :, channel].swapaxes(0, 1).reshape(2, -1)).all()
    assert len(told) == 4 and "PICOSECONDS=5, which is not added to UTC_START" in told[0]
    for more_bytes in (-1, 1000):  # a file that says nothing of its size ends within a heap
        makers.dada(tmp_path / "x", heaps.reshape(-1, 1, 1, 1), said)
        data = (tmp_path / "x").read_bytes()
        (tmp_path / "x").write_bytes(data[:more_bytes] if more_bytes < 0 else data + bytes(more_bytes))
        if n_heaps == 1 and more_bytes < 0:
            continue  # no heap is whole
        read = read_all(open_samples(tmp_path / "x", channel=1), packets)
        assert read.received.shape[1] == n_heaps - (more_bytes < 0) and "in the middle of" in read.error


def replaced(path: Path, *pairs: tuple[bytes, bytes]) -> None:
    """Changes text of a file, which is there once and keeps its length."""
    data = path.read_bytes()
    for old, new in pairs:
        assert data.count(old) == 1 and len(new) == len(old), (old, new)
        data = data.replace(old, new)
    path.write_bytes(data)


def test_dada_that_says_less_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    expected = dada_file(tmp_path / "x")
    replaced(tmp_path / "x", (b"FILE_SIZE 2000\n", b"FILE_SIZE 0\n   "), (b"UTC_START", b"UTC_STARK"))
    with (tmp_path / "x").open("ab") as file:
        file.write(b"a")
    source = open_samples(tmp_path / "x")
    assert abs(source.info.sync_time_unix + 3 - START.unix) < 1e-5  # by MJD_START
    read = read_all(source)
    assert source.info.n_samples == 1000
    assert (integers(read, 8) == expected[:, :, 0]).all() and "at byte 6097, in the middle of a sample" in read.error
    replaced(tmp_path / "x", (b"MJD_START", b"MJD_STARK"))
    assert open_samples(tmp_path / "x").info.sync_time_unix is None
    assert open_samples(tmp_path / "x", sync_time_unix=5).info.sync_time_unix == 5


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"NBIT 8", b"NBIT 2", "NBIT=2 bits, but only 8 can be read"),
        (b"NPOL 2", b"NPOL 3", "NPOL='3', must be an integer, 1 to 2"),
        (b"NDIM 1", b"NDIN 1", "lacks NDIM"),
        (b"TSAMP 0.125", b"TSAMQ 0.125", "lacks TSAMP: give sample_rate_hz"),
        (b"TSAMP 0.125", b"TSAMP -.125", "TSAMP"),
        (b"OBS_OFFSET 48000000", b"OBS_OFFSET 48000001", "in the middle of a sample"),
        (b"HDR_SIZE 4096", b"HDR_SIZE 0   ", "HDR_SIZE"),
        (b"FILE_SIZE 2000", b"FILE_SIZE 2E+3", "FILE_SIZE"),
    ],
)
def test_a_wrong_header_of_dada_is_told(tmp_path: Path, old: bytes, new: bytes, words: str) -> None:
    dada_file(tmp_path / "x")
    replaced(tmp_path / "x", (old, new))
    with refused(tmp_path / "x", words):
        open_samples(tmp_path / "x")


# ---------------------------------------------------------------------- GUPPI RAW
def guppi_file(
    path: Path, n_pols: int = 2, n_channels: int = 4, overlap: int = 0, channels_first: bool = True, n_blocks: int = 6
) -> np.ndarray:
    """Writes blocks of 128 samples; returns what `baseband` reads, [n, n_pols, n_channels]."""
    header = guppi.GUPPIHeader.fromvalues(
        time=START,
        sample_rate=0.25 * u.MHz,
        samples_per_frame=128 + overlap,
        overlap=overlap,
        npol=n_pols,
        nchan=n_channels,
        bps=8,
        pktsize=32 * n_pols * n_channels * 2,
        PKTFMT="1SFA" if channels_first else "SIMPLE",
        OBSFREQ=1500.0,
        TELESCOP="GBT",
        offset=0.001024 * 5 * u.s,
        DIRECTIO=int(overlap > 0),
    )
    values = np.rint(RNG.normal(0, 30, (128 * n_blocks, n_pols, n_channels, 2)).clip(-127, 127)) @ [1, 1j]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open(path, "wb") as raw:
            for block in range(n_blocks):
                some = header.copy()
                some.mutable = True
                some["PKTIDX"] = header["PKTIDX"] + 4 * block
                piece = np.zeros((128 + overlap, n_pols, n_channels), np.complex64)
                part = values[128 * block : 128 * (block + 1) + overlap]
                piece[: len(part)] = part
                guppi.GUPPIFrame.fromdata(piece, some).tofile(raw)
        with guppi.open(str(path), "rs", squeeze=False) as file:
            assert abs((file.start_time - START).sec) < 1e-6
            read = file.read()
    assert (read[: len(values)] == values).all()
    return values


@pytest.mark.parametrize("n_pols", [2])
@pytest.mark.parametrize("overlap", [0, 16])
@pytest.mark.parametrize("channels_first", [True, False])
def test_guppi_is_read_as_baseband_does(tmp_path: Path, n_pols: int, overlap: int, channels_first: bool) -> None:
    expected = guppi_file(tmp_path / "x", n_pols, 4, overlap, channels_first)
    with refused("it has 4 channels"):
        open_samples(tmp_path / "x")
    for channel, packets in enumerate(((1,), (3, 4), (5,), (100,))):
        source = open_samples(tmp_path / "x", channel=channel)
        info = source.info
        assert (info.sample_bits, info.n_pols, info.packet, info.antenna) == (64, n_pols, 32, "GBT")
        assert info.sample_rate_hz == 250_000 and info.centre_frequency_hz == (1500 + 0.25 * (channel - 1.5)) * 1e6
        assert abs(info.sync_time_unix + info.first_timestamp / 250_000 - START.unix) < 1e-6
        assert info.first_timestamp == 1280
        read = read_all(source, packets)
        assert read.error == "" and read.received.all() and (expected[:, :, channel] == read.rows.T).all()


@pytest.mark.parametrize("came", [(0, 1, 2, 3), (0, 2, 3), (1, 3)])
@pytest.mark.parametrize("packets", [(1,), (3, 2), (40,)])
def test_samples_that_two_blocks_have_are_read_once(tmp_path: Path, came: tuple, packets: tuple[int, ...]) -> None:
    samples = RNG.integers(-99, 99, (2, 4 * 96 + 32, 2, 2))  # blocks of 128 that overlap by 32
    made = [samples[:, 96 * k : 96 * k + 128] for k in came]
    said = {"TBIN": "1E-6", "OVERLAP": 32, "PKTSIZE": 32 * 8}
    makers.guppi(tmp_path / "x", made, [3 * k for k in came], said)
    source = open_samples(tmp_path / "x", channel=1)
    flags = np.zeros(13, bool)
    for k in came:
        flags[3 * k : 3 * k + 4] = True
    flags = flags[3 * came[0] :]
    assert (source.info.packet, source.info.n_samples) == (32, 32 * len(flags))
    read = read_all(source, packets)
    assert (read.received == flags).all() and read.error == ""
    there = np.repeat(flags, 32)
    expected = samples[1, 96 * came[0] :].astype(np.float32) @ np.array([1, 1j])
    assert (read.rows.T[there] == expected[there]).all()


@pytest.mark.parametrize("width", [3.0, -3.0])
def test_antennas_of_one_guppi_file_have_their_own_centres_and_names(tmp_path: Path, width: float) -> None:
    samples = RNG.integers(-99, 99, (6, 64, 2, 2))  # of two antennas
    said = {"TBIN": "1E-6", "OBSFREQ": 1400.0, "OBSBW": width, "NANTS": 2, "ANTNMES": "1a,2b"}
    counted = {"SYNCTIME": 1_600_000_000, "PKTSTART": 640_000_000, "PIPERBLK": 64, "STT_IMJD": 59_999}
    makers.guppi(tmp_path / "x", [samples], [640_000_064], {**said, **counted})
    for channel in range(6):
        info = open_samples(tmp_path / "x", channel=channel).info
        assert info.centre_frequency_hz == 1.4e9 + (channel % 3 - 1) * 1e6 * np.sign(width)
        assert info.antenna == ("1a" if channel < 3 else "2b") and info.is_turned == (width < 0)
        assert info.sync_time_unix + info.first_timestamp / 10**6 == 1_600_000_640.000064
        read = read_all(open_samples(tmp_path / "x", channel=channel, sideband="upper"))
        assert (samples[channel].astype(np.float32) @ np.array([1, 1j]) == read.rows.T).all()
    with refused(tmp_path / "x", "2 antennas of 3 channels", "channel=0 to 5", "those of antenna 1 are 3 to 5"):
        open_samples(tmp_path / "x")
    makers.guppi(tmp_path / "x", [samples], [0], {**said, "ANTNMES": None})
    assert open_samples(tmp_path / "x", channel=4).info.antenna == "GBT1"
    makers.guppi(tmp_path / "x", [samples], [0], {**said, "NANTS": 4})
    with refused(tmp_path / "x", "OBSNCHAN=6 channels cannot be shared by NANTS=4 antennas"):
        open_samples(tmp_path / "x", channel=4)


def test_guppi_of_two_parts_or_polarisations_asks(tmp_path: Path) -> None:
    expected = guppi_file(tmp_path / "x", 1)
    with refused("NPOL=2", "n_pols=1 or n_pols=2"):
        open_samples(tmp_path / "x", channel=0)
    read = read_all(open_samples(tmp_path / "x", channel=3, n_pols=1))
    assert (expected[:, :, 3] == read.rows.T).all()


def test_the_time_of_guppi_may_count_blocks(tmp_path: Path) -> None:
    guppi_file(tmp_path / "x")
    data = (tmp_path / "x").read_bytes().replace(b"PKTSIZE =                  512", b"PIPERBLK=                    2")
    (tmp_path / "x").write_bytes(data)
    source = open_samples(tmp_path / "x", channel=0)
    assert source.info.packet == 64 and source.info.first_timestamp == 40 * 64
    read = read_all(source, (5,))  # PKTIDX has steps of 4, so each block leaves a hole of its own length
    assert read.received[0].tolist() == [*[True, True, False, False] * 5, True, True] and read.error == ""


def blocks(path: Path, n: int = 6) -> list[bytes]:
    data = path.read_bytes()
    size = len(data) // n
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(
    came=st.lists(st.booleans(), min_size=6, max_size=6), packets=st.lists(st.integers(1, 9), min_size=1, max_size=3)
)
@settings(max_examples=20, deadline=None)
def test_blocks_of_guppi_that_lack_are_missing(tmp_path_factory, came: list[bool], packets: list[int]) -> None:
    path = tmp_path_factory.mktemp("lack") / "x"
    expected = guppi_file(path)
    path.write_bytes(b"".join(block for block, there in zip(blocks(path), came, strict=True) if there))
    if not any(came):
        return
    read = read_all(open_samples(path, channel=1), packets)
    numbers = np.flatnonzero(came)
    flags = np.repeat(came, 4)[4 * numbers[0] : 4 * numbers[-1] + 4]
    assert (read.received == flags).all() and read.time == 1280 + 128 * numbers[0] and read.error == ""
    some = np.repeat(flags, 32)
    there = expected[128 * numbers[0] : 128 * (numbers[-1] + 1), :, 1]
    assert (read.rows.T[some] == there[some]).all()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"NBITS   =                    8", b"NBITS   =                    2", "only 4, 8 and 16 can be read"),
        (b"BLOCSIZE=                 2048", b"BLOCSIZE=                 2047", "BLOCSIZE"),
        (b"BLOCSIZE=                 2048", b"BLOCSIZE=       20480000000000", "BLOCSIZE"),
        (b"PKTIDX  =                   40", b"PKTIDZ  =                   40", "lacks PKTIDX"),
        (b"TBIN    = ", b"TBIM    = ", "lacks TBIN: give sample_rate_hz"),
        (b"OBSNCHAN= ", b"OBSNCHAN=x", "OBSNCHAN"),
        (b"NPOL    =                    4", b"NPOL    =                    3", "NPOL=3"),
    ],
)
def test_a_wrong_header_of_guppi_is_told(tmp_path: Path, old: bytes, new: bytes, words: str) -> None:
    guppi_file(tmp_path / "x")
    data = (tmp_path / "x").read_bytes()
    assert old in data
    (tmp_path / "x").write_bytes(data.replace(old, new, 1))
    with refused(tmp_path / "x", words):
        open_samples(tmp_path / "x", channel=0)


def test_a_block_of_another_kind_is_told(tmp_path: Path) -> None:
    guppi_file(tmp_path / "x")
    some = blocks(tmp_path / "x")
    some[3] = some[3].replace(b"OBSNCHAN=                    4", b"OBSNCHAN=                    8")
    (tmp_path / "x").write_bytes(b"".join(some))
    read = read_all(open_samples(tmp_path / "x", channel=0))
    words = f"block 3 at byte {3 * len(some[0])} has OBSNCHAN=8, but the one before has 4"
    assert words in read.error and read.received.shape[1] == 12


@pytest.mark.parametrize(
    ("index", "words"),
    [(41, "a gap must be whole packets"), (46, "a gap must be whole packets"), (10**8, "and at most an hour")],
)
def test_a_wrong_time_of_a_block_is_told(tmp_path: Path, index: int, words: str) -> None:
    guppi_file(tmp_path / "x")
    data, old = (tmp_path / "x").read_bytes(), b"PKTIDX  =                   48"
    assert data.count(old) == 1
    (tmp_path / "x").write_bytes(data.replace(old, b"PKTIDX  = %20d" % index))
    read = read_all(open_samples(tmp_path / "x", channel=0))
    if index == 46:
        assert read.error == "" or words in read.error
    else:
        assert "block 2 at byte" in read.error and words in read.error and read.received.shape[1] == 8


# ---------------------------------------------------------------------- all of them
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
            read = read_all(open_samples(tmp_path / "x", **given), (5,))
        except Exception as error:
            assert type(error).__name__ == "UsageError" and "\n" not in str(error) and cut < len(data) * 0.6
            continue
        frames_end = cut % (112 if kind == "vdif" else len(data) // 6) == 0 and kind != "dada"
        assert frames_end or f"it ends at byte {cut}" in read.error
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
            read = read_all(open_samples(tmp_path / "x", **given), (3,), no_flags=True)
            n_told += bool(read.error)
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
