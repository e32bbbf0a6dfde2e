"""The starting config of correlate, for a problem and a device without records.

The figures are those of the H200 and H100: of records, and of docs/lab/2026-11-27-correlate-at-telescope-sizes.md.
Other architectures, which were not measured, have mma_sync.
"""

from typing import Any

from autotune import Device

from .designs import (
    LEAST_WARPS,
    MANY_CHANNELS,
    by_pairs,
    by_rectangles,
    by_wgmma,
    three_warps_are_enough,
    warps_of_pairs,
)
from .geometry import TILE, USUAL_MULTIPROCESSORS
from .load import Load
from .problem import Problem

# wgmma makes so many products in the time of one by rectangles, from 64 receivers on; in both layouts alike if slices
# are split.
WGMMA_GAIN = {"blocks": 2.0, "batches": 1.7}
SHORT_GAIN = 1.6  # the same, of slices of three units or more that are short
# wgmma needs so many receivers; fewer, if it reads voltages as they are; and of batches of few units more.
LEAST_OF_WGMMA, LEAST_AS_THEY_ARE, LEAST_OF_CONVERTED = 40, 24, 129
LEAST_UNITS, MANY_UNITS = 85, 128  # units of a slice of batches that wgmma needs; with many, of any receivers
LEAST_TILES, LEAST_OF_NIBBLES = 0.4, 0.3  # each multiprocessor needs so many; nibbles make twice as many products
LONG_BATCH = 5  # units of a batch: with fewer, wgmma loses too much where it ends within a unit
LARGE = 300  # receivers whose short slices wgmma adds up faster: results of 8 bits in 64 bits are most of the bytes

# Pairs of so many octets are faster than wgmma: up to 56 receivers, and some that are few more than its tile has. Where
# atomics add nothing, seven octets are slower.
OCTETS_OF_PAIRS, OCTETS_ADDED = (*range(1, 8), 9, 10), 7
MOST_OCTETS = 10  # up to these, pairs are faster than rectangles
LEAST_CHANNELS = 0.2  # each multiprocessor needs so many, if pairs are of nine or ten octets
LEAST_OF_FEW_UNITS = {4: 0.3, 8: 1.0}  # the same of seven octets and more, by bits, if slices are not long
OCTETS_OF_SHORT, OCTETS_OF_SHORTEST = 5, 3  # MOST_OCTETS of short slices, and of those of one or two units


def starting_config(problem: Problem, device: Device) -> dict[str, Any]:
    """Returns the config to start from. The constraints allow it but where a grid or shared memory has no room."""
    load = Load(problem, device.n_multiprocessors or USUAL_MULTIPROCESSORS)
    has_pairs = pairs_beat_rectangles(load)
    has_wgmma = device.compute_capability == 90 and wgmma_beats_rectangles(load)
    if has_wgmma and (wgmma_beats_pairs(load) or not has_pairs):
        return by_wgmma(load)
    return by_pairs(load) if has_pairs else by_rectangles(load)


def pairs_beat_rectangles(load: Load) -> bool:
    """Returns whether a block with all receivers is faster: without parts of slices, blocks must be many."""
    octets = load.octets
    if octets <= 2 or load.is_short:
        return octets <= (OCTETS_OF_SHORT if load.n_units > 2 else OCTETS_OF_SHORTEST)
    if octets > MOST_OCTETS or (octets > 8 and load.problem.bits == 4 and not load.adds):
        return False
    if octets == 4 and load.problem.bits == 16 and not load.is_in_blocks and load.channels_each < MANY_CHANNELS:
        return False  # rectangles of 32 receivers have no idle corners then
    if load.adds and octets >= OCTETS_ADDED and not load.is_long:
        return load.channels_each >= LEAST_OF_FEW_UNITS[load.problem.bits]
    if load.adds:
        return octets <= 8 or load.channels_each >= LEAST_CHANNELS
    return octets <= OCTETS_OF_SHORT or warps_of_pairs(load) * load.channels_each >= LEAST_WARPS - 1


def wgmma_beats_pairs(load: Load) -> bool:
    """Returns whether pairs, which have blocks enough, are slower than wgmma would be."""
    octets = load.octets
    if octets not in OCTETS_OF_PAIRS:
        return True
    if octets > 2 and tiles_are_alone(load):
        return True
    if octets == OCTETS_ADDED:
        return not load.adds
    if octets == OCTETS_ADDED - 1 and load.is_read_as_it_is:
        return not three_warps_are_enough(load)
    return octets == MOST_OCTETS and load.problem.bits == 4 and not load.is_in_blocks


def tiles_are_alone(load: Load) -> bool:
    """Returns whether slices are long, and each multiprocessor has one tile of them or none, which has all receivers.
    Of nibbles, tiles must be enough.
    """
    is_one = load.problem.n_receivers <= TILE and load.channels_each <= 1
    is_enough = load.problem.bits > 4 or load.tiles_each >= LEAST_TILES
    return is_one and load.is_in_blocks and load.is_long and not load.adds and is_enough


def wgmma_beats_rectangles(load: Load) -> bool:
    """Returns whether tiles of 64 receivers are worth their idle corners, and give most multiprocessors work."""
    n = load.problem.n_receivers
    if load.is_short:
        return load.is_in_blocks and wgmma_beats_rectangles_of_short(load)
    if tiles_are_alone(load):
        return True
    is_nibbles = load.problem.bits == 4 and load.is_long and n > TILE
    least = LEAST_AS_THEY_ARE if load.is_read_as_it_is else LEAST_OF_WGMMA
    if not load.is_in_blocks:
        if load.n_units < LEAST_UNITS:
            return False
        least = LEAST_OF_CONVERTED if load.n_units < MANY_UNITS and not is_nibbles else least
    if n < least or (load.is_ragged_for_wgmma and load.units_of_batch < LONG_BATCH and not is_nibbles):
        return False
    if load.tiles_each < (LEAST_OF_NIBBLES if is_nibbles else LEAST_TILES):
        return False
    gain = WGMMA_GAIN["blocks" if load.adds and load.tiles_each < 4 else load.problem.layout]
    is_alone = load.is_read_as_it_is and n <= TILE  # one tile of wgmma hides latencies better
    return is_alone or load.excess <= gain


def wgmma_beats_rectangles_of_short(load: Load) -> bool:
    """Returns the same of short slices in blocks: where results overwrite, chains of channels hide how they leave."""
    p = load.problem
    if not p.overwrites:
        return p.bits == 8 and p.n_receivers >= LARGE and load.tiles_each >= 1
    is_wide = load.excess <= SHORT_GAIN or load.n_units <= 2
    return p.n_receivers > LEAST_OF_WGMMA and is_wide and load.tiles_each >= LEAST_TILES
