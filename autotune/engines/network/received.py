"""Sources that receive SPEAD: samples from a digitiser, or voltages from F-engines, into memory that engines lend."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import NoReturn

import numpy as np

from ..streams.samples import SampleInfo, Samples
from ..streams.voltages import Batches, VoltageInfo
from .items import DIGITISER_ID, FENG_ID
from .placing import PlaceRules
from .receiver import Listening, Receiver

MOST_GAP_S = 10.0  # a stream with a longer gap, or a step back in time, is a new one
VOLTAGE_HEAPS = 2  # heaps of an antenna under construction at once
QUIET_NS = 100_000_000  # a live stream continues at a far time after so long without a heap of a near time
CONFIRM = 8  # heaps that must agree before a far time is believed
PATIENCE_S = 0.2
LEAST_PATIENCE = 2  # chunks


class Received:
    """The common part of sources that receive SPEAD: a receiver, which begins when memory is lent."""

    receiver: Receiver | None = None

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
        self._heap_bytes = info.packet * info.sample_bits // 8
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
        )
        self._has_begun, self._n_passed = False, 0  # chunks before the beginning
        self.n_before = 0  # heaps that were placed in chunks before the beginning

    def lend(self, arrays: Sequence[np.ndarray]) -> None:
        """Take memory; see ``Lends``. Receiving begins."""
        n_heaps = arrays[0].shape[1] // self._heap_bytes
        self._rules = replace(self._rules, chunk_heaps=n_heaps)
        self.receiver = Receiver(self._rules, self._listening, arrays)

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
                return number, Samples(time, received[:, : self._n_sent(time)])
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
            their ``nibbles`` must be the order on the wire; descriptors are not read.
        n_enders: stop heaps that end the stream; None expects one from each member.
        n_substreams: the number of antennas whose heaps one member stream receives.
    """

    def __init__(
        self,
        antennas: Sequence[VoltageInfo],
        listening: Listening,
        *,
        is_live: bool = True,
        n_enders: int | None = None,
        n_substreams: int = 1,
        near: int = 0,
        confirm: int = CONFIRM,
        most_gap_s: float = MOST_GAP_S,
    ) -> None:
        self.antennas, self.is_live, self._listening = tuple(antennas), is_live, listening
        first, self._n_substreams = antennas[0], n_substreams
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
        )

    def lend(self, arrays: Sequence[np.ndarray]) -> None:
        """Take memory; see ``Lends``. Receiving begins."""
        self._rules = replace(self._rules, chunk_heaps=len(arrays[0]))
        self.receiver = Receiver(
            self._rules,
            self._listening,
            arrays,
            max_heaps=VOLTAGE_HEAPS * self._n_substreams,
            n_substreams=self._n_substreams,
        )

    def take(self) -> tuple[int, Batches] | None:
        """Returns the next chunk; see ``Lends``.

        Raises:
            JumpedError: when the stream has jumped.
        """
        assert self.receiver is not None, "memory is lent first"
        if (taken := self.receiver.take()) is None:
            return None
        number, time, came = taken
        return number, Batches(time, came.reshape(-1, len(self.antennas)))
