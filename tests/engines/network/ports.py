"""Ports of this machine that nobody has, for engines that take them later, maybe in other processes."""

import os
import socket
from collections.abc import Iterator

LOWEST, HIGHEST = 10000, 32000  # below those that the kernel gives to connections, which could take one meanwhile
N_WORKERS = 16


def _own_ports() -> Iterator[int]:
    """Yields ports that no other process of these tests takes, again and again."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % N_WORKERS
    own = range(LOWEST + worker, HIGHEST, N_WORKERS)
    at = os.getpid() % len(own)  # other runs of the tests begin elsewhere
    while True:
        yield own[at % len(own)]
        at += 1


_PORTS = _own_ports()


def free_ports(n: int, kind: socket.SocketKind) -> list[int]:
    """Returns ports at which nobody listens; each is given once in a long time."""
    found: list[int] = []
    while len(found) < n:
        port = next(_PORTS)
        with socket.socket(socket.AF_INET, kind) as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    return found
