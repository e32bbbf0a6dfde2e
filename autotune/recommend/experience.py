"""Experience with one kernel: what recorded sweeps teach about problems without a record, as data.

Packages contain it in ``measured.json``: a row for each recorded problem, two sets of trees, and how much choices lost
at recorded problems that were left out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from math import exp

import numpy as np

from ..core import schema
from ..core.config import Config, as_config
from ..core.definition import Device
from ..core.device import as_device
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
        problem: Mapping[str, object],
        device: Device,
        median_s: Mapping[Config, float],
        n_configs: int | None = None,
        won: Callable[[Config], Config | None] = lambda fastest: None,
    ) -> "MeasuredProblem":
        """Returns what was measured, from the median of each config, of which there is at least one.

        ``won``: the config that was found best when the fastest one and others were measured once more; None: they were
        not. The least of many medians is too small by chance. The median of the one that won is not, so it counts as
        the best, and lesser ones as equal to it.
        """
        fastest = min(median_s, key=lambda config: median_s[config])
        first = won(fastest) or fastest
        best = median_s.get(first) or median_s[fastest]
        pairs = ((config, max(1.0, median / best)) for config, median in median_s.items())
        ordered = sorted(pairs, key=lambda pair: (pair[1], pair[0] != first))
        return MeasuredProblem(problem, device, tuple(ordered), best, n_configs)


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

        ``predicted``: log(time / best), by both sets of trees. A choice beyond all that were left out loses as much
        more than they as is predicted.
        """
        kin = sorted({one.device.name for one in self.problems if kinship(one.device, device) == SAME_ARCHITECTURE})
        for where in (device.name, device.arch, *kin):
            if own := [loss for loss in self.losses if (loss.where, loss.tier) == (where, tier)]:
                return next((loss for loss in own if predicted <= loss.up_to), _beyond(own[-1], predicted))
        return None


def by_both(by_rule: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Returns log(time / best) by both sets of trees: their mean errs less than either."""
    mean: np.ndarray = (by_rule + alone) / 2
    return mean


def _beyond(last: Loss, predicted: float) -> Loss:
    more = exp(max(0.0, predicted - last.up_to))
    median, bound = (round((1 + loss) * more - 1, 4) for loss in (last.median, last.bound))
    return replace(last, up_to=round(max(predicted, last.up_to), 4), median=median, bound=bound)


# ---------------------------------------------------------------------- data
def as_json(experiences: Iterable[Experience]) -> dict[str, object]:
    """Returns the content of ``measured.json``."""
    content, devices = {}, dict[str, Device]()
    for experience in experiences:
        devices |= {one.device.name: one.device for one in experience.problems}
        rows = ((p.device.name, dict(p.problem), p.seconds, dict(p.measured[0][0])) for p in experience.problems)
        content[experience.kernel] = {
            "problems": [dict(zip(_PROBLEM, row, strict=True)) for row in rows],
            "columns": asdict(experience.columns),
            "by_rule": experience.by_rule.as_json(),
            "alone": experience.alone.as_json(),
            "losses": [asdict(loss) for loss in experience.losses],
        }
    return {"devices": {name: asdict(device) for name, device in sorted(devices.items())}, "kernels": content}


def read_experience(kernel: str, row: object, devices: object) -> Experience:
    """Returns the experience in a ``row`` of ``kernels``. Raises Unsound if ``as_json`` cannot have written it."""
    given, known = _row(row), _devices(devices)
    columns, problems = given["columns"], list[MeasuredProblem]()
    for one in given["problems"]:
        if one["device"] not in known:
            raise schema.Unsound(f"names the device {one['device']}, which it does not describe")
        winner = one["config"], 1.0
        problems.append(MeasuredProblem(one["problem"], known[one["device"]], (winner,), one["seconds"]))
    by_rule, alone = Trees.read(given["by_rule"], len(columns.names)), Trees.read(given["alone"], columns.n_plain)
    return Experience(kernel, tuple(problems), columns, by_rule, alone, given["losses"])


_PROBLEM = {
    "device": schema.as_word,
    "problem": schema.mapping_of(schema.as_name, schema.as_json_value),
    "seconds": schema.as_seconds,
    "config": as_config,
}
_ROW: dict[str, schema.Check] = {
    "problems": schema.sequence_of(schema.members_of(_PROBLEM, needed=_PROBLEM)),
    "columns": schema.dataclass_of(ModelColumns),
    **dict.fromkeys(("by_rule", "alone"), lambda trees: trees),  # ``Trees.read`` checks them
    "losses": schema.sequence_of(schema.dataclass_of(Loss)),
}
_row: schema.Check = schema.members_of(_ROW, needed=_ROW)
_devices: schema.Check = schema.mapping_of(schema.as_word, as_device)
