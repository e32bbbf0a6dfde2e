"""Tunes an engine's kernels at their first use on its device, while the engine is built."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...core.definition import AnyKernel
from ...core.errors import TrialFailure, UsageError, one_line
from ...core.problem import Problem
from ...devices import device_module
from ...first_use.tuner import tune_first
from ...rendering.render import render
from ...rendering.texts import texts_digest
from ...runtime import gpu
from ...runtime.first_use_choice import choice_of
from ...runtime.tune_once import Contender, Effort, TuningPlace, tuned_once
from ...runtime.tuned_here import Surroundings
from ...source.registry import kernel_reference
from ...system.memory import available_bytes
from ..machine.backend import Backend
from .sources import ConfigSource, LookupAnswer

HERE = "this machine"


@dataclass(frozen=True)
class FirstTuning:
    """Tunes at first use with configs from ``known``; ``tell`` takes lines of progress."""

    backend: Backend
    known: Sequence[ConfigSource]
    effort: Effort
    tell: Callable[[str], None]

    def answer(self, kernel: AnyKernel, problem: Problem) -> LookupAnswer | str:
        """Returns the fastest of a few configs, tuned now or earlier; or one line that says why there is none."""
        is_gpu, index = self.backend.device.kind == "cuda", int(self.backend.identifier.partition(":")[2] or 0)
        compiler = device_module(self.backend.device.kind).compiler(self.backend.device)
        around = Surroundings(self.backend.device, gpu.driver() if is_gpu else "", compiler, texts_digest(kernel))
        free_bytes = gpu.free_bytes(index) if is_gpu else available_bytes()
        place = TuningPlace(around, self.backend.identifier, kernel_reference(kernel), free_bytes)
        try:
            outcome = tuned_once(
                kernel, problem, place, lambda: self._candidates(kernel, problem), self.effort, tune_first, self.tell
            )
        except (UsageError, TrialFailure) as error:
            return one_line(str(error))
        if isinstance(outcome, str):
            return outcome
        choice = choice_of(outcome, kernel, problem, lambda config: render(kernel, problem, config, numbered=False).key)
        return choice if isinstance(choice, str) else LookupAnswer(choice, HERE)

    def _candidates(self, kernel: AnyKernel, problem: Problem) -> Sequence[Contender]:
        """Returns the most promising configs. Raises UsageError if none may be tried beside other processes."""
        device = self.backend.device
        if device.kind == "cuda" and (why := gpu.shares_faults()) is not None:
            raise UsageError(why)
        found = [each for one in self.known for each in one.contenders(kernel, problem, device, self.effort.n)]
        return list({one.config: one for one in found}.values())[: self.effort.n]
