"""Processes of `autotune dsim`, `fengine` and `xengine` on loopback, and what engines without a network make."""

import json
import re
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from autotune.engines.digitiser.digitiser_settings import digitiser_settings
from autotune.engines.digitiser.digitiser_source import DigitiserSource
from autotune.engines.files.formats.hdf5_visibilities import VisibilityDumps
from autotune.engines.files.toml import read_toml
from autotune.engines.jobs import Bands, CorrelateResult, Running, correlate

from ...family import open_files
from ...forked import Command
from ...waiting import DEADLINE_S, wait_until
from ..network.ports import free_ports

BEGIN_S = 1.5  # in which processes of digitisers have started, unless those of engines took longer
C, PACKET, HEAP, CHUNK, PER_DUMP = 128, 1024, 64, 1 << 15, 2
RATE_HZ = 4e6
GAIN = 0.02
DUMP = PER_DUMP * HEAP * 2 * C  # samples


class Process:
    """A command of autotune, whose lines on stderr are read while it runs."""

    def __init__(self, *arguments: object) -> None:
        self._process = Command(*arguments)
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._process.stderr:
            self.lines.append(line.rstrip())

    def waits_for(self, text: str, n: int = 1) -> "Process":
        """Wait until the n-th line with a text."""
        return self.waits_until(lambda: sum(text in line for line in list(self.lines)) >= n)

    def waits_until(self, holds: Callable[[], bool]) -> "Process":
        """Wait until something holds, which comes to hold while it runs."""
        wait_until(lambda: holds() or self._process.poll() is not None, lambda: (self.lines, self._sockets))
        if self._process.poll() is not None:
            self._thread.join()  # its last lines
        assert holds(), (self._process.poll(), self.lines)
        return self

    def told(self, what: str) -> int:
        """Returns the number in front of a text in the newest line that has it; 0: none has."""
        found = [match for line in list(self.lines) if (match := re.search(rf"(\d+) {what}", line))]
        return int(found[-1][1]) if found else 0

    def makes(self, n: int) -> "Process":
        """Wait until it has made n more heaps or dumps than it has now."""
        least = self.told("(?:heaps|dumps) out") + n
        return self.waits_until(lambda: self.told("(?:heaps|dumps) out") >= least)

    def limit(self, n_bytes: int) -> None:
        """Let no file grow beyond so many bytes from now on, as on a full disk."""
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (n_bytes, n_bytes))

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ends(self) -> int:
        """Returns the status with which it ends."""
        try:
            self._process.wait(DEADLINE_S)  # it writes less than a pipe holds
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(self.lines) from None
        self.out = self._process.stdout.read()
        self._thread.join()
        return self._process.wait()

    def counts(self) -> dict[str, Any]:
        """Returns what it has counted, in JSON, when it has ended."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def n_descriptors(self) -> int:
        """Returns how many it has open, but for counts of the kernel, which each line of status reads."""
        return sum(not link.startswith("/proc/") for link in self._descriptors())

    @property
    def listens_at(self) -> set[str]:
        """Where it has a socket of TCP that takes connections, or any of UDP: protocol, address and port, in hex."""
        waiting = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}
        return {f"{protocol} {local}" for protocol, local, _, state in self._sockets if state == waiting[protocol]}

    @property
    def _sockets(self) -> list[tuple[str, str, str, str]]:
        """Its sockets: protocol, own address, the other end's address, and state, in hex."""
        own = {link[8:-1] for link in self._descriptors() if link.startswith("socket:[")}
        found = []
        for protocol in ("tcp", "tcp6", "udp", "udp6"):
            rows = [line.split() for line in Path(f"/proc/net/{protocol}").read_text().splitlines()[1:]]
            found += [(protocol, *row[1:4]) for row in rows if row[9] in own]
        return found

    def _descriptors(self) -> list[str]:
        return open_files(self._process.pid)


def line_of_live(is_live: bool | None) -> str:
    return "" if is_live is None else f"live = {str(is_live).lower()}\n"


