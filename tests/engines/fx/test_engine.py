"""F-engines and an X-engine in one process: the dumps that engines one after the other make of the same samples."""

from dataclasses import replace

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output, voltage_info
from autotune.engines.f.engine import FEngine
from autotune.engines.fx.engine import FXEngine
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.streams.in_memory import ArraySource, KeptVisibilities, KeptVoltages
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import REAL_HIGH, REAL_LOW

from ..f.test_band import BANKS, HEAP, PACKET, C, L
from ..f.test_engine import INFO, SETTINGS, Damaged, Sparse
from ..stand_ins import good_antennas, x_engine

PER_DUMP, N_PACKETS = 2, 170
BATCH = HEAP * L
BOTH = (REAL_LOW, REAL_HIGH)
STARTS = [0, 5, 30]  # packets by which the antennas' streams begin late


def outputs(antenna: int, sink: KeptVoltages | None) -> Output:
    delays = [DelayModel(Piece(INFO.first_timestamp, 30.3 * antenna + pol, 1e-5)) for pol in range(2)]
    return Output(SETTINGS, sink, delays, Gains(C, 2, 0.08))


def sources(kind: type[ArraySource] = ArraySource) -> list[ArraySource]:
    made = []
    for antenna, late in enumerate(STARTS):
        n = N_PACKETS - late - 7 * antenna
        packed = np.random.default_rng(antenna).integers(0, 256, (2, n * PACKET * 10 // 8), dtype=np.uint8)
        received = np.ones((2, n), bool)
        received[:, 60 : 60 + 25 * antenna] = False  # gaps of several chunks
        info = replace(INFO, antenna=f"m{antenna}", first_timestamp=INFO.first_timestamp + late * PACKET)
        made.append(kind(packed, info, received))
    return made


def expected(complete_dumps: bool) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Dumps of the voltages of each antenna's own F-engine, by a definition."""
    heaps = []
    for antenna, source in enumerate(sources()):
        backend, sink = HostBackend(), KeptVoltages()
        FEngine(backend, source, [outputs(antenna, sink)], 7, Kernels(backend, lambda line: None)).run()
        made = zip(sink.voltages, sink.present, strict=True)
        heaps.append(dict(zip((sink.timestamps // BATCH).tolist(), made, strict=True)))
    first, last = min(map(min, heaps)), max(map(max, heaps))
    shape = (last + 1 - first, len(heaps), C, HEAP, 2, 2)
    voltages, present = np.zeros(shape, np.int8), np.zeros((*shape[:2], HEAP, 2), bool)
    for antenna, found in enumerate(heaps):
        for batch, heap in found.items():
            voltages[batch - first, antenna], present[batch - first, antenna] = heap
    return x_engine(voltages, present, BATCH, PER_DUMP, first, [len(voltages)], complete=complete_dumps)


def made(
    kind: type[ArraySource] = ArraySource, chunk_samples: int = 7 * PACKET, complete_dumps: bool = False
) -> KeptVisibilities:
    backend, sink = HostBackend(), KeptVisibilities()
    engine = FXEngine(
        backend,
        sources(kind),
        [outputs(antenna, None) for antenna in range(len(STARTS))],
        sink,
        Kernels(backend, lambda line: None),
        accumulate=PER_DUMP,
        chunk_samples=chunk_samples,
        complete_dumps=complete_dumps,
    )
    f_counters, x_counters = engine.run()
    assert x_counters.dumps_out + x_counters.dumps_empty == len(sink.timestamps)
    assert all(counters.heaps_out for counters in f_counters)
    return sink


@pytest.mark.parametrize("chunk_samples", [3 * PACKET, 7 * PACKET, 200 * PACKET])
@pytest.mark.parametrize("kind", [ArraySource, Sparse])
@pytest.mark.parametrize("complete_dumps", [False, True])
def test_dumps_are_those_of_engines_one_after_the_other(
    kind: type[ArraySource], chunk_samples: int, complete_dumps: bool
) -> None:
    sink, dumps = made(kind, chunk_samples, complete_dumps), expected(complete_dumps)
    found = dict(zip(sink.timestamps, zip(sink.visibilities, sink.weights, strict=True), strict=True))
    assert list(found) == sorted(dumps)
    for time, dump in dumps.items():
        assert all(np.array_equal(a, b) for a, b in zip(found[time], dump, strict=True))
    is_good = good_antennas(sink.weights)
    assert is_good.all(axis=1).sum() >= 2 and (is_good.any(axis=1) & ~is_good.all(axis=1)).any()
    assert (np.array(sink.weights)[:, -1] % (PER_DUMP * HEAP) > 0).any() != complete_dumps


@BANKS
def test_dumps_do_not_depend_on_the_nibble_of_the_real_part(bank: str) -> None:
    """Antennas begin late, have gaps and end early."""
    found = []
    for nibbles in BOTH:
        backend, sink = HostBackend(), KeptVisibilities()
        settings = replace(SETTINGS, bits=4, nibbles=nibbles)
        gains = Gains(C, 2, 0.005)
        given = [replace(outputs(antenna, None), settings=settings, gains=gains) for antenna in range(len(STARTS))]
        kernels = Kernels(backend, lambda line: None, filter_bank=bank)
        engine = FXEngine(backend, sources(), given, sink, kernels, accumulate=PER_DUMP, chunk_samples=7 * PACKET)
        engine.run()
        found.append(sink)
    low, high = found
    assert low.timestamps == high.timestamps and np.array_equal(low.weights, high.weights)
    assert np.array_equal(low.visibilities, high.visibilities)
    good = good_antennas(low.weights)
    assert good.all(axis=1).sum() >= 2 and (good.any(axis=1) & ~good.all(axis=1)).any()
    assert np.abs(np.array(low.visibilities)[good.all(axis=1)][..., 1]).max() > 100


@BANKS
def test_voltages_may_be_written_besides(bank: str) -> None:
    backend, kept, alone = HostBackend(), KeptVoltages(), KeptVoltages()
    kernels = Kernels(backend, lambda line: None, filter_bank=bank)
    given = [outputs(antenna, kept if antenna == 1 else None) for antenna in range(len(STARTS))]
    FXEngine(
        backend, sources(), given, KeptVisibilities(), kernels, accumulate=PER_DUMP, chunk_samples=9 * PACKET
    ).run()
    FEngine(backend, sources()[1], [outputs(1, alone)], 7, kernels).run()
    assert np.array_equal(kept.timestamps, alone.timestamps) and np.array_equal(kept.voltages, alone.voltages)


def test_an_error_ends_it_and_what_differs_is_told() -> None:
    with pytest.raises(UsageError, match="frame 42 is damaged"):
        made(Damaged)
    infos = [voltage_info(info, SETTINGS) for info in (INFO, SampleInfo(10, 1, 1e6, PACKET))]
    assert [info.n_pols for info in infos] == [2, 1]
    backend, kernels = HostBackend(), Kernels(HostBackend(), lambda line: None)
    one_pol = replace(SETTINGS, n_channels=C // 2, weights=SETTINGS.weights[:, ::2].copy())
    mixed = [outputs(0, None), replace(outputs(1, None), settings=one_pol)]
    nibbles = [replace(outputs(a, None), settings=replace(SETTINGS, bits=4, nibbles=n)) for a, n in enumerate(BOTH)]
    with pytest.raises(UsageError, match="same nibbles to be correlated; m0: real_low, m1: real_high"):
        FXEngine(
            backend,
            sources()[:2],
            nibbles,
            KeptVisibilities(),
            kernels,
            accumulate=PER_DUMP,
            chunk_samples=PACKET,
        )
    with pytest.raises(UsageError, match="antennas must have the same n_channels to be correlated; m0: 64, m1: 32"):
        FXEngine(
            backend,
            sources()[:2],
            mixed,
            KeptVisibilities(),
            kernels,
            accumulate=PER_DUMP,
            chunk_samples=7 * PACKET,
        )
