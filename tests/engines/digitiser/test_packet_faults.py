"""The plan of faults is what is counted, and the same however it is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune import UsageError
from autotune.engines.digitiser.counter_noise import BLOCK
from autotune.engines.digitiser.packet_faults import KINDS, Faults, Sends

pytestmark = pytest.mark.quick

SOME = Faults(lost=0.1, repeated=0.1, exchanged=0.1, damaged=0.1, seed=3)


def joined(parts: list[Sends]) -> Sends:
    return Sends(
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.is_damaged for part in parts]),
        *(sum(getattr(part, name) for part in parts) for name in KINDS),
    )


def assert_same(found: Sends, expected: Sends) -> None:
    np.testing.assert_array_equal(found.numbers, expected.numbers)
    np.testing.assert_array_equal(found.is_damaged, expected.is_damaged)
    assert [getattr(found, name) for name in KINDS] == [getattr(expected, name) for name in KINDS]


def test_without_faults_packets_are_sent_in_order() -> None:
    found = Faults().sends(5, 4)
    assert found.numbers.tolist() == [5, 6, 7, 8] and not found.is_damaged.any()
    assert [getattr(found, name) for name in KINDS] == [0, 0, 0, 0]


def test_everything_lost_and_everything_twice() -> None:
    assert Faults(lost=1, repeated=1, exchanged=1, damaged=1).sends(0, 9).numbers.tolist() == []
    found = Faults(repeated=1, damaged=1).sends(0, 3)
    assert found.numbers.tolist() == [0, 0, 1, 1, 2, 2] and found.is_damaged.all()
    assert (found.repeated, found.damaged) == (3, 3)


def test_everything_exchanged_is_pairs() -> None:
    found = Faults(exchanged=1).sends(0, 6)
    assert found.numbers.tolist() == [1, 0, 3, 2, 5, 4] and found.exchanged == 3
    assert Faults(exchanged=1).sends(0, 5).numbers.tolist() == [1, 0, 3, 2]
    assert Faults(exchanged=1).sends(0, 5, is_last=True).numbers.tolist() == [1, 0, 3, 2, 4]
    assert Faults(exchanged=1).sends(0, 1, is_last=True).exchanged == 0


@pytest.mark.parametrize("n", [1, 2, 1000, 3 * BLOCK + 17])
def test_the_counts_are_those_of_the_sequence(n: int) -> None:
    plan = SOME.sends(0, n, is_last=True)
    times = np.bincount(plan.numbers, minlength=n)
    assert plan.lost == np.count_nonzero(times == 0) == np.count_nonzero(SOME.lost_of(0, n))
    assert plan.repeated == np.count_nonzero(times == 2) and times.max() <= 2
    assert len(plan.numbers) == n - plan.lost + plan.repeated
    assert plan.damaged == len(np.unique(plan.numbers[plan.is_damaged]))
    steps = np.diff(plan.numbers)
    assert plan.exchanged == np.count_nonzero(steps == -1) and steps.min(initial=0) >= -1


def test_faults_are_as_frequent_as_asked() -> None:
    n, p = 1 << 18, np.array([0.02, 0.03, 0.04, 0.05])
    plan = Faults(*p.tolist(), seed=9).sends(0, n)
    stays = 1 - p[0]
    expected = n * np.array([p[0], p[1] * stays, p[2] * stays**2 / (1 + p[2] * stays**2), p[3] * stays])
    found = np.array([getattr(plan, name) for name in KINDS])
    assert (np.abs(found - expected) < 5 * expected**0.5 + 20).all(), (found, expected)


def test_another_seed_or_stream_has_other_faults() -> None:
    n = 10000
    plans = [Faults(lost=0.5, seed=seed).lost_of(0, n, stream) for seed, stream in ((1, 0), (1, 1), (2, 0))]
    assert all(abs(np.count_nonzero(a == b) - n / 2) < 5 * n**0.5 / 2 for a, b in pairwise(plans))
    np.testing.assert_array_equal(plans[0], Faults(lost=0.5, seed=1).lost_of(0, n))


@given(begin=st.integers(0, 3 * BLOCK), sizes=st.lists(st.integers(0, BLOCK + 5), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_a_plan_is_the_same_however_it_is_cut(begin: int, sizes: list[int]) -> None:
    parts, at = [], begin
    for n in sizes:
        parts.append(SOME.sends(at, n))
        at += n
    assert_same(joined(parts), SOME.sends(begin, sum(sizes)))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_what_is_not_a_probability_is_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"faults have {name}={value:g}, must be 0 to 1"):
        Faults(**{name: value})
