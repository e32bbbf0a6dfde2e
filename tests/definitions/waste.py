"""y = 2 x, computed more often than needed by all configs but one: the winner on `host` is beyond doubt.

It is so on `simulated`, too, whose formula prefers a WASTE of 16 by a fifth.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune import Config, Kernel, Launch, Space, Tolerance, Work, array_in, array_out, baked, ceil_div, runtime


@dataclass(frozen=True)
class Problem:
    """So many elements, and a number that makes one problem differ from another."""

    number: int = baked(0)
    n: int = runtime(2000)


class Waste(Kernel[Problem]):
    """x -> y."""

    space = Space(WASTE=(1, 16, 256, 320, 384, 512, 768, 1024, 1536, 2048, 3072, 4096), BLOCK=(64,))
    default = {"WASTE": 16, "BLOCK": 64}
    arguments = ("y", "x", "n")
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Any]:
        return {"y": array_out(np.float32, problem.n), "x": array_in(np.float32, problem.n)}

    def launch(self, problem: Problem, config: Config) -> Launch:
        return Launch((ceil_div(problem.n, config.BLOCK), 1, 1), (config.BLOCK, 1, 1))

    def work(self, problem: Problem) -> Work:
        return Work(flops=problem.n, bytes=8 * problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"x": rng.normal(size=problem.n).astype(np.float32)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n=1), replace(problem, n=config.BLOCK + 1)

    def reference(self, problem: Problem, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"y": 2 * x.astype(np.float64)}

    def tolerance(self, problem: Problem) -> Tolerance:
        return Tolerance(rtol=1e-6)
