"""A search is a study of Optuna's, which is asked and told: the default first, then the hints, no config twice."""

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

    ``first``: configs to begin with, in their order, as enqueued trials; those that are not of the space, or have been
    tried by then, are left out. ``default``: the first of them, which runs before all others. ``directions``:
    ``minimize`` or ``maximize``, of each objective.

    A trial that is proposed runs until it is observed, and several may run. Its values are those of the objectives, in
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
        """Returns whether outcomes change what it proposes."""
        return self.sampler.learns

    @property
    def chooses(self) -> bool:
        """Returns whether it prefers one of what is compiled to another."""
        return self.sampler.chooses

    def propose(self) -> Config | None:
        """Returns a config that was neither proposed nor observed before, or None if all were.

        Raises:
            UsageError: when a sampler of somebody else's raises.
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
        """Returns ``configs``, which have been proposed and not observed, in the order in which to measure them.

        First come the default and the hints, then what the sampler prefers now that it knows all outcomes so far; one
        without a preference keeps the order given.
        """
        rest = dict.fromkeys(configs)
        first = [config for config in self._foremost if config in rest]
        for config in first:
            del rest[config]
        return first + (self.sampler.rank(self.study, rest) if len(rest) > 1 else list(rest))

    def choose_among(self, configs: Iterable[Config]) -> Config:
        """Returns the one of ``configs``, at least one, that is to be measured next."""
        return self.ranked(configs)[0]

    def observe(self, config: Config, values: Sequence[float] | None, attributes: Mapping[str, object] = {}) -> None:
        """Take the outcome of a config: a value for each objective, or None if it failed.

        Outcomes may come late and in any order, and be of configs that were recorded before and never proposed.
        ``attributes``: what else there is to tell, such as the status of a failure, as JSON has it.
        """
        if config not in self.sampler:
            return  # recorded when the space was larger
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
