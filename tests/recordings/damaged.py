"""Nights of which one recording is damaged: cut off, with frames twice, exchanged, or with holes.

Damage costs itself: all that is whole is in the output, weights count it, and lines and exit codes say what is lost.
"""

import io
import json
import signal
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from autotune.cli import program
from autotune.engines.files.toml import written

from .compared import expected_of, file_faults, gain_of
from .drawn import Night, Station, draw
from .written import write

WINDOW = {"vdif": 256, "guppi": 64}  # frames of a thread, or blocks, by which one may be late
MOST_NIGHTS = 200  # that are drawn for a kind of damage


@dataclass(frozen=True)
class Damaged:
    """A damaged recording: what is left of the station's samples, and the losses that must be told of it."""

    station: Station
    told: tuple[str, ...] = ()
    fails_strict: bool = False


Damage = Callable[[np.random.Generator, Night, Station, Path], Damaged | None]  # None: the recording cannot have it


# ---------------------------------------------------------------------- frames and blocks
def frames_of(station: Station, path: Path) -> list[bytes]:
    """Returns the frames of a file, or the blocks with their headers, in its order."""
    data, found = path.read_bytes(), []
    while data:
        if station.kind == "vdif":
            n = 8 * (int.from_bytes(data[8:12], "little") & 0xFFFFFF)
        else:
            end = data.index(b"END".ljust(80)) + 80
            size = next(data[k : k + 80] for k in range(0, end, 80) if data[k : k + 8] == b"BLOCSIZE")
            n = end + int(size[10:30])
        found.append(data[:n])
        data = data[n:]
    return found


def pol_of(station: Station, frame: bytes) -> int | None:
    """Returns the polarisation of a VDIF frame; None for a thread that is not wanted."""
    thread = int(np.frombuffer(frame[12:16], "<u4")[0] >> 16 & 0x3FF)
    return thread if thread < len(station.samples) else None


def came_of(station: Station, blocks: np.ndarray) -> np.ndarray:
    """Returns which samples came, bool [n_pols, n], of packets [n_pols, n_packets] and what these repeat."""
    came = np.zeros_like(station.came)
    for pol, number in np.argwhere(blocks).tolist():
        came[pol, number * station.packet : (number + 1) * station.packet + station.n_repeated] = True
    return came


