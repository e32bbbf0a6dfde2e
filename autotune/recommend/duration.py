"""Predicts the time of a kernel's launch at a problem from the best times at recorded problems.

A Gaussian process over the problem's fields, in octaves, predicts the logarithm of time / floor. The floor is the time
according to the device's data sheet: bytes / memory rate + operations / arithmetic rate. It is not a bound, since
caches serve bytes faster, but covers most of the effect of sizes and devices, so the process has little to learn. All
times of one architecture are fitted together.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, nan, prod
from statistics import geometric_mean

import numpy as np

from ..core.definition import Device, Kernel
from ..core.problem import Problem, named_fields
from ..core.units import seconds_text
from .distance import MISMATCH, apart, is_number, octave
from .experience import MeasuredProblem
from .gaussian_process import Hyperparameters, Posterior, Prior, squared_differences

HERE, ELSEWHERE, EXPECTED = HOW = "measured here", "scaled from another GPU", "predicted"
SAME = 0.01  # problems within so many octaves count as equal, such as a buffer that is a few samples longer
PRIOR = Prior(weight=(-2.5, 1.0))  # an octave of one field reduces correlation to 0.99: the floor covers the rest
N_STEPS = 40
LATENCY_S = 2e-6  # time of an empty launch on the GPU's clock
MEMORY = {  # words of the name -> bytes per second, from NVIDIA's data sheets
    ("H200",): 4.8e12,
    ("H100", "HBM3"): 3.35e12,
    ("H100", "NVL"): 3.9e12,
    ("H100", "PCIe"): 2.0e12,
    ("A100", "SXM4", "80GB"): 2.039e12,
    ("A100", "PCIe", "80GB"): 1.935e12,
    ("A100", "40GB"): 1.555e12,
    ("A30",): 0.933e12,
    ("A40",): 0.696e12,
    ("3090",): 0.936e12,
    ("L40S",): 0.864e12,
    ("L4",): 0.3e12,
    ("4090",): 1.008e12,
    ("B200",): 8.0e12,
    ("5090",): 1.792e12,
}
# Operations per multiprocessor and clock: float32 from the CUDA Programming Guide (5.1, throughput of arithmetic
# instructions, two operations each), dense tensor cores from the peak rates in NVIDIA's data sheets.
OPERATIONS = {
    "sm_80": {"float32": 128, "float16": 2048, "int8": 4096},
    "sm_86": {"float32": 256, "float16": 1024, "int8": 2048},
    "sm_89": {"float32": 256, "float16": 1024, "int8": 2048},
    "sm_90": {"float32": 256, "float16": 4096, "int8": 8192},
    "sm_100": {"float32": 256, "float16": 8192, "int8": 16384},
    "sm_120": {"float32": 256, "float16": 1024, "int8": 2048},
}
USUAL = OPERATIONS["sm_90"]
THREADS = 256  # threads that keep a multiprocessor busy: two warps for each of its four schedulers
N_MULTIPROCESSORS, CLOCK_HZ = 100, 1.5e9  # assumed where a record lacks them


def bytes_per_s(device: Device) -> float | None:
    """Returns the nominal rate of the device's memory; None for an unknown model."""
    words = set(device.name.replace("-", " ").split())
    return next((rate for model, rate in MEMORY.items() if words.issuperset(model)), None)


def floor_of(kernel: Kernel[Problem], problem: Problem, device: Device, memory: float) -> tuple[float, float]:
    """Returns the floor of a launch in seconds, and its time for bytes over that for operations.

    ``memory``: bytes per second.

    A block runs on one multiprocessor: if the kernel's default config has fewer blocks than the device has
    multiprocessors, or few threads, only a share of the device is busy.
    """
    work, n = kernel.work(problem), device.n_multiprocessors or N_MULTIPROCESSORS
    steps = kernel.launch(problem, kernel.default_config(problem, device)).steps
    share = max(min(1.0, prod(step.grid) / n * min(1.0, prod(step.block) / THREADS)) for step in steps)
    rate = OPERATIONS.get(device.arch, USUAL)[work.unit] * n * (device.max_clock_hz or CLOCK_HZ)
    of_bytes, of_operations = work.bytes / memory / share, work.flops / rate / share
    return of_bytes + of_operations + LATENCY_S, of_bytes / max(of_operations, 1e-12)


@dataclass(frozen=True)
class ExpectedTime:
    """The expected time of a launch with the best known config, and its source: one of HOW."""

    seconds: float
    how: str

    def __str__(self) -> str:
        return f"{seconds_text(self.seconds)} ({self.how})"


