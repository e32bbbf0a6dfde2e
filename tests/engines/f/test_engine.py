"""An F-engine from memory to memory on host: threads, back-pressure, drops, errors and Ctrl-C."""

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output
from autotune.engines.f.engine import FEngine
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.kernels.choice import AUTO, Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.run.counters import FCounters
from autotune.engines.streams.in_memory import ArraySource, KeptVoltages
from autotune.engines.streams.samples import SampleInfo, Samples

from .test_band import BANKS, HEAP, PACKET, WEIGHTS, C, L, heaps_of

pytestmark = pytest.mark.quick

INFO = SampleInfo(10, 2, 1e6, PACKET, first_timestamp=(1 << 44) + 3)
SETTINGS = BandSettings(C, WEIGHTS, 8, HEAP, heaps_per_batch=2, max_delay_diff=200)
N_PACKETS = 96


def packed(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (2, N_PACKETS * PACKET * 10 // 8), dtype=np.uint8)


def output(sink: KeptVoltages | None = None, settings: BandSettings = SETTINGS) -> Output:
    delays = [DelayModel(Piece(INFO.first_timestamp, 3.3 * pol)) for pol in range(2)]
    return Output(settings, sink or KeptVoltages(), delays, Gains(settings.n_channels, 2, 0.08))


def engine(source: ArraySource, *outputs: Output, chunk_packets: int = 7, bank: str = AUTO) -> FEngine:
    backend = HostBackend()
    return FEngine(backend, source, outputs, chunk_packets, Kernels(backend, lambda line: None, filter_bank=bank))


@BANKS
def test_what_is_written_is_what_the_band_makes(bank: str) -> None:
    received = np.ones((2, N_PACKETS), bool)
    received[0, 33] = False
    sink = KeptVoltages()
    (counters,) = engine(ArraySource(packed(), INFO, received), output(sink), bank=bank).run()
    o = output()
    expected = heaps_of(packed(), received, INFO.first_timestamp, o.delays, o.gains, [N_PACKETS], SETTINGS, INFO, bank)
    assert sink.timestamps.tolist() == sorted(expected)
    for heap, saturated, time_ in zip(sink.voltages, sink.saturated, sink.timestamps.tolist(), strict=True):
        assert np.array_equal(heap, expected[time_][0]) and np.array_equal(saturated, expected[time_][1])
    assert (counters.heaps_out, counters.packets_missing) == (len(expected), 1)
    assert counters.samples_in == N_PACKETS * PACKET and counters.heaps_missing >= 1
    uniform = 10 * np.log10(1 / 12 / 2**-3)  # samples of all values alike, beside a sine of full scale
    assert np.abs(np.array(counters.dbfs) - uniform).max() < 0.1
    assert "heaps" in counters.line() and "1 packets lost" in counters.line()


def test_bands_share_an_input() -> None:
    sinks = KeptVoltages(), KeptVoltages()
    narrow = replace(SETTINGS, n_channels=C // 2, weights=WEIGHTS[:, : L // 2].copy())
    engine(ArraySource(packed(), INFO), output(sinks[0]), output(sinks[1], narrow)).run()
    alone = KeptVoltages()
    engine(ArraySource(packed(), INFO), output(alone, narrow)).run()
    assert np.array_equal(alone.voltages, sinks[1].voltages) and len(sinks[0].timestamps) < len(alone.timestamps)


class Sparse(ArraySource):
    """A source of which chunks without a packet do not come."""

    def read(self, out: np.ndarray) -> Samples | None:
        while (samples := super().read(out)) is not None and not samples.received.any():
            pass
        return samples


@BANKS
@pytest.mark.parametrize("n_missing", [7, 21, 70])
def test_chunks_that_do_not_come_are_missing_packets(n_missing: int, bank: str) -> None:
    received = np.ones((2, N_PACKETS), bool)
    received[:, 14 : 14 + n_missing] = False
    given, left_out = KeptVoltages(), KeptVoltages()
    for source, sink in ((ArraySource, given), (Sparse, left_out)):
        made = output(sink)
        made.delays[0].add(Piece(INFO.first_timestamp + 12 * PACKET, 190.0))  # asks for what was before the gap
        engine(source(packed(), INFO, received), made, bank=bank).run()
    assert len(given.timestamps) > 0 and np.array_equal(given.timestamps, left_out.timestamps)
    assert np.array_equal(given.voltages, left_out.voltages)


class Slow(KeptVoltages):
    """A sink that takes its time."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray) -> None:
        time.sleep(0.05)
        super().write(timestamps, voltages, saturated)


class Live(ArraySource):
    """A source that does not wait."""

    is_live = True

    def read(self, out: np.ndarray) -> Samples | None:
        time.sleep(0.002)
        return super().read(out)


def test_a_slow_sink_makes_a_file_wait_and_a_live_source_drop_whole_chunks() -> None:
    whole, slow, live = KeptVoltages(), Slow(), Slow()
    engine(ArraySource(packed(), INFO), output(whole)).run()
    engine(ArraySource(packed(), INFO), output(slow)).run()
    assert np.array_equal(whole.timestamps, slow.timestamps)
    (counters,) = engine(Live(packed(), INFO, repeats=4), output(live), chunk_packets=4).run()
    assert counters.chunks_dropped > 0 and "chunks dropped" in counters.line()
    assert counters.samples_in + counters.chunks_dropped * 4 * PACKET == 4 * N_PACKETS * PACKET
    kept = dict(zip(whole.timestamps.tolist(), whole.voltages, strict=True))
    common = [t for t in live.timestamps.tolist() if t in kept]
    assert common and all(np.array_equal(live.voltages[live.timestamps == t][0], kept[t]) for t in common)


class Broken(KeptVoltages):
    """A sink that is full after a while."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray) -> None:
        if len(self._timestamps) == 2:
            raise UsageError("the disk is full: 4 heaps are stored")
        super().write(timestamps, voltages, saturated)


class Damaged(ArraySource):
    """A source that ends with an error."""

    def read(self, out: np.ndarray) -> Samples | None:
        if self._at >= 42:
            raise UsageError("frame 42 is damaged")
        return super().read(out)


def test_an_error_ends_the_engine_and_what_was_written_stands() -> None:
    full = Broken()
    with pytest.raises(UsageError, match="the disk is full"):
        engine(ArraySource(packed(), INFO, repeats=50), output(full)).run()
    assert len(full.timestamps) > 0
    kept = KeptVoltages()
    with pytest.raises(UsageError, match="frame 42 is damaged"):
        engine(Damaged(packed(), INFO), output(kept)).run()
    before = (42 * PACKET - WEIGHTS.size - 2 * HEAP * L) // (HEAP * L)
    assert len(kept.timestamps) >= before, "what was read before the damage is finished"
    assert not [t for t in threading.enumerate() if t.name.startswith("autotune-reads")]


def test_ctrl_c_ends_at_a_heap_and_keeps_what_came() -> None:
    sink = Slow()
    running = engine(ArraySource(packed(), INFO, repeats=1000), output(sink))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    (counters,) = running.run()
    assert isinstance(counters, FCounters)
    assert 0 < counters.samples_in < 1000 * N_PACKETS * PACKET
    assert counters.heaps_out == len(sink.timestamps) > 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
