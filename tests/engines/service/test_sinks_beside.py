"""Several sinks of an output: each gets all; a slow or failing one loses its own and nobody else's."""

import threading
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.service.sinks_beside import N_WAITING, SinkBeside, SinksBeside

N = 40


class Kept:
    def __init__(self) -> None:
        self.got: list[int] = []

    def write(self, time: int, values: np.ndarray) -> None:
        assert (values == time).all()
        self.got.append(time)

    def close(self) -> None:
        pass


class Full(Kept):
    def write(self, time: int, values: np.ndarray) -> None:
        if time >= 5:
            raise UsageError("the disk is full")
        super().write(time, values)


class Slow(Kept):
    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    def write(self, time: int, values: np.ndarray) -> None:
        self.may.wait(120)
        super().write(time, values)


def run(is_live: bool, *sinks: Any) -> tuple[SinksBeside, list[str]]:
    told: list[str] = []
    both = SinksBeside({type(each).__name__: each for each in sinks}, is_live, told.append)
    memory = np.zeros(3, np.int64)
    for time in range(N):
        memory[...] = time  # used again and again, as an engine's is
        both.write(time, memory)
        if time == N - 2:
            for sink in sinks:
                if isinstance(sink, Slow):
                    sink.may.set()
    both.close()
    return both, told


def test_a_sink_that_fails_loses_its_own_and_says_so_once() -> None:
    kept, full = Kept(), Full()
    both, told = run(False, full, kept)
    assert kept.got == list(range(N)) and full.got == list(range(5))
    assert [sink.n_dropped for sink in both.sinks] == [N - 5, 0]
    assert told == ["Full takes no more: the disk is full"]


def test_a_slow_sink_loses_its_own_where_the_source_is_live() -> None:
    slow, kept = Slow(), Kept()
    told: list[str] = []
    sinks = [SinkBeside(slow, "slow", True, told.append), SinkBeside(kept, "kept", False, told.append)]
    for time in range(N):
        for sink in sinks:
            sink.write(time, np.full(3, time))
    slow.may.set()
    for sink in sinks:
        sink.close()
    assert kept.got == list(range(N)) and not told
    assert N_WAITING <= len(slow.got) <= N_WAITING + 1
    assert sinks[0].n_dropped == N - len(slow.got)


def test_it_ends_with_the_last_sink() -> None:
    told: list[str] = []
    both = SinksBeside({"a": Full(), "b": Full()}, False, told.append)
    with pytest.raises(UsageError, match="the disk is full"):
        for time in range(N):
            both.write(time, np.full(3, time))
    both.close()
    assert sorted(told) == ["a takes no more: the disk is full", "b takes no more: the disk is full"]
