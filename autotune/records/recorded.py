"""Reads a recorded sweep for `show` and `export`: what ran, the latest trial of each config, and how it ended."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..core.config import Config
from ..trial.row import Trial
from .folder import SweepFolder, tell_missing


@dataclass(frozen=True)
class Recorded:
    """One sweep's record. ``verdict`` is None while a sweep runs, and after one that was interrupted."""

    folder: SweepFolder
    about: Mapping[str, Any]
    verdict: Mapping[str, Any] | None

    @staticmethod
    def of(folder: SweepFolder) -> "Recorded":
        """Reads sweep.json and verdict.json; the trials only when they are asked for.

        Raises:
            UsageError: when sweep.json is damaged.
        """
        return Recorded(folder, folder.about(), folder.current_verdict())

    @property
    def device(self) -> str:
        return str(self.about["device"]["name"])

    @property
    def kernel(self) -> str:
        return str(self.about["kernel"])

    @property
    def problem(self) -> dict[str, Any]:
        return dict(self.about["problem"])

    @property
    def problem_name(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.problem.items())

    @property
    def title(self) -> str:
        """Returns a title such as ``ddc taps=128,decimation=8 on NVIDIA H200``."""
        return f"{self.kernel} {self.problem_name} on {self.device}"

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Returns the latest trial of each config that still holds, in the order of their recording."""
        latest: dict[Config, Trial] = {}
        recorded = self.folder.trials()
        if self.verdict is not None:
            tell_missing(self.folder.path, self.verdict, recorded)
        for trial in self.folder.current(recorded):
            latest.pop(trial.config, None)
            latest[trial.config] = trial
        return tuple(latest.values())

    @property
    def measured(self) -> list[Trial]:
        """Returns the trials that have a time, fastest first."""
        return sorted((t for t in self.trials if t.median_s), key=lambda t: t.median_s or 0.0)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Returns the number of trials by status."""
        known = (self.verdict or {}).get("counts")
        return dict(known if known is not None else Counter(t.status for t in self.trials))

    @cached_property
    def winner(self) -> Mapping[str, Any] | None:
        """Returns the verdict's winner, or the fastest trial so far; None when nothing was measured."""
        if self.verdict is not None:
            return dict(self.verdict["winner"])
        return self.measured[0].as_json() if self.measured else None

    @cached_property
    def default(self) -> Mapping[str, Any] | None:
        """Returns the default config's measurement, of the same round as the winner's; None when it has none."""
        if self.verdict is not None:
            return self.verdict.get("default")
        return next((t.as_json() for t in self.measured if t.config == self.about["default"]), None)

    @property
    def speed_up(self) -> float | None:
        """Returns the default's median over the winner's."""
        if self.verdict is not None and self.verdict.get("speed_up") is not None:
            return float(self.verdict["speed_up"])
        if not self.winner or not self.default:
            return None
        return float(self.default["median_s"] / self.winner["median_s"])

    @property
    def finalists(self) -> list[dict[str, Any]]:
        """Returns the final round, the winner first; [] without one."""
        return list((self.verdict or {}).get("finalists", ()))


def merged_order(configs: Iterable[Config]) -> list[str]:
    """Returns parameter names in an order that agrees with each config's own.

    A parameter that some configs lack goes right after the one it follows where it is present.
    """
    order: list[str] = []
    for names in dict.fromkeys(tuple(config) for config in configs):
        place = 0
        for name in names:
            if name in order:
                place = order.index(name) + 1
            else:
                order.insert(place, name)
                place += 1
    return order
