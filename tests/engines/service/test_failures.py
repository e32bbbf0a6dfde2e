"""What happens on a network that misbehaves, with real processes: no wrong dump, and the others go on."""

import signal
import socket
import time
from pathlib import Path

import numpy as np

from ..network.test_outlets import Receiver
from .air import CHUNK, PACKET, RATE_HZ, Air, compare, dumps, ended, wait_until

SLOW = 0.1  # times real time: 1 Mi samples take 2.6 s
LONG = 1 << 21  # samples
FULL = 1_700_000  # bytes: room for the first dump of a file, and not for all


def test_an_f_engine_that_is_killed_and_begun_again_costs_its_own_baselines_only(tmp_path: Path) -> None:
    """Five processes by UDP: two digitisers, two F-engines, one X-engine."""
    with ended(Air(tmp_path, "udp", n_samples=LONG, speed=SLOW)) as air:
        fs, x = air.engines()
        digitisers = air.dsims(0, 1)
        x.waits_for("dumps out")
        wait_until(lambda: x.told("dumps out") >= 4)
        fs[1].send(signal.SIGKILL)
        time.sleep(0.7)
        again = air.f(1).waits_for("heaps are received at")
        assert [each.ends() for each in digitisers] == [0, 0]
        for process in (fs[0], again, x):
            process.send(signal.SIGTERM)
        assert [process.ends() for process in (fs[0], again, x)] == [0, 0, 0]
        found = dumps(tmp_path / "vis.h5")
        assert compare(found, air.offline()) >= 20
        present = np.array([flags for _, flags in found.values()])
        assert present[:, 0].sum() > present[:, 1].sum() > 4


def test_a_digitiser_that_begins_again_at_another_time_is_followed_within_a_second(tmp_path: Path) -> None:
    """Earlier, far in the future, and after a gap of the same clock; each time it was killed."""
    far = (1 << 44) // PACKET * PACKET
    firsts = [1 << 30, 0, far, far + (1 << 23)]
    jumps = [0, 1, 2, 2]  # engines that were begun anew so far
    with ended(Air(tmp_path, "udp", n_antennas=1, n_samples=None, speed=SLOW)) as air:
        fs, x = air.engines()
        n_descriptors = list[int]()
        for first, n_jumps in zip(firsts, jumps, strict=True):
            air.write_dsim(0, first)
            digitiser = air.dsim(0)
            time.sleep(1.0)  # it begins
            if n_jumps:
                fs[0].waits_for("has gone on at sample", 2, n=n_jumps)
                x.waits_for("has gone on at sample", 3, n=n_jumps)
            time.sleep(1.5)
            n_descriptors.append(fs[0].n_descriptors + x.n_descriptors)
            digitiser.send(signal.SIGKILL)
            digitiser.ends()
        for process in (*fs, x):
            process.send(signal.SIGINT)
        assert [process.ends() for process in (*fs, x)] == [0, 0]
        assert x.counts()["engines"] == 3
        assert max(n_descriptors) == min(n_descriptors)
        for first in firsts:
            expected = air.offline(1 << 20, first)
            found = {}
            for path in tmp_path.glob("vis*.h5"):
                found |= {t: dump for t, dump in dumps(path).items() if first <= t < first + (1 << 20)}
            assert compare(found, expected) >= 5


def test_x_goes_on_when_an_antenna_is_silent(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=3, n_samples=1 << 19, speed=SLOW)) as air:
        fs, x = air.engines()
        digitisers = air.dsims(0, 2)  # 1 never sends
        assert [each.ends() for each in digitisers] == [0, 0]
        time.sleep(1)
        for process in (*fs, x):
            process.send(signal.SIGTERM)
        assert [process.ends() for process in (*fs, x)] == [0] * 4
        found = dumps(tmp_path / "vis.h5")
        assert compare(found, air.offline()) >= 8
        assert not any(flags[1] for _, flags in found.values())
        assert sum(flags[0] and flags[2] for _, flags in found.values()) >= 4  # by udp, on a machine that may be busy
        assert fs[1].counts()["received"]["placed"] == 0


def test_of_a_silent_polarisation_all_heaps_are_missing_and_counted(tmp_path: Path) -> None:
    more = "patience_s = 0.01\n"
    with ended(Air(tmp_path, "udp", n_antennas=1, n_samples=1 << 19, speed=SLOW, f_more=more)) as air:
        nowhere = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        nowhere.bind(("127.0.0.1", 0))
        air.write_dsim(0, 0, [air.sample_ports[0][0], nowhere.getsockname()[1]])
        f = air.f(0).waits_for("heaps are received at")
        assert air.dsim(0).ends() == 0
        time.sleep(0.5)
        f.send(signal.SIGTERM)
        assert f.ends() == 0
        made = f.counts()["made"][0]
        assert made["heaps_out"] == 0 and made["heaps_missing"] >= 10
        assert made["packets_missing"] >= 0.5 * (1 << 19) / PACKET


def test_a_receiver_that_stops_and_comes_again_costs_its_own_heaps_only(tmp_path: Path) -> None:
    """The X-engine of two destinations' worth of TCP: the F-engine goes on, and connects again."""
    with ended(Air(tmp_path, "tcp", n_antennas=1, n_samples=LONG, speed=SLOW, f_live=True)) as air:
        f, x = air.f(0), air.x()
        for each in (f, x):
            each.waits_for("heaps are received at")
        digitiser = air.dsim(0)
        wait_until(lambda: x.told("dumps out") >= 5)
        x.send(signal.SIGKILL)
        time.sleep(0.5)
        (tmp_path / "vis.h5").rename(tmp_path / "before.h5")
        again = air.x("--once").waits_for("heaps are received at")
        assert digitiser.ends() == 0
        time.sleep(1)
        f.send(signal.SIGTERM)
        assert (f.ends(), again.ends()) == (0, 0)
        expected = air.offline()
        assert compare(dumps(tmp_path / "vis.h5"), expected) >= 10
        made = f.counts()["made"][0]
        assert made["heaps_failed"] > 0 and made["heaps_missing"] == 0 and made["chunks_dropped"] == 0


