"""GUPPI RAW files of 4, 8 or 16 bits: blocks of complex samples, each after a header of cards of 80 characters.

The reader uses BLOCSIZE, NBITS (4: the real part is in the high nibble; 8; 16: little-endian), OBSNCHAN, NPOL (1; 4:
two polarisations of two parts; 2 means either, so ``n_pols`` must be given), OVERLAP (samples that the next block
repeats), PKTIDX with PKTSIZE or PIPERBLK (a block's time), TBIN (seconds), PKTFMT (SIMPLE: [time, channel,
polarisation]; others: [channel, time, polarisation]), DIRECTIO (headers padded to 512 bytes), SYNCTIME or STT_IMJD,
STT_SMJD and STT_OFFS (the time when PKTIDX was 0), OBSFREQ and OBSBW (MHz), TELESCOP, PKTSTART, FD_POLN and FD_HAND
(which name two polarisations, as in PSRFITS), and for several antennas NANTS and ANTNMES, or ANTNMS00 and so on.
"""

import math
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from ....core.errors import UsageError, one_line
from ...streams.samples import SampleInfo
from ...streams.times import step_of
from .. import checks
from ..guppi_antennas import antenna_name, antennas_of_header, channel_among
from ..guppi_blocks import CARD, Block, BlockReader, block_at, blocks_from, first_block
from ..interleaved_bytes import Layout, centre_of
from ..joined_bytes import readers
from ..numbers import INT8, Numbers
from ..reading import (
    MOST_BYTES,
    MOST_PACKET,
    Bytes,
    Header,
    HeaderField,
    HeaderOverrides,
    LackingError,
    Start,
    Tell,
    refuse,
    settled,
    unix_of_mjd,
)
from ..statements import contradicted
from ..time_order import FramedSource, Frames
from .interface import SAMPLES

MOST_HOPS = 1 << 12  # the most blocks on the way to the last one
MOST_ALIKE = 4  # blocks whose PKTIDX is 0 if it counts nothing
CLOCK_S = 2  # STT_* may count whole seconds
suffixes, holds, help = (), SAMPLES, "GUPPI RAW"
header_fields = {"n_pols": HeaderField("GUPPI RAW: 1 or 2, where NPOL = 2 may mean either", checks.integer(1, 2), int)}
N_POLS = {1: 1, 4: 2}  # polarisations, by NPOL
FEEDS: Mapping[str, Mapping[str, object]] = {  # the cards that name two polarisations, as PSRFITS defines them
    "XY": {"FD_POLN": "LIN"},
    "LR": {"FD_POLN": "CIRC", "FD_HAND": 1},
    "RL": {"FD_POLN": "CIRC", "FD_HAND": -1},
}
NUMBERS = {4: Numbers(np.dtype(np.int8), nibbles=True), 8: INT8, 16: Numbers(np.dtype("<i2"))}  # keys are NBITS


def recognises(file: Bytes) -> bool:
    """Returns whether a file is of this format, by its first card. FITS has such cards, too; its first is SIMPLE."""
    start = file.take(0, CARD).tobytes()
    is_card = re.match(rb"[A-Z0-9_-]{1,8} *= [ -~]{70}", start) is not None and start[8:10] == b"= "
    return is_card and not start.startswith(b"SIMPLE ")


def antennas_of(path: Path) -> tuple[list[str], int]:
    """Returns the names of a file's antennas, and the number of channels of each. Raises UsageError as ``read``."""
    with closing(Bytes(path)) as file:
        header = first_block(file).header
    n_antennas, n_channels = antennas_of_header(header)
    return [antenna_name(header, number, n_antennas) for number in range(n_antennas)], n_channels


