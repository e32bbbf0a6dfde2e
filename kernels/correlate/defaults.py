"""The starting config of correlate, for a problem and a device without records.

The figures are those of the H200 and H100: of records, and of docs/lab/2026-11-27-correlate-at-telescope-sizes.md.
Other architectures, which were not measured, have mma_sync.
"""

from typing import Any

from autotune import Device, ceil_div

from .geometry import OCTET, TILE, USUAL_MULTIPROCESSORS
from .problem import Problem
from .shares import n_pairs
from .space import SPLITS

SIDE = 32  # receivers of either side of a block of rectangles: with longer ones, 1.1 to 2 times as slow
# wgmma makes so many products in the time of one by rectangles, from 64 receivers on; in both layouts alike if slices
# are split.
WGMMA_GAIN = {"blocks": 2.0, "batches": 1.7}
SHORT_GAIN = 1.3  # the same, of slices of few units of times, whose results are most of the bytes
# wgmma needs so many receivers; fewer, if it reads voltages as they are. With 33 of bytes to convert, rectangles are a
# seventh faster.
LEAST_OF_WGMMA, LEAST_AS_THEY_ARE, LEAST_OF_SHORT = 40, 24, 56
# Units of times of a slice, by layout: with one, wgmma takes 2.3 times as long, unless chains of many channels hide
# that; and what converts what it reads takes with 64 units of up to 128 receivers still 1.2 to 1.3 times as long.
LEAST_UNITS_OF_WGMMA = {"blocks": 4, "batches": 100}
LEAST_SHARE = 0.45  # share of multiprocessors with a tile
MANY_UNITS = 128  # units of a slice: with so many, 64 receivers are enough even if voltages are converted
FEW_UNITS = 24  # units of a slice: with fewer, which are short, neither pairs nor atomics were measured
LEAST_STAGES = 3  # stages of a slice: with fewer, nothing is copied during products
LEAST_OF_CONVERTED = 129  # receivers in layout batches, where wgmma has to convert what it reads, and slices are short
# Pairs of so many octets are faster than wgmma: up to 56 receivers, and some that are few more than its tile has; those
# of seven octets are only if atomics add results. Pairs of up to MOST_OCTETS are faster than rectangles.
OCTETS_OF_PAIRS, OCTETS_ADDED = (*range(1, 8), 9, 10), 7
MOST_OCTETS = 10
MOST_PAIRS = 7  # pairs of a warp; where four warps have up to 9 each, these are faster
MOST_COLUMNS = 16  # receivers over whole tiles of wgmma that are faster as columns
LEAST_WARPS = 7  # warps of each multiprocessor: with fewer, latencies show
LEAST_PART = 4  # stages of a part of a slice


def starting_config(problem: Problem, device: Device) -> dict[str, Any]:
    """Returns the config to start from. The constraints allow it but where a grid or shared memory has no room."""
    n_multiprocessors = device.n_multiprocessors or USUAL_MULTIPROCESSORS
    if pairs_are_faster(problem, n_multiprocessors):
        return by_pairs(problem, n_multiprocessors)
    if wgmma_is_faster(problem, device, n_multiprocessors):
        return by_wgmma(problem, n_multiprocessors)
    if pairs_have_blocks(problem, n_multiprocessors):
        return by_pairs(problem, n_multiprocessors)
    return by_rectangles(problem, n_multiprocessors)


def is_short(problem: Problem) -> bool:
    """Returns whether results are most of what a slice moves."""
    return units_of_slice(problem) < FEW_UNITS


def adds(problem: Problem) -> bool:
    """Returns whether atomics add results: where they can, they take 4 to 14 % less, and with several parts half."""
    return problem.bits < 16 and not problem.overwrites and not is_short(problem)


def pairs_have_blocks(problem: Problem, n_multiprocessors: int) -> bool:
    """Returns whether a block has all receivers, and slices can be split, or such blocks are enough without."""
    octets = ceil_div(problem.n_receivers, OCTET)
    if octets > MOST_OCTETS or is_short(problem):
        return False
    n_warps = warps_of_pairs(problem, n_multiprocessors) * problem.n_channels * problem.n_slices
    return adds(problem) or octets <= 2 or n_warps >= LEAST_WARPS * n_multiprocessors


