"""`autotune verify`: many variants checked, none timed; and the one-variant check that failures are reproduced by."""

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .catalogue import reference_of
from .compile import CompilePool, Pending, check_limits
from .definition import Kernel, problem_name
from .devices import Target
from .devices.worker import Job, Worker
from .errors import TrialFailure
from .render import render
from .space import Config


@dataclass(frozen=True)
class Check:
    """One variant's outcome: ``status`` is ``passed`` or one of the trial statuses."""

    problem: Any
    config: Config
    status: str
    message: str = ""
    max_error: float | None = None


def sample_of(configs: Sequence[Config], n: int | None, seed: int = 0) -> list[Config]:
    """All of them, or ``n`` at random such that every value of every parameter appears if ``n`` allows."""
    if n is None or n >= len(configs):
        return list(configs)
    shuffled = list(configs)
    random.Random(seed).shuffle(shuffled)
    chosen: list[Config] = []
    seen: set[tuple[str, Any]] = set()
    for config in shuffled:  # first those that show a value not yet seen
        if len(chosen) < n and not seen.issuperset(config.items()):
            chosen.append(config)
            seen.update(config.items())
    rest = [c for c in shuffled if c not in set(chosen)]
    return chosen + rest[: n - len(chosen)]


def check_all(
    kernel: Kernel[Any],
    work: Iterable[tuple[Any, Config]],
    target: Target,
    *,
    compile_processes: int,
    deadline_s: float = 60.0,
    builds: tuple[str, ...] | None = None,
) -> Iterator[Check]:
    """Each (problem, config) compiled and verified, in order; compiles run ahead. Nothing raises for a variant."""
    with CompilePool(target, compile_processes) as pool, Worker(target) as worker:
        ahead: deque[tuple[Any, Config, Pending | TrialFailure]] = deque()
        remaining = iter(work)
        while True:
            while len(ahead) <= compile_processes and (item := next(remaining, None)) is not None:
                ahead.append((*item, _start(kernel, *item, pool, builds)))
            if not ahead:
                return
            problem, config, pending = ahead.popleft()
            try:
                yield _finish(kernel, problem, config, pending, worker, deadline_s, builds)
            except TrialFailure as failure:
                yield Check(problem, config, failure.status, failure.message)


def compile_all(
    kernel: Kernel[Any], work: Iterable[tuple[Any, Config]], target: Target, compile_processes: int
) -> Iterator[Check]:
    """Each (problem, config) compiled for the architecture of ``target``, which need not be here."""
    with CompilePool(target, compile_processes) as pool:
        started = [(problem, config, _start(kernel, problem, config, pool, None)) for problem, config in work]
        for problem, config, pending in started:
            try:
                binary = (_raise(pending) if isinstance(pending, TrialFailure) else pending).result()
                check_limits(binary, kernel.launch(problem, config), target.device)
                yield Check(problem, config, "passed")
            except TrialFailure as failure:
                yield Check(problem, config, failure.status, failure.message)


def _start(
    kernel: Kernel[Any], problem: Any, config: Config, pool: CompilePool, builds: tuple[str, ...] | None
) -> Pending | TrialFailure:
    if reason := kernel.unsupported(config, pool.target.device):
        return TrialFailure("skipped", reason)
    try:
        return pool.submit(render(kernel, problem, config), builds)
    except TrialFailure as failure:
        return failure


def _finish(
    kernel: Kernel[Any],
    problem: Any,
    config: Config,
    pending: Pending | TrialFailure,
    worker: Worker,
    deadline_s: float,
    builds: tuple[str, ...] | None,
) -> Check:
    binary = (_raise(pending) if isinstance(pending, TrialFailure) else pending).result()
    check_limits(binary, kernel.launch(problem, config), worker.target.device)
    job = Job(reference_of(kernel), asdict(problem), config, binary)
    verdict = worker.verify(job, deadline_s, builds, full=True)
    return Check(problem, config, "passed", f"at {'; '.join(verdict.verified_on)}", verdict.max_error)


def _raise(failure: TrialFailure) -> Pending:
    raise failure


def describe(check: Check, kernel: Kernel[Any]) -> str:
    """One line."""
    return f"{check.status:14s} {kernel.name}[{problem_name(check.problem)}|{check.config}] {check.message}"
