"""Voltages as GUPPI RAW: each heap is a block, [channel, spectrum, polarisation]. Missing heaps are missing blocks.

PKTIDX counts heaps from the first one, whose time is in STT_IMJD, STT_SMJD and STT_OFFS. Channels rise with frequency.
Voltages of 4 bits have the real part in the high nibble.
"""

from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np

from ....core.errors import one_line
from ...streams.voltages import REAL_LOW, VoltageInfo
from ..appended_file import AppendedFile
from ..packing import nibbles_changed
from ..reading import Tell, refuse
from .guppi import FEEDS
from .interface import VOLTAGES

suffixes, holds, help = (".raw",), VOLTAGES, "GUPPI RAW"
whole_heaps = True  # the format cannot mark single spectra of a heap as missing
CARD, MOST_TEXT = 80, 60  # characters
DIGITS = Context(prec=30)


def write(path: Path, info: VoltageInfo, tell: Tell) -> "GuppiVoltages":
    """Makes a new file.

    Raises:
        UsageError: when it exists or cannot be made, or the voltages' time is not known.
    """
    if info.samples.sync_time_unix is None:
        refuse(path, "GUPPI RAW states its start: give sync_time_unix of the samples")
    if info.centre_frequency_hz is None:
        tell(one_line(f"{path}: it has no OBSFREQ, since the samples' centre_frequency_hz is not known"))
    return GuppiVoltages(path, info)


class GuppiVoltages:
    """A sink of voltages: a GUPPI RAW file, which can be read while it grows."""

    def __init__(self, path: Path, info: VoltageInfo) -> None:
        self.info, self._file = info, AppendedFile(path)
        self._first: int | None = None  # time of the first heap
        self._cards = ""  # the cards of all headers, without PKTIDX

    def write(self, timestamps: np.ndarray, voltages: np.ndarray, saturated: np.ndarray, present: np.ndarray) -> None:
        """Append heaps; see ``VoltageSink``."""
        if self._first is None and len(timestamps):
            self._first = int(timestamps[0])
            self._cards = header_cards(self.info, self._first)
        for time, heap in zip(timestamps.tolist(), voltages, strict=True):
            assert self._first is not None
            number = (time - self._first) // self.info.heap_samples
            header = f"{self._cards}{card('PKTIDX', number)}{'END':<{CARD}}".encode()
            is_low = self.info.bits == 4 and self.info.nibbles == REAL_LOW
            self._file.append(header, nibbles_changed(heap) if is_low else heap)

    def close(self) -> None:
        self._file.close()


def header_cards(info: VoltageInfo, first: int) -> str:
    """Returns a header's cards, without PKTIDX and END, for voltages whose first heap has the time ``first``."""
    samples = info.samples
    assert samples.sync_time_unix is not None
    rate = Fraction(samples.sample_rate_hz)
    day, second = divmod(samples.sync_time_unix + first / rate, 86400)
    block = info.n_channels * info.spectra_per_heap * info.n_pols * 2 * info.bits // 8
    width_mhz = rate / info.step / 10**6
    cards: dict[str, object] = {
        "BACKEND": "GUPPI",
        "TELESCOP": samples.antenna,
        "OBS_MODE": "RAW",
        "OBSNCHAN": info.n_channels,
        "NPOL": 4 if info.n_pols == 2 else 1,
        "NBITS": info.bits,
        "OBSBW": info.n_channels * width_mhz,
        "CHAN_BW": width_mhz,
        "TBIN": info.step / rate,
        "STT_IMJD": 40587 + day,
        "STT_SMJD": int(second),
        "STT_OFFS": second % 1,
        "BLOCSIZE": block,
        "OVERLAP": 0,
        "PKTFMT": "1SFA",
        "PKTSIZE": block,
        "PIPERBLK": 1,
        "POL_TYPE": "AABBCRCI" if info.n_pols == 2 else "AA",
    }
    if info.centre_frequency_hz is not None:  # channel n_channels / 2 has it; the band's centre is half a channel lower
        cards["OBSFREQ"] = Fraction(info.centre_frequency_hz) / 10**6 - width_mhz / 2
    cards |= FEEDS.get(samples.polarisations, {})
    return "".join(card(name, value) for name, value in cards.items())


def card(name: str, value: object) -> str:
    """Returns a card of 80 characters. The value is text, an integer, or a fraction, as a decimal number."""
    if isinstance(value, Fraction):
        quotient = DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
        text = str(quotient.normalize(DIGITS)).replace("E+", "E")
        text = text if "." in text or "E" in text else f"{text}.0"
    elif isinstance(value, str):
        clean = "".join(each if each.isascii() and each.isprintable() else "?" for each in value)[:MOST_TEXT]
        text = "'{:<8}'".format(clean.replace("'", "''"))
    else:
        text = str(value)
    return f"{name:<8}= {text:>20}".ljust(CARD) if not isinstance(value, str) else f"{name:<8}= {text}".ljust(CARD)
