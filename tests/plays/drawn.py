"""Draws a play from a seed: an X-engine, its antennas, and what goes wrong with them when."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any

UDP, EACH, TCP = "udp", "udp, an entry each", "tcp"
LIVE_S, SILENT_S = 1.2, 3.6  # how long a play lasts, and how long one who is silent must be
LEAST_CHUNK_S, LEAST_DUMP_S = 0.01, 0.01
QUIET_S = 0.25  # after which a far time is believed: more than twice what the page says
CONFIRM = 8  # heaps that must agree, of which the last one is taken
MOST_GAP_S = 10.0

# Kinds of trouble of one antenna, and of all. By TCP a sender waits, so some cannot be.
OF_ONE = (
    *("late", "too late", "doubled", "two senders", "swapped", "killed", "wrong size", "wrong channels"),
    *("wrong descriptors", "far clock", "clock off by heaps", "clock back by heaps", "clock off by samples"),
    *("silent", "never there", "silent for a while"),
)
OF_ALL = ("graceful restarts", "synchronised anew", "gap of all", "all silent", "stranger", "nothing")
NOT_BY_TCP = (
    "too late",
    "far clock",
    "never there",
    "silent for a while",
    "synchronised anew",
    "gap of all",
    "all silent",
)
LONG = ("silent", "never there", "silent for a while", "all silent")  # which last until someone is told to be absent
ALL = -1  # the sender of a trouble of all


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with ``sender`` in the turns from ``first`` to before ``end``. ``n``: heaps, or samples."""

    kind: str
    sender: int
    first: int
    end: int
    n: int = 0


@dataclass(frozen=True)
class Play:
    """An X-engine and its senders, which send a heap each in a turn."""

    seed: int
    transport: str
    n_antennas: int
    bits: int
    channels: int  # of the whole band
    first_channel: int
    n_channels: int
    spectra: int
    accumulate: int
    batches_per_chunk: int
    period_s: float  # from one turn to the next
    reorder_s: float
    patience_s: float | None
    packet_bytes: int
    first: int  # number of the first heap
    n_turns: int
    has_clock: bool  # whether the engine knows the time at which the stream's time was 0
    all_stop: bool  # whether senders announce their end, or the engine is asked to end
    troubles: tuple[Trouble, ...]

    @property
    def names(self) -> list[str]:
        return [f"m{antenna:03}" for antenna in range(self.n_antennas)]

    @property
    def heap_samples(self) -> int:
        return self.spectra * 2 * self.channels

    @property
    def rate_hz(self) -> float:
        return self.heap_samples / self.period_s

    @property
    def reorder_heaps(self) -> int:
        return ceil(self.reorder_s / self.period_s)

    @property
    def window(self) -> int:
        """Heaps that are as late, and what is rounded up to chunks, are surely too late."""
        return self.reorder_heaps + 4 * self.batches_per_chunk

    @property
    def is_live(self) -> bool:
        return self.transport != TCP

    @property
    def kinds(self) -> str:
        return ", ".join(sorted({trouble.kind for trouble in self.troubles}))

    def turns(self, seconds: float) -> int:
        return ceil(seconds / self.period_s)


