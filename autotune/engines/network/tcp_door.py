"""Receives by TCP from one sender at a time, which is the first whose bytes begin as SPEAD does.

Whoever else connects costs nothing: what begins otherwise is closed, and what sends nothing waits beside the others.
spead2 would take the first that connects, whoever it is, and nobody after it. So it reads from a connection within this
process, to which a thread passes whole packets on; this costs a copy. A sender that was killed may come again.
"""

import selectors
import socket
import threading
import time
from contextlib import ExitStack, suppress

from .endpoints import Endpoint

MOST_WAITING = 64  # connections that have sent nothing yet; the oldest gives way
HEAD_BYTES = 8
MAGIC, VERSION, WIDTHS = 0x53, 4, 8  # the first two bytes of SPEAD, and the sum of the next two
PREFIX_BYTES = 6  # the same in each packet of a sender
PAYLOAD_LENGTH = 4  # the item that holds a packet's
PIECE = 1 << 20
JOIN_S = 0.1


class TcpDoor:
    """A place that takes one sender at a time.

    ``inner``: the listening socket for spead2, whose only connection is queued.

    Raises:
        OSError: when the place cannot be listened at.
    """

    def __init__(self, place: Endpoint, socket_bytes: int) -> None:
        self._place, self._socket_bytes = place, socket_bytes
        self._has_ended, self._is_away = threading.Event(), threading.Event()
        with ExitStack() as undone:
            self._listener = undone.enter_context(_listening(place, socket_bytes))
            self.inner = undone.enter_context(_listening(Endpoint("127.0.0.1", 0), socket_bytes))
            self._to_inner = undone.enter_context(socket.create_connection(self.inner.getsockname()[:2]))
            undone.pop_all()
        self._asked, self._asking = socket.socketpair()
        self._asking.setblocking(False)  # asked often, when nobody reads it any more
        self._sender: socket.socket | None = None
        self._idle_since: float | None = time.monotonic()
        self._thread = threading.Thread(target=self._serve, name="autotune-tcp-door", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """Returns whether nobody comes again, and spead2 has read all."""
        return self._has_ended.is_set()

    @property
    def is_away(self) -> bool:
        """Returns whether the sender has closed its connection, and none has come since."""
        return self._is_away.is_set()

    @property
    def idle_s(self) -> float:
        """Returns the seconds for which it has waited for a sender or for its bytes; 0 while it passes bytes on."""
        since = self._idle_since
        return 0.0 if since is None else time.monotonic() - since

    def end(self, cuts: bool = False) -> None:
        """Takes nobody any more; ``has_ended`` tells when spead2 has read all. It may be called often.

        ``cuts``: whether the sender that is there is not waited for, either.
        """
        with suppress(OSError):
            self._asking.send(b"x")
        with suppress(OSError):
            if cuts and self._sender is not None:
                self._sender.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes all connections; any thread may call it, also again."""
        self.end()
        while self._thread.is_alive():  # it may take a sender just now
            for each in (self._sender, self._to_inner):
                with suppress(OSError):
                    if each is not None:
                        each.shutdown(socket.SHUT_RDWR)
            self._thread.join(JOIN_S)
        for each in (self._sender, self._to_inner, self.inner, self._listener, self._asked, self._asking):
            if each is not None:
                each.close()

    # ------------------------------------------------------------------ the thread
    def _serve(self) -> None:
        with suppress(OSError):  # closed meanwhile
            while (head := self._admitted()) is not None:
                self._listener.close()  # nobody else is taken
                self._is_away.clear()
                self._pass_on(head)
                try:
                    self._listener = _listening(self._place, self._socket_bytes)
                except OSError:  # another program has the place now
                    break
                finally:
                    self._is_away.set()
            self._listener.close()
            self._to_inner.shutdown(socket.SHUT_WR)
            while self._to_inner.recv(1):  # until spead2 has read all, and closes
                pass
            self._has_ended.set()

    def _admitted(self) -> bytes | None:
        """Waits for the sender; returns its first bytes, or None when the door closes."""
        heads: dict[socket.socket, bytes] = {}
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._asked, selectors.EVENT_READ)

            def refuse(connection: socket.socket) -> None:
                selector.unregister(connection)
                connection.close()
                del heads[connection]

            try:
                while True:
                    for key, _ in selector.select():
                        ready = key.fileobj
                        assert isinstance(ready, socket.socket)
                        if ready is self._asked:
                            return None
                        if ready is self._listener:
                            with suppress(OSError):  # it has gone again
                                connection, _ = ready.accept()
                                if len(heads) == MOST_WAITING:
                                    refuse(next(iter(heads)))
                                heads[connection] = b""
                                connection.setblocking(False)
                                selector.register(connection, selectors.EVENT_READ)
                            continue
                        if ready not in heads:  # it has given way meanwhile
                            continue
                        more = b""
                        with suppress(OSError):
                            more = ready.recv(HEAD_BYTES - len(heads[ready]))
                        heads[ready] += more
                        if not more or not _may_begin(heads[ready]):
                            refuse(ready)
                        elif len(heads[ready]) == HEAD_BYTES:
                            self._sender = ready
                            return heads.pop(ready)
            finally:
                for connection in heads:
                    connection.close()

    def _pass_on(self, head: bytes) -> None:
        """Passes whole packets on until the sender closes its connection; what is left of its last one is dropped."""
        sender, prefix = self._sender, head[:PREFIX_BYTES]
        assert sender is not None
        sender.setblocking(True)
        piece, filled = bytearray(PIECE), len(head)
        piece[:filled] = head
        view = memoryview(piece)
        with suppress(ConnectionError):  # it was killed
            while filled < PIECE and (n := sender.recv_into(view[filled:])):
                self._idle_since = None
                filled += n
                whole = whole_packets(piece, filled, prefix)
                self._to_inner.sendall(view[:whole])
                piece[: filled - whole] = piece[whole:filled]
                filled -= whole
                self._idle_since = time.monotonic()
        sender.close()


def whole_packets(piece: bytearray, filled: int, prefix: bytes) -> int:
    """Returns how many of the ``filled`` bytes in ``piece`` belong to whole packets.

    The packets begin with ``prefix``. The one that begins last may be whole, with a part of the next prefix after it.
    """
    at = piece.rfind(prefix, 0, filled)
    while at >= 0:
        n_items = int.from_bytes(piece[at + PREFIX_BYTES : at + HEAD_BYTES], "big")
        items = piece[at + HEAD_BYTES : min(filled, at + HEAD_BYTES * (1 + n_items))]
        end = at + HEAD_BYTES * (1 + n_items)
        if end <= filled:
            end += _payload_bytes(items, 8 * prefix[2])
        if end > filled:
            return at
        if prefix.startswith(piece[end:filled]):
            return end
        at = piece.rfind(prefix, 0, at)  # these bytes were samples
    return 0


def _payload_bytes(items: bytearray, id_bits: int) -> int:
    """Returns the length that a packet's item pointers state: a flag for a value in place, its name, the value."""
    for at in range(0, len(items), HEAD_BYTES):
        pointer = int.from_bytes(items[at : at + HEAD_BYTES], "big")
        if pointer >> (64 - id_bits) == 1 << (id_bits - 1) | PAYLOAD_LENGTH:
            return pointer & ((1 << (64 - id_bits)) - 1)
    return 0


def _may_begin(head: bytes) -> bool:
    """Returns whether a packet may begin with these bytes, of which there are HEAD_BYTES or fewer.

    They are MAGIC, VERSION, two widths, two zeros, and the number of items, which is not 0.
    """
    if not bytes((MAGIC, VERSION)).startswith(head[:2]) or head[4:6].strip(b"\0"):
        return False
    return (len(head) < 4 or head[2] + head[3] == WIDTHS) and (len(head) < HEAD_BYTES or any(head[6:]))


def _listening(place: Endpoint, socket_bytes: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        place.host or None, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, socket_bytes)
        listener.bind(address)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener
