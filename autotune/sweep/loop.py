"""Runs a sweep: all stations in turn for one (kernel, problem, device), with each trial on disk before the next.

The search proposes, compile processes run ahead, one worker process verifies and measures, and the record stores
all trials. Run again with the same arguments, a sweep resumes where it stopped.
"""

import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.config import Config
from ..core.definition import Kernel, baked_fields, problem_name, runtime_fields
from ..core.errors import TrialFailure, UsageError
from ..records.estimate import estimate
from ..records.folder import SweepFolder, is_of
from ..records.paths import sweep_path
from ..records.provenance import provenance
from ..records.table import load
from ..search import Searcher, check_sampler, searcher
from ..search.neighbours import known
from ..search.warm_start import warm_start
from ..source.registry import reference_of
from ..trial.bench import Bench
from ..trial.ledger import Ledger, idle_share
from ..trial.row import Trial
from ..trial.stations import Started, Stations
from .final_round import PREFERENCE, Finalist, FinalRound
from .progress import Progress, Quiet
from .settings import Settings
from .standing import standing

if TYPE_CHECKING:
    import pandas as pd

N_WAITING = 8  # compiled proposals that may wait for the device


@dataclass(frozen=True)
class Sweep:
    """A finished or interrupted sweep. ``best`` and ``default`` are None where none was correct."""

    path: Path
    best: Trial | None
    default: Trial | None
    finalists: tuple[Finalist, ...]
    counts: Mapping[str, int]  # trials by status
    refused: Mapping[str, int]  # configs that a constraint refused, by its reason
    sampler: str
    spent_s: Mapping[str, float] = field(default_factory=dict)  # wall time of this run by activity
    interrupted: bool = False

    @property
    def trials(self) -> "pd.DataFrame":
        """Returns one row per trial, like ``autotune.load``."""
        return load(self.path)

    @property
    def speed_up(self) -> float | None:
        """Returns the median of the default divided by that of the best."""
        if self.best is None or self.default is None or not self.best.median_s or not self.default.median_s:
            return None
        return self.default.median_s / self.best.median_s

    @property
    def idle_share(self) -> float:
        """Returns the share of this run's wall time in which the device had nothing of it to do."""
        return idle_share(self.spent_s)


def run_sweep(
    kernel: Kernel[Any], problem: Any, bench: Bench, settings: Settings, progress: Progress | None = None
) -> Sweep:
    """Tune ``kernel`` for ``problem`` on the device of ``bench``.

    Raises:
        UsageError: for an empty space, no compiler, or a record that cannot be written.
    """
    with ExitStack() as stack:
        return _Runner(kernel, problem, bench, settings, progress or Quiet(), stack).run()


