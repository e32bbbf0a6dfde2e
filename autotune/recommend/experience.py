"""Experience with one kernel: what recorded sweeps teach about problems without a record, as data.

Packages contain it in ``measured.json``: a row for each recorded problem, two sets of trees, and how much choices lost
at recorded problems that were left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp
from typing import Any

from ..core.config import Config
from ..core.definition import Device
from ..core.device import device_of
from ..core.schema import (
    Check,
    Unsound,
    as_amount,
    as_config,
    as_count,
    as_device,
    as_json_value,
    as_name,
    as_number,
    as_seconds,
    as_text,
    as_word,
    mapping_of,
    members_of,
    sequence_of,
)
from ..runtime.wisdom import Loss
from .distance import AWAY, OTHER_DEVICE, SAME_ARCHITECTURE, apart, kinship
from .model_columns import ModelColumns
from .trees import Trees


@dataclass(frozen=True)
class MeasuredProblem:
    """The times of one sweep. ``measured``: configurations with median / best median, best first. ``seconds``: the best
    median. ``n_configs``: all that were allowed; None: unknown.
    """

    problem: Mapping[str, object]
    device: Device
    measured: tuple[tuple[Config, float], ...]
    seconds: float
    n_configs: int | None = None

    @staticmethod
    def of(
        problem: Mapping[str, object], device: Device, median_s: Mapping[Config, float], n_configs: int | None = None
    ) -> "MeasuredProblem":
        """Returns what was measured, from the median of each config, of which there is at least one."""
        best = min(median_s.values())
        pairs = sorted(((config, median / best) for config, median in median_s.items()), key=lambda pair: pair[1])
        return MeasuredProblem(problem, device, tuple(pairs), best, n_configs)


@dataclass(frozen=True)
class Experience:
    """The experience with a kernel. ``problems``: recorded ones, each with its winner.

    ``by_rule`` predicts log(time / best) also from how a config differs from the kernel's own default; ``alone`` does
    not, and so makes other mistakes. ``losses``: of choices by each of them, at problems that were left out.
    """

    kernel: str
    problems: tuple[MeasuredProblem, ...]
    columns: ModelColumns
    by_rule: Trees
    alone: Trees
    losses: tuple[Loss, ...] = ()

    def nearest(self, fields: Mapping[str, object], device: Device) -> list[tuple[float, MeasuredProblem]]:
        """Returns (distance in octaves, problem) of problems on devices of this kind, the nearest first."""
        own = [one for one in self.problems if one.device.kind == device.kind]
        found = [(apart(fields, one.problem) + AWAY[kinship(one.device, device)], one) for one in own]
        return sorted(found, key=lambda each: each[0])

    def knows(self, device: Device) -> bool:
        """Returns whether a problem was recorded on a device of this architecture."""
        return any(kinship(one.device, device) != OTHER_DEVICE for one in self.problems)

    def loss(self, device: Device, tier: str, predicted: float) -> Loss | None:
        """Returns what choices of ``tier`` lose on ``device``, or else on others of its architecture; None: unknown.

        Devices that were left out come first among the others, since nothing was recorded on this one either.

        ``predicted``: log(time / best), by ``by_rule``. A choice beyond all that were left out loses as much more than
        they as is predicted.
        """
        kin = sorted({one.device.name for one in self.problems if kinship(one.device, device) == SAME_ARCHITECTURE})
        for where in (device.name, device.arch, *kin):
            if own := [loss for loss in self.losses if (loss.where, loss.tier) == (where, tier)]:
                return next((loss for loss in own if predicted <= loss.up_to), _beyond(own[-1], predicted))
        return None


def _beyond(last: Loss, predicted: float) -> Loss:
    more = exp(max(0.0, predicted - last.up_to))
    median, bound = (round((1 + loss) * more - 1, 4) for loss in (last.median, last.bound))
    return replace(last, up_to=round(max(predicted, last.up_to), 4), median=median, bound=bound)


# ---------------------------------------------------------------------- data
def as_json(experiences: Iterable[Experience]) -> dict[str, object]:
    """Returns the content of ``measured.json``."""
    content, devices = {}, dict[str, Device]()
    for one in experiences:
        devices |= {problem.device.name: problem.device for problem in one.problems}
        content[one.kernel] = {
            "problems": [
                {
                    "device": problem.device.name,
                    "problem": dict(problem.problem),
                    "seconds": problem.seconds,
                    "config": dict(problem.measured[0][0]),
                }
                for problem in one.problems
            ],
            "columns": asdict(one.columns),
            "by_rule": one.by_rule.as_json(),
            "alone": one.alone.as_json(),
            "losses": [asdict(loss) for loss in one.losses],
        }
    return {"devices": {name: asdict(device) for name, device in sorted(devices.items())}, "kernels": content}


def read_experience(kernel: str, row: object, devices: object) -> Experience:
    """Returns the experience in a ``row`` of ``kernels``. Raises Unsound if ``as_json`` cannot have written it."""
    given, known = _row(row), {name: device_of(values) for name, values in _devices(devices).items()}
    if strange := [one["device"] for one in given["problems"] if one["device"] not in known]:
        raise Unsound(f"names the device {strange[0]}, which it does not describe")
    columns = ModelColumns(**{name: _tuples(value) for name, value in given["columns"].items()})
    try:
        by_rule = Trees.read(given["by_rule"], len(columns.names))
        alone = Trees.read(given["alone"], columns.n_plain)
    except ValueError as error:
        raise Unsound(f"{error} (of {kernel})") from error
    problems = tuple(
        MeasuredProblem(one["problem"], known[one["device"]], ((Config(one["config"]), 1.0),), one["seconds"])
        for one in given["problems"]
    )
    return Experience(kernel, problems, columns, by_rule, alone, tuple(Loss(**loss) for loss in given["losses"]))


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: tuple(each) for name, each in value.items()}
    return tuple(value)


def _whole(checks: Mapping[str, Check]) -> Check:
    return members_of(dict(checks), needed=tuple(checks))


def _as_trees(value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise Unsound("is not a list of trees")
    return value


_PROBLEM = {
    "device": as_word,
    "problem": mapping_of(as_name, as_json_value),
    "seconds": as_seconds,
    "config": as_config,
}
_LOSS = {
    **dict.fromkeys(("where", "tier"), as_word),
    **{"up_to": as_number, "n": as_count, "median": as_amount, "bound": as_amount},
}
_COLUMNS = {
    **dict.fromkeys(("fields", "parameters"), sequence_of(as_name)),
    "words": mapping_of(as_name, sequence_of(as_text)),
}
AS_LOSS: Check = _whole(_LOSS)
_row: Check = _whole(
    {
        "problems": sequence_of(_whole(_PROBLEM)),
        "columns": _whole(_COLUMNS),
        **dict.fromkeys(("by_rule", "alone"), _as_trees),
        "losses": sequence_of(AS_LOSS),
    }
)
_devices: Check = mapping_of(as_word, as_device)
