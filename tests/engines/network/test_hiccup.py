"""A live F-engine whose thread is held for a moment: buffers that last as long lose nothing, others whole chunks."""

import socket
import threading
from typing import Any

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output
from autotune.engines.f.engine import FEngine
from autotune.engines.f.filters import prototype
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.received import ReceivedSamples
from autotune.engines.network.receiver import Listening
from autotune.engines.network.sample_outlet import SampleOutlet
from autotune.engines.run import stream_progress
from autotune.engines.run.counters import FCounters
from autotune.engines.run.lent_chunks import N_CHUNKS
from autotune.engines.streams.in_memory import ArraySource, KeptVoltages
from autotune.engines.streams.samples import SampleInfo

from ...waiting import wait_until
from .ports import free_ports

C, HEAP, PACKET, N_PACKETS, BURST = 64, 4, 256, 2400, 20
INFO = SampleInfo(8, 2, 1.024e6, PACKET)
HEAP_SAMPLES = 2 * C * HEAP
N_HELD = 240  # packets that are sent while the engine is held
AHEAD = 4  # chunks that are sent before the engine has taken the first: receivers build 3 at once


def made_of(source: Any, chunk: int, report: Any) -> tuple[KeptVoltages, FEngine]:
    backend, sink = HostBackend(), KeptVoltages()
    band = BandSettings(
        C, prototype(C, 4), 8, HEAP, chunk * PACKET // HEAP_SAMPLES, max_delay_diff=256, whole_heaps=True
    )
    output = Output(band, sink, [DelayModel(), DelayModel()], Gains(C, 2, 0.05))
    return sink, FEngine(backend, source, [output], chunk, Kernels(backend, lambda line: None), report=report)


class Hiccup:
    """Sends as fast as an engine takes what is sent, and holds the engine once, while it sends N_HELD packets."""

    def __init__(self, source: ReceivedSamples, chunk: int, drops: bool) -> None:
        self._source, self._chunk, self._drops = source, chunk, drops
        self._n_sent, self._free_until = 0, 0
        self.counters = FCounters(INFO.sample_bits, INFO.n_pols)  # the engine's, when it is made

    def send(self, outlet: SampleOutlet, samples: np.ndarray) -> None:
        """Send everything. No socket has to hold more than a burst."""
        for first in range(0, N_PACKETS, BURST):
            wait_until(lambda first=first: first < max(self._free_until, self._n_taken() + AHEAD * self._chunk))  # type: ignore[misc]
            numbers = np.arange(first, first + BURST)
            for pol in range(2):
                payload = samples[pol, first * PACKET : (first + BURST) * PACKET].reshape(BURST, PACKET)
                outlet.send(pol, outlet.packets(numbers * PACKET, pol, payload, np.zeros(BURST, np.int64)), numbers)
            wait_until(lambda first=first: self._n_received() >= first + BURST)  # type: ignore[misc]
            self._n_sent = first + BURST
        outlet.close()

    def hold(self, line: str) -> None:
        """Takes the engine's time, once. Where chunks should be dropped, it lasts until one is."""
        if not self._free_until:
            self._free_until = self._n_sent + N_HELD
            wait_until(lambda: self._n_sent >= self._free_until)
            wait_until(lambda: self.counters.chunks_dropped > 0 or not self._drops)

    def _n_taken(self) -> int:
        return self.counters.samples_in // PACKET + self.counters.chunks_dropped * self._chunk

    def _n_received(self) -> int:
        """Returns of how many packets of each polarisation the receiver has read the socket."""
        receiver = self._source.receiver
        return 0 if receiver is None else min(stream.stats["packets"] for stream in receiver._group)


def held_once(chunk: int, drops: bool) -> tuple[FCounters, KeptVoltages, KeptVoltages]:
    """The counters and the heaps of an engine by UDP, and heaps as they are without a network."""
    samples = np.random.default_rng(1).integers(0, 256, (2, N_PACKETS * PACKET), dtype=np.uint8)
    expected, offline = made_of(ArraySource(samples, INFO), 400, lambda line: None)
    offline.run()
    places = [[Endpoint("127.0.0.1", port)] for port in free_ports(2, socket.SOCK_DGRAM)]
    source = ReceivedSamples(INFO, Listening(places), confirm=1)
    hiccup = Hiccup(source, chunk, drops)
    sink, engine = made_of(source, chunk, hiccup.hold)
    (hiccup.counters,) = engine.counters
    sender = threading.Thread(target=hiccup.send, args=(SampleOutlet(INFO, "udp", places), samples), daemon=True)
    sender.start()
    (counters,) = engine.run()
    sender.join()
    source.close()
    assert source.receiver is not None and source.receiver.counts["kernel_drops"] == 0
    assert counters.samples_in + counters.chunks_dropped * chunk * PACKET == N_PACKETS * PACKET
    times = expected.timestamps.tolist()
    same = [times.index(found) for found in sink.timestamps.tolist()]
    assert np.array_equal(sink.voltages, expected.voltages[same])
    return counters, sink, expected


@pytest.mark.parametrize(("chunk", "is_enough"), [(400, True), (20, False)])
def test_an_engine_that_is_held_drops_chunks_only_where_its_buffers_are_too_short(
    monkeypatch: pytest.MonkeyPatch, chunk: int, is_enough: bool
) -> None:
    monkeypatch.setattr(stream_progress, "REPORT_S", 0.0)
    assert (N_CHUNKS * chunk > N_HELD) == is_enough
    counters, sink, expected = held_once(chunk, drops=not is_enough)
    assert (counters.chunks_dropped == 0) == is_enough
    assert (counters.heaps_missing == 0) == is_enough
    assert (len(sink.timestamps) == len(expected.timestamps)) == is_enough
    assert counters.heaps_out + counters.heaps_missing + counters.heaps_dropped <= len(expected.timestamps)
