"""Several files of one antenna are one source: pieces are joined, gaps are missing, others are refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from autotune import unpack_samples
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.files.header_fields import overrides_of
from autotune.engines.files.packing import pack_samples
from autotune.engines.files.paired import PairedSource, open_paired
from autotune.engines.files.reading import untold
from autotune.engines.files.scans import ScansSource, open_scans
from autotune.engines.streams.samples import Source

from . import makers
from .common import refused

RATE = 160_000  # of VDIF, whose frames of 80 bytes are 2000 a second
N_FRAME = 80


@dataclass
class Heard:
    """All samples of a source, and which of them came: [n_pols, n] from ``time`` on."""

    time: int
    samples: np.ndarray
    came: np.ndarray


def hear(source: Source, n_bytes: int) -> Heard:
    """Reads chunks of up to so many bytes of a row until the end; the plainest way to put them together."""
    info, parts = source.info, []
    packet_bytes = info.packet * info.sample_bits // 8
    out = np.empty((info.n_pols, max(1, n_bytes // packet_bytes) * packet_bytes), np.uint8)
    while True:
        chunk = out.copy().view(np.complex64) if info.is_complex else out.copy()
        if (made := source.read(chunk)) is None:
            break
        n = made.received.shape[1] * info.packet
        rows = chunk[:, :n] if info.is_complex else [unpack_samples(row, info.sample_bits, 0, n) for row in chunk]
        parts.append((made.time, np.array(rows), np.repeat(made.received, info.packet, axis=1)))
    source.close()
    first, last = parts[0][0], parts[-1][0] + parts[-1][1].shape[1]
    heard = Heard(
        first, np.zeros((info.n_pols, last - first), parts[0][1].dtype), np.zeros((info.n_pols, last - first), bool)
    )
    end = first
    for time, rows, came in parts:
        assert time >= end and (time - first) % info.packet == 0
        end = time + rows.shape[1]
        heard.samples[:, time - first : end - first] = np.where(came, rows, 0)
        heard.came[:, time - first : end - first] = came
    return heard


def opened(
    paths: Sequence[Path], follow_on: bool = False, tell: Callable[[str], None] = untold, **given: object
) -> Source:
    return open_scans(paths, overrides_of(given), tell, follow_on)


def raw(path: Path, samples: np.ndarray, first: int, bits: int = 8, more: str = "") -> Path:
    """Packed samples, integers [n_pols, n], with a header that says when they begin."""
    path.with_suffix(".bin").write_bytes(pack_samples(samples.astype(np.int16), bits).tobytes())
    said = {"sample_bits": bits, "n_pols": len(samples), "sample_rate_hz": 1e6, "n_samples": samples.shape[1]}
    said["first_timestamp"] = first
    path.write_text(f'file = "{path.stem}.bin"\n' + "".join(f"{name} = {each}\n" for name, each in said.items()) + more)
    return path


# ---------------------------------------------------------------------- scans at any time
@pytest.mark.parametrize("seed", range(12))
def test_scans_are_joined_where_they_follow_and_what_lies_between_is_missing(tmp_path: Path, seed: int) -> None:
    """Packed samples of any width, with gaps that are no multiple of a packet, in chunks of any size."""
    rng = np.random.default_rng(seed)
    bits, n_pols = int(rng.choice([4, 8, 10, 12, 16])), int(rng.integers(1, 3))
    whole = 8 // np.gcd(8, bits)  # samples that are whole bytes
    sky = rng.integers(-7, 8, (n_pols, 1 << 13))
    first, at, paths = int(rng.integers(-5000, 5000)), 0, []
    came = np.zeros(sky.shape[1], bool)
    for number in range(int(rng.integers(2, 5))):
        n = 8 * int(rng.integers(1, 200))
        paths.append(raw(tmp_path / f"x{number}.toml", sky[:, at : at + n], first + at, bits))
        came[at : at + n] = True
        at += n + int(rng.choice([0, whole, 5 * whole, 64, 333 * whole]))
    heard = hear(opened(paths), int(rng.integers(1, 5000)))
    n = len(np.trim_zeros(came, "b"))
    assert heard.time == first and heard.samples.shape[1] == n
    assert (heard.came == came[:n]).all() and (heard.samples == np.where(came, sky, 0)[:, :n]).all()


@pytest.mark.parametrize(("bits", "gap"), [(10, 1001), (4, 7), (12, 3)])
def test_a_gap_of_parts_of_a_byte_is_a_rest_of_the_clock(tmp_path: Path, bits: int, gap: int) -> None:
    sky = np.random.default_rng(bits).integers(-7, 8, (1, 640))
    paths = [raw(tmp_path / "a.toml", sky, 0, bits), raw(tmp_path / "b.toml", sky, 640 + gap, bits)]
    source = opened(paths)
    assert isinstance(source, ScansSource)
    (late,), heard = source.late, hear(source, 100)
    begin = int(np.flatnonzero(heard.came[0])[640])
    assert begin + late.rest == 640 + gap and abs(late.rest) <= 4 // np.gcd(8, bits) and 640 <= late.start <= begin
    assert (heard.samples[0, begin:] == sky[0]).all()


def test_scans_with_clocks_of_their_own_have_rests(tmp_path: Path) -> None:
    """Three scans that begin at their own zeros, parts of samples apart; rests are those of each, not their sum."""
    sky = np.random.default_rng(5).integers(-90, 90, (2, 800))
    zeros = [
        Fraction(1_700_000_000),
        Fraction("1700000001.00000025"),
        Fraction("1700000002.0000009"),
        Fraction(1_700_000_003),
    ]
    paths = [
        raw(tmp_path / f"{k}.toml", sky, 7, more=f'sync_time_unix = "{zero.numerator}/{zero.denominator}"\n')
        for k, zero in enumerate(zeros)
    ]
    source = opened(paths)
    assert isinstance(source, ScansSource) and source.info.packet == 1
    assert np.cumsum([each.rest for each in source.late]) == pytest.approx([0.25, -0.1, 0.0])
    model = DelayModel(Piece(0, delay=3.0, rate=1e-6))
    for each in source.late:
        model = model.later(each.rest, each.phase, each.start)
    for k, rest in enumerate((0.0, 0.25, -0.1, 0.0)):
        begin = 7 + k * 10**6 + round(rest < 0)
        assert model.at(begin, 1, 1).fine[0] + model.coarse_at(begin) == pytest.approx(3.0 + begin * 1e-6 + rest)
        assert model.at(begin, 1, 1).phase[0] == pytest.approx(-np.pi / 2 * rest)
    assert model.extremes(10**6, 2 * 10**6)[0] == pytest.approx(4.25)
    heard = hear(source, 4096)
    assert [int(t) for t in np.flatnonzero(np.diff(heard.came[0].astype(int)) == 1) + 1] == [
        10**6,
        2 * 10**6 + 1,
        3 * 10**6,
    ]


def test_the_second_scan_of_a_falling_band_keeps_its_signs(tmp_path: Path) -> None:
    """Signs alternate by the clock of each file; an odd shift puts them back by a phase of half a turn."""
    sky = np.random.default_rng(6).integers(-90, 90, (1, 64))
    for k in range(2):
        raw(
            tmp_path / f"{k}.toml",
            sky,
            0,
            more=f'sync_time_unix = "{1_700_000_000 + 1000 * k}.00000{k}"\nsideband = "lower"\n',
        )
    source = opened([tmp_path / "0.toml", tmp_path / "1.toml"])
    assert isinstance(source, ScansSource)
    assert [round(late.phase / np.pi, 3) for late in source.late] in ([1.0], [-1.0])


def test_packets_that_are_missing_stay_missing_on_a_finer_grid(tmp_path: Path) -> None:
    sky = np.random.default_rng(7).integers(-90, 90, (2, 640))
    first = raw(tmp_path / "a.toml", sky, 0, more="missing = [[1, 128, 100]]\n")
    heard = hear(opened([first, raw(tmp_path / "b.toml", sky, 643)]), 300)
    holes = np.flatnonzero(~heard.came[1, :640])
    assert (holes == np.arange(128, 256)).all() and heard.came[0, :640].all() and heard.came[:, 643:].all()


# ---------------------------------------------------------------------- pieces of frames and blocks
def vdif(path: Path, slots: Sequence[tuple[int, int]], sky: np.ndarray, begin: int = 5000) -> Path:
    """Frames, (slot, thread), of sky, int [2, n_slots, N_FRAME]."""
    frames = []
    for slot, thread in slots:
        payload = (sky[thread, slot] + 128).astype(np.uint8).tobytes()
        seconds, number = divmod(begin + slot, RATE // N_FRAME)
        frames.append(makers.vdif_frame(payload, seconds, number, thread=thread))
    path.write_bytes(b"".join(frames))
    return path


@pytest.mark.parametrize("seed", range(6))
def test_pieces_of_vdif_may_be_cut_between_threads(tmp_path: Path, seed: int) -> None:
    """Files end anywhere in the stream of two threads, whose frames are a little out of order; some are lost."""
    rng = np.random.default_rng(seed)
    sky = rng.integers(-90, 90, (2, 300, N_FRAME))
    order = sorted(
        ((slot, thread) for slot in range(300) for thread in range(2)), key=lambda each: each[0] + rng.uniform(0, 9)
    )
    lost = {order[k] for k in rng.choice(np.arange(40, 560), 9, replace=False).tolist()}
    order = [each for each in order if each not in lost]
    cuts = [0, *sorted(rng.choice(np.arange(40, 500), 3, replace=False).tolist()), len(order)]
    paths = [vdif(tmp_path / f"x.{k:04}", order[a:b], sky) for k, (a, b) in enumerate(pairwise(cuts))]
    whole = vdif(tmp_path / "whole", order, sky)
    heard = hear(opened(paths, sample_rate_hz=RATE), int(rng.integers(80, 3000)))
    alone = hear(opened([whole], sample_rate_hz=RATE), 1000)
    assert heard.time == alone.time and (heard.samples == alone.samples).all() and (heard.came == alone.came).all()
    assert heard.came.size - np.count_nonzero(heard.came) == len(lost) * N_FRAME


@pytest.mark.parametrize("overlap", [0, 32])
def test_pieces_of_guppi_are_one_file(tmp_path: Path, overlap: int) -> None:
    """Blocks that repeat the end of those before, the last of a file's in the next file, too; one is lost."""
    n, step = 128, 128 - overlap
    sky = np.random.default_rng(overlap).integers(-90, 90, (1, 20 * step + overlap, 2, 2))
    numbers = [k for k in range(20) if k != 11]
    said = {"OVERLAP": overlap, "PIPERBLK": step, "TBIN": 1e-6, "STT_IMJD": 60000, "STT_SMJD": 5, "STT_OFFS": 0.0}
    paths = []
    for k, some in enumerate((numbers[:6], numbers[6:7], numbers[7:])):
        paths.append(tmp_path / f"x.{k:04}.raw")
        makers.guppi(paths[-1], [sky[:, j * step :][:, :n] for j in some], [4000 + j * step for j in some], said)
    source = opened(paths)
    assert (
        not isinstance(source, ScansSource)
        and source.info.n_samples == sky.shape[1] // source.info.packet * source.info.packet
    )
    heard = hear(source, 1000)
    values = (sky[0, :, :, 0] + 1j * sky[0, :, :, 1]).T
    assert heard.time == 4000
    wanted = np.ones(sky.shape[1], bool)
    wanted[11 * step + overlap : 12 * step] = False
    n = heard.came.shape[1]
    assert np.count_nonzero(heard.came[0] != wanted[:n]) <= overlap  # parts of packets
    assert (heard.samples == np.where(heard.came, values[:, :n], 0)).all() and n >= sky.shape[1] - 32


