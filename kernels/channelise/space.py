"""The variants of channelise: the parameters, and the allowed combinations."""

from autotune import Config, Device, Space, when

from .geometry import MOST_RADIX, WARP, Geometry
from .problem import Problem

LEAST_CHANNELS, MOST_CHANNELS = 64, 65536
LEAST_ROW, MOST_ROW = 64, 1024  # points of a transform in two passes

SPACE = Space(
    ALGORITHM=("one", "two"),  # launches: one, with whole spectra in a block, or two, for columns and for rows
    COLUMN_POINTS=when((2, 4, 8, 16, 32, 64), ALGORITHM="two"),  # points of the first launch's transform
    SPECTRA=(4, 8, 16, 32, 64),  # consecutive spectra that a block filters
    FIR_SPECTRA=(4, 8, 16, 32),  # consecutive spectra whose sums of a column a thread computes
    FIR_TAPS=(8, 16, 32),  # weights of a column that a thread holds
    COLUMNS=when((8, 16, 32, 64), ALGORITHM="two"),  # neighbouring columns of a block of the first launch
    COLUMN_THREADS=when((128, 256, 512), ALGORITHM="two"),  # threads of such a block
    COLUMN_BLOCKS=when((1, 2, 3, 4), ALGORITHM="two"),  # such blocks for which a multiprocessor must have registers
    SAMPLES=when(("when_read", "ahead"), ALGORITHM="one"),  # when samples are loaded into the L2 cache
    UNPACKING=("in_place", "shifted"),  # whether the second of two samples is shifted before it becomes a float
    BETWEEN=when(("float32", "half"), ALGORITHM="two"),  # the type of values between the launches
    POLS=("together", "in_turn"),  # whether a block has the spectra of all polarisations at once
    ROW_SPECTRA=when((2, 4, 8, 16), ALGORITHM="two"),  # spectra of a block of the last launch
    THREADS=(128, 256, 512),  # threads of a block of the last launch, which may be the only one
    MIN_BLOCKS=(1, 2, 3, 4),  # such blocks for which a multiprocessor must have registers
    POST_SPECTRA=(2, 4, 8, 16),  # spectra of a pair of channels whose voltages a thread computes together
    TWIDDLES=when(("global", "shared"), ALGORITHM="one"),  # memory of the twiddles of a row's passes
    KEPT=when(("registers", "shared"), POLS="in_turn"),  # memory in which voltages wait for the second polarisation
)


def is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


@SPACE.constraint("the channels are a power of two from 64 to 65536")
def channels_served(problem: Problem, config: Config, device: Device) -> bool:
    return is_power_of_two(problem.n_channels) and LEAST_CHANNELS <= problem.n_channels <= MOST_CHANNELS


@SPACE.constraint("a block of one launch has a whole spectrum, of at most 1024 channels", ALGORITHM="one")
def spectrum_fits(problem: Problem, config: Config, device: Device) -> bool:
    return LEAST_ROW <= problem.n_channels <= MOST_ROW


@SPACE.constraint("a row has 64 to 1024 points", ALGORITHM="two")
def row_fits(problem: Problem, config: Config, device: Device) -> bool:
    return LEAST_ROW <= problem.n_channels // int(config.COLUMN_POINTS) <= MOST_ROW


@SPACE.heuristic("a spectrum of at most 1024 channels goes through one launch", ALGORITHM="two")
def two_needed(problem: Problem, config: Config, device: Device) -> bool:
    return problem.n_channels > MOST_ROW


@SPACE.heuristic("columns have at most 32 points, unless there are 65536 channels", ALGORITHM="two")
def columns_short(problem: Problem, config: Config, device: Device) -> bool:
    return config.COLUMN_POINTS <= MOST_RADIX or problem.n_channels == MOST_CHANNELS


@SPACE.constraint("values between launches are halves only if the problem's precision allows it", ALGORITHM="two")
def precision_kept(problem: Problem, config: Config, device: Device) -> bool:
    return config.BETWEEN == "float32" or problem.precision == "half"


@SPACE.constraint("polarisations take turns only if there are two")
def pols_differ(problem: Problem, config: Config, device: Device) -> bool:
    return config.POLS == "together" or problem.n_pols == 2


@SPACE.constraint("only samples of 9 to 12 bits may be shifted", UNPACKING="shifted")
def second_sample_fits(problem: Problem, config: Config, device: Device) -> bool:
    return 9 <= problem.sample_bits <= 12


@SPACE.constraint("a part is less than twice as long as a heap, or has 4 spectra")
def part_fits_heap(problem: Problem, config: Config, device: Device) -> bool:
    return bool(max(4, 2 * problem.spectra_per_heap - 1) >= config.SPECTRA)


@SPACE.constraint("a part's spectra are divided evenly among blocks, and have room for FIR_SPECTRA and POST_SPECTRA")
def spectra_divide(problem: Problem, config: Config, device: Device) -> bool:
    shape = Geometry(problem, config)
    whole = max(config.FIR_SPECTRA, config.POST_SPECTRA) <= config.SPECTRA
    return whole and shape.part_spectra % shape.spectra == 0 and shape.spectra >= config.POST_SPECTRA


@SPACE.constraint("a thread stores whole words of voltages")
def stores_fit(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.POST_SPECTRA * problem.voltage_bytes >= 4)


@SPACE.constraint("a thread holds less than twice as many weights as there are taps, or 8")
def taps_fit(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.FIR_TAPS == 8 or 2 * problem.taps > config.FIR_TAPS)


@SPACE.constraint("a warp transforms whole rows")
def rows_fill_warps(problem: Problem, config: Config, device: Device) -> bool:
    shape = Geometry(problem, config)
    return shape.n_rows * shape.radix_2 % WARP == 0


