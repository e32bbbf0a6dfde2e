"""Makes today's checks of recorded configs, and records which they passed.

A device of another name but the same architecture makes them, too: it runs the same machine code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..core.definition import AnyKernel
from ..core.errors import Status, TrialFailure, UsageError
from ..records.as_recorded import of_definition, problem_of
from ..records.checks_made import CARRIED, FRESH_INPUTS, LAUNCHES, TIMED_SIZE
from ..records.folder import SweepFolder
from ..records.measurement import Protocol
from ..records.pack import pack
from ..records.record import SweepRecord
from ..records.trial import Trial
from ..records.trial_log import append
from ..trial.bench import Bench
from ..trial.context import Context
from ..trial.oracle import Oracle, oracle_of
from ..trial.stations import check_limits
from .as_measured import as_measured

ONCE = Protocol(n_warmup=1, n_samples=1)


@dataclass(frozen=True)
class Rechecked:
    """A recorded trial after today's checks. ``failure``: why it did not pass, or could not be checked."""

    trial: Trial
    failure: TrialFailure | UsageError | None = None

    @property
    def is_wrong(self) -> bool:
        """Returns whether the config is wrong, so that its record says so now."""
        return isinstance(self.failure, TrialFailure) and self.failure.status == Status.WRONG


def recheck(
    folder: SweepFolder, kernel: AnyKernel, bench: Bench, deadline_s: float, everything: bool = False
) -> Iterator[Rechecked]:
    """Checks the winner and the default of a sweep, or all configs that it measured, and packs the record.

    A config whose machine code is not that of the record is left as it is. A wrong one becomes a failed trial, and an
    outcome that it took part in is deleted. The caller holds the folder's lock.

    Raises:
        UsageError: when the record does not fit the definition, or cannot be written.
    """
    folder = folder.of_space(kernel.space)
    sweep, about = SweepRecord.of(folder), folder.about()
    problem = of_definition(kernel, problem_of, kernel, about)
    context = Context.of(kernel, problem, bench, ONCE, deadline_s)
    winner = sweep.winner.config if sweep.winner else None
    wanted = {winner, about.default}
    finalists = {finalist.number for finalist in sweep.finalists}
    bench.open()
    with oracle_of(context, None) as oracle:
        for trial in [t for t in sweep.measured if everything or t.config in wanted]:
            n_launches = bench.target.module.defaults.checked_launches if trial.config == winner else 0
            try:
                checked, oracle = _checked(context, oracle, folder, trial, n_launches)
                append(folder.path, checked)
                yield Rechecked(checked)
            except (TrialFailure, UsageError) as failure:
                found = Rechecked(trial, failure)
                if found.is_wrong and isinstance(failure, TrialFailure):
                    append(folder.path, trial.refuted(failure))
                    if trial.number in finalists:
                        folder.drop_outcome()
                yield found
    pack(SweepFolder(folder.path), kernel)


def _checked(
    context: Context[Any], oracle: Oracle, folder: SweepFolder, trial: Trial, n_launches: int
) -> tuple[Trial, Oracle]:
    """Returns the trial with the checks that it passed now, and the oracle of the next one."""
    kernel, problem, device, worker = context.kernel, context.problem, context.target.device, context.bench.worker
    variant = of_definition(kernel, as_measured, folder, kernel, device, trial.config, trial.key).variant
    binary = context.bench.pool.submit(variant, rank=context.rank).result()
    if binary.code not in folder.digests().made_by(trial).values():
        raise UsageError(
            f"its machine code by {context.compiler} is not that of the record ({trial.code or 'it has no digest'}): "
            "checks of it say nothing about what was measured"
        )
    check_limits(binary, kernel.launch(problem, trial.config), device)
    job = oracle.job(trial.config, binary)
    verdict = worker.verify(job, context.deadline_s)
    worker.measure(job, ONCE, context.deadline_s)
    made = [*verdict.checks, TIMED_SIZE]
    if n_launches:
        oracle.others().result()
        if worker.repeat(replace(job, others=oracle.others_folder), n_launches, context.deadline_s):
            made += [LAUNCHES, *([CARRIED] if FRESH_INPUTS in made else []), *worker.examine(job, context.deadline_s)]
    oracle = oracle.after(trial.number, trial.config, binary, verdict)
    elsewhere = device.name if device.name != folder.about().device.name else ""
    now = replace(trial, checks=tuple(made), checked_on=elsewhere, rule=verdict.rule, seed=verdict.seed, verified_on=())
    stand_in = oracle.stand_in.number if oracle.stand_in else None
    return replace(now, stand_in=stand_in, numpy_parts=oracle.numpy_parts), oracle