def test_scans_of_guppi_begin_at_their_own_start(tmp_path: Path) -> None:
    """Two scans of one day, whose PKTIDX begin at 0, and a third an hour later, too far to be one file."""
    sky = np.random.default_rng(8).integers(-90, 90, (1, 256, 2, 2))
    paths = []
    for k, second in enumerate((100, 103, 7403)):
        said = {"PIPERBLK": 128, "TBIN": 1 / 1000, "STT_IMJD": 60000, "STT_SMJD": second, "STT_OFFS": 0.0}
        paths.append(tmp_path / f"scan{k}.raw")
        makers.guppi(paths[-1], [sky[:, :128], sky[:, 128:]], [0, 128], said)
    heard = hear(opened(paths), 4096)
    begins = [0, *(np.flatnonzero(np.diff(heard.came[0].astype(int)) == 1) + 1).tolist()]
    assert begins == [0, 3000, 7_303_000]
    for begin in begins:
        assert (heard.samples[0, begin : begin + 256] == sky[0, :, 0, 0] + 1j * sky[0, :, 0, 1]).all()


def dada_series(folder: Path, sky: np.ndarray, cuts: Sequence[int], **said: object) -> list[Path]:
    """A series of DADA files of int8 [n, 1, 2, 1]; each says where it begins by OBS_OFFSET, unless that is said."""
    paths = []
    for k, (begin, end) in enumerate(pairwise(cuts)):
        paths.append(folder / f"2026-01-01-07:00:00_{2 * begin:016}.{k:06}.dada")
        fields = {"TSAMP": 1, "UTC_START": "2026-01-01-07:00:00", "OBS_OFFSET": 2 * begin, "FILE_NUMBER": k, **said}
        makers.dada(paths[-1], sky[begin:end], fields)
    return paths


