"""Engines of plans and NumPy: buffers that are reused, chunks cut anyhow, kernels a few lines each."""

from collections.abc import Iterator, Sequence

import numpy as np

from autotune import unpack_samples
from autotune.engines.corrections.delays import DelayModel
from autotune.engines.f.plan import Batch, FPlan, FShape, Run
from autotune.engines.x.plan import BatchRange, Integration, XPlan

BITS = 10
RUBBISH = 0xA5  # what a buffer holds where nothing came


def filtered(samples: np.ndarray, first: int, n: int, weights: np.ndarray) -> np.ndarray:
    """float32 [n, L]: sums of taps rows, the oldest first."""
    taps, step = weights.shape
    rows = unpack_samples(samples, BITS, first, (n + taps - 1) * step).astype(np.float32).reshape(-1, step)
    sums = np.zeros((n, step), np.float32)
    for tap in range(taps):
        sums += weights[tap] * rows[tap : tap + n]
    return sums


def voltages(sums: np.ndarray, fine: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """int8 [n, C, 2] of float32 [n, 2 C], delays and phases of each spectrum."""
    n_channels = sums.shape[1] // 2
    spectra = np.fft.rfft(np.nan_to_num(sums), axis=1)[:, :n_channels]
    from_centre = (np.arange(n_channels) - n_channels / 2) / n_channels
    phasors = np.exp(1j * (phase[:, np.newaxis] - np.pi * fine[:, np.newaxis] * from_centre))
    v = spectra * phasors * 0.2
    return np.stack([np.clip(np.rint(part), -127, 127) for part in (v.real, v.imag)], axis=-1).astype(np.int8)


def chunks(received: np.ndarray, cuts: Sequence[int], reach: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """(first packet, flags) of each chunk; those of which nothing came do not arrive, but for the first.

    ``reach``: packets of a gap that are given as missing ones, before the rest is left out.
    """
    at = n_missing = 0
    for n in cuts:
        flags = received[..., at : at + n]
        n_missing = 0 if flags.any() else n_missing + n
        if at == 0 or n_missing - n < reach:
            yield at, flags
        at += n


def f_engine(
    shape: FShape,
    delays: Sequence[DelayModel],
    weights: np.ndarray,
    packed: np.ndarray,
    received: np.ndarray,
    origin: int,
    cuts: Sequence[int],
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Time of each heap -> int8 [n_pols, spectra_per_heap, C, 2], 0 where a spectrum is missing, and bool [.., n_pols].

    ``packed``: uint8 [n_pols, bytes] from ``origin``.
    """
    n_pols, packet_bytes = len(delays), shape.packet * BITS // 8
    head_bytes = shape.head * BITS // 8
    plan, heaps = FPlan(shape, delays), {}
    sums = np.full((n_pols, shape.spectra_per_batch, weights.shape[1]), np.nan, np.float32)
    buffer = np.full((n_pols, head_bytes + packed.shape[1] + 2), RUBBISH, np.uint8)
    end = origin  # of the samples in the buffer

    def act(item: Run | Batch) -> None:
        if isinstance(item, Run):
            for pol in range(n_pols):
                first = item.first[pol] - (end_before - shape.head)
                assert first >= 0
                sums[pol, item.place : item.place + item.n] = filtered(buffer[pol], first, item.n, weights)
        else:
            assert item.time % shape.batch_samples == 0
            for heap in np.flatnonzero(item.heaps(shape)).tolist():
                some = slice(heap * shape.spectra_per_heap, (heap + 1) * shape.spectra_per_heap)
                made = [voltages(sums[pol, some], item.fine[some, pol], item.phase[some, pol]) for pol in range(n_pols)]
                there = item.present[some].copy()
                masked = np.where(there.T[:, :, np.newaxis, np.newaxis], np.stack(made), np.int8(0))
                heaps[item.time + heap * shape.spectra_per_heap * shape.step] = masked, there
            sums[...] = np.nan

    for at, flags in chunks(received, cuts, shape.head // shape.packet):
        time, n = origin + at * shape.packet, flags.shape[1]
        end_before = time
        moved = (time - end) * BITS // 8  # the head moves on, also over a gap
        body = np.repeat(flags, packet_bytes, axis=1)
        news = np.where(body, packed[:, at * packet_bytes : (at + n) * packet_bytes], RUBBISH)
        buffer[:, :head_bytes] = (
            buffer[:, moved : moved + head_bytes] if moved + head_bytes <= buffer.shape[1] else RUBBISH
        )
        buffer[:, head_bytes : head_bytes + news.shape[1]] = news
        for item in plan.chunk(time, flags):
            act(item)
        end = time + n * shape.packet
        buffer[:, :head_bytes] = buffer[:, news.shape[1] : news.shape[1] + head_bytes].copy()
    for item in plan.finish():
        act(item)
    return heaps


def good_antennas(weights: Sequence[np.ndarray]) -> np.ndarray:
    """bool [n_dumps, n_antennas]: those with as many spectra as any has, by uint32 [n_baselines, 4] of each dump."""
    every = np.array(weights)
    _, own = np.nonzero(np.equal(*np.tril_indices(int(np.sqrt(2 * every.shape[1]))))[np.newaxis])
    return np.asarray((every[:, own] == every.max()).all(axis=2))


def weights_of(present: np.ndarray, n_spectra: int = 1) -> np.ndarray:
    """uint32 [n_baselines, 4]: of antennas, bool [n], all ``n_spectra`` are there or none."""
    j, i = np.tril_indices(len(present))
    return np.repeat(n_spectra * (present[i] & present[j]).astype(np.uint32)[:, np.newaxis], 4, axis=1)


def correlate(v: np.ndarray, accumulators: np.ndarray) -> None:
    """Add the products of int8 [batch, antenna, channel, time, pol, 2] to int64 [channel, baseline, 4, 2]."""
    parts = v.astype(np.int64)
    x = parts[..., 0] + 1j * parts[..., 1]
    baseline = 0
    for j in range(v.shape[1]):
        for i in range(j + 1):
            for q in range(2):
                for p in range(2):
                    product = (x[:, i, :, :, p] * x[:, j, :, :, q].conj()).sum(axis=(0, 2))
                    accumulators[:, baseline, p + 2 * q, 0] += product.real.astype(np.int64)
                    accumulators[:, baseline, p + 2 * q, 1] += product.imag.astype(np.int64)
            baseline += 1


def nibbles_exchanged(v: np.ndarray) -> np.ndarray:
    """Voltages of 4 bits with their parts in each other's place."""
    v = v.view(np.uint8)
    return (v >> 4 | v << 4).view(np.int8)


def x_engine(
    v: np.ndarray,
    present: np.ndarray,
    batch_samples: int,
    accumulate: int,
    first_batch: int,
    cuts: Sequence[int],
    *,
    complete: bool = False,
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Time of each dump -> int64 [channel, baseline, 4, 2], (-2^31, 1) where a baseline lacks data, and its weights.

    ``present``: bool [batch, antenna], or which spectra there are, bool [batch, antenna, time, pol]. Voltages of
    spectra that are not present have any values.
    """
    n_antennas, n_channels, n_times = v.shape[1:4]
    plan, dumps = XPlan(n_antennas, batch_samples, accumulate, n_times, complete=complete), {}
    spectra = np.broadcast_to(present.reshape(*present.shape, *[1] * (4 - present.ndim)), (*v.shape[:2], n_times, 2))
    present = spectra.any(axis=(2, 3))
    masked = np.where(spectra[:, :, np.newaxis, :, :, np.newaxis], v, v.dtype.type(0))
    accumulators = np.zeros((n_channels, n_antennas * (n_antennas + 1) // 2, 4, 2), np.int64)

    def act(item: BatchRange | Integration, some: np.ndarray) -> None:
        if isinstance(item, BatchRange):
            correlate(some[item.first : item.first + item.n], accumulators)
        else:
            dumps[item.time] = accumulators.copy(), item.weights
            dumps[item.time][0][:, item.present() == 0] = (-(2**31), 1)
            accumulators[...] = 0

    for at, flags in chunks(present.T, cuts):
        inside = slice(at, at + flags.shape[1])
        some, there = masked[inside], spectra[inside]
        lacking = np.argwhere(flags.T & ~there.all(axis=(2, 3))).tolist()
        holes = {(batch, antenna): there[batch, antenna] for batch, antenna in lacking}
        for item in plan.chunk((first_batch + at) * batch_samples, flags.T, holes):
            act(item, some)
    return dumps
