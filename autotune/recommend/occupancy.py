"""Computes how a launch fills the device, which a search uses in addition to a config's parameters.

A kernel takes as long as its last block, so an uneven last wave multiplies the time. This factor depends on several
parameters and the problem's size together, and a model of the parameters alone would have to learn it.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, log2, prod

import numpy as np

from ..core.architecture import ARCHITECTURES
from ..core.config import Config
from ..core.definition import Device, Kernel
from ..core.errors import TrialFailure
from ..core.problem import Problem

UNKNOWN = ARCHITECTURES["sm_90"]  # assumed limits of an unknown architecture
COLUMNS = ("waves", "last wave", "threads at a time")


def occupancy(kernel: Kernel[Problem], problem: Problem, configs: Sequence[Config], device: Device) -> np.ndarray:
    """Returns log2 of COLUMNS for each configuration, float [n_configs, 3]; zeros without multiprocessors.

    waves: the number of blocks divided by the number that the device can hold, given their threads, dynamic shared
    memory, and registers if the definition knows them. last wave: waves rounded up, divided by waves. threads at a
    time: per multiprocessor. If a config has several launches, the one with the most threads counts.
    """
    rows = [_row(kernel, problem, config, device) for config in configs if device.n_multiprocessors]
    return np.array(rows) if rows else np.zeros((len(configs), len(COLUMNS)))


def known_of(
    kernel: Kernel[Problem], problem: Problem, configs: Sequence[Config], device: Device
) -> dict[str, np.ndarray]:
    """Returns the columns of ``occupancy`` by name; none without multiprocessors."""
    known = occupancy(kernel, problem, configs, device).T
    return dict(zip(COLUMNS, known, strict=True)) if device.n_multiprocessors else {}


@lru_cache(maxsize=1 << 16)  # searches of a campaign need those of their neighbours again and again
def _row(kernel: Kernel[Problem], problem: Problem, config: Config, device: Device) -> tuple[float, float, float]:
    try:
        launch = max(kernel.launch(problem, config).steps, key=lambda step: prod(step.grid) * prod(step.block))
    except TrialFailure:  # its trial will report the failure
        return 0.0, 0.0, 0.0
    n_threads, n_blocks = max(1, prod(launch.block)), max(1, prod(launch.grid))
    most = ARCHITECTURES.get(device.arch, UNKNOWN)
    n_together = max(1, min(launch.most_blocks or most.blocks, most.blocks, most.threads // n_threads))
    while n_together > 1 and not device.has_shared(launch.shared_bytes, n_together):
        n_together -= 1
    waves = n_blocks / (device.n_multiprocessors * n_together)
    return log2(waves), log2(ceil(waves) / waves), log2(n_together * n_threads)
