"""The starting config of correlate, for a problem and a device without records.

The figures are those of records of the H200 and H100. Other architectures, which were not measured, have mma_sync,
whose best config depends little on the problem.
"""

from typing import Any

from autotune import Device, ceil_div

from .geometry import TILE, USUAL_MULTIPROCESSORS
from .problem import Problem

SIDE = 32  # receivers of either side of a block by mma_sync: with longer ones, 1.1 to 2 times as slow
WGMMA_GAIN = 1.7  # products of wgmma in the time of one by mma_sync, 1.5 to 2.1 at 64 receivers
SHORT_GAIN = 1.3  # the same, of slices of few units of times, whose results are most of the bytes
LEAST_OF_WGMMA = 56  # receivers: with 33, mma_sync is a seventh faster
# Units of times of a slice, by layout: with one, wgmma takes 2.3 times as long, unless chains of many channels hide
# that; and what converts what it reads takes with 64 units of up to 128 receivers still 1.2 to 1.3 times as long.
LEAST_UNITS_OF_WGMMA = {"blocks": 4, "batches": 100}
LEAST_SHARE = 0.45  # share of multiprocessors with a tile
MANY_UNITS = 256  # units of a slice: with so many, 64 receivers are enough even if voltages are converted
FEW_UNITS = 24  # units of a slice; with few receivers, it is read as late as it is used
LEAST_STAGES = 3  # stages of a slice: with fewer, nothing is copied during products
LEAST_OF_CONVERTED = 129  # receivers in layout batches, where wgmma has to convert what it reads, and slices are short


def starting_config(problem: Problem, device: Device) -> dict[str, Any]:
    """Returns the config to start from. The constraints allow it but where a grid or shared memory has no room."""
    n_multiprocessors = device.n_multiprocessors or USUAL_MULTIPROCESSORS
    if wgmma_is_faster(problem, device, n_multiprocessors):
        return by_wgmma(problem, n_multiprocessors)
    return by_mma_sync(problem, n_multiprocessors)


def wgmma_is_faster(problem: Problem, device: Device, n_multiprocessors: int) -> bool:
    """Returns whether tiles of 64 receivers are worth their idle corners, and give most multiprocessors work.

    Where batches end within a unit, what converts integers spills registers; and nibbles, where an odd number of units
    ends within a stage of two.
    """
    n, is_ragged = problem.n_receivers, problem.n_times % problem.unit_times > 0
    if problem.bits == 4 and problem.n_times > problem.unit_times:
        is_ragged = problem.n_times % (2 * problem.unit_times) > 0
    n_units = units_of_slice(problem)
    least = LEAST_OF_WGMMA if problem.layout == "blocks" or n_units >= MANY_UNITS else LEAST_OF_CONVERTED
    is_hidden = chains_are_long(problem, n_multiprocessors)
    is_small = n < least or (n_units < LEAST_UNITS_OF_WGMMA[problem.layout] and not is_hidden)
    if device.compute_capability != 90 or is_small or (is_ragged and problem.bits < 16):
        return False
    if n_products(problem) < LEAST_SHARE * n_multiprocessors:
        return False
    is_short = n_units < FEW_UNITS
    gain = SHORT_GAIN if is_short else WGMMA_GAIN
    return (is_short and is_hidden) or n_tiles(n, TILE) * TILE**2 <= gain * n_tiles(n, SIDE) * SIDE**2


def n_tiles(n_receivers: int, side: int) -> int:
    """Returns the square tiles that hold all baselines."""
    rows = ceil_div(n_receivers, side)
    return rows * (rows + 1) // 2


def n_products(problem: Problem) -> int:
    """Returns the products of 64 by 64 receivers that blocks make."""
    return n_tiles(problem.n_receivers, TILE) * problem.n_channels * problem.n_slices


def units_of_slice(problem: Problem) -> int:
    """Returns the units of times that a block adds up; each batch begins a new one."""
    return problem.n_batches // problem.n_slices * ceil_div(problem.n_times, problem.unit_times)


