"""A simulated digitiser that sends SPEAD, and its file, which docs/network-files.md describes."""

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Annotated

import numpy as np

from ...core import schema
from ...core.errors import UsageError
from ...system.setting import Setting, read_settings
from ..digitiser.digitised_signal import PacketMaker
from ..digitiser.digitiser_settings import DigitiserSettings
from ..digitiser.packet_faults import Sends
from ..files import checks
from ..files.reading import Tell
from ..files.toml import read_toml
from ..network.endpoints import Endpoint
from ..network.items import DIGITISER_HEADER_BYTES
from ..network.sample_outlet import TTL, SampleOutlet, damage
from ..run.counters import si
from ..run.threads import sleep_unless
from .served import Counts
from .stream_places import INTERFACE, MOST_FILE, TRANSPORTS, endpoint_lists

BLOCK_S = 0.01  # a block of samples, which is made at once, lasts about as long
MOST_BLOCK, BURST = 256, 8  # packets of a polarisation: the largest block, and those sent before the other's turn
AGAIN_S = 0.2  # pause between two tries to connect
AHEAD_S = 0.2  # the first sample lies so far in the future
N_SAMPLES = checks.integer(1, checks.MOST_TIME)
SOON_S = 1e-3  # a packet that is due within this time is sent at once


@dataclass(frozen=True, kw_only=True)
class DsimPlace:
    """The table [to] of a digitiser's file."""

    endpoints: Annotated[
        tuple[tuple[Endpoint, ...], ...],
        Setting("An address for each polarisation, or several that are used in turn.", endpoint_lists),
    ]
    transport: Annotated[str, Setting("`udp` or `tcp`.", TRANSPORTS)] = "udp"
    interface: Annotated[str, INTERFACE] = ""
    ttl: Annotated[int, Setting("Time to live of multicast.", checks.integer(0, 255))] = TTL


@dataclass(frozen=True, kw_only=True)
class DsimSettings(DigitiserSettings):
    """The settings in the file of a digitiser."""

    n_samples: Annotated[int | None, Setting("Samples to send of each polarisation.", N_SAMPLES, "without end")] = None
    speed: Annotated[float, Setting("A multiple of real time, or 0: as fast as possible.", schema.as_amount)] = 1.0
    to: Annotated[DsimPlace, Setting("Where samples go, as below.", DsimPlace)]
    begins_now: bool  # whether the first sample gets its time from the clock

    def __post_init__(self) -> None:
        super().__post_init__()
        n, n_pols = len(self.to.endpoints), len(self.signals)
        if n != n_pols:
            raise UsageError(f"[to] endpoints has {n} entries: give one for each of the {n_pols} signals")


def dsim_settings(path: Path) -> DsimSettings:
    """Returns the settings in a digitiser's file. Raises UsageError for a wrong one, in one line."""
    content = read_toml(path, MOST_FILE)
    return read_settings(path, "it", DsimSettings, content, begins_now="first_timestamp" not in content)


@dataclass
class DsimCounts:
    """Counts of a digitiser's packets, over all polarisations."""

    first_timestamp: int = 0
    samples: int = 0  # samples of each polarisation, including lost ones
    sent: int = 0
    failed: int = 0  # packets that could not leave
    lost: int = 0  # packets that were lost on purpose; the next three are faults on purpose, too
    repeated: int = 0
    exchanged: int = 0
    damaged: int = 0
    behind_s: float = 0.0  # how late the newest packets left


