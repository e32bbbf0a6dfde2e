"""Sources that fill the engine's own memory: the same results, no copy on the host, and all arrays come back."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from queue import Empty, Queue
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.f.engine import FEngine
from autotune.engines.fx.engine import FXEngine
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.run.lent_chunks import LentChunks
from autotune.engines.run.queues import Ending
from autotune.engines.streams.in_memory import ArraySource, KeptVisibilities, KeptVoltages
from autotune.engines.streams.lending import Lends
from autotune.engines.streams.samples import Samples
from autotune.engines.x.engine import XEngine

from ...waiting import DEADLINE_S
from ..f.test_engine import INFO, N_PACKETS, PACKET, engine, output, packed
from ..x.test_engine import HEAP, N_ANTENNAS, N_BATCHES, PER_DUMP, ArrayBatches, C

DAMAGED = "packet 50 is damaged"
N_KEPT = 3  # arrays under construction


class Lent:
    """Makes a source one that lends: it has a thread's worth of order of its own, the last array that came first."""

    def __init__(self, source: Any, is_live: bool = False, ends_badly: bool = False) -> None:
        self._source, self.is_live, self._ends_badly = source, is_live, ends_badly
        self.free: Queue[int] = Queue()
        self.arrays: Sequence[np.ndarray] = ()
        self.n_taken = 0
        self.filled: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)  # info or antennas

    def read(self, out: np.ndarray) -> None:
        raise AssertionError("nothing is read that is lent")

    def n_kept(self, shape: Sequence[int]) -> int:
        return N_KEPT

    @property
    def is_short(self) -> bool:
        return len(self.filled) > len(self.arrays) - N_KEPT

    def lend(self, arrays: Sequence[np.ndarray]) -> None:
        assert not len(self.arrays)
        self.arrays = arrays
        for number in reversed(range(len(arrays))):
            self.free.put(number)

    def take(self) -> tuple[int, Any] | None:
        number = self.free.get(timeout=DEADLINE_S)
        self.arrays[number].view(np.uint8)[...] = 0xAB  # what the engine still needed would be lost
        answer = self._source.read(self.arrays[number])
        if answer is None:
            self.free.put(number)
            if self._ends_badly:
                raise UsageError(DAMAGED)
            return None
        self.n_taken += 1
        self.filled.add(number)
        return number, answer

    def give_back(self, number: int) -> None:
        self.filled.remove(number)
        self.free.put(number)

    def all_are_back(self) -> bool:
        back = set()
        while True:
            try:
                back.add(self.free.get_nowait())
            except Empty:
                return back == set(range(len(self.arrays))) and not self.filled


def test_an_f_engine_makes_the_same_of_memory_that_it_lent() -> None:
    whole, lent = KeptVoltages(), KeptVoltages()
    source = Lent(ArraySource(packed(), INFO, repeats=3))
    assert isinstance(source, Lends) and not isinstance(ArraySource(packed(), INFO), Lends)
    engine(ArraySource(packed(), INFO, repeats=3), output(whole)).run()
    (counters,) = engine(source, output(lent)).run()  # type: ignore[arg-type]
    assert np.array_equal(whole.timestamps, lent.timestamps) and np.array_equal(whole.voltages, lent.voltages)
    assert counters.samples_in == 3 * N_PACKETS * PACKET
    assert source.n_taken > 4 * len(source.arrays) and source.all_are_back()


def test_an_fx_engine_and_an_x_engine_do_too() -> None:
    def fx(kind: Any) -> tuple[KeptVisibilities, list[Any]]:
        backend, sink = HostBackend(), KeptVisibilities()
        sources = [kind(ArraySource(packed(a), replace(INFO, antenna=f"m{a}"))) for a in range(2)]
        outputs = [replace(output(), sink=None) for _ in range(2)]
        kernels = Kernels(backend, lambda line: None)
        FXEngine(backend, sources, outputs, sink, kernels, accumulate=2, chunk_samples=7 * PACKET).run()
        return sink, sources

    def x(kind: Any) -> tuple[KeptVisibilities, list[Any]]:
        shape = N_BATCHES, N_ANTENNAS, C, HEAP, 2, 2
        voltages = np.random.default_rng(1).integers(-127, 128, shape, dtype=np.int8)
        present = np.ones((N_BATCHES, N_ANTENNAS), bool)
        present[9, 1] = False
        backend, sink, source = HostBackend(), KeptVisibilities(), kind(ArrayBatches(voltages, present))
        kernels = Kernels(backend, lambda line: None)
        XEngine(backend, source, sink, kernels, accumulate=PER_DUMP, batches_per_chunk=2).run()
        return sink, [source]

    for run in (fx, x):
        expected, _ = run(lambda source: source)
        found, sources = run(Lent)
        assert found.timestamps == expected.timestamps and np.array_equal(found.visibilities, expected.visibilities)
        assert np.array_equal(found.weights, expected.weights) and all(source.all_are_back() for source in sources)


def test_a_live_source_always_has_some_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    source, sink = Lent(ArraySource(packed(), INFO, repeats=6), is_live=True), KeptVoltages()
    running = engine(source, output(sink), chunk_packets=4)  # type: ignore[arg-type]
    begun, goes_on = threading.Event(), threading.Event()

    def hold(line: Any) -> None:
        begun.set()
        goes_on.wait(DEADLINE_S)

    monkeypatch.setattr(running.progress, "tick", hold)
    worker = threading.Thread(target=running.run)
    worker.start()
    assert begun.wait(DEADLINE_S)
    while source.n_taken < 6 * N_PACKETS // 4:  # it comes to its end while the engine holds still
        assert len(source.filled) <= len(source.arrays) - N_KEPT + 1
    goes_on.set()
    worker.join(DEADLINE_S)
    (counters,) = running.counters
    assert counters.chunks_dropped > 0 and source.all_are_back()
    assert counters.samples_in + counters.chunks_dropped * 4 * PACKET == 6 * N_PACKETS * PACKET


def test_an_error_of_the_source_ends_the_engine_and_what_was_taken_is_finished() -> None:
    whole, kept = KeptVoltages(), KeptVoltages()
    engine(ArraySource(packed(), INFO), output(whole)).run()
    source = Lent(ArraySource(packed(), INFO), ends_badly=True)
    running: FEngine = engine(source, output(kept))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=DAMAGED):
        running.run()
    assert np.array_equal(whole.timestamps, kept.timestamps) and source.all_are_back()


class Copying:
    """An event of a copy that is over when the test says so."""

    def __init__(self) -> None:
        self.is_over, self.is_waited_for = threading.Event(), threading.Event()

    def wait(self) -> None:
        self.is_waited_for.set()
        assert self.is_over.wait(DEADLINE_S)


def test_an_array_is_given_back_when_its_copy_is_over() -> None:
    source = Lent(ArraySource(packed(), INFO))
    arrays = [np.zeros((2, N_PACKETS * PACKET * 10 // 8), np.uint8) for _ in range(N_KEPT + 1)]
    lent: LentChunks[Samples] = LentChunks(source, arrays, Ending(), lambda answer: None)
    lent.take()
    chunk, copying = lent.buckets.take(), Copying()
    assert chunk is not None and lent.buckets.take() is None
    chunk.copied = copying  # type: ignore[assignment]
    lent.buckets.give_back(chunk)
    returns = threading.Thread(target=lent.give_back)
    returns.start()
    assert copying.is_waited_for.wait(DEADLINE_S) and len(source.filled) == 1
    copying.is_over.set()
    returns.join(DEADLINE_S)
    assert not returns.is_alive() and source.all_are_back()
