"""The script of a play: what each sender sends, in order, and what must become of it by the pages of the engines."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .drawn import ALL, CONFIRM, EACH, TCP, Play, Trouble

PLACED, REPEATED, JUMPED, LATE, ANEW = "placed", "repeated", "jumped", "too_old+jumped", "anew"
UNSURE = "placed+too_old+jumped"  # it depends on which member stream begins first
WRONG_SIZE, WRONG_CHANNELS, OFF_GRID, FOREIGN = "wrong_size", "wrong_channels", "off_grid", "foreign"
STOP, DESCRIPTOR = "stops", "no_data"  # fates that are counted of no sender
GAPS_OF_ALL = ("gap of all", "all silent")


@dataclass(frozen=True)
class Wire:
    """A heap on the wire. ``label``: the number of its voltages; ``time``, ``off``: what it says, in heaps and samples.

    ``fate``: the counter that it must raise; ``variant``: other voltages of the same label; ``is_first``: whether its
    sender comes back after a long gap; ``is_last``: whether
    its sender has no socket any more after it.
    """

    turn: int
    sender: int
    label: int
    fate: str
    time: int = 0
    off: int = 0
    variant: int = 0
    is_first: bool = False
    is_last: bool = False


def script(play: Play) -> list[Wire]:
    """Returns all heaps in the order in which they are sent; by TCP the order counts for each sender alone."""
    found = [Wire(-1, sender, play.first, DESCRIPTOR) for sender in range(play.n_antennas)]
    troubles = {trouble.sender: trouble for trouble in play.troubles}
    of_all = troubles.get(ALL)
    last = play.n_turns + max([0, *(each.n for each in play.troubles if each.kind == "late")])
    for turn in range(last):
        for sender in range(play.n_antennas):
            if of_all is not None:
                found += _of_all(play, of_all, sender, turn)
            else:
                found += _of_one(play, troubles.get(sender), sender, turn)
    found = _believed(play, found)
    if play.all_stop:
        end = {sender: max(wire.time for wire in found if wire.sender == sender) for sender in range(play.n_antennas)}
        found += [Wire(last, sender, 0, STOP, end[sender] + 1) for sender in range(play.n_antennas)]
    return found


def _of_one(play: Play, trouble: Trouble | None, sender: int, turn: int) -> Iterator[Wire]:
    label, kind = play.first + turn, trouble and trouble.kind
    if trouble is None or (turn < trouble.first and kind not in ("late", "too late")):
        if turn < play.n_turns:
            is_killed = kind == "killed" and turn + 1 == trouble.first
            yield Wire(turn, sender, label, PLACED, label, is_last=is_killed)
        return
    n, is_on = trouble.n, trouble.first <= turn < trouble.end
    if kind in ("late", "too late"):
        ends = play.n_turns + n if kind == "late" else play.n_turns
        if turn >= trouble.first + n and turn < ends:  # not in front of the first chunk
            yield Wire(turn, sender, label - n, PLACED if kind == "late" else LATE, label - n)
        return
    if turn >= play.n_turns:
        return
    if kind == "clock off by heaps":
        yield Wire(turn, sender, label + n, PLACED, label + n)
    elif kind == "clock back by heaps":
        yield Wire(turn, sender, label - n, REPEATED if turn < trouble.first + n else PLACED, label - n)
    elif kind == "two senders":
        yield Wire(turn, sender, label, PLACED, label)
        if trouble.first + n <= turn < trouble.end:
            yield Wire(turn, sender, label - n, REPEATED, label - n, variant=1)
    elif not is_on:
        yield Wire(turn, sender, label, PLACED, label)
    elif kind == "doubled":
        yield Wire(turn, sender, label, PLACED, label)
        yield Wire(turn, sender, label, REPEATED, label)
    elif kind == "swapped":
        pair, place = divmod(turn - trouble.first, 2)
        is_whole = trouble.first + 2 * pair + 1 < trouble.end
        label += (1 - 2 * place) * is_whole
        yield Wire(turn, sender, label, PLACED, label)
    elif kind in ("wrong size", "wrong channels"):
        yield Wire(turn, sender, label, WRONG_SIZE if kind == "wrong size" else WRONG_CHANNELS, label)
    elif kind == "far clock":
        yield Wire(turn, sender, label, JUMPED, label + n)
    elif kind == "clock off by samples":
        yield Wire(turn, sender, label, OFF_GRID, label, off=n)
    elif kind == "wrong descriptors":
        yield Wire(turn, sender, label, PLACED, label)


def _of_all(play: Play, trouble: Trouble, sender: int, turn: int) -> Iterator[Wire]:
    label, kind, n = play.first + turn, trouble.kind, trouble.n
    is_on, is_back = trouble.first <= turn < trouble.end, turn == trouble.end
    if turn >= play.n_turns:
        return
    if kind == "stranger":
        yield Wire(turn, sender, label, PLACED, label)
        if is_on and sender == 0:
            yield Wire(turn, play.n_antennas, label, FOREIGN, label)
    elif kind == "graceful restarts":
        each = n + 3 * play.batches_per_chunk  # turns from one antenna's restart to the next one's
        first = trouble.first + sender * each
        if turn == first:
            yield Wire(turn, sender, 0, STOP, label, is_last=True)
        if not first <= turn < first + n:
            yield Wire(turn, sender, label, PLACED, label)
    elif kind in ("synchronised anew", "gap of all", "all silent"):
        if turn < trouble.first:
            yield Wire(turn, sender, label, PLACED, label)
        elif not is_on:
            label += 0 if kind == "all silent" else n
            yield Wire(turn, sender, label, ANEW if kind == "synchronised anew" else PLACED, label, is_first=is_back)
    else:
        yield Wire(turn, sender, label, PLACED, label)


def _believed(play: Play, wires: list[Wire]) -> list[Wire]:
    """A live stream begins with the 8th good heap of an entry, and goes on with the 8th after a long gap of all."""
    if play.transport == TCP:
        return wires
    left: dict[int, int] = {}
    found = []
    for wire in wires:
        entry = wire.sender if play.transport == EACH else 0
        if wire.is_first and play.kinds in GAPS_OF_ALL and (wire.sender == 0 or play.transport == EACH):
            left[entry] = CONFIRM - 1
        if wire.fate in (PLACED, LATE) and left.setdefault(entry, CONFIRM - 1):
            left[entry] -= 1
            wire = replace(wire, fate=UNSURE if play.transport == EACH else JUMPED)
        found.append(wire)
    return found
