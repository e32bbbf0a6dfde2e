"""Correlation: products of all pairs of receivers, integrated over time, on tensor cores.

V[z, c, b(i, j), p + 2 q] += sum over t of x[i, p, t] conj(x[j, q, t]) for receivers i <= j and polarisations p and q of
them, with b = j (j + 1) / 2 + i. Integers of 4 or 8 bits, exact, or float16. A good variant is bound by the tensor
cores or, with few receivers, by memory. Template: templates/correlate.cu.j2; the page: docs/kernels/correlate.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from autotune import (
    Array,
    Config,
    Device,
    Kernel,
    Launch,
    Tolerance,
    UsageError,
    Work,
    array_in,
    array_inout,
    array_out,
    ceil_div,
)

from .defaults import starting_config
from .geometry import Geometry
from .problem import Problem
from .space import SPACE

PRODUCTS = 4  # aa, ba, ab, bb of the two polarisations of each receiver of a baseline
POOL = (1 << 24) + 43  # random numbers that large inputs repeat: a prime, so that no stride of theirs divides it


class Correlate(Kernel[Problem]):
    """voltages -> accumulators, which are added to, or visibilities, which are written."""

    least_arch = "sm_80"
    space = SPACE
    default: Mapping[str, object] = dict(
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
    extra_problems = (
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
        """A block takes a part of the product that holds a baseline, in whole clusters, and if slices are split a part
        of the times; channels or chains of them are on y, slices on z.
        """
        geometry = Geometry(problem, config)
        launch = Launch(geometry.grid, (geometry.n_threads, 1, 1), geometry.shared_bytes)
        if not geometry.uses_wgmma:
            return launch
        return replace(launch, maps=(geometry.tensor_map(self.arguments_of(problem).index("voltages")),))

    def constants(self, problem: Problem, config: Config) -> dict[str, object]:
        """The template prints attributes of the geometry as its constants, under the same names."""
        geometry = Geometry(problem, config)
        result = "float" if problem.bits == 16 else "int" if problem.overwrites else "long long"
        table = {
            "clusters": [", ".join(map(braced, cluster)) for cluster in geometry.clusters],
            "shares": [braced((len(s.rows), len(s.columns), *s)) for s in geometry.shares],
            "pairs_of_shares": [braced(pairs) for pairs in geometry.pairs_of_shares],
            "first_rows": braced([s.rows[0] for s in geometry.shares]),
        }
        return {
            "shape": geometry,
            **table,
            "element": {4: "nibbles", 8: "int8", 16: "float16"}[problem.bits],
            "result": result,
            "piece": {"float": "float4", "int": "int4", "long long": "longlong2"}[result],
            "mma": ("f16", "f32", "f") if problem.bits == 16 else ("s8", "s32", "r"),
        }

    def scalars(self, problem: Problem, inputs: Mapping[str, object]) -> dict[str, np.generic]:
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
        """A complex multiply-add is 8 operations; voltages are read once, accumulators read and written once,
        visibilities written.
        """
        n_samples = len(problem.batches) * problem.n_times
        visibilities = problem.n_channels * problem.n_baselines * PRODUCTS
        voltages = problem.n_channels * n_samples * problem.n_receivers * problem.bits // 2
        each = 8 if problem.overwrites else 16 if problem.bits == 16 else 32
        n_bytes = voltages + each * problem.n_slices * visibilities
        unit = "float16" if problem.bits == 16 else "int8"
        return Work(8.0 * n_samples * visibilities, n_bytes, unit)

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """Returns one batch; one of several, fewer than the slices; and a range that fills each stage again, and one in
        part.
        """
        geometry = Geometry(problem, config)
        units = geometry.n_stages * geometry.units_per_stage
        n = units // ceil_div(problem.n_times, problem.unit_times) + 2
        one = replace(problem, n_channels=1, n_batches=1, first_batch=0, n_used=0, n_slices=1)
        return (
            one,
            replace(one, n_channels=2, n_batches=3, first_batch=1, n_used=1, n_slices=2),
            replace(one, n_batches=n + 2, first_batch=1, n_used=n),
        )

    def default_for(self, problem: Problem, device: Device) -> Mapping[str, Any]:
        """wgmma of enough receivers where there is one; else mma_sync, with a tile and stages that fit the problem."""
        return starting_config(problem, device)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, object]:
        """Draws integers of all values but the most negative. Halves are small integers, so that their sums are exact
        in float32, in any order. Accumulators start from what is there.
        """
        arrays = self.arrays(problem)
        shape = arrays["voltages"].shape
        if problem.bits == 16:
            largest = largest_half(problem)
            voltages = repeated(rng.integers(-largest, largest + 1, pool(shape)).astype(np.float16), shape)
        else:
            drawn = rng.integers(-problem.maximum, problem.maximum + 1, (2, pool(shape)), dtype=np.int8)
            voltages = repeated(drawn[0] if problem.bits == 8 else pack(drawn[0], drawn[1]), shape)
        made: dict[str, object] = {"voltages": voltages}
        if problem.count_lowest:
            made["n_lowest"] = rng.integers(0, 1000, 1).astype(np.uint64)
        if not problem.overwrites:
            largest, results = 1000 if problem.bits == 16 else 2**40, arrays["accumulators"]
            before = rng.integers(-largest, largest + 1, pool(results.shape)).astype(results.dtype)
            made["accumulators"] = repeated(before, results.shape)
        return made

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """Makes all products of real and imaginary parts, for each slice and channel: in float32 as long as their sums
        are exact, else in float64.
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

    def meaningless(self, problem: Problem) -> tuple[str, ...]:
        """Floats are integers whose sums are exact, and bytes of two voltages have none of the most negative ones."""
        inexact = ("large", "small", "tied") if problem.bits == 16 else ()
        return ("large", "small", "tied", "negative") if problem.bits == 4 else inexact

    def tolerance(self, problem: Problem) -> Tolerance:
        """Nothing is rounded: integers, and halves whose sums are exact in float32; docs/kernels/correlate.md bounds
        others.
        """
        return Tolerance()


