"""Addresses of streams as text: ``239.1.1.1+7:7148`` means eight addresses, 239.1.1.1 to 239.1.1.8, port 7148."""

import ipaddress
import re
from dataclasses import dataclass

from ...core.errors import UsageError
from .items import PORT

MOST = 4096  # addresses that one text may stand for
TEXT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:+\[\]]+)(?:\+(\d{1,4}))?(?::(\d{1,5}))?")


@dataclass(frozen=True)
class Endpoint:
    """The source or destination of a stream."""

    host: str  # an address, or a name
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_multicast(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_multicast
        except ValueError:
            return False


def endpoints(text: str) -> tuple[Endpoint, ...]:
    """Returns the endpoints in ``text``: HOST, HOST:PORT, or ADDRESS+N:PORT for N more addresses.

    Raises:
        UsageError: for any other text; the error shows the right form.
    """
    match = TEXT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not an address; write 127.0.0.1:7148, or 239.1.1.1+7:7148 for eight of them")
    host, more, port = match[1].strip("[]"), int(match[2] or 0), int(match[3] or PORT)
    if not 1 <= port <= 65535:
        raise UsageError(f"{text!r} has port {port}; ports are 1 to 65535")
    if not more:
        return (Endpoint(host, port),)
    if more >= MOST:
        raise UsageError(f"{text!r} stands for {more + 1} addresses; {MOST} are the most")
    try:
        first = ipaddress.ip_address(host)
        return tuple(Endpoint(str(first + i), port) for i in range(more + 1))
    except ValueError:
        raise UsageError(f"{text!r} adds {more} to {host}, which is a name or too high an address for that") from None
