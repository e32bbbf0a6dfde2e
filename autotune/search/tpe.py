"""Optuna's tree-structured Parzen estimator over the list of valid configs."""

from typing import Any

import numpy as np

from .base import Listed, Request
from .features import ABSENT, levels_of

NOTHING = "-"  # Optuna's value for a parameter that a config lacks


class TreeParzen(Listed):
    """Each proposal of Optuna's is snapped to the nearest config that is not taken.

    Snapping keeps the sampler from spending trials on what cannot be or has been; a failure is told as slower than
    all that was measured. Bergstra et al., Algorithms for Hyper-Parameter Optimization, NeurIPS 2011.
    """

    n_startup = 12  # random trials before the model

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        import optuna  # imported late, since it takes longer than most commands

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        levels = levels_of(self.configs)
        self._names, self._table = levels.names, levels.table
        self._choices = [
            list(values) + [NOTHING] * bool((column == ABSENT).any())
            for values, column in zip(levels.values, levels.table.T, strict=True)
        ]
        self._last = np.array([max(1, len(choices) - 1) for choices in self._choices])
        self._table = np.where(self._table == ABSENT, self._last, self._table)  # NOTHING stands last
        self._space: dict[str, Any] = {
            name: optuna.distributions.CategoricalDistribution(choices)
            for name, choices in zip(self._names, self._choices, strict=True)
        }
        sampler = optuna.samplers.TPESampler(seed=request.seed, n_startup_trials=self.n_startup, multivariate=True)
        self._study = optuna.create_study(sampler=sampler)
        self._untold: list[int] = []  # failures to report once there is a time to exceed

    def choose(self) -> int:
        from optuna.trial import TrialState

        trial = self._study.ask(self._space)
        wanted = [choices.index(trial.params[n]) for n, choices in zip(self._names, self._choices, strict=True)]
        self._study.tell(trial, state=TrialState.FAIL)  # the snapped config is what gets told
        open_rows = self.open_rows()
        off = np.abs(self._table[open_rows] - np.array(wanted))
        nearest = np.lexsort(((off / self._last).sum(axis=1), (off > 0).sum(axis=1)))[0]
        return int(open_rows[nearest])

    def learn(self, number: int) -> None:
        if number in self.log_s:
            self._tell(number, self.log_s[number])
        else:
            self._untold.append(number)
        if self.log_s:
            worst = max(self.log_s.values())
            for failed in self._untold:
                self._tell(failed, worst)
            self._untold.clear()

    def _tell(self, number: int, value: float) -> None:
        from optuna.trial import create_trial

        row = self._table[number]
        params = {n: choices[i] for n, choices, i in zip(self._names, self._choices, row, strict=True)}
        self._study.add_trial(create_trial(params=params, distributions=self._space, value=value))
