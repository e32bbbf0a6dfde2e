"""Four-bit samples to floating point: int4 [n_beams, n_freqs, n_times] -> float32, float16 or bfloat16.

value = scale x + offset, or x itself. It is rounded once in float32 and once to the output's type, so every bit of the
result is determined. 0.5 bytes of input give 4 or 2 bytes of output, so a good variant writes at the memory's speed.
Template: templates/dequantize.cu.j2; page: docs/kernels/dequantize.md.
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
    array_out,
    baked,
    ceil_div,
    runtime,
    when,
)

GROUP = 256  # samples that share a scale and an offset
STORE_BYTES = 16  # bytes that a thread writes in one store
REFERENCE_GROUPS = 1 << 10  # groups that the reference holds at once; they stay in a CPU's cache
DTYPES: dict[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}  # NumPy has no bfloat16


@dataclass(frozen=True)
class Problem:
    """The type of the values, their scaling, and the number of samples."""

    out_type: str = baked("float32", "float32, float16 or bfloat16")
    scale_offset: bool = baked(False, "each 256 samples of a row have a float16 scale and offset")
    missing: bool = baked(False, "-8 marks a missing sample, which becomes 0")
    n_beams: int = runtime(2, "beams")
    n_freqs: int = runtime(16384, "rows of a beam")
    n_times: int = runtime(32768, "samples of a row: a multiple of 8, or of 256 with scale_offset")

    def __post_init__(self) -> None:
        if self.out_type not in DTYPES:
            raise ValueError(f"out_type={self.out_type} must be {', '.join(DTYPES)}")
        for name in ("scale_offset", "missing"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)} must be true or false")
        if min(self.n_beams, self.n_freqs, self.n_times) < 1:
            given = f"n_beams={self.n_beams}, n_freqs={self.n_freqs}, n_times={self.n_times}"
            raise ValueError(f"{given}: each is at least 1")
        if self.n_times % self.unit:
            why = "with scale_offset" if self.scale_offset else "so that rows are whole words"
            raise ValueError(f"n_times={self.n_times} must be a multiple of {self.unit}, {why}")

    @property
    def unit(self) -> int:
        """Returns the number of samples that divides a row's length."""
        return GROUP if self.scale_offset else 8

    @property
    def row_bytes(self) -> int:
        return self.n_times // 2

    @property
    def n_bytes(self) -> int:
        return self.n_beams * self.n_freqs * self.row_bytes

    @property
    def out_bytes(self) -> int:
        """Returns the bytes of one value."""
        return int(np.dtype(DTYPES[self.out_type]).itemsize)


SPACE = Space(
    GRID=("flat", "rows"),  # flat: tiles of the whole array; rows: tiles of each row, with x time, y frequency, z beam
    WGS=(128, 256),  # threads of a block
    LOAD=(2, 4, 8, 16),  # bytes in one load of a thread
    EXCHANGE=("none", "shuffle"),  # whether lanes exchange pieces so that a warp stores contiguously
    UNROLL=(1, 2, 4),  # loads of a thread, all before its first store
    READ=("plain", "streaming"),  # loads: __ldg or __ldcs
    STORE=("plain", "streaming"),  # stores: = or __stcs
    AHEAD=when((0, 512), GRID="flat"),  # KiB from a tile to the samples that it prefetches into the L2; 0: no prefetch
    RESERVED=when((0, 19, 38), GRID="flat"),  # KiB of unused shared memory of a block, so that fewer run at a time
)


def pieces(problem: Problem, config: Config) -> int:
    """Returns the number of stores that one load gives, rounded down."""
    return int(config.LOAD) * 2 * problem.out_bytes // STORE_BYTES


def reserved_bytes(config: Config) -> int:
    """Returns the bytes of dynamic shared memory, which no thread touches."""
    return 1024 * int(config.get("RESERVED", 0))


def tile_bytes(config: Config) -> int:
    """Returns the bytes of samples in one tile."""
    return int(config.WGS * config.LOAD * config.UNROLL)


@SPACE.constraint("a load gives at least 16 bytes of output")
def load_fills_a_store(problem: Problem, config: Config, device: Device) -> bool:
    return pieces(problem, config) >= 1


