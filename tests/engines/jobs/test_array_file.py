"""Arrays by a file: what it says of each antenna is what runs, and all that lacks is said before anything does."""

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.files.array_file import read_array
from autotune.engines.files.clocks import Offset
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.files.opening import open_samples
from autotune.engines.files.scans import Late, ScansSource
from autotune.engines.jobs import Bands, Running, correlate
from autotune.engines.jobs.inputs import Input
from autotune.engines.jobs.station_clock import Station
from autotune.engines.streams.in_memory import ArraySource
from autotune.engines.streams.phase_centre import PhaseCentre
from autotune.engines.streams.samples import SampleInfo

from ..files import makers
from ..files.common import refused
from ..files.test_scans import raw

ON_HOST = Running(device="host")
C, HEAP = 16, 16
BANDS = Bands(C, 4, spectra_per_heap=HEAP)
RNG = np.random.default_rng(71)
PLACES = {"On": [3370606.0, 711917.0, 5349830.0], "Wb": [3828445.0, 445223.0, 5064921.0]}


def written(folder: Path, text: str) -> Path:
    path = folder / "array.toml"
    path.write_text(text)
    return path


def scans_of_parts(folder: Path, more: str) -> tuple[Path, list[tuple[int, int]]]:
    """Antenna a in one file, and b in three scans, whose clocks begin parts of samples after those of a.

    Returns the array's file, and where the scans begin and end.
    """
    n, start = 1 << 16, 1_700_000_000
    lines = np.fft.rfft(RNG.normal(0, 25, (2, n)))
    spans = [(1003, 21003), (25602, 40002), (48001, 62001)]
    raw(folder / "a.toml", _quantised(np.fft.irfft(lines, n)), 0, more=f"sync_time_unix = {start}\n{more}")
    for k, ((begin, end), rest) in enumerate(zip(spans, (0.3, -0.45, 0.1), strict=True)):
        moved = np.fft.irfft(lines * np.exp(2j * np.pi * np.fft.rfftfreq(n) * rest), n)
        zero = start + (begin + Fraction(rest)) / 10**6
        clock = f'sync_time_unix = "{zero.numerator}/{zero.denominator}"\n'
        raw(folder / f"b{k}.toml", _quantised(moved[:, begin:end]), 0, more=clock + more)
    tables = '[[antenna]]\nname = "a"\nfiles = "a.toml"\n[[antenna]]\nname = "b"\n'
    return written(folder, tables + 'files = ["b0.toml", "b1.toml", "b2.toml"]\n'), spans


def _quantised(rows: np.ndarray) -> np.ndarray:
    return np.rint(rows).clip(-127, 127)


def wrong_degrees(array: Path, spans: list[tuple[int, int]]) -> float:
    """The largest phase of any channel in any scan, after it is checked that the dumps are those of the scans."""
    made = correlate(array, BANDS, accumulate=2, running=ON_HOST)
    length, reach = 2 * HEAP * 2 * C, 4 * 2 * C
    inside = np.array(
        [[b <= t and t + length - 2 * C + reach <= e for b, e in spans] for t in made.timestamps.tolist()]
    )
    assert made.present[:, 1].tolist() == inside.any(axis=1).tolist() and (inside.sum(axis=0) > 10).all()
    sums = np.array([made.visibilities[scan].astype(float).sum(axis=0)[1:, 1, [0, 3]] for scan in inside.T])
    return float(np.degrees(np.abs(np.angle(sums[..., 0] + 1j * sums[..., 1]))).max())


@pytest.mark.parametrize("more", ["", 'sideband = "lower"\n'])
def test_scans_are_correlated_with_the_rests_of_their_clocks(tmp_path: Path, more: str) -> None:
    assert wrong_degrees(*scans_of_parts(tmp_path, more)) < 1


def test_scans_without_their_rests_would_have_slopes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScansSource, "late", [])
    assert wrong_degrees(*scans_of_parts(tmp_path, "")) > 30


