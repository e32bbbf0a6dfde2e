"""Antennas that are late, and dumps shorter than a chunk: by default an X-engine loses nothing of them.

Nothing here has a pace: how late a heap is, is how many heaps of other antennas come before it.
"""

import socket
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import spead2
import spead2.send

from autotune.engines.jobs.running import Running
from autotune.engines.service.x_service import XService, x_service_settings

from ...waiting import wait_until
from ..network.plain_spead import FENG_ID, FENG_RAW, FREQUENCY, TIMESTAMP, data_heap, stop_heap
from ..network.ports import free_ports
from .air import dumps
from .in_process import InProcess, running

C, SPECTRA, STEP = 64, 8, 128
HEAP = SPECTRA * STEP  # samples
RATE_HZ = 1e6
FIRST, N_HEAPS, N_FIRST = 800, 160, 7  # live streams begin with the 8th heap
UNDER_WAY = 40  # heaps that the kernel may hold


def voltages(antenna: int, heap: int) -> np.ndarray:
    """int8 [C, SPECTRA, 2, 2]."""
    return np.random.default_rng([antenna, heap]).integers(-20, 21, (C, SPECTRA, 2, 2)).astype(np.int8)


def sent(port: int, late: tuple[int, ...], service: InProcess) -> int:
    """Sends N_HEAPS heaps of each antenna, each as many heaps later as ``late`` says; returns how many. All stop."""
    config = spead2.send.StreamConfig(max_packet_size=8264, max_heaps=64)
    stream = spead2.send.UdpStream(spead2.ThreadPool(1), [("127.0.0.1", port)], config)
    n, n_antennas = 0, len(late)
    for turn in range(N_HEAPS + max(late)):
        for antenna, behind in enumerate(late):
            heap = FIRST + turn - behind
            if 0 <= heap - FIRST < N_HEAPS:
                ids = {TIMESTAMP: heap * HEAP, FENG_ID: antenna, FREQUENCY: 0}
                number = antenna + n_antennas * heap
                stream.send_heap(data_heap(ids, FENG_RAW, voltages(antenna, heap)), cnt=number)
                n += 1
        wait_until(lambda: service.received("heaps") > n - UNDER_WAY, lambda: service.told)  # noqa: B023
    for antenna in range(n_antennas):
        stream.send_heap(stop_heap(), cnt=antenna + n_antennas * (FIRST + N_HEAPS))
    return n


@pytest.fixture
def port() -> Iterator[int]:
    yield free_ports(1, socket.SOCK_DGRAM)[0]


def x_service(folder: Path, port: int, n_antennas: int, to: str, more: str = "") -> XService:
    path = folder / "x.toml"
    path.write_text(
        f"antennas = {[f'm{antenna}' for antenna in range(n_antennas)]}\nchannels = {C}\nspectra_per_heap = {SPECTRA}\n"
        f'sample_rate_hz = {RATE_HZ}\n{more}from.listen = "127.0.0.1:{port}"\nto = {{ {to} }}\n'
    )
    return XService(x_service_settings(path), Running(device="host"), lambda line: None)


@pytest.mark.parametrize("late", [(0, 48), (48, 0), (0, 190)])
def test_an_antenna_that_is_late_loses_nothing_within_the_window(
    tmp_path: Path, port: int, late: tuple[int, int]
) -> None:
    """A heap is 1.024 ms, so 190 heaps are 0.19 s, and a chunk has 8."""
    per_dump = 4
    serving = x_service(tmp_path, port, 2, 'file = "vis.h5"', f"accumulate = {per_dump}\n")
    with running(serving, once=True) as service:
        n = sent(port, late, service)
        assert service.ends() == 0
        assert service.received() == n - N_FIRST and service.received("too_old") == 0
        assert service.made()["chunks_dropped"] == service.made()["dumps_dropped"] == 0
    found = dumps(tmp_path / "vis.h5")
    assert len(found) >= N_HEAPS // per_dump - 2
    for time, (visibilities, present) in found.items():
        first = time // HEAP
        lacks = late.index(0) if first < FIRST + N_FIRST + 1 else None  # whose first heaps were not believed
        assert present.tolist() == [antenna != lacks for antenna in range(2)]
        a = np.concatenate([voltages(1, heap) for heap in range(first, first + per_dump)], axis=1).astype(np.int64)
        if present[1]:
            power = (a[:, :, 0, :] ** 2).sum(axis=(1, 2))
            assert np.array_equal(visibilities[:, 2, 0, 0], power)


@pytest.mark.parametrize("per_dump", [1, 2, 5, 8])
def test_dumps_shorter_than_a_chunk_all_leave(tmp_path: Path, port: int, per_dump: int) -> None:
    """All come at once, when the senders stop, and leave with the pace of the stream."""
    (to,) = free_ports(1, socket.SOCK_DGRAM)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there:
        there.bind(("127.0.0.1", to))
        serving = x_service(tmp_path, port, 1, f'endpoints = "127.0.0.1:{to}"', f"accumulate = {per_dump}\n")
        with running(serving, once=True) as service:
            sent(port, (0,), service)
            assert service.ends() == 0
            n_whole = (FIRST + N_HEAPS) // per_dump - -(-(FIRST + N_FIRST) // per_dump)
            assert (service.made()["dumps_out"], service.made()["dumps_dropped"]) == (n_whole, 0)


def test_windows_follow_from_the_settings(tmp_path: Path, port: int) -> None:
    def kept(more: str) -> tuple[int, int]:
        serving = x_service(tmp_path, port, 1, 'file = "x.h5"', f"accumulate = 4\n{more}")
        source = serving._source()
        return source.n_kept(serving._settings.of_engine.chunk_shape), serving._n_waiting

    assert kept("") == (38, 80)  # 0.3 s are 293 heaps, in 37 chunks of 8 and the newest one
    assert kept("reorder_s = 0.0\n") == (2, 8)
    assert kept("batches_per_chunk = 512\n") == (2, 386)
    assert kept("burst = 9\n") == (38, 9)
