"""Dumps on host, by NumPy and by the kernels: exact integers, whatever is missing and however a stream is cut."""

from collections.abc import Sequence

import numpy as np
import pytest

from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.backend import Event
from autotune.engines.machine.host_backend import HostBackend
from autotune.engines.run.bay import Bay
from autotune.engines.run.counters import XCounters
from autotune.engines.x.stage import Visibilities, XStage
from autotune.engines.x.x_settings import XSettings

from ..f.test_band import random_cuts
from ..stand_ins import correlate

pytestmark = pytest.mark.quick

C, HEAP, BATCH, PER_DUMP = 3, 16, 1 << 12, 5


def dumps_of(
    v: np.ndarray, present: np.ndarray, first: int, cuts: Sequence[int], settings: XSettings, by_kernels: bool
) -> dict[int, tuple[np.ndarray, np.ndarray, int]]:
    backend, found = HostBackend(), {}

    def deliver(made: Visibilities) -> Event:
        found[made.time] = made.visibilities.copy(), made.good.copy(), int(made.saturated[0])
        return backend.stream().record()

    kernels = Kernels(backend, lambda line: None, kernels_on_host=by_kernels)
    stage = XStage(Bay(backend, kernels), settings, deliver, XCounters())
    chunk, at = backend.empty(settings.chunk_shape, np.int8), 0
    for n in cuts:
        chunk[:n] = np.where(present[at : at + n].reshape(n, -1, *[1] * (v.ndim - 2)), v[at : at + n], 77)
        if present[at : at + n].any() or at == 0:
            stage.take(chunk, (first + at) * BATCH, present[at : at + n])
        at += n
    return found


@pytest.mark.parametrize("by_kernels", [False, True])
@pytest.mark.parametrize(("n_antennas", "bits", "n_slices"), [(1, 8, 1), (4, 8, 2), (5, 4, 1), (80, 8, 1)])
def test_dumps_are_exact_and_do_not_depend_on_how_a_stream_is_cut(
    n_antennas: int, bits: int, n_slices: int, by_kernels: bool
) -> None:
    rng = np.random.default_rng(n_antennas)
    n_batches, first = 23, (1 << 44) + 3
    most = 127 if bits == 8 else 7
    parts = rng.integers(-most, most + 1, (n_batches, n_antennas, C, HEAP, 2, 2), dtype=np.int8)
    v = parts if bits == 8 else (parts[..., 0] & 15) | (parts[..., 1] << 4)
    present = np.ones((n_batches, n_antennas), bool)
    present[9, n_antennas // 2] = False
    present[16:18] = False
    settings = XSettings(n_antennas, C, HEAP, BATCH, PER_DUMP, n_batches, bits, n_slices)
    whole = dumps_of(v, present, first, [n_batches], settings, by_kernels)
    in_chunks = dumps_of(v, present, first, random_cuts(rng, n_batches, 6), settings, by_kernels)
    start = -(-first // PER_DUMP) * PER_DUMP  # dumps that are whole
    times = range(start, first + n_batches - PER_DUMP + 1, PER_DUMP)
    assert sorted(whole) == [t * BATCH for t in times] == sorted(in_chunks)
    j, i = np.tril_indices(n_antennas)
    for time, (visibilities, good, saturated) in whole.items():
        assert all(np.array_equal(a, b) for a, b in zip(whole[time], in_chunks[time], strict=True))
        at = time // BATCH - first
        expected_good = present[max(at, 0) : at + PER_DUMP].all(axis=0) & (at >= 0) & (at + PER_DUMP <= n_batches)
        assert np.array_equal(good, expected_good) and saturated == 0
        expected = np.zeros((C, len(i), 4, 2), np.int64)
        if n_antennas < 10 or expected_good.any():
            correlate(parts[max(at, 0) : at + PER_DUMP], expected)
        expected[:, ~(good[i] & good[j])] = (-(2**31), 1)
        assert np.array_equal(visibilities, expected)
    assert any(good.all() for _, good, _ in whole.values()) and any(not good.any() for _, good, _ in whole.values())
