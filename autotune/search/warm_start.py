"""Collects what a search knows before its first trial: occupancy, and predictions from neighbours."""

from collections.abc import Container, Mapping, Sequence
from functools import partial

import numpy as np

from ..core.config import Config
from ..core.definition import Device, Kernel
from ..core.problem import Problem
from ..core.space import Enumeration
from .neighbours import Neighbour
from .occupancy import known_of, occupancy_at
from .transfer import expect


def warm_start(
    kernel: Kernel[Problem],
    problem: Problem,
    device: Device,
    enumeration: Enumeration,
    near: Sequence[Neighbour],
    own: Mapping[Config, float],
    n_hints: int,
    done: Container[Config],
    before: Sequence[Neighbour] = (),
) -> tuple[tuple[Config, ...], dict[str, np.ndarray]]:
    """Returns (at most ``n_hints`` configurations to begin with, none of ``done``; columns by name, float [n_configs]).

    The fastest before the definition changed is the first of them.

    ``near``: recorded sweeps; ``before``: the problem itself, before the definition changed; ``own``: medians in
    seconds that are known at the problem itself.
    """
    columns = known_of(kernel, problem, enumeration.configs, device)
    expectation = expect(problem, (*before, *near), enumeration, own, partial(occupancy_at, kernel, device))
    if expectation is None:
        return (), columns
    fastest = [config for neighbour in before for config, _ in neighbour.measured[:1] if config not in done]
    hints = dict.fromkeys((*fastest, *expectation.hints(n_hints, done)))
    return tuple(hints)[:n_hints], columns | {"expected by neighbours": expectation.times}
