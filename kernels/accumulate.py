"""The correlator's dump: it sums accumulators, saturates the sums to 32 bits, counts saturated ones, and clears.

visibilities[c, b] = sum over z of accumulators[z, c, b], each part clipped to +-(2^31 - 1). A baseline without all of
its data becomes (-2^31, 1). All numbers are exact integers. A visibility takes 32 n_accumulators + 8 bytes and nearly
no arithmetic. Template: templates/accumulate.cu.j2; page: docs/kernels/accumulate.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isqrt
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
    when,
)

PRODUCTS = 4  # polarisation products of a baseline
LARGEST = 2**31 - 1  # largest sum of either sign that is not clipped
MISSING = (-(2**31), 1)  # the visibility of a baseline without all of its data: no sum is clipped to it
MAX_RECEIVERS = 32767  # a channel's visibilities are counted in 31 bits
MAX_LOADS = 16  # loads of 16 bytes that a thread has in flight; they take 64 registers
EDGES = (LARGEST, LARGEST + 1, LARGEST - 1, -LARGEST, -LARGEST - 1, -LARGEST + 1, 2**32 + 5, 5 - 2**32, 2**40, -(2**40))


@dataclass(frozen=True)
class Problem:
    """The sizes of one dump."""

    n_accumulators: int = baked(8, "accumulators that are summed")
    n_channels: int = runtime(64, "channels")
    n_receivers: int = runtime(256, "receivers of two polarisations; n (n + 1) / 2 baselines")

    def __post_init__(self) -> None:
        if min(self.n_accumulators, self.n_channels, self.n_receivers) < 1:
            given = f"n_accumulators={self.n_accumulators}, n_channels={self.n_channels}"
            raise ValueError(f"{given}, n_receivers={self.n_receivers}: each is at least 1")
        if self.n_receivers > MAX_RECEIVERS:
            raise ValueError(f"n_receivers={self.n_receivers} must be at most {MAX_RECEIVERS}")

    @property
    def n_baselines(self) -> int:
        return self.n_receivers * (self.n_receivers + 1) // 2

    @property
    def n_visibilities(self) -> int:
        """Returns the visibilities of one channel."""
        return self.n_baselines * PRODUCTS


SPACE = Space(
    GRID=("flat", "channels"),  # flat: tiles of all channels together; channels: the grid's y axis has the channels
    WGS=(128, 256, 512),  # threads of a block
    VECTOR=(1, 2),  # visibilities in one store of a thread
    COARSEN=(1, 2, 4, 8),  # stores of a thread
    DEPTH=(1, 2, 4, 8, 16),  # accumulators that are loaded before the first of them is added
    TILES=when((1, 4), GRID="flat"),  # tiles that a block computes
    READ=("plain", "streaming"),  # loads of accumulators: =, __ldcs
    CLEAR=("plain", "streaming"),  # zeros into accumulators: =, __stcs
    STORE=("plain", "streaming"),  # stores of visibilities: =, __stcs
)


def tile(config: Config) -> int:
    """Returns the number of visibilities in a tile, which a block computes at once."""
    return int(config.WGS * config.VECTOR * config.COARSEN)


@SPACE.constraint("a thread loads at least half of the accumulators at once, or 8; of two accumulators, both")
def depth_suffices(problem: Problem, config: Config, device: Device) -> bool:
    n = problem.n_accumulators
    needed = min(8, ceil_div(n, 2) if n > 2 else n)
    return bool(needed <= config.DEPTH)


@SPACE.constraint("a thread loads at most n_accumulators accumulators at once")
def depth_is_needed(problem: Problem, config: Config, device: Device) -> bool:
    return bool(problem.n_accumulators >= config.DEPTH)


@SPACE.constraint("a thread has 2 to 16 loads of 16 bytes in flight")
def loads_in_flight(problem: Problem, config: Config, device: Device) -> bool:
    return bool(2 <= config.DEPTH * config.VECTOR * config.COARSEN <= MAX_LOADS)


@SPACE.constraint("the grid has room for the tiles and, with GRID=channels, for the channels")
def grid_fits(problem: Problem, config: Config, device: Device) -> bool:
    return all(n <= most for n, most in zip(grid(problem, config), device.max_grid, strict=True))


def grid(problem: Problem, config: Config) -> tuple[int, int, int]:
    """Returns the grid that GRID chooses."""
    if config.GRID == "channels":
        return ceil_div(problem.n_visibilities, tile(config)), problem.n_channels, 1
    tiles = ceil_div(problem.n_channels * problem.n_visibilities, tile(config))
    return ceil_div(tiles, int(config.TILES)), 1, 1


class Accumulate(Kernel[Problem]):
    """accumulators, present -> visibilities. It clears accumulators and adds to saturated."""

    least_arch = "sm_80"
    space = SPACE
    default: Mapping[str, object] = dict(
        GRID="channels", WGS=128, VECTOR=2, COARSEN=1, DEPTH=8, READ="plain", CLEAR="streaming", STORE="streaming"
    )
    arguments = ("visibilities", "accumulators", "saturated", "present", "n_channels", "n_baselines")
    tuned = (Problem(), Problem(n_accumulators=1), Problem(n_accumulators=2))
    extra_problems = (Problem(n_accumulators=1), Problem(n_accumulators=3), Problem(n_accumulators=20))
    host_sizes: Mapping[str, int] = {"n_channels": 3, "n_receivers": 5}

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """visibilities: int32 [n_channels, n_baselines, 4, 2]; accumulators: int64, with n_accumulators before these
        axes; saturated: uint64 [1]; present: uint8 [n_baselines].
        """
        each = problem.n_channels, problem.n_baselines, PRODUCTS, 2
        return {
            "visibilities": array_out(np.int32, *each),
            "accumulators": array_inout(np.int64, problem.n_accumulators, *each),
            "saturated": array_inout(np.uint64, 1, align=8),
            "present": array_in(np.uint8, problem.n_baselines, align=1),
        }

    def launch(self, problem: Problem, config: Config) -> Launch:
        return Launch(grid(problem, config), (int(config.WGS), 1, 1))

    def default_for(self, problem: Problem, device: Device) -> Mapping[str, Any]:
        """Returns a config that reads all accumulators at once, up to 16, or 8 if a last turn reads the rest of more
        than 16. The other choices come from records of the H200 and H100 and from drawn problems: tiles span channels
        if a channel has less than 16 tiles; tiles are half as large if there are few of them, and larger if a last turn
        has fewer accumulators to load.
        """
        n, n_multiprocessors = problem.n_accumulators, device.n_multiprocessors or 100
        depth = max(depth for depth in (1, 2, 4, 8, 16) if depth <= n)
        if depth == 16 and n % 16:
            depth = 8
        is_small = problem.n_channels * problem.n_visibilities < 4 * 256 * n_multiprocessors
        has_rest = n % depth > 0
        vector = 2 if depth == 1 or has_rest or (depth < 16 and not is_small) else 1
        is_flat = problem.n_visibilities < 16 * 256
        return {
            "GRID": "flat" if is_flat else "channels",
            "WGS": 256 if has_rest and is_flat and not is_small else 128,
            "VECTOR": vector,
            "COARSEN": min(4, MAX_LOADS // depth // vector) if has_rest else 1,
            "DEPTH": depth,
            **({"TILES": 1} if is_flat else {}),
            "READ": "plain",
            "CLEAR": "streaming" if depth == 16 or has_rest else "plain",
            "STORE": "plain" if depth == 16 else "streaming",
        }

    def scalars(self, problem: Problem, inputs: Mapping[str, object]) -> dict[str, np.generic]:
        return {"n_channels": np.int32(problem.n_channels), "n_baselines": np.int32(problem.n_baselines)}

    def sizes(self, problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Returns the sizes of the accumulators. If no number of receivers has so many baselines, a later check of the
        shape fails.
        """
        if len(shapes.get("accumulators", ())) != 5:
            return {}
        _, n_channels, n_baselines, _, _ = shapes["accumulators"]
        return {"n_channels": n_channels, "n_receivers": (isqrt(8 * n_baselines + 1) - 1) // 2}

    def work(self, problem: Problem) -> Work:
        """Each part of an accumulator is added once, read once and cleared once."""
        parts = 2 * problem.n_channels * problem.n_visibilities
        n_bytes = parts * (16 * problem.n_accumulators + 4) + problem.n_baselines + 16
        return Work(flops=float(parts * problem.n_accumulators), bytes=n_bytes)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, object]:
        """Draws sums of both signs that fit, and one in 16 at or beyond an edge. Each accumulator takes more than 32
        bits, so that its upper bits matter. One baseline in 8 lacks data.
        """
        shape = self.arrays(problem)["visibilities"].shape
        accumulators = np.empty((problem.n_accumulators, *shape), np.int64)
        last = accumulators[-1]
        last[...] = rng.integers(-LARGEST, LARGEST, shape, dtype=np.int32, endpoint=True)
        at_edge = rng.integers(0, 16, shape, dtype=np.uint8) == 0
        last[at_edge] = rng.choice(np.array(EDGES), int(np.count_nonzero(at_edge)))
        for others in accumulators[:-1]:
            others[...] = rng.integers(-(2**40), 2**40, shape)
            last -= others
        present = rng.integers(1, 256, problem.n_baselines, dtype=np.uint8)
        present[rng.integers(0, 8, problem.n_baselines) == 0] = 0
        return {"accumulators": accumulators, "saturated": np.array([2**32 - 3], np.uint64), "present": present}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """Returns one baseline; two channels of a little more than a tile; one channel that fills nearly two tiles; and
        tiles that hold many channels.
        """
        size = tile(config)
        longer = [n for n in range(1, size) if size < 2 * n * (n + 1) <= 2 * size]
        return (
            replace(problem, n_channels=1, n_receivers=1),
            replace(problem, n_channels=2, n_receivers=longer[0]),
            replace(problem, n_channels=1, n_receivers=longer[-1]),
            replace(problem, n_channels=5, n_receivers=2),
        )

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns the exact sums in 64 bits, computed a channel at a time."""
        accumulators, present = inputs["accumulators"], inputs["present"] != 0
        visibilities = np.empty(accumulators.shape[1:], np.int32)
        n_saturated = 0
        for c in range(problem.n_channels):
            sums = accumulators[:, c].sum(axis=0)
            clipped = np.clip(sums, -LARGEST, LARGEST)
            n_saturated += int(np.count_nonzero((clipped != sums).any(axis=-1)[present]))
            visibilities[c] = clipped
            visibilities[c, ~present] = MISSING
        return {
            "visibilities": visibilities,
            "accumulators": np.zeros_like(accumulators),
            "saturated": inputs["saturated"] + np.uint64(n_saturated),
        }

    def tolerance(self, problem: Problem) -> Tolerance:
        """Integers are exact."""
        return Tolerance()
