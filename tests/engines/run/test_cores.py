"""Threads of engines run on the cores that they are given, and what sources fill is allocated there."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.f.chain import Output, voltage_info
from autotune.engines.f.engine import FEngine
from autotune.engines.fx.engine import FXEngine
from autotune.engines.kernels.choice import Kernels
from autotune.engines.machine.host_backend import HostBackend, HostStream
from autotune.engines.run.cores import ThreadCores
from autotune.engines.streams.in_memory import ArraySource, KeptVisibilities, KeptVoltages
from autotune.engines.streams.samples import Samples
from autotune.engines.streams.voltages import Batches
from autotune.engines.x.engine import XEngine

from ..f.test_engine import INFO, SETTINGS, output, packed
from .test_lent_chunks import Lent

HERE = sorted(os.sched_getaffinity(0))
LOW, HIGH = [HERE[0]], [HERE[-1]]
Cores = Mapping[str, Sequence[int]]
found: dict[str, list[int]] = {}  # cores, by what was done there last


def note(what: str) -> None:
    found[what] = sorted(os.sched_getaffinity(0))


class NotedBackend(HostBackend):
    """Notes where pinned memory for sources is allocated, and which thread gives work."""

    def pinned(self, shape: Sequence[int], dtype: object) -> np.ndarray:
        if (len(shape), dtype) in ((2, np.uint8), (6, np.int8)):
            note("memory")
        return super().pinned(shape, dtype)

    def stream(self) -> HostStream:
        class NotedStream(HostStream):
            def copy_in(self, to: np.ndarray, source: np.ndarray) -> None:
                note("compute")
                super().copy_in(to, source)

        return NotedStream()


class NotedSource(ArraySource):
    def read(self, out: np.ndarray) -> Samples | None:
        note("reads")
        return super().read(out)


class NotedVoltages(KeptVoltages):
    def write(self, *given: Any) -> None:
        note("writes")
        super().write(*given)


class NotedDumps(KeptVisibilities):
    def write(self, *given: Any) -> None:
        note("writes")
        super().write(*given)


class NotedReturns(Lent):
    def give_back(self, number: int) -> None:
        note("returns")
        super().give_back(number)


class NotedBatches:
    """Two chunks of voltages, of one antenna."""

    is_live = False

    def __init__(self) -> None:
        self.antennas, self._at = (voltage_info(INFO, SETTINGS),), 0

    def read(self, out: np.ndarray) -> Batches | None:
        note("reads")
        out[...] = 1
        self._at += 1
        n, length = len(out), self.antennas[0].heap_samples
        return Batches((self._at - 1) * n * length, np.ones((n, 1), bool)) if self._at < 3 else None

    def close(self) -> None:
        return


def lending() -> Any:
    return NotedReturns(NotedSource(packed(), INFO))


def f_engine(cores: Cores | None) -> Any:
    backend = NotedBackend()
    return FEngine(backend, lending(), [output(NotedVoltages())], 7, Kernels(backend, lambda line: None), cores=cores)


def x_engine(cores: Cores | None) -> Any:
    backend = NotedBackend()
    kernels = Kernels(backend, lambda line: None)
    return XEngine(backend, NotedBatches(), NotedDumps(), kernels, accumulate=2, cores=cores)


def fx_engine(cores: Cores | None) -> Any:
    backend, both = NotedBackend(), [Output(SETTINGS, None, each.delays, each.gains) for each in (output(), output())]
    kernels, sources = Kernels(backend, lambda line: None), [lending(), lending()]
    more: Any = {"accumulate": 2, "chunk_samples": 4096}
    return FXEngine(backend, sources, both, NotedDumps(), kernels, cores=cores, **more)


ENGINES = pytest.mark.parametrize("make", [f_engine, x_engine, fx_engine])


@ENGINES
@pytest.mark.parametrize(
    "cores",
    [{"reads": HIGH, "returns": LOW, "compute": LOW, "writes": HIGH}, {"compute": HIGH, "reads": LOW}, {}, None],
)
def test_threads_run_where_they_are_told(make: Callable[[Cores | None], Any], cores: Cores | None) -> None:
    found.clear()
    make(cores).run()
    wanted = dict.fromkeys(found, HERE) | {name: list(some) for name, some in (cores or {}).items() if name in found}
    assert found == wanted | {"memory": wanted["reads"]}
    assert found.keys() >= {"memory", "reads", "compute", "writes"}
    assert sorted(os.sched_getaffinity(0)) == HERE, "the caller's thread is as it was"


@ENGINES
@pytest.mark.parametrize(
    ("cores", "why"),
    [
        ({"reads": [HERE[-1] + 1000]}, rf"cores of reads: \[{HERE[-1] + 1000}\]; this process may use {HERE[0]}"),
        ({"writes": []}, r"cores of writes: \[\]; this process may use"),
        ({"reads-0": LOW}, "cores of 'reads-0': the threads of an engine are reads, returns, compute, writes"),
    ],
)
def test_wrong_cores_are_told(make: Callable[[Cores | None], Any], cores: Cores, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make(cores)


def test_cores_that_are_gone_end_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    made = f_engine({"writes": LOW})

    def refuse(pid: int, cores: Sequence[int]) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    with pytest.raises(UsageError, match=r"cannot run on cores \[\d+\] \(Invalid argument\); it may use \d"):
        made.run()


def test_a_system_without_affinity_takes_no_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity")
    assert ThreadCores().of("reads-3") == ()
    with pytest.raises(UsageError, match="cores cannot be given to threads on this system"):
        ThreadCores({"reads": LOW})


def test_cores_are_told_in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {8, 0, 1, 2, 64, 65})
    with pytest.raises(UsageError, match=r"cores of compute: \[3\]; this process may use 0-2, 8, 64-65$"):
        ThreadCores({"compute": [3]})
