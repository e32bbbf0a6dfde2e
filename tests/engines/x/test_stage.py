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
from ..stand_ins import x_engine

pytestmark = pytest.mark.quick

C, HEAP, BATCH, PER_DUMP = 3, 16, 1 << 12, 5


def dumps_of(
    v: np.ndarray, spectra: np.ndarray, first: int, cuts: Sequence[int], settings: XSettings, by_kernels: bool
) -> dict[int, tuple[np.ndarray, np.ndarray, int]]:
    """``spectra``: bool [batch, antenna], the heaps that came, or [batch, antenna, time, pol], the spectra."""
    backend, found = HostBackend(), {}

    def deliver(made: Visibilities) -> Event:
        found[made.time] = made.visibilities.copy(), made.weights.copy(), int(made.saturated[0])
        return backend.stream().record()

    kernels = Kernels(backend, lambda line: None, kernels_on_host=by_kernels)
    stage = XStage(Bay(backend, kernels), settings, deliver, XCounters())
    chunk, at = backend.empty(settings.chunk_shape, np.int8), 0
    flags = spectra.reshape(*spectra.shape, *[1] * (4 - spectra.ndim))
    present = flags.any(axis=(2, 3))
    shown = flags[:, :, np.newaxis].reshape(*flags.shape[:2], 1, *flags.shape[2:], *[1] * (v.ndim - 5))
    masked = np.where(present.reshape(*present.shape, *[1] * (v.ndim - 2)), np.where(shown, v, np.int8(0)), np.int8(77))
    for n in cuts:
        some = slice(at, at + n)
        chunk[:n] = masked[some]
        if present[some].any() or at == 0:
            lacking = np.argwhere(present[some] & ~flags[some].all(axis=(2, 3))).tolist()
            holes = {(batch, antenna): flags[at + batch, antenna] for batch, antenna in lacking}
            stage.take(chunk, (first + at) * BATCH, present[some], holes)
        at += n
    return found


@pytest.mark.parametrize("by_kernels", [False, True])
@pytest.mark.parametrize(
    ("n_antennas", "bits", "n_slices", "complete"),
    [(1, 8, 1, False), (4, 8, 2, False), (4, 8, 2, True), (5, 4, 1, False), (40, 8, 1, False)],
)
def test_dumps_are_exact_and_do_not_depend_on_how_a_stream_is_cut(
    n_antennas: int, bits: int, n_slices: int, complete: bool, by_kernels: bool
) -> None:
    rng = np.random.default_rng(n_antennas)
    n_batches, first = 23, (1 << 44) + 3
    most = 127 if bits == 8 else 7
    parts = rng.integers(-most, most + 1, (n_batches, n_antennas, C, HEAP, 2, 2), dtype=np.int8)
    v = parts if bits == 8 else (parts[..., 0] & 15) | (parts[..., 1] << 4)
    spectra = np.ones((n_batches, n_antennas, HEAP, 2), bool)
    spectra[6, 0, 5:9, 1] = spectra[9, n_antennas // 2] = spectra[16:18] = False
    spectra[12, -1] = rng.random((HEAP, 2)) < 0.5
    settings = XSettings(n_antennas, C, HEAP, BATCH, PER_DUMP, n_batches, bits, n_slices, complete_dumps=complete)
    whole = dumps_of(v, spectra, first, [n_batches], settings, by_kernels)
    in_chunks = dumps_of(v, spectra, first, random_cuts(rng, n_batches, 6), settings, by_kernels)
    expected = x_engine(parts, spectra, BATCH, PER_DUMP, first, [n_batches], complete=complete)
    assert whole.keys() == expected.keys() == in_chunks.keys() and len(whole) == 4
    for time, (visibilities, weights, saturated) in whole.items():
        assert all(np.array_equal(a, b) for a, b in zip(whole[time], in_chunks[time], strict=True))
        assert np.array_equal(visibilities, expected[time][0]) and np.array_equal(weights, expected[time][1])
        assert saturated == 0
    n_lacking = [np.count_nonzero(weights != PER_DUMP * HEAP) for _, weights, _ in whole.values()]
    n_marked = sum(np.count_nonzero(found[0, :, 0, 0] == -(2**31)) for found, _, _ in whole.values())
    assert n_lacking[0] == 0 and all(n_lacking[1:]) and bool(n_marked) == complete
