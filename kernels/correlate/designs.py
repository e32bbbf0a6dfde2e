"""The config of each design of correlate that a problem's default has: pairs, rectangles, and tiles of wgmma."""

from math import ceil
from typing import Any

from autotune import ceil_div

from .geometry import OCTET, TILE
from .load import SIDE, Load, n_tiles
from .parts import SPLITS
from .shares import n_pairs

LEAST_STAGES = 3  # stages of a slice: with fewer, nothing is copied during products
LEAST_PART = 4  # stages of a part of a slice
LEAST_WARPS = 7  # warps of each multiprocessor: with fewer, latencies show
MANY_SMALL = {4: 7.0, 8: 40.0, 16: 1.5}  # channels of each multiprocessor: two octets are one warp then, by bits
MANY_CHANNELS = 4  # channels of each multiprocessor: 33 to 40 receivers of 16 bits have three warps then
MOST_PAIRS = 7  # pairs of a warp; where four warps have up to 9 each, these are faster
MOST_COLUMNS = 16  # receivers over whole tiles of wgmma that are faster as columns
FEWEST = 4  # receivers of short slices whose few results are stored faster than added
STORED, BLOCKS_STORED = 56, 2.2  # results of more receivers are, too, if each multiprocessor has more blocks


def by_wgmma(load: Load) -> dict[str, Any]:
    """Chains of channels hide how a block begins and ends, unless atomics add results."""
    p, chain = load.problem, chain_of_channels(load)
    is_alone = p.n_receivers <= TILE and load.is_read_as_it_is  # else blocks of the same voltages drift apart
    config: dict[str, Any] = {"MMA": "wgmma", "STAGES": 7 if is_alone else 5}
    config |= {"IN_FLIGHT": 2 if load.is_read_as_it_is else 1, "CHAIN": chain, "FETCH": 256 if p.bits == 4 else 128}
    is_narrow = 1 <= p.n_receivers % TILE <= MOST_COLUMNS and p.n_receivers > TILE
    is_slow = p.bits == 16 and load.is_in_blocks and p.n_receivers > 2 * TILE
    config |= {"LAST": "columns"} if chain < 8 and is_narrow and not is_slow else {}
    config |= {"TAPER": int(not is_one_wave(load))} if chain > 1 else {}
    config |= {"CLUSTER": 1} if chain == 8 else {}
    if not tiles_are_added(load):
        return config | {"STORE": "stream"}
    n_parts = load.parts(n_tiles(p.n_receivers, TILE), n_warps=None)
    return config | store(load, n_parts, 2 if p.bits == 4 else 4)


def tiles_are_added(load: Load) -> bool:
    """Returns whether atomics add the results of wgmma: but for many tiles of slices that are not long, which chains of
    channels hide better.
    """
    is_hidden = load.is_read_as_it_is and not load.is_long and (load.is_short or load.tiles_each >= 4)
    return load.adds and not is_hidden


def is_one_wave(load: Load) -> bool:
    """Returns whether chains are alike, as the blocks of few tiles end at once; else the last ones are shorter."""
    return load.is_in_blocks and load.problem.bits < 16 and load.tiles_each <= 4


def chain_of_channels(load: Load) -> int:
    """Returns the channels of a block: two, or eight of nibbles, whose tiles take half as long, where there are many;
    and of short slices up to four. Where voltages of more bits are converted, chains gain nothing.
    """
    p = load.problem
    if tiles_are_added(load) or not load.is_in_blocks:
        return 1
    if load.is_short:
        return next((chain for chain in (4, 2) if load.tiles_each >= chain), 1)
    if is_one_wave(load):
        tiles = load.tiles_each / p.n_channels
        return min((4, 2, 1), key=lambda chain: chain * ceil(tiles * ceil_div(p.n_channels, chain)))
    chains = {4: (8, 4, 2), 8: (2,), 16: ()}[p.bits]
    return next((chain for chain in chains if load.tiles_each >= 4 * chain), 1)


def by_pairs(load: Load) -> dict[str, Any]:
    """All receivers in one block; a stage is of four units of times, or of two where a slice has few or parts of
    nibbles in batches.
    """
    p = load.problem
    is_long = load.n_units >= LEAST_STAGES * 4 and not (p.bits == 4 and load.adds and not load.is_in_blocks)
    units = 4 if is_long else 2
    return dict(
        MMA="mma_sync",
        CUT="pairs",
        SIDE=load.octets * OCTET,
        PAIRS_PER_WARP=pairs_of_warp(load),
        UNROLL=2 if load.octets <= 5 else 1,  # code of few pairs is short
        NR_TIMES_PER_BLOCK=units * p.unit_times,
        NR_SHARED_BUFFERS=3,
        READ_AHEAD=2,
        **store(load, load.parts(1, warps_of_pairs(load)), units),
    )


