"""Searchers: the default first, nothing twice, nothing invalid, and a model that beats chance."""

import math

import pytest

from autotune import Config, UsageError
from autotune.search import SAMPLERS, searcher

CONFIGS = [
    Config(A=a, B=b, **({"C": c} if c else {})) for a in (1, 2, 4, 8, 16) for b in (1, 2, 3, 4) for c in (0, 1, 2)
]
DEFAULT = CONFIGS[17]


def seconds_of(config: Config) -> float | None:
    """A bowl in the logarithms with a failing corner."""
    if config.A == 16 and config.B == 4:
        return None
    return 1e-3 * (1 + math.log2(config.A / 4) ** 2 + (config.B - 2) ** 2 + 0.5 * (config.get("C", 0) != 2))


def run(name: str, n: int, seed: int = 0, done: tuple[Config, ...] = ()) -> list[Config]:
    _, search = searcher(name, CONFIGS, DEFAULT, n, done, seed)
    proposals = []
    while len(proposals) < n and (config := search.propose()) is not None:
        proposals.append(config)
        search.observe(config, seconds_of(config))
    return proposals


@pytest.mark.parametrize("name", SAMPLERS)
def test_default_first_each_config_once_and_all_of_them(name: str) -> None:
    proposals = run(name, 10_000)
    assert proposals[0] == DEFAULT
    assert len(proposals) == len(set(proposals)) == len(CONFIGS)
    assert set(proposals) == set(CONFIGS)


@pytest.mark.parametrize("name", SAMPLERS)
def test_what_is_done_is_not_proposed_again(name: str) -> None:
    done = (DEFAULT, *CONFIGS[:5])
    assert not set(done) & set(run(name, 10_000, done=done))


@pytest.mark.parametrize("name", SAMPLERS)
def test_proposals_ahead_of_observations_are_distinct(name: str) -> None:
    _, search = searcher(name, CONFIGS, DEFAULT, None, (), 0)
    assert len({search.propose() for _ in range(20)}) == 20


def test_tpe_finds_better_configs_than_chance() -> None:
    def best(name: str) -> float:
        found = [min(t for c in run(name, 25, seed) if (t := seconds_of(c))) for seed in range(10)]
        return sum(found) / len(found)

    assert best("tpe") < best("random")


def test_auto_is_exhaustive_exactly_when_the_budget_allows() -> None:
    assert searcher("auto", CONFIGS, DEFAULT, len(CONFIGS), (), 0)[0] == "exhaustive"
    assert searcher("auto", CONFIGS, DEFAULT, len(CONFIGS) - 1, (), 0)[0] == "tpe"
    assert searcher("auto", CONFIGS, DEFAULT, None, (), 0)[0] == "exhaustive"


def test_unknown_sampler_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="auto, exhaustive, random, tpe"):
        searcher("annealing", CONFIGS, DEFAULT, None, (), 0)
