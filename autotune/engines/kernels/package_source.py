"""Configurations from an emitted package. Only its data are read: wisdom.json and measured.json.

Definitions and templates are the installed ones.
"""

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...core.definition import AnyKernel, Device
from ...core.errors import TrialFailure, UsageError, one_line
from ...core.problem import Problem
from ...recommend.duration import Durations, ExpectedTime
from ...recommend.packaged import MEASURED, Experiences, read_measured
from ...recommend.predictor import Predictor
from ...rendering.render import render
from ...runtime.tune_once import Contender
from ...runtime.wisdom import Wisdom
from .known import LookupAnswer, chosen


class PackageSource:
    """An emitted package: an importable module's name, or the path of the folder.

    Raises:
        UsageError: when it is neither, or one of its files is damaged.
    """

    def __init__(self, package: str | Path) -> None:
        self.name = f"package {package}"
        folder = _folder(package)
        self._wisdom = Wisdom.load(folder / "wisdom.json")
        measured = folder / MEASURED  # an older package has none
        self._experiences = Experiences(read_measured(measured), measured) if measured.exists() else {}
        self._predictor, self._durations = Predictor(lambda: self._experiences), dict[str, Durations]()

    def answer(self, kernel: AnyKernel, problem: Problem, device: Device) -> LookupAnswer | str:
        choice = chosen(self._wisdom, kernel, problem, device, self._predictor)
        if isinstance(choice, str):
            return choice
        try:
            if render(kernel, problem, choice.config, numbered=False).key == choice.source_key:
                return LookupAnswer(choice, self.name)
        except TrialFailure as failure:
            return one_line(f"{choice.config} cannot be rendered: {failure.message}")
        why = f"{choice.why}; but its source has changed since"
        unknown = replace(choice, why=why, expected_loss=None, left_out=None, bound=None, evidence=None)
        return LookupAnswer(unknown, self.name, has_changed=True)

    def contenders(self, kernel: AnyKernel, problem: Problem, device: Device, n: int) -> Sequence[Contender]:
        return self._predictor.contenders(kernel, problem, device, n)

    def expected_time(self, kernel: AnyKernel, problem: Problem, device: Device) -> ExpectedTime | None:
        if (experience := self._experiences.get(kernel.name)) is None:
            return None
        if kernel.name not in self._durations:
            self._durations[kernel.name] = Durations(kernel, experience.problems)
        return self._durations[kernel.name].expected(problem, device)

    def read_again(self) -> None:
        """Do nothing: a package does not change."""


def _folder(package: str | Path) -> Path:
    """Returns the folder of an emitted package. It imports nothing from it."""
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
