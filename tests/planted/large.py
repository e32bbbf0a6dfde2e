"""Sums of rows, of which the definition says that NumPy would need minutes for all. FAULT says what is wrong.

Template: large.cu.j2.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune import Array, Config, Kernel, Launch, Space, Tolerance, Work, array_in, array_out, runtime


@dataclass(frozen=True)
class Problem:
    """Rows, and how long they are."""

    n_rows: int = runtime(40)
    n: int = runtime(200)


class Large(Kernel[Problem]):
    """values -> sums."""

    space = Space(FAULT=("WRONG_AT_FULL_SIZE", "RIGHT", "LAST_ROW_WRONG"))
    arguments = ("sums", "values", "n")
    host_sizes = {"n_rows": 40}
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        return {
            "sums": array_out(np.float32, problem.n_rows),
            "values": array_in(np.float32, problem.n_rows, problem.n),
        }

    def launch(self, problem: Problem, config: Config) -> Launch:
        return Launch((problem.n_rows, 1, 1), (32, 1, 1))

    def work(self, problem: Problem) -> Work:
        """More than it is, so that a config must stand in for NumPy at the timed size alone."""
        return Work(flops=1e10 * problem.n_rows, bytes=4 * problem.n_rows * problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"values": rng.normal(size=(problem.n_rows, problem.n)).astype(np.float32)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n_rows=1, n=1), replace(problem, n_rows=2, n=67)

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        return {"sums": inputs["values"].astype(float).sum(axis=1)}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Sums of n numbers near 1."""
        return Tolerance(atol=1e-4)
