"""The variants of ddc: the parameters, the allowed combinations, and the geometry of each variant."""

from functools import lru_cache

from autotune import Config, Device, Space, when

from .geometry import Geometry
from .problem import Problem
from .runs import OF_A_BLOCK, RUNS, block_of, runs_of
from .tensor import LONG_CHAIN, TensorGeometry, tensor_geometry
from .threads import RegisterGeometry, SubgroupGeometry

MAX_OWN_WORDS = 40  # packed words of a thread up to which the compiler can give it registers
MAX_RING_BYTES = 49152  # size of a ring of weights up to which several blocks have room in shared memory
MAX_HALF_BITS = 12  # halves hold integers up to 2^11 exactly
WGMMA = ("wgmma", "wgmma_int8")  # matrix products of halves, and of bytes, on sm_90's wgmma
STEPS = (2, 4, 8, 16)
PARTS = (1, 2, 4)
STAGES = (1, 2, 4, 6, 8, 12, 16)

SPACE = Space(
    ALGORITHM=("register", "subgroup", "tensor"),  # outputs by one thread, by SG_SIZE threads, or by tensor cores
    WGS=when((64, 96, 128, 192, 256), ALGORITHM=("register", "subgroup")),  # threads of a block
    SG_SIZE=when((2, 4, 8, 16), ALGORITHM="subgroup"),  # threads that share COARSEN outputs
    COARSEN=when((4, 8, 12, 16), ALGORITHM=("register", "subgroup")),  # consecutive outputs that share a window
    PHASES=when((1, 2, 4), ALGORITHM="register"),  # columns of the window, which is the width of its loads
    MIN_BLOCKS=when((1, 2, 4, 8), ALGORITHM="register"),  # blocks for which a multiprocessor must have registers
    TILES=when((1, 4), ALGORITHM=("register", "subgroup")),  # tiles that a block computes after mixing weights once
    STORE=when(("direct", "staged"), ALGORITHM="register"),  # outputs go from registers, or through shared memory
    MMA=when(("mma_sync", *WGMMA), ALGORITHM="tensor"),  # the instruction that multiplies: halves, or bytes
    WARPS=when((4, 8, 12), MMA=WGMMA),  # warps of a block
    CHAIN=when((0, 8), MMA="wgmma"),  # products that tensor cores add before float32 adds their sums; 0: all
    PART=when(PARTS, MMA=WGMMA, CHAIN=(8, None)),  # products whose samples are in registers together
    SUMS=when(("stay", "move"), MMA="wgmma_int8"),  # sums stay in place and weights move, or the other way round
    RESIDENT=when((4, 16), MMA="mma_sync"),  # warps for which a multiprocessor must have registers
    STEP=when(STEPS, ALGORITHM="tensor"),  # outputs of a row that a step begins
    STAGE=when(STAGES, ALGORITHM="tensor"),  # steps whose samples are copied together
    STAGES=when((2, 3), ALGORITHM="tensor"),  # stages in shared memory: one is used while the others are under way
    UNROLL=when((1, 2, 4), MMA="mma_sync"),  # steps in one iteration of the loop
    WINDOW=when((8, 16, 32, 64), ALGORITHM="tensor"),  # outputs of a row between stores
    RUN=when(RUNS, ALGORITHM="tensor"),  # consecutive outputs of one row of the matrices
)


def geometry_of(problem: Problem, config: Config) -> Geometry:
    """Returns the geometry of a variant. Its type depends on the algorithm."""
    if config.ALGORITHM == "tensor":
        return tensor_geometry(problem, config)
    if config.ALGORITHM == "subgroup":
        return SubgroupGeometry(problem, config)
    return RegisterGeometry(problem, config)


@lru_cache(maxsize=1024)
def least_steps(problem: Problem, mma: str, chain: int | None) -> tuple[int, int]:
    """Returns the smallest possible STEP, and the least work that tensor cores do for an output with any STEP."""
    others = {"ALGORITHM": "tensor", "MMA": mma} | ({} if chain is None else {"CHAIN": chain})
    configs = (Config({**others, "STEP": step, "PART": part}) for step in STEPS for part in PARTS)
    found = [(c, m) for c in configs if (m := tensor_geometry(problem, c)).can_multiply]
    return min((int(c.STEP) for c, _ in found), default=0), min((m.multiplications for _, m in found), default=0)


