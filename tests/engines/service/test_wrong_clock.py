"""A digitiser whose clock is wrong beside the right one, at the same ports: it is not believed, and it is told of."""

import re
import signal
from pathlib import Path

from autotune.engines.network.received import CONFIRM

from .air import Air, Process, ended

OFF, SLOW = 1 << 30, 0.02  # samples; times real time
LAST = re.compile(r"jumped \(last: sender 0 at sample (\d+); sender 1 at sample (\d+)\)")


def digitisers(air: Air) -> tuple[Path, Path]:
    """The files of the right one and of the wrong one."""
    return air.write_dsim(0, 0), air.write_dsim(1, OFF, air.sample_ports[0])


def last_jumped(f: Process) -> tuple[int, ...]:
    """Where the heaps were that a line of status tells of last."""
    (found,) = [LAST.search(line) for line in f.lines if LAST.search(line)][-1:]
    assert found is not None
    return tuple(map(int, found.groups()))


def test_nothing_of_the_right_one_is_lost_and_nothing_of_the_wrong_one_is_placed(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_samples=None, speed=SLOW)) as air:
        right, wrong = digitisers(air)
        f = air.f(0).waits_for("heaps are received at")
        sends = air.start("dsim", right)
        f.waits_for("packets_missing" if False else "heaps in", n=2)
        errs = air.start("dsim", wrong)
        f.waits_for("last: sender 0 at sample 107", n=3)
        errs.kill()  # it says no end
        sends.send(signal.SIGTERM)
        assert sends.ends() == 0
        f.send(signal.SIGTERM)
        assert f.ends() == 0
        assert all(time >= OFF for time in last_jumped(f))
        counts, sent = f.counts(), sends.counts()["sent"]
        received = counts["received"]
        assert counts["engines"] == 1 and received["placed"] == sent - 2 * (CONFIRM - 1), "two streams begin"
        assert received["jumped"] == received["heaps"] - received["placed"] - received["no_data"] - received["stops"]
        assert received["jumped"] > 100
