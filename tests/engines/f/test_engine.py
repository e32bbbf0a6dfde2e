"""An F-engine from memory to memory on host: threads, back-pressure, drops, errors and Ctrl-C."""

import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

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

from ...waiting import wait_until
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
    assert np.array_equal(sink.present, [there for _, _, there in expected.values()])
    assert counters.spectra_missing == np.count_nonzero(~sink.present) > 0 and counters.heaps_missing == 0
    assert (counters.heaps_out, counters.packets_missing) == (len(expected), 1)
    assert counters.samples_in == N_PACKETS * PACKET
    uniform = 10 * np.log10(1 / 12 / 2**-3)  # samples of all values alike, beside a sine of full scale
    assert np.abs(np.array(counters.dbfs) - uniform).max() < 0.1
    assert "heaps" in counters.line() and "1 packets lost" in counters.line()
    assert f"{counters.spectra_missing} spectra missing" in counters.line()


@BANKS
def test_memory_goes_with_the_engine(bank: str) -> None:
    """Also where no garbage is collected: the next engine may need the memory of this one."""
    made, gc_was_on = engine(ArraySource(packed(), INFO), output(), bank=bank), gc.isenabled()
    gc.disable()
    try:
        made.run()
        band: Any = made._chain._bands[0]
        kept = [weakref.ref(each) for each in (made._chain.input._buffers, made._chain.outputs[0], band, band._bank)]
        del made, band
        assert [ref() for ref in kept] == [None] * 4
    finally:
        if gc_was_on:
            gc.enable()


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
        (counters,) = engine(source(packed(), INFO, received), made, bank=bank).run()
        assert counters.spectra_beyond == 0
    assert len(given.timestamps) > 0 and np.array_equal(given.timestamps, left_out.timestamps)
    assert np.array_equal(given.voltages, left_out.voltages)


class Slow(KeptVoltages):
    """A sink that takes its time."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        time.sleep(0.05)
        super().write(timestamps, voltages, saturated, present)


class Late(KeptVoltages):
    """A sink that takes what it got first when another one has ``n`` heaps."""

    def __init__(self, other: KeptVoltages, n: int) -> None:
        super().__init__()
        self._other, self._n = other, n

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        wait_until(lambda: len(self._other.timestamps) == self._n)
        super().write(timestamps, voltages, saturated, present)


class Live(ArraySource):
    """A source that does not wait."""

    is_live = True

    def read(self, out: np.ndarray) -> Samples | None:
        time.sleep(0.002)
        return super().read(out)


class Paced(Live):
    """A source that does not wait for the first sink, and comes no faster than the device and the last sink take it."""

    filled: Callable[[], str] = staticmethod(lambda: "0")

    def read(self, out: np.ndarray) -> Samples | None:
        while self.filled() > "1":
            time.sleep(0.001)
        return ArraySource.read(self, out)


def paced(*outputs: Output, repeats: int = 4) -> FEngine:
    source = Paced(packed(), INFO, repeats=repeats)
    running = engine(source, *outputs, chunk_packets=4)
    depths = [running.progress._queues[name].depth for name in ("in", f"out {len(outputs) - 1}")]
    source.filled = lambda: "0" if running._ending.is_near else max(depth()[0] for depth in depths)
    return running


def same_where_both_are(some: KeptVoltages, whole: KeptVoltages) -> bool:
    kept = dict(zip(whole.timestamps.tolist(), whole.voltages, strict=True))
    found = zip(some.timestamps.tolist(), some.voltages, some.present, strict=True)
    return all(np.array_equal(v, np.where(there[..., np.newaxis], kept[t], 0)) for t, v, there in found)


def test_a_slow_sink_makes_a_file_wait_and_of_a_live_source_loses_its_own_heaps_alone() -> None:
    whole, waited, beside = KeptVoltages(), Slow(), KeptVoltages()
    engine(ArraySource(packed(), INFO, repeats=4), output(whole)).run()
    slow = Late(beside, len(whole.timestamps))
    engine(ArraySource(packed(), INFO, repeats=4), output(waited)).run()
    assert np.array_equal(whole.timestamps, waited.timestamps)
    counters, others = paced(output(slow), output(beside)).run()
    assert counters.heaps_dropped > 0 and f"{counters.heaps_dropped} heaps dropped" in counters.line()
    assert counters.heaps_out == len(slow.timestamps) > 0 and same_where_both_are(slow, whole)
    assert counters.heaps_out + counters.heaps_dropped == others.heaps_out
    assert others.heaps_dropped == others.chunks_dropped == 0
    assert np.array_equal(beside.timestamps, whole.timestamps) and same_where_both_are(beside, whole)


def test_a_live_source_drops_chunks_while_the_device_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, live = KeptVoltages(), KeptVoltages()
    engine(ArraySource(packed(), INFO, repeats=4), output(whole)).run()
    running = engine(Live(packed(), INFO, repeats=4), output(live), chunk_packets=4)
    monkeypatch.setattr(running.progress, "tick", lambda line: time.sleep(0.05))
    (counters,) = running.run()
    assert counters.chunks_dropped > 0 and "chunks dropped" in counters.line()
    assert counters.samples_in + counters.chunks_dropped * 4 * PACKET == 4 * N_PACKETS * PACKET
    assert len(live.timestamps) > 0 and same_where_both_are(live, whole)


def test_a_sink_that_fails_ends_alone_while_a_live_source_has_others() -> None:
    whole, full, beside = KeptVoltages(), Broken(), KeptVoltages()
    engine(ArraySource(packed(), INFO, repeats=4), output(whole)).run()
    running = paced(output(full), output(beside))
    with pytest.raises(UsageError, match="the disk is full"):
        running.run()
    broken, others = running.counters
    assert np.array_equal(beside.timestamps, whole.timestamps) and same_where_both_are(beside, whole)
    assert "the sink has failed: the disk is full: 4 heaps are stored" in broken.line()
    assert broken.heaps_out + broken.heaps_dropped == others.heaps_out and broken.heaps_out <= len(full.timestamps)
    endless = paced(output(Broken()), output(Broken()), repeats=1 << 30)
    with pytest.raises(UsageError, match="the disk is full"):
        endless.run()  # nobody takes what is made


class Broken(KeptVoltages):
    """A sink that is full after a while."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        if len(self._written) == 2:
            raise UsageError("the disk is full: 4 heaps are stored")
        super().write(timestamps, voltages, saturated, present)


