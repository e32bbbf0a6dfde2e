"""The Python interface: one call for each task of the command line, and ``run`` for notebooks and bug reports.

Each call imports the rooms that it needs. Processes that compile and measure import this package, too; without those
rooms they start in three fifths of the time.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from .core.errors import UsageError
from .system.limits import COUNT, check_number, check_type

if TYPE_CHECKING:
    import optuna
    import pandas as pd

    from .core.config import Config
    from .devices import Target
    from .runtime.binding import Binding
    from .sweep.progress import Progress
    from .sweep.run import Sweep

RUN_DEADLINE_S = 120.0


def run(
    kernel: str,
    *,
    inputs: Mapping[str, object],
    problem: Mapping[str, object] | None = None,
    config: Mapping[str, object] | None = None,
    device: str = "auto",
) -> dict[str, np.ndarray]:
    """Launches ``kernel`` once on ``inputs``; returns its outputs by name, as NumPy arrays. Any thread may call it.

    Args:
        kernel: a name, or the path of a definition.
        inputs: arrays and numbers by name; shapes and dtypes are those of the definition's ``arrays``.
        problem: baked fields, and the runtime fields that do not follow from the inputs' shapes.
        config: parameter values by name; None: the default configuration.
        device: ``auto``, ``host``, ``cuda:0``.

    Raises:
        UsageError: for unknown names, inputs of a wrong shape or dtype, or a size that does not follow from the shapes.
        TrialFailure: when the variant does not compile or the launch fails.
    """
    from .devices import ON_REQUEST
    from .rendering.render import render
    from .runtime.binding import Binding
    from .source.registry import kernel_reference
    from .sweep.request import of_types
    from .system.memory import check_memory
    from .trial.shared_workers import SHARED
    from .trial.stations import check_limits
    from .trial.worker import Job

    definition, target = _resolved(kernel, device)
    if target.kind in ON_REQUEST:
        raise UsageError(f"{device} computes nothing, so run has no outputs there; choose host or a GPU")
    check_type("inputs", inputs, Mapping, "a dict of arrays and numbers by name")
    arrays = {
        name: np.asarray(v) if hasattr(v, "__array__") and not isinstance(v, np.generic) else v
        for name, v in inputs.items()
    }
    check_type("config", config, (Mapping, NoneType), "a dict of values by name, or None")
    check_type("problem", problem, (Mapping, NoneType), "a dict of values by name, or None")
    chosen = definition.problem_for(of_types(definition, problem or {}), arrays)
    check_memory(definition, chosen)
    settled = definition.default_config(chosen, target.device) if config is None else definition.space.parse(config)
    _check_inputs(Binding.of(definition, chosen), arrays, settled)
    binary = target.module.compile(render(definition, chosen, settled), target.device)
    check_limits(binary, definition.launch(chosen, settled), target.device)
    job = Job(kernel_reference(definition), asdict(chosen), settled, binary)
    return SHARED.of(target).run(job, arrays, RUN_DEADLINE_S)


def sweep(
    kernel: str,
    *,
    problem: Mapping[str, object] | None = None,
    device: str = "auto",
    effort: str = "normal",
    compile_processes: int | None = None,
    progress: "Progress | None" = None,
    **settings: Any,
) -> "Sweep":
    """Tunes ``kernel`` for ``problem``; the result has ``best``, ``trials`` (a DataFrame), ``plot()`` and ``path``.

    ``effort``: quick, normal or full. ``settings``: fields of ``autotune.sweep.settings.Settings`` (trials, time,
    sampler, seed, only, results, dashboard, ...); they override the values of ``effort``. The same call, run again,
    resumes where it stopped.

    Raises:
        UsageError: for unknown names and values, an empty space, or a record that cannot be written.
    """
    from .sweep.progress import Progress, Quiet
    from .sweep.request import problem_on
    from .sweep.run import run_sweep
    from .sweep.settings import Settings
    from .sweep.settings import effort as effort_of
    from .system.memory import check_memory
    from .system.setting import settings_given
    from .trial.bench import COMPILE_PROCESSES, Bench

    definition, target = _resolved(kernel, device)
    check_type("problem", problem, (Mapping, NoneType), "a dict of values by name, or None")
    check_type("progress", progress, (Progress, NoneType), "an object with the methods of Progress, or None")
    check_number("compile_processes", compile_processes, replace(COUNT, may_lack=True))
    chosen = Settings(**effort_of(effort) | settings_given(Settings, settings))
    wanted_problem = problem_on(definition, problem or {}, target)
    check_memory(definition, wanted_problem)
    n_processes = compile_processes or COMPILE_PROCESSES
    with Bench(target, n_processes, note=(progress or Quiet()).note) as bench:
        return run_sweep(definition, wanted_problem, bench, chosen, progress)


def emit(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    portfolio: int | None = None,
    kernels: Sequence[str | Path] = (),
    problems: Sequence[str | Path] = (),
) -> Path:
    """Writes the winners of recorded sweeps as an installable package at ``out``, and returns its path.

    ``portfolio``: at most this many configurations for each kernel and device serve all problems. ``kernels``: paths of
    definitions that are not installed; code runs only from installed or named definitions, never from a record alone.
    ``problems``: TOML lists of problems without a record; their configs are predicted and rendered now.

    Raises:
        UsageError: if the records hold no measured config, or ``out`` cannot be a package.
    """
    from .emit.writer import write_package

    check_type("paths", paths, (str, os.PathLike, Iterable), "a list of paths")
    check_type("out", out, (str, os.PathLike), "a path")
    check_number("portfolio", portfolio, replace(COUNT, may_lack=True))
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    for path in listed:
        check_type("path", path, (str, os.PathLike), "a path")
    return write_package([Path(p) for p in listed], Path(out), portfolio, kernels, [Path(p) for p in problems])


def load(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Returns a table with one row for each recorded trial under ``path`` (one sweep or a tree of sweeps).

    Columns: device, kernel, the problem's fields as ``problem.<field>``, the parameters by their own names, and
    Trial's fields (seconds, bytes, GB/s, TFLOP/s). A parameter that a config does not use is missing (NA).

    Raises:
        UsageError: if there is no recorded sweep.
    """
    from .records.table import load_trials

    return load_trials(path)


