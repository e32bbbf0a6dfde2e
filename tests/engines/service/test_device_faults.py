"""A device, or a port, that fails beneath real engines: a new one goes on, unless that happens again and again."""

import socket
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.jobs import Bands, Running, channelise
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.sample_outlet import SampleOutlet
from autotune.engines.network.voltage_outlet import VoltageOutlet
from autotune.engines.service.f_service import FService, f_service_settings
from autotune.engines.service.run_service import GAVE_UP, STOPPED
from autotune.engines.service.x_service import XService, x_service_settings
from autotune.engines.streams.in_memory import ArraySource

from ..network.ports import free_ports
from ..stand_ins import correlate
from .air import dumps
from .in_process import running

C, HEAP, N_ANTENNAS, PER_DUMP, N_HEAPS = 32, 16, 2, 4, 64
PACKET, CHUNK, N_PACKETS = 256, 1 << 12, 512
EVERY_S = 0.004


class FaultyBackend(HostBackend):
    """The host, on which some launches fail, as they are numbered from 0 on."""

    def __init__(self, failing: Collection[int]) -> None:
        super().__init__()
        self._failing, self._number, self._lock = failing, 0, threading.Lock()

    def launcher(self, *given: Any) -> Any:
        launch = super().launcher(*given)

        def counted(*arguments: Any) -> None:
            with self._lock:
                number, self._number = self._number, self._number + 1
            if number in self._failing:
                raise RuntimeError("an illegal memory access was encountered")
            launch(*arguments)

        return counted


def faulty(failing: Collection[int]) -> Running:
    made = Running(device="host", kernels_on_host=True)  # launches are what fails
    made.__dict__["backend"] = FaultyBackend(failing)
    return made


def heaps() -> np.ndarray:
    """int8 [N_HEAPS, N_ANTENNAS, C, HEAP, 2, 2], which come again and again."""
    shape = N_HEAPS, N_ANTENNAS, C, HEAP, 2, 2
    return np.random.default_rng(4).integers(-127, 128, shape, dtype=np.int8)


@contextmanager
def sent(send: Callable[[int], None]) -> Iterator[None]:
    """Call ``send`` with 0, 1 and so on while the block runs."""
    is_over = threading.Event()

    def run() -> None:
        number = 0
        while not is_over.wait(EVERY_S):
            send(number)
            number += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def f_engines(port: int, settings: Any, made: np.ndarray) -> Callable[[int], None]:
    """What sends heaps of all antennas."""
    outlets = [
        VoltageOutlet(info, antenna, N_ANTENNAS, "udp", [Endpoint("127.0.0.1", port)], is_paced=False)
        for antenna, info in enumerate(settings.antennas)
    ]

    def send(number: int) -> None:
        for antenna, outlet in enumerate(outlets):
            some = made[number % N_HEAPS, antenna][np.newaxis]
            outlet.write(
                np.array([number * 2 * C * HEAP]), some, np.zeros((1, 2), np.uint32), np.ones((1, HEAP, 2), bool)
            )

    return send


def x_file(folder: Path, port: int) -> Path:
    path = folder / "x.toml"
    path.write_text(
        f'antennas = ["m0", "m1"]\nchannels = {C}\nspectra_per_heap = {HEAP}\nsample_rate_hz = 1e6\n'
        f"accumulate = {PER_DUMP}\nbatches_per_chunk = 2\n"
        f'[from]\nlisten = "127.0.0.1:{port}"\n[to]\nfile = "vis.h5"\n'
    )
    return path


FAILED = "the engine has failed: RuntimeError: an illegal memory access was encountered"