@SPACE.constraint("lanes exchange only if a load gives several stores, and must exchange if it gives more than two")
def exchange_is_needed(problem: Problem, config: Config, device: Device) -> bool:
    n = pieces(problem, config)
    return n >= 2 if config.EXCHANGE == "shuffle" else n <= 2


@SPACE.constraint("a thread makes 1 to 8 stores")
def stores_in_flight(problem: Problem, config: Config, device: Device) -> bool:
    return bool(1 <= pieces(problem, config) * config.UNROLL <= 8)


@SPACE.constraint("samples that were prefetched are read without a cache hint")
def hint_of_loads(problem: Problem, config: Config, device: Device) -> bool:
    return bool(config.READ == "plain" or config.get("AHEAD", 0) == 0)


@SPACE.constraint("at least 512 threads run on a multiprocessor at a time")
def enough_run(problem: Problem, config: Config, device: Device) -> bool:
    reserved = reserved_bytes(config)
    return bool(reserved == 0 or device.max_shared_bytes // reserved * config.WGS >= 512)


@SPACE.constraint("the grid has room for the tiles and, with GRID=rows, for the frequencies and beams")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    return all(n <= most for n, most in zip(grid(problem, config), device.max_grid, strict=True))


def grid(problem: Problem, config: Config) -> tuple[int, int, int]:
    """Returns the grid that GRID chooses."""
    if config.GRID == "flat":
        return ceil_div(problem.n_bytes, tile_bytes(config)), 1, 1
    return ceil_div(problem.row_bytes, tile_bytes(config)), problem.n_freqs, problem.n_beams


class Dequantize(Kernel[Problem]):
    """samples, and scale_offset if the problem has it -> values."""

    least_arch = "sm_80"
    space = SPACE
    default: Mapping[str, object] = dict(
        GRID="flat",
        WGS=128,
        LOAD=4,
        EXCHANGE="shuffle",
        UNROLL=1,
        READ="plain",
        STORE="streaming",
        AHEAD=512,
        RESERVED=19,
    )
    arguments = ("values", "samples", "scale_offset", "n_bytes", "row_bytes")
    tuned = (
        Problem(),
        Problem(out_type="float16", n_freqs=32768),
        Problem(out_type="bfloat16", n_freqs=32768),
        Problem(scale_offset=True),
    )
    extra_problems = (
        Problem(missing=True),
        Problem(out_type="float16", missing=True),
        Problem(out_type="float16", scale_offset=True),
        Problem(out_type="bfloat16", scale_offset=True, missing=True),
    )
    host_sizes: Mapping[str, int] = {"n_beams": 2, "n_freqs": 3, "n_times": 1280}

    def arguments_for(self, problem: Problem) -> tuple[str, ...]:
        """Returns all arguments, without scale_offset if samples are not scaled."""
        return tuple(name for name in self.arguments if problem.scale_offset or name != "scale_offset")

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """values: [n_beams, n_freqs, n_times], bfloat16 as its bits; samples: uint8 [n_beams, n_freqs, n_times / 2];
        scale_offset: float16 [n_beams, n_freqs, n_times / 256, 2].
        """
        rows = problem.n_beams, problem.n_freqs
        arrays = {
            "values": array_out(DTYPES[problem.out_type], *rows, problem.n_times),
            "samples": array_in(np.uint8, *rows, problem.row_bytes),
        }
        if problem.scale_offset:
            arrays["scale_offset"] = array_in(np.float16, *rows, problem.n_times // GROUP, 2)
        return arrays

    def launch(self, problem: Problem, config: Config) -> Launch:
        return Launch(grid(problem, config), (int(config.WGS), 1, 1), reserved_bytes(config))

    def default_for(self, problem: Problem, device: Device) -> Mapping[str, Any]:
        """Returns loads of two stores for every type, within 3 % of the best in records of the H200 and H100."""
        return {**self.default, "LOAD": STORE_BYTES // problem.out_bytes}

    def scalars(self, problem: Problem, inputs: Mapping[str, object]) -> dict[str, np.generic]:
        return {"n_bytes": np.int64(problem.n_bytes), "row_bytes": np.int64(problem.row_bytes)}

    def sizes(self, problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Returns the sizes of the samples."""
        if len(shapes.get("samples", ())) != 3:
            return {}
        n_beams, n_freqs, row_bytes = shapes["samples"]
        return {"n_beams": n_beams, "n_freqs": n_freqs, "n_times": 2 * row_bytes}

    def work(self, problem: Problem) -> Work:
        """A sample that is scaled takes a multiply-add. Each byte moves once."""
        n_samples = 2 * problem.n_bytes
        n_bytes = sum(array.n_bytes for array in self.arrays(problem).values())
        return Work(flops=2.0 * n_samples if problem.scale_offset else 0.0, bytes=n_bytes)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, object]:
        """Draws samples of all values with the same probability, and scales and offsets of both signs. Results are all
        finite, and most of them are rounded, since few scales are powers of 2.
        """
        arrays = self.arrays(problem)
        inputs: dict[str, object] = {"samples": rng.integers(0, 256, arrays["samples"].shape, dtype=np.uint8)}
        if problem.scale_offset:
            shape = arrays["scale_offset"].shape
            size = rng.uniform(0.25, 3.0, shape) * rng.choice((-1.0, 1.0), shape)
            inputs["scale_offset"] = size.astype(np.float16)
        return inputs

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """Returns the smallest row; rows a little longer than a tile, some of which start where a wide load is not
        aligned; and a row that is shorter than two tiles by one of the widest loads.
        """
        tile = 2 * tile_bytes(config)
        return (
            replace(problem, n_beams=1, n_freqs=1, n_times=problem.unit),
            replace(problem, n_beams=2, n_freqs=2, n_times=tile + problem.unit),
            replace(problem, n_beams=1, n_freqs=1, n_times=2 * tile - max(problem.unit, 32)),
        )

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns the values, bit for bit. A table gives the two values of each byte, or its two samples, which are
        then scaled.
        """
        values = np.empty((problem.n_beams, problem.n_freqs, problem.n_times), DTYPES[problem.out_type])
        samples, out = inputs["samples"].reshape(-1), values.reshape(-1)
        table = pairs_of_samples()
        if not problem.scale_offset:
            table = rounded(np.where(problem.missing & (table == -8), np.float32(0), table), problem.out_type)
        pairs = table.view(f"u{2 * table.itemsize}").reshape(-1)  # both values of a byte in one word, for one look-up
        chunk = REFERENCE_GROUPS * GROUP // 2
        scratch = np.empty(2 * chunk, np.float32)
        for first in range(0, samples.size, chunk):
            some = samples[first : first + chunk]
            into = scratch[: 2 * some.size] if problem.scale_offset else out[2 * first :][: 2 * some.size]
            np.take(pairs, some, mode="clip", out=into.view(pairs.dtype))
            if problem.scale_offset:
                scale_offset = inputs["scale_offset"].reshape(-1, 2)[2 * first // GROUP :][: 2 * some.size // GROUP]
                scale(into.reshape(-1, GROUP), scale_offset.astype(np.float32), problem.missing)
                out[2 * first :][: 2 * some.size] = rounded(into, problem.out_type)
        return {"values": values}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Nothing may differ: a product of 11 and 4 bits is exact in float32, so the sum is rounded once, whether it is
        fused or not.
        """
        return Tolerance()


def pairs_of_samples() -> np.ndarray:
    """Returns the two samples of each byte, the low nibble first: float32 [256, 2]."""
    byte = np.arange(256)
    nibbles = np.stack((byte % 16, byte // 16), axis=1)
    return ((nibbles ^ 8) - 8).astype(np.float32)


def scale(samples: np.ndarray, scale_offset: np.ndarray, missing: bool) -> None:
    """Multiplies each row of ``samples`` by its scale and adds its offset, in place, rounded once.

    ``samples`` is float32 [n, 256], and ``scale_offset`` is float32 [n, 2].
    """
    absent = samples == -8 if missing else None
    samples *= scale_offset[:, :1]
    samples += scale_offset[:, 1:]
    if absent is not None:
        samples[absent] = 0


def rounded(values: np.ndarray, out_type: str) -> np.ndarray:
    """Returns float32 values rounded to nearest in ``out_type``, halves to even; bfloat16 as its bits, uint16."""
    if out_type != "bfloat16":
        return values.astype(DTYPES[out_type], copy=False)
    bits = values.view(np.uint32)
    bits = bits + (0x7FFF + (bits >> 16 & 1))
    return np.where(np.isnan(values), 0x7FFF, bits >> 16).astype(np.uint16)
