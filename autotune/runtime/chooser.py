"""Chooses the configuration for a call of a tuned kernel, tunes it at its first use if asked, and logs the choice."""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ..core.definition import Device, Kernel, problem_name, runtime_fields
from ..core.problem import Problem
from . import gpu
from .lookup import EXACT, Choice, Predicting, choose
from .tune_once import FirstUse
from .wisdom import Wisdom

ONLY_READ = "it is only asked for"


@dataclass
class Chooser:
    """Chooses for one kernel with the baked fields ``baked``. Each choice that is not exact is logged once."""

    kernel: Kernel[Problem]
    wisdom: Wisdom
    baked: Mapping[str, object]
    log: logging.Logger
    predicting: Predicting | None
    tuning: FirstUse | None
    _has_begun: bool = False  # whether the kernel has been prepared or called: then calls no longer tune
    _logged: set[str] = field(default_factory=set)

    def looked_up(self, sizes: Mapping[str, object] | None, device: Device) -> Choice:
        """Returns ``lookup.choose``, which is not logged."""
        return choose(self.wisdom, self.kernel, self.baked, sizes, device, self.predicting)

    def chosen(self, sizes: Mapping[str, object] | None, device: Device) -> Choice:
        """Returns ``lookup.choose``."""
        return self._logs(self.looked_up(sizes, device))

    def tuned_here(self, problem: Problem, device: Device, may_not: str) -> Choice | None:
        """Returns the choice of the tier ``first use``; None if the other tiers decide, and the log says why.

        ``may_not``: why nothing is tuned now, which is not logged if it is ONLY_READ; "": it may be tuned.
        """
        fields, place = asdict(problem), (self.kernel.name, device.name)
        own = (one for one in self.wisdom.entries if (one.kernel, one.device.name) == place)
        if self.tuning is None or any({**fields, **one.baked, **one.runtime} == fields for one in own):
            return None
        found = self.tuning.choice(self.kernel, problem, device, may_not)
        if not isinstance(found, str):
            return self._logs(found)
        if found != ONLY_READ:
            self._log_once(f"{self.kernel.name}[{problem_name(problem)}]: without a first use: {found}")
        return None

    def prepared(self, problem: Problem, device: Device, may_not: str = "") -> Choice:
        """Returns the choice for all sizes of ``problem``, which may be tuned for it; ``may_not`` as above."""
        self._has_begun = True
        sizes = {name: getattr(problem, name) for name in runtime_fields(type(problem))}
        return self.tuned_here(problem, device, may_not) or self.chosen(sizes, device)

    def called(self, problem: Problem, device: Device, index: int, library: str, stream: object) -> Choice:
        """Returns the choice for a call. It tunes only if the kernel has not run, and the stream records no graph."""
        may_not = f"the kernel runs already; {self.kernel.name}.prepare(..) tunes further sizes" * self._has_begun
        with gpu.made_current(index):
            if self.tuning is not None and not may_not:
                own = gpu.stream_of(stream, index) if stream is not None or library == "torch" else gpu.current_stream()
                may_not = "the stream records a graph" * gpu.is_capturing(own)
            return self.prepared(problem, device, may_not)

    def _logs(self, choice: Choice) -> Choice:
        if choice.tier != EXACT:
            self._log_once(choice.line, f"{choice.tier} {choice.source_key} {choice.device}")
        return choice

    def _log_once(self, line: str, what: str = "") -> None:
        """Logs a line, unless one about the same (``what``, or the line itself) was logged before."""
        if (what or line) not in self._logged:
            self._logged.add(what or line)
            self.log.warning("%s", line)