def chains_are_long(problem: Problem, n_multiprocessors: int) -> bool:
    """Returns whether each multiprocessor has four chains of eight channels, and rows that need not be converted."""
    return problem.layout == "blocks" and n_products(problem) >= 4 * 8 * n_multiprocessors


def by_wgmma(problem: Problem, n_multiprocessors: int) -> dict[str, Any]:
    """Chains of two channels hide how a block begins and ends; of nibbles, whose tiles take half as long, of eight.
    Where voltages of more bits are converted, chains gain nothing. One wave of blocks, as of few receivers, ends at
    once if its chains are alike; the last of several ends earlier if chains taper. Where slices are short, chains are
    as long as there are channels for.
    """
    chains = {4: (8, 4, 2), 8: (2,), 16: ()}[problem.bits] if problem.layout == "blocks" else ()
    n_each = n_products(problem) / n_multiprocessors
    is_one_wave = bool(chains) and n_each <= 4
    if not problem.sums_fit:  # a slice is split
        chain = 1
    elif problem.layout == "blocks" and units_of_slice(problem) < FEW_UNITS:
        chain = next((chain for chain in (8, 4, 2) if n_each >= chain), 1)
    elif is_one_wave:
        chain = next(chain for chain in (1, 2, 4) if n_each <= chain)
    else:
        chain = next((chain for chain in chains if n_each >= 4 * chain), 1)
    converts = problem.bits == 4 or problem.layout == "batches"
    config = {"MMA": "wgmma", "STAGES": 7 if problem.layout == "blocks" else 5, "IN_FLIGHT": 1 if converts else 2}
    config |= {"CHAIN": chain, "FETCH": 256 if problem.bits == 4 else 128}
    config |= {"TAPER": int(not is_one_wave)} if chain > 1 else {}
    config |= {"CLUSTER": 1} if chain == 8 else {}
    return config | store_of(problem)


def by_mma_sync(problem: Problem, n_multiprocessors: int) -> dict[str, Any]:
    """Blocks of 32 receivers a side; one of 48 has all of 41 to 48. A stage is of four units of times, or of two of
    nibbles of few receivers, or shorter where a slice has few. In layout batches copies are short, so that a stage is
    copied late rather than early where there are many blocks, whose copies are under way meanwhile; of nibbles, only
    where batches end within a unit. Fewer blocks of such batches have four buffers, with which compilers spilled none.
    """
    is_ragged = problem.n_times % problem.unit_times > 0
    side = 48 if 40 < problem.n_receivers <= 48 and not is_ragged else SIDE
    most_units = 2 if problem.bits == 4 and problem.n_receivers < TILE else 4
    n_units = units_of_slice(problem)
    units = next((units for units in (4, 2) if units <= most_units and n_units >= LEAST_STAGES * units), 1)
    n_blocks = n_tiles(problem.n_receivers, side) * problem.n_channels * problem.n_slices
    is_late = problem.layout == "batches" or (problem.n_receivers <= SIDE and n_units < FEW_UNITS)
    if n_blocks > 2 * n_multiprocessors and is_late and (problem.bits > 4 or is_ragged):
        buffers, ahead = 3, 1
    elif problem.layout == "blocks" or (problem.bits == 4 and not is_ragged):
        buffers, ahead = 3, 2
    else:
        buffers, ahead = 4, 2
    return dict(
        MMA="mma_sync",
        NR_RECEIVERS_PER_BLOCK=side,
        NR_RECEIVERS_PER_BLOCK_X=side,
        NR_TIMES_PER_BLOCK=units * problem.unit_times,
        NR_SHARED_BUFFERS=buffers,
        READ_AHEAD=ahead,
        WARPS=4,
        WARPS_J=2,
        **store_of(problem),
    )


def store_of(problem: Problem) -> dict[str, Any]:
    """Returns how results are added."""
    return {"STORE": "stream"} if problem.sums_fit else {"STORE": "atomic", "SPLIT": 1}
