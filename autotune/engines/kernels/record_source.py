"""Configurations and times from recorded sweeps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ...analysis.experiences import experiences, measured_problem
from ...core.definition import AnyKernel, Device, baked_values
from ...core.errors import UsageError, clipped, one_line
from ...core.problem import Problem
from ...emit.winners import Gathered, gather
from ...recommend.duration import Durations, ExpectedTime
from ...recommend.predictor import Predictor
from ...records.about import About
from ...records.damage import Damaged
from ...records.folder import SweepFolder, find_sweeps
from ...runtime.tune_once import Contender
from .known import LONGEST_REASON, NOTHING, LookupAnswer, chosen


@dataclass(frozen=True)
class RecordedKernel:
    """The valid sweeps of a kernel on one architecture."""

    kernel: AnyKernel
    gathered: Gathered
    tell: Callable[[str], None] = field(repr=False)

    def answer(self, problem: Problem, device: Device, where: str) -> LookupAnswer | str:
        """Returns the lookup's choice, which may be learnt."""
        choice = chosen(self.gathered.wisdom, self.kernel, problem, device, self.predictor)
        return choice if isinstance(choice, str) else LookupAnswer(choice, where)

    @cached_property
    def durations(self) -> Durations:
        """Returns the times in the sweeps."""
        return Durations(self.kernel, [measured_problem(sweep) for sweep in self.gathered.sweeps if sweep.median_s])

    @cached_property
    def predictor(self) -> Predictor:
        """Returns what predicts from these sweeps."""
        return Predictor(lambda: experiences(self.gathered.sweeps, {self.kernel.name: self.kernel}, self.tell))


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

    def contenders(self, kernel: AnyKernel, problem: Problem, device: Device, n: int) -> Sequence[Contender]:
        known = self._on(kernel, device)
        return () if known is None else known.predictor.contenders(kernel, problem, device, n)

    def expected_time(self, kernel: AnyKernel, problem: Problem, device: Device) -> ExpectedTime | None:
        known = self._on(kernel, device)
        return None if known is None else known.durations.expected(problem, device)

    def _on(self, kernel: AnyKernel, device: Device) -> RecordedKernel | None:
        """Returns what is valid on the device's architecture, or None."""
        place = kernel.name, device.arch
        here = [path for path, about in self._abouts.items() if (about.kernel, about.device.arch) == place]
        recorded = self._recorded(kernel, device.arch, here) if here else ""
        return None if isinstance(recorded, str) else recorded

    def _recorded(self, kernel: AnyKernel, arch: str, paths: Sequence[Path]) -> RecordedKernel | str:
        """Returns the valid ones of these sweeps, with any baked fields, or one line that says why there are none."""
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
