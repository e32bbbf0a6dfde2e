"""A digitiser whose clock is wrong beside the right one, at the same ports: it is not believed, and it is told of."""

import re
import signal
from pathlib import Path

from autotune.engines.network.received import CONFIRM

from .air import Air, Process, ended

OFF, SLOW = 1 << 30, 0.05  # samples; times real time
LAST = re.compile(r"(\d+) jumped \(last: sender 0 at sample (\d+); sender 1 at sample (\d+)\)")


def jumped(f: Process) -> tuple[int, int, int]:
    """What the newest line of status says: how many heaps have jumped, and where the last ones of both senders were."""
    found = [match for line in list(f.lines) if (match := LAST.search(line))]
    return tuple(map(int, found[-1].groups())) if found else (0, 0, 0)  # type: ignore[return-value]


def digitisers(air: Air) -> tuple[Path, Path]:
    """The files of the right one and of the wrong one."""
    return air.write_dsim(0, 0), air.write_dsim(1, OFF, air.sample_ports[0])


def test_nothing_of_the_right_one_is_lost_and_nothing_of_the_wrong_one_is_placed(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_samples=None, speed=SLOW)) as air:
        right, wrong = digitisers(air)
        f = air.f(0, "--once").waits_for("heaps are received at")
        sends = air.start("dsim", right)
        f.waits_until(lambda: f.told("heaps in") > 20)
        disturbs = air.start("dsim", wrong)
        f.waits_until(lambda: jumped(f)[0] > 200)
        disturbs.kill()  # it does not say that it ends
        sends.send(signal.SIGTERM)
        assert (sends.ends(), f.ends()) == (0, 0)
        _, *times = jumped(f)
        assert all(OFF <= time < 2 * OFF for time in times)
        counts, sent = f.counts(), sends.counts()["sent"]
        received = counts["received"]
        assert counts["engines"] == 1
        assert received["placed"] == sent - 2 * (CONFIRM - 1), "the first ones of each polarisation have to agree"
        assert received["jumped"] == received["heaps"] - received["placed"] - received["no_data"] - received["stops"]


def test_where_the_wrong_one_is_first_the_right_one_is_told_of_and_followed_later(tmp_path: Path) -> None:
    with ended(Air(tmp_path, "udp", n_samples=None, speed=SLOW)) as air:
        right, wrong = digitisers(air)
        f = air.f(0).waits_for("heaps are received at")
        disturbs = air.start("dsim", wrong)
        f.waits_until(lambda: f.told("heaps in") > 20)
        air.start("dsim", right)
        f.waits_until(lambda: jumped(f)[0] > 50)
        assert all(0 < time < OFF for time in jumped(f)[1:])
        disturbs.kill()
        f.waits_for("the stream has jumped to sample")
        f.waits_for("engine 2")
        (line,) = [line for line in f.lines if "has jumped" in line]
        assert int(line.split("sample ")[1].split(":")[0]) < OFF
        f.send(signal.SIGTERM)
        assert f.ends() == 0 and f.counts()["engines"] == 2
