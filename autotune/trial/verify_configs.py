"""Implements `autotune verify`: checks many variants without timing, or one to reproduce a failure."""

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from ..core.config import Config
from ..core.definition import AnyKernel, Kernel, P, problem_name
from ..core.errors import Status, TrialFailure, UsageError
from ..core.problem import Problem
from ..devices import Target
from ..devices.base import Binary
from ..source.registry import kernel_reference
from .case import too_large_for_numpy
from .compile import CompilePool, Proposal, Subject
from .stations import check_limits
from .worker import Job, Worker

PASSED = "passed"
TOO_LARGE = "not at its own size, for which NumPy would need minutes"


@dataclass(frozen=True)
class ConfigCheck:
    """One variant's outcome: ``status`` says how it ended."""

    problem: Problem
    config: Config
    status: str  # PASSED, or a Status
    message: str = ""


def sample_of(configs: Sequence[Config], n: int | None, seed: int = 0) -> list[Config]:
    """Returns all configs, or ``n`` random ones in which every value of every parameter occurs, if ``n`` allows."""
    if n is None or n >= len(configs):
        return list(configs)
    shuffled = list(configs)
    random.Random(seed).shuffle(shuffled)
    chosen: list[Config] = []
    seen: set[tuple[str, Any]] = set()
    for config in shuffled:  # configs with a new value come first
        if len(chosen) < n and not seen.issuperset(config.items()):
            chosen.append(config)
            seen.update(config.items())
    rest = [c for c in shuffled if c not in set(chosen)]
    return chosen + rest[: n - len(chosen)]


@dataclass(frozen=True)
class Checking:
    """The device and the limits of a check.

    ``builds``: None means all builds that the device verifies. ``seed``: of the sizes and values of the first variant.
    """

    target: Target
    compile_processes: int
    deadline_s: float = 60.0  # time limit for the verification of one variant
    builds: tuple[str, ...] | None = None
    seed: int = 0


def builds_of(target: Target, name: str) -> tuple[str, ...] | None:
    """Returns the build ``name``, or None (all builds) for "". Raises UsageError if the device has no such build."""
    if name and name not in target.module.builds:
        raise UsageError(f"{target.kind} has no build {name!r} (it has {', '.join(target.module.builds)})")
    return (name,) if name else None


def check_all(kernel: AnyKernel, work: Iterable[tuple[Any, Config]], checking: Checking) -> Iterator[ConfigCheck]:
    """Yields the outcome of each (problem, config), compiled and verified, in order.

    Compiles run ahead. A failure of a variant is an outcome, not an exception.
    """
    with CompilePool(checking.target, checking.compile_processes) as pool, Worker(checking.target) as worker:
        ahead: deque[tuple[Any, Config, Proposal]] = deque()
        seeds = count(checking.seed)
        remaining = iter(work)
        while True:
            while len(ahead) <= checking.compile_processes and (item := next(remaining, None)) is not None:
                ahead.append((*item, pool.start(Subject(kernel, item[0], 0), item[1], checking.builds)))
            if not ahead:
                return
            problem, config, proposal = ahead.popleft()
            try:
                binary = _compiled(kernel, problem, proposal, checking.target)
                job = Job(kernel_reference(kernel), asdict(problem), config, binary, seed=next(seeds))
                full = not too_large_for_numpy(kernel, problem)
                verdict = worker.verify(job, checking.deadline_s, checking.builds, full=full)
                where = f"at {'; '.join(verdict.verified_on)}"
                yield ConfigCheck(problem, config, PASSED, where if full else f"{where}; {TOO_LARGE}")
            except TrialFailure as failure:
                yield ConfigCheck(problem, config, failure.status, failure.message)


def compile_all(kernel: AnyKernel, work: Iterable[tuple[Any, Config]], checking: Checking) -> Iterator[ConfigCheck]:
    """Yields the outcome of each (problem, config), compiled for the architecture of the target, without such a device.

    Raises:
        UsageError: if there is no compiler.
    """
    checking.target.module.compiler(checking.target.device)
    with CompilePool(checking.target, checking.compile_processes) as pool:
        started = [(*item, pool.start(Subject(kernel, item[0], 0), item[1], checking.builds)) for item in work]
        for problem, config, proposal in started:
            try:
                _compiled(kernel, problem, proposal, checking.target)
                yield ConfigCheck(problem, config, PASSED)
            except TrialFailure as failure:
                yield ConfigCheck(problem, config, failure.status, failure.message)


class Tally:
    """Counts the outcomes of ``n_total`` checks."""

    def __init__(self, kernel: AnyKernel, n_total: int) -> None:
        self.kernel, self.n_total = kernel, n_total
        self.n_passed = self.n_skipped = 0
        self.failed: list[ConfigCheck] = []

    def count(self, outcome: ConfigCheck) -> None:
        self.n_passed += outcome.status == PASSED
        self.n_skipped += outcome.status == Status.SKIPPED
        if outcome.status not in (PASSED, Status.SKIPPED):
            self.failed.append(outcome)

    @property
    def n_done(self) -> int:
        return self.n_passed + self.n_skipped + len(self.failed)

    @property
    def all_passed(self) -> bool:
        """Returns whether something passed and nothing failed."""
        return self.n_passed > 0 and not self.failed

    def as_json(self) -> dict[str, object]:
        counts = {"passed": self.n_passed, "skipped": self.n_skipped, "not_checked": self.n_total - self.n_done}
        return counts | {"failed": [self.line(f) for f in self.failed]}

    def __str__(self) -> str:
        left = f", {self.n_total - self.n_done} not checked" if self.n_done < self.n_total else ""
        passed = f"{self.n_passed} passed, {len(self.failed)} failed, {self.n_skipped} skipped"
        return f"{self.kernel.name}: {passed}{left}"

    def variant(self, outcome: ConfigCheck) -> str:
        """Returns the name of the checked variant."""
        return f"{self.kernel.name}[{problem_name(outcome.problem)}|{outcome.config}]"

    def line(self, outcome: ConfigCheck) -> str:
        """Returns the outcome in one line."""
        return f"{outcome.status:14s} {self.variant(outcome)} {outcome.message}".rstrip()


def _compiled(kernel: Kernel[P], problem: P, proposal: Proposal, target: Target) -> Binary:
    """Waits for the compile; returns the binary. Raises TrialFailure, also for a launch that the device refuses."""
    binary = proposal.binary()
    check_limits(binary, kernel.launch(problem, proposal.config), target.device)
    return binary
