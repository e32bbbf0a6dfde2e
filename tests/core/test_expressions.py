"""Expressions of users: what they mean, and that none of them can take long."""

from typing import Any

import pytest

from autotune import UsageError
from autotune.campaign.campaign_plan import read_plan
from autotune.core.expressions import checked_expression, value_of

from ..conftest import EXAMPLE

VALUES = {"x": 3, "y": 4, "many": 10**9, "layout": "row"}


def value(text: str) -> Any:
    return value_of(checked_expression(text, VALUES, "the metric"), VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "x ** 2 + y ** 0.5 - 10 ** -9",
        "2 ** x ** 2 >> 1 << y",
        "(x + y) ** x % 7 == 0 and layout in ('row', 'column')",
        "'a' if x > y else layout",
        "round(x / y, 2) + round(many, -3) + max(x, y, 2) + int('7')",
        "1 << x - 1 | -(-y)",
        "layout == 'row' or x <= y < many",
        "+".join(["x"] * 90),
    ],
)
def test_an_expression_has_the_value_that_python_gives_it(text: str) -> None:
    assert value(text) == eval(text, dict(VALUES))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("9**9**9", "an exponent beyond 64"),
        ("x" + "**x" * 40, "too many powers and shifts of each other"),
        ("9**many", "an exponent beyond 64"),
        ("1 << 99999999999", "a shift beyond 1024"),
        ("1 << many", "a shift beyond 1024"),
        ("(9**64)**many", "an exponent beyond 64"),
        ("((9**64)**64)**64", "too many powers and shifts of each other"),
        ("-" * 1500 + "1", "is nested too deeply; 100 levels"),
        ("-" * 3000 + "1", "has 3001 characters; 2000 are allowed"),
        ("(" * 900 + "1" + ")" * 900, "is nested too deeply|too many nested"),
        ("'a' * 999999999", "arithmetic with a text or a list"),
        ("('a' if x else 'b') * 999999999", "arithmetic with a text or a list"),
        ("'%999999999d' % x", "arithmetic with a text or a list"),
        ("(x, y) * 999999999", "arithmetic with a text or a list"),
        ("max('a', 'b') * 999999999", "arithmetic with a text or a list"),
        ("round(x, -999999999)", "round.. takes a constant number of digits"),
        ("round(x, many)", "round.. takes a constant number of digits"),
        (f"x + {10**400}", "a constant beyond 2..64"),
        ("x\0", "is not an expression"),
        ("x, y", "is a list; give one expression, such as x . y"),
        ("[x]", "is a list; give one expression, such as x"),
    ],
)
def test_an_expression_that_could_take_long_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises((UsageError, ValueError), match=why) as error:
        value(text)
    assert "\n" not in str(error.value) and len(str(error.value)) < 250


@pytest.mark.parametrize("text", ["9**9**9", "9**9**x**9 + 9**9**9", "1 << 9**9", "2 ** (3 - 99)", "1 << int('9999')"])
def test_what_is_too_large_whatever_the_parameters_is_refused_before_anything_runs(text: str) -> None:
    with pytest.raises(UsageError, match=r"(an exponent beyond 64|a shift beyond 1024)"):
        checked_expression(text, VALUES, "the metric")


def test_a_campaigns_expression_is_bounded_too(tmp_path: Any) -> None:
    path = tmp_path / "campaign.toml"
    for text in ("1" + "+1" * 900, "n_chan" + "*9" * 3000, "(" * 500 + "1" + ")" * 500):
        path.write_text(f'kernel = "{EXAMPLE}"\n[grid]\nn_chan = [1]\n[problem]\nn_time = "{text}"\n')
        with pytest.raises(UsageError, match=r"campaign\.toml: .*(too deeply|characters|too many nested)") as error:
            read_plan(path)
        assert "\n" not in str(error.value) and len(str(error.value)) < 400
