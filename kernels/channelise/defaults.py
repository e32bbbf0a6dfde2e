"""The starting config of channelise, for a problem and a device without records.

The figures come from records of the H200 and H100, at 64 to 65536 channels; those for short heaps and calls come from
22 drawn problems on an H100. Other architectures were not measured. For them, parts fit into shared memory and threads
do not spill registers.
"""

from collections.abc import Iterator
from itertools import product
from math import ceil
from typing import Any

from autotune import Config, Device

from .geometry import Geometry
from .problem import Problem
from .space import LEAST_CHANNELS, MOST_CHANNELS, MOST_ROW, is_power_of_two

Params = dict[str, Any]
# Number of channels -> spectra of a block, which are one tile of 64 to 128 KiB.
WHOLE_SPECTRA = {64: 64, 128: 32, 256: 32, 512: 16, 1024: 16}
# Number of channels -> points of a column; these -> neighbouring columns and threads of a block of the first launch.
# Rows have 256 to 1024 points; a tile of columns has 512 points, or 256 if its columns are short.
COLUMNS_OF = {2048: 8, 4096: 16, 8192: 16, 16384: 32, 32768: 32, 65536: 64}
TILE_OF_COLUMNS = {8: (16, 128), 16: (32, 256), 32: (16, 256), 64: (8, 128)}
WANTED_THREADS = (512, 384, 1)  # threads of a multiprocessor: more have too few registers each, and fewer wait
BESIDES = {1: 2.2, 2: 0.9}  # polarisations -> the rest of the work of a block of one launch, in spectra
FEW = 8  # blocks per multiprocessor up to which an incomplete last wave matters
MOST_SINGLE = 8  # spectra of a block whose threads store single voltages, since the address of each takes registers
ASSUMED_MULTIPROCESSORS = 100  # assumed if a device does not state its number


def parts(problem: Problem, device: Device) -> Iterator[Params]:
    """Yields at least one config, the smaller ones later, which is the order to try them in."""
    n = problem.n_channels
    if not (is_power_of_two(n) and LEAST_CHANNELS <= n <= MOST_CHANNELS):
        n = LEAST_CHANNELS  # any number will do, since no config is allowed
    yield from (whole_spectra if n <= MOST_ROW else columns_and_rows)(problem, device, n)


def multiprocessors(device: Device) -> int:
    return device.n_multiprocessors or ASSUMED_MULTIPROCESSORS


def may_spill(device: Device) -> bool:
    """Returns whether configs for more than 16 taps may spill registers. On sm_90, where this was measured, the fastest
    configs spilled up to 464 bytes, and configs that spilled at most 72 bytes took up to 1.16 times as long.
    """
    return device.compute_capability == 90


def n_parts(problem: Problem, spectra: int) -> int:
    """Returns the number of parts of a problem. Each has ``spectra`` spectra, and the last part of a heap, which may
    have fewer, takes as long as the others.
    """
    return Geometry(problem, Config(SPECTRA=spectra)).n_parts


def of_both(problem: Problem, spectra: int, weights: int) -> Params:
    """Returns the parameters that configs of one and of two launches share. A block takes one polarisation at a time,
    which leaves room for twice the spectra, and its voltages wait in registers.
    """
    found: Params = {"SPECTRA": spectra, "FIR_SPECTRA": min(16, spectra)}
    found["FIR_TAPS"] = weights if problem.taps > 8 else 8
    found |= {"UNPACKING": "in_place", "POLS": "in_turn" if problem.n_pols == 2 else "together"}
    return found | ({"KEPT": "registers"} if problem.n_pols == 2 else {})


