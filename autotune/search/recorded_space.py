"""A space whose configs were all measured, so that searches can be tested without a device.

Three kinds of record are read: a sweep of autotune (its folder, or the trials in it), a Kernel Tuner cache and
a T4 results file, the last two as JSON or gzipped JSON. Kernel Tuner appends to its cache while it runs and closes the
brackets at the end. A file without closing brackets, or with a torn last entry, is an interrupted recording; it is
read up to the last complete entry.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.config import Config, Value
from ..core.definition import Kernel
from ..core.errors import UsageError
from ..core.files import content_of, unzipped
from ..core.problem import Problem
from ..core.schema import Unsound, as_number, as_scalar, plain
from ..recommend.occupancy import known_of
from ..records.about import About
from ..records.folder import SWEEP, SweepFolder, find_sweeps
from ..records.packed import TABLE
from ..records.trial_log import TRIALS
from ..source.registry import named_kernels, recorded_kernel

MOST_BYTES = 1 << 30  # the bytes of a file, also when it is unpacked
LEAST_CONFIGS = 10  # smaller spaces are refused: a search makes no sense there
# The cost of a trial by the names of Kernel Tuner and T4, without the search's own time (strategy_time).
CACHE_COSTS = ("compile_time", "verification_time", "benchmark_time", "framework_time")
T4_COSTS = ("compilation_time", "validation", "benchmark", "framework")
SECONDS = {"s": 1.0, "seconds": 1.0, "ns": 1e-9}
MILLISECONDS = dict.fromkeys(("ms", "milliseconds", "miliseconds"), 1e-3)  # many T4 files use the last spelling
UNITS = {**SECONDS, **MILLISECONDS, "us": 1e-6, "microseconds": 1e-6}


@dataclass(frozen=True)
class RecordedSpace:
    """Every config of a space with its outcome; all tuples have the order of ``configs``.

    ``seconds``: the median, or None for a failed config. ``spent_s``: seconds of the trial (compiling, verifying and
    measuring). ``default``: the recorded default, else the config nearest to the middle of every axis. ``known``:
    further columns of the configs that a search would know, by name, float [n_configs]; for sweeps of autotune only.
    """

    name: str
    configs: tuple[Config, ...]
    seconds: tuple[float | None, ...]
    spent_s: tuple[float, ...]
    default: Config
    known: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def optimum_s(self) -> float:
        return min(s for s in self.seconds if s is not None)

    @property
    def n_failed(self) -> int:
        return sum(s is None for s in self.seconds)


@dataclass(frozen=True)
class _Row:
    config: Config
    seconds: float | None
    spent_s: float


def read_space(path: Path, kernels: Iterable[str | Path] = ()) -> RecordedSpace:
    """Reads the recorded space at ``path``; ``kernels`` names definitions that are not installed.

    Raises:
        UsageError: for a file in another format, a damaged file, fewer than 10 configs, or failed configs only.
    """
    if (path / SWEEP).is_file() or path.name in (TRIALS, TABLE):
        return _from_sweep(path if path.is_dir() else path.parent, named_kernels(kernels))
    if path.is_dir():
        raise UsageError(f"{path} is not a recorded sweep: it has no {SWEEP}")
    return _space(path, path.name.removesuffix(".gz").removesuffix(".json"), _foreign_rows(path))


def recorded_times(path: Path) -> dict[Config, float | None]:
    """Returns config -> seconds of a Kernel Tuner cache or of T4 results; None for a failed config.

    Raises:
        UsageError: for a file in another format, or a damaged file.
    """
    return {row.config: row.seconds for row in _foreign_rows(path)}


def _foreign_rows(path: Path) -> list[_Row]:
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


def read_spaces(
    paths: Iterable[Path], kernels: Iterable[str | Path] = ()
) -> tuple[list[RecordedSpace], dict[Path, str]]:
    """Returns the spaces at ``paths``, and why sweeps under a folder are left out, by path.

    A folder of records stands for all sweeps under it that can be searched.

    Raises:
        UsageError: if a named file or sweep cannot be read (see ``read_space``), or no sweep under a folder can.
    """
    spaces: dict[Path, RecordedSpace] = {}
    left_out: dict[Path, str] = {}
    for path in paths:
        if not path.is_dir() or (path / SWEEP).is_file():
            spaces[path.resolve()] = read_space(path, kernels)
            continue
        n_before = len(spaces)
        for folder in find_sweeps(path):
            try:
                spaces[folder.path.resolve()] = read_space(folder.path, kernels)
            except UsageError as error:
                left_out[folder.path] = str(error)
        if len(spaces) == n_before and left_out:
            raise UsageError(f"no sweep under {path} can be searched; the first: {next(iter(left_out.values()))}")
    return list(spaces.values()), left_out


def middle_config(configs: Sequence[Config]) -> Config:
    """Returns the config nearest to the middle of every axis: least sum of |2 rank of its value / last rank - 1|."""
    values: dict[str, dict[Value, None]] = {}
    for config in configs:
        for name, value in config.items():
            values.setdefault(name, {})[value] = None
    off: dict[str, dict[Value, float]] = {}
    for name, seen in values.items():
        ordered = sorted(seen) if all(isinstance(v, (int, float)) for v in seen) else list(seen)
        last = len(ordered) - 1
        off[name] = {v: abs(2 * rank - last) / max(1, last) for rank, v in enumerate(ordered)}
    return min(configs, key=lambda config: sum(off[name][value] for name, value in config.items()))


def _space(path: Path, name: str, rows: Iterable[_Row], default: Config | None = None) -> RecordedSpace:
    by_config = {row.config: row for row in rows}  # the last outcome of a config counts
    configs = tuple(by_config)
    if len(configs) < LEAST_CONFIGS:
        raise UsageError(f"{path} records {len(configs)} configs; a replay needs at least {LEAST_CONFIGS}")
    seconds = tuple(row.seconds for row in by_config.values())
    if all(s is None for s in seconds):
        raise UsageError(f"{path} records {len(configs)} configs and all of them failed: there is nothing to find")
    spent = tuple(row.spent_s for row in by_config.values())
    return RecordedSpace(name, configs, seconds, spent, default if default in by_config else middle_config(configs))


# ---------------------------------------------------------------------- autotune's own sweeps
def _from_sweep(path: Path, named: Mapping[str, Kernel[Problem]]) -> RecordedSpace:
    folder = SweepFolder(path)
    about, trials = folder.about(), folder.current()
    name = f"{about.kernel} {plain(path.name)}, {about.device.name}"
    rows = [
        _Row(t.config, t.median_s or None, (t.compile_s or 0.0) + (t.verify_s or 0.0) + (t.measure_s or 0.0))
        for t in trials
    ]
    space = _space(path, name, rows, about.default)
    return replace(space, known=_filling(about, space.configs, named))


def _filling(about: About, configs: Sequence[Config], named: Mapping[str, Kernel[Problem]]) -> Mapping[str, np.ndarray]:
    """Returns the occupancy of each config, or nothing if the definition is unavailable or has changed."""
    try:
        kernel = recorded_kernel(about.content, named)
        return known_of(
            kernel, kernel.problem(about.problem), [kernel.space.completed(config) for config in configs], about.device
        )
    except Exception:  # a definition may raise anything for parameters or fields that it lacks
        return {}


# ---------------------------------------------------------------------- Kernel Tuner
def _cache_rows(content: Mapping[str, Any]) -> list[_Row]:
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
        rows.append(_Row(config, None if failed else _positive(entry.get("time"), 1e-3), spent * 1e-3))
    return rows


# ---------------------------------------------------------------------- T4
def _t4_rows(content: Mapping[str, Any]) -> list[_Row]:
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
        rows.append(_Row(_config(result["configuration"]), seconds, spent * unit))
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
