"""What happens on a network that misbehaves, with real processes: no wrong dump, and the others go on.

Streams have no end here; how long they last is counted in what comes of them, since machines differ.
"""

import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..network.ports import free_ports
from ..network.test_outlets import Receiver
from .air import CHUNK, PACKET, RATE_HZ, Air, Process, compare, dumps, ended, n_right, stop

SLOW = 0.1  # times real time
FULL = 1_700_000  # bytes: room for the first dump of a file, and not for all


@contextmanager
def endless(tmp_path: Path, transport: str, n_antennas: int, **more: Any) -> Iterator[Air]:
    with ended(Air(tmp_path, transport, n_antennas, n_samples=None, **{"speed": SLOW, **more})) as air:
        yield air


def digitisers(air: Air) -> list[Process]:
    return air.dsims(*range(air.n_antennas))


def test_an_f_engine_that_is_killed_and_begun_again_costs_its_own_baselines_only(tmp_path: Path) -> None:
    """Five processes by UDP: two digitisers, two F-engines, one X-engine."""
    with endless(tmp_path, "udp", 2) as air:
        fs, x = air.engines()
        sending = digitisers(air)
        for f in fs:
            f.makes(8)
        x.makes(4)
        fs[1].send(signal.SIGKILL)
        x.makes(6)
        again = air.f(1).waits_for("heaps are received at").makes(8)
        x.makes(6)
        stop(*sending, fs[0], again, x)
        found = dumps(tmp_path / "vis.h5")
        assert n_right(air) >= 16
        present = np.array([flags for _, flags in found.values()])
        assert present[:, 0].sum() > present[:, 1].sum() > 0 and present.all(axis=1).any()


def test_a_digitiser_that_begins_again_at_another_time_is_followed_within_a_second(tmp_path: Path) -> None:
    """Earlier, far in the future, and after a gap of the same clock; each time it was killed."""
    far = (1 << 44) // PACKET * PACKET
    firsts = [1 << 30, 0, far, far + (1 << 23)]
    jumps = [0, 1, 2, 2]  # engines that were begun anew so far
    with endless(tmp_path, "udp", 1) as air:
        (f,), x = air.engines()
        n_descriptors = list[int]()
        for first, n_jumps in zip(firsts, jumps, strict=True):
            air.write_dsim(0, first)
            digitiser = air.dsim(0)
            if n_jumps:
                f.waits_for("has jumped to sample", n=n_jumps)
                x.waits_for("has jumped to sample", n=n_jumps)
            x.makes(12 if n_jumps == jumps[-1] else 4)  # some may still come of the time before
            n_descriptors.append(f.n_descriptors + x.n_descriptors)
            digitiser.send(signal.SIGKILL)
            digitiser.ends()
        stop(f, x)
        assert x.counts()["engines"] >= f.counts()["engines"] == 3
        assert max(n_descriptors) == min(n_descriptors)
        for first in firsts:
            assert n_right(air, first, first + (1 << 23)) >= 2


def test_x_goes_on_when_an_antenna_is_silent(tmp_path: Path) -> None:
    with endless(tmp_path, "udp", 3) as air:
        fs, x = air.engines()
        sending = air.dsims(0, 2)  # 1 never sends
        for f in (fs[0], fs[2]):
            f.makes(8)
        x.makes(8)
        stop(*sending, *fs, x)
        found = dumps(tmp_path / "vis.h5")
        assert n_right(air) >= 8
        assert not any(flags[1] for _, flags in found.values())
        assert any(flags[0] and flags[2] for _, flags in found.values())
        assert fs[1].counts()["received"]["placed"] == 0


def test_of_a_silent_polarisation_all_heaps_are_missing_and_counted(tmp_path: Path) -> None:
    with endless(tmp_path, "udp", 1, f_more="patience_s = 0.01\n") as air:
        nowhere = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        nowhere.bind(("127.0.0.1", 0))
        air.write_dsim(0, 0, [air.sample_ports[0][0], nowhere.getsockname()[1]])
        f = air.f(0).waits_for("heaps are received at")
        digitiser = air.dsim(0)
        f.waits_for(" heaps missing")
        stop(digitiser, f)
        made = f.counts()["made"][0]
        assert made["heaps_out"] == 0 < made["heaps_missing"]
        assert made["packets_missing"] >= made["samples_in"] // PACKET  # of one polarisation all


