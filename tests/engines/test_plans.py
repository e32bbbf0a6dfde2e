"""A stream gives the same heaps and dumps, bit by bit, however it is cut; and those of a definition without a plan."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from autotune import UsageError, unpack_samples
from autotune.engines.corrections.delays import DelayModel, Piece
from autotune.engines.f.plan import Batch, FPlan, FShape
from autotune.engines.x.plan import Integration, XPlan

from .stand_ins import BITS, correlate, f_engine, voltages, x_engine

generated = settings(
    max_examples=80, deadline=None, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck)
)


def cut(rng: np.random.Generator, total: int) -> list[int]:
    """Lengths of chunks, at random: of one to a few, or up to all at once."""
    most, cuts = 1 + int(total * rng.random() ** 3), []
    while total:
        cuts.append(int(rng.integers(1, min(most, total) + 1)))
        total -= cuts[-1]
    return cuts


def drawn_delays(draw: Any, origin: int, n_samples: int) -> DelayModel:
    pieces = [
        Piece(
            origin + draw(st.integers(-500, n_samples)),
            draw(st.floats(-60, 60)),
            draw(st.sampled_from([0.05, 0.0, 1e-3, -2e-2])),
            draw(st.floats(-3, 3)),
            draw(st.sampled_from([0.0, 1e-3])),
        )
        for _ in range(draw(st.sampled_from([1, 2, 3, 0])))
    ]
    return DelayModel(*pieces)


@generated
@given(st.data())
def test_heaps_do_not_depend_on_how_a_stream_is_cut(data: Any) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    taps, step = draw(st.integers(1, 4)), draw(st.sampled_from([8, 16]))
    shape = FShape(
        step=step,
        window=taps * step,
        packet=draw(st.sampled_from([16, 32, 64])),
        spectra_per_heap=draw(st.sampled_from([1, 2, 4])),
        heaps_per_batch=draw(st.integers(1, 4)),
        max_delay_diff=draw(st.integers(0, 100)),
    )
    n_packets = draw(st.integers(20, 80))
    origin = (1 << draw(st.sampled_from([0, 30, 49, 61]))) + draw(st.integers(0, 10**5))
    n_pols = draw(st.sampled_from([2, 2, 1]))
    delays = [drawn_delays(draw, origin, n_packets * shape.packet) for _ in range(n_pols)]
    weights = rng.standard_normal((taps, step)).astype(np.float32)
    packed = rng.integers(0, 256, (n_pols, n_packets * shape.packet * BITS // 8), dtype=np.uint8)
    received = rng.random((n_pols, n_packets)) >= draw(st.sampled_from([0.0, 0.0, 0.02, 0.2]))
    if draw(st.booleans()):
        hole = draw(st.integers(0, n_packets - 1))
        received[:, hole : hole + draw(st.integers(1, 30))] = False
    received[draw(st.integers(0, n_pols - 1)), -1] = True  # a stream ends with its last packet
    given = (shape, delays, weights, packed, received, origin)
    whole = f_engine(*given, [n_packets])
    in_chunks = f_engine(*given, cut(rng, n_packets))
    assert whole.keys() == in_chunks.keys()
    for time, (heap, there) in whole.items():
        assert all(np.array_equal(a, b) for a, b in zip((heap, there), in_chunks[time], strict=True))
        assert time % (shape.spectra_per_heap * step) == 0 and there.any()
        for pol, model in enumerate(delays):
            for s in range(shape.spectra_per_heap):
                came, expected = by_definition(model, time + s * step, weights, packed[pol], origin, received[pol])
                assert came or not there[s, pol]
                assert np.array_equal(heap[pol, s], expected if there[s, pol] else 0 * expected)
    complete = f_engine(replace(shape, whole_heaps=True), *given[1:], cut(rng, n_packets))
    assert complete.keys() == {time for time, (_, there) in whole.items() if there.all()}
    assert all(np.array_equal(complete[time][0], whole[time][0]) for time in complete)


@generated
@given(st.data())
def test_a_spectrum_is_missing_where_its_polarisation_lost_a_packet_and_nowhere_else(data: Any) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    taps, packet, n_packets = int(rng.integers(1, 5)), int(rng.choice([16, 32, 400])), 30
    per_heap, per_batch = (int(rng.integers(1, most)) for most in (60, 4))
    coarse, origin = rng.integers(-40, 41, 2), int(rng.integers(1 << 40))
    shape = FShape(8, taps * 8, packet, per_heap, per_batch, max_delay_diff=80)
    delays = [DelayModel(Piece(-5, float(delay))) for delay in coarse]
    received = rng.random((2, n_packets)) >= rng.choice([0.02, 0.2, 0.7])
    received[rng.integers(2), -1] = True
    packed = rng.integers(0, 256, (2, n_packets * packet * BITS // 8), dtype=np.uint8)
    given = (shape, delays, np.ones((taps, 8), np.float32), packed, received, origin)
    heaps, length, end = f_engine(*given, cut(rng, n_packets)), per_heap * 8, origin + n_packets * packet
    samples = np.repeat(received, packet, axis=1)
    for time in range(-(-(origin + coarse.max()) // length) * length, end + coarse.max() + 1, length):
        firsts = time - origin - coarse + 8 * np.arange(per_heap)[:, np.newaxis]
        if (firsts + taps * 8).max() <= n_packets * packet:  # the heap is inside
            came = [[samples[pol, first : first + taps * 8].all() for pol, first in enumerate(row)] for row in firsts]
            assert np.array_equal(heaps.pop(time)[1], came) if np.any(came) else time not in heaps
    assert not heaps


@pytest.mark.parametrize("packet", [16, 32, 64])
@pytest.mark.parametrize("delay", [0.0, 37.25, -37.25, -100.0])
def test_no_heap_is_lost_without_a_cause(packet: int, delay: float) -> None:
    shape = FShape(step=8, window=32, packet=packet, spectra_per_heap=2, heaps_per_batch=3)
    delays = [DelayModel(Piece(-5, delay)) for _ in range(2)]
    rng, n_packets = np.random.default_rng(packet), 40
    origin = (1 << 40) + int(rng.integers(1000))
    packed = rng.integers(0, 256, (2, n_packets * packet * BITS // 8), dtype=np.uint8)
    weights, received = np.ones((4, 8), np.float32), np.ones((2, n_packets), bool)
    begin, end = origin + round(delay), origin + n_packets * packet + round(delay)
    expected = [t for t in range(-(-begin // 16) * 16, end, 16) if t + 8 + shape.window <= end]
    for cuts in ([n_packets], cut(rng, n_packets), [1] * n_packets):
        assert sorted(f_engine(shape, delays, weights, packed, received, origin, cuts)) == expected


GAPS = [1, 5, 11, 12, 40, 1000, 1 << 17, 1 << 45]


@pytest.mark.parametrize("n_gap", GAPS)
@pytest.mark.parametrize("delay", [0.0, -43.0, 90.25])
@pytest.mark.parametrize("whole_heaps", [False, True])
def test_a_gap_of_any_length_is_counted_and_costs_the_same(n_gap: int, delay: float, whole_heaps: bool) -> None:
    shape = FShape(8, 24, 16, spectra_per_heap=3, heaps_per_batch=2, max_delay_diff=20, whole_heaps=whole_heaps)
    rng = np.random.default_rng(n_gap)
    origin, n = int(rng.integers(1 << 50)), 30
    plan = FPlan(shape, [DelayModel(Piece(-5, delay)), DelayModel(Piece(-5, delay + 9))])
    flags, later = np.ones((2, n), bool), origin + (n + n_gap) * 16
    missing = np.zeros((2, min(n_gap, shape.head // 16)), bool)
    chunks = [(origin, flags), (origin + n * 16, missing), (later, flags)]
    items = [item for time, some in chunks for item in plan.chunk(time, some)] + list(plan.finish())
    batches = [item for item in items if isinstance(item, Batch)]
    assert len(items) < 60
    made = {batch.time + 24 * heap for batch in batches for heap in np.flatnonzero(batch.heaps(shape)).tolist()}
    ranges = [(origin, origin + n * 16), (later, later + n * 16)]
    coarse = round(delay), round(delay + 9)
    begin, end = -(-(origin + coarse[1]) // 24) * 24, later + n * 16 + coarse[0] - 40 + 1  # heaps have all samples
    near = [t for b, e in ranges for t in range(b - 400, e + 400) if t % 24 == 0 and begin <= t < end]
    there = {t: [_inside(t + 8 * s - c, ranges) for s in range(3) for c in coarse] for t in near}
    if whole_heaps:
        there = {t: [all(flags)] * 6 for t, flags in there.items()}
    assert made == {t for t, flags in there.items() if any(flags)}
    first, last = min(made), max(made)
    assert sum(batch.n_missing(shape) for batch in batches) == (last - first) // 24 + 1 - len(made)
    n_made = sum(map(sum, there.values()))
    if not whole_heaps:
        assert sum(batch.n_spectra_missing(shape) for batch in batches) == (last - first + 24) // 24 * 6 - n_made


def _inside(first: int, ranges: list[tuple[int, int]]) -> bool:
    return any(b <= first and first + 24 <= e for b, e in ranges)


@pytest.mark.parametrize("n_gap", GAPS)
def test_dumps_of_a_gap_are_counted_and_cost_nothing(n_gap: int) -> None:
    rng = np.random.default_rng(n_gap)
    first, per_dump, n = int(rng.integers(1 << 40)), 7, 20
    plan, later = XPlan(2, 32, per_dump, 4), first + n + n_gap
    came = np.ones((n, 2), bool)
    came[3:, 1] = False  # one antenna is silent from here on, and returns after the gap
    items = list(plan.chunk(first * 32, came)) + list(plan.chunk(later * 32, np.ones((n, 2), bool)))
    dumps = [item for item in items if isinstance(item, Integration)]
    here = set(range(first, first + n)) | set(range(later, later + n))
    inside = range(-(-first // per_dump), (later + n) // per_dump)  # dumps that are whole
    some = [range(d * per_dump, (d + 1) * per_dump) for d in (inside if len(inside) < 1000 else [])]
    if some:
        assert [d.time // 32 for d in dumps] == [d[0] for d in some if here & set(d)]
        assert [int(d.weights[0, 0]) for d in dumps] == [4 * len(here & set(d)) for d in some if here & set(d)]
    assert len(items) < 20 and len(dumps) + plan.n_skipped == len(inside)
    assert plan.n_missing == n_gap + n - 3 + n_gap


def test_a_delay_that_grows_asks_for_what_is_gone() -> None:
    shape = FShape(step=8, window=16, packet=16, spectra_per_heap=2, heaps_per_batch=3)
    rng, n_packets = np.random.default_rng(1), 40
    packed = rng.integers(0, 256, (1, n_packets * 16 * BITS // 8), dtype=np.uint8)
    delays = [DelayModel(Piece(300, 40.0))]  # max_delay_diff is 0
    given = shape, delays, np.ones((2, 8), np.float32), packed, np.ones((1, n_packets), bool), 0
    whole = f_engine(*given, [n_packets])
    for n in (1, 3):
        assert f_engine(*given, [n] * (n_packets // n) + [n_packets % n]).keys() == whole.keys()
    absent = {t + 8 * s for t in range(0, 640 - 64, 16) for s in range(2) if t not in whole or not whole[t][1][s].all()}
    assert absent == {304, 312, 320, 328}


def test_polarisations_that_are_too_far_apart_give_nothing() -> None:
    shape = FShape(step=8, window=16, packet=16, spectra_per_heap=2, heaps_per_batch=3)
    rng, n_packets = np.random.default_rng(2), 40
    packed = rng.integers(0, 256, (2, n_packets * 16 * BITS // 8), dtype=np.uint8)
    delays = [DelayModel(), DelayModel(Piece(-5, 40.0))]  # max_delay_diff is 0
    given = shape, delays, np.ones((2, 8), np.float32), packed, np.ones((2, n_packets), bool), 0
    assert not f_engine(*given, [n_packets])
    assert not f_engine(*given, [1] * n_packets)


def by_definition(
    model: DelayModel, time: int, weights: np.ndarray, packed: np.ndarray, origin: int, received: np.ndarray
) -> tuple[bool, np.ndarray]:
    """Whether all samples of the spectrum that leaves at ``time`` came, and the spectrum: int8 [C, 2]."""
    taps, step = weights.shape
    piece = max((p for p in model.pieces if p.start <= time), key=lambda p: p.start)
    since = float(time - piece.start) if piece.rate or piece.phase_rate else 0.0
    delay = piece.delay + piece.rate * since
    first = time - round(delay)  # halves to even, as NumPy's
    n_samples = packed.size * 8 // BITS
    begin, end = first - origin, first - origin + taps * step
    if begin < 0 or end > n_samples or not np.repeat(received, n_samples // len(received))[begin:end].all():
        return False, np.zeros((step // 2, 2), np.int8)
    samples = unpack_samples(packed, BITS, begin, taps * step).astype(np.float32).reshape(taps, step)
    sums = np.zeros(step, np.float32)
    for tap in range(taps):
        sums += weights[tap] * samples[tap]
    phase = piece.phase + piece.phase_rate * since
    phase -= 2 * np.pi * np.rint(phase / (2 * np.pi))
    phase += np.pi / 2 * ((time - first) % 4)  # the centre channel keeps its phase
    return True, voltages(sums[np.newaxis], *(np.array([x], np.float32) for x in (delay - round(delay), phase)))[0]


@generated
@given(st.data())
def test_delays_are_exact(data: Any) -> None:
    draw = data.draw
    start = (1 << draw(st.sampled_from([10, 48, 52, 61]))) + draw(st.integers(0, 10**6))
    quantum = draw(st.sampled_from([1, 16]))
    piece = Piece(start, draw(st.floats(-1e6, 1e6)), draw(st.sampled_from([0.0, 2.56e-9, -1e-7, 1e-3])), 0.1, 1e-6)
    first, step = start + draw(st.integers(0, 10**12)), draw(st.sampled_from([8192, 65536]))
    model = DelayModel(piece)
    found = model.at(first, 16, step, quantum)
    for i in range(16):
        time, (coarse, end) = first + i * step, found.run(i)
        exact, fine = Fraction(piece.delay) + Fraction(piece.rate) * (time - start), float(found.fine[i])
        assert abs(coarse + Fraction(fine) - exact) < max(Fraction(1, 10**9), abs(exact) * 4 / 2**53)
        assert abs(fine) <= quantum / 2
        assert coarse % quantum == 0 and coarse == model.coarse_at(time, quantum) and i < end <= 16


@generated
@given(st.data())
def test_delays_of_spectra_do_not_depend_on_which_are_asked_for_together(data: Any) -> None:
    draw, origin, step, n = data.draw, (1 << 44) + 7, data.draw(st.sampled_from([1, 8, 100])), 60
    model, quantum = drawn_delays(draw, origin, n * step), draw(st.sampled_from([1, 4]))
    whole = model.at(origin, n, step, quantum)
    assert whole.begins[0] == 0 and whole.begins == sorted({whole.run(i - 1)[1] for i in range(1, n + 1)} - {n} | {0})
    for i in range(n):
        alone = model.at(origin + i * step, 1, step, quantum)
        assert alone.coarse == [whole.run(i)[0]]
        assert (alone.fine[0], alone.phase[0]) == (whole.fine[i], whole.phase[i])


@generated
@given(st.data())
def test_dumps_do_not_depend_on_how_a_stream_is_cut(data: Any) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_antennas, per_dump, n_batches = draw(st.integers(1, 4)), draw(st.integers(1, 9)), draw(st.integers(1, 50))
    first, batch_samples = (1 << draw(st.sampled_from([0, 40]))) + draw(st.integers(0, 100)), 1 << 10
    v = rng.integers(-127, 128, (n_batches, n_antennas, 2, 3, 2, 2), dtype=np.int8)
    present = rng.random((n_batches, n_antennas, 3, 2)) >= draw(st.sampled_from([0.0, 0.01, 0.1]))
    present &= rng.random((n_batches, n_antennas, 1, 1)) >= draw(st.sampled_from([0.0, 0.1]))
    if draw(st.booleans()):
        hole = draw(st.integers(0, n_batches - 1))
        present[hole : hole + draw(st.integers(1, 20))] = False
    complete = draw(st.booleans())
    whole = x_engine(v, present, batch_samples, per_dump, first, [n_batches], complete=complete)
    in_chunks = x_engine(v, present, batch_samples, per_dump, first, cut(rng, n_batches), complete=complete)
    came, length = first + np.flatnonzero(present.any(axis=(1, 2, 3))), per_dump * batch_samples
    dumps = range(-(-came[0] // per_dump), (came[-1] + 1) // per_dump) if len(came) else range(0)
    expected_times = [n * length for n in dumps if (came // per_dump == n).any()]
    assert sorted(whole) == sorted(in_chunks) == expected_times
    for time in whole:
        assert time % (per_dump * batch_samples) == 0
        assert all(np.array_equal(a, b) for a, b in zip(whole[time], in_chunks[time], strict=True))
        at = time // batch_samples - first
        inside = slice(max(at, 0), at + per_dump)
        weights = counted(present[inside])
        if complete:
            weights[(weights != 3 * per_dump).any(axis=1)] = 0
        expected = np.zeros(whole[time][0].shape, np.int64)
        correlate(np.where(present[inside, :, np.newaxis, ..., np.newaxis], v[inside], np.int8(0)), expected)
        expected[:, ~weights.any(axis=1)] = (-(2**31), 1)
        assert np.array_equal(whole[time][0], expected) and np.array_equal(whole[time][1], weights)


def counted(spectra: np.ndarray) -> np.ndarray:
    """Weights [n_baselines, 4], one product after the other, of bool [batch, antenna, time, pol]."""
    found = []
    for j in range(spectra.shape[1]):
        for i in range(j + 1):
            for q, p in ((0, 0), (0, 1), (1, 0), (1, 1)):
                found.append(np.count_nonzero(spectra[:, i, :, p] & spectra[:, j, :, q]))
    return np.array(found).reshape(-1, 4)


def test_what_cannot_be_planned_is_told() -> None:
    shape = FShape(step=8, window=16, packet=16, spectra_per_heap=2, heaps_per_batch=2)
    plan = FPlan(shape, [DelayModel()])
    flags = np.ones((1, 4), bool)
    list(plan.chunk(64, flags))
    with pytest.raises(UsageError, match="starts at sample 136, in the middle of a packet of 16"):
        list(plan.chunk(136, flags))
    with pytest.raises(UsageError, match="starts at sample 64, before the end of the one before, 128"):
        list(plan.chunk(64, flags))
    x_plan = XPlan(2, 32, 4, 8)
    list(x_plan.chunk(64, np.ones((1, 2), bool)))
    with pytest.raises(UsageError, match="starts at sample 64, before the end of the one before, 96"):
        list(x_plan.chunk(64, np.ones((1, 2), bool)))
    with pytest.raises(UsageError, match="are more than weights of 32 bits count, 4294967295: choose fewer"):
        XPlan(2, 32, 1 << 20, 1 << 12)
    with pytest.raises(UsageError, match=r"rate=-1\.0 of the delay from sample 5 on"):
        Piece(5, rate=-1.0)
    with pytest.raises(UsageError, match="delay=nan of the delay"):
        Piece(5, delay=float("nan"))
