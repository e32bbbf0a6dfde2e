"""Any sampler of Optuna's, or an installed one of its kind, over the list of valid configs."""

import warnings
from typing import TYPE_CHECKING, Any

from ..core.config import Value
from ..core.errors import UsageError, told
from .base import Listed, Request
from .optuna_names import arguments, sampler_class
from .snapping import NOTHING, Grid

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler

N_REHEARSED = 12  # trials of a rehearsal: samplers that begin at random have a model after ten
_rehearsed: set[type] = set()


def check_optuna(name: str) -> None:
    """Raises UsageError unless ``name`` is a sampler of Optuna's that proposes something here.

    The class is asked once, after a few trials of a space of its own: some miss a package only when their model begins.
    """
    kind = sampler_class(name)
    if kind in _rehearsed:
        return
    study = _Study(name, kind, seed=0, choices={"A": (1, 2, 4, 8), "B": (1, 2, 4), "C": ("x", "y", "z")})
    for i in range(N_REHEARSED):
        study.record((i % 4, i % 3, (i // 4) % 3), float(i % 5))
    study.tell(study.ask()[0], 1.0)
    _rehearsed.add(kind)


class OptunaSearch(Listed):
    """Asks a sampler of Optuna's, and snaps each proposal to the nearest config that is not taken.

    Values are logarithms of seconds; failures are failed trials. The default and the hints are trials that the sampler
    was asked for, too.
    """

    def __init__(self, request: Request, name: str) -> None:
        super().__init__(request)
        self._grid = Grid.of(self.configs)
        choices = dict(zip(self._grid.names, self._grid.choices, strict=True))
        self._study = _Study(name, sampler_class(name), request.seed, choices)
        self._asked: dict[int, int] = {}  # by the number of a config: the number of its trial
        self._recorded = {self._number[config] for config in request.done if config in self._number}

    def choose(self) -> int:
        trial, wanted = self._study.ask()
        number = self._grid.nearest(self.open_rows(), wanted)
        self._study.replace(trial, self._grid.table[number])
        self._asked[number] = trial
        return number

    def learn(self, number: int) -> None:
        row, value = self._grid.table[number], self.log_s.get(number)
        if number in self._recorded:
            self._recorded.discard(number)
            self._study.record(row, value)
            return
        trial = self._asked.pop(number, None)
        if trial is None:  # the default, or a hint
            trial = self._study.ask()[0]
            self._study.replace(trial, row)
        self._study.tell(trial, value)


class _Study:
    """A study of Optuna's over choices by their numbers. What its sampler raises becomes a UsageError.

    A parameter of numbers that every config has is an integer, the rank of its value; any other is a category. A trial
    gets the parameters of the config that is tried in its place, and not a second trial: populations and strategies
    know their members by what they have noted on a trial.
    """

    def __init__(self, name: str, kind: "type[BaseSampler]", seed: int, choices: dict[str, tuple[Value, ...]]) -> None:
        import optuna  # imported late, since it takes longer than most commands

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._name = name
        self._space = {name: _distribution(values) for name, values in choices.items()}
        self._storage = optuna.storages.InMemoryStorage()
        try:
            with warnings.catch_warnings():  # the arguments are ours, and the choice of the class was made
                for category in (optuna.exceptions.ExperimentalWarning, FutureWarning):
                    warnings.simplefilter("ignore", category)
                sampler = kind(**arguments(kind, seed))
            self._study = optuna.create_study(storage=self._storage, sampler=sampler)
        except Exception as error:  # the class may be anybody's
            raise self._failed(error) from error
        self._id = self._storage.get_study_id_from_name(self._study.study_name)
        vars(self._study)["stop"] = lambda: None  # a sampler that has seen all of its own grid ends nothing here

    def ask(self) -> tuple[int, list[int]]:
        """Returns the number of a new trial, and what its sampler wants: the number of a choice by parameter."""
        try:
            trial = self._study.ask(self._space)
            return trial.number, [int(trial.params[name]) for name in self._space]
        except Exception as error:
            raise self._failed(error) from error

    def replace(self, trial: int, row: Any) -> None:
        """Give a trial the choices that are tried instead."""
        identifier = self._storage.get_trial_id_from_study_id_trial_number(self._id, trial)
        for (name, distribution), choice in zip(self._space.items(), row, strict=True):
            inner = distribution.to_internal_repr(int(choice))
            self._storage.set_trial_param(identifier, name, inner, distribution)

    def tell(self, trial: int, value: float | None) -> None:
        """Tell the outcome of a trial that was asked for; None is a failure."""
        from optuna.trial import TrialState

        try:
            self._study.tell(trial, value, state=TrialState.FAIL if value is None else None)
        except Exception as error:
            raise self._failed(error) from error

    def record(self, row: Any, value: float | None) -> None:
        """Add a trial that was not asked for."""
        from optuna.trial import TrialState, create_trial

        params = {name: int(choice) for name, choice in zip(self._space, row, strict=True)}
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        self._study.add_trial(create_trial(state=state, params=params, distributions=self._space, value=value))

    def _failed(self, error: Exception) -> UsageError:
        if isinstance(error, ImportError):
            package = f"the package {error.name.partition('.')[0]}" if error.name else "a package"
            why = f"needs {package}, which is not installed ({' '.join(str(error).split())}); install it"
        else:
            why = f"raises {told(error)}; correct it"
        return UsageError(f"the sampler {self._name!r} {why}, or choose another sampler")


def _distribution(values: tuple[Value, ...]) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if NOTHING not in values and all(type(value) in (int, float) for value in values):
        return IntDistribution(0, len(values) - 1)
    return CategoricalDistribution(range(len(values)))
