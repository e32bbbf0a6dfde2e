"""What to try next. A searcher sees configs and times; never a device, a source or a problem.

Every searcher proposes each config of the enumerated space at most once, the default first.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from .errors import UsageError
from .space import Config


class Searcher(Protocol):
    """One search over one space."""

    def propose(self) -> Config | None:
        """A config not proposed before, or None when all have been."""

    def observe(self, config: Config, seconds: float | None) -> None:
        """The outcome of a proposal: its median, or None when it failed."""


class Exhaustive:
    """Every config, the default first, then in the order of the space."""

    def __init__(self, configs: Sequence[Config], default: Config, done: Iterable[Config] = (), seed: int = 0) -> None:
        self._remaining = _without(configs, default, set(done))

    def propose(self) -> Config | None:
        return self._remaining.pop(0) if self._remaining else None

    def observe(self, config: Config, seconds: float | None) -> None:
        pass


class Random:
    """Every config in random order, the default first."""

    def __init__(self, configs: Sequence[Config], default: Config, done: Iterable[Config] = (), seed: int = 0) -> None:
        remaining = _without(configs, default, set(done))
        first = [c for c in remaining if c == default]
        rest = [c for c in remaining if c != default]
        np.random.default_rng(seed).shuffle(rest)
        self._remaining = first + rest

    def propose(self) -> Config | None:
        return self._remaining.pop(0) if self._remaining else None

    def observe(self, config: Config, seconds: float | None) -> None:
        pass


class TreeParzen:
    """Optuna's TPE over the enumerated space: each proposal is snapped to the nearest config not yet proposed.

    Snapping keeps the sampler from spending trials on what cannot be or has been; a failure is told as slower than
    all that was measured. Bergstra et al., Algorithms for Hyper-Parameter Optimization, NeurIPS 2011.
    """

    n_startup = 12  # random trials before the model

    def __init__(self, configs: Sequence[Config], default: Config, done: Iterable[Config] = (), seed: int = 0) -> None:
        self._names = list(dict.fromkeys(name for config in configs for name in config))
        import optuna  # here: it takes longer to import than most commands run

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        absent = "-"  # a parameter that a config does not have
        values = {n: sorted({c.get(n, absent) for c in configs}, key=_natural) for n in self._names}
        self._space: dict[str, Any] = {n: optuna.distributions.CategoricalDistribution(v) for n, v in values.items()}
        self._row = {c: [values[n].index(c.get(n, absent)) for n in self._names] for c in configs}
        self._scale = np.array([max(1, len(values[n]) - 1) for n in self._names])
        self._values = values
        self._open = dict.fromkeys(_without(configs, default, set(done)))
        self._first = [default] if default in self._open else []
        self._worst = 0.0
        self._failed: list[Config] = []
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=self.n_startup, multivariate=True)
        self._study = optuna.create_study(sampler=sampler)

    def propose(self) -> Config | None:
        if not self._open:
            return None
        config = self._first.pop() if self._first else self._nearest_open(self._ask())
        del self._open[config]
        return config

    def observe(self, config: Config, seconds: float | None) -> None:
        if config not in self._row:
            return  # recorded when the space was larger
        if seconds is None:
            self._failed.append(config)
        else:
            self._tell(config, seconds)
            self._worst = max(self._worst, seconds)
        if self._worst:  # without a measured config there is no telling how slow a failure counts
            for failed in self._failed:
                self._tell(failed, self._worst)
            self._failed.clear()

    def _ask(self) -> list[int]:
        from optuna.trial import TrialState

        trial = self._study.ask(self._space)
        row = [self._values[n].index(trial.params[n]) for n in self._names]
        self._study.tell(trial, state=TrialState.FAIL)  # the snapped config is what gets told
        return row

    def _nearest_open(self, row: list[int]) -> Config:
        candidates = list(self._open)
        rows = np.array([self._row[c] for c in candidates])
        different = (rows != np.array(row)).sum(axis=1)
        steps = (np.abs(rows - np.array(row)) / self._scale).sum(axis=1)
        return candidates[int(np.lexsort((steps, different))[0])]

    def _tell(self, config: Config, seconds: float) -> None:
        from optuna.trial import create_trial

        params = {n: self._values[n][i] for n, i in zip(self._names, self._row[config], strict=True)}
        self._study.add_trial(create_trial(params=params, distributions=self._space, value=float(np.log(seconds))))


SAMPLERS: dict[str, Callable[..., Searcher]] = {"exhaustive": Exhaustive, "random": Random, "tpe": TreeParzen}


def searcher(
    name: str, configs: Sequence[Config], default: Config, budget: int | None, done: Iterable[Config], seed: int
) -> tuple[str, Searcher]:
    """The searcher called ``name`` and the name it really has: ``auto`` is exhaustive when the budget allows.

    ``done``: configs whose outcome is already known; they are not proposed again.

    Raises:
        UsageError: for an unknown name.
    """
    check_sampler(name)
    if name == "auto":
        name = "exhaustive" if budget is None or budget >= len(configs) else "tpe"
    return name, SAMPLERS[name](configs, default, done, seed)


def check_sampler(name: str) -> None:
    """Raises UsageError unless ``name`` is a sampler."""
    if name != "auto" and name not in SAMPLERS:
        raise UsageError(f"no sampler is called {name!r} (there are: auto, {', '.join(SAMPLERS)})")


def _without(configs: Sequence[Config], default: Config, done: set[Config]) -> list[Config]:
    first = [default] if default in set(configs) else []
    return [c for c in [*first, *(c for c in configs if c != default)] if c not in done]


def _natural(value: object) -> tuple[int, object]:
    return (0, value) if isinstance(value, (int, float)) else (1, str(value))
