"""python -m tests.paths: each option of each command that takes a path gets paths that are wrong or somebody's.

No traceback, an end, at most MOST_S seconds of CPU, which the load of the machine does not change, no more memory than
a right path takes and MOST_MORE bytes, an exit status that the pages state, and what is somebody's stays as it is. The
suite draws some of them (test_paths.py).
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import typing
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import typer

from autotune.cli.program import app

from .forked import Command
from .host_files import with_host_files

MOST_S, MOST_MORE = 10.0, 100 << 20
DEADLINE_S = 60.0  # of what waits for ever
STATUSES = (0, 1, 2)
BOMB_BYTES = 10 << 30
MINE = "my own work\n"
KERNEL = """
extern "C" __global__ void scale(float *y, const float *x, float factor, int n) {
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
"""
EXAMPLE = (Path(__file__).resolve().parents[1] / "docs" / "example" / "sky.toml").read_text()
SKY = re.sub(r"n_antennas = \d+", "n_antennas = 2", re.sub(r"n_samples = \d+", "n_samples = 81920", EXAMPLE))
LISTED = 'kernel = "dequantize"\n[grid]\nn_beams = [1]\nn_freqs = [5]\n[sweep]\ntrials = 2\n'
ARGUMENTS = "--arg y=zeros:float32:64 --arg x=zeros:float32:64 --arg factor=1.0 --arg n=64"
TUNE = f"tune k.cu --kernel scale --size 64 {ARGUMENTS} --param block_size_x=64 --device simulated --trials 2"
ENGINE = "--channels 64 --spectra-per-heap 16 --device host"
# command -> words that end well within seconds; {results} and others are made before
RIGHT: Mapping[str, str] = {
    "list": "list --kernel dequantize",
    "render": "render --kernel dequantize",
    "new": "new thing --out fresh",
    "verify": "verify --kernel dequantize --device simulated --sample 1",
    "sweep": "sweep --kernel dequantize --device simulated --trials 2 --results fresh",
    "tune": f"{TUNE} --results fresh",
    "campaign": "campaign list.toml --device simulated --results fresh",
    "worker": "worker tls://127.0.0.1:9 --tls-ca k.cu --tls-cert k.cu --tls-key k.cu --device simulated",
    "show": "show results",
    "report": "report results --out fresh.html",
    "compare": "compare results results",
    "export": "export results --out fresh.csv",
    "emit": "emit results --out fresh",
    "digest": "digest results",
    "pack": "pack results",
    "portfolio": "portfolio results",
    "sky": "sky sky.toml --out fresh",
    "channelise": f"channelise night/m000.toml {ENGINE} --out fresh.h5",
    "correlate": f"correlate night {ENGINE} --accumulate 4 --out fresh.h5",
    "array": "array night --out fresh.toml",
    "dsim": "dsim k.cu",
    "fengine": "fengine k.cu --device host --once",
    "xengine": "xengine k.cu --device host --once",
    "lookup": "lookup tuned --kernel dequantize --device simulated",
}
MADE = (
    "sweep --kernel dequantize --device simulated --trials 12 --results results",
    "emit results --out tuned",
    "sky sky.toml --out night",
)
TEXTS = {"kernel": "--kernel", "package": "--package"}  # options of text that also take a path
MORE = {("tune", "--arg"): "y={}", ("tune", "--answer"): "y={}"}  # a path is a part of their value
SUFFIX = {"--out": ".h5", "--plot": ".png", "--gains": ".npz", "--arg": ".npy", "--answer": ".npy", "--kernel": ".py"}
KINDS = "pipe", "folder", "in a missing folder", "somebody's", "bytes", "newline", "bomb", "full"


@dataclass(frozen=True)
class Door:
    """An option, or an argument, that takes a path."""

    command: str
    option: str  # "" for an argument
    place: int = 0  # of an argument: its number


def doors() -> list[Door]:
    """Returns all of them, as the commands declare them."""
    found = []
    for command, about in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        hints = typing.get_type_hints(about.callback)
        place = 0
        for parameter in about.params:
            is_argument = not parameter.opts[0].startswith("-")
            if "Path" in str(hints.get(parameter.name)) or parameter.name in TEXTS:
                found.append(Door(command, "" if is_argument else parameter.opts[0], place))
            place += is_argument
    return [*found, *(Door(*each) for each in MORE)]


def words_of(door: Door, path: str) -> list[str]:
    """Returns the right words of a command with ``path`` at a door."""
    words = RIGHT[door.command].split()
    value = MORE.get((door.command, door.option), "{}").format(path)
    if door.option and door.option in words and (door.command, door.option) not in MORE:
        at = words.index(door.option) + 1
        return [*words[:at], value, *words[at + 1 :]]
    if door.option:
        return [*words, door.option, value]
    return [*words[: 1 + door.place], value, *words[2 + door.place :]]


class Place:
    """A folder with right and wrong files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        own = {"AUTOTUNE_CACHE_DIR": str(with_host_files(root / "cache")), "AUTOTUNE_LOCK_DIR": str(root / "locks")}
        self.environment = {**os.environ, **own}
        (root / "k.cu").write_text(KERNEL)
        (root / "list.toml").write_text(LISTED)
        (root / "sky.toml").write_text(SKY)
        (root / "bomb").write_bytes(_bomb())
        for words in MADE:
            done = self.run(words.split())
            assert done.status == 0, (words, done.told)

    def run(self, words: Sequence[str], is_alone: bool = True) -> "Ended":
        """Returns how a command ended; ``is_alone``: its interpreter starts anew, so that its memory can be told."""
        if not is_alone:
            command = Command(*words, cwd=self.root, env=self.environment)
            try:
                out, told = command.communicate(DEADLINE_S)
            except subprocess.TimeoutExpired:
                command.kill()
                return Ended(-signal.SIGKILL, 0.0, 0, "")
            return Ended(command.wait(), command.cpu_s(), 0, out + told)
        with tempfile.TemporaryFile() as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "autotune", *words],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            timer = threading.Timer(DEADLINE_S, os.killpg, (process.pid, signal.SIGKILL))
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            file.seek(0)
            text = file.read().decode(errors="replace")
        return Ended(process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, text)

    def path(self, kind: str, suffix: str) -> str:
        """Returns a wrong path, made anew."""
        at = self.root / "wrong"
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir()
        name = f"x{suffix}"
        if kind == "pipe":
            os.mkfifo(at / name)
        elif kind == "folder":
            (at / name).mkdir()
        elif kind == "in a missing folder":
            name = f"missing/{name}"
        elif kind == "somebody's":
            (at / name).write_text(MINE)
        elif kind == "bytes":
            name = os.fsdecode(b"\x80") + name
        elif kind == "newline":
            name = f"a\nb{name}"
        elif kind == "bomb":
            os.link(self.root / "bomb", at / name)
        else:
            name = f"full/{name}"
            _mount_full(at / "full")
        return f"wrong/{name}"

    def fresh(self) -> None:
        """Remove what commands have written."""
        subprocess.run(["umount", "-q", self.root / "wrong" / "full"], check=False, capture_output=True)
        for path in self.root.glob("fresh*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _bomb() -> bytes:
    """Returns a few MB of gzip that are BOMB_BYTES of zeros; what comes after them is cut off."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + block * (BOMB_BYTES >> 24)


def _mount_full(folder: Path) -> None:
    """Makes a file system of one page that is full; where none may be mounted, a folder that cannot be written."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder], check=False, capture_output=True)
    if done.returncode == 0:
        (folder / "fill").write_bytes(bytes(4096))
    else:
        folder.chmod(0o500)


@dataclass(frozen=True)
class Ended:
    status: int
    cpu_s: float
    n_bytes: int  # the most memory that it had; 0: unknown
    told: str


def faults(place: Place, door: Door, kind: str, n_right: int | None) -> Iterator[str]:
    """Yields what is wrong in how a command ends; ``n_right``: bytes of memory with right words; None: not compared."""
    place.fresh()
    path = place.path(kind, SUFFIX.get(door.option, ""))
    words = words_of(door, path)
    ended = place.run(words, is_alone=n_right is not None)
    if "Traceback (most recent call last)" in ended.told:
        yield f"a traceback: {ended.told.strip().splitlines()[-1]}"
    if ended.status == -signal.SIGKILL:
        yield f"it does not end within {DEADLINE_S:g} s"
    elif ended.cpu_s > MOST_S:
        yield f"it takes {ended.cpu_s:.0f} s of CPU"
    elif ended.status not in STATUSES:
        yield f"exit status {ended.status}: {ended.told[-200:]}"
    if n_right is not None and ended.n_bytes > n_right + MOST_MORE:
        yield f"{ended.n_bytes >> 20} MB of memory, with a right path {n_right >> 20}"
    if kind == "somebody's" and (place.root / path).read_text() != MINE:
        yield "it has changed somebody's file"


def found(
    place: Place, drawn: Sequence[tuple[Door, str]], compared: Collection[str] = KINDS
) -> Iterator[tuple[Door, str, str]]:
    """Yields (door, kind, what is wrong). ``compared``: kinds whose memory is compared with that of right words."""
    n_right: dict[str, int] = {}
    for door, kind in drawn:
        if kind in compared and door.command not in n_right:
            place.fresh()
            n_right[door.command] = place.run(RIGHT[door.command].split()).n_bytes
        for fault in faults(place, door, kind, n_right[door.command] if kind in compared else None):
            yield door, kind, fault
    place.fresh()


def pairs(n: int | None, seed: int) -> list[tuple[Door, str]]:
    """Returns all doors with all kinds of paths, or ``n`` of them drawn by a seed, in the order of commands."""
    every = [(door, kind) for door in doors() for kind in KINDS]
    if n is None:
        return every
    chosen = set(Random(seed).sample(range(len(every)), n))
    return [pair for number, pair in enumerate(every) if number in chosen]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, help="draw so many")
    parser.add_argument("--seed", type=lambda text: int(text, 16), default=0)
    parser.add_argument("--command", help="of this command only")
    given = parser.parse_args()
    n_faults = 0
    drawn = [pair for pair in pairs(given.n, given.seed) if given.command in (None, pair[0].command)]
    with tempfile.TemporaryDirectory(prefix="autotune-paths-") as name:
        place = Place(Path(name))
        for door, kind, fault in found(place, drawn):
            n_faults += 1
            print(f"{door.command} {door.option or f'argument {door.place}'}, {kind}: {fault}", flush=True)
    print(f"{len(drawn)} paths, {n_faults} faults")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
