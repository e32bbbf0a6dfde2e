"""Chooses the configuration for a call of a tuned kernel, tunes it at its first use if asked, and logs the choice."""

import logging
from collections.abc import Mapping

from ..core.definition import Device, Kernel, runtime_fields
from ..core.problem import Problem
from . import gpu
from .first_use_choice import MAY_TUNE, TuningHere
from .lookup import EXACT, Choice, Predicting, choose
from .wisdom import Wisdom


class Chooser:
    """Chooses for one kernel with the baked fields ``baked``. Each choice that is not exact is logged once."""

    def __init__(
        self,
        kernel: Kernel[Problem],
        wisdom: Wisdom,
        baked: Mapping[str, object],
        log: logging.Logger,
        predicting: Predicting | None,
        tuning: TuningHere | None,
    ) -> None:
        self._kernel, self._wisdom, self._baked, self._log = kernel, wisdom, baked, log
        self._predicting, self._tuning = predicting, tuning
        self._has_begun = False  # whether the kernel has been prepared or called: then calls no longer tune
        self._logged: set[str] = set()

    def looked_up(self, sizes: Mapping[str, object] | None, device: Device) -> Choice:
        """Returns ``lookup.choose``, which is not logged."""
        return choose(self._wisdom, self._kernel, self._baked, sizes, device, self._predicting)

    def chosen(self, sizes: Mapping[str, object] | None, device: Device) -> Choice:
        """Returns ``lookup.choose``."""
        return self._logs(self.looked_up(sizes, device))

    def tuned_here(self, problem: Problem, device: Device, may_not: str) -> Choice | None:
        """Returns the choice of the tier ``first use``, or None; ``may_not`` as in ``TuningHere``."""
        found = self._tuning.choice(self._kernel, problem, device, may_not) if self._tuning else None
        return found and self._logs(found)

    def prepared(self, problem: Problem, device: Device) -> Choice:
        """Returns the choice for all sizes of ``problem``, which may be tuned for it."""
        self._has_begun = True
        return self.tuned_here(problem, device, MAY_TUNE) or self.chosen(_sizes(problem), device)

    def called(self, problem: Problem, device: Device, index: int, library: str, stream: object) -> Choice:
        """Returns the choice for a call. It tunes only if the kernel has not run, and the stream records no graph."""
        may_not = f"the kernel runs already; {self._kernel.name}.prepare(..) tunes further sizes" * self._has_begun
        self._has_begun = True
        with gpu.made_current(index):
            if self._tuning is not None and not may_not:
                own = gpu.stream_of(stream, index) if stream is not None or library == "torch" else gpu.current_stream()
                may_not = "the stream records a graph" * gpu.is_capturing(own)
            return self.tuned_here(problem, device, may_not) or self.chosen(_sizes(problem), device)

    def _logs(self, choice: Choice) -> Choice:
        seen = f"{choice.tier} {choice.source_key} {choice.device}"
        if choice.tier != EXACT and seen not in self._logged:
            self._logged.add(seen)
            self._log.warning("%s", choice.line)
        return choice


def _sizes(problem: Problem) -> dict[str, object]:
    return {name: getattr(problem, name) for name in runtime_fields(type(problem))}