def blocks_of(station: Station) -> np.ndarray:
    """Returns which packets came: bool [n_pols, n_packets]."""
    return station.came[:, station.n_repeated :: station.packet][:, : station.n // station.packet].copy()


# ---------------------------------------------------------------------- kinds of damage
def doubled(rng: np.random.Generator, night: Night, station: Station, path: Path) -> Damaged | None:
    """Frames that come once more, within the window."""
    if station.kind not in WINDOW:
        return None
    frames, made = frames_of(station, path), list[tuple[float, bytes]]()
    chosen = set(rng.choice(len(frames), min(len(frames), int(rng.integers(1, 20))), replace=False).tolist())
    for place, frame in enumerate(frames):
        made.append((place, frame))
        if place in chosen:
            made.append((place + float(rng.uniform(0.1, WINDOW[station.kind] // 2)), frame))
    path.write_bytes(b"".join(frame for _, frame in sorted(made, key=lambda each: each[0])))
    is_wanted = station.kind == "guppi" or any(pol_of(station, frames[k]) is not None for k in chosen)
    return Damaged(station, ("doubles",) * is_wanted)


def exchanged(rng: np.random.Generator, night: Night, station: Station, path: Path) -> Damaged | None:
    """Frames in another order, within the window."""
    if station.kind not in WINDOW:
        return None
    frames = frames_of(station, path)
    late = rng.uniform(0, WINDOW[station.kind] // 2, len(frames)) * (rng.uniform(size=len(frames)) < rng.uniform())
    order = np.argsort(np.arange(len(frames)) + late, kind="stable")
    path.write_bytes(b"".join(frames[k] for k in order.tolist()))
    return Damaged(station)


def with_holes(rng: np.random.Generator, night: Night, station: Station, path: Path) -> Damaged | None:
    """Frames that are not there. The first and the last ones are."""
    if station.kind not in WINDOW:
        return None
    blocks, n = blocks_of(station), station.n // station.packet
    kept = rng.uniform(size=(1 if station.kind == "guppi" else len(blocks), n)) < rng.uniform(0.3, 1)
    kept[:, [0, n - 1]] = True
    left = replace(station, came=came_of(station, blocks & kept))
    write(replace(night, stations=(left,)), path.parent)
    return Damaged(left)


def cut_off(rng: np.random.Generator, night: Night, station: Station, path: Path) -> Damaged | None:
    """A file that ends too early, anywhere."""
    data = path.with_suffix(".bin") if station.kind == "toml" else path
    size = data.stat().st_size
    n_bytes = int(size * rng.uniform(0.3, 1))
    made = CUT[station.kind](station, data, n_bytes)
    with data.open("r+b") as file:
        file.truncate(n_bytes)
    return made


def _shorter(station: Station, n: int, packet: int, came: np.ndarray | None = None) -> Station:
    came = station.came if came is None else came
    return replace(station, samples=station.samples[:, :n], came=came[:, :n], packet=packet)


def _cut_flat(station: Station, n: int, n_left: int) -> Damaged | None:
    """Returns samples that were cut off after ``n``. Packets are what divides both lengths; a header states one."""
    least = 8 // gcd(8, 8 if station.is_complex else station.bits)
    if station.kind == "toml":
        n = n // least * least
    whole = gcd(n, station.n) if station.kind == "toml" else n
    packet = min(4096, max(least, whole & -whole))
    if n < 8:
        return None
    is_told = station.kind == "toml" or n_left > 0
    return Damaged(_shorter(station, n, packet), ("cut off",) * is_told, is_told)


def _cut_toml(station: Station, path: Path, n_bytes: int) -> Damaged | None:
    bits = 64 if station.is_complex else station.bits
    row = -(-station.n * bits // 8)
    here = n_bytes - row * (len(station.samples) - 1)
    return _cut_flat(station, max(0, here) * 8 // bits, 1)


def _cut_dada(station: Station, path: Path, n_bytes: int) -> Damaged | None:
    sample = station.n_channels * len(station.samples) * (2 if station.is_complex else 1)
    return _cut_flat(station, *divmod(n_bytes - 4096, sample))


def _cut_guppi(station: Station, path: Path, n_bytes: int) -> Damaged | None:
    there, end = blocks_of(station)[0], 0
    blocks, more, last = np.zeros_like(there), 0, 0
    for number, frame in zip(np.flatnonzero(there).tolist(), frames_of(station, path), strict=True):
        if end + len(frame) > n_bytes:
            n_channel = (station.packet + station.n_repeated) * 2 * len(station.samples)  # bytes
            begin = end + len(frame) - n_channel  # of the wanted channel, which is the last one
            more, last = max(0, n_bytes - begin) // (2 * len(station.samples)), number * station.packet
            break
        blocks[number] = True
        end += len(frame)
    if not blocks.any():
        return None
    came = came_of(station, np.broadcast_to(blocks, (len(station.samples), len(blocks))))
    came[:, last : last + more] = came[:, last : last + more] | (more > 0)
    n = int(np.flatnonzero(came[0])[-1]) + 1
    return Damaged(_shorter(station, n, station.packet, came), ("cut off",) * (end < n_bytes), end < n_bytes)


def _cut_vdif(station: Station, path: Path, n_bytes: int) -> Damaged | None:
    there, end = blocks_of(station), 0
    came, n_seen = np.zeros_like(there), np.zeros(len(there), int)
    for frame in frames_of(station, path):
        if end + len(frame) > n_bytes:
            break
        end += len(frame)
        if (pol := pol_of(station, frame)) is not None:
            came[pol, np.flatnonzero(there[pol])[n_seen[pol]]] = True
            n_seen[pol] += 1
    if not n_seen.all():
        return None
    n = (int(np.flatnonzero(came.any(axis=0))[-1]) + 1) * station.packet
    left = _shorter(station, n, station.packet, came_of(station, came))
    return Damaged(left, ("cut off",) * (end < n_bytes), end < n_bytes)


CUT: dict[str, Callable[[Station, Path, int], Damaged | None]] = {
    "toml": _cut_toml,
    "dada": _cut_dada,
    "guppi": _cut_guppi,
    "vdif": _cut_vdif,
}
KINDS: dict[str, Damage] = {"cut off": cut_off, "twice": doubled, "exchanged": exchanged, "with holes": with_holes}


# ---------------------------------------------------------------------- the command
def typed(*words: object) -> tuple[int, str, str]:
    """Returns the exit code, stdout and stderr of a command that runs in this process."""
    out, err = io.StringIO(), io.StringIO()
    handler = signal.getsignal(signal.SIGINT)
    try:
        with mock.patch.object(sys, "argv", ["autotune", *map(str, words)]), redirect_stdout(out), redirect_stderr(err):
            program.main()
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    finally:
        signal.signal(signal.SIGINT, handler)
    raise AssertionError("a command ends by SystemExit")


def tried(seed: int, folder: Path, kind: str = "", device: str = "host") -> tuple[str, list[str]]:
    """Draws a night and damage (of ``kind``) to one of its recordings. Returns the kind, and what is wrong then."""
    rng = np.random.default_rng([seed, 66])
    kind = kind or str(rng.choice(list(KINDS)))
    for number in range(seed, seed + MOST_NIGHTS):
        (here := folder / str(number)).mkdir()
        night = draw(number)
        if len(night.stations[0].samples) < 2:
            continue
        files, hit = write(night, here), int(rng.integers(len(night.stations)))
        made = KINDS[kind](rng, night, night.stations[hit], files[hit][0])
        if made is not None:
            stations = [made.station if n == hit else each for n, each in enumerate(night.stations)]
            left = replace(night, stations=tuple(stations))
            return f"{night.stations[hit].kind} {kind}", _faults(left, files, here, made, files[hit][0], device)
    raise AssertionError(f"seed {seed}: no night may be {kind}")


def _faults(
    night: Night, files: list[tuple[Path, dict[str, Any]]], folder: Path, made: Damaged, hit: Path, device: str
) -> list[str]:
    text = ""
    for station, (path, header) in zip(night.stations, files, strict=True):
        said = {name: list(value) if isinstance(value, tuple) else value for name, value in header.items()}
        table = {"name": station.name, "files": path.name, "gains": gain_of(night, station), **said}
        text += "[[antenna]]\n" + "".join(written(*each) for each in table.items())
    (folder / "array.toml").write_text(text)
    _, expected = expected_of(night)
    bands = ["--channels", night.n_channels, "--taps", night.taps, "--spectra-per-heap", night.spectra_per_heap]
    words = ["correlate", folder / "array.toml", *bands, "--accumulate", night.accumulate, "--json", "--device", device]
    found = []
    for strict in ([], ["--strict"]):
        out = folder / f"vis{len(strict)}.h5"
        code, said_out, told = typed(*words, "--out", out, *strict)
        if not expected.values:
            if code != 2:
                found.append(f"without a dump it ends with {code}: {told}")
            continue
        if code != int(bool(strict) and made.fails_strict):
            found.append(f"{strict} ends with {code}: {told}")
            continue
        losses = [(each["what"], Path(each["file"]).stem) for each in json.loads(said_out)["losses"]]
        if sorted(losses) != sorted((what, hit.stem) for what in made.told):
            found.append(f"losses are {losses}, must be {made.told} of {hit.stem}")
        if any(what == "cut off" and "it was cut off" not in told for what in made.told):
            found.append(f"no line says that {hit.name} was cut off: {told}")
        found += file_faults(night, expected, out)
    return found
