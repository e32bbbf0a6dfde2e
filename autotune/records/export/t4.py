"""Exports T4, the autotuning community's format: a results file and a metadata file, valid against schema 1.0.0.

The schema comes from https://github.com/odgaard/TuningSchema; Kernel Tuner ships it, KTT and the benchmark hub use it.
Times are in milliseconds, as the file's ``metadata.timeunit`` says, because programs that read T4 expect this unit.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...core.config import Value
from ...core.errors import Status
from ..figure import figures_of
from ..record import SweepRecord
from ..trial import Trial, times_of
from .exporter import Contents

SCHEMA_VERSION = "1.0.0"
MS = 1e3  # milliseconds per second

INVALIDITY = {
    Status.MEASURED: "correct",
    **dict.fromkeys((Status.CONSTRAINT, Status.SKIPPED), "constraints"),
    **dict.fromkeys((Status.DEFINITION_FAILED, Status.RENDER_FAILED, Status.COMPILE_FAILED), "compile"),
    **dict.fromkeys((Status.RESOURCES, Status.LAUNCH_FAILED, Status.NOISY), "runtime"),  # NOISY: without a time
    Status.TIMED_OUT: "timeout",
    Status.WRONG: "correctness",
}

_MEASUREMENTS = {name: figure.unit for name, figure in figures_of(Trial).items() if figure.in_exports}
_NAMES = {"key": "variant"}  # field -> its name in the file


is_table, is_text = False, True


def contents(sweeps: Sequence[SweepRecord]) -> Contents:
    """Returns the two files of one sweep."""
    (sweep,) = sweeps
    texts = {"-results.json": json.dumps(results(sweep)), "-metadata.json": json.dumps(metadata(sweep), indent=1)}
    return {end: f"{text}\n".encode() for end, text in texts.items()}


def results(sweep: SweepRecord) -> dict[str, object]:
    """Returns the results file: one entry per trial, in the order of the search.

    ``times`` contains only recorded times: a stage with an unknown time is left out. Only stages that were certainly
    not reached have time 0.
    """
    final = {_key(f.config): f.median_s for f in sweep.finalists}
    return {
        "schema_version": SCHEMA_VERSION,
        "metadata": {
            "timeunit": "milliseconds",
            "device": sweep.device.name,
            "kernel": sweep.kernel,
            "problem": dict(sweep.problem),
            "clock": sweep.about.clock,
        },
        "results": [_result(trial, final.get(_key(trial.config))) for trial in sweep.trials],
    }


def metadata(sweep: SweepRecord) -> dict[str, object]:
    """Returns the metadata file: device, machine, versions, commit, settings, and the outcome."""
    about, content = sweep.about, sweep.about.content
    members: dict[str, object] = {
        "hardware": {"hardware_description": [asdict(about.device)], "operating_system": about.machine},
        "environment": {
            "device_query": {"name": sweep.device.name, "compiler": about.compiler},
            "requirements": [f"{name}=={version}" for name, version in about.versions.items()],
        },
    }
    own = ("definition", "baked", "runtime", "default", "refused", "settings", "started", "commit", "clock")
    members["autotune"] = {
        "kernel": sweep.kernel,
        "problem": dict(sweep.problem),
        **{name: content[name] for name in own if name in content},
        "verdict": dict(sweep.outcome.content) if sweep.outcome is not None else None,
    }
    return {"schema_version": SCHEMA_VERSION, "metadata": members}


def _result(trial: Trial, final_s: float | None) -> dict[str, object]:
    entry: dict[str, object] = {"timestamp": trial.at} if trial.at else {}
    return entry | {
        "configuration": dict(trial.config),
        "times": _times(trial),
        "invalidity": INVALIDITY[trial.status],
        "correctness": int(trial.status in (Status.MEASURED, Status.NOISY)),  # both have passed the verification
        "measurements": _measurements(trial, final_s),
        "objectives": ["time"],
    }


def _times(trial: Trial) -> dict[str, object]:
    """Returns times in ms, under the schema's ``compilation_time`` and Kernel Tuner's ``compilation``."""
    times: dict[str, object] = {"runtimes": [MS * s for s in times_of(trial)]}
    stages = {"compilation": trial.compile_s, "validation": trial.verify_s, "benchmark": trial.measure_s}
    if trial.status in (Status.CONSTRAINT, Status.SKIPPED, Status.RENDER_FAILED):
        stages = dict.fromkeys(stages, 0.0)
    times |= {name: MS * seconds for name, seconds in stages.items() if seconds is not None}
    if "compilation" in times:
        times["compilation_time"] = times["compilation"]
    return times


def _measurements(trial: Trial, final_s: float | None) -> list[dict[str, object]]:
    times = {"time": trial.median_s, "time_q1": trial.q1_s, "time_q3": trial.q3_s, "time_final_round": final_s}
    measurements = [{"name": name, "value": MS * s, "unit": "ms"} for name, s in times.items() if s is not None]
    for field, unit in _MEASUREMENTS.items():
        name, value = _NAMES.get(field, field), getattr(trial, field)
        if value is not None and value != "":
            measurements.append(
                {"name": name, "value": list(value) if isinstance(value, tuple) else value, "unit": unit}
            )
    return measurements


def _key(config: Any) -> frozenset[tuple[str, Value]]:
    return frozenset(dict(config).items())
