"""The base of all samplers: an Optuna sampler over a list of valid configs, which it identifies by number."""

import logging
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, cast

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from ..core.config import Config, Value
from ..core.errors import UsageError

_log = logging.getLogger("autotune")
CLAIM = "autotune:config"  # system attribute: the config of a trial, set when the trial begins
FIXED = "fixed_params"  # system attribute in which Optuna stores the parameters of an enqueued trial
LEAST = 1e-30  # values from here on have an ordinary logarithm


@dataclass(frozen=True)
class Request:
    """The inputs of a sampler.

    ``configs``: the whole space. ``budget``: number of trials, including recorded ones; None: no limit.
    ``known``: further columns of the configs, by name, float [n_configs].
    """

    configs: Sequence[Config]
    budget: int | None = None
    seed: int = 0
    known: Mapping[str, np.ndarray] = field(default_factory=dict)


class ListSampler(BaseSampler):
    """A sampler of one study that proposes each config of a list once.

    A subclass chooses among the numbers of ``self.open_rows()``, and learns logarithms of values (less is better). It
    learns from all trials of the study: enqueued ones, trials of other processes, and added trials. A trial gets its
    config when it begins; an enqueued trial that fixes some parameters gets a config with these values. A suggested
    value is the config's, whatever the distribution. When all configs are taken, ``optimize`` stops.
    """

    learns = True  # whether outcomes change its choices
    chooses = False  # whether ``ranked`` prefers one config to another
    several = False  # whether it supports several objectives

    def __init__(self, request: Request) -> None:
        self.configs = tuple(request.configs)
        self.n_configs = len(self.configs)
        self.rng = np.random.default_rng(request.seed)
        self.budget = self.n_configs if request.budget is None else min(request.budget, self.n_configs)
        self.taken = np.zeros(self.n_configs, bool)  # configs that were proposed, or have a trial from elsewhere
        self.logs: dict[int, tuple[float, ...]] = {}  # successful configs: logarithms of each objective
        self.log_s: dict[int, float] = {}  # successful configs: logarithm of the first objective, mostly seconds
        self.failed: set[int] = set()
        self.pending: dict[int, None] = {}  # proposed configs without an outcome, the oldest first
        self.signs: tuple[int, ...] = ()  # one for each objective: 1 to minimize, -1 to maximize; () before any trial
        self._number = {config: i for i, config in enumerate(self.configs)}
        self._values: dict[str, dict[Value, None]] = {}
        for config in self.configs:
            for name, value in config.items():
                self._values.setdefault(name, {})[value] = None
        self._study_name = ""
        self._chosen: dict[int, int] = {}  # number of a running trial -> number of its config
        self._n_seen = 0  # trials of the study that were seen
        self._unfinished: list[int] = []  # numbers of seen trials that were not finished
        self._lock = RLock()  # ``optimize`` may use threads

    # ------------------------------------------------------------------ methods for subclasses
    @abstractmethod
    def choose(self) -> int:
        """Returns the number of a config that is not taken; at least one exists."""

    def ranked(self, rows: Sequence[int]) -> list[int]:
        """Returns the numbers of pending configs in the order in which to measure them; here in the given order."""
        return list(rows)

    def learn(self, number: int) -> None:
        """Updates the model with the outcome of ``number``, which is in ``log_s`` or in ``failed``."""

    def open_rows(self) -> np.ndarray:
        """Returns the numbers of the configs that are not taken, int [n_open]."""
        return np.flatnonzero(~self.taken)

    def any_open(self) -> int:
        """Returns a random number of a config that is not taken."""
        return int(self.rng.choice(self.open_rows()))

    # ------------------------------------------------------------------ methods for callers
    def __contains__(self, config: Config) -> bool:
        return config in self._number

    def values(self, name: str) -> tuple[Value, ...]:
        """Returns the values of a parameter, in the order of the list."""
        return tuple(self._values[name])

    def suggest(self, trial: Trial) -> Config:
        """Returns the config of a running trial of this sampler's study; the trial gets its parameters."""
        names = self.configs[self._chosen[trial.number]]
        return Config({name: cast(Value, trial.suggest_categorical(name, self.values(name))) for name in names})

    def rank(self, study: Study, configs: Iterable[Config]) -> list[Config]:
        """Returns ``configs``, which were proposed in ``study``, in the order in which to measure them."""
        with self._lock:
            self._catch_up(study)
            return [self.configs[row] for row in self.ranked([self._number[config] for config in configs])]

    # ------------------------------------------------------------------ methods that Optuna calls
    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Chooses the config of a trial."""
        with self._lock:
            self._catch_up(study)
            fixed = trial.system_attrs.get(FIXED)
            while not self._claimed(study, trial, row := self._row_of(trial, fixed)):
                pass
            self.pending[row] = None
            self._chosen[trial.number] = row

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Ends a call of ``optimize`` after the last config."""
        with self._lock:
            self._catch_up(study)
        if self.taken.all():
            with suppress(RuntimeError):  # no call of ``optimize`` is running
                study.stop()
                _log.info("all %d configs of the list have been proposed", self.n_configs)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, object]:
        return {}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Returns the parameter's value in the trial's config.

        Raises:
            ValueError: if the config does not have this parameter.
        """
        config = self.configs[self._chosen[trial.number]]
        if param_name not in config:
            raise ValueError(f"trial {trial.number} is of {config}, which has no {param_name}; suggest it no value")
        return config[param_name]

    # ------------------------------------------------------------------ the trials of the study
    def _claimed(self, study: Study, trial: FrozenTrial, row: int) -> bool:
        """Claims a config for a trial; returns False if an earlier trial of another process has claimed it."""
        is_repeat, self.taken[row] = bool(self.taken[row]), True
        study._storage.set_trial_system_attr(trial._trial_id, CLAIM, dict(self.configs[row]))
        if is_repeat:
            return True
        others = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        rows = [self._claim_of(other) for other in others if other.number < trial.number]
        return row not in rows

    def _claim_of(self, trial: FrozenTrial) -> int | None:
        """Returns the config that a trial claimed when it began, in any process; None: it claimed none."""
        claim = trial.system_attrs.get(CLAIM)
        return None if claim is None else self._listed(claim)

    def _row_of(self, trial: FrozenTrial, fixed: Mapping[str, object] | None) -> int:
        """Returns the config for a new trial: one with the ``fixed`` parameters, or a new choice."""
        if fixed is not None:
            if (row := self._listed(fixed)) is not None:
                return row
            wanted = {(name, value) for name, value in fixed.items() if name in self._values}
            rows = [row for row in self.open_rows().tolist() if wanted <= set(self.configs[row].items())]
            if wanted and rows:
                return int(self.rng.choice(rows))
        if not self.taken.all():
            return self.choose()
        row = int(self.rng.integers(self.n_configs))
        message = "trial %d repeats %s: all %d configs of the list have been proposed"
        _log.warning(message, trial.number, self.configs[row], self.n_configs)
        return row

    def _listed(self, parameters: Mapping[str, Any]) -> int | None:
        return self._number.get(Config({name: v for name, v in parameters.items() if name in self._values}))

    def _catch_up(self, study: Study) -> None:
        """Learns from all trials of the study that began or ended since the last call."""
        self._begin(study)
        trials = study.get_trials(deepcopy=False)
        numbers = [*self._unfinished, *range(self._n_seen, len(trials))]
        self._n_seen = len(trials)
        self._unfinished = [number for number in numbers if not trials[number].state.is_finished()]
        for number in numbers:
            if trials[number].state != TrialState.WAITING:
                self._take_in(trials[number])

    def _begin(self, study: Study) -> None:
        """Attaches the sampler to its study.

        Raises:
            ValueError: for a second study.
            UsageError: for more objectives than the sampler supports.
        """
        name = study.study_name
        if self.signs and name != self._study_name:
            raise ValueError(f"this sampler belongs to the study {self._study_name!r}; make another one for {name!r}")
        if not self.signs:
            if len(study.directions) > 1 and not self.several:
                raise UsageError(
                    f"{type(self).__name__} searches by one objective, and this study has {len(study.directions)}; "
                    "choose another sampler"
                )
            self.signs = tuple(-1 if way == StudyDirection.MAXIMIZE else 1 for way in study.directions)
            self._study_name = name

    def _take_in(self, trial: FrozenTrial) -> None:
        row = self._chosen.get(trial.number, self._claim_of(trial))
        if row is None and (trial.params or trial.state.is_finished()):
            row = self._listed(trial.params)
        if row is None:
            return  # the trial's config is not in the list, or is not complete yet
        self.taken[row] = True
        if not trial.state.is_finished():
            self.pending[row] = None
            return
        self._chosen.pop(trial.number, None)
        self.pending.pop(row, None)
        if trial.state == TrialState.COMPLETE and all(map(math.isfinite, trial.values)):
            self.logs[row] = tuple(sign * log_of(v) for sign, v in zip(self.signs, trial.values, strict=True))
            self.log_s[row] = self.logs[row][0]
            self.failed.discard(row)
        else:
            self.failed.add(row)
            self.logs.pop(row, None)
            self.log_s.pop(row, None)
        self.learn(row)


def log_of(value: float) -> float:
    """Returns the logarithm, with a rising continuation below LEAST, also for zero and negative values."""
    return math.log(value) if value >= LEAST else math.log(LEAST) - math.log1p(1.0 - value / LEAST)
