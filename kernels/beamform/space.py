"""The variants of beamform: the parameters, and the allowed combinations."""

from autotune import Config, Device, Space

from .geometry import GROUP, LANES, Geometry
from .problem import Problem

OCTET = 8  # beams whose real and imaginary parts are the rows of a product
MOST_SUMS = {"threads": 32, "mma_sync": 64}  # complex sums of a thread, two registers each

SPACE = Space(
    ALGORITHM=("threads", "mma_sync"),  # float32 cores: a thread has some times of all beams; or tensor cores
    BEAMS_PER_BLOCK=(1, 2, 4, 8, 16, 32, 64),  # beams of a block
    TIMES=(32, 64, 128, 256, 512),  # times of a block
    COARSEN=(1, 2, 4),  # consecutive times of a thread; or 32 times of a warp
    ANTENNAS_PER_STAGE=(8, 16, 32),  # antennas that are copied at once
    STAGES=(2, 3, 4),  # such stages of a warp in shared memory, all but one of which are under way
    WEIGHTS=("kept", "staged"),  # made once for all antennas and kept, or made again for each stage
    SPLIT=(1, 2, 4, 8),  # parts into which the batches of a channel are cut; a block walks over one part
    STORE=("plain", "stream"),  # beams: =, __stcs
)


@SPACE.constraint("float32 cores are for precision single or half, tensor cores for half or planes")
def precision_suffices(problem: Problem, config: Config, device: Device) -> bool:
    return problem.precision != ("planes" if config.ALGORITHM == "threads" else "single")


@SPACE.constraint("tensor cores multiply whole octets of beams", ALGORITHM="mma_sync")
def beams_are_octets(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.BEAMS_PER_BLOCK % OCTET == 0)


@SPACE.constraint("a block has 32 to 256 threads")
def threads_fit(problem: Problem, config: Config, device: Device) -> bool:
    return bool(LANES <= config.TIMES // config.COARSEN <= 256)


@SPACE.constraint("a tile is less than twice as wide as the beams, or the narrowest")
def tile_fits_beams(problem: Problem, config: Config, device: Device) -> bool:
    narrowest = OCTET if config.ALGORITHM == "mma_sync" else 1
    return bool(narrowest == config.BEAMS_PER_BLOCK or 2 * problem.n_beams > config.BEAMS_PER_BLOCK)


@SPACE.constraint("a tile is less than twice as long as a batch, or has the fewest times")
def tile_fits_times(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.TIMES == LANES * config.COARSEN or 2 * problem.n_times > config.TIMES)


@SPACE.constraint("a thread's sums fit in its registers")
def sums_fit(problem: Problem, config: Config, device: Device) -> bool:
    return Geometry(problem, config).n_sums <= MOST_SUMS[config.ALGORITHM]


@SPACE.constraint("a thread has four sums or more, or all beams of a time")
def sums_are_several(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.BEAMS_PER_BLOCK * config.COARSEN >= 4 or problem.n_beams <= config.BEAMS_PER_BLOCK)


@SPACE.heuristic("a stage has less than twice as many antennas as there are, or the fewest")
def stage_is_needed(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.ANTENNAS_PER_STAGE == GROUP or 2 * problem.n_antennas > config.ANTENNAS_PER_STAGE)


@SPACE.heuristic("batches are cut into no more parts than there are")
def parts_are_needed(problem: Problem, config: Config, device: Device) -> bool:
    return bool(len(problem.batches) >= config.SPLIT)


@SPACE.heuristic("weights are made again only where those of all antennas take more than 32 KiB", WEIGHTS="staged")
def weights_are_large(problem: Problem, config: Config, device: Device) -> bool:
    geometry = Geometry(problem, config)
    return problem.n_antennas * int(config.BEAMS_PER_BLOCK) * geometry.weight_bytes > 1 << 15


@SPACE.constraint("the stages and the weights fit in shared memory")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    return device.has_shared(Geometry(problem, config).shared_bytes)


@SPACE.constraint("the grid has room for the tiles")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    return Geometry(problem, config).n_blocks <= device.max_grid[0]