@dataclass
class Air:
    """Antennas whose samples go over the network to F-engines, and their voltages to an X-engine."""

    folder: Path
    transport: str = "tcp"
    n_antennas: int = 2
    n_samples: int | None = 1 << 19
    faults: Mapping[str, float] = field(default_factory=dict)
    speed: float = 1.0
    f_more: str = ""  # lines of an F-engine's file
    x_to: Sequence[str] = ('file = "vis.h5"',)
    f_live: bool | None = None
    x_live: bool | None = None
    gains: float | None = GAIN
    started: list[Process] = field(default_factory=list)
    start_s: float = 0.0  # how long the engines took to listen

    def __post_init__(self) -> None:
        kind = socket.SOCK_STREAM if self.transport == "tcp" else socket.SOCK_DGRAM
        ports = free_ports(3 * self.n_antennas, kind)
        self.sample_ports = [ports[2 * a : 2 * a + 2] for a in range(self.n_antennas)]
        self.voltage_ports = ports[2 * self.n_antennas :]
        for antenna in range(self.n_antennas):
            self.write_dsim(antenna)
            self.write_f(antenna)
        self.write_x()

    def digitiser(self, antenna: int, first: int = 0) -> str:
        fault_lines = "".join(f"{name} = {value}\n" for name, value in self.faults.items())
        return (
            f"sample_rate_hz = {RATE_HZ}\npacket = {PACKET}\nfirst_timestamp = {first}\ndither = {antenna}\n"
            f'signals = ["noise(0.1, seed=7) + noise(0.1, seed={antenna})", "noise(0.2, seed={antenna + 10})"]\n'
            + (f"[faults]\nseed = {antenna}\n{fault_lines}" if self.faults else "")
        )

    def write_dsim(
        self, antenna: int, first: int = 0, ports: Sequence[int] | None = None, zero_s: float | None = None
    ) -> Path:
        path = self.folder / f"dsim{antenna}.toml"
        zero = "" if zero_s is None else f"sync_time_unix = {zero_s}\n"
        n = "" if self.n_samples is None else f"n_samples = {self.n_samples}\n"
        path.write_text(
            f"speed = {self.speed}\n{n}{zero}{self.digitiser(antenna, first)}[to]\n"
            f'transport = "{self.transport}"\nendpoints = {places(ports or self.sample_ports[antenna])}\n'
        )
        return path

    def write_f(self, antenna: int) -> Path:
        path = self.folder / f"f{antenna}.toml"
        live = line_of_live(self.f_live)
        gains = "" if self.gains is None else f"gains = {self.gains}\n"
        path.write_text(
            f'antenna = "m{antenna}"\nfeng_id = {antenna}\nn_antennas = {self.n_antennas}\nchunk = {CHUNK}\n'
            f"sample_rate_hz = {RATE_HZ}\npacket = {PACKET}\n{self.f_more}[from]\n"
            f'listen = {places(self.sample_ports[antenna])}\ntransport = "{self.transport}"\n{live}'
            f"[[to]]\nchannels = {C}\ntaps = 4\nspectra_per_heap = {HEAP}\n{gains}"
            f'endpoints = "127.0.0.1:{self.voltage_ports[antenna]}"\ntransport = "{self.transport}"\n'
        )
        return path

    def write_x(self) -> Path:
        path = self.folder / "x.toml"
        names = [f"m{antenna}" for antenna in range(self.n_antennas)]
        path.write_text(
            f"antennas = {names}\nchannels = {C}\nspectra_per_heap = {HEAP}\nsample_rate_hz = {RATE_HZ}\n"
            f"accumulate = {PER_DUMP}\nbatches_per_chunk = 2\nreorder_s = 0.0\n[from]\n"
            f'listen = {places(self.voltage_ports)}\ntransport = "{self.transport}"\n{line_of_live(self.x_live)}'
            + "".join(f"[[to]]\n{each}\n" for each in self.x_to)
        )
        return path

    def start(self, command: str, config: Path, *more: object) -> Process:
        device = () if command == "dsim" else ("--device", "host")
        process = Process(command, config, "--json", "--status", 0.2, *device, *more)
        self.started.append(process)
        return process

    def f(self, antenna: int, *more: object) -> Process:
        return self.start("fengine", self.folder / f"f{antenna}.toml", *more)

    def x(self, *more: object) -> Process:
        return self.start("xengine", self.folder / "x.toml", *more)

    def dsim(self, antenna: int, *more: object) -> Process:
        return self.start("dsim", self.folder / f"dsim{antenna}.toml", *more)

    def dsims(self, *antennas: int) -> list[Process]:
        """Returns digitisers of these antennas that begin at one time: an X-engine waits for none of them."""
        zero_s = time.time() + max(BEGIN_S, self.start_s)
        for antenna in antennas:
            self.write_dsim(antenna, zero_s=zero_s)
        return [self.dsim(antenna) for antenna in antennas]

    def engines(self, *more: object) -> tuple[list[Process], Process]:
        """Returns F-engines and the X-engine, which listen."""
        began = time.monotonic()
        x = self.x(*more)
        fs = [self.f(antenna, *more) for antenna in range(self.n_antennas)]
        for each in (x, *fs):
            each.waits_for("heaps are received at")
        self.start_s = time.monotonic() - began
        return fs, x

    def offline(self, n_samples: int | None = None, first: int = 0) -> CorrelateResult:
        """Returns what engines without a network make of the same samples, lost packets among them."""
        sources = []
        for antenna in range(self.n_antennas):
            path = self.folder / "digitiser.toml"
            path.write_text(self.digitiser(antenna, first))
            settings = digitiser_settings(path, read_toml(path, 1 << 16))
            info = settings.info(n_samples or self.n_samples, f"m{antenna}")
            sources.append(DigitiserSource(settings.packets(), info, settings.faults))
        bands = Bands(C, taps=4, spectra_per_heap=HEAP, gains=GAIN)
        running = Running(device="host", chunk=CHUNK)
        return correlate(sources, bands, accumulate=PER_DUMP, complete_dumps=True, running=running)


