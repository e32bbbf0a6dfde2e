"""One launch: y[i] = scale x[i] + w[i mod 5] + d_shifts[i mod 3], and peaks[b], the largest |8 y| of block b.

FAULT says what is wrong. Template: one.cu.j2.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune import (
    Array,
    Config,
    Kernel,
    Launch,
    Space,
    Tolerance,
    array_constant,
    array_in,
    array_out,
    ceil_div,
    runtime,
)

BLOCK, N_W, N_SHIFTS = 128, 5, 3
FAULTS = [
    "RIGHT",
    "SKIPS_LAST",
    "SKIPS_FIRST",
    "SKIPS_SOME",
    "SKIPS_LAST_BLOCK",
    "WRAPS_INDEX",
    "READS_NEXT",
    "READS_NEIGHBOUR_AT_BORDERS",
    "ADDS_TO_SMALL_OLD",
    "KEEPS_OLD_OF_SAME_SIGN",
    "KEEPS_OLD_AT_FULL_SIZE",
    "WRITES_OVER_PATTERNS_ONLY",
    "RETURNS_EARLY",
    "LOSES_TAIL_OF_VECTORS",
    "WRITES_PAST_END",
    "WRITES_BEFORE_START",
    "WRITES_FAR",
    "READS_FAR",
    "WRITES_INPUT",
    "KEEPS_RESULTS",
    "KEEPS_RESULTS_AT_FULL_SIZE",
    "COUNTS_LAUNCHES",
    "USES_LAST_INPUTS",
    "MISSES_BARRIER",
    "DIVERGENT_BARRIER",
    "ROUNDS_TOO_MUCH",
    "NEARLY_SCALES",
    "WRONG_BELOW_ZERO",
    "WRONG_WHERE_LARGE",
    "WRONG_FOR_ODD_N",
    "WRONG_AT_FULL_SIZE",
    "IGNORES_SCALE",
    "SWAPS_PAIRS",
    "NEGATES_LAST_LANE",
    "UNSET_SHARED",
    "PEAKS_WITHOUT_SIGN",
    "PEAKS_OF_FIRST_WARP",
    "PEAKS_ADD_UP",
    "TRUNCATES_PEAKS",
    "READS_PAST_W",
    "DROPS_W_AT_FULL_SIZE",
    "STALE_TAIL_AT_FULL_SIZE",
    "PEAKS_OF_OLD_Y",
    "KEEPS_ONE_VALUE",
    "READS_PAST_CONSTANTS",
    "READS_FAR_PAST_CONSTANTS",
]


@dataclass(frozen=True)
class Problem:
    """How many."""

    n: int = runtime(1 << 22)


class One(Kernel[Problem]):
    """x, w, d_shifts, scale -> y, peaks."""

    space = Space(FAULT=tuple(FAULTS))
    arguments = ("y", "peaks", "x", "w", "scale", "n")
    scalar_defaults = {}
    host_sizes = {"n": 20_000}
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        n = problem.n
        outputs = {"y": array_out(np.float32, n), "peaks": array_out(np.int32, ceil_div(n, BLOCK))}
        read = {"x": array_in(np.float32, n), "w": array_in(np.float32, N_W)}
        return {**outputs, **read, "d_shifts": array_constant(np.float32, N_SHIFTS)}

    def scalars(self, problem: Problem, inputs: Any) -> dict[str, Any]:
        return {"scale": np.float32(inputs["scale"]), "n": np.int32(problem.n)}

    def launch(self, problem: Problem, config: Config) -> Launch:
        return Launch((ceil_div(problem.n, BLOCK), 1, 1), (BLOCK, 1, 1))

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        x, w = (rng.normal(size=size).astype(np.float32) for size in (problem.n, N_W))
        shifts = rng.normal(size=N_SHIFTS).astype(np.float32)
        return {"x": x, "w": w, "d_shifts": shifts, "scale": float(np.float32(rng.uniform(1, 2)))}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n=1), replace(problem, n=129), replace(problem, n=3000)

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        y = np.float32(inputs["scale"]) * inputs["x"] + np.resize(inputs["w"], problem.n)  # as float32 rounds it
        y = y + np.resize(inputs["d_shifts"], problem.n)
        peaks = np.rint(8 * np.abs(np.resize(y, ceil_div(problem.n, BLOCK) * BLOCK)))
        peaks[problem.n :] = 0
        return {"y": y.astype(float), "peaks": peaks.reshape(-1, BLOCK).max(axis=1).astype(np.int64)}

    def tolerance(self, problem: Problem) -> dict[str, Tolerance]:
        return {"y": Tolerance(atol=1e-5), "peaks": Tolerance(atol=1)}
