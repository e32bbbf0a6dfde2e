"""Parameters that act together are told from those that act each for itself."""

from collections.abc import Callable
from itertools import product

import pytest

from autotune import Config
from autotune.analysis.fields import telling_fields
from autotune.analysis.interactions import interactions
from autotune.records.trial import Trial


def trials(median_s: Callable[[Config], float]) -> list[Trial]:
    """Every config of three parameters, one of them with no effect; one in seven failed."""
    configs = [Config(A=a, B=b, C=c) for a, b, c in product((1, 2, 4), (1, 2, 4), (1, 2, 4, 8))]
    return [
        Trial(number=i, status="measured", config=config, key=None, stamp="", median_s=median_s(config))
        if i % 7
        else Trial(number=i, status="wrong", config=config, key=None, stamp="")
        for i, config in enumerate(configs)
    ]


def test_a_product_of_effects_is_no_interaction() -> None:
    assert all(each.share < 1e-9 for each in interactions(trials(lambda c: 1e-4 * c.A * c.B**0.5), 3))


def test_what_acts_together_is_found() -> None:
    found = interactions(trials(lambda c: 1e-4 * (2.0 if c.A == c.B else 1.0) * c.C**0.1), 2)
    assert found[0].names == ("A", "B") and found[0].share > 0.8
    assert found[0].n_trials == 30
    assert found[0].best_s[2, 2] == pytest.approx(2e-4, rel=0.1) and found[0].best_s[2, 4] < 1.3e-4
    assert all(each.share < 0.1 for each in found[1:])


def test_too_few_trials_tell_nothing() -> None:
    made = [
        Trial(number=i, status="measured", config=Config(A=i, B=i), key=None, stamp="", median_s=1.0 + i)
        for i in (0, 1)
    ]
    assert interactions(made, 3) == () and interactions([], 3) == ()


def test_the_fewest_fields_that_tell_problems_apart() -> None:
    problems = [{"bits": b, "n": n, "n_bytes": b * n, "fixed": 3} for b, n in ((4, 16), (4, 32), (8, 16))]
    assert telling_fields(problems) == ["bits", "n"]
    assert telling_fields([{"bits": 4}]) == []
    assert telling_fields([{"bits": 4}, {"bits": 4, "more": True}]) == ["more"]
