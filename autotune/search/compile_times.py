"""Compile times on a simulated clock whose unit is a trial: one trial occupies the device for 1."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CompileTimes:
    """The distribution of compile times, in trials: constant ``mean``, or log-normal with that mean.

    ``spread``: standard deviation of the logarithms; 0: constant.
    """

    mean: float
    spread: float = 0.0

    def drawn(self, rng: np.random.Generator) -> float:
        """Returns a random compile time."""
        if not self.spread:
            return self.mean
        return self.mean * float(rng.lognormal(-0.5 * self.spread**2, self.spread))


class Clock:
    """A simulated clock: its time ``now``, and the compiles that it starts."""

    def __init__(self, times: CompileTimes, seed: int) -> None:
        self.now = 0.0
        self.n_cancelled = 0
        self._times = times
        self._rng = np.random.default_rng([seed, 2])  # independent of the random numbers of the search

    def compile(self) -> "SimulatedCompile":
        """Starts a compile at ``now``."""
        return SimulatedCompile(self, self.now + self._times.drawn(self._rng))

    def wait(self, compiles: "Sequence[SimulatedCompile]") -> None:
        """Advances the clock until one of the compiles is done; does nothing without compiles."""
        self.now = min((one.ends for one in compiles), default=self.now)


@dataclass(frozen=True)
class SimulatedCompile:
    """A compile that is done when its clock reaches ``ends``."""

    clock: Clock
    ends: float

    def done(self) -> bool:
        return self.ends <= self.clock.now

    def cancel(self) -> None:
        self.clock.n_cancelled += 1
