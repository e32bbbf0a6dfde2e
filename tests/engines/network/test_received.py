"""Sources behind SPEAD by themselves: how a stream begins, ends, goes on after a gap, or jumps."""

import threading
import time
from collections.abc import Sequence

import numpy as np
import pytest
import spead2
import spead2.send

from autotune import UsageError
from autotune.engines.network.endpoints import Endpoint
from autotune.engines.network.received import QUIET_NS, ReceivedSamples
from autotune.engines.network.receiver import JumpedError, Listening
from autotune.engines.streams.samples import SampleInfo, Samples

from ...waiting import wait_until
from .test_loopback import plain_heap

PACKET, BITS, CHUNK = 256, 10, 8  # samples of a packet, packets of a chunk
WIDTH = PACKET * BITS // 8
RATE = 1e6
FIRST = 40 * CHUNK * PACKET


class Digitiser:
    """Sends packets of both polarisations by hand."""

    def __init__(self) -> None:
        self.queue = spead2.InprocQueue()
        config = spead2.send.StreamConfig(max_packet_size=WIDTH + 72, max_heaps=4096)
        self._stream = spead2.send.InprocStream(spead2.ThreadPool(1), [self.queue], config)

    def send(self, first: int, n: int, pols: Sequence[int] = (0, 1)) -> None:
        for number in range(n):
            for pol in pols:
                at = first + number * PACKET
                self._stream.send_heap(plain_heap(pol, at, payload(at, pol)))

    def end(self) -> None:
        heap = spead2.send.Heap(spead2.Flavour(4, 64, 48, 0))
        heap.add_end()
        self._stream.send_heap(heap)


