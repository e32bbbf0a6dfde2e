"""The problem of beamform: antennas, their voltages, the beams, and the batches of a launch."""

from dataclasses import dataclass

from autotune import baked, runtime

MAX_BEAMS, MAX_ANTENNAS = 4096, 1024
MAX_CHANNELS = 1 << 23  # a float32 holds the half-integer distance of any channel from the centre
PRECISIONS = ("single", "half", "planes")


@dataclass(frozen=True)
class Problem:
    """Beams of one size and type."""

    n_beams: int = baked(8, "beams, 1 to 4096")
    n_times: int = baked(256, "samples of a batch")
    bits: int = baked(8, "bits of the real and of the imaginary part of a voltage, 8 or 4")
    nibbles: str = baked("real_low", "bits 4: the nibble of the real part, real_low or real_high")
    mixes: bool = baked(False, "a beam adds up both polarisations; else it has one of them")
    dither: bool = baked(False, "add uniform noise of one step before rounding")
    precision: str = baked("single", "weights: single, half (at least float16) or planes (15 bits, exact sums)")
    n_antennas: int = runtime(64, "antennas of two polarisations, 1 to 1024")
    n_channels: int = runtime(256, "channels of the array")
    n_batches: int = runtime(32, "batches of the array")
    first_batch: int = runtime(0, "the first batch that is used")
    n_used: int = runtime(0, "batches that are used, from first_batch on; 0: all that follow")
    first_channel: int = runtime(0, "number of the array's first channel in the whole band")
    n_all_channels: int = runtime(0, "channels of the whole band; 0: as many as end with this array")
    seed: int = runtime(0, "of the dither, 0 to 2^31 - 1")
    first_time: int = runtime(0, "number of the array's first sample, which the dither depends on")

    def __post_init__(self) -> None:
        for name, most in (("n_beams", MAX_BEAMS), ("n_antennas", MAX_ANTENNAS)):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{name}={getattr(self, name)} must be 1 to {most}")
        if min(self.n_times, self.n_channels, self.n_batches) < 1:
            given = f"n_times={self.n_times}, n_channels={self.n_channels}, n_batches={self.n_batches}"
            raise ValueError(f"{given}: each is at least 1")
        if self.bits not in (4, 8):
            raise ValueError(f"bits={self.bits} must be 4 or 8")
        if self.nibbles not in ("real_low", "real_high"):
            raise ValueError(f"nibbles={self.nibbles} must be real_low or real_high")
        if self.nibbles != "real_low" and self.bits == 8:
            raise ValueError(f"nibbles={self.nibbles} is for bits=4; with bits=8 each part has a byte of its own")
        if self.n_times * self.bits % 32:
            whole = 32 // self.bits
            given = f"n_times={self.n_times} of bits={self.bits}"
            raise ValueError(f"{given} is not whole pieces of 16 bytes: use a multiple of {whole}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision={self.precision} must be {', '.join(PRECISIONS)}")
        if self.first_batch < 0 or self.n_used < 0 or self.first_batch + max(1, self.n_used) > self.n_batches:
            given = f"first_batch={self.first_batch}, n_used={self.n_used}"
            raise ValueError(f"{given}: not a range of the n_batches={self.n_batches} batches")
        if self.first_channel < 0 or self.first_channel + self.n_channels > self.all_channels:
            given = f"first_channel={self.first_channel}, n_channels={self.n_channels}"
            raise ValueError(f"{given}: not a range of the n_all_channels={self.n_all_channels} channels of the band")
        if self.all_channels > MAX_CHANNELS:
            raise ValueError(f"a band of {self.all_channels} channels: above 2^23 a float32 does not number them")
        if not 0 <= self.seed < 2**31:
            raise ValueError(f"seed={self.seed} must be 0 to 2^31 - 1")
        if not 0 <= self.first_time < 2**62:
            raise ValueError(f"first_time={self.first_time} must be 0 to 2^62 - 1")

    @property
    def all_channels(self) -> int:
        """Returns the channels of the whole band, whose centre has no phase from delays."""
        return self.n_all_channels or self.first_channel + self.n_channels

    @property
    def batches(self) -> range:
        """Returns the batches that are used."""
        return range(self.first_batch, self.first_batch + self.n_used if self.n_used else self.n_batches)

    @property
    def n_pols(self) -> int:
        """Returns the polarisations of a beam's weights."""
        return 2 if self.mixes else 1

    @property
    def jones_bytes(self) -> int:
        """Returns the bytes of both polarisations of an antenna at one time."""
        return self.bits // 2

    @property
    def largest(self) -> int:
        """Returns the magnitude of the most negative part of a voltage."""
        return int(2 ** (self.bits - 1))
