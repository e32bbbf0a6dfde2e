"""The kernel's counts for sockets, by local port: dropped packets, and TCP connections.

They come from Linux's /proc/net. On other systems there are none.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc/net")
ESTABLISHED, CLOSE_WAIT = 0x01, 0x08  # states of a TCP socket; CLOSE_WAIT: the other end has closed, data may wait
MISSED_READS = 3
LOCAL, STATE, DROPS = 1, 3, -1  # columns


def udp_drops(ports: Collection[int]) -> int:
    """Returns the number of packets that the kernel has dropped because UDP sockets at these ports were full."""
    return sum(int(row[DROPS]) for row in _rows("udp") if _port(row) in ports)


def connected_ports(ports: Collection[int]) -> set[int]:
    """Returns the local ports with a TCP connection that may still have data to read."""
    open_ones = {_port(row) for row in _rows("tcp") if int(row[STATE], 16) in (ESTABLISHED, CLOSE_WAIT)}
    return open_ones & set(ports)


class Connections:
    """Watches the TCP connections of local ports, each of which takes one.

    The kernel's table changes while it is read, so a read may lack an open connection. Therefore a connection has
    closed when MISSED_READS reads in a row lack it.
    """

    def __init__(self, ports: Collection[int]) -> None:
        self._ports = ports
        self._missed: dict[int, int] = {}  # port that was connected -> reads in a row that lacked it

    def n_closed(self) -> int:
        """Reads the table; returns the number of connections that have closed."""
        now = connected_ports(self._ports)
        self._missed = {port: self._missed.get(port, 0) + 1 for port in self._missed if port not in now}
        self._missed |= dict.fromkeys(now, 0)
        return sum(n >= MISSED_READS for n in self._missed.values())


def _rows(protocol: str) -> Iterator[list[str]]:
    for name in (protocol, f"{protocol}6"):
        with suppress(OSError):
            yield from (line.split() for line in (PROC / name).read_text().splitlines()[1:])


def _port(row: list[str]) -> int:
    return int(row[LOCAL].rpartition(":")[2], 16)
