"""A problem of channelise: the streams of one antenna, the filter bank, and the voltages."""

from dataclasses import dataclass

from autotune import baked, ceil_div, runtime

COMPLEX_BITS = 64  # bits of a sample of two floats
MAX_TAPS = 64


@dataclass(frozen=True)
class Problem:
    """Streams of samples, a filter bank, and the layout and width of its voltages."""

    taps: int = baked(16, "spectra that a weighted sum spans, 1 to 64")
    n_channels: int = baked(1024, "channels, C: half the samples of a spectrum, or all if they are complex")
    sample_bits: int = baked(10, "bits of a packed sample, 2 to 16, two's complement; 64: complex float32")
    n_pols: int = baked(2, "polarisations, 1 or 2")
    bits: int = baked(8, "bits of the real and of the imaginary part of a voltage, 8 or 4")
    nibbles: str = baked("real_low", "bits 4: the nibble of the real part, real_low or real_high", added=True)
    layout: str = baked("batches", "layout of the voltages: batches or blocks")
    times_per_block: int = baked(16, "layout blocks: consecutive spectra of one polarisation, a power of two up to 64")
    spectra_per_heap: int = baked(256, "consecutive spectra that share a count of saturated samples")
    precision: str = baked("single", "single: float32 throughout; half: values between two launches may be float16")
    n_heaps: int = runtime(128, "heaps of voltages, some of which this launch may leave unchanged")
    first_spectrum: int = runtime(0, "the first spectrum that is computed")
    n_spectra: int = runtime(0, "spectra that are computed; 0: all that the heaps have room for")
    n_samples: int = runtime(0, "samples of each stream, in which all spectra lie; 0: the fewest possible")

    def __post_init__(self) -> None:
        if not 1 <= self.taps <= MAX_TAPS:
            raise ValueError(f"taps={self.taps} must be 1 to {MAX_TAPS}")
        if min(self.n_channels, self.spectra_per_heap, self.n_heaps) < 1:
            given = f"n_channels={self.n_channels}, spectra_per_heap={self.spectra_per_heap}, n_heaps={self.n_heaps}"
            raise ValueError(f"{given}: each is at least 1")
        if self.n_channels > 2**20:
            raise ValueError(f"n_channels={self.n_channels} must be at most 2^20")
        if not 2 <= self.sample_bits <= 16 and self.sample_bits != COMPLEX_BITS:
            raise ValueError(f"sample_bits={self.sample_bits} must be 2 to 16, or {COMPLEX_BITS} for complex float32")
        if self.n_pols not in (1, 2):
            raise ValueError(f"n_pols={self.n_pols} must be 1 or 2")
        if self.bits not in (4, 8):
            raise ValueError(f"bits={self.bits} must be 4 or 8")
        if self.nibbles not in ("real_low", "real_high"):
            raise ValueError(f"nibbles={self.nibbles} must be real_low or real_high")
        if self.nibbles != "real_low" and self.bits == 8:
            raise ValueError(f"nibbles={self.nibbles} is for bits=4; with bits=8 each part has a byte of its own")
        if self.layout not in ("batches", "blocks"):
            raise ValueError(f"layout={self.layout} must be batches or blocks")
        if self.times_per_block not in (1, 2, 4, 8, 16, 32, 64):
            raise ValueError(f"times_per_block={self.times_per_block} must be a power of two from 1 to 64")
        if self.layout == "blocks" and self.spectra_per_heap % self.times_per_block:
            given = f"spectra_per_heap={self.spectra_per_heap}"
            raise ValueError(f"{given} is not whole blocks of times_per_block={self.times_per_block}")
        if self.precision not in ("single", "half"):
            raise ValueError(f"precision={self.precision} must be single or half")
        self._check_range()

    def _check_range(self) -> None:
        """Checks n_spectra and n_samples, and replaces 0 by the number that it stands for."""
        most = self.n_times - self.first_spectrum
        if self.n_spectra == 0:
            object.__setattr__(self, "n_spectra", most)
        if self.first_spectrum < 0 or not 1 <= self.n_spectra <= most:
            given = f"first_spectrum={self.first_spectrum}, n_spectra={self.n_spectra}"
            raise ValueError(f"{given}: they must lie in the {self.n_times} spectra of n_heaps={self.n_heaps}")
        if self.n_samples == 0:
            object.__setattr__(self, "n_samples", self.n_needed)
        if self.n_samples < self.n_needed:
            wanted = f"n_spectra={self.n_spectra} of taps={self.taps} need {self.n_needed}"
            raise ValueError(f"n_samples={self.n_samples} is too few: {wanted}")

    @property
    def is_complex(self) -> bool:
        return self.sample_bits == COMPLEX_BITS

    @property
    def step(self) -> int:
        """Returns the samples from one spectrum to the next."""
        return self.n_channels if self.is_complex else 2 * self.n_channels

    @property
    def n_times(self) -> int:
        """Returns the number of spectra of each polarisation for which the heaps have room."""
        return self.n_heaps * self.spectra_per_heap

    @property
    def n_needed(self) -> int:
        """Returns the samples that the spectra need if each begins a step after the one before it."""
        return (self.n_spectra + self.taps - 1) * self.step

    @property
    def row_bytes(self) -> int:
        return ceil_div(self.n_samples * self.sample_bits, 8)

    @property
    def voltage_bytes(self) -> int:
        """Returns the bytes of one complex voltage."""
        return self.bits // 4

    @property
    def maximum(self) -> int:
        """Returns the largest part of a voltage; the smallest is its negative."""
        return int(2 ** (self.bits - 1)) - 1
