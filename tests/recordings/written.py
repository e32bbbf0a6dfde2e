"""Writes drawn stations as files, and says how each is to be read."""

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from autotune.engines.files.packing import pack_samples
from autotune.engines.streams.times import time_text

from ..engines.files import makers
from .drawn import Night, Station


def write(night: Night, folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Writes a file of each station; returns its path, and what must be said that no header says."""
    writers = {"toml": _toml, "vdif": _vdif, "dada": _dada, "guppi": _guppi}
    return [writers[station.kind](night, station, folder) for station in night.stations]


def _toml(night: Night, s: Station, folder: Path) -> tuple[Path, dict[str, Any]]:
    path = folder / f"{s.name}.toml"
    if s.is_complex:
        data = s.samples.astype("<c8").tobytes()
    else:
        data = b"".join(pack_samples(row[np.newaxis].astype(np.int16), s.bits).tobytes() for row in s.samples)
    path.with_suffix(".bin").write_bytes(data)
    missing = []
    for pol, row in enumerate(s.came[:, : s.n // s.packet * s.packet : s.packet]):
        edges = np.flatnonzero(np.diff(np.concatenate([[True], row, [True]])))
        missing += [[pol, int(b) * s.packet, int(e - b) * s.packet] for b, e in edges.reshape(-1, 2)]
    said = [
        f'file = "{path.stem}.bin"',
        f"sample_bits = {64 if s.is_complex else s.bits}",
        f"n_pols = {len(s.samples)}",
        f"n_samples = {s.n}",
        f"sample_rate_hz = {night.rate_hz}",
        f"first_timestamp = {s.first}",
        f"centre_frequency_hz = {night.centre_hz}",
        f'antenna = "{s.name}"',
        f'sync_time_unix = "{time_text(s.sync)}"',
        f"missing = {missing}",
        *(['sideband = "lower"'] if s.falls else []),
    ]
    path.write_text("\n".join(said) + "\n")
    return path, {}


def _vdif(night: Night, s: Station, folder: Path) -> tuple[Path, dict[str, Any]]:
    path, n_pols = folder / f"{s.name}.vdif", len(s.samples)
    epoch = datetime.fromtimestamp(int(s.sync), UTC)
    half_year = 2 * (epoch.year - 2000) + (epoch.month > 6)
    per_second, first = int(night.rate_hz) // s.packet, s.first // s.packet
    rng, frames = np.random.default_rng(night.seed), []
    for k in range(s.n // s.packet):
        here = slice(k * s.packet, (k + 1) * s.packet)
        for thread in range(s.n_threads):
            number = first + k + (0 if thread < n_pols else 1234567)  # others have a clock of their own
            said = dict(thread=thread, epoch=half_year, bits=s.bits, is_complex=s.is_complex, station=s.name)
            if thread >= n_pols:
                payload = rng.integers(0, 256, len(_payload(s, 0, here)), dtype=np.uint8).tobytes()
            elif s.came[thread, k * s.packet]:
                payload = _payload(s, thread, here)
            else:
                continue
            frames.append(makers.vdif_frame(payload, number // per_second, number % per_second, **said))
    path.write_bytes(b"".join(frames))
    header = {"sample_rate_hz": night.rate_hz, "centre_frequency_hz": night.centre_hz}
    threads = {"threads": tuple(range(n_pols))} if s.n_threads > n_pols else {}
    return path, header | threads | ({"sideband": "lower"} if s.falls else {})


def _payload(s: Station, pol: int, here: slice) -> bytes:
    parts = s.samples[pol, here]
    values = np.stack([parts.real, parts.imag], axis=-1).reshape(-1) if s.is_complex else parts
    values = values.astype(np.int64)
    if s.bits == 8:
        return (values.astype(np.int8).view(np.uint8) ^ 0x80).tobytes()
    codes = ((values + 3) // 2).astype(np.uint8).reshape(-1, 4)
    return (codes[:, 0] | codes[:, 1] << 2 | codes[:, 2] << 4 | codes[:, 3] << 6).tobytes()


def _dada(night: Night, s: Station, folder: Path) -> tuple[Path, dict[str, Any]]:
    path = folder / f"{s.name}.dada"
    data = _among(night, s)
    part = s.sync % 1
    start = datetime.fromtimestamp(int(s.sync), UTC).strftime("%Y-%m-%d-%H:%M:%S") + f"{float(part):.9f}"[1:] * (
        part > 0
    )
    said = {
        "TSAMP": _decimal(Fraction(10**6) / Fraction(night.rate_hz)),
        "UTC_START": start,
        "OBS_OFFSET": s.first * data[0].size,
        "TELESCOPE": s.name,
        "ORDER": "TFP",
        **_band(night, s, "FREQ", "BW"),
    }
    makers.dada(path, data, said)
    return path, {"channel": s.n_channels - 1} if s.n_channels > 1 else {}


def _guppi(night: Night, s: Station, folder: Path) -> tuple[Path, dict[str, Any]]:
    path, n = folder / f"{s.name}.raw", s.packet
    data = _among(night, s).transpose(1, 0, 2, 3)  # channel, time, polarisation, part
    numbers = [k for k in range(s.n // n) if s.came[0, (k + 1) * n - 1]]
    blocks = [data[:, k * n : (k + 1) * n + s.n_repeated] for k in numbers]
    day, second = divmod(int(s.sync), 86400)
    said = {
        "NPOL": 2 * len(s.samples) if len(s.samples) == 2 else 1,
        "TBIN": _decimal(1 / Fraction(night.rate_hz)),
        "OVERLAP": s.n_repeated,
        "PKTSIZE": None,
        "PIPERBLK": n,
        "STT_IMJD": day + 40587,
        "STT_SMJD": second,
        "STT_OFFS": _decimal(s.sync % 1),
        "TELESCOP": s.name,
        **_band(night, s, "OBSFREQ", "OBSBW"),
    }
    makers.guppi(path, blocks, [s.first + k * n for k in numbers], said)
    return path, {"channel": s.n_channels - 1} if s.n_channels > 1 else {}


def _among(night: Night, s: Station) -> np.ndarray:
    """int8 [time, channel, polarisation, part]: the wanted channel is the last one, the others hold noise."""
    parts = np.stack([s.samples.real, s.samples.imag], axis=-1) if s.is_complex else s.samples[..., np.newaxis]
    rng = np.random.default_rng(night.seed)
    data = rng.integers(-99, 99, (s.n, s.n_channels, len(parts), parts.shape[-1]), dtype=np.int8)
    data[:, -1] = parts.transpose(1, 0, 2)
    return data


def _band(night: Night, s: Station, centre: str, width: str) -> dict[str, str]:
    """The centre and the width of all channels, MHz, such that the last one lies about the centre that is wanted."""
    sense = -1 if s.falls else 1
    one = Fraction(night.rate_hz) / (1 if s.is_complex else 2) * sense
    middle = Fraction(night.centre_hz) - one * Fraction(s.n_channels - 1, 2)
    return {centre: _decimal(middle / 10**6), width: _decimal(one * s.n_channels / 10**6)}


def _decimal(value: Fraction) -> str:
    return time_text(value)
