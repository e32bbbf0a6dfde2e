"""y = 3 x in several ways, of which some agree with each other only at large sizes, and need more or less of a device.

WAY: right; low and high, each with its own error beyond the sizes at which variants are verified; greedy, with a
workspace of a terabyte; patient, with more work than the others.
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
    Work,
    array_in,
    array_out,
    array_workspace,
    baked,
    ceil_div,
    runtime,
)


@dataclass(frozen=True)
class Problem:
    """A row of numbers."""

    factor: int = baked(3)
    n: int = runtime(5000)


class Parties(Kernel[Problem]):
    """x -> y."""

    space = Space(WAY=("right", "low", "high", "greedy", "patient"), WGS=(64, 128, 256))
    default = {"WAY": "right", "WGS": 64}
    arguments = ("y", "x", "n")
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        return {"y": array_out(np.float32, problem.n), "x": array_in(np.float32, problem.n)}

    def sizes(self, problem: Problem, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
        return {"n": shapes["x"][0]}

    def launch(self, problem: Problem, config: Config) -> Launch:
        space = {"space": array_workspace(np.uint8, 1 << 40)} if config.WAY == "greedy" else {}
        return Launch((ceil_div(problem.n, config.WGS), 1, 1), (config.WGS, 1, 1), workspace=space)

    def work(self, problem: Problem) -> Work:
        return Work(flops=problem.n, bytes=8 * problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"x": rng.uniform(1, 2, problem.n).astype(np.float32)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n=3), replace(problem, n=257)

    def reference(self, problem: Problem, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"y": problem.factor * x.astype(np.float64)}

    def tolerance(self, problem: Problem) -> Tolerance:
        return Tolerance(rtol=1e-6)
