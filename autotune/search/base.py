"""The base of all searches: configs by number, the default and the hints first, none twice."""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..core.config import Config


class Searcher(Protocol):
    """One search over one space."""

    def propose(self) -> Config | None:
        """Returns a config that was not proposed before, or None if all were."""

    def observe(self, config: Config, seconds: float | None) -> None:
        """Take the median of a config, or None if it failed. Outcomes may come late and in any order."""


@dataclass(frozen=True)
class Request:
    """The inputs of a search.

    ``configs``: the whole space. ``default``: proposed first. ``budget``: trials in all, those of ``done`` included;
    None is no limit. ``done``: configs that are known already; never proposed, their outcomes are told by observe().
    ``hints``: configs from elsewhere that may be good, in order of promise; proposed after the default.
    ``known``: what is known of each config beside its parameters, by name, float [n_configs].
    """

    configs: Sequence[Config]
    default: Config
    budget: int | None = None
    done: Iterable[Config] = ()
    seed: int = 0
    hints: Sequence[Config] = ()
    known: Mapping[str, np.ndarray] = field(default_factory=dict)


class Listed(ABC):
    """A search that knows configs by their number in the list.

    A subclass chooses among the numbers of ``self.open_rows()`` and learns logarithms of seconds.
    """

    def __init__(self, request: Request) -> None:
        self.configs = tuple(request.configs)
        self.n_configs = len(self.configs)
        self.rng = np.random.default_rng(request.seed)
        self.taken = np.zeros(self.n_configs, bool)  # proposed, or known from before
        self.log_s: dict[int, float] = {}  # log times of configs that succeeded
        self.failed: set[int] = set()
        self.pending: dict[int, None] = {}  # proposed, without an outcome; the oldest first
        self._number = {config: i for i, config in enumerate(self.configs)}
        for config in request.done:
            if config in self._number:
                self.taken[self._number[config]] = True
        self.n_done = int(self.taken.sum())
        self.budget = self.n_configs if request.budget is None else min(request.budget, self.n_configs)
        self._n_taken = self.n_done
        first = dict.fromkeys(c for c in (request.default, *request.hints) if c in self._number)
        self._first = deque(self._number[c] for c in first)

    def propose(self) -> Config | None:
        if self._n_taken == self.n_configs:
            return None
        number = self._next_first()
        if number is None:
            number = self.choose()
        self.taken[number] = True
        self._n_taken += 1
        self.pending[number] = None
        return self.configs[number]

    def observe(self, config: Config, seconds: float | None) -> None:
        number = self._number.get(config)
        if number is None:
            return  # recorded when the space was larger
        if not self.taken[number]:
            self.taken[number] = True
            self._n_taken += 1
        self.pending.pop(number, None)
        if seconds is None:
            self.failed.add(number)
            self.log_s.pop(number, None)
        else:
            self.log_s[number] = math.log(seconds)
            self.failed.discard(number)
        self.learn(number)

    @abstractmethod
    def choose(self) -> int:
        """Returns the number of a config that is not taken; at least one exists."""

    def learn(self, number: int) -> None:  # noqa: B027  (not every search learns)
        """Update the model with the outcome of ``number``, which is in ``log_s`` or in ``failed``."""

    def open_rows(self) -> np.ndarray:
        """Returns the numbers of the configs that are not taken, int [n_open]."""
        return np.flatnonzero(~self.taken)

    def any_open(self) -> int:
        """Returns one of them at random."""
        return int(self.rng.choice(self.open_rows()))

    def _next_first(self) -> int | None:
        while self._first:
            number = self._first.popleft()
            if not self.taken[number]:
                return number
        return None
