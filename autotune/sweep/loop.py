"""The loop of a sweep: it proposes, compiles ahead, runs one trial at a time on the device, and records each.

The default runs before all others, the others in the order in which their compiles end.
"""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, wait
from typing import TYPE_CHECKING

from ..core.config import Config
from ..core.definition import P
from ..core.errors import TrialFailure
from ..records.objectives import Objectives
from ..records.trial import Trial
from ..records.trial_log import TrialLog
from ..trial import stations
from ..trial.bench import Bench
from ..trial.compile import Proposal
from ..trial.context import Context
from ..trial.oracle import Oracle
from .progress import Progress

if TYPE_CHECKING:
    from ..search.search import Search

N_WAITING = 8  # compiled proposals that may wait for the device


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

    Returns the oracle as the last trial left it. ``recorded``: is told each trial that the log has now.
    """
    began = time.monotonic()
    ahead: list[Proposal] = []
    while time_s is None or time.monotonic() - began <= time_s:
        with context.ledger.on("searching"):
            while len(log.trials) + len(ahead) < n_total and _wants_more(ahead, context.bench):
                if (config := search.propose()) is None:
                    break
                ahead.append(context.bench.pool.start(context, config))
        if not ahead:
            break
        open_device(context)
        fastest = log.fastest if objectives.is_time else None
        proposal = _next(ahead, search.default, context)
        incumbent_s = fastest.median_s if fastest else None
        ran = stations.run_stations(context, oracle, log.next_number, proposal.compiled(), incumbent_s)
        trial, oracle = objectives.with_metrics(ran.trial), ran.oracle
        objectives.check_energy(trial, context.target.device.name)
        context.ledger.add(ran.spent_s)
        log.add(trial)
        if recorded is not None:
            recorded(trial)
        search.observe(trial.config, *outcome_of(trial, objectives))
        progress.trial(trial, len(log.trials), objectives.best(log.trials))
    for proposal in ahead:
        proposal.cancel()
    return oracle


def outcome_of(trial: Trial, objectives: Objectives) -> tuple[tuple[float, ...] | None, dict[str, object]]:
    """Returns what a search is told of a trial: the values of the objectives, or None and why it failed."""
    if (values := objectives.values(trial)) is not None:
        return tuple(values.values()), {}
    return None, {"status": str(trial.status), "message": trial.message}


def open_device(context: Context[P]) -> None:
    """Opens the device once the first compiles have started; the bench keeps it open for the next sweep."""
    if not context.bench.is_open:
        with context.on_device("opening the device"):
            context.bench.open()


def _wants_more(ahead: list[Proposal], bench: Bench) -> bool:
    n_done = sum(proposal.done for proposal in ahead)
    return len(ahead) - n_done < bench.n_ahead and n_done < N_WAITING


def _next(ahead: list[Proposal], default: Config | None, context: Context[P]) -> Proposal:
    """Returns the default, which all others are compared with, or else the earliest compiled proposal.

    The device waits for the compile of the default, but for no other slow one.
    """
    eligible = [proposal for proposal in ahead if proposal.config == default] or ahead
    with context.ledger.on("waiting for compilers"):
        if not any(proposal.done for proposal in eligible):
            futures = [p.outcome.future for p in eligible if not isinstance(p.outcome, TrialFailure)]
            wait(futures, return_when=FIRST_COMPLETED)
    proposal = next(proposal for proposal in eligible if proposal.done)
    ahead.remove(proposal)
    return proposal
