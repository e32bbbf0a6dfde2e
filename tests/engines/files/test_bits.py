"""VDIF of 1 to 16 bits and GUPPI RAW of 4 to 16: as the plainest unpacking has them, and with the noise of theory."""

from pathlib import Path

import numpy as np
import pytest

from autotune import unpack_samples
from autotune.core.errors import UsageError
from autotune.engines.files.opening import open_samples

from . import makers
from .common import read_all, read_file, refused

# Thompson, Moran and Swenson (2017), table 8.1 and section 8.3; levels: steps between thresholds, in units of the rms
EFFICIENCY = {
    1: 2 / np.pi,
    2: 0.881,
    4: 0.988,
    8: 1.0,
    16: 1.0,
}
BEST_LEVEL = {
    1: 1.0,
    2: 0.9957,
    4: 0.3352,
    8: 0.04,
    16: 0.001,
}


def bits_of(payload: bytes, bits: int) -> list[int]:
    """Codes of so many bits, the first one in the lowest bits: one by one."""
    stream = int.from_bytes(payload, "little")
    return [stream >> k & (1 << bits) - 1 for k in range(0, 8 * len(payload), bits)]


def value_of(code: int, bits: int) -> int:
    """A sample of offset binary, in units of the smallest level."""
    if bits <= 2:
        return 2 * code + 1 - (1 << bits)
    return code - (1 << bits - 1)


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("n_channels", [1, 4])
def test_vdif_of_any_bits_is_unpacked(tmp_path: Path, bits: int, is_complex: bool, n_channels: int) -> None:
    rng, n_bytes, made = np.random.default_rng(bits), 8 * 32 * n_channels, []
    for number in range(5):
        for thread in (3, 1):
            kind = {"bits": bits, "is_complex": is_complex, "n_channels": n_channels}
            made.append((rng.bytes(n_bytes), {"number": number, "thread": thread, **kind}))
    (tmp_path / "x").write_bytes(b"".join(makers.vdif_frame(payload, 7, **said) for payload, said in made))
    n_each = 8 * n_bytes // bits // n_channels // (1 + is_complex)
    expected = np.zeros((2, n_channels, 5 * n_each), complex)
    for k, (payload, said) in enumerate(made):
        values = [value_of(code, bits) for code in bits_of(payload, bits)]
        parts = np.reshape(values, (n_each, n_channels, 1 + is_complex))
        samples = parts[..., 0] + 1j * parts[..., -1] * is_complex
        expected[(3, 1).index(said["thread"]), :, k // 2 * n_each : (k // 2 + 1) * n_each] = samples.T
    for channel in {0, n_channels - 1}:
        source = open_samples(tmp_path / "x", sample_rate_hz=10.0 * n_each, channel=channel, threads=(3, 1))
        info, read = source.info, read_all(source, (2, 1))
        assert info.sample_bits == (64 if is_complex else {1: 2, 2: 4}.get(bits, bits)) and read.received.all()
        found = read.rows
        if not is_complex:
            found = np.stack([unpack_samples(row, info.sample_bits, 0, info.n_samples) for row in read.rows])
        assert (found == expected[:, channel]).all()


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize("form", ["1SFA", "SIMPLE"])
@pytest.mark.parametrize("n_pols", [1, 2])
def test_guppi_of_any_bits_is_unpacked(tmp_path: Path, bits: int, form: str, n_pols: int) -> None:
    rng, n, n_channels = np.random.default_rng(bits), 24, 5
    blocks = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (3, n_channels, n, n_pols, 2))
    data = b""
    for number, block in enumerate(blocks):
        ordered = block if form == "1SFA" else block.swapaxes(0, 1)
        if bits == 4:
            raw = b"".join(bytes([(int(re) & 15) << 4 | int(im) & 15]) for re, im in ordered.reshape(-1, 2))
        else:
            raw = ordered.astype(f"<i{bits // 8}").tobytes()
        said = {"OBSNCHAN": n_channels, "NPOL": 4 if n_pols == 2 else 1, "NBITS": bits, "BLOCSIZE": len(raw)}
        said |= {"PKTIDX": number, "PIPERBLK": 1, "PKTFMT": form, "TBIN": "1E-6"}
        data += "".join(makers.card(*each) for each in said.items()).encode() + b"END".ljust(80) + raw
    (tmp_path / "x").write_bytes(data)
    expected = (blocks @ [1, 1j]).transpose(1, 3, 0, 2).reshape(n_channels, n_pols, 3 * n)
    for channel in range(n_channels):
        source = open_samples(tmp_path / "x", channel=channel)
        assert source.info.n_samples == 3 * n
        assert (read_all(source, (2,)).rows == expected[channel]).all()