@SPACE.constraint("a block has work for all its threads, and at most 8 units of work for each")
def threads_busy(problem: Problem, config: Config, device: Device) -> bool:
    shape = Geometry(problem, config)
    return shape.units_per_thread <= 8 and (shape.n_units >= config.THREADS or config.THREADS == 128)


# ---------------------------------------------------------------------- heuristics of searches
@SPACE.heuristic("rows have at least 256 points, if there are enough channels", ALGORITHM="two")
def rows_long(problem: Problem, config: Config, device: Device) -> bool:
    return problem.n_channels // int(config.COLUMN_POINTS) >= min(256, problem.n_channels // 2)


@SPACE.heuristic("a block of columns filters 8 to 32 spectra, or 4 if heaps have no more", ALGORITHM="two")
def columns_worth_it(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.SPECTRA <= 32 and (config.SPECTRA >= 8 or problem.spectra_per_heap <= 4))


@SPACE.heuristic("a thread sums 16 spectra or a whole part; with two launches also 8, with more than 16 taps 32")
def runs_long(problem: Problem, config: Config, device: Device) -> bool:
    is_long = min(16, config.SPECTRA) == config.FIR_SPECTRA or (problem.taps > 16 and config.FIR_SPECTRA == 32)
    return bool(is_long or (config.ALGORITHM == "two" and config.FIR_SPECTRA == 8))


@SPACE.heuristic("a thread holds all weights of a column, or 16 of them")
def weights_held(problem: Problem, config: Config, device: Device) -> bool:
    return bool(min(16, problem.taps) <= config.FIR_TAPS)


@SPACE.heuristic("a block has at least 16 neighbouring columns if they have at most 32 points", ALGORITHM="two")
def columns_wide(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.COLUMNS >= 16 or config.COLUMN_POINTS > MOST_RADIX)


@SPACE.heuristic(
    "a multiprocessor has 12 to 24 warps for columns of at most 32 points, and a thread has one to four columns",
    ALGORITHM="two",
)
def column_warps_are_there(problem: Problem, config: Config, device: Device) -> bool:
    shape = Geometry(problem, config)
    threads = int(config.COLUMN_THREADS)
    a_few = 1 <= shape.column_width // threads <= 4 or threads == 128
    least = 12 if config.COLUMN_POINTS <= MOST_RADIX else 4
    return bool(a_few and least * WARP <= threads * config.COLUMN_BLOCKS <= 24 * WARP)


@SPACE.heuristic("a multiprocessor has 12 to 16 warps if a thread transforms 32 points, and 16 to 32 otherwise")
def warps_are_there(problem: Problem, config: Config, device: Device) -> bool:
    least, most = (12, 16) if Geometry(problem, config).radix_1 == MOST_RADIX else (16, 32)
    threads = config.THREADS * config.MIN_BLOCKS
    return bool(least * WARP <= threads <= most * WARP)


@SPACE.heuristic("a thread computes voltages of as many spectra as leave work for all threads")
def post_is_long(problem: Problem, config: Config, device: Device) -> bool:
    shape = Geometry(problem, config)
    allowed = [n for n in (2, 4, 8, 16) if n <= shape.spectra and n * problem.voltage_bytes >= 4]
    busy = [n for n in allowed if shape.n_pairs * (shape.spectra // n) >= config.THREADS]
    return bool(max(busy or allowed[:1], default=config.POST_SPECTRA) == config.POST_SPECTRA)


@SPACE.heuristic("a block of rows has at least 4 spectra", ALGORITHM="two")
def rows_are_several(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.ROW_SPECTRA >= 4)


@SPACE.heuristic("voltages wait in registers if a thread transforms at most 16 points", POLS="in_turn")
def registers_suffice(problem: Problem, config: Config, device: Device) -> bool:
    return config.KEPT == "registers" or Geometry(problem, config).radix_1 == MOST_RADIX


@SPACE.constraint("the rows of a block fit in shared memory")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    return device.has_shared(Geometry(problem, config).shared_bytes, n_blocks=int(config.MIN_BLOCKS))


@SPACE.constraint("a thread has registers for the points of a transform")
def registers_fit(problem: Problem, config: Config, device: Device) -> bool:
    shape = Geometry(problem, config)
    least = max(2 * shape.radix_1 + 24, 2 * (shape.fir_sums + shape.fir_taps) + 24 if shape.n1 == 1 else 0)
    n_threads = int(config.THREADS * config.MIN_BLOCKS)
    return least <= min(device.max_registers, device.registers_per_block // n_threads)


@SPACE.constraint("a tile of columns fits in shared memory", ALGORITHM="two")
def column_tile_fits(problem: Problem, config: Config, device: Device) -> bool:
    shape = Geometry(problem, config)
    return device.has_shared(shape.column_shared_bytes, n_blocks=int(config.COLUMN_BLOCKS))


@SPACE.constraint("a block of columns has work for its threads, and they have registers for it", ALGORITHM="two")
def columns_busy(problem: Problem, config: Config, device: Device) -> bool:
    shape = Geometry(problem, config)
    threads, runs = int(config.COLUMN_THREADS), shape.part_spectra // shape.fir_spectra
    is_busy = shape.column_width * runs >= threads and config.COLUMNS * shape.part_spectra >= threads
    least = max(2 * shape.n1, 2 * (shape.fir_sums + shape.fir_taps)) + 24
    enough = least <= min(device.max_registers, device.registers_per_block // (threads * int(config.COLUMN_BLOCKS)))
    return (is_busy or threads == 128) and enough and shape.n2 >= config.COLUMNS


@SPACE.constraint("the grid has room for the parts, and for the blocks that share a spectrum")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    return Geometry(problem, config).n_blocks <= device.max_grid[0]
