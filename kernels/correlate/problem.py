"""The problem of correlate: receivers, their voltages, and the slices of time to integrate."""

from dataclasses import dataclass
from itertools import pairwise

from autotune import baked, ceil_div, runtime

UNIT_BYTES = 64  # both polarisations of a receiver, as copies and products take them
UNIT_BITS = 8 * UNIT_BYTES
MAX_RECEIVERS = 1024
SHIFTS = {4: 256, 8: 1}  # sums of nibbles are made 256 times as large


@dataclass(frozen=True)
class Problem:
    """Receivers, and the type and order of their voltages."""

    bits: int = baked(8, "of the real and of the imaginary part: integers of 4 or 8, floating point of 16")
    layout: str = baked("blocks", "of the voltages: blocks or batches")
    n_receivers: int = baked(256, "receivers of two polarisations, 1 to 1024")
    n_times: int = baked(0, "samples of a batch; in layout blocks a batch is a block of 128 / bits; 0: so many, or 16")
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
        if self.n_times == 0:
            object.__setattr__(self, "n_times", self.unit_times if self.layout == "blocks" else 16)
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
        if self.overwrites and not self.sums_fit:
            raise ValueError(
                f"a slice of {self.slice_samples} samples: visibilities of more than {self.max_samples} may not fit in "
                f"32 bits; use fewer batches, more than n_slices={self.n_slices}, or overwrites=False"
            )

    @property
    def unit_times(self) -> int:
        """Returns the samples of a unit, 64 bytes of both polarisations of a receiver."""
        return UNIT_BITS // (4 * self.bits)

    @property
    def n_baselines(self) -> int:
        return self.n_receivers * (self.n_receivers + 1) // 2

    @property
    def batches(self) -> range:
        """Returns the batches that are used."""
        return range(self.first_batch, self.first_batch + self.n_used if self.n_used else self.n_batches)

    @property
    def slices(self) -> list[range]:
        """Returns the batches of each slice."""
        n, first = len(self.batches), self.first_batch
        ends = [first + n * z // self.n_slices for z in range(self.n_slices + 1)]
        return [range(begin, end) for begin, end in pairwise(ends)]

    @property
    def slice_units(self) -> int:
        """Returns the units of the longest slice; each batch begins a new one."""
        return ceil_div(len(self.batches), self.n_slices) * ceil_div(self.n_times, self.unit_times)

    @property
    def slice_samples(self) -> int:
        """Returns the samples of the longest slice."""
        return ceil_div(len(self.batches), self.n_slices) * self.n_times

    @property
    def sums_fit(self) -> bool:
        """Returns whether sums of a whole slice fit in 32 bits, whatever the voltages are."""
        return self.slice_samples <= self.max_samples

    @property
    def maximum(self) -> int:
        """Returns the largest part of an integer voltage; the smallest is its negative."""
        return int(2 ** (self.bits - 1)) - 1

    @property
    def max_samples(self) -> int:
        """Returns the most samples of a sum of 32 bits: a part of it is at most 2 maximum^2 for each, and has 31 bits.

        A block sums one slice, or a part of one that is split.
        """
        if self.bits == 16:
            return 2**31 - 1
        return (2**31 - 1) // (2 * self.maximum**2 * SHIFTS[self.bits])
