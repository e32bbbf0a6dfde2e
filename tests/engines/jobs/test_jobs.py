"""Recordings and arrays through `channelise` and `correlate`, on host: what they give, and what they refuse."""

import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.cli import program
from autotune.engines import FXEngine, XEngine
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.files.delay_file import write_delays
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.files.formats.hdf5_voltages import VoltageFiles
from autotune.engines.files.formats.raw import RawFile
from autotune.engines.files.packing import pack_samples
from autotune.engines.jobs import Bands, Dumps, Narrow, Running, channelise, correlate
from autotune.engines.streams.in_memory import ArraySource
from autotune.engines.streams.samples import SampleInfo

from ...commands import ended
from ..stand_ins import correlate as by_definition
from ..stand_ins import nibbles_exchanged

ON_HOST = Running(device="host")

C, HEAP, N, BITS, RATE_HZ = 32, 16, 1 << 15, 8, 1e6
BANDS = Bands(C, taps=4, spectra_per_heap=HEAP)
NARROW = Narrow(0.21e6, 8, 64)
WORDS = ["--channels", str(C), "--taps", "4", "--spectra-per-heap", str(HEAP), "--device", "host"]
DELAYS = [5.25, 0.0, -17.5]


def drawn(antenna: int) -> np.ndarray:
    """int16 [2, N]: noise that antennas share in part."""
    common, own = (np.random.default_rng(seed).standard_normal((2, N)) for seed in (99, antenna))
    return np.rint(np.clip(12 * common + 20 * own, -127, 127)).astype(np.int16)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("night")
    for antenna in range(len(DELAYS)):
        info = SampleInfo(BITS, 2, RATE_HZ, 4096, N, antenna=f"m{antenna}")
        file = RawFile(folder / f"m{antenna}.toml", info, [(1, 12000, 40)] if antenna == 1 else [])
        file.write(pack_samples(drawn(antenna), BITS))
        file.close()
    models = {f"m{antenna}": [DelayModel(Piece(0, delay, 1e-5, 0.3))] for antenna, delay in enumerate(DELAYS)}
    write_delays(folder / "delays.toml", models)
    return folder


def type_(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, str, str]:
    monkeypatch.setattr(sys, "argv", ["autotune", *words])
    with pytest.raises(SystemExit) as end:
        program.main()
    told = capsys.readouterr()
    return end.value.code, told.out, told.err


def test_an_array_gives_what_a_recording_does_in_chunks_of_any_size(night: Path) -> None:
    bands = Bands(C, 4, spectra_per_heap=HEAP, delays=night / "delays.toml")
    models = [DelayModel(Piece(0, DELAYS[0], 1e-5, 0.3))] * 2
    whole = channelise(night / "m0.toml", bands, running=ON_HOST)
    of_array = channelise(
        drawn(0).astype(np.int8),
        Bands(C, 4, spectra_per_heap=HEAP, delays=models),
        header={"sample_rate_hz": RATE_HZ},
        running=Running(device="host", chunk=5000),
    )
    assert whole.timestamps[0] == HEAP * 2 * C and len(whole.timestamps) == N // (HEAP * 2 * C) - 2
    assert np.array_equal(whole.voltages, of_array.voltages) and whole.bands[0].info.gain is not None
    assert np.array_equal(whole.timestamps, of_array.timestamps)
    of_words = channelise(
        drawn(0), Bands(C, 4, spectra_per_heap=HEAP, delays=models), running=Running(device="host", chunk=1 << 14)
    )
    assert np.array_equal(whole.voltages, of_words.voltages)  # of 16 bits


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("is_narrow", [False, True])
def test_gains_that_are_not_given_suit_the_quantiser(bits: int, is_narrow: bool) -> None:
    noise = np.rint(np.random.default_rng(3).normal(0, [[17], [40]], (2, 1 << 17))).astype(np.int16)
    narrow = (Narrow(0.2, 4, 64),) if is_narrow else ()
    made = channelise(noise, Bands(C, 4, bits=bits, spectra_per_heap=32, narrow=narrow), running=ON_HOST)
    v = made.voltages
    parts = v.astype(float) if bits == 8 else np.stack([(v << 4) >> 4, v >> 4], axis=-1).astype(float)
    inner = parts[:, C // 4 : 3 * C // 4]  # where the low-pass filter of the narrow band is flat
    rms = np.sqrt(np.mean(inner**2, axis=(0, 1, 2, 4)))
    assert np.allclose(rms, 16 if bits == 8 else 3, rtol=0.04)


def test_voltages_with_the_real_part_high_go_to_memory_and_to_no_file(tmp_path: Path) -> None:
    low = Bands(C, 4, bits=4, spectra_per_heap=32)
    high = replace(low, nibbles="real_high")
    made = [channelise(drawn(0), bands, running=ON_HOST).voltages for bands in (low, high)]
    assert np.array_equal(nibbles_exchanged(made[0]), made[1]) and len(made[0]) > 4
    with pytest.raises(
        UsageError, match=r"a\.h5: files have the real part in the low nibble; make .* nibbles=real_low$"
    ):
        channelise(drawn(0), high, tmp_path / "a.h5", running=ON_HOST)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="nibbles=real_high is for bits=4; with bits=8"):
        Bands(C, nibbles="real_high")


