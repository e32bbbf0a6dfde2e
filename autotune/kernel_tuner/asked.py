"""Reads the arguments that only Kernel Tuner's calls have: compiler options, strategies, devices, unsupported ones."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from ..core.errors import UsageError
from ..porting.call import Call
from ..sweep.settings import Settings

# Scripts tune small spaces and wait for them: the final round is shorter than a sweep's.
FINAL_ROUND: dict[str, Any] = {"finalists": 3, "finalist_samples": 20, "placements": 1}
EXHAUSTIVE = (None, "brute_force")
LANGUAGES = (None, "cuda", "cupy", "nvcuda")
WITHOUT_EFFECT = ("-O", "-std=", "--std", "-lineinfo", "--generate-line-info", "-arch", "--gpu-architecture", "-Xptxas")


def silent(*_: object) -> None:
    """Accepts a line and does not print it."""


def refuse_options(others: Mapping[str, Any], lang: str | None) -> None:
    """Raises UsageError for unsupported arguments, with the reason."""
    options = {name: value for name, value in others.items() if value not in (None, False)}
    left_out = {"platform": 0, "log": None, "parallel": None, "compiler": None, "simulation_mode": None}
    reasons = {
        "texmem_args": "textures are not supported: read a const __restrict__ pointer instead",
        "observers": "observers are not supported: results.sweep.trials has times, clocks and registers of each trial",
        "simulation_mode": "recorded spaces are searched by benchmarks/searches.py of autotune's repository",
    }
    for name in options:
        if name in reasons:
            raise UsageError(f"{name}: {reasons[name]}")
        if name not in left_out:
            raise UsageError(f"tune_kernel has no argument {name!r}")
    if lang is not None and lang.lower() not in LANGUAGES:
        raise UsageError(f"lang={lang!r}: kernels are CUDA C++, compiled by NVRTC")


def objectives_of(
    objective: str | None,
    higher_is_better: bool | None,
    objectives: Mapping[str, bool] | None,
    metrics: Mapping[str, Any],
) -> dict[str, bool]:
    """Returns objective -> whether its largest value is the best; by default false for time, true for a metric.

    Raises:
        UsageError: for an objective that is neither time nor a metric, or for more than two.
    """
    name = objective or "time"
    directions = (
        dict(objectives) if objectives else {name: name != "time" if higher_is_better is None else higher_is_better}
    )
    for each in directions:
        if each not in ("time", *metrics):
            raise UsageError(f"objective {each!r} is neither time nor a metric ({', '.join(metrics)})")
    if len(directions) > 2:
        raise UsageError(f"objectives: {', '.join(directions)}; at most two are supported")
    return directions


def options_of(options: Sequence[str], note: Callable[[str], Any]) -> tuple[dict[str, str], list[Path]]:
    """Returns the macros (-D) and the include folders (-I) in compiler options.

    Raises:
        UsageError: for an option that would change the result.
    """
    macros: dict[str, str] = {}
    folders: list[Path] = []
    given = iter(options)
    for option in given:
        if option in ("-D", "-I"):
            option += next(given, "")
        if option.startswith("-D"):
            name, is_given, value = option[2:].partition("=")
            macros[name] = value if is_given else "1"
        elif option.startswith("-I"):
            folders.append(Path(option[2:]))
        elif option.startswith(WITHOUT_EFFECT):
            note(f"compiler_options: {option} is ignored; NVRTC compiles for the device, at full optimisation")
        else:
            raise UsageError(f"compiler_options: {shlex.quote(option)} is not supported; -D and -I are")
    return macros, folders


def device_asked_for(device: int | str) -> str:
    """Returns the device's name. A number means that GPU; 0, the default in many scripts, means auto."""
    if isinstance(device, str):
        return device
    return "auto" if device == 0 else f"cuda:{device}"


def settings_of(
    strategy: Any,
    options: Mapping[str, Any],
    iterations: int | None,
    seed: int | None,
    results: Path,
    deadline_s: float,
    call: Call,
    cache: str | None,
    note: Callable[[str], Any],
) -> Settings:
    """Returns the settings of a sweep: all configs, unless a strategy or a budget is named.

    ``fraction`` in ``options`` is the share of the allowed configs to try.
    """
    trials = options.get("max_fevals")
    if trials is None and "fraction" in options:
        n = call.enumeration.n_allowed or len(call.enumeration.configs)
        trials = max(1, ceil(n * options["fraction"]))
    strategy = getattr(strategy, "__name__", strategy)  # Kernel Tuner takes its modules, too
    is_search = strategy not in EXHAUSTIVE
    if is_search:
        note(f"strategy={strategy!r}: configs are searched by autotune's own search")
    sampler = "auto" if is_search or trials is not None else "exhaustive"
    return Settings(
        results=results,
        trials=trials,
        time=options.get("time_limit"),
        sampler=sampler,
        seed=seed or 0,
        samples=Settings.samples if iterations is None else max(3, iterations),
        begin_from=_begun_in(cache, results, note),
        deadline=deadline_s,
        **FINAL_ROUND,
    )


def _begun_in(cache: str | None, results: Path, note: Callable[[str], Any]) -> Path | None:
    """Returns the path of Kernel Tuner's cache file, or None if it does not exist. The file is never written."""
    if cache is None:
        return None
    for path in (Path(cache), Path(f"{cache}.json")):
        if path.is_file():
            return path
    note(f"cache={cache!r} does not exist and is not written: records are in {results}, where the same call resumes")
    return None
