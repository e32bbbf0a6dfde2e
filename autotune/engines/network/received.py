"""Sources that receive SPEAD: samples from a digitiser, or voltages from F-engines, into memory that engines lend.

They compare what senders state with what the engine was told, and say where the two differ.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any, NoReturn

import numpy as np

from ..streams.samples import SampleInfo, Samples
from ..streams.voltages import Batches, VoltageInfo
from .descriptors import sample_type, stated_type, voltage_type
from .items import ADC_SAMPLES, DIGITISER_ID, FENG_ID, FENG_RAW, PAYLOAD_BYTES
from .placing import PlaceRules
from .receiver import Listening, Receiver
from .senders import Sender

MOST_GAP_S = 10.0  # a stream with a longer gap, or a step back in time, is a new one
QUIET_NS = 100_000_000  # a live stream continues at a far time after so long without a heap of a near time
CONFIRM = 8  # heaps that must agree before a far time is believed
PATIENCE_S = 0.2
LEAST_PATIENCE = 2  # chunks


@dataclass(frozen=True)
class Doubt:
    """A statement of a sender that contradicts the settings, as a line of ``text``. ``n``: the heaps that say it.

    ``stands``: whether it holds until it is taken back, since it is made once: each heap makes the others again.
    """

    counter: str
    name: str
    n: int
    text: str
    stands: bool = False


class Received:
    """The common part of sources that receive SPEAD: a receiver, which begins when memory is lent.

    ``names``: the names of the senders, in the order of the item ``sender_word``; ``payload``: the id and the type of
    the item with the payload; ``is_live``: whether senders do not wait; ``looks``: functions that are called with each
    chunk and the answer about it, before the engine gets it.
    """

    receiver: Receiver | None = None
    names: tuple[str, ...]
    sender_word: str
    payload: tuple[int, str]
    is_live: bool
    looks: list[Callable[[np.ndarray, Any], None]]
    _arrays: Sequence[np.ndarray]
    _rules: PlaceRules
    _listening: Listening
    _stated: dict[tuple[int, int], str]  # types by member and sender
    _reorder_heaps = 0  # heaps of a sender that may come later than those of others
    _heaps_each, _n_substreams = 1, 1  # heaps of a sender under construction at once; senders of a member stream

    def _rules_of(self, shape: Sequence[int]) -> PlaceRules:
        """Returns the rules for arrays of this shape."""
        rules = self._rules
        return rules.windowed(prod(shape) // (rules.n_senders * rules.heap_bytes), self._reorder_heaps)

    def lend(self, arrays: Sequence[np.ndarray]) -> None:
        """Take memory; see ``Lends``. Receiving begins."""
        self._rules, self._arrays = self._rules_of(arrays[0].shape), arrays
        n = self._n_substreams
        self.receiver = Receiver(self._rules, self._listening, arrays, max_heaps=self._heaps_each * n, n_substreams=n)

    def n_kept(self, shape: Sequence[int]) -> int:
        """Returns the number of arrays under construction; see ``Lends``."""
        return self._listening.n_built(self._rules_of(shape))

    @property
    def is_short(self) -> bool:
        """Returns whether it waits for an array; see ``Lends``."""
        return self.receiver is not None and self.receiver.is_short

    def _looked_at(self, number: int, answer: Any) -> tuple[int, Any]:
        for look in self.looks:
            look(self._arrays[number], answer)
        return number, answer

    def give_back(self, number: int) -> None:
        """Take an array again; see ``Lends``."""
        assert self.receiver is not None
        self.receiver.give_back(number)

    def read(self, out: np.ndarray) -> NoReturn:
        """Raises TypeError: memory is lent."""
        raise TypeError("what is received goes to lent memory: call take()")

    def stop(self) -> None:
        """Make ``take`` return None; any thread may call it."""
        if self.receiver is not None:
            self.receiver.stop()

    def close(self) -> None:
        """Stop receiving."""
        if self.receiver is not None:
            self.receiver.close()

    @property
    def heap_samples(self) -> int:
        """Returns the samples from a sender's heap to its next."""
        return self._rules.heap_samples

    def senders(self) -> list[Sender]:
        """Returns the account of each sender, and at last that of heaps without a known one; none before it begins."""
        if self.receiver is None:
            return []
        found, described = self.receiver.senders(self.names), self._described()
        for sender in found[:-1]:
            sender.counts["wrong_descriptors"] = int(sender.name in described)
        return found

    def doubts(self) -> Iterator[Doubt]:
        """Yields each contradiction between what a sender states and the settings."""
        rules, described = self._rules, self._described()
        for each in self.senders():
            name, said = each.name, each.said
            texts = {
                "foreign": f"a sender says {self.sender_word} {said['foreign']}; {rules.n_senders - 1} is the last",
                "wrong_size": f"{name} sends heaps of {said['wrong_size']} bytes, not {rules.heap_bytes}",
                "wrong_channels": f"{name} says that its heaps begin with channel {said['wrong_channels']}, "
                f"and this engine takes those that begin with channel {rules.first_channel}",
                "off_grid": f"{name} says sample {said['off_grid']}, {said['off_grid'] % rules.heap_samples} after a "
                f"multiple of the heap's {rules.heap_samples} samples",
                "misnumbered": f"the numbers of {name}'s heaps are not {self.sender_word} + k {rules.n_senders}: heaps "
                "of several senders may be mixed; do senders know n_antennas?",
                "wrong_descriptors": f"{name} describes its heaps as {described.get(name)}; "
                f"this engine takes {self.payload[1]}",
            }
            if rules.heap_bytes <= PAYLOAD_BYTES:  # a heap of one packet is mixed with no other
                del texts["misnumbered"]
            for word, text in texts.items():
                if n := each.counts.get(word, 0):
                    yield Doubt(word, name, n, text, stands=word == "wrong_descriptors")

    def _described(self) -> dict[str, str]:
        """Returns the types that descriptors state, by the sender's name, where they contradict the settings."""
        item, expected = self.payload
        for member, who, packet in [] if self.receiver is None else self.receiver.descriptors:
            if (member, who) not in self._stated:
                self._stated[member, who] = stated_type(packet, item)
        found = {self.names[max(key) % len(self.names)]: stated for key, stated in self._stated.items()}
        return {name: stated for name, stated in found.items() if stated not in ("", expected)}


