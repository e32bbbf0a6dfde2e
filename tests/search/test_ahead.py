"""What compiles ahead: little while little is known, and what is measured is what the model wants by then."""

from itertools import product

import numpy as np
import pytest
from recorded_spaces import RecordedSpace, with_failures
from simulated_searches import Clock, CompileTimes, SimulatedCompile, replay

from autotune import Config, UsageError
from autotune.search import searcher
from autotune.search.ahead import N_BLIND, CompilesAhead
from autotune.search.sampler import ListSampler, Request
from autotune.search.search import Search

pytestmark = pytest.mark.quick

CONFIGS = [Config(A=a, B=b, C=c) for a, b, c in product((1, 2, 4, 8, 16, 32), range(1, 9), range(1, 9))]
MOST = 16


def seconds_of(config: Config) -> float:
    """A bowl whose best is at (8, 3, 5)."""
    return float(1.0 + abs(np.log2(config.A) - 3) + abs(config.B - 3) + abs(config.C - 5))


def run(
    search: Search, n: int, compile_trials: float, most: int = MOST
) -> tuple[list[Config], list[int], list[Config], Clock]:
    """Returns (what was measured, how many were outstanding before each trial, all that was started, the clock)."""
    clock = Clock(CompileTimes(compile_trials, 0.3), 0)
    started: list[Config] = []
    ahead: CompilesAhead[SimulatedCompile] = CompilesAhead(search, most, n)
    measured: list[Config] = []
    outstanding: list[int] = []
    while len(measured) < n:
        while (config := ahead.propose()) is not None:
            started.append(config)
            ahead.add(config, clock.compile())
        outstanding.append(len(ahead.outstanding))
        clock.wait(ahead.awaited())
        measured.append(ahead.take())
        clock.now += 1
        search.observe(measured[-1], (seconds_of(measured[-1]),))
    ahead.cancel()
    return measured, outstanding, started, clock


def test_few_are_outstanding_while_little_is_known_and_when_little_is_left() -> None:
    _, outstanding, _, _ = run(searcher("gp", CONFIGS, CONFIGS[0], 100, 0), 100, MOST)
    assert outstanding[0] == N_BLIND and max(outstanding) == MOST
    assert outstanding[:40] == sorted(outstanding[:40])
    assert outstanding[75:95] == sorted(outstanding[75:95], reverse=True) and outstanding[-1] == 1
    _, few, _, _ = run(searcher("gp", CONFIGS, CONFIGS[0], 20, 0), 20, MOST)
    assert max(few) < 10


def test_what_learns_nothing_from_outcomes_keeps_all_compilers_busy() -> None:
    measured, outstanding, started, _ = run(searcher("random", CONFIGS, CONFIGS[0], 40, 0), 40, 1.0)
    assert outstanding[:24] == [MOST] * 24
    assert set(measured) == set(started) and len(started) == 40


@pytest.mark.parametrize("compile_trials", [0.1, 4.0, 16.0])
def test_what_was_cancelled_was_never_measured_and_no_config_is_measured_twice(compile_trials: float) -> None:
    measured, _, started, clock = run(searcher("gp", CONFIGS, CONFIGS[0], 60, 0), 60, compile_trials)
    assert len(set(measured)) == 60 and measured[0] == CONFIGS[0]
    assert len(started) - len(measured) == clock.n_cancelled == len(set(started) - set(measured))
    assert (clock.n_cancelled > 0) == (compile_trials < 1), "where compiles are short, one always compiles to the end"


def test_the_device_waits_for_no_compile_while_another_is_done() -> None:
    search = searcher("gp", CONFIGS, CONFIGS[0], 30, 0)
    clock = Clock(CompileTimes(3.0, 0.5), 1)
    ahead: CompilesAhead[SimulatedCompile] = CompilesAhead(search, MOST, 30)
    for n in range(30):
        while (config := ahead.propose()) is not None:
            ahead.add(config, clock.compile())
        is_done, before = any(one.done() for one in ahead.outstanding.values()), clock.now
        clock.wait(ahead.awaited())
        assert n == 0 or (clock.now == before) == is_done
        measured = ahead.take()
        clock.now += 1
        search.observe(measured, (seconds_of(measured),))


class Backwards(ListSampler):
    """Knows no model; keeps the order."""

    def choose(self) -> int:
        return int(self.open_rows()[-1])


