"""The variants of correlate: the parameters, and the allowed combinations."""

from autotune import Config, Device, Space, ceil_div, since, when

from .geometry import OCTET, TILE, USUAL_MULTIPROCESSORS, Geometry
from .parts import SPLITS, parts_that_end_first
from .problem import Problem
from .shares import n_pairs

SPACE = Space(
    MMA=("mma_sync", "wgmma"),  # the instruction, and the design around it
    CUT=since("rectangles", when(("rectangles", "pairs"), MMA="mma_sync")),  # the shape of a warp's part
    NR_RECEIVERS_PER_BLOCK=when((32, 48, 64), CUT="rectangles"),  # later receivers of a block
    NR_RECEIVERS_PER_BLOCK_X=when((32, 48, 64), CUT="rectangles"),  # earlier receivers
    SIDE=when(tuple(range(8, 97, 8)), CUT="pairs"),  # receivers of either side of a block
    PAIRS_PER_WARP=when((1, 3, 4, 5, 6, 7, 8, 9), CUT="pairs"),  # pairs of octets of receivers, at most
    UNROLL=when((1, 2), CUT="pairs"),  # units of a stage whose products are in the code
    NR_TIMES_PER_BLOCK=when((8, 16, 32, 64, 128), MMA="mma_sync"),  # samples that are staged at once
    NR_SHARED_BUFFERS=when((2, 3, 4), MMA="mma_sync"),  # such stages that there is room for
    READ_AHEAD=when((1, 2, 3), MMA="mma_sync"),  # stages under way while one is used
    WARPS=when((4, 8), CUT="rectangles"),  # warps of a block
    WARPS_J=when((2, 4), CUT="rectangles"),  # warps that share its later receivers
    STAGES=when((5, 7), MMA="wgmma"),  # stages of 32 KiB in shared memory
    IN_FLIGHT=when((1, 2, 3), MMA="wgmma"),  # products under way while the next one's rows are loaded
    CHAIN=when((1, 2, 4, 8), MMA="wgmma"),  # channels of a block, one after another
    TAPER=when((0, 1), MMA="wgmma", CHAIN=(2, 4, 8)),  # whether chains become shorter towards the last
    FETCH=when((128, 256), MMA="wgmma"),  # bytes that the L2 fetches together
    CLUSTER=when((1, 2, 4), MMA="wgmma", CHAIN=8),  # blocks that copy for each other what they share; else 1
    LAST=since("rows", when(("rows", "columns"), MMA="wgmma")),  # receivers left over tiles of 64
    # Results are stored plainly; evicted first; so, and by pairs of lanes in whole sectors; or added by atomics.
    STORE=("direct", "stream", "paired", "atomic"),
    SPLIT=when((1, *SPLITS), STORE="atomic", CHAIN=(None, 1)),  # blocks that share the times of a slice
)


@SPACE.constraint("a block's side is the shortest, or less than 16 longer than all receivers", CUT="rectangles")
def side_is_needed(problem: Problem, config: Config, device: Device) -> bool:
    geometry = Geometry(problem, config)
    return max(geometry.receivers_j, geometry.receivers_i) <= max(32, problem.n_receivers + 15)


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


