"""The main job: every station in its turn for one (kernel, problem, device), each trial on disk before the next.

The search proposes, compile processes work ahead, one worker process verifies and measures, the record keeps it
all. Started again with the same arguments, a sweep goes on where it stopped.
"""

import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import record
from .catalogue import reference_of
from .compile import CompilePool
from .definition import Kernel, baked_fields, problem_name, runtime_fields
from .devices import Target
from .devices.base import Ceilings, Session
from .devices.worker import Job, Worker
from .errors import TrialFailure, UsageError
from .finalists import PREFERENCE, Finalist, rank
from .lock import device_lock
from .measure import Measurement, Protocol
from .progress import Progress, Quiet
from .record import SweepFolder, Trial
from .search import Searcher, check_sampler, searcher
from .space import Config, Value
from .trial import Started, Stations

if TYPE_CHECKING:
    import pandas as pd

CEILINGS_DEADLINE_S = 120.0
DEFAULT_TRIALS = {"host": 64}  # a CPU takes about a second a trial
N_TRIALS = 200  # elsewhere


@dataclass(frozen=True)
class Settings:
    """What a sweep may spend, and how it searches and measures."""

    results: Path = Path("results")
    trials: int | None = None  # None: DEFAULT_TRIALS of the device
    time_s: float | None = None  # of searching; the finalists come on top
    sampler: str = "auto"
    seed: int = 0
    restrict: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)
    n_finalists: int = 5
    finalist_samples: int = 40
    compile_processes: int = max(1, min(8, (os.cpu_count() or 2) - 1))
    compile_deadline_s: float = 60.0
    launch_deadline_s: float = 60.0  # for the verification and for the measurement of one trial


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
    spent_s: Mapping[str, float] = field(default_factory=dict)  # wall time of this run by what it went into
    interrupted: bool = False

    @property
    def trials(self) -> "pd.DataFrame":
        """One row a trial, as ``autotune.load`` gives them."""
        return record.load(self.path)

    @property
    def speed_up(self) -> float | None:
        """Median of the default over the best's."""
        if self.best is None or self.default is None or not self.best.median_s or not self.default.median_s:
            return None
        return self.default.median_s / self.best.median_s


def run_sweep(
    kernel: Kernel[Any], problem: Any, target: Target, settings: Settings, progress: Progress | None = None
) -> Sweep:
    """Tune ``kernel`` for ``problem`` on ``target``.

    Raises:
        UsageError: for an empty space, no compiler, or a record that cannot be written.
    """
    with ExitStack() as stack:
        runner = _Runner(kernel, problem, target, settings, progress or Quiet(), stack)
        return runner.run()


