"""Two launches and a workspace: centred[r, i] = values[r, i] - mean(values[r]).

The first launch leaves a sum of each chunk of a row, the second adds them up. Template: centre.cu.j2.
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


@dataclass(frozen=True)
class Problem:
    """Rows, and how long they are."""

    n_rows: int = runtime(3)
    n: int = runtime(100)


class Centre(Kernel[Problem]):
    """values -> centred."""

    space = Space(WIDTH=(32, 64))  # values of a chunk, threads of a block
    arguments = ("centred", "values", "n")
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        shape = problem.n_rows, problem.n
        return {"values": array_in(np.float32, *shape), "centred": array_out(np.float32, *shape)}

    def launch(self, problem: Problem, config: Config) -> Launch:
        n_chunks = ceil_div(problem.n, config.WIDTH)
        grid, block = (n_chunks, problem.n_rows, 1), (config.WIDTH, 1, 1)
        subtract = Launch(grid, block, function="subtract", arguments=("centred", "values", "sums", "n"))
        sums = {"sums": array_workspace(np.float32, problem.n_rows, n_chunks)}
        return Launch(grid, block, then=subtract, arguments=("sums", "values", "n"), workspace=sums)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"values": rng.normal(size=(problem.n_rows, problem.n)).astype(np.float32)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n_rows=1, n=1), replace(problem, n_rows=2, n=2 * config.WIDTH + 1)

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        values = inputs["values"].astype(float)
        return {"centred": values - values.mean(axis=1, keepdims=True)}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Sums of n numbers near 1, each rounded to float32."""
        return Tolerance(atol=8 * float(np.finfo(np.float32).eps))
