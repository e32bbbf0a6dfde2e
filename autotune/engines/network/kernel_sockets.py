"""The kernel's counts of dropped packets, by local port.

They come from Linux's /proc/net. On other systems there are none.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc/net")
LOCAL, DROPS = 1, -1  # columns


def udp_drops(ports: Collection[int]) -> int:
    """Returns the number of packets that the kernel has dropped because UDP sockets at these ports were full."""
    return sum(int(row[DROPS]) for row in _rows("udp") if _port(row) in ports)


def _rows(protocol: str) -> Iterator[list[str]]:
    for name in (protocol, f"{protocol}6"):
        with suppress(OSError):
            yield from (line.split() for line in (PROC / name).read_text().splitlines()[1:])


def _port(row: list[str]) -> int:
    return int(row[LOCAL].rpartition(":")[2], 16)