@dataclass
class Dsim:
    """A digitiser that runs once, until all samples are sent or ``stop`` is called by another thread or a handler."""

    settings: DsimSettings
    tell: Tell
    counts: DsimCounts = field(default_factory=DsimCounts)
    asked: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """Stop sending."""
        self.asked.set()

    def run(self) -> None:
        """Send the samples when they are due.

        Raises:
            UsageError: when nothing can be sent to an address.
        """
        maker, to = self.settings.packets(self.tell), self.settings.to
        outlet = SampleOutlet(self.settings.info(), to.transport, to.endpoints, to.interface, to.ttl)
        try:
            self._wait_for_connections(outlet)
            self._send_all(outlet, maker, self._at_now())
        finally:
            outlet.close()

    def _send_all(self, outlet: SampleOutlet, maker: PacketMaker, settings: DigitiserSettings) -> None:
        packet, n_pols = settings.packet, maker.n_pols
        first = self.counts.first_timestamp = settings.first_timestamp
        n_packets = None if self.settings.n_samples is None else self.settings.n_samples // packet
        rate = settings.sample_rate_hz * self.settings.speed / packet  # packets a second; 0: no limit
        at_once = int(min(MOST_BLOCK, max(1, BLOCK_S * rate))) if rate else MOST_BLOCK
        rng = np.random.default_rng(settings.faults.seed)
        begin, began = 0, self._began(settings)
        while not self.asked.is_set() and (n_packets is None or begin < n_packets):
            n = at_once if n_packets is None else min(at_once, n_packets - begin)
            before = min(begin, 1)  # the last packet of the block before may be sent after the first of this one
            lowest = begin - before
            packed, saturated = maker.read(first + lowest * packet, (before + n) * packet)
            times = first + packet * np.arange(lowest, begin + n)
            planned = []
            for pol in range(n_pols):
                packets = outlet.packets(times, pol, packed[pol].reshape(len(times), -1), saturated[pol])
                sends = settings.faults.sends(begin, n, stream=pol, is_last=begin + n == n_packets)
                self._count(sends)
                planned.append((self._sent(packets[sends.numbers - lowest], sends.is_damaged, rng), sends.numbers))
            self._send(outlet, planned, began + begin / rate if rate else None, rate)
            begin += n
            self.counts.samples = begin * packet
            self.counts.sent, self.counts.failed = outlet.n_sent, outlet.n_failed

    def _wait_for_connections(self, outlet: SampleOutlet) -> None:
        has_told = False
        while (lacking := outlet.not_connected) and not self.asked.is_set():
            if not has_told:
                self.tell(f"waiting for {', '.join(lacking)}, where nobody listens yet")
            has_told = True
            sleep_unless(self.asked, AGAIN_S)

    def _at_now(self) -> DigitiserSettings:
        """Returns the settings with the time of the first sample, from the file or else from the clock."""
        settings = self.settings
        if not settings.begins_now:
            return settings
        if settings.sync_time_unix is None:
            return replace(settings, sync_time_unix=Fraction(time.time()))
        samples = (Fraction(time.time() + AHEAD_S) - settings.sync_time_unix) * Fraction(settings.sample_rate_hz)
        return replace(settings, first_timestamp=ceil(samples / settings.packet) * settings.packet)

    def _began(self, settings: DigitiserSettings) -> float:
        """Returns the time on the monotonic clock at which the first sample is due.

        A sample of the file's own time that is overdue is due now: the stream stays late, and does not hurry for ever.
        """
        now, clock = time.monotonic(), Fraction(time.time())
        if settings.sync_time_unix is None:
            return now
        due = settings.sync_time_unix + Fraction(settings.first_timestamp) / Fraction(settings.sample_rate_hz)
        wait_s = float(due - clock)
        return now + (wait_s if self.settings.begins_now else max(wait_s, 0.0))

    def _sent(self, packets: np.ndarray, is_damaged: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Returns the packets, some of them damaged on purpose. With tcp only samples are damaged, not headers."""
        if is_damaged.any():
            some = packets[is_damaged]
            damage(some, rng, DIGITISER_HEADER_BYTES if self.settings.to.transport == "tcp" else 0)
            packets[is_damaged] = some
        return packets

    def _send(
        self,
        outlet: SampleOutlet,
        planned: Sequence[tuple[np.ndarray, np.ndarray]],
        due: float | None,
        rate: float,
    ) -> None:
        """Send the packets of all polarisations when they are due. The polarisations take turns after BURST packets.

        ``due``: the first packet's time on the monotonic clock; None sends at once. ``rate``: packets a second.
        """
        for place in range(0, max(len(numbers) for _, numbers in planned), BURST):
            if due is not None:
                wait = due + place / rate - time.monotonic()
                if wait > SOON_S:
                    sleep_unless(self.asked, wait)
                self.counts.behind_s = max(0.0, -wait)
            for pol, (packets, numbers) in enumerate(planned):
                here = slice(place, place + BURST)
                outlet.send(pol, packets[here], numbers[here])

    def _count(self, sends: Sends) -> None:
        for name in ("lost", "repeated", "exchanged", "damaged"):
            setattr(self.counts, name, getattr(self.counts, name) + getattr(sends, name))

    def snapshot(self) -> Counts:
        """Returns all counts."""
        return asdict(self.counts)

    def line(self) -> str:
        """Returns the counts as one line of text."""
        counts = self.counts
        parts = [f"{si(counts.samples)}samples of each polarisation", f"{counts.sent} packets"]
        rest = ("failed", "lost", "repeated", "exchanged", "damaged")
        parts += [f"{getattr(counts, name)} {name}" for name in rest if getattr(counts, name)]
        if counts.behind_s > BLOCK_S:
            parts.append(f"{si(counts.behind_s)}s late")
        return ", ".join(parts)
