"""The tables [from] and [to] of configuration files: the sources and destinations of an engine's streams."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated

from ...core import schema
from ...core.errors import UsageError
from ...system.limits import Range
from ...system.setting import Setting, shared
from ..files import checks
from ..network.endpoints import Endpoint, endpoints
from ..network.ibverbs import IBV
from ..network.receiver import PCAP, Listening
from ..streams.voltages import REAL_HIGH, REAL_LOW

PAYLOAD = Range(64, 1 << 15)
TRANSPORTS = ("udp", "tcp")
SENT_BY = (*TRANSPORTS, IBV)
LIVE = "true by `udp` and `ibv`"
MOST_FILE = 1 << 20  # bytes
LONG_PATIENCE_S = 60.0  # a receiver by TCP may pause so long if the sender can wait
CORES = schema.sequence_of(checks.integer(0, 1 << 12))
ENGINE_CORES = Setting(
    "`reads`, `returns`, `compute`, `writes`: lists of [cores of the engine's threads]"
    "(engines-python.md#your-own-input-and-output).",
    schema.members_of({name: CORES for name in ("reads", "returns", "compute", "writes")}),
    "any",
)
INTERFACE = Setting("Address of the interface for multicast and for `ibv`.", schema.as_word, "the system's")
NIBBLES = Setting("Position of the real part at 4 bits.", (REAL_LOW, REAL_HIGH), f"`{REAL_HIGH}`")
KEPT = Setting(
    "A file of what outlives the engine: gains that were measured or set, delays that were set, and the time of a "
    "digitiser that was synchronised anew.",
    schema.as_word,
    "x.kept.json beside x.toml",
)
EngineCores = Mapping[str, tuple[int, ...]]  # cores by the thread's name


def endpoint_lists(value: object) -> tuple[tuple[Endpoint, ...], ...]:
    """Checks for a text, or a list of texts, each of which stands for one or several addresses."""
    try:
        return tuple(map(endpoints, schema.as_words(value)))
    except UsageError as error:
        raise schema.Unsound(str(error)) from None


def _all_endpoints(value: object) -> tuple[Endpoint, ...]:
    return tuple(chain.from_iterable(endpoint_lists(value)))


def nibbles_of(given: str, bits: int, default: str = REAL_HIGH) -> str:
    """Returns the nibble that holds the real part at 4 bits: the file's choice, or else ``default``."""
    return given or (default if bits == 4 else REAL_LOW)


@dataclass(frozen=True, kw_only=True)
class ListeningPlace:
    """A table [from] of a file. With tcp the sender waits, unless ``live`` is true. With pcap ``listen`` has files."""

    path: Path  # the configuration file's
    listen: Annotated[
        tuple[str, ...], Setting("Addresses, each entry with a thread of its own; files for `pcap`.", schema.as_words)
    ]
    transport: Annotated[
        str,
        Setting(
            "`udp`, `tcp`, `ibv` (UDP through a card with ibverbs) or `pcap` (a file from tcpdump, read to its end as "
            "fast as possible).",
            (*SENT_BY, PCAP),
        ),
    ] = "udp"
    live: Annotated[
        bool | None,
        Setting("True: an engine that is too slow loses samples. False: the sender waits.", schema.as_flag, LIVE),
    ] = None
    interface: Annotated[str, INTERFACE] = ""
    cores: Annotated[tuple[int, ...], Setting("A core for the thread of each entry.", CORES, "any")] = ()

    def __post_init__(self) -> None:
        if self.transport == PCAP and self.live:
            raise UsageError("has live = true, but files of packets are not live")
        self.listening  # noqa: B018  # a wrong address is refused at once

    @cached_property
    def listening(self) -> Listening:
        """Returns the settings of the receiver. Raises UsageError for a wrong address."""
        files = [(self.path.parent / text,) for text in self.listen]
        waits = self.transport not in ("udp", IBV) if self.live is None else not self.live
        members = files if self.transport == PCAP else [endpoints(text) for text in self.listen]
        return Listening(members, is_lossless=waits, **shared(self, Listening))


@dataclass(frozen=True, kw_only=True)
class SendingPlace:
    """A table [[to]] of a file: the destinations of one stream, which are addresses, a file, or both."""

    endpoints: Annotated[tuple[Endpoint, ...], Setting("The addresses to send to.", _all_endpoints, "none")] = ()
    file: Annotated[
        Path | None, Setting("A new file, HDF5 and others by [its name](engines-files.md).", schema.as_word)
    ] = None
    transport: Annotated[str, Setting("`udp`, `tcp`, or `ibv` (multicast only).", SENT_BY)] = "udp"
    interface: Annotated[str, INTERFACE] = ""
    payload: Annotated[
        int | None, Setting("Bytes of payload in a packet, within the MTU.", PAYLOAD, "8192, or what the networks take")
    ] = None
    paced: Annotated[bool, Setting("Packets of a live engine are spread over time.", schema.as_flag, "true")] = True
    cores: Annotated[tuple[int, ...], Setting("Cores of the threads that send.", CORES, "any")] = ()
