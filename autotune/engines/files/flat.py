"""Samples that lie in a file one after the other, in one piece or in several with gaps between them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.errors import one_line
from ..streams.samples import SampleInfo, Samples
from .interleaved_bytes import Layout
from .losses import Losses
from .numbers import NOT_FINITE
from .reading import Bytes, Tell, packet_of, packets_in

RMS = 512  # rms of real samples that are rounded to 16 bits: the noise of rounding is then 3e-7 of the power
LOOKED_AT, N_PLACES = 1 << 16, 64  # the rms is measured in so many bytes at each of so many places


@dataclass(frozen=True)
class FlatPiece:
    """Samples without a gap."""

    byte: int  # the first byte in the file
    first: int  # time of the first sample, in samples since the first of the recording
    n: int | None = None  # samples; None takes as many as the file has, which may grow


class FlatSamples:
    """A source of the samples in a file whose format has no packets.

    A packet is the largest power of two up to 4096 that divides all pieces and the gaps between them. A packet
        with a number that is not finite is missing.

        Args:
            info: the header of the samples, in which the packet and n_samples are not set yet.
            pieces: the pieces in the order of time; only the last one may have ``n=None``.
            row_bytes: bytes from the first polarisation to the second, if each lies in one piece; 0 means that they are
                interleaved, as ``layout`` describes.
            end: bytes at the end of the file that are not samples.
            missing: samples that never came: (polarisation, first sample, number of samples).
    """

    is_live = False
    falls = ""
    number: int | None = None  # the file's place in a series

    def __init__(
        self,
        file: Bytes,
        info: SampleInfo,
        layout: Layout,
        pieces: Sequence[FlatPiece],
        tell: Tell,
        row_bytes: int = 0,
        end: int = 0,
        missing: Sequence[Sequence[int]] = (),
    ) -> None:
        self.losses = Losses(file.path, tell)
        self._file, self._pieces, self._row_bytes, self._end = file, tuple(pieces), row_bytes, end
        self._layout, self._missing, self.info = layout, missing, info
        self._done = 0  # packets
        n_here = self._n_here()
        n = self._n_stated or n_here
        bounds = [bound for each in pieces for bound in (each.first, (each.first + each.n) if each.n else 0)][:-1]
        packet_of(file.path, n, layout.sample_bits)
        together = math.gcd(n, n_here, layout.n_together, *bounds), 8 // math.gcd(8, layout.sample_bits)
        self._packet = packet_of(file.path, max(together), layout.sample_bits)
        self.info = replace(info, sample_bits=layout.sample_bits, packet=self._packet, n_samples=n)
        if layout.numbers.is_wide and not layout.is_complex:
            self._scale(tell)

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``.

        Raises:
            UsageError: when the file cannot be read.
        """
        n_room, packet, n_here = packets_in(out, self.info), self._packet, self._n_here()
        if (n := min(n_room, n_here // packet - self._done)) > 0:
            start = self._done * packet
            if self._is_in_gap(start):  # whole chunks of a gap are left out
                later = min((each.first for each in self._pieces if each.first >= start), default=start)
                self._done += (later - start) // (n_room * packet) * n_room
                start, n = self._done * packet, min(n_room, n_here // packet - self._done)
            received = self._fill(out, start, n)
            self._done += n
            return Samples(self.info.first_timestamp + start, received)
        last, is_whole = self._pieces[-1], self._n_stated is not None and self._done >= self._n_stated // packet
        n = max(0, (self._n_stated if is_whole and self._n_stated else n_here) - last.first)
        rows = (self.info.n_pols - 1) * self._row_bytes
        n_left = self._file.size() - self._end - last.byte - rows - self._layout.bytes_of(n)
        self.losses.end_of_samples(self._file, n_here, self._n_stated, is_whole, n_left)
        return None

    def close(self) -> None:
        self.losses.told()
        self._file.close()

    def _fill(self, out: np.ndarray, start: int, n_packets: int) -> np.ndarray:
        """Reads packets from sample ``start`` on. Returns whether each came: bool [n_pols, n_packets]."""
        packet, n_pols, n_here = self._packet, self.info.n_pols, self._n_here()
        n_in, n_elements = self._layout.n_in(out), out.shape[1]
        received = np.zeros((n_pols, n_packets), bool)
        for piece in self._pieces:
            low = max(start, piece.first)
            high = min(start + n_packets * packet, n_here if piece.n is None else min(n_here, piece.first + piece.n))
            if low >= high:
                continue
            some = out[:, (low - start) * n_elements // n_in : (high - start) * n_elements // n_in]
            rows = [some[pol : pol + 1] for pol in range(n_pols)] if self._row_bytes else [some]
            for number, row in enumerate(rows):
                self._layout.read(self._file, piece.byte + number * self._row_bytes, low - piece.first, row)
            received[:, (low - start) // packet : (high - start) // packet] = True
        for pol, first, n in self._missing:
            begin, behind = (first - start) // packet, -(-(first + n - start) // packet)
            received[pol, max(0, begin) : max(0, behind)] = False
        if self._layout.numbers.kind.kind == "f":
            received &= _finite(out[:, : n_packets * packet * n_elements // n_in], n_packets)
        return received

    def _is_in_gap(self, sample: int) -> bool:
        return not any(
            each.first <= sample and (each.n is None or sample < each.first + each.n) for each in self._pieces
        )

    @property
    def _n_stated(self) -> int | None:
        """Returns the number of samples from the first to the last, including gaps; None if the header lacks it."""
        last = self._pieces[-1]
        return None if last.n is None else last.first + last.n

    def _n_here(self) -> int:
        """Returns the number of samples from the first to the last one in the file now, including gaps."""
        size = self._file.size() - self._end - (self.info.n_pols - 1 if self._row_bytes else 0) * self._row_bytes
        here = 0
        for piece in self._pieces:
            n = self._layout.whole(max(0, size - piece.byte))
            n = n if piece.n is None else min(n, piece.n)
            here = piece.first + n if n else here
        return here

    def _scale(self, tell: Tell) -> None:
        """Sets the scale of real samples of more than 16 bits: a power of two that gives them an rms near ``RMS``."""
        layout, total, n = self._layout, 0.0, 0
        n_looked = max(1, LOOKED_AT // layout.sample_bytes)
        for piece in self._pieces:
            last = max(0, (self._n_here() - piece.first if piece.n is None else piece.n) - n_looked)
            for first in np.linspace(0, last, N_PLACES // len(self._pieces) + 1).astype(int).tolist():
                for row in range(self.info.n_pols if self._row_bytes else 1):
                    byte = piece.byte + row * self._row_bytes + first * layout.sample_bytes
                    raw = self._file.take(byte, n_looked * layout.sample_bytes)
                    numbers = layout.wanted(raw[: len(raw) // layout.sample_bytes * layout.sample_bytes])
                    with np.errstate(over="ignore"):
                        squares = np.square(numbers[np.isfinite(numbers)].astype(np.float64))
                    total, n = total + float(squares[np.isfinite(squares)].sum()), n + squares.size
        rms = np.sqrt(total / max(1, n))
        power = round(np.log2(RMS / rms)) if 1e-100 < rms < 1e100 else 0
        self._layout = replace(layout, numbers=replace(layout.numbers, scale=2.0**power))
        line = f"{self._file.path}: its samples have an rms of {rms:.4g}: they are read as 16 bits"
        tell(one_line(f"{line}, times 2^{power}"))


def _finite(rows: np.ndarray, n_packets: int) -> np.ndarray:
    """Returns whether all numbers in each packet are finite: bool [n_pols, n_packets]."""
    parts = rows.reshape(len(rows), n_packets, -1)
    if rows.dtype == np.complex64:
        return np.asarray(np.isfinite(parts).all(axis=-1))
    return np.asarray((parts.view(">i2") != NOT_FINITE).all(axis=-1))
