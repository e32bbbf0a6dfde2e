"""A structure by value: sums += scale samples + offset. Template: saxpy.cu.j2."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune import Array, Config, Kernel, Launch, Space, Tolerance, Work, array_in, array_inout, ceil_div, runtime

PARAMS = np.dtype([("scale", "f4"), ("offset", "f8"), ("n", "i4")], align=True)  # struct Params of the template


@dataclass(frozen=True)
class Problem:
    """Any size."""

    n: int = runtime(1000)


class Saxpy(Kernel[Problem]):
    """samples, sums, scale, offset -> sums."""

    space = Space(WGS=(64, 128))
    default = {"WGS": 64}
    arguments = ("sums", "params", "samples")
    tuned = (Problem(),)
    scalar_defaults = {"offset": 0.0}

    def arrays(self, problem: Problem) -> dict[str, Array]:
        return {"samples": array_in(np.float32, problem.n), "sums": array_inout(np.float32, problem.n)}

    def scalars(self, problem: Problem, inputs: Any) -> dict[str, np.generic]:
        return {"params": np.void((inputs["scale"], inputs["offset"], problem.n), dtype=PARAMS)}

    def sizes(self, problem: Problem, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
        return {"n": shapes["samples"][0]}

    def launch(self, problem: Problem, config: Config) -> Launch:
        return Launch((ceil_div(problem.n, config.WGS), 1, 1), (config.WGS, 1, 1))

    def work(self, problem: Problem) -> Work:
        return Work(flops=2 * problem.n, bytes=12 * problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        arrays = {name: rng.normal(size=problem.n).astype(np.float32) for name in ("samples", "sums")}
        return {**arrays, "scale": float(rng.uniform(1, 2)), "offset": float(rng.uniform(1, 2))}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n=1), replace(problem, n=config.WGS + 1)

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        samples, sums = inputs["samples"].astype(float), inputs["sums"].astype(float)
        return {"sums": sums + inputs["scale"] * samples + inputs["offset"]}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Four roundings of float32, of numbers below 16."""
        return Tolerance(atol=4e-6, rtol=1e-6)
