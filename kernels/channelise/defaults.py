"""Says where to start with channelise: the config for a problem and a device that nobody has tuned it for.

The figures are those of records of the H200 and H100, at 64 to 65536 channels. What they do not tell, other
architectures and short calls, has smaller parts, where shared memory or multiprocessors are few.
"""

from collections.abc import Iterator
from itertools import product
from math import ceil
from typing import Any

from autotune import Config, Device, ceil_div

from .geometry import Geometry
from .problem import Problem
from .space import LEAST_CHANNELS, MOST_CHANNELS, MOST_ROW, is_power_of_two

Params = dict[str, Any]
# By channels: the spectra of a block, which are one tile of 64 to 128 KiB.
WHOLE_SPECTRA = {64: 64, 128: 32, 256: 32, 512: 16, 1024: 16}
# By channels: points of a column, and by these: neighbouring columns, and threads of a block of the first launch. Rows
# have 256 to 1024 points; a tile of columns has 512, or 256 where they are short.
COLUMNS_OF = {2048: 8, 4096: 16, 8192: 16, 16384: 32, 32768: 32, 65536: 64}
TILE_OF_COLUMNS = {8: (16, 128), 16: (32, 256), 32: (16, 256), 64: (8, 128)}
WANTED_THREADS = (512, 384, 1)  # of a multiprocessor: with more, each has too few registers; with fewer, all wait
BESIDES = {1: 2.2, 2: 0.9}  # what a block of one launch does besides, in spectra, by polarisations
FEW_WAVES = 8  # of blocks, of which the last shows
MOST_SINGLE = 8  # spectra of a block whose threads store voltages one by one: the place of each takes registers
ASSUMED_MULTIPROCESSORS = 100  # of a device that does not say


def parts(problem: Problem, device: Device) -> Iterator[Params]:
    """Yields configs in the order in which they are to be tried, smaller and smaller ones; at least one."""
    n = problem.n_channels
    if not (is_power_of_two(n) and LEAST_CHANNELS <= n <= MOST_CHANNELS):
        n = LEAST_CHANNELS  # any: none is allowed
    n_multiprocessors = device.n_multiprocessors or ASSUMED_MULTIPROCESSORS
    yield from (whole_spectra if n <= MOST_ROW else columns_and_rows)(problem, n_multiprocessors, n)


def rows_read(problem: Problem, spectra: int, besides: float, blocks_at_once: float) -> float:
    """Returns what a multiprocessor reads, in spectra, if a block has so many and reads others besides: all that its
    blocks read, which are whole parts of heaps, or what one of them does.

    Args:
        blocks_at_once: of the device, by those that a part takes.
    """
    n_parts = Geometry(problem, Config(SPECTRA=spectra)).n_parts
    n_waves = n_parts / blocks_at_once
    return (ceil(n_waves) if n_waves <= FEW_WAVES else n_waves) * (spectra + besides)


def of_both(problem: Problem, spectra: int) -> Params:
    """Returns what one launch and two have in common. Each polarisation in its turn leaves room for twice the spectra,
    and its voltages wait in registers. A thread has 16 weights of a column; with more, it had none left for sums.
    """
    found: Params = {"SPECTRA": spectra, "FIR_SPECTRA": min(16, spectra), "FIR_TAPS": 16 if problem.taps > 8 else 8}
    found |= {"UNPACKING": "in_place", "POLS": "in_turn" if problem.n_pols == 2 else "together"}
    return found | ({"KEPT": "registers"} if problem.n_pols == 2 else {})


def whole_spectra(problem: Problem, n_multiprocessors: int, n_channels: int) -> Iterator[Params]:
    """Yields configs of one launch. Longer parts read less twice, but heaps are whole parts, and all multiprocessors
    should have one. A thread has a pair of channels, of as many spectra as leave work for all, and few of one
    polarisation where heaps are not whole words: compilers spilled 100 to 400 bytes of a thread that stores 16 such
    voltages.
    """
    n_pairs = n_channels // 2

    def threads_of(spectra: int) -> int:
        return max(128, n_pairs * spectra // 16)

    def work(spectra: int) -> tuple[bool, float]:
        return spectra == 4 < problem.spectra_per_heap, rows_read(problem, spectra, BESIDES[problem.n_pols], n_multiprocessors)

    is_single = problem.n_pols == 1 and problem.spectra_per_heap * problem.voltage_bytes % 4 > 0
    longest = min(WHOLE_SPECTRA[n_channels], MOST_SINGLE) if is_single else WHOLE_SPECTRA[n_channels]
    sizes = sorted((n for n in (64, 32, 16, 8, 4) if n <= longest), key=work)
    for spectra, n_threads in product(sizes, WANTED_THREADS):
        threads = threads_of(spectra)
        together = (n for n in (16, 8, 4) if n <= spectra and n_pairs * (spectra // n) >= threads)
        yield of_both(problem, spectra) | {
            "ALGORITHM": "one",
            "SAMPLES": "ahead",
            "THREADS": threads,
            "MIN_BLOCKS": max(1, n_threads // threads),
            "POST_SPECTRA": max(together, default=4 // problem.voltage_bytes),
            "TWIDDLES": "shared" if threads > 128 else "global",
        }


def columns_and_rows(problem: Problem, n_multiprocessors: int, n_channels: int) -> Iterator[Params]:
    """Yields configs of two launches: of columns, whose points are samples far apart, and then of rows.

    Complex samples are as many bytes as what lies between the launches, and want shorter columns. Sums of more than 16
    taps take more registers, of fewer threads.
    """
    points = 8 if problem.is_complex and n_channels == 4096 else COLUMNS_OF[n_channels]
    columns, most_threads = TILE_OF_COLUMNS[points]
    wanted = WANTED_THREADS[1:] if problem.taps > 16 else WANTED_THREADS
    threads = n_channels // points // 2
    column_blocks = n_multiprocessors * 2 / (n_channels // points // columns)
    row_blocks = n_multiprocessors * WANTED_THREADS[0] / threads / (points / 2)
    sizes = sorted((16, 8, 4), key=lambda n: rows_read(problem, n, 2 + problem.taps / 8, column_blocks))
    row_sizes = sorted((8, 4), key=lambda n: rows_read(problem, n, 1.5, row_blocks))
    for spectra, of_columns, row_spectra, of_rows in product(sizes, wanted, row_sizes, WANTED_THREADS):
        column_threads = 128 if problem.taps > 16 else max(128, min(most_threads, columns * spectra))
        n_column_blocks = max(1, of_columns // column_threads)
        yield of_both(problem, spectra) | {
            "ALGORITHM": "two",
            "COLUMN_POINTS": points,
            "COLUMNS": columns,
            "COLUMN_THREADS": column_threads,
            "COLUMN_BLOCKS": min(2, n_column_blocks) if points == 64 else n_column_blocks,
            "BETWEEN": "half" if problem.precision == "half" else "float32",
            "ROW_SPECTRA": min(row_spectra, spectra),
            "THREADS": threads,
            "MIN_BLOCKS": max(1, of_rows // threads),
            "POST_SPECTRA": min(row_spectra, spectra),
        }
