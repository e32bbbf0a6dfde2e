"""From recorded sweeps to wisdom: the winner of each (kernel, problem, device), with its evidence, rendered anew.

A winner whose source no longer renders as it was measured is stale and is left out, with the reason.
"""

import dataclasses
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__
from .catalogue import load_kernel
from .definition import Device, Kernel
from .errors import TrialFailure, UsageError
from .record import SweepFolder, Trial, find_sweeps
from .render import render
from .space import Config
from .wisdom import Elsewhere, Entry, Evidence, Fallback, Wisdom, device_of

log = logging.getLogger("autotune")


@dataclass(frozen=True)
class Recorded:
    """One sweep as it was recorded; ``median_s`` is by variant key, of the search (never of the finalists)."""

    path: Path
    about: Mapping[str, Any]
    device: Device
    winner: Mapping[str, Any]  # a trial's fields
    default_median_s: float | None
    ties: int
    median_s: Mapping[str, float]

    @property
    def identity(self) -> tuple[str, str, tuple[Any, ...]]:
        return self.about["kernel"], self.device.name, tuple(self.about["problem"].items())

    def fields(self, kind: str) -> dict[str, Any]:
        """The problem's fields that are "baked" or "runtime"."""
        return {name: self.about["problem"][name] for name in self.about[kind]}


def gather(paths: Iterable[Path]) -> tuple[Wisdom, dict[str, str], dict[str, Kernel[Any]]]:
    """Wisdom, the sources it names by key, and the definitions by kernel name, of all sweeps at or under ``paths``.

    Raises:
        UsageError: when no sweep has a winner that can be emitted; says why for each.
    """
    left_out: dict[Path, str] = {}
    sweeps: dict[tuple[Any, ...], Recorded] = {}
    for folder in {f.path.resolve(): f for path in paths for f in find_sweeps(path)}.values():
        sweep = _read(folder)
        if isinstance(sweep, str):
            left_out[folder.path] = sweep
            continue
        other = sweeps.get(sweep.identity)  # two records of one thing: the newer counts
        if other is None or other.about.get("started", "") < sweep.about.get("started", ""):
            sweeps[sweep.identity] = sweep
    sources: dict[str, str] = {}
    kernels: dict[str, Kernel[Any]] = {}
    entries, fallbacks = [], []
    for sweep in sweeps.values():
        try:
            entry, fallback, rendered = _emit_one(sweep, list(sweeps.values()), kernels)
        except (UsageError, TrialFailure) as problem:
            left_out[sweep.path] = str(problem)
            continue
        entries.append(entry)
        if fallback not in fallbacks:
            fallbacks.append(fallback)
        sources.update(rendered)
    reasons = [f"{path}: {why}" for path, why in left_out.items()]
    if not entries:
        raise UsageError("nothing can be emitted:\n  " + "\n  ".join(reasons))
    for reason in reasons:
        log.warning("left out %s", reason)
    return Wisdom(tuple(entries), tuple(fallbacks), f"autotune {__version__}"), sources, kernels


def _read(folder: SweepFolder) -> Recorded | str:
    """The sweep, or why it has no winner."""
    try:
        about = folder.about()
        trials = {trial.config: trial for trial in folder.trials()}  # a config's last line counts
        verdict = folder.verdict()
        device = device_of(about["device"])
        measured = [t for t in trials.values() if t.status == "measured" and t.median_s]
        if verdict and verdict.get("winner"):
            winner: dict[str, Any] = dict(verdict["winner"])
            default = (verdict.get("default") or {}).get("median_s")
        elif measured:
            winner = min(measured, key=_median).as_json()
            default = next((t.median_s for t in measured if t.config == about["default"]), None)
        else:
            return f"none of its {len(trials)} configurations was measured"
        medians = {t.key: _median(t) for t in measured if t.key}
    except (ValueError, KeyError, TypeError) as error:
        return f"its record is damaged ({type(error).__name__}: {error})"
    return Recorded(folder.path, about, device, winner, default, len((verdict or {}).get("ties") or ()), medians)


def _emit_one(
    sweep: Recorded, sweeps: list[Recorded], kernels: dict[str, Kernel[Any]]
) -> tuple[Entry, Fallback, dict[str, str]]:
    """Raises UsageError when the winner is stale, TrialFailure when it no longer renders."""
    name = sweep.about["kernel"]
    kernel = load_kernel(sweep.about["definition"])
    if type(kernels.setdefault(name, kernel)) is not type(kernel):
        raise UsageError(f"two definitions are called {name}: {kernels[name].source_path} and {kernel.source_path}")
    problem = kernel.problem(sweep.about["problem"])
    winner = render(kernel, problem, Config(sweep.winner["config"]))
    if sweep.winner.get("key") not in (None, winner.key):
        raise UsageError(
            f"the template of {name} has changed since: the winner {sweep.winner['key']} now renders as {winner.key}. "
            f"Sweep again: autotune sweep --kernel {name} --problem {_text(sweep)}"
        )
    default = render(kernel, problem, Config(sweep.about["default"]))
    entry = Entry(
        kernel=name,
        device=sweep.device,
        baked=sweep.fields("baked"),
        runtime=sweep.fields("runtime"),
        config=winner.config,
        source_key=winner.key,
        evidence=_evidence(sweep),
        elsewhere=tuple(_elsewhere(sweep, winner.key, sweeps)),
    )
    inputs = call_order(kernel, problem, default.config)
    fallback = Fallback(name, sweep.fields("baked"), default.config, default.key, inputs)
    return entry, fallback, {winner.key: winner.source, default.key: default.source}


def call_order(kernel: Kernel[Any], problem: Any, config: Config) -> tuple[str, ...]:
    """Names of the inputs in the order in which the definition makes them; asked at the smallest problem it offers.

    Raises:
        UsageError: when the definition makes no input for an array that the kernel reads.
    """
    small = min(
        (problem, *kernel.ragged(problem, config)), key=lambda p: sum(a.n_bytes for a in kernel.arrays(p).values())
    )
    order = tuple(kernel.inputs(small, np.random.default_rng(0)))
    missing = [name for name, spec in kernel.arrays(small).items() if spec.read and name not in order]
    if missing:
        raise UsageError(f"{kernel.source_path}: inputs() makes no {', '.join(missing)}, which arrays() says are read")
    return order


def _evidence(sweep: Recorded) -> Evidence:
    known = {f.name for f in dataclasses.fields(Evidence)}
    found = {name: value for name, value in sweep.winner.items() if name in known and value is not None}
    about = {
        "default_median_s": sweep.default_median_s,
        "ties": sweep.ties,
        "compiler": sweep.about.get("compiler", ""),
        "commit": sweep.about.get("commit", ""),
        "date": sweep.about.get("started", ""),
        "verified_on": tuple(sweep.winner.get("verified_on") or ()),
    }
    return Evidence(**{**found, **about})


def _elsewhere(sweep: Recorded, key: str, sweeps: list[Recorded]) -> Iterable[Elsewhere]:
    """The same source in other sweeps: its median there over the least there, both of that device and sweep."""
    for other in sweeps:
        comparable = other.about["kernel"] == sweep.about["kernel"] and other.device.kind == sweep.device.kind
        if other is not sweep and comparable and key in other.median_s:
            loss = other.median_s[key] / min(other.median_s.values()) - 1
            yield Elsewhere(other.device.name, other.fields("runtime"), round(loss, 4))


def _median(trial: Trial) -> float:
    return trial.median_s or float("inf")


def _text(sweep: Recorded) -> str:
    return ",".join(f"{name}={value}" for name, value in sweep.about["problem"].items())
