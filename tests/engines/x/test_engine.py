"""An X-engine from memory to memory on host: exact dumps, holes, empty dumps, errors."""

from dataclasses import replace

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.streams.in_memory import KeptVisibilities
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import REAL_HIGH, REAL_LOW, Batches, VoltageInfo
from autotune.engines.x.engine import XEngine, visibility_info
from autotune.engines.x.output import conjugate

from ..stand_ins import good_antennas, nibbles_exchanged, x_engine

C, HEAP, PER_DUMP, N_ANTENNAS, N_BATCHES = 3, 16, 5, 3, 23
INFO = VoltageInfo(C, 2, 8, HEAP, 2 * C, SampleInfo(10, 2, 1e6, 256))
FIRST = (1 << 30) + 2


class ArrayBatches:
    """Voltages of an array, a chunk at a time; chunks of which nothing came do not arrive."""

    is_live = False

    def __init__(
        self, voltages: np.ndarray, present: np.ndarray, n_pols: int = 2, bits: int = 8, nibbles: str = REAL_LOW
    ) -> None:
        samples = SampleInfo(10, n_pols, 1e6, 256)
        info = VoltageInfo(C, n_pols, bits, HEAP, 2 * C, samples, nibbles=nibbles)
        self.antennas = (info,) * N_ANTENNAS
        self._voltages, self._present, self._at = voltages, present, 0

    def read(self, out: np.ndarray) -> Batches | None:
        while self._at < len(self._voltages):
            first = self._at
            n = min(len(out), len(self._voltages) - first)
            self._at += n
            if self._present[first : first + n].any():
                out[:n] = self._voltages[first : first + n]
                return Batches((FIRST + first) * INFO.heap_samples, self._present[first : first + n])
        return None

    def close(self) -> None:
        return


def drawn_presence() -> np.ndarray:
    """bool [N_BATCHES, N_ANTENNAS]: one antenna is missing once, and all of them for a time."""
    present = np.ones((N_BATCHES, N_ANTENNAS), bool)
    present[9, 1] = False
    present[14:18] = False
    return present


def made(
    batches_per_chunk: int, send_empty: bool = True, complete_dumps: bool = True
) -> tuple[KeptVisibilities, XEngine, dict[int, tuple[np.ndarray, np.ndarray]]]:
    rng = np.random.default_rng(3)
    v = rng.integers(-127, 128, (N_BATCHES, N_ANTENNAS, C, HEAP, 2, 2), dtype=np.int8)
    present = drawn_presence()
    backend, sink = HostBackend(), KeptVisibilities()
    source = ArrayBatches(v, present)
    kernels = Kernels(backend, lambda line: None)
    engine = XEngine(
        backend,
        source,
        sink,
        kernels,
        accumulate=PER_DUMP,
        batches_per_chunk=batches_per_chunk,
        complete_dumps=complete_dumps,
        send_empty=send_empty,
    )
    engine.run()
    expected = x_engine(v, present, INFO.heap_samples, PER_DUMP, FIRST, [N_BATCHES], complete=complete_dumps)
    assert visibility_info(source.antennas, PER_DUMP).dump_samples == PER_DUMP * INFO.heap_samples
    return sink, engine, expected


@pytest.mark.parametrize("complete_dumps", [False, True])
@pytest.mark.parametrize("batches_per_chunk", [1, 4, 23])
def test_dumps_are_those_of_one_sum(batches_per_chunk: int, complete_dumps: bool) -> None:
    sink, engine, expected = made(batches_per_chunk, complete_dumps=complete_dumps)
    assert sink.timestamps == sorted(expected)
    for time, visibilities, weights in zip(sink.timestamps, sink.visibilities, sink.weights, strict=True):
        assert np.array_equal(visibilities, expected[time][0]) and np.array_equal(weights, expected[time][1])
    counters = engine.counters
    assert counters.weight == sum(int(weights.sum()) for weights in sink.weights)
    assert counters.weight_whole == len(expected) * PER_DUMP * HEAP * 6 * 4
    if not complete_dumps:
        assert (counters.dumps_out, counters.dumps_empty) == (len(expected), 0)
        return
    assert (counters.dumps_out, counters.dumps_empty) == (2, len(expected) - 2)
    assert "2 dumps" in counters.line() and "without a good antenna" in counters.line()


