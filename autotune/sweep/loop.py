"""The loop of a sweep: it proposes, compiles ahead, runs one trial at a time on the device, and records each."""

import time
from concurrent.futures import FIRST_COMPLETED, wait

from ..core.definition import P
from ..core.errors import TrialFailure
from ..records.trials import TrialLog
from ..search import Searcher
from ..trial import stations
from ..trial.bench import Bench
from ..trial.compile import Proposal
from ..trial.context import Context
from ..trial.oracle import Oracle
from .progress import Progress

N_WAITING = 8  # compiled proposals that may wait for the device


def run_trials(
    context: Context[P],
    oracle: Oracle,
    search: Searcher,
    log: TrialLog,
    progress: Progress,
    n_total: int,
    time_s: float | None,
) -> Oracle:
    """Runs trials until ``log`` has ``n_total``, ``time_s`` has passed, or the search proposes no more.

    Returns the oracle as the last trial left it.
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
        fastest = log.fastest
        proposal = _next(ahead, context)
        incumbent_s = fastest.median_s if fastest else None
        ran = stations.run(context, oracle, log.next_number, proposal.compiled(), incumbent_s)
        trial, oracle = ran.trial, ran.oracle
        context.ledger.add(ran.spent_s)
        log.add(trial)
        search.observe(trial.config, trial.median_s)
        progress.trial(trial, len(log.trials), log.fastest)
    for proposal in ahead:
        proposal.cancel()
    return oracle


def open_device(context: Context[P]) -> None:
    """Opens the device once the first compiles have started; the bench keeps it open for the next sweep."""
    if not context.bench.is_open:
        with context.on_device("opening the device"):
            context.bench.open()


def _wants_more(ahead: list[Proposal], bench: Bench) -> bool:
    n_done = sum(proposal.done for proposal in ahead)
    return len(ahead) - n_done < bench.n_ahead and n_done < N_WAITING


def _next(ahead: list[Proposal], context: Context[P]) -> Proposal:
    """Returns the earliest compiled proposal, so that the device does not wait for one slow compile."""
    with context.ledger.on("waiting for compilers"):
        if not any(proposal.done for proposal in ahead):
            futures = [p.outcome.future for p in ahead if not isinstance(p.outcome, TrialFailure)]
            wait(futures, return_when=FIRST_COMPLETED)
    return ahead.pop(next(i for i, proposal in enumerate(ahead) if proposal.done))
