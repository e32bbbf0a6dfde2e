"""GUPPI RAW files of 4, 8 or 16 bits: blocks of complex samples, each after a header of cards of 80 characters.

The reader uses BLOCSIZE, NBITS (4: the real part is in the high nibble; 8; 16: little-endian), OBSNCHAN, NPOL (1; 4:
two polarisations of two parts; 2 means either, so ``n_pols`` must be given), OVERLAP (samples that the next block
repeats), PKTIDX with PKTSIZE or PIPERBLK (a block's time), TBIN (seconds), PKTFMT (SIMPLE: [time, channel,
polarisation]; others: [channel, time, polarisation]), DIRECTIO (headers padded to 512 bytes), SYNCTIME or STT_IMJD,
STT_SMJD and STT_OFFS (the time when PKTIDX was 0), OBSFREQ and OBSBW (MHz), TELESCOP, PKTSTART, and for several
antennas NANTS and ANTNMES, or ANTNMS00 and so on.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from ....core.errors import UsageError
from ...streams.samples import SampleInfo, Samples
from ...streams.times import step_of
from .. import checks
from ..guppi_antennas import antenna_name, antennas_of_header, channel_among
from ..interleaved_bytes import Layout, centre_of
from ..joined_bytes import JoinedBytes
from ..numbers import INT8, Numbers
from ..reading import (
    MOST_BYTES,
    MOST_GAP_S,
    MOST_PACKET,
    Bytes,
    Header,
    HeaderField,
    HeaderOverrides,
    LackingError,
    Start,
    Tell,
    cut_off,
    packets_in,
    refuse,
    settled,
    unix_of_mjd,
)
from .interface import SAMPLES

CARD = 80
MOST_HEADER, USUAL_HEADER = 1 << 20, 1 << 15  # bytes
MOST_HOPS = 1 << 12  # the most blocks on the way to the last one
STRAIGHT = 512  # bytes: with DIRECTIO headers are padded to a multiple of this
suffixes, holds, help = (), SAMPLES, "GUPPI RAW"
header_fields = {"n_pols": HeaderField("GUPPI RAW: 1 or 2, where NPOL = 2 may mean either", checks.integer(1, 2), int)}
N_POLS = {1: 1, 4: 2}  # polarisations, by NPOL
NUMBERS = {4: Numbers(np.dtype(np.int8), nibbles=True), 8: INT8, 16: Numbers(np.dtype("<i2"))}  # keys are NBITS
ALIKE = ("BLOCSIZE", "NBITS", "OBSNCHAN", "NPOL", "OVERLAP", "PKTSIZE", "PIPERBLK", "PKTFMT")


def recognises(file: Bytes) -> bool:
    """Returns whether a file is of this format, by its first card."""
    start = file.take(0, CARD).tobytes()
    return re.match(rb"[A-Z0-9_-]{1,8} *= [ -~]{70}", start) is not None and start[8:10] == b"= "


def read(path: Path, overrides: HeaderOverrides, tell: Tell) -> "GuppiSamples":
    """Opens a file.

    Raises:
        UsageError: when its first header is wrong, or lacks a needed field that is not given.
    """
    return read_joined([path], overrides, tell)


def read_joined(paths: Sequence[Path], overrides: HeaderOverrides, tell: Tell) -> "GuppiSamples":
    """Opens files whose blocks follow each other as in one file. Raises UsageError as ``read`` does."""
    file = JoinedBytes(paths)
    try:
        return GuppiSamples(file, overrides, tell)
    except BaseException:
        file.close()
        raise


def antennas_of(path: Path) -> tuple[list[str], int]:
    """Returns the names of a file's antennas, and the number of channels of each. Raises UsageError as ``read``."""
    file = Bytes(path)
    try:
        header = _read_header(file, 0, 0)[0]
        n_antennas, n_channels = antennas_of_header(header)
        return [antenna_name(header, number, n_antennas) for number in range(n_antennas)], n_channels
    finally:
        file.close()


