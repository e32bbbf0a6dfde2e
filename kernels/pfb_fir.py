"""Polyphase filter bank, front end: the weighted sums that an FFT turns into channels.

z[p, s, c] = sum over t < taps of w[t, c] x[p, o_p + (s + t) L + c], c < L. L is the number of samples from one spectrum
to the next: 2 n_channels if samples are real, n_channels if they are complex. The floats take three times as many bytes
as 10-bit samples, so a good variant is bound by writing. Template: templates/pfb_fir.cu.j2; page:
docs/kernels/pfb_fir.md.
"""

from collections.abc import Mapping
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
    Work,
    array_in,
    array_inout,
    array_out,
    baked,
    ceil_div,
    runtime,
    unpack_samples,
)

COMPLEX_BITS = 64  # bits of a sample of two floats
COPY_BITS = 128  # bits that one asynchronous copy moves
MAX_TAPS = 64  # a thread holds their weights and samples in registers
ONE_TURN_TAPS = 40  # compilers for sm_120 spill up to 1400 bytes from 48 taps on if a part is one turn, 240 if two
REFERENCE_SPECTRA = 1 << 22  # samples that the reference holds at once
REFERENCE_COLUMNS = 4096  # outputs of a spectrum that it computes together, so that they stay in a cache


@dataclass(frozen=True)
class Problem:
    """A filter bank, and the streams that it filters."""

    taps: int = baked(16, "spectra that a weighted sum spans, 1 to 64")
    n_channels: int = baked(1024, "channels: half the samples of a spectrum, or all if they are complex")
    sample_bits: int = baked(10, "bits of a packed sample, 2 to 16, two's complement; 64: complex float32")
    n_pols: int = runtime(2, "streams that share the filter, each with a start offset")
    n_spectra: int = runtime(32768, "spectra made of each stream")
    n_samples: int = runtime(0, "samples of each stream, including start offset and all taps; 0: the fewest possible")

    def __post_init__(self) -> None:
        if not 1 <= self.taps <= MAX_TAPS:
            raise ValueError(f"taps={self.taps} must be 1 to {MAX_TAPS}")
        if self.n_channels < 1 or self.n_pols < 1 or self.n_spectra < 1:
            given = f"n_channels={self.n_channels}, n_pols={self.n_pols}, n_spectra={self.n_spectra}"
            raise ValueError(f"{given}: each is at least 1")
        if not 2 <= self.sample_bits <= 16 and self.sample_bits != COMPLEX_BITS:
            raise ValueError(f"sample_bits={self.sample_bits} must be 2 to 16, or {COMPLEX_BITS} for complex float32")
        if self.taps * self.step >= 2**31:
            raise ValueError(f"n_channels={self.n_channels} is too many: 2^31 weights or more, with taps={self.taps}")
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
        """Returns the samples from one spectrum to the next; also the floats, or complex numbers, of a spectrum."""
        return self.n_channels if self.is_complex else 2 * self.n_channels

    @property
    def n_needed(self) -> int:
        """Returns the number of samples that the spectra need."""
        return (self.n_spectra + self.taps - 1) * self.step

    @property
    def row_bytes(self) -> int:
        return ceil_div(self.n_samples * self.sample_bits, 8)


SPACE = Space(
    WGS=(64, 128, 256, 512),  # threads of a block
    COLUMNS=(1, 2, 4),  # neighbouring columns of a thread, which holds their weights and latest samples
    SPECTRA=(32, 48, 64, 96, 192, 512),  # spectra that a block computes, rounded up to whole turns of taps
    MIN_BLOCKS=(1, 5),  # blocks that a multiprocessor must have registers for
    TURNS=(1, 2, 4),  # turns of taps rows in a stage, which are copied to shared memory together
    STAGES=(2, 3, 4),  # stages in shared memory: one is used while the others are under way
    STORE=("default", "streaming"),  # the cache hint of the stores
)


def shared_bytes(problem: Problem, config: Config) -> int:
    """Returns the bytes of the stages of packed rows; the template asserts the same."""
    rows = config.STAGES * config.TURNS * problem.taps
    return int(rows * 16 * piece_copies(problem, config))


def part_spectra(problem: Problem, config: Config) -> int:
    """Returns the number of spectra that a block computes: SPECTRA, rounded up to whole turns of taps."""
    return ceil_div(int(config.SPECTRA), problem.taps) * problem.taps


