"""Gains by the level of a live stream's first chunks: which chunk sets them, and that heaps are as with those gains."""

from collections.abc import Sequence

import numpy as np
import pytest
import spead2
import spead2.send

from autotune.engines.corrections.delays import DelayModel
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output
from autotune.engines.f.engine import FEngine
from autotune.engines.f.filters import prototype
from autotune.engines.f.voltage_buffers import BandSettings
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.network.received import ReceivedSamples
from autotune.engines.network.receiver import Listening
from autotune.engines.service.first_level import FirstLevel
from autotune.engines.streams.in_memory import KeptVoltages
from autotune.engines.streams.samples import SampleInfo

from ..network.test_loopback import plain_heap

C, HEAP, PACKET, CHUNK, N_CHUNKS = 64, 16, 256, 32, 4  # an engine drops none of its first 4 chunks
WEIGHTS = prototype(C, 4)
BAND = BandSettings(C, WEIGHTS, 8, HEAP, heaps_per_batch=2, max_delay_diff=256)
INFO = SampleInfo(8, 2, 1e6, PACKET)
LENGTH = CHUNK * PACKET
FIRST = 40 * LENGTH
GROWTH = np.sqrt(np.square(WEIGHTS, dtype=np.float64).sum() / 2)


def noise(*levels: Sequence[float]) -> np.ndarray:
    """int8 [2, N_CHUNKS LENGTH]; ``levels``: the rms of each polarisation's chunks."""
    rng, parts = np.random.default_rng(3), np.repeat(np.asarray(levels), LENGTH, axis=1)
    return np.rint(np.clip(rng.normal(size=parts.shape) * parts, -127, 127)).astype(np.int8)


def came(**lost: slice) -> np.ndarray:
    """Bool [2, packets]: all but ``lost``, by pol0 and pol1."""
    made = np.ones((2, N_CHUNKS * CHUNK), bool)
    for name, some in lost.items():
        made[int(name[-1]), some] = False
    return made


def live(samples: np.ndarray, received: np.ndarray, is_live: bool = True) -> ReceivedSamples:
    """A source, to which everything is sent by now. ``is_live``: an engine that is late drops heaps."""
    queue, config = spead2.InprocQueue(), spead2.send.StreamConfig(max_packet_size=PACKET + 72, max_heaps=4096)
    stream = spead2.send.InprocStream(spead2.ThreadPool(1), [queue], config)
    for number, pol in zip(*np.nonzero(received.T), strict=True):
        at = int(number) * PACKET
        stream.send_heap(plain_heap(int(pol), FIRST + at, samples[pol, at : at + PACKET].view(np.uint8)))
    stop = spead2.send.Heap(spead2.Flavour(4, 64, 48, 0))
    stop.add_end()
    stream.send_heap(stop)
    return ReceivedSamples(INFO, Listening([[queue]], "inproc"), is_live=is_live, near=FIRST, confirm=1, patience_s=0.0)


def found(samples: np.ndarray, received: np.ndarray) -> tuple[list[list[float]], list[str]]:
    """The gains of both polarisations at the beginning of each chunk, and what was told."""
    gains, told = Gains(C, 2), list[str]()
    source = live(samples, received)
    source.looks.append(FirstLevel(INFO, [(BAND, gains)], told.append).look)
    source.lend([np.full((2, LENGTH), 0x7F, np.uint8) for _ in range(6)])  # where no packet comes there is rubbish
    while (taken := source.take()) is not None:
        source.give_back(taken[0])
    source.close()
    values = [gains.at(FIRST + at * LENGTH)[1] for at in range(N_CHUNKS)]
    assert all((each == each[0]).all() for each in values) and (gains.at(FIRST - 1)[1] == 1).all()
    return [each[0].real.tolist() for each in values], told


def gain(samples: np.ndarray) -> float:
    """The gain that gives voltages an rms of 16."""
    return float(16 / (np.sqrt(np.square(samples, dtype=np.float64).mean()) * GROWTH))


def chunk(at: int) -> slice:
    return slice(at * LENGTH, (at + 1) * LENGTH)


def packets(at: int, first: int = 0, end: int = CHUNK) -> slice:
    return slice(at * CHUNK + first, at * CHUNK + end)


