"""The content of `autotune show` as plain data: one line per sweep for many, all details for one."""

from collections.abc import Sequence
from typing import Any

from ..core.errors import Status
from ..records.as_measured import told
from ..records.outcome import Finalist
from ..records.record import SweepRecord
from ..trial.row import Trial
from .importance import importances

PROOF = (
    *("number", "config", "key", "median_s", "q1_s", "q3_s", "interval_s", "clock_hz", "cold"),
    *("registers", "shared_bytes", "spill_bytes", "max_error", "rms_error", "verified_on", "checked_launches"),
    "sustained",
)
KNOWN = {"winner", "default", "speed_up", "ties", "preference_among_ties", "finalists", "counts", "n_configs"}
KNOWN |= {"ceilings", "spent_s"}


def overview(sweep: SweepRecord) -> dict[str, Any]:
    """Returns one sweep as one line: what was asked and what came of it. It reads no trial if there is an outcome."""
    winner, default = sweep.winner, sweep.default
    return {
        "path": str(sweep.folder.path),
        "device": sweep.device.name,
        "kernel": sweep.kernel,
        "problem": dict(sweep.problem),
        "clock": sweep.about.clock or "device time",
        "finished": sweep.outcome is not None,
        "n_trials": sum(sweep.counts.values()),
        "n_failed": sum(n for status, n in sweep.counts.items() if status != Status.MEASURED),
        "best_s": winner.median_s if winner else None,
        "default_s": default.median_s if default else None,
        "speed_up": sweep.speed_up,
        "config": dict(winner.config) if winner else None,
    }


def details(sweep: SweepRecord) -> dict[str, Any]:
    """Returns the overview and all that the record says about how it came about."""
    return {
        **overview(sweep),
        "holds": holds(sweep),
        "winner": proof(sweep, sweep.winner),
        "default": proof(sweep, sweep.default),
        "speed_up_interval": speed_up_interval(sweep),
        "counts": dict(sweep.counts),
        "n_configs": sweep.outcome.n_configs if sweep.outcome else None,
        "failures": failures(sweep.trials),
        "spent": spent(sweep),
        "best_so_far_s": best_so_far(sweep.trials),
        "importance": [each.as_json() for each in importances(sweep.trials)],
        "sweep": dict(sweep.about.content),
        "verdict": dict(sweep.outcome.content) if sweep.outcome is not None else None,
    }


def holds(sweep: SweepRecord) -> str:
    """Whether the winner is what its definition makes today; "" where there is no winner, or no definition here."""
    if sweep.winner is None:
        return ""
    return told(sweep.folder, sweep.device, sweep.winner.config, sweep.winner.key)


def proof(sweep: SweepRecord, chosen: Finalist | None) -> dict[str, Any] | None:
    """Returns a measured config with the evidence that it is correct and how often it was timed."""
    if chosen is None:
        return None
    trial = next((t for t in sweep.trials if t.config == chosen.config), None)
    row = chosen.as_json()
    found = {name: row[name] for name in PROOF if row.get(name) is not None}
    found["n_samples"] = len(chosen.samples_s)
    if trial is not None:
        found["reproduce"] = trial.reproduce
        if trial.efficiency is not None and trial.median_s:
            found["efficiency"] = trial.efficiency * trial.median_s / chosen.median_s
    return found


def speed_up_interval(sweep: SweepRecord) -> tuple[float, float] | None:
    """Returns the least and the largest speed-up that the two 95 % confidence intervals allow."""
    winner, default = sweep.winner, sweep.default
    if winner is None or default is None or winner.interval_s is None or default.interval_s is None:
        return None
    (best_low, best_high), (low, high) = winner.interval_s, default.interval_s
    return low / best_high, high / best_low


def failures(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Returns, for each status that is a failure, the count and the message and command of the first one."""
    found: dict[str, dict[str, Any]] = {}
    for trial in trials:
        if trial.status == Status.MEASURED:
            continue
        first = {"status": trial.status, "n": 0, "number": trial.number, "config": dict(trial.config)}
        entry = found.setdefault(trial.status, {**first, "message": trial.message, "reproduce": trial.reproduce})
        entry["n"] += 1
    return sorted(found.values(), key=lambda entry: -int(entry["n"]))


def best_so_far(trials: Sequence[Trial]) -> list[float | None]:
    """Returns the best median after each trial, in seconds; None before the first that was measured."""
    bests: list[float | None] = []
    best: float | None = None
    for trial in trials:
        if trial.median_s is not None and (best is None or trial.median_s < best):
            best = trial.median_s
        bests.append(best)
    return bests


def spent(sweep: SweepRecord) -> dict[str, Any]:
    """Returns where the wall time went: seconds, shares of their sum, and other figures of the outcome."""
    content = sweep.outcome.content if sweep.outcome else {}
    parts: dict[str, float] = dict(content.get("spent_s") or {})
    total = sum(parts.values())
    shares = {what: seconds / total for what, seconds in parts.items()} if total else {}
    others = {name: value for name, value in content.items() if name not in KNOWN and isinstance(value, (int, float))}
    return {"total_s": total, "seconds": parts, "shares": shares, **others}