def study(path: str | os.PathLike[str]) -> "optuna.Study":
    """Returns the recorded sweep at or under ``path`` as a study of Optuna's in memory.

    The study has one trial for each config whose trial is still valid, in the order of the record. Parameters are
    categorical; a parameter that a config does not use is absent. Values are those of the sweep's objectives, by
    default the search's median in seconds; a trial without them is a failed trial. User attributes of a trial are the
    record's columns (status, message, registers, efficiency, ...), and ``final_median_s`` for a finalist. User
    attributes of the study are kernel, problem, device, clock, objectives, path, default, and the sweep's winner; the
    final round may have preferred it to ``best_trial``. Changes of the study are not recorded.

    Raises:
        UsageError: if there is no recorded sweep, or more than one.
    """
    from .records.study import optuna_study

    return optuna_study(path)


def _resolved(kernel: str, device: str) -> "tuple[Any, Target]":
    from .devices import find_device
    from .source.registry import load_kernel

    check_type("kernel", kernel, str, "a kernel's name, or the path of its definition as text")
    check_type("device", device, str, "a device's name, such as auto, host or cuda:0")
    return load_kernel(kernel), find_device(device)


def _check_inputs(binding: "Binding", arrays: Mapping[str, Any], config: "Config") -> None:
    """Raises UsageError for inputs that are missing or unknown, or have a wrong type or shape."""
    from .runtime.signature import call_order

    definition = binding.kernel
    for name, spec in binding.specs.items():
        if not spec.read:
            continue
        if name not in arrays:
            raise UsageError(f"{definition.name} needs the input {name}: {spec.dtype} {list(spec.shape)}")
        value = arrays[name]
        if getattr(value, "dtype", None) != spec.dtype or tuple(value.shape) != spec.shape:
            what = f"{value.dtype} {list(value.shape)}" if hasattr(value, "dtype") else type(value).__name__
            raise UsageError(f"{definition.name}: {name} is {what}, must be {spec.dtype} {list(spec.shape)}")
    if unread := binding.unread(arrays):
        names = call_order(definition, binding.problem, config)
        if unknown := [name for name in unread if name not in names]:
            raise UsageError(f"{definition.name} takes {', '.join(names)}, not {', '.join(unknown)}")
