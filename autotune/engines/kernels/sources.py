"""Where an engine's configurations come from: an emitted package, or recorded sweeps; and which of two answers is used.

Only a package's data are read, wisdom.json and measured.json; definitions and templates are the installed ones.
"""

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TypeVar

from ...core.definition import AnyKernel, Device, baked_values, runtime_fields
from ...core.errors import TrialFailure, UsageError, clipped, one_line
from ...core.problem import Problem
from ...recommend.duration import Durations, ExpectedTime
from ...recommend.experience import MeasuredProblem
from ...recommend.packaged import MEASURED, Experiences, read_measured
from ...recommend.predictor import Predictor
from ...records.as_recorded import config_of
from ...records.damage import Damaged
from ...records.folder import find_sweeps
from ...rendering.render import render
from ...runtime.lookup import EXACT, NEAREST, TIERS, Choice, choose
from ...runtime.tune_once import Attempt
from ...runtime.wisdom import Entry, Fallback, Wisdom

LONGEST_REASON = 300  # characters
GOOD_LOSS = 0.05  # the nearest recorded size needs no tuning if it loses less
E = TypeVar("E", Entry, Fallback)


@dataclass(frozen=True)
class LookupAnswer:
    """The lookup's choice, and its origin. A choice whose source is not the measured one has no evidence."""

    choice: Choice
    where: str

    @property
    def is_exact(self) -> bool:
        """Returns whether exactly this problem was tuned on this device, and its source is as it was."""
        return self.choice.tier == EXACT and self.choice.evidence is not None

    @property
    def is_good(self) -> bool:
        """Returns whether tuning cannot gain more than GOOD_LOSS."""
        loss = self.choice.expected_loss
        return self.is_exact or (self.choice.tier == NEAREST and loss is not None and loss <= GOOD_LOSS)


def best(answers: Iterable[LookupAnswer]) -> LookupAnswer | None:
    """Returns the exact answer, or else the one with the least bound, or of the best tier if none has one."""

    def rank(answer: LookupAnswer) -> tuple[bool, float, int]:
        bound = answer.choice.bound
        return not answer.is_exact, inf if bound is None else bound, TIERS.index(answer.choice.tier)

    return min(answers, key=rank, default=None)


@dataclass(frozen=True)
class Known:
    """What a source knows of one kernel: winners, recorded problems, and what predicts at others."""

    kernel: AnyKernel
    wisdom: Wisdom
    problems: Sequence[MeasuredProblem]
    predictor: Predictor

    @cached_property
    def durations(self) -> Durations:
        return Durations(self.kernel, self.problems)

    @cached_property
    def valid(self) -> Wisdom:
        """Returns the kernel's winners whose configs are in its present space, with these configs."""
        wisdom, kernel = self.wisdom, self.kernel
        entries, fallbacks = _in_space(wisdom.entries, kernel), _in_space(wisdom.fallbacks, kernel)
        return replace(wisdom, entries=entries, fallbacks=fallbacks)

    def choice(self, problem: Problem, device: Device) -> Choice | str:
        """Returns the lookup's choice, or one line that says why there is none."""
        sizes = {name: getattr(problem, name) for name in runtime_fields(type(problem))}
        try:
            choice = choose(self.valid, self.kernel, baked_values(problem), sizes, device, self.predictor)
            if render(self.kernel, problem, choice.config, numbered=False).key == choice.source_key:
                return choice
        except UsageError as error:
            return clipped(one_line(str(error)), LONGEST_REASON)
        except TrialFailure as failure:
            return one_line(f"the chosen config cannot be rendered: {failure.message}")
        why = f"{choice.why}; but its source has changed since"
        return replace(choice, why=why, expected_loss=None, left_out=None, bound=None, evidence=None)


def _in_space(recorded: tuple[E, ...], kernel: AnyKernel) -> tuple[E, ...]:
    found = []
    for one in recorded:
        with suppress(UsageError):
            if one.kernel == kernel.name:
                found.append(replace(one, config=config_of(kernel, one.config)))
    return tuple(found)


