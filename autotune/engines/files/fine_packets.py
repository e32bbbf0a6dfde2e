"""A source on another clock and with smaller packets, since sources that are joined must share one grid of packets."""

from dataclasses import replace

import numpy as np

from ..streams.samples import Samples, Source
from .reading import packets_in


class FinePackets:
    """A source that wraps another one. Its times are ``shift`` samples later, and its packets may be smaller.

    Args:
        packet: samples in a packet; it divides the other source's.
    """

    is_live = False

    def __init__(self, source: Source, packet: int, shift: int) -> None:
        self._source, self._shift, self._n_parts = source, shift, source.info.packet // packet
        self.info = replace(source.info, packet=packet, first_timestamp=source.info.first_timestamp + shift)
        self._left: Samples | None = None  # the rest of the last packets that were read; its samples are in _rows
        self._rows = np.empty((0, 0))

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``. The rest of the other source's last packets comes first."""
        if self._n_parts == 1:
            samples = self._source.read(out)
            return samples and replace(samples, time=samples.time + self._shift)
        n_room, n_parts = packets_in(out, self.info), self._n_parts
        width = out.shape[1] // n_room
        if self._left is None:
            self._rows = np.empty((len(out), -(-n_room // n_parts) * n_parts * width), out.dtype)
            if (samples := self._source.read(self._rows)) is None:
                return None
            self._left = Samples(samples.time + self._shift, np.repeat(samples.received, n_parts, axis=1))
        taken, n = self._left, min(n_room, self._left.received.shape[1])
        out[:, : n * width] = self._rows[:, : n * width]
        self._rows, rest = self._rows[:, n * width :], taken.received[:, n:]
        self._left = Samples(taken.time + n * self.info.packet, rest) if rest.shape[1] else None
        return replace(taken, received=taken.received[:, :n])

    def close(self) -> None:
        self._source.close()
