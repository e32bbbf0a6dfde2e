"""What a play must lead to, by what is sent: the counters of each sender, dumps, and who is named as absent."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .drawn import ALL, LONG, Play
from .script import ANEW, DESCRIPTOR, FOREIGN, JUMPED, LATE, PLACED, STOP, UNSURE, Wire, script

OF_SENDER = (
    *("placed", "repeated", "wrong_size", "wrong_channels", "off_grid", "early", "incomplete", "misnumbered"),
    *("saturated", "wrong_descriptors", "missing", LATE, UNSURE),
)
OF_ALL = (STOP, DESCRIPTOR, FOREIGN, "kernel_drops", "incomplete", "early")
MADE = ("dumps_out", "dumps_empty", "dumps_dropped", "chunks_dropped", "heaps_failed")
MANY = 1 << 60
Bounds = tuple[int, int]  # the least and the most of a counter


@dataclass(frozen=True)
class Expected:
    """What must come of a play. ``made`` and ``received`` and each of ``senders`` have bounds of counters by name.

    ``absent``: the turns from which a sender is silent, by its name; -1: from the beginning on.
    """

    engines: int
    senders: dict[str, dict[str, Bounds]]
    received: dict[str, Bounds]
    made: dict[str, Bounds]
    absent: dict[str, int]

    def __str__(self) -> str:
        """The counters that must rise, in a line."""
        parts = [f"{name}: {_rises(counts)}" for name, counts in self.senders.items()]
        absent = [f"{name} is named as absent" for name in self.absent]
        return "; ".join([*parts, _rises(self.received), _rises(self.made), f"{self.engines} engines", *absent])


def _rises(counts: dict[str, Bounds]) -> str:
    said = {n: str(a) if a == b else f"{a} or more" if b == MANY else f"{a} to {b}" for n, (a, b) in counts.items()}
    return " ".join(f"{name} +{said[name]}" for name, bounds in counts.items() if bounds != (0, 0))


@dataclass(frozen=True)
class Dump:
    """A dump that may be there: which antennas are whole in it, which may be, and whether it must be there."""

    whole: tuple[bool, ...]
    may: tuple[bool, ...]
    must: bool


def expected(play: Play) -> Expected:
    """Returns what must come of a play."""
    wires = script(play)
    is_new = any(wire.fate == ANEW for wire in wires)
    fates = [Counter(wire.fate for wire in wires if wire.sender == sender) for sender in range(play.n_antennas)]
    has, may = placed(play, wires), placed(play, wires, PLACED, UNSURE)
    sent = set[int]().union(*may)  # heaps that any sender has sent
    wrong = {trouble.sender for trouble in play.troubles if trouble.kind == "wrong descriptors"}
    senders = {}
    for sender, (name, fate) in enumerate(zip(play.names, fates, strict=True)):
        unsure, refused = fate[UNSURE], fate[JUMPED] + fate[LATE]
        exact = {each: fate[each] for each in OF_SENDER} | {UNSURE: fate[PLACED] + refused + unsure}
        bounds = {each: (n, n) for each, n in exact.items()}
        bounds |= {PLACED: (fate[PLACED], fate[PLACED] + unsure), LATE: (refused, refused + unsure)}
        bounds["wrong_descriptors"] = (int(sender in wrong),) * 2
        n_missing = len(sent - has[sender])
        under_way = 0 if play.all_stop else play.window  # heaps of chunks that nobody takes
        least = len(set[int]().union(*has) - may[sender]) - under_way
        bounds["missing"] = (max(0, least), n_missing)
        if is_new:
            bounds[PLACED] = (fate[PLACED] - play.window, fate[PLACED] + unsure + fate[ANEW])
            bounds[LATE] = (refused, refused + unsure + fate[ANEW])
            bounds[UNSURE] = (exact[UNSURE] - play.window, exact[UNSURE] + fate[ANEW])
            bounds["missing"] = (0, play.window)
        senders[name] = bounds
    counts = Counter(wire.fate for wire in wires)
    counts[STOP] -= play.all_stop and play.patience_s is not None  # the connection of one who is silent has been cut
    received = {each: (counts[each],) * 2 for each in OF_ALL}
    dumps = possible_dumps(play, has, may)
    n_out = sum(any(dump.whole) and dump.must for dump in dumps.values())
    n_empty = sum(not any(dump.may) and dump.must for dump in dumps.values())
    n_more = sum(not dump.must or any(dump.whole) != any(dump.may) for dump in dumps.values())
    made = {name: (0, 0) for name in MADE}
    made |= {"dumps_out": (n_out, n_out + n_more), "dumps_empty": (n_empty, n_empty + n_more)}
    if is_new:
        made["dumps_out"], made["dumps_empty"] = (n_out, MANY), (0, MANY)
        received[STOP], received[DESCRIPTOR] = (0, counts[STOP]), (play.n_antennas,) * 2
    return Expected(1 + is_new, senders, received, made, _absent(play))


def _absent(play: Play) -> dict[str, int]:
    found = {}
    for trouble in play.troubles:
        if trouble.kind in LONG:
            for name in play.names if trouble.sender == ALL else [play.names[trouble.sender]]:
                found[name] = -1 if trouble.kind == "never there" else trouble.first
    return found


def placed(play: Play, wires: Iterable[Wire], *fates: str) -> list[set[int]]:
    """Returns the numbers of each sender's heaps that are placed, by their fates, but for those of a new stream."""
    found = [set[int]() for _ in range(play.n_antennas)]
    for wire in wires:
        if wire.fate in (fates or (PLACED,)):
            assert wire.time not in found[wire.sender], (play.seed, wire)
            found[wire.sender].add(wire.time)
    return found


