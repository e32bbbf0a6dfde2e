"""The problem of ddc: a filter, and the streams to which it is applied."""

from dataclasses import dataclass

from autotune import baked, ceil_div, runtime


@dataclass(frozen=True)
class Problem:
    """A filter, and the streams that it filters."""

    taps: int = baked(256, "weights of the filter, any number")
    decimation: int = baked(16, "samples from one output to the next")
    sample_bits: int = baked(10, "bits of a sample, 2 to 16, two's complement")
    n_pols: int = runtime(2, "streams that share the filter and the mixer")
    n_samples: int = runtime(2**25, "samples of each stream, at least taps")

    def __post_init__(self) -> None:
        if self.taps < 1 or self.decimation < 1 or self.n_pols < 1:
            given = f"taps={self.taps}, decimation={self.decimation}, n_pols={self.n_pols}"
            raise ValueError(f"{given}: each is at least 1")
        if not 2 <= self.sample_bits <= 16:
            raise ValueError(f"sample_bits={self.sample_bits} must be 2 to 16")
        if self.n_samples < self.taps:
            raise ValueError(f"n_samples={self.n_samples} holds no output: the first needs taps={self.taps} samples")

    @property
    def n_out(self) -> int:
        """Returns the number of outputs of a stream."""
        return (self.n_samples - self.taps) // self.decimation + 1

    @property
    def row_bytes(self) -> int:
        """Returns the bytes of a stream of packed samples."""
        return ceil_div(self.n_samples * self.sample_bits, 8)

    @property
    def rows_of_taps(self) -> int:
        """Returns the number of rows of ``decimation`` taps. Zeros fill the last row."""
        return ceil_div(self.taps, self.decimation)