def dumps(path: Path) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Returns (visibilities, which antennas are present) of a file by the time of the dump."""
    file = VisibilityDumps(path)
    try:
        return {dump.timestamp: (dump.visibilities, dump.present) for dump in file}
    finally:
        file.close()


def compare(found: Mapping[int, tuple[np.ndarray, np.ndarray]], expected: CorrelateResult) -> int:
    """Returns how many dumps are the same, which all are that were found; a dump may lack antennas besides."""
    times = {int(t): place for place, t in enumerate(expected.timestamps)}
    for time_of, (visibilities, present) in found.items():
        place = times[time_of]
        assert not (present & ~expected.present[place]).any()
        n = len(present)
        pairs = [(j, i) for j in range(n) for i in range(j + 1)]
        for baseline, (j, i) in enumerate(pairs):
            if present[i] and present[j]:
                assert np.array_equal(visibilities[:, baseline], expected.visibilities[place][:, baseline])
            else:
                assert (visibilities[:, baseline] == (-(2**31), 1)).all()
    return len(found)


def n_right(air: Air, first: int = 0, end: int = 1 << 62) -> int:
    """Returns how many dumps of the times from ``first`` to ``end`` all files have; each of them is right."""
    found = {}
    for path in sorted(air.folder.glob("vis*.h5")):
        found |= {t: dump for t, dump in dumps(path).items() if first <= t < end}
    if not found:
        return 0
    return compare(found, air.offline(max(found) - first + 3 * DUMP, first))


def stop(*processes: Process) -> None:
    """End processes as they are told to, all at once, each with status 0."""
    for process in processes:
        process.send(signal.SIGTERM)
    for process in processes:
        assert process.ends() == 0, process.lines


def places(ports: Sequence[int]) -> list[str]:
    return [f"127.0.0.1:{port}" for port in ports]


@contextmanager
def ended(air: Air) -> Iterator[Air]:
    """Kill at the end what runs then."""
    try:
        yield air
    finally:
        for process in air.started:
            process.kill()
