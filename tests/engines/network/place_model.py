"""Where heaps go, in Python: the rules as they are written, with nothing of how place.c keeps them.

``run`` gives heaps to a place function in C, and ``compare`` holds what it says against the model.
"""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from autotune.engines.network.placing import COUNTERS, PlaceRules, Placing

WRAP = 1 << 48
BEFORE = 3  # counters of somebody else, in front of those of the placing


class Heap(NamedTuple):
    """The items of a heap's first packet, -1 where it has none, and what the clock says."""

    time: int
    length: int
    sender: int
    control: int
    clock_ns: int


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
    n_stops: int = 0
    known_ns: int = 0
    unbelieved: tuple[int, int] | None = None  # sender and time of the last heap of a far time, if it was not believed
    far: list[int] = field(default_factory=list)  # numbers of heaps in a row that agree on a far time
    came: set[tuple[int, int]] = field(default_factory=set)  # (heap, sender)

    def place(self, heap: Heap) -> Outcome:
        rules = self.rules
        if heap.control == 2:
            return self.stop()
        if heap.time == -1 or heap.sender == -1:
            return Outcome("no_data")
        if heap.length != rules.heap_bytes:
            return Outcome("wrong_size")
        sender = heap.sender & rules.sender_mask
        if sender not in range(rules.n_senders):
            return Outcome("foreign")
        time = self.unwrap(heap.time)
        number, rest = divmod(time, rules.heap_samples)
        if rest:
            return Outcome("off_grid")
        if self.is_far(number):
            self.unbelieved = sender, time
            if not self.follows(number, heap.clock_ns):
                return Outcome("jumped")
            self.unbelieved = None
        self.far, self.known_ns = [], heap.clock_ns
        self.newest = number if self.newest is None else max(self.newest, number)
        if time < rules.begin:
            return Outcome("early")
        if (number, sender) in self.came:
            return Outcome("repeated")
        self.came.add((number, sender))
        chunk, k = divmod(number, rules.chunk_heaps)
        index = sender * rules.chunk_heaps + k if rules.by_sender else k * rules.n_senders + sender
        return Outcome("placed", chunk, index, index * rules.heap_bytes)

    def stop(self) -> Outcome:
        rules = self.rules
        self.n_stops += 1
        if self.n_stops < rules.n_enders or self.newest is None:
            return Outcome("stops")
        return Outcome("stops", self.newest // rules.chunk_heaps + rules.kept_chunks, rules.n_flags - 1, 0)

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

    def follows(self, number: int, clock_ns: int) -> bool:
        """Returns whether the stream begins with this heap, or goes on there after a gap; notes a jump."""
        rules = self.rules
        if self.far and abs(number - self.far[-1]) > rules.ahead_chunks * rules.chunk_heaps:
            self.far = []
        self.far.append(number)
        if len(self.far) < rules.confirm:
            return False
        if self.newest is None:
            return True
        if clock_ns - self.known_ns < rules.quiet_ns:
            return False
        if self.newest < number <= self.newest + rules.most_jump:
            return True
        self.jumped_to = number * rules.heap_samples
        return False


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
    items, counts = (ctypes.c_int64 * 4)(), (ctypes.c_uint64 * (BEFORE + len(COUNTERS) + 1))()
    begun = (ctypes.c_uint8 * 1)()
    given_data = {"items": items, "batch_stats": counts, "extra": begun}
    data = PlaceData(**{name: ctypes.addressof(each) for name, each in given_data.items()})
    struct = placing.struct
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p), None
    given = ctypes.addressof(data), ctypes.sizeof(data), ctypes.addressof(struct)
    before = list(counts)
    for heap in heaps:
        *items[:], struct.clock_ns = heap
        data.chunk_id, data.heap_index, data.heap_offset = -1, 0, 0
        data.extra_offset, data.extra_size, begun[0] = 0, 0, 0
        function(*given)
        after = list(counts)
        if after == before:
            assert data.chunk_id >= 0, f"{heap} is nowhere"
            assert (data.extra_offset, data.extra_size, begun[0]) == (data.heap_index, 1, 1), "it has begun"
            name = "placed"
        else:
            (i,) = [i for i, (now, then) in enumerate(zip(after, before, strict=True)) if now != then]
            assert after[i] == before[i] + 1 and 0 <= i - BEFORE < len(COUNTERS)
            assert data.extra_size == 0
            name, before = COUNTERS[i - BEFORE], after
        yield Outcome(name, data.chunk_id, data.heap_index, data.heap_offset)


def compare(rules: PlaceRules, heaps: Sequence[Heap], function: Any) -> Model:
    """Returns the model after all ``heaps``.

    Raises:
        AssertionError: when the place function says something else of one of them.
    """
    placing, model = Placing(rules, BEFORE, clock_ns=0), Model(rules)
    for i, (heap, found) in enumerate(zip(heaps, run(placing, heaps, function), strict=True)):
        expected = model.place(heap)
        assert found == expected, f"heap {i} of {len(heaps)}, {heap}: {found}, but {expected}; {rules}"
        state = (placing.jumped_to, placing.unbelieved), (model.jumped_to, model.unbelieved)
        assert state[0] == state[1], f"heap {i} of {len(heaps)}, {heap}; {rules}"
    newest = None if model.newest is None else model.newest * rules.heap_samples
    assert (placing.newest_time, placing.n_stops) == (newest, model.n_stops)
    return model
