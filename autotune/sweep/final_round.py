"""The final round measures the best of a search and the default interleaved, and compares intervals."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..core.config import Config
from ..core.errors import TrialFailure
from ..trial.measure import Measurement, Sustained
from ..trial.row import Trial
from ..trial.stations import Stations
from ..trial.worker import Job
from .progress import Progress, Quiet
from .settings import Settings

MOST = 12  # finalists at most, however many tie
SAME = 0.005  # medians within half a percent are the same in practice
TIE = SAME / 2  # within half of that, PREFERENCE decides
PREFERENCE = (
    "fewer registers, then less shared memory, then fewer parameters that differ from the default, "
    f"of those within {100 * TIE:g} % of the fastest"
)


@dataclass(frozen=True)
class Finalist:
    """A config with its final measurement; ``relation`` compares it with the fastest."""

    trial: Trial
    measurement: Measurement
    relation: str  # fastest, same, ambiguous or slower
    sustained: Sustained | None = None  # where it was asked for
    checked_launches: int = 0  # further launches of the winner, all correct

    def retimed(self) -> Trial:
        """Returns the trial with the times of the final round."""
        m = self.measurement
        return replace(self.trial, median_s=m.median_s, q1_s=m.q1_s, q3_s=m.q3_s, clock_hz=m.clock_hz)

    def as_json(self) -> dict[str, Any]:
        m = self.measurement
        low, high = m.interval()
        return {
            "number": self.trial.number,
            "config": dict(self.trial.config),
            "key": self.trial.key,
            "compiler": self.trial.compiler,
            "code": self.trial.code,
            "conditions": self.trial.conditions,
            "relation": self.relation,
            "median_s": m.median_s,
            "q1_s": m.q1_s,
            "q3_s": m.q3_s,
            "interval_s": [low, high],
            "samples_s": list(m.samples_s),
            "clock_hz": m.clock_hz,
            "cold": m.cold,
            "registers": self.trial.registers,
            "shared_bytes": self.trial.shared_bytes,
            "spill_bytes": self.trial.spill_bytes,
            "max_error": m.max_error,
            "rms_error": m.rms_error,
            "verified_on": list(self.trial.verified_on),
            **({"sustained": asdict(self.sustained)} if self.sustained else {}),
            **({"checked_launches": self.checked_launches} if self.checked_launches else {}),
        }


def relation_of(a: Measurement, b: Measurement) -> str:
    """Compares ``a`` with ``b``: faster, slower, same or ambiguous.

    same: the medians differ by at most SAME. ambiguous: they differ by more, but their intervals overlap.
    """
    if abs(a.median_s / b.median_s - 1) <= SAME:
        return "same"
    (a_low, a_high), (b_low, b_high) = a.interval(), b.interval()
    if a_high < b_low:
        return "faster"
    return "slower" if b_high < a_low else "ambiguous"


def rank(contestants: list[tuple[Trial, Measurement]], default: dict[str, Any]) -> list[Finalist]:
    """Returns the finalists, the winner first: among those within TIE of the fastest, by PREFERENCE."""
    ordered = sorted(contestants, key=lambda c: c[1].median_s)
    fastest = ordered[0]
    finalists = [
        Finalist(trial, m, "fastest" if trial is fastest[0] else relation_of(m, fastest[1])) for trial, m in ordered
    ]
    tied = [f for f in finalists if f.measurement.median_s <= fastest[1].median_s * (1 + TIE)]
    winner = min(tied, key=lambda f: _preference(f.trial, default))
    return [winner, *(f for f in finalists if f is not winner)]


def _preference(trial: Trial, default: dict[str, Any]) -> tuple[int, int, int, int]:
    names = {**trial.config, **default}
    n_different = sum(trial.config.get(name) != default.get(name) for name in names)
    return trial.registers or 0, trial.shared_bytes or 0, n_different, trial.number


def chosen(trials: list[Trial], default: Config, n: int) -> list[Trial]:
    """Returns the ``n`` fastest, those within SAME of the fastest (at most MOST in all), and the default."""
    measured = sorted((t for t in trials if t.median_s), key=_median)
    alike = [t for t in measured if _median(t) <= _median(measured[0]) * (1 + SAME)]
    best = measured[: max(n, min(MOST, len(alike)))]
    return best + [t for t in measured if t.config == default and t not in best]


def side_by_side(stations: Stations, trials: list[Trial], settings: Settings) -> tuple[Finalist, ...]:
    """Runs a final round of ``trials`` from any sweeps of one problem; returns the fastest first, renumbered.

    Raises:
        TrialFailure: when one of them fails in it.
    """

    def fails(trial: Trial, failure: TrialFailure) -> None:
        raise failure

    numbered = [replace(trial, number=i) for i, trial in enumerate(trials)]
    settings = replace(settings, n_finalists=len(trials))
    return FinalRound(stations, settings, Quiet(), fails).run(numbered, dict(trials[0].config))


class FinalRound:
    """The final round of one sweep; it calls ``left_out`` for each finalist that fails."""

    def __init__(
        self,
        stations: Stations,
        settings: Settings,
        progress: Progress,
        left_out: Callable[[Trial, TrialFailure], None],
    ) -> None:
        self.stations, self.settings, self.progress, self.left_out = stations, settings, progress, left_out

    def run(self, trials: list[Trial], default: dict[str, Any]) -> tuple[Finalist, ...]:
        """Returns the finalists of ``trials``, the winner first."""
        finalists = chosen(trials, Config(default), self.settings.n_finalists)
        if not finalists:
            return ()
        self.progress.finalists(len(finalists))
        started = [(trial, self.stations.start(trial.config)) for trial in finalists]
        jobs: list[tuple[Trial, Job]] = []
        for trial, compiled in started:  # all binaries are in the cache by now
            try:
                jobs.append((trial, self.stations.job(trial.config, self.stations.binary(compiled))))
            except TrialFailure as failure:
                self.left_out(trial, failure)
        measured = self._measured_together(jobs)
        jobs = [(trial, job) for trial, job in jobs if trial.number in measured]
        figures = self._sustained(jobs) if self.settings.sustained_s else {}
        if self.settings.sustained_s:
            jobs = [(trial, job) for trial, job in jobs if trial.number in figures]
        ranked = self._with_proof(jobs, measured, default)
        return tuple(replace(finalist, sustained=figures.get(finalist.trial.number)) for finalist in ranked)

    def _measured_together(self, jobs: list[tuple[Trial, Job]]) -> dict[int, Measurement]:
        """Measures interleaved, by trial number; if that fails, measures each alone to find the culprit."""
        protocol = replace(self.settings.protocol, n_samples=self.settings.finalist_samples)
        worker, deadline_s = self.stations.bench.worker, self.settings.launch_deadline_s
        n_placements = self.settings.n_placements(self.stations.target.kind)
        measured: dict[int, Measurement] = {}
        with self.stations.on_device("final round"):
            try:
                together = worker.measure_together(
                    [job for _, job in jobs], protocol, deadline_s * len(jobs) * n_placements, n_placements
                )
                measured = {trial.number: m for (trial, _), m in zip(jobs, together, strict=True)}
            except TrialFailure as failure:
                self.progress.note(f"the final round failed ({failure}); measuring the finalists one by one")
                for trial, job in jobs:
                    try:
                        measured[trial.number] = worker.measure(job, protocol, deadline_s)
                    except TrialFailure as its_own:
                        self.left_out(trial, its_own)
        return {number: self.stations.against_reference(m) for number, m in measured.items()}

    def _sustained(self, jobs: list[tuple[Trial, Job]]) -> dict[int, Sustained]:
        """Launches each finalist back to back for a while, by trial number; drops those that fail."""
        figures, worker = {}, self.stations.bench.worker
        for trial, job in jobs:
            with self.stations.on_device("final round"):
                try:
                    sustained = worker.sustain(job, self.settings.sustained_s, self.settings.launch_deadline_s)
                    figures[trial.number] = sustained
                except TrialFailure as failure:
                    self.left_out(trial, failure)
        return figures

    def _with_proof(
        self, jobs: list[tuple[Trial, Job]], measured: dict[int, Measurement], default: dict[str, Any]
    ) -> list[Finalist]:
        """Ranks and checks many launches of the winner; if one fails, the next config becomes the winner."""
        n_asked, worker = self.settings.n_checked(self.stations.target.kind), self.stations.bench.worker
        contestants = list(jobs)
        while contestants:
            ranked = rank([(trial, measured[trial.number]) for trial, _ in contestants], default)
            winner, job = next(c for c in contestants if c[0] is ranked[0].trial)
            with self.stations.on_device("final round"):
                try:
                    n = worker.repeat(job, n_asked, self.settings.launch_deadline_s)
                    return [replace(ranked[0], checked_launches=n), *ranked[1:]]
                except TrialFailure as failure:
                    self.left_out(winner, failure)
            contestants.remove((winner, job))
        return []


def _median(trial: Trial) -> float:
    return trial.median_s or 0.0
