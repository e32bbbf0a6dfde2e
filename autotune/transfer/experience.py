"""Experience with one kernel: times measured at recorded problems, and the length scales fitted to them.

It predicts for problems without a record. Packages contain it as data, ``measured.json``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from ..core.config import Config, Value
from ..core.definition import Device, Kernel
from ..core.device import device_of
from ..core.enumeration import Enumeration
from ..core.problem import Problem, named_fields
from ..core.schema import (
    Check,
    Unsound,
    as_amount,
    as_count,
    as_device,
    as_json_value,
    as_name,
    as_number,
    as_scalar,
    as_seconds,
    as_word,
    mapping_of,
    members_of,
    one_of,
    sequence_of,
)
from .coordinates import TransferPoint, domain_of
from .model import CAP, Scales, expect, fitted, points_of, some
from .neighbour import AWAY, OTHER_DEVICE, SAME_DEVICE, Neighbour, apart, kinship
from .off_default import known_at

N_FITTED, N_STEPS = 600, 40  # observations to which length scales are fitted, and steps
N_MODEL = 5  # configurations of the model that come before the default
N_NEAR = 30  # problems from which a prediction is made
MODEL, NEIGHBOUR, DEFAULT = METHODS = "model", "neighbour", "default"
DECIMALS = 4  # stored decimals of a relative time


@dataclass(frozen=True)
class MeasuredProblem:
    """The times of one sweep. ``measured``: some of its configurations with median / best median, best first.
    ``seconds``: the best median.
    """

    problem: Mapping[str, object]
    device: Device
    measured: tuple[tuple[Config, float], ...]
    seconds: float


@dataclass(frozen=True)
class Experience:
    """The recorded times of a kernel. ``method``: the predictor that did best at recorded problems that were left out:
    MODEL, the winner of the nearest problem (NEIGHBOUR), or the kernel's own DEFAULT.
    """

    kernel: str
    problems: tuple[MeasuredProblem, ...]
    scales: Scales
    method: str = MODEL

    def without(self, left_out: Callable[[MeasuredProblem], bool]) -> "Experience":
        """Returns the experience without some problems; the scales stay."""
        return replace(self, problems=tuple(one for one in self.problems if not left_out(one)))

    def near(self, fields: Mapping[str, object], device: Device, n: int = N_NEAR) -> list[Neighbour]:
        """Returns the ``n`` nearest problems on devices of the same kind, nearest first."""
        neighbours = []
        for one in self.problems:
            if one.device.kind == device.kind:
                kin = kinship(one.device, device)
                neighbours.append(Neighbour(one.problem, one.device, kin, apart(fields, one.problem), one.measured))
        return sorted(neighbours, key=lambda near: (near.distance + AWAY[near.kinship], near.kinship))[:n]

    def knows(self, device: Device) -> bool:
        """Returns whether a problem was recorded on a device of this architecture."""
        return any(kinship(one.device, device) != OTHER_DEVICE for one in self.problems)


def experience_of(kernel: Kernel[Any], problems: Iterable[MeasuredProblem]) -> Experience:
    """Fits the length scales to the measured times; raises ValueError if there are none.

    Devices without multiprocessors (host) are left out, since nothing is predicted for them.
    """
    kept, points = [], list[TransferPoint]()
    for one in problems:
        if not one.device.n_multiprocessors:
            continue
        fill = partial(known_at, kernel, one.device)
        try:
            own = points_of(one.problem, one.device, AWAY[SAME_DEVICE], some(one.measured), fill)
        except Exception:  # another definition may have recorded configs that this one cannot launch
            continue
        points += own
        kept.append(replace(one, measured=tuple((point.config, _rounded(point.time)) for point in own)))
    if not points:
        raise ValueError(f"nothing was measured of {kernel.name}")
    scales = fitted(points, domain_of(kernel.space.parameters), [(N_FITTED, N_STEPS)])
    return Experience(kernel.name, tuple(kept), scales)


def ranked(experience: Experience, kernel: Kernel[Any], problem: Problem, device: Device, n: int) -> tuple[Config, ...]:
    """Returns the ``n`` allowed configurations with the least expected times, the fastest first.

    Raises UsageError if no configuration is allowed.
    """
    return tuple(islice(candidates(experience, kernel, problem, device), n))


def candidates(experience: Experience, kernel: Kernel[Any], problem: Problem, device: Device) -> Iterator[Config]:
    """Yields allowed configurations, each once, in the order of their expected times: first those of the method, then
    the first N_MODEL of the model, then the kernel's default.

    Raises UsageError if no configuration is allowed.
    """
    default = kernel.default_config(problem, device)
    near = experience.near(named_fields(problem), device)
    first: tuple[Config, ...] = ()
    if experience.method == DEFAULT:
        first = (default,)
    elif experience.method == NEIGHBOUR:
        winners = dict.fromkeys(one.measured[0][0] for one in near if one.measured)
        first = tuple(config for config in winners if kernel.space.allows(problem, config, device))
    yield from first
    enumeration, domain = _enumerated(kernel, problem, device), domain_of(kernel.space.parameters)
    fill = partial(known_at, kernel, device)
    expectation = expect(problem, near, enumeration, domain, None, fill, experience.scales)
    rest = (*(expectation.ranked(N_MODEL) if expectation else ()), default)
    yield from dict.fromkeys(config for config in rest if config not in first)


@lru_cache(maxsize=4)  # a problem that is left out is predicted from several experiences
def _enumerated(kernel: Kernel[Any], problem: Problem, device: Device) -> Enumeration:
    return kernel.space.enumerate(problem, device)


def _rounded(time: float) -> float:
    return round(min(time, CAP), DECIMALS)


# ---------------------------------------------------------------------- as data
def as_json(experiences: Iterable[Experience]) -> dict[str, object]:
    """Returns the content of ``measured.json``: configurations as indices of values, -1 for a missing parameter."""
    content, devices = {}, dict[str, Device]()
    for one in experiences:
        values = _values(config for problem in one.problems for config, _ in problem.measured)
        number = {name: {value: i for i, value in enumerate(each)} for name, each in values.items()}
        rows = []
        for problem in one.problems:
            devices[problem.device.name] = problem.device
            configs = [[number[n][c[n]] if n in c else -1 for n in values] for c, _ in problem.measured]
            rows.append(
                {
                    "device": problem.device.name,
                    "problem": dict(problem.problem),
                    "seconds": problem.seconds,
                    "configs": configs,
                    "times": [time for _, time in problem.measured],
                }
            )
        scales = {**asdict(one.scales), "weights": {n: round(w, 6) for n, w in one.scales.weights.items()}}
        content[one.kernel] = {"method": one.method, "values": values, "scales": scales, "problems": rows}
    return {"devices": {name: asdict(device) for name, device in sorted(devices.items())}, "kernels": content}


def read_experiences(content: Any) -> dict[str, Experience]:
    """Returns the experiences by kernel. Raises Unsound if ``as_json`` cannot have written the content."""
    checked = _content(content)
    devices = {name: device_of(values) for name, values in checked["devices"].items()}
    return {name: _experience(name, row, devices) for name, row in checked["kernels"].items()}


def _experience(kernel: str, row: Mapping[str, Any], devices: Mapping[str, Device]) -> Experience:
    problems = []
    names, values = list(row["values"]), list(row["values"].values())
    for one in row["problems"]:
        if one["device"] not in devices:
            raise Unsound(f"names the device {one['device']}, which it does not describe")
        if len(one["configs"]) != len(one["times"]):
            raise Unsound(f"has {len(one['configs'])} configs and {len(one['times'])} times at a problem of {kernel}")
        configs = [_config(names, values, numbers) for numbers in one["configs"]]
        measured = tuple(zip(configs, one["times"], strict=True))
        problems.append(MeasuredProblem(one["problem"], devices[one["device"]], measured, one["seconds"]))
    return Experience(kernel, tuple(problems), Scales(**row["scales"]), row["method"])


def _config(names: Sequence[str], values: Sequence[Sequence[Value]], numbers: Sequence[int]) -> Config:
    if len(numbers) != len(names) or any(not -1 <= i < len(each) for i, each in zip(numbers, values, strict=True)):
        raise Unsound(f"has a config {list(numbers)} with values that it does not list")
    return Config({name: each[i] for name, each, i in zip(names, values, numbers, strict=True) if i >= 0})


def _values(configs: Iterable[Config]) -> dict[str, list[Value]]:
    by_name: dict[str, dict[Value, None]] = {}
    for config in configs:
        for name, value in config.items():
            by_name.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in by_name.items()}


def _index(value: object) -> int:
    return -1 if value == -1 and type(value) is int else as_count(value)


def _members(checks: Mapping[str, Check]) -> Check:
    return members_of(dict(checks), needed=tuple(checks))


_PROBLEM = {
    "device": as_word,
    "problem": mapping_of(as_name, as_json_value),
    "seconds": as_seconds,
    "configs": sequence_of(sequence_of(_index)),
    "times": sequence_of(as_amount),
}
_SCALES = {
    "weights": mapping_of(as_word, as_amount),
    **dict.fromkeys(("noise", "amplitude", "deviation"), as_amount),
    "mean": as_number,
}
_KERNEL = {
    "method": one_of(METHODS),
    "values": mapping_of(as_name, sequence_of(as_scalar)),
    "scales": _members(_SCALES),
    "problems": sequence_of(_members(_PROBLEM)),
}
_content: Check = _members(
    {"devices": mapping_of(as_word, as_device), "kernels": mapping_of(as_name, _members(_KERNEL))}
)