def braced(values: Iterable[Any]) -> str:
    """Returns values as an initializer of C++, nested as they are."""
    return f"{{{', '.join(braced(v) if isinstance(v, tuple | list) else str(v) for v in values)}}}"


# ---------------------------------------------------------------------- voltages
def shape_of_voltages(problem: Problem) -> tuple[int, ...]:
    """Returns the shape of the array; at 4 bits both parts share a byte."""
    parts = () if problem.bits == 4 else (2,)
    if problem.layout == "blocks":
        return (problem.n_channels, problem.n_batches, problem.n_receivers, 2, problem.n_times, *parts)
    return (problem.n_batches, problem.n_receivers, problem.n_channels, problem.n_times, 2, *parts)


def samples(problem: Problem, voltages: np.ndarray, channel: int, batches: range) -> np.ndarray:
    """Returns one channel, complex64 or of halves complex128, [times, 2 n_receivers]; polarisations change fastest."""
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
    """Counts parts that are -128, or -8 at 4 bits, in the batches that are used."""
    some = slice(problem.batches.start, problem.batches.stop)
    used = voltages[:, some] if problem.layout == "blocks" else voltages[some]
    if problem.bits == 8:
        return int(np.count_nonzero(used == -128))
    return int(np.count_nonzero(used & 15 == 8) + np.count_nonzero(used >> 4 == -8))


def pack(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Packs two nibbles in a byte: the real part comes low."""
    return (real & 15) | (imaginary << 4)


def largest_half(problem: Problem) -> int:
    """Returns the largest integer, up to 15, of which no sum of products leaves the integers of float32."""
    return int(max(1, min(15, np.sqrt((2**24 - 1000) / (2 * problem.slice_samples)))))


def pool(shape: tuple[int, ...]) -> int:
    """Returns the number of random numbers that an array of this shape needs, or repeats."""
    return min(int(np.prod(shape, dtype=np.int64)), POOL)


def repeated(numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.resize(numbers, shape)
