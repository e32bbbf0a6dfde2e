"""The geometry of a variant of correlate: what follows from the problem and the config, derived once.

The template prints attributes as its constants, under their names in capitals, and derives none of them again.
"""

from dataclasses import dataclass
from functools import cached_property

from autotune import Config, TensorMap, ceil_div

from .clusters import Member, members
from .problem import UNIT_BYTES, Problem
from .shares import Pair, Share, n_pairs, shares

OCTET = 8  # receivers whose both polarisations fill the 16 rows of a tensor core's product
TILE = 64  # receivers of either side of a block of the design for wgmma
STAGE_BYTES, BARRIER_BYTES = 32768, 24  # the size of a stage of that design, and of its barriers
USUAL_MULTIPROCESSORS = 100  # assumed if a device does not state its number


@dataclass(frozen=True)
class Geometry:
    """A block makes the products of some later receivers (j) with some earlier ones (i)."""

    problem: Problem
    config: Config

    @property
    def uses_wgmma(self) -> bool:
        return bool(self.config.MMA == "wgmma")

    @property
    def cuts_pairs(self) -> bool:
        """Returns whether warps of mma_sync have any pairs of octets, as a table says, instead of rectangles."""
        return bool(self.config.get("CUT") == "pairs")

    # ------------------------------------------------------------------ the product
    @property
    def receivers_j(self) -> int:
        """Returns the later receivers of a block: rows of its product."""
        if self.uses_wgmma:
            return TILE
        return int(self.config.SIDE if self.cuts_pairs else self.config.NR_RECEIVERS_PER_BLOCK)

    @property
    def receivers_i(self) -> int:
        """Returns the earlier receivers of a block: columns of its product."""
        if self.uses_wgmma or self.cuts_pairs:
            return self.receivers_j
        return int(self.config.NR_RECEIVERS_PER_BLOCK_X)

    @property
    def is_one_block(self) -> bool:
        """Returns whether a block has the whole product, and thus one side."""
        return self.cuts_pairs and self.problem.n_receivers <= self.receivers_j

    @property
    def last_width(self) -> int:
        """Returns the columns of wgmma for the receivers of the last tile, each twice, or 0 where these are rows."""
        return ceil_div(self.problem.n_receivers % TILE, 16) * 16 if self.config.get("LAST") == "columns" else 0

    @property
    def widths(self) -> list[int]:
        """Returns the columns of the instructions of wgmma."""
        return sorted({32, 2 * TILE if self.converts else TILE, self.last_width} - {0})

    @property
    def n_warps(self) -> int:
        """Returns the warps that share a block's product, by mma_sync."""
        if not self.cuts_pairs:
            return int(self.config.WARPS)
        n = n_pairs(self.receivers_j // OCTET, is_triangle=self.is_one_block)
        return ceil_div(n, self.pairs_per_warp)

    @property
    def pairs_per_warp(self) -> int:
        """Returns the most pairs of octets of a warp."""
        return int(self.config.PAIRS_PER_WARP)

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """Returns the pairs of each warp of a block on the diagonal, and then those of other blocks, if there are; none
        where warps have rectangles.
        """
        if not self.cuts_pairs:
            return ()
        kinds = (True,) if self.is_one_block else (True, False)
        side = self.receivers_j // OCTET
        return tuple(share for kind in kinds for share in shares(side, self.n_warps, is_triangle=kind))

    @property
    def octets_j(self) -> int:
        """Returns the octets of later receivers of a warp that has a rectangle, by mma_sync."""
        return self.receivers_j // OCTET // int(self.config.WARPS_J)

    @property
    def octets_i(self) -> int:
        """Returns the octets of earlier receivers of a warp that has a rectangle, by mma_sync."""
        return self.receivers_i // OCTET // (int(self.config.WARPS) // int(self.config.WARPS_J))

    @property
    def pairs_of_shares(self) -> list[list[Pair]]:
        """Returns the pairs of each share, as many for each; (-1, -1) stands for none."""
        return [share.pairs + [(-1, -1)] * (self.pairs_per_warp - len(share.pairs)) for share in self.shares]

    @property
    def n_threads(self) -> int:
        """Returns the threads of a block; by wgmma a warpgroup copies, two multiply, and one may convert."""
        return 128 * (3 + self.converts) if self.uses_wgmma else 32 * self.n_warps

    @property
    def converts(self) -> bool:
        """Returns whether tensor cores cannot read the voltages as they are."""
        return self.problem.bits == 4 or self.problem.layout == "batches"

    # ------------------------------------------------------------------ stages of voltages
    @property
    def units_per_stage(self) -> int:
        """Returns the units of a receiver that are staged at once."""
        if self.uses_wgmma:
            return 2 if self.problem.bits == 4 else 4
        return int(self.config.NR_TIMES_PER_BLOCK) // self.problem.unit_times

    @property
    def n_stages(self) -> int:
        """Returns the stages that shared memory holds."""
        return int(self.config.STAGES if self.uses_wgmma else self.config.NR_SHARED_BUFFERS)

    @property
    def stage_bytes(self) -> int:
        """Returns the bytes of a stage of both sides, or of the only one; by wgmma with room for what voltages are
        converted to.
        """
        if self.uses_wgmma:
            return STAGE_BYTES
        n_receivers = self.receivers_j + (0 if self.is_one_block else self.receivers_i)
        return self.units_per_stage * n_receivers * UNIT_BYTES

    @property
    def shared_bytes(self) -> int:
        """Returns the bytes of dynamic shared memory; by wgmma each stage has three barriers, too."""
        return self.n_stages * (self.stage_bytes + BARRIER_BYTES * self.uses_wgmma)

    @property
    def strides(self) -> tuple[int, int, int]:
        """Returns bytes of the voltages: from receiver to receiver, batch to batch, channel to channel in layout
        blocks; in layout batches, of channels, receivers and batches.
        """
        p = self.problem
        if p.layout == "blocks":
            row = UNIT_BYTES * p.n_receivers
            return UNIT_BYTES, row, row * p.n_batches
        row = p.n_times * p.bits // 2
        return row, row * p.n_channels, row * p.n_channels * p.n_receivers

    def tensor_map(self, argument: int) -> TensorMap:
        """Describes the voltages, with a unit of a receiver along the first axis. In layout blocks a box is a stage of
        a side; or half of one, as blocks of a cluster copy it.
        """
        p, strides = self.problem, self.strides
        if p.layout == "blocks":
            n_units = self.units_per_stage // min(2, self.blocks_per_cluster)
            shape, box = (UNIT_BYTES, p.n_receivers, p.n_batches, p.n_channels), (UNIT_BYTES, TILE, n_units, 1)
        else:
            shape, box = (strides[0], p.n_channels, p.n_receivers, p.n_batches), (UNIT_BYTES, 1, TILE, 1)
        return TensorMap(argument, shape, strides, box, swizzle=UNIT_BYTES, fetch=int(self.config.FETCH))

    # ------------------------------------------------------------------ the grid
    @property
    def is_atomic(self) -> bool:
        """Returns whether atomics add results, so that blocks may share the times of a slice."""
        return bool(self.config.STORE == "atomic")

    @property
    def n_parts(self) -> int:
        """Returns the parts of each slice, which have blocks of their own: more than SPLIT where sums would not fit."""
        if not self.is_atomic:
            return 1
        p, units = self.problem, self.units_per_stage
        most_stages = max(1, p.max_samples // p.unit_times // units)  # a part has no more
        return max(int(self.config.get("SPLIT", 1)), ceil_div(ceil_div(p.slice_units, units), most_stages))

    @property
    def blocks_per_cluster(self) -> int:
        return int(self.config.get("CLUSTER", 1))

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Returns the blocks of all clusters; none without clusters."""
        size = self.blocks_per_cluster
        return members(ceil_div(self.problem.n_receivers, TILE), size) if size > 1 else ()

    @property
    def clusters(self) -> list[tuple[Member, ...]]:
        """Returns the blocks of each cluster."""
        size = self.blocks_per_cluster
        return [self.members[first : first + size] for first in range(0, len(self.members), size)]

    @property
    def n_blocks(self) -> int:
        """Returns the blocks of the product: rows of later receivers, each up to the diagonal; or of all clusters."""
        if self.members:
            return len(self.members)
        rows, n = self.receivers_j, self.problem.n_receivers
        return sum(ceil_div(min(end, n), self.receivers_i) for end in range(rows, n + rows, rows))

    @property
    def n_chains(self) -> int:
        """Returns the blocks that share the channels of a tile, by wgmma."""
        length, left, n = int(self.config.CHAIN), self.problem.n_channels, 0
        while self.config.get("TAPER") and length > 1:
            n, left, length = n + left // 2 // length, left - left // 2 // length * length, length // 2
        return n + ceil_div(left, length)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Returns blocks of the product for each part of a slice, channels or chains of them, and slices."""
        return (
            self.n_blocks * self.n_parts,
            self.n_chains if self.uses_wgmma else self.problem.n_channels,
            self.problem.n_slices,
        )
