"""spead2 places heaps by the rules, and packets are of the sizes and with the items that ``items`` says."""

from collections.abc import Sequence

import numpy as np
import pytest

from autotune.engines.network import items
from autotune.engines.network.placing import COUNTERS, PlaceRules, Placing

pytest.importorskip("spead2")
import spead2
import spead2.recv
import spead2.send

HEAP_BYTES, N_SENDERS, CHUNK_HEAPS, N_TIMES = 1024, 2, 4, 22
DIGITISER = (items.TIMESTAMP, items.DIGITISER_ID, items.DIGITISER_STATUS)


def heap_of(immediates: dict[int, int], payload: int | None, n_bytes: int, value: int = 0) -> spead2.send.Heap:
    heap = spead2.send.Heap(spead2.Flavour(*items.FLAVOUR))
    for number, immediate in immediates.items():
        heap.add_item(spead2.Item(number, "", "", (), format=[("u", 48)], value=immediate))
    if payload is not None:
        data = np.full(n_bytes, value, np.uint8)
        heap.add_item(spead2.Item(payload, "", "", (n_bytes,), dtype=np.uint8, value=data))
    heap.repeat_pointers = True
    return heap


@pytest.mark.parametrize(
    ("immediates", "payload", "n_bytes", "header_bytes"),
    [
        (DIGITISER, items.ADC_SAMPLES, 5120, items.DIGITISER_HEADER_BYTES),
        ((items.TIMESTAMP, items.FENG_ID, items.FREQUENCY), items.FENG_RAW, 1 << 15, 72),
        ((items.TIMESTAMP, items.FREQUENCY), items.XENG_RAW, 1 << 15, 64),
        ((items.TIMESTAMP, items.FREQUENCY, items.BEAM_ANTENNAS), items.BF_RAW, 1 << 15, 72),
    ],
)
def test_sizes_of_packets(immediates: Sequence[int], payload: int, n_bytes: int, header_bytes: int) -> None:
    most = header_bytes + min(n_bytes, items.PAYLOAD_BYTES)
    stream = spead2.send.BytesStream(spead2.ThreadPool(), spead2.send.StreamConfig(max_packet_size=most))
    stream.send_heap(heap_of(dict.fromkeys(immediates, 1), payload, n_bytes))
    assert len(stream.getvalue()) == n_bytes + header_bytes * -(-n_bytes // items.PAYLOAD_BYTES)


def test_ids_of_spead_are_those_of_spead2() -> None:
    own = items.HEAP_COUNTER, items.HEAP_LENGTH, items.PAYLOAD_OFFSET, items.PAYLOAD_LENGTH, items.STREAM_CONTROL
    assert own == (
        *(spead2.HEAP_CNT_ID, spead2.HEAP_LENGTH_ID, spead2.PAYLOAD_OFFSET_ID, spead2.PAYLOAD_LENGTH_ID),
        spead2.STREAM_CTRL_ID,
    )
    assert items.STREAM_STOP == spead2.CTRL_STREAM_STOP


def test_heaps_land_where_the_rules_say(request: pytest.FixtureRequest) -> None:
    """One of two senders loses a heap and sends another one twice, and a stranger sends one; the stop heap is last."""
    rules = PlaceRules(
        sender_item=items.FENG_ID,
        heap_bytes=HEAP_BYTES,
        heap_samples=16,
        chunk_heaps=CHUNK_HEAPS,
        n_senders=N_SENDERS,
        most_jump=100,
        by_sender=False,
        confirm=1,
    )
    config = spead2.recv.StreamConfig(max_heaps=4, stop_on_stop_item=False)
    placing = Placing(rules)
    n_chunks = -(-N_TIMES // CHUNK_HEAPS)
    taken, free = spead2.recv.ChunkRingbuffer(n_chunks + 2), spead2.recv.ChunkRingbuffer(n_chunks + 2)
    chunk_config = spead2.recv.ChunkStreamConfig(
        items=list(rules.items), max_chunks=2, place=placing.callback(), max_heap_extra=1
    )
    stream = spead2.recv.ChunkRingStream(spead2.ThreadPool(), config, chunk_config, taken, free)
    request.addfinalizer(stream.stop)
    for _ in range(n_chunks + 2):
        data = np.zeros((CHUNK_HEAPS, N_SENDERS, HEAP_BYTES), np.uint8)
        present, begun = np.zeros((2, rules.n_flags), np.uint8)
        stream.add_free_chunk(spead2.recv.Chunk(data=data, present=present, extra=begun))

    queue = spead2.InprocQueue()
    stream.add_inproc_reader(queue)
    sender = spead2.send.InprocStream(spead2.ThreadPool(), [queue])
    order = [(time, who) for time in range(N_TIMES) for who in range(N_SENDERS) if (time, who) != (7, 1)]
    for time, who in [*order[:9], order[8], *order[9:], (N_TIMES - 1, N_SENDERS)]:
        ids = {items.TIMESTAMP: time * 16, items.FENG_ID: who, items.FREQUENCY: 0}
        sender.send_heap(heap_of(ids, items.FENG_RAW, HEAP_BYTES, 1 + time * N_SENDERS + who))
    sender.send_heap(heap_of({items.STREAM_CONTROL: items.STREAM_STOP}, None, 0))
    chunks = [taken.get() for _ in range(n_chunks)]
    queue.stop()
    for chunk in taken:  # those around the one that the stop heap was placed in, until the queue's end ends the stream
        assert chunk.chunk_id >= n_chunks and not chunk.present[:-1].any()

    assert [chunk.chunk_id for chunk in chunks] == list(range(n_chunks))
    present = np.concatenate([chunk.present[:-1] for chunk in chunks]).reshape(-1, N_SENDERS)
    begun = np.concatenate([chunk.extra[:-1] for chunk in chunks]).reshape(-1, N_SENDERS)
    assert np.array_equal(begun, present), "all heaps are whole"
    assert np.argwhere(present[:N_TIMES] == 0).tolist() == [[7, 1]] and not present[N_TIMES:].any()
    values = np.concatenate([np.asarray(chunk.data) for chunk in chunks])[:N_TIMES]
    expected = 1 + np.arange(N_TIMES * N_SENDERS).reshape(N_TIMES, N_SENDERS, 1) * np.ones(HEAP_BYTES, int)
    assert np.array_equal(values[present[:N_TIMES] == 1], expected[present[:N_TIMES] == 1])
    counts = {name: n for name, n in zip(COUNTERS, placing.senders["n"].sum(axis=0).tolist(), strict=False) if n}
    assert counts == {"stops": 1, "foreign": 1, "repeated": 1} and placing.n_stops == 1
    assert (stream.stats["heaps"], stream.stats["rejected_heaps"]) == (len(order) + 3, 2)
