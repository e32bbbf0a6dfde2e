"""The counters that an engine keeps while it runs."""

import threading
import time
from dataclasses import dataclass, field
from math import log10

import numpy as np

from ..streams.samples import Samples


@dataclass
class FCounters:
    """The counts of one antenna and band. Several threads add to them, each with ``lock``."""

    sample_bits: int
    n_pols: int
    samples_in: int = 0  # samples of each polarisation, missing ones included
    packets_missing: int = 0
    chunks_dropped: int = 0  # chunks of a live source that found no free buffer
    heaps_out: int = 0
    heaps_missing: int = 0  # heaps amid the stream that were left out, because their samples did not come
    spectra_missing: int = 0  # spectra amid the stream that lack samples, over all polarisations
    spectra_beyond: int = 0  # spectra that were left out, since delays differ by more than max_delay_diff
    heaps_dropped: int = 0  # heaps of a live source whose sink was too slow, or has failed
    sink_error: str = ""  # why the sink of a live source has failed
    saturated: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # [n_pols]: voltages that were clipped
    power: np.ndarray = field(default_factory=lambda: np.zeros(0))  # [n_pols]: sums of squares
    power_samples: int = 0  # samples of each polarisation that ``power`` is the sum of
    began: float = field(default_factory=time.monotonic)
    latency_s: float = 0.0  # the longest time from reading a chunk to writing its heaps
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.saturated = np.zeros(self.n_pols, np.int64)
        self.power = np.zeros(self.n_pols)

    def took(self, samples: Samples, packet: int) -> None:
        """Count a chunk of packets from the source."""
        with self.lock:
            self.samples_in += samples.received.shape[1] * packet
            self.packets_missing += int(samples.received.size - np.count_nonzero(samples.received))

    def dropped(self) -> None:
        """Count a chunk that found no free buffer."""
        with self.lock:
            self.chunks_dropped += 1

    @property
    def dbfs(self) -> list[float]:
        """Returns the power of each polarisation, in dB relative to a sine of full scale."""
        full = 2.0 ** (2 * self.sample_bits - 3)  # the mean square of a sine of amplitude 2^(bits - 1)
        mean = self.power / max(1, self.power_samples)
        return [10 * log10(p / full) if p > 0 else float("-inf") for p in mean.tolist()]

    def rate(self) -> float:
        """Returns the mean rate so far, in samples per second of each polarisation."""
        return self.samples_in / max(time.monotonic() - self.began, 1e-9)

    def line(self) -> str:
        """Returns the counts as one line of text."""
        parts = [f"{si(self.rate())}S/s", f"{self.heaps_out} heaps"]
        parts += if_any(self.heaps_missing, "missing") + if_any(self.spectra_missing, "spectra missing")
        parts += if_any(self.spectra_beyond, "spectra left out, whose delays differ by more than max_delay_diff")
        parts += dropped_at_sink(self.heaps_dropped, "heaps", self.sink_error)
        parts += if_any(self.packets_missing, "packets lost") + if_any(self.chunks_dropped, "chunks dropped")
        if self.power.any():
            parts.append("power " + " ".join(f"{d:.1f}" for d in self.dbfs) + " dBFS")
        if self.saturated.any():
            parts.append(f"saturated {' '.join(map(str, self.saturated.tolist()))}")
        return ", ".join(parts)


@dataclass
class XCounters:
    """The counts of an X-engine."""

    batches_in: int = 0
    heaps_missing: int = 0  # heaps that are missing between the first and the last one of their antenna
    chunks_dropped: int = 0  # chunks of a live source that came while no buffer was free
    heaps_late: int = 0  # heaps that came after the others had gone on without their antenna
    dumps_out: int = 0  # dumps with data of at least one baseline
    dumps_empty: int = 0  # dumps with heaps, but without data of any baseline
    weight: int = 0  # spectra in all products of all dumps
    weight_whole: int = 0  # spectra in all products of all dumps if nothing were missing
    dumps_dropped: int = 0  # dumps of a live source whose sink was too slow, or has failed
    sink_error: str = ""  # why the sink of a live source has failed
    dumps_skipped: int = 0  # dumps in gaps of all antennas, which are not written
    saturated: int = 0  # visibilities that were clipped to 32 bits
    began: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def dropped(self) -> None:
        """Count a chunk that found no free buffer."""
        with self.lock:
            self.chunks_dropped += 1

    def line(self) -> str:
        """Returns the counts as one line of text."""
        rate = self.batches_in / max(time.monotonic() - self.began, 1e-9)
        parts = [f"{si(rate)}batches/s", f"{self.dumps_out} dumps"]
        parts += if_any(self.dumps_empty, "without a good antenna") + if_any(self.dumps_skipped, "not there, in gaps")
        parts += dropped_at_sink(self.dumps_dropped, "dumps", self.sink_error)
        parts += if_any(self.heaps_missing, "heaps missing") + if_any(self.heaps_late, "heaps too late")
        parts += if_any(self.chunks_dropped, "chunks dropped")
        if self.saturated:
            parts.append(f"saturated {self.saturated}")
        return ", ".join(parts)


def if_any(n: int, what: str) -> list[str]:
    """Returns a count as a part of a line; none if it is 0."""
    return [f"{n} {what}"] * (n > 0)


def dropped_at_sink(n: int, what: str, error: str) -> list[str]:
    """Returns parts of a line about data that a live source's sink did not take."""
    return if_any(n, f"{what} dropped") + [f"the sink has failed: {error}"] * (error != "")


def si(value: float) -> str:
    """Returns a number with three digits and a prefix: "19.8 G"."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g} "