def test_a_receiver_that_stops_and_comes_again_costs_its_own_heaps_only(tmp_path: Path) -> None:
    """A live F-engine goes on while nobody takes its heaps by TCP, and connects again."""
    with endless(tmp_path, "tcp", 1, f_live=True) as air:
        (f,), x = air.engines()
        digitiser = air.dsim(0)
        x.makes(4)
        x.send(signal.SIGKILL)
        x.ends()
        (tmp_path / "vis.h5").unlink()  # it was not closed
        f.waits_for("heaps failed")
        again = air.x().waits_for("heaps are received at").makes(4)
        stop(digitiser, f, again)
        assert n_right(air) >= 4
        made = f.counts()["made"][0]
        assert made["heaps_failed"] > 0


@pytest.mark.thorough
def test_a_full_disk_behind_x_ends_that_file_and_not_the_stream(tmp_path: Path) -> None:
    (port,) = free_ports(1, socket.SOCK_DGRAM)
    receiver = Receiver("udp", port)
    to = ('file = "vis.h5"', f'endpoints = "127.0.0.1:{port}"\npaced = false')
    with endless(tmp_path, "udp", 3, x_to=to) as air:
        fs, x = air.engines()
        x.limit(FULL)
        sending = digitisers(air)
        x.waits_for("vis.h5 takes no more").makes(6)
        stop(*sending, *fs, x)
        receiver.stop()
        assert sum("vis.h5 takes no more" in line for line in x.lines) == 1
        expected = air.offline(max(int(heap["timestamp"]) for heap in receiver.heaps) + (1 << 17))
        times = {int(t): place for place, t in enumerate(expected.timestamps)}
        assert len(receiver.heaps) >= 6
        n_whole = 0
        for heap in receiver.heaps:
            made = expected.visibilities[times[int(heap["timestamp"])]].reshape(128, 6, 4, 2)
            came = heap["xeng_raw"].reshape(made.shape)
            missing = (came == (-(2**31), 1)).all(axis=(0, 2, 3))  # an antenna may begin later
            assert np.array_equal(came[:, ~missing], made[:, ~missing])
            n_whole += not missing.any()
        made_by_x = x.counts()["made"][0]
        assert n_whole and made_by_x["dumps_dropped"] > 0 and made_by_x["dumps_out"] >= len(receiver.heaps)


@pytest.mark.thorough
def test_two_senders_of_one_polarisation_are_one_and_repeats(tmp_path: Path) -> None:
    with endless(tmp_path, "udp", 1) as air:
        (f,), x = air.engines()
        sending = [air.dsim(0), air.dsim(0)]
        x.makes(8)
        stop(*sending, f, x)
        received = f.counts()["received"]
        assert received["repeated"] + received["jumped"] > 50
        assert n_right(air) >= 4


@pytest.mark.thorough
def test_noise_at_the_port_is_counted_and_costs_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    with endless(tmp_path, "udp", 1) as air:
        (f,), x = air.engines()
        digitiser = air.dsim(0)
        noise = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _ in range(1500):
            made = rng.integers(0, 256, rng.integers(4, 1400), dtype=np.uint8)
            made[:4] = (0x53, 4, 2, 6)  # like SPEAD, but for the rest
            noise.sendto(made.tobytes(), ("127.0.0.1", air.sample_ports[0][0]))
            time.sleep(0.0005)
        x.makes(4)
        stop(digitiser, f, x)
        assert n_right(air) >= 4
        assert f.counts()["received"]["placed"] >= 0.8 * digitiser.counts()["sent"]