@pytest.mark.parametrize("batches_per_chunk", [1, 7])
def test_dumps_do_not_depend_on_the_nibble_of_the_real_part(batches_per_chunk: int) -> None:
    rng, present = np.random.default_rng(4), drawn_presence()
    parts = rng.integers(-7, 8, (N_BATCHES, N_ANTENNAS, C, HEAP, 2, 2), dtype=np.int8)
    low = (parts[..., 0] & 15) | (parts[..., 1] << 4)
    expected = x_engine(parts, present, INFO.heap_samples, PER_DUMP, FIRST, [N_BATCHES], complete=True)
    for nibbles, v in ((REAL_LOW, low), (REAL_HIGH, nibbles_exchanged(low))):
        backend, sink = HostBackend(), KeptVisibilities()
        source = ArrayBatches(v, present, bits=4, nibbles=nibbles)
        engine = XEngine(
            backend,
            source,
            sink,
            Kernels(backend, lambda line: None),
            accumulate=PER_DUMP,
            batches_per_chunk=batches_per_chunk,
            complete_dumps=True,
        )
        engine.run()
        assert sink.timestamps == sorted(expected)
        for time, visibilities in zip(sink.timestamps, sink.visibilities, strict=True):
            assert np.array_equal(visibilities, expected[time][0])
        is_good = good_antennas(sink.weights)
        assert is_good.all(axis=1).any() and (is_good.any(axis=1) & ~is_good.all(axis=1)).any()


def test_clipped_sums_are_conjugated_and_missing_data_is_not() -> None:
    most = 2**31 - 1
    sums = np.array([[5, -3], [-most, most], [most, -most], [0, 0], [-(2**31), 1], [-1, 1]], np.int32)
    conjugate(sums)
    assert sums.tolist() == [[5, 3], [-most, -most], [most, most], [0, 0], [-(2**31), 1], [-1, -1]]


def test_antennas_of_other_nibbles_are_refused() -> None:
    v, present = np.zeros((N_BATCHES, N_ANTENNAS, C, HEAP, 2), np.int8), drawn_presence()
    source, backend = ArrayBatches(v, present, bits=4), HostBackend()
    source.antennas = (*source.antennas[1:], replace(source.antennas[0], nibbles=REAL_HIGH))
    with pytest.raises(UsageError, match="same nibbles to be correlated; antenna: real_low, antenna: real_high"):
        XEngine(backend, source, KeptVisibilities(), Kernels(backend, lambda line: None), accumulate=PER_DUMP)
    with pytest.raises(UsageError, match="nibbles=real_high is for bits=4; with bits=8 each part fills a byte"):
        replace(INFO, nibbles=REAL_HIGH)
    with pytest.raises(UsageError, match="nibbles=high must be real_low or real_high"):
        replace(INFO, bits=4, nibbles="high")


def test_empty_dumps_may_be_left_out() -> None:
    sink, engine, _ = made(4, send_empty=False)
    assert len(sink.timestamps) == 2 == engine.counters.dumps_out
    assert all(weights.any() for weights in sink.weights)


def test_a_full_disk_ends_it() -> None:
    class Full(KeptVisibilities):
        def write(self, timestamp: int, visibilities: np.ndarray, weights: np.ndarray, saturated: int) -> None:
            raise UsageError("the disk is full: 0 dumps are stored")

    v, present = np.zeros((N_BATCHES, N_ANTENNAS, C, HEAP, 2, 2), np.int8), np.ones((N_BATCHES, N_ANTENNAS), bool)
    backend = HostBackend()
    kernels = Kernels(backend, lambda line: None)
    with pytest.raises(UsageError, match="the disk is full"):
        XEngine(backend, ArrayBatches(v, present), Full(), kernels, accumulate=PER_DUMP).run()
    live = ArrayBatches(v, present)
    live.is_live = True
    running = XEngine(backend, live, Full(), kernels, accumulate=PER_DUMP)
    with pytest.raises(UsageError, match="the disk is full"):
        running.run()
    counters = running.counters
    assert (counters.dumps_out, counters.dumps_empty) == (0, 0) and "the sink has failed: the disk" in counters.line()
    assert counters.dumps_dropped > 0


def test_a_launch_may_sum_more_than_32_bits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """All voltages are the largest: autocorrelations of a whole dump saturate, and never wrap around. The default does
    not split slices for the sake of speed, in parts whose sums would fit anyway.
    """
    monkeypatch.setattr("autotune.kernels.correlate.load.parts_that_end_first", lambda *given: 1)
    per_dump = 5000
    v = np.full((2 * per_dump, N_ANTENNAS, C, HEAP, 2, 2), 127, np.int8)
    assert 2 * 127**2 * per_dump * HEAP > 2**31
    backend, sink = HostBackend(), KeptVisibilities()
    kernels = Kernels(backend, lambda line: None, kernels_on_host=True)
    source = ArrayBatches(v, np.ones((len(v), N_ANTENNAS), bool))
    engine = XEngine(backend, source, sink, kernels, accumulate=per_dump, batches_per_chunk=len(v))
    engine.run()
    (dump,) = (made for made, weights in zip(sink.visibilities, sink.weights, strict=True) if weights.all())
    assert (dump[:, :, 0, 0] == 2**31 - 1).all() and (dump[:, :, 0, 1] == 0).all()