def test_a_series_of_dada_is_joined_without_a_hole(tmp_path: Path) -> None:
    sky = np.random.default_rng(9).integers(-90, 90, (6000, 1, 2, 1))
    for said, follow_on in (({}, False), ({"OBS_OFFSET": 0}, True)):
        heard = hear(opened(dada_series(tmp_path, sky, (0, 2048, 4096, 5600, 6000), **said), follow_on), 700)
        assert heard.came.all() and heard.time == 0 and (heard.samples == sky[:, 0, :, 0].T).all()


# ---------------------------------------------------------------------- polarisations in files of their own
@pytest.mark.parametrize("seed", range(8))
def test_polarisations_of_files_of_their_own_are_put_beside_each_other(tmp_path: Path, seed: int) -> None:
    """Each has scans of its own, that begin and end at other times than the other's."""
    rng = np.random.default_rng(seed)
    sky, came = rng.integers(-90, 90, (2, 6000)), np.zeros((2, 6000), bool)
    files: list[list[Path]] = [[], []]
    for pol in range(2):
        at = int(rng.integers(0, 300))
        for k in range(int(rng.integers(1, 4))):
            n = 8 * int(rng.integers(10, 200))
            files[pol].append(raw(tmp_path / f"{pol}{k}.toml", sky[pol : pol + 1, at : at + n], at))
            came[pol, at : at + n] = True
            at += n + int(rng.choice([0, 1, 77]))
    source = open_paired(files, overrides_of({}), untold)
    first, last = (int(each) for each in np.flatnonzero(came.any(axis=0))[[0, -1]])
    assert source.info.n_samples == last + 1 - first
    heard = hear(source, int(rng.integers(1, 4000)))
    n = heard.came.shape[1]
    assert heard.time == first and (heard.came == came[:, first : first + n]).all() and not came[:, first + n :].any()
    assert (heard.samples == np.where(came, sky, 0)[:, first : first + n]).all()


