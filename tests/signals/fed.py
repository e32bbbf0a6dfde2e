"""What is sent to engines that a signal ends: samples and voltages in real time, as packets of UDP."""

import socket
import threading
import time
from itertools import count
from types import TracebackType

import numpy as np
import spead2.send

from ..engines.network.plain_spead import (
    ADC_SAMPLES,
    DIGITISER_ID,
    DIGITISER_STATUS,
    FENG_ID,
    FENG_RAW,
    FREQUENCY,
    TIMESTAMP,
    data_heap,
)
from ..engines.network.ports import free_ports

RATE_HZ, PACKET = 4e5, 1024
CHANNELS, SPECTRA = 64, 32
FIRST = 5000  # the number of the first heap


class Fed:
    """Sends to ``sample_ports`` and ``voltage_port`` of this machine, whether or not anybody listens there."""

    def __init__(self) -> None:
        self.sample_ports = free_ports(2, socket.SOCK_DGRAM)
        (self.voltage_port,) = free_ports(1, socket.SOCK_DGRAM)
        self.silent = socket.create_server(("127.0.0.1", 0))  # which never reads
        self.nobody_port = free_ports(1, socket.SOCK_STREAM)[0]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> "Fed":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()
        self.silent.close()

    @property
    def silent_port(self) -> int:
        port: int = self.silent.getsockname()[1]
        return port

    def _send(self) -> None:
        rng = np.random.default_rng(1)
        samples = rng.integers(-60, 61, PACKET, dtype=np.int8).view(np.uint8)
        voltages = rng.integers(-40, 41, (CHANNELS, SPECTRA, 2, 2), dtype=np.int8)
        began = time.monotonic()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
            for n in count():
                if self._is_over.wait(max(0.0, began + n * PACKET / RATE_HZ - time.monotonic())):
                    return
                for pol, port in enumerate(self.sample_ports):
                    ids = {TIMESTAMP: (FIRST + n) * PACKET, DIGITISER_ID: pol, DIGITISER_STATUS: 0}
                    _to_all(to, port, data_heap(ids, ADC_SAMPLES, samples), 2 * (FIRST + n))
                if n % 4 == 0:  # a heap of voltages is as long as 4 of samples
                    ids = {TIMESTAMP: (FIRST + n // 4) * SPECTRA * 2 * CHANNELS, FENG_ID: 0, FREQUENCY: 0}
                    _to_all(to, self.voltage_port, data_heap(ids, FENG_RAW, voltages), FIRST + n // 4)

    def settings(self, kind: str, to: str) -> str:
        """Returns the file of an F-engine, an X-engine or a digitiser, which sends as the text ``to`` says."""
        if kind == "dsim":
            return f'sample_rate_hz = {RATE_HZ}\npacket = {PACKET}\nsignals = ["noise(0.1, seed=1)"]\nto = {{ {to} }}\n'
        if kind == "fengine":
            places = [f"127.0.0.1:{port}" for port in self.sample_ports]
            band = f"channels = {CHANNELS}, taps = 8, spectra_per_heap = {SPECTRA}"
            return (
                f"sample_rate_hz = {RATE_HZ}\npacket = {PACKET}\nsample_bits = 8\nchunk = {1 << 16}\n"
                f"from.listen = {places}\nto = {{ {band}, {to} }}\n"
            )
        return (
            f'antennas = ["m000"]\nchannels = {CHANNELS}\nspectra_per_heap = {SPECTRA}\nsample_rate_hz = {RATE_HZ}\n'
            f'from.listen = "127.0.0.1:{self.voltage_port}"\n{to}\n'
        )

    def cases(self) -> list[tuple[str, str]]:
        """Returns kinds with their files: sinks that are slow, absent or blocked, and files."""
        ways = {
            "a file": 'file = "v.h5"',
            "nobody": f'endpoints = "127.0.0.1:{self.nobody_port}", transport = "tcp"',
            "blocked": f'endpoints = "127.0.0.1:{self.silent_port}", transport = "tcp"',
            "udp": f'endpoints = "127.0.0.1:{self.nobody_port}"',
        }
        found = [("fengine", self.settings("fengine", to)) for to in ways.values()]
        for per_dump in (1, 2560):  # the latter are paced over 26 s
            found += [
                ("xengine", self.settings("xengine", f"accumulate = {per_dump}\nto = {{ {to} }}"))
                for to in ways.values()
            ]
        found += [("dsim", self.settings("dsim", ways[name])) for name in ("nobody", "blocked", "udp")]
        return found


def _to_all(to: socket.socket, port: int, heap: spead2.send.Heap, number: int) -> None:
    for packet in spead2.send.PacketGenerator(heap, number, 8264):
        to.sendto(packet, ("127.0.0.1", port))