class ConfigSource:
    """A place that may know configurations. Each kernel is read when it is first asked for."""

    name: str

    def __init__(self) -> None:
        self._read = dict[tuple[str, str], Known | str]()

    def read(self, kernel: AnyKernel, device: Device) -> Known | str:
        """Returns what is known of a kernel on the device's architecture, or one line that says why nothing is."""
        raise NotImplementedError

    def read_again(self) -> None:
        """Reads again what is asked for from now on, since more may have been recorded."""
        self._read.clear()

    def _known(self, kernel: AnyKernel, device: Device) -> Known | str:
        place = kernel.name, device.arch
        if place not in self._read:
            self._read[place] = self.read(kernel, device)
        return self._read[place]

    def answer(self, kernel: AnyKernel, problem: Problem, device: Device) -> LookupAnswer | str:
        """Returns the lookup's choice, or one line that says why there is none."""
        known = self._known(kernel, device)
        found = known if isinstance(known, str) else known.choice(problem, device)
        return found if isinstance(found, str) else LookupAnswer(found, self.name)

    def contenders(self, kernel: AnyKernel, problem: Problem, device: Device, n: int) -> Sequence[Attempt]:
        """Returns up to ``n`` configs to try on ``device``, the most promising first."""
        known = self._known(kernel, device)
        return () if isinstance(known, str) else known.predictor.contenders(kernel, problem, device, n)

    def expected_time(self, kernel: AnyKernel, problem: Problem, device: Device) -> ExpectedTime | None:
        """Returns the time of a launch with the best known config; None if it is not known."""
        known = self._known(kernel, device)
        return None if isinstance(known, str) else known.durations.expected(problem, device)


class PackageSource(ConfigSource):
    """An emitted package: an importable module's name, or the path of the folder.

    Raises:
        UsageError: when it is neither, or one of its files is damaged.
    """

    def __init__(self, package: str | Path) -> None:
        super().__init__()
        self.name = f"package {package}"
        folder = _folder(package)
        self._wisdom = Wisdom.load(folder / "wisdom.json")
        measured = folder / MEASURED  # an older package has none
        self._experiences = Experiences(read_measured(measured), measured) if measured.exists() else {}
        self._predictor = Predictor(lambda: self._experiences)

    def read(self, kernel: AnyKernel, device: Device) -> Known | str:
        experience = self._experiences.get(kernel.name)
        return Known(kernel, self._wisdom, experience.problems if experience else (), self._predictor)


class RecordSource(ConfigSource):
    """Recorded sweeps at or under a folder.

    Args:
        tell: takes a line when trees are fitted, which takes seconds; the user's cache keeps them.

    Raises:
        UsageError: when there is no sweep, unless ``may_be_empty``, or no sweep can be read.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None], may_be_empty: bool = False) -> None:
        super().__init__()
        self.name, self._folder, self._tell, self._may_be_empty = f"records in {folder}", folder, tell, may_be_empty
        self.read_again()

    def read_again(self) -> None:
        super().read_again()
        try:
            self._abouts = {sweep.path: sweep.about() for sweep in find_sweeps(self._folder)}
        except Damaged:
            raise
        except UsageError:
            if not self._may_be_empty:
                raise
            self._abouts = {}

    def read(self, kernel: AnyKernel, device: Device) -> Known | str:
        from ...analysis.experiences import experiences, measured_problem
        from ...emit.winners import gather

        place = kernel.name, device.arch
        here = [path for path, about in self._abouts.items() if (about.kernel, about.device.arch) == place]
        if not here:
            return f"nothing of {kernel.name} is recorded on {device.name}, nor on another device of {device.arch}"
        try:
            found = gather(here)
        except UsageError as error:
            return clipped(one_line(str(error).removeprefix("nothing can be emitted:")), LONGEST_REASON)
        problems = [measured_problem(sweep) for sweep in found.sweeps if sweep.median_s]
        predictor = Predictor(lambda: experiences(found.sweeps, {kernel.name: kernel}, self._tell))
        return Known(kernel, found.wisdom, problems, predictor)


def _folder(package: str | Path) -> Path:
    """Returns the folder of an emitted package. It imports nothing from it."""
    folder = Path(package)
    if not folder.is_dir():
        with suppress(ImportError, ValueError):  # a package around it is missing, or it is not a name
            spec = importlib.util.find_spec(str(package))
            folder = Path(next(iter((spec and spec.submodule_search_locations) or ()), folder))
    if not (folder / "wisdom.json").is_file():
        raise UsageError(
            f"package {package}: there is no folder and no importable module of that name with a wisdom.json; "
            "`autotune emit RESULTS --out FOLDER` writes one"
        )
    return folder
