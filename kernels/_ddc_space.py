"""The variants of ddc: the tuning space, and what its constraints need to know of a block."""

from functools import lru_cache
from math import gcd

from autotune import Config, Device, Space, ceil_div, when

from ._ddc_matrices import LONG_CHAIN, Problem, matrices_of

MAX_OWN_WORDS = 40  # above it, registers that the compiler cannot give
MAX_RING_BYTES = 49152  # above it, few blocks find room in shared memory
MAX_HALF_BITS = 12  # what halves hold exactly: integers up to 2^11
WGMMA = ("wgmma", "wgmma_int8")  # of halves, of bytes
RUNS = (24, 32, 48, 56, 64, 80, 88, 96, 112, 128, 144, 168, 192, 256, 512)  # so that blocks fill whole waves

SPACE = Space(
    ALGORITHM=("register", "subgroup", "tensor"),  # who makes an output: a thread, SG_SIZE threads, a warp's matrices
    WGS=when((64, 96, 128, 192, 256), ALGORITHM=("register", "subgroup")),  # threads of a block
    SG_SIZE=when((2, 4, 8, 16), ALGORITHM="subgroup"),  # threads that share COARSEN outputs
    COARSEN=when((4, 8, 12, 16), ALGORITHM=("register", "subgroup")),  # consecutive outputs that share a window
    PHASES=when((1, 2, 4), ALGORITHM="register"),  # columns of the window: the width of its loads
    MIN_BLOCKS=when((1, 2, 4, 8), ALGORITHM="register"),  # blocks that a multiprocessor must have registers for
    TILES=when((1, 4), ALGORITHM=("register", "subgroup")),  # tiles that a block makes, with the weights mixed once
    STORE=when(("direct", "staged"), ALGORITHM="register"),  # outputs from registers, or through shared memory
    MMA=when(("mma_sync", *WGMMA), ALGORITHM="tensor"),  # the instruction that multiplies: halves, or bytes
    WARPS=when((4, 8, 12), MMA=WGMMA),  # of a block
    CHAIN=when((0, 8), MMA="wgmma"),  # products that tensor cores add, before float32 adds those sums; 0: all
    PART=when((1, 2, 4), MMA=WGMMA, CHAIN=(8, None)),  # products whose samples are in registers together
    RESIDENT=when((4, 16), MMA="mma_sync"),  # warps that a multiprocessor must have registers for
    STEP=when((2, 4, 8, 16), ALGORITHM="tensor"),  # outputs of a row that a step begins
    RUN=when(RUNS, ALGORITHM="tensor"),  # outputs: a row of the matrices
    STAGE=when((1, 2, 4, 6, 8, 12, 16), ALGORITHM="tensor"),  # steps whose samples are copied together
    STAGES=when((2, 3), ALGORITHM="tensor"),  # such copies: one is used, the others are under way
    UNROLL=when((1, 2, 4), MMA="mma_sync"),  # steps without a loop
    WINDOW=when((8, 16, 32, 64), ALGORITHM="tensor"),  # outputs of a row between stores
)


def threads(config: Config) -> int:
    """Of a block."""
    return 32 * int(config.get("WARPS", 4)) if config.ALGORITHM == "tensor" else int(config.WGS)


def min_blocks(problem: Problem, config: Config) -> int:
    """Blocks that a multiprocessor has registers and shared memory for."""
    if config.ALGORITHM == "tensor":
        return matrices_of(problem, config).min_blocks
    return int(config.get("MIN_BLOCKS", 1))


def tile_outputs(problem: Problem, config: Config) -> int:
    """Outputs that a block makes between two barriers; or, of tensor, all its warps' runs of one task each."""
    if config.ALGORITHM == "tensor":
        return matrices_of(problem, config).runs * int(config.RUN)
    return int(config.WGS * config.COARSEN) // int(config.get("SG_SIZE", 1))


