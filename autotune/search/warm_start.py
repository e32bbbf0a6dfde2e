"""Collects what a search knows before its first trial: occupancy, and predictions from neighbours."""

from collections.abc import Container, Mapping, Sequence
from functools import partial

import numpy as np

from ..core.config import Config
from ..core.definition import Device, Kernel
from ..core.problem import Problem
from ..core.space import Enumeration
from ..transfer.model import expect
from ..transfer.neighbour import Neighbour
from ..transfer.occupancy import known_of, occupancy_at


def warm_start(
    kernel: Kernel[Problem],
    problem: Problem,
    device: Device,
    enumeration: Enumeration,
    near: Sequence[Neighbour],
    own: Mapping[Config, float],
    n_hints: int,
    done: Container[Config],
    before: Neighbour | None = None,
) -> tuple[tuple[Config, ...], dict[str, np.ndarray]]:
    """Returns (at most ``n_hints`` configurations to begin with, none of ``done``; columns by name, float [n_configs]).

    ``near``: recorded sweeps; ``own``: medians in seconds that are known at the problem itself; ``before``: the problem
    itself before the definition changed, whose fastest configuration comes first.
    """
    columns = known_of(kernel, problem, enumeration.configs, device)
    everything = near if before is None else (before, *near)
    expectation = expect(problem, everything, enumeration, own, partial(occupancy_at, kernel, device))
    if expectation is None:
        return (), columns
    hints = expectation.hints(n_hints, done)
    if before is not None and (fastest := before.measured[0][0]) not in done:
        hints = tuple(dict.fromkeys((fastest, *hints)))[:n_hints]
    return hints, columns | {"expected by neighbours": expectation.times}