class ReceivedSamples(Received):
    """A source that receives samples of one antenna into lent memory.

    It begins with the first chunk whose first packets came in all polarisations. After ``patience_s`` and two chunks it
    begins with any chunk.

    Args:
        n_enders: stop heaps that end the stream; None expects one from each member.
        near: a time in samples near that of the first heap, for example from the clock, since times on the wire have
            only 48 bits.
        confirm: heaps that must agree before the first one is believed.
    """

    def __init__(
        self,
        info: SampleInfo,
        listening: Listening,
        *,
        is_live: bool = True,
        n_enders: int | None = None,
        near: int = 0,
        confirm: int = CONFIRM,
        most_gap_s: float = MOST_GAP_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.info, self.is_live, self._listening, self._patience_s = info, is_live, listening, patience_s
        self.looks = []
        self._heap_bytes = info.packet * info.sample_bits // 8
        self.names = tuple(f"polarisation {info.label(pol)}" for pol in range(info.n_pols))
        self.sender_word, self.payload, self._stated = "digitiser_id", (ADC_SAMPLES, sample_type(info)), {}
        self._rules = PlaceRules(
            sender_item=DIGITISER_ID,
            sender_mask=1,
            heap_bytes=self._heap_bytes,
            heap_samples=info.packet,
            chunk_heaps=1,
            n_senders=info.n_pols,
            most_jump=max(1, int(most_gap_s * info.sample_rate_hz / info.packet)),
            n_enders=n_enders or len(listening.members),
            near=near,
            confirm=confirm,
            quiet_ns=QUIET_NS if is_live else 0,
            takes_offset=True,
        )
        self._has_begun, self._n_passed = False, 0  # chunks before the beginning
        self.n_before = 0  # heaps that were placed in chunks before the beginning

    def take(self) -> tuple[int, Samples] | None:
        """Returns the next chunk; see ``Lends``.

        Raises:
            JumpedError: when the stream has jumped.
        """
        assert self.receiver is not None, "memory is lent first"
        while (taken := self.receiver.take()) is not None:
            number, time, came = taken
            received = came.reshape(self.info.n_pols, -1)
            if self._has_begun or received[:, 0].all() or self._n_passed >= self._most_passed(received.shape[1]):
                self._has_begun = True
                return self._looked_at(number, Samples(time, received[:, : self._n_sent(time)]))
            self.n_before += int(np.count_nonzero(received))
            self._n_passed += 1
            self.receiver.give_back(number)
        return None

    def _n_sent(self, time: int) -> int:
        """Returns the number of packets sent from a time on. Packets that follow in the last chunk are not lost."""
        assert self.receiver is not None and self.receiver.newest_time is not None
        return max(1, (self.receiver.newest_time - time) // self.info.packet + 1)

    def _most_passed(self, n_packets: int) -> int:
        """Returns the number of chunks of ``n_packets`` packets that may pass before the beginning."""
        chunk_s = n_packets * self.info.packet / self.info.sample_rate_hz
        return max(LEAST_PATIENCE, ceil(self._patience_s / chunk_s))


class ReceivedVoltages(Received):
    """A source that receives voltages of several antennas, in the channels of one destination, into lent memory.

    Args:
        antennas: the antennas in the order of ``feng_id``. Their ``n_channels`` counts the received channels. At 4 bits
            their ``nibbles`` must be the order on the wire.
        first_channel: the first channel of heaps, which those that state another one contradict: they are not placed.
        n_enders: stop heaps that end the stream; None expects one from each member.
        n_substreams: the number of antennas whose heaps one member stream receives.
        reorder_s: seconds that heaps of one antenna may come later than those of others. Chunks are passed on so much
            later. Senders that wait, each by a connection of its own, are in order without it.
    """

    _heaps_each = 2

    def __init__(
        self,
        antennas: Sequence[VoltageInfo],
        listening: Listening,
        *,
        first_channel: int = 0,
        is_live: bool = True,
        n_enders: int | None = None,
        n_substreams: int = 1,
        near: int = 0,
        confirm: int = CONFIRM,
        most_gap_s: float = MOST_GAP_S,
        reorder_s: float = 0.0,
    ) -> None:
        self.antennas, self.is_live, self._listening, self.looks = tuple(antennas), is_live, listening, []
        first, self._n_substreams = antennas[0], n_substreams
        self.names = tuple(each.samples.antenna or f"feng_id {who}" for who, each in enumerate(antennas))
        self.sender_word, self.payload, self._stated = "feng_id", (FENG_RAW, voltage_type(first)), {}
        self._rules = PlaceRules(
            sender_item=FENG_ID,
            heap_bytes=int(np.prod(first.heap_shape)),
            heap_samples=first.heap_samples,
            chunk_heaps=1,
            n_senders=len(antennas),
            by_sender=False,
            most_jump=max(1, int(most_gap_s * first.samples.sample_rate_hz / first.heap_samples)),
            n_enders=n_enders or len(listening.members),
            near=near,
            confirm=confirm,
            quiet_ns=QUIET_NS if is_live else 0,
            first_channel=first_channel,
            is_numbered=True,
        )
        if is_live or n_substreams > 1:
            self._reorder_heaps = ceil(reorder_s * first.samples.sample_rate_hz / first.heap_samples)

    def take(self) -> tuple[int, Batches] | None:
        """Returns the next chunk; see ``Lends``.

        Raises:
            JumpedError: when the stream has jumped.
        """
        assert self.receiver is not None, "memory is lent first"
        if (taken := self.receiver.take()) is None:
            return None
        number, time, came = taken
        return self._looked_at(number, Batches(time, came.reshape(-1, len(self.antennas))))