def test_the_first_chunk_sets_the_gains_of_all() -> None:
    samples = noise([20, 40, 5, 1], [7, 60, 60, 60])
    values, told = found(samples, came())
    assert np.allclose(values, [[gain(row[chunk(0)]) for row in samples]] * N_CHUNKS, rtol=1e-6)
    (line,) = told
    assert line.startswith("samples have an rms of 7.0") and line.endswith("give voltages of rms 16")


@pytest.mark.parametrize("is_zero", [False, True])
def test_a_polarisation_that_is_silent_at_first_gets_its_gain_when_it_comes(is_zero: bool) -> None:
    """Silent: without packets, or with zeros. The other one keeps the gain that it has, though its level changes."""
    samples = noise([20, 20, 30, 40], [0, 0, 0, 9] if is_zero else [9, 9, 9, 9])
    values, told = found(samples, came() if is_zero else came(pol1=slice(0, 3 * CHUNK)))
    begin = 0 if is_zero else 2  # chunks pass while both are waited for
    first, second = gain(samples[0, chunk(begin)]), gain(samples[1, chunk(3)])
    before, after = [first, 16 / GROWTH], [first, second]
    assert np.allclose(values, [[1, 1]] * begin + [before] * (3 - begin) + [after], rtol=1e-6)
    assert len(told) == 1


def test_half_of_a_chunk_is_enough_and_is_measured_by_what_came() -> None:
    samples = noise([20, 50, 50, 50], [9, 50, 50, 50])
    values, told = found(samples, came(pol0=packets(0, CHUNK // 2), pol1=packets(0, 1, 1 + CHUNK // 2)))
    half, rest = samples[0, : LENGTH // 2], np.r_[samples[1, :PACKET], samples[1, PACKET + LENGTH // 2 : LENGTH]]
    assert np.allclose(values, [[gain(half), gain(rest)]] * N_CHUNKS, rtol=1e-6) and len(told) == 1


def test_less_than_half_of_a_chunk_holds_until_the_next_one() -> None:
    samples = noise([20, 50, 10, 50], [9, 10, 30, 10])
    values, told = found(samples, came(pol0=packets(0, CHUNK // 2 - 1)))
    some = gain(samples[0, : (CHUNK // 2 - 1) * PACKET])
    other = gain(samples[1, chunk(0)])
    assert np.allclose(values, [[some, other]] + [[gain(samples[0, chunk(1)]), other]] * 3, rtol=1e-6)
    assert len(told) == 1


def test_heaps_are_those_of_an_engine_that_has_these_gains_from_then_on() -> None:
    """A polarisation is zero for two chunks, so gains change amid the stream."""
    samples = noise([20, 40, 30, 40], [0, 0, 9, 30])
    first, second = gain(samples[0, chunk(0)]), gain(samples[1, chunk(2)])
    given = Gains(C, 2)
    given.set(FIRST, np.array([first, 16 / GROWTH]))
    given.set(FIRST + 2 * LENGTH, np.array([first, second]))

    def made(gains: Gains, is_levelled: bool) -> KeptVoltages:
        backend, sink, source = HostBackend(), KeptVoltages(), live(samples, came(), is_live=False)
        source.looks += [FirstLevel(INFO, [(BAND, gains)], lambda line: None).look] * is_levelled
        outputs = [Output(BAND, sink, [DelayModel(), DelayModel()], gains)]
        (counters,) = FEngine(backend, source, outputs, CHUNK, Kernels(backend, lambda line: None)).run()
        assert counters.samples_in == N_CHUNKS * LENGTH and counters.chunks_dropped == 0
        source.close()
        return sink

    by_level, expected = made(Gains(C, 2), True), made(given, False)
    n = N_CHUNKS * LENGTH // (2 * C * HEAP)
    both, one, other = np.intersect1d(by_level.timestamps, expected.timestamps, return_indices=True)
    assert len(both) == n - 1, "all but the last one, whose last samples did not come"
    assert np.array_equal(by_level.voltages[one], expected.voltages[other])
    late = expected.voltages[expected.timestamps >= FIRST + 3 * LENGTH, 1:].astype(float)
    assert np.allclose(late[..., 0, :].std(), 16 * 2, rtol=0.1), "its chunk is twice as loud as the first"
