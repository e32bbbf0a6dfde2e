"""Optuna's tree-structured Parzen estimator over the list of valid configs."""

from typing import Any

from .base import Listed, Request
from .snapping import Grid


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
        self._grid = grid = Grid.of(self.configs)
        self._space: dict[str, Any] = {
            name: optuna.distributions.CategoricalDistribution(choices)
            for name, choices in zip(grid.names, grid.choices, strict=True)
        }
        sampler = optuna.samplers.TPESampler(seed=request.seed, n_startup_trials=self.n_startup, multivariate=True)
        self._study = optuna.create_study(sampler=sampler)
        self._untold: list[int] = []  # failures to report once there is a time to exceed

    def choose(self) -> int:
        from optuna.trial import TrialState

        trial = self._study.ask(self._space)
        grid = self._grid
        wanted = [choices.index(trial.params[n]) for n, choices in zip(grid.names, grid.choices, strict=True)]
        self._study.tell(trial, state=TrialState.FAIL)  # the snapped config is what gets told
        return grid.nearest(self.open_rows(), wanted)

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

        grid = self._grid
        params = {n: choices[i] for n, choices, i in zip(grid.names, grid.choices, grid.table[number], strict=True)}
        self._study.add_trial(create_trial(params=params, distributions=self._space, value=value))
