"""An engine ends when it is told to, whatever it does just then; and what `--check` says opens nothing."""

import re
import signal
import time
from pathlib import Path
from random import Random

import pytest

from .air import Air, ended

MOST_S = 1.5  # from the first line on, an engine has begun after so long
ENDS = {0: "as asked", 130: "by Ctrl-C before it received", -signal.SIGTERM: "by SIGTERM before it received"}


@pytest.mark.parametrize("seed", range(6))
def test_a_signal_at_any_moment_ends_an_engine_without_a_traceback(tmp_path: Path, seed: int) -> None:
    """While it starts, waits, and takes samples; its receiver by TCP does not come, and a dump would last for long."""
    rng = Random(seed)
    with ended(Air(tmp_path, rng.choice(("udp", "tcp")), 1, n_samples=None)) as air:
        kind = rng.choice(("fengine", "xengine"))
        engine = air.f(0) if kind == "fengine" else air.x()
        digitiser = air.dsim(0) if kind == "fengine" and rng.random() < 0.5 else None
        engine.waits_until(lambda: bool(engine.lines))
        time.sleep(rng.uniform(0, MOST_S))
        engine.send(rng.choice((signal.SIGINT, signal.SIGTERM)))
        assert engine.ends() in ENDS
        assert not any("Traceback" in line for line in engine.lines), engine.lines
        if digitiser is not None:
            digitiser.send(signal.SIGTERM)
            assert digitiser.ends() == 0


@pytest.mark.parametrize("command", ["fengine", "xengine"])
def test_what_check_says_opens_nothing(tmp_path: Path, command: str) -> None:
    with ended(Air(tmp_path, "udp", 2)) as air:
        before = sorted(tmp_path.iterdir())
        engine = air.f(0, "--check") if command == "fengine" else air.x("--check")
        assert engine.ends() == 0 and sorted(tmp_path.iterdir()) == before
        ports, memory, latency, tolerance, made = engine.out.splitlines()
        own = air.sample_ports[0] if command == "fengine" else air.voltage_ports
        assert all(f"127.0.0.1:{port}" in ports for port in own) and ports.startswith("ports: listens at ")
        assert re.fullmatch(r"memory: [\d.]+ [kMG]?B of the host; \d chunks of [\d.]+ kB fill at once", memory)
        assert re.fullmatch(r"latency: [\d.]+ s until a chunk is passed on", latency)
        assert re.fullmatch(r"tolerance: a heap may come [\d.]+ s later than others", tolerance)
        what = "heaps a chunk, of 0.00819 s: 2" if command == "fengine" else "dumps a chunk, of 0.00819 s: 1"
        assert made == what
        assert engine.lines == []
