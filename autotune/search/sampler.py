"""The base of all samplers: one of Optuna's over a list of valid configs, which it knows by number."""

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
CLAIM = "autotune:config"  # the system attribute that keeps the config which a trial has from its beginning
FIXED = "fixed_params"  # the system attribute in which Optuna keeps the parameters of a trial that was enqueued
LEAST = 1e-30  # values from here on have their own logarithm


@dataclass(frozen=True)
class Request:
    """The inputs of a sampler.

    ``configs``: the whole space. ``budget``: trials in all, recorded ones included; None is no limit.
    ``known``: what is known of each config beside its parameters, by name, float [n_configs].
    """

    configs: Sequence[Config]
    budget: int | None = None
    seed: int = 0
    known: Mapping[str, np.ndarray] = field(default_factory=dict)


class ListSampler(BaseSampler):
    """A sampler of one study that proposes each config of a list once.

    A subclass chooses among the numbers of ``self.open_rows()`` and learns logarithms of values, less being better. It
    hears of all trials of the study, whoever began them: enqueued ones, those of other processes, those that were
    added. A trial has its config from its beginning; an enqueued one that fixes some of the parameters gets a config
    that has them. What is suggested for a parameter is the config's value, whatever the distribution. When all configs
    are taken, ``optimize`` stops.
    """

    learns = True  # whether outcomes change what it chooses
    chooses = False  # whether ``ranked`` prefers one config to another
    several = False  # whether it can be of a study of several objectives

    def __init__(self, request: Request) -> None:
        self.configs = tuple(request.configs)
        self.n_configs = len(self.configs)
        self.rng = np.random.default_rng(request.seed)
        self.budget = self.n_configs if request.budget is None else min(request.budget, self.n_configs)
        self.taken = np.zeros(self.n_configs, bool)  # proposed, or known from elsewhere
        self.logs: dict[int, tuple[float, ...]] = {}  # of configs that succeeded, of each objective
        self.log_s: dict[int, float] = {}  # the same of the first objective: mostly the time, in seconds
        self.failed: set[int] = set()
        self.pending: dict[int, None] = {}  # proposed, without an outcome; the oldest first
        self.signs: tuple[int, ...] = ()  # by objective: 1 to minimize, -1 to maximize; () before the first trial
        self._number = {config: i for i, config in enumerate(self.configs)}
        self._values: dict[str, dict[Value, None]] = {}
        for config in self.configs:
            for name, value in config.items():
                self._values.setdefault(name, {})[value] = None
        self._study_name = ""
        self._chosen: dict[int, int] = {}  # by the number of a trial that is running: that of its config
        self._n_seen = 0  # trials of the study
        self._unfinished: list[int] = []  # numbers of those that were seen unfinished
        self._lock = RLock()  # ``optimize`` may have threads

    # ------------------------------------------------------------------ of a subclass
    @abstractmethod
    def choose(self) -> int:
        """Returns the number of a config that is not taken; at least one exists."""

    def ranked(self, rows: Sequence[int]) -> list[int]:
        """Returns the same numbers of pending configs, the one to measure first in front: in the order given."""
        return list(rows)

    def learn(self, number: int) -> None:
        """Update the model with the outcome of ``number``, which is in ``log_s`` or in ``failed``."""

    def open_rows(self) -> np.ndarray:
        """Returns the numbers of the configs that are not taken, int [n_open]."""
        return np.flatnonzero(~self.taken)

    def any_open(self) -> int:
        """Returns one of them at random."""
        return int(self.rng.choice(self.open_rows()))

    # ------------------------------------------------------------------ of a caller
    def __contains__(self, config: Config) -> bool:
        return config in self._number

    def values(self, name: str) -> tuple[Value, ...]:
        """Returns the values of a parameter, in the order of the list."""
        return tuple(self._values[name])

    def suggest(self, trial: Trial) -> Config:
        """Returns the config of a trial that this sampler's study has begun; its parameters become the trial's."""
        names = self.configs[self._chosen[trial.number]]
        return Config({name: cast(Value, trial.suggest_categorical(name, self.values(name))) for name in names})

    def rank(self, study: Study, configs: Iterable[Config]) -> list[Config]:
        """Returns ``configs`` that were proposed in ``study``, the one to measure first in front."""
        with self._lock:
            self._catch_up(study)
            return [self.configs[row] for row in self.ranked([self._number[config] for config in configs])]

    # ------------------------------------------------------------------ of Optuna
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
            with suppress(RuntimeError):  # no call of ``optimize`` is under way
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
        """Returns the value that the trial's config has.

        Raises:
            ValueError: when it does not have this parameter.
        """
        config = self.configs[self._chosen[trial.number]]
        if param_name not in config:
            raise ValueError(f"trial {trial.number} is of {config}, which has no {param_name}; suggest it no value")
        return config[param_name]

    # ------------------------------------------------------------------ the trials of the study
    def _claimed(self, study: Study, trial: FrozenTrial, row: int) -> bool:
        """Takes a config; returns whether no trial that another process began before has it."""
        is_repeat, self.taken[row] = bool(self.taken[row]), True
        study._storage.set_trial_system_attr(trial._trial_id, CLAIM, dict(self.configs[row]))
        if is_repeat:
            return True
        others = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        rows = [self._claim_of(other) for other in others if other.number < trial.number]
        return row not in rows

    def _claim_of(self, trial: FrozenTrial) -> int | None:
        """Returns the config that a trial has from its beginning, whoever began it."""
        claim = trial.system_attrs.get(CLAIM)
        return None if claim is None else self._listed(claim)

    def _row_of(self, trial: FrozenTrial, fixed: Mapping[str, object] | None) -> int:
        """Returns the config of a trial that is to begin: that of the parameters that are ``fixed``, or a new one."""
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
        told = "trial %d repeats %s: all %d configs of the list have been proposed"
        _log.warning(told, trial.number, self.configs[row], self.n_configs)
        return row

    def _listed(self, parameters: Mapping[str, Any]) -> int | None:
        return self._number.get(Config({name: v for name, v in parameters.items() if name in self._values}))

    def _catch_up(self, study: Study) -> None:
        """Learns from all trials of the study that have begun or ended since the last one began."""
        self._begin(study)
        trials = study.get_trials(deepcopy=False)
        numbers = [*self._unfinished, *range(self._n_seen, len(trials))]
        self._n_seen = len(trials)
        self._unfinished = [number for number in numbers if not trials[number].state.is_finished()]
        for number in numbers:
            if trials[number].state != TrialState.WAITING:
                self._take_in(trials[number])

    def _begin(self, study: Study) -> None:
        """Take up the first study.

        Raises:
            ValueError: for a second one.
            UsageError: for more objectives than the sampler can have.
        """
        name = study.study_name
        if self.signs and name != self._study_name:
            raise ValueError(f"this sampler is of the study {self._study_name!r}; make another one for {name!r}")
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
            return  # it has no config of the list, or does not have all of it yet
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
    """Returns the logarithm, continued to where there is none: it rises throughout, below zero as -log(-value)."""
    return math.log(value) if value >= LEAST else math.log(LEAST) - math.log1p(1.0 - value / LEAST)
