"""Hints: what neighbours measured leads to what is fast here, even where nobody measured it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from autotune.kernels.ddc import Ddc, Problem

from autotune import Config
from autotune.core.enumeration import Enumeration
from autotune.devices import cuda
from autotune.transfer.coordinates import domain_of
from autotune.transfer.model import CAUTION, expect
from autotune.transfer.neighbour import OTHER_DEVICE, SAME_DEVICE, Neighbour

pytestmark = pytest.mark.quick

KERNEL = Ddc()
DEVICE = cuda.of_architecture("sm_90")
PROBLEM = Problem(taps=128, decimation=8)
ALGORITHMS = {"ALGORITHM": ("register", "subgroup")}  # which have the parameters of the bowl
DOMAIN = domain_of(KERNEL.space.parameters)
SPACE = KERNEL.space.enumerate(PROBLEM, DEVICE, ALGORITHMS)


def seconds(config: Config, problem: Problem) -> float:
    """A bowl whose bottom moves with the decimation."""
    bottom = {"WGS": 7.0, "COARSEN": 5.5 - 0.8 * np.log2(problem.decimation), "TILES": 2.0}
    bowl = sum((np.log2(float(config[name])) - at) ** 2 for name, at in bottom.items())
    return 1e-4 * (1.0 + 0.1 * bowl + 0.3 * (config.ALGORITHM == "subgroup"))


def neighbour(problem: Problem, configs: list[Config], kinship: int = SAME_DEVICE) -> Neighbour:
    times = {config: seconds(config, problem) for config in configs}
    best = min(times.values())
    measured = sorted(((c, t / best) for c, t in times.items()), key=lambda pair: pair[1])
    return Neighbour(vars(problem), DEVICE, kinship, 1.0, tuple(measured))


def neighbours(n_configs: int, **more: Any) -> list[Neighbour]:
    rng = np.random.default_rng(3)
    found = []
    for decimation in (4, 16):
        for taps in (64, 128, 256):
            problem = Problem(taps=taps, decimation=decimation)
            configs = KERNEL.space.enumerate(problem, DEVICE, ALGORITHMS).configs
            chosen = rng.choice(len(configs), n_configs, replace=False)
            found.append(neighbour(problem, [configs[i] for i in chosen], **more))
    return found


def hints(
    problem: Problem,
    near: Sequence[Neighbour],
    space: Enumeration,
    k: int,
    own: Mapping[Config, float] | None = None,
) -> tuple[Config, ...]:
    expectation = expect(problem, near, space, DOMAIN, own)
    return expectation.hints(k, own or {}) if expectation else ()


def rank_of_best(found: tuple[Config, ...]) -> int:
    """How many configs of the whole space are faster than the best of ``found``."""
    best = min(seconds(c, PROBLEM) for c in found)
    return sum(seconds(c, PROBLEM) < best for c in SPACE.configs)


def test_what_neighbours_on_both_sides_measured_leads_to_the_best_few_of_hundreds() -> None:
    found = hints(PROBLEM, neighbours(25), SPACE, 8)
    assert len(found) == len(set(found)) == 8 and set(found) <= set(SPACE.configs)
    assert rank_of_best(found) < len(SPACE.configs) // 50
    assert all(seconds(c, PROBLEM) < np.median([seconds(d, PROBLEM) for d in SPACE.configs]) for c in found)


def test_what_is_known_of_the_problem_itself_counts_and_is_not_proposed_again() -> None:
    near = neighbours(25)
    first = hints(PROBLEM, near, SPACE, 8)
    again = hints(PROBLEM, near, SPACE, 8, {c: seconds(c, PROBLEM) for c in first})
    assert not set(first) & set(again) and rank_of_best((*first, *again)) <= rank_of_best(first)


def test_the_nearer_problem_and_the_same_device_count_more() -> None:
    fast, slow = SPACE.configs[0], SPACE.configs[-1]

    def sweep(taps: int, times: Mapping[Config, float], kinship: int = SAME_DEVICE) -> Neighbour:
        return Neighbour(vars(Problem(taps=taps, decimation=8)), DEVICE, kinship, 1.0, tuple(times.items()))

    one, other = {fast: 1.0, slow: 1.5}, {slow: 1.0, fast: 1.5}
    only = Enumeration((fast, slow))
    assert hints(PROBLEM, [sweep(120, one), sweep(2048, other)], only, 2) == (fast, slow)
    assert hints(PROBLEM, [sweep(2048, one), sweep(120, other)], only, 2) == (slow, fast)
    assert hints(PROBLEM, [sweep(120, one), sweep(120, other, OTHER_DEVICE)], only, 2) == (fast, slow)


def of_one_value() -> list[Neighbour]:
    """Neighbours that have measured one value of a parameter alone."""
    return [
        replace(n, measured=tuple((c, t) for c, t in n.measured if c.ALGORITHM == "register" and c.COARSEN == 8))
        for n in neighbours(25)
    ]


def test_hints_are_not_so_many_times_the_same() -> None:
    """Where neighbours have one value of a parameter alone, others are looked at, too."""
    found = hints(PROBLEM, of_one_value(), SPACE, 8)
    assert len({config.COARSEN for config in found}) > 1


def test_a_ranking_is_a_careful_choice_and_hints_given_it() -> None:
    expectation = expect(PROBLEM, of_one_value(), SPACE, DOMAIN)
    assert expectation is not None
    mean, deviation = expectation._posterior.predict(expectation._values, np.ones(len(expectation._values), bool))
    careful = [SPACE.configs[i] for i in np.argsort(mean + CAUTION * deviation)[:8]]
    first, *others = expectation.ranked(8)
    assert expectation.ranked(1) == (first,) == (careful[0],) and len({first, *others}) == 8
    assert {config.COARSEN for config in careful} == {8} < {config.COARSEN for config in others}


def test_the_search_is_told_what_is_expected_of_each_configuration() -> None:
    expectation = expect(PROBLEM, neighbours(25), SPACE, DOMAIN)
    assert expectation is not None and expectation.times.shape == (len(SPACE.configs),)
    truth = np.array([seconds(config, PROBLEM) for config in SPACE.configs])
    assert np.corrcoef(truth.argsort().argsort(), expectation.times.argsort().argsort())[0, 1] > 0.9


def test_foreign_configs_and_words_among_the_fields_do_no_harm() -> None:
    foreign = Config(TILE=4)
    words = Neighbour(
        {**vars(PROBLEM), "window": "hann"}, DEVICE, SAME_DEVICE, 8.0, ((foreign, 1.0), (SPACE.configs[5], 1.1))
    )
    found = hints(PROBLEM, [words, *neighbours(10)], SPACE, 4)
    assert len(found) == 4 and foreign not in found


def test_nothing_known_or_nothing_asked_is_no_hint() -> None:
    assert hints(PROBLEM, [], SPACE, 8) == ()
    assert hints(PROBLEM, [Neighbour(vars(PROBLEM), DEVICE, SAME_DEVICE, 0.0, ())], SPACE, 8) == ()
    assert hints(PROBLEM, neighbours(5), SPACE, 0) == ()
    assert hints(PROBLEM, neighbours(5), Enumeration(()), 8) == ()