@SPACE.constraint(
    "overlapping runs are whole steps, at least one for each tile under way and at least a window; they are an even"
    " number of bytes, or a multiple of 16 bytes if 8 outputs are",
    MMA=WGMMA,
)
def runs_are_steps(problem: Problem, config: Config, device: Device) -> bool:
    runs = runs_of(problem, block_of(config), device.n_multiprocessors)
    return config.get("CHAIN") == 0 or config.RUN in runs.possible


@SPACE.heuristic("blocks of overlapping runs fill five sixths of the waves that they take, if a RUN can", MMA=WGMMA)
def runs_fill_waves(problem: Problem, config: Config, device: Device) -> bool:
    runs = runs_of(problem, block_of(config), device.n_multiprocessors)
    return config.get("CHAIN") == 0 or config.RUN in runs.filling


@SPACE.constraint(
    "runs that do not overlap have at least 64 outputs; they are whole windows of at least 32 outputs and a multiple of"
    " 16 bytes, and with mma_sync a power of two",
    ALGORITHM="tensor",
)
def runs_are_windows(problem: Problem, config: Config, device: Device) -> bool:
    if tensor_geometry(problem, config).runs_overlap:
        return True
    if config.RUN % config.WINDOW or config.WINDOW < 32 or config.RUN < 64:
        return False
    if config.RUN * problem.decimation * problem.sample_bits % 128:
        return False
    return bool(config.MMA != "mma_sync" or config.RUN in (64, 128, 256, 512))


@SPACE.constraint("windows of 8 outputs are only for 12 warps, whose longer windows would not fit", WINDOW=8)
def windows_are_short(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.get("WARPS") == 12)


@SPACE.constraint("windows are whole steps", ALGORITHM="tensor")
def windows_are_steps(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.WINDOW % config.STEP == 0)


@SPACE.constraint(
    "stages and windows are whole iterations of the unrolled loop; with UNROLL=1, STAGE is odd", MMA="mma_sync"
)
def turns_are_whole(problem: Problem, config: Config, device: Device) -> bool:
    unroll = config.UNROLL
    return bool(
        config.STAGE % unroll == 0
        and (unroll > 1 or config.STAGE % 2 == 1)
        and config.WINDOW // config.STEP % unroll == 0
    )


@SPACE.constraint("halves hold samples of at most 12 bits exactly", MMA=("mma_sync", "wgmma"))
def halves_hold_samples(problem: Problem, config: Config, device: Device) -> bool:
    return problem.sample_bits <= MAX_HALF_BITS


@SPACE.constraint(
    "the samples of a step are whole products and whole words or, if runs overlap, take at least two parts",
    ALGORITHM="tensor",
)
def steps_are_products(problem: Problem, config: Config, device: Device) -> bool:
    return tensor_geometry(problem, config).can_multiply


@SPACE.constraint(
    "tensor cores do at most a third more work for an output than with the best STEP, or STEP is at most twice the"
    " smallest",
    ALGORITHM="tensor",
)
def work_is_little(problem: Problem, config: Config, device: Device) -> bool:
    least, work = least_steps(problem, config.MMA, config.get("CHAIN"))
    return tensor_geometry(problem, config).multiplications * 3 <= work * 4 or bool(config.STEP in (least, 2 * least))


@SPACE.constraint("sums of bytes move only if the ring of weights would exceed MAX_RING_BYTES otherwise", SUMS="move")
def sums_may_move(problem: Problem, config: Config, device: Device) -> bool:
    return tensor_geometry(problem, config).unrolled_ring_bytes > MAX_RING_BYTES


@SPACE.constraint("a stage has 120 to 640 bytes of a row", ALGORITHM="tensor")
def stages_are_long(problem: Problem, config: Config, device: Device) -> bool:
    return 120 <= tensor_geometry(problem, config).bits_per_stage // 8 <= 640


@SPACE.constraint(
    "tensor cores add at most LONG_CHAIN products of a sum, or float32 adds chains of them",
    ALGORITHM="tensor",
)
def chain_is_short(problem: Problem, config: Config, device: Device) -> bool:
    g = tensor_geometry(problem, config)
    return bool(g.runs_overlap or g.mmas_per_chain or g.n_tiles * g.mmas_per_step <= LONG_CHAIN)


