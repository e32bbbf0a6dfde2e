"""Finds the recorded trials that still hold: their source text or their machine code is unchanged.

A time belongs to the machine code that ran, to the geometry of its launch, to what the definition calls right, and to
how it was measured. Comments, names and the order of two functions decide nothing of these.
"""

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass

from ..core.errors import TrialFailure
from ..records.folder import Digests
from ..source.render import render
from ..system.processes import Died
from ..trial.row import Trial
from ..trial.stations import Stations


@dataclass(frozen=True)
class Standing:
    """The ``trials`` that hold, in recorded order; ``n_by_code`` of them hold although their text has changed."""

    trials: list[Trial]
    n_by_code: int


def standing(stations: Stations, recorded: Iterable[Trial], digests: Digests, compiler: str) -> Standing:
    """Returns what holds of ``recorded`` in the sweep of these stations; compiles rewritten sources.

    ``compiler``: that made what ran, where a trial does not say it.
    """
    recorded = list(recorded)
    by_text = {t.number for t in recorded if t.stamp == stations.stamp(t.config)}
    known = {t.config for t in recorded if t.number in by_text}
    rewritten = {t.config: t for t in recorded if t.config not in known}  # the last trial of each config
    asked = {
        trial.number: asking
        for trial in rewritten.values()
        if (trial.compiler or compiler) == stations.compiler and (asking := _ask(stations, trial, digests)) is not None
    }
    by_code = {number for number, asking in asked.items() if _is_same(asking)}
    return Standing([t for t in recorded if t.number in by_text | by_code], len(by_code))


def _ask(stations: Stations, trial: Trial, digests: Digests) -> "Future[bool] | None":
    """Let a compile process look for the machine code of ``trial``; returns None if it cannot hold anyway."""
    try:
        code = digests.code(trial, stations.compiler)
        if not code or digests.condition(trial) != stations.conditions(trial.config):
            return None
        return stations.bench.pool.makes(render(stations.kernel, stations.problem, trial.config), code)
    except TrialFailure:
        return None


def _is_same(asking: "Future[bool]") -> bool:
    try:
        return asking.result()
    except (TimeoutError, Died):
        return False
