"""Predicts the time of a kernel's launch at a problem from the best times at recorded problems.

A Gaussian process over the problem's fields, in octaves, predicts the logarithm of time / floor. The floor is the time
according to the device's data sheet (``floor.py``). It covers most of the effect of sizes and devices, so the process
has little to learn. All times of one architecture are fitted together.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, log, log2
from statistics import fmean

import numpy as np

from ..core.definition import Device, Kernel
from ..core.problem import Problem, named_fields
from ..core.units import seconds_text
from .covariance import Hyperparameters, Prior, squared_differences
from .distance import MISMATCH, apart, is_number, octave
from .experience import MeasuredProblem
from .floor import Floor, bytes_per_s, floor_of
from .posterior import Posterior

HERE, ELSEWHERE, EXPECTED = HOW = "measured here", "scaled from another GPU", "predicted"
SAME = 0.01  # problems within so many octaves count as equal, such as a buffer that is a few samples longer
PRIOR = Prior(weight=(-2.5, 1.0))  # an octave of one field reduces correlation to 0.99: the floor covers the rest
N_STEPS = 40


@dataclass(frozen=True)
class ExpectedTime:
    """The expected time of a launch with the best known config, and its source: one of HOW."""

    seconds: float
    how: str

    def __str__(self) -> str:
        return f"{seconds_text(self.seconds)} ({self.how})"


@dataclass(frozen=True)
class _Timed:
    problem: Problem
    device: Device
    seconds: float
    floor: Floor

    @property
    def log_ratio(self) -> float:
        return log(self.seconds / self.floor.seconds)


class Durations:
    """The recorded times of a kernel, and predictions from them. ``problems``: recorded ones, on any devices."""

    def __init__(self, kernel: Kernel[Problem], problems: Iterable[MeasuredProblem]) -> None:
        self._kernel, self._problems = kernel, tuple(problems)
        self._known: dict[str, _Known | None] = {}  # architecture -> times

    def expected(self, problem: Problem, device: Device) -> ExpectedTime | None:
        """Returns the expected time; None if nothing was recorded on a device of this architecture.

        If the same problem was recorded on this device, its time is returned; if on other devices of the architecture,
        this device's floor times the geometric mean of time / floor there. Other times are predicted.
        """
        durations = self._of(device.arch)
        if durations is None:
            return None
        floor = durations.floor(problem, device)
        same = [timed for timed in durations.timed if _apart(timed.problem, problem) <= SAME]
        for timed in sorted(same, key=lambda timed: _apart(timed.problem, problem)):
            if timed.device.name == device.name:
                return ExpectedTime(timed.seconds, HERE)
        if same:
            ratio = fmean(timed.log_ratio for timed in same)
            return ExpectedTime(floor.seconds * exp(ratio), ELSEWHERE)
        return ExpectedTime(floor.seconds * exp(durations.predicted(problem, floor)), EXPECTED)

    def left_out_errors(self, arch: str) -> list[tuple[MeasuredProblem, float]]:
        """Returns predicted / recorded time for each problem, predicted from all others of the architecture."""
        durations = self._of(arch)
        errors = []
        for timed in durations.timed if durations else ():
            assert durations is not None
            others = durations.without(lambda other, timed=timed: _apart(other.problem, timed.problem) <= SAME)  # type: ignore[misc]
            if others.timed:
                error = exp(others.predicted(timed.problem, timed.floor) - timed.log_ratio)
                errors.append((MeasuredProblem(named_fields(timed.problem), timed.device, (), timed.seconds), error))
        return errors

    def _of(self, arch: str) -> "_Known | None":
        if arch not in self._known:
            given = [one for one in self._problems if one.device.arch == arch]
            self._known[arch] = _known_of(self._kernel, given)
        return self._known[arch]


@dataclass(frozen=True)
class _Known:
    """The times of one architecture, with fitted length scales; ``usual_memory``: bytes/s of unknown devices."""

    kernel: Kernel[Problem]
    timed: tuple[_Timed, ...]
    usual_memory: float
    hyper: Hyperparameters

    def floor(self, problem: Problem, device: Device) -> Floor:
        return floor_of(self.kernel, problem, device, bytes_per_s(device) or self.usual_memory)

    def without(self, left_out: Callable[[_Timed], bool]) -> "_Known":
        """Returns these times without some problems; the length scales stay."""
        return replace(self, timed=tuple(timed for timed in self.timed if not left_out(timed)))

    def predicted(self, problem: Problem, floor: Floor) -> float:
        """Returns the logarithm of time / floor."""
        points = [(named_fields(timed.problem), timed.floor) for timed in self.timed]
        columns, groups = _place([*points, (named_fields(problem), floor)])
        n, values = len(points), np.array([timed.log_ratio for timed in self.timed])
        posterior = Posterior(columns, groups, self.hyper, range(n), np.array([n]))
        mean, deviation = _scale(values)
        return float(mean + deviation * posterior.mean((values - mean) / deviation)[0])


def _known_of(kernel: Kernel[Problem], problems: Sequence[MeasuredProblem]) -> _Known | None:
    """Returns the times of one architecture with fitted length scales; None if there are no times."""
    known_memory = sorted(rate for one in problems if (rate := bytes_per_s(one.device)))
    usual = known_memory[len(known_memory) // 2] if known_memory else 1e12
    timed = []
    for one in problems:
        try:
            problem = kernel.problem(dict(one.problem))
            floor = floor_of(kernel, problem, one.device, bytes_per_s(one.device) or usual)
        except Exception:  # another definition may have recorded problems that this one refuses
            continue
        timed.append(_Timed(problem, one.device, one.seconds, floor))
    if not timed:
        return None
    columns, groups = _place([(named_fields(one.problem), one.floor) for one in timed])
    values = np.array([one.log_ratio for one in timed])
    mean, deviation = _scale(values)
    hyper = Hyperparameters(int(groups.max()) + 1, PRIOR)
    hyper.fit(squared_differences(columns, groups, hyper.n_groups), (values - mean) / deviation, N_STEPS)
    return _Known(kernel, tuple(timed), usual, hyper)


def _place(points: Sequence[tuple[dict[str, object], Floor]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns columns, float [n_points, n_columns], and groups: fields, floor, and its ratio of bytes to flops."""
    names = dict.fromkeys(name for fields, _ in points for name in fields)
    column_groups = [_field([fields.get(name) for fields, _ in points]) for name in names]
    column_groups.append([np.array([log2(floor.seconds) for _, floor in points])])
    column_groups.append([np.array([log2(floor.of_bytes / max(floor.of_operations, 1e-12)) for _, floor in points])])
    groups = [number for number, group in enumerate(column_groups) for _ in group]
    return np.ascontiguousarray(np.array([column for group in column_groups for column in group]).T), np.array(groups)


def _field(values: Sequence[object]) -> list[np.ndarray]:
    """Returns the columns of a problem's field, each float [n_values]: octaves, or words that are MISMATCH apart."""
    given = [str(value) if isinstance(value, (list, tuple, dict)) else value for value in values]
    numbers = [float(value) for value in given if is_number(value)]
    if len(numbers) == len(given):
        return [np.array([octave(number) for number in numbers])]
    return [MISMATCH / 2**0.5 * np.array([value == word for value in given]) for word in dict.fromkeys(given)]


def _scale(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), max(float(values.std()), 0.05)


def _apart(one: Problem, other: Problem) -> float:
    return apart(named_fields(one), named_fields(other))
