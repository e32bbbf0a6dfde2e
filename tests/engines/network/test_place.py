"""place.c does what the rules say, heap by heap, in streams in which all goes wrong that can."""

import time
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.devices.host.toolchain import find_compiler, run_compiler
from autotune.engines.network import items
from autotune.engines.network.placing import COUNTERS, SOURCE, PlaceRules, Placing, place_library

from .drawn_heaps import drawn
from .place_model import WRAP, Heap, compare, run

BIG = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]  # rules are 16 numbers
SHORT = settings(max_examples=60, deadline=None, suppress_health_check=BIG)
LONG = settings(max_examples=20, deadline=None)
QUIET_NS = 100
RULES = PlaceRules(
    sender_item=items.DIGITISER_ID,
    heap_bytes=64,
    heap_samples=16,
    chunk_heaps=4,
    n_senders=2,
    most_jump=1000,
    sender_mask=1,
    confirm=3,
    quiet_ns=QUIET_NS,
)


@pytest.mark.quick
@given(st.randoms(use_true_random=False))
@SHORT
def test_short_streams(rng: Random) -> None:
    compare(*drawn(rng, rng.randint(1, 60)), place_library().place_heap)


@given(st.integers(0, 1 << 32))
@LONG
def test_long_streams(seed: int) -> None:
    compare(*drawn(Random(seed), 10_000), place_library().place_heap)


@given(st.integers(0, 1 << 32))
@LONG
def test_each_heap_is_placed_once_or_in_one_counter(seed: int) -> None:
    """No two heaps are placed in one place, and placed heaps lie within the chunk."""
    rules, heaps = drawn(Random(seed), 2_000)
    found = list(run(Placing(rules), heaps, place_library().place_heap))
    names = Counter(outcome.name for outcome in found)
    assert names.total() == len(heaps) and names.keys() <= {"placed", *COUNTERS}
    placed = [(outcome.chunk, outcome.index) for outcome in found if outcome.name == "placed"]
    assert len(set(placed)) == len(placed)
    for outcome in found:
        if outcome.name == "placed":
            assert 0 <= outcome.index < rules.n_flags - 1
            assert outcome.offset == outcome.index * rules.heap_bytes
        else:
            assert outcome.chunk == -1 or (outcome.name == "stops" and outcome.index == rules.n_flags - 1)


# ---------------------------------------------------------------------- what the rules are for
def good(first: int, last: int, clock_ns: int = 0) -> list[Heap]:
    """Heaps of both senders, from one number to before another."""
    return [Heap(k * 16 % WRAP, 64, sender, -1, clock_ns) for k in range(first, last) for sender in range(2)]


def named(heaps: list[Heap], rules: PlaceRules = RULES) -> tuple[Counter[str], Placing]:
    """How often each name came, and the placing afterwards."""
    placing = Placing(rules)
    return Counter(outcome.name for outcome in run(placing, heaps, place_library().place_heap)), placing


def test_one_heap_of_a_wrong_time_costs_nothing_else() -> None:
    wrong = Heap(WRAP // 2 + 48, 64, 0, -1, 0)
    names, placing = named([*good(0, 100), wrong, *good(100, 200)])
    assert names == {"placed": 400 - 2, "jumped": 2 + 1}  # two in front of the first that is believed
    assert placing.jumped_to is None and placing.newest_time == 199 * 16
    assert placing.unbelieved == (0, WRAP // 2 + 48)


def test_a_wrong_clock_beside_a_right_one_gets_nowhere() -> None:
    heaps = [
        heap._replace(time=heap.time + (1 << 30) * heap.sender, clock_ns=QUIET_NS * (k // 64) // 2)
        for k, heap in enumerate(sorted(good(0, 320), key=lambda heap: (heap.time // 512, heap.sender)))
    ]
    names, placing = named(heaps)
    assert names == {"placed": 320 - 2, "jumped": 320 + 2} and placing.jumped_to is None
    assert placing.unbelieved == (1, (1 << 30) + 319 * 16)


@pytest.mark.parametrize("is_live", [True, False])
def test_a_wrong_clock_in_a_member_of_its_own_gets_nowhere_while_another_goes_on(is_live: bool) -> None:
    """Members that wait for one another may be far apart, and each has a time of its own."""
    first = Placing(RULES)
    second = Placing(RULES, beside=first, is_live=is_live)
    heaps, names = good(0, 400), Counter[str]()
    for k in range(0, 800, 2):
        for placing, heap in ((first, heaps[k]), (second, heaps[k + 1])):
            off = (1 << 30) * (heap.sender and 100 <= k < 300)
            late = heap._replace(time=heap.time + off, clock_ns=k * QUIET_NS // 10)
            names.update(o.name for o in run(placing, [late], place_library().place_heap) if heap.sender)
    assert (second.jumped_to is None) == is_live
    if is_live:
        assert names == {"placed": 300 - 2, "jumped": 100 + 2}


@pytest.mark.parametrize("to", [100 + 9, 100 + 999])
def test_a_gap_is_passed_after_a_while(to: int) -> None:
    names, placing = named([*good(0, 100), *good(to, to + 8, QUIET_NS - 1), *good(to, to + 8, QUIET_NS)])
    assert names == {"placed": 198 + 16, "jumped": 2 + 16} and placing.jumped_to is None
    assert placing.unbelieved is None, "it is where the stream is now"


@pytest.mark.parametrize("to", [2000, 20])
def test_a_restart_is_told_and_nothing_of_it_is_placed(to: int) -> None:
    names, placing = named([*good(100, 200), *good(to, to + 10, QUIET_NS)])
    assert names == {"placed": 198, "jumped": 2 + 20} and placing.jumped_to == (to + 9) * 16


def test_times_go_on_beyond_48_bits() -> None:
    wrap = WRAP // 16
    _, placing = named(good(wrap - 50, wrap + 50))
    assert placing.newest_time == WRAP + 49 * 16
    _, placing = named(good(4 * wrap, 4 * wrap + 5), replace(RULES, near=4 * WRAP - 1000))
    assert placing.newest_time == 4 * WRAP + 4 * 16


def test_the_clock_is_asked_where_none_is_given() -> None:
    placing, clock = Placing(RULES), 6  # CLOCK_MONOTONIC_COARSE, for which Python has no name
    for _ in range(2):
        before = time.clock_gettime_ns(clock)
        list(run(placing, good(0, 10, clock_ns=-1), place_library().place_heap))
        assert before <= placing.struct.known_ns <= time.clock_gettime_ns(clock)
        time.sleep(0.02)


@pytest.mark.parametrize("wrong", ["heap_bytes", "heap_samples", "chunk_heaps", "n_senders", "kept_chunks", "n_enders"])
def test_rules_that_cannot_be_kept_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=f"{wrong} is 0, and must be at least 1"):
        replace(RULES, **{wrong: 0})


def test_the_compiler_has_nothing_to_warn_of() -> None:
    options = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", SOURCE)
    outcome = run_compiler([*find_compiler().command, *options])
    assert outcome.code == 0, outcome.errors
