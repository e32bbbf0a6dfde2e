"""Two launches and a workspace: centred[r, i] = values[r, i] - mean(values[r]). FAULT says what is wrong.

Template: two.cu.j2.
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
    array_in,
    array_out,
    array_workspace,
    ceil_div,
    runtime,
)

WIDTH = 64
FAULTS = [
    "RIGHT",
    "ADDS_TO_SUMS",
    "TAKES_NAN_FOR_ZERO",
    "ADDS_ATOMICALLY",
    "ZEROES_AFTERWARDS",
    "SKIPS_LAST_CHUNK",
    "ONE_CHUNK_MORE",
    "ONE_CHUNK_LESS",
    "OTHER_ROW",
    "WRITES_PAST_WORKSPACE",
    "KEEPS_PLAUSIBLE_SUMS",
    "KEEPS_SUMS_AT_FULL_SIZE",
    "DIVIDES_BY_MORE",
    "MEAN_OF_FIRST_ROW",
    "MISSES_BARRIER",
    "ROUNDS_SUMS",
    "LEAVES_LAST_ROW",
    "SUMS_OF_LAST_LAUNCH",
    "LEAVES_ANSWERS",
    "SUMS_A_FEW_TIMES",
    "DIVIDES_BY_CHUNKS",
    "TAKES_FIRST_SUM_TWICE",
    "NEXT_ROW_AT_THE_END",
    "HALF_THE_CHUNKS_AT_FULL_SIZE",
    "KEEPS_MEANS_AT_FULL_SIZE",
]


@dataclass(frozen=True)
class Problem:
    """Rows, and how long they are."""

    n_rows: int = runtime(64)
    n: int = runtime(1 << 16)


class Two(Kernel[Problem]):
    """values -> centred."""

    space = Space(FAULT=tuple(FAULTS))
    arguments = ("centred", "values", "n")
    host_sizes = {"n_rows": 3, "n": 6000}
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        shape = problem.n_rows, problem.n
        return {"values": array_in(np.float32, *shape), "centred": array_out(np.float32, *shape)}

    def launch(self, problem: Problem, config: Config) -> Launch:
        n_chunks = ceil_div(problem.n, WIDTH)
        grid, block = (n_chunks, problem.n_rows, 1), (WIDTH, 1, 1)
        subtract = Launch(grid, block, function="subtract", arguments=("centred", "values", "sums", "n"))
        sums = {"sums": array_workspace(np.float32, problem.n_rows, n_chunks)}
        return Launch(grid, block, then=subtract, arguments=("sums", "values", "n"), workspace=sums)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        means = rng.uniform(1, 2, (problem.n_rows, 1))
        return {"values": (means + rng.normal(size=(problem.n_rows, problem.n))).astype(np.float32)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n_rows=1, n=1), replace(problem, n_rows=3, n=5 * WIDTH + 1)

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        values = inputs["values"].astype(float)
        return {"centred": values - values.mean(axis=1, keepdims=True)}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Sums of n numbers near 1, each rounded to float32."""
        return Tolerance(atol=2e-5)
