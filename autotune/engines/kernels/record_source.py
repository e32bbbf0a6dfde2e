"""Configurations and times from recorded sweeps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ...analysis.predictions import measured_problem
from ...core.definition import AnyKernel, Device, baked_values
from ...core.errors import UsageError, clipped, one_line
from ...core.problem import Problem
from ...emit.foresight import Foresight, foresight
from ...emit.winners import Gathered, gather
from ...prediction.predictor import Predictor
from ...prediction.promising import recorded_winners
from ...records.about import About
from ...records.damage import Damaged
from ...records.folder import SweepFolder, find_sweeps
from ...runtime.lookup import PREDICTED, Prediction
from ...transfer.duration import Durations, ExpectedTime
from .foreseen import predictor_of
from .known import LONGEST_REASON, NOTHING, Hints, LookupAnswer, chosen


@dataclass(frozen=True)
class RecordedKernel:
    """The valid sweeps of a kernel on one architecture.

    Implements ``runtime.lookup.Predicting``.
    """

    kernel: AnyKernel
    gathered: Gathered
    tell: Callable[[str], None] = field(repr=False)

    def predicted(self, kernel: AnyKernel, problem: Problem, device: Device) -> Prediction | str:
        return self._predictor.predicted(kernel, problem, device)

    def default(self, kernel: AnyKernel, problem: Problem, device: Device) -> Prediction | str:
        return self._predictor.default(kernel, problem, device)

    def answer(self, problem: Problem, device: Device, where: str) -> LookupAnswer | str:
        """Returns the lookup's choice, which may be predicted on a GPU."""
        predicting = None if device.kind == "host" else self
        choice = chosen(self.gathered.wisdom, self.kernel, problem, device, predicting)
        if isinstance(choice, str):
            return choice
        if choice.tier == PREDICTED:
            losses = replace(self.gathered.wisdom, losses=self._foresight.losses)
            if (loss := losses.loss(self.kernel.name, device, PREDICTED)) is not None:
                expected = loss.median if loss.where == device.name else None
                choice = replace(choice, expected_loss=expected, left_out=loss)
        return LookupAnswer(choice, where)

    def hints(self, problem: Problem, device: Device) -> Hints:
        """Returns what the model ranks first on a GPU, and winners of these sweeps."""
        ranking = () if device.kind == "host" else self._predictor.ranking(self.kernel, problem, device)
        return Hints(ranking, recorded_winners(self.gathered.wisdom, self.kernel, problem, device))

    @cached_property
    def durations(self) -> Durations:
        """Returns the times in the sweeps."""
        return Durations(self.kernel, [measured_problem(sweep) for sweep in self.gathered.sweeps if sweep.median_s])

    @cached_property
    def _foresight(self) -> Foresight:
        return foresight(self.gathered.sweeps, {self.kernel.name: self.kernel}, self.tell)

    @cached_property
    def _predictor(self) -> Predictor:
        experience = self._foresight.experiences.get(self.kernel.name)
        return Predictor(dict) if experience is None else predictor_of(self.kernel, experience)


class RecordSource:
    """Recorded sweeps at or under a folder. A kernel's sweeps are read when it is first needed.

    Args:
        tell: takes a line when a model is fitted, which takes seconds; the user's cache keeps it.

    Raises:
        UsageError: when there is no sweep, unless ``may_be_empty``, or no sweep can be read.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None], may_be_empty: bool = False) -> None:
        self.name, self._folder, self._tell, self._may_be_empty = f"records in {folder}", folder, tell, may_be_empty
        self.read_again()

    def read_again(self) -> None:
        """Look for sweeps again, after some were added."""
        self._abouts: dict[Path, About] = {sweep.path: sweep.about() for sweep in self._sweeps()}
        self._kernels = dict[tuple[str, str], RecordedKernel | str]()

    def answer(self, kernel: AnyKernel, problem: Problem, device: Device) -> LookupAnswer | str:
        of_kernel = {path: about for path, about in self._abouts.items() if about.kernel == kernel.name}
        here = {path: about for path, about in of_kernel.items() if about.device.arch == device.arch}
        baked = baked_values(problem)
        if (device.kind == "host" or not here) and not any(about.baked_values == baked for about in here.values()):
            elsewhere = any(about.baked_values == baked for about in of_kernel.values())
            return NOTHING + elsewhere * f" on {device.name}, nor on another device of {device.arch}"
        recorded = self._recorded(kernel, device.arch, list(here))
        return recorded if isinstance(recorded, str) else recorded.answer(problem, device, self.name)

    def hints(self, kernel: AnyKernel, problem: Problem, device: Device) -> Hints:
        alike = [
            p for p, about in self._abouts.items() if (about.kernel, about.device.arch) == (kernel.name, device.arch)
        ]
        known = self._recorded(kernel, device.arch, alike) if alike else ""
        return Hints() if isinstance(known, str) else known.hints(problem, device)

    def expected_time(self, kernel: AnyKernel, problem: Problem, device: Device) -> ExpectedTime | None:
        place = kernel.name, device.arch
        here = [path for path, about in self._abouts.items() if (about.kernel, about.device.arch) == place]
        recorded = self._recorded(kernel, device.arch, here) if here else ""
        return None if isinstance(recorded, str) else recorded.durations.expected(problem, device)

    def _recorded(self, kernel: AnyKernel, arch: str, paths: Sequence[Path]) -> RecordedKernel | str:
        """Returns the valid ones of these sweeps, with any baked fields, or one line that says why there are none.

        Sweeps with other baked fields show the loss of each tier of the lookup.
        """
        if (kernel.name, arch) not in self._kernels:
            try:
                recorded: RecordedKernel | str = RecordedKernel(kernel, gather(paths), self._tell)
            except UsageError as error:
                recorded = clipped(one_line(str(error).removeprefix("nothing can be emitted:")), LONGEST_REASON)
            self._kernels[kernel.name, arch] = recorded
        return self._kernels[kernel.name, arch]

    def _sweeps(self) -> list[SweepFolder]:
        try:
            return find_sweeps(self._folder)
        except Damaged:
            raise
        except UsageError:
            if self._may_be_empty:
                return []
            raise
