"""The starting config of ddc, for a problem and a device without records.

The figures come from records of the H200 and H100. Tensor cores are 1.5 to 10 times as fast as threads if a filter has
more than a few taps, and a STAGE, WINDOW or RUN next to the best one costs a few percent. Other architectures were not
measured; their configs follow from the instructions and memory that they have.
"""

from collections.abc import Iterator
from math import log
from typing import Any

from autotune import Config, Device, ceil_div

from .problem import Problem
from .runs import block_of, blocks_of, runs_of
from .space import MAX_HALF_BITS, PARTS, STAGES, STEPS, WGMMA
from .tensor import tensor_geometry

Choice = dict[str, Any]
TYPICAL_MULTIPROCESSORS = 100  # assumed if a device does not state its number
STAGE_BYTES = 330  # bytes of a row in a stage: stages of 160 to 330 bytes were fastest nearly everywhere
MOST_REGISTERS = 236  # estimated registers with mma.sync: above it, compilers often needed more than a thread has
ALL_REGISTERS = 255
MOST_SAMPLES = 128  # samples in a step with mma_sync: 224 spilled
FAR_APART = 16  # decimation from which threads read samples too far apart: they took 1.3 (18) to 14 times (181) as long
FEW_TAPS = 16  # taps up to which threads are as fast as products of two bytes for each sample


def choices(problem: Problem, device: Device) -> Iterator[Choice]:
    """Yields configs in the order in which to try them. The first that the constraints allow is the default."""
    for mma in products(problem, device):
        for step in steps_by_worth(problem, mma):
            n_samples = step * problem.decimation
            # Most products of a longer step would be with zeros, or a thread would have too few registers.
            if mma != "mma_sync" or n_samples <= min(2 * problem.taps, MOST_SAMPLES):
                yield from multiplied(problem, device, mma, step)
    yield from by_threads(problem, device)
    for mma in instructions(device):  # threads' samples do not fit in shared memory if decimations are high
        for step in STEPS:
            yield from multiplied(problem, device, mma, step, ALL_REGISTERS)
    yield from by_subgroups()


def instructions(device: Device) -> tuple[str, ...]:
    """Returns the instructions for matrix products that a device has."""
    return () if device.compute_capability < 80 else ("mma_sync", *(WGMMA if device.compute_capability == 90 else ()))


def products(problem: Problem, device: Device) -> tuple[str, ...]:
    """Returns the instructions for products, the best first, or none if threads are faster.

    wgmma multiplies halves, which hold 12 bits, at any decimation. wgmma_int8 is the fastest if a sample is one byte;
    if it is two, each is an operand. With few samples per output, mma_sync has less overhead than either.
    """
    bits, taps, decimation = problem.sample_bits, problem.taps, problem.decimation
    if decimation < FAR_APART and (taps < 4 or (bits > MAX_HALF_BITS and taps <= FEW_TAPS)):
        return ()
    if "wgmma" not in instructions(device) or (bits <= MAX_HALF_BITS and taps <= 64 and decimation in (2, 4)):
        return instructions(device)
    return (*WGMMA, "mma_sync") if 8 < bits <= MAX_HALF_BITS else ("wgmma_int8", "wgmma", "mma_sync")


def multiplied(
    problem: Problem, device: Device, mma: str, step: int, most_registers: int = MOST_REGISTERS
) -> Iterator[Choice]:
    """Yields configs for tensor cores with steps of ``step`` outputs. With mma.sync they have at most
    ``most_registers`` registers.
    """
    choice = {"ALGORITHM": "tensor", "MMA": mma, "STEP": step}
    if mma == "mma_sync":
        yield from by_warps(problem, device, choice, most_registers)
    else:
        yield from by_warpgroups(problem, device, choice)


def steps_by_worth(problem: Problem, mma: str) -> list[int]:
    """Returns the values of STEP, the best first: a step should have about as many samples as suit tensor cores.

    With more samples, short filters have many products with zeros; with fewer, sums move too often.
    """
    if mma == "mma_sync":
        wanted = 16.0  # samples of a product: 2 outputs at a decimation of 8, 4 at a decimation of 4
    elif mma == "wgmma_int8" and problem.sample_bits > 8:
        wanted = 64.0  # two products, whose bytes are in pairs
    elif mma == "wgmma_int8":
        wanted = max(48.0, min(0.8 * problem.taps, 160))
    else:
        wanted = max(48.0, min(problem.taps, 128))
    return sorted(STEPS, key=lambda step: abs(log(step * problem.decimation / wanted)))


def stage_of(problem: Problem, step: int, stages: tuple[int, ...]) -> int:
    """Returns the steps of a stage: the most of ``stages`` that fit in STAGE_BYTES, or the fewest."""
    n_bits = step * problem.decimation * problem.sample_bits
    fitting = [stage for stage in stages if stage * n_bits <= 8 * STAGE_BYTES]
    return max(fitting, default=min(stages))


