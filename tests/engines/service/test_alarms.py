"""Alarms: what goes wrong is told once, with the time and a level, and again when it is over."""

import re
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from autotune.engines.network.received import Doubt
from autotune.engines.network.senders import Sender
from autotune.engines.service.alarms import FAR_S, HELD_S, LOOK_S, Alarms

NAMES = ("m000", "m001", "m002")
HEAP, RATE = 1000, 1e6


class Stream:
    """An engine of three antennas, its source and its service: what a test says of them."""

    names, sender_word, is_live, heap_samples = NAMES, "feng_id", True, HEAP
    sample_rate_hz, sync_time_unix, offset = RATE, Fraction(0), 0

    def __init__(self) -> None:
        self.quiet_s: dict[str, float | None] = dict.fromkeys(NAMES, 0.0)
        self.counts = {name: dict.fromkeys(("placed", "repeated", "saturated", "too_old"), 0) for name in NAMES}
        self.said: list[Doubt] = []
        self.drops, self.kernel_drops, self.behind_s, self.silent_s = 0, 0, 0.0, [0.0, 0.0, 0.0]
        self.source = self.receiver = self

    def senders(self) -> list[Sender]:
        return [*(Sender(name, self.counts[name], {}, self.quiet_s[name]) for name in NAMES), Sender("", {}, {}, None)]

    def doubts(self) -> Iterator[Doubt]:
        yield from self.said

    def idle_s(self, member: int, quiet_s: float) -> float:
        return self.silent_s[member]

    def received(self) -> dict[str, int]:
        return {"kernel_drops": self.kernel_drops}

    def made(self) -> list[dict[str, int]]:
        return [{"chunks_dropped": self.drops, "dumps_dropped": 0}]

    @property
    def newest_time(self) -> int:
        return int((time.time() - self.behind_s) * RATE)


class Watch:
    """Alarms that look at ``stream``, whose clock a test moves on."""

    def __init__(self) -> None:
        self.stream, self.told, self.now = Stream(), list[str](), 0.0
        stream: Any = self.stream
        self.alarms = Alarms(stream, self.told.append, lambda: self.now)
        self.looks(0.0)

    def looks(self, for_s: float, placed: int = 100, **more: int) -> list[str]:
        """Looks until so much later, with so many more heaps of each sender each time; returns what was told."""
        self.told.clear()
        stream: Any = self.stream
        for _ in range(max(1, round(for_s / LOOK_S))):
            self.now += LOOK_S
            for name in NAMES:
                is_there = self.stream.quiet_s[name] == 0.0
                self.stream.counts[name]["placed"] += placed * is_there
            for name, n in more.items():
                self.stream.counts["m001"][name] += n
            self.alarms.look(stream)
        return [re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", "", line) for line in self.told]


def test_a_line_has_the_time_and_each_alarm_is_told_once_and_when_it_is_over() -> None:
    watch = Watch()
    assert watch.looks(5) == []
    watch.stream.quiet_s |= {"m001": 2.5, "m002": 3.0}
    assert watch.looks(5) == ["WARNING nothing from m001, m002 for 2 s"]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ WARNING ", watch.told[0])
    assert watch.alarms.seen["absent"] == ["m001", "m002"] and watch.alarms.seen["present"] == ["m000"]
    assert watch.looks(1) == []
    watch.stream.quiet_s |= {"m001": 0.0}
    assert watch.looks(5) == ["INFO over after 5.5 s: nothing from m001 for 2 s"]
    assert watch.alarms.seen["heaps_per_s"] == {"m000": 200.0, "m001": 200.0, "m002": 0.0}


def test_who_never_came_is_told_after_a_while_and_a_new_engine_does_not_end_the_alarm() -> None:
    watch = Watch()
    watch.stream.quiet_s |= {"m001": None}
    assert watch.looks(1) == []
    assert watch.looks(2) == ["WARNING nothing from m001 for 2 s"]
    watch.stream = Stream()
    watch.stream.quiet_s |= {"m001": None}
    assert watch.looks(5) == []


def test_a_sender_that_waits_for_the_engine_or_for_another_sender_is_not_absent() -> None:
    """None of them comes through; one of them could send, and does not."""
    watch = Watch()
    watch.stream.is_live = False
    watch.looks(5)
    watch.stream.quiet_s |= dict.fromkeys(NAMES, 5.0)
    assert watch.looks(5, placed=0) == []
    watch.stream.silent_s[1] = 5.0
    assert watch.looks(5, placed=0) == ["WARNING nothing from m001 for 2 s"]


def test_two_senders_of_one_id_are_told() -> None:
    watch = Watch()
    assert watch.looks(3, repeated=2) == []
    told = watch.looks(3, repeated=100)
    assert told == ["ERROR two senders say feng_id 1, m001, or its packets come twice"]
    assert watch.looks(HELD_S + 2)[0].startswith("INFO over after 2.5 s: two senders say feng_id 1")


def test_heaps_that_come_too_late_are_told() -> None:
    watch = Watch()
    assert watch.looks(3, too_old=2) == ["WARNING heaps of m001 come too late, after their chunk was passed on"]


def test_clipped_samples_drops_and_a_wrong_clock_are_told() -> None:
    watch = Watch()
    assert watch.looks(2, saturated=100) == [], "it is the tail of a normal distribution"
    assert watch.looks(2, saturated=5000) == ["WARNING 5.0% of the samples of m001 are clipped"]
    watch.looks(HELD_S + 2)
    watch.stream.drops, watch.stream.kernel_drops = 3, 7
    assert watch.looks(2) == ["WARNING data are dropped: 7 kernel_drops, 3 chunks_dropped"]
    watch.looks(HELD_S + 2)
    watch.stream.behind_s = -1000 - FAR_S
    (line,) = watch.looks(2)
    assert line == "WARNING the stream's time is 1010 s ahead of the clock; is sync_time_unix right?"
    assert abs(watch.alarms.seen["lag_s"] + 1010) < 5


def test_a_contradiction_is_one_line_as_long_as_it_lasts() -> None:
    watch = Watch()
    for n in range(1, 10):
        watch.stream.said = [Doubt("wrong_channels", "m001", n, "m001 says {64}")]
        assert watch.looks(LOOK_S) == (["ERROR m001 says {64}"] if n == 1 else [])
    assert watch.looks(HELD_S + 1) == ["INFO over after 4.0 s: m001 says {64}"]


def test_a_contradiction_that_is_stated_once_stands_until_another_engine_begins() -> None:
    watch = Watch()
    watch.stream.said = [Doubt("wrong_descriptors", "m001", 1, "m001 describes 16 bits", stands=True)]
    assert watch.looks(LOOK_S) == ["ERROR m001 describes 16 bits"]
    assert watch.looks(10 * HELD_S) == []
    watch.stream.said = []
    assert watch.looks(HELD_S + 1)[0].startswith("INFO over after 30")
