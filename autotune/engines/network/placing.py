"""The places of SPEAD heaps in chunks: the rules, and the C function that spead2 calls for each heap.

The host device's compiler compiles ``place.c`` once. spead2 takes the function's address in a PyCapsule.
"""

import ctypes
import time
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from ...devices.host.own_files import own_library
from . import items

SOURCE = Path(__file__).with_name("place.c")
OPTIONS = ("-std=c11", "-O2", "-fPIC", "-w", "-shared", "-x", "c")

# Reasons for which a heap is not placed, in the order of the checks. They are names of counters.
COUNTERS = (
    "stops",  # it ends a sender's stream; the last one is placed as well, where no other heap goes
    "no_data",  # it lacks a time or a sender, as descriptors do
    "foreign",  # its sender is not one of the n_senders
    "wrong_size",
    "wrong_channels",  # it says that its first channel is another one
    "off_grid",  # its time is not a multiple of a heap, or has another offset from it than the stream
    "jumped",  # its time is far from the newest one, and not believed yet
    "early",  # its time is before the beginning
    "repeated",  # a heap of this sender and time has come before
)

ACCEPTED = len(COUNTERS)  # the counter of heaps with a place: they are placed, incomplete or too old in the end
MOST_DESCRIPTOR = 1 << 12  # bytes
CLOCK = 6  # CLOCK_MONOTONIC_COARSE of Linux, which place.c reads

# ``struct sender`` of place.c: heaps in each counter, what the last of them said, and more about accepted ones.
SENDER = np.dtype(
    [
        ("n", np.int64, ACCEPTED + 1),
        ("said", np.int64, ACCEPTED + 1),
        *((name, np.int64) for name in ("last_ns", "number", "misnumbered", "saturated", "described")),
    ]
)

SIGNATURE = b"void (void *, size_t, void *)"  # spead2 expects this capsule name for a function with user data
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_set_context = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_SetContext", ctypes.pythonapi)
)


