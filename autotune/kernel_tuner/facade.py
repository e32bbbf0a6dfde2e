"""``tune_kernel`` and ``run_kernel`` translate each argument of Kernel Tuner into autotune's own."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import UsageError
from ..devices import find_device
from ..porting.call import Divisor, read_call
from ..porting.call_tuning import run_once, tune_call
from ..porting.config_lines import Lines
from .asked import device_asked_for, objectives_of, options_of, refuse_options, settings_of, silent
from .returned import Results, environment_of, front_of_results, result_text, results_of

RUN_DEADLINE_S = 60.0
SHORTER = 'strategy="random_sample", strategy_options={"time_limit": 120}'


def tune_kernel(
    kernel_name: str,
    kernel_source: object,
    problem_size: object,
    arguments: Sequence[object],
    tune_params: Mapping[str, Sequence[object]],
    grid_div_x: Divisor = None,
    grid_div_y: Divisor = None,
    grid_div_z: Divisor = None,
    restrictions: object = None,
    answer: Sequence[object] | None = None,
    atol: float = 1e-6,
    verify: Callable[..., Any] | None = None,
    verbose: bool = False,
    lang: str | None = None,
    device: int | str = "auto",
    smem_args: Mapping[str, object] | None = None,
    cmem_args: Mapping[str, object] | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, object] | None = None,
    iterations: int | None = None,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    strategy: Any = None,
    strategy_options: Mapping[str, object] | None = None,
    cache: str | None = None,
    metrics: Mapping[str, object] | None = None,
    objective: str | None = "time",
    objective_higher_is_better: bool | None = None,
    objectives: Mapping[str, bool] | None = None,
    seed: int | None = None,
    results: str | Path = "results",
    deadline: float = 60.0,
    **others: object,
) -> tuple[Results, dict[str, object]]:
    """Tunes a kernel in an unchanged .cu file. Every config is checked, a failing config is a trial, and calls resume.

    Args:
        kernel_name: name of the ``__global__`` function.
        kernel_source: CUDA as text, the path of a file, a list of paths with the kernel's file first, or a function
            that returns the text.
        problem_size: the extent of the grid: a number, an expression of parameters as text, a tuple of up to three of
            these, or a function of the config.
        arguments: NumPy arrays and numbers, in the order of the signature.
        tune_params: name of each parameter -> its values. Parameters are macros of the source.
        grid_div_x: divisor of the size along x: a list of expressions that are multiplied, or a function; by default
            block_size_x.
        grid_div_y: divisor of the size along y; by default block_size_y.
        grid_div_z: divisor of the size along z; by default block_size_z.
        restrictions: conditions on configs: a text, a function of the config or of parameters by name, a constraint of
            python-constraint, or a pair of one of these and the names of its parameters; or a list of conditions.
        answer: expected content of each argument after a launch; None for an input.
        atol: |output - answer| <= atol + 1e-5 |answer|.
        verify: a function (answer, outputs, atol) that returns whether the outputs are right, in place of ``atol``.
        device: auto, host, cuda:1, or a GPU's number.
        smem_args: ``size``, bytes of dynamic shared memory: a number, a text or a function.
        cmem_args: arrays in constant memory, by the symbol's name.
        compiler_options: -D and -I; options that do not change the result are ignored, with a note.
        defines: macros to define in place of the parameters.
        iterations: timed launches of each config; by default those of a sweep.
        strategy: None or brute_force tries all configs; any other name means autotune's own search.
        strategy_options: max_fevals or fraction, and time_limit in seconds.
        cache: a cache file of Kernel Tuner. Its fastest configs are tried first; the file is not written.
        metrics: name -> function of (parameters and time in ms), or an expression of these as text.
        objective: ``time``, or the metric that ranks the results.
        objectives: one or two names -> whether the largest value is the best. With two, the Pareto front is printed,
            and returned as ``results.front``.
        results: the folder for records; the same call, run again, resumes there.
        deadline: seconds that the checks, or the timing, of one config may take.

    Returns:
        The results, and a description of the device and the record.

    Raises:
        UsageError: for an unsupported argument; the message names it.
        KeyboardInterrupt: on Ctrl-C; all trials until then are recorded.
    """
    begin = time.perf_counter()
    refuse_options(others, lang)
    goals = objectives_of(objective, objective_higher_is_better, objectives, metrics or {})
    note = silent if quiet else print
    macros, folders = options_of(compiler_options or (), note)
    call = read_call(
        kernel_name,
        kernel_source,
        problem_size,
        arguments,
        tune_params,
        divisors=(grid_div_x, grid_div_y, grid_div_z),
        restrictions=restrictions,
        smem_args=smem_args,
        cmem_args=cmem_args,
        block_size_names=block_size_names,
        defines=defines,
        macros=macros,
        folders=folders,
        device=find_device(device_asked_for(device)).device,
    )
    settings = settings_of(
        strategy, strategy_options or {}, iterations, seed, Path(results), deadline, call, cache, note
    )
    if verify is not None and answer is None:
        raise UsageError("verify compares outputs with an answer: give answer, too")
    is_limited = settings.trials is not None or settings.time is not None
    lines = Lines(note, verbose, "" if is_limited else SHORTER)
    ported = tune_call(call, answer, atol, verify, device_asked_for(device), settings, lines)
    if ported.sweep.interrupted:  # Ctrl-C also ends a script that tunes several kernels
        note(f"interrupted: all trials so far are in {ported.sweep.path}; the same call resumes")
        raise KeyboardInterrupt
    measured = results_of(ported, call, metrics or {})
    measured.front = front_of_results(measured, goals)
    winner = ported.sweep.best  # the final round chose it
    if goals == {"time": False} and winner is not None:
        is_winner = (result for result in measured if all(result[name] == winner.config[name] for name in call.space))
        measured.front = [next(is_winner)]
    for result in measured.front:
        if ported.sweep.finalists and len(goals) == 1:  # the time of the final round
            result = {**result, "time": 1e3 * ported.sweep.finalists[0].median_s}
        note(f"{'best' if len(goals) == 1 else 'front'}: {result_text(result, call, goals)}")
    return measured, environment_of(ported, time.perf_counter() - begin)


def run_kernel(
    kernel_name: str,
    kernel_source: object,
    problem_size: object,
    arguments: Sequence[object],
    params: Mapping[str, object],
    grid_div_x: Divisor = None,
    grid_div_y: Divisor = None,
    grid_div_z: Divisor = None,
    lang: str | None = None,
    device: int | str = "auto",
    smem_args: Mapping[str, object] | None = None,
    cmem_args: Mapping[str, object] | None = None,
    compiler_options: Sequence[str] | None = None,
    defines: Mapping[str, object] | None = None,
    block_size_names: Sequence[str] | None = None,
    quiet: bool = False,
    results: str | Path = "results",
    **others: object,
) -> list[object]:
    """Launches a kernel once with the given parameters; returns the arguments as they are after the launch.

    Arguments are those of ``tune_kernel``; ``params`` maps each parameter to one value.

    Raises:
        UsageError: for an unsupported argument, or a kernel that does not compile or run.
    """
    refuse_options(others, lang)
    macros, folders = options_of(compiler_options or (), silent if quiet else print)
    call = read_call(
        kernel_name,
        kernel_source,
        problem_size,
        arguments,
        {name: (value,) for name, value in params.items()},
        divisors=(grid_div_x, grid_div_y, grid_div_z),
        smem_args=smem_args,
        cmem_args=cmem_args,
        block_size_names=block_size_names,
        defines=defines,
        macros=macros,
        folders=folders,
    )
    config = {name: values[0] for name, values in call.space.items()}
    return run_once(call, config, device_asked_for(device), RUN_DEADLINE_S)