class Damaged(ArraySource):
    """A source that ends with an error."""

    def read(self, out: np.ndarray) -> Samples | None:
        if self._at >= 42:
            raise UsageError("frame 42 is damaged")
        return super().read(out)


def test_an_error_ends_the_engine_and_what_was_written_stands() -> None:
    before = set(threading.enumerate())  # a reader of another test may wait for its silent source
    full = Broken()
    with pytest.raises(UsageError, match="the disk is full"):
        engine(ArraySource(packed(), INFO, repeats=50), output(full)).run()
    assert len(full.timestamps) > 0
    kept = KeptVoltages()
    with pytest.raises(UsageError, match="frame 42 is damaged"):
        engine(Damaged(packed(), INFO), output(kept)).run()
    n_before = (42 * PACKET - WEIGHTS.size - 2 * HEAP * L) // (HEAP * L)
    assert len(kept.timestamps) >= n_before, "what was read before the damage is finished"
    assert not [t for t in threading.enumerate() if t.name.startswith("autotune-reads") and t not in before]


class Interrupting(Slow):
    """A slow sink. Somebody presses Ctrl-C while it writes for the first time."""

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        if not self._written:
            os.kill(os.getpid(), signal.SIGINT)
        super().write(timestamps, voltages, saturated, present)


def test_ctrl_c_ends_at_a_heap_and_keeps_what_came() -> None:
    sink = Interrupting()
    running = engine(ArraySource(packed(), INFO, repeats=1000), output(sink))
    (counters,) = running.run()
    assert isinstance(counters, FCounters)
    assert 0 < counters.samples_in < 1000 * N_PACKETS * PACKET
    assert counters.heaps_out == len(sink.timestamps) > 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("what", ["gains", "delays"])
def test_from_next_time_on_all_heaps_are_made_with_what_was_set(what: str) -> None:
    def change(made: Output) -> None:
        if what == "gains":
            made.gains.set(INFO.first_timestamp, 0.05)
        else:
            made.delays[1].add(Piece(INFO.first_timestamp, 5.0))

    changed, as_before = output(KeptVoltages()), output(KeptVoltages())
    change(changed)
    for made in (changed, as_before):
        engine(ArraySource(packed(), INFO, repeats=4), made).run()
    live = output(KeptVoltages())
    running = engine(ArraySource(packed(), INFO, repeats=4), live)
    assert running.next_time() is None
    times: list[int | None] = []
    tick = running.progress.tick

    def set_it(line: Callable[[], str]) -> None:
        tick(line)
        if running.counters[0].samples_in > 2 * N_PACKETS * PACKET and not times:
            change(live)
            times.append(running.next_time())

    running.progress.tick = set_it  # type: ignore[method-assign]
    running.run()
    sinks = [made.sink for made in (live, changed, as_before)]
    assert all(isinstance(sink, KeptVoltages) for sink in sinks)
    found, new, old = ({t: v for t, v in zip(s.timestamps.tolist(), s.voltages, strict=True)} for s in sinks)  # type: ignore
    (since,) = times
    assert since is not None and min(found) < since < max(found)
    for t, voltages in found.items():
        if t >= since:
            assert np.array_equal(voltages, new[t])
    assert any(not np.array_equal(found[t], new[t]) and np.array_equal(found[t], old[t]) for t in found if t < since)


def test_spectra_whose_delays_differ_too_much_are_counted() -> None:
    made = output(KeptVoltages())
    made.delays[1].add(Piece(INFO.first_timestamp + 40 * PACKET, SETTINGS.max_delay_diff + 300.0))
    made.delays[1].add(Piece(INFO.first_timestamp + 60 * PACKET, 0.0))
    (counters,) = engine(ArraySource(packed(), INFO), made).run()
    assert 0 < counters.spectra_beyond <= 22 * PACKET // L
    assert f"{counters.spectra_beyond} spectra left out, whose delays differ" in counters.line()
    assert counters.heaps_missing > 0 and counters.packets_missing == 0
    (others,) = engine(ArraySource(packed(), INFO), output()).run()
    assert others.spectra_beyond == 0
