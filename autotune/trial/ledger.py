"""Accounts for the wall time of a sweep by activity, and for the device's idle time."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

ON_DEVICE = ("opening the device", "verifying", "measuring", "final round")  # while these run, the device is in use


class Ledger:
    """Counts seconds of one thread by activity: ``with ledger.on("searching"): ...``; activities do not nest."""

    def __init__(self) -> None:
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._began = time.monotonic()

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._spent[what] += time.monotonic() - began

    def add(self, spent_s: Mapping[str, float]) -> None:
        """Adds seconds by activity that another clock measured."""
        for what, seconds in spent_s.items():
            self._spent[what] += seconds

    @property
    def wall_s(self) -> float:
        return time.monotonic() - self._began

    def spent_s(self) -> dict[str, float]:
        """Returns seconds by activity, largest first, with ``other`` for the rest. The sum is the wall time."""
        other = max(0.0, self.wall_s - sum(self._spent.values()))
        return dict(sorted({**self._spent, "other": other}.items(), key=lambda item: -item[1]))


def idle_share(spent_s: Mapping[str, float]) -> float:
    """Returns the share of the wall time in which the device had no work of this sweep."""
    wall_s = sum(spent_s.values())
    return 1.0 - sum(spent_s.get(what, 0.0) for what in ON_DEVICE) / wall_s if wall_s else 0.0
