"""Resumes a record: finds the trials that still hold, because their source text or their machine code is unchanged.

A time depends on the machine code, the launch geometry, the definition's reference and tolerance, and the measuring
protocol. Comments, names and the order of functions affect none of these. A trial of a config that the definition now
excludes does not count.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from ..core.definition import P
from ..core.errors import Status, TrialFailure, UsageError
from ..core.schema import plain
from ..records.as_recorded import config_of
from ..records.digests import Digests
from ..records.folder import SweepFolder
from ..records.trial import Trial
from ..records.trial_log import TrialLog
from ..rendering.render import render
from ..system.processes import Died
from ..trial.compile import RecordedConfig
from ..trial.context import Context
from ..trial.stations import stamp


@dataclass(frozen=True)
class ResumedRecord:
    """The trials that hold, in recorded order. ``n_by_code``: how many of them hold although their text has changed.

    ``n_excluded``: how many of the others have configs that the definition no longer allows.
    """

    log: TrialLog
    stale: list[int]  # numbers of the other trials; these stay in the record
    n_by_code: int
    n_excluded: int = 0


def resume(context: Context[P], folder: SweepFolder) -> ResumedRecord:
    """Returns the trials in ``folder`` that hold for a sweep in this context; compiles rewritten sources."""
    recorded = folder.trials()
    allowed = [t for t in recorded if is_allowed(context, t)]
    now = stamp(context)
    by_text = {t.number for t in allowed if t.stamp == now and _is_same_text(context, t)}
    made_by = folder.compiler() if recorded else ""
    by_code = _by_code(context, allowed, by_text, folder.digests(), made_by)
    held = [t for t in recorded if t.number in by_text | by_code]
    stale = [t.number for t in recorded if t.number not in by_text | by_code]
    next_number = 1 + max((t.number for t in recorded), default=-1)
    return ResumedRecord(TrialLog(folder.path, held, next_number), stale, len(by_code), len(recorded) - len(allowed))


def _is_same_text(context: Context[P], trial: Trial) -> bool:
    """Returns whether a config renders as it did then, or cannot be rendered or run for the same reason."""
    try:
        if trial.key is None and (reason := context.kernel.unsupported(trial.config, context.target.device)):
            return trial.message == plain(reason)
        return trial.key == render(context.kernel, context.problem, trial.config).key
    except TrialFailure as failure:
        return trial.key is None and trial.message == plain(failure.message)


def is_allowed(context: Context[P], trial: Trial) -> bool:
    """Returns whether the definition still allows a trial's config here: space, constraints and ``unsupported``.

    Heuristics are ignored: configs that they refuse do run, and were measured. A trial that was skipped because the
    device cannot run its config stays valid.
    """
    kernel, device = context.kernel, context.target.device
    try:
        config = config_of(kernel, trial.config)
        if trial.status != Status.SKIPPED and kernel.unsupported(config, device) is not None:
            return False
        return kernel.space.broken(context.problem, config, device) is None
    except UsageError:  # the config is not in the space
        return False
    except TrialFailure:  # `unsupported` failed, and the trial of this config would fail in the same way
        return True


def _by_code(
    context: Context[P], recorded: Sequence[Trial], by_text: set[int], digests: Digests, made_by: str
) -> set[int]:
    """Returns the numbers of trials whose text has changed, but not their machine code and conditions.

    ``made_by``: the compiler of trials that do not name theirs.
    """
    valid = {t.config for t in recorded if t.number in by_text}
    rewritten = {t.config: t for t in recorded if t.config not in valid}  # the last trial of each config
    tasks = {
        trial.number: asking
        for trial in rewritten.values()
        if (trial.compiler or made_by) == context.compiler and (asking := _ask(context, trial, digests)) is not None
    }
    return {number for number, asking in tasks.items() if _is_same(asking)}


def _ask(context: Context[P], trial: Trial, digests: Digests) -> "Future[bool] | None":
    """Starts the comparison of ``trial`` in a compile process. Returns None if the record lacks its digests."""
    code, conditions = digests.code(trial, context.compiler), digests.condition(trial)
    if not code or not conditions:
        return None
    recorded = RecordedConfig(context.reference, context.fields, trial.config, context.protocol, code, conditions)
    return context.bench.pool.holds(recorded, context.rank)


def _is_same(asking: "Future[bool]") -> bool:
    try:
        return asking.result()
    except (TimeoutError, Died, UsageError):  # a sweep reports a definition that breaks its contract
        return False
