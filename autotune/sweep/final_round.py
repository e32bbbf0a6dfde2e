"""The final round measures the best configs of a search and the default interleaved, and compares intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.config import Config, Value
from ..core.definition import Kernel, P
from ..core.errors import Status, TrialFailure
from ..core.kept import despite_deletion
from ..records.checks_made import CARRIED, COUNTED, FRESH_INPUTS, LAUNCHES, REMAINDERS
from ..records.measurement import Measurement, Sustained
from ..records.objectives import FASTEST, Objectives, front
from ..records.outcome import SAME, Finalist, Relation
from ..records.trial import Trial, as_recorded_trial
from ..trial import oracle as oracles
from ..trial.bench import Bench
from ..trial.compile import MOST_CACHES_LOST
from ..trial.context import Context
from ..trial.oracle import Oracle
from ..trial.winner import LONGEST_S
from ..trial.worker import Job
from .progress import Progress, Quiet
from .settings import Settings

MOST = 12  # most configs in a final round, even if more of them tie
LEAST_ENERGY_S = 2.0  # seconds of launches of each finalist, if energy is an objective
TIE = SAME / 2  # relative difference up to which PREFERENCE decides
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


@dataclass(frozen=True)
class Contestant:
    """A config in a final round, with its measurement there."""

    trial: Trial
    measurement: Measurement
    sustained: Sustained | None = None

    def finalist(self, relation: Relation, objectives: Objectives) -> Finalist:
        """Returns the config's result in the final round."""
        finalist = Finalist.measured(self.trial, self.measurement, relation)
        if self.sustained is not None:
            finalist = replace(
                finalist, sustained=self.sustained, joules=self.sustained.joules, watts=self.sustained.watts
            )
        return replace(finalist, metrics=objectives.computed(finalist))


def rank(
    contestants: list[Contestant], default: Mapping[str, Value], objectives: Objectives = FASTEST
) -> list[Finalist]:
    """Returns the configs of a final round, the winner first: among those within TIE of the best, by PREFERENCE."""
    finalists = (_by_time if objectives.is_time else _by_value)(contestants, objectives)
    if not finalists:
        return []
    best = objectives.rank(finalists[0])
    tied = [f for f in finalists if objectives.rank(f) <= best + TIE * abs(best)]
    winner = min(tied, key=lambda f: _preference(f, default))
    return [winner, *(f for f in finalists if f is not winner)]


def _by_time(contestants: list[Contestant], objectives: Objectives) -> list[Finalist]:
    ordered = sorted(contestants, key=lambda c: c.measurement.median_s)
    fastest = ordered[0].measurement
    relations = [Relation.FASTEST, *(relation_of(c.measurement, fastest) for c in ordered[1:])]
    return [c.finalist(relation, objectives) for c, relation in zip(ordered, relations, strict=True)]


def _by_value(contestants: list[Contestant], objectives: Objectives) -> list[Finalist]:
    """Returns the configs with known objectives, sorted by the first objective, the best first."""
    ranked = objectives.ranked(c.finalist(Relation.WORSE, objectives) for c in contestants)
    best = objectives.rank(ranked[0]) if ranked else 0.0
    on_front = front(objectives.each, ranked) if len(objectives.each) > 1 else []

    def relation(each_ranked: Finalist) -> Relation:
        if each_ranked is ranked[0]:
            return Relation.BEST
        if objectives.rank(each_ranked) - best <= SAME * abs(best):
            return Relation.SAME
        return Relation.FRONT if any(each_ranked is each for each in on_front) else Relation.WORSE

    return [replace(each_ranked, relation=relation(each_ranked)) for each_ranked in ranked]


def _preference(finalist: Finalist, default: Mapping[str, Value]) -> tuple[int, int, int, int]:
    names = {**finalist.config, **default}
    n_different = sum(finalist.config.get(name) != default.get(name) for name in names)
    return finalist.registers or 0, finalist.shared_bytes or 0, n_different, finalist.number


def contestants_of(trials: list[Trial], default: Config, n: int, objectives: Objectives = FASTEST) -> list[Trial]:
    """Returns the ``n`` best trials, all within SAME of the best (at most MOST in all), and the default.

    Configs that are one, by their machine code and launches, enter once: as the default if it is among them. With two
    objectives it returns their front, or MOST trials that are spread over the front, and the default.
    """
    of_default = next((t.number if t.same_as is None else t.same_as for t in trials if t.config == default), -1)
    once = [t for t in trials if (t.config == default if of_default in (t.number, t.same_as) else t.same_as is None)]
    measured = objectives.ranked(once)
    if len(objectives.each) > 1:
        best = evenly_spread(front(objectives.each, measured), MOST)
    else:
        least = objectives.rank(measured[0]) if measured else 0.0
        alike = [t for t in measured if objectives.rank(t) <= least + SAME * abs(least)]
        best = measured[: max(n, min(MOST, len(alike)))]
    return best + [t for t in measured if t.config == default and t not in best]


def evenly_spread(trials: list[Trial], n: int) -> list[Trial]:
    """Returns at most ``n`` of the trials, including the first and the last."""
    if len(trials) <= n:
        return trials
    return [trials[round(i * (len(trials) - 1) / (n - 1))] for i in range(n)]


