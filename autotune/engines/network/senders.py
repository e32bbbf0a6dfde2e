"""The account of each sender of a stream: what became of its heaps, what they said, and when the last one came."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .placing import ACCEPTED, CLOCK, COUNTERS, SENDER, PlaceRules, Placing

OWN = COUNTERS[COUNTERS.index("wrong_size") :]  # counters of heaps whose sender is known


@dataclass(frozen=True)
class Sender:
    """One sender of a stream.

    ``counts``: its heaps by counter, with ``missing`` ones, which others have sent and it has not yet, ``misnumbered``
    ones, whose numbers belong to other senders, and the ``saturated`` samples that its heaps state. ``said``: what the
    last heap in each counter stated; for a refused one, the value for which it was refused. ``quiet_s``: seconds since
    its last heap; None before the first one.
    """

    name: str
    counts: dict[str, int]
    said: dict[str, int]
    quiet_s: float | None


class SenderTally:
    """The accounts of all senders: those of place.c, of all members, and what chunks had when they were taken."""

    def __init__(self, rules: PlaceRules, placings: Sequence[Placing]) -> None:
        self._rules, self._placings = rules, placings
        self._came, self._begun = np.zeros((2, rules.n_senders), np.int64)  # whole heaps, and heaps with any packet
        self._n_sent, self._last_chunk = 0, -1  # heaps that any sender has sent; the newest chunk's number

    def took(self, chunk: int, came: np.ndarray, begun: np.ndarray) -> None:
        """Count a chunk: bool and uint8 [heaps], in its order, whether all or any of a heap's packets came."""
        self._n_sent += int(self._by_sender(came).any(axis=1).sum())
        self._last_chunk = max(self._last_chunk, chunk)
        self._came += np.count_nonzero(self._by_sender(came), axis=0)
        self._begun += np.count_nonzero(self._by_sender(begun), axis=0)

    @property
    def total(self) -> dict[str, int]:
        """Returns the counts of all heaps. Those ``placed`` include incomplete ones, and too old ones."""
        n = self._rows()["n"].sum(axis=0)
        counts = {name: int(n[i]) for i, name in enumerate(COUNTERS)}
        return counts | {"placed": int(n[ACCEPTED]), "incomplete": int((self._begun - self._came).sum())}

    def senders(self, names: Sequence[str]) -> list[Sender]:
        """Returns the account of each sender, and at last that of heaps without a known one."""
        rows, now_ns = self._rows(), time.clock_gettime_ns(CLOCK)
        waiting = np.zeros(self._rules.n_senders, np.int64)  # accepted heaps of chunks that were not taken yet
        for placing in self._placings:
            waiting += self._by_sender(placing.seen[placing.seen_of > self._last_chunk]).sum((0, 1), np.int64)
        accepted = rows["n"][:-1, ACCEPTED]
        more = {
            "placed": self._came + waiting,
            "too_old": np.maximum(0, accepted - self._begun - waiting),
            "incomplete": self._begun - self._came,
            "missing": self._n_sent - self._came,
            **{name: rows[name][:-1] for name in ("misnumbered", "saturated")},
        }
        found = []
        for who, name in enumerate((*names, "")):
            row = rows[who]
            known = {} if who == len(names) else {each: int(values[who]) for each, values in more.items()}
            said = dict(zip(COUNTERS, row["said"].tolist(), strict=False))
            counts = dict(zip(COUNTERS, row["n"].tolist(), strict=False))
            quiet_s = (now_ns - int(row["last_ns"])) * 1e-9 if row["last_ns"] else None
            found.append(Sender(name, {each: counts[each] for each in OWN} | known if known else counts, said, quiet_s))
        return found

    def _rows(self) -> np.ndarray:
        """Returns SENDER [n_senders + 1] of all members together."""
        total = np.zeros(self._rules.n_senders + 1, SENDER)
        for each in (placing.senders for placing in self._placings):
            total["said"] = np.where(each["n"] > 0, each["said"], total["said"])
            total["last_ns"] = np.maximum(total["last_ns"], each["last_ns"])
            for name in ("n", "misnumbered", "saturated"):
                total[name] += each[name]
        return total

    def _by_sender(self, flags: np.ndarray) -> np.ndarray:
        """Returns a view of flags [.., heaps of a chunk] as [.., chunk_heaps, n_senders]."""
        rules, before = self._rules, flags.shape[:-1]
        if rules.by_sender:
            return flags.reshape(*before, rules.n_senders, rules.chunk_heaps).swapaxes(-1, -2)
        return flags.reshape(*before, rules.chunk_heaps, rules.n_senders)
