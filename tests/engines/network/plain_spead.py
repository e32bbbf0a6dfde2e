"""SPEAD streams by a program of its own, which knows what is on the wire, and imports nothing of the tree.

    plain_spead.py samples tcp 7000 7001 --data packets.npy --first 4096 --samples 1024    a polarisation to each place
    plain_spead.py voltages pcap a.pcap b.pcap --data heaps.npy --first 0 --samples 8192   a band to each place
    plain_spead.py receive udp 7000 --out heaps.npz          says "ready", and takes F or X heaps until a stop heap

Places are ports of 127.0.0.1, or files of UDP packets that are written. Packets are uint8 [n_pols, n_packets, bytes];
heaps are int8 [n_antennas, n_heaps, C, spectra, n_pols, 2], or uint8 without the last axis where voltages have 4 bits.
"""

import argparse
import struct
from typing import Any

import numpy as np
import spead2
import spead2.recv
import spead2.send

FLAVOUR = spead2.Flavour(4, 64, 48, 0)
TIMESTAMP, DIGITISER_ID, DIGITISER_STATUS, ADC_SAMPLES = 0x1600, 0x3101, 0x3102, 0x3300
FENG_ID, FREQUENCY, FENG_RAW, XENG_RAW = 0x4101, 0x4103, 0x4300, 0x1800
NAMES = {TIMESTAMP: "timestamp", FENG_ID: "feng_id", FREQUENCY: "frequency", FENG_RAW: "raw", XENG_RAW: "raw"}
U48 = [("u", 48)]


class PcapStream:
    """Writes heaps as packets of Ethernet, IPv4 and UDP to a file of classic pcap."""

    def __init__(self, path: str, config: spead2.send.StreamConfig) -> None:
        self.file, self.packet_bytes, self.n = open(path, "wb"), config.max_packet_size, 0  # noqa: SIM115
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1))

    def send_heap(self, heap: spead2.send.Heap, cnt: int) -> None:
        for packet in spead2.send.PacketGenerator(heap, cnt, self.packet_bytes):
            udp = struct.pack(">HHHH", 7148, 7148, 8 + len(packet), 0) + packet
            fields = [0x45, 0, 20 + len(udp), self.n % (1 << 16), 0x4000, 64, 17, 0, 0x7F000001, 0x7F000001]
            words = sum(struct.unpack(">10H", struct.pack(">BBHHHBBHII", *fields)))
            fields[7] = ~(words % 0xFFFF) & 0xFFFF  # the sum of ones' complements
            frame = bytes(12) + struct.pack(">HBBHHHBBHII", 0x0800, *fields) + udp
            self.file.write(struct.pack("<IIII", self.n, 0, len(frame), len(frame)) + frame)
            self.n += 1


def streams(given: argparse.Namespace, packet_bytes: int) -> list[Any]:
    config = spead2.send.StreamConfig(max_packet_size=packet_bytes, max_heaps=64, rate=2e6, burst_size=8192)
    if given.transport == "pcap":
        return [PcapStream(place, config) for place in given.places]
    kind = spead2.send.UdpStream if given.transport == "udp" else spead2.send.TcpStream
    return [kind(spead2.ThreadPool(), [("127.0.0.1", int(place))], config) for place in given.places]


def data_heap(immediates: dict[int, int], number: int, payload: np.ndarray) -> spead2.send.Heap:
    heap = spead2.send.Heap(FLAVOUR)
    for each, value in immediates.items():
        heap.add_item(spead2.Item(each, "", "", (), format=U48, value=value))
    heap.add_item(spead2.Item(number, "", "", payload.shape, payload.dtype, value=payload))
    heap.repeat_pointers = True
    return heap


def described(immediates: tuple[int, ...], number: int, shape: tuple[int, ...], **kind: Any) -> spead2.send.Heap:
    group = spead2.send.ItemGroup(flavour=FLAVOUR)
    for each in immediates:
        group.add_item(each, f"item_{each:x}", "", (), format=U48)
    group.add_item(number, f"item_{number:x}", "", shape, **kind)
    return group.get_heap(descriptors="all", data="none")


