"""The tables [from] and [to] of configuration files: the sources and destinations of an engine's streams."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core import schema
from ...core.errors import UsageError
from ..files import checks
from ..files.reading import refuse
from ..files.toml import checked
from ..network.endpoints import Endpoint, endpoints
from ..network.ibverbs import IBV
from ..network.receiver import PCAP, Listening
from ..streams.voltages import REAL_HIGH, REAL_LOW

TRANSPORTS = ("udp", "tcp")
MOST_FILE = 1 << 20  # bytes
NIBBLES = schema.one_of((REAL_LOW, REAL_HIGH))
LONG_PATIENCE_S = 60.0  # a receiver by TCP may pause so long if the sender can wait
MOST_CORE = 1 << 12
TRANSPORT = schema.one_of(TRANSPORTS)
CORES = schema.sequence_of(checks.integer(0, MOST_CORE))


def words(value: object) -> tuple[str, ...]:
    """Checks for a text or a list of texts."""
    if isinstance(value, str):
        return (schema.as_word(value),)
    texts = schema.sequence_of(schema.as_word)(value)
    if not texts:
        raise schema.Unsound("is empty, must be an address or a list of addresses")
    return tuple(texts)


ENGINE_CORES = schema.members_of({name: CORES for name in ("reads", "returns", "compute", "writes")})
FROM = schema.members_of(
    {
        "listen": words,
        "transport": schema.one_of((*TRANSPORTS, IBV, PCAP)),
        "interface": schema.as_word,
        "cores": CORES,
        "live": schema.as_flag,
    },
    ("listen",),
)
# These members of a table [[to]] say where and how heaps are sent.
SENDING: Mapping[str, schema.Check] = {
    "endpoints": words,
    "transport": schema.one_of((*TRANSPORTS, IBV)),
    "interface": schema.as_word,
    "paced": schema.as_flag,
    "cores": CORES,
    "file": schema.as_word,
}


def nibbles_of(table: Mapping[str, Any], default: str = REAL_HIGH) -> str:
    """Returns the nibble that holds the real part at 4 bits: the table's choice, or else ``default``."""
    return str(table.get("nibbles", default if table.get("bits") == 4 else REAL_LOW))


def later(value: object) -> object:
    """Accepts any value, since the checks of its table follow later."""
    return value


def listening_places(path: Path, content: object) -> Listening:
    """Returns the places in a table [from]. With tcp the sender waits, unless ``live`` is true.

    With pcap ``listen`` has paths of files.

    Raises:
        UsageError: for a wrong table or address; the text names the file.
    """
    table = checked(path, "[from]", FROM, content)
    transport = table.get("transport", "udp")
    if transport == PCAP and table.get("live"):
        refuse(path, "[from] has live = true, but files of packets are not live")
    members: list[tuple[Endpoint, ...] | tuple[Path]] = [
        (path_beside(path, text),) if transport == PCAP else endpoints_of(path, [text]) for text in table["listen"]
    ]
    waits = not table.get("live", transport in ("udp", IBV))
    return Listening(members, transport, is_lossless=waits, **those_in(table, "interface", "cores"))


@dataclass(frozen=True)
class SendingPlace:
    """A table [[to]] of a file: the destinations of one stream, which are addresses, a file, or both."""

    endpoints: tuple[Endpoint, ...]
    file: Path | None
    transport: str = "udp"
    interface: str = ""
    paced: bool = True
    cores: tuple[int, ...] = ()


def sending_place(path: Path, table: Mapping[str, Any]) -> SendingPlace:
    """Returns the destinations in a table [[to]], which ``SENDING`` has checked. Raises UsageError as endpoints_of."""
    file = path_beside(path, table["file"]) if "file" in table else None
    rest = those_in(table, "transport", "interface", "paced", "cores")
    return SendingPlace(endpoints_of(path, table.get("endpoints", ())), file, **rest)


def endpoints_of(path: Path, texts: Sequence[str]) -> tuple[Endpoint, ...]:
    """Returns the addresses in all texts, in their order. Raises UsageError that names the file."""
    try:
        return tuple(each for text in texts for each in endpoints(text))
    except UsageError as error:
        refuse(path, str(error))


def those_in(table: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Returns the members of a table with these names, as far as they are there; others have their defaults."""
    return {name: table[name] for name in names if name in table}


def path_beside(path: Path, name: str) -> Path:
    """Returns the path ``name`` of a configuration file. A relative path begins at the file's folder."""
    return path.parent / name


def one_or_more(path: Path, content: Mapping[str, Any], name: str, check: schema.Check) -> list[dict[str, Any]]:
    """Returns the tables [[name]] of a file, or the single table [name].

    Raises:
        UsageError: when there is no table, or one is wrong, in one line with the member.
    """
    member = content.get(name)
    some = member if isinstance(member, list) else [member]
    if member is None or not some:
        refuse(path, f"it has no [[{name}]]: add one that says where the results go")
    names = [f"[[{name}]] {place}" if len(some) > 1 else f"[{name}]" for place in range(1, len(some) + 1)]
    return [checked(path, text, check, each) for text, each in zip(names, some, strict=True)]
