"""Columns with the distance of a config from the kernel's own default at its problem.

A default that depends on the problem hints at fast configs where nothing near was recorded; its weight is fitted.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import log2

import numpy as np

from ..core.config import Config, Value
from ..core.definition import Device, Kernel
from ..core.problem import Problem
from .occupancy import COLUMNS, occupancy_at

KNOWN = (*COLUMNS, "off the default", "default")
OCTAVES_OF_A_STEP = 2.0  # numbers so many octaves apart or more are one step apart, like two words
LEAST_STEP = 0.2  # steps between two numbers that are nearly equal


def known_at(
    kernel: Kernel[Problem], own: Device, fields: Mapping[str, object], other: Device | None, configs: Sequence[Config]
) -> np.ndarray:
    """Returns the KNOWN columns for each config, float [n_configs, 5]: how it fills the device, the square root of its
    number of steps from the default, and whether it is the default.

    ``other``: a neighbour's device; if it is None or unknown, ``own`` is used.
    """
    device = other if other and other.n_multiprocessors else own
    default = _default(kernel, kernel.problem(dict(fields)), device)
    steps = np.array([[n_steps(config, default)] for config in configs]).reshape(-1, 1)
    return np.hstack([occupancy_at(kernel, own, fields, other, configs), np.sqrt(steps), steps == 0])


def n_steps(config: Config, default: Config) -> float:
    """Returns in how many parameters two configs differ; two near numbers count as less than one."""
    return sum(_step(config.get(name), default.get(name)) for name in config.keys() | default.keys())


def _step(a: Value | None, b: Value | None) -> float:
    if a == b:
        return 0.0
    numbers = [v for v in (a, b) if isinstance(v, (int, float)) and not isinstance(v, bool) and v > 0]
    if len(numbers) < 2:
        return 1.0
    return min(1.0, LEAST_STEP + abs(log2(numbers[0] / numbers[1])) / OCTAVES_OF_A_STEP)


@lru_cache(maxsize=4096)  # the same problem returns each time another one is left out
def _default(kernel: Kernel[Problem], problem: Problem, device: Device) -> Config:
    return kernel.default_config(problem, device)
