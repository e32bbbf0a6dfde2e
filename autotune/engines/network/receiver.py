"""Receives heaps of several senders into chunks of lent memory, by spead2's chunk streams.

A member stream, which has a thread, receives from one sender or group of senders. ``place.c`` decides where each heap
lands. Without memory spead2 blocks, and the kernel drops packets, so the caller must give memory back soon. A file of
packets, as written by tcpdump, can replace a network: it is read no faster than memory comes back.
"""

import select
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
import spead2
import spead2.recv

from ...core.errors import UsageError
from .endpoints import Endpoint
from .ibverbs import IBV, add_ibv_reader
from .kernel_sockets import udp_drops
from .placing import COUNTERS, PlaceRules, Placing
from .senders import Sender, SenderTally
from .tcp_door import TcpDoor

PCAP = "pcap"  # the transport of files of packets
AWAY_S = 10.0
LOOK_S = 0.1  # a waiting receiver checks so often whether it must end
SOCKET_BYTES = 4 << 20
MOST_PACKET_BYTES = 65536
FAR_BEHIND = 2  # chunks: others wait for a member that is so far behind
NEVER = 1 << 62  # a number of stop heaps that never come

OTHER_COUNTERS = ("heaps", "placed", "too_old", "incomplete", "packets", "kernel_drops", "blocked")

# The places from which each member stream receives. A path names a file of packets.
MemberPlaces = Sequence[Sequence[Endpoint] | Sequence[spead2.InprocQueue] | Sequence[Path]]


class JumpedError(UsageError):
    """A stream has jumped to a far time; ``time`` is that time in samples.

    A heap came ``seconds`` after one of the time before, and its own time is ``samples`` later.
    """

    def __init__(self, time: int, samples: int = 0, seconds: float = 0.0) -> None:
        super().__init__(f"the stream has jumped to sample {time}, where a new engine has to begin")
        self.time, self.samples, self.seconds = time, samples, seconds


@dataclass(frozen=True)
class Listening:
    """The settings of a receiver.

    ``members``: the places from which each member stream receives; ``transport``: udp, ibv, tcp, inproc or pcap;
    ``interface``: the address of the interface that receives multicast, and everything by ibv; ``cores``: the core of
    each member's thread; ``is_lossless``: whether a member waits for the others, which suits senders that can wait and
    transports that lose nothing, such as files; ``patience_s``: how long a lossless stream waits for a TCP sender that
    has gone, or is silent while others wait. None: AWAY_S for one that has gone, and without end for a silent one.
    """

    members: MemberPlaces
    transport: str = "udp"
    interface: str = ""
    cores: Sequence[int] = field(default=())
    is_lossless: bool = False
    patience_s: float | None = None

    @property
    def is_file(self) -> bool:
        """Returns whether packets come from files. The files' ends end the stream, and stop heaps in them do not."""
        return self.transport == PCAP

    @property
    def is_live(self) -> bool:
        """Returns whether a late receiver drops chunks; otherwise the senders wait."""
        return not self.is_lossless

    def n_built(self, rules: PlaceRules) -> int:
        """Returns the number of chunks that are under construction at once."""
        return rules.built_chunks + (len(self.members) > 1)

    def __str__(self) -> str:
        return f"{', '.join(str(each) for some in self.members for each in some)} by {self.transport}"


