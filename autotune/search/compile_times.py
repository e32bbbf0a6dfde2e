"""Compiles that take time on a simulated clock, which counts in trials: one trial keeps the device for 1."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CompileTimes:
    """How long compiles take, in trials: all ``mean``, or log-normal with that mean.

    ``spread``: the standard deviation of their logarithms.
    """

    mean: float
    spread: float = 0.0

    def drawn(self, rng: np.random.Generator) -> float:
        """Returns one of them."""
        if not self.spread:
            return self.mean
        return self.mean * float(rng.lognormal(-0.5 * self.spread**2, self.spread))


class Clock:
    """Simulated time ``now``, and compiles that begin then."""

    def __init__(self, times: CompileTimes, seed: int) -> None:
        self.now = 0.0
        self.n_cancelled = 0
        self._times = times
        self._rng = np.random.default_rng([seed, 2])  # independent of what a search draws

    def compile(self) -> "SimulatedCompile":
        """Begin a compile."""
        return SimulatedCompile(self, self.now + self._times.drawn(self._rng))

    def wait(self, compiles: "Sequence[SimulatedCompile]") -> None:
        """Let time pass until one of these is done, if there are any."""
        self.now = min((one.ends for one in compiles), default=self.now)


@dataclass(frozen=True)
class SimulatedCompile:
    """A compile that ``ends`` at that time of the clock."""

    clock: Clock
    ends: float

    def done(self) -> bool:
        return self.ends <= self.clock.now

    def cancel(self) -> None:
        self.clock.n_cancelled += 1
