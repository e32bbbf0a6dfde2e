"""Correlation: products of all pairs of receivers, integrated over time, on tensor cores.

V[z, c, b(i, j), p + 2 q] += sum over t of x[i, p, t] conj(x[j, q, t]) for receivers i <= j and polarisations p and q of
them, with b = j (j + 1) / 2 + i. Integers of 4 or 8 bits, exact, or float16. A good variant is bound by the tensor
cores or, with few receivers, by memory. Template: templates/correlate.cu.j2; the page: docs/kernels/correlate.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from autotune import (
    Array,
    Config,
    Device,
    Kernel,
    Launch,
    Space,
    TensorMap,
    Tolerance,
    UsageError,
    Work,
    array_in,
    array_inout,
    array_out,
    baked,
    ceil_div,
    runtime,
    when,
)

PRODUCTS = 4  # of the two polarisations of each receiver of a baseline: aa, ba, ab, bb
OCTET = 8  # receivers whose both polarisations fill the 16 rows of a tensor core's product
UNIT_BYTES = 64  # of a receiver
UNIT_BITS = 512  # of a receiver: samples of both polarisations that a product needs
MAX_RECEIVERS = 1024
SHIFTS = {4: 256, 8: 1}  # sums of nibbles are made 256 times as large
TILE = 64  # receivers of either side of a block of the design for wgmma
STAGE_BYTES, BARRIER_BYTES = 32768, 24  # of a stage of that design
POOL = (1 << 24) + 43  # random numbers that large inputs repeat: a prime, so that no stride of theirs divides it


@dataclass(frozen=True)
class Problem:
    """Receivers, and the type and order of their voltages."""

    bits: int = baked(8, "of the real and of the imaginary part: integers of 4 or 8, floating point of 16")
    layout: str = baked("blocks", "of the voltages: blocks or batches")
    n_receivers: int = baked(256, "receivers of two polarisations, 1 to 1024")
    n_times: int = baked(16, "samples of a batch; in layout blocks a batch is a block of 128 / bits")
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
        if self.slice_samples > self.max_samples:
            raise ValueError(
                f"a slice of {self.slice_samples} samples: sums of more than {self.max_samples} may not fit in 32 bits;"
                f" use fewer batches, or more than n_slices={self.n_slices}"
            )

    @property
    def unit_times(self) -> int:
        """Samples of a unit: 64 bytes of both polarisations of a receiver."""
        return UNIT_BITS // (4 * self.bits)

    @property
    def n_baselines(self) -> int:
        return self.n_receivers * (self.n_receivers + 1) // 2

    @property
    def batches(self) -> range:
        """Those that are used."""
        return range(self.first_batch, self.first_batch + self.n_used if self.n_used else self.n_batches)

    @property
    def slices(self) -> list[range]:
        """The batches of each slice."""
        n, first = len(self.batches), self.first_batch
        ends = [first + n * z // self.n_slices for z in range(self.n_slices + 1)]
        return [range(begin, end) for begin, end in pairwise(ends)]

    @property
    def slice_samples(self) -> int:
        """Of the longest slice."""
        return ceil_div(len(self.batches), self.n_slices) * self.n_times

    @property
    def maximum(self) -> int:
        """The largest part of an integer voltage; the smallest is its negative."""
        return int(2 ** (self.bits - 1)) - 1

    @property
    def max_samples(self) -> int:
        """Of a slice: a part of a sum is at most 2 maximum^2 for each, and has 31 bits."""
        if self.bits == 16:
            return 2**31 - 1
        return (2**31 - 1) // (2 * self.maximum**2 * SHIFTS[self.bits])


SPACE = Space(
    MMA=("mma_sync", "wgmma"),  # the instruction, and the design around it
    NR_RECEIVERS_PER_BLOCK=when((32, 48, 64), MMA="mma_sync"),  # later receivers of a block
    NR_RECEIVERS_PER_BLOCK_X=when((32, 48, 64), MMA="mma_sync"),  # earlier receivers
    NR_TIMES_PER_BLOCK=when((8, 16, 32, 64, 128), MMA="mma_sync"),  # samples that are staged at once
    NR_SHARED_BUFFERS=when((2, 3, 4), MMA="mma_sync"),  # of such stages
    READ_AHEAD=when((1, 2, 3), MMA="mma_sync"),  # stages under way while one is used
    WARPS=when((4, 8), MMA="mma_sync"),  # of a block
    WARPS_J=when((2, 4), MMA="mma_sync"),  # that share its later receivers
    STAGES=when((5, 7), MMA="wgmma"),  # of 32 KiB in shared memory
    IN_FLIGHT=when((1, 2, 3), MMA="wgmma"),  # products under way while the next one's rows are loaded
    CHAIN=when((1, 2, 4, 8), MMA="wgmma"),  # channels of a block, one after another
    TAPER=when((0, 1), MMA="wgmma", CHAIN=(2, 4, 8)),  # whether chains become shorter towards the last
    FETCH=when((128, 256), MMA="wgmma"),  # bytes that the L2 fetches together
    STORE=("direct", "stream", "paired"),  # results: plainly; evicted first; so, and whole sectors of a pair of lanes
)


def sides(config: Config) -> tuple[int, int]:
    """Later and earlier receivers of a block."""
    if config.MMA == "wgmma":
        return TILE, TILE
    return int(config.NR_RECEIVERS_PER_BLOCK), int(config.NR_RECEIVERS_PER_BLOCK_X)


def shared_bytes(problem: Problem, config: Config) -> int:
    """Dynamic shared memory; the template asserts the same."""
    if config.MMA == "wgmma":
        return int(config.STAGES) * (STAGE_BYTES + BARRIER_BYTES)
    return sum(sides(config)) * int(config.NR_SHARED_BUFFERS * config.NR_TIMES_PER_BLOCK) * problem.bits // 2


def n_chains(n_channels: int, config: Config) -> int:
    """Blocks that share the channels of a tile."""
    length, left, n = int(config.CHAIN), n_channels, 0
    while config.get("TAPER") and length > 1:
        n, left, length = n + left // 2 // length, left - left // 2 // length * length, length // 2
    return n + ceil_div(left, length)


def octets(config: Config) -> tuple[int, int]:
    """Of later and of earlier receivers of a warp."""
    j, i = config.NR_RECEIVERS_PER_BLOCK // OCTET, config.NR_RECEIVERS_PER_BLOCK_X // OCTET
    return int(j // config.WARPS_J), int(i // (config.WARPS // config.WARPS_J))


def n_blocks(problem: Problem, config: Config) -> int:
    """Of the product: rows of later receivers, each up to the diagonal."""
    rows, columns = sides(config)
    ends = range(rows, problem.n_receivers + rows, rows)
    return sum(ceil_div(min(end, problem.n_receivers), columns) for end in ends)


@SPACE.constraint("a block's side is the shortest, or less than 16 longer than all receivers")
def side_is_needed(problem: Problem, config: Config, device: Device) -> bool:
    return config.MMA == "wgmma" or max(sides(config)) <= max(32, problem.n_receivers + 15)


@SPACE.constraint("a stage is one, two or four units of times")
def times_are_units(problem: Problem, config: Config, device: Device) -> bool:
    return config.MMA == "wgmma" or config.NR_TIMES_PER_BLOCK in (
        problem.unit_times,
        2 * problem.unit_times,
        4 * problem.unit_times,
    )


@SPACE.constraint("one stage at most is neither used nor under way")
def buffers_are_used(problem: Problem, config: Config, device: Device) -> bool:
    return config.MMA == "wgmma" or bool(1 <= config.NR_SHARED_BUFFERS - config.READ_AHEAD <= 2)


@SPACE.constraint("warps share a block evenly, whole octets of receivers each")
def warps_divide(problem: Problem, config: Config, device: Device) -> bool:
    if config.MMA == "wgmma":
        return True
    j, i = OCTET * config.WARPS_J, OCTET * (config.WARPS // config.WARPS_J)
    return bool(config.NR_RECEIVERS_PER_BLOCK % j == 0 and config.NR_RECEIVERS_PER_BLOCK_X % i == 0)


@SPACE.constraint("a warp has 4 to 9 pairs of octets, and no side is more than twice the other")
def parts_are_square(problem: Problem, config: Config, device: Device) -> bool:
    if config.MMA == "wgmma":
        return True
    j, i = octets(config)
    return 4 <= j * i <= 9 and j <= 2 * i and i <= 2 * j


@SPACE.constraint("only sm_90 has wgmma")
def wgmma_exists(problem: Problem, config: Config, device: Device) -> bool:
    return config.MMA != "wgmma" or device.arch in ("sm_90", "host")


@SPACE.constraint("with registers left to converters, one product is under way while the next one's rows are loaded")
def rows_fit(problem: Problem, config: Config, device: Device) -> bool:
    return config.MMA != "wgmma" or not converts(problem) or config.IN_FLIGHT == 1


@SPACE.constraint("lanes of wgmma trade nothing")
def store_is_known(problem: Problem, config: Config, device: Device) -> bool:
    return config.MMA != "wgmma" or config.STORE != "paired"


@SPACE.constraint("a tensor map's strides are less than 2^40 bytes")
def strides_fit(problem: Problem, config: Config, device: Device) -> bool:
    return config.MMA != "wgmma" or max(tensor_map(problem, config).strides) < 2**40


@SPACE.constraint("a thread's sums and operands fit in its registers")
def registers_fit(problem: Problem, config: Config, device: Device) -> bool:
    if config.MMA == "wgmma":
        return device.registers_per_block >= 65536
    j, i = octets(config)
    needed = 16 * j * i + 4 * j + 12 * i + 32  # at most; from what NVRTC 13 uses for sm_90
    return bool(needed <= min(device.max_registers, device.registers_per_block // (32 * config.WARPS)))


@SPACE.constraint("the stages fit in shared memory")
def shared_memory_fits(problem: Problem, config: Config, device: Device) -> bool:
    return shared_bytes(problem, config) <= device.max_shared_bytes


@SPACE.constraint("the grid has room for the channels on y, and for the slices on z")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    n = n_chains(problem.n_channels, config) if config.MMA == "wgmma" else problem.n_channels
    return n <= device.max_grid[1] and problem.n_slices <= device.max_grid[2]


def tensor_map(problem: Problem, config: Config) -> TensorMap:
    """Of the voltages, a unit of a receiver along the first axis: in layout blocks a box is a stage of a side."""
    c, b, n_receivers = problem.n_channels, problem.n_batches, problem.n_receivers
    if problem.layout == "blocks":
        row = UNIT_BYTES * n_receivers
        shape, strides = (UNIT_BYTES, n_receivers, b, c), (UNIT_BYTES, row, row * b)
        box = (UNIT_BYTES, TILE, 2 if problem.bits == 4 else 4, 1)
    else:
        row = problem.n_times * problem.bits // 2
        shape, strides = (row, c, n_receivers, b), (row, row * c, row * c * n_receivers)
        box = (UNIT_BYTES, 1, TILE, 1)
    argument = Correlate.arguments_of(problem).index("voltages")
    return TensorMap(argument, shape, strides, box, swizzle=UNIT_BYTES, fetch=int(config.FETCH))


class Correlate(Kernel[Problem]):
    """voltages -> accumulators, which are added to, or visibilities, which are written."""

    space = SPACE
    default: Mapping[str, Any] = dict(
        MMA="mma_sync",
        NR_RECEIVERS_PER_BLOCK=32,
        NR_RECEIVERS_PER_BLOCK_X=32,
        NR_TIMES_PER_BLOCK=64,
        NR_SHARED_BUFFERS=3,
        READ_AHEAD=2,
        WARPS=4,
        WARPS_J=2,
        STORE="stream",
    )
    arguments = ("accumulators", "voltages", "n_channels", "n_batches", "first_batch", "n_used")
    tuned = (
        Problem(),
        Problem(overwrites=True),
        Problem(overwrites=True, n_receivers=64),
        Problem(overwrites=True, n_receivers=576),
        Problem(overwrites=True, bits=4, n_times=32, n_batches=96),
        Problem(overwrites=True, bits=4, n_times=32, n_batches=96, n_receivers=576),
        Problem(overwrites=True, bits=16, n_times=8, n_batches=384),
        Problem(layout="batches", n_times=256, n_channels=64, n_batches=32),
    )
    awkward = (
        Problem(n_receivers=1),
        Problem(n_receivers=33, count_lowest=True),
        Problem(n_receivers=47, bits=4, n_times=32),
        Problem(n_receivers=65, bits=16, n_times=8),
        Problem(n_receivers=34, overwrites=True),
        Problem(n_receivers=31, layout="batches", n_times=36),
        Problem(n_receivers=50, layout="batches", bits=4, n_times=40),
        Problem(n_receivers=66, layout="batches", bits=16, n_times=22),
    )
    host_sizes: Mapping[str, int] = {"n_channels": 2, "n_batches": 3}

    @staticmethod
    def arguments_of(problem: Problem) -> tuple[str, ...]:
        results = ("visibilities" if problem.overwrites else "accumulators",)
        counts = ("n_lowest",) if problem.count_lowest else ()
        return (*results, *counts, *Correlate.arguments[1:])

    def arguments_for(self, problem: Problem) -> tuple[str, ...]:
        return self.arguments_of(problem)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """voltages: int8 or float16 [n_channels, n_batches, n_receivers, 2, n_times, 2] in layout blocks, [n_batches,
        n_receivers, n_channels, n_times, 2, 2] in layout batches; without the last axis at 4 bits. accumulators: int64
        or float32, visibilities: int32 or float32 [n_slices, n_channels, n_baselines, 4, 2]. n_lowest: uint64 [1].
        """
        floats = problem.bits == 16
        shape = (problem.n_slices, problem.n_channels, problem.n_baselines, PRODUCTS, 2)
        made: dict[str, Array] = {}
        if problem.overwrites:
            made["visibilities"] = array_out(np.float32 if floats else np.int32, *shape)
        else:
            made["accumulators"] = array_inout(np.float32 if floats else np.int64, *shape)
        if problem.count_lowest:
            made["n_lowest"] = array_inout(np.uint64, 1)
        return made | {"voltages": array_in(np.float16 if floats else np.int8, *shape_of_voltages(problem))}

    def launch(self, problem: Problem, config: Config) -> Launch:
        """A block for each part of the product that holds a baseline; channels or chains of them on y, slices on z."""
        n, shared = n_blocks(problem, config), shared_bytes(problem, config)
        if config.MMA == "wgmma":
            grid = (n, n_chains(problem.n_channels, config), problem.n_slices)
            n_threads = 128 * (4 if converts(problem) else 3)
            return Launch(grid, (n_threads, 1, 1), shared, (tensor_map(problem, config),))
        return Launch((n, problem.n_channels, problem.n_slices), (32 * int(config.WARPS), 1, 1), shared)

    def unsupported(self, config: Config, device: Device) -> str | None:
        if config.MMA == "wgmma" and device.kind == "host":
            return "a CPU has no wgmma: MMA=wgmma needs a GPU of sm_90"
        return None

    def constants(self, problem: Problem, config: Config) -> dict[str, Any]:
        rows, columns = sides(config)
        result = "float" if problem.bits == 16 else "int" if problem.overwrites else "long long"
        return {
            "shared_bytes": shared_bytes(problem, config),
            "element": {4: "nibbles", 8: "int8", 16: "float16"}[problem.bits],
            "result": result,
            "piece": {"float": "float4", "int": "int4", "long long": "longlong2"}[result],
            "rows": rows,
            "columns": columns,
            "converts": converts(problem),
            "mma": ("f16", "f32", "f") if problem.bits == 16 else ("s8", "s32", "r"),
        }

    def scalars(self, problem: Problem, inputs: Mapping[str, Any]) -> dict[str, np.generic]:
        return {
            "n_channels": np.int32(problem.n_channels),
            "n_batches": np.int32(problem.n_batches),
            "first_batch": np.int32(problem.first_batch),
            "n_used": np.int32(len(problem.batches)),
        }

    def sizes(self, problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Raises UsageError where the voltages are of other receivers, or of batches of another length."""
        voltages = shapes.get("voltages", ())
        if len(voltages) != len(shape_of_voltages(problem)):
            return {}
        if problem.layout == "blocks":
            n_channels, n_batches, n_receivers, _, n_times = voltages[:5]
        else:
            n_batches, n_receivers, n_channels, n_times = voltages[:4]
        for name, found in (("n_receivers", n_receivers), ("n_times", n_times)):
            if found != getattr(problem, name):
                raise UsageError(f"voltages has {name}={found}, the problem {name}={getattr(problem, name)}")
        sizes = {"n_channels": n_channels, "n_batches": n_batches}
        for name in ("accumulators", "visibilities"):
            if len(shapes.get(name, ())) == 5:
                sizes["n_slices"] = shapes[name][0]
        return sizes

    def work(self, problem: Problem) -> Work:
        """8 operations for a complex multiply-add; voltages are read once, accumulators read and written once,
        visibilities written.
        """
        n_samples = len(problem.batches) * problem.n_times
        visibilities = problem.n_channels * problem.n_baselines * PRODUCTS
        voltages = problem.n_channels * n_samples * problem.n_receivers * problem.bits // 2
        each = 8 if problem.overwrites else 16 if problem.bits == 16 else 32
        return Work(flops=8.0 * n_samples * visibilities, bytes=voltages + each * problem.n_slices * visibilities)

    def ragged(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """One batch; one of several, fewer than the slices; a range that fills each stage again, and one in part."""
        if config.MMA == "wgmma":
            units = int(config.STAGES) * (2 if problem.bits == 4 else 4)
        else:
            units = int(config.NR_TIMES_PER_BLOCK) // problem.unit_times * int(config.NR_SHARED_BUFFERS)
        n = units // ceil_div(problem.n_times, problem.unit_times) + 2
        one = replace(problem, n_channels=1, n_batches=1, first_batch=0, n_used=0, n_slices=1)
        return (
            one,
            replace(one, n_channels=2, n_batches=3, first_batch=1, n_used=1, n_slices=2),
            replace(one, n_batches=n + 2, first_batch=1, n_used=n),
        )

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        """Integers of all values but the most negative. Halves are small integers, so that their sums are exact in
        float32, in any order. Accumulators start from what is there.
        """
        arrays = self.arrays(problem)
        shape = arrays["voltages"].shape
        if problem.bits == 16:
            largest = largest_half(problem)
            voltages = repeated(rng.integers(-largest, largest + 1, pool(shape)).astype(np.float16), shape)
        else:
            drawn = rng.integers(-problem.maximum, problem.maximum + 1, (2, pool(shape)), dtype=np.int8)
            voltages = repeated(drawn[0] if problem.bits == 8 else pack(drawn[0], drawn[1]), shape)
        made: dict[str, Any] = {"voltages": voltages}
        if problem.count_lowest:
            made["n_lowest"] = rng.integers(0, 1000, 1).astype(np.uint64)
        if not problem.overwrites:
            largest, results = 1000 if problem.bits == 16 else 2**40, arrays["accumulators"]
            before = rng.integers(-largest, largest + 1, pool(results.shape)).astype(results.dtype)
            made["accumulators"] = repeated(before, results.shape)
        return made

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """All products of real and imaginary parts, for each slice and channel: in float32 as long as their sums are
        exact, else in float64.
        """
        kind = np.float64 if problem.bits == 16 else np.int64
        shape = (problem.n_slices, problem.n_channels, problem.n_baselines, PRODUCTS, 2)
        out = np.zeros(shape, kind) if problem.overwrites else inputs["accumulators"].astype(kind)
        j, i = np.tril_indices(problem.n_receivers)
        step = 2**24 // problem.maximum**2 if problem.bits < 16 else max(1, problem.slice_samples)
        for z, batches in enumerate(problem.slices):
            for c in range(problem.n_channels if len(batches) else 0):
                x = samples(problem, inputs["voltages"], c, batches)
                rows = x.view(x.real.dtype)  # (re, im) of each polarisation of each receiver
                sums = np.zeros((rows.shape[1], rows.shape[1]))
                for first in range(0, len(rows), step):
                    some = rows[first : first + step]
                    sums += some.T @ some
                s = sums.reshape(problem.n_receivers, 2, 2, problem.n_receivers, 2, 2)
                real, imaginary = s[:, :, 0, :, :, 0] + s[:, :, 1, :, :, 1], s[:, :, 1, :, :, 0] - s[:, :, 0, :, :, 1]
                products = np.stack([real, imaginary], axis=-1)[i, :, j].transpose(0, 2, 1, 3)  # [baseline, q, p, part]
                parts = products.reshape(-1, PRODUCTS, 2)
                out[z, c] += parts if problem.bits == 16 else np.rint(parts).astype(np.int64)
        made = {"visibilities" if problem.overwrites else "accumulators": out}
        if problem.count_lowest:
            made["n_lowest"] = inputs["n_lowest"] + np.uint64(n_lowest(problem, inputs["voltages"]))
        return made

    def tolerance(self, problem: Problem) -> Tolerance:
        """None: integers, and halves whose sums are exact in float32; docs/kernels/correlate.md bounds others."""
        return Tolerance()


# ---------------------------------------------------------------------- voltages
def converts(problem: Problem) -> bool:
    """Whether tensor cores cannot read the voltages as they are."""
    return problem.bits == 4 or problem.layout == "batches"


def shape_of_voltages(problem: Problem) -> tuple[int, ...]:
    """Of the array; at 4 bits both parts share a byte."""
    parts = () if problem.bits == 4 else (2,)
    if problem.layout == "blocks":
        return (problem.n_channels, problem.n_batches, problem.n_receivers, 2, problem.n_times, *parts)
    return (problem.n_batches, problem.n_receivers, problem.n_channels, problem.n_times, 2, *parts)


def samples(problem: Problem, voltages: np.ndarray, channel: int, batches: range) -> np.ndarray:
    """complex64, or of halves complex128, [times, 2 n_receivers] of one channel; polarisations change fastest."""
    some = slice(batches.start, batches.stop)
    if problem.layout == "blocks":
        ordered = np.moveaxis(voltages[channel, some], 3, 1)  # [batch, time, receiver, pol, ..]
    else:
        ordered = np.moveaxis(voltages[some, :, channel], 2, 1)
    if problem.bits == 4:
        ordered = np.stack([ordered << 4 >> 4, ordered >> 4], axis=-1)
    ordered = np.ascontiguousarray(ordered, np.float64 if problem.bits == 16 else np.float32)
    joined = ordered.view(np.complex128 if problem.bits == 16 else np.complex64)
    return joined.reshape(-1, 2 * problem.n_receivers)


def n_lowest(problem: Problem, voltages: np.ndarray) -> int:
    """Parts that are -128, or -8 at 4 bits, in the batches that are used."""
    some = slice(problem.batches.start, problem.batches.stop)
    used = voltages[:, some] if problem.layout == "blocks" else voltages[some]
    if problem.bits == 8:
        return int(np.count_nonzero(used == -128))
    return int(np.count_nonzero(used & 15 == 8) + np.count_nonzero(used >> 4 == -8))


def pack(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Nibbles in a byte: the real part comes low."""
    return (real & 15) | (imaginary << 4)


def largest_half(problem: Problem) -> int:
    """The largest integer, up to 15, of which no sum of products leaves the integers of float32."""
    return int(max(1, min(15, np.sqrt((2**24 - 1000) / (2 * problem.slice_samples)))))


def pool(shape: tuple[int, ...]) -> int:
    """Random numbers that an array of this shape needs, or repeats."""
    return min(int(np.prod(shape, dtype=np.int64)), POOL)


def repeated(numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.resize(numbers, shape)
