"""The variants of correlate: the parameters, what they may be together, and the geometry that follows."""

from autotune import Config, Device, Space, ceil_div, when

from .clusters import Member, members
from .problem import UNIT_BYTES, Problem

PRODUCTS = 4  # aa, ba, ab, bb of the two polarisations of each receiver of a baseline
OCTET = 8  # receivers whose both polarisations fill the 16 rows of a tensor core's product
TILE = 64  # receivers of either side of a block of the design for wgmma
STAGE_BYTES, BARRIER_BYTES = 32768, 24  # the size of a stage of that design, and of its barriers

SPACE = Space(
    MMA=("mma_sync", "wgmma"),  # the instruction, and the design around it
    NR_RECEIVERS_PER_BLOCK=when((32, 48, 64), MMA="mma_sync"),  # later receivers of a block
    NR_RECEIVERS_PER_BLOCK_X=when((32, 48, 64), MMA="mma_sync"),  # earlier receivers
    NR_TIMES_PER_BLOCK=when((8, 16, 32, 64, 128), MMA="mma_sync"),  # samples that are staged at once
    NR_SHARED_BUFFERS=when((2, 3, 4), MMA="mma_sync"),  # such stages that there is room for
    READ_AHEAD=when((1, 2, 3), MMA="mma_sync"),  # stages under way while one is used
    WARPS=when((4, 8), MMA="mma_sync"),  # warps of a block
    WARPS_J=when((2, 4), MMA="mma_sync"),  # warps that share its later receivers
    STAGES=when((5, 7), MMA="wgmma"),  # stages of 32 KiB in shared memory
    IN_FLIGHT=when((1, 2, 3), MMA="wgmma"),  # products under way while the next one's rows are loaded
    CHAIN=when((1, 2, 4, 8), MMA="wgmma"),  # channels of a block, one after another
    TAPER=when((0, 1), MMA="wgmma", CHAIN=(2, 4, 8)),  # whether chains become shorter towards the last
    FETCH=when((128, 256), MMA="wgmma"),  # bytes that the L2 fetches together
    CLUSTER=when((1, 2, 4), MMA="wgmma", CHAIN=8),  # blocks that copy for each other what they share; else 1
    STORE=("direct", "stream", "paired"),  # results: plainly; evicted first; so, and whole sectors of a pair of lanes
)


def sides(config: Config) -> tuple[int, int]:
    """Returns the later and the earlier receivers of a block."""
    if config.MMA == "wgmma":
        return TILE, TILE
    return int(config.NR_RECEIVERS_PER_BLOCK), int(config.NR_RECEIVERS_PER_BLOCK_X)


def cluster_size(config: Config) -> int:
    """Returns the blocks of a cluster."""
    return int(config.get("CLUSTER", 1))


def shared_bytes(problem: Problem, config: Config) -> int:
    """Returns the bytes of dynamic shared memory; the template asserts the same."""
    if config.MMA == "wgmma":
        return int(config.STAGES) * (STAGE_BYTES + BARRIER_BYTES)
    return sum(sides(config)) * int(config.NR_SHARED_BUFFERS * config.NR_TIMES_PER_BLOCK) * problem.bits // 2


def n_chains(n_channels: int, config: Config) -> int:
    """Returns the blocks that share the channels of a tile."""
    length, left, n = int(config.CHAIN), n_channels, 0
    while config.get("TAPER") and length > 1:
        n, left, length = n + left // 2 // length, left - left // 2 // length * length, length // 2
    return n + ceil_div(left, length)


def octets(config: Config) -> tuple[int, int]:
    """Returns the octets of later and of earlier receivers of a warp."""
    j, i = config.NR_RECEIVERS_PER_BLOCK // OCTET, config.NR_RECEIVERS_PER_BLOCK_X // OCTET
    return int(j // config.WARPS_J), int(i // (config.WARPS // config.WARPS_J))


def n_blocks(problem: Problem, config: Config) -> int:
    """Returns the blocks of the product: rows of later receivers, each up to the diagonal; or of all clusters."""
    if cluster_size(config) > 1:
        return len(cluster_members(problem, config))
    rows, columns = sides(config)
    ends = range(rows, problem.n_receivers + rows, rows)
    return sum(ceil_div(min(end, problem.n_receivers), columns) for end in ends)


def cluster_members(problem: Problem, config: Config) -> tuple[Member, ...]:
    """Returns the blocks of all clusters."""
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
    """Returns bytes of the voltages: from receiver to receiver, batch to batch, channel to channel in layout blocks; in
    layout batches, of channels, receivers and batches.
    """
    if problem.layout == "blocks":
        row = UNIT_BYTES * problem.n_receivers
        return UNIT_BYTES, row, row * problem.n_batches
    row = problem.n_times * problem.bits // 2
    return row, row * problem.n_channels, row * problem.n_channels * problem.n_receivers


def converts(problem: Problem) -> bool:
    """Returns whether tensor cores cannot read the voltages as they are."""
    return problem.bits == 4 or problem.layout == "batches"