@dataclass(frozen=True)
class PlaceRules:
    """The rules that decide which heaps of a stream are taken, and where they go.

    Heap k of a sender has the time k x ``heap_samples``; with ``takes_offset`` all are later, by as much as the first.
    Chunk c has each sender's heaps from c x ``chunk_heaps``: uint8 [n_senders, chunk_heaps, heap_bytes] or, unless
    ``by_sender``, [chunk_heaps, n_senders, heap_bytes].

    A time that is more than ``ahead_chunks`` ahead of the newest heap, or whose chunk is ``kept_chunks`` behind the
    newest one, is far. Heaps with far times are not placed until two conditions hold: in ``confirm`` of them in a row
    each time is at most ``ahead_chunks`` from the one before, and no heap with a near time has come for ``quiet_ns``.
    Then the stream continues there if that is at most ``most_jump`` ahead; otherwise it has jumped, and no heap from
    there is placed. Before the first heap all times are far, and only ``confirm`` counts.

    Raises:
        ValueError: when a count or a size is below 1.
    """

    sender_item: int  # id of the item with the heap's sender
    heap_bytes: int  # bytes of a heap's payload
    heap_samples: int  # samples from one heap of a sender to its next
    chunk_heaps: int  # heaps of each sender in a chunk
    n_senders: int  # senders are numbered from 0
    most_jump: int  # heaps of a sender: the longest gap within a stream
    by_sender: bool = True  # all heaps of a sender lie together in a chunk; otherwise all heaps of a time do
    sender_mask: int = items.TIME_MASK  # the bits of the item with the sender's number
    ahead_chunks: int = 2  # chunks: the longest gap after which heaps are taken at once
    built_chunks: int = 2  # chunks that a member has under construction: its heaps may come so much later than others
    kept_chunks: int = 8  # chunks whose heaps are remembered; the last stop heap goes so many ahead
    confirm: int = 8  # heaps
    quiet_ns: int = 100_000_000  # nanoseconds
    near: int = 0  # samples: of all times with the same 48 bits, the first heap gets the one nearest to this
    begin: int = 0  # samples: heaps of earlier times are not placed
    n_enders: int = 1  # senders that stop until the stream ends, or stop heaps unless ``is_numbered``; of all members
    first_channel: int = 0  # each heap that states its own has this one
    takes_offset: bool = False  # whether times need not be multiples of ``heap_samples``, if all are so much later
    is_numbered: bool = False  # sender s of S numbers its heaps s, s + S, s + 2 S and so on

    def __post_init__(self) -> None:
        counts = ("heap_bytes", "heap_samples", "chunk_heaps", "n_senders", "kept_chunks", "n_enders")
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, and must be at least 1")

    def windowed(self, chunk_heaps: int, reorder_heaps: int) -> "PlaceRules":
        """Returns the rules for chunks of this length, where heaps may come ``reorder_heaps`` later than others."""
        built = 1 + max(1, -(-reorder_heaps // chunk_heaps))
        return replace(self, chunk_heaps=chunk_heaps, built_chunks=built, ahead_chunks=built, kept_chunks=4 * built)

    @property
    def n_flags(self) -> int:
        """Returns the length of a chunk's ``present``: a flag for each heap, and one for the last stop heap."""
        return self.n_senders * self.chunk_heaps + 1

    @property
    def items(self) -> tuple[int, ...]:
        """Returns the ids of items for ``ChunkStreamConfig``, in this order."""
        own = (items.TIMESTAMP, items.HEAP_LENGTH, self.sender_item, items.STREAM_CONTROL)
        return (*own, items.HEAP_COUNTER, items.FREQUENCY, items.DIGITISER_STATUS)


class PlacingStruct(ctypes.Structure):
    """``struct placing`` of place.c: settings, and the state of the stream."""

    SETTINGS = (
        *("heap_bytes", "heap_samples", "chunk_heaps", "n_senders", "sender_mask", "sender_flags", "time_flags"),
        *("kept_chunks", "ahead_chunks", "most_jump", "confirm", "quiet_ns"),
        *("near", "begin", "n_enders", "first_channel", "is_numbered", "takes_offset"),
    )
    POINTERS = ("seen", "seen_of", "stopped", "n_stops", "known", "offset", "senders", "descriptors")
    STATE = ("newest", "known_ns", "far", "n_far", "far_rest", "far_sender", "n_described", "jumped_to", "clock_ns")
    _fields_ = [
        *((name, ctypes.c_int64) for name in SETTINGS),
        *((name, ctypes.c_void_p) for name in POINTERS),
        *((name, ctypes.c_int64) for name in STATE),
    ]


class Placing:
    """The rules and the state of one member stream. Members cannot share one.

    ``senders``: SENDER [n_senders + 1], which the stream's thread writes; the last one has heaps whose sender is not
    known. ``clock_ns``: a time in nanoseconds that tests use instead of the clock; -1 takes the clock. ``beside``:
    another member of the group, whose offset this one shares; with ``is_live`` also the newest time, and its account of
    stop heaps: the last one pushes chunks out, and must not do so while other members still receive.

    Raises:
        UsageError: when there is no compiler, or it cannot compile place.c.
    """

    def __init__(
        self, rules: PlaceRules, *, clock_ns: int = -1, beside: "Placing | None" = None, is_live: bool = True
    ) -> None:
        self.rules, n = rules, rules.n_senders
        self.seen = np.zeros((rules.kept_chunks, rules.chunk_heaps * n), np.uint8)
        self.seen_of = np.full(rules.kept_chunks, -1, np.int64)
        self.senders, self._descriptors = np.zeros(n + 1, SENDER), np.zeros((n, MOST_DESCRIPTOR), np.uint8)
        self._offset: np.ndarray = np.array([-rules.takes_offset], np.int64) if beside is None else beside._offset
        self._stopped, self._n_stops, self._known = np.zeros(n, np.int64), np.zeros(1, np.int64), np.array([-1, 0])
        if beside is not None and is_live:
            self._stopped, self._n_stops, self._known = beside._stopped, beside._n_stops, beside._known
        settings = asdict(rules) | {
            "sender_flags": rules.chunk_heaps if rules.by_sender else 1,
            "time_flags": 1 if rules.by_sender else n,
        }
        self.struct = PlacingStruct(
            **{name: settings[name] for name in PlacingStruct.SETTINGS},
            seen=self.seen.ctypes.data,
            seen_of=self.seen_of.ctypes.data,
            stopped=self._stopped.ctypes.data,
            n_stops=self._n_stops.ctypes.data,
            known=self._known.ctypes.data,
            offset=self._offset.ctypes.data,
            senders=self.senders.ctypes.data,
            descriptors=self._descriptors.ctypes.data,
            newest=-1,
            far_sender=-1,
            jumped_to=-1,
            clock_ns=clock_ns,
        )
        self._library, self._signature = place_library(), ctypes.create_string_buffer(SIGNATURE)

    @property
    def newest_time(self) -> int | None:
        """Returns the time of the newest heap in samples; None before the first one."""
        newest = int(self.struct.newest)
        return None if newest < 0 else newest * self.rules.heap_samples + self.offset

    @property
    def offset(self) -> int:
        """Returns the samples from a multiple of a heap's to each heap's time; 0 before the first one."""
        return max(0, int(self._offset[0]))

    @property
    def newest_chunk(self) -> int:
        """Returns the chunk of the newest heap; -1 before the first one."""
        return int(self.struct.newest) // self.rules.chunk_heaps

    @property
    def quiet_s(self) -> float:
        """Returns the seconds since the last heap of a known sender."""
        return (time.clock_gettime_ns(CLOCK) - int(self.senders["last_ns"].max())) * 1e-9

    @property
    def jumped_to(self) -> int | None:
        """Returns the time in samples to which the stream has jumped; None if it has not."""
        jumped_to = int(self.struct.jumped_to)
        return None if jumped_to < 0 else jumped_to

    @property
    def step(self) -> tuple[int, float]:
        """Returns how much later the last heap of a far time is than that of a near time, in samples and in seconds."""
        state = self.struct
        samples = int(state.far - state.newest) * self.rules.heap_samples + int(state.far_rest) - self.offset
        return samples, (int(self.senders["last_ns"][state.far_sender]) - int(state.known_ns)) * 1e-9

    @property
    def unbelieved(self) -> tuple[int, int] | None:
        """Returns (sender, time in samples) of the last heap with a far time; None if it was believed or none came."""
        state = self.struct
        time = int(state.far) * self.rules.heap_samples + int(state.far_rest)
        return None if state.far_sender < 0 else (int(state.far_sender), time)

    @property
    def n_stops(self) -> int:
        """Returns the number of the group's senders that have stopped, or of its stop heaps; see ``n_enders``."""
        return int(self._n_stops[0])

    @property
    def descriptors(self) -> dict[int, bytes]:
        """Returns the first packet of each sender's descriptors. They are in turn unless ``is_numbered``."""
        sizes = self.senders["described"][:-1].tolist()
        return {who: self._descriptors[who, :size].tobytes() for who, size in enumerate(sizes) if size}

    def callback(self) -> tuple[object, ...]:
        """Returns the argument ``place`` of ``ChunkStreamConfig``, which keeps this object alive.

        When a heap begins to come, its byte in the chunk's ``extra`` becomes 1; when it is whole, the same byte in
        ``present`` does. ``max_heap_extra`` must be 1 or more.
        """
        address = ctypes.cast(self._library.place_heap, ctypes.c_void_p)
        capsule = _new_capsule(address, self._signature, None)
        _set_context(capsule, ctypes.addressof(self.struct))
        return capsule, self  # spead2 holds the whole tuple as long as the stream exists


@lru_cache(maxsize=1)
def place_library() -> ctypes.CDLL:
    """Returns the library with ``place_heap``, compiled or found in the cache.

    Raises:
        UsageError: when there is no compiler, or it cannot compile place.c.
    """
    text = SOURCE.read_text()
    return ctypes.CDLL(str(own_library("place", OPTIONS, text, text)))
