"""Reads finished sweeps: the winner, and the median of every measured configuration."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.definition import Device
from ..runtime.wisdom import device_of, fields_text
from ..trial.row import Trial
from .folder import SweepFolder, find_sweeps, tell_missing


@dataclass(frozen=True)
class Swept:
    """One sweep as it was recorded; ``median_s`` is of the search (never of the finalists), failures left out."""

    path: Path
    about: Mapping[str, Any]
    device: Device
    winner: Mapping[str, Any]  # a trial's fields
    default_median_s: float | None  # measured with the winner: in the final round if there was one
    ties: int
    median_s: Mapping[Config, float]

    @property
    def identity(self) -> tuple[str, str, str]:
        """Returns the key that two records of one problem share."""
        return self.about["kernel"], self.device.name, self.problem

    @property
    def problem(self) -> str:
        """Returns every field, as ``taps=256,decimation=16,...``."""
        return fields_text(self.about["problem"])

    def fields(self, kind: str) -> dict[str, Any]:
        """Returns the problem's fields that are "baked" or "runtime"."""
        return {name: self.about["problem"][name] for name in self.about.get(kind, ())}

    def loss(self, config: Config) -> float | None:
        """Returns the median of ``config`` over the least median of this search, minus one.

        None: it was not measured.
        """
        median_s = self.median_s.get(config)
        return None if median_s is None else median_s / min(self.median_s.values()) - 1

    def row(self, config: Config) -> tuple[Mapping[str, Any], float | None]:
        """Returns the record of a measured ``config`` with the default's median.

        Both are of the final round where ``config`` was in it, otherwise of the search.
        """
        folder = SweepFolder(self.path)
        for finalist in (folder.current_verdict() or {}).get("finalists", ()):
            if Config(finalist["config"]) == config:
                return finalist, self.default_median_s
        trial = next(t for t in reversed(folder.current()) if t.config == config)
        return trial.as_json(), self.median_s.get(Config(self.about["default"]))


def read_sweeps(paths: Iterable[Path]) -> tuple[list[Swept], dict[Path, str]]:
    """Returns all sweeps at or under ``paths`` in order of their identity, and why others are left out.

    Of two records of one (kernel, device, problem) the newer counts.

    Raises:
        UsageError: when there is no recorded sweep.
    """
    left_out: dict[Path, str] = {}
    sweeps: dict[tuple[str, str, str], Swept] = {}
    shared: dict[Config, Config] = {}  # thousands of sweeps measure the same few hundred configurations
    for folder in {f.path.resolve(): f for path in paths for f in find_sweeps(path)}.values():
        sweep = _read(folder, shared)
        if isinstance(sweep, str):
            left_out[folder.path] = sweep
            continue
        other = sweeps.get(sweep.identity)
        if other is None or other.about.get("started", "") < sweep.about.get("started", ""):
            sweeps[sweep.identity] = sweep
    return [sweeps[identity] for identity in sorted(sweeps)], left_out


def medians(folder: SweepFolder, shared: dict[Config, Config] | None = None) -> dict[Config, float]:
    """Returns the median of each measured configuration, in seconds. A configuration's last trial counts.

    ``shared``: configurations known already, which stand in for equal ones.
    """
    return _medians(folder.current(), {} if shared is None else shared)


def _medians(trials: Iterable[Trial], known: dict[Config, Config]) -> dict[Config, float]:
    last = {trial.config: trial for trial in trials}
    return {known.setdefault(c, c): t.median_s for c, t in last.items() if t.status == "measured" and t.median_s}


def _read(folder: SweepFolder, shared: dict[Config, Config]) -> Swept | str:
    """Returns the sweep, or why it has no winner."""
    about, recorded, verdict = folder.about(), folder.trials(), folder.current_verdict()
    trials = folder.current(recorded)
    median_s = _medians(trials, shared)
    if verdict is not None:
        tell_missing(folder.path, verdict, recorded)
        winner: Mapping[str, Any] = verdict["winner"]
        default_s = (verdict.get("default") or {}).get("median_s")
    elif median_s:
        best = min(median_s, key=lambda config: median_s[config])
        winner = next(t for t in reversed(trials) if t.config == best).as_json()
        default_s = median_s.get(Config(about["default"]))
    else:
        return f"none of its {len({t.config for t in trials})} configurations was measured"
    n_ties = len((verdict or {}).get("ties", ()))
    return Swept(folder.path, about, device_of(about["device"]), winner, default_s, n_ties, median_s)
