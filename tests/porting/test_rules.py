"""Restrictions in all forms that scripts use."""

from collections.abc import Callable
from typing import Any

import pytest

from autotune import UsageError
from autotune.porting.rules import rules_of

SPACE: dict[str, tuple[Any, ...]] = {"x": (1, 2, 32, 1024), "y": (0, 1, 3), "kind": ("a", "b"), "on": (True, False)}
CONFIGS = [{"x": x, "y": y, "kind": k, "on": o} for x in SPACE["x"] for y in SPACE["y"] for k in "ab" for o in (1, 0)]


@pytest.mark.quick
def test_restrictions_say_what_they_read() -> None:
    rules = rules_of(["x <= y", lambda p: p["x"] * 2 > p["y"], (lambda a: a != 3, ["y"]), lambda x, y: x > y], SPACE)
    assert [rule.written for rule in rules] == ["x <= y", "", "", ""]
    assert [set(rule.reads) for rule in rules] == [{"x", "y"}, {"x", "y"}, {"y"}, {"x", "y"}]
    read_by = (lambda p: sum(p[n] for n in ("x", "y")) > 3, lambda p: len({**p}) > 3, lambda **p: p["on"] or p["x"] > 2)
    assert [set(rule.reads) for rule in rules_of(list(read_by), SPACE)] == [{"x", "y"}, {*SPACE}, {"on", "x"}]
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
