"""Runs any Optuna sampler, from Optuna or another package, over the list of valid configs."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from ..core.config import Config, Value
from ..core.errors import UsageError, error_text
from ..records.study import quiet
from .features import ABSENT, levels_of
from .optuna_names import arguments, sampler_class
from .sampler import ListSampler, Request

NOTHING = "-"  # the choice for a parameter that a config lacks
N_REHEARSED = 12  # trials of a rehearsal: samplers that begin with random trials have a model after ten
_rehearsed: set[type] = set()


def check_optuna(name: str) -> None:
    """Raises UsageError unless ``name`` is an Optuna sampler that works here.

    Each class is tried once, after a few trials on a small space: some need a package only when their model begins.
    """
    kind = sampler_class(name)
    if kind in _rehearsed:
        return
    choices: dict[str, tuple[Value, ...]] = {"A": (1, 2, 4, 8), "B": (1, 2, 4), "C": ("x", "y", "z")}
    space = {name: rank_of(values) for name, values in choices.items()}
    study = GridStudy(name, kind, arguments(kind, 0), space, 1)
    for i in range(N_REHEARSED):
        study.record((i % 4, i % 3, (i // 4) % 3), (float(i % 5),))
    study.tell(study.ask()[0], (1.0,))
    _rehearsed.add(kind)


@dataclass(frozen=True)
class ParameterGrid:
    """The parameters of a space, each with its choices; ``table[i, j]`` is the choice of config i for ``names[j]``.

    Choices are in ascending order; NOTHING comes last if some config lacks the parameter.
    """

    names: tuple[str, ...]
    choices: tuple[tuple[Value, ...], ...]
    table: np.ndarray  # int [n_configs, n_names]
    last: np.ndarray  # int [n_names], number of the last choice, at least 1; differences are divided by it

    @staticmethod
    def of(configs: Sequence[Config]) -> "ParameterGrid":
        """Returns the grid of these configs."""
        levels = levels_of(configs)
        choices = tuple(
            values + (NOTHING,) * bool((column == ABSENT).any())
            for values, column in zip(levels.values, levels.table.T, strict=True)
        )
        last = np.array([max(1, len(each) - 1) for each in choices])
        return ParameterGrid(levels.names, choices, np.where(levels.table == ABSENT, last, levels.table), last)

    def nearest(self, rows: np.ndarray, wanted: Sequence[int]) -> int:
        """Returns the one of ``rows`` that differs from ``wanted`` in the fewest parameters; among equals, by least.

        ``wanted``: the number of a choice for each parameter. ``rows``: int [n_rows], numbers of configs.
        """
        off = np.abs(self.table[rows] - np.array(wanted))
        nearest = np.lexsort(((off / self.last).sum(axis=1), (off > 0).sum(axis=1)))[0]
        return int(rows[nearest])


class SnappedSampler(ListSampler):
    """Asks an Optuna sampler, and snaps each proposal to the nearest config that is not taken.

    The sampler has its own study, over the numbers of each parameter's choices. A trial of that study gets the
    parameters of the config that is tried in its place, rather than a second trial: populations and strategies
    recognise their members by attributes of the trial. Values are logarithms. Enqueued configs get trials, too.
    """

    several = True

    def __init__(self, request: Request, name: str, kind: type[BaseSampler], options: Mapping[str, object]) -> None:
        super().__init__(request)
        self._name, self._kind, self._options = name, kind, options
        self._grid = ParameterGrid.of(self.configs)
        self._asked: dict[int, int] = {}  # number of a config -> number of its trial in the inner study

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        super().before_trial(study, trial)
        row = self._chosen[trial.number]
        if row not in self._asked:
            self._try_instead(self._inner.ask()[0], row)

    def choose(self) -> int:
        trial, wanted = self._inner.ask()
        row = self._grid.nearest(self.open_rows(), wanted)
        self._try_instead(trial, row)
        return row

    def learn(self, number: int) -> None:
        values, trial = self.logs.get(number), self._asked.pop(number, None)
        if trial is None:
            self._inner.record(self._grid.table[number], values)
        else:
            self._inner.tell(trial, values)

    def distribution(self, choices: tuple[Value, ...]) -> BaseDistribution:
        """Returns the distribution of a parameter that the sampler sees."""
        return rank_of(choices)

    @cached_property
    def _inner(self) -> "GridStudy":
        grid = self._grid
        space = {name: self.distribution(choices) for name, choices in zip(grid.names, grid.choices, strict=True)}
        return GridStudy(self._name, self._kind, self._options, space, len(self.signs))

    def _try_instead(self, trial: int, row: int) -> None:
        self._inner.replace(trial, self._grid.table[row])
        self._asked[row] = trial


class TreeParzen(SnappedSampler):
    """Optuna's tree-structured Parzen estimator, multivariate, with all parameters as categories.

    Bergstra et al., Algorithms for Hyper-Parameter Optimization, NeurIPS 2011.
    """

    n_startup = 12  # random trials before the model

    def __init__(self, request: Request) -> None:
        options = arguments(TPESampler, request.seed) | {"n_startup_trials": self.n_startup, "multivariate": True}
        super().__init__(request, "tpe", TPESampler, options)

    def distribution(self, choices: tuple[Value, ...]) -> BaseDistribution:
        return CategoricalDistribution(range(len(choices)))


class GridStudy:
    """An Optuna study over the numbers of choices. An error in its sampler becomes a UsageError."""

    def __init__(
        self,
        name: str,
        kind: type[BaseSampler],
        options: Mapping[str, object],
        space: dict[str, BaseDistribution],
        n_objectives: int,
    ) -> None:
        self._name, self._space = name, space
        self._storage = optuna.storages.InMemoryStorage()
        try:
            with warnings.catch_warnings(), quiet():  # the user chose the class, and cannot change our options
                for category in (optuna.exceptions.ExperimentalWarning, FutureWarning):
                    warnings.simplefilter("ignore", category)
                sampler = kind(**options)
                self.study = optuna.create_study(
                    storage=self._storage, sampler=sampler, directions=[StudyDirection.MINIMIZE] * n_objectives
                )
        except Exception as error:  # a class of another package may raise anything
            raise self._failed(error) from error
        self._id = self._storage.get_study_id_from_name(self.study.study_name)
        vars(self.study)["stop"] = lambda: None  # a sampler whose own grid is exhausted must not stop the search

    def ask(self) -> tuple[int, list[int]]:
        """Returns the number of a new trial, and the sampler's proposal: the number of a choice for each parameter."""
        try:
            trial = self.study.ask(self._space)
            return trial.number, [int(trial.params[name]) for name in self._space]
        except Exception as error:
            raise self._failed(error) from error

    def replace(self, trial: int, row: Any) -> None:
        """Replaces the parameters of a trial by the choices that are tried instead."""
        identifier = self._storage.get_trial_id_from_study_id_trial_number(self._id, trial)
        for (name, distribution), choice in zip(self._space.items(), row, strict=True):
            inner = distribution.to_internal_repr(int(choice))
            self._storage.set_trial_param(identifier, name, inner, distribution)

    def tell(self, trial: int, values: Sequence[float] | None) -> None:
        """Sets the outcome of a trial from ``ask``; None is a failure."""
        try:
            self.study.tell(trial, values, state=TrialState.FAIL if values is None else None)
        except Exception as error:
            raise self._failed(error) from error

    def record(self, row: Any, values: Sequence[float] | None) -> None:
        """Adds a finished trial that the sampler did not propose."""
        params = {name: int(choice) for name, choice in zip(self._space, row, strict=True)}
        state = TrialState.FAIL if values is None else TrialState.COMPLETE
        self.study.add_trial(create_trial(state=state, params=params, distributions=self._space, values=values))

    def _failed(self, error: Exception) -> UsageError:
        if isinstance(error, ImportError):
            package = f"the package {error.name.partition('.')[0]}" if error.name else "a package"
            why = f"needs {package}, which is not installed ({' '.join(str(error).split())}); install it"
        else:
            why = f"raises {error_text(error)}; correct it (its class is made with a seed alone)"
        return UsageError(f"the sampler {self._name!r} {why}, or choose another sampler")


def rank_of(choices: tuple[Value, ...]) -> BaseDistribution:
    """Returns a distribution over the numbers of choices: integers if every config has a number, else categories."""
    if NOTHING not in choices and all(type(value) in (int, float) for value in choices):
        return IntDistribution(0, len(choices) - 1)
    return CategoricalDistribution(range(len(choices)))