def test_a_full_disk_behind_x_ends_that_file_and_not_the_stream(tmp_path: Path) -> None:
    receiver = Receiver("udp", port := _free_udp())
    to = ('file = "vis.h5"', f'endpoints = "127.0.0.1:{port}"\npaced = false')
    with ended(Air(tmp_path, "udp", n_antennas=3, n_samples=LONG, speed=SLOW, x_to=to)) as air:
        x, fs = air.x(limit_bytes=FULL), [air.f(antenna) for antenna in range(3)]
        for each in (*fs, x):
            each.waits_for("heaps are received at")
        assert [each.ends() for each in air.dsims(0, 1, 2)] == [0] * 3
        time.sleep(1)
        for process in (*fs, x):
            process.send(signal.SIGTERM)
        assert [process.ends() for process in (*fs, x)] == [0] * 4
        receiver.stop()
        assert sum("vis.h5 takes no more" in line for line in x.lines) == 1
        expected = air.offline()
        times = {int(t): place for place, t in enumerate(expected.timestamps)}
        assert len(receiver.heaps) > 25
        n_whole = 0
        for heap in receiver.heaps:
            right = expected.visibilities[times[int(heap["timestamp"])]]
            found = heap["xeng_raw"].reshape(right.shape)
            is_there = (found != (-(2**31), 1)).any(axis=(0, 2, 3))  # of an antenna that lost a heap, none is
            assert np.array_equal(found[:, is_there], right[:, is_there])
            n_whole += is_there.all()
        assert n_whole >= 10
        made = x.counts()["made"][0]
        assert made["dumps_dropped"] > 0 and made["dumps_out"] >= len(receiver.heaps)


def test_two_senders_of_one_polarisation_are_one_and_repeats(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=1, n_samples=1 << 19, speed=SLOW)) as air:
        f, x = air.f(0), air.x()
        for each in (f, x):
            each.waits_for("heaps are received at")
        digitisers = [air.dsim(0), air.dsim(0)]
        assert [each.ends() for each in digitisers] == [0, 0]
        time.sleep(1)
        for process in (f, x):
            process.send(signal.SIGTERM)
        assert (f.ends(), x.ends()) == (0, 0)
        assert f.counts()["received"]["repeated"] + f.counts()["received"]["jumped"] > 50
        n_right = 0
        for path in tmp_path.glob("vis*.h5"):
            n_right += compare(dumps(path), air.offline())
        assert n_right >= 8


def test_noise_at_the_port_is_counted_and_costs_nothing_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    with ended(Air(tmp_path, "udp", n_antennas=1, n_samples=1 << 19, speed=SLOW)) as air:
        fs, x = air.engines()
        digitiser = air.dsim(0)
        noise = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _ in range(1500):
            made = rng.integers(0, 256, rng.integers(4, 1400), dtype=np.uint8)
            made[:4] = (0x53, 4, 2, 6)  # like SPEAD, but for the rest
            noise.sendto(made.tobytes(), ("127.0.0.1", air.sample_ports[0][0]))
            time.sleep(0.001)
        assert digitiser.ends() == 0
        time.sleep(1)
        for process in (*fs, x):
            process.send(signal.SIGTERM)
        assert [process.ends() for process in (*fs, x)] == [0, 0]
        assert compare(dumps(tmp_path / "vis.h5"), air.offline()) >= 8
        assert fs[0].counts()["received"]["placed"] >= 0.95 * digitiser.counts()["sent"]


def test_an_engine_that_is_too_slow_drops_whole_chunks_and_makes_no_wrong_dump(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=1, n_samples=1 << 22, speed=10)) as air:
        fs, x = air.engines()
        digitiser = air.dsim(0)
        assert digitiser.ends() == 0
        time.sleep(2)
        for process in (*fs, x):
            process.send(signal.SIGTERM)
        assert [process.ends() for process in (*fs, x)] == [0, 0]
        counts = fs[0].counts()
        lost = 1 - counts["received"]["placed"] / digitiser.counts()["sent"]
        assert lost > 0 or counts["made"][0]["chunks_dropped"] > 0
        for path in tmp_path.glob("vis*.h5"):
            compare(dumps(path), air.offline())
        assert counts["made"][0]["latency_s"] < 10 + 8 * CHUNK / RATE_HZ


def test_a_sender_that_dies_within_a_heap_is_waited_for_again(tmp_path: Path) -> None:
    """By TCP: the source ends, and the X-engine listens again."""
    with ended(Air(tmp_path, "tcp", n_antennas=1, n_samples=LONG, speed=SLOW)) as air:
        fs, x = air.engines()
        digitiser = air.dsim(0)
        wait_until(lambda: x.told("dumps out") >= 5)
        fs[0].send(signal.SIGKILL)
        x.waits_for("the senders have ended", 20)
        again = air.f(0, "--once").waits_for("heaps are received at")
        digitiser.ends()
        time.sleep(1)
        for process in (again, x):
            process.send(signal.SIGTERM)
        assert x.ends() == 0
        again.ends()
        expected = air.offline()
        assert x.counts()["engines"] >= 2
        n_right = sum(compare(dumps(path), expected) for path in tmp_path.glob("vis*.h5"))
        assert n_right >= 5


def _free_udp() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as some:
        some.bind(("127.0.0.1", 0))
        port: int = some.getsockname()[1]
    return port
