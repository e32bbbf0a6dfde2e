"""The values that ``tune_kernel`` returns: results in the form of Kernel Tuner, and their origin."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import Status
from ..core.expressions import checked_expression, value_of
from ..porting.call import Call
from ..porting.call_tuning import PortedSweep
from ..records.folder import SweepFolder
from ..records.objectives import unbeaten
from ..records.record import SweepRecord
from ..records.trial import times_of
from ..sweep.run import Sweep

# names that Kernel Tuner's own tools expect in its files
TIMES = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")

WALL_TIMES = {  # activities of a sweep that each of them has; the framework has the others
    "compile_time": ("waiting for compilers",),
    "verification_time": ("making the reference", "verifying"),
    "benchmark_time": ("measuring", "final round"),
    "strategy_time": ("searching",),
}


class Results(list[dict[str, Any]]):
    """The measured configs: parameters, ``time`` in ms, ``times`` (the median alone), and metrics.

    ``sweep`` is the sweep itself: winner, finalists, all trials as a DataFrame. ``note`` names the missing checks.
    ``front`` holds the best result, or the Pareto front of two objectives.
    """

    sweep: Sweep
    note: str
    front: list[dict[str, object]]


def results_of(ported: PortedSweep, call: Call, metrics: Mapping[str, object]) -> Results:
    """Returns the measured configs with their metrics."""
    results = Results()
    results.sweep, results.note = ported.sweep, ported.note
    for trial in _record(ported).trials:
        if trial.status != Status.MEASURED or trial.median_s is None or trial.number not in ported.sweep.numbers:
            continue
        result: dict[str, object] = {name: trial.config[name] for name in call.space}
        result["time"] = 1e3 * trial.median_s
        result["times"] = [1e3 * seconds for seconds in times_of(trial)]
        took = {"compile_time": trial.compile_s, "verification_time": trial.verify_s, "benchmark_time": trial.measure_s}
        result |= {name: 1e3 * (took.get(name) or 0.0) for name in TIMES}
        result["timestamp"] = trial.at
        results.append(with_metrics(result, metrics))
    return results


def with_metrics(result: dict[str, Any], metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a result with its metrics; each may use the parameters, the times and earlier metrics."""
    for name, metric in metrics.items():
        if callable(metric):
            result[name] = metric(dict(result))
        else:
            result[name] = value_of(checked_expression(metric, result, f"the metric {name}"), result)
    return result


def front_of_results(results: Sequence[dict[str, Any]], goals: Mapping[str, bool]) -> list[dict[str, object]]:
    """Returns the Pareto front, sorted by the first objective; with one objective, the best result."""
    signs = [-1 if higher else 1 for higher in goals.values()]

    def place(result: Mapping[str, Any]) -> tuple[float, ...]:
        return tuple(sign * result[name] for sign, name in zip(signs, goals, strict=True))

    return unbeaten((place(result), result) for result in results)


def result_text(result: Mapping[str, object], call: Call, goals: Mapping[str, bool]) -> str:
    """Returns a line about one result."""
    config = ", ".join(f"{name}={result[name]}" for name in call.space)
    more = "".join(f", {name} {result[name]:.4g}" for name in goals if name != "time")
    return f"{config}: {result['time']:.4g} ms{more}"


def get_config_string(
    params: Mapping[str, object], keys: Sequence[str] | None = None, units: Mapping[str, str] | None = None
) -> str:
    """Returns "a=1, b=2ms" for the values in ``params``, or those named by ``keys``, each with its unit."""
    return ", ".join(f"{name}={params[name]}{(units or {}).get(name, '')}" for name in keys or params)


def environment_of(ported: PortedSweep, wall_s: float) -> dict[str, object]:
    """Returns the device, the kernel, the paths of record and definition, the missing checks, trials by status, and the
    parts of this call's wall time in ms, as ``total_compile_time``; ``overhead_time`` is the rest of ``wall_s``.
    """
    record, spent_s = _record(ported), dict(ported.sweep.spent_s)
    parts = {name: sum(spent_s.pop(what, 0.0) for what in of) for name, of in WALL_TIMES.items()}
    totals = {f"total_{name}": 1e3 * seconds for name, seconds in parts.items()}
    totals["total_framework_time"] = 1e3 * sum(spent_s.values())
    return {
        "device_name": record.device.name,
        "kernel_name": ported.kernel.name,
        "record": str(record.path),
        "definition": str(ported.kernel.source_path),
        "checked": ported.note,
        "counts": {str(status): n for status, n in ported.sweep.counts.items()},
        **totals,
        "overhead_time": max(0.0, 1e3 * wall_s - sum(totals.values())),
    }


def _record(ported: PortedSweep) -> SweepRecord:
    return SweepRecord.of(SweepFolder(ported.sweep.path))
