"""Reads an engine's configurations from an emitted package or from recorded sweeps, and orders their answers.

Only a package's data are read, wisdom.json and measured.json; definitions and templates are the installed ones.
"""

import importlib.util
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import TypeVar

from ...core.definition import AnyKernel, Device, baked_values, runtime_fields
from ...core.errors import TrialFailure, UsageError, clipped, one_line
from ...core.problem import Problem
from ...recommend.duration import Durations
from ...recommend.packaged import MEASURED, Experiences
from ...recommend.predictor import Predictor
from ...records.as_recorded import config_of
from ...records.damage import Damaged
from ...records.folder import find_sweeps
from ...rendering.render import render
from ...runtime.lookup import EXACT, NEAREST, TIERS, Choice, choose
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

    @property
    def rank(self) -> tuple[bool, float, int]:
        """Returns what orders answers: the exact one first, then by bound, where it is unknown or equal by tier."""
        bound = self.choice.bound
        return not self.is_exact, inf if bound is None else bound, TIERS.index(self.choice.tier)


@dataclass(frozen=True)
class KnownKernel:
    """Has what a source knows of one kernel on one architecture: winners, times, and what predicts configs.

    ``nothing``: why it knows nothing.
    """

    kernel: AnyKernel
    wisdom: Wisdom
    durations: Durations
    predictor: Predictor
    nothing: str = ""

    @cached_property
    def valid(self) -> Wisdom:
        """Returns the kernel's winners whose configs are in its present space, with these configs."""
        wisdom, kernel = self.wisdom, self.kernel
        entries, fallbacks = _in_space(wisdom.entries, kernel), _in_space(wisdom.fallbacks, kernel)
        return replace(wisdom, entries=entries, fallbacks=fallbacks)

    def choice(self, problem: Problem, device: Device) -> Choice | str:
        """Returns the lookup's choice, or one line that says why there is none."""
        if self.nothing:
            return self.nothing
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
        self._read = dict[tuple[str, str], KnownKernel]()

    def read(self, kernel: AnyKernel, device: Device) -> KnownKernel:
        raise NotImplementedError

    def read_again(self) -> None:
        """Reads again what is asked for from now on, since more may have been recorded."""
        self._read.clear()

    def known(self, kernel: AnyKernel, device: Device) -> KnownKernel:
        """Returns what is known of a kernel on the device's architecture."""
        place = kernel.name, device.arch
        if place not in self._read:
            self._read[place] = self.read(kernel, device)
        return self._read[place]


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
        self._experiences = Experiences(measured) if measured.exists() else {}
        self._predictor = Predictor(lambda: self._experiences)

    def read(self, kernel: AnyKernel, device: Device) -> KnownKernel:
        experience = self._experiences.get(kernel.name)
        durations = Durations(kernel, experience.problems if experience else (), device.arch)
        return KnownKernel(kernel, self._wisdom, durations, self._predictor)


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
        except UsageError as error:
            if isinstance(error, Damaged) or not self._may_be_empty:
                raise
            self._abouts = {}

    def read(self, kernel: AnyKernel, device: Device) -> KnownKernel:
        from ...analysis.experiences import experiences, measured_problem
        from ...emit.winners import gather, valid

        place = kernel.name, device.arch
        nothing = partial(KnownKernel, kernel, Wisdom((), ()), Durations(kernel, (), device.arch), Predictor(dict))
        here = [path for path, about in self._abouts.items() if (about.kernel, about.device.arch) == place]
        if not here:
            why = f"nothing of {kernel.name} is recorded on {device.name}, nor on another device of {device.arch}"
            return nothing(why)
        try:
            found = gather(valid(here))
        except UsageError as error:
            return nothing(clipped(one_line(str(error).removeprefix("nothing can be emitted:")), LONGEST_REASON))
        problems = (measured_problem(sweep) for sweep in found.sweeps if sweep.median_s)
        predictor = Predictor(lambda: experiences(found.sweeps, {kernel.name: kernel}, self._tell))
        return KnownKernel(kernel, found.wisdom, Durations(kernel, problems, device.arch), predictor)


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