def piece_copies(problem: Problem, config: Config) -> int:
    """Returns how many copies of 16 bytes hold a block's part of a row, wherever it starts, and the words that extend
    past its end.
    """
    return ceil_div(COPY_BITS - 1 + int(config.WGS * config.COLUMNS) * problem.sample_bits + 64, COPY_BITS)


def registers(problem: Problem, config: Config) -> int:
    """Returns about how many registers a thread needs to avoid spills. It is a fit to NVRTC 13.0."""
    a_column = 3 if problem.is_complex else 2
    return int(a_column * problem.taps * config.COLUMNS) + 40


@SPACE.constraint("COLUMNS divides a spectrum")
def columns_divide(problem: Problem, config: Config, device: Device) -> bool:
    return bool(problem.step % config.COLUMNS == 0)


@SPACE.constraint("a thread moves at most 16 bytes at once")
def store_fits(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.COLUMNS * (8 if problem.is_complex else 4) <= 16)


@SPACE.constraint("a block is less than twice as wide as a spectrum, or WGS is 64")
def block_fits(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.WGS == 64 or 2 * problem.step > config.WGS * config.COLUMNS)


@SPACE.constraint("the weights and the latest samples of a thread fit in its registers")
def registers_fit(problem: Problem, config: Config, device: Device) -> bool:
    return registers(problem, config) <= min(device.max_registers, device.registers_per_block // int(config.WGS))


@SPACE.constraint("the stages of two blocks fit in a multiprocessor's shared memory")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    return device.has_shared(shared_bytes(problem, config), n_blocks=2)


@SPACE.constraint("a stage of several turns has at most 32 rows, and all stages have at most SPECTRA + taps")
def stages_small(problem: Problem, config: Config, device: Device) -> bool:
    rows = config.TURNS * problem.taps
    return bool(config.TURNS == 1 or (rows <= 32 and config.STAGES * rows <= config.SPECTRA + problem.taps))


@SPACE.constraint("a MIN_BLOCKS above 1 leaves a thread fewer registers, but enough")
def min_blocks_limit(problem: Problem, config: Config, device: Device) -> bool:
    if config.MIN_BLOCKS == 1:
        return True
    allowed = device.registers_per_block // int(config.MIN_BLOCKS * config.WGS)
    return registers(problem, config) - 15 <= allowed < registers(problem, config) + 20


@SPACE.constraint("the grid's y and z axes have room for the spectra and the polarisations")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    n_parts = ceil_div(problem.n_spectra, part_spectra(problem, config))
    return n_parts <= device.max_grid[1] and problem.n_pols <= device.max_grid[2]


class PfbFir(Kernel[Problem]):
    """samples, weights, offsets, total_power -> filtered (and total_power)."""

    kernel_name = "pfb_fir"
    least_arch = "sm_80"
    space = SPACE
    default: Mapping[str, object] = dict(
        WGS=128, COLUMNS=2, SPECTRA=48, MIN_BLOCKS=5, TURNS=1, STAGES=3, STORE="streaming"
    )
    arguments = (
        *("filtered", "total_power", "samples", "weights", "offsets"),
        *("n_spectra", "filtered_spectra", "row_bytes"),
    )
    tuned = (
        Problem(n_samples=2**26 + 2**15),
        Problem(n_channels=32768, n_spectra=1024, n_samples=2**26 + 2**20),
    )
    extra_problems = (
        Problem(taps=5, n_channels=37, sample_bits=13, n_spectra=300, n_samples=2**16),
        Problem(taps=8, n_channels=96, sample_bits=64, n_spectra=300, n_samples=2**16),
        Problem(taps=1, n_channels=3, sample_bits=2, n_spectra=100, n_samples=2**10),
        Problem(taps=32, n_channels=64, sample_bits=16, n_spectra=200, n_samples=2**15),
    )
    host_sizes: Mapping[str, int] = {"n_spectra": 70, "n_samples": 2**18}

    def arguments_for(self, problem: Problem) -> tuple[str, ...]:
        """Returns all arguments, without total_power for complex floats, whose sum of squares would not be exact."""
        return tuple(name for name in self.arguments if name != "total_power" or not problem.is_complex)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """filtered: float32 (complex64) [n_pols, n_spectra, L]; samples: uint8 [n_pols, row_bytes] (complex64 [n_pols,
        n_samples]); weights: float32 [taps, L]; offsets: int64 [n_pols], in samples; total_power: uint64 [n_pols].
        """
        step = problem.step
        part = (1, "filtered_spectra")  # runs of spectra are appended to longer arrays
        if problem.is_complex:
            filtered = array_out(np.complex64, problem.n_pols, problem.n_spectra, step, longer=part)
            samples = array_in(np.complex64, problem.n_pols, problem.n_samples)
        else:
            filtered = array_out(np.float32, problem.n_pols, problem.n_spectra, step, longer=part)
            samples = array_in(np.uint8, problem.n_pols, problem.row_bytes)
        found = {
            "filtered": filtered,
            "samples": samples,
            "weights": array_in(np.float32, problem.taps, step),
            "offsets": array_in(np.int64, problem.n_pols, align=8),
        }
        return (
            found if problem.is_complex else {**found, "total_power": array_inout(np.uint64, problem.n_pols, align=8)}
        )

    def launch(self, problem: Problem, config: Config) -> Launch:
        columns = ceil_div(problem.step, int(config.WGS * config.COLUMNS))
        grid = (columns, ceil_div(problem.n_spectra, part_spectra(problem, config)), problem.n_pols)
        return Launch(grid, (int(config.WGS), 1, 1), shared_bytes(problem, config))

    def constants(self, problem: Problem, config: Config) -> dict[str, object]:
        return {"shared_bytes": shared_bytes(problem, config)}

    def default_for(self, problem: Problem, device: Device) -> Mapping[str, Any]:
        """Returns two columns for each thread, or one if their weights would take too many registers. By records of the
        H200 and H100, parts have three turns of taps, or, if there are few blocks, a length that ends with a whole
        wave. Turns of up to three taps are short, so four of them are copied together.
        """
        taps, step, n_multiprocessors = problem.taps, problem.step, device.n_multiprocessors or 100
        columns = 2 if taps <= (16 if problem.is_complex else 24) and step % 2 == 0 else 1
        wgs = 128 if 2 * step > 128 * columns else 64
        if ceil_div(problem.n_spectra, 32) * problem.n_pols * step < 2 * n_multiprocessors * wgs * columns:
            columns, wgs = 1, 64  # there would not be two blocks for each multiprocessor
        rest: dict[str, Any] = {"WGS": wgs, "COLUMNS": columns, "MIN_BLOCKS": 1, "STORE": "streaming"}
        rest["TURNS"] = 4 if taps <= 3 else 1
        n_together = n_multiprocessors * (device.registers_per_block // (wgs * registers(problem, Config(rest))))

        def n_rows(spectra: int) -> int:
            """Returns the rows that a multiprocessor reads in all waves of blocks."""
            part = part_spectra(problem, Config(SPECTRA=spectra))
            n_blocks = ceil_div(step, wgs * columns) * ceil_div(problem.n_spectra, part) * problem.n_pols
            return ceil_div(n_blocks, n_together) * (part + taps)

        spectra = 32 if taps <= 8 else 48 if taps <= 16 else 96 if taps <= 32 else 512
        spectra = min(spectra, next((n for n in (32, 48, 64, 96) if n >= problem.n_spectra), spectra))
        if n_rows(spectra) <= 3 * (spectra + taps):  # three waves or less
            two_turns = taps > ONE_TURN_TAPS and device.compute_capability >= 120
            spectra = min((n for n in (512, 96, 64, 48, 32) if not two_turns or n > taps), key=n_rows)
        stages = ((wgs, 4), (wgs, 3), (wgs, 2), (64, 2))[taps >= 16 :]  # less and less shared memory
        choices = ({**rest, "SPECTRA": spectra, "WGS": some, "STAGES": n} for some, n in stages)
        return self.space.first_allowed(problem, device, choices)

    def scalars(self, problem: Problem, inputs: Mapping[str, object]) -> dict[str, np.generic]:
        return {
            "n_spectra": np.int64(problem.n_spectra),
            "filtered_spectra": np.int64(problem.n_spectra),
            "row_bytes": np.int64(problem.row_bytes),
        }

    def sizes(self, problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Returns the sizes of the samples: every whole sample counts. One spectrum is left out for start offsets."""
        if len(shapes.get("samples", ())) != 2:
            return {}
        n_pols, length = shapes["samples"]
        n_samples = length if problem.is_complex else length * 8 // problem.sample_bits
        return {"n_pols": n_pols, "n_samples": n_samples, "n_spectra": n_samples // problem.step - problem.taps}

    def work(self, problem: Problem) -> Work:
        """Each tap takes a multiply-add for each float of the output. Each byte moves once."""
        outputs = problem.n_pols * problem.n_spectra * problem.step
        floats = 2 if problem.is_complex else 1
        read = problem.n_pols * ceil_div(problem.n_needed * problem.sample_bits, 8)
        n_bytes = read + 4 * problem.taps * problem.step + 4 * floats * outputs
        return Work(flops=2.0 * problem.taps * floats * outputs, bytes=n_bytes)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, object]:
        """Draws samples of all values with the same probability, weights of random sign and similar size, so that each
        tap matters, and any offset.
        """
        shape = (problem.taps, problem.step)
        size = rng.uniform(0.5, 1.5, shape) / np.sqrt(problem.taps)
        slack = problem.n_samples - problem.n_needed
        found = {
            "weights": (size * rng.choice((-1.0, 1.0), shape)).astype(np.float32),
            "offsets": rng.integers(0, slack + 1, problem.n_pols),
        }
        if problem.is_complex:
            parts = rng.standard_normal((problem.n_pols, 2 * problem.n_samples), np.float32)
            return {"samples": parts.view(np.complex64), **found}
        samples = rng.integers(0, 256, (problem.n_pols, problem.row_bytes), dtype=np.uint8)
        power = rng.integers(0, 2**40, problem.n_pols, dtype=np.uint64)
        return {"samples": samples, **found, "total_power": power}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """Returns one spectrum whose samples fill the buffer; and three spectra more than a block computes, for two
        streams whose rows start at any byte, or for one stream if spectra are wide.
        """
        one = replace(problem, n_pols=1, n_spectra=1, n_samples=problem.taps * problem.step)
        n_spectra = part_spectra(problem, config) + 3
        n_pols = 2 if problem.step <= 8192 else 1
        n_samples = (n_spectra + problem.taps - 1) * problem.step + 37
        while not problem.is_complex and ceil_div(n_samples * problem.sample_bits, 8) % 2 == 0 and n_samples % 64:
            n_samples += 1
        return (one, replace(problem, n_pols=n_pols, n_spectra=n_spectra, n_samples=n_samples))

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns filtered: float64 (complex128) [n_pols, n_spectra, L], and total_power: uint64 [n_pols]. It goes
        through chunks of spectra.
        """
        step, taps = problem.step, problem.taps
        shape = (problem.n_pols, problem.n_spectra, step)
        filtered: Any = np.zeros(shape, np.complex128 if problem.is_complex else np.float64)
        weights = inputs["weights"].astype(np.float64)
        power = np.zeros(problem.n_pols, np.uint64)
        chunk = max(taps, REFERENCE_SPECTRA // step)  # so few samples are unpacked more than twice
        for pol, offset in enumerate(inputs["offsets"].tolist()):
            for first in range(0, problem.n_spectra, chunk):
                n = min(chunk, problem.n_spectra - first)
                start, count = offset + first * step, (n + taps - 1) * step
                if problem.is_complex:
                    samples = inputs["samples"][pol, start : start + count]
                else:
                    samples = unpack_samples(inputs["samples"][pol], problem.sample_bits, start, count)
                    newest = samples[(taps - 1) * step :].astype(np.int64)
                    power[pol] += np.uint64(newest @ newest)
                rows = samples.reshape(n + taps - 1, step)
                out = filtered[pol, first : first + n]
                for columns in (slice(at, at + REFERENCE_COLUMNS) for at in range(0, step, REFERENCE_COLUMNS)):
                    for t in range(taps):
                        out[:, columns] += weights[t, columns] * rows[t : t + n, columns]
        if problem.is_complex:
            return {"filtered": filtered}
        return {"filtered": filtered, "total_power": power + inputs["total_power"]}

    def tolerance(self, problem: Problem) -> Mapping[str, Tolerance]:
        """Allows for the rounding of a float32 sum of taps products, as docs/kernels/pfb_fir.md derives. The power must
        be exact.
        """
        rms_of_samples = np.sqrt(2.0) if problem.is_complex else 2.0**problem.sample_bits / np.sqrt(12)
        rms_of_outputs = rms_of_samples * np.sqrt(13 / 12)  # sum of the squared weights: uniform in [0.5, 1.5], squared
        rounding = Tolerance(atol=float(4 * np.sqrt(problem.taps + 4) * np.finfo(np.float32).eps * rms_of_outputs))
        return {"filtered": rounding, "total_power": Tolerance()}