def shared_bytes(problem: Problem, config: Config) -> int:
    """Dynamic shared memory: mixed weights, turns and samples; the template asserts the same."""
    if config.ALGORITHM == "tensor":
        return matrices_of(problem, config).shared_bytes
    rows, group = problem.rows, problem.group
    groups = ceil_div((tile_outputs(problem, config) + rows - 1) * problem.decimation, group)
    if config.ALGORITHM == "subgroup":
        stride = (config.COARSEN | 1) * config.SG_SIZE
        chunks = ceil_div(ceil_div(groups * group, problem.decimation), config.COARSEN)
        n_weights = ceil_div(problem.decimation, config.SG_SIZE) * config.SG_SIZE * rows
        members = (8 * n_weights, 8 * config.COARSEN // config.SG_SIZE, 8, 2 * 4 * chunks * stride)
    else:
        chunk = config.COARSEN * problem.decimation
        stride = (chunk // config.PHASES | 1) * config.PHASES
        members = (8 * rows * problem.decimation, 8 * config.COARSEN, 8, 4 * ceil_div(groups * group, chunk) * stride)
    return sum(ceil_div(member, 16) * 16 for member in members)


def own_words(problem: Problem, config: Config) -> int:
    """Words of packed samples that a thread of the subgroup algorithm holds."""
    groups = ceil_div((tile_outputs(problem, config) + problem.rows - 1) * problem.decimation, problem.group)
    return ceil_div(groups, int(config.WGS)) * problem.group * problem.sample_bits // 32


def registers(problem: Problem, config: Config) -> int:
    """About what a thread needs where it needs most; fewer would be spilled. From what nvcc 13.0 uses for sm_90."""
    if config.ALGORITHM == "tensor":
        return matrices_of(problem, config).registers
    if config.ALGORITHM == "register":
        return int(config.COARSEN * (2 + config.PHASES) + 4 * config.PHASES + 24)
    return int(config.COARSEN * 3 + 2 * own_words(problem, config) + 56)


@lru_cache(maxsize=64)
def least_steps(decimation: int, sample_bits: int, takes_bytes: bool, by_fields: bool) -> tuple[int, int, int]:
    """Outputs of a step whose samples are whole products, and of two whose samples fill them, up to a quarter. The
    first of the two has whole bytes of samples; the second any bits, unless bytes are made of several samples together.
    """
    any_bits = by_fields or not takes_bytes
    if takes_bytes:
        unit = filled_unit = 32 if by_fields else max(32, 128 // gcd(8, sample_bits))
    else:
        unit, filled_unit = 32 if sample_bits % 2 else 16, 32
    whole = max(2, unit // gcd(unit, decimation))
    filled, ragged = whole, whole
    for step in (16, 8, 4, 2):
        samples = step * decimation
        taken = ceil_div(samples, filled_unit) * filled_unit
        if step < whole and (taken - samples) * 4 <= taken:
            is_bytes = samples * sample_bits % 8 == 0
            filled = step if is_bytes else filled
            ragged = step if is_bytes or any_bits else ragged
    return whole, filled, ragged


@SPACE.constraint(
    "runs are whole windows; short ones, those that are no power of two, and windows of 16 are for runs that overlap:"
    " long filters have few outputs to share",
    ALGORITHM="tensor",
)
def runs_are_windows(problem: Problem, config: Config, device: Device) -> bool:
    if matrices_of(problem, config).overlaps:
        return bool(config.RUN % config.WINDOW == 0)
    return bool(config.RUN in (64, 128, 256, 512) and config.WINDOW >= 32)


@SPACE.constraint("windows of 8 are for 12 warps, whose windows would not fit otherwise", WINDOW=8)
def windows_are_short(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.get("WARPS") == 12)


@SPACE.constraint("windows are whole steps", ALGORITHM="tensor")
def windows_are_steps(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.WINDOW % config.STEP == 0)


@SPACE.constraint(
    "stages and windows are whole turns of the unrolled loop; without one, stages are odd", MMA="mma_sync"
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
    "the samples of a step are whole products and whole words; or, where runs overlap, fill pairs of products of"
    " halves, or products of bytes, up to a quarter; STEP is the least such, or twice it",
    ALGORITHM="tensor",
)
def steps_are_products(problem: Problem, config: Config, device: Device) -> bool:
    matrices = matrices_of(problem, config)
    whole, *filled = least_steps(problem.decimation, problem.sample_bits, matrices.takes_bytes, matrices.by_fields)
    least = (whole, *filled) if matrices.overlaps else (whole,)
    return any(config.STEP in (step, 2 * step) for step in least)


@SPACE.constraint("a stage has 120 to 640 bytes of a row", ALGORITHM="tensor")
def stages_are_long(problem: Problem, config: Config, device: Device) -> bool:
    return 120 <= matrices_of(problem, config).stage_bytes <= 640


@SPACE.constraint("rows are whole pieces of 16 bytes; of 2, where runs overlap", ALGORITHM="tensor")
def rows_are_pieces(problem: Problem, config: Config, device: Device) -> bool:
    unit = 16 if matrices_of(problem, config).overlaps else 128
    return bool(config.RUN * problem.decimation * problem.sample_bits % unit == 0)


@SPACE.constraint(
    "tensor cores add at most LONG_CHAIN products, or chains of them; wgmma cuts chains where a step has two parts",
    ALGORITHM="tensor",
)
def chain_is_short(problem: Problem, config: Config, device: Device) -> bool:
    matrices = matrices_of(problem, config)
    if matrices.overlaps:
        return bool(matrices.products // matrices.part >= 2)
    return bool(matrices.chain or matrices.live * matrices.products <= LONG_CHAIN)


@SPACE.constraint("parts divide a step's products; they are of one where these are odd, or two of bytes", MMA=WGMMA)
def parts_divide(problem: Problem, config: Config, device: Device) -> bool:
    matrices = matrices_of(problem, config)
    if not matrices.overlaps:
        return True
    is_alone = matrices.products % 2 or (matrices.takes_bytes and matrices.products == 2)
    return bool(matrices.part == config.PART and (config.PART > 1 or is_alone))


@SPACE.constraint("only sm_90 has wgmma; it has 256 columns at most", MMA=WGMMA)
def wgmma_fits(problem: Problem, config: Config, device: Device) -> bool:
    matrices = matrices_of(problem, config)
    return bool(device.arch in ("sm_90", "host") and 2 * matrices.sum_words <= 256)


@SPACE.constraint(
    "where runs overlap, what one leaves open ends in the next one: it has a step for each tile under way",
    MMA=WGMMA,
)
def runs_end(problem: Problem, config: Config, device: Device) -> bool:
    matrices = matrices_of(problem, config)
    return bool(not matrices.overlaps or matrices.live <= config.RUN // config.STEP)


@SPACE.constraint(
    "a stage has two steps, or one that is taken in parts; a box of the copy engine has at most 256 words of a row",
    MMA=WGMMA,
)
def boxes_fit(problem: Problem, config: Config, device: Device) -> bool:
    matrices = matrices_of(problem, config)
    return bool((config.STAGE >= 2 or matrices.overlaps) and matrices.pitch_bytes <= 1024)


@SPACE.constraint(
    "where wgmma's chains are cut, a multiprocessor has room for 8 warps, unless weights fill MAX_RING_BYTES",
    MMA="wgmma",
)
def warps_are_many(problem: Problem, config: Config, device: Device) -> bool:
    matrices = matrices_of(problem, config)
    n_warps = matrices.min_blocks * matrices.warps
    return bool(not matrices.chain or n_warps >= 8 or matrices.ring_bytes > MAX_RING_BYTES)


@SPACE.constraint("12 warps share a ring of weights only where 8 have a multiprocessor to themselves", WARPS=12)
def eight_are_alone(problem: Problem, config: Config, device: Device) -> bool:
    eight = matrices_of(problem, Config({**config, "WARPS": 8}))
    return bool(eight.overlaps and eight.min_blocks == 1)


@SPACE.constraint("a vector of samples lies in one row, and is of two at least where it can be", ALGORITHM="register")
def phases_divide(problem: Problem, config: Config, device: Device) -> bool:
    return bool(problem.decimation % config.PHASES == 0 and (config.PHASES > 1 or problem.decimation % 2))


@SPACE.constraint(
    "the threads of a subgroup divide its outputs, and there are not more of them than phases", ALGORITHM="subgroup"
)
def subgroup_divides(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.COARSEN % config.SG_SIZE == 0 and max(problem.decimation, 2) * 2 > config.SG_SIZE)


@SPACE.constraint("the samples and the weights of the blocks that a multiprocessor must have fit in shared memory")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    return device.has_shared(shared_bytes(problem, config), min_blocks(problem, config))


@SPACE.constraint("more than one of MIN_BLOCKS leaves a thread fewer registers")
def min_blocks_limit(problem: Problem, config: Config, device: Device) -> bool:
    n_blocks = config.get("MIN_BLOCKS", 1)
    return bool(n_blocks == 1 or n_blocks * config.WGS * (device.max_registers + 1) > device.registers_per_block)


@SPACE.constraint("a thread holds at most MAX_OWN_WORDS words of packed samples", ALGORITHM="subgroup")
def packed_samples_fit(problem: Problem, config: Config, device: Device) -> bool:
    return own_words(problem, config) <= MAX_OWN_WORDS


@SPACE.constraint("the sums, the window and the packed samples of a thread fit in its registers")
def registers_fit(problem: Problem, config: Config, device: Device) -> bool:
    n_threads = threads(config) * min_blocks(problem, config)
    return registers(problem, config) <= min(device.max_registers, device.registers_per_block // n_threads)


@SPACE.constraint("a chunk has room for its outputs where they are staged in it", STORE="staged")
def staging_fits(problem: Problem, config: Config, device: Device) -> bool:
    return problem.decimation >= 2


@SPACE.constraint("the grid's y axis has room for the polarisations")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    return problem.n_pols <= device.max_grid[1]