class Receiver:
    """Receives chunks until all senders or files have ended, ``stop`` is called, or the stream jumps.

    Args:
        arrays: memory for chunks, uint8 or int8; they are filled in any order.
        max_heaps: heaps of a sender under construction at once.
        n_substreams: senders of a member stream, which differ in their heaps' numbers.

    Raises:
        UsageError: when nothing can be received: a port is in use, or a file is not a file of packets.
    """

    def __init__(
        self,
        rules: PlaceRules,
        listening: Listening,
        arrays: Sequence[np.ndarray],
        *,
        max_heaps: int = 1,
        n_substreams: int = 1,
    ) -> None:
        n_members, is_lossless = len(listening.members), listening.is_lossless or listening.is_file
        mode = spead2.recv.ChunkStreamGroupConfig.EvictionMode
        config = spead2.recv.ChunkStreamGroupConfig(
            max_chunks=listening.n_built(rules),
            eviction_mode=mode.LOSSLESS if is_lossless else mode.LOSSY,
        )
        # A lossless member waits until all others have pushed a chunk out. A lossy one pushes it out for all.
        self._each_ends = is_lossless
        self._n_enders = max(1, rules.n_enders // n_members) if is_lossless else rules.n_enders  # the stops of a member
        if listening.is_file:
            self._n_enders, rules = NEVER, replace(rules, quiet_ns=0)  # a gap takes no time to read
        # The ends of TCP connections push all out, and until all have stopped each sender may start again.
        is_pushed_out = listening.is_file or (is_lossless and listening.transport == "tcp")
        rules = replace(rules, n_enders=NEVER if is_pushed_out else self._n_enders)
        self._rules, self._listening, self._n_arrays = rules, listening, len(arrays)
        self._data, self._free = (spead2.recv.ChunkRingbuffer(len(arrays)) for _ in range(2))
        self._group = spead2.recv.ChunkStreamRingGroup(config, self._data, self._free)
        self._placings: list[Placing] = []
        for member in range(n_members):
            self._add_member(listening, member, max_heaps, n_substreams)
        self._tally = SenderTally(rules, self._placings)
        self._waits_since: float | None = time.monotonic()
        self._numbers = {array.ctypes.data: number for number, array in enumerate(arrays)}
        self._lent: dict[int, spead2.recv.Chunk] = {}
        for array in arrays:
            present, begun = np.zeros((2, rules.n_flags), np.uint8)
            self._group.add_free_chunk(spead2.recv.Chunk(data=array, present=present, extra=begun))
        self._is_asked = threading.Event()
        self._ports = {each.port for some in listening.members for each in some if isinstance(each, Endpoint)}
        self._doors: list[list[TcpDoor]] = []  # each member's
        self._away_since: dict[int, float] = {}  # members whose senders are away
        self._closed_drops: int | None = None  # packets that the kernel had dropped when this was closed
        try:
            for stream, where in zip(self._group, listening.members, strict=True):
                self._doors.append(add_readers(stream, where, listening))
            for stream, where in zip(self._group, listening.members, strict=True):
                with _told_of(", ".join(str(each) for each in where)):
                    stream.start()
        except UsageError:
            self.close()
            raise

    def take(self) -> tuple[int, int, np.ndarray] | None:
        """Returns the next chunk: its array's number, its time in samples, and flags of its heaps; None at the end.

        The flags are bool [n_senders x chunk_heaps] in the order of the chunk: whether a heap came.

        Raises:
            JumpedError: when the stream has jumped.
        """
        while (chunk := self._next()) is not None:
            self._waits_since = None
            came, begun = np.asarray(chunk.present)[:-1].astype(bool), np.asarray(chunk.extra)
            self._tally.took(chunk.chunk_id, came, begun[:-1])
            begun[:] = 0
            if not came.any():  # a chunk without heaps was pushed out together with another
                self._group.add_free_chunk(chunk)
                continue
            number = self._numbers[np.asarray(chunk.data).ctypes.data]
            self._lent[number] = chunk
            first = chunk.chunk_id * self._rules.chunk_heaps * self._rules.heap_samples
            return number, first + self.offset, came
        return None

    def give_back(self, number: int) -> None:
        """Take an array again; any thread may call it."""
        self._group.add_free_chunk(self._lent.pop(number))

    @property
    def is_short(self) -> bool:
        """Returns whether the stream waits for one array, and so for the one that was taken last.

        After a gap it needs as many as it had under construction, and all of these are taken at once: they are kept.
        """
        needs_one = len(self._lent) == self._n_arrays - self._listening.n_built(self._rules) + 1
        return needs_one and self._free.empty() and self._data.empty() and not self._have_ended()

    def stop(self) -> None:
        """Make ``take`` return None; any thread may call it."""
        self._is_asked.set()

    def close(self) -> None:
        """Stop receiving."""
        if self._closed_drops is None:
            self._closed_drops = self._kernel_drops()
        self._group.stop()
        for doors in self._doors:
            for door in doors:
                door.close()

    @property
    def newest_time(self) -> int | None:
        """Returns the time of the newest placed heap, in samples; None before the first one."""
        times = [time for placing in self._placings if (time := placing.newest_time) is not None]
        return max(times, default=None)

    @property
    def unbelieved(self) -> list[tuple[int, int]]:
        """Returns (sender, time in samples) of each member's last heap with a far time, unless it was believed."""
        return sorted({last for placing in self._placings if (last := placing.unbelieved) is not None})

    @property
    def counts(self) -> dict[str, int]:
        """Returns the counts of all ``heaps`` that came. Each heap is in one of COUNTERS or in one of these:

        ``placed`` heaps, ``incomplete`` heaps, which lacked packets when their chunk was taken, and heaps that were
        ``too_old`` for any chunk under construction. Further counts are ``packets``, ``kernel_drops``: UDP packets for
        which a socket had no room, and ``blocked``: the times a member waited for memory. Counts lag behind while heaps
        come. If receiving stops before the senders end, heaps in the chunks under construction count as placed, though
        nobody takes them.
        """
        total = dict.fromkeys((*COUNTERS, *OTHER_COUNTERS), 0) | self._tally.total
        total["kernel_drops"] = self._kernel_drops() if self._closed_drops is None else self._closed_drops
        for stream in self._group:
            stats = stream.stats
            total["heaps"] += stats["heaps"]
            total["too_old"] += stats["too_old_heaps"]
            total["packets"] += stats["packets"]
            total["blocked"] += stats["worker_blocked"]
        total["placed"] -= total["too_old"] + total["incomplete"]
        return total

    @property
    def offset(self) -> int:
        """Returns by how many samples times are later than multiples of a heap's; 0 before the first one."""
        return self._placings[0].offset

    @property
    def quiet_s(self) -> float:
        """Returns the seconds since the last heap."""
        return min(placing.quiet_s for placing in self._placings)

    def senders(self, names: Sequence[str]) -> list[Sender]:
        """Returns the account of each sender, in the order of their ids, and at last that of heaps of unknown ones."""
        return self._tally.senders(names)

    @property
    def descriptors(self) -> list[tuple[int, int, bytes]]:
        """Returns (member, sender, packet) of the first descriptors of each sender; see ``Placing.descriptors``."""
        found = enumerate(placing.descriptors for placing in self._placings)
        return [(member, who, packet) for member, some in found for who, packet in some.items()]

    @property
    def waits_s(self) -> float:
        """Returns the seconds for which the engine has waited for a chunk; 0 while it has one."""
        since = self._waits_since
        return 0.0 if since is None else time.monotonic() - since

    def idle_s(self, member: int, quiet_s: float) -> float:
        """Returns the seconds for which a sender, whose last heap came ``quiet_s`` ago, could have sent and has not."""
        doors = self._doors[member] if member < len(self._doors) else []
        return min((door.idle_s for door in doors), default=min(self.waits_s, quiet_s))

    # ------------------------------------------------------------------ parts
    def _add_member(self, listening: Listening, member: int, max_heaps: int, n_substreams: int) -> None:
        config = spead2.recv.StreamConfig(
            max_heaps=max_heaps,
            substreams=n_substreams,
            allow_out_of_order=True,
            memcpy=spead2.MEMCPY_NONTEMPORAL,
            stop_on_stop_item=False,
            explicit_start=True,
        )
        beside = self._placings[0] if self._placings else None
        placing = Placing(self._rules, beside=beside, is_live=not self._each_ends)
        chunks = spead2.recv.ChunkStreamConfig(
            items=list(self._rules.items),
            max_chunks=self._rules.built_chunks,
            place=placing.callback(),
            max_heap_extra=1,
        )
        pool = spead2.ThreadPool(1, list(listening.cores[member : member + 1]))
        self._group.emplace_back(pool, config, chunks)
        self._placings.append(placing)

    def _kernel_drops(self) -> int:
        return udp_drops(self._ports) if self._listening.transport == "udp" else 0

    def _have_all_gone(self) -> bool:
        """Returns whether all senders by TCP have gone, and what they sent has been read.

        A lossless member waits for the others, so that the others of one whose senders stay away would wait for ever:
        such a member ends. So does one that is silent for ``patience_s``, if that is given.
        """
        now, members = time.monotonic(), range(len(self._doors))
        patience_s = self._listening.patience_s
        away_s = AWAY_S if patience_s is None else patience_s
        for member, doors in enumerate(self._doors):
            if not doors or not all(door.is_away for door in doors):
                self._away_since.pop(member, None)
            else:
                self._away_since.setdefault(member, now)
        have_all = any(self._doors) and len(self._away_since) == len(members)
        if all(self._has_gone(m) or placing.n_stops >= self._n_enders for m, placing in enumerate(self._placings)):
            for door in chain.from_iterable(self._doors):
                door.end(cuts=True)
        for member, since in self._away_since.items():
            if have_all or (self._each_ends and now - since > away_s):
                for door in self._doors[member]:
                    door.end()
        if self._each_ends and patience_s is not None and self.waits_s > patience_s:
            for member in filter(self._is_behind, members):
                for door in self._doors[member] if self.idle_s(member, 0.0) > patience_s else ():
                    door.end(cuts=True)
        return have_all and all(map(self._has_gone, members))

    def _is_behind(self, member: int) -> bool:
        """Returns whether a member that has begun is so far behind that others wait for it."""
        chunks = [placing.newest_chunk for placing in self._placings]
        return 0 <= chunks[member] <= max(chunks) - FAR_BEHIND

    def _has_gone(self, member: int) -> bool:
        doors = self._doors[member] if self._doors else []
        return bool(doors) and all(door.has_ended for door in doors)

    def _have_ended(self) -> bool:
        placings, n = enumerate(self._placings), self._n_enders
        return all(self._has_gone(m) if self._doors[m] else placing.n_stops >= n for m, placing in placings)

    def _next(self) -> spead2.recv.Chunk | None:
        is_quiet, self._waits_since = False, time.monotonic()
        while True:
            have_gone = self._have_all_gone()
            try:
                return self._data.get_nowait()
            except spead2.Empty:
                pass
            except spead2.Stopped:
                return None
            for placing in self._placings:
                if placing.jumped_to is not None:
                    raise JumpedError(placing.jumped_to, *placing.step)
            is_over = have_gone or self._have_ended()
            if self._is_asked.is_set() or (is_over and is_quiet):
                return None
            # spead2 passes its last chunks on after it has closed the connections.
            is_quiet = not select.select([self._data.data_fd], [], [], LOOK_S)[0] and is_over


def add_readers(
    stream: spead2.recv.ChunkStreamGroupMember,
    where: Sequence[Endpoint] | Sequence[spead2.InprocQueue] | Sequence[Path],
    listening: Listening,
) -> list[TcpDoor]:
    """Makes a stream receive from all places of a member; returns those that take one sender each, by TCP.

    Raises:
        UsageError: when it cannot.
    """
    if listening.transport == IBV:
        add_ibv_reader(stream, [each for each in where if isinstance(each, Endpoint)], listening.interface)
        return []
    doors: list[TcpDoor] = []
    try:
        for each in where:
            if isinstance(each, Endpoint) and listening.transport == "tcp":
                with _told_of(each):
                    doors.append(TcpDoor(each, SOCKET_BYTES))
                    stream.add_tcp_reader(doors[-1].inner, max_size=MOST_PACKET_BYTES)
                    doors[-1].inner.close()  # spead2 has a descriptor of its own until it has the connection
            else:
                add_reader(stream, each, listening)
    except UsageError:
        for door in doors:
            door.close()
        raise
    return doors


def add_reader(
    stream: spead2.recv.ChunkStreamGroupMember, where: Endpoint | spead2.InprocQueue | Path, listening: Listening
) -> None:
    """Makes a stream receive from one place that is not of TCP.

    Raises:
        UsageError: when it cannot.
    """
    if isinstance(where, spead2.InprocQueue):
        stream.add_inproc_reader(where)
        return
    with _told_of(where):
        if isinstance(where, Path):
            stream.add_udp_pcap_file_reader(str(where))
        elif listening.transport == "udp" and where.is_multicast:
            stream.add_udp_reader(
                where.host,
                where.port,
                max_size=MOST_PACKET_BYTES,
                buffer_size=SOCKET_BYTES,
                interface_address=listening.interface,
            )
        elif listening.transport == "udp":
            stream.add_udp_reader(
                where.port, max_size=MOST_PACKET_BYTES, buffer_size=SOCKET_BYTES, bind_hostname=where.host
            )
        else:
            raise UsageError(f"transport is {listening.transport!r}; it may be udp, ibv, tcp, pcap or inproc")


@contextmanager
def _told_of(place: object) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, OSError) as error:
        why = getattr(error, "strerror", None) or _why(error)
        raise UsageError(f"nothing can be received at {place}: {why}") from error


def _why(error: Exception) -> str:
    """Returns the text of an error from spead2, without the C++ source line at its end."""
    return str(error).partition(" [")[0]
