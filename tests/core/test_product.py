"""Spaces whose constraints say what they read: the same configs as of all combinations, and none of the time."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from autotune import Config, Space, UsageError
from autotune.core import product as products
from autotune.core.columns import NotVectorised, column_of, truths
from autotune.core.config import config_value_text, listed_parts, unquoted
from autotune.core.enumeration import Enumeration
from autotune.core.expressions import checked_expression, value_of

NOBODY: Any = None  # constraints here ask neither the problem nor the device
VALUES: dict[str, tuple[Any, ...]] = {
    "a": (1, 2, 3, 8),
    "b": (0, 1, 5, -7),
    "f": (0.5, 1.0, 2.25),
    "flag": (True, False),
    "kind": ("row", "column", ""),
    "big": (10**17, 10**17 + 1),
    "mixed": (1, "one"),
}
TEN = tuple(range(10))


def enumerated(space: Space, **restrict: tuple[Any, ...]) -> Enumeration:
    return space.enumerate(NOBODY, NOBODY, restrict)


@pytest.mark.quick
@pytest.mark.parametrize(
    "text",
    [
        "a * f <= 3 and not flag",
        "a % 3 == 0 or b // 2 < -1",
        "0 <= b <= a < 8",
        "a in (1, 8) and kind not in ('row', '')",
        "-a // 2 + abs(b) > int(f * 3)",
        "flag + flag == 2",
        "(a & 3) ^ (b | 1) != 2",
        "min(a, b, 4) >= max(f, 1) - 1",
        "b != 0 and a % b == 0",
        "a / b > 1 if b else a == 2",
        "kind or flag",
        "kind == 'row' and f // 0.5 % 2 == 1",
        "big % 2 == 1 and a == 1",
        "mixed == 'one' and a > 2",
        "2 ** a > 7 and 1 << a < 300",
        "a ** a >= 27 or 1 + b >> a == 1",
        "2 ** b > 7 or a == 1",
        "a ** 2 // 3 << 2 >= 12",
        "(a > 1) * 3 + (kind == 'row') >= 3",
        "round(f) == 2",
        "(a or b) and a - 1",
        "1 < 2",
    ],
)
def test_the_allowed_are_those_for_which_python_says_so(text: str) -> None:
    names = {"a", "flag", *(name for name in VALUES if name in text)}
    space = Space(**{name: values for name, values in VALUES.items() if name in names})
    space.require(text)
    expression, found = checked_expression(text, VALUES, "it"), enumerated(space)
    every = [Config(dict(zip(space.parameters, row, strict=True))) for row in all_rows(space)]
    allowed = [config for config in every if says(expression, config)]
    assert list(found.configs) == allowed and 0 < len(allowed) <= len(every)
    assert sum(found.refused.values()) == len(every) - len(allowed)


def all_rows(space: Space) -> Any:
    return product(*(parameter.values for parameter in space.parameters.values()))


def says(expression: str, config: Config) -> bool:
    try:
        return bool(value_of(expression, config))
    except ZeroDivisionError:
        return False


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a * a * a > 0", (2**18, 2**19)),
        ("a + 1 > a", (2**52 - 1, 2**52)),
        ("a // b", (0, 1)),
        ("a % b > 1", (0.0, 1.5)),
        ("a < 'x'", (1, 2)),
    ],
)
def test_what_numpy_computes_otherwise_is_left_to_python(text: str, values: tuple[Any, ...]) -> None:
    columns = {"a": column_of(values), "b": column_of(values)}
    with pytest.raises(NotVectorised):
        truths(checked_expression(text, columns, "it"), columns)
    for odd in ((1, "one"), (2**60,), ("ends\0",)):
        with pytest.raises(NotVectorised):
            column_of(odd)


def test_the_order_is_that_of_the_declarations_whatever_is_asked_first() -> None:
    space = Space(a=(3, 1, 2), b=("y", "x"), c=(1, 2, 3, 4), d=(True, False), only=(7,))
    space.require("c % 2 == 0")
    space.require("a != 1 or d")

    @space.constraint("b is x or a is 2", reads=("a", "b"))
    def both(problem: object, config: Config, device: object) -> bool:
        return bool(config.b == "x" or config.a == 2)

    every = [Config(dict(zip(space.parameters, row, strict=True))) for row in all_rows(space)]
    allowed = [c for c in every if c.c % 2 == 0 and (c.a != 1 or c.d) and (c.b == "x" or c.a == 2)]
    found = enumerated(space)
    assert list(found.configs) == allowed and sum(found.refused.values()) == len(every) - len(allowed)
    assert [c for c in allowed if c.a == 3] == list(enumerated(space, a=(3,)).configs)
    assert space.nearest(NOBODY, NOBODY, {**allowed[0], "c": 1}) == allowed[0]
    assert [space.broken(NOBODY, c, NOBODY) is None for c in every].count(True) == len(allowed)


def test_a_function_is_asked_once_about_each_combination_that_it_reads() -> None:
    asked: list[tuple[Any, ...]] = []
    space = Space(a=TEN, b=TEN, c=TEN, d=TEN)

    @space.constraint("a is b", reads=("a", "b"))
    def same(problem: object, config: Config, device: object) -> bool:
        asked.append(tuple(config.values()))
        return bool(config.a == config.b)

    assert len(enumerated(space).configs) == 1000 and len(asked) == 100 == len(set(asked))


def test_a_constraint_that_raises_counts_only_where_no_other_one_refuses() -> None:
    space = Space(a=TEN, b=(0, 1, 2))
    space.require("a % b == 0")
    space.require("b != 0 or a == 9")
    found = enumerated(space)
    assert len(found.configs) == 10 + 5 and len(found.unjudged) == 1
    _, config, error = found.unjudged[0]
    assert config == {"a": 9, "b": 0} and isinstance(error, ZeroDivisionError)
    assert "1 cannot be judged: the constraint 'a % b == 0' raises ZeroDivisionError" in found.reasons


@pytest.mark.parametrize(
    ("texts", "n_combinations"),
    [
        (["p0 + p1 > 100"], 10**12),
        (["p3 < 2", "p3 > p4", "p4 > 5"], 10**12),
        (["p0 <= 3", "p0 * p1 * p2 == 7 * 11"], 10**12),
    ],
)
def test_a_contradiction_is_found_without_all_combinations(texts: list[str], n_combinations: int) -> None:
    space = Space(**{f"p{i}": TEN for i in range(12)})
    for text in texts:
        space.require(text)
    found = enumerated(space)
    assert not found.configs and not found.told_sample and sum(found.refused.values()) == n_combinations
    with pytest.raises(UsageError, match=r"no configuration is allowed here: .* violate: "):
        found.nearest({"p0": 1})


@pytest.mark.parametrize(
    ("texts", "n_allowed"),
    [
        ([], 10**9),
        (["p0 < p1", "p2 == p3"], 45 * 10 * 10**5),
        (["p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8 >= 40"], None),
    ],
)
def test_a_large_space_is_sampled_evenly_and_always_alike(texts: list[str], n_allowed: int | None) -> None:
    space = Space(**{f"p{i}": TEN for i in range(9)})
    for text in texts:
        space.require(text)
    found = enumerated(space)
    assert found.told_sample.startswith(f"about {found.n_allowed:.3g} configs are allowed; {len(found.configs)} of")
    assert (n_allowed in (found.n_allowed, None) and 5e8 < (n_allowed or found.n_allowed) <= 1e9) or len(texts) == 2
    assert 0.9 * products.N_DRAWN < len(found.configs) == len(set(found.configs)) <= products.N_DRAWN
    assert all(value_of(checked_expression(text, TEN_NAMES, "it"), c) for text in texts for c in found.configs[::50])
    share = np.bincount([int(c.p8) for c in found.configs], minlength=10) / len(found.configs)
    assert abs(share - 0.1).max() < 0.04
    space._kept.clear()
    assert enumerated(space).configs == found.configs


TEN_NAMES = [f"p{i}" for i in range(9)]


def test_a_large_space_of_functions_is_sampled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.core.enumerate.MOST_ALLOWED", 10_000)
    monkeypatch.setattr("autotune.core.enumerate.N_DRAWN", 5000)
    space = Space(**{name: TEN for name in "abcdef"})

    @space.constraint("a is not b")
    def differ(problem: object, config: Config, device: object) -> bool:
        return bool(config.a != config.b)

    found = enumerated(space)
    assert 800_000 < found.n_allowed <= 10**6 and 6000 < len(found.configs) < 7500
    assert all(c.a != c.b for c in found.configs) and list(found.configs) == sorted(found.configs, key=place)
    assert enumerated(space, c=(1,), d=(2,), e=(3,)).n_allowed == 0


def place(config: Config) -> tuple[Any, ...]:
    return tuple(config.values())


def test_a_function_is_not_asked_for_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.core.row_tests.MOST_ASKED", 500)
    space = Space(a=TEN, b=TEN, c=TEN)
    space.constraint("it is said", reads=space.parameters)(lambda problem, config, device: True)
    with pytest.raises(UsageError, match="asked about more than 500 combinations, one by one: write it as"):
        enumerated(space)


@pytest.mark.parametrize(
    ("text", "n"), [("a + b + c + d + e == 45", 1), ("a + b + c + d + e <= 3", 56), ("a * b * c * d * e == 7 ** 5", 1)]
)
def test_what_few_of_many_joined_combinations_satisfy_is_found(
    text: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "MOST_TRIED", 1000)
    monkeypatch.setattr(products, "MOST_DRAWN", 1 << 18)
    space = Space(**{name: TEN for name in "abcde"})
    space.require(text)
    found = enumerated(space)
    assert len(found.configs) == n and not found.told_sample and sum(found.refused.values()) == 10**5 - n


def test_where_none_of_those_drawn_is_allowed_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, n in (("MOST_TRIED", 1000), ("MOST_WALKED", 1000), ("MOST_DRAWN", 1)):
        monkeypatch.setattr(products, name, n)
    space = Space(**{name: TEN for name in "abcde"})
    space.require("a + b + c + d + e == 46")
    with pytest.raises(
        UsageError, match=r"none of 65536 combinations of a, b, c, d, e is allowed, .* from 1e\+05: a \+"
    ):
        enumerated(space)


def test_a_group_that_is_too_large_to_keep_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MOST_ROWS", 50_000)
    space = Space(**{name: TEN for name in "abcde"})
    space.require("a + b + c + d + e != 5")
    space.require("a < 5 or b > 2")
    found = enumerated(space)
    n = 85_000 - 126
    assert abs(found.n_allowed - n) < 0.02 * n and len(found.configs) > 40_000
    assert all(c.a + c.b + c.c + c.d + c.e != 5 and (c.a < 5 or c.b > 2) for c in found.configs)


@pytest.mark.parametrize("text", ["a +", "z > 1", "a.real > 1", "'%9d' % a"])
def test_what_is_not_an_expression_of_parameters_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="the constraint "):
        Space(a=(1, 2)).require(text)


@pytest.mark.parametrize(
    "value",
    ["pair<int, 4>", "a=b", "", " x", 'say "no"', '"quoted"', "two\nlines", "back\\slash", "naïve", "\x00", "1,"],
)
def test_values_read_back_as_they_are_written(value: str) -> None:
    space = Space(T=(value, "plain"), N=(1, -2, 2.5))
    (config,) = [c for c in enumerated(space).configs if c == {"T": value, "N": -2}]
    first, second = listed_parts(str(config))
    assert unquoted(first.partition("=")[2]) == value and second == "N=-2" and "\n" not in str(config)
    assert config_value_text("plain") == "plain"
