"""Gaps of any length in a source: engines go past them without work, and what came around them is all there."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autotune.engines.corrections.delays import DelayModel
from autotune.engines.corrections.gains import Gains
from autotune.engines.f.chain import Output, bank, voltage_info
from autotune.engines.fx.engine import FXEngine
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.streams.in_memory import ArraySource, KeptVisibilities, KeptVoltages
from autotune.engines.streams.samples import Samples

from .f.test_band import PACKET
from .f.test_engine import INFO, N_PACKETS, SETTINGS, engine, packed
from .f.test_narrow_band import SETTINGS as NARROW
from .fx.test_engine import BATCH, PER_DUMP, outputs
from .stand_ins import good_antennas

AFTER = 50  # packets before the gap
GAPS = [1, 3, 300, 1 << 38]  # packets: the last one is hours at any rate


class Jumping(ArraySource):
    """A source that gives nothing for a while: times of what comes afterwards are so much later."""

    n_gap = 0

    def read(self, out: np.ndarray) -> Samples | None:
        room = out
        if self._at < AFTER:
            room = out[:, : (AFTER - self._at) * self._width]
        late = self.n_gap * PACKET if self._at >= AFTER else 0
        samples = super().read(room)
        return None if samples is None else replace(samples, time=samples.time + late)


def jumping(n_gap: int, info: Any = INFO) -> Jumping:
    source = Jumping(packed(), info)
    source.n_gap = n_gap
    return source


@pytest.mark.parametrize("n_gap", GAPS)
@pytest.mark.parametrize("settings", [SETTINGS, NARROW], ids=["whole", "narrow"])
def test_heaps_on_both_sides_of_a_gap_are_there_and_the_rest_is_counted(n_gap: int, settings: Any) -> None:
    info, sink, delivered = replace(INFO, first_timestamp=(1 << 44) + 64), KeptVoltages(), 0
    given = Output(settings, sink, [DelayModel(), DelayModel()], Gains(bank(settings).n_channels, 2, 0.08))
    running = engine(jumping(n_gap, info), given)
    right = running._chain.outputs[0].buckets.give

    def counted(bucket: Any) -> None:
        nonlocal delivered
        delivered += 1
        right(bucket)

    running._chain.outputs[0].buckets.give = counted  # type: ignore[method-assign]
    (counters,) = running.run()
    times, length = sink.timestamps, voltage_info(info, settings).heap_samples
    edge = info.first_timestamp + AFTER * PACKET
    assert (times < edge).sum() >= 2 and (times >= edge + n_gap * PACKET).sum() >= 1
    spectra = times[:, np.newaxis] + length // sink.present.shape[1] * np.arange(sink.present.shape[1])
    in_gap = (spectra + settings.window > edge) & (spectra < edge + n_gap * PACKET)
    assert not sink.present[in_gap].any() and not sink.voltages.any(axis=(1, 4))[~sink.present].any()
    assert (
        counters.spectra_missing == 2 * ((times[-1] - times[0]) // length + 1) * spectra.shape[1] - sink.present.sum()
    )
    assert counters.heaps_missing == (times[-1] - times[0]) // length + 1 - len(times)
    assert delivered < 100


@pytest.mark.parametrize("n_gap", GAPS)
def test_dumps_on_both_sides_of_a_gap_are_there_and_the_rest_is_counted(n_gap: int) -> None:
    backend, sink = HostBackend(), KeptVisibilities()
    sources = [jumping(n_gap), jumping(n_gap, replace(INFO, first_timestamp=INFO.first_timestamp + 3 * PACKET))]
    kernels = Kernels(backend, lambda line: None)
    given = [outputs(antenna, None) for antenna in range(2)]
    running = FXEngine(backend, sources, given, sink, kernels, accumulate=PER_DUMP, chunk_samples=7 * PACKET)
    _, counters = running.run()
    length = PER_DUMP * BATCH
    times = np.array(sink.timestamps)
    edge = INFO.first_timestamp + AFTER * PACKET
    assert (times < edge).sum() >= 2 and (times >= edge + n_gap * PACKET).sum() >= 1 and len(times) < 100
    assert counters.dumps_skipped == (times[-1] - times[0]) // length + 1 - len(times)
    assert counters.dumps_out + counters.dumps_empty == len(times) and counters.dumps_out >= 3


def test_one_antenna_may_have_a_gap_and_the_others_go_on() -> None:
    n_gap = 40
    backend, sink = HostBackend(), KeptVisibilities()
    whole = ArraySource(packed(), INFO, None, 2)
    kernels = Kernels(backend, lambda line: None)
    given = [outputs(antenna, None) for antenna in range(2)]
    FXEngine(
        backend, [whole, jumping(n_gap)], given, sink, kernels, accumulate=PER_DUMP, chunk_samples=7 * PACKET
    ).run()
    present = good_antennas(sink.weights)
    times = np.array(sink.timestamps)
    edges = INFO.first_timestamp + np.array([AFTER, AFTER + n_gap, N_PACKETS + n_gap, 2 * N_PACKETS]) * PACKET
    length = PER_DUMP * BATCH
    within = (times > edges[0]) & (times + length < edges[1])
    assert within.sum() >= 2 and (present[within] == [True, False]).all()
    behind = (times > edges[1] + 2 * length) & (times + length < edges[2] - 2 * length)
    assert behind.any() and present[behind].all()
    late = (times > edges[2]) & (times + length < edges[3] - length)
    assert late.any() and (present[late] == [True, False]).all()
