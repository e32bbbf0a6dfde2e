"""The final round: the best of a search and the default, measured again side by side."""

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


def final_round(
    stations: Stations, trials: list[Trial], default: dict[str, Any], settings: Settings, progress: Progress
) -> tuple[Finalist, ...]:
    """The finalists, the winner first; one that fails now is left out, and told."""
    finalists = chosen(trials, Config(default), settings.n_finalists)
    if not finalists:
        return ()
    progress.finalists(len(finalists))
    started = [(trial, stations.start(trial.config)) for trial in finalists]
    jobs = []
    for trial, compiled in started:  # all are in the cache by now
        try:
            jobs.append((trial, stations.job(trial.config, stations.binary(compiled))))
        except TrialFailure as failure:
            progress.note(f"left out of the final round: {trial.config}: {failure}")
    measurements = _measure_together(stations, [job for _, job in jobs], settings, progress)
    contestants = [
        (trial, job, stations.against_reference(m))
        for (trial, job), m in zip(jobs, measurements, strict=True)
        if m is not None
    ]
    figures: dict[int, Sustained] = {}
    if settings.sustained_s:
        figures = _sustained(stations, [(trial, job) for trial, job, _ in contestants], settings, progress)
    kept = [(trial, m) for trial, _, m in contestants if not settings.sustained_s or trial.number in figures]
    ranked = rank(kept, default) if kept else []
    return tuple(replace(finalist, sustained=figures.get(finalist.trial.number)) for finalist in ranked)


def _sustained(
    stations: Stations, jobs: list[tuple[Trial, Job]], settings: Settings, progress: Progress
) -> dict[int, Sustained]:
    """By trial, each finalist launched back to back for a while; one that fails at that is no finalist, and is told."""
    figures = {}
    for trial, job in jobs:
        with stations.on_device("final round"):
            try:
                worker = stations.bench.worker
                figures[trial.number] = worker.sustain(job, settings.sustained_s, settings.launch_deadline_s)
            except TrialFailure as failure:
                progress.note(f"left out: launched back to back it failed: {trial.config}: {failure}")
    return figures


def _measure_together(
    stations: Stations, jobs: list[Job], settings: Settings, progress: Progress
) -> list[Measurement | None]:
    """Interleaved; should one of them fail, each on its own, so that it is known which."""
    protocol = replace(settings.protocol, n_samples=settings.finalist_samples)
    worker, deadline_s = stations.bench.worker, settings.launch_deadline_s
    with stations.on_device("final round"):
        try:
            return list(worker.measure_together(jobs, protocol, deadline_s * len(jobs)))
        except TrialFailure as failure:
            progress.note(f"the final round failed ({failure}); measuring the finalists one by one")
        alone: list[Measurement | None] = []
        for job in jobs:
            try:
                alone.append(worker.measure(job, protocol, deadline_s))
            except TrialFailure as failure:
                progress.note(f"left out of the final round: {job.config}: {failure}")
                alone.append(None)
        return alone


def _median(trial: Trial) -> float:
    return trial.median_s or 0.0
