"""A stream gives the same heaps and dumps, bit by bit, however it is cut; and those of a definition without a plan."""

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
    given = (shape, delays, weights, packed, received, origin)
    whole = f_engine(*given, [n_packets])
    in_chunks = f_engine(*given, cut(rng, n_packets))
    assert whole.keys() == in_chunks.keys()
    for time, heap in whole.items():
        assert np.array_equal(heap, in_chunks[time])
        assert time % (shape.spectra_per_heap * step) == 0
        for pol, model in enumerate(delays):
            for s in range(shape.spectra_per_heap):
                expected = by_definition(model, time + s * step, weights, packed[pol], origin)
                assert np.array_equal(heap[pol, s], expected)


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
def test_a_gap_of_any_length_is_counted_and_costs_the_same(n_gap: int, delay: float) -> None:
    shape = FShape(step=8, window=24, packet=16, spectra_per_heap=3, heaps_per_batch=2, max_delay_diff=20)
    rng = np.random.default_rng(n_gap)
    origin, n = int(rng.integers(1 << 50)), 30
    plan = FPlan(shape, [DelayModel(Piece(-5, delay)), DelayModel(Piece(-5, delay + 9))])
    flags, later = np.ones((2, n), bool), origin + (n + n_gap) * 16
    missing = np.zeros((2, min(n_gap, shape.head // 16)), bool)
    chunks = [(origin, flags), (origin + n * 16, missing), (later, flags)]
    items = [item for time, some in chunks for item in plan.chunk(time, some)] + list(plan.finish())
    batches = [item for item in items if isinstance(item, Batch)]
    assert len(items) < 60
    made = {batch.time + 24 * heap for batch in batches for heap in np.flatnonzero(batch.heaps(3)).tolist()}
    late, early = round(delay + 9), round(delay)  # a heap needs the samples of both polarisations
    ranges = [(origin, origin + n * 16), (later, later + n * 16)]
    expected = {t for b, e in ranges for t in range(-(-(b + late) // 24) * 24, e + 99, 24) if t - early + 40 <= e}
    assert made == expected
    first, last = min(made), max(made)
    assert sum(batch.n_missing(3) for batch in batches) == (last - first) // 24 + 1 - len(made)


@pytest.mark.parametrize("n_gap", GAPS)
def test_dumps_of_a_gap_are_counted_and_cost_nothing(n_gap: int) -> None:
    rng = np.random.default_rng(n_gap)
    first, per_dump, n = int(rng.integers(1 << 40)), 7, 20
    plan, later = XPlan(2, 32, per_dump), first + n + n_gap
    came = np.ones((n, 2), bool)
    came[3:, 1] = False  # one antenna is silent from here on, and returns after the gap
    items = list(plan.chunk(first * 32, came)) + list(plan.chunk(later * 32, np.ones((n, 2), bool)))
    dumps = [item for item in items if isinstance(item, Integration)]
    here = set(range(first, first + n)) | set(range(later, later + n))
    inside = range(-(-first // per_dump), (later + n) // per_dump)  # dumps that are whole
    some = [range(d * per_dump, (d + 1) * per_dump) for d in (inside if len(inside) < 1000 else [])]
    if some:
        assert [d.time // 32 for d in dumps] == [d[0] for d in some if here & set(d)]
        whole = [here.issuperset(d) for d in some if here & set(d)]
        assert [bool(d.good[0]) for d in dumps] == whole
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
    assert set(range(0, 640 - 64, 16)) - set(whole) == {304, 320}


def test_polarisations_that_are_too_far_apart_give_nothing() -> None:
    shape = FShape(step=8, window=16, packet=16, spectra_per_heap=2, heaps_per_batch=3)
    rng, n_packets = np.random.default_rng(2), 40
    packed = rng.integers(0, 256, (2, n_packets * 16 * BITS // 8), dtype=np.uint8)
    delays = [DelayModel(), DelayModel(Piece(-5, 40.0))]  # max_delay_diff is 0
    given = shape, delays, np.ones((2, 8), np.float32), packed, np.ones((2, n_packets), bool), 0
    assert not f_engine(*given, [n_packets])
    assert not f_engine(*given, [1] * n_packets)


def by_definition(model: DelayModel, time: int, weights: np.ndarray, packed: np.ndarray, origin: int) -> np.ndarray:
    """The spectrum that leaves at ``time``: int8 [C, 2], by a sum over taps."""
    taps, step = weights.shape
    piece = max((p for p in model.pieces if p.start <= time), key=lambda p: p.start)
    since = float(time - piece.start) if piece.rate or piece.phase_rate else 0.0
    delay = piece.delay + piece.rate * since
    first = time - round(delay)  # halves to even, as NumPy's
    samples = unpack_samples(packed, BITS, first - origin, taps * step).astype(np.float32).reshape(taps, step)
    sums = np.zeros(step, np.float32)
    for tap in range(taps):
        sums += weights[tap] * samples[tap]
    phase = piece.phase + piece.phase_rate * since
    phase -= 2 * np.pi * np.rint(phase / (2 * np.pi))
    phase += np.pi / 2 * ((time - first) % 4)  # the centre channel keeps its phase
    return voltages(sums[np.newaxis], *(np.array([x], np.float32) for x in (delay - round(delay), phase)))[0]


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
    present = rng.random((n_batches, n_antennas)) >= draw(st.sampled_from([0.0, 0.01, 0.1]))
    if draw(st.booleans()):
        hole = draw(st.integers(0, n_batches - 1))
        present[hole : hole + draw(st.integers(1, 20))] = False
    whole = x_engine(v, present, batch_samples, per_dump, first, [n_batches])
    in_chunks = x_engine(v, present, batch_samples, per_dump, first, cut(rng, n_batches))
    came, length = first + np.flatnonzero(present.any(axis=1)), per_dump * batch_samples
    dumps = range(-(-came[0] // per_dump), (came[-1] + 1) // per_dump) if len(came) else range(0)
    expected_times = [n * length for n in dumps if (came // per_dump == n).any()]
    assert sorted(whole) == sorted(in_chunks) == expected_times
    for time in whole:
        assert time % (per_dump * batch_samples) == 0
        assert np.array_equal(whole[time], in_chunks[time])
        at = time // batch_samples - first
        good = present[max(at, 0) : at + per_dump].all(axis=0) & (at >= 0) & (at + per_dump <= n_batches)
        expected = np.zeros(whole[time].shape, np.int64)
        correlate(v[max(at, 0) : at + per_dump], expected)
        j, i = np.tril_indices(n_antennas)
        expected[:, ~(good[i] & good[j])] = (-(2**31), 1)
        assert np.array_equal(whole[time], expected)


def test_what_cannot_be_planned_is_told() -> None:
    shape = FShape(step=8, window=16, packet=16, spectra_per_heap=2, heaps_per_batch=2)
    plan = FPlan(shape, [DelayModel()])
    flags = np.ones((1, 4), bool)
    list(plan.chunk(64, flags))
    with pytest.raises(UsageError, match="starts at sample 136, in the middle of a packet of 16"):
        list(plan.chunk(136, flags))
    with pytest.raises(UsageError, match="starts at sample 64, before the end of the one before, 128"):
        list(plan.chunk(64, flags))
    x_plan = XPlan(2, 32, 4)
    list(x_plan.chunk(64, np.ones((1, 2), bool)))
    with pytest.raises(UsageError, match="starts at sample 64, before the end of the one before, 96"):
        list(x_plan.chunk(64, np.ones((1, 2), bool)))
    with pytest.raises(UsageError, match=r"rate=-1\.0 of the delay from sample 5 on"):
        Piece(5, rate=-1.0)
    with pytest.raises(UsageError, match="delay=nan of the delay"):
        Piece(5, delay=float("nan"))