@dataclass(frozen=True)
class Block:
    """A header and the samples after it."""

    number: int
    header: Header
    data: int  # the first byte of the samples
    end: int  # the byte after the samples
    time: int  # the time of the first sample


class GuppiSamples:
    """A source of the samples of one channel. Packets of missing blocks did not come.

    A packet is PKTIDX's unit, or a part of it that divides a block, of at most 4096 samples. Samples that two blocks
    share are read from the first one, as far as they fill whole packets. A last block that is cut off is read as far as
    it holds the channel.
    """

    is_live = False

    def __init__(self, file: Bytes, overrides: HeaderOverrides, tell: Tell) -> None:
        self._file, self._overrides = file, overrides
        header, data = _read_header(file, 0, 0)
        numbers = NUMBERS.get(header.integer("NBITS", 1, 64))
        if numbers is None:
            refuse(file.path, f"it has samples of NBITS={header.text('NBITS')} bits, but only 4, 8 and 16 can be read")
        n_antennas, n_each = antennas_of_header(header)
        n_channels, n_pols = n_antennas * n_each, overrides.n_pols or _n_pols(header)
        channel = channel_among(file.path, overrides, n_channels, n_antennas)
        self._layout = Layout(n_channels, n_pols, True, channel, numbers=numbers)
        self._alone = Layout(1, n_pols, True, 0, numbers=numbers)  # blocks may keep each channel's samples together
        self._n_bytes = header.integer("BLOCSIZE", self._layout.sample_bytes, MOST_BYTES)
        n, rest = divmod(self._n_bytes, self._layout.sample_bytes)
        if rest:
            refuse(file.path, f"BLOCSIZE={self._n_bytes} is not whole samples of {self._layout.sample_bytes} bytes")
        self._n_block, self._step = n, n - header.integer("OVERLAP", 0, n - 1, 0)
        self.overlap = n - self._step
        self._tick = self._ticks(header)
        whole = math.gcd(self._step, self._tick.numerator) if self._tick.denominator == 1 else self._step
        self._packet = whole if whole <= MOST_PACKET else math.gcd(whole, MOST_PACKET)
        self._n_read = self._n_block // self._packet * self._packet  # samples to read from a block
        rate = overrides.rate(partial(_rate, header))
        self._block: Block | None = self._at(0, header, data)
        info = SampleInfo(
            sample_bits=self._layout.sample_bits,
            n_pols=n_pols,
            sample_rate_hz=rate,
            packet=self._packet,
            first_timestamp=self._block.time,
            antenna=antenna_name(header, channel // n_each, n_antennas),
            centre_frequency_hz=_centre(header, channel, n_each),
        )
        info = replace(info, n_samples=self._n_samples())
        self.info = settled(file.path, info, _start(header, self._tick, rate), overrides, tell)
        is_lower = "OBSBW" in header and header.number("OBSBW") < 0
        self.falls = f"OBSBW={header.text('OBSBW')}" if is_lower else ""
        self._time = self._block.time  # the time of the next packet

    def read(self, out: np.ndarray) -> Samples | None:
        """Read the next packets; see ``Source``.

        Raises:
            UsageError: when a block is cut off, or its header is wrong: its size differs from the first one's, or its
                time is within the block before, not a whole number of packets later, or over an hour later.
        """
        packet, n_room = self.info.packet, packets_in(out, self.info)
        block = self._next()
        if block is None:
            return None
        start = self._time + max(0, block.time - self._time) // (n_room * packet) * n_room * packet
        received = np.zeros((self.info.n_pols, n_room), bool)
        self._time = start
        while block is not None and block.time < start + n_room * packet:
            first = max(block.time, self._time)
            end = min(block.time + self._n_here(block), start + n_room * packet)
            self._copy(block, first - block.time, out[:, first - start : end - start])
            received[:, (first - start) // packet : (end - start) // packet] = True
            self._time = end
            if end == start + n_room * packet:
                break
            try:
                block = self._next()
            except UsageError:  # the next call raises it again
                break
        if block is not None and block.time >= start + n_room * packet:
            self._time = start + n_room * packet
        return Samples(start, received[:, : (self._time - start) // packet])

    def close(self) -> None:
        self._file.close()

    def _copy(self, block: Block, first: int, out: np.ndarray) -> None:
        """Fills ``out`` with samples of a block, from sample ``first`` on."""
        if block.header.text("PKTFMT") == "SIMPLE":
            self._layout.read(self._file, block.data, first, out)
        else:
            self._alone.read(self._file, block.data, self._layout.channel * self._n_block + first, out)

    def _n_here(self, block: Block) -> int:
        """Returns the number of a block's samples in the file now, in whole packets."""
        n_bytes = self._file.size() - block.data
        if n_bytes >= self._n_bytes:
            return self._n_read
        if block.header.text("PKTFMT") == "SIMPLE":
            n = self._layout.whole(n_bytes)
        else:
            n = self._alone.whole(n_bytes) - self._layout.channel * self._n_block
        return max(0, min(n, self._n_read)) // self._packet * self._packet

    # ------------------------------------------------------------------ blocks
    def _next(self) -> Block | None:
        """Returns the block with the next sample in the file; None at the end."""
        block = self._block
        assert block is not None
        if block.time + self._n_here(block) > self._time:
            return block
        if self._file.size() < block.end:
            cut_off(self._file, f"in the middle of block {block.number}, which begins at byte {block.data}")
        if self._file.size() == block.end:
            return None
        header, data = _read_header(self._file, block.number + 1, block.end)
        for name in ALIKE:
            if header.values.get(name) != block.header.values.get(name):
                what = f"{name}={header.text(name)}, but the one before has {block.header.text(name)}"
                refuse(self._file.path, f"block {block.number + 1} at byte {block.end} has {what}")
        later = self._at(block.number + 1, header, data)
        gap = later.time - block.time - self._step
        if gap < 0 or gap % self.info.packet or gap > MOST_GAP_S * self.info.sample_rate_hz:
            refuse(
                self._file.path,
                f"block {later.number} at byte {block.end} starts at sample {later.time}, {gap} after the end of the "
                f"one before: a gap must be whole packets, {self.info.packet} samples each, and at most an hour",
            )
        self._block = later
        return self._next()

    def _n_samples(self) -> int | None:
        """Returns the number of samples from the first block to the end of the file; None if it is not found."""
        first = self._block
        assert first is not None
        guess = max(0, self._file.size() // first.end - 1)  # if all headers are as long as the first one
        last = self._last(guess, guess * first.end) or self._last(0, 0)
        n = 0 if last is None else last.time + self._n_here(last) - first.time
        return n if n > 0 else None

    def _last(self, number: int, byte: int) -> Block | None:
        """Goes from each block's header to the next. Returns the last block with samples in the file, or None."""
        size = self._file.size()
        try:
            last = self._at(number, *_read_header(self._file, number, byte))
            header_bytes = last.data - byte
            for _ in range(MOST_HOPS):
                if size - last.end < header_bytes:
                    return last
                later = self._at(last.number + 1, *_read_header(self._file, last.number + 1, last.end))
                if not self._n_here(later):
                    return last
                last = later
        except UsageError:
            pass
        return None

    def _at(self, number: int, header: Header, data: int) -> Block:
        time = header.integer("PKTIDX", 0, checks.MOST_TIME) * self._tick
        if abs(time) > checks.MOST_FIRST:
            refuse(self._file.path, f"{header.where} has PKTIDX={header.text('PKTIDX')}, which is after all times")
        return Block(number, header, data, data + self._n_bytes, int(time))

    def _ticks(self, header: Header) -> Fraction:
        """Returns the number of samples in PKTIDX's unit."""
        if "PIPERBLK" in header:
            return Fraction(self._step, header.integer("PIPERBLK", 1, MOST_BYTES))
        return Fraction(header.integer("PKTSIZE", 1, MOST_BYTES), self._layout.sample_bytes)


def _read_header(file: Bytes, number: int, offset: int) -> tuple[Header, int]:
    """Returns the fields of a header, and the first byte of the samples after it."""
    text = file.take(offset, USUAL_HEADER).tobytes()
    if len(text) == USUAL_HEADER and not re.search(rb"END {77}", text):
        text = file.take(offset, MOST_HEADER).tobytes()
    values: dict[str, str] = {}
    for at in range(0, len(text) - CARD + 1, CARD):
        card = text[at : at + CARD].decode("latin-1")
        if card[:8].rstrip() == "END":
            n = at + CARD
            if values.get("DIRECTIO", "0") != "0":
                n = -(-n // STRAIGHT) * STRAIGHT
            return Header(file.path, f"the header of block {number} at byte {offset}", values), offset + n
        if not card.isprintable():
            refuse(file.path, f"block {number} has no header at byte {offset}, where it must begin")
        values[card[:8].strip()] = _value(card[9:]) if card[8] == "=" else ""
    if len(text) == MOST_HEADER:
        refuse(file.path, f"the header of block {number} at byte {offset} has no END in {MOST_HEADER} bytes")
    cut_off(file, f"in the middle of the header of block {number}, which begins at byte {offset}")


def _value(text: str) -> str:
    """Returns a card's value: the text in quotes, or the text before the comment."""
    quoted = re.match(r"\s*'((?:[^']|'')*)'", text)
    return quoted[1].replace("''", "'").strip() if quoted else text.partition("/")[0].strip()


def _n_pols(header: Header) -> int:
    npol = header.integer("NPOL", 1, 4)
    if npol not in N_POLS:
        meaning = "two polarisations, or one of two parts" if npol == 2 else "nothing known"
        why = f"{header.where} has NPOL={npol}, which means {meaning}: give n_pols=1 or n_pols=2"
        raise LackingError(header.path, why, "n_pols", 2)
    return N_POLS[npol]


def _rate(header: Header) -> float:
    seconds = header.number("TBIN", instead="sample_rate_hz")
    if seconds < 1 / checks.MOST_RATE_HZ:
        refuse(header.path, f"{header.where} has TBIN={header.text('TBIN')}, must be the seconds of a sample")
    return float(1 / seconds)


def _centre(header: Header, channel: int, n_channels: int) -> float | None:
    """Returns the centre of a channel in Hz. OBSFREQ and OBSBW refer to the ``n_channels`` of one antenna."""
    if "OBSFREQ" not in header or "OBSBW" not in header:
        return None
    centre_hz, bandwidth_hz = 10**6 * header.number("OBSFREQ"), 10**6 * header.number("OBSBW")
    return centre_of(channel % n_channels, n_channels, centre_hz, bandwidth_hz)


def _start(header: Header, tick: Fraction, rate: float) -> Start | None:
    """Returns the time at which PKTIDX is 0; None if the header lacks it.

    It is SYNCTIME. STT_IMJD, STT_SMJD and STT_OFFS are the time of PKTSTART, which is 0 if the header lacks it.

    Args:
        tick: samples in PKTIDX's unit.
        rate: samples in a second.
    """
    if "SYNCTIME" in header:
        text = header.text("SYNCTIME")
        return Start(header.number("SYNCTIME"), f"SYNCTIME={text}", step_of(text))
    if "STT_IMJD" not in header:
        return None
    time, step_s = unix_of_mjd(header.integer("STT_IMJD", 0, 1 << 20)), Fraction(0)
    for name in ("STT_SMJD", "STT_OFFS"):
        time += header.number(name, 0.0)
        step_s = max(step_s, step_of(header.text(name)))
    time -= header.integer("PKTSTART", 0, checks.MOST_TIME, 0) * tick / Fraction(rate)
    return Start(time, f"STT_OFFS={header.text('STT_OFFS')}", step_s)
