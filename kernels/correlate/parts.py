"""How many parts a slice of time has: blocks that share it fill idle multiprocessors, but each begins and ends.

Measured in docs/lab/2026-11-27-correlate-at-telescope-sizes.md.
"""

from autotune import ceil_div

SPLITS = (2, 4, 8, 16)  # numbers of parts, beside one
BUSY_WARPS, BUSY_WARPS_OF_FEW = 5, 11  # warps of mma_sync that keep a multiprocessor busy; those of one or two octets
# A block of mma_sync or wgmma begins and ends in the time of so many units, which results and latencies take.
ENDS_OF_WARPS, ENDS_OF_WGMMA = 16, 30


def parts_that_end_first(n_units: int, n_blocks: int, n_multiprocessors: int, n_warps: int | None, octets: int) -> int:
    """Returns the number of parts of a slice with which the last block ends first; of several the least.

    A multiprocessor takes as long as its blocks one after another, or as so many blocks as would keep it busy if it has
    fewer; each takes the time of its units, and of how it begins and ends.

    Args:
        n_units: units of times of a slice.
        n_blocks: blocks of all slices and channels if each slice is one part.
        n_warps: warps of a block of mma_sync; None: wgmma, one block of which keeps a multiprocessor busy.
        octets: octets of receivers.
    """
    busy = BUSY_WARPS_OF_FEW if octets <= 2 else BUSY_WARPS
    least, ends = (1.0, ENDS_OF_WGMMA) if n_warps is None else (busy / n_warps, ENDS_OF_WARPS)

    def duration(n: int) -> float:
        return max(least, ceil_div(n * n_blocks, n_multiprocessors)) * (n_units / n + ends)

    return min((1, *SPLITS), key=duration)
