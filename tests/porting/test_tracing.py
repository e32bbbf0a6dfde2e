"""Functions of a config become expressions where they are such, and stay functions where they are not."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.core.expressions import checked_expression, value_of
from autotune.porting.rules import rule_of, rules_of
from autotune.porting.tracing import traced

SPACE: dict[str, tuple[Any, ...]] = {"x": (1, 2, 32, 1024), "y": (0, 1, 3), "kind": ("a", "b"), "on": (True, False)}
CONFIGS = [{"x": x, "y": y, "kind": k, "on": o} for x in SPACE["x"] for y in SPACE["y"] for k in "ab" for o in (1, 0)]


def by_steps(p: dict[str, Any]) -> Any:
    if p["x"] > 100:
        return p["y"] == 0
    if p["kind"] == "a" and not p["on"]:
        return False
    return p["x"] * p["y"] < 40


@pytest.mark.quick
@pytest.mark.parametrize(
    "function",
    [
        lambda p: p["x"] * p["y"] <= 1024 and p["kind"] == "a",
        lambda p: 2 ** p["y"] + -p["x"] // 3 % 7 or p["on"],
        lambda p: p["x"] in (1, 32) and 0 <= p["y"] < 3,
        lambda p: math.ceil(100 / p["x"]) + math.floor(p["x"] / 3) + round(p["x"] / 4),
        lambda p: max(p["x"], p["y"], 5) - abs(p["y"] - 2),
        lambda p: np.int64(12) * p["x"] + np.float64(0.5),
        lambda p: (p["x"] & 3) | (1 << p["y"]) ^ 5 >> p["y"],
        lambda p: [p[name] for name in ("x", "y")][1] if p.get("on") else 7,
        lambda p: 12,
        by_steps,
    ],
)
def test_what_a_function_computes_is_written_down(function: Callable[[dict[str, Any]], Any]) -> None:
    text = traced(function, tuple(SPACE))
    assert text is not None
    expression = checked_expression(text, SPACE, "it")
    assert [value_of(expression, c) for c in CONFIGS] == [function(dict(c)) for c in CONFIGS]


@pytest.mark.parametrize(
    "function",
    [
        lambda p: {1: 5}.get(p["x"], 3),
        lambda p: int(p["x"]) > 3,
        lambda p: f"{p['x']}",
        lambda p: str(p["x"]) == "1",
        lambda p: sum(range(p["x"])),
        lambda p: np.ceil(p["x"] / 3),
        lambda p: len(p["kind"]),
        lambda p: p["nothing"],
        lambda p: any(p["x"] == n for n in range(1000)) and all(p["y"] != n for n in range(1000)),
        lambda p: np.float32(0.1) * p["x"],
    ],
)
def test_what_is_not_an_expression_stays_a_function(function: Callable[[dict[str, Any]], Any]) -> None:
    assert traced(function, tuple(SPACE)) is None


def test_a_function_that_looks_at_types_is_found_out() -> None:
    rule = rule_of(lambda p: p["x"] > 3 if isinstance(p["x"], int) else p["x"] > 99, SPACE)
    assert not rule.written and [rule.holds(c) for c in CONFIGS] == [c["x"] > 3 for c in CONFIGS]


def test_restrictions_that_become_text_say_what_they_read() -> None:
    rules = rules_of(["x <= y", lambda p: p["x"] * 2 > p["y"], (lambda a: a != 3, ["y"]), lambda x, y: x > y], SPACE)
    assert [rule.written for rule in rules] == ["x <= y", "((x * (2)) > y)", "(y != (3))", "(x > y)"]
    assert [set(rule.reads) for rule in rules] == [{"x", "y"}, {"x", "y"}, {"y"}, {"x", "y"}]
    assert rules_of(None, SPACE) == () and len(rules_of((lambda p: True, "x > 1"), SPACE)) == 2


@pytest.mark.parametrize(
    ("given", "allows"),
    [
        (lambda *values: values[0] > 1, lambda c: c["x"] > 1),
        (lambda a, b, c, d: b == 0 or not d, lambda c: c["y"] == 0 or not c["on"]),
        (lambda *, y, x: x > y, lambda c: c["x"] > c["y"]),
        (lambda **c: c["x"] > c["y"], lambda c: c["x"] > c["y"]),
        (lambda x, limit=20: x < limit, lambda c: c["x"] < 20),
        (("x > y", ["x", "y"]), lambda c: c["x"] > c["y"]),
        ((lambda v: v in (1, 32), ["x"]), lambda c: c["x"] in (1, 32)),
        ("not x > 1 and (y ** 2 // 2 % 3 == 1 or kind in ['a'])", lambda c: c["x"] == 1 and c["kind"] == "a"),
    ],
)
def test_restrictions_are_taken_as_kernel_tuner_takes_them(given: Any, allows: Callable[[Any], bool]) -> None:
    (rule,) = rules_of(given, SPACE)
    if isinstance(given, str):
        expected = [bool(eval(given, dict(c))) for c in CONFIGS]
    else:
        expected = [bool(allows(c)) for c in CONFIGS]
    assert [bool(rule.holds(c)) for c in CONFIGS] == expected


def test_constraints_of_python_constraint_are_asked_as_its_solvers_do() -> None:
    from constraint import (
        AllDifferentConstraint,
        ExactSumConstraint,
        FunctionConstraint,
        InSetConstraint,
        MaxProdConstraint,
        MinSumConstraint,
        NotInSetConstraint,
        Problem,
        SomeInSetConstraint,
    )

    for made in (
        AllDifferentConstraint(),
        ExactSumConstraint(33),
        FunctionConstraint(lambda a, b: a > b),
        InSetConstraint([1, 32, 3]),
        MaxProdConstraint(64),
        MinSumConstraint(4),
        NotInSetConstraint([32, 0]),
        SomeInSetConstraint([0, 2]),
    ):
        problem = Problem()
        problem.addVariable("x", SPACE["x"])
        problem.addVariable("y", SPACE["y"])
        problem.addConstraint(made, ["x", "y"])
        solved = {(found["x"], found["y"]) for found in problem.getSolutions()}
        (rule,) = rules_of([(made, ["x", "y"])], SPACE)
        assert {(c["x"], c["y"]) for c in CONFIGS if rule.holds(c)} == solved, rule.said


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([lambda x, z: x > z], "there is no parameter 'z'; there are x, y, kind, on"),
        ([(lambda a: a, ["z"])], "the restriction on z: there is no 'z'; there are x, y"),
        (["x > z"], "there is no 'z'"),
        ([{"x": 1}], r"the restriction \{'x': 1\} must be a text, a function"),
    ],
)
def test_restrictions_that_name_no_parameter_are_refused(given: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        rules_of(given, SPACE)