def test_the_second_polarisation_has_its_own_rest(tmp_path: Path) -> None:
    sky = np.random.default_rng(3).integers(-90, 90, (1, 64))
    paths = [
        raw(tmp_path / f"{k}.toml", sky, 0, more=f'sync_time_unix = "1700000000.000004{tenth}"\n')
        for k, tenth in enumerate((0, 3))
    ]
    later = raw(tmp_path / "2.toml", sky, 0, more='sync_time_unix = "1700000000.0010042"\n')
    source = open_paired([paths[:1], [paths[1], later]], overrides_of({}), untold)
    assert isinstance(source, PairedSource)
    rests = [(late.pol, round(late.rest, 6), round(late.phase / np.pi, 6)) for late in source.late]
    assert rests == [(1, 0.3, -0.15), (1, -0.1, 0.05)]
    with refused("0.toml: it has two polarisations"):
        raw(tmp_path / "0.toml", np.repeat(sky, 2, axis=0), 0)
        open_paired([[path] for path in paths], overrides_of({}), untold)


# ---------------------------------------------------------------------- what does not fit
def test_what_is_not_in_order_or_overlaps_is_refused_by_the_files_names(tmp_path: Path) -> None:
    sky = np.random.default_rng(1).integers(-90, 90, (1, 800))
    a, b, c = (raw(tmp_path / f"{name}.toml", sky, first) for name, first in (("a", 0), ("b", 800), ("c", 1500)))
    hear(opened([a, b]), 99)
    for paths, words in (
        ([b, a], ("a.toml has samples from 0 to 800", "b.toml from 800 to 1600", "in the order of time")),
        ([a, b, c], ("c.toml has samples from 1500 to 2300", "b.toml", "must not overlap")),
        ([a, a], ("a.toml", "two antennas", "follow_on = true")),
    ):
        with refused(*words):
            opened(paths)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sample_bits", "16"),
        ("sample_rate_hz", "2e6"),
        ("n_pols", "2"),
        ("antenna", '"m7"'),
        ("sync_time_unix", "5.5e8"),
    ],
)
def test_files_that_are_not_alike_are_refused_by_their_names(tmp_path: Path, field: str, value: str) -> None:
    sky = np.random.default_rng(1).integers(-90, 90, (1, 800))
    paths = [raw(tmp_path / "a.toml", sky, 0), raw(tmp_path / "b.toml", sky, 9000)]
    lines = [line for line in paths[1].read_text().splitlines() if not line.startswith((field, "n_samples"))]
    paths[1].write_text("\n".join([*lines, f"{field} = {value}"]))
    with refused("a.toml", "b.toml", field):
        opened(paths)


