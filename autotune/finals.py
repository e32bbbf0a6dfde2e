"""The final round: the best of a search and the default, measured again side by side."""

from dataclasses import replace
from typing import Any

from .devices.worker import Job
from .errors import TrialFailure
from .finalists import SAME, Finalist, rank
from .measure import Measurement
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
    pairs = zip(jobs, measurements, strict=True)
    contestants = [(trial, stations.against_reference(m)) for (trial, _), m in pairs if m is not None]
    ranked = rank(contestants, default) if contestants else []
    return tuple(_sustained(stations, ranked, jobs, settings, progress)) if settings.sustained_s else tuple(ranked)


def _sustained(
    stations: Stations,
    ranked: list[Finalist],
    jobs: list[tuple[Trial, Job]],
    settings: Settings,
    progress: Progress,
) -> list[Finalist]:
    """Each finalist launched back to back for a while; one that fails at that goes without a figure, and is told."""
    found = []
    for finalist in ranked:
        with stations.on_device("final round"):
            try:
                job = next(job for trial, job in jobs if trial is finalist.trial)
                figure = stations.bench.worker.sustain(job, settings.sustained_s, settings.launch_deadline_s)
                finalist = replace(finalist, sustained=figure)
            except TrialFailure as failure:
                progress.note(f"not sustained: {finalist.trial.config}: {failure}")
        found.append(finalist)
    return found


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
