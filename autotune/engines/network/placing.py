"""Where SPEAD heaps go in chunks: the rules, and the C function that spead2 calls for each heap by them.

``place.c`` is compiled once by the host device's compiler. spead2 takes its address in a capsule of Python's.
"""

import ctypes
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from ...devices.host.own_files import own_library
from . import items

SOURCE = Path(__file__).with_name("place.c")
OPTIONS = ("-std=c11", "-O2", "-fPIC", "-w", "-shared", "-x", "c")

# What becomes of a heap that is not placed, in the order in which it is decided; names of counters.
COUNTERS = (
    "stops",  # it ends the stream of a sender; the last one is placed besides, and not in a place of any heap
    "no_data",  # it lacks a time or a sender: descriptors do
    "wrong_size",
    "foreign",  # the sender is not one of those that are received
    "off_grid",  # its time is not a multiple of a heap
    "jumped",  # its time is far from the newest one, and is not believed
    "early",  # its time is before the beginning
    "repeated",  # such a heap has come before
)

SIGNATURE = b"void (void *, size_t, void *)"  # the name of a capsule by which spead2 knows a function with user data
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_set_context = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_SetContext", ctypes.pythonapi)
)


@dataclass(frozen=True)
class PlaceRules:
    """Which heaps of a stream are taken, and where they go.

    Heap k of a sender is of time k x ``heap_samples``. Chunk c has heaps c x ``chunk_heaps`` and on of each sender; its
    data are uint8 [n_senders, chunk_heaps, heap_bytes] or, unless ``by_sender``, [chunk_heaps, n_senders, heap_bytes].

    A time that is more than ``ahead_chunks`` ahead of the newest heap, or whose chunk is ``kept_chunks`` behind the
    newest one, is far. Heaps of far times are not placed until ``confirm`` of them in a row are of times that are at
    most ``ahead_chunks`` apart, each from the one before, and no heap of a time that is not far has come for
    ``quiet_ns``. Then the stream goes on there if that is at most ``most_jump`` ahead; otherwise it has jumped, and no
    heap from there is placed. Before the first heap all times are far, and ``confirm`` alone decides.

    Raises:
        ValueError: when a number is too small.
    """

    sender_item: int  # id of the item that says who sent a heap
    heap_bytes: int  # payload of a heap
    heap_samples: int  # samples from one heap of a sender to its next
    chunk_heaps: int  # heaps of each sender in a chunk
    n_senders: int  # senders are numbered from 0
    most_jump: int  # heaps of a sender: the longest gap in a stream
    by_sender: bool = True  # all heaps of a sender lie together in a chunk; otherwise all heaps of a time do
    sender_mask: int = items.TIME_MASK  # the bits of the item that are the sender's number
    ahead_chunks: int = 2  # chunks: the longest gap after which heaps are taken at once
    kept_chunks: int = 8  # chunks of which it is known which heaps have come; the last stop heap goes so many ahead
    confirm: int = 8  # heaps
    quiet_ns: int = 100_000_000  # nanoseconds
    near: int = 0  # samples: of times that agree in 48 bits, the first heap's is the one nearest to this
    begin: int = 0  # samples: heaps of earlier times are not placed
    n_enders: int = 1  # stop heaps that end the stream, of all members of its group together

    def __post_init__(self) -> None:
        counts = ("heap_bytes", "heap_samples", "chunk_heaps", "n_senders", "kept_chunks", "n_enders")
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, and must be at least 1")

    @property
    def n_flags(self) -> int:
        """Returns the length of a chunk's ``present``: a flag for each heap, and one for the last stop heap."""
        return self.n_senders * self.chunk_heaps + 1

    @property
    def items(self) -> tuple[int, ...]:
        """Returns the ids of items that ``ChunkStreamConfig`` is to be asked for, in this order."""
        return items.TIMESTAMP, items.HEAP_LENGTH, self.sender_item, items.STREAM_CONTROL


