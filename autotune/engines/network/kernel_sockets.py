"""The kernel's counts of dropped packets, by local port.

They come from Linux's /proc/net. On other systems there are none.
"""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc/net")
LOCAL, DROPS = 1, -1  # columns


def udp_drops(ports: Collection[int]) -> int:
    """Returns the number of packets that the kernel has dropped because UDP sockets at these ports were full."""
    n = 0
    for name in ("udp", "udp6"):
        with suppress(OSError):
            rows = [line.split() for line in (PROC / name).read_text().splitlines()[1:]]
            n += sum(int(row[DROPS]) for row in rows if int(row[LOCAL].rpartition(":")[2], 16) in ports)
    return n