def test_strangers_by_tcp_cost_nothing(tmp_path: Path) -> None:
    """Some send nothing, some no SPEAD, some connect and close; each came before the sender."""
    with ended(Air(tmp_path, "tcp", n_antennas=1)) as air:
        strangers = []

        def come_to(ports: Sequence[int]) -> None:
            for port in ports:
                for data in (b"", b"GET / HTTP/1.1\r\n\r\n", bytes(64)):
                    strangers.append(socket.create_connection(("127.0.0.1", port), timeout=10))
                    strangers[-1].sendall(data)
                socket.create_connection(("127.0.0.1", port), timeout=10).close()

        x = air.x("--once").waits_for("heaps are received at")
        come_to(air.voltage_ports)
        f = air.f(0, "--once").waits_for("heaps are received at")
        come_to(air.sample_ports[0])
        assert air.dsims(0)[0].ends() == 0 and f.ends() == 0 and x.ends() == 0
        assert f.counts()["engines"] == x.counts()["engines"] == 1
        assert n_right(air) == len(air.offline().timestamps)
        for each in strangers:
            each.close()


def test_a_live_engine_goes_on_when_one_of_its_senders_by_tcp_is_killed(tmp_path: Path) -> None:
    with endless(tmp_path, "tcp", 2, x_live=True) as air:
        fs, x = air.engines()
        digitisers = air.dsims(0, 1)
        x.makes(4)
        fs[1].send(signal.SIGKILL)
        x.makes(4)
        fs[1] = air.f(1).waits_for("heaps are received at").makes(8)
        x.makes(8)
        stop(*digitisers, *fs, x)
        assert x.counts()["engines"] == 1 and n_right(air) >= 8
        present = [dump_present.tolist() for _, (_, dump_present) in sorted(dumps(tmp_path / "vis.h5").items())]
        assert [True, False] in present and [True, True] in present[present.index([True, False]) :]


@pytest.mark.parametrize("returns", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_lossless_engine_waits_for_a_sender_by_tcp_that_is_killed_and_then_goes_on(
    tmp_path: Path, returns: bool
) -> None:
    with endless(tmp_path, "tcp", 2) as air:
        fs, x = air.engines()
        digitisers = air.dsims(0, 1)
        x.makes(4)
        fs[1].send(signal.SIGKILL)
        if returns:
            fs[1] = air.f(1).waits_for("heaps are received at").makes(8)
        x.makes(8)
        stop(*digitisers, fs[0], *(fs[1:] if returns else ()), x)
        assert x.counts()["engines"] == 1 and n_right(air) >= 12
        present = [flags.tolist() for _, (_, flags) in sorted(dumps(tmp_path / "vis.h5").items())]
        assert [True, False] in present and (present[-1] == [True, returns] or not returns)


def test_an_engine_that_is_too_slow_drops_whole_chunks_and_makes_no_wrong_dump(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", 1, n_samples=1 << 21, speed=10)) as air:
        (f,), x = air.engines()
        digitiser = air.dsim(0)
        assert digitiser.ends() == 0
        f.waits_for("heaps in")
        stop(f, x)
        counts = f.counts()
        lost = 1 - counts["received"]["placed"] / digitiser.counts()["sent"]
        assert lost > 0 or counts["made"][0]["chunks_dropped"] > 0
        for path in tmp_path.glob("vis*.h5"):
            compare(dumps(path), air.offline())
        assert counts["made"][0]["latency_s"] < 60 + 8 * CHUNK / RATE_HZ


@pytest.mark.thorough
def test_a_sender_that_dies_within_a_heap_is_waited_for_again(tmp_path: Path) -> None:
    """By TCP: the source ends, and the X-engine listens again."""
    with endless(tmp_path, "tcp", 1) as air:
        (f,), x = air.engines()
        digitiser = air.dsim(0)
        x.makes(4)
        f.send(signal.SIGKILL)
        x.waits_for("the senders have ended")
        again = air.f(0).waits_for("heaps are received at")
        x.makes(4)
        digitiser.send(signal.SIGTERM)
        digitiser.ends()
        stop(again, x)
        assert x.counts()["engines"] >= 2 and n_right(air) >= 8
