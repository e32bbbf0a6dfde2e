"""What correlate computes, and its variants: the problem, the tuning space, and the geometry that constraints need."""

from dataclasses import dataclass
from itertools import pairwise

from autotune import Config, Device, Space, baked, ceil_div, runtime, when

from .clusters import Member, members

PRODUCTS = 4  # of the two polarisations of each receiver of a baseline: aa, ba, ab, bb
OCTET = 8  # receivers whose both polarisations fill the 16 rows of a tensor core's product
UNIT_BYTES = 64  # of a receiver
UNIT_BITS = 8 * UNIT_BYTES  # samples of both polarisations that a product needs
MAX_RECEIVERS = 1024
SHIFTS = {4: 256, 8: 1}  # sums of nibbles are made 256 times as large
TILE = 64  # receivers of either side of a block of the design for wgmma
STAGE_BYTES, BARRIER_BYTES = 32768, 24  # of a stage of that design


@dataclass(frozen=True)
class Problem:
    """Receivers, and the type and order of their voltages."""

    bits: int = baked(8, "of the real and of the imaginary part: integers of 4 or 8, floating point of 16")
    layout: str = baked("blocks", "of the voltages: blocks or batches")
    n_receivers: int = baked(256, "receivers of two polarisations, 1 to 1024")
    n_times: int = baked(16, "samples of a batch; in layout blocks a batch is a block of 128 / bits")
    overwrites: bool = baked(False, "write 32-bit visibilities; else add to accumulators, of 64 bits if integers")
    count_lowest: bool = baked(False, "count the integers that are -128 or -8, whose products are wrong")
    n_channels: int = runtime(480, "channels")
    n_batches: int = runtime(192, "batches of the array")
    first_batch: int = runtime(0, "the first batch that is used")
    n_used: int = runtime(0, "batches that are used, from first_batch on; 0: all that follow")
    n_slices: int = runtime(1, "parts of these batches, each with accumulators of its own")

    def __post_init__(self) -> None:
        if self.bits not in (4, 8, 16):
            raise ValueError(f"bits={self.bits} must be 4, 8 or 16")
        if self.layout not in ("blocks", "batches"):
            raise ValueError(f"layout={self.layout} must be blocks or batches")
        if not 1 <= self.n_receivers <= MAX_RECEIVERS:
            raise ValueError(f"n_receivers={self.n_receivers} must be 1 to {MAX_RECEIVERS}")
        if min(self.n_times, self.n_channels, self.n_batches, self.n_slices) < 1:
            given = f"n_times={self.n_times}, n_channels={self.n_channels}"
            raise ValueError(f"{given}, n_batches={self.n_batches}, n_slices={self.n_slices}: each is at least 1")
        if self.layout == "blocks" and self.n_times != self.unit_times:
            raise ValueError(f"n_times={self.n_times} must be 128 / bits = {self.unit_times} in layout blocks")
        if self.n_times * self.bits % 32:
            raise ValueError(f"n_times={self.n_times} of bits={self.bits} is not whole pieces of 16 bytes")
        if self.count_lowest and self.bits == 16:
            raise ValueError("count_lowest=True is for integers, and bits=16 is floating point")
        if self.first_batch < 0 or self.n_used < 0 or self.first_batch + max(1, self.n_used) > self.n_batches:
            given = f"first_batch={self.first_batch}, n_used={self.n_used}"
            raise ValueError(f"{given}: not a range of the n_batches={self.n_batches} batches")
        if self.slice_samples > self.max_samples:
            raise ValueError(
                f"a slice of {self.slice_samples} samples: sums of more than {self.max_samples} may not fit in 32 bits;"
                f" use fewer batches, or more than n_slices={self.n_slices}"
            )

    @property
    def unit_times(self) -> int:
        """Samples of a unit: 64 bytes of both polarisations of a receiver."""
        return UNIT_BITS // (4 * self.bits)

    @property
    def n_baselines(self) -> int:
        return self.n_receivers * (self.n_receivers + 1) // 2

    @property
    def batches(self) -> range:
        """Those that are used."""
        return range(self.first_batch, self.first_batch + self.n_used if self.n_used else self.n_batches)

    @property
    def slices(self) -> list[range]:
        """The batches of each slice."""
        n, first = len(self.batches), self.first_batch
        ends = [first + n * z // self.n_slices for z in range(self.n_slices + 1)]
        return [range(begin, end) for begin, end in pairwise(ends)]

    @property
    def slice_samples(self) -> int:
        """Of the longest slice."""
        return ceil_div(len(self.batches), self.n_slices) * self.n_times

    @property
    def maximum(self) -> int:
        """The largest part of an integer voltage; the smallest is its negative."""
        return int(2 ** (self.bits - 1)) - 1

    @property
    def max_samples(self) -> int:
        """Of a slice: a part of a sum is at most 2 maximum^2 for each, and has 31 bits."""
        if self.bits == 16:
            return 2**31 - 1
        return (2**31 - 1) // (2 * self.maximum**2 * SHIFTS[self.bits])


SPACE = Space(
    MMA=("mma_sync", "wgmma"),  # the instruction, and the design around it
    NR_RECEIVERS_PER_BLOCK=when((32, 48, 64), MMA="mma_sync"),  # later receivers of a block
    NR_RECEIVERS_PER_BLOCK_X=when((32, 48, 64), MMA="mma_sync"),  # earlier receivers
    NR_TIMES_PER_BLOCK=when((8, 16, 32, 64, 128), MMA="mma_sync"),  # samples that are staged at once
    NR_SHARED_BUFFERS=when((2, 3, 4), MMA="mma_sync"),  # of such stages
    READ_AHEAD=when((1, 2, 3), MMA="mma_sync"),  # stages under way while one is used
    WARPS=when((4, 8), MMA="mma_sync"),  # of a block
    WARPS_J=when((2, 4), MMA="mma_sync"),  # that share its later receivers
    STAGES=when((5, 7), MMA="wgmma"),  # of 32 KiB in shared memory
    IN_FLIGHT=when((1, 2, 3), MMA="wgmma"),  # products under way while the next one's rows are loaded
    CHAIN=when((1, 2, 4, 8), MMA="wgmma"),  # channels of a block, one after another
    TAPER=when((0, 1), MMA="wgmma", CHAIN=(2, 4, 8)),  # whether chains become shorter towards the last
    FETCH=when((128, 256), MMA="wgmma"),  # bytes that the L2 fetches together
    CLUSTER=when((1, 2, 4), MMA="wgmma", CHAIN=8),  # blocks that copy for each other what they share; else 1
    STORE=("direct", "stream", "paired"),  # results: plainly; evicted first; so, and whole sectors of a pair of lanes
)


def sides(config: Config) -> tuple[int, int]:
    """Later and earlier receivers of a block."""
    if config.MMA == "wgmma":
        return TILE, TILE
    return int(config.NR_RECEIVERS_PER_BLOCK), int(config.NR_RECEIVERS_PER_BLOCK_X)


def cluster_size(config: Config) -> int:
    """Blocks of a cluster."""
    return int(config.get("CLUSTER", 1))


def shared_bytes(problem: Problem, config: Config) -> int:
    """Dynamic shared memory; the template asserts the same."""
    if config.MMA == "wgmma":
        return int(config.STAGES) * (STAGE_BYTES + BARRIER_BYTES)
    return sum(sides(config)) * int(config.NR_SHARED_BUFFERS * config.NR_TIMES_PER_BLOCK) * problem.bits // 2


def n_chains(n_channels: int, config: Config) -> int:
    """Blocks that share the channels of a tile."""
    length, left, n = int(config.CHAIN), n_channels, 0
    while config.get("TAPER") and length > 1:
        n, left, length = n + left // 2 // length, left - left // 2 // length * length, length // 2
    return n + ceil_div(left, length)


def octets(config: Config) -> tuple[int, int]:
    """Of later and of earlier receivers of a warp."""
    j, i = config.NR_RECEIVERS_PER_BLOCK // OCTET, config.NR_RECEIVERS_PER_BLOCK_X // OCTET
    return int(j // config.WARPS_J), int(i // (config.WARPS // config.WARPS_J))


def n_blocks(problem: Problem, config: Config) -> int:
    """Of the product: rows of later receivers, each up to the diagonal; or of all clusters."""
    if cluster_size(config) > 1:
        return len(cluster_members(problem, config))
    rows, columns = sides(config)
    ends = range(rows, problem.n_receivers + rows, rows)
    return sum(ceil_div(min(end, problem.n_receivers), columns) for end in ends)


def cluster_members(problem: Problem, config: Config) -> tuple[Member, ...]:
    """The blocks of all clusters."""
    return members(ceil_div(problem.n_receivers, TILE), cluster_size(config))


@SPACE.constraint("a block's side is the shortest, or less than 16 longer than all receivers", MMA="mma_sync")
def side_is_needed(problem: Problem, config: Config, device: Device) -> bool:
    return max(sides(config)) <= max(32, problem.n_receivers + 15)


@SPACE.constraint("a stage is one, two or four units of times", MMA="mma_sync")
def times_are_units(problem: Problem, config: Config, device: Device) -> bool:
    return config.NR_TIMES_PER_BLOCK in (
        problem.unit_times,
        2 * problem.unit_times,
        4 * problem.unit_times,
    )


@SPACE.constraint("one stage at most is neither used nor under way", MMA="mma_sync")
def buffers_are_used(problem: Problem, config: Config, device: Device) -> bool:
    return bool(1 <= config.NR_SHARED_BUFFERS - config.READ_AHEAD <= 2)


@SPACE.constraint("warps share a block evenly, whole octets of receivers each", MMA="mma_sync")
def warps_divide(problem: Problem, config: Config, device: Device) -> bool:
    j, i = OCTET * config.WARPS_J, OCTET * (config.WARPS // config.WARPS_J)
    return bool(config.NR_RECEIVERS_PER_BLOCK % j == 0 and config.NR_RECEIVERS_PER_BLOCK_X % i == 0)


@SPACE.constraint("a warp has 4 to 9 pairs of octets, and no side is more than twice the other", MMA="mma_sync")
def parts_are_square(problem: Problem, config: Config, device: Device) -> bool:
    j, i = octets(config)
    return 4 <= j * i <= 9 and j <= 2 * i and i <= 2 * j


@SPACE.constraint("only sm_90 has wgmma", MMA="wgmma")
def wgmma_exists(problem: Problem, config: Config, device: Device) -> bool:
    return device.arch in ("sm_90", "host")


@SPACE.constraint(
    "with registers left to converters, one product is under way while the next one's rows are loaded", MMA="wgmma"
)
def rows_fit(problem: Problem, config: Config, device: Device) -> bool:
    return bool(not converts(problem) or config.IN_FLIGHT == 1)


@SPACE.constraint("blocks of a cluster have more than one tile of the product between them", MMA="wgmma")
def tiles_are_shared(problem: Problem, config: Config, device: Device) -> bool:
    return bool(cluster_size(config) == 1 or problem.n_receivers > TILE)


@SPACE.constraint("lanes of wgmma trade nothing", MMA="wgmma")
def store_is_known(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.STORE != "paired")


@SPACE.constraint("a tensor map's strides are less than 2^40 bytes", MMA="wgmma")
def strides_fit(problem: Problem, config: Config, device: Device) -> bool:
    return max(strides(problem)) < 2**40


@SPACE.constraint("a thread's sums and operands fit in its registers")
def registers_fit(problem: Problem, config: Config, device: Device) -> bool:
    if config.MMA == "wgmma":
        return device.registers_per_block >= 65536
    j, i = octets(config)
    needed = 16 * j * i + 4 * j + 12 * i + 32  # at most; from what NVRTC 13 uses for sm_90
    return bool(needed <= min(device.max_registers, device.registers_per_block // (32 * config.WARPS)))


@SPACE.constraint("the stages fit in shared memory")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    return device.has_shared(shared_bytes(problem, config))


@SPACE.constraint("the grid has room for the channels on y, and for the slices on z")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    n = n_chains(problem.n_channels, config) if config.MMA == "wgmma" else problem.n_channels
    return n <= device.max_grid[1] and problem.n_slices <= device.max_grid[2]


def strides(problem: Problem) -> tuple[int, int, int]:
    """Bytes of the voltages: from receiver to receiver, batch to batch, channel to channel in layout blocks; in layout
    batches, of channels, receivers and batches.
    """
    if problem.layout == "blocks":
        row = UNIT_BYTES * problem.n_receivers
        return UNIT_BYTES, row, row * problem.n_batches
    row = problem.n_times * problem.bits // 2
    return row, row * problem.n_channels, row * problem.n_channels * problem.n_receivers


def converts(problem: Problem) -> bool:
    """Whether tensor cores cannot read the voltages as they are."""
    return problem.bits == 4 or problem.layout == "batches"
