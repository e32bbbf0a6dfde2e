"""The cores of an engine's threads, and so the memory nodes of the memory that they allocate."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from ...core.errors import UsageError

THREADS = ("reads", "returns", "compute", "writes")  # names without numbers of antennas and outputs
T = TypeVar("T")


@dataclass(frozen=True)
class ThreadCores:
    """Cores by thread name without numbers, for the names in ``THREADS``. The system places other threads.

    Raises:
        UsageError: for another name, or cores that this process may not use.
    """

    by_name: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.by_name:
            return
        if not hasattr(os, "sched_setaffinity"):
            raise UsageError("cores cannot be given to threads on this system; leave cores out")
        usable = os.sched_getaffinity(0)
        for name, cores in self.by_name.items():
            if name not in THREADS:
                raise UsageError(f"cores of {name!r}: the threads of an engine are {', '.join(THREADS)}")
            if not cores or not usable.issuperset(cores):
                raise UsageError(f"cores of {name}: {list(cores)}; this process may use {_ranges(usable)}")

    def of(self, name: str) -> Sequence[int]:
        """Returns the cores of a thread, whose name may end with numbers; none if it may run anywhere."""
        return self.by_name.get(name.partition("-")[0], ())

    def made_by(self, name: str, make: Callable[[], T]) -> T:
        """Returns ``make()``, run on the cores of a thread, so that memory it touches first lies near them."""
        cores = self.of(name)
        if not cores:
            return make()
        with ThreadPoolExecutor(1, initializer=bind, initargs=(cores,)) as pool:
            return pool.submit(make).result()


def bind(cores: Sequence[int]) -> None:
    """Binds the calling thread to these cores; without cores it changes nothing.

    Raises:
        UsageError: when the system refuses.
    """
    if not cores:
        return
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        usable = _ranges(os.sched_getaffinity(0))
        raise UsageError(
            f"a thread cannot run on cores {list(cores)} ({error.strerror}); it may use {usable}"
        ) from None


@contextmanager
def bound(cores: Sequence[int]) -> Iterator[None]:
    """Binds the calling thread to these cores in the block, and restores its cores afterwards."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    bind(cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _ranges(cores: Iterable[int]) -> str:
    """Returns numbers as ranges: "0-3, 8"."""
    ranges: list[list[int]] = []
    for core in sorted(cores):
        if ranges and core == ranges[-1][-1] + 1:
            ranges[-1].append(core)
        else:
            ranges.append([core])
    return ", ".join(f"{some[0]}-{some[-1]}" if len(some) > 1 else str(some[0]) for some in ranges)