@SPACE.constraint(
    "a step's last part lacks at most a third as many products as the step has; parts have one product only if the step"
    " has an odd number, or with bytes if samples are one byte or the step has two products",
    MMA=WGMMA,
)
def parts_are_groups(problem: Problem, config: Config, device: Device) -> bool:
    g = tensor_geometry(problem, config)
    if not g.runs_overlap:
        return True
    n_mmas, part = g.mmas_per_step, g.mmas_per_part
    is_byte = g.takes_bytes and (g.operands_per_sample == 1 or n_mmas == 2)
    if part == 1 and not (n_mmas % 2 or is_byte):
        return False
    return -n_mmas % part * 3 <= n_mmas


@SPACE.constraint("wgmma needs sm_90 and takes at most 256 columns", MMA=WGMMA)
def wgmma_fits(problem: Problem, config: Config, device: Device) -> bool:
    g = tensor_geometry(problem, config)
    return bool(device.arch in ("sm_90", "host") and g.columns_per_mma <= 256)


@SPACE.constraint(
    "a stage has at least two steps, or runs overlap; a box of the copy engine has at most 256 words of a row",
    MMA=WGMMA,
)
def boxes_fit(problem: Problem, config: Config, device: Device) -> bool:
    g = tensor_geometry(problem, config)
    return bool((config.STAGE >= 2 or g.runs_overlap) and g.stage_pitch <= 64)


@SPACE.constraint(
    "with CHAIN=8 a multiprocessor has room for 8 warps, unless the ring of weights exceeds MAX_RING_BYTES",
    MMA="wgmma",
)
def warps_are_many(problem: Problem, config: Config, device: Device) -> bool:
    g = tensor_geometry(problem, config)
    return bool(not g.mmas_per_chain or g.min_blocks * g.n_warps >= 8 or g.ring_bytes > MAX_RING_BYTES)


@SPACE.constraint("a block has 12 warps only if a block of 8 has a multiprocessor to itself", WARPS=12)
def eight_are_alone(problem: Problem, config: Config, device: Device) -> bool:
    eight = tensor_geometry(problem, Config(dict(zip(OF_A_BLOCK, block_of(config), strict=True)) | {"WARPS": 8}))
    return bool(eight.runs_overlap and eight.min_blocks == 1)


@SPACE.constraint("PHASES divides the decimation, and is above 1 if the decimation is even", ALGORITHM="register")
def phases_divide(problem: Problem, config: Config, device: Device) -> bool:
    return bool(problem.decimation % config.PHASES == 0 and (config.PHASES > 1 or problem.decimation % 2))


@SPACE.constraint("SG_SIZE divides COARSEN, and is less than twice the decimation, or 2", ALGORITHM="subgroup")
def subgroup_divides(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.COARSEN % config.SG_SIZE == 0 and max(problem.decimation, 2) * 2 > config.SG_SIZE)


@SPACE.constraint("the blocks that a multiprocessor must hold fit in shared memory with their samples and weights")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    geometry = geometry_of(problem, config)
    n_bytes = geometry.most_shared_bytes if isinstance(geometry, TensorGeometry) else geometry.shared_bytes
    return device.has_shared(n_bytes, geometry.min_blocks)


@SPACE.constraint("a MIN_BLOCKS above 1 leaves a thread fewer registers")
def min_blocks_limit(problem: Problem, config: Config, device: Device) -> bool:
    n_blocks = config.get("MIN_BLOCKS", 1)
    return bool(n_blocks == 1 or n_blocks * config.WGS * (device.max_registers + 1) > device.registers_per_block)


@SPACE.constraint("a thread holds at most MAX_OWN_WORDS words of packed samples", ALGORITHM="subgroup")
def packed_samples_fit(problem: Problem, config: Config, device: Device) -> bool:
    return SubgroupGeometry(problem, config).words_per_thread <= MAX_OWN_WORDS


@SPACE.constraint("the sums, the window and the packed samples of a thread fit in its registers")
def registers_fit(problem: Problem, config: Config, device: Device) -> bool:
    geometry = geometry_of(problem, config)
    n_threads = geometry.n_threads * geometry.min_blocks
    return geometry.registers <= min(device.max_registers, device.registers_per_block // n_threads)


@SPACE.constraint("a chunk has room for the outputs that are staged in it", STORE="staged")
def staging_fits(problem: Problem, config: Config, device: Device) -> bool:
    return problem.decimation >= 2


@SPACE.constraint("the grid's y axis has room for the polarisations")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    return problem.n_pols <= device.max_grid[1]
