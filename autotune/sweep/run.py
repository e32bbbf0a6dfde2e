"""Runs a sweep: resumes its record, searches, runs the final round, and returns the result.

A sweep with the same arguments, run again, resumes where it stopped.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.config import Config
from ..core.definition import Kernel, P, baked_values, problem_name, runtime_fields
from ..core.enumeration import Enumeration
from ..core.errors import Status, TrialFailure, UsageError, one_line
from ..core.html import html_table
from ..core.units import counted, seconds_text, speed_up_text
from ..records.about import About
from ..records.damage import Damaged
from ..records.edge_sizes import verified_on
from ..records.folder import SweepFolder
from ..records.folder_lock import locked
from ..records.objectives import Objectives
from ..records.outcome import UNNUMBERED, Finalist, Outcome, Relation, runs_of, speed_up_interval
from ..records.pack import pack
from ..records.paths import sweep_path
from ..records.provenance import provenance
from ..records.record import SweepRecord
from ..records.table import load_trials
from ..records.trial import Trial
from ..records.trial_log import TrialLog
from ..runtime.tune_once import fastest_here
from ..search import actual_sampler, check_sampler, searcher
from ..search.warm_start import begun_elsewhere, earlier, known, warm_start, winners_elsewhere
from ..source.registry import kernel_reference
from ..trial import oracle as oracles
from ..trial.bench import Bench
from ..trial.context import Context, Judge
from ..trial.ledger import Ledger, idle_share
from ..trial.stations import with_rates
from .estimate import estimate
from .final_round import PREFERENCE, FinalRound
from .loop import open_device, outcome_of, run_trials
from .progress import Progress, Quiet
from .request import parse_restriction
from .settings import Settings
from .taken_up import taken_up

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects

    from ..records.journal import Journal
    from ..search.search import Search

ELSEWHERE = ("results", "dashboard", "begin_from", "only", "samples", "hot")  # not recorded, or otherwise


@dataclass(frozen=True)
class Sweep:
    """A finished or interrupted sweep. ``best`` and ``default`` are None if no such config was correct."""

    path: Path
    best: Trial | None
    default: Trial | None
    finalists: tuple[Finalist, ...]
    counts: Mapping[str, int]  # trials by status
    refused: Mapping[str, int]  # configs that a constraint refused, by its reason
    sampler: str
    numbers: frozenset[int] = frozenset()  # its trials in the record
    spent_s: Mapping[str, float] = field(default_factory=dict)  # wall time of this run by activity
    interrupted: bool = False

    @property
    def trials(self) -> "pd.DataFrame":
        """Returns one row per trial of this sweep, like ``autotune.load``; a record may have others, too."""
        table = load_trials(self.path)
        return table[table["number"].isin(self.numbers)].reset_index(drop=True)

    @property
    def speed_up(self) -> float | None:
        """Returns the median time of the default divided by that of the best config."""
        if self.best is None or self.default is None or not self.best.median_s or not self.default.median_s:
            return None
        return self.default.median_s / self.best.median_s

    @property
    def speed_up_interval(self) -> tuple[float, float] | None:
        """Returns the smallest and the largest speed-up that the 95 % intervals of the final round allow."""
        outcome = SweepFolder(self.path).outcome()
        return speed_up_interval(outcome.winner, outcome.default) if outcome is not None else None

    @property
    def idle_share(self) -> float:
        """Returns the share of this run's wall time in which the device had no work of this sweep."""
        return idle_share(self.spent_s)

    def plot(self) -> "plotly.graph_objects.Figure":
        """Returns the main pictures of the sweep's report as a plotly figure, which notebooks show.

        Raises:
            UsageError: if plotly is not installed, or no config was measured.
        """
        from ..report.notebook import figure

        return figure(SweepRecord.of(SweepFolder(self.path)))

    def __repr__(self) -> str:
        lines = self._summary()
        return "\n".join(
            [f"Sweep in {one_line(str(self.path))}", *(f"  {name:<9} {text}" for name, text in lines.items())]
        )

    def _repr_html_(self) -> str:
        return html_table(f"Sweep in {self.path}", self._summary())

    def _summary(self) -> dict[str, str]:
        """Returns the lines of a short summary, by name."""
        lines = {
            name: f"{seconds_text(trial.median_s)}  {trial.config}" if trial else "no correct result"
            for name, trial in (("best", self.best), ("default", self.default))
        }
        if self.speed_up is not None:
            lines["speed-up"] = speed_up_text(self.speed_up, self.speed_up_interval)
        counts = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in self.counts.items()) or "none"
        lines["trials"] = counts + ("; interrupted, the same call resumes" if self.interrupted else "")
        lines["search"] = self.sampler
        return {name: one_line(text) for name, text in lines.items()}


