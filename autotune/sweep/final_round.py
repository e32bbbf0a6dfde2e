"""The final round measures the best of a search and the default interleaved, and compares intervals."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..core.config import Config, Value
from ..core.definition import Kernel, P
from ..core.errors import TrialFailure
from ..records.outcome import Finalist, Relation
from ..trial import oracle as oracles
from ..trial.bench import Bench
from ..trial.compile import MOST_CACHES_LOST
from ..trial.context import Context
from ..trial.measure import Measurement, Sustained
from ..trial.oracle import Oracle
from ..trial.row import Trial
from ..trial.worker import Job
from .progress import Progress, Quiet
from .settings import Settings

MOST = 12  # configs of a final round at most, however many tie
SAME = 0.005  # medians within half a percent are the same in practice
TIE = SAME / 2  # within half of that, PREFERENCE decides
PREFERENCE = (
    "fewer registers, then less shared memory, then fewer parameters that differ from the default, "
    f"of those within {100 * TIE:g} % of the fastest"
)


def relation_of(a: Measurement, b: Measurement) -> Relation:
    """Compares ``a`` with ``b``: faster, slower, same or ambiguous.

    same: the medians differ by at most SAME. ambiguous: they differ by more, but their intervals overlap.
    """
    if abs(a.median_s / b.median_s - 1) <= SAME:
        return Relation.SAME
    (a_low, a_high), (b_low, b_high) = a.interval(), b.interval()
    if a_high < b_low:
        return Relation.FASTER
    return Relation.SLOWER if b_high < a_low else Relation.AMBIGUOUS


def rank(contestants: list[tuple[Trial, Measurement]], default: Mapping[str, Value]) -> list[Finalist]:
    """Returns the configs of a final round, the winner first: among those within TIE of the fastest, by PREFERENCE."""
    ordered = sorted(contestants, key=lambda c: c[1].median_s)
    fastest = ordered[0]
    finalists = [
        Finalist.measured(trial, m, Relation.FASTEST if trial is fastest[0] else relation_of(m, fastest[1]))
        for trial, m in ordered
    ]
    tied = [f for f in finalists if f.median_s <= fastest[1].median_s * (1 + TIE)]
    winner = min(tied, key=lambda f: _preference(f, default))
    return [winner, *(f for f in finalists if f is not winner)]


def _preference(finalist: Finalist, default: Mapping[str, Value]) -> tuple[int, int, int, int]:
    names = {**finalist.config, **default}
    n_different = sum(finalist.config.get(name) != default.get(name) for name in names)
    return finalist.registers or 0, finalist.shared_bytes or 0, n_different, finalist.number or 0


def chosen(trials: list[Trial], default: Config, n: int) -> list[Trial]:
    """Returns the ``n`` fastest, those within SAME of the fastest (at most MOST in all), and the default."""
    measured = sorted((t for t in trials if t.median_s), key=_median)
    alike = [t for t in measured if _median(t) <= _median(measured[0]) * (1 + SAME)]
    best = measured[: max(n, min(MOST, len(alike)))]
    return best + [t for t in measured if t.config == default and t not in best]


def side_by_side(
    kernel: Kernel[P], problem: P, bench: Bench, trials: list[Trial], settings: Settings
) -> tuple[Finalist, ...]:
    """Runs a final round of ``trials`` from any sweeps of one problem; returns the fastest first, renumbered.

    Raises:
        TrialFailure: when one of them fails in it.
    """

    def fails(trial: Trial, failure: TrialFailure) -> None:
        raise failure

    numbered = [replace(trial, number=i) for i, trial in enumerate(trials)]
    settings = replace(settings, n_finalists=len(trials))
    context = Context.of(kernel, problem, bench, settings.protocol, settings.launch_deadline_s)
    with oracles.chosen(context, trials[0]) as oracle:
        return FinalRound(context, oracle, settings, Quiet(), fails).run(numbered, trials[0].config)


@dataclass(frozen=True)
class FinalRound:
    """The final round of one sweep; it calls ``left_out`` for each finalist that fails."""

    context: Context[Any]
    oracle: Oracle
    settings: Settings
    progress: Progress
    left_out: Callable[[Trial, TrialFailure], None]

    def run(self, trials: list[Trial], default: Config) -> tuple[Finalist, ...]:
        """Holds the final round of the best of ``trials`` and the default; returns its configs, the winner first.

        Where the cache is deleted meanwhile, what it held is made anew, and the round begins again.
        """
        for _ in range(MOST_CACHES_LOST):
            with suppress(FileNotFoundError):
                return self._run(trials, default)
        return self._run(trials, default)

    def _run(self, trials: list[Trial], default: Config) -> tuple[Finalist, ...]:
        finalists = chosen(trials, default, self.settings.n_finalists)
        if not finalists:
            return ()
        self.progress.finalists(len(finalists))
        context, pool = self.context, self.context.bench.pool
        started = [(t, pool.start(context, t.config)) for t in finalists]
        jobs: list[tuple[Trial, Job]] = []
        for trial, proposal in started:  # all binaries are in the cache by now
            try:
                jobs.append((trial, self.oracle.job(trial.config, proposal.binary())))
            except TrialFailure as failure:
                self.left_out(trial, failure)
        measured = self._measured_together(jobs)
        jobs = [(trial, job) for trial, job in jobs if trial.number in measured]
        figures = self._sustained(jobs) if self.settings.sustained_s else {}
        if self.settings.sustained_s:
            jobs = [(trial, job) for trial, job in jobs if trial.number in figures]
        ranked = self._with_proof(jobs, measured, default)
        return tuple(replace(finalist, sustained=figures.get(finalist.number or 0)) for finalist in ranked)

    def _measured_together(self, jobs: list[tuple[Trial, Job]]) -> dict[int, Measurement]:
        """Measures interleaved, by trial number; if that fails, measures each alone to find the culprit."""
        protocol = replace(self.settings.protocol, n_samples=self.settings.finalist_samples)
        worker, deadline_s = self.context.bench.worker, self.settings.launch_deadline_s
        n_placements = self.settings.n_placements(self.context.target.kind)
        measured: dict[int, Measurement] = {}
        with self.context.on_device("final round"):
            try:
                together = worker.measure_together(
                    [job for _, job in jobs], protocol, deadline_s * len(jobs) * n_placements, n_placements
                )
                measured = {trial.number: m for (trial, _), m in zip(jobs, together, strict=True)}
            except TrialFailure as failure:
                self.progress.note(f"the final round failed ({failure}); measuring its configs one by one")
                for trial, job in jobs:
                    try:
                        measured[trial.number] = worker.measure(job, protocol, deadline_s)
                    except TrialFailure as its_own:
                        self.left_out(trial, its_own)
        return {number: self.oracle.against_reference(m) for number, m in measured.items()}

    def _sustained(self, jobs: list[tuple[Trial, Job]]) -> dict[int, Sustained]:
        """Launches each finalist back to back for a while, by trial number; drops those that fail."""
        figures, worker = {}, self.context.bench.worker
        for trial, job in jobs:
            with self.context.on_device("final round"):
                try:
                    sustained = worker.sustain(job, self.settings.sustained_s, self.settings.launch_deadline_s)
                    figures[trial.number] = sustained
                except TrialFailure as failure:
                    self.left_out(trial, failure)
        return figures

    def _with_proof(
        self, jobs: list[tuple[Trial, Job]], measured: dict[int, Measurement], default: Config
    ) -> list[Finalist]:
        """Ranks and checks many launches of the winner; if one fails, the next config becomes the winner."""
        n_asked, worker = self.settings.n_checked(self.context.target.kind), self.context.bench.worker
        contestants = list(jobs)
        while contestants:
            ranked = rank([(trial, measured[trial.number]) for trial, _ in contestants], default)
            winner, job = next(c for c in contestants if c[0].number == ranked[0].number)
            with self.context.on_device("final round"):
                try:
                    n = worker.repeat(job, n_asked, self.settings.launch_deadline_s)
                    return [replace(ranked[0], checked_launches=n), *ranked[1:]]
                except TrialFailure as failure:
                    self.left_out(winner, failure)
            contestants.remove((winner, job))
        return []


def _median(trial: Trial) -> float:
    return trial.median_s or 0.0
