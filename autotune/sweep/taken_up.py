"""The trials of a record that count when its sweep is started again, and what a person is told about the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.config import Config
from ..core.errors import UsageError
from ..core.units import counted
from ..records.folder import SweepFolder
from ..records.objectives import Objectives
from ..records.trial_log import TrialLog
from ..trial.context import Context
from ..validity.resume import resume
from ..validity.untried import untried, value_names
from .progress import Progress


@dataclass(frozen=True)
class TakenUp:
    """An open log of the trials that count, the numbers of those that do not hold, and how many of the trials that
    count are from before the space grew.
    """

    log: TrialLog
    stale: list[int]
    n_before: int


def taken_up(
    context: Context[Any], folder: SweepFolder, configs: Sequence[Config], objectives: Objectives, progress: Progress
) -> TakenUp:
    """Reads a record, which may be empty, and brings the metrics of its trials up to date.

    ``configs``: those that the sweep may try.
    """
    resumed = resume(context, folder)
    if resumed.n_by_code:
        progress.note(
            f"{resumed.n_by_code} recorded trials are still valid: their source changed, their machine code did not"
        )
    if resumed.n_excluded:
        are = "trial does" if resumed.n_excluded == 1 else "trials do"
        progress.note(
            f"{resumed.n_excluded} recorded {are} not count, since {context.kernel.name} no longer allows such configs "
            "here; the record keeps them, and they count again if the configs are allowed again"
        )
    stale = resumed.stale + _without_energy(resumed.log, objectives, progress)
    for trial in list(resumed.log.trials):
        if (amended := objectives.with_metrics(trial)) != trial:
            resumed.log.amend(trial, amended)
    return TakenUp(resumed.log, stale, _n_before(context, folder, configs, len(resumed.log.trials), progress))


def _without_energy(log: TrialLog, objectives: Objectives, progress: Progress) -> list[int]:
    """Removes trials without an energy from the log, if energy is an objective; returns their numbers."""
    without = [trial for trial in log.trials if objectives.lacks_energy(trial)]
    if without:
        progress.note(f"{len(without)} recorded trials have no energy: their configs may be tried again")
        log.trials[:] = [trial for trial in log.trials if trial not in without]
    return [trial.number for trial in without]


def _n_before(
    context: Context[Any], folder: SweepFolder, configs: Sequence[Config], n_trials: int, progress: Progress
) -> int:
    """Returns how many of the trials are from before the space grew, and notes it when it has grown."""
    if not n_trials:
        return 0
    try:
        about = folder.about()
    except UsageError:  # it is damaged, and will be replaced
        return 0
    newer = ", ".join(value_names(untried(context.kernel, about, configs)))
    if not newer:
        return min(about.n_before, n_trials)
    told = f"{counted(n_trials, 'recorded trial')} could not try {newer}, which are newer"
    progress.note(f"{told}: as many are made as of a new sweep")
    return n_trials
