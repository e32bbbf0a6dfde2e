"""The geometry of a variant of channelise, derived once: the template prints it, and launches and constraints read it.

Attributes are constants of the template, under their names in capitals: ``slice_values`` is ``SLICE_VALUES``.
"""

from dataclasses import dataclass
from math import gcd

from autotune import Config, ceil_div

from .problem import Problem

WARP = 32
MOST_RADIX = 32  # points of a transform in registers


@dataclass(frozen=True)
class Geometry:
    """The division of a spectrum's N = n1 n2 points, and of the spectra, among launches, blocks and threads."""

    problem: Problem
    config: Config

    # ------------------------------------------------------------------ the transform
    @property
    def n_points(self) -> int:
        """Returns N: even and odd samples are the real and imaginary parts of complex points."""
        return self.problem.n_channels

    @property
    def n1(self) -> int:
        """Returns the points of a column's transform, in ``channelise_columns``, or 1 if there is one launch."""
        return int(self.config.COLUMN_POINTS) if self.config.ALGORITHM == "two" else 1

    @property
    def n2(self) -> int:
        """Returns the points of a row's transform, in ``channelise``: ``radix_1`` times ``radix_2``."""
        return self.n_points // self.n1

    @property
    def radix_2(self) -> int:
        """Returns the radix of a row's second pass, which is also the number of a row's threads. It is the smaller one
        of two similar factors.
        """
        return 1 << ((self.n2.bit_length() - 1) // 2)

    @property
    def radix_1(self) -> int:
        return self.n2 // self.radix_2

    # ------------------------------------------------------------------ channelise
    @property
    def spectra(self) -> int:
        """Returns the number of consecutive spectra in a block of ``channelise``."""
        return int(self.config.ROW_SPECTRA if self.config.ALGORITHM == "two" else self.config.SPECTRA)

    @property
    def pols_at_once(self) -> int:
        return self.problem.n_pols if self.config.POLS == "together" else 1

    @property
    def halves(self) -> int:
        """Returns the rows of a spectrum in a block: the two whose bins are pairs, or the only one."""
        return 2 if self.n1 > 1 else 1

    @property
    def n_rows(self) -> int:
        return self.halves * self.spectra * self.pols_at_once

    @property
    def slice_values(self) -> int:
        """Returns the complex values from row to row. The rows of a warp use all banks evenly, and there is room for
        bin N2 / 2 at place N2.
        """
        least = max(self.radix_1 * (self.radix_2 + 1), self.n2 + 1)
        lanes = self.radix_2
        return least if lanes >= 16 else least + (lanes - least) % 16

    @property
    def n_pairs(self) -> int:
        """Returns the number of pairs of bins in a block."""
        return self.n2 * self.halves // 2

    @property
    def n_pair_groups(self) -> int:
        """Returns the number of blocks among which the bins of a spectrum are divided."""
        return max(1, self.n1 // 2)

    @property
    def post_spectra(self) -> int:
        return min(int(self.config.POST_SPECTRA), self.spectra)

    @property
    def n_units(self) -> int:
        """Returns the units of work of the last step. A unit is a pair of bins in ``post_spectra`` spectra."""
        return self.n_pairs * (self.spectra // self.post_spectra)

    @property
    def units_per_thread(self) -> int:
        return ceil_div(self.n_units, int(self.config.THREADS))

    @property
    def shared_bytes(self) -> int:
        """Returns the bytes of dynamic shared memory of ``channelise``. The template asserts the same."""
        pols = self.problem.n_pols
        members = [8 * self.n_rows * self.slice_values]
        if self.n1 == 1:
            plan = 24 + 8 * pols * self.spectra + self.starts_bytes
            members += [2 * plan, 8 * pols * int(self.config.THREADS) // WARP, 4]
        else:
            members.append(8 * pols * self.spectra)
        if self.config.get("TWIDDLES") == "shared":
            members.append(8 * self.n_twiddles)
        if self.keeps_in_shared:
            members.append(
                int(self.config.THREADS) * self.units_per_thread * 2 * self.post_spectra * self.problem.voltage_bytes
            )
        return sum(ceil_div(member, 16) * 16 for member in members)

    @property
    def keeps_in_shared(self) -> bool:
        """Returns whether voltages of the first of two polarisations in turn wait for the second in shared memory."""
        return self.config.get("KEPT") == "shared"

    # ------------------------------------------------------------------ parts: the spectra that blocks divide
    @property
    def part_spectra(self) -> int:
        """Returns the spectra of a part, which a block filters. A part lies in one heap."""
        return int(self.config.SPECTRA)

    @property
    def parts_per_heap(self) -> int:
        return ceil_div(self.problem.spectra_per_heap, self.part_spectra)

    def part_of(self, spectrum: int) -> int:
        heap, at = divmod(spectrum, self.problem.spectra_per_heap)
        return heap * self.parts_per_heap + at // self.part_spectra

    @property
    def n_parts(self) -> int:
        """Returns the number of parts that have spectra of the problem."""
        problem = self.problem
        last = problem.first_spectrum + problem.n_spectra - 1
        return self.part_of(last) - self.part_of(problem.first_spectrum) + 1

    @property
    def n_blocks(self) -> int:
        """Returns the number of blocks of ``channelise`` for the spectra and their pairs of bins."""
        return self.n_parts * (self.part_spectra // self.spectra) * self.n_pair_groups

    # ------------------------------------------------------------------ the filter
    @property
    def fir_spectra(self) -> int:
        """Returns the number of consecutive spectra whose sums of one column a thread computes."""
        return min(int(self.config.FIR_SPECTRA), self.part_spectra)

    @property
    def fir_sums(self) -> int:
        """Returns the sums that a thread holds at once: if it has all weights, only those that use one point."""
        return min(self.fir_spectra, self.fir_taps) if self.fir_taps == self.problem.taps else self.fir_spectra

    @property
    def fir_taps(self) -> int:
        """Returns the number of weights of a column that a thread holds."""
        return min(int(self.config.FIR_TAPS), self.problem.taps)

    @property
    def part_runs(self) -> int:
        """Returns the runs of ``fir_spectra`` spectra in a part. One block filters all of them."""
        return self.part_spectra // self.fir_spectra

    @property
    def starts_bytes(self) -> int:
        """Returns the bytes of the starts of a part's spectra and runs."""
        return 8 * self.problem.n_pols * (self.part_spectra + self.part_runs)

    @property
    def sums_of_squares(self) -> str:
        """Returns the type that holds a thread's sum of squares of one column exactly."""
        most = 2 * self.fir_spectra << (2 * self.problem.sample_bits - 2)
        return "float" if most <= 2**24 else "unsigned" if most < 2**32 else "unsigned long long"

    @property
    def has_small_squares(self) -> bool:
        """Returns whether 32 bits hold the sum of squares of a warp's columns in all pieces."""
        pieces = ceil_div(self.fir_width * self.part_runs, self.fir_threads)
        return WARP * pieces * 2 * self.fir_spectra << (2 * self.problem.sample_bits - 2) < 2**32

    @property
    def fir_threads(self) -> int:
        """Returns the threads of a block that filters. In each piece a thread filters one column."""
        return int(self.config.THREADS if self.n1 == 1 else self.config.COLUMN_THREADS)

    @property
    def fir_width(self) -> int:
        """Returns the points of a spectrum that a block filters: all of them, or those of neighbouring columns."""
        return self.n2 if self.n1 == 1 else self.column_width

    @property
    def segment(self) -> int:
        """Returns how many of these points are consecutive."""
        return self.n2 if self.n1 == 1 else int(self.config.COLUMNS)

    @property
    def is_paired(self) -> bool:
        """Returns whether a thread filters the columns at whose places it has read its own pairs of bins."""
        own = self.n_pairs % int(self.config.THREADS) == 0 and self.post_spectra == self.fir_spectra == self.spectra
        return self.n1 == 1 and own and self.pols_at_once == 1

    # ------------------------------------------------------------------ channelise_columns
    @property
    def column_width(self) -> int:
        """Returns the points of a tile of neighbouring columns, which have ``n1`` points each."""
        return self.n1 * int(self.config.COLUMNS) if self.n1 > 1 else 0

    @property
    def column_shared_bytes(self) -> int:
        warps = int(self.config.COLUMN_THREADS) // WARP
        members = [8 * self.part_spectra * self.column_width, self.starts_bytes // self.problem.n_pols, 8 * warps]
        return sum(ceil_div(member, 16) * 16 for member in members)

    @property
    def between_values(self) -> int:
        """Returns the number of complex values between the launches."""
        return self.problem.n_pols * self.n_parts * self.part_spectra * self.n_points if self.n1 > 1 else 0

    # ------------------------------------------------------------------ tables
    @property
    def n_first_twiddles(self) -> int:
        return self.n1 * self.radix_1 // 2 if self.n1 > 1 else 0

    @property
    def n_twiddles(self) -> int:
        """Returns the number of twiddles: those of the first pass for each row, then those of the second pass."""
        return self.n_first_twiddles + self.n1 * (self.radix_2 // 2) * self.radix_1

    @property
    def n_all_pairs(self) -> int:
        return self.n_pairs * self.n_pair_groups

    # ------------------------------------------------------------------ stores
    @property
    def vector_bytes(self) -> int:
        """Returns the width of the widest store that divides all runs of voltages of a unit."""
        problem = self.problem
        size = problem.voltage_bytes
        if problem.layout == "batches" or problem.n_pols == 1:
            runs = self.post_spectra * problem.n_pols * size, problem.spectra_per_heap * problem.n_pols * size
        else:
            times = problem.times_per_block
            run = self.post_spectra * size * (problem.n_pols if self.post_spectra >= times else 1)
            runs = run, times * problem.n_pols * size
        return gcd(16, *runs)
