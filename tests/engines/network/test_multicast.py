"""Streams by multicast, on loopback: each group of addresses gets what is sent to it, and nothing else."""

import os
import socket
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from autotune.engines.network.endpoints import Endpoint, endpoints
from autotune.engines.network.received import Received, ReceivedSamples, ReceivedVoltages
from autotune.engines.network.receiver import Listening
from autotune.engines.network.sample_outlet import SampleOutlet
from autotune.engines.network.voltage_outlet import VoltageOutlet
from autotune.engines.streams.samples import SampleInfo
from autotune.engines.streams.voltages import VoltageInfo

from .ports import free_ports

LOOPBACK = "127.0.0.1"
PACKET, PER_CHUNK, N_CHUNKS = 256, 8, 2  # no more than are built at once: sockets are read one after the other
SAMPLES = SampleInfo(8, 2, 1e6, PACKET)
VOLTAGES = VoltageInfo(64, 2, 8, 16, 128, SAMPLES)


def groups(n: int) -> tuple[Endpoint, ...]:
    """Addresses that follow each other, at one port, which other tests at the same time do not have."""
    (port,) = free_ports(1, socket.SOCK_DGRAM)
    return endpoints(f"239.77.{os.getpid() % 256}.1+{n - 1}:{port}")


def taken(source: Received, memory: np.ndarray) -> Iterator[np.ndarray]:
    """Copies of all chunks, of which every heap has to come."""
    while (one := source.take()) is not None:  # type: ignore[attr-defined]
        number, answer = one
        assert getattr(answer, "received", getattr(answer, "present", None)).all()
        yield memory[number].copy()
        source.give_back(number)
    source.close()
    assert source.receiver is not None and source.receiver.counts["foreign"] == 0


def test_packets_of_samples_go_to_the_addresses_of_their_polarisation_in_turn() -> None:
    some = groups(4)
    places = [some[:2], some[2:]]
    source = ReceivedSamples(
        SAMPLES, Listening(places, interface=LOOPBACK, is_lossless=True), confirm=1, n_enders=len(some)
    )
    memory = np.zeros((6, 2, PER_CHUNK * PACKET), np.uint8)
    source.lend(list(memory))
    made = np.random.default_rng(1).integers(0, 256, (2, N_CHUNKS * PER_CHUNK, PACKET), dtype=np.uint8)
    outlet = SampleOutlet(SAMPLES, "udp", places, LOOPBACK, ttl=0)
    numbers = np.arange(N_CHUNKS * PER_CHUNK)
    for first in range(0, len(numbers), 2):
        for pol in range(2):
            two = numbers[first : first + 2]
            outlet.send(pol, outlet.packets(PACKET * two, pol, made[pol, two], np.zeros(2, np.int64)), two)
    outlet.close()
    found = np.concatenate(list(taken(source, memory)), axis=1)
    assert np.array_equal(found, made.reshape(2, -1))


def test_each_group_gets_its_channels_of_the_voltages() -> None:
    some = groups(2)
    part = replace(VOLTAGES, n_channels=32)
    sources, memories = [], []
    for place, group in enumerate(some):
        sources.append(
            ReceivedVoltages([part], Listening([[group]], interface=LOOPBACK), first_channel=32 * place, confirm=1)
        )
        memories.append(np.zeros((6, 4, 1, *part.heap_shape), np.int8))
        sources[-1].lend(list(memories[-1]))
    made = np.random.default_rng(2).integers(-127, 128, (12, *VOLTAGES.heap_shape), dtype=np.int8)
    sink = VoltageOutlet(VOLTAGES, 0, 1, "udp", some, is_paced=False, interface=LOOPBACK)
    present = np.ones((12, VOLTAGES.spectra_per_heap, 2), bool)
    sink.write(
        VOLTAGES.heap_samples * np.arange(12),
        made,
        np.zeros((12, 2), np.uint32),
        present,
    )
    sink.close()
    for place, (source, memory) in enumerate(zip(sources, memories, strict=True)):
        found = np.concatenate(list(taken(source, memory)))
        assert np.array_equal(found[:, 0], made[:, 32 * place : 32 * (place + 1)])