def test_a_sampler_without_a_preference_measures_in_order() -> None:
    search = Search(Backwards(Request(CONFIGS, 20)), [CONFIGS[3]])
    proposed = [search.propose() for _ in range(4)]
    assert search.ranked([c for c in proposed if c]) == proposed == [CONFIGS[3], *CONFIGS[:-4:-1]]
    assert search.ranked([CONFIGS[-1], CONFIGS[-2]])[0] == CONFIGS[-1]


def test_what_is_measured_next_is_what_the_model_wants_now() -> None:
    search = searcher("gp", CONFIGS, CONFIGS[0], 60, 0, hints=[Config(A=8, B=3, C=6), Config(A=1, B=8, C=8)])
    proposed = [config for _ in range(40) if (config := search.propose())]
    hints, rest = proposed[1:3], proposed[3:]
    search.observe(proposed[0], (seconds_of(proposed[0]),))
    assert search.ranked([*rest, *hints])[:2] == hints, "hints go before all that the sampler chose"
    for config in (*hints, *rest[:15]):
        search.observe(config, (seconds_of(config),))
    left = rest[15:]
    order = [seconds_of(config) for config in search.ranked(left)]
    assert sum(order[:5]) / 5 < sum(order[-5:]) / 5 - 2
    assert search.ranked(left)[0] != left[0]


def test_outcomes_are_used_at_once_where_compiles_are_short() -> None:
    def found(most: int, compile_trials: float) -> float:
        best = 0.0
        for seed in range(6):
            measured, *_ = run(searcher("gp", CONFIGS, CONFIGS[0], 30, seed), 30, compile_trials, most)
            best += min(map(seconds_of, measured)) / 6
        return best

    assert found(16, 0.5) <= found(1, 0.5) + 0.25


# ---------------------------------------------------------------------- most configs fail, and nobody tells which
def space() -> RecordedSpace:
    return RecordedSpace("bowl", tuple(CONFIGS), tuple(map(seconds_of, CONFIGS)), (1.0,) * len(CONFIGS), CONFIGS[-1])


def until_one_works(name: str, hard: RecordedSpace, seed: int) -> int:
    search = searcher(name, hard.configs, hard.default, 100, seed)
    seconds = dict(zip(hard.configs, hard.seconds, strict=True))
    for n in range(1, 101):
        config = search.propose()
        assert config is not None
        if seconds[config] is not None:
            return n
        search.observe(config, None)
    return 101


def test_where_most_fail_a_config_that_works_is_found_sooner_than_at_random() -> None:
    hard = with_failures(space(), 0.96)
    n = {name: sum(until_one_works(name, hard, seed) for seed in range(10)) for name in ("gp", "random")}
    assert n["gp"] < 0.7 * n["random"]


def test_the_largest_configs_fail() -> None:
    hard = with_failures(space(), 0.8)
    works = [config for config, s in zip(hard.configs, hard.seconds, strict=True) if s is not None]
    assert len(works) == int(0.2 * len(CONFIGS)) and hard.name == "bowl, 80% fail untold"
    most = max(c.B * c.C for c in works)  # the two parameters with the most values
    assert all(c in works for c in CONFIGS if most > c.B * c.C)
    assert with_failures(space(), 0.0) == space()
    for share, says in ((1.0, "a share of 1"), (-0.1, "a share of -0.1"), (0.999, "no config of bowl is left")):
        with pytest.raises(UsageError, match=says):
            with_failures(space(), share)
    words = RecordedSpace("words", (Config(A="x"), Config(A="y")), (1.0, 2.0), (1.0, 1.0), Config(A="x"))
    with pytest.raises(UsageError, match="no parameter of positive numbers"):
        with_failures(words, 0.5)


def test_a_replay_tells_how_busy_the_device_was_and_what_was_cancelled() -> None:
    one = replay(space(), "gp", 20, 2)
    assert one.busy == pytest.approx(0.5) and one.n_cancelled == 0, "each trial waits for a compile of its length"
    many = replay(space(), "gp", 20, 2, ahead=MOST, times=CompileTimes(0.2))
    assert many.busy > 0.9 and many.n_cancelled > 0
    with pytest.raises(UsageError, match="compiles take -1 trials"):
        replay(space(), "gp", 20, 2, times=CompileTimes(-1))
