"""Packed samples of one period. They are made once, and their packets are sent again and again."""

from fractions import Fraction

import numpy as np

from ...core.errors import UsageError
from ..files.reading import Tell, untold
from .digitised_signal import DigitisedSignal, PacketMaker

MOST_PERIOD = 1 << 28  # samples: up to 0.5 GiB a polarisation
AT_ONCE = 1 << 20  # samples that are packed at once, about


class RepeatedSignal(PacketMaker):
    """The nearest signal to a digitised one that repeats after a period.

    Tones and combs get the nearest frequency of which the period has whole cycles, and noise and dither repeat what
    they are from time 0 on. Time 0 begins a period.

    ``packed``: uint8 [n_pols, n_packets, packet sample_bits / 8], and ``saturated``: int64 [n_pols, n_packets], of one
    period, both read-only: what is sent at time t is packet t // packet % n_packets.

    Args:
        period: samples; whole packets.
        sample_rate_hz: names the frequencies that are told.
        tell: takes a line for each frequency that is rounded.

    Raises:
        UsageError: for a period that is not one of whole packets, or is too long.
    """

    def __init__(self, exact: DigitisedSignal, period: int, sample_rate_hz: float, tell: Tell = untold) -> None:
        packet = exact.packet
        if not packet <= period <= MOST_PERIOD or period % packet:
            most = MOST_PERIOD // packet * packet
            raise UsageError(f"period={period} samples, must be a multiple of packet={packet}, {packet} to {most}")
        lines: dict[str, None] = {}  # each once, in order

        def rounded(name: str, frequency: Fraction, nearest: Fraction) -> None:
            was, now = (f"{float(each * Fraction(sample_rate_hz)):.12g}" for each in (frequency, nearest))
            lines[f"the {name} of {was} Hz is made at {now} Hz, which repeats every {period} samples"] = None

        signals = [signal.periodic(period, rounded) for signal in exact.signals]
        for line in lines:
            tell(line)
        self.n_pols, self.sample_bits, self.packet, self.period = exact.n_pols, exact.sample_bits, packet, period
        self.packed, self.saturated = _one_period(
            DigitisedSignal(signals, exact.sample_bits, packet, exact.dither), period
        )

    def _packets(self, begin: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        n_packets = self.period // self.packet
        places = (begin // self.packet + np.arange(n // self.packet)) % n_packets
        return self.packed[:, places].reshape(self.n_pols, -1), self.saturated[:, places]


def _one_period(signal: DigitisedSignal, period: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the packets from time 0 on, as ``RepeatedSignal`` has them."""
    n_packets, n_bytes = period // signal.packet, signal.packet * signal.sample_bits // 8
    packed = np.empty((signal.n_pols, n_packets, n_bytes), np.uint8)
    saturated = np.empty((signal.n_pols, n_packets), np.int64)
    step = max(1, AT_ONCE // signal.packet)
    for first in range(0, n_packets, step):
        here = slice(first, min(first + step, n_packets))
        n = (here.stop - first) * signal.packet
        rows, saturated[:, here] = signal.read(first * signal.packet, n)
        packed[:, here] = rows.reshape(signal.n_pols, -1, n_bytes)
    packed.flags.writeable = saturated.flags.writeable = False
    return packed, saturated
