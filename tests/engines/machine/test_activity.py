"""Spans of the device's work: what is marked, what others may wait for, and what is told when."""

from typing import Any

import pytest

from autotune.engines.machine.activity import COPY_IN, KERNELS, SPANS, Activity, Span


class Clock:
    """A device whose events happen one second after the other, when they are told to."""

    def __init__(self) -> None:
        self.recorded: list[Tick] = []
        self.n_done = 0

    def stream(self) -> "Clock":
        return self

    def record(self, is_timed: bool = False) -> "Tick":
        self.recorded.append(Tick(self, len(self.recorded), is_timed))
        return self.recorded[-1]


class Tick:
    def __init__(self, clock: Clock, number: int, is_timed: bool) -> None:
        self.clock, self.number, self.is_timed = clock, number, is_timed

    def is_done(self) -> bool:
        return self.number < self.clock.n_done

    def seconds_since(self, earlier: "Tick") -> float:
        assert self.is_timed and earlier.is_timed and self.is_done()
        return float(self.number - earlier.number)


@pytest.mark.parametrize("kinds", [SPANS, (KERNELS,)])
def test_spans_are_those_that_are_asked_for_and_all_have_an_end(kinds: tuple[str, ...]) -> None:
    clock: Any = Clock()
    activity = Activity(clock, kinds)
    with activity.span(COPY_IN, clock) as copy:
        pass
    with activity.span(KERNELS, clock) as kernels:
        pass
    ends: list[Any] = [copy.end, kernels.end]
    times = [2, 4] if COPY_IN in kinds else [1, 3]
    assert [end.number for end in ends] == times and [end.is_timed for end in ends] == [COPY_IN in kinds, True]
    clock.n_done = times[1]
    assert activity.finished() == ([Span(COPY_IN, 1.0, 2.0)] if COPY_IN in kinds else [])
    clock.n_done += 1
    assert activity.finished() == [Span(KERNELS, times[1] - 1.0, float(times[1]))]
    assert activity.finished() == []


def test_what_failed_is_no_span() -> None:
    clock: Any = Clock()
    activity = Activity(clock)
    with pytest.raises(ValueError), activity.span(KERNELS, clock):
        raise ValueError
    clock.n_done = 99
    assert activity.finished() == []
