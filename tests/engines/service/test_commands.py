"""`dsim`, `fengine` and `xengine` as processes: dumps as without a network, and each packet counted once."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ...commands import autotune
from ..network.test_outlets import Receiver
from .air import Air, Process, compare, dumps, ended

NOT_PLACED = ("wrong_size", "foreign", "off_grid", "jumped", "early", "repeated", "too_old", "incomplete")


def test_what_is_sent_by_tcp_is_correlated_as_without_a_network(tmp_path: Path) -> None:
    with ended(Air(tmp_path)) as air:
        fs, x = air.engines("--once")
        digitisers = air.dsims(*range(air.n_antennas))
        assert [each.ends() for each in (*digitisers, *fs, x)] == [0] * 5
        expected = air.offline()
        assert len(expected.timestamps) > 10
        assert compare(dumps(tmp_path / "vis.h5"), expected) == len(expected.timestamps)
        for digitiser, f in zip(digitisers, fs, strict=True):
            sent, counts = digitiser.counts(), f.counts()
            assert sent["sent"] == counts["received"]["placed"] == 2 * air.n_samples // 1024
            assert not any(counts["received"][name] for name in NOT_PLACED)
            assert counts["engines"] == 1 and counts["made"][0]["heaps_missing"] == 0
        assert x.counts()["received"]["placed"] == sum(f.counts()["made"][0]["heaps_out"] for f in fs)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_packets_lost_repeated_and_exchanged_on_purpose_are_each_in_one_counter(tmp_path: Path, transport: str) -> None:
    faults = {"lost": 0.01, "repeated": 0.01, "exchanged": 0.01}
    with ended(Air(tmp_path, transport, faults=faults, speed=0.1 if transport == "udp" else 1.0)) as air:
        fs, x = air.engines("--once")
        digitisers = air.dsims(*range(air.n_antennas))
        assert [each.ends() for each in (*digitisers, *fs, x)] == [0] * 5
        expected = air.offline()
        found = dumps(tmp_path / "vis.h5")
        n = compare(found, expected)
        if transport == "tcp":
            assert n == len(expected.timestamps)
            assert np.array_equal([present for _, present in found.values()], expected.present)
        assert n >= 0.3 * len(expected.timestamps)  # by udp the first heaps are not believed, and nobody waits
        assert not np.array(expected.present).all()
        for digitiser, f in zip(digitisers, fs, strict=True):
            sent, received = digitiser.counts(), f.counts()["received"]
            assert sent["lost"] > 0 and sent["repeated"] > 0 and sent["exchanged"] > 0
            assert sent["sent"] == 2 * air.n_samples // 1024 - sent["lost"] + sent["repeated"]
            balance = sum(received[name] for name in ("placed", *NOT_PLACED, "kernel_drops"))
            assert balance == sent["sent"]


def test_damaged_packets_cost_what_they_hit_and_nothing_else(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=1, n_samples=1 << 20, faults={"damaged": 0.4}, speed=0.2)) as air:
        f = air.f(0, "--once").waits_for("heaps are received at")
        digitiser = air.dsim(0)
        assert digitiser.ends() == 0
        f.waits_for("heaps in")
        assert f.ends() == 0
        sent, counts = digitiser.counts(), f.counts()
        assert sent["damaged"] > 0.3 * sent["sent"]
        packets = 2 * counts["made"][0]["samples_in"] // 1024
        assert packets >= 0.95 * sent["sent"]  # chunks come, whatever is missing in them
        assert counts["received"]["placed"] >= 0.6 * sent["sent"]


def test_without_gains_voltages_have_the_level_of_their_bits(tmp_path: Path) -> None:
    with ended(Air(tmp_path, n_antennas=1, n_samples=1 << 18, gains=None)) as air:
        receiver = Receiver("tcp", air.voltage_ports[0])
        f, digitiser = air.f(0, "--once"), air.dsim(0)
        assert (digitiser.ends(), f.ends()) == (0, 0)
        receiver.ends()
        found = np.array([heap["feng_raw"] for heap in receiver.heaps], float)
        assert len(found) > 10
        assert np.allclose(found[:, 1:].std(axis=(0, 1, 2, 4)), 16, rtol=0.02)
        assert sum("give voltages of rms 16" in line for line in f.lines) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("antenna = 3", "it lacks sample_rate_hz"),
        ('sample_rate_hz = 1e6\nfrom.listen = "127.0.0.1:99999"\n[[to]]\nchannels = 64', "port 99999"),
        ('sample_rate_hz = 1e6\nfrom.listen = "127.0.0.1"\n[[to]]\nchannels = 64', "neither endpoints nor file"),
        (
            'sample_rate_hz = 1e6\nfrom.listen = "127.0.0.1"\n[[to]]\nchannels = 64\nendpoints = "127.0.0.1+2:7150"',
            "3 endpoints cannot share",
        ),
        (
            'sample_rate_hz = 1e6\npacket = 3\nfrom.listen = "127.0.0.1"\n[[to]]\nchannels = 64\nfile = "v"',
            "multiple of 8",
        ),
        (
            'sample_rate_hz = 1e6\nfeng_id = 4\nn_antennas = 4\nfrom.listen = "127.0.0.1"\nto={channels=8,file="v"}',
            "0 to n_antennas - 1",
        ),
        ('sample_rate_hz = 1e6\nfrom.listen = "127.0.0.1"\n[to]\nchannel = 64', "channel"),
        ('sample_rate_hz = 1e6\nfrom.transport = "tcp"\n[to]\nchannels = 64', "[from] lacks listen"),
        (
            'sample_rate_hz = 1e6\nfrom.listen = "127.0.0.1"\nfrom.transport = "tcp"\n[to]\nchannels = 64\nfile = "v"',
            "[from] listen must have 2 entries with tcp",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "f.toml"
    path.write_text(text)
    found = autotune("fengine", path)
    (line,) = found.stderr.splitlines()
    assert found.returncode == 2 and says in line and "f.toml" in line, line


def test_a_port_that_is_taken_is_status_1(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=1)) as air:
        air.f(0).waits_for("heaps are received at")
        second = air.f(0)
        assert second.ends() == 1
        assert any(f"127.0.0.1:{air.sample_ports[0][0]}" in line for line in second.lines)


def test_of_an_engine_that_cannot_listen_or_hears_nothing_no_file_is_left(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=1)) as air:
        first = air.x().waits_for("heaps are received at")
        (tmp_path / "vis.h5").rename(tmp_path / "first.h5")
        assert air.x().ends() == 1
        assert not (tmp_path / "vis.h5").exists()
        (tmp_path / "first.h5").rename(tmp_path / "vis.h5")
        first.send(signal.SIGTERM)
        assert first.ends() == 0
        assert not list(tmp_path.glob("*.h5"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_engine_whose_receiver_is_not_there_says_so_and_ends_when_it_is_told_to(
    tmp_path: Path, number: signal.Signals
) -> None:
    with ended(Air(tmp_path, n_antennas=1)) as air:
        f, digitiser = air.f(0), air.dsim(0)
        f.waits_for(f"nobody listens at 127.0.0.1:{air.voltage_ports[0]} yet")
        f.waits_until(lambda: any(re.search(" [1-9][0-9]+ heaps in", line) for line in list(f.lines)))
        f.send(number)
        assert f.ends() == 0
        digitiser.send(number)
        assert digitiser.ends() == 0
        assert f.counts()["made"][0]["heaps_failed"] >= 1


def test_a_name_of_a_host_that_is_not_there_is_told(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=1)) as air:
        text = (tmp_path / "x.toml").read_text()
        (tmp_path / "x.toml").write_text(text.replace("127.0.0.1", "nowhere.invalid"))
        x = air.x()
        assert x.ends() == 1
        assert any("nothing can be received at nowhere.invalid" in line for line in x.lines)
        assert not any(".hpp" in line for line in x.lines)


def test_without_spead2_a_line_says_how_to_get_it(tmp_path: Path) -> None:
    without = "import sys; sys.modules['spead2'] = None; from autotune.cli import main; main()"
    for command in ("dsim", "fengine", "xengine"):
        found = subprocess.run(
            [sys.executable, "-c", without, command, tmp_path / "x.toml"], capture_output=True, text=True, timeout=120
        )
        (line,) = found.stderr.splitlines()
        assert found.returncode == 2 and "pip install spead2, or " in line, line


def test_ctrl_c_of_a_silent_engine_and_sigterm_are_status_0(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=1)) as air:
        for number, process in ((signal.SIGINT, air.f(0)), (signal.SIGTERM, air.x())):
            process.waits_for("heaps are received at").send(number)
            assert process.ends() == 0
            assert process.counts()["received"]["placed"] == 0


def test_help_says_what_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    for command in ("dsim", "fengine", "xengine"):
        process = Process(command, "-h")
        assert process.ends() == 0
        assert "SPEAD" in process.out


def test_a_digitiser_without_a_pace_is_never_late(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_antennas=1, speed=0)) as air:
        digitiser = air.dsim(0)
        assert digitiser.ends() == 0
        assert digitiser.counts()["behind_s"] == 0 and not any(" late" in line for line in digitiser.lines)
