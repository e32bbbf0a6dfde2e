"""Spectra to quantised voltages: rotate by fine delay and phase, scale, round, saturate, count, transpose.

v[r, p, s, k] = X[r, p, s, k] e^(i (phase[r, s, p] - pi delay[r, s, p] (k - C/2) / C)) gain[r, k, p], for k < C. This
is about one flop per byte, so a good variant runs at memory bandwidth. Template: templates/postproc.cu.j2; page:
docs/kernels/postproc.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune import (
    Array,
    Config,
    Device,
    Kernel,
    Launch,
    Space,
    Tolerance,
    UsageError,
    Work,
    array_in,
    array_inout,
    array_out,
    baked,
    ceil_div,
    runtime,
)

WARP = 32  # lanes, each of which has every 32nd channel of a tile
MAX_LOADS = 32  # complex samples that a thread has under way: two registers each
SMALL_HEAP = 1 << 14  # if a heap has no more samples, every variant is also checked with several heaps
CHUNK = 1 << 16  # complex samples that inputs and reference hold in float64 at once: they stay in a core's cache
FINE = 64  # channels of the finer one of two tables whose product gives a spectrum's rotations


@dataclass(frozen=True)
class Problem:
    """The spectra of some receivers, and the layout and width of their voltages."""

    n_channels: int = baked(1024, "channels kept, C: the first of each row")
    nyquist: int = baked(1, "channels of a row beyond the C kept: 1 after a real-to-complex FFT, else 0")
    n_pols: int = baked(2, "polarisations, 1 or 2")
    bits: int = baked(8, "bits of the real and of the imaginary part of a voltage, 8 or 4")
    nibbles: str = baked("real_low", "bits 4: the nibble of the real part, real_low or real_high", added=True)
    layout: str = baked("batches", "layout of the voltages: batches or blocks")
    times_per_block: int = baked(16, "layout blocks: consecutive spectra of one polarisation, a power of two up to 64")
    spectra_per_heap: int = baked(256, "consecutive spectra that share a count of saturated samples")
    n_receivers: int = runtime(1, "receivers, each with gains, delays and phases of its own")
    n_heaps: int = runtime(128, "heaps of each receiver")

    def __post_init__(self) -> None:
        if min(self.n_channels, self.spectra_per_heap, self.n_receivers, self.n_heaps) < 1:
            given = f"n_channels={self.n_channels}, spectra_per_heap={self.spectra_per_heap}"
            given += f", n_receivers={self.n_receivers}, n_heaps={self.n_heaps}"
            raise ValueError(f"{given}: each is at least 1")
        if self.n_channels > 2**24:
            raise ValueError(f"n_channels={self.n_channels}: above 2^24 a float32 does not number them")
        if self.nyquist not in (0, 1):
            raise ValueError(f"nyquist={self.nyquist} must be 0 or 1")
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

    @property
    def n_spectra(self) -> int:
        """Returns the spectra of each receiver and polarisation."""
        return self.n_heaps * self.spectra_per_heap

    @property
    def voltage_bytes(self) -> int:
        """Returns the bytes of one complex voltage."""
        return self.bits // 4

    @property
    def maximum(self) -> int:
        """Returns the largest part of a voltage; the smallest is its negative."""
        return int(2 ** (self.bits - 1)) - 1


SPACE = Space(
    WGS=(128, 256, 512),  # threads of a block
    BLOCK_C=(32, 64, 128),  # channels of a tile; each lane has a 32nd of them
    BLOCK_S=(32, 64, 128, 256),  # spectra of a tile
    TIMES=(4, 8, 16),  # consecutive spectra that a thread loads before it uses any
    PHASE=("fast", "accurate"),  # the sine unit for each sample, or sincospi for the first channel and then steps
    ORDER=("channels", "spectra"),  # the axis along which the next tile lies
    HINTS=("none", "stream"),  # stream: loads and stores hint that caches need not keep the data
)


def shared_bytes(problem: Problem, config: Config) -> int:
    """Returns the bytes of dynamic shared memory: the tile, the phasors of its spectra, and the counts. The template
    asserts the same.
    """
    row = int(config.BLOCK_S) * problem.n_pols * problem.voltage_bytes + 16
    turns = 8 * int(config.BLOCK_S) * problem.n_pols
    steps = turns if config.PHASE == "accurate" and config.BLOCK_C > WARP else 8
    members = (config.BLOCK_C * row, turns, steps, 4 * config.WGS // WARP * problem.n_pols)
    return sum(ceil_div(int(member), 16) * 16 for member in members)


def tiles_of_heap(problem: Problem, config: Config) -> int:
    return ceil_div(problem.n_channels, int(config.BLOCK_C)) * ceil_div(problem.spectra_per_heap, int(config.BLOCK_S))


@SPACE.constraint("the warps of a block share its spectra evenly, TIMES at a time")
def warps_divide(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.BLOCK_S % (config.WGS // WARP * config.TIMES) == 0)


@SPACE.constraint("a thread has at most MAX_LOADS complex samples under way")
def loads_fit(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.TIMES * config.BLOCK_C // WARP * problem.n_pols <= MAX_LOADS)


@SPACE.constraint("a tile holds whole blocks of times")
def blocks_fit(problem: Problem, config: Config, device: Device) -> bool:
    return problem.layout == "batches" or config.BLOCK_S % problem.times_per_block == 0


@SPACE.constraint("a tile is less than twice as large as the heap's channels and spectra, or the smallest possible one")
def tile_fits_heap(problem: Problem, config: Config, device: Device) -> bool:
    smallest_s = max(32, problem.times_per_block) if problem.layout == "blocks" else 32
    largest_c, largest_s = max(32, 2 * problem.n_channels - 1), max(smallest_s, 2 * problem.spectra_per_heap - 1)
    return bool(largest_c >= config.BLOCK_C and largest_s >= config.BLOCK_S)


@SPACE.constraint("the tile fits in shared memory")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    return device.has_shared(shared_bytes(problem, config))


@SPACE.constraint("the grid has room for the tiles on its x axis and for the receivers on its z axis")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    n_tiles = problem.n_heaps * tiles_of_heap(problem, config)
    return n_tiles <= device.max_grid[0] and problem.n_receivers <= device.max_grid[2]


class Postproc(Kernel[Problem]):
    """spectra, delays, phases, gains -> voltages. It adds to saturated."""

    least_arch = "sm_80"
    space = SPACE
    default: Mapping[str, object] = dict(
        WGS=256, BLOCK_C=64, BLOCK_S=64, TIMES=4, PHASE="fast", ORDER="channels", HINTS="none"
    )
    arguments = ("voltages", "saturated", "spectra", "delays", "phases", "gains", "n_spectra")
    tuned = (
        Problem(),
        Problem(n_channels=8192, n_heaps=16),
        Problem(bits=4),
        Problem(layout="blocks"),
    )
    extra_problems = (
        Problem(n_channels=33, spectra_per_heap=67, n_heaps=2),
        Problem(n_channels=40, nyquist=0, n_pols=1, spectra_per_heap=75, n_heaps=2),
        Problem(n_channels=65, bits=4, spectra_per_heap=66, n_heaps=2),
        Problem(n_channels=40, bits=4, n_pols=1, spectra_per_heap=77, n_heaps=2),
        Problem(n_channels=70, layout="blocks", spectra_per_heap=80, n_heaps=2),
        Problem(n_channels=33, bits=4, layout="blocks", times_per_block=32, spectra_per_heap=96, n_heaps=2),
        Problem(n_channels=65, bits=4, nibbles="real_high", spectra_per_heap=66, n_heaps=2),
    )
    host_sizes: Mapping[str, int] = {"n_heaps": 2}

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """spectra: complex64 [n_receivers, n_pols, n_spectra, C + nyquist]; delays, phases: float32 [n_receivers,
        n_spectra, n_pols]; gains: complex64 [n_receivers, C, n_pols]; voltages: int8 [n_heaps, n_receivers, C,
        spectra_per_heap, n_pols, 2], or [C, n_spectra / times_per_block, n_receivers, n_pols, times_per_block, 2],
        without the last axis at 4 bits; saturated: uint32 [n_heaps, n_receivers, n_pols].
        """
        n_receivers, n_spectra, n_pols = problem.n_receivers, problem.n_spectra, problem.n_pols
        row = problem.n_channels + problem.nyquist
        is_part = problem.layout == "batches"  # a call may take some heaps of longer arrays; blocks would lie apart
        of_spectra = (1, "n_spectra") if is_part else None
        return {
            "voltages": array_out(np.int8, *shape_of_voltages(problem)),
            "saturated": array_inout(np.uint32, problem.n_heaps, n_receivers, n_pols),
            "spectra": array_in(
                np.complex64, n_receivers, n_pols, n_spectra, row, longer=(2, "n_spectra") if is_part else None
            ),
            "delays": array_in(np.float32, n_receivers, n_spectra, n_pols, longer=of_spectra),
            "phases": array_in(np.float32, n_receivers, n_spectra, n_pols, longer=of_spectra),
            "gains": array_in(np.complex64, n_receivers, problem.n_channels, n_pols),
        }

    def launch(self, problem: Problem, config: Config) -> Launch:
        """A block processes a tile. Heaps vary slowest on x, and receivers lie on z."""
        grid = (problem.n_heaps * tiles_of_heap(problem, config), 1, problem.n_receivers)
        return Launch(grid, (int(config.WGS), 1, 1), shared_bytes(problem, config))

    def constants(self, problem: Problem, config: Config) -> dict[str, object]:
        return {"shared_bytes": shared_bytes(problem, config)}

    def default_for(self, problem: Problem, device: Device) -> Mapping[str, Any]:
        """Returns a tile of 64 channels and spectra. It has half of the spectra if all spectra take at most three times
        the L2 cache, or if heaps are short; with blocks of times it then also has half of the channels. Between one and
        three times the L2 cache, hints keep voltages from displacing spectra there, which gains up to a tenth. These
        choices come from records of the H200 and H100.
        """
        n_bytes = 8 * problem.n_receivers * problem.n_spectra * problem.n_pols * problem.n_channels
        is_short = n_bytes <= 3 * device.l2_bytes or problem.spectra_per_heap <= 32
        spectra = 32 if is_short else 64
        is_narrow = is_short and problem.layout == "blocks" and problem.spectra_per_heap >= 16
        return {
            **self.default,
            "WGS": 128 if is_short and not is_narrow else 256,
            "BLOCK_C": 32 if problem.n_channels <= 32 or is_narrow else 64,
            "BLOCK_S": max(spectra, problem.times_per_block) if problem.layout == "blocks" else spectra,
            "HINTS": "stream" if is_narrow or device.l2_bytes < n_bytes <= 3 * device.l2_bytes else "none",
        }

    def scalars(self, problem: Problem, inputs: Mapping[str, object]) -> dict[str, np.generic]:
        return {"n_spectra": np.int64(problem.n_spectra)}

    def sizes(self, problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Returns the sizes of the spectra. Raises UsageError if they are not whole heaps."""
        if len(shapes.get("spectra", ())) != 4:
            return {}
        n_receivers, _, n_spectra, _ = shapes["spectra"]
        if n_spectra % problem.spectra_per_heap:
            raise UsageError(
                f"spectra has n_spectra={n_spectra}, not whole heaps of spectra_per_heap={problem.spectra_per_heap}"
            )
        return {"n_receivers": n_receivers, "n_heaps": n_spectra // problem.spectra_per_heap}

    def work(self, problem: Problem) -> Work:
        """Each sample of the C channels takes two complex products and an angle with its sine and cosine. Samples and
        voltages move once; a Nyquist channel does not move.
        """
        per_channel, per_spectrum = problem.n_channels * problem.n_pols, problem.n_spectra * problem.n_pols
        samples = problem.n_receivers * problem.n_spectra * per_channel
        n_bytes = samples * (8 + problem.voltage_bytes) + problem.n_receivers * 8 * (per_channel + per_spectrum)
        return Work(flops=16.0 * samples, bytes=n_bytes + 8 * problem.n_heaps * problem.n_receivers * problem.n_pols)

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """Returns one heap of one receiver, and if heaps are small, also two heaps of three receivers."""
        one = replace(problem, n_receivers=1, n_heaps=1)
        if problem.n_channels * problem.spectra_per_heap * problem.n_pols > SMALL_HEAP:
            return (one,)
        return (one, replace(problem, n_receivers=3, n_heaps=2))

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, object]:
        """Makes spectra that become known voltages u: it divides u by gains and rotations. A part of u is an integer
        plus a fraction of at most 0.4, so that float32 errors cannot change its rounding; some parts saturate. If delay
        and phase are 0 and the gain is a power of two times 1, i, -1 or -i, every product is exact, and the fraction is
        a half. The Nyquist channel has large values, which would show in any voltage.
        """
        n_receivers, n_spectra, n_pols = problem.n_receivers, problem.n_spectra, problem.n_pols
        delays = rng.uniform(-4, 4, (n_receivers, n_spectra, n_pols)).astype(np.float32)
        phases = rng.uniform(-10, 10, delays.shape).astype(np.float32)
        delays[:, 2::5] = phases[:, 2::5] = 0
        units = np.array([1, 1j, -1, -1j])
        shape = (n_receivers, problem.n_channels, n_pols)
        gains = (2 ** rng.uniform(-2, 2, shape) * np.exp(1j * rng.uniform(0, 2 * np.pi, shape))).astype(np.complex64)
        plain = gains[:, 3::7]
        plain[:] = 2.0 ** rng.integers(-2, 3, plain.shape) * rng.choice(units, plain.shape)
        spectra = np.empty((n_receivers, n_pols, n_spectra, problem.n_channels + problem.nyquist), np.complex64)
        spectra[..., problem.n_channels :] = 1e4
        pool = wanted(problem, rng, (problem.n_channels + CHUNK,))  # each row of u is a run of the pool, from any start
        rows = np.lib.stride_tricks.sliding_window_view(pool, problem.n_channels)
        for receiver, some in chunks(problem):
            inverse = 1 / gains[receiver].astype(np.complex128).T[:, np.newaxis]
            u = rows[rng.integers(0, len(rows), (n_pols, len(range(*some.indices(n_spectra)))))]
            turns = rotations(phases[receiver, some].T, delays[receiver, some].T, problem.n_channels)
            halves = (phases[receiver, some].T == 0)[..., np.newaxis] & (np.arange(problem.n_channels) % 7 == 3)
            u = np.where(halves, np.trunc(u.real) + 0.5 + 1j * (np.trunc(u.imag) + 0.5), u)
            spectra[receiver, :, some, : problem.n_channels] = u * turns.conj() * inverse
        return {
            "saturated": rng.integers(0, 1000, (problem.n_heaps, n_receivers, n_pols), dtype=np.uint32),
            "spectra": spectra,
            "delays": delays,
            "phases": phases,
            "gains": gains,
        }

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns voltages: int8, and saturated: int64. It evaluates the formula in complex128, in chunks that stay in
        a core's cache.
        """
        n_receivers, n_spectra, n_pols = problem.n_receivers, problem.n_spectra, problem.n_pols
        quantised = np.empty((n_receivers, n_spectra, problem.n_channels, n_pols, 2), np.int8)
        counts = np.empty((n_receivers, n_spectra, n_pols), np.int64)
        for receiver, some in chunks(problem):
            v = rotations(inputs["phases"][receiver, some].T, inputs["delays"][receiver, some].T, problem.n_channels)
            v *= inputs["spectra"][receiver, :, some, : problem.n_channels]
            v *= inputs["gains"][receiver].T[:, np.newaxis]
            parts = np.rint(v.view(np.float64).reshape(*v.shape, 2))
            saturated = np.abs(parts) > problem.maximum
            counts[receiver, some] = (saturated[..., 0] | saturated[..., 1]).sum(axis=-1).T
            np.clip(parts, -problem.maximum, problem.maximum, out=parts)
            quantised[receiver, some] = parts.transpose(1, 2, 0, 3)
        of_heaps = counts.reshape(n_receivers, problem.n_heaps, -1, n_pols).sum(axis=2).transpose(1, 0, 2)
        return {"voltages": laid_out(problem, quantised), "saturated": inputs["saturated"].astype(np.int64) + of_heaps}

    def meaningless(self, problem: Problem) -> tuple[str, ...]:
        """All kinds: gains fit these inputs so that rounding is unambiguous; with others a voltage may be one off."""
        return ("large", "small", "tied", "negative", "zeros")

    def tolerance(self, problem: Problem) -> Tolerance:
        """Nothing may differ, since rounding errors cannot change a voltage of these inputs. docs/kernels/postproc.md
        derives this.
        """
        return Tolerance()


# ---------------------------------------------------------------------- layouts
def shape_of_voltages(problem: Problem) -> tuple[int, ...]:
    """Returns the shape of the voltages. With 4 bits, both parts share a byte."""
    parts = (2,) if problem.bits == 8 else ()
    n_receivers, n_channels, n_pols = problem.n_receivers, problem.n_channels, problem.n_pols
    if problem.layout == "blocks":
        times = problem.times_per_block
        return (n_channels, problem.n_spectra // times, n_receivers, n_pols, times, *parts)
    return (problem.n_heaps, n_receivers, n_channels, problem.spectra_per_heap, n_pols, *parts)


def laid_out(problem: Problem, quantised: np.ndarray) -> np.ndarray:
    """Returns int8 [n_receivers, n_spectra, C, n_pols, 2] in the problem's layout; with 4 bits, in its nibbles."""
    n_receivers, _, n_channels, n_pols, _ = quantised.shape
    if problem.bits == 8:
        voltages = quantised.view(np.int16)[..., 0]
    else:
        low, high = (0, 1) if problem.nibbles == "real_low" else (1, 0)
        voltages = (quantised[..., low] & 15) | (quantised[..., high] << 4)
    if problem.layout == "blocks":
        blocks = voltages.reshape(n_receivers, -1, problem.times_per_block, n_channels, n_pols)
        ordered = blocks.transpose(3, 1, 0, 4, 2)
    else:
        heaps = voltages.reshape(n_receivers, problem.n_heaps, -1, n_channels, n_pols)
        ordered = heaps.transpose(1, 0, 3, 2, 4)
    return np.ascontiguousarray(ordered).view(np.int8).reshape(shape_of_voltages(problem))


