"""The load of a device: what a problem gives each multiprocessor to do, in the figures that defaults go by."""

from dataclasses import dataclass

from autotune import ceil_div

from .geometry import OCTET, TILE
from .parts import parts_that_end_first
from .problem import Problem

SIDE = 32  # receivers of either side of a block of rectangles: with longer ones, 1.1 to 2 times as slow
FEW_UNITS = 24  # units of times of a slice: with fewer, results are most of what is moved
LONG_UNITS = 100  # a slice of so many is long: how blocks begin and end hardly counts


@dataclass(frozen=True)
class Load:
    """The slices of a problem, and the multiprocessors that share them."""

    problem: Problem
    n_multiprocessors: int

    @property
    def octets(self) -> int:
        """Returns the octets of receivers, the last of which may have fewer."""
        return ceil_div(self.problem.n_receivers, OCTET)

    @property
    def n_units(self) -> int:
        """Returns the units of times that the longest slice adds up; each batch begins a new one."""
        return self.problem.slice_units

    @property
    def is_short(self) -> bool:
        """Returns whether results are most of what a slice moves."""
        return self.n_units < FEW_UNITS

    @property
    def is_long(self) -> bool:
        """Returns whether how a block begins and ends hardly counts."""
        return self.n_units >= LONG_UNITS

    @property
    def units_of_batch(self) -> int:
        """Returns the units of times of a batch, the last of which may be shorter."""
        return ceil_div(self.problem.n_times, self.problem.unit_times)

    @property
    def is_in_blocks(self) -> bool:
        """Returns whether the layout has whole units of all receivers one after another."""
        return self.problem.layout == "blocks"

    @property
    def is_ragged(self) -> bool:
        """Returns whether batches end within a unit."""
        return self.problem.n_times % self.problem.unit_times > 0

    @property
    def is_ragged_for_wgmma(self) -> bool:
        """Returns the same; nibbles end within a stage, too, if it is of two units."""
        return self.is_ragged or (self.problem.bits == 4 and self.units_of_batch > 1 and self.units_of_batch % 2 > 0)

    @property
    def adds(self) -> bool:
        """Returns whether atomics can add results, in any order."""
        return self.problem.bits < 16 and not self.problem.overwrites

    @property
    def is_read_as_it_is(self) -> bool:
        """Returns whether tensor cores of sm_90 read the voltages as they are."""
        return self.is_in_blocks and self.problem.bits > 4

    # ------------------------------------------------------------------ shares of a multiprocessor
    @property
    def channels_each(self) -> float:
        """Returns the channels of all slices, for each multiprocessor."""
        return self.problem.n_channels * self.problem.n_slices / self.n_multiprocessors

    def parts(self, blocks_of_channel: int, n_warps: int | None) -> int:
        """Returns the parts of a slice with which blocks end first; ``n_warps`` of each block, or None by wgmma."""
        n_blocks = blocks_of_channel * self.problem.n_channels * self.problem.n_slices
        return parts_that_end_first(self.n_units, n_blocks, self.n_multiprocessors, n_warps, self.octets)

    @property
    def tiles_each(self) -> float:
        """Returns the tiles of 64 by 64 receivers of all channels and slices, for each multiprocessor."""
        return n_tiles(self.problem.n_receivers, TILE) * self.channels_each

    @property
    def excess(self) -> float:
        """Returns the products that tiles of 64 receivers make for each one of blocks of rectangles."""
        n = self.problem.n_receivers
        return n_tiles(n, TILE) * TILE**2 / (n_tiles(n, SIDE) * SIDE**2)


def n_tiles(n_receivers: int, side: int) -> int:
    """Returns the square tiles that hold all baselines."""
    rows = ceil_div(n_receivers, side)
    return rows * (rows + 1) // 2