@pytest.mark.parametrize("form", ["1SFA", "SIMPLE"])
@pytest.mark.parametrize("bits", [4, 16])
def test_of_a_block_that_is_cut_off_what_is_there_is_read(tmp_path: Path, bits: int, form: str) -> None:
    n, n_channels = 3 * 4096 * 8, 2
    raw = np.random.default_rng(5).bytes(n_channels * n * bits // 4)
    said = {"OBSNCHAN": n_channels, "NPOL": 1, "NBITS": bits, "BLOCSIZE": len(raw), "PKTFMT": form, "TBIN": "1E-6"}
    header = "".join(makers.card(*each) for each in {**said, "PIPERBLK": 1}.items()).encode()
    made = [header + makers.card("PKTIDX", k).encode() + b"END".ljust(80) + raw for k in range(2)]
    (tmp_path / "x").write_bytes(b"".join(made))
    for channel in (0, 1):
        (tmp_path / "x").write_bytes(b"".join(made))
        whole = read_all(open_samples(tmp_path / "x", channel=channel), (999,)).rows
        for cut in (1, len(raw) // 3, len(raw) // 2 + 5):
            (tmp_path / "x").write_bytes(b"".join(made)[:-cut])
            source = open_samples(tmp_path / "x", channel=channel)
            read = read_file(tmp_path / "x", (4,), channel=channel)
            each = bits / 4 if form == "1SFA" else n_channels * bits / 4  # bytes between samples of a channel
            n_lost = cut / each if form == "SIMPLE" else max(0.0, cut - len(raw) / 2 * (channel == 0)) / each
            n_lost = min(n, n_lost)
            assert n - n_lost - 4096 <= source.info.n_samples - n <= n - n_lost
            assert read.received.shape[1] * source.info.packet == source.info.n_samples
            assert (read.rows == whole[:, : read.rows.shape[1]]).all()
            assert "in the middle of block 1" in read.lost and read.error == ""


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
def test_the_noise_of_a_tone_is_that_of_theory(tmp_path: Path, bits: int) -> None:
    rng, n, place = np.random.default_rng(6), 1 << 19, 100_003
    tone = 0.1 * np.cos(2 * np.pi * place * np.arange(n) / n + 1)
    analogue = rng.normal(size=n) + tone
    half = 1 << bits - 1
    steps = analogue / BEST_LEVEL[bits]
    codes = np.clip(np.floor(steps) if bits < 4 else np.rint(steps), -half, half - 1).astype(np.int64) + half
    payload = np.packbits((codes[:, np.newaxis] >> np.arange(bits) & 1).astype(np.uint8).reshape(-1), bitorder="little")
    frames = payload.reshape(16, -1)
    made = (makers.vdif_frame(each.tobytes(), 9, k, bits=bits) for k, each in enumerate(frames))
    (tmp_path / "x.vdif").write_bytes(b"".join(made))
    source = open_samples(tmp_path / "x.vdif", sample_rate_hz=float(n))
    samples = unpack_samples(read_all(source).rows[0], source.info.sample_bits, 0, n)

    def signal_to_noise(x: np.ndarray) -> float:
        power = np.abs(np.fft.rfft(x)) ** 2
        return float(power[place] / np.median(power[1000:-1000]))

    assert signal_to_noise(samples) / signal_to_noise(analogue) == pytest.approx(EFFICIENCY[bits], abs=0.02)


# ---------------------------------------------------------------------- headers that ask for too much
@pytest.mark.parametrize("value", [10**18, -1, -(10**18), "NAN", "1E400", "'x'", 2**63, 0])
@pytest.mark.parametrize("name", ["BLOCSIZE", "OBSNCHAN", "NBITS", "PKTIDX", "PKTSIZE", "OVERLAP", "TBIN", "NANTS"])
def test_guppi_of_hostile_values_ends_in_one_line(tmp_path: Path, name: str, value: object) -> None:
    block = np.ones((1, 64, 2, 2), np.int8)
    makers.guppi(tmp_path / "x", [block], [0], {"TBIN": "1E-6", name: value})
    if value == 0 and name in ("PKTIDX", "OVERLAP"):
        return
    with refused(tmp_path / "x"):
        read = read_all(open_samples(tmp_path / "x", channel=0))
        raise UsageError(f"{tmp_path / 'x'}: {read.error}")


@pytest.mark.parametrize("value", ["1000000000000000000", "-1", "nan", "1e400", "x", "9223372036854775808"])
@pytest.mark.parametrize("name", ["HDR_SIZE", "NBIT", "NCHAN", "NPOL", "NDIM", "TSAMP", "OBS_OFFSET", "FILE_SIZE"])
def test_dada_of_hostile_values_ends_in_one_line(tmp_path: Path, name: str, value: str) -> None:
    makers.dada(tmp_path / "x", np.ones((64, 1, 1, 1)), {"TSAMP": 1, name: value})
    try:
        read = read_file(tmp_path / "x")
        assert name != "FILE_SIZE" or "after 64 of 1000000000000000000 samples" in read.lost
        assert name in ("FILE_SIZE", "TSAMP", "OBS_OFFSET") and read.received.shape[1] * 64 == 64
    except UsageError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("seed", range(4))
def test_vdif_headers_of_any_content_end_in_one_line(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(60):
        words = rng.integers(0, 1 << 32, (3, 8), np.uint32)
        words[:, 2] = words[0, 2] & 0x1F00003F | 1
        words[1:, 1:4] = words[0, 1:4]
        payloads = [word.tobytes() + rng.bytes(max(0, 8 * int(words[0, 2] & 63) - 32)) for word in words]
        (tmp_path / "x.vdif").write_bytes(b"".join(payloads))
        try:
            read_all(open_samples(tmp_path / "x.vdif", sample_rate_hz=1e6, channel=0, threads=(0,)), no_flags=True)
        except UsageError as error:
            assert "\n" not in str(error)