def warps_of_pairs(load: Load) -> int:
    """Returns the warps of a block that has all receivers."""
    return ceil_div(n_pairs(load.octets, is_triangle=True), pairs_of_warp(load))


def pairs_of_warp(load: Load) -> int:
    """Returns the pairs of a warp: mostly of four warps. Where channels are many, two octets are one warp, unless 8
    bits are added up, and five octets of 16 bits three warps; six octets are three warps if these are enough, and
    seven six.
    """
    bits, octets = load.problem.bits, load.octets
    if octets == 2:
        return 3 if load.channels_each >= MANY_SMALL[bits] and not (bits == 8 and load.adds) else 1
    if octets == 5 and bits == 16 and load.channels_each >= MANY_CHANNELS:
        return 5
    if octets == 6 and bits > 4 and three_warps_are_enough(load):
        return 7
    if octets == 7 and bits > 4 and three_warps_are_enough(load):
        return 5
    n_each = ceil_div(n_pairs(octets, is_triangle=True), 4)
    return MOST_PAIRS if n_each > 9 else 3 if n_each == 2 else n_each


def three_warps_are_enough(load: Load) -> bool:
    """Returns whether there are so many blocks that each may have three warps."""
    return 3 * load.channels_each >= LEAST_WARPS


def by_rectangles(load: Load) -> dict[str, Any]:
    """Blocks of 32 receivers a side; one of 48 has all of 41 to 48. In layout batches copies are short, so that a stage
    is copied late rather than early where there are many blocks, whose copies are under way meanwhile; of nibbles, only
    where batches end within a unit. Fewer blocks of such batches have four buffers, with which compilers spilled none.
    """
    p = load.problem
    side = 48 if 40 < p.n_receivers <= 48 and not load.is_ragged else SIDE
    n_blocks = n_tiles(p.n_receivers, side) * load.channels_each
    units = units_of_stage(load)
    stored = store(load, load.parts(n_tiles(p.n_receivers, side), n_warps=4), units)
    if load.is_short and load.adds and p.n_receivers > STORED and n_blocks > BLOCKS_STORED:
        stored = {"STORE": "stream"}
    if load.is_short:
        buffers, ahead = 3, 1 if stored["STORE"] == "atomic" or (p.bits == 4 and not load.is_in_blocks) else 2
    elif n_blocks > 2 and not load.is_in_blocks and (p.bits > 4 or load.is_ragged):
        buffers, ahead = 3, 1
    elif load.is_in_blocks or (p.bits == 4 and not load.is_ragged):
        buffers, ahead = 3, 2
    else:
        buffers, ahead = 4, 2
    return dict(
        MMA="mma_sync",
        NR_RECEIVERS_PER_BLOCK=side,
        NR_RECEIVERS_PER_BLOCK_X=side,
        NR_TIMES_PER_BLOCK=units * p.unit_times,
        NR_SHARED_BUFFERS=buffers,
        READ_AHEAD=ahead,
        WARPS=4,
        WARPS_J=2,
        **stored,
    )


def units_of_stage(load: Load) -> int:
    """Returns the units of times of a stage of rectangles: four, or two of nibbles of few receivers, or fewer where a
    slice is short.
    """
    p = load.problem
    if load.is_short:
        is_long = load.n_units >= 6 or (load.n_units >= 2 and p.n_receivers > 96 and not load.is_in_blocks)
        return 4 if is_long else min(2, load.n_units)
    return 2 if p.bits == 4 and p.n_receivers < TILE else 4


def store(load: Load, n_parts: int, units_per_stage: int) -> dict[str, Any]:
    """Returns how results are stored: added, by so many parts of a slice, or as they are."""
    if not load.adds or (load.is_short and load.problem.n_receivers <= FEWEST):
        return {"STORE": "stream"}
    return {"STORE": "atomic", "SPLIT": long_parts(load, n_parts, units_per_stage)}


def long_parts(load: Load, n_parts: int, units_per_stage: int) -> int:
    """Returns the number of parts; of a short slice fewer, which have LEAST_PART stages and bring fewer results than
    voltages.
    """
    if not load.is_short:
        return n_parts
    p = load.problem
    most = min(load.n_units // (LEAST_PART * units_per_stage), p.n_receivers * load.n_units // p.n_baselines)
    return max(n for n in (1, *SPLITS) if n <= max(1, min(n_parts, most)))
