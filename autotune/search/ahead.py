"""Decides what is compiled ahead, what is measured next, and what is cancelled: in sweeps and in replays alike.

Compiles are started for candidates; which of them is measured is chosen when the device is free, among what is compiled
by then, so that every outcome is used at once.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ..core.config import Config

if TYPE_CHECKING:
    from .search import Search

N_BLIND = 4  # configs outstanding while none has worked, and when few trials are left
PER_KNOWN = 3  # configs that worked for which one more may be outstanding
PER_LEFT = 2  # trials that are left of the budget for each config that is outstanding


class Compile(Protocol):
    """A compile under way, such as a ``Future``."""

    def done(self) -> bool: ...

    def cancel(self) -> object: ...


C = TypeVar("C", bound=Compile)


class CompilesAhead(Generic[C]):
    """The configs of one search that compile or are compiled, and are not measured yet: ``outstanding``.

    ``most``: so many are outstanding at most; one more where the search chooses and all of these are compiled.
    ``n_left``: trials that may still begin.
    """

    def __init__(self, search: "Search", most: int, n_left: int) -> None:
        self._search, self._most, self.n_left = search, most, n_left
        self._n_added = 0  # since the last trial began
        self.outstanding: dict[Config, C] = {}

    def propose(self) -> Config | None:
        """Returns what to compile now, which is to be added, or None when enough is outstanding.

        What is too much by then, with few trials left, is cancelled: the least wanted.
        """
        if self._wants_more() and (config := self._search.propose()) is not None:
            return config
        if len(self.outstanding) > self.n_left:
            self._cancel(self._search.ranked(self.outstanding)[self.n_left :])
        return None

    def add(self, config: Config, compiling: C) -> None:
        """Take up what was proposed and compiles now."""
        self.outstanding[config] = compiling
        self._n_added += 1

    def awaited(self) -> list[C]:
        """Returns the compiles of which one must end before anything is measured: none if something can be now.

        The device waits for the default, which all others are compared with, but for no other slow compile: what is
        compiled is measured.
        """
        eligible = self._eligible()
        return [] if any(one.done() for one in eligible.values()) else list(eligible.values())

    def take(self) -> Config:
        """Returns what is to be measured now, of all that is compiled; it is outstanding no more."""
        chosen = self._search.choose_among(config for config, one in self._eligible().items() if one.done())
        del self.outstanding[chosen]
        self.n_left -= 1
        self._n_added = 0
        return chosen

    def observe(self, config: Config, values: Sequence[float] | None, attributes: Mapping[str, object] = {}) -> None:
        """Tell the search what came of a config, as ``Search.observe`` takes it."""
        self._search.observe(config, values, attributes)

    def cancel(self) -> None:
        """Cancel all that is outstanding."""
        self._cancel(list(self.outstanding))

    def _eligible(self) -> dict[Config, C]:
        default = self._search.default
        return {default: self.outstanding[default]} if default in self.outstanding else self.outstanding

    def _wants_more(self) -> bool:
        """Returns whether to start one more compile.

        Where the search chooses, something always compiles: what the last outcome tells is used by the next trial but
        one. Of what is compiled then, the least wanted is cancelled in the end.
        """
        if len(self.outstanding) < min(self._most, self.n_left, self._sensible()):
            return True
        is_idle = not self._n_added and all(one.done() for one in self.outstanding.values())
        return is_idle and self._search.chooses and self.n_left > 1

    def _sensible(self) -> int:
        """Returns how many configs may be chosen before the outcomes of the others are known."""
        if not self._search.learns:
            return self._most
        return min(N_BLIND + self._search.n_succeeded // PER_KNOWN, max(N_BLIND, self.n_left // PER_LEFT))

    def _cancel(self, configs: Sequence[Config]) -> None:
        for config in configs:
            self.outstanding.pop(config).cancel()
