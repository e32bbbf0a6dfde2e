"""The lengths of runs in ddc's tensor algorithm: possible lengths, and lengths that fill the device."""

from functools import lru_cache
from typing import Any, NamedTuple

from autotune import Config, ceil_div

from .problem import Problem
from .tensor import tensor_geometry

# Neighbouring lengths differ by at most a sixth, or from 96 on by a twelfth, so that blocks can fill whole waves.
RUNS = (*range(24, 48, 4), *range(48, 256, 8), *range(256, 513, 16))
MOST_LEAD = 15  # most outputs by which runs may start before a row's first output
# Parameters on which a block depends, except RUN.
OF_A_BLOCK = ("ALGORITHM", "MMA", "WARPS", "CHAIN", "PART", "SUMS", "STEP", "STAGE", "STAGES", "WINDOW")


def blocks_of(problem: Problem, outputs: int) -> int:
    """Returns the number of blocks of a polarisation. Each has ``outputs`` outputs, and any lead is covered."""
    return ceil_div(problem.n_out + MOST_LEAD, outputs)


class Runs(NamedTuple):
    """The lengths of overlapping runs."""

    possible: frozenset[int]
    filling: frozenset[int]  # possible lengths whose blocks fill the device


def block_of(config: Config) -> tuple[Any, ...]:
    """Returns the values of OF_A_BLOCK."""
    return tuple(map(config.get, OF_A_BLOCK))


@lru_cache(maxsize=64)  # RUN is decided last
def runs_of(problem: Problem, block: tuple[Any, ...], n_multiprocessors: int) -> Runs:
    """Returns the lengths of runs that a block with these parameters may have.

    A possible length is whole steps, at least one step for each tile under way, at least a window, and an even number
    of bytes. A length is filling if its blocks fill five sixths of one to three waves, or if they take more waves and
    it is a multiple of 32. If there are too few blocks for that, the shortest two lengths are filling.
    """
    geometry = tensor_geometry(problem, Config(dict(zip(OF_A_BLOCK, block, strict=True))))
    step, bits = geometry.outputs_per_step, problem.decimation * problem.sample_bits
    least = max(geometry.n_tiles * step, geometry.outputs_per_window)
    n_together = n_multiprocessors * geometry.min_blocks

    def fills(run: int) -> bool:
        n_blocks = problem.n_pols * blocks_of(problem, geometry.runs_per_block * run)
        n_waves = ceil_div(n_blocks, n_together)
        return run % 32 == 0 if n_waves > 3 else n_blocks * 6 >= n_waves * n_together * 5

    unit = 128 if bits % 16 == 0 else 16  # bits; if multiples of 8 outputs do not drift, none may
    runs = [run for run in RUNS if run >= least and run % step == 0 and run * bits % unit == 0]
    filling = list(filter(fills, runs)) if n_together else runs
    return Runs(frozenset(runs), frozenset(filling or runs[:2]))
