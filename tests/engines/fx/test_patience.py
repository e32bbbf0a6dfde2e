"""Live antennas that are silent, late or back again: the others go on, and what is lost is counted."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from autotune.engines.fx import engine as module
from autotune.engines.fx.engine import LOOK_S, FXEngine
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.streams.in_memory import ArraySource, KeptVisibilities
from autotune.engines.streams.samples import Samples

from ...waiting import DEADLINE_S, wait_until
from ..f.test_band import PACKET
from ..f.test_engine import INFO
from ..stand_ins import good_antennas
from .test_engine import outputs

N_ANTENNAS, N_PACKETS, PER_CHUNK = 3, 210, 7
PATIENCE_S = 0.05


class Clock:
    """The engine's clock, which goes on only while the engine waits for an antenna that is silent on purpose.

    An antenna whose thread is late on a busy machine is not silent.
    """

    s = 0.0

    def monotonic(self) -> float:
        return self.s


class Antenna(ArraySource):
    """A live source that comes as its engine takes it, and waits before packet ``at`` until ``may_go`` says so."""

    is_live = True
    at = N_PACKETS
    n_taken = 0
    engine: FXEngine
    clock: Clock

    def __init__(self, antenna: int) -> None:
        rng = np.random.default_rng(antenna)
        info = replace(INFO, antenna=f"m{antenna}")
        super().__init__(rng.integers(0, 256, (2, N_PACKETS * PACKET * 10 // 8), dtype=np.uint8), info)
        self.number = antenna
        self.may_go: Callable[[], bool] = lambda: True

    def read(self, out: np.ndarray) -> Samples | None:
        while not self.has_room():
            time.sleep(0.001)
        while self.n_taken == self.at // PER_CHUNK and not self.may_go():
            if self.engine._joiner.order()[:1] == [self.number]:
                self.clock.s += 0.001
            time.sleep(0.001)
        self.n_taken += 1
        return super().read(out)

    def has_room(self) -> bool:
        """Whether the engine has taken what was read before."""
        return self.engine._chains[self.number].input.chunks.depth()[0] < "2" or self.engine._ending.is_near


def run(antennas: list[Antenna]) -> tuple[FXEngine, KeptVisibilities]:
    backend, sink, clock = HostBackend(), KeptVisibilities(), Clock()
    engine = FXEngine(
        backend,
        antennas,
        [outputs(antenna, None) for antenna in range(len(antennas))],
        sink,
        Kernels(backend, lambda line: None),
        accumulate=2,
        chunk_samples=PER_CHUNK * PACKET,
        complete_dumps=True,
        patience_s=PATIENCE_S,
    )
    for antenna in antennas:
        antenna.engine, antenna.clock = engine, clock
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "time", clock)
        worker = threading.Thread(target=engine.run, daemon=True)
        worker.start()
        worker.join(DEADLINE_S)
    assert not worker.is_alive()
    return engine, sink


@pytest.fixture(scope="module")
def whole() -> KeptVisibilities:
    antennas = [Antenna(antenna) for antenna in range(N_ANTENNAS)]
    for antenna in antennas:
        antenna.is_live = False
    engine, sink = run(antennas)
    assert engine.counters.heaps_late == 0 and len(sink.timestamps) > 8
    assert good_antennas(sink.weights)[1:-1].all()
    return sink


def compare(sink: KeptVisibilities, whole: KeptVisibilities) -> np.ndarray:
    """Checks that baselines of good antennas are those of ``whole``; returns which are good: bool [n_dumps, n]."""
    expected = dict(zip(whole.timestamps, whole.visibilities, strict=True))
    j, i = np.tril_indices(N_ANTENNAS)
    is_good = good_antennas(sink.weights)
    for timestamp, visibilities, good in zip(sink.timestamps, sink.visibilities, is_good, strict=True):
        both = good[i] & good[j]
        assert np.array_equal(visibilities[:, both], expected[timestamp][:, both])
        assert (visibilities[:, ~both, :, 0] == -(1 << 31)).all()
    return is_good


def test_an_antenna_that_never_sends_stops_nobody(whole: KeptVisibilities) -> None:
    antennas = [Antenna(antenna) for antenna in range(N_ANTENNAS)]
    antennas[1].at, antennas[1].may_go = 0, lambda: not antennas[1].engine._joiner.order()  # the others have ended
    engine, sink = run(antennas)
    good = compare(sink, whole)
    assert sink.timestamps == whole.timestamps
    assert good[1:-1, [0, 2]].all() and not good[:, 1].any()
    assert engine.f_counters[0].chunks_dropped == engine.f_counters[2].chunks_dropped == 0
    assert engine.counters.heaps_late > 0, "it sent all it had when the others had ended"


@pytest.mark.parametrize("first", [True, False])
def test_an_antenna_that_is_silent_for_a_while_is_there_again(first: bool, whole: KeptVisibilities) -> None:
    antennas = [Antenna(antenna) for antenna in range(N_ANTENNAS)]
    antennas[2].at = 0 if first else 8 * PER_CHUNK
    antennas[2].may_go = lambda: antennas[0].n_taken > 15
    for antenna in antennas[:2]:  # so that it can catch up, however slow the machine is
        antenna.at, antenna.may_go = 20 * PER_CHUNK, lambda: antennas[2].n_taken >= 20
    engine, sink = run(antennas)
    good = compare(sink, whole)
    assert sink.timestamps == whole.timestamps
    assert good[1:-1, :2].all()
    assert not good[1:-1, 2].all() and good[-4:-1, 2].all() and (first or good[1:3, 2].all())
    heaps_late = engine.counters.heaps_late
    assert heaps_late > 0 and f"{heaps_late} heaps too late" in engine.counters.line()
    assert engine.f_counters[2].heaps_out == engine.f_counters[0].heaps_out, "its F-engine made all of them"


def test_nobody_is_given_up_while_nobody_waits(whole: KeptVisibilities) -> None:
    antennas = [Antenna(antenna) for antenna in range(N_ANTENNAS)]
    silent = threading.Barrier(N_ANTENNAS)  # all of them wait at the same packet

    def wait_long() -> bool:
        silent.wait(DEADLINE_S)
        chains = antennas[0].engine._chains
        wait_until(lambda: not any(chain.input.is_ready for chain in chains))
        antennas[0].clock.s += 2 * PATIENCE_S
        time.sleep(3 * LOOK_S)  # the engine looks again
        return True

    for antenna in antennas:
        antenna.at, antenna.may_go = 5 * PER_CHUNK, wait_long
    engine, sink = run(antennas)
    assert np.array_equal(compare(sink, whole), good_antennas(whole.weights)) and sink.timestamps == whole.timestamps
    assert engine.counters.heaps_late == 0
