"""A live F-engine whose thread is held for a moment: buffers that last as long lose nothing, others whole chunks."""

import socket
import threading
import time
from typing import Any

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output
from autotune.engines.f.engine import FEngine
from autotune.engines.f.filters import prototype
from autotune.engines.f.input import N_CHUNKS
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.received import ReceivedSamples
from autotune.engines.network.receiver import Listening
from autotune.engines.network.sample_outlet import SampleOutlet
from autotune.engines.run import stream_progress
from autotune.engines.run.counters import FCounters
from autotune.engines.streams.in_memory import ArraySource, KeptVoltages
from autotune.engines.streams.samples import SampleInfo

from .ports import free_ports

C, HEAP, PACKET, N_PACKETS, BURST = 64, 4, 256, 2400, 4
INFO = SampleInfo(8, 2, 1.024e6, PACKET)  # 4 packets last 1 ms, so all of them 0.6 s
HEAP_SAMPLES = 2 * C * HEAP
HELD_S, HELD_AFTER_S = 0.06, 0.15


def made_of(source: Any, chunk: int, report: Any) -> tuple[KeptVoltages, FEngine]:
    backend, sink = HostBackend(), KeptVoltages()
    band = BandSettings(
        C, prototype(C, 4), 8, HEAP, chunk * PACKET // HEAP_SAMPLES, max_delay_diff=256, whole_heaps=True
    )
    output = Output(band, sink, [DelayModel(), DelayModel()], Gains(C, 2, 0.05))
    return sink, FEngine(backend, source, [output], chunk, Kernels(backend, lambda line: None), report=report)


def send(outlet: SampleOutlet, samples: np.ndarray) -> None:
    """Send everything, never faster than it was sampled, so that a sender that was late does not hurry."""
    for first in range(0, N_PACKETS, BURST):
        numbers = np.arange(first, first + BURST)
        for pol in range(2):
            payload = samples[pol, first * PACKET : (first + BURST) * PACKET].reshape(BURST, PACKET)
            outlet.send(pol, outlet.packets(numbers * PACKET, pol, payload, np.zeros(BURST, np.int64)), numbers)
        time.sleep(BURST * PACKET / INFO.sample_rate_hz)
    outlet.close()


def held_once(chunk: int) -> tuple[FCounters, KeptVoltages, KeptVoltages]:
    """The counters and the heaps of an engine by UDP, and heaps as they are without a network."""
    samples = np.random.default_rng(1).integers(0, 256, (2, N_PACKETS * PACKET), dtype=np.uint8)
    expected, offline = made_of(ArraySource(samples, INFO), 400, lambda line: None)
    offline.run()
    places = [[Endpoint("127.0.0.1", port)] for port in free_ports(2, socket.SOCK_DGRAM)]
    source, n_held = ReceivedSamples(INFO, Listening(places), confirm=1), list[str]()

    def hold(line: str) -> None:
        if not n_held:
            time.sleep(HELD_S)
        n_held.append(line)

    sink, engine = made_of(source, chunk, hold)
    sender = threading.Thread(target=send, args=(SampleOutlet(INFO, "udp", places), samples), daemon=True)
    sender.start()
    (counters,) = engine.run()
    sender.join(10)
    source.close()
    assert n_held and source.receiver is not None and source.receiver.counts["kernel_drops"] == 0
    assert counters.samples_in + counters.chunks_dropped * chunk * PACKET == N_PACKETS * PACKET
    times = expected.timestamps.tolist()
    same = [times.index(found) for found in sink.timestamps.tolist()]
    assert np.array_equal(sink.voltages, expected.voltages[same])
    return counters, sink, expected


@pytest.mark.parametrize(("chunk_s", "is_enough"), [(0.1, True), (0.005, False)])
def test_an_engine_that_is_held_drops_chunks_only_where_its_buffers_are_too_short(
    monkeypatch: pytest.MonkeyPatch, chunk_s: float, is_enough: bool
) -> None:
    monkeypatch.setattr(stream_progress, "REPORT_S", HELD_AFTER_S)
    assert (N_CHUNKS * chunk_s > HELD_S) == is_enough
    counters, sink, expected = held_once(round(chunk_s * INFO.sample_rate_hz / PACKET))
    assert (counters.chunks_dropped == 0) == is_enough
    assert (counters.heaps_missing == 0) == is_enough
    assert (len(sink.timestamps) == len(expected.timestamps)) == is_enough
    assert counters.heaps_out + counters.heaps_missing + counters.heaps_dropped <= len(expected.timestamps)
