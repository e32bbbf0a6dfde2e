"""What is known of configurations for engines: an emitted package's wisdom, and recorded sweeps.

Both are data. Of a package only wisdom.json is read; definitions and templates are those that are installed here.
"""

import importlib.util
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

from ...core.definition import AnyKernel, Device, baked_values, runtime_fields
from ...core.errors import TrialFailure, UsageError, clipped, one_line
from ...core.problem import Problem
from ...records.as_recorded import config_of
from ...records.damage import Damaged
from ...records.folder import SweepFolder, find_sweeps
from ...rendering.render import render
from ...runtime.lookup import ARCHITECTURE, DEFAULT, EXACT, NEAREST, Choice, choose
from ...runtime.wisdom import Entry, Fallback, Wisdom

NOTHING = "nothing is known of these baked fields"
LONGEST_REASON = 300  # characters
GOOD_LOSS = 0.05  # the expected loss up to which the nearest recorded size is good enough not to tune
E = TypeVar("E", Entry, Fallback)


@dataclass(frozen=True)
class LookupAnswer:
    """The lookup's choice and where it was looked up.

    ``has_changed``: its source is not what was measured.
    ``seconds``: what a launch takes, if it was measured on this very device.
    """

    choice: Choice
    where: str
    has_changed: bool = False
    seconds: float | None = None

    @property
    def is_good(self) -> bool:
        """Returns whether tuning promises no more than GOOD_LOSS."""
        choice, loss = self.choice, self.choice.expected_loss
        if self.has_changed or loss is None:
            return False
        return choice.tier == EXACT or (choice.tier == NEAREST and loss <= GOOD_LOSS)


class ConfigSource(Protocol):
    """A place that may know configurations: a package, or recorded sweeps."""

    name: str

    def answer(self, kernel: AnyKernel, problem: Problem, device: Device) -> LookupAnswer | str:
        """Returns the lookup's choice; or why there is none, in one line."""


class PackageSource:
    """An emitted package: an importable module's name, or the path of the folder.

    Raises:
        UsageError: when it is neither, or its wisdom.json is damaged.
    """

    def __init__(self, package: str | Path) -> None:
        self.name = f"package {package}"
        self._wisdom = Wisdom.load(_folder(package) / "wisdom.json")

    def answer(self, kernel: AnyKernel, problem: Problem, device: Device) -> LookupAnswer | str:
        choice = _chosen(self._wisdom, kernel, problem, device)
        if isinstance(choice, str):
            return choice
        try:
            if render(kernel, problem, choice.config).key == choice.source_key:
                return LookupAnswer(choice, self.name, seconds=_seconds(self._wisdom, kernel, problem, choice))
        except TrialFailure as failure:
            return one_line(f"{choice.config} cannot be rendered: {failure.message}")
        why = f"{choice.why}; but its source has changed since"
        return LookupAnswer(replace(choice, why=why, expected_loss=None, left_out=None), self.name, has_changed=True)


class RecordSource:
    """Recorded sweeps at or under a folder; they are looked up when they are asked for, since sweeps may be added.

    Raises:
        UsageError: when there is none, unless ``may_be_empty``; or when none can be read.
    """

    def __init__(self, folder: Path, may_be_empty: bool = False) -> None:
        self.name, self._folder, self._may_be_empty = f"records in {folder}", folder, may_be_empty
        self._sweeps()

    def answer(self, kernel: AnyKernel, problem: Problem, device: Device) -> LookupAnswer | str:
        from ...emit.winners import gather

        abouts = {sweep.path: sweep.about() for sweep in self._sweeps()}
        of_kernel = [path for path, about in abouts.items() if about.kernel == kernel.name]
        if not any(abouts[path].baked_values == baked_values(problem) for path in of_kernel):
            return NOTHING
        of_kernel = [path for path in of_kernel if abouts[path].device.arch == device.arch]
        if not any(abouts[path].baked_values == baked_values(problem) for path in of_kernel):
            return f"{NOTHING} on {device.name}, nor on another device of {device.arch}"
        try:
            wisdom = gather(of_kernel)[0]  # with other baked fields, too: they tell what a tier of the lookup loses
        except UsageError as error:  # nothing measured there holds any more
            return clipped(one_line(str(error).removeprefix("nothing can be emitted:")), LONGEST_REASON)
        choice = _chosen(wisdom, kernel, problem, device)
        if isinstance(choice, str):
            return choice
        return LookupAnswer(choice, self.name, seconds=_seconds(wisdom, kernel, problem, choice))

    def _sweeps(self) -> list[SweepFolder]:
        try:
            return find_sweeps(self._folder)
        except Damaged:
            raise
        except UsageError:
            if self._may_be_empty:
                return []
            raise


def best(answers: Iterable[LookupAnswer]) -> LookupAnswer | None:
    """Returns the answer of the best tier, the first of several; what has changed since comes after what has not."""
    tiers = (EXACT, NEAREST, ARCHITECTURE, DEFAULT)
    return min(answers, key=lambda a: (a.has_changed, tiers.index(a.choice.tier)), default=None)


def _chosen(wisdom: Wisdom, kernel: AnyKernel, problem: Problem, device: Device) -> Choice | str:
    """Looks up among the configurations that today's definition allows; returns why there is none, in one line."""
    baked = baked_values(problem)
    known = replace(wisdom, entries=_in_space(wisdom.entries, kernel), fallbacks=_in_space(wisdom.fallbacks, kernel))
    if baked not in known.baked_sets(kernel.name):
        return NOTHING
    sizes = {name: getattr(problem, name) for name in runtime_fields(type(problem))}
    try:
        return choose(known, kernel, baked, sizes, device)
    except UsageError as error:
        return clipped(one_line(str(error)), LONGEST_REASON)


def _seconds(wisdom: Wisdom, kernel: AnyKernel, problem: Problem, choice: Choice) -> float | None:
    """Returns the median that was recorded on this device; of another size, by the bytes that each has to move."""
    entry = next((entry for entry in wisdom.entries if entry.evidence is choice.evidence), None)
    if entry is None or choice.tier not in (EXACT, NEAREST):
        return None
    measured = kernel.problem({**entry.baked, **entry.runtime})
    return entry.evidence.median_s * kernel.work(problem).bytes / kernel.work(measured).bytes


def _in_space(known: tuple[E, ...], kernel: AnyKernel) -> tuple[E, ...]:
    """Returns those of a kernel whose configs are in its present space, as configs of it."""
    found = []
    for one in known:
        with suppress(UsageError):
            if one.kernel == kernel.name:
                found.append(replace(one, config=config_of(kernel, one.config)))
    return tuple(found)


def _folder(package: str | Path) -> Path:
    """Returns the folder of an emitted package; nothing of it is imported."""
    folder = Path(package)
    if not folder.is_dir():
        folder = _importable(str(package)) or folder
    if not (folder / "wisdom.json").is_file():
        raise UsageError(
            f"package {package}: there is no folder and no importable module of that name with a wisdom.json; "
            "`autotune emit RESULTS --out FOLDER` writes one"
        )
    return folder


def _importable(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a package around it is missing, or it is not a name
        return None
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None
