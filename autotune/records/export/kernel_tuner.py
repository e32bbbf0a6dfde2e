"""Exports a sweep as a Kernel Tuner cache file, which its simulation mode replays and the benchmark hub shares.

Times are in milliseconds. Kernel Tuner's spaces have no conditional parameters, so each entry names all parameters, and
one that a config lacks has the value ``absent``. The file's key ``autotune`` states this word, and the problem.
"""

import json
from collections.abc import Sequence

from ...core.config import Value, merged_order
from ...core.errors import Status, UsageError
from ..figure import figures_of
from ..record import SweepRecord
from ..trial import Trial, times_of
from .exporter import Contents

MS = 1e3  # milliseconds per second
INVALID, NOT_COMPILED, NOT_RUN = "InvalidConfig", "CompilationFailedConfig", "RuntimeFailedConfig"

ERROR = {  # Kernel Tuner has no code for wrong outputs; our own key "status" says it
    **dict.fromkeys((Status.RESOURCES, Status.LAUNCH_FAILED, Status.TIMED_OUT, Status.WRONG, Status.NOISY), NOT_RUN),
    **dict.fromkeys((Status.CONSTRAINT, Status.SKIPPED), INVALID),
    **dict.fromkeys((Status.DEFINITION_FAILED, Status.RENDER_FAILED, Status.COMPILE_FAILED), NOT_COMPILED),
}


is_table, is_text = False, True


def contents(sweeps: Sequence[SweepRecord]) -> Contents:
    """Returns the cache file of one sweep."""
    (sweep,) = sweeps
    return {".json": f"{cache(sweep)}\n".encode()}


def cache(sweep: SweepRecord) -> str:
    """Returns the text of the cache file: one line per trial, in the order of the search.

    Raises:
        UsageError: without trials, or when a parameter has the name of one of an entry's own keys.
    """
    if not sweep.trials:
        raise UsageError(f"{sweep.folder.path} has no trials yet, so there is no space to write; let the sweep run")
    names = merged_order(trial.config for trial in sweep.trials)
    values = {name: _values(sweep, name) for name in names}
    absent = _absent_word(values)
    conditional = [name for name in names if any(name not in trial.config for trial in sweep.trials)]
    for name in conditional:
        values[name].append(absent)
    header = {
        "device_name": sweep.device.name,
        "kernel_name": sweep.kernel,
        "problem_size": [v for v in sweep.problem.values() if isinstance(v, int) and not isinstance(v, bool)],
        "tune_params_keys": names,
        "tune_params": values,
        "objective": "time",
        "autotune": {
            "problem": dict(sweep.problem),
            "absent": absent,
            "conditional": conditional,
            "about": dict(sweep.about.content),
        },
    }
    entries = dict(_entry(trial, names, absent) for trial in sweep.trials)
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in entries.items())
    return f'{json.dumps(header, indent=1)[:-2]},\n"cache": {{\n{lines}}}\n}}'  # Kernel Tuner looks for this ending


def _entry(trial: Trial, names: list[str], absent: str) -> tuple[str, dict[str, object]]:
    config = {name: trial.config.get(name, absent) for name in names}
    compiler_timed_out = trial.status == Status.TIMED_OUT and trial.compile_s is None
    error = "" if trial.median_s is not None else NOT_COMPILED if compiler_timed_out else ERROR[trial.status]
    own: dict[str, object] = {
        "time": error or MS * (trial.median_s or 0.0),
        "times": [MS * s for s in times_of(trial)],
        "compile_time": MS * (trial.compile_s or 0.0),
        "verification_time": MS * (trial.verify_s or 0.0),
        "benchmark_time": MS * (trial.measure_s or 0.0),
        "strategy_time": 0,
        "framework_time": 0,
        "timestamp": trial.at,
        "status": trial.status,
    }
    if error:
        own |= {"__error__": error, "message": trial.message}
    for name, figure in figures_of(Trial).items():
        if figure.in_exports and isinstance(value := getattr(trial, name), int | float):
            own[name] = value
    if clash := sorted(set(config) & set(own)):
        raise UsageError(
            f"the parameter {clash[0]!r} has the name of a key that Kernel Tuner's cache files use themselves; "
            "rename it in the kernel's definition, or export as t4"
        )
    return ",".join(map(str, config.values())), config | own


def _values(sweep: SweepRecord, name: str) -> list[Value]:
    """Returns the values of the space (in older records, the tried ones): numbers sorted, words in their order."""
    tried = (trial.config[name] for trial in sweep.trials if name in trial.config)
    seen = list(dict.fromkeys([*sweep.about.space.get(name, ()), *tried]))
    return sorted(seen) if all(isinstance(v, (int, float)) for v in seen) else seen


def _absent_word(values: dict[str, list[Value]]) -> str:
    """Returns ``absent``, with underscores added until no parameter has that value."""
    word = "absent"
    while any(str(value) == word for each in values.values() for value in each):
        word += "_"
    return word