@dataclass(frozen=True, eq=False)
class _Timed:
    """A problem's fields, and the floor, what bounds it and the time of its launch on the device of that name."""

    fields: Mapping[str, object]
    device: str
    floor: float
    bytes_over_operations: float
    seconds: float


class Durations:
    """The times of a kernel on devices of ``arch``, and predictions from them. ``problems``: recorded on any devices.

    A device whose memory rate is unknown has the usual one of the recorded devices.
    """

    def __init__(self, kernel: Kernel[Problem], problems: Iterable[MeasuredProblem], arch: str) -> None:
        self._kernel, self._problems = kernel, [one for one in problems if one.device.arch == arch]
        rates = sorted(rate for one in self._problems if (rate := bytes_per_s(one.device)))
        self._usual_memory = rates[len(rates) // 2] if rates else 1e12

    def expected(self, problem: Problem, device: Device, is_left_out: bool = False) -> ExpectedTime | None:
        """Returns the expected time on a device of ``arch``; None if nothing was recorded there.

        If the same problem was recorded on this device, its time is returned; if on other devices of the architecture,
        this device's floor times the geometric mean of time / floor there. Other times are predicted.

        ``is_left_out``: the time is predicted from all other problems, even if this one was recorded.
        """
        asked = self._at(problem, device)
        near = sorted((apart(one.fields, asked.fields), i) for i, one in enumerate(self._timed))
        same = [self._timed[i] for octaves, i in near if octaves <= SAME]
        if is_left_out or not same:
            others = [one for one in self._timed if one not in same]
            return ExpectedTime(self._predicted(asked, others), EXPECTED) if others else None
        here = (ExpectedTime(one.seconds, HERE) for one in same if one.device == device.name)
        scaled = asked.floor * geometric_mean(one.seconds / one.floor for one in same)
        return next(here, ExpectedTime(scaled, ELSEWHERE))

    @cached_property
    def _timed(self) -> list[_Timed]:
        found = []
        for one in self._problems:
            with suppress(Exception):  # another definition may have recorded problems that this one refuses
                found.append(self._at(self._kernel.problem(dict(one.problem)), one.device, one.seconds))
        return found

    def _at(self, problem: Problem, device: Device, seconds: float = nan) -> _Timed:
        floor = floor_of(self._kernel, problem, device, bytes_per_s(device) or self._usual_memory)
        return _Timed(named_fields(problem), device.name, *floor, seconds)

    @cached_property
    def _hyper(self) -> Hyperparameters:
        columns, groups = _columns(self._timed)
        hyper = Hyperparameters(int(groups.max()) + 1, PRIOR)
        hyper.fit(squared_differences(columns, groups, hyper.n_groups), _standardized(self._timed)[0], N_STEPS)
        return hyper

    def _predicted(self, asked: _Timed, others: Sequence[_Timed]) -> float:
        """Returns the seconds to expect, given the ``others``; the length scales are those of all recorded ones."""
        columns, groups = _columns([*others, asked])
        values, mean, deviation = _standardized(others)
        posterior = Posterior(columns, groups, self._hyper, range(len(others)), np.array([len(others)]))
        return asked.floor * exp(mean + deviation * float(posterior.mean(values)[0]))


def _columns(problems: Sequence[_Timed]) -> tuple[np.ndarray, np.ndarray]:
    """Returns columns, float [n_problems, n_columns], and the group of each: the fields, the floor, its bytes / flops.

    Numbers are octaves. Each word of a field has a column, and two words are MISMATCH apart.
    """
    names = dict.fromkeys(name for one in problems for name in one.fields)
    given = [[one.fields.get(name) for one in problems] for name in names]
    given.append([one.floor for one in problems])
    given.append([one.bytes_over_operations for one in problems])
    columns, groups = list[list[float]](), list[int]()
    for group, values in enumerate(given):
        own = [[octave(float(value)) for value in values if is_number(value)]]
        if len(own[0]) < len(values):
            texts = [str(value) for value in values]
            own = [[MISMATCH / 2**0.5 * (text == word) for text in texts] for word in dict.fromkeys(texts)]
        columns += own
        groups += [group] * len(own)
    return np.ascontiguousarray(np.array(columns).T), np.array(groups)


def _standardized(timed: Sequence[_Timed]) -> tuple[np.ndarray, float, float]:
    """Returns log(time / floor) with zero mean and unit variance, the mean, and the standard deviation."""
    values = np.array([log(one.seconds / one.floor) for one in timed])
    mean, deviation = float(values.mean()), max(float(values.std()), 0.05)
    return (values - mean) / deviation, mean, deviation
