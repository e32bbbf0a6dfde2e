"""The list of configs that are worth running or trying at a problem, the best first, each with its reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from math import exp, inf
from typing import Annotated

import numpy as np

from ..core import schema
from ..core.config import Config, as_config
from ..core.definition import Device, Kernel
from ..core.problem import Problem, named_fields
from ..core.units import percent
from ..runtime.lookup import ARCHITECTURE, DEFAULT, NEAREST, PREDICTED
from ..runtime.wisdom import Loss
from .distance import SAME_DEVICE, kinship
from .experience import Experience, by_both

N_NEAREST = 8  # recorded problems whose winners are candidates
N = 8  # candidates, unless the caller says so
DOUBT = 0.02  # log of the time by which a nearest winner that goes first may be predicted slower than the learnt choice
RULE = "where this kernel starts"

Scores = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Candidate:
    """A config, the tier of the lookup that it belongs to, and ``why`` it is worth running, in words.

    ``loss``: what choices of this tier lose at problems that were left out; None: unknown. ``predicted``: log(time /
    best), by the trees.
    """

    config: Annotated[Config, as_config]
    tier: Annotated[str, schema.as_word]
    why: Annotated[str, schema.as_text]
    predicted: Annotated[float, schema.as_number]
    loss: Annotated[Loss | None, schema.optional(schema.dataclass_of(Loss))] = None

    @property
    def bound(self) -> float:
        """Returns the loss that nine choices of ten like this one do not exceed."""
        return self.loss.bound if self.loss else inf


def candidates(
    experience: Experience,
    kernel: Kernel[Problem],
    problem: Problem,
    device: Device,
    n: int = N,
    configs: Sequence[Config] | None = None,
    ranked: Scores | None = None,
) -> tuple[Candidate, ...]:
    """Returns up to ``n`` allowed configs, each once, the first of them the one to run without a trial.

    The first three are that with the least predicted time, the kernel's own default (the rule), and the winner of the
    nearest recorded problem, in the order of their bounds: a learnt one goes before the rule only if its bound is
    lower, and the nearest winner only if the trees expect it to be no slower than theirs by more than DOUBT. Then
    follow the first of the trees that do not know the rule, and further ones of each in turn.

    ``configs``: those that are allowed, if they are known. ``ranked``: their ``scores``, likewise.

    Raises:
        UsageError: if no configuration is allowed.
    """
    rule = kernel.default_config(problem, device)
    allowed = tuple(configs) if configs is not None else kernel.space.enumerate(problem, device).configs
    both, alone = ranked or scores(experience, kernel, problem, device, allowed)
    known = dict(zip(allowed, both.tolist(), strict=True))

    def told(config: Config, tier: str, why: str) -> Candidate:
        if (predicted := known.get(config)) is None:  # the allowed ones are a sample
            predicted = float(scores(experience, kernel, problem, device, [config])[0][0])
        return Candidate(config, tier, why, predicted, experience.loss(device, tier, predicted))

    def learned(predicted: np.ndarray, how: str) -> Iterator[Candidate]:
        for row in np.argsort(predicted, kind="stable").tolist():
            slower = percent(max(0.0, exp(float(predicted[row])) - 1))
            why = f"{slower} slower than the best, by trees of {len(experience.problems)} recorded problems{how}"
            yield told(allowed[row], PREDICTED, why)

    def winners() -> Iterator[Candidate]:
        near = experience.nearest(named_fields(problem), device)
        for octaves, one in islice((pair for pair in near if pair[1].measured[0][0] in known), N_NEAREST):
            tier = NEAREST if kinship(one.device, device) == SAME_DEVICE else ARCHITECTURE
            where = "here" if tier == NEAREST else f"on {one.device.name}"
            yield told(one.measured[0][0], tier, f"the winner {where} of a problem {octaves:.2g} octaves away")

    like, unlike, nearest = learned(both, ""), learned(alone, " without the kernel's rule"), winners()
    firsts = [one for one in (told(rule, DEFAULT, RULE), next(nearest, None), next(like, None)) if one is not None]
    most = min(one.predicted for one in firsts) + DOUBT
    # Equal bounds leave the rule before what was measured, and this before what was learnt.
    firsts.sort(key=lambda one: (one.tier in (NEAREST, ARCHITECTURE) and one.predicted > most, one.bound))
    found: dict[Config, Candidate] = {}
    for one in chain(firsts, chain.from_iterable(zip_longest(unlike, like, nearest))):
        if len(found) == n:
            break
        if one is not None:
            found.setdefault(one.config, one)
    return tuple(found.values())


def scores(
    experience: Experience, kernel: Kernel[Problem], problem: Problem, device: Device, configs: Sequence[Config]
) -> Scores:
    """Returns the predicted log(time / best) of each config, float [n_configs]: by both sets of trees, and by those
    that do not know the rule.
    """
    rule = kernel.default_config(problem, device)
    table = experience.columns.table(kernel, problem, device, configs, rule)
    alone = experience.alone(table[:, : experience.columns.n_plain])
    return by_both(experience.by_rule(table), alone), alone
