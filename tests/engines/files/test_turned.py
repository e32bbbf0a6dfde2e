"""Bands that fall with frequency are turned round when they are read, in every format and at any chunk."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from autotune import unpack_samples
from autotune.engines import Bands, Running, channelise
from autotune.engines.files.formats.raw import RawFile
from autotune.engines.files.opening import open_samples
from autotune.engines.files.packing import pack_samples
from autotune.engines.files.turned import TurnedSource
from autotune.engines.jobs.inputs import antenna_input
from autotune.engines.streams.in_memory import ArraySource
from autotune.engines.streams.samples import SampleInfo

from . import makers
from .common import read_all, refused

RNG = np.random.default_rng(7)


def alternated(samples: np.ndarray, first_time: int, bits: int) -> np.ndarray:
    """Int [.., n] with those at odd times negated: one by one."""
    made = samples.astype(np.int32)
    for i in range(samples.shape[-1]):
        if (first_time + i) % 2:
            made[..., i] = np.minimum(-made[..., i], 2 ** (bits - 1) - 1)
    return made.astype(np.int16)


@pytest.mark.parametrize("bits", range(2, 17))
@pytest.mark.parametrize("first", [0, 1, -3])
@pytest.mark.parametrize("packets", [(1,), (3, 2), (50,)])
def test_real_samples_at_odd_times_are_negated(bits: int, first: int, packets: tuple[int, ...]) -> None:
    low = -(2 ** (bits - 1))
    samples = RNG.integers(low, -low, (2, 8 * 13)).astype(np.int16)
    samples[:, :8] = low  # becomes the most positive value
    info = SampleInfo(bits, 2, 1e6, 8, first_timestamp=first)
    read = read_all(TurnedSource(ArraySource(pack_samples(samples, bits), info)), packets)
    assert (read.rows == pack_samples(alternated(samples, first, bits), bits)).all() and read.received.all()


def test_many_samples_of_ten_bits_are_turned_in_pieces() -> None:
    samples = RNG.integers(-512, 512, (1, (1 << 19) + 808)).astype(np.int16)
    info = SampleInfo(10, 1, 1e6, 8)
    read = read_all(TurnedSource(ArraySource(pack_samples(samples, 10), info)), (1 << 17,))
    samples[:, 1::2] = np.minimum(-samples[:, 1::2], 511)
    assert (read.rows == pack_samples(samples, 10)).all()


@pytest.mark.parametrize("packets", [(1,), (3, 2), (50,)])
def test_complex_samples_are_conjugated(packets: tuple[int, ...]) -> None:
    samples = (RNG.normal(size=(2, 104)) + 1j * RNG.normal(size=(2, 104))).astype(np.complex64)
    source = TurnedSource(ArraySource(samples, SampleInfo(64, 2, 1e6, 8, first_timestamp=5, centre_frequency_hz=3.0)))
    assert source.info.is_turned and source.info.centre_frequency_hz == 3.0 and source.info.n_samples == 104
    assert (read_all(source, packets).rows == samples.conj()).all()


# ---------------------------------------------------------------------- formats
def tone(path: Path, kind: str, sign: int, sideband: str | None = None) -> Mapping[str, object]:
    """Writes a tone at 1284.06 MHz in a band of 1 MHz about 1284 MHz, rising or falling; what must be given."""
    n, offset = 1 << 16, 0.06
    is_real = kind in ("dada", "toml", "vdif")
    cycles = 0.25 + sign * offset / 2 if is_real else sign * offset  # real ones are 2 a microsecond
    wave = 50 * np.exp(2j * np.pi * cycles * np.arange(n)) + RNG.normal(0, 2, (n, 2)) @ [1, 1j]
    parts = np.rint(np.stack([wave.real, wave.imag], axis=1)).astype(np.int8)
    said: dict[str, object] = {}
    if kind == "dada":
        makers.dada(path, parts[:, :1].reshape(n, 1, 1, 1), {"TSAMP": 0.5, "FREQ": 1284, "BW": sign})
    elif kind == "complex dada":
        makers.dada(path, parts.reshape(n, 1, 1, 2), {"TSAMP": 1, "FREQ": 1284, "BW": sign})
    elif kind == "guppi":
        blocks = parts.reshape(4, 1, -1, 1, 2).repeat(2, axis=3)
        indices = range(4)
        makers.guppi(path, blocks, indices, {"TBIN": 1e-6, "OBSFREQ": 1284, "OBSBW": sign})
    elif kind == "toml":
        path.with_suffix(".bin").write_bytes(parts[:, 0].tobytes())
        text = 'file = "x.bin"\nsample_bits = 8\nn_pols = 1\nsample_rate_hz = 2e6\ncentre_frequency_hz = 1284e6\n'
        path.write_text(text + "first_timestamp = 0\n" + (f'sideband = "{sideband}"\n' if sideband else ""))
    else:
        payloads = (parts[:64_000, 0].copy().view(np.uint8) ^ 0x80).reshape(8, 8000)
        path.write_bytes(b"".join(makers.vdif_frame(p.tobytes(), 0, k) for k, p in enumerate(payloads)))
        said = {"sample_rate_hz": 2e6, "centre_frequency_hz": 1284e6}
    return said if kind == "toml" or sideband is None else {**said, "sideband": sideband}


def peak_hz(path: Path, header: Mapping[str, object]) -> float:
    """Where the strongest channel lies by its label."""
    made = channelise(path, Bands(64, spectra_per_heap=8), header=header, running=Running(device="host"))
    info, power = made.bands[0].info, (made.voltages.astype(float) ** 2).sum((0, 2, 3, 4))
    return info.centre_frequency_hz + (int(power.argmax()) - 32) * info.channel_width_hz


@pytest.mark.parametrize("kind", ["dada", "toml", "vdif"])
@pytest.mark.parametrize(("sign", "sideband"), [(1, None), (-1, None), (-1, "lower"), (1, "upper")])
def test_a_tone_has_its_frequency_whichever_way_the_band_runs(
    tmp_path: Path, kind: str, sign: int, sideband: str | None
) -> None:
    if kind != "dada" and (sign < 0) != (sideband == "lower"):
        return  # only a header with a width says it by itself
    path = tmp_path / "x.toml" if kind == "toml" else tmp_path / "x"
    header = tone(path, kind, sign, sideband)
    told: list[str] = []
    info = open_samples(path, **header, tell=told.append).info
    assert info.is_turned == (sign < 0) and info.centre_frequency_hz == 1284e6
    assert [f"{path}: its band falls with frequency (" in line for line in told] == [True] * (sign < 0)
    assert abs(peak_hz(path, header) - 1284.06e6) < 2e6 / 128


@pytest.mark.parametrize("kind", ["complex dada", "guppi"])
def test_complex_samples_of_a_falling_band_equal_those_of_a_rising_one(tmp_path: Path, kind: str) -> None:
    global RNG
    rows = []
    for sign in (1, -1):
        RNG = np.random.default_rng(8)  # the same noise
        tone(tmp_path / "x", kind, sign)
        source = open_samples(tmp_path / "x", sideband="upper")  # as it lies in the file
        assert not source.info.is_turned
        rows.append(read_all(source).rows)
        turned = read_all(open_samples(tmp_path / "x", sideband="lower")).rows
        assert (turned == rows[-1].conj()).all()
    assert (read_all(open_samples(tmp_path / "x")).rows == rows[1].conj()).all()
    spectra = [np.abs(np.fft.fft(each[0])) for each in (rows[0], rows[1].conj())]
    assert spectra[0].argmax() == spectra[1].argmax()


def test_channels_of_a_falling_band_are_turned_where_they_are(tmp_path: Path) -> None:
    samples = RNG.integers(-99, 99, (64, 4, 2, 2))
    makers.dada(tmp_path / "x", samples, {"TSAMP": 1, "FREQ": 1000, "BW": -4, "ORDER": "TFP"})
    for channel in range(4):
        source = open_samples(tmp_path / "x", channel=channel)
        assert source.info.is_turned and source.info.centre_frequency_hz == (1001.5 - channel) * 1e6
        found = read_all(source).rows
        assert (samples[:, channel, :, 0] - 1j * samples[:, channel, :, 1] == found.T).all()


def test_a_falling_band_of_an_array_is_turned() -> None:
    samples = RNG.integers(-128, 128, (2, 64)).astype(np.int8)
    given = antenna_input(samples, {"sideband": "lower", "sample_rate_hz": 1e6})
    assert given.info.is_turned and given.again is not None
    for source in (given.source, given.again()):
        assert (read_all(source).rows.view(np.int8) == alternated(samples.astype(int), 0, 8)).all()
    assert not antenna_input(samples, {"sideband": "upper"}).info.is_turned


def test_turned_samples_are_written_as_they_are(tmp_path: Path) -> None:
    tone(tmp_path / "x.toml", "toml", -1, "lower")
    source = open_samples(tmp_path / "x.toml")
    read = read_all(source)
    file = RawFile(tmp_path / "y.toml", source.info)
    file.write(read.rows)
    file.close()
    again = open_samples(tmp_path / "y.toml")
    assert not again.info.is_turned and (read_all(again).rows == read.rows).all()
    assert (unpack_samples(read.rows[0], 8, 0, 4) != 0).any()


def test_a_sideband_of_another_name_is_refused(tmp_path: Path) -> None:
    tone(tmp_path / "x.toml", "toml", -1, "both")
    with refused("x.toml", "sideband is 'both', must be one of upper, lower"):
        open_samples(tmp_path / "x.toml")
    with refused("sideband is 'both'"):
        open_samples(tmp_path / "x.toml", sideband="both")
