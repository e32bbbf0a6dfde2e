"""Resumes a record: finds the trials that still hold, since their source text or their machine code is unchanged.

A time belongs to the machine code that ran, to the geometry of its launch, to what the definition calls right, and to
how it was measured. Comments, names and the order of two functions decide nothing of these. A config that the
definition excludes by now does not count, however it was measured.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from ..core.definition import P
from ..core.errors import Status, TrialFailure, UsageError
from ..records.as_recorded import config_of
from ..records.digests import Digests
from ..records.folder import SweepFolder
from ..records.trial import Trial
from ..records.trial_log import TrialLog
from ..system.processes import Died
from ..trial.compile import RecordedConfig
from ..trial.context import Context
from ..trial.stations import stamp


@dataclass(frozen=True)
class ResumedRecord:
    """The trials that hold, in recorded order; ``n_by_code`` of them hold although their text has changed.

    ``n_excluded`` of the others are of configs that the definition no longer allows.
    """

    log: TrialLog
    stale: list[int]  # numbers of the others, which keep them
    n_by_code: int
    n_excluded: int = 0


def resume(context: Context[P], folder: SweepFolder) -> ResumedRecord:
    """Returns what holds of the trials in ``folder`` in a sweep of this context; compiles rewritten sources."""
    recorded = folder.trials()
    allowed = [t for t in recorded if is_allowed(context, t)]
    by_text = {t.number for t in allowed if t.stamp == stamp(context, t.config)}
    made_by = folder.compiler() if recorded else ""
    by_code = _by_code(context, allowed, by_text, folder.digests(), made_by)
    held = [t for t in recorded if t.number in by_text | by_code]
    stale = [t.number for t in recorded if t.number not in by_text | by_code]
    next_number = 1 + max((t.number for t in recorded), default=-1)
    return ResumedRecord(TrialLog(folder.path, held, next_number), stale, len(by_code), len(recorded) - len(allowed))


def is_allowed(context: Context[P], trial: Trial) -> bool:
    """Returns whether the definition still allows a trial's config here: space, constraints and ``unsupported``.

    A heuristic decides nothing here: what it refuses runs, and was measured. A trial that was skipped because the
    device cannot run its config stands, since that is what it says.
    """
    kernel, device = context.kernel, context.target.device
    try:
        config = config_of(kernel, trial.config)
        if trial.status != Status.SKIPPED and kernel.unsupported(config, device) is not None:
            return False
        return kernel.space.broken(context.problem, config, device) is None
    except UsageError:  # the space has no such config
        return False
    except TrialFailure:  # `unsupported` fails, and so does the trial of this config
        return True


def _by_code(
    context: Context[P], recorded: Sequence[Trial], by_text: set[int], digests: Digests, made_by: str
) -> set[int]:
    """Returns the numbers of trials whose machine code and conditions are unchanged, where their text is not.

    ``made_by``: the compiler of what ran, where a trial does not say it.
    """
    known = {t.config for t in recorded if t.number in by_text}
    rewritten = {t.config: t for t in recorded if t.config not in known}  # the last trial of each config
    asked = {
        trial.number: asking
        for trial in rewritten.values()
        if (trial.compiler or made_by) == context.compiler and (asking := _ask(context, trial, digests)) is not None
    }
    return {number for number, asking in asked.items() if _is_same(asking)}


def _ask(context: Context[P], trial: Trial, digests: Digests) -> "Future[bool] | None":
    """Let a compile process look for the machine code of ``trial``; returns None if nothing is known of it."""
    code, conditions = digests.code(trial, context.compiler), digests.condition(trial)
    if not code or not conditions:
        return None
    asked = RecordedConfig(context.reference, context.fields, trial.config, context.protocol, code, conditions)
    return context.bench.pool.holds(asked, context.rank)


def _is_same(asking: "Future[bool]") -> bool:
    try:
        return asking.result()
    except (TimeoutError, Died, UsageError):  # a definition that breaks its contract says so when it is swept
        return False