def pairs_are_faster(problem: Problem, n_multiprocessors: int) -> bool:
    """Returns whether pairs are faster than wgmma would be."""
    octets = ceil_div(problem.n_receivers, OCTET)
    if octets not in OCTETS_OF_PAIRS or not pairs_have_blocks(problem, n_multiprocessors):
        return False
    if octets == OCTETS_ADDED:
        return adds(problem)
    if octets == OCTETS_ADDED - 1 and is_read_as_it_is(problem):
        return three_warps_are_enough(problem, n_multiprocessors)
    return octets < OCTETS_ADDED or problem.bits > 4 or problem.layout == "blocks"


def is_read_as_it_is(problem: Problem) -> bool:
    """Returns whether tensor cores read the voltages as they are."""
    return problem.layout == "blocks" and problem.bits > 4


def three_warps_are_enough(problem: Problem, n_multiprocessors: int) -> bool:
    """Returns whether there are so many blocks that each may have three warps."""
    return 3 * problem.n_channels * problem.n_slices >= LEAST_WARPS * n_multiprocessors


def warps_of_pairs(problem: Problem, n_multiprocessors: int) -> int:
    """Returns the warps of a block that has all receivers."""
    n = n_pairs(ceil_div(problem.n_receivers, OCTET), is_triangle=True)
    return ceil_div(n, pairs_of_warp(problem, n_multiprocessors))


def pairs_of_warp(problem: Problem, n_multiprocessors: int) -> int:
    """Returns the pairs of a warp: mostly of four warps. Of 48 receivers three warps are faster if there are enough,
    and of 56 six, but for nibbles, whose products are twice as many.
    """
    octets = ceil_div(problem.n_receivers, OCTET)
    if problem.bits > 4 and octets == 6 and three_warps_are_enough(problem, n_multiprocessors):
        return 7
    if problem.bits > 4 and octets == 7:
        return 5
    n_each = ceil_div(n_pairs(octets, is_triangle=True), 4)
    return MOST_PAIRS if n_each > 9 else 3 if n_each == 2 else n_each


def wgmma_is_faster(problem: Problem, device: Device, n_multiprocessors: int) -> bool:
    """Returns whether tiles of 64 receivers are worth their idle corners, and give most multiprocessors work.

    Where batches end within a unit, what converts integers spills registers; and nibbles, where an odd number of units
    ends within a stage of two.
    """
    n, is_ragged = problem.n_receivers, problem.n_times % problem.unit_times > 0
    if problem.bits == 4 and problem.n_times > problem.unit_times:
        is_ragged = problem.n_times % (2 * problem.unit_times) > 0
    n_units = units_of_slice(problem)
    least = LEAST_AS_THEY_ARE if is_read_as_it_is(problem) else LEAST_OF_WGMMA
    if is_short(problem):
        least = LEAST_OF_SHORT
    if problem.layout == "batches" and n_units < MANY_UNITS:
        least = LEAST_OF_CONVERTED
    is_hidden = chains_are_long(problem, n_multiprocessors)
    is_small = n < least or (n_units < LEAST_UNITS_OF_WGMMA[problem.layout] and not is_hidden)
    if device.compute_capability != 90 or is_small or (is_ragged and problem.bits < 16):
        return False
    if n_products(problem) < LEAST_SHARE * n_multiprocessors:
        return False
    is_split = adds(problem) and n_products(problem) < 4 * n_multiprocessors
    gain = SHORT_GAIN if is_short(problem) else WGMMA_GAIN["blocks" if is_split else problem.layout]
    is_alone = is_read_as_it_is(problem) and n <= TILE  # one tile of wgmma hides latencies better
    is_given = is_hidden if is_short(problem) else is_alone
    return is_given or n_tiles(n, TILE) * TILE**2 <= gain * n_tiles(n, SIDE) * SIDE**2


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
    """Chains of channels hide how a block begins and ends, unless atomics add results. They have two channels, or eight
    of nibbles, whose tiles take half as long. Where voltages of more bits are converted, chains gain nothing. One wave
    of blocks, as of few receivers, ends at once if its chains are alike; the last of several ends earlier if chains
    taper. Where slices are short, chains are as long as there are channels for.
    """
    chains = {4: (8, 4, 2), 8: (2,), 16: ()}[problem.bits] if problem.layout == "blocks" else ()
    n_each = n_products(problem) / n_multiprocessors
    is_one_wave = bool(chains) and n_each <= 4
    if adds(problem):
        chain = 1
    elif problem.layout == "blocks" and is_short(problem):
        chain = next((chain for chain in (8, 4, 2) if n_each >= chain), 1)
    elif is_one_wave:
        chain = next(chain for chain in (1, 2, 4) if n_each <= chain)
    else:
        chain = next((chain for chain in chains if n_each >= 4 * chain), 1)
    converts = not is_read_as_it_is(problem)
    is_alone = problem.n_receivers <= TILE and not converts  # else blocks of the same voltages drift apart
    config = {"MMA": "wgmma", "STAGES": 7 if is_alone else 5, "IN_FLIGHT": 1 if converts else 2}
    config |= {"CHAIN": chain, "FETCH": 256 if problem.bits == 4 else 128}
    is_narrow = 1 <= problem.n_receivers % TILE <= MOST_COLUMNS and problem.n_receivers > TILE
    is_slow = problem.bits == 16 and problem.layout == "blocks" and problem.n_receivers > 2 * TILE
    config |= {"LAST": "columns"} if chain < 8 and is_narrow and not is_slow else {}
    config |= {"TAPER": int(not is_one_wave)} if chain > 1 else {}
    config |= {"CLUSTER": 1} if chain == 8 else {}
    if not adds(problem):
        return config | {"STORE": "stream"}
    # All tiles are split in two where a second wave of them would be short.
    least = 2 if 1 < n_each < 2 else next((split for split in (1, *SPLITS) if split * n_each >= 0.9), SPLITS[-1])
    return config | {"STORE": "atomic", "SPLIT": longest_split(problem, least, 2 if problem.bits == 4 else 4)}