def run_sweep(
    kernel: Kernel[P],
    problem: P,
    bench: Bench,
    settings: Settings,
    progress: Progress | None = None,
    judge: Judge | None = None,
) -> Sweep:
    """Tunes ``kernel`` for ``problem`` on the device of ``bench``.

    ``judge``: is called for the outputs of each config that passed.

    Raises:
        UsageError: for an empty space, a missing compiler, or a record that cannot be written.
    """
    progress, ledger = progress or Quiet(), Ledger()
    check_sampler(settings.sampler)
    names = kernel.space.parameters
    objectives = Objectives.read(settings.objectives, settings.metrics, asdict(problem), names)
    journal = _journal(settings.dashboard, progress)
    device, rank = bench.target.device, bench.join()
    with bench.getting_ready.held(rank):
        enumeration = kernel.space.enumerate(problem, device, parse_restriction(kernel, settings.only))
    if not enumeration.configs:
        name = problem_name(problem)
        raise UsageError(f"{kernel.name} has no allowed configuration for {name}: {enumeration.reasons}")
    if enumeration.told_sample:
        progress.note(f"{kernel.name}: {enumeration.told_sample}")
    default = enumeration.nearest(kernel.default_config(problem, device))
    protocol = replace(settings.protocol, energy_s=settings.energy_time if objectives.needs_energy else 0.0)
    context = Context.of(kernel, problem, bench, protocol, settings.deadline, rank, ledger, judge)
    context.check_definition(enumeration.configs)
    folder = SweepFolder.opened(
        sweep_path(settings.results, device.name, kernel.name, problem_name(problem)), kernel.space.added
    )
    with locked(folder.path, progress.note):
        record = taken_up(context, folder, enumeration.configs, objectives, progress)
        run = _Run(
            context, enumeration, default, settings, progress, folder, record.log, record.n_before, objectives, journal
        )
        folder.take_up(run.about(record.stale))
        return run.run()


def _journal(path: Path | None, progress: Progress) -> "Journal | None":
    if path is None:
        return None
    from ..records.journal import Journal

    return Journal(path, progress.note)


