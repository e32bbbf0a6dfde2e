"""A source of a simulated digitiser's samples in memory, for an engine without a network."""

from dataclasses import replace

import numpy as np

from ...core.errors import UsageError
from ..files.reading import packets_in
from ..streams.samples import SampleInfo, Samples
from .digitised_signal import PacketMaker
from .packet_faults import Faults


class DigitiserSource:
    """A source of a digitiser's samples; packets that ``faults`` lose are missing.

    Args:
        packets: the maker of the packets.
        info: of the same packets; ``n_samples`` says where the source ends, after whole packets. None: never.
        faults: of each polarisation; those other than losses change nothing here.

    Raises:
        UsageError: when ``info`` is of other packets.
    """

    is_live = False

    def __init__(self, packets: PacketMaker, info: SampleInfo, faults: Faults | None = None) -> None:
        of_packets, of_info = ((x.n_pols, x.sample_bits, x.packet) for x in (packets, info))
        if of_packets != of_info:
            raise UsageError(f"packets have (n_pols, sample_bits, packet) = {of_packets}, and info says {of_info}")
        n = info.n_samples
        self.info = info if n is None else replace(info, n_samples=n // info.packet * info.packet)
        self._packets, self._faults = packets, faults or Faults()
        self._n_packets = None if n is None else n // info.packet
        self._at = 0  # packets that were read

    def read(self, out: np.ndarray) -> Samples | None:
        """Fill ``out``; see ``samples.Source``."""
        n, packet = packets_in(out, self.info), self.info.packet
        if self._n_packets is not None:
            n = min(n, self._n_packets - self._at)
        if n <= 0:
            return None
        time = self.info.first_timestamp + self._at * packet
        packed, _ = self._packets.read(time, n * packet)
        out[:, : packed.shape[1]] = packed
        lost = np.stack([self._faults.lost_of(self._at, n, pol) for pol in range(self.info.n_pols)])
        self._at += n
        return Samples(time, ~lost)

    def close(self) -> None:
        return