def by_pairs(problem: Problem, n_multiprocessors: int) -> dict[str, Any]:
    """All receivers in one block; a stage is of four units of times, or of fewer where a slice has few."""
    n_units = units_of_slice(problem)
    units = next((units for units in (4, 2) if n_units >= LEAST_STAGES * units), 1)
    n_warps = warps_of_pairs(problem, n_multiprocessors) * problem.n_channels * problem.n_slices
    return dict(
        MMA="mma_sync",
        CUT="pairs",
        SIDE=ceil_div(problem.n_receivers, OCTET) * OCTET,
        PAIRS_PER_WARP=pairs_of_warp(problem, n_multiprocessors),
        UNROLL=2 if units > 1 and problem.n_receivers <= 5 * OCTET else 1,  # code of few pairs is short
        NR_TIMES_PER_BLOCK=units * problem.unit_times,
        NR_SHARED_BUFFERS=3,
        READ_AHEAD=2,
        **store_by_warps(problem, n_warps / n_multiprocessors, units),
    )


def by_rectangles(problem: Problem, n_multiprocessors: int) -> dict[str, Any]:
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
    is_late = problem.layout == "batches" or (problem.n_receivers <= SIDE and is_short(problem))
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
        **store_by_warps(problem, 4 * n_blocks / n_multiprocessors, units),
    )


def store_by_warps(problem: Problem, n_warps: float, units_per_stage: int) -> dict[str, Any]:
    """Returns how results are stored: added by as many parts of slices as give multiprocessors warps enough.

    n_warps: of each multiprocessor, without parts.
    """
    if not adds(problem):
        return {"STORE": "stream"}
    least = next((split for split in (1, *SPLITS) if split * n_warps >= LEAST_WARPS), SPLITS[-1])
    return {"STORE": "atomic", "SPLIT": longest_split(problem, least, units_per_stage)}


def longest_split(problem: Problem, wanted: int, units_per_stage: int) -> int:
    """Returns the wanted number of parts of a slice, or as many as have LEAST_PART stages and bring fewer results than
    voltages.
    """
    n_units = units_of_slice(problem)
    fit = (
        split
        for split in reversed((1, *SPLITS))
        if split <= wanted
        and split * LEAST_PART * units_per_stage <= n_units
        and split * problem.n_baselines <= problem.n_receivers * n_units
    )
    return next(fit, 1)
