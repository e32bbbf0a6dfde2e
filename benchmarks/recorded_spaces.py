"""A space whose configs were all measured, so that searches can be tested without a device.

Three kinds of record are read: a sweep of autotune (its folder, or the trials in it), a Kernel Tuner cache and a T4
results file. A recorded space can be made harder: a hidden constraint, unknown to the search, makes most configs fail.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

import numpy as np

from autotune.core.config import Config, Value
from autotune.core.definition import Kernel
from autotune.core.errors import UsageError
from autotune.core.problem import Problem
from autotune.core.schema import plain
from autotune.recommend.distance import is_number
from autotune.recommend.occupancy import known_of
from autotune.records.about import About
from autotune.records.folder import SWEEP, SweepFolder, find_sweeps
from autotune.records.packed import TABLE
from autotune.records.trial_log import TRIALS
from autotune.search.features import levels_of
from autotune.search.tuner_files import RecordedTrial, tuner_trials
from autotune.source.registry import named_kernels, recorded_kernel

LEAST_CONFIGS = 10  # smaller spaces are refused: a search makes no sense there


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


def read_space(path: Path, kernels: Iterable[str | Path] = ()) -> RecordedSpace:
    """Reads the recorded space at ``path``; ``kernels`` names definitions that are not installed.

    Raises:
        UsageError: for a file in another format, a damaged file, fewer than 10 configs, or failed configs only.
    """
    if (path / SWEEP).is_file() or path.name in (TRIALS, TABLE):
        return _from_sweep(path if path.is_dir() else path.parent, named_kernels(kernels))
    if path.is_dir():
        raise UsageError(f"{path} is not a recorded sweep: it has no {SWEEP}")
    return _space(path, path.name.removesuffix(".gz").removesuffix(".json"), tuner_trials(path))


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


def _space(path: Path, name: str, rows: Iterable[RecordedTrial], default: Config | None = None) -> RecordedSpace:
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
        RecordedTrial(t.config, t.median_s or None, (t.compile_s or 0.0) + (t.verify_s or 0.0) + (t.measure_s or 0.0))
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


# ---------------------------------------------------------------------- a hidden constraint
def with_failures(space: RecordedSpace, share: float) -> RecordedSpace:
    """Returns ``space`` with an additional ``share`` of failing configs: the largest ones.

    The size of a config is the product of the two parameters with the most values; ties go by the product of all
    parameters. Parameters that some config lacks, or that are not always positive numbers, do not count.

    Raises:
        UsageError: for a share outside of [0, 1), a space without such a parameter, or if all configs would fail.
    """
    if not 0 <= share < 1:
        raise UsageError(f"a share of {share:g} of the configs cannot fail; give one from 0 to below 1")
    if share == 0:
        return space
    levels = levels_of(space.configs)
    names = [
        (-len(values), name)
        for name, values in zip(levels.names, levels.values, strict=True)
        if all(is_number(v) and float(v) > 0 for v in values) and all(name in config for config in space.configs)
    ]
    if not names:
        raise UsageError(f"{space.name} has no parameter of positive numbers, which the size of configs needs")
    sized = [name for _, name in sorted(names, key=lambda one: one[0])]
    sizes = [
        (prod(float(config[name]) for name in sized[:2]), prod(float(config[name]) for name in sized))
        for config in space.configs
    ]
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    left = set(order[: int(len(order) * (1 - share))])
    seconds = tuple(s if i in left else None for i, s in enumerate(space.seconds))
    if all(s is None for s in seconds):
        raise UsageError(f"no config of {space.name} is left when {share:.0%} fail; give a smaller share")
    return replace(space, name=f"{space.name}, {share:.0%} fail untold", seconds=seconds)