def stop_heap() -> spead2.send.Heap:
    heap = spead2.send.Heap(FLAVOUR)
    heap.add_end()
    return heap


def send_samples(given: argparse.Namespace, packets: np.ndarray) -> None:
    n_pols, n_packets, width = packets.shape
    to = streams(given, width + 72)
    kind = [("i", 8 * width // given.samples)]
    about = described((TIMESTAMP, DIGITISER_ID, DIGITISER_STATUS), ADC_SAMPLES, (given.samples,), format=kind)
    for stream in to:
        stream.send_heap(about, cnt=1)
    for number in range(n_packets):
        for pol in range(n_pols):
            time = (given.first + number * given.samples) % (1 << 48)
            heap = data_heap(
                {TIMESTAMP: time, DIGITISER_ID: pol, DIGITISER_STATUS: 0}, ADC_SAMPLES, packets[pol, number]
            )
            to[pol % len(to)].send_heap(heap, cnt=2 * (number * n_pols + pol + 1))
    for stream in to * given.stops:
        stream.send_heap(stop_heap(), cnt=2 * (n_packets + 1) * n_pols)


def send_voltages(given: argparse.Namespace, heaps: np.ndarray) -> None:
    n_antennas, n_heaps, n_channels = heaps.shape[:3]
    to = streams(given, 8192 + 72)
    width = n_channels // len(to)
    shape = (width, *heaps.shape[3:])
    four: dict[str, Any] = {"shape": (*shape, 2), "format": [("i", 4)]}
    kind = four if heaps.ndim == 5 else {"shape": shape, "dtype": np.dtype(np.int8)}
    for antenna in range(n_antennas):
        for stream in to:
            stream.send_heap(described((TIMESTAMP, FENG_ID, FREQUENCY), FENG_RAW, **kind), cnt=antenna)
    for number in range(n_heaps):
        time = (given.first + number * given.samples) % (1 << 48)
        for antenna in range(n_antennas):
            for place, stream in enumerate(to):
                part = heaps[antenna, number, place * width : (place + 1) * width]
                items = {TIMESTAMP: time, FENG_ID: antenna, FREQUENCY: place * width}
                stream.send_heap(data_heap(items, FENG_RAW, part), cnt=antenna + (1 + number) * n_antennas)
    for antenna in range(n_antennas * given.stops):
        for stream in to:
            stream.send_heap(stop_heap(), cnt=antenna + (1 + n_heaps) * n_antennas)


def receive(given: argparse.Namespace) -> None:
    config, ring = spead2.recv.StreamConfig(max_heaps=64), spead2.recv.RingStreamConfig(heaps=1024)
    stream = spead2.recv.Stream(spead2.ThreadPool(), config, ring)
    port = int(given.places[0])
    if given.transport == "udp":
        stream.add_udp_reader(port, bind_hostname="127.0.0.1", buffer_size=4 << 20)
    else:
        stream.add_tcp_reader(port, bind_hostname="127.0.0.1")
    print("ready", flush=True)
    group, found = spead2.ItemGroup(), dict[str, list[np.ndarray]]()
    for heap in stream:
        changed = {item.id: item.value for item in group.update(heap).values()}
        if TIMESTAMP in changed:
            for number, value in changed.items():
                found.setdefault(NAMES[number], []).append(np.array(value, np.int64))
            found.setdefault("counter", []).append(np.array(heap.cnt))
    arrays: dict[str, Any] = {name: np.stack(values) for name, values in found.items()}
    np.savez(given.out, **arrays)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("samples", "voltages", "receive"))
    parser.add_argument("transport", choices=("udp", "tcp", "pcap"))
    parser.add_argument("places", nargs="+")
    parser.add_argument("--data", help="an array of what is sent, x.npy")
    parser.add_argument("--out", help="where what came is written, x.npz")
    parser.add_argument("--first", type=int, default=0, help="the first time")
    parser.add_argument("--samples", type=int, help="samples from one heap to the next")
    parser.add_argument("--stops", type=int, default=1, help="stop heaps of each sender")
    arguments = parser.parse_args()
    if arguments.what == "receive":
        receive(arguments)
    else:
        send = send_samples if arguments.what == "samples" else send_voltages
        send(arguments, np.load(arguments.data))