class _Runner:
    """The state of one sweep under way."""

    def __init__(
        self,
        kernel: Kernel[Any],
        problem: Any,
        bench: Bench,
        settings: Settings,
        progress: Progress,
        stack: ExitStack,
    ) -> None:
        self.kernel, self.problem, self.bench, self.target = kernel, problem, bench, bench.target
        self.settings, self.progress, self.ledger = settings, progress, Ledger()
        check_sampler(settings.sampler)
        self.rank = bench.join()
        with bench.getting_ready.held(self.rank):
            self.enumeration = kernel.space.enumerate(problem, self.target.device, settings.restrict)
        if not self.enumeration.configs:
            reasons = "; ".join(f"{n} violate: {why}" for why, n in self.enumeration.refused.items())
            raise UsageError(f"{kernel.name} has no allowed configuration for {problem_name(problem)}: {reasons}")
        self.default = self.enumeration.nearest(kernel.default_config(problem, self.target.device))
        self.compiler = self.target.module.compiler(self.target.device)
        protocol, deadline_s = settings.protocol, settings.launch_deadline_s
        self.stations = Stations(kernel, problem, bench, protocol, deadline_s, self.ledger, self.rank)
        stack.callback(self.stations.close)
        self.stations.check_definition(self.enumeration.configs)
        results, device = settings.results, self.target.device.name
        self.folder = SweepFolder.opened(sweep_path(results, device, kernel.name, problem_name(problem)))
        stack.enter_context(self.folder.locked(progress.note))
        recorded = self.folder.trials()
        made_by = self.folder.compiler() if recorded else ""
        held = standing(self.stations, recorded, self.folder.digests(), made_by)
        self.trials = held.trials
        if held.n_by_code:
            progress.note(
                f"{held.n_by_code} recorded trials still hold: their text has changed, their machine code has not"
            )
        self.n_numbered = 1 + max((t.number for t in recorded), default=-1)  # stale ones keep their numbers
        current = {t.number for t in self.trials}
        self.folder.take_up(self._about([t.number for t in recorded if t.number not in current]))

    # ------------------------------------------------------------------ the whole
    def run(self) -> Sweep:
        budget = self.settings.budget(self.target.kind, len(self.enumeration.configs))
        done = len(self.trials)
        n_total = max(done, budget)
        previous = self._previous() if done == n_total else None
        name, search = self._searcher(budget, cold=previous is not None)
        self._announce(name, n_total)
        interrupted = False
        finalists: tuple[Finalist, ...] = ()
        try:
            if previous is None:
                self.folder.drop_verdict()
                self._search(search, n_total)
                self._open_device()
                final_round = FinalRound(self.stations, self.settings, self.progress, self._left_out)
                finalists = final_round.run(self.trials, dict(self.default))
        except KeyboardInterrupt:
            interrupted = True
        best, default = self._outcome(finalists, previous)
        counts = dict(Counter(t.status for t in self.trials))
        self.progress.end(counts)
        spent_s = self.ledger.spent_s() if previous is None else {}
        refused = self.enumeration.refused
        sweep = Sweep(self.folder.path, best, default, finalists, counts, refused, name, spent_s, interrupted)
        if finalists:
            self._write_verdict(sweep)
        return sweep

    def _searcher(self, budget: int, cold: bool) -> tuple[str, Searcher]:
        """Returns the sampler's name and a search that knows recorded trials; ``cold``: nothing is left to search."""
        settings, configs, device = self.settings, self.enumeration.configs, self.target.device
        warm = settings.n_hints and not cold
        with self.bench.getting_ready.held(self.rank), self.ledger.on("searching"):
            done = [t.config for t in self.trials]
            own = {t.config: t.median_s for t in self.trials if t.median_s}
            near = known(settings.results, self.kernel, self.problem, device) if warm else ()
            hints, columns = warm_start(
                self.kernel, self.problem, device, self.enumeration, near, own, settings.n_hints, set(done)
            )
            name, search = searcher(
                settings.sampler, configs, self.default, budget, done, settings.seed, hints, columns
            )
            for trial in self.trials:
                search.observe(trial.config, trial.median_s)
        return name, search

    def _announce(self, sampler: str, n_total: int) -> None:
        device, n_done, n_configs = self.target.device, len(self.trials), len(self.enumeration.configs)
        title = f"{self.kernel.name} {problem_name(self.problem)} on {device.name}: {n_configs} configs, {sampler}"
        if n_total > n_done:
            n_processes = self.bench.compile_processes
            expected = estimate(self.settings.results, self.kernel, device, n_total - n_done, n_processes)
            title += f", {n_total - n_done} trials, {expected}"
        self.progress.begin(title, n_total, n_done)

    def _search(self, search: Searcher, n_total: int) -> None:
        """Propose, compile ahead, verify and measure until the budget is spent."""
        began = time.monotonic()
        ahead: list[Started] = []
        if self.settings.trust_recorded and (fastest := self._fastest()):
            self.stations.let_stand_in(fastest)
        self.stations.prepare()
        while True:
            spent = self.settings.time_s is not None and time.monotonic() - began > self.settings.time_s
            with self.ledger.on("searching"):
                while not spent and len(self.trials) + len(ahead) < n_total and self._wants_more(ahead):
                    if (config := search.propose()) is None:
                        break
                    ahead.append(self.stations.start(config))
            if not ahead or spent:
                for started in ahead:
                    started.cancel()
                return
            self._open_device()
            fastest = self._fastest()
            incumbent_s = fastest.median_s if fastest else None
            trial = self.stations.finish(self.n_numbered, self._next(ahead), incumbent_s)
            self.n_numbered += 1
            self.folder.append(trial)
            self.trials.append(trial)
            search.observe(trial.config, trial.median_s)
            self.progress.trial(trial, len(self.trials), self._fastest())

    def _open_device(self) -> None:
        """Open the device once the first compiles have started; the bench keeps it open for the next sweep."""
        if self.stations.ceilings is None:
            with self.stations.on_device("opening the device"):
                self.stations.ceilings = self.bench.ceilings()

    def _wants_more(self, ahead: list[Started]) -> bool:
        n_done = sum(started.done for started in ahead)
        return len(ahead) - n_done < self.bench.n_ahead and n_done < N_WAITING

    def _next(self, ahead: list[Started]) -> Started:
        """Returns the earliest compiled proposal, so that the device does not wait for one slow compile."""
        with self.ledger.on("waiting for compilers"):
            if not any(started.done for started in ahead):
                futures = [s.outcome.future for s in ahead if not isinstance(s.outcome, TrialFailure)]
                wait(futures, return_when=FIRST_COMPLETED)
        return ahead.pop(next(i for i, started in enumerate(ahead) if started.done))

    # ------------------------------------------------------------------ the end
    def _left_out(self, trial: Trial, failure: TrialFailure) -> None:
        """Reports a config that failed in the final round; a wrong one is recorded as wrong."""
        self.progress.note(f"dropped from the final round: {trial.config}: {failure}")
        if failure.status == "wrong":
            refuted = trial.refuted(failure)
            self.folder.append(refuted)
            self.trials[self.trials.index(trial)] = refuted

    def _previous(self) -> dict[str, Any] | None:
        """Returns the recorded verdict if it is of these trials and its final round was no shorter."""
        verdict = self.folder.verdict()
        if verdict is not None and not is_of(verdict, self.trials):
            return None
        least = {
            "finalist_samples": self.settings.finalist_samples,
            "placements": self.settings.n_placements(self.target.kind),
            "checked_launches": self._n_checked,
        }
        if verdict is None or any(verdict.get(name, 0) < n for name, n in least.items()):
            return None
        return None if self.settings.sustained_s and "sustained" not in verdict["winner"] else verdict

    def _outcome(
        self, finalists: tuple[Finalist, ...], previous: dict[str, Any] | None
    ) -> tuple[Trial | None, Trial | None]:
        """Returns (best, default) with the medians of the final round if there was one."""
        fastest = self._fastest()
        best_config = fastest.config if fastest else None
        final = {f.trial.config: f.as_json() for f in finalists}
        if previous is not None:
            final = {Config(f["config"]): f for f in previous["finalists"]}
        if final:
            best_config = next(iter(final))
        trials = {t.config: t for t in self.trials if t.median_s}

        def of(config: Config | None) -> Trial | None:
            trial = trials.get(config) if config else None
            if trial is None or config not in final:
                return trial
            renewed = {name: final[config][name] for name in ("median_s", "q1_s", "q3_s", "clock_hz")}
            trial = replace(trial, **renewed)
            return self.stations.with_rates(trial, renewed["median_s"]) if self.stations.ceilings else trial

        return of(best_config), of(self.default)

    def _write_verdict(self, sweep: Sweep) -> None:
        winner = sweep.finalists[0]
        ceilings = self.stations.ceilings
        self.folder.write_verdict(
            {
                "winner": winner.as_json(),
                "default": next((f.as_json() for f in sweep.finalists if f.trial.config == self.default), None),
                "speed_up": sweep.speed_up,
                "ties": [f.trial.number for f in sweep.finalists[1:] if f.relation in ("fastest", "same")],
                "preference_among_ties": PREFERENCE,
                "finalist_samples": self.settings.finalist_samples,
                "placements": self.settings.n_placements(self.target.kind),
                "checked_launches": self._n_checked,
                "finalists": [f.as_json() for f in sweep.finalists],
                "counts": dict(sweep.counts),
                "stamps": {str(t.number): t.stamp for t in self.trials},
                "n_configs": len(self.enumeration.configs),
                "ceilings": asdict(ceilings) if ceilings else None,
                "spent_s": {what: round(seconds, 3) for what, seconds in sweep.spent_s.items()},
                "idle_share": round(sweep.idle_share, 4),
                "compile_processes": self.bench.compile_processes,
            }
        )

    # ------------------------------------------------------------------ helpers
    def _about(self, stale: list[int]) -> dict[str, Any]:
        device, problem = self.target.device, self.problem
        return {
            "kernel": self.kernel.name,
            "definition": reference_of(self.kernel),
            "problem": asdict(problem),
            "baked": baked_fields(type(problem)),
            "runtime": runtime_fields(type(problem)),
            "device": asdict(device),
            "clock": self.target.module.clock,
            "compiler": self.compiler,
            "default": dict(self.default),
            "refused": self.enumeration.refused,
            "space": {name: parameter.values for name, parameter in self.kernel.space.parameters.items()},
            "settings": {name: value for name, value in asdict(self.settings).items() if name != "results"},
            "stale": stale,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            **provenance(),
        }

    @property
    def _n_checked(self) -> int:
        return self.settings.n_checked(self.target.kind)

    def _fastest(self) -> Trial | None:
        measured = [t for t in self.trials if t.median_s]
        return min(measured, key=lambda t: t.median_s or 0.0) if measured else None
