"""Receives by TCP from one sender, which is the first whose bytes begin as SPEAD does.

Whoever else connects costs nothing: what begins otherwise is closed, and what sends nothing waits beside the others.
spead2 would take the first that connects, whoever it is. So it reads from a connection within this process, to which a
thread passes the sender's bytes on; this costs a copy.
"""

import selectors
import socket
import threading
from contextlib import ExitStack, suppress

from .endpoints import Endpoint

MOST_WAITING = 64  # connections that have sent nothing yet; the oldest gives way
HEAD_BYTES = 8
MAGIC, VERSION, WIDTHS = 0x53, 4, 8  # the first two bytes of SPEAD, and the sum of the next two
PIECE = 1 << 20
JOIN_S = 0.1


class TcpDoor:
    """A place that takes one sender. ``inner``: the listening socket for spead2, whose only connection is queued.

    Raises:
        OSError: when the place cannot be listened at.
    """

    def __init__(self, place: Endpoint, socket_bytes: int) -> None:
        self._has_ended = threading.Event()
        with ExitStack() as undone:
            self._listener = undone.enter_context(_listening(place, socket_bytes))
            self.inner = undone.enter_context(_listening(Endpoint("127.0.0.1", 0), socket_bytes))
            self._to_inner = undone.enter_context(socket.create_connection(self.inner.getsockname()[:2]))
            undone.pop_all()
        self._asked, self._asking = socket.socketpair()
        self._sender: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, name="autotune-tcp-door", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """Returns whether the sender has closed its connection, and spead2 has read all of it."""
        return self._has_ended.is_set()

    def close(self) -> None:
        """Closes all connections; any thread may call it, also again."""
        with suppress(OSError):
            self._asking.send(b"x")
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
            if (head := self._admitted()) is not None:
                self._listener.close()  # nobody else is taken
                self._pass_on(head)

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
        sender = self._sender
        assert sender is not None
        sender.setblocking(True)
        self._to_inner.sendall(head)
        piece = memoryview(bytearray(PIECE))
        with suppress(ConnectionError):  # it was killed
            while n := sender.recv_into(piece):
                self._to_inner.sendall(piece[:n])
        self._to_inner.shutdown(socket.SHUT_WR)
        while self._to_inner.recv(1):  # until spead2 has read all, and closes
            pass
        self._has_ended.set()


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
