"""The context that all trials of a sweep share: it is made once, before the first trial, and never changes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..core.config import Config
from ..core.definition import Kernel, P
from ..core.errors import DefinitionError, TrialFailure
from ..core.problem import named_fields
from ..devices import Target
from ..records.measurement import Protocol
from ..source.registry import versioned_reference
from .bench import Bench
from .compile import Subject
from .ledger import Ledger
from .worker import Job

Judge = Callable[[Job, float], str]  # looks at a job's outputs within a deadline: a remark, or raises TrialFailure
N_PROBED = 8  # configs, spread over the space, at which a definition is checked before a sweep begins


@dataclass(frozen=True)
class Context(Subject[P]):
    """The kernel and the problem of a sweep, its device, and how it is measured. ``Context.of`` makes one."""

    bench: Bench
    target: Target
    protocol: Protocol
    deadline_s: float  # deadline of each trial's verification, and of its measurement
    reference: str  # the name or path by which load_kernel finds the kernel, in another process too
    fields: dict[str, Any]  # fields of the problem, from which another process makes it again
    compiler: str
    definition: str  # text of the definition's files
    ledger: Ledger  # accounts for the sweep's time
    has_answers: bool  # whether an output is compared with the definition's reference
    judge: Judge | None = None  # called for each config that passed

    @staticmethod
    def of(
        kernel: Kernel[P],
        problem: P,
        bench: Bench,
        protocol: Protocol,
        deadline_s: float,
        rank: int | None = None,
        ledger: Ledger | None = None,
        judge: Judge | None = None,
    ) -> "Context[P]":
        """Returns the context of a sweep on ``bench``; without a ``rank`` it takes the next one.

        Raises:
            UsageError: if there is no compiler.
        """
        compiler = bench.target.module.compiler(bench.target.device)
        definition = "".join(path.read_text() for path in kernel.source_paths)
        return Context(
            kernel=kernel,
            problem=problem,
            bench=bench,
            target=bench.target,
            protocol=protocol,
            deadline_s=deadline_s,
            rank=bench.join() if rank is None else rank,
            reference=versioned_reference(kernel),
            fields=named_fields(problem),
            compiler=compiler,
            definition=definition,
            ledger=ledger or Ledger(),
            has_answers=any(array.is_compared for array in kernel.arrays(problem).values()),
            judge=judge,
        )

    @contextmanager
    def on_device(self, doing: str) -> Iterator[None]:
        """Holds the device exclusively, and accounts for the time."""
        with self.ledger.on("waiting for the device"):
            self.bench.turn.acquire()
        try:
            with self.ledger.on(doing):
                yield
        finally:
            self.bench.turn.release()

    def check_definition(self, configs: Sequence[Config]) -> None:
        """Calls the methods of the definition that every trial needs, before the first trial.

        Raises:
            DefinitionError: if a method breaks its contract, or fails at all of several different configs.
        """
        self.kernel.arrays(self.problem), self.kernel.work(self.problem), self.kernel.tolerance(self.problem)
        failures = []
        for config in configs[:: max(1, len(configs) // N_PROBED)]:
            try:
                self.kernel.launch(self.problem, config)
                self.kernel.constants(self.problem, config)
            except TrialFailure as failure:
                failures.append(failure.message)
            else:
                return
        raise DefinitionError(failures[0])
