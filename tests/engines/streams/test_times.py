"""Times are exact: what is given comes back from text and from files as it was."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.core.errors import UsageError
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.times import exact_time, stored_time, time_text


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (1_600_000_000, Fraction(1_600_000_000)),
        (1.5e9 + 0.25, Fraction(6_000_000_001, 4)),
        (np.int64(7), Fraction(7)),
        ("1600000000.000000000001", 1_600_000_000 + Fraction(1, 10**12)),
        ("-0.5", Fraction(-1, 2)),
        ("16e8", Fraction(1_600_000_000)),
        ("5100000001/3", Fraction(5_100_000_001, 3)),
        (Fraction(1, 7), Fraction(1, 7)),
    ],
)
def test_a_time_is_taken_as_it_is_given(value: object, time: Fraction) -> None:
    assert exact_time(value) == time
    assert SampleInfo(8, 1, 1e6, 8, sync_time_unix=value).sync_time_unix == time


@pytest.mark.parametrize(
    "value", ["", "now", "1/0", "1_000", " 1", "1e999", "nan", float("inf"), True, None, [1], 10**400, "2e12", b"1"]
)
def test_what_is_no_time_is_told_in_one_line(value: object) -> None:
    with pytest.raises(UsageError, match="must be seconds since 1970") as caught:
        exact_time(value)
    assert "\n" not in str(caught.value)


@given(st.fractions(-(10**12), 10**12) | st.decimals(-(10**9), 10**9, places=20).map(Fraction))
def test_text_and_what_files_hold_turn_back(time: Fraction) -> None:
    assert exact_time(time_text(time)) == time == exact_time(stored_time(time))


def test_the_longest_decimal_number_turns_back() -> None:
    time = exact_time("1600000000") + exact_time(f"1.{'1' * 60}e-99") * 86400
    assert exact_time(time_text(time)) == time


def test_text_is_short() -> None:
    times = {"1700000000.25": "1700000000.25", "3": "3", "-1/8": "-0.125", "1/3": "1/3", "1e-20": f"0.{'0' * 19}1"}
    assert {text: time_text(exact_time(text)) for text in times} == times
    assert stored_time(exact_time("1700000000.25")) == 1700000000.25
    assert stored_time(exact_time("1700000000.1")) == "1700000000.1"