def draw(seed: int, kind: str | None = None, transport: str | None = None) -> Play:
    """Returns the play of a seed; ``kind`` and ``transport`` are those that it must have."""
    rng = Random(seed)
    drawn_transport = rng.choice((UDP, UDP, UDP, EACH, TCP))
    transport = transport or drawn_transport
    kinds = [each for each in (*OF_ONE, *OF_ALL) if transport != TCP or each not in NOT_BY_TCP]
    drawn_kind = rng.choice(kinds)
    kind = kind or drawn_kind
    n_antennas = rng.randint(2, 5)
    bits = rng.choice((8, 8, 4))
    n_parts = rng.choice((1, 1, 2, 4))
    channels = n_parts * rng.choice((8, 12, 16, 24))
    spectra = rng.choice((8, 16, 24, 32))
    period_s = rng.choice((0.002, 0.003, 0.004, 0.005))
    accumulate = rng.randint(ceil(LEAST_DUMP_S / period_s), 12)
    batches = rng.randint(ceil(LEAST_CHUNK_S / period_s), 10)
    reorder_s = (
        rng.choice((0.15, 0.2, 0.3)) if transport == EACH or kind == "late" else rng.choice((0.0, 0.05, 0.1, 0.3))
    )
    heap_samples = spectra * 2 * channels
    wraps = rng.random() < 0.1 and kind != "synchronised anew"
    first = (1 << 48) // heap_samples - 120 if wraps else rng.randrange(1 << 12, 1 << 24)
    seconds = SILENT_S + LIVE_S if kind in LONG else LIVE_S + reorder_s
    about: dict[str, Any] = {
        **dict(seed=seed, transport=transport, n_antennas=n_antennas, bits=bits, channels=channels),
        **dict(first_channel=rng.randrange(n_parts) * channels // n_parts, n_channels=channels // n_parts),
        **dict(spectra=spectra, accumulate=accumulate, batches_per_chunk=batches, period_s=period_s),
        **dict(reorder_s=reorder_s, patience_s=0.5 if kind == "silent" and transport == TCP else None),
        **dict(packet_bytes=rng.choice((512, 1024, 4096, 8192)), first=first, n_turns=ceil(seconds / period_s)),
        **dict(has_clock=rng.random() < 0.5 and not wraps, all_stop=rng.random() < 0.8),
    }
    bare = Play(**about, troubles=())
    if kind in OF_ALL:
        return Play(**about, troubles=(_of_all(kind, bare, rng),))
    senders = rng.sample(range(n_antennas), n_antennas)[: rng.randint(1, n_antennas - 1)]  # one is always well
    beside = [each for each in kinds if each in OF_ONE and each not in LONG]
    names = [kind, *(rng.choice(beside) for _ in senders[1:])]
    is_ahead = "clock off by heaps" in names
    troubles = tuple(_of_one(name, sender, bare, is_ahead, rng) for name, sender in zip(names, senders, strict=True))
    return Play(**about, troubles=troubles)


def _warm(play: Play) -> int:
    """The turns after which a stream has surely begun."""
    return CONFIRM + 3 * play.batches_per_chunk


def _of_one(kind: str, sender: int, play: Play, is_ahead: bool, rng: Random) -> Trouble:
    """``is_ahead``: whether the clock of some antenna is, so that others are late by it, too."""
    warm, chunk, n_turns = _warm(play), play.batches_per_chunk, play.n_turns
    first = rng.randint(warm, n_turns // 3)
    end = rng.randint(n_turns // 2, n_turns)
    most_ahead = max(1, min(chunk, play.reorder_heaps // 4))
    most_late = {UDP: play.reorder_heaps, EACH: play.reorder_heaps // 2, TCP: 3 * chunk}[play.transport]
    most_late = max(0, most_late - is_ahead * most_ahead)
    drawn: dict[str, Callable[[], Trouble]] = {
        "late": lambda: Trouble(kind, sender, warm, n_turns, rng.randint(min(1, most_late), most_late)),
        "too late": lambda: Trouble(kind, sender, warm, n_turns, play.window + rng.randint(1, play.window)),
        "two senders": lambda: Trouble(kind, sender, first, end, rng.randint(0, chunk)),
        "killed": lambda: Trouble(kind, sender, first, first + _absence(play, rng)),
        "far clock": lambda: Trouble(kind, sender, first, end, _far(play, rng)),
        "clock off by heaps": lambda: Trouble(kind, sender, first, n_turns, rng.randint(1, most_ahead)),
        "clock back by heaps": lambda: Trouble(kind, sender, first, n_turns, rng.randint(1, chunk)),
        "clock off by samples": lambda: Trouble(kind, sender, first, end, rng.randint(1, play.heap_samples - 1)),
        "silent": lambda: Trouble(kind, sender, first, n_turns),
        "never there": lambda: Trouble(kind, sender, 0, n_turns),
        "silent for a while": lambda: Trouble(kind, sender, warm, warm + play.turns(SILENT_S)),
    }
    return drawn.get(kind, lambda: Trouble(kind, sender, first, end))()


def _far(play: Play, rng: Random) -> int:
    """Heaps by which a clock is wrong, so that no time is negative."""
    least = 9 * play.window
    return rng.choice((-rng.randint(least, min(play.first, 1 << 22)), rng.randint(least, 1 << 22)))


def _absence(play: Play, rng: Random) -> int:
    """Turns of absence: few, or so many that a far time is believed after them."""
    long = max(play.turns(QUIET_S), play.window) + rng.randint(0, 20)
    return rng.choice((rng.randint(1, play.batches_per_chunk), long))


def _of_all(kind: str, play: Play, rng: Random) -> Trouble:
    at, warm = play.n_turns // 4, _warm(play)
    far = play.turns(2 * MOST_GAP_S)
    drawn: dict[str, Callable[[], Trouble]] = {
        "graceful restarts": lambda: Trouble(kind, ALL, warm, play.n_turns, rng.randint(1, play.batches_per_chunk)),
        "synchronised anew": lambda: Trouble(
            kind, ALL, at, at + play.turns(QUIET_S), rng.choice((-1, 1)) * rng.randint(far, 5 * far)
        ),
        "gap of all": lambda: Trouble(
            kind, ALL, at, at + play.turns(QUIET_S), rng.randint(9 * play.window, play.turns(MOST_GAP_S * 0.9))
        ),
        "all silent": lambda: Trouble(kind, ALL, warm, warm + play.turns(SILENT_S)),
    }
    return drawn.get(kind, lambda: Trouble(kind, ALL, warm, play.n_turns))()
