"""How long the runs of ddc's tensor algorithm are: what is possible, and what fills the device."""

from functools import lru_cache
from typing import Any, NamedTuple

from autotune import Config, ceil_div

from .matrices import matrices_of
from .problem import Problem

# So many that blocks can fill whole waves: each at most a sixth more than the one before, and from 96 on a twelfth.
RUNS = (*range(24, 48, 4), *range(48, 256, 8), *range(256, 513, 16))
MOST_LEAD = 15  # outputs before a row's first one that a grid reckons with
# What a block depends on, but for RUN.
OF_A_BLOCK = ("ALGORITHM", "MMA", "WARPS", "CHAIN", "PART", "SUMS", "STEP", "STAGE", "STAGES", "WINDOW")


def blocks_of(problem: Problem, outputs: int) -> int:
    """Of a polarisation, of so many outputs each, whatever its lead is."""
    return ceil_div(problem.n_out + MOST_LEAD, outputs)


class Runs(NamedTuple):
    """Where they overlap."""

    possible: frozenset[int]
    filling: frozenset[int]  # of these


def block_of(config: Config) -> tuple[Any, ...]:
    """The values of OF_A_BLOCK."""
    return tuple(map(config.get, OF_A_BLOCK))


@lru_cache(maxsize=64)  # RUN is decided last
def runs_of(problem: Problem, block: tuple[Any, ...], n_multiprocessors: int) -> Runs:
    """Possible are whole steps, one for each tile under way and a window at least, and an even number of bytes.
    Filling are those whose blocks fill five sixths of up to three waves, and multiples of 32 that take more; or, where
    blocks are too few for that, the shortest two.
    """
    matrices = matrices_of(problem, Config(dict(zip(OF_A_BLOCK, block, strict=True))))
    step, bits = int(matrices.config.STEP), problem.decimation * problem.sample_bits
    least = max(matrices.live * step, int(matrices.config.WINDOW))
    n_together = n_multiprocessors * matrices.min_blocks

    def fills(run: int) -> bool:
        n_blocks = problem.n_pols * blocks_of(problem, matrices.runs * run)
        n_waves = ceil_div(n_blocks, n_together)
        return run % 32 == 0 if n_waves > 3 else n_blocks * 6 >= n_waves * n_together * 5

    unit = 128 if bits % 16 == 0 else 16  # bits of a row; those that multiples of 8 keep from drifting never do
    runs = [run for run in RUNS if run >= least and run % step == 0 and run * bits % unit == 0]
    filling = list(filter(fills, runs)) if n_together else runs
    return Runs(frozenset(runs), frozenset(filling or runs[:2]))