def whole_spectra(problem: Problem, device: Device, n_channels: int) -> Iterator[Params]:
    """Yields configs of one launch. Longer parts read fewer samples twice, but heaps are whole parts, and all
    multiprocessors should have one. A thread has a pair of channels in as many spectra as leave work for all threads.
    With one polarisation and heaps that are not whole words, parts are short: a thread that stores 16 such voltages
    spilled 100 to 400 bytes.
    """
    n_pairs = n_channels // 2
    weights = 32 if problem.taps > 32 and may_spill(device) else 16

    def threads_of(spectra: int) -> int:
        return max(128, n_pairs * spectra // 16)

    def work(spectra: int) -> tuple[bool, float]:
        n_each = n_parts(problem, spectra) / multiprocessors(device)  # parts per multiprocessor
        n_each = ceil(n_each) if n_each <= FEW else n_each
        reread = max(0, problem.taps - 16) / 32  # weights beyond those that a thread holds
        return spectra == 4 < problem.spectra_per_heap, n_each * (spectra + BESIDES[problem.n_pols] + reread)

    is_single = problem.n_pols == 1 and problem.spectra_per_heap * problem.voltage_bytes % 4 > 0
    longest = min(WHOLE_SPECTRA[n_channels], MOST_SINGLE) if is_single else WHOLE_SPECTRA[n_channels]
    sizes = sorted((n for n in (64, 32, 16, 8, 4) if n <= longest), key=work)
    for spectra, n_threads in product(sizes, WANTED_THREADS):
        threads = threads_of(spectra)
        if problem.taps > 16 and threads == 128 and n_threads == WANTED_THREADS[0] and not may_spill(device):
            continue
        together = (n for n in (16, 8, 4) if n <= spectra and n_pairs * (spectra // n) >= threads)
        yield of_both(problem, spectra, weights) | {
            "ALGORITHM": "one",
            "SAMPLES": "ahead",
            "THREADS": threads,
            "MIN_BLOCKS": max(1, n_threads // threads),
            "POST_SPECTRA": max(together, default=4 // problem.voltage_bytes),
            "TWIDDLES": "shared" if threads > 128 else "global",
        }


def columns_and_rows(problem: Problem, device: Device, n_channels: int) -> Iterator[Params]:
    """Yields configs of two launches: first columns, whose points are samples far apart, and then rows.

    Complex samples have as many bytes as the values between the launches, so shorter columns are faster. Sums of more
    than 16 taps take more registers, so fewer threads are faster.
    """
    is_long = problem.taps > 16 and not may_spill(device)
    points = 8 if problem.is_complex and n_channels == 4096 else COLUMNS_OF[n_channels]
    columns, most_threads = TILE_OF_COLUMNS[points]
    weights = 32 if problem.taps > 16 and points > 8 and may_spill(device) else 16
    wanted = WANTED_THREADS[1:] if is_long else WANTED_THREADS
    is_batched = problem.layout == "batches"
    # Rows of 256 points: 128 threads took 4 % less than 256 (22 problems); in blocks, 16 spectra 8 % less than 8 (9).
    threads = max(128 if is_batched else 256, n_channels // points // 2)
    most_rows = 8 if is_batched or n_channels // points > 256 else 16
    # The number of parts whose columns, or rows, run at once.
    columns_at_once = multiprocessors(device) * 2 / (n_channels // points // columns)
    rows_at_once = multiprocessors(device) * WANTED_THREADS[0] / threads / (points / 2)

    def work(spectra: int, besides: float, at_once: float) -> float:
        return max(1.0, n_parts(problem, spectra) / at_once) * (spectra + besides)

    sizes = sorted((16, 8, 4), key=lambda n: work(n, 2 + problem.taps / 8, columns_at_once))
    row_sizes = sorted((n for n in (16, 8, 4) if n <= most_rows), key=lambda n: work(n, 1.5, rows_at_once))
    for spectra, of_columns, row_spectra, of_rows in product(sizes, wanted, row_sizes, WANTED_THREADS):
        column_threads = 128 if is_long else max(128, min(most_threads, columns * spectra))
        n_column_blocks = max(1, of_columns // column_threads)
        yield of_both(problem, spectra, weights) | {
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