@dataclass(frozen=True)
class _Run:
    """One sweep with an open record. Only ``log`` changes."""

    context: Context[Any]
    enumeration: Enumeration
    default: Config
    settings: Settings
    progress: Progress
    folder: SweepFolder
    log: TrialLog
    n_before: int  # recorded trials from before the space grew
    objectives: Objectives
    journal: "Journal | None"

    def run(self) -> Sweep:
        context, log, settings = self.context, self.log, self.settings
        n_total = max(len(log.trials) + self._n_untried(), self.budget)
        previous = self._previous() if len(log.trials) == n_total else None
        n_configs, n_objectives = len(self.enumeration.configs), len(self.objectives.each)
        sampler = actual_sampler(settings.sampler, self.budget, n_configs, n_objectives)
        self._match_journal()
        self._announce(sampler, n_total)
        interrupted = False
        finalists: tuple[Finalist, ...] = previous.finalists if previous else ()
        try:
            if previous is None:
                self.folder.drop_outcome()
                search = self._search(sampler)
                recorded = self.journal.add if self.journal else None
                with oracles.oracle_of(context, log.fastest, settings.trust_recorded) as oracle:
                    oracle = run_trials(
                        context, oracle, search, self.objectives, log, self.progress, n_total, settings.time, recorded
                    )
                    open_device(context)
                    final_round = FinalRound(context, oracle, settings, self.progress, self._left_out, self.objectives)
                    n_right = len(log.trials) + 1
                    while not finalists and 0 < log.counts().get(Status.MEASURED, 0) < n_right:
                        n_right = log.counts()[Status.MEASURED]
                        finalists = final_round.run(log.trials, self.default)  # the next ones, if all of them are wrong
        except KeyboardInterrupt:
            interrupted = True
        best, default = self._best(finalists, bool(previous))
        self.progress.end(log.counts())
        sweep = Sweep(
            path=self.folder.path,
            best=best,
            default=default,
            finalists=() if previous else finalists,
            counts=log.counts(),
            refused=self.enumeration.refused,
            sampler=sampler,
            numbers=frozenset(trial.number for trial in log.trials),
            spent_s={} if previous else context.ledger.spent_s(),
            interrupted=interrupted,
        )
        if sweep.finalists:
            self.folder.write_outcome(self._outcome(sweep))
        self._match_journal()
        if not interrupted:
            try:
                pack(self.folder)
            except Damaged as damaged:
                self.progress.note(str(damaged))
        return sweep

    @property
    def budget(self) -> int:
        n_configs, n_others = len(self.enumeration.configs), self._n_others
        n_new = self.settings.budget(self.context.target.kind, n_configs)
        return min(n_configs + n_others, max(self.n_before, n_others) + n_new)

    @cached_property
    def _n_others(self) -> int:
        """Returns the number of recorded trials of configs that this call leaves out, noting them."""
        allowed = set(self.enumeration.configs)
        n = sum(trial.config not in allowed for trial in self.log.trials)
        if n:
            self.progress.note(f"{counted(n, 'recorded trial')} of configs that are left out now still count")
        return n

    def _n_untried(self) -> int:
        """Returns how many configs a resumed sweep has not tried that a new one tries first, and notes it: the default,
        which may have changed, and winners of this problem on other devices, which may have been recorded since.
        """
        if not self.log.trials:
            return 0
        settings, problem, device = self.settings, self.context.problem, self.context.target.device
        tried = {trial.config for trial in self.log.trials}
        is_over, n_default = len(self.log.trials) >= self.budget, int(self.default not in tried)
        if n_default and is_over:
            self.progress.note("the default has changed since then, and will be tried")
        winners = winners_elsewhere(settings.results, self.context.kernel, problem, device) if settings.hints else ()
        n = len(set(self.enumeration.configs).intersection(winners) - tried - {self.default})
        if n and is_over:
            configs = "config that won" if n == 1 else "configs that won"
            self.progress.note(f"{n} {configs} this problem on other devices since then will be tried here, too")
        return n_default + n

    # ------------------------------------------------------------------ the beginning
    def about(self, stale: list[int]) -> About:
        """Returns the description of this run for the record; ``stale``: numbers of trials that are no longer valid."""
        kernel, problem, target, origin = self.context.kernel, self.context.problem, self.context.target, provenance()
        return About(
            kernel=kernel.name,
            definition=kernel_reference(self.context.kernel),
            problem=self.context.fields,
            baked=tuple(baked_values(problem)),
            runtime=runtime_fields(type(problem)),
            device=target.device,
            clock=target.module.clock,
            compiler=self.context.compiler,
            default=self.default,
            work=asdict(kernel.work(problem)),
            constraints=tuple(each.reason for each in kernel.space.constraints),
            refused=self.enumeration.refused,
            space={name: parameter.values for name, parameter in kernel.space.parameters.items()},
            n_before=self.n_before,
            added=kernel.space.added,
            settings={name: value for name, value in asdict(self.settings).items() if name not in ELSEWHERE}
            | {"restrict": parse_restriction(kernel, self.settings.only), "protocol": asdict(self.settings.protocol)},
            preference_among_ties=PREFERENCE,
            stale=tuple(stale),
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            machine=origin.machine,
            versions=origin.versions,
            commit=origin.commit,
        )

    def _previous(self) -> Outcome | None:
        """Returns the recorded outcome, if it belongs to these trials and its final round was at least as long."""
        outcome, settings, kind = self.folder.outcome(), self.settings, self.context.target.kind
        if outcome is None or not outcome.is_of(self.log.trials):
            return None
        is_long_enough = (
            outcome.objectives == settings.objectives
            and outcome.finalist_samples >= settings.finalist_samples
            and outcome.placements >= settings.n_placements(kind)
            and outcome.checked_launches >= settings.n_checked(kind)
            and (outcome.winner.sustained is not None or not settings.sustained)
        )
        return outcome if is_long_enough else None

    def _search(self, sampler: str) -> "Search":
        """Returns a search that knows the recorded trials."""
        kernel, problem, device = self.context.kernel, self.context.problem, self.context.target.device
        settings, trials, configs = self.settings, self.log.trials, self.enumeration.configs
        with self.context.bench.getting_ready.held(self.context.rank), self.context.ledger.on("searching"):
            done = {self.default, *(t.config for t in trials)}
            own = {t.config: t.median_s for t in trials if t.median_s}
            near = known(settings.results, kernel, problem, device) if settings.hints else ()
            before = earlier(self.folder, problem, device, set(configs)) if settings.hints else None
            hints, columns = warm_start(
                kernel, problem, device, self.enumeration, near, own, settings.hints, done, before
            )
            if settings.hints:
                here = fastest_here(kernel, problem, device, self.progress.note)
                allowed = set(configs).difference(done)
                hints = tuple(dict.fromkeys((*(config for config in here if config in allowed), *hints)))
            if settings.begin_from is not None:
                first, remark = begun_elsewhere(settings.begin_from, kernel.space, set(configs))
                self.progress.note(remark)
                hints = tuple(dict.fromkeys((*(config for config in first if config not in done), *hints)))
            directions = self.objectives.directions
            search = searcher(sampler, configs, self.default, self.budget, settings.seed, hints, columns, directions)
            for trial in trials:
                search.observe(trial.config, *outcome_of(trial, self.objectives))
        return search

    def _match_journal(self) -> None:
        if self.journal is not None:
            self.journal.match(SweepRecord.of(self.folder))

    def _announce(self, sampler: str, n_total: int) -> None:
        kernel, device, n_done = self.context.kernel, self.context.target.device, len(self.log.trials)
        n_configs, name = len(self.enumeration.configs), problem_name(self.context.problem)
        title = f"{kernel.name} {name} on {device.name}: {n_configs} configs, {sampler}"
        if n_total > n_done:
            n_processes = self.context.bench.compile_processes
            expected = estimate(self.settings.results, kernel, device, n_total - n_done, n_processes)
            title += f", {n_total - n_done} trials, {expected}"
        self.progress.begin(title, n_total, n_done)

    # ------------------------------------------------------------------ the end
    def _left_out(self, trial: Trial, failure: TrialFailure) -> None:
        """Reports a config that failed in the final round; a wrong one is recorded as wrong."""
        self.progress.note(f"dropped from the final round: {trial.config}: {failure}")
        if failure.status == Status.WRONG:
            root = trial.number if trial.same_as is None else trial.same_as
            for each in [each for each in self.log.trials if root in (each.number, each.same_as)]:
                self.log.amend(each, each.refuted(failure))

    def _best(self, finalists: tuple[Finalist, ...], is_recorded: bool) -> tuple[Trial | None, Trial | None]:
        """Returns (best, default) with the medians of the final round if there was one."""
        final = {f.config: f for f in finalists}
        trials = {t.config: t for t in self.log.trials if t.median_s}

        def of(config: Config) -> Trial | None:
            trial, found = trials.get(config), final.get(config)
            if trial is None or found is None:
                return trial
            trial = replace(trial, median_s=found.median_s, q1_s=found.q1_s, q3_s=found.q3_s, clock_hz=found.clock_hz)
            trial = replace(trial, joules=found.joules, watts=found.watts, metrics=found.metrics)
            return trial if is_recorded else with_rates(trial, self.context)

        found = self.objectives.best(self.log.trials)
        best = finalists[0].config if finalists else found.config if found else None
        return None if best is None else of(best), of(self.default)

    def _sizes_of(self, winner: Finalist) -> tuple[str, ...]:
        """Returns the names of the winner's sizes, if readers of the record cannot know its definition."""
        if kernel_reference(self.context.kernel) == self.context.kernel.name:
            return ()
        return verified_on(self.about([]), winner, self.log.trials, self.context.kernel)

    def _outcome(self, sweep: Sweep) -> Outcome:
        kind, bench, finalists = self.context.target.kind, self.context.bench, sweep.finalists
        alike = (Relation.FASTEST, Relation.BEST, Relation.SAME)
        return Outcome(
            winner=finalists[0],
            default=next((f for f in finalists if f.config == self.default), None),
            speed_up=sweep.speed_up,
            objectives=self.settings.objectives,
            ties=tuple(f.number for f in finalists[1:] if f.relation in alike and f.number != UNNUMBERED),
            preference_among_ties=PREFERENCE,
            finalist_samples=self.settings.finalist_samples,
            placements=self.settings.n_placements(kind),
            checked_launches=self.settings.n_checked(kind),
            finalists=finalists,
            counts=sweep.counts,
            trials=runs_of(t.number for t in self.log.trials),
            n_configs=len(self.enumeration.configs),
            verified_on=self._sizes_of(finalists[0]),
            ceilings=bench.ceilings,
            spent_s={what: round(seconds, 3) for what, seconds in sweep.spent_s.items()},
            idle_share=round(sweep.idle_share, 4),
            compile_processes=bench.compile_processes,
        )