def test_bands_of_one_copy_go_to_files_of_their_own(
    night: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["channelise", str(night / "m1.toml"), "--out", str(tmp_path / "a.h5"), *WORDS]
    given = ["--narrow", "0.21e6,8,64", "--with-whole", "--filter-bank", "channelise"]
    code, out, err = type_([*words, *given], capsys, monkeypatch)
    assert code == 0 and "rms" in err and "kernels idle" in err
    assert err.count("filter bank of 32 channels: pfb_fir, FFT and postproc; channelise cannot be used: ") == 1
    paths = [tmp_path / "a.h5", tmp_path / "a-narrow1.h5"]
    assert [line.split(":")[0] for line in out.splitlines()] == [str(path) for path in paths]
    alone = channelise(night / "m1.toml", Bands(C, 4, spectra_per_heap=HEAP, narrow=(NARROW,)), running=ON_HOST)
    for path, made in zip(paths, [channelise(night / "m1.toml", BANDS, running=ON_HOST), alone], strict=True):
        source = VoltageFiles([path])
        batch = np.zeros((source.n_batches, 1, *source.antennas[0].heap_shape), np.int8)
        read = source.read(batch)
        assert read is not None and source.antennas[0] == made.bands[0].info
        assert read.time == made.timestamps[0] and np.array_equal(batch[read.present], made.voltages)
        holes = [heap for heap, _ in sorted(read.holes)]
        assert holes and holes == np.flatnonzero(~made.present.all(axis=(1, 2))).tolist()
        source.close()


def test_samples_and_voltages_give_the_same_visibilities(
    night: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [str(path) for path in sorted(night.glob("*.toml"))]
    words = [*WORDS, "--delays", str(night / "delays.toml")]
    given = ["correlate", *files, *words, "--accumulate", "3", "--out", str(tmp_path / "vis.h5")]
    code, out, err = type_(given, capsys, monkeypatch)
    assert code == 0 and out.startswith(f"{tmp_path / 'vis.h5'}: 10 dumps") and "delays.toml: it is not a header" in err
    for antenna in range(3):
        name = str(tmp_path / f"m{antenna}.h5")
        assert (
            type_(["channelise", str(night / f"m{antenna}.toml"), "--out", name, *words], capsys, monkeypatch)[0] == 0
        )
    made = correlate(sorted(tmp_path.glob("m*.h5")), accumulate=3, running=Running(device="host", chunk=5000))
    dumps = VisibilityDumps(tmp_path / "vis.h5")
    assert dumps.info == made.info and made.info.gains is not None
    found = {dump.timestamp: dump for dump in dumps}
    compared = [number for number, time in enumerate(made.timestamps.tolist()) if time in found]
    for number in compared:
        dump = found[int(made.timestamps[number])]
        assert np.array_equal(dump.visibilities, made.visibilities[number])
        assert np.array_equal(dump.present, made.present[number])
        assert np.array_equal(dump.weights, made.weights[number])
    whole = [number for number in compared if made.present[number].all()]
    assert len(whole) > 4 and any(0 < made.present[number].sum() < 3 for number in compared)
    assert_are_sums(tmp_path, made.timestamps[whole[0]], made.visibilities[whole[0]])


def assert_are_sums(folder: Path, time: int, visibilities: np.ndarray) -> None:
    """Asserts that a dump of three batches from ``time`` on is that of the voltages in files."""
    source = VoltageFiles(sorted(folder.glob("m*.h5")))
    batch = np.zeros((source.n_batches, 3, *source.antennas[0].heap_shape), np.int8)
    read = source.read(batch)
    assert read is not None
    first = (time - read.time) // source.antennas[0].heap_samples
    expected = np.zeros(visibilities.shape, np.int64)
    by_definition(batch[first : first + 3], expected)
    assert np.array_equal(visibilities, expected)
    source.close()


def test_arrays_and_folders_are_antennas(night: Path) -> None:
    arrays = np.stack([drawn(antenna).astype(np.int8) for antenna in range(2)])
    one = correlate(arrays, BANDS, accumulate=4, running=ON_HOST)
    both = correlate(list(arrays), BANDS, accumulate=4, running=Running(device="host", chunk=3000))
    assert np.array_equal(one.visibilities, both.visibilities) and len(one.timestamps) > 4
    assert [info.antenna for info in one.info.antennas] == ["m000", "m001"]
    three = correlate(night, BANDS, accumulate=4, running=ON_HOST)
    assert [info.antenna for info in three.info.antennas] == ["m0", "m1", "m2"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["channelise", "m0.toml", *WORDS], "give --out x.h5 for the voltages, or --plot x.png"),
        (["channelise", "m9.toml", *WORDS, "--out", "OUT"], "m9.toml: "),
        (["channelise", "m0.toml", *WORDS, "--out", "a.fits"], "a.fits: its name must end in .h5, .hdf5, .raw or"),
        (["channelise", "m0.toml", *WORDS, "--out", "m1.toml"], "m1.toml: its name must end in"),
        (["channelise", "m0.toml", *WORDS, "--out", "OUT", "--delays", "other.toml"], "no delays for antenna 'm0'"),
        (["channelise", "m0.toml", *WORDS, "--out", "OUT", "--gains", "none.npz"], "none.npz: it cannot be read"),
        (["channelise", "m0.toml", *WORDS, "--out", "OUT", "--narrow", "1,2"], "--narrow 1,2: must be CENTRE,DEC"),
        (["channelise", "m0.toml", *WORDS, "--out", "OUT", "--narrow", "2e6,8,64"], "not within the samples' band"),
        (["channelise", "m0.toml", *WORDS, "--out", "OUT", "--window", "x"], "window"),
        (["channelise", "m0.toml", *WORDS, "--out", "OUT", "--bits", "5"], "bits"),
        (["channelise", "m0.toml", *WORDS, "--out", "OUT", "--header", "rate"], "--header rate: must be NAME=VALUE"),
        (
            ["channelise", "m0.toml", *WORDS, "--out", "OUT", "--header", "rate=1"],
            "unknown header field 'rate'; known fields: sample_rate_hz, ",
        ),
        (["array", ".", "--header", "sample_rate=64e6"], "field 'sample_rate' (did you mean sample_rate_hz?); known"),
        (["channelise", "m0.toml", *WORDS, "--out", "OUT", "--plot", "x.gif"], "x.gif"),
        (
            ["channelise", "m0.toml", "--channels", "65536", "--device", "host", "--out", "OUT"],
            "--spectra-per-heap 256 spectra need",
        ),
        (
            ["correlate", "m0.toml", *WORDS, "--accumulate", "90", "--out", "OUT"],
            "--accumulate 90 batches of 1024 samples",
        ),
        (["correlate", "delays.toml", "other.toml", *WORDS, "--accumulate", "2", "--out", "OUT"], "no recording in"),
        (["correlate", "m0.toml", "--accumulate", "2", "--out", "OUT"], "number of channels must be given"),
        (["correlate", "a.h5", *WORDS, "--accumulate", "2", "--out", "OUT"], "voltages have their channels"),
        (["correlate", ".", *WORDS, "--accumulate", "2", "--out", "x.uvh5"], "needs what is not known"),
        (["correlate", ".", *WORDS, "--accumulate", "2", "--out", "OUT", "--filter-bank", "x"], "must be one of auto,"),
        (["correlate", ".", *WORDS, "--accumulate", "2", "--out", "OUT", "--sky", "sky.toml"], "give plot, too"),
    ],
)
def test_what_cannot_be_is_told_in_one_line_and_leaves_nothing(
    words: list[str],
    told: str,
    night: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(night)
    if not Path("other.toml").exists():
        write_delays("other.toml", {"b7": [DelayModel(Piece(0, 1.0))]})
    before = sorted(night.iterdir())
    code, err = ended([str(tmp_path / "out.h5") if word == "OUT" else word for word in words], capsys, monkeypatch)
    last = err.strip().splitlines()[-1]
    assert code == 2 and told in last and last.startswith("autotune: "), err
    assert not list(tmp_path.iterdir()) and sorted(night.iterdir()) == before


class Interrupted(ArraySource):
    """A source during which Ctrl-C is pressed, once."""

    def read(self, out: np.ndarray) -> Any:
        read = super().read(out)
        if read is not None and read.time == 12 * 1024:
            signal.raise_signal(signal.SIGINT)
        return read


def test_ctrl_c_finishes_what_was_taken(tmp_path: Path) -> None:
    samples = drawn(0).astype(np.int8).view(np.uint8)
    source = Interrupted(samples, SampleInfo(BITS, 2, RATE_HZ, 1024))
    made = channelise(source, Bands(C, 4, spectra_per_heap=HEAP, gains=0.1), running=Running(device="host", chunk=1024))
    whole = channelise(drawn(0).astype(np.int8), Bands(C, 4, spectra_per_heap=HEAP, gains=0.1), running=ON_HOST)
    n = len(made.timestamps)
    assert made.is_stopped and 0 < n < len(whole.timestamps)
    assert np.array_equal(made.voltages, whole.voltages[:n])


def test_what_is_no_input_is_refused() -> None:
    with pytest.raises(UsageError, match=r"samples are float64 \[4\], must be int8, int16 or complex64"):
        channelise(np.zeros(4), BANDS, running=ON_HOST)
    with pytest.raises(UsageError, match="samples are a path, a NumPy array or a source of samples, not int"):
        channelise(7, BANDS, running=ON_HOST)
    with pytest.raises(UsageError, match="gains must be given for samples that can be read only once"):
        channelise(ArraySource(np.zeros((1, N), np.uint8), SampleInfo(8, 1, 1.0, 1024)), BANDS, running=ON_HOST)
    with pytest.raises(UsageError, match="accumulate=0 must be an integer from 1"):
        correlate(np.zeros((2, 2, N), np.int8), BANDS, accumulate=0, running=ON_HOST)
    with pytest.raises(UsageError, match="one band is correlated at a time"):
        bands = Bands(C, 4, spectra_per_heap=HEAP, narrow=(NARROW,), with_whole=True)
        correlate(np.zeros((2, 2, N), np.int8), bands, accumulate=2, running=ON_HOST)


@pytest.mark.parametrize("kind", [XEngine, FXEngine, Dumps])
def test_the_old_name_of_accumulate_is_taken_with_a_line(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(UsageError, match="accumulate is given twice"):
        kind(batches_per_dump=2, accumulate=3)
    with suppress(TypeError):  # engines need more than this
        assert kind(batches_per_dump=2) == Dumps(accumulate=2)
    assert "batches_per_dump is called accumulate now; the old name is taken until 0.4" in caplog.text