class _Runner:
    """The state of one sweep under way."""

    def __init__(
        self,
        kernel: Kernel[Any],
        problem: Any,
        target: Target,
        settings: Settings,
        progress: Progress,
        stack: ExitStack,
    ) -> None:
        self.kernel, self.problem, self.target = kernel, problem, target
        self.settings, self.progress = settings, progress
        check_sampler(settings.sampler)
        self.enumeration = kernel.space.enumerate(problem, target.device, settings.restrict)
        if not self.enumeration.configs:
            reasons = "; ".join(f"{n} by: {why}" for why, n in self.enumeration.refused.items())
            raise UsageError(f"{kernel.name} has no configuration for {problem_name(problem)}: refused {reasons}")
        self.default = self.enumeration.nearest(kernel.default_config(problem, target.device))
        self.compiler = target.module.compiler(target.device)
        stack.enter_context(device_lock(target.module.lock_name(target.identifier), progress.note))
        self.folder = self._open_folder()
        pool = stack.enter_context(CompilePool(target, settings.compile_processes, settings.compile_deadline_s))
        self.worker = stack.enter_context(Worker(target))
        self.stations = Stations(kernel, problem, pool, self.worker, settings.protocol, settings.launch_deadline_s)
        self.trials = [t for t in self.folder.trials() if t.stamp == self.stations.stamp(t.config)]
        self.spent_s: defaultdict[str, float] = defaultdict(float)  # by what the wall time of this run went into

    # ------------------------------------------------------------------ the whole
    def run(self) -> Sweep:
        configs, done = self.enumeration.configs, [t.config for t in self.trials]
        budget = self.settings.trials or DEFAULT_TRIALS.get(self.target.kind, N_TRIALS)
        name, search = searcher(self.settings.sampler, configs, self.default, budget, done, self.settings.seed)
        for trial in self.trials:
            search.observe(trial.config, trial.median_s)
        n_total = max(len(done), min(budget, len(configs)))
        title = f"{self.kernel.name} {problem_name(self.problem)} on {self.target.device.name}"
        self.progress.begin(f"{title}: {len(configs)} configs, {name}", n_total, len(done))
        previous = self.folder.verdict() if len(done) == n_total else None
        interrupted = False
        finalists: tuple[Finalist, ...] = ()
        try:
            if previous is None:
                self.folder.drop_verdict()
                self.stations.ceilings = self.worker.call(_ceilings, deadline_s=CEILINGS_DEADLINE_S)
                self._search(search, n_total)
                began = time.monotonic()
                finalists = self._finals()
                self.spent_s["final round"] = time.monotonic() - began
        except KeyboardInterrupt:
            interrupted = True
        best, default = self._outcome(finalists, previous)
        counts = dict(Counter(t.status for t in self.trials))
        self.progress.end(counts)
        refused, spent_s = self.enumeration.refused, dict(self.spent_s)
        sweep = Sweep(self.folder.path, best, default, finalists, counts, refused, name, spent_s, interrupted)
        if finalists:
            self._write_verdict(sweep)
        return sweep

    def _search(self, search: Searcher, n_total: int) -> None:
        """Propose, compile ahead, verify and measure until the budget is spent."""
        began = time.monotonic()
        ahead: deque[Started] = deque()
        while True:
            spent = self.settings.time_s is not None and time.monotonic() - began > self.settings.time_s
            proposing = time.monotonic()
            while not spent and len(ahead) <= self.settings.compile_processes:
                if len(self.trials) + len(ahead) >= n_total or (config := search.propose()) is None:
                    break
                ahead.append(self.stations.start(config))
            if not ahead or spent:
                return
            number = 1 + max((t.number for t in self.trials), default=-1)
            fastest = self._fastest()
            waiting = time.monotonic()
            trial = self.stations.finish(number, ahead.popleft(), fastest.median_s if fastest else None)
            self._account(trial, waiting - proposing, time.monotonic() - waiting)
            self.folder.append(trial)
            self.trials.append(trial)
            search.observe(trial.config, trial.median_s)
            self.progress.trial(trial, len(self.trials), self._fastest())

    def _account(self, trial: Trial, proposing_s: float, finishing_s: float) -> None:
        verify_s, measure_s = trial.verify_s or 0.0, trial.measure_s or 0.0
        self.spent_s["searching"] += proposing_s
        self.spent_s["verifying"] += verify_s
        self.spent_s["measuring"] += measure_s
        failed = trial.status != "measured" and trial.verify_s is None
        self.spent_s["failing" if failed else "waiting for compilers"] += finishing_s - verify_s - measure_s

    # ------------------------------------------------------------------ the end
    def _finals(self) -> tuple[Finalist, ...]:
        """The fastest of the search and the default, measured together; one that fails now is left out, and told."""
        measured = sorted((t for t in self.trials if t.median_s), key=lambda t: t.median_s or 0.0)
        chosen = measured[: self.settings.n_finalists]
        chosen += [t for t in measured if t.config == self.default and t not in chosen]
        if not chosen:
            return ()
        self.progress.finalists(len(chosen))
        started = [(trial, self.stations.start(trial.config)) for trial in chosen]
        jobs = []
        for trial, compiled in started:  # all are in the cache by now
            try:
                jobs.append((trial, self.stations.job(trial.config, self.stations.binary(compiled))))
            except TrialFailure as failure:
                self.progress.note(f"left out of the final round: {trial.config}: {failure}")
        measurements = self._measure_together([job for _, job in jobs])
        contestants = [(trial, m) for (trial, _), m in zip(jobs, measurements, strict=True) if m is not None]
        return tuple(rank(contestants, dict(self.default))) if contestants else ()

    def _measure_together(self, jobs: list[Job]) -> list[Measurement | None]:
        """Interleaved; should one of them fail, each on its own, so that it is known which."""
        protocol = replace(self.settings.protocol, n_samples=self.settings.finalist_samples)
        deadline_s = self.settings.launch_deadline_s
        try:
            return list(self.worker.measure_together(jobs, protocol, deadline_s * len(jobs)))
        except TrialFailure as failure:
            self.progress.note(f"the final round failed ({failure}); measuring the finalists one by one")
        alone: list[Measurement | None] = []
        for job in jobs:
            try:
                alone.append(self.worker.measure(job, protocol, deadline_s))
            except TrialFailure as failure:
                self.progress.note(f"left out of the final round: {job.config}: {failure}")
                alone.append(None)
        return alone

    def _outcome(
        self, finalists: tuple[Finalist, ...], previous: dict[str, Any] | None
    ) -> tuple[Trial | None, Trial | None]:
        """(best, default) with the medians of the final round, where there was one."""
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
                "finalists": [f.as_json() for f in sweep.finalists],
                "counts": dict(sweep.counts),
                "n_configs": len(self.enumeration.configs),
                "ceilings": asdict(ceilings) if ceilings else None,
                "spent_s": {what: round(seconds, 3) for what, seconds in sweep.spent_s.items()},
            }
        )

    # ------------------------------------------------------------------ helpers
    def _open_folder(self) -> SweepFolder:
        device, problem = self.target.device, self.problem
        path = record.sweep_path(self.settings.results, device.name, self.kernel.name, problem_name(problem))
        about = {
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
            "settings": {name: value for name, value in asdict(self.settings).items() if name != "results"},
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            **record.provenance(),
        }
        return SweepFolder.create(path, about)

    def _fastest(self) -> Trial | None:
        measured = [t for t in self.trials if t.median_s]
        return min(measured, key=lambda t: t.median_s or 0.0) if measured else None


def _ceilings(session: Session) -> Ceilings | None:
    return session.ceilings()