def side_by_side(
    kernel: Kernel[P], problem: P, bench: Bench, trials: list[Trial], settings: Settings
) -> tuple[Finalist, ...]:
    """Runs a final round of ``trials`` from any sweeps of one problem; returns the fastest first, renumbered.

    Raises:
        TrialFailure: if one of the trials fails in the final round.
    """

    def fails(trial: Trial, failure: TrialFailure) -> None:
        raise failure

    numbered = [replace(trial, number=i) for i, trial in enumerate(trials)]
    settings = replace(settings, finalists=len(trials))
    context = Context.of(kernel, problem, bench, settings.protocol, settings.deadline)
    with oracles.oracle_of(context, trials[0]) as oracle:
        return FinalRound(context, oracle, settings, Quiet(), fails).run(numbered, trials[0].config)


@dataclass(frozen=True)
class FinalRound:
    """The final round of one sweep; it calls ``left_out`` for each finalist that fails."""

    context: Context[Any]
    oracle: Oracle
    settings: Settings
    progress: Progress
    left_out: Callable[[Trial, TrialFailure], None]
    objectives: Objectives = FASTEST

    def run(self, trials: list[Trial], default: Config) -> tuple[Finalist, ...]:
        """Runs the final round of the best of ``trials`` and the default; returns its configs, the winner first.

        If the cache is deleted meanwhile, its files are made again, and the round starts over.
        """
        return despite_deletion(lambda: self._run(trials, default), MOST_CACHES_LOST)

    def _run(self, trials: list[Trial], default: Config) -> tuple[Finalist, ...]:
        finalists = contestants_of(trials, default, self.settings.finalists, self.objectives)
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
        others = self.oracle.others() if jobs and self.n_checked else None  # while the device measures
        measured = self._measured_together(jobs)
        jobs = [(trial, job) for trial, job in jobs if trial.number in measured]
        figures: dict[int, Sustained] = {}
        if self.sustained_s:
            figures = self._sustained(jobs)
            jobs = [(trial, job) for trial, job in jobs if trial.number in figures]
        if others is not None:
            others.result()
            jobs = [(trial, replace(job, others=self.oracle.others_folder)) for trial, job in jobs]
        contestants = [(Contestant(t, measured[t.number], figures.get(t.number)), job) for t, job in jobs]
        sound = [each for each in contestants if self._is_sound(each[0])]
        return tuple(self._with_proof(sound, default))

    def _is_sound(self, contestant: Contestant) -> bool:
        """Returns whether the device's figures can be recorded; leaves the config out otherwise."""
        try:
            as_recorded_trial(contestant.finalist(Relation.WORSE, self.objectives))
        except Exception as error:  # it is of anybody's device
            why = f"the device returned what cannot be recorded: {error}"
            self.left_out(contestant.trial, TrialFailure(Status.DEFINITION_FAILED, why))
            return False
        return True

    @property
    def n_checked(self) -> int:
        """Returns how many launches of the winner are checked."""
        return self.settings.n_checked(self.context.target.kind)

    @property
    def sustained_s(self) -> float:
        """Returns the seconds for which each finalist is launched back to back."""
        least = LEAST_ENERGY_S if self.objectives.needs_energy else 0.0
        return max(self.settings.sustained, least)

    def _measured_together(self, jobs: list[tuple[Trial, Job]]) -> dict[int, Measurement]:
        """Returns measurements by trial number: interleaved, or one by one to find the culprit if that fails."""
        protocol = replace(self.settings.protocol, n_samples=self.settings.finalist_samples)
        worker, deadline_s = self.context.bench.worker, self.settings.deadline
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
        """Returns the figures of back-to-back launches by trial number; drops finalists that fail."""
        figures, worker = {}, self.context.bench.worker
        for trial, job in jobs:
            with self.context.on_device("final round"):
                try:
                    sustained = worker.sustain(job, self.sustained_s, self.settings.deadline)
                    figures[trial.number] = sustained
                except TrialFailure as failure:
                    self.left_out(trial, failure)
        return figures

    def _with_proof(self, contestants: list[tuple[Contestant, Job]], default: Config) -> list[Finalist]:
        """Ranks the configs and checks many launches of the winner; if one fails, the next config wins."""
        worker = self.context.bench.worker
        while contestants:
            ranked = rank([contestant for contestant, _ in contestants], default, self.objectives)
            if not ranked:
                return []
            winner, job = next(c for c in contestants if c[0].trial.number == ranked[0].number)
            with self.context.on_device("final round"):
                try:
                    n_checked = self.n_checked if self.context.has_answers else 0
                    n = worker.repeat(job, n_checked, self.settings.deadline)
                    is_fresh = job.others is not None and FRESH_INPUTS in ranked[0].checks
                    further = (LAUNCHES, *((CARRIED,) if is_fresh else ())) if n else ()
                    if n:
                        further += worker.examine(job, self.settings.deadline)
                        if late := [check for check in (REMAINDERS, COUNTED) if check not in further]:
                            self.progress.note(f"the winner lacks {', '.join(late)}: over {LONGEST_S:g} s here")
                    winner_checks = tuple(dict.fromkeys((*ranked[0].checks, *further)))
                    return [replace(ranked[0], checked_launches=n, checks=winner_checks), *ranked[1:]]
                except TrialFailure as failure:
                    self.left_out(winner.trial, failure)
            contestants = [each for each in contestants if each[0] is not winner]
        return []