def test_files_of_vdif_that_overlap_by_more_than_their_disorder_are_refused(tmp_path: Path) -> None:
    sky = np.random.default_rng(1).integers(-90, 90, (2, 600, N_FRAME))
    spans = (("a", 0, 400), ("b", 100, 600))
    paths = [vdif(tmp_path / n, [(k, t) for k in range(b, e) for t in (0, 1)], sky) for n, b, e in spans]
    with refused("/b has samples from", "/a from", "must not overlap"):
        opened(paths, sample_rate_hz=RATE)


def test_a_piece_that_is_cut_off_is_told_and_the_next_one_is_read(tmp_path: Path) -> None:
    sky = np.random.default_rng(2).integers(-90, 90, (6144, 1, 2, 1))
    paths = dada_series(tmp_path, sky, (0, 2048, 4096, 6144), FILE_SIZE=4096)
    paths[1].write_bytes(paths[1].read_bytes()[:-1500])
    told: list[str] = []
    heard = hear(opened(paths, tell=told.append), 512)
    assert len(told) == 1 and f"{paths[1].name}: it ends at byte" in told[0] and "cut off" in told[0]
    hole = np.flatnonzero(~heard.came[0])
    assert 4096 - 1500 // 2 - 256 <= hole.min() <= 4096 - 1500 // 2 and hole.max() == 4095
    assert (heard.samples == np.where(heard.came, sky[:, 0, :, 0].T, 0)).all()
