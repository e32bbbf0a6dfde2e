"""Launches a config of a call without a definition: in the device's process, with the contents of files."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..core.array import Array, array_constant
from ..core.config import Config
from ..core.definition import Launch
from ..core.errors import TrialFailure
from ..devices.base import TIMED_ALIGN, Binary, Buffer, Constant, Session
from ..rendering.render import Variant
from ..trial.bench import Bench
from ..trial.case import arrays_of, save_arrays
from .call import Call
from .formulas import Formulas

FEW_BLOCKS, SOME_BLOCKS = 8, 128  # blocks from which the time of a launch is estimated
SLOW_S, QUICK_S = 3.0, 1.0  # seconds of a checked launch: from here on they are told; those of a size that is quick
GIVEN, CHANGED = "given", "changed"  # kinds of files: the caller's contents, and contents that replace them


@dataclass(frozen=True)
class Ready:
    """A compiled config with everything for its launch, in types that can be sent to another process."""

    binary: Binary
    launch: Launch
    folder: Path  # folder with the caller's arrays
    arguments: tuple[tuple[str, np.generic | None, bool], ...]  # name, number or None, whether it may be written
    constants: tuple[str, ...]


class ConfigLauncher:
    """Compiles configs of a call and launches them on the bench.

    Raises:
        TrialFailure: when a config does not compile or run.
    """

    def __init__(self, call: Call, formulas: Formulas, bench: Bench, deadline_s: float) -> None:
        self._call, self._formulas, self._bench, self._deadline_s = call, formulas, bench, deadline_s
        self._folder = bench.folder(bench.join())
        save_arrays(self._folder, GIVEN, {each.name: each.memory.stored for each in call.arrays})

    def ready(self, configs: Sequence[Mapping[str, object]]) -> Iterator[Ready | TrialFailure]:
        """Yields the configs, which are compiled at the same time; for one that does not compile, its failure."""
        call, said = self._call, [self._formulas.said(config) for config in configs]
        arguments = tuple((a.name, None if a.is_array else a.number, a.may_be_written) for a in call.arguments)
        constants = tuple(each.name for each in call.constants)
        variants = [
            self._variant(config, values.function or call.name) for config, values in zip(configs, said, strict=True)
        ]
        for values, pending in zip(said, [self._bench.pool.submit(variant) for variant in variants], strict=True):
            launch = Launch(values.grid, values.block, values.shared_bytes, function=values.function)
            try:
                yield Ready(pending.result(), launch, self._folder, arguments, constants)
            except TrialFailure as failure:
                yield failure

    def launched(
        self,
        ready: Ready,
        names: Sequence[str],
        changed: Mapping[str, np.ndarray] | None = None,
        seed: int = 0,
        is_checked: bool = True,
        read_only: Sequence[str] = (),
    ) -> dict[str, np.ndarray]:
        """Returns the contents of the arrays ``names`` after a launch; arrays in ``changed`` begin with those contents.

        ``read_only``: arrays that must not be written; devices that can detect a write report it.
        """
        arguments = tuple((name, n, may and name not in read_only) for name, n, may in ready.arguments)
        ready = replace(ready, arguments=arguments)
        save_arrays(self._folder, CHANGED, changed or {})
        task = ready, tuple(names), tuple(changed or ()), seed, is_checked
        try:
            with self._bench.turn:
                written = self._bench.worker.call(launch_once, *task, deadline_s=self._deadline_s)
        except TrialFailure as failure:
            grid, block = ("x".join(map(str, each)) for each in (ready.launch.grid, ready.launch.block))
            raise TrialFailure(failure.status, f"{failure.message} (grid {grid}, block {block})") from failure
        before = {each.name: each.memory.stored for each in self._call.arrays} | dict(changed or {})
        return {name: written.get(name, before[name]) for name in names}

    def told_slow(self, ready: Ready) -> str:
        """Returns a line on how long one checked launch takes, if that is long; "" otherwise, or if it fails."""
        try:
            with self._bench.turn:
                seconds: float = self._bench.worker.call(checked_s, ready, deadline_s=self._deadline_s)
        except TrialFailure:  # the first launch of all blocks will tell
            return ""
        if seconds < SLOW_S:
            return ""
        return (
            f"one checked launch takes about {seconds:.0f} s here, and each config several: a size that is "
            f"{seconds / QUICK_S:.0f} times smaller, in arrays, numbers and --size, takes about {QUICK_S:.0f} s"
        )

    def _variant(self, config: Mapping[str, Any], function: str) -> Variant:
        name = f"{function}[{Config(config)}]"
        source = f"// {name}\n{self._formulas.source(config)}"
        key = sha256(source.encode()).hexdigest()[:12]
        constants: list[tuple[str, Array]] = [
            (each.name, array_constant(each.memory.stored.dtype, *each.memory.stored.shape))
            for each in self._call.constants
        ]
        return Variant(function, name, key, source, source, Config(config), tuple(constants))


def launch_once(
    session: Session, ready: Ready, names: Sequence[str], changed: Sequence[str], seed: int, is_checked: bool
) -> dict[str, np.ndarray]:
    """Returns the contents of those arrays in ``names`` that a launch changed. Runs in the device's process."""
    contents = arrays_of(ready.folder, GIVEN)
    contents |= {name: array for name, array in arrays_of(ready.folder, CHANGED).items() if name in changed}
    function = session.load(ready.binary, session.check_builds[0] if is_checked else session.timed_build)
    with _bound(session, ready, contents) as (buffers, arguments):
        function.launch(ready.launch, arguments, seed=seed)
        results = {name: buffers[name].read() for name in names}
        return {name: array for name, array in results.items() if not _is_same_bits(array, contents[name])}


