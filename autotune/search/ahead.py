"""Decides which configs are compiled ahead, measured next, and cancelled: in sweeps and on recorded spaces alike.

Candidates are compiled ahead. When the device is free, the search chooses among the compiled ones, so that it uses
every outcome at once.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ..core.config import Config

if TYPE_CHECKING:
    from .search import Search

N_BLIND = 4  # outstanding configs while none has succeeded, and when few trials are left
PER_KNOWN = 3  # successful configs for each further outstanding one
PER_LEFT = 2  # trials left in the budget for each outstanding config


class Compile(Protocol):
    """A running compile, such as a ``Future``."""

    def done(self) -> bool: ...

    def cancel(self) -> object: ...


C = TypeVar("C", bound=Compile)


class CompilesAhead(Generic[C]):
    """The configs of one search that are compiling or compiled, but not measured yet: ``outstanding``.

    ``most``: largest number of outstanding configs; one more may start if all of them are compiled and the search has
    preferences. ``n_left``: trials that may still begin.
    """

    def __init__(self, search: "Search", most: int, n_left: int) -> None:
        self._search, self._most, self.n_left = search, most, n_left
        self._n_added = 0  # since the last trial began
        self.outstanding: dict[Config, C] = {}

    def propose(self) -> Config | None:
        """Returns the config to compile now, which the caller adds, or None if enough configs are outstanding.

        If more configs are outstanding than trials are left, the least promising are cancelled.
        """
        if self._wants_more() and (config := self._search.propose()) is not None:
            return config
        if len(self.outstanding) > self.n_left:
            self._cancel(self._search.ranked(self.outstanding)[self.n_left :])
        return None

    def add(self, config: Config, compiling: C) -> None:
        """Adds a proposed config, which is compiling now."""
        self.outstanding[config] = compiling
        self._n_added += 1

    def awaited(self) -> list[C]:
        """Returns the compiles to wait for: one of them must end before a config can be measured. Empty: none need.

        The device waits for the default, with which all others are compared, but not for other slow compiles.
        """
        eligible = self._eligible()
        return [] if any(one.done() for one in eligible.values()) else list(eligible.values())

    def take(self) -> Config:
        """Returns the compiled config to measure now, and removes it from ``outstanding``."""
        chosen = self._search.ranked(config for config, one in self._eligible().items() if one.done())[0]
        del self.outstanding[chosen]
        self.n_left -= 1
        self._n_added = 0
        return chosen

    def observe(self, config: Config, values: Sequence[float] | None, attributes: Mapping[str, object] = {}) -> None:
        """Passes the outcome of a config to ``Search.observe``."""
        self._search.observe(config, values, attributes)

    def cancel(self) -> None:
        """Cancels all outstanding configs."""
        self._cancel(list(self.outstanding))

    def _eligible(self) -> dict[Config, C]:
        default = self._search.default
        return {default: self.outstanding[default]} if default in self.outstanding else self.outstanding

    def _wants_more(self) -> bool:
        """Returns whether to start one more compile.

        If the search has preferences, one config is always compiling, so that the trial after the next one can use the
        last outcome. At the end the least promising compiled configs are cancelled.
        """
        if len(self.outstanding) < min(self._most, self.n_left, self._sensible()):
            return True
        is_idle = not self._n_added and all(one.done() for one in self.outstanding.values())
        return is_idle and self._search.chooses and self.n_left > 1

    def _sensible(self) -> int:
        """Returns how many configs may be outstanding without the outcomes of each other."""
        if not self._search.learns:
            return self._most
        return min(N_BLIND + self._search.n_succeeded // PER_KNOWN, max(N_BLIND, self.n_left // PER_LEFT))

    def _cancel(self, configs: Sequence[Config]) -> None:
        for config in configs:
            self.outstanding.pop(config).cancel()
