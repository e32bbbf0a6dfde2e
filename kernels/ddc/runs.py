"""Lengths of the runs of ddc's tensor algorithm: possible ones, and those that fill the device."""

from functools import lru_cache
from typing import Any, NamedTuple

from autotune import Config, ceil_div

from .problem import Problem
from .tensor import tensor_geometry

# Steps of at most a sixth, or from 96 on a twelfth, are fine enough for blocks to fill whole waves.
RUNS = (*range(24, 48, 4), *range(48, 256, 8), *range(256, 513, 16))
MOST_LEAD = 15  # outputs before a row's first one that a grid reckons with
# Parameters that a block depends on, but for RUN.
OF_A_BLOCK = ("ALGORITHM", "MMA", "WARPS", "CHAIN", "PART", "SUMS", "STEP", "STAGE", "STAGES", "WINDOW")


def blocks_of(problem: Problem, outputs: int) -> int:
    """Returns the blocks of a polarisation, of so many outputs each, whatever its lead is."""
    return ceil_div(problem.n_out + MOST_LEAD, outputs)


class Runs(NamedTuple):
    """Lengths of runs that overlap."""

    possible: frozenset[int]
    filling: frozenset[int]  # those of them whose blocks fill the device


def block_of(config: Config) -> tuple[Any, ...]:
    """Returns the values of OF_A_BLOCK."""
    return tuple(map(config.get, OF_A_BLOCK))


@lru_cache(maxsize=64)  # RUN is decided last
def runs_of(problem: Problem, block: tuple[Any, ...], n_multiprocessors: int) -> Runs:
    """Returns the lengths that a block of these parameters may have.

    Possible are whole steps, one for each tile under way and a window at least, and an even number of bytes. Filling
    are those whose blocks fill five sixths of up to three waves, and multiples of 32 that take more; or, where blocks
    are too few for that, the shortest two.
    """
    geometry = tensor_geometry(problem, Config(dict(zip(OF_A_BLOCK, block, strict=True))))
    step, bits = geometry.outputs_per_step, problem.decimation * problem.sample_bits
    least = max(geometry.n_tiles * step, geometry.outputs_per_window)
    n_together = n_multiprocessors * geometry.min_blocks

    def fills(run: int) -> bool:
        n_blocks = problem.n_pols * blocks_of(problem, geometry.runs_per_block * run)
        n_waves = ceil_div(n_blocks, n_together)
        return run % 32 == 0 if n_waves > 3 else n_blocks * 6 >= n_waves * n_together * 5

    unit = 128 if bits % 16 == 0 else 16  # bits of a row; those that multiples of 8 keep from drifting never do
    runs = [run for run in RUNS if run >= least and run % step == 0 and run * bits % unit == 0]
    filling = list(filter(fills, runs)) if n_together else runs
    return Runs(frozenset(runs), frozenset(filling or runs[:2]))