def checked_s(session: Session, ready: Ready) -> float:
    """Returns about how many seconds a checked launch takes, from some of its blocks. Runs in the device's process."""
    n = prod(ready.launch.grid)
    function = session.load(ready.binary, session.check_builds[0])
    with _bound(session, ready, arrays_of(ready.folder, GIVEN)) as (_, arguments):

        def timed(most: int) -> tuple[int, float]:
            grid = []
            for extent in ready.launch.grid:
                grid.append(min(extent, most))
                most = max(1, most // extent)
            start = time.perf_counter()
            function.launch(replace(ready.launch, grid=(grid[0], grid[1], grid[2])), arguments, seed=0)
            return prod(grid), time.perf_counter() - start

        few, first_s = min((timed(FEW_BLOCKS) for _ in range(2)), key=lambda each: each[1])
        some, second_s = timed(SOME_BLOCKS) if first_s < QUICK_S else (0, 0.0)
        return (
            second_s + max(0.0, (second_s - first_s) / (some - few)) * (n - some) if some > few else first_s * n / few
        )


@contextmanager
def _bound(
    session: Session, ready: Ready, contents: Mapping[str, np.ndarray]
) -> Iterator[tuple[dict[str, Buffer], list[Any]]]:
    """Yields the buffers of the arrays with these contents, and the arguments of a launch."""
    buffers: dict[str, Buffer] = {}
    try:
        for name, number, is_written in ready.arguments:
            if number is None:
                array = contents[name]
                buffers[name] = session.buffer(name, array.shape, array.dtype, written=is_written, align=TIMED_ALIGN)
                buffers[name].write(np.ascontiguousarray(array))
        arguments = [buffers[name] if number is None else number for name, number, _ in ready.arguments]
        yield buffers, [*arguments, *(Constant(name, contents[name]) for name in ready.constants)]
    finally:
        for buffer in buffers.values():
            buffer.free()


def _is_same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a.reshape(-1).view(np.uint8), np.ascontiguousarray(b).reshape(-1).view(np.uint8))