class GuppiSamples(FramedSource):
    """A source of the samples of one channel. Packets of missing blocks did not come.

    A packet is PKTIDX's unit, or a part of it that divides a block, of at most 4096 samples. Samples that two blocks
    share are read from the first one, as far as they fill whole packets. A last block that is cut off is read as far as
    it holds the channel. Where PKTIDX is missing, or stays 0, blocks follow one another.

    Raises:
        UsageError: when its first header is wrong, or lacks a needed field that is not given.
    """

    unit, most_early = "block", 64

    def __init__(self, file: Bytes, overrides: HeaderOverrides, tell: Tell) -> None:
        super().__init__(file, tell)
        first = self._first = first_block(file)
        header = first.header
        numbers = NUMBERS.get(header.integer("NBITS", 1, 64))
        if numbers is None:
            refuse(file.path, f"it has samples of NBITS={header.text('NBITS')} bits, but only 4, 8 and 16 can be read")
        n_antennas, n_each = antennas_of_header(header)
        n_channels, n_pols = n_antennas * n_each, overrides.n_pols or _n_pols(header)
        channel = channel_among(file.path, overrides, n_channels, n_antennas)
        self._is_simple = header.text("PKTFMT") == "SIMPLE"
        self._layout = Layout(n_channels, n_pols, True, channel, numbers=numbers)
        self._alone = Layout(1, n_pols, True, 0, numbers=numbers)  # blocks may keep each channel's samples together
        n_bytes = header.integer("BLOCSIZE", self._layout.sample_bytes, MOST_BYTES)
        n, rest = divmod(n_bytes, self._layout.sample_bytes)
        if rest:
            refuse(file.path, f"BLOCSIZE={n_bytes} is not whole samples of {self._layout.sample_bytes} bytes")
        self._n_block, self._step = n, n - header.integer("OVERLAP", 0, n - 1, 0)
        self.overlap = n - self._step
        self._counts = self._is_counted()
        self._tick = self._ticks(header) if self._counts else Fraction(0)
        whole = math.gcd(self._step, self._tick.numerator) if self._tick.denominator == 1 else self._step
        self._packet = whole if whole <= MOST_PACKET else math.gcd(whole, MOST_PACKET)
        self._n_read = self._n_block // self._packet  # packets to read from a block
        rate = overrides.rate(partial(_rate, header))
        _check_rate(header, self._tick, rate, overrides, tell)
        if self._counts:
            self._offset = self._time_of(first)
        else:
            tell(one_line(f"{file.path}: its PKTIDX is 0 or missing: blocks are taken to follow one another"))
        step = self._step // self._packet
        blocks = BlockReader(file, first, step, self._slot_of, self._n_here)
        begin = self._begin(blocks, 1, rate / self._packet, step)
        info = SampleInfo(
            sample_bits=self._layout.sample_bits,
            n_pols=n_pols,
            sample_rate_hz=rate,
            packet=self._packet,
            n_samples=self._n_samples(begin),
            first_timestamp=self._offset + begin * self._packet,
            antenna=antenna_name(header, channel // n_each, n_antennas),
            centre_frequency_hz=_centre(header, channel, n_each),
            telescope=header.text("TELESCOP"),
            observer=header.text("OBSERVER"),
            polarisations=_polarisations(header) if n_pols == 2 else "",
        )
        self.info = settled(file.path, info, _start(header, self._tick, rate), overrides, tell)
        is_lower = "OBSBW" in header and header.number("OBSBW") < 0
        self.falls = f"OBSBW={header.text('OBSBW')}" if is_lower else ""

    def _put(self, frames: Frames, rows: np.ndarray, seen: np.ndarray, received: np.ndarray) -> None:
        of_blocks = zip(frames.slot.tolist(), frames.n_slots.tolist(), frames.payload.tolist(), strict=True)
        for slot, n, (data, n_before) in of_blocks:
            place = slot - self._order.begin
            new = place + np.flatnonzero(~seen[0, max(0, place) : place + n]) + max(0, -place)
            if len(new):
                low, high = int(new[0]), int(new[-1]) + 1
                first = (n_before + low - place) * self._packet
                layout, before = (self._layout, 0) if self._is_simple else (self._alone, self._layout.channel)
                some = rows[:, low:high].reshape(len(rows), -1)
                layout.read(self._file, data, before * self._n_block + first, some)
                seen[:, low:high] = received[:, low:high] = True

    def _n_here(self, block: Block) -> int:
        """Returns the number of a block's packets in the file now."""
        n_bytes = self._file.size() - block.data
        if block.end <= self._file.size():
            return self._n_read
        if self._is_simple:
            n = self._layout.whole(n_bytes)
        else:
            n = self._alone.whole(n_bytes) - self._layout.channel * self._n_block
        return max(0, min(n // self._packet, self._n_read))

    # ------------------------------------------------------------------ times
    def _is_counted(self) -> bool:
        """Returns whether PKTIDX is a time: it is there, and not 0 in each of the first blocks, of two or more."""
        found, blocks = list[str](), blocks_from(self._file, self._first)
        with suppress(UsageError):
            found += (block.header.text("PKTIDX").strip("0") for block in islice(blocks, MOST_ALIKE))
        return "PKTIDX" in self._first.header and (len(found) < 2 or any(found))

    def _slot_of(self, block: Block) -> int | None:
        """Returns the time of a block in packets since the first one; None if its header has no such time."""
        if not self._counts:
            return block.number * self._step // self._packet
        with suppress(UsageError):
            slot, rest = divmod(self._time_of(block) - self._offset, self._packet)
            return None if rest else slot
        return None

    def _time_of(self, block: Block) -> int:
        """Returns the sample that PKTIDX counts to. Raises UsageError when it is none."""
        most = checks.MOST_FIRST // max(1, math.ceil(self._tick))
        return int(block.header.integer("PKTIDX", 0, most) * self._tick)

    def _n_samples(self, begin: int) -> int | None:
        """Returns the number of samples from packet ``begin`` to the end of the file; None if it is not found.

        It goes through the last blocks, if all headers are as long as the first one, or through all of them.
        """
        guess = max(0, self._file.size() // self._first.end - 1 - self.most_early)
        for number in sorted({guess, 0}, reverse=True):
            end = begin
            with suppress(UsageError):
                first = block_at(self._file, number, number * self._first.end)
                for block in islice(blocks_from(self._file, first), MOST_HOPS):
                    n_here = self._n_here(block)
                    end = max(end, (self._slot_of(block) or 0) + n_here) if n_here else end
                if end > begin:
                    return (end - begin) * self._packet
        return None

    def _ticks(self, header: Header) -> Fraction:
        """Returns the number of samples in PKTIDX's unit."""
        if "PIPERBLK" in header:
            return Fraction(self._step, header.integer("PIPERBLK", 1, MOST_BYTES))
        return Fraction(header.integer("PKTSIZE", 1, MOST_BYTES), self._layout.sample_bytes)


read, read_joined = readers(GuppiSamples)


def _n_pols(header: Header) -> int:
    npol = header.integer("NPOL", 1, 4)
    if npol not in N_POLS:
        meaning = "two polarisations, or one of two parts" if npol == 2 else "nothing known"
        why = f"{header.where} has NPOL={npol}, which means {meaning}: give n_pols=1 or n_pols=2"
        raise LackingError(header.path, why, "n_pols", 2)
    return N_POLS[npol]


def _polarisations(header: Header) -> str:
    """Returns the names of two polarisations; "" if the header does not say them."""
    return next((names for names, of in FEEDS.items() if all(header.text(name) == str(of[name]) for name in of)), "")


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
        tick: samples in PKTIDX's unit; 0 if it counts nothing.
        rate: samples in a second.
    """
    if "SYNCTIME" in header and tick:
        text = header.text("SYNCTIME")
        return Start(header.number("SYNCTIME"), f"SYNCTIME={text}", step_of(text))
    if "STT_IMJD" not in header:
        return None
    step_s = max(step_of(header.text(name)) for name in ("STT_SMJD", "STT_OFFS"))
    time = _stated_start(header) - _n_before(header, tick) / Fraction(rate)
    return Start(time, f"STT_OFFS={header.text('STT_OFFS')}", step_s)


def _stated_start(header: Header) -> Fraction:
    """Returns the time of PKTSTART as STT_* say it, seconds since 1970."""
    day = unix_of_mjd(header.integer("STT_IMJD", 0, 1 << 20))
    return day + header.number("STT_SMJD", 0.0) + header.number("STT_OFFS", 0.0)


def _n_before(header: Header, tick: Fraction) -> Fraction:
    """Returns the number of samples before PKTSTART."""
    return header.integer("PKTSTART", 0, checks.MOST_TIME, 0) * tick


def _check_rate(header: Header, tick: Fraction, rate: float, overrides: HeaderOverrides, tell: Tell) -> None:
    """Raises UsageError for a given rate that the packet counter contradicts, if TBIN, SYNCTIME and STT_* agree."""
    has_all = all(name in header for name in ("TBIN", "SYNCTIME", "STT_IMJD", "PKTSTART"))
    if overrides.sample_rate_hz is None or not has_all or not (n := _n_before(header, tick)):
        return
    elapsed_s = _stated_start(header) - header.number("SYNCTIME")
    if abs(n * header.number("TBIN") - elapsed_s) < CLOCK_S <= abs(n / Fraction(rate) - elapsed_s):
        counted = f"PKTSTART={header.text('PKTSTART')} is {float(n / Fraction(rate)):.6g} s after SYNCTIME"
        own = f"STT_IMJD, STT_SMJD and STT_OFFS say {float(elapsed_s):.6g} s, as TBIN does"
        stated = f"sample_rate_hz={rate:.17g}, as it was given"
        contradicted(header.path, overrides, f"{stated}: {counted}, but {own}, {_rate(header):.17g} Hz", tell)