def test_rests_hold_on_the_clock_of_the_first_antenna() -> None:
    source = ArraySource(np.zeros((2, 64), np.uint8), SampleInfo(8, 2, 1e6, 8))
    station = Station(
        Input(source, None, [Late(500, 0.25, 0.5), Late(800, -1.0, 0.0, pol=1)]), Offset(10_000, 0.125, 1.0)
    )
    first, second = station.on_time([DelayModel(), DelayModel()])
    assert [(each.start, each.delay, each.phase) for each in first.pieces[1:]] == [(10_500, 0.375, 1.5)]
    assert [(each.start, each.delay) for each in second.pieces[1:]] == [(10_500, 0.375), (10_800, -0.625)]


# ---------------------------------------------------------------------- antennas that differ
def two_stations(folder: Path) -> None:
    """Stations whose frames do not say the rate: On has threads 3 and 7, Wb two channels that are polarisations."""
    sky = RNG.integers(-60, 60, (2, 30, 400))
    own = [sky + RNG.integers(-30, 30, sky.shape) + 128 for _ in range(2)]
    frames = [
        makers.vdif_frame(own[0][pol, k].astype(np.uint8).tobytes(), 1000, k, thread=thread)
        for k in range(30)
        for pol, thread in ((0, 3), (1, 7), (1, 5))
    ]
    (folder / "On.vdif").write_bytes(b"".join(frames))
    for piece in range(2):
        frames = [
            makers.vdif_frame(own[1][:, k].T.astype(np.uint8).tobytes(), 1000, k, n_channels=2, station="Wb")
            for k in range(15 * piece, 15 * piece + 15)
        ]
        (folder / f"Wb.{piece}.vdif").write_bytes(b"".join(frames))


STATIONS = f"""
sample_rate_hz = 2e6
centre_frequency_hz = 1.4e9

[phase_centre]
right_ascension_deg = 187.25
declination_deg = 2.5

[[antenna]]
files = "On.vdif"
threads = [3, 7]
position_m = {PLACES["On"]}

[[antenna]]
name = "Westerbork"
files = ["Wb.0.vdif", "Wb.1.vdif"]
channel = [0, 1]
position_m = {PLACES["Wb"]}
"""


def test_positions_channels_and_threads_differ_by_antenna(tmp_path: Path) -> None:
    two_stations(tmp_path)
    at_rest = re.sub(r"\[phase_centre\]\n.*\n.*\n", "", STATIONS)
    made = correlate(written(tmp_path, at_rest), BANDS, tmp_path / "x.h5", accumulate=2, running=ON_HOST)
    assert [(info.antenna, list(info.position_m or ())) for info in made.info.antennas] == [
        ("On", PLACES["On"]),
        ("Westerbork", PLACES["Wb"]),
    ]
    assert made.info.centre_frequency_hz == 1.4e9
    (dump, *_) = VisibilityDumps(tmp_path / "x.h5")
    v = dump.visibilities.astype(float).sum(axis=0)
    coherence = np.hypot(*v[1, [0, 3]].T) / np.sqrt(v[0, [0, 3], 0] * v[2, [0, 3], 0])
    assert (coherence > 0.6).all() and np.hypot(*v[1, 1]) / np.sqrt(v[0, 0, 0] * v[2, 3, 0]) < 0.3