def by_warpgroups(problem: Problem, device: Device, choice: Choice) -> Iterator[Choice]:
    """Yields configs with wgmma. Parts of one product come first; with halves they need a step with an odd number of
    products. With bytes, twelve warps that share a ring of weights are faster than eight.
    """
    takes_bytes = choice["MMA"] == "wgmma_int8"
    rest = {"SUMS": "stay"} if takes_bytes else {"CHAIN": 8}
    rest |= {"STEP": choice["STEP"], "STAGE": stage_of(problem, choice["STEP"], STAGES), "STAGES": 2}
    for part in PARTS:
        for warps in (12, 8, 4) if takes_bytes else (8, 4):
            block = choice | rest | {"WARPS": warps, "PART": part, "WINDOW": 16 if warps == 12 else 32}
            if (run := run_of(problem, device, block)) and (warps == 4 or fills(problem, device, block | {"RUN": run})):
                yield block | {"RUN": run}


def run_of(problem: Problem, device: Device, block: Choice) -> int:
    """Returns the RUN with which the device is done first, or 0 if there is none. A wave of blocks takes as long as a
    run and its warm-up.
    """
    geometry = tensor_geometry(problem, Config(block))
    if not geometry.can_multiply:
        return 0
    runs = runs_of(problem, block_of(geometry.config), device.n_multiprocessors)
    n_together = multiprocessors(device) * geometry.min_blocks
    before = geometry.n_tiles * geometry.outputs_per_step

    def n_steps(run: int) -> int:
        n_blocks = problem.n_pols * blocks_of(problem, geometry.runs_per_block * run)
        return ceil_div(n_blocks, n_together) * (run + before)

    return min(runs.filling, key=lambda run: (n_steps(run), run), default=0)


def multiprocessors(device: Device) -> int:
    return device.n_multiprocessors or TYPICAL_MULTIPROCESSORS


def fills(problem: Problem, device: Device, block: Choice) -> bool:
    """Returns whether there are enough blocks for four fifths of the multiprocessors."""
    geometry = tensor_geometry(problem, Config(block))
    n_blocks = problem.n_pols * blocks_of(problem, geometry.outputs_per_block)
    return n_blocks * 5 >= multiprocessors(device) * geometry.min_blocks * 4


def by_warps(problem: Problem, device: Device, choice: Choice, most_registers: int) -> Iterator[Choice]:
    """Yields configs with mma.sync. Runs read the samples of their first outputs twice, so they are at least eight
    times as long as the filter, in outputs. If a call does not fill the device, they are as short as possible.
    """
    step = choice["STEP"]
    n_outputs = problem.n_pols * problem.n_out
    most = n_outputs // (64 * multiprocessors(device))
    wanted = min(8 * problem.rows_of_taps, most)
    runs = sorted((64, 128, 256, 512), key=lambda run: (run < wanted, run if run >= wanted else -run))
    for unroll, window in ((2, 32), (1, 32), (2, 64)):
        stage = stage_of(problem, step, STAGES[1:] if unroll == 2 else STAGES[:1])
        rest = {"STAGE": stage, "STAGES": 2, "UNROLL": unroll, "WINDOW": window}
        for resident in (16, 4):
            block = choice | {"RESIDENT": resident} | rest
            if tensor_geometry(problem, Config(block)).registers <= most_registers:
                yield from (block | {"RUN": run} for run in runs[:2])


def by_threads(problem: Problem, device: Device) -> Iterator[Choice]:
    """Yields configs without tensor cores. A thread loads two samples at once, or four if rows have so many. Outputs of
    short rows are staged, since a store follows every few samples. Several blocks on a multiprocessor hide each other's
    waits if shared memory has room for them. A block computes four tiles, for which it mixes the weights once, if all
    multiprocessors still have a block.
    """
    decimation = problem.decimation
    phases = 1 if decimation % 2 else 2 if decimation % 4 or decimation == 4 else 4
    rest = {"PHASES": phases, "STORE": "staged" if 2 <= decimation <= 16 else "direct"}
    for coarsen in (8, 4) if 2 <= decimation < 16 else (4,):
        for wgs, n_blocks in ((64, 8), (64, 1)) if phases == 1 else ((128, 4), (64, 8), (128, 1), (64, 1)):
            is_long = problem.n_pols * problem.n_out >= 4 * wgs * coarsen * multiprocessors(device)
            block = {"WGS": wgs, "COARSEN": coarsen, "MIN_BLOCKS": n_blocks, "TILES": 4 if is_long else 1}
            yield {"ALGORITHM": "register"} | block | rest


def by_subgroups() -> Iterator[Choice]:
    """Yields configs whose subgroups share outputs. They are slower than threads, but need less shared memory."""
    for wgs in (256, 128, 64):
        for size in (8, 4, 16, 2):
            for coarsen in (8, 4, 16):
                yield {"ALGORITHM": "subgroup", "WGS": wgs, "SG_SIZE": size, "COARSEN": coarsen, "TILES": 4}