def payload(at: int, pol: int) -> np.ndarray:
    return np.random.default_rng((at // PACKET, pol)).integers(0, 256, WIDTH, dtype=np.uint8)


def source(digitiser: Digitiser, n_arrays: int = 8, **given: object) -> ReceivedSamples:
    info = SampleInfo(BITS, 2, RATE, PACKET)
    made = ReceivedSamples(info, Listening([[digitiser.queue]], "inproc"), near=FIRST, **given)  # type: ignore[arg-type]
    made.lend([np.zeros((2, CHUNK * WIDTH), np.uint8) for _ in range(n_arrays)])
    return made


def taken(found: ReceivedSamples) -> list[Samples]:
    """All chunks until the end."""
    chunks = []
    while (one := found.take()) is not None:
        number, answer = one
        chunks.append(Samples(answer.time, answer.received.copy()))
        found.give_back(number)
    return chunks


def is_quiet_after(found: ReceivedSamples, n_heaps: int) -> None:
    """Wait until so many heaps have come, and then for as long as makes a far time one that may be believed."""
    wait_until(lambda: found.receiver is not None and found.receiver.counts["heaps"] == n_heaps)
    time.sleep(2e-9 * QUIET_NS)


def test_a_stream_begins_with_the_first_whole_chunk_and_ends_with_its_last_packet() -> None:
    digitiser = Digitiser()
    found = source(digitiser, confirm=1)
    digitiser.send(FIRST + 3 * PACKET, 5 + 2 * CHUNK + 4)
    digitiser.end()
    chunks = taken(found)
    assert [chunk.time for chunk in chunks] == [FIRST + i * CHUNK * PACKET for i in (1, 2, 3)]
    assert all(chunk.received.all() for chunk in chunks[:2])
    assert chunks[2].received.shape == (2, 4) and chunks[2].received.all()  # what was not sent is not missing
    assert found.n_before == 10
    found.close()
    assert found.receiver is not None
    counts = found.receiver.counts
    assert (counts["placed"], counts["stops"], counts["heaps"]) == (2 * (9 + 2 * CHUNK), 1, 2 * (9 + 2 * CHUNK) + 1)


def test_a_silent_polarisation_is_missing_and_the_other_comes() -> None:
    digitiser = Digitiser()
    found = source(digitiser, confirm=1)
    digitiser.send(FIRST, CHUNK)
    digitiser.send(FIRST + CHUNK * PACKET, 2 * CHUNK, pols=[1])
    digitiser.send(FIRST + 3 * CHUNK * PACKET, CHUNK)
    digitiser.end()
    chunks = taken(found)
    assert [bool(chunk.received[0].any()) for chunk in chunks] == [True, False, False, True]
    assert all(chunk.received[1].all() for chunk in chunks)
    found.close()


def test_a_gap_goes_on_and_a_far_packet_is_not_believed() -> None:
    digitiser = Digitiser()
    found = source(digitiser, confirm=1, most_gap_s=10.0)
    far, later = FIRST + (1 << 36) * PACKET, FIRST + 1000 * CHUNK * PACKET  # 2 s are a gap
    digitiser.send(FIRST, CHUNK)
    digitiser.send(far, 1, pols=[0])
    digitiser.send(FIRST + CHUNK * PACKET, CHUNK)
    is_quiet_after(found, 4 * CHUNK + 1)
    digitiser.send(later, 2 * CHUNK)
    digitiser.end()
    chunks = taken(found)
    assert [chunk.time for chunk in chunks][:2] == [FIRST, FIRST + CHUNK * PACKET]
    assert {chunk.time for chunk in chunks[2:]} == {later, later + CHUNK * PACKET}
    found.close()
    assert found.receiver is not None and found.receiver.counts["jumped"] == 1


@pytest.mark.parametrize("to", [FIRST - 20 * CHUNK * PACKET, FIRST + (1 << 36) * PACKET])
def test_a_sender_that_begins_again_at_another_time_ends_the_source(to: int) -> None:
    digitiser = Digitiser()
    found = source(digitiser)
    digitiser.send(FIRST, 4 * CHUNK)
    is_quiet_after(found, 8 * CHUNK)
    digitiser.send(to, 2 * CHUNK)
    with pytest.raises(JumpedError, match="has jumped to sample") as error:
        taken(found)
    assert isinstance(error.value, UsageError) and to <= error.value.time < to + 16 * PACKET
    found.close()


def test_whoever_waits_for_a_silent_stream_may_be_asked_to_stop() -> None:
    digitiser = Digitiser()
    found = source(digitiser)
    assert found.receiver is not None
    threading.Timer(0.3, found.receiver.stop).start()
    assert found.take() is None
    found.close()


def test_a_port_that_is_in_use_is_told() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken_already:
        where = Endpoint(*taken_already.getsockname())
        found = ReceivedSamples(SampleInfo(BITS, 2, RATE, PACKET), Listening([[where]], "tcp"))
        with pytest.raises(UsageError, match=f"nothing can be received at 127.0.0.1:{where.port}"):
            found.lend([np.zeros((2, CHUNK * WIDTH), np.uint8)] * 8)
    with pytest.raises(UsageError, match="transport is 'sctp'"):
        ReceivedSamples(SampleInfo(BITS, 2, RATE, PACKET), Listening([[where]], "sctp")).lend(
            [np.zeros((2, CHUNK * WIDTH), np.uint8)] * 8
        )


def test_a_receiver_is_short_of_arrays_when_it_waits_for_one_and_not_after_a_burst() -> None:
    """It builds 2 of 8. After the end of a stream it would build 2 more; what was taken before is kept."""
    digitiser = Digitiser()
    found = source(digitiser, confirm=1)
    short = list[bool]()
    held = list[int]()
    for chunk in range(12):
        digitiser.send(FIRST + chunk * CHUNK * PACKET, CHUNK)
        if chunk >= 2:
            number, _ = found.take() or (-1, None)
            short.append(found.is_short)
            held.append(number)
            if short[-1]:  # the engine holds still, and has 6 arrays
                found.give_back(held.pop())
    assert short == [False] * 6 + [True] * 4
    digitiser.end()
    while (taken := found.take()) is not None:
        assert not found.is_short, "nothing else comes"
        held.append(taken[0])
        found.give_back(held.pop(0))
    found.close()


@pytest.mark.parametrize("offset", [1, 100, PACKET - 1])
def test_times_that_are_no_multiples_of_a_packet_are_taken_as_they_are(offset: int) -> None:
    """Those of one offset are; another sender's, or a packet's by itself, are not."""
    digitiser = Digitiser()
    found = source(digitiser, confirm=1)
    digitiser.send(FIRST + offset, 4 * CHUNK)
    digitiser.send(FIRST + offset + 1, 3)
    digitiser.send(FIRST, 1)
    digitiser.end()
    chunks = taken(found)
    assert [chunk.time for chunk in chunks] == [FIRST + offset + k * CHUNK * PACKET for k in range(4)]
    assert found.receiver is not None
    counts = found.receiver.counts
    assert (counts["off_grid"], counts["jumped"], counts["placed"]) == (8, 0, 8 * CHUNK)


def test_a_stream_whose_offset_changes_has_jumped() -> None:
    digitiser = Digitiser()
    found = source(digitiser, confirm=4)
    digitiser.send(FIRST, 2 * CHUNK)
    wait_until(lambda: found.receiver is not None and found.receiver.counts["placed"] > 4 * CHUNK - 8)
    time.sleep(2e-9 * QUIET_NS)
    digitiser.send(FIRST + 2 * CHUNK * PACKET + 100, CHUNK)
    with pytest.raises(JumpedError) as caught:
        taken(found)
    assert caught.value.time > FIRST + 2 * CHUNK * PACKET and caught.value.time % PACKET == 100
    assert caught.value.samples >= 100 and caught.value.samples % PACKET == 100 and caught.value.seconds > 0.1
    found.close()
