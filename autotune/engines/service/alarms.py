"""Lines about what goes wrong with a stream, with the time (UTC) and a level, and a line when it is over."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from weakref import ref

from ..files.reading import Tell
from ..network.senders import Sender
from .served import ERROR, FAR_S, WARNING, Counts, Served, Serving, at_level, clock_lag_s

LOOK_S = 0.5
SILENT_S = 2.0  # a sender that has sent nothing for so long is absent
HELD_S = 3.0  # an alarm is over when its reason has not been there for so long
CLIPPED = 1e-3  # the share of samples that may be saturated
REPEATED = 0.5  # two senders have one id if so many heaps are repeated for each placed one
LEAST_REPEATED = 8  # heaps
DROPS = ("chunks_dropped", "heaps_dropped", "dumps_dropped")  # counters of an output


@dataclass
class Alarm:
    """An alarm that is on. ``text``: its line; ``began`` and ``last``: when its reason was first and last there, s."""

    text: str
    began: float
    last: float
    held_s: float


class Alarms:
    """Looks at a service's engine now and then, and tells what is wrong, once, and when it is over.

    ``seen``: what the last look found: the names of senders that are ``present`` and ``absent``, the ``newest_time`` in
    samples, ``lag_s``: how far behind the clock that was when it came, and ``heaps_per_s`` of each sender since the
    look before.

    Args:
        tell: takes a line for each alarm.
        clock: returns seconds; tests give another one.
    """

    def __init__(self, serving: Serving, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._serving, self._tell, self._clock = serving, tell, clock
        self._on: dict[tuple[str, str], Alarm] = {}
        self._engine: Callable[[], Served | None] = lambda: None  # a weak reference: it holds sockets
        self._before: dict[str, int] = {}  # counts of the last look, by sender and counter
        self._looked = self._began = clock()
        self._rates: dict[str, float] = {}  # heaps a second, by the sender's name
        self.seen: Counts = {name: [] for name in ("present", "absent")} | {"newest_time": None, "lag_s": None}
        self.seen["heaps_per_s"] = self._rates

    def look(self, served: Served | None) -> None:
        """Look at the engine that runs now, if there is one."""
        if served is None:
            return
        now = self._clock()
        if served is not self._engine():
            self._engine, self._before, self._looked, self._began = ref(served), {}, now, now
        begun: dict[tuple[str, str], list[str]] = {}
        for level, kind, name, text, held_s in self._reasons(served, now):
            if (kind, name) not in self._on:
                begun.setdefault((level, text), []).append(name)
                self._on[kind, name] = Alarm(text.format(name), now, now, held_s)
            self._on[kind, name].last = now
        for (level, text), names in begun.items():
            at_level(self._tell, level)(text.format(", ".join(names)))
        for key, alarm in list(self._on.items()):
            if now - alarm.last > alarm.held_s:
                del self._on[key]
                at_level(self._tell)(f"over after {alarm.last - alarm.began:.1f} s: {alarm.text}")
        self._looked = now
        heard = [each.name for each in served.senders()[:-1] if each.quiet_s is not None]
        absent = [name for kind, name in self._on if kind == "silent"]
        self.seen |= {
            "present": [name for name in heard if name not in absent],
            "absent": sorted(absent),
            "newest_time": served.newest_time,
            "lag_s": clock_lag_s(self._serving, served),
            "offset": self._serving.offset,
        }

    def _reasons(self, served: Served, now: float) -> Iterator[tuple[str, str, str, str, float]]:
        """Yields (level, kind, name, text, s that the alarm is held) of each; in the text the name is left out."""
        senders = served.senders()
        for who, each in enumerate(senders[:-1]):
            if self._is_silent(served, who, each, now):
                yield WARNING, "silent", each.name, f"nothing from {{}} for {SILENT_S:g} s", 0.0
            yield from self._of_sender(served, each, now)
        for doubt in served.source.doubts() if senders else ():
            if self._more(f"{doubt.name}.{doubt.counter}", doubt.n) or doubt.stands:
                yield ERROR, doubt.counter, doubt.name, doubt.text.replace("{", "{{").replace("}", "}}"), HELD_S
        if (lag_s := clock_lag_s(self._serving, served)) is not None and abs(lag_s) > FAR_S and served.source.is_live:
            where = "behind" if lag_s > 0 else "ahead of"
            text = f"the stream's time is {abs(lag_s):.0f} s {where} the clock; is sync_time_unix right?"
            yield WARNING, "clock", "", text, HELD_S
        dropped = {"kernel_drops": served.received().get("kernel_drops", 0), **_sums(served.made())}
        more = [f"{n} {name}" for name, all_ in dropped.items() if (n := self._more(f".{name}", all_))]
        if more:
            yield WARNING, "drops", "", f"data are dropped: {', '.join(more)}", HELD_S

    def _of_sender(self, served: Served, sender: Sender, now: float) -> Iterator[tuple[str, str, str, str, float]]:
        """Yields what the counts of one sender say, as ``_reasons`` does."""
        counts, name = sender.counts, sender.name
        placed, repeated, saturated = (
            self._more(f"{name}.{each}", counts[each]) for each in ("placed", "repeated", "saturated")
        )
        self._rates[name] = round(placed / max(now - self._looked, 1e-9), 2)
        if repeated >= max(LEAST_REPEATED, REPEATED * placed):
            id_ = served.source.names.index(name)
            text = f"two senders say {served.source.sender_word} {id_}, {{}}, or its packets come twice"
            yield ERROR, "repeated", name, text, HELD_S
        if self._more(f"{name}.too_old", counts.get("too_old", 0)):
            yield WARNING, "late", name, "heaps of {} come too late, after their chunk was passed on", HELD_S
        if saturated > CLIPPED * placed * served.source.heap_samples:
            share = saturated / max(1, placed * served.source.heap_samples)
            yield WARNING, "clipped", name, f"{share:.1%} of the samples of {{}} are clipped", HELD_S

    def _is_silent(self, served: Served, who: int, sender: Sender, now: float) -> bool:
        """Returns whether a sender is absent. A sender that waits for the engine, or for another sender, is not."""
        receiver, quiet_s = served.source.receiver, inf if sender.quiet_s is None else sender.quiet_s
        if receiver is not None and not served.source.is_live:
            quiet_s = receiver.idle_s(who, quiet_s)
        return quiet_s >= SILENT_S and (now - self._began >= SILENT_S or ("silent", sender.name) in self._on)

    def _more(self, key: str, count: int) -> int:
        """Returns how much a count has grown since the last look."""
        before, self._before[key] = self._before.get(key, 0), count
        return count - before


def _sums(made: list[Counts]) -> Mapping[str, int]:
    return {name: sum(each.get(name, 0) for each in made) for name in DROPS}
