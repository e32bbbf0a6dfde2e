"""Where heaps go, in Python: the rules as they are written, with nothing of how place.c keeps them.

``run`` gives heaps to a place function in C, and ``compare`` holds what it says against the model.
"""

import ctypes
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from autotune.engines.network.placing import ACCEPTED, COUNTERS, MOST_DESCRIPTOR, PlaceRules, Placing

WRAP = 1 << 48
INTERFACE = 1 << 40  # heaps of an F-engine's interface i have numbers from i times this on


class Heap(NamedTuple):
    """The items of a heap's first packet, -1 where it has none, and what the clock says."""

    time: int
    length: int
    sender: int
    control: int
    clock_ns: int
    turn: int = -1  # the heap's number on the wire
    channel: int = -1
    status: int = -1
    packet_size: int = 8


class Outcome(NamedTuple):
    """What becomes of a heap: the name of its counter or "placed", and where it goes (chunk -1: nowhere)."""

    name: str
    chunk: int = -1
    index: int = 0
    offset: int = 0


@dataclass
class Model:
    """The rules of ``PlaceRules`` for one stream."""

    rules: PlaceRules
    newest: int | None = None  # number of the newest heap
    jumped_to: int | None = None
    stopped: dict[int, int] = field(default_factory=dict)  # a sender's newest heap when it stopped, or -1
    accepted: dict[int, list[Heap]] = field(default_factory=dict)  # each sender's
    misnumbered: set[int] = field(default_factory=set)  # senders that have sent a heap with another one's number
    said: Counter[tuple[int, str]] = field(default_factory=Counter)  # heaps by sender (n_senders: unknown) and counter
    last_ns: dict[int, int] = field(default_factory=dict)
    described: dict[int, int] = field(default_factory=dict)  # the bytes of the first descriptors of each sender
    known_ns: int = 0
    unbelieved: tuple[int, int] | None = None  # sender and time of the last heap of a far time, if it was not believed
    far: list[tuple[int, int]] = field(default_factory=list)  # (number, rest) of heaps that agree on a far time
    offset: int | None = None  # samples from multiples of a heap's to all times; None: not known yet
    came: set[tuple[int, int]] = field(default_factory=set)  # (heap, sender)

    @property
    def n_stops(self) -> int:
        return len(self.stopped) if self.rules.is_numbered else self.said[self.rules.n_senders, "stops"]

    def place(self, heap: Heap) -> Outcome:
        """Returns what becomes of a heap, and accounts for it."""
        outcome = self.outcome(heap)
        sender = heap.sender & self.rules.sender_mask
        is_known = outcome.name not in ("stops", "no_data", "foreign")
        if outcome.name != "stops":
            self.said[sender if is_known else self.rules.n_senders, outcome.name] += 1
        if is_known:
            self.last_ns[sender] = heap.clock_ns
        if outcome.name == "placed":
            self.accepted.setdefault(sender, []).append(heap)
            if self.rules.is_numbered and heap.turn != -1 and self.numbered(heap.turn) != sender:
                self.misnumbered.add(sender)
        return outcome

    def outcome(self, heap: Heap) -> Outcome:
        rules = self.rules
        if heap.control == 2:
            return self.stop(heap.turn)
        if heap.time == -1 or heap.sender == -1:
            self.describe(heap)
            return Outcome("no_data")
        sender = heap.sender & rules.sender_mask
        if sender not in range(rules.n_senders):
            return Outcome("foreign")
        if heap.length != rules.heap_bytes:
            return Outcome("wrong_size")
        if heap.channel not in (-1, rules.first_channel):
            return Outcome("wrong_channels")
        time = self.unwrap(heap.time)
        number, rest = divmod(time, rules.heap_samples)
        if rest and not rules.takes_offset:
            return Outcome("off_grid")
        is_other = self.offset is not None and rest != self.offset
        if is_other or self.is_far(number):
            self.unbelieved = sender, time
            if not self.follows(number, rest, heap.clock_ns):
                return Outcome("off_grid" if is_other else "jumped")
            self.unbelieved = None
        self.offset = rest
        self.far, self.known_ns = [], heap.clock_ns
        self.newest = number if self.newest is None else max(self.newest, number)
        if time < rules.begin:
            return Outcome("early")
        self.goes_on(sender, number)
        if (number, sender) in self.came:
            return Outcome("repeated")
        self.came.add((number, sender))
        chunk, k = divmod(number, rules.chunk_heaps)
        index = sender * rules.chunk_heaps + k if rules.by_sender else k * rules.n_senders + sender
        return Outcome("placed", chunk, index, index * rules.heap_bytes)

    def stop(self, wire_number: int) -> Outcome:
        rules = self.rules
        self.said[rules.n_senders, "stops"] += 1
        if rules.is_numbered:
            self.stopped[self.who_stops(wire_number)] = -1 if self.newest is None else self.newest
        if self.n_stops < rules.n_enders or self.newest is None:
            return Outcome("stops")
        return Outcome("stops", self.newest // rules.chunk_heaps + rules.kept_chunks, rules.n_flags - 1, 0)

    def who_stops(self, wire_number: int) -> int:
        """Returns the sender that a stop heap's number tells, or else the newest heap before it."""
        senders = range(self.rules.n_senders)
        if wire_number >= 0 and self.numbered(wire_number) not in self.misnumbered:
            return self.numbered(wire_number)
        last = {who: self.accepted[who][-1].turn if who in self.accepted else 0 for who in senders}
        going = [who for who in senders if who not in self.stopped]
        return max(going, key=lambda who: last[who] if last[who] < wire_number else -1, default=0)

    def numbered(self, wire_number: int) -> int:
        """Returns the sender of a heap with this number, which counts the heaps of one of its interfaces."""
        return wire_number % INTERFACE % self.rules.n_senders

    def goes_on(self, who: int, number: int) -> None:
        """Forgets that a sender has stopped, once it sends heaps a chunk later, unless all have stopped."""
        if self.n_stops < self.rules.n_enders and number >= self.stopped.get(who, number) + self.rules.chunk_heaps:
            del self.stopped[who]

    def describe(self, heap: Heap) -> None:
        who = self.numbered(heap.turn) if self.rules.is_numbered and heap.turn >= 0 else len(self.described)
        if self.rules.is_numbered and heap.turn < 0:
            return
        if who < self.rules.n_senders and heap.packet_size <= MOST_DESCRIPTOR:
            self.described.setdefault(who, heap.packet_size)

    def check(self, placing: Placing) -> None:
        """Raises AssertionError when the accounts of the senders are others."""
        rows, n = placing.senders, self.rules.n_senders
        for who in range(n + 1):
            names = (*COUNTERS, "placed")
            assert rows["n"][who].tolist() == [self.said[who, name] for name in names]
            assert rows["last_ns"][who] == self.last_ns.get(who, 0)
        for who, heaps in self.accepted.items():
            numbers = [heap.turn for heap in heaps if heap.turn != -1] if self.rules.is_numbered else []
            assert rows["misnumbered"][who] == sum(self.numbered(number) != who for number in numbers)
            assert rows["saturated"][who] == sum(heap.status >> 32 for heap in heaps if heap.status != -1)
        assert {who: len(packet) for who, packet in placing.descriptors.items()} == self.described
        assert all(packet == PACKET[: len(packet)] for packet in placing.descriptors.values())

    def unwrap(self, time: int) -> int:
        """Returns the nearest time that is ``time`` modulo 2**48 and not negative; of two the earlier one."""
        about = self.rules.near if self.newest is None else self.newest * self.rules.heap_samples
        turns = about // WRAP
        options = [t * WRAP + time % WRAP for t in (turns - 1, turns, turns + 1)]
        return min((option for option in options if option >= 0), key=lambda option: abs(option - about))

    def is_far(self, number: int) -> bool:
        rules = self.rules
        if self.newest is None:
            return True
        chunks_behind = self.newest // rules.chunk_heaps - number // rules.chunk_heaps
        return number > self.newest + rules.ahead_chunks * rules.chunk_heaps or chunks_behind >= rules.kept_chunks

    def follows(self, number: int, rest: int, clock_ns: int) -> bool:
        """Returns whether the stream begins with this heap, or goes on there after a gap; notes a jump."""
        rules = self.rules
        most_apart = rules.ahead_chunks * rules.chunk_heaps
        if self.far and (abs(number - self.far[-1][0]) > most_apart or rest != self.far[-1][1]):
            self.far = []
        self.far.append((number, rest))
        if len(self.far) < rules.confirm:
            return False
        if self.newest is None:
            return True
        if clock_ns - self.known_ns < rules.quiet_ns:
            return False
        if rest == self.offset and self.newest < number <= self.newest + rules.most_jump:
            return True
        self.jumped_to = number * rules.heap_samples + rest
        return False


PACKET = bytes(range(256)) * (MOST_DESCRIPTOR // 256 + 1)


class PlaceData(ctypes.Structure):
    """``chunk_place_data`` of spead2."""

    _fields_ = [
        ("packet", ctypes.c_void_p),
        ("packet_size", ctypes.c_size_t),
        ("items", ctypes.c_void_p),
        ("chunk_id", ctypes.c_int64),
        ("heap_index", ctypes.c_size_t),
        ("heap_offset", ctypes.c_size_t),
        ("batch_stats", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("extra_offset", ctypes.c_size_t),
        ("extra_size", ctypes.c_size_t),
    ]


def run(placing: Placing, heaps: Sequence[Heap], function: Any) -> Iterator[Outcome]:
    """Yields what ``function``, a place function of a library, says of each heap.

    Raises:
        AssertionError: when a heap is in no counter and nowhere, or in two.
    """
    items, begun = (ctypes.c_int64 * 7)(), (ctypes.c_uint8 * 1)()
    packet = ctypes.create_string_buffer(PACKET, len(PACKET))
    given_data = {"items": items, "extra": begun, "packet": packet}
    data = PlaceData(**{name: ctypes.addressof(each) for name, each in given_data.items()})
    struct = placing.struct
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p), None
    given = ctypes.addressof(data), ctypes.sizeof(data), ctypes.addressof(struct)
    before = placing.senders["n"].sum(axis=0)
    for heap in heaps:
        *items[:4], struct.clock_ns = heap[:5]
        *items[4:], data.packet_size = heap[5:]
        data.chunk_id, data.heap_index, data.heap_offset = -1, 0, 0
        data.extra_offset, data.extra_size, begun[0] = 0, 0, 0
        function(*given)
        after = placing.senders["n"].sum(axis=0)
        (which,) = np.flatnonzero(after - before)
        assert after[which] == before[which] + 1, f"{heap} is in one counter"
        if which == ACCEPTED:
            assert data.chunk_id >= 0, f"{heap} is nowhere"
            assert (data.extra_offset, data.extra_size, begun[0]) == (data.heap_index, 1, 1), "it has begun"
            name = "placed"
        else:
            assert data.extra_size == 0
            name = COUNTERS[which]
        before = after
        yield Outcome(name, data.chunk_id, data.heap_index, data.heap_offset)


def compare(rules: PlaceRules, heaps: Sequence[Heap], function: Any) -> Model:
    """Returns the model after all ``heaps``.

    Raises:
        AssertionError: when the place function says something else of one of them.
    """
    placing, model = Placing(rules, clock_ns=0), Model(rules)
    for i, (heap, found) in enumerate(zip(heaps, run(placing, heaps, function), strict=True)):
        expected = model.place(heap)
        assert found == expected, f"heap {i} of {len(heaps)}, {heap}: {found}, but {expected}; {rules}"
        state = (placing.jumped_to, placing.unbelieved), (model.jumped_to, model.unbelieved)
        assert state[0] == state[1], f"heap {i} of {len(heaps)}, {heap}; {rules}"
    newest = None if model.newest is None else model.newest * rules.heap_samples + (model.offset or 0)
    assert placing.offset == (model.offset or 0)
    assert (placing.newest_time, placing.n_stops) == (newest, model.n_stops)
    model.check(placing)
    return model
