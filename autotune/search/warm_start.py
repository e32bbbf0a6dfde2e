"""Collects a search's knowledge before its first trial: first configs, occupancy, predictions from neighbours."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from ..core.config import Config
from ..core.definition import Device, Kernel
from ..core.enumeration import Enumeration
from ..core.problem import Problem, named_fields
from ..recommend.candidates import candidates, scores
from ..recommend.distance import AWAY, OTHER_DEVICE, apart, kinship, octave
from ..recommend.experience import MeasuredProblem
from ..recommend.learning import learnt
from ..recommend.occupancy import known_of

N_FIRST = 3  # candidates besides the hints: the rule, a winner, and one that does not know the rule


def warm_start(
    kernel: Kernel[Problem],
    problem: Problem,
    device: Device,
    enumeration: Enumeration,
    near: Sequence[MeasuredProblem],
    own: Mapping[Config, float],
    n_hints: int,
    done: Collection[Config],
    before: MeasuredProblem | None = None,
) -> tuple[tuple[Config, ...], dict[str, np.ndarray]]:
    """Returns the allowed configs to try after the default, without ``done``, and columns by name, float [n_configs].

    First come winners of the problem itself: the one from before the definition changed, and winners on other devices
    of the architecture, the most similar device first. Then come the candidates that ``near`` and ``own`` recommend.

    ``near``: recorded sweeps. ``own``: known medians of this problem, in seconds. ``before``: measurements of this
    problem from before the definition changed.
    """
    columns = known_of(kernel, problem, enumeration.configs, device)
    fields = named_fields(problem)
    everything = sorted((*([before] if before else ()), *near), key=lambda one: _remoteness(one, fields, device))
    allowed = set(enumeration.configs).difference(done)
    same = [one for one in everything if kinship(one.device, device) != OTHER_DEVICE and not apart(one.problem, fields)]
    first = list(_winners(same, allowed))
    here = [MeasuredProblem.of(fields, device, own)] if own and everything else []
    try:
        experience = learnt(kernel, [*everything, *here])
    except ValueError:  # nothing near was measured
        return tuple(first), columns
    ranked = scores(experience, kernel, problem, device, enumeration.configs)
    n = n_hints + N_FIRST + len(done) + len(first)
    found = candidates(experience, kernel, problem, device, n, enumeration.configs, ranked)
    others = [one.config for one in found if one.config in allowed and one.config not in first]
    return (*first, *others[: n_hints + N_FIRST - 1]), columns | {"expected by neighbours": ranked[0]}


def _remoteness(one: MeasuredProblem, fields: Mapping[str, object], device: Device) -> tuple[float, float]:
    """Returns the distance of a neighbour, and the size ratio of the two devices, both in octaves."""
    unlike = abs(octave(one.device.n_multiprocessors) - octave(device.n_multiprocessors))
    return apart(one.problem, fields) + AWAY[kinship(one.device, device)], unlike


def _winners(neighbours: Iterable[MeasuredProblem], allowed: Collection[Config]) -> dict[Config, None]:
    """Returns the winner of each neighbour if it is ``allowed``, each config once."""
    winners = (one.measured[0][0] for one in neighbours)
    return dict.fromkeys(config for config in winners if config in allowed)
