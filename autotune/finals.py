"""The final round: the best of a search and the default, measured again side by side."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .devices.worker import Job
from .errors import TrialFailure
from .finalists import SAME, Finalist, rank
from .measure import Measurement, Sustained
from .progress import Progress
from .record import Trial
from .settings import Settings
from .space import Config
from .trial import Stations

MOST = 12  # finalists, however many seem alike


def chosen(trials: list[Trial], default: Config, n: int) -> list[Trial]:
    """The ``n`` fastest, those the search cannot tell from the fastest (at most MOST in all), and the default."""
    measured = sorted((t for t in trials if t.median_s), key=_median)
    alike = [t for t in measured if _median(t) <= _median(measured[0]) * (1 + SAME)]
    best = measured[: max(n, min(MOST, len(alike)))]
    return best + [t for t in measured if t.config == default and t not in best]


LeftOut = Callable[[Trial, TrialFailure], None]


def final_round(
    stations: Stations,
    trials: list[Trial],
    default: dict[str, Any],
    settings: Settings,
    progress: Progress,
    left_out: LeftOut,
) -> tuple[Finalist, ...]:
    """The finalists, the winner first; ``left_out`` is told of each that fails now."""
    finalists = chosen(trials, Config(default), settings.n_finalists)
    if not finalists:
        return ()
    progress.finalists(len(finalists))
    started = [(trial, stations.start(trial.config)) for trial in finalists]
    jobs: list[tuple[Trial, Job]] = []
    for trial, compiled in started:  # all are in the cache by now
        try:
            jobs.append((trial, stations.job(trial.config, stations.binary(compiled))))
        except TrialFailure as failure:
            left_out(trial, failure)
    measured = _measure_together(stations, jobs, settings, progress, left_out)
    figures: dict[int, Sustained] = {}
    if settings.sustained_s:
        figures = _sustained(stations, [job for job in jobs if job[0].number in measured], settings, left_out)
        measured = {number: m for number, m in measured.items() if number in figures}
    ranked = _with_proof(stations, jobs, measured, default, settings, left_out)
    return tuple(replace(finalist, sustained=figures.get(finalist.trial.number)) for finalist in ranked)


def _measure_together(
    stations: Stations, jobs: list[tuple[Trial, Job]], settings: Settings, progress: Progress, left_out: LeftOut
) -> dict[int, Measurement]:
    """By trial. Interleaved; should one of them fail, each on its own, so that it is known which."""
    protocol = replace(settings.protocol, n_samples=settings.finalist_samples)
    worker, deadline_s = stations.bench.worker, settings.launch_deadline_s
    measured: dict[int, Measurement] = {}
    with stations.on_device("final round"):
        try:
            together = worker.measure_together([job for _, job in jobs], protocol, deadline_s * len(jobs))
            measured = {trial.number: m for (trial, _), m in zip(jobs, together, strict=True)}
        except TrialFailure as failure:
            progress.note(f"the final round failed ({failure}); measuring the finalists one by one")
            for trial, job in jobs:
                try:
                    measured[trial.number] = worker.measure(job, protocol, deadline_s)
                except TrialFailure as its_own:
                    left_out(trial, its_own)
    return {number: stations.against_reference(m) for number, m in measured.items()}


def _sustained(
    stations: Stations, jobs: list[tuple[Trial, Job]], settings: Settings, left_out: LeftOut
) -> dict[int, Sustained]:
    """By trial, each finalist launched back to back for a while; one that fails at that is no finalist."""
    figures = {}
    for trial, job in jobs:
        with stations.on_device("final round"):
            try:
                worker = stations.bench.worker
                figures[trial.number] = worker.sustain(job, settings.sustained_s, settings.launch_deadline_s)
            except TrialFailure as failure:
                left_out(trial, failure)
    return figures


def _with_proof(
    stations: Stations,
    jobs: list[tuple[Trial, Job]],
    measured: dict[int, Measurement],
    default: dict[str, Any],
    settings: Settings,
    left_out: LeftOut,
) -> list[Finalist]:
    """Ranked; the outputs of many launches of the winner are checked, and one that fails gives way to the next."""
    contestants = [(trial, job) for trial, job in jobs if trial.number in measured]
    while contestants:
        ranked = rank([(trial, measured[trial.number]) for trial, _ in contestants], default)
        winner, job = next(c for c in contestants if c[0] is ranked[0].trial)
        with stations.on_device("final round"):
            try:
                n_asked = settings.n_checked(stations.target.kind)
                n = stations.bench.worker.repeat(job, n_asked, settings.launch_deadline_s)
                return [replace(ranked[0], checked_launches=n), *ranked[1:]]
            except TrialFailure as failure:
                left_out(winner, failure)
        contestants.remove((winner, job))
    return []


def _median(trial: Trial) -> float:
    return trial.median_s or 0.0
