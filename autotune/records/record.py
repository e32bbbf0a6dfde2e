"""Recorded sweeps for reading: their settings, the trials that hold, and their outcomes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..core.config import Config, Value
from ..core.definition import Device
from ..core.errors import Status
from ..core.space import Space
from .about import About
from .folder import SweepFolder, all_sweeps
from .objectives import FASTEST, Objective, Objectives
from .outcome import Finalist, Outcome, speed_up_interval
from .trial import Trial


@dataclass(frozen=True)
class SweepRecord:
    """One recorded sweep; its trials are read on first use.

    ``outcome``: None while the sweep runs, if it was interrupted, or if its trials no longer hold.
    ``configs``: configs that were read before and are shared, since sweeps of a kernel have many in common.
    """

    folder: SweepFolder
    about: About
    outcome: Outcome | None
    configs: dict[Config, Config] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def of(folder: SweepFolder, configs: dict[Config, Config] | None = None) -> "SweepRecord":
        """Returns the record in a folder; reads sweep.json and verdict.json.

        Raises:
            UsageError: when sweep.json is damaged.
        """
        return SweepRecord(folder, folder.about(), folder.current_outcome(), {} if configs is None else configs)

    def of_space(self, space: Space) -> "SweepRecord":
        """Returns the record with configs that include the parameters added to ``space`` later."""
        return SweepRecord.of(self.folder.of_space(space), self.configs) if space.added else self

    # ------------------------------------------------------------------ contents
    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def kernel(self) -> str:
        return self.about.kernel

    @property
    def device(self) -> Device:
        return self.about.device

    @property
    def problem(self) -> Mapping[str, Value]:
        return self.about.problem

    @property
    def identity(self) -> tuple[str, str, str]:
        """Returns the key that all records of one problem share."""
        return self.kernel, self.device.name, self.about.problem_name

    @property
    def title(self) -> str:
        """Returns a title such as ``ddc taps=128,decimation=8 on NVIDIA H200``."""
        return f"{self.kernel} {self.about.problem_name} on {self.device.name}"

    # ------------------------------------------------------------------ the search
    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """Returns the latest valid trial of each config, in the order of recording."""
        latest: dict[Config, Trial] = {}
        for trial in reversed(self.folder.current()):
            latest.setdefault(trial.config, trial)
        return tuple(reversed(latest.values()))

    @cached_property
    def measured(self) -> list[Trial]:
        """Returns the trials that have a time, fastest first."""
        return sorted((t for t in self.trials if t.median_s), key=lambda t: t.median_s or 0.0)

    @cached_property
    def median_s(self) -> Mapping[Config, float]:
        """Returns config -> median of the search, in seconds, for each measured config."""
        return medians(self.folder.current(), self.configs)

    def loss(self, config: Config) -> float | None:
        """Returns the median of ``config`` divided by the least median of this search, minus 1.

        None: ``config`` was not measured.
        """
        median_s = self.median_s.get(config)
        return None if median_s is None else median_s / min(self.median_s.values()) - 1

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Returns the number of trials by status."""
        stored = self.outcome.counts if self.outcome else None
        return stored if stored is not None else Counter(t.status for t in self.trials)

    @property
    def n_tried(self) -> int:
        """Returns the number of configs with a trial; 0 if the sweep did not look for the least time."""
        return len(self.trials) if self.objectives == FASTEST.each else 0

    @property
    def n_configs(self) -> int | None:
        """Returns the number of configs that the definition allows; None if it is unknown, or others were left out."""
        is_whole = self.outcome is not None and not self.about.settings.get("restrict")
        return self.outcome.n_configs if self.outcome is not None and is_whole else None

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Returns the objectives of the sweep; for older records, which lack them, the least time."""
        stored = self.about.settings.get("objectives")
        texts = [text for text in stored if isinstance(text, str)] if isinstance(stored, list) else []
        return tuple(map(Objective.read, texts)) or FASTEST.each

    # ------------------------------------------------------------------ how it ended
    @cached_property
    def winner(self) -> Finalist | None:
        """Returns the winner, or the best config so far; None if nothing was measured."""
        if self.outcome is not None:
            return self.outcome.winner
        best = Objectives(self.objectives[:1]).best(self.trials)
        return Finalist.of_search(best) if best else None

    @cached_property
    def default(self) -> Finalist | None:
        """Returns the default config's measurement, from the same round as the winner's; None if there is none."""
        if self.outcome is not None:
            return self.outcome.default
        return next((Finalist.of_search(t) for t in self.measured if t.config == self.about.default), None)

    @property
    def speed_up(self) -> float | None:
        """Returns the default's median divided by the winner's."""
        if self.outcome is not None and self.outcome.speed_up is not None:
            return self.outcome.speed_up
        return self.default.median_s / self.winner.median_s if self.winner and self.default else None

    @property
    def speed_up_interval(self) -> tuple[float, float] | None:
        """Returns the smallest and the largest speed-up that the two 95 % confidence intervals allow."""
        return speed_up_interval(self.winner, self.default)

    @property
    def finalists(self) -> tuple[Finalist, ...]:
        """Returns the configs of the final round, the winner first; () without a final round."""
        return self.outcome.finalists if self.outcome else ()

    def evidence(self, config: Config) -> tuple[Finalist, float | None]:
        """Returns the best measurement of a measured ``config``, and the default's median in the same round.

        Both are from the final round if it included ``config``, otherwise from the search.
        """
        if self.outcome is not None and (finalist := self.outcome.finalist(config)) is not None:
            return finalist, self.outcome.default.median_s if self.outcome.default else None
        trial = next(t for t in reversed(self.folder.current()) if t.config == config)
        return Finalist.of_search(trial), self.median_s.get(self.about.default)


def read_sweeps(paths: Iterable[Path]) -> tuple[list[SweepRecord], dict[Path, str]]:
    """Returns all sweeps at or under ``paths`` in the order of their identity, and path -> reason for excluded ones.

    If there are several records of one (kernel, device, problem), the newest is used.

    Raises:
        UsageError: when there is no recorded sweep.
    """
    left_out: dict[Path, str] = {}
    sweeps: dict[tuple[str, str, str], SweepRecord] = {}
    shared: dict[Config, Config] = {}  # thousands of sweeps measure the same few hundred configurations
    for folder in all_sweeps(paths):
        sweep = SweepRecord.of(folder, shared)
        if not sweep.median_s and sweep.outcome is None:
            left_out[folder.path] = f"none of its {len(sweep.trials)} configurations was measured"
            continue
        other = sweeps.get(sweep.identity)
        if other is None or other.about.started < sweep.about.started:
            sweeps[sweep.identity] = sweep
    return [sweeps[identity] for identity in sorted(sweeps)], left_out


def medians(trials: Iterable[Trial], configs: dict[Config, Config] | None = None) -> Mapping[Config, float]:
    """Returns config -> median, in seconds, for each measured configuration; its last trial counts.

    ``configs``: configs to share.
    """
    shared = {} if configs is None else configs
    last = {trial.config: trial for trial in trials}
    return {shared.setdefault(c, c): t.median_s for c, t in last.items() if t.status == Status.MEASURED and t.median_s}