def test_an_x_engine_whose_device_fails_is_followed_by_one_whose_dumps_are_right(tmp_path: Path) -> None:
    (port,) = free_ports(1, socket.SOCK_DGRAM)
    settings, made = x_service_settings(x_file(tmp_path, port)), heaps()
    with running(XService(settings, faulty({6}), print)) as service, sent(f_engines(port, settings, made)):
        service.waits_for(FAILED)
        before = service.made()["dumps_out"]
        service.waits_until(lambda: service.made()["dumps_out"] >= before + 6)
        assert service.stops() == STOPPED and service.state.n_engines == 2
    n_right = 0
    for time_of, (visibilities, present) in dumps(tmp_path / "vis-2.h5").items():
        if not present.all():  # the first one may begin amid its batches
            continue
        first = time_of // (2 * C * HEAP)
        expected = np.zeros((C, 3, 4, 2), np.int64)
        correlate(made[np.arange(first, first + PER_DUMP) % N_HEAPS], expected)
        assert np.array_equal(visibilities, expected)
        n_right += 1
    assert n_right >= 5


def test_a_device_that_fails_three_times_is_given_up(tmp_path: Path) -> None:
    (port,) = free_ports(1, socket.SOCK_DGRAM)
    settings = x_service_settings(x_file(tmp_path, port))
    with running(XService(settings, faulty({6, 7, 8}), print)) as service, sent(f_engines(port, settings, heaps())):
        assert service.ends() == GAVE_UP and service.state.n_engines == 3
        assert service.told.count(FAILED) == 3


def test_a_try_to_begin_at_a_port_that_is_taken_leaves_no_file_in_the_way_of_the_next_one(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        service = XService(x_service_settings(x_file(tmp_path, taken.getsockname()[1])), faulty(()), print)
        service.open()
        with pytest.raises(UsageError, match="nothing can be received at 127"):
            service.served(0, 2)
    served = service.served(0, 2)
    served.closing.close()
    served.source.close()
    assert not list(tmp_path.glob("vis*"))  # nothing came


def digitiser(ports: Sequence[int], settings: Any, samples: np.ndarray) -> Callable[[int], None]:
    """What sends packets of both polarisations, two at a time."""
    outlet = SampleOutlet(settings.info, "udp", [[Endpoint("127.0.0.1", port)] for port in ports])

    def send(number: int) -> None:
        numbers = 2 * number + np.arange(2)
        for pol in range(2):
            payload = samples[pol].reshape(N_PACKETS, -1)[numbers % N_PACKETS]
            outlet.send(pol, outlet.packets(PACKET * numbers, pol, payload, np.zeros(2, np.int64)), numbers)

    return send


def f_file(folder: Path, ports: Sequence[int]) -> Path:
    path = folder / "f.toml"
    path.write_text(
        f"sample_rate_hz = 1e6\npacket = {PACKET}\nsample_bits = 8\nchunk = {CHUNK}\n"
        f'[from]\nlisten = ["127.0.0.1:{ports[0]}", "127.0.0.1:{ports[1]}"]\n'
        f'[to]\nchannels = {C}\ntaps = 4\nspectra_per_heap = {HEAP}\ngains = 0.05\nfile = "v.h5"\n'
    )
    return path


def test_voltages_of_an_f_engine_are_right_before_and_after_its_device_has_failed(tmp_path: Path) -> None:
    ports = free_ports(2, socket.SOCK_DGRAM)
    settings = f_service_settings(f_file(tmp_path, ports))
    samples = np.random.default_rng(6).integers(0, 256, (2, N_PACKETS * PACKET), dtype=np.uint8)
    with running(FService(settings, faulty({20}), print)) as service, sent(digitiser(ports, settings, samples)):
        service.waits_for(FAILED)
        before = service.made()["heaps_out"]
        service.waits_until(lambda: service.made()["heaps_out"] >= before + 20)
        assert service.stops() == STOPPED and service.state.n_engines == 2
    files = []
    for name in ("v.h5", "v-2.h5"):
        with h5py.File(tmp_path / name) as file:
            files.append((file["timestamps"][:].tolist(), file["voltages"][:]))
    source = ArraySource(samples, settings.info, repeats=files[-1][0][-1] // (N_PACKETS * PACKET) + 2)
    bands = Bands(C, taps=4, spectra_per_heap=HEAP, gains=0.05)
    expected = channelise(source, bands, running=Running(device="host", chunk=1 << 16))
    times = expected.timestamps.tolist()
    for found, voltages in files:
        assert len(found) > 0 and np.array_equal(voltages, expected.voltages[[times.index(each) for each in found]])