def possible_dumps(play: Play, has: list[set[int]], may: list[set[int]]) -> dict[int, Dump]:
    """Returns the dumps by their times, in heaps: those that lie between the first and the last heap of any sender.

    ``has`` and ``may``: the heaps of each sender that are placed, and those that may be.
    """
    sent, n = set[int]().union(*may), play.accumulate
    first, last = min(sent), max(sent)
    is_cut = not play.all_stop or play.kinds == "synchronised anew"  # then chunks under construction are lost
    found = {}
    for number in sorted({heap // n for heap in sent}):
        if number * n >= first and (number + 1) * n - 1 <= last:
            heaps = set(range(number * n, (number + 1) * n))
            is_sure = all(heaps & all_ == heaps & sure for all_, sure in zip(may, has, strict=True))
            must = is_sure and (not is_cut or (number + 1) * n < last - play.window)
            whole, can = (tuple(heaps <= each for each in some) for some in (has, may))
            found[number * n] = Dump(whole, can, must)
    return found


def voltages(play: Play, sender: int, label: int, variant: int = 0) -> np.ndarray:
    """int8 [n_channels, spectra, 2, 2]: the parts of the voltages of a heap."""
    most = 7 if play.bits == 4 else 40
    rng = np.random.default_rng([play.seed, sender, label, variant])
    return rng.integers(-most, most + 1, (play.n_channels, play.spectra, 2, 2), dtype=np.int8)


def products(play: Play, heap: int) -> np.ndarray:
    """int64 [n_channels, n_baselines, 4, 2] of the dump whose first heap this is, in plain NumPy."""
    values: list[Any] = []
    for sender in range(play.n_antennas):
        heaps = [voltages(play, sender, heap + k).astype(np.float64) for k in range(play.accumulate)]
        together = np.concatenate(heaps, axis=1)
        values.append(together[..., 0] + 1j * together[..., 1])
    found = []
    for j in range(play.n_antennas):
        for i in range(j + 1):
            both = np.einsum("ctp,ctq->cqp", values[i], values[j].conj())  # aa, ba, ab, bb: the first one is i's
            found.append(both.reshape(play.n_channels, 4))
    all_ = np.stack(found, axis=1)
    return np.rint(np.stack([all_.real, all_.imag], axis=-1)).astype(np.int64)