# ---------------------------------------------------------------------- chunks, turns and wanted voltages
def chunks(problem: Problem) -> Iterator[tuple[int, slice]]:
    """Yields each receiver with each slice of its spectra. A slice has about CHUNK samples."""
    step = max(1, CHUNK // (problem.n_channels * problem.n_pols))
    for receiver in range(problem.n_receivers):
        for first in range(0, problem.n_spectra, step):
            yield receiver, slice(first, first + step)


def rotations(phases: np.ndarray, delays: np.ndarray, n_channels: int) -> np.ndarray:
    """Returns e^(i (phase - pi delay (k - C/2) / C)): complex128 [..., C], the product of a coarse and a fine table."""
    phases, slopes = phases.astype(np.float64)[..., np.newaxis], -np.pi * delays[..., np.newaxis] / float(n_channels)
    coarse = np.exp(1j * (phases + slopes * (np.arange(0, n_channels, FINE) - n_channels / 2)))
    fine = np.exp(1j * (slopes * np.arange(FINE)))
    table = coarse[..., np.newaxis] * fine[..., np.newaxis, :]
    return np.ascontiguousarray(table.reshape(*phases.shape[:-1], -1)[..., :n_channels])


def wanted(problem: Problem, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draws complex128. A part is an integer plus a fraction of at most 0.4, and some parts saturate."""
    beyond = max(1, problem.maximum // 16)
    integers = rng.integers(-problem.maximum - beyond, problem.maximum + beyond + 1, (*shape, 2))
    parts: np.ndarray = integers + rng.uniform(-0.4, 0.4, integers.shape)
    return parts.view(np.complex128)[..., 0]