def test_all_that_lacks_is_said_at_once_before_anything_is_written(tmp_path: Path) -> None:
    two_stations(tmp_path)
    lines = [
        line for line in STATIONS.splitlines() if not line.startswith(("sample_rate", "threads", "position", "centre"))
    ]
    words = (
        "[[antenna]] m000: ", "On.vdif: its frames do not state the sample rate: give sample_rate_hz",
        "threads [3, 5, 7], and none are chosen", "x.uvh5 also needs position_m and centre_frequency_hz",
        "[[antenna]] Westerbork: ", "Wb.0.vdif: its frames do not state",
    )  # fmt: skip
    with refused("array.toml: ", *words):
        correlate(written(tmp_path, "\n".join(lines)), BANDS, tmp_path / "x.uvh5", accumulate=2, running=ON_HOST)
    text = STATIONS.replace("position_m", "# position_m", 1).replace("centre_frequency_hz", "# centre_frequency_hz")
    with refused(
        "[[antenna]] On lacks position_m and centre_frequency_hz, which", "Westerbork lacks centre_frequency_hz"
    ):
        correlate(written(tmp_path, text), BANDS, tmp_path / "x.uvh5", accumulate=2, running=ON_HOST)
    said: Any = {"threads": (0, 1), "sample_rate_hz": 2e6}
    raws = [tmp_path / f"{name}.toml" for name in "ab"]
    for path in raws:
        raw(path, RNG.integers(-50, 50, (2, 4096)), 0, more=f'antenna = "{path.stem}"\n')
    with refused(
        "x.uvh5: it needs", "a lacks position_m, sync_time_unix and centre_frequency_hz; b lacks", "array.toml"
    ):
        correlate(raws, BANDS, tmp_path / "x.uvh5", accumulate=2, running=ON_HOST)
    with refused("position_m is of one antenna, and there are 2", "array.toml"):
        correlate(raws, BANDS, accumulate=2, header={"position_m": tuple(PLACES["On"])}, running=ON_HOST)
    with refused("array.toml: threads, sample_rate_hz cannot be given as well", "in front of the file's tables"):
        correlate(written(tmp_path, STATIONS), BANDS, accumulate=2, header=said, running=ON_HOST)
    with refused("array.toml: it is the file of an array, which is given alone"):
        correlate([raws[0], tmp_path / "array.toml"], BANDS, accumulate=2, running=ON_HOST)
    assert not list(tmp_path.glob("x.*"))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("position_m", "positon_m", ("[[antenna]] 1 has 'positon_m'", "position_m?", "[[antenna]] Westerbork has")),
        ("sample_rate_hz", "sample_rate", ("it has 'sample_rate'", "did you mean sample_rate_hz?")),
        ("threads = [3, 7]", 'threads = "3"', ("threads is '3', must be an integer",)),
        ("[[antenna]]", "[[antena]]", ("antenna?",)),
        ('"On.vdif"', '"in.vdif"', ("in.vdif: it is not there", "begin at its folder")),
        ('"On.vdif"', '""', ("files is empty",)),
        ('name = "Westerbork"', 'name = "Westerbork"\nantenna = 3', ("antenna = 3 is not one of them",)),
        ("declination_deg = 2.5", "declination_deg = 95", ("[phase_centre] declination_deg is 95",)),
        ("[3370606.0, 711917.0, 5349830.0]", "[1.0, 2.0]", ("[[antenna]] 1 position_m",)),
        ("threads = [3, 7]", "threads = [3, 7]\ndelays = [1, 2, 3]", ("delays has 3 numbers",)),
        ("threads = [3, 7]", "threads = [3, 7]\ngains = 2", ("some of its antennas have gains, but Westerbork lacks",)),
    ],
)
def test_what_is_wrong_in_it_is_one_line(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    two_stations(tmp_path)
    assert old in STATIONS
    with refused("array.toml" if "in.vdif" not in new else "", *words):
        correlate(written(tmp_path, STATIONS.replace(old, new)), BANDS, accumulate=2, running=ON_HOST)


def test_delays_and_gains_are_those_that_bands_would_give(tmp_path: Path) -> None:
    two_stations(tmp_path)
    by_bands = Bands(
        C, 4, spectra_per_heap=HEAP,
        delays={"On": [DelayModel(Piece(0, 3.25, 1e-6)), DelayModel(Piece(0, 3.25, 1e-6), Piece(2_000_002_000, 8.0))],
                "Westerbork": [DelayModel(Piece(0, -2.5))] * 2},
        gains={"On": 0.5, "Westerbork": np.array([[0.25, 0.75]])},
    )  # fmt: skip
    wanted = correlate(written(tmp_path, STATIONS), by_bands, accumulate=1, running=ON_HOST)
    pieces = "[{start = 0, delay = 3.25, rate = 1e-6}, {start = 2_000_002_000, pol = 1, delay = 8.0}]"
    text = STATIONS.replace("threads = [3, 7]", f"threads = [3, 7]\ndelays = {pieces}\ngains = 0.5")
    text = text.replace("channel = [0, 1]", "channel = [0, 1]\ndelays = -2.5\ngains = [0.25, 0.75]")
    made = correlate(written(tmp_path, text), BANDS, accumulate=1, running=ON_HOST)
    assert (made.visibilities == wanted.visibilities).all() and made.present.any() and made.info.is_delayed
    with refused("it has delays of antennas, and delays are given as well"):
        correlate(written(tmp_path, text), by_bands, accumulate=1, running=ON_HOST)


def test_polarisations_in_files_of_their_own_are_correlated(tmp_path: Path) -> None:
    """One antenna's second polarisation was sampled a part of a sample later, as its header says."""
    n, rest = 1 << 14, Fraction("0.4")
    lines = np.fft.rfft(RNG.normal(0, 25, (2, n)))
    moved = np.fft.irfft(lines[1] * np.exp(2j * np.pi * np.fft.rfftfreq(n) * float(rest)), n)
    clocks = [f'sync_time_unix = "{1_700_000_000 * 10**7 + int(10 * part)}/{10**7}"\n' for part in (0, rest)]
    rows = np.fft.irfft(lines, n)
    raw(tmp_path / "a.toml", _quantised(rows), 0, more=clocks[0])
    raw(tmp_path / "x.toml", _quantised(rows[:1]), 0, more=clocks[0])
    raw(tmp_path / "y.toml", _quantised(moved[np.newaxis]), 0, more=clocks[1])
    tables = '[[antenna]]\nname = "a"\nfiles = "a.toml"\n[[antenna]]\nname = "b"\nfiles = [["x.toml"], ["y.toml"]]\n'
    made = correlate(written(tmp_path, tables), BANDS, accumulate=2, running=ON_HOST)
    v = made.visibilities[made.present.all(axis=1)].astype(float).sum(axis=0)[1:, 1, [0, 3]]
    assert len(made.timestamps) > 10 and np.degrees(np.abs(np.angle(v[..., 0] + 1j * v[..., 1]))).max() < 1


# ---------------------------------------------------------------------- arrays in one file
def test_antennas_of_guppi_raw_are_renamed_and_placed(tmp_path: Path) -> None:
    """As ATA and MeerKAT's BLUSE record: times from SYNCTIME or PKTSTART, names over several cards, two files."""
    n, first = 1 << 12, 1_000_000_000
    sky = RNG.normal(0, 20, (3, 1, 2 * n, 2, 2))
    data = (
        np.rint(sky + RNG.normal(0, 10, (3, 3, 2 * n, 2, 2)))
        .clip(-127, 127)
        .transpose(1, 0, 2, 3, 4)
        .reshape(9, 2 * n, 2, 2)
    )
    said: dict[str, Any] = {
        "NANTS": 3,
        "ANTNMS00": "1a,2b,",
        "ANTNMS01": "5c",
        "TBIN": 1e-6,
        "OBSFREQ": 1500.0,
        "OBSBW": -3.0,
    }
    said |= {"PIPERBLK": n // 2, "PKTSTART": first, "STT_IMJD": 60262, "STT_SMJD": 80400, "STT_OFFS": 0.0}
    for k in range(2):
        blocks = np.split(data[:, k * n : (k + 1) * n], 2, axis=1)
        makers.guppi(tmp_path / f"ata.000{k}.raw", blocks, [first + k * n, first + k * n + n // 2], said)
    alone = correlate([tmp_path / "ata.0000.raw"], BANDS, accumulate=2, header={"channel": 2}, running=ON_HOST)
    assert [info.antenna for info in alone.info.antennas] == ["1a", "2b", "5c"]
    head = 'files = ["ata.0000.raw", "ata.0001.raw"]\nchannel = 2\n'
    tables = f'[[antenna]]\nname = "east"\nantenna = "5c"\nposition_m = {PLACES["On"]}\n[[antenna]]\nantenna = 1\n'
    made = correlate(written(tmp_path, head + tables), BANDS, accumulate=2, running=ON_HOST)
    east, second = made.info.antennas
    assert (east.antenna, second.antenna, list(east.position_m or ())) == ("east", "2b", PLACES["On"])
    assert made.info.centre_frequency_hz == 1499e6  # of the third channel of a band that falls
    assert east.sync_time_unix == 1_700_000_400 - first // 10**6 and made.timestamps[0] >= first
    assert len(made.timestamps) == 2 * n // (2 * HEAP * C) - 1 and made.present.all()
    v = made.visibilities.astype(float).sum(axis=(0, 1))
    assert np.hypot(*v[1, 0]) / np.sqrt(v[0, 0, 0] * v[2, 0, 0]) == pytest.approx(0.8, abs=0.05)
    with refused("[[antenna]] 9z: ", "it has the antennas 1a, 2b, 5c, and antenna = '9z' is not one of them"):
        text = head + '[[antenna]]\nname = "9z"\nantenna = "9z"\n'
        correlate(written(tmp_path, text), BANDS, accumulate=2, running=ON_HOST)


def test_synctime_comes_before_the_time_of_pktstart(tmp_path: Path) -> None:
    said = {"TBIN": 1e-6, "PIPERBLK": 64, "PKTSTART": 128, "STT_IMJD": 60000, "STT_SMJD": 1, "STT_OFFS": 0.5}
    for more, zero in (({}, Fraction("1677283201.499872")), ({"SYNCTIME": 1_600_000_000}, 1_600_000_000)):
        makers.guppi(tmp_path / "x.raw", [RNG.integers(-9, 9, (1, 64, 2, 2))], [192], said | more)
        assert open_samples(tmp_path / "x.raw").info.sync_time_unix == zero


def test_files_that_it_names_are_recordings_or_refused(tmp_path: Path) -> None:
    """Code and pickles do not run, folders and pipes are refused without a wait, and paths may lead elsewhere."""
    (tmp_path / "in").mkdir()
    ran = tmp_path / "ran"
    (tmp_path / "x.py").write_text(f"open({str(ran)!r}, 'w')\n" * 100)
    (tmp_path / "x.npy").write_bytes(b"cbuiltins\nopen\n(S'" + str(ran).encode() + b"'\nS'w'\ntR." + bytes(5000))
    os.mkfifo(tmp_path / "pipe")
    for name in ("x.py", "x.npy", "pipe", "in"):
        with refused("array.toml: [[antenna]] m000: ", f"{name}: it"):
            correlate(written(tmp_path / "in", f'[[antenna]]\nfiles = "../{name}"\n'), BANDS, accumulate=2)
    assert not ran.exists()
    raw(tmp_path / "a.toml", RNG.integers(-50, 50, (2, 4096)), 0)
    text = "".join(
        f'[[antenna]]\nname = "{name}"\nfiles = "{path}"\n'
        for name, path in (("a", "../a.toml"), ("b", tmp_path / "a.toml"))
    )
    assert correlate(written(tmp_path / "in", text), BANDS, accumulate=2, running=ON_HOST).present.all()


def test_the_phase_centre_is_kept(tmp_path: Path) -> None:
    assert read_array(written(tmp_path, STATIONS)).phase_centre == PhaseCentre(2.5, right_ascension_deg=187.25)
