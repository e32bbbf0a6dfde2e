"""The starting config of ddc, for a problem and a device without records.

The figures are those of records of the H200 and H100: tensor cores are 1.5 to 10 times as fast as threads wherever a
filter is longer than a few taps, and a STAGE, WINDOW or RUN next to the best one costs a few percent. What was not
measured, other architectures, follows from what they have.
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
STAGE_BYTES = 330  # bytes of a row: stages of 160 to 330 bytes were fastest nearly everywhere
MOST_REGISTERS = 236  # by the estimate, of mma.sync: where it was higher, compilers often needed more than there are
ALL_REGISTERS = 255
MOST_SAMPLES = 128  # samples of a step by mma_sync: 224 spilled
FEW_TAPS = 16  # filters that threads are as fast at as products of two bytes for each sample


def choices(problem: Problem, device: Device) -> Iterator[Choice]:
    """Yields configs in the order in which they are to be tried; the constraints decide."""
    for mma in products(problem, device):
        for step in steps_by_worth(problem, mma):
            n_samples = step * problem.decimation
            # beyond them most products are with zeros, or a thread has no registers for its samples
            if mma != "mma_sync" or n_samples <= min(2 * problem.taps, MOST_SAMPLES):
                yield from multiplied(problem, device, mma, step)
    yield from by_threads(problem, device)
    for mma in instructions(device):  # threads have no room for the samples of high decimations
        for step in STEPS:
            yield from multiplied(problem, device, mma, step, ALL_REGISTERS)
    yield from by_subgroups()


def instructions(device: Device) -> tuple[str, ...]:
    """Returns the instructions for matrix products that a device has."""
    return () if device.compute_capability < 80 else ("mma_sync", *(WGMMA if device.compute_capability == 90 else ()))


def products(problem: Problem, device: Device) -> tuple[str, ...]:
    """Returns the instructions to multiply with, the best first; none where threads are faster.

    wgmma takes halves, which hold 12 bits, at any decimation; wgmma_int8 wins where a sample is a byte, and takes three
    products of it where it is two. At few samples an output, mma_sync has less to do besides than either.
    """
    bits, taps, decimation = problem.sample_bits, problem.taps, problem.decimation
    if taps < 4 or (bits > MAX_HALF_BITS and taps <= FEW_TAPS):
        return ()
    if "wgmma" not in instructions(device) or (bits <= MAX_HALF_BITS and taps <= 64 and decimation in (2, 4)):
        return instructions(device)
    return (*WGMMA, "mma_sync") if 8 < bits <= MAX_HALF_BITS else ("wgmma_int8", "wgmma", "mma_sync")


def multiplied(
    problem: Problem, device: Device, mma: str, step: int, most_registers: int = MOST_REGISTERS
) -> Iterator[Choice]:
    """Yields configs by tensor cores, with steps of so many outputs; of mma.sync, with so many registers at most."""
    choice = {"ALGORITHM": "tensor", "MMA": mma, "STEP": step}
    if mma == "mma_sync":
        yield from by_warps(problem, device, choice, most_registers)
    else:
        yield from by_warpgroups(problem, device, choice)


def steps_by_worth(problem: Problem, mma: str) -> list[int]:
    """Returns the outputs of a step: those that begin with about as many samples as tensor cores are best fed with.

    With more, short filters are multiplied with many zeros; with fewer, sums move too often.
    """
    if mma == "mma_sync":
        wanted = 16.0  # samples of a product: 2 outputs at a decimation of 8, 4 at one of 4
    elif mma == "wgmma_int8" and problem.sample_bits > 8:
        wanted = 64.0  # two products, and their bytes in pairs
    elif mma == "wgmma_int8":
        wanted = max(48.0, min(0.8 * problem.taps, 160))
    else:
        wanted = max(48.0, min(problem.taps, 128))
    return sorted(STEPS, key=lambda step: abs(log(step * problem.decimation / wanted)))


def stage_of(problem: Problem, step: int, stages: tuple[int, ...]) -> int:
    """Returns the steps of a stage: as many as STAGE_BYTES have, or the fewest."""
    n_bits = step * problem.decimation * problem.sample_bits
    fitting = [stage for stage in stages if stage * n_bits <= 8 * STAGE_BYTES]
    return max(fitting, default=min(stages))


def by_warpgroups(problem: Problem, device: Device, choice: Choice) -> Iterator[Choice]:
    """Yields configs with wgmma. Parts are of one product where they may be; of halves that is where a step has an odd
    number of them. Twelve warps, which share a ring of weights that eight had alone, are faster at bytes.
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
    """Returns the run with which the device is done first: waves of blocks, each of a run and what it begins with. 0:
    there is none.
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
    """Returns whether there are as many blocks as four fifths of the multiprocessors run at once."""
    geometry = tensor_geometry(problem, Config(block))
    n_blocks = problem.n_pols * blocks_of(problem, geometry.outputs_per_block)
    return n_blocks * 5 >= multiprocessors(device) * geometry.min_blocks * 4


def by_warps(problem: Problem, device: Device, choice: Choice, most_registers: int) -> Iterator[Choice]:
    """Yields configs with mma.sync. Runs repeat the samples that their first outputs need, so they are at least eight
    times as long as the filter, in outputs; but a call that does not fill the device has the shortest.
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
    """Yields configs without tensor cores. A thread loads two samples at once, or four where rows have them; outputs
    of short rows are staged, since they are stored at every few samples. Several blocks hide each other's waits, where
    shared memory has room for them. A block makes four tiles, with the weights mixed once, if all multiprocessors have
    one.
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
    """Yields configs whose subgroups share outputs: slower than threads, but they need less shared memory."""
    for wgs in (256, 128, 64):
        for size in (8, 4, 16, 2):
            for coarsen in (8, 4, 16):
                yield {"ALGORITHM": "subgroup", "WGS": wgs, "SG_SIZE": size, "COARSEN": coarsen, "TILES": 4}
