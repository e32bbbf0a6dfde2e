"""Decides what is compiled ahead, what is measured next, and what is cancelled: in sweeps and in replays alike.

Compiles are started for candidates; which of them is measured is chosen when the device is free, among what is compiled
by then, so that every outcome is used at once.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ..core.config import Config

if TYPE_CHECKING:
    from .search import Search

N_BLIND = 4  # configs outstanding while no outcome is known, and when few trials are left
PER_KNOWN = 3  # outcomes for which one more may be outstanding
PER_LEFT = 2  # trials that are left of the budget for each config that is outstanding


class Compile(Protocol):
    """A config that compiles."""

    @property
    def config(self) -> Config: ...

    @property
    def done(self) -> bool: ...

    def cancel(self) -> None: ...


C = TypeVar("C", bound=Compile)


class Ahead(Generic[C]):
    """The configs of one search that compile or are compiled, and are not measured yet: ``outstanding``.

    ``start``: begins to compile a config. ``most``: configs outstanding, at most; and one more where the search chooses
    and all of these are compiled.
    """

    def __init__(self, search: "Search", start: Callable[[Config], C], most: int) -> None:
        self._search, self._start, self._most = search, start, most
        self.outstanding: list[C] = []

    def refill(self, n_left: int) -> None:
        """Start the compiles that make sense when ``n_left`` trials may follow; cancel what is too much by now."""
        n_started = 0
        while self._wants_more(n_left, n_started) and (config := self._search.propose()) is not None:
            self.outstanding.append(self._start(config))
            n_started += 1
        if len(self.outstanding) > n_left:
            self._cancel_all_but(n_left)

    def wait(self, until: Callable[[Sequence[C]], None]) -> None:
        """Wait until something may be measured; ``until`` returns when one of several compiles is done.

        That is the default, which all others are compared with, as long as it is outstanding. The device waits for no
        other one that compiles while another is done.
        """
        eligible = self._eligible()
        if not any(one.done for one in eligible):
            until(eligible)

    def take(self) -> C:
        """Returns what is to be measured now, of all that is compiled; it is outstanding no more."""
        done = {one.config: one for one in self._eligible() if one.done}
        chosen = done[self._search.choose_among(done)]
        self.outstanding.remove(chosen)
        return chosen

    def cancel(self) -> None:
        """Cancel all that is outstanding."""
        self._cancel_all_but(0)

    def _eligible(self) -> list[C]:
        return [one for one in self.outstanding if one.config == self._search.default] or self.outstanding

    def _wants_more(self, n_left: int, n_started: int) -> bool:
        """Returns whether to start one more compile.

        Where the model chooses, something always compiles: what the last outcome tells is used by the next trial but
        one. Of what is compiled then, the least wanted is cancelled in the end.
        """
        if len(self.outstanding) < min(self._most, n_left, self._sensible(n_left)):
            return True
        return n_left > 1 and self._search.chooses and not n_started and all(one.done for one in self.outstanding)

    def _sensible(self, n_left: int) -> int:
        """Returns how many configs may be chosen before the outcomes of the others are known."""
        if not self._search.learns:
            return self._most
        return min(N_BLIND + self._search.n_observed // PER_KNOWN, max(N_BLIND, n_left // PER_LEFT))

    def _cancel_all_but(self, n: int) -> None:
        by_config = {one.config: one for one in self.outstanding}
        order = self._search.ranked(by_config) if n else list(by_config)
        for config in order[n:]:
            by_config[config].cancel()
        self.outstanding = [by_config[config] for config in by_config if config in order[:n]]
