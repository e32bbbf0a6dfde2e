"""Reads the trials that other tuners recorded: a Kernel Tuner cache or a T4 results file, as JSON or gzipped JSON.

Kernel Tuner appends to its cache while it runs and closes the brackets at the end. A file without closing brackets, or
with a torn last entry, is an interrupted recording; it is read up to the last complete entry.
"""

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.errors import UsageError
from ..core.files import content_of, unzipped
from ..core.schema import Unsound, as_number, as_scalar

MOST_BYTES = 1 << 30  # the bytes of a file, also when it is unpacked
# The cost of a trial by the names of Kernel Tuner and T4, without the search's own time (strategy_time).
CACHE_COSTS = ("compile_time", "verification_time", "benchmark_time", "framework_time")
T4_COSTS = ("compilation_time", "validation", "benchmark", "framework")
SECONDS = {"s": 1.0, "seconds": 1.0, "ns": 1e-9}
MILLISECONDS = dict.fromkeys(("ms", "milliseconds", "miliseconds"), 1e-3)  # many T4 files use the last spelling
UNITS = {**SECONDS, **MILLISECONDS, "us": 1e-6, "microseconds": 1e-6}


@dataclass(frozen=True)
class RecordedTrial:
    """A config with its median time, None if it failed, and the seconds that the trial took."""

    config: Config
    seconds: float | None
    spent_s: float


def tuner_trials(path: Path) -> list[RecordedTrial]:
    """Returns the trials of a Kernel Tuner cache or of T4 results.

    Raises:
        UsageError: for a file in another format, or a damaged file.
    """
    content = _json_of(path)
    try:
        if isinstance(content.get("cache"), dict):
            return _cache_rows(content)
        if isinstance(content.get("results"), list):
            return _t4_rows(content)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(
            f"{path} is damaged: {type(error).__name__}: {error}. Record it anew, or remove the damaged part"
        ) from error
    raise UsageError(f"{path} is neither a Kernel Tuner cache (no 'cache') nor T4 results (no 'results')")


# ---------------------------------------------------------------------- Kernel Tuner
def _cache_rows(content: Mapping[str, Any]) -> list[RecordedTrial]:
    """Reads rows with times in ms; a failure has a string in place of its time, or an entry ``__error__``.

    ``autotune export`` states the value that stands for a parameter which a config does not have.
    """
    names = content["tune_params_keys"]
    absent = content.get("autotune", {}).get("absent")
    rows = []
    for entry in content["cache"].values():
        failed = "__error__" in entry
        spent = sum(_number(entry.get(cost)) or 0.0 for cost in CACHE_COSTS)
        config = _config({name: entry[name] for name in names if absent is None or entry[name] != absent})
        rows.append(RecordedTrial(config, None if failed else _positive(entry.get("time"), 1e-3), spent * 1e-3))
    return rows


# ---------------------------------------------------------------------- T4
def _t4_rows(content: Mapping[str, Any]) -> list[RecordedTrial]:
    """Reads ``time``, or the first objective; the unit is the measurement's, else the file's ``timeunit``, else ms."""
    unit = _unit(content.get("metadata", {}).get("timeunit", "milliseconds"))
    rows = []
    for result in content["results"]:
        measured = {m["name"]: m for m in result.get("measurements", [])}
        objective = "time" if "time" in measured else (result.get("objectives") or ["time"])[0]
        seconds = None
        if result["invalidity"] == "correct" and objective in measured:
            own = measured[objective].get("unit", "")
            seconds = _positive(measured[objective]["value"], _unit(own) if own else unit)
        times = {"compilation_time": result["times"].get("compilation"), **result["times"]}  # either name is in use
        spent = sum(_number(times.get(cost)) or 0.0 for cost in T4_COSTS)
        rows.append(RecordedTrial(_config(result["configuration"]), seconds, spent * unit))
    return rows


def _unit(name: str) -> float:
    """Returns the seconds of a unit. Raises ValueError for an unknown name."""
    if name.lower() not in UNITS:
        raise ValueError(f"{name!r} is not a unit of time (the units are {', '.join(UNITS)})")
    return UNITS[name.lower()]


# ---------------------------------------------------------------------- files
def _json_of(path: Path) -> dict[str, object]:
    try:
        data = content_of(path, MOST_BYTES)
        if data[:2] == b"\x1f\x8b":  # gzip
            data = unzipped(data, MOST_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    except zlib.error as error:
        raise UsageError(f"{path} is damaged: {error}. Fetch it again") from error
    text = data.decode(errors="replace").strip()
    for candidate in (text, *_closed(text)):
        try:
            content = json.loads(candidate)  # other programs write NaN and Infinity
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            return content
    raise UsageError(f"{path} is neither JSON nor a Kernel Tuner cache that was cut off. Fetch it again")


def _closed(text: str) -> Iterable[str]:
    """Yields texts in which a cache without closing brackets is closed, at its end or after its last complete entry."""
    yield text.rstrip(",") + "}}"
    whole = text.rfind("},")
    if whole >= 0:
        yield text[: whole + 1] + "}}"


def _config(values: Mapping[str, object]) -> Config:
    """Returns the config; raises Unsound, a ValueError, for a value that a parameter cannot have."""
    return Config({str(name): as_scalar(value) for name, value in values.items()})


def _number(value: object) -> float | None:
    """Returns the value as a float, or None if it is not a number or out of range."""
    try:
        return float(as_number(value))
    except Unsound:
        return None


def _positive(value: object, scale: float) -> float | None:
    number = _number(value)
    return number * scale if number is not None and number > 0 else None
