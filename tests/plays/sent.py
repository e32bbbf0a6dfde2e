"""Sends the script of a play by spead2, at its pace, and notes when."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import spead2
import spead2.send

from ..engines.network.plain_spead import FENG_ID, FENG_RAW, FREQUENCY, TIMESTAMP, data_heap, described, stop_heap
from ..waiting import wait_until
from .drawn import EACH, TCP, UDP, Play
from .expected import voltages
from .script import DESCRIPTOR, STOP, WRONG_CHANNELS, WRONG_SIZE, Wire

TIME_MASK = (1 << 48) - 1


class Senders:
    """All senders of a play. ``sent_at``: when each heap of a sender was sent, s; ``turn_at``: when a turn began."""

    def __init__(self, play: Play, ports: Sequence[int]) -> None:
        self._play, self._ports, self._pool = play, ports, spead2.ThreadPool(1)
        self._wrong = {trouble.sender for trouble in play.troubles if trouble.kind == "wrong descriptors"}
        self._streams: dict[int, Any] = {}
        self.sent_at: dict[int, list[float]] = {sender: [] for sender in range(play.n_antennas + 1)}
        self.turn_at: dict[int, float] = {}
        self.n_sent, self.failed = 0, list[str]()

    def send(self, wires: Sequence[Wire]) -> None:
        """Sends all, by TCP from a thread of each sender, and returns when all is sent, or the engine has ended."""
        began = time.monotonic() + 0.05
        if self._play.transport != TCP:
            self._send(wires, began)
            return
        groups = [[wire for wire in wires if wire.sender == sender] for sender in range(self._play.n_antennas)]
        strangers = [wire for wire in wires if wire.sender == self._play.n_antennas]  # by the first one's connection
        groups[0] = sorted(groups[0] + strangers, key=lambda wire: wire.turn)
        threads = [threading.Thread(target=self._send, args=(group, began), daemon=True) for group in groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _send(self, wires: Sequence[Wire], began: float) -> None:
        for wire in wires:
            due = began + wire.turn * self._play.period_s
            while (left := due - time.monotonic()) > 0:
                time.sleep(left)
            self.turn_at.setdefault(wire.turn, time.monotonic())
            connection = wire.sender % self._play.n_antennas  # a stranger has that of the first one
            try:
                heap, number = self._heap(wire)
                self._stream(connection).send_heap(heap, cnt=number)
            except OSError as error:  # the engine has ended, or waits no longer
                self.failed.append(f"{wire}: {error}")
                return
            if wire.is_last:
                del self._streams[connection]  # which closes its socket
            self.n_sent += 1
            if wire.fate not in (STOP, DESCRIPTOR):
                self.sent_at[wire.sender].append(time.monotonic())

    def _stream(self, connection: int) -> Any:
        if connection not in self._streams:
            port = self._ports[0 if self._play.transport == UDP else connection]
            config = spead2.send.StreamConfig(max_packet_size=self._play.packet_bytes + 72, max_heaps=4)
            kind = spead2.send.TcpStream if self._play.transport == TCP else spead2.send.UdpStream
            wait_until(lambda: self._connects(connection, kind, port, config))
        return self._streams[connection]

    def _connects(self, connection: int, kind: Any, port: int, config: Any) -> bool:
        """Whether there is a connection. A sender tries until the engine listens."""
        try:
            self._streams[connection] = kind(self._pool, [("127.0.0.1", port)], config)
        except OSError:
            return False
        return True

    def _heap(self, wire: Wire) -> tuple[Any, int]:
        """Returns a heap and its number."""
        play = self._play
        number = wire.sender + play.n_antennas * wire.time
        if wire.fate == STOP:
            return stop_heap(), number
        if wire.fate == DESCRIPTOR:
            return self._descriptors(wire.sender), wire.sender
        payload = voltages(play, wire.sender, wire.label, wire.variant)
        if wire.fate == WRONG_SIZE:
            payload = payload[:, : play.spectra // 2]
        if play.bits == 4:  # the real part is in the high nibble
            nibbles = payload.view(np.uint8) & 15
            payload = nibbles[..., 0] << 4 | nibbles[..., 1]
        channel = play.first_channel + (play.n_channels if wire.fate == WRONG_CHANNELS else 0)
        at = (wire.time * play.heap_samples + wire.off) & TIME_MASK
        ids = {TIMESTAMP: at, FENG_ID: wire.sender, FREQUENCY: channel}
        return data_heap(ids, FENG_RAW, np.ascontiguousarray(payload)), number & TIME_MASK

    def _descriptors(self, sender: int) -> Any:
        play = self._play
        n_channels, spectra = play.n_channels, play.spectra
        if sender in self._wrong:
            n_channels, spectra = 2 * n_channels, spectra // 2
        shape = (n_channels, spectra, 2, 2)
        kind: dict[str, Any] = {"format": [("i", 4)]} if play.bits == 4 else {"dtype": np.dtype(np.int8)}
        return described((TIMESTAMP, FENG_ID, FREQUENCY), FENG_RAW, shape, **kind)

    def last_before(self, sender: int, turn: int) -> float:
        """Returns when the last heap of a sender before a turn was sent, s."""
        then = min(at for other, at in self.turn_at.items() if other >= turn)
        return max(at for at in self.sent_at[sender] if at < then)

    def close(self) -> None:
        self._streams.clear()


def n_entries(play: Play) -> int:
    return play.n_antennas if play.transport in (EACH, TCP) else 1