@SPACE.constraint("warps share a block evenly, whole octets of receivers each", CUT="rectangles")
def warps_divide(problem: Problem, config: Config, device: Device) -> bool:
    j, i = OCTET * config.WARPS_J, OCTET * (config.WARPS // config.WARPS_J)
    return bool(config.NR_RECEIVERS_PER_BLOCK % j == 0 and config.NR_RECEIVERS_PER_BLOCK_X % i == 0)


@SPACE.constraint("a warp has 4 to 9 pairs of octets, and no side is more than twice the other", CUT="rectangles")
def parts_are_square(problem: Problem, config: Config, device: Device) -> bool:
    j, i = Geometry(problem, config).octets_j, Geometry(problem, config).octets_i
    return 4 <= j * i <= 9 and j <= 2 * i and i <= 2 * j


@SPACE.constraint("some warp has as many pairs as PAIRS_PER_WARP, and each has one on the diagonal", CUT="pairs")
def pairs_are_shared(problem: Problem, config: Config, device: Device) -> bool:
    geometry = Geometry(problem, config)
    side = geometry.receivers_j // OCTET
    most = n_pairs(side, is_triangle=geometry.is_one_block)
    is_shared = geometry.n_warps <= n_pairs(side, is_triangle=True)
    return is_shared and ceil_div(most, geometry.n_warps) == config.PAIRS_PER_WARP


@SPACE.heuristic("a side is the shortest with as few rows of blocks; if these are several it is not short", CUT="pairs")
def side_is_short(problem: Problem, config: Config, device: Device) -> bool:
    n_rows = ceil_div(problem.n_receivers, config.SIDE)
    shortest = ceil_div(problem.n_receivers, n_rows * OCTET) * OCTET
    least = 48 if problem.n_receivers > 128 else 32
    return bool(shortest == config.SIDE and (n_rows == 1 or shortest >= least))


@SPACE.heuristic("warps have four pairs or more; three of ten or fewer, one of three or fewer", CUT="pairs")
def pairs_are_several(problem: Problem, config: Config, device: Device) -> bool:
    most = n_pairs(config.SIDE // OCTET, is_triangle=Geometry(problem, config).is_one_block)
    return bool((4 if most > 10 else 3 if most > 3 else 1) <= config.PAIRS_PER_WARP)


@SPACE.heuristic("code of two units fits the caches of instructions of up to 48 receivers", UNROLL=2)
def code_is_short(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.SIDE <= 48)


@SPACE.heuristic(
    "three stages or more of two or four units, at most two under way; results are added by atomics or evicted first",
    CUT="pairs",
)
def stages_are_usual(problem: Problem, config: Config, device: Device) -> bool:
    is_long = problem.unit_times < config.NR_TIMES_PER_BLOCK and config.NR_SHARED_BUFFERS >= 3
    return bool(is_long and config.READ_AHEAD <= 2 and config.STORE in ("stream", "atomic"))


@SPACE.constraint("only sm_90 has wgmma", MMA="wgmma")
def wgmma_exists(problem: Problem, config: Config, device: Device) -> bool:
    return device.arch in ("sm_90", "host")


@SPACE.constraint(
    "with registers left to converters, one product is under way while the next one's rows are loaded", MMA="wgmma"
)
def rows_fit(problem: Problem, config: Config, device: Device) -> bool:
    return bool(not Geometry(problem, config).converts or config.IN_FLIGHT == 1)


@SPACE.constraint("blocks of a cluster have more than one tile of the product between them", MMA="wgmma")
def tiles_are_shared(problem: Problem, config: Config, device: Device) -> bool:
    return bool(Geometry(problem, config).blocks_per_cluster == 1 or problem.n_receivers > TILE)


@SPACE.constraint("the last receivers are columns if they are 48 or fewer, without clusters", LAST="columns")
def last_is_narrow(problem: Problem, config: Config, device: Device) -> bool:
    return 1 <= problem.n_receivers % TILE <= 48 and Geometry(problem, config).blocks_per_cluster == 1


@SPACE.heuristic("the last receivers are columns where both consumers have work", LAST="columns")
def columns_are_worthwhile(problem: Problem, config: Config, device: Device) -> bool:
    return problem.n_receivers > TILE // 2


@SPACE.heuristic("with three products under way, the last receivers are rows, and atomics add nothing", IN_FLIGHT=3)
def products_fit(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.LAST == "rows" and config.STORE != "atomic")


@SPACE.constraint("lanes of wgmma trade nothing", MMA="wgmma")
def store_is_known(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.STORE != "paired")


@SPACE.constraint("a tensor map's strides are less than 2^40 bytes", MMA="wgmma")
def strides_fit(problem: Problem, config: Config, device: Device) -> bool:
    return max(Geometry(problem, config).strides) < 2**40


@SPACE.constraint("results are added by atomics only where these are 64-bit accumulators", STORE="atomic")
def order_does_not_matter(problem: Problem, config: Config, device: Device) -> bool:
    return problem.bits != 16 and not problem.overwrites


@SPACE.heuristic("64-bit accumulators are added by atomics, or loaded and stored evicted first")
def accumulators_are_added(problem: Problem, config: Config, device: Device) -> bool:
    return problem.bits == 16 or problem.overwrites or config.STORE in ("stream", "atomic")


@SPACE.constraint("parts of a slice whose sums may not fit in 32 bits are added by atomics")
def sums_fit(problem: Problem, config: Config, device: Device) -> bool:
    return problem.sums_fit or config.STORE == "atomic"


@SPACE.heuristic("a slice that is split has as many parts as end first, or half or twice as many", SPLIT=SPLITS)
def parts_are_few(problem: Problem, config: Config, device: Device) -> bool:
    geometry = Geometry(problem, config)
    _, y, z = geometry.grid
    n_blocks = geometry.n_blocks * y * z
    n_warps = None if geometry.uses_wgmma else geometry.n_warps
    n_multiprocessors = device.n_multiprocessors or USUAL_MULTIPROCESSORS
    octets = ceil_div(problem.n_receivers, OCTET)
    first = parts_that_end_first(problem.slice_units, n_blocks, n_multiprocessors, n_warps, octets)
    return 1 < first <= 2 * geometry.n_parts <= 4 * first


@SPACE.heuristic("parts of slices are added by blocks as long as wide", SPLIT=SPLITS)
def parts_are_usual(problem: Problem, config: Config, device: Device) -> bool:
    geometry = Geometry(problem, config)
    return geometry.receivers_j == geometry.receivers_i


@SPACE.constraint("a thread's sums and operands fit in its registers")
def registers_fit(problem: Problem, config: Config, device: Device) -> bool:
    if config.MMA == "wgmma":
        return device.registers_per_block >= 65536
    geometry = Geometry(problem, config)
    # Bounds of a thread's registers, from what NVRTC 13 uses on sm_90. Four parts of a multiprocessor share its warps.
    if geometry.cuts_pairs:
        needed = 16 * geometry.pairs_per_warp + 56
        return needed <= min(device.max_registers, device.registers_per_block // (128 * ceil_div(geometry.n_warps, 4)))
    j, i = geometry.octets_j, geometry.octets_i
    needed = 16 * j * i + 4 * j + 12 * i + 32
    return needed <= min(device.max_registers, device.registers_per_block // geometry.n_threads)


@SPACE.constraint("the stages fit in shared memory")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    return device.has_shared(Geometry(problem, config).shared_bytes)


@SPACE.constraint("the grid has room for the channels on y, and for the slices on z")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    _, y, z = Geometry(problem, config).grid
    return y <= device.max_grid[1] and z <= device.max_grid[2]