class PlacingStruct(ctypes.Structure):
    """``struct placing`` of place.c: settings, and what is known of the stream so far."""

    SETTINGS = (
        *("heap_bytes", "heap_samples", "chunk_heaps", "n_senders", "sender_mask", "sender_flags", "time_flags"),
        *("kept_chunks", "ahead_chunks", "most_jump", "confirm", "quiet_ns"),
        *("near", "begin", "n_enders", "first_counter"),
    )
    STATE = ("newest", "known_ns", "far", "n_far", "far_sender", "jumped_to", "clock_ns")
    _fields_ = [
        *((name, ctypes.c_int64) for name in SETTINGS),
        *((name, ctypes.c_void_p) for name in ("seen", "seen_of", "n_stops")),
        *((name, ctypes.c_int64) for name in STATE),
    ]


class Placing:
    """The rules at work in one member stream, which must have one of its own.

    ``first_counter``: where the stream's statistics have the first of COUNTERS; the others follow it. ``clock_ns``:
    what stands for the clock in nanoseconds, which tests may set; -1: the clock. ``beside``: another member of the same
    group, since stop heaps of all members count together: the last one would push out what others still receive.

    Raises:
        UsageError: when there is no compiler, or it cannot compile place.c.
    """

    def __init__(
        self, rules: PlaceRules, first_counter: int, clock_ns: int = -1, beside: "Placing | None" = None
    ) -> None:
        self.rules = rules
        self._seen = (ctypes.c_uint8 * (rules.kept_chunks * rules.chunk_heaps * rules.n_senders))()
        self._seen_of = (ctypes.c_int64 * rules.kept_chunks)(*[-1] * rules.kept_chunks)
        self._n_stops: ctypes.c_int64 = ctypes.c_int64(0) if beside is None else beside._n_stops
        settings = asdict(rules) | {
            "sender_flags": rules.chunk_heaps if rules.by_sender else 1,
            "time_flags": 1 if rules.by_sender else rules.n_senders,
            "first_counter": first_counter,
        }
        self.struct = PlacingStruct(
            **{name: settings[name] for name in PlacingStruct.SETTINGS},
            seen=ctypes.addressof(self._seen),
            seen_of=ctypes.addressof(self._seen_of),
            n_stops=ctypes.addressof(self._n_stops),
            newest=-1,
            far_sender=-1,
            jumped_to=-1,
            clock_ns=clock_ns,
        )
        self._library, self._signature = place_library(), ctypes.create_string_buffer(SIGNATURE)

    @property
    def newest_time(self) -> int | None:
        """Returns the time of the newest heap in samples; None: there was none yet."""
        newest = int(self.struct.newest)
        return None if newest < 0 else newest * self.rules.heap_samples

    @property
    def jumped_to(self) -> int | None:
        """Returns the time in samples that the stream has jumped to; None: it has not."""
        time = int(self.struct.jumped_to)
        return None if time < 0 else time

    @property
    def unbelieved(self) -> tuple[int, int] | None:
        """Returns sender and time in samples of the last heap of a far time; None: it was believed, or none came."""
        sender = int(self.struct.far_sender)
        return None if sender < 0 else (sender, int(self.struct.far) * self.rules.heap_samples)

    @property
    def n_stops(self) -> int:
        """Returns how many stop heaps have come, to all members of the group."""
        return int(self._n_stops.value)

    def callback(self) -> tuple[object, ...]:
        """Returns what ``ChunkStreamConfig`` takes as ``place``; it keeps this object.

        Of each heap that begins to come a chunk's ``extra`` gets a byte, 1, where its ``present`` gets one when the
        heap is whole: ``max_heap_extra`` must be 1 or more.
        """
        address = ctypes.cast(self._library.place_heap, ctypes.c_void_p)
        capsule = _new_capsule(address, self._signature, None)
        _set_context(capsule, ctypes.addressof(self.struct))
        return capsule, self  # spead2 holds the whole tuple while the stream is there


@lru_cache(maxsize=1)
def place_library() -> ctypes.CDLL:
    """Returns the library with ``place_heap``, compiled or found in the cache.

    Raises:
        UsageError: when there is no compiler, or it cannot compile place.c.
    """
    text = SOURCE.read_text()
    return ctypes.CDLL(str(own_library("place", OPTIONS, text, text)))
