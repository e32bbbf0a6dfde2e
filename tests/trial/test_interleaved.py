"""Configs timed in turns: rounds, and further placements of the buffers for those that are close to the fastest."""

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from autotune import Config, Device, TrialFailure
from autotune.devices.base import Binary, Sample
from autotune.devices.host.buffer import HostBuffer
from autotune.records.measurement import Measurement, Protocol
from autotune.source.registry import load_kernel
from autotune.trial.case import numpy_case
from autotune.trial.interleaved import interleaved

from ..conftest import EXAMPLE

pytestmark = pytest.mark.quick

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 3, "n_chan": 40})
CASE = numpy_case(KERNEL, PROBLEM)


class Timed:
    """A session whose binaries take the seconds that their names say, by the placement: it computes with NumPy."""

    check_builds, timed_build = ("plain",), "plain"

    def __init__(self, keep_bytes: int = 1 << 30, wrong_at: int = -1) -> None:
        self.device = Device("timed", "host", "host")
        self.keep_bytes, self.wrong_at = keep_bytes, wrong_at
        self.places: list[HostBuffer] = []  # the output of each
        self.order: list[str] = []

    def load(self, binary: Binary, build: str) -> Any:
        return _Function(self, binary.key)

    def clock_hz(self) -> float:
        return 0.0

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], *, written: bool, align: int
    ) -> HostBuffer:
        buffer = HostBuffer(name, shape, dtype, written=written)
        if written:
            self.places.append(buffer)
        return buffer


class _Function:
    def __init__(self, session: Timed, seconds: str) -> None:
        self.session, self.seconds = session, [float(s) for s in seconds.split()]

    def launch(self, launch: Any, arguments: Any, *, seed: int = 0) -> None:
        wrong = self.session.places.index(arguments[0]) == self.session.wrong_at
        arguments[0].write((np.sum(np.abs(arguments[1].read()) ** 2, axis=0) + wrong).astype(np.float32))

    def samples(self, launch: Any, arguments: Any, n: int, *, cold: bool) -> list[Sample]:
        place = self.session.places.index(arguments[0])
        self.session.order.append(str(self.seconds[0]))
        return [Sample(self.seconds[place % len(self.seconds)], 0.0)] * n


@pytest.fixture(autouse=True)
def nothing_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.trial.measure._placed", OrderedDict())


def timed(session: Timed, *seconds: str, n_placements: int = 1) -> list[Measurement]:
    given: Any = session
    configs = [(Config(KERNEL.default), Binary("v", "detect", each, "code", {})) for each in seconds]
    return interleaved(given, KERNEL, CASE, configs, Protocol(n_samples=7), n_placements)


def test_the_same_number_of_samples_of_each_in_turns() -> None:
    session = Timed()
    assert [len(m.samples_s) for m in timed(session, "1", "2", "3")] == [7, 7, 7]
    rounds = [sorted(session.order[i : i + 3]) for i in range(3, 24, 3)]  # the first three are to warm up
    assert rounds == [["1.0", "2.0", "3.0"]] * 7 and session.order[3:6] != session.order[6:9]


def test_close_ones_are_timed_in_every_placement_and_the_others_in_one() -> None:
    session = Timed()
    found = timed(session, "1 1 1.5 1.5", "1.005 1.005 1.4 1.4", "1.02", n_placements=4)
    assert [len(m.samples_s) for m in found] == [28, 28, 7]
    assert found[0].median_s == pytest.approx(1.25) and found[1].median_s == pytest.approx(1.2025)
    assert len(session.places) == 4


def test_placements_differ_since_all_are_kept_until_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[HostBuffer] = []
    free = HostBuffer.free

    def noted(buffer: HostBuffer) -> None:
        freed.append(buffer)
        free(buffer)

    monkeypatch.setattr(HostBuffer, "free", noted)
    session = Timed()
    timed(session, "1", "1", n_placements=3)
    assert [buffer for buffer in freed if buffer in session.places] == session.places[:0:-1]  # but for the first one


def test_a_lone_winner_needs_one_placement() -> None:
    session = Timed()
    assert [len(m.samples_s) for m in timed(session, "1", "1.02", n_placements=4)] == [7, 7]
    assert len(session.places) == 1


def test_no_more_placements_than_there_is_room_for() -> None:
    arrays = KERNEL.arrays(PROBLEM).values()
    session = Timed(keep_bytes=2 * sum(array.n_bytes for array in arrays))
    assert len(timed(session, "1", "1", n_placements=4)[0].samples_s) == 14


def test_what_is_wrong_in_another_place_fails() -> None:
    with pytest.raises(TrialFailure, match="power"):
        timed(Timed(wrong_at=2), "1", "1", n_placements=4)
    assert timed(Timed(wrong_at=2), "1", "1", n_placements=2)[0].max_error < 1e-6
