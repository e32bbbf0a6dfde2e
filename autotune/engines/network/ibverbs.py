"""UDP by ibverbs: the network card moves packets between the wire and this process's memory, past the kernel.

It needs a suitable card, such as one of the ConnectX series, the libraries of rdma-core, and the capability
CAP_NET_RAW. Addresses are IPv4, packets have at most 9200 bytes, and packets are sent to multicast only.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path

import spead2
import spead2.recv
import spead2.send

from ...core.errors import UsageError
from .endpoints import Endpoint

IBV = "ibv"  # the transport's name
LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1")
CARDS = Path("/sys/class/infiniband")


def add_ibv_reader(stream: spead2.recv.ChunkStreamGroupMember, where: Sequence[Endpoint], interface: str) -> None:
    """Makes a stream receive from some addresses, by the card with the address ``interface``.

    Raises:
        UsageError: when the machine or the card does not do it; says what is missing.
    """
    try:
        check_ibverbs(interface)
        config = spead2.recv.UdpIbvConfig(endpoints=_pairs(where), interface_address=interface)
        stream.add_udp_ibv_reader(config)
    except (RuntimeError, OSError, ValueError) as error:
        raise UsageError(f"nothing can be received at {_text(where)} by {IBV}: {error}") from error


def ibv_stream(
    pool: spead2.ThreadPool, to: Sequence[Endpoint], config: spead2.send.StreamConfig, interface: str, ttl: int
) -> spead2.send.UdpIbvStream:
    """Returns a stream to some addresses, by the card with the address ``interface``.

    Raises:
        UsageError: when the machine or the card does not do it; says what is missing.
    """
    try:
        check_ibverbs(interface)
        settings = spead2.send.UdpIbvConfig(endpoints=_pairs(to), interface_address=interface, ttl=ttl)
        return spead2.send.UdpIbvStream(pool, config, settings)
    except (RuntimeError, OSError, ValueError) as error:
        raise UsageError(f"nothing can be sent to {_text(to)} by {IBV}: {error}") from error


def check_ibverbs(interface: str) -> None:
    """Raises OSError for the first missing part: the interface's address, ibverbs in spead2, a library, or a card."""
    if not interface:
        raise OSError("it needs an interface, the address of the card")
    if not hasattr(spead2.recv, "UdpIbvConfig"):
        raise OSError("spead2 was built without ibverbs here")
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError:
            raise OSError(f"{name} of rdma-core is not installed") from None
    if not CARDS.is_dir() or not any(CARDS.iterdir()):
        raise OSError(f"there is no card with ibverbs in {CARDS}")


def _pairs(some: Sequence[Endpoint]) -> list[tuple[str, int]]:
    return [(each.host, each.port) for each in some]


def _text(some: Sequence[Endpoint]) -> str:
    return ", ".join(map(str, some))
