"""Engines that are asked to end, also while their source is silent; and several engines in one process."""

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autotune.engines.f.chain import voltage_info
from autotune.engines.f.engine import FEngine
from autotune.engines.fx.engine import FXEngine
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.run.queues import POLL_S, Buckets, Ending
from autotune.engines.run.threads import sleep_unless
from autotune.engines.streams.in_memory import ArraySource, KeptVisibilities, KeptVoltages
from autotune.engines.streams.samples import Samples
from autotune.engines.streams.voltages import Batches
from autotune.engines.x.engine import XEngine

from ...waiting import DEADLINE_S, wait_until
from ..f.test_engine import INFO, engine, output, packed

N_ENGINES = 3


class Silent(ArraySource):
    """A source that gives two chunks, and then nothing until the test is over."""

    is_live = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.over, self.waits, self.n_reads = threading.Event(), threading.Event(), 0

    def read(self, out: np.ndarray) -> Samples | None:
        self.n_reads += 1
        if self.n_reads > 2:
            self.waits.set()
            self.over.wait(DEADLINE_S)
            return None
        return super().read(out)


class SilentVoltages:
    """Voltages of which none come."""

    is_live = True

    def __init__(self) -> None:
        self.over, self.waits = threading.Event(), threading.Event()
        self.antennas = (voltage_info(INFO, output().settings),)

    def read(self, out: np.ndarray) -> Batches | None:
        self.waits.set()
        self.over.wait(DEADLINE_S)
        return None

    def close(self) -> None:
        return


def f_engine() -> tuple[FEngine, Silent]:
    source = Silent(packed(), INFO)
    return engine(source, output()), source


def fx_engine() -> tuple[FXEngine, Silent]:
    backend, silent = HostBackend(), Silent(packed(), INFO)
    sources = [ArraySource(packed(), INFO), silent]
    kernels = Kernels(backend, lambda line: None)
    outputs, sink = [output(), output()], KeptVisibilities()
    return FXEngine(backend, sources, outputs, sink, kernels, accumulate=2, chunk_samples=4096), silent


def x_engine() -> tuple[XEngine, SilentVoltages]:
    backend, silent = HostBackend(), SilentVoltages()
    kernels = Kernels(backend, lambda line: None)
    return XEngine(backend, silent, KeptVisibilities(), kernels, accumulate=2), silent


@pytest.mark.parametrize("make", [f_engine, fx_engine, x_engine])
def test_an_engine_whose_source_is_silent_ends_when_it_is_asked(make: Callable[[], tuple[Any, Any]]) -> None:
    running, source = make()
    worker = threading.Thread(target=running.run, daemon=True)
    worker.start()
    try:
        assert source.waits.wait(DEADLINE_S)
        assert worker.is_alive()
        running.stop()
        worker.join(DEADLINE_S)
        assert not worker.is_alive() and running.is_stopped
        assert not source.over.is_set()  # the source has not ended
    finally:
        source.over.set()


def test_ctrl_c_ends_an_engine_whose_source_is_silent() -> None:
    running, source = f_engine()
    threading.Thread(target=lambda: source.waits.wait(DEADLINE_S) and os.kill(os.getpid(), signal.SIGINT)).start()
    running.run()
    assert running.is_stopped and source.waits.is_set() and not source.over.is_set()
    source.over.set()


def test_a_handler_that_asks_never_waits_for_a_lock_of_the_thread_that_sleeps() -> None:
    """It comes at any instruction of a thread that begins to sleep again and again."""
    for _ in range(300):
        asked, late = threading.Event(), threading.Timer(DEADLINE_S, os._exit, [1])
        before = signal.signal(signal.SIGALRM, lambda *_, asked=asked: asked.set())
        late.start()
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        while not asked.is_set():
            sleep_unless(asked, 1e-6)
        signal.signal(signal.SIGALRM, before)
        late.cancel()


@pytest.mark.parametrize("waits", ["wait", "free_soon"])
def test_a_signal_whose_handler_outlasts_a_wait_does_not_make_it_endless(waits: str) -> None:
    buckets, has_come = Buckets[int]([], Ending()), threading.Event()
    before = signal.signal(signal.SIGALRM, lambda number, frame: time.sleep(2 * POLL_S))
    late = threading.Timer(DEADLINE_S / 4, lambda: (has_come.set(), buckets.give(1), buckets.give_back(1)))
    late.start()
    signal.setitimer(signal.ITIMER_REAL, POLL_S / 4)
    try:
        found = buckets.wait(POLL_S) if waits == "wait" else buckets.free_soon()
    finally:
        signal.signal(signal.SIGALRM, before)
        late.cancel()
    assert found is None and not has_come.is_set()


class Counted(ArraySource):
    """A source that counts what is read of it, and never ends."""

    n_read = 0

    def read(self, out: np.ndarray) -> Samples | None:
        self.n_read += 1
        return super().read(out)


def test_what_waits_in_buckets_is_not_taken_any_more() -> None:
    source = Counted(packed(), INFO, None, 1 << 30)
    running, gate = None, threading.Event()

    class Held(KeptVoltages):
        """A sink that waits, so that all buckets before it are full."""

        def write(
            self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray
        ) -> None:
            gate.wait(DEADLINE_S)
            super().write(timestamps, voltages, saturated, present)

    running = engine(source, output(Held()))
    worker = threading.Thread(target=running.run, daemon=True)
    worker.start()
    wait_until(lambda: running.progress._queues["in"].depth()[0] == "4")
    running.stop()
    taken = running.counters[0].samples_in
    gate.set()
    worker.join(DEADLINE_S)
    assert not worker.is_alive()
    assert running.counters[0].samples_in - taken <= 7 * INFO.packet  # one chunk may have been on its way


def test_several_engines_of_one_process_give_what_one_gives_alone() -> None:
    def run(number: int, sinks: dict[int, KeptVoltages]) -> None:
        sinks[number] = KeptVoltages()
        engine(ArraySource(packed(number), INFO, None, 3), output(sinks[number])).run()

    alone: dict[int, KeptVoltages] = {}
    together: dict[int, KeptVoltages] = {}
    for number in range(N_ENGINES):
        run(number, alone)
    workers = [threading.Thread(target=run, args=(number, together)) for number in range(N_ENGINES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    for number in range(N_ENGINES):
        assert np.array_equal(alone[number].timestamps, together[number].timestamps)
        assert np.array_equal(alone[number].voltages, together[number].voltages)
