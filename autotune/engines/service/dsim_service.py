"""A simulated digitiser that sends SPEAD. Its file has the members of ``digitiser_settings``, and these:

speed = 1.0          # times real time; 0 is as fast as possible
n_samples = 1048576  # samples of each polarisation; without it, it runs until it is stopped

[to]
endpoints = ["239.1.1.1+7:7148", "239.1.1.9+7:7148"]   # an entry for each polarisation; its addresses take turns
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np

from ...core import schema
from ..digitiser.digitised_signal import PacketMaker
from ..digitiser.digitiser_settings import DigitiserSettings, digitiser_settings
from ..digitiser.packet_faults import Sends
from ..files import checks
from ..files.reading import Tell, refuse
from ..files.toml import checked, read_toml
from ..network.endpoints import Endpoint
from ..network.items import DIGITISER_HEADER_BYTES
from ..network.sample_outlet import SampleOutlet, damage
from ..run.counters import si
from .served import Counts
from .stream_places import MOST_FILE, TRANSPORT, endpoints_of, later, those_in, words

BLOCK_S = 0.01  # a block of samples, which is made at once, lasts about as long
MOST_BLOCK, BURST = 256, 8  # packets of a polarisation: the largest block, and those sent before the other's turn
AGAIN_S = 0.2  # pause between two tries to connect
AHEAD_S = 0.2  # the first sample lies so far in the future
SOON_S = 1e-3  # a packet that is due within this time is sent at once
TO = schema.members_of(
    {"endpoints": words, "transport": TRANSPORT, "interface": schema.as_word, "ttl": checks.integer(0, 255)},
    ("endpoints",),
)


@dataclass(frozen=True)
class DsimSettings:
    """The settings in the file of a digitiser."""

    digitiser: DigitiserSettings
    endpoints: tuple[tuple[Endpoint, ...], ...]  # the addresses of each polarisation
    transport: str = "udp"
    interface: str = ""
    ttl: int = 4
    speed: float = 1.0
    n_samples: int | None = None
    begins_now: bool = True  # whether the first sample gets its time from the clock


def dsim_settings(path: Path) -> DsimSettings:
    """Returns the settings in a digitiser's file.

    Raises:
        UsageError: for a file that cannot be read or is wrong, in one line with the table and the member.
    """
    content = read_toml(path, MOST_FILE)
    own = {name: content.pop(name) for name in ("to", "speed", "n_samples") if name in content}
    digitiser = digitiser_settings(path, content)
    parts = {"speed": schema.as_amount, "n_samples": checks.integer(1, checks.MOST_TIME), "to": later}
    settings = checked(path, "it", schema.members_of(parts, ("to",)), own)
    to = checked(path, "[to]", TO, settings["to"])
    n_pols = len(digitiser.signals)
    if len(to["endpoints"]) != n_pols:
        refuse(path, f"[to] endpoints has {len(to['endpoints'])} entries: give one for each of the {n_pols} signals")
    endpoints = tuple(endpoints_of(path, [text]) for text in to["endpoints"])
    sending = those_in(to, "transport", "interface", "ttl") | those_in(settings, "speed", "n_samples")
    return DsimSettings(digitiser, endpoints, begins_now="first_timestamp" not in content, **sending)


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
        info = self.settings.digitiser.info()
        maker = self.settings.digitiser.packets(self.tell)
        outlet = SampleOutlet(
            info, self.settings.transport, self.settings.endpoints, self.settings.interface, self.settings.ttl
        )
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
            self.asked.wait(AGAIN_S)

    def _at_now(self) -> DigitiserSettings:
        """Returns the settings with the time of the first sample, from the file or else from the clock."""
        settings = self.settings.digitiser
        if not self.settings.begins_now:
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
            damage(some, rng, DIGITISER_HEADER_BYTES if self.settings.transport == "tcp" else 0)
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
                    self.asked.wait(wait)
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
