"""Settings of a sweep: its budget, search and measurement, by numbers or by the name of an effort."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import Any

from ..core.config import Value
from ..core.errors import UsageError
from ..devices import device_module
from ..records.measurement import Protocol
from ..system.limits import COUNT, DEADLINE, DURATION, FROM_ZERO, SAMPLES, SEED, check_numbers, check_type

GPU, HOST = (device_module(kind).defaults for kind in ("cuda", "host"))  # defaults of both devices, for help texts
EFFORTS: dict[str, dict[str, object]] = {
    "quick": {"trials": 12, "n_finalists": 3, "finalist_samples": 20, "placements": 1},
    "normal": {},
    "full": {"sampler": "exhaustive", "n_finalists": 8, "finalist_samples": 80, "checked_launches": 5000},
}
EFFORTS_HELP = (
    "quick: 12 trials (the default config, recorded winners of this and similar problems, predictions of a model, and "
    "a short search around them). "
    f"normal: {GPU.trials} trials (host: {HOST.trials}). full: every configuration, twice the samples "
    "in a final round of 8, and 5000 further launches of the winner (or one second of them)."
)
RANGES = {
    "trials": replace(COUNT, may_lack=True),
    "time_s": replace(DURATION, may_lack=True),
    "seed": SEED,
    "n_hints": FROM_ZERO,
    "n_finalists": COUNT,
    "finalist_samples": SAMPLES,
    "placements": COUNT,
    "sustained_s": DURATION,
    "energy_s": DURATION,
    "checked_launches": replace(FROM_ZERO, may_lack=True),
    "launch_deadline_s": DEADLINE,
}


@dataclass(frozen=True)
class Settings:
    """The settings of one sweep."""

    results: Path = Path("results")
    trials: int | None = None  # None: the default of the device; all configs with the sampler exhaustive
    time_s: float | None = None  # seconds of the search, without the final round
    sampler: str = "auto"
    seed: int = 0
    n_hints: int = (
        4  # predictions of a model of recorded sweeps, tried first with nearby winners; 0: cold start, without both
    )
    restrict: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)
    n_finalists: int = 5
    finalist_samples: int = 40
    placements: int = 4  # placements of the buffers, for close configs in a final round; the device has a limit, too
    sustained_s: float = 0.0  # seconds that each finalist is launched back to back as well
    checked_launches: int | None = None  # launches of the winner whose outputs are checked; None: the device's default
    trust_recorded: bool = False  # a recorded trial's output stands in for the reference of the timed problem
    objectives: tuple[str, ...] = ("time",)  # time, energy, a metric, max:metric; the first one chooses the winner
    metrics: Mapping[str, str] = field(default_factory=dict)  # name -> expression of figures, parameters and sizes
    energy_s: float = 0.5  # seconds of back-to-back launches of each config, if energy is an objective
    begin_from: Path | None = None  # a file of another tuner; its fastest configs are tried first
    dashboard: Path | None = None  # a journal file for Optuna, written beside the record
    launch_deadline_s: float = 60.0  # deadline of each trial's verification, and of its measurement

    def __post_init__(self) -> None:
        check_type("results", self.results, Path, "a path")
        check_type("begin_from", self.begin_from, (Path, NoneType), "a path, or None")
        check_type("dashboard", self.dashboard, (Path, NoneType), "a path, or None")
        check_type("sampler", self.sampler, str, "a name")
        check_type("objectives", self.objectives, tuple, "a tuple of names")
        check_type("metrics", self.metrics, Mapping, "a dict of expressions by name")
        check_type("protocol", self.protocol, Protocol, "a Protocol")
        check_numbers(vars(self), RANGES)
        check_numbers({"samples": self.protocol.n_samples}, {"samples": SAMPLES})

    def budget(self, kind: str, n_configs: int) -> int:
        """Returns the number of trials of a sweep over ``n_configs`` on a device of this kind."""
        if self.trials is None and self.sampler == "exhaustive":
            return n_configs
        return min(n_configs, self.trials or device_module(kind).defaults.trials)

    def n_placements(self, kind: str) -> int:
        """Returns the number of placements of the buffers in a final round."""
        return min(self.placements, device_module(kind).defaults.most_placements)

    def n_checked(self, kind: str) -> int:
        """Returns the number of further launches of the winner to check."""
        given = self.checked_launches
        return device_module(kind).defaults.checked_launches if given is None else given


def effort(name: str) -> dict[str, Any]:
    """Returns the fields of Settings that an effort fixes.

    Raises:
        UsageError: for an unknown name.
    """
    if not isinstance(name, str) or name not in EFFORTS:
        raise UsageError(f"unknown effort {name!r}; choose one of {', '.join(EFFORTS)}")
    return EFFORTS[name]
