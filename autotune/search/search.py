"""A search: an Optuna study with the default first, then the hints, and no config twice."""

from collections.abc import Iterable, Mapping, Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import Trial, TrialState, create_trial

from ..core.config import Config
from ..records.objectives import Direction
from ..records.study import quiet
from .sampler import ListSampler


class Search:
    """One search over one space, in memory.

    ``first``: configs to try first, in this order, as enqueued trials; configs that are not in the space, or have
    already been tried, are left out. ``default``: the first of them, which runs before all others. ``directions``:
    ``minimize`` or ``maximize``, for each objective.

    A proposed trial runs until it is observed; several may run at a time. Its values are those of the objectives, in
    their units; a failure is a failed trial.
    """

    def __init__(
        self, sampler: ListSampler, first: Iterable[Config], directions: Sequence[Direction] = ("minimize",)
    ) -> None:
        self.sampler = sampler
        with quiet():
            self.study = optuna.create_study(sampler=sampler, directions=directions)
        self.n_succeeded = 0  # configs that were observed with values
        self._first = tuple(dict.fromkeys(config for config in first if config in sampler))
        self.default = self._first[0] if self._first else None
        self._foremost = self._first
        self._taken: set[Config] = set()
        self._running: dict[Config, Trial] = {}

    @property
    def learns(self) -> bool:
        """Returns whether outcomes change the proposals."""
        return self.sampler.learns

    @property
    def chooses(self) -> bool:
        """Returns whether the search prefers one compiled config to another."""
        return self.sampler.chooses

    def propose(self) -> Config | None:
        """Returns a config that was neither proposed nor observed before, or None if all were.

        Raises:
            UsageError: if a sampler of another package raises.
        """
        if self._first:
            for config in self._first:
                if config not in self._taken:
                    self.study.enqueue_trial(dict(config))
            self._first = ()
        if len(self._taken) == self.sampler.n_configs:
            return None
        trial = self.study.ask()
        config = self.sampler.suggest(trial)
        self._taken.add(config)
        self._running[config] = trial
        return config

    def ranked(self, configs: Iterable[Config]) -> list[Config]:
        """Returns ``configs``, which are proposed and not observed, in the order in which to measure them.

        The default and the hints come first, then the sampler's preferences by all outcomes so far; a sampler without
        preferences keeps the given order.
        """
        rest = dict.fromkeys(configs)
        first = [config for config in self._foremost if config in rest]
        for config in first:
            del rest[config]
        return first + (self.sampler.rank(self.study, rest) if len(rest) > 1 else list(rest))

    def observe(self, config: Config, values: Sequence[float] | None, attributes: Mapping[str, object] = {}) -> None:
        """Takes the outcome of a config: a value for each objective, or None if it failed.

        Outcomes may come late and in any order, also for recorded configs that were never proposed. ``attributes``:
        further values of JSON types, such as the status of a failure.
        """
        if config not in self.sampler:
            return  # the config was recorded when the space was larger
        self._taken.add(config)
        self.n_succeeded += values is not None
        state = TrialState.FAIL if values is None else TrialState.COMPLETE
        trial = self._running.pop(config, None)
        if trial is None:
            distributions: dict[str, BaseDistribution] = {
                name: CategoricalDistribution(self.sampler.values(name)) for name in config
            }
            self.study.add_trial(
                create_trial(
                    state=state,
                    values=values,
                    params=dict(config),
                    distributions=distributions,
                    user_attrs=dict(attributes),
                )
            )
            return
        for name, value in attributes.items():
            trial.set_user_attr(name, value)
        self.study.tell(trial, values, state)
