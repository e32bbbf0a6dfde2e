"""The loop of a sweep: it proposes configs, compiles ahead, runs one trial at a time on the device, and records it."""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING

from ..core.config import Config
from ..core.definition import P
from ..devices.base import Binary
from ..records.objectives import Objectives
from ..records.trial import Trial
from ..records.trial_log import TrialLog
from ..search.ahead import CompilesAhead
from ..trial import stations
from ..trial.compile import Proposal
from ..trial.context import Context
from ..trial.oracle import Oracle
from .progress import Progress

if TYPE_CHECKING:
    from ..search.search import Search


def run_trials(
    context: Context[P],
    oracle: Oracle,
    search: "Search",
    objectives: Objectives,
    log: TrialLog,
    progress: Progress,
    n_total: int,
    time_s: float | None,
    recorded: Callable[[Trial], None] | None = None,
) -> Oracle:
    """Runs trials until ``log`` has ``n_total``, ``time_s`` has passed, or the search proposes no more.

    Returns the oracle after the last trial. ``recorded``: is called with each trial once it is in the log.
    """
    began = time.monotonic()
    ahead: CompilesAhead[Future[Binary]] = CompilesAhead(search, context.bench.n_ahead, n_total - len(log.trials))
    proposals: dict[Config, Proposal] = {}
    while time_s is None or time.monotonic() - began <= time_s:
        with context.ledger.on("searching"):
            while (config := ahead.propose()) is not None:
                proposals[config] = context.bench.pool.start(context, config)
                ahead.add(config, proposals[config].future)
        if not ahead.outstanding:
            break
        open_device(context)
        fastest = log.fastest if objectives.is_time else None
        with context.ledger.on("waiting for compilers"):
            if awaited := ahead.awaited():
                wait(awaited, return_when=FIRST_COMPLETED)
        with context.ledger.on("searching"):
            proposal = proposals.pop(ahead.take())
        incumbent_s = fastest.median_s if fastest else None
        compiled = proposal.compiled()
        if same := stations.measured_alike(context, log.trials, log.next_number, compiled):
            ran = stations.Ran(same, oracle, {})
        else:
            ran = stations.run_stations(context, oracle, log.next_number, compiled, incumbent_s)
        trial, oracle = objectives.with_metrics(ran.trial), ran.oracle
        objectives.check_energy(trial, context.target.device.name)
        context.ledger.add(ran.spent_s)
        trial = log.add(trial)
        if recorded is not None:
            recorded(trial)
        ahead.observe(trial.config, *outcome_of(trial, objectives))
        progress.trial(trial, len(log.trials), objectives.best(log.trials))
    ahead.cancel()
    return oracle


def outcome_of(trial: Trial, objectives: Objectives) -> tuple[tuple[float, ...] | None, dict[str, object]]:
    """Returns the outcome of a trial for a search: the values of the objectives, or None and why the trial failed."""
    if (values := objectives.values(trial)) is not None:
        return tuple(values.values()), {}
    return None, {"status": str(trial.status), "message": trial.message}


def open_device(context: Context[P]) -> None:
    """Opens the device once the first compiles have started; the bench keeps it open for the next sweep."""
    if not context.bench.is_open:
        with context.on_device("opening the device"):
            context.bench.open()
