"""Reads what only Kernel Tuner's calls say: options of compilers, strategies, devices, and what cannot be served."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.errors import UsageError
from ..porting.call import Call
from ..records.measurement import Protocol
from ..sweep.settings import Settings

# Scripts tune small spaces and wait for them: the final round is shorter than a sweep's.
FINAL_ROUND: dict[str, Any] = {"n_finalists": 3, "finalist_samples": 20, "placements": 1}
EXHAUSTIVE = (None, "brute_force")
LANGUAGES = (None, "cuda", "cupy", "nvcuda")
WITHOUT_EFFECT = ("-O", "-std=", "--std", "-lineinfo", "--generate-line-info", "-arch", "--gpu-architecture", "-Xptxas")


def silent(*_: object) -> None:
    """Takes a line and prints nothing."""


def refuse_options(others: Mapping[str, Any], lang: str | None) -> None:
    """Raises UsageError for arguments that are not served, with the reason."""
    given = {name: value for name, value in others.items() if value not in (None, False)}
    left_out = {"platform": 0, "log": None, "parallel": None, "compiler": None, "simulation_mode": None}
    reasons = {
        "texmem_args": "textures are not served: read a const __restrict__ pointer instead",
        "observers": "observers are not served: times, clocks and registers of each trial are in results.sweep.trials",
        "simulation_mode": "recorded spaces are replayed by `autotune replay`",
    }
    for name in given:
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
    """Returns the objectives, and of each whether the largest value is the best: by default of all but time.

    Raises:
        UsageError: for one that is neither time nor a metric, or more than two.
    """
    name = objective or "time"
    asked = dict(objectives) if objectives else {name: name != "time" if higher_is_better is None else higher_is_better}
    for each in asked:
        if each not in ("time", *metrics):
            raise UsageError(f"objective {each!r} is neither time nor a metric ({', '.join(metrics)})")
    if len(asked) > 2:
        raise UsageError(f"objectives: {', '.join(asked)} are more than two")
    return asked


def options_of(given: Sequence[str], note: Callable[[str], Any]) -> tuple[dict[str, str], list[Path]]:
    """Returns macros and folders of includes."""
    macros: dict[str, str] = {}
    folders: list[Path] = []
    for option in given:
        if option.startswith("-D"):
            name, _, value = option[2:].partition("=")
            macros[name] = value or "1"
        elif option.startswith("-I"):
            folders.append(Path(option[2:]))
        elif option.startswith(WITHOUT_EFFECT):
            note(f"compiler_options: {option} is left out; NVRTC compiles for the device, at full optimisation")
        else:
            raise UsageError(f"compiler_options: {shlex.quote(option)} is not served; -D and -I are")
    return macros, folders


def device_asked_for(given: int | str) -> str:
    """Returns the device's name; a number is a GPU's, and 0, which scripts have for a default, the first device."""
    if isinstance(given, str):
        return given
    return "auto" if given == 0 else f"cuda:{given}"


def settings_of(
    strategy: str | None,
    options: Mapping[str, Any],
    iterations: int | None,
    seed: int | None,
    results: Path,
    deadline_s: float,
    call: Call,
    cache: str | None,
    note: Callable[[str], Any],
) -> Settings:
    """Returns the settings of a sweep: all configs, unless a strategy or a budget is named; a fraction is of those that
    are allowed.
    """
    trials = options.get("max_fevals")
    if trials is None and "fraction" in options:
        n = call.enumeration.n_allowed or len(call.enumeration.configs)
        trials = max(1, int(n * options["fraction"]))
    is_search = strategy not in EXHAUSTIVE
    if is_search:
        note(f"strategy={strategy!r}: configs are searched by autotune's own search")
    protocol = Protocol() if iterations is None else replace(Protocol(), n_samples=max(3, iterations))
    sampler = "auto" if is_search or trials is not None else "exhaustive"
    return Settings(
        results=results,
        trials=trials,
        time_s=options.get("time_limit"),
        sampler=sampler,
        seed=seed or 0,
        protocol=protocol,
        begin_from=_begun_in(cache, results, note),
        launch_deadline_s=deadline_s,
        **FINAL_ROUND,
    )


def _begun_in(cache: str | None, results: Path, note: Callable[[str], Any]) -> Path | None:
    """Returns the cache file of Kernel Tuner if it is there; it is never written."""
    if cache is None:
        return None
    for path in (Path(cache), Path(f"{cache}.json")):
        if path.is_file():
            return path
    note(f"cache={cache!r} is not there, and is not written: records are in {results}, where a repeated call resumes")
    return None
