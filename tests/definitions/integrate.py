"""Every kind of argument in one kernel: an input, one that is updated, two outputs, and scalars with a default.

sums += gain * samples + offset; smoothed = sums afterwards; positive = (samples > 0). Template: integrate.cu.j2.
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
    array_inout,
    array_out,
    baked,
    ceil_div,
    runtime,
)


@dataclass(frozen=True)
class Problem:
    """Two axes, one of them free."""

    n_rows: int = baked(3)
    n_samples: int = runtime(1000)


class Integrate(Kernel[Problem]):
    """samples, sums, gain, offset -> smoothed, positive."""

    space = Space(WGS=(64, 128), PAD=(0, 100_000))  # PAD: bytes of shared memory beyond what is needed
    default = {"WGS": 64, "PAD": 0}
    arguments = ("smoothed", "gain", "positive", "samples", "offset", "sums", "n_samples")
    tuned = (Problem(),)
    scalar_defaults = {"offset": 0.0}

    def arrays(self, problem: Problem) -> dict[str, Array]:
        shape = (problem.n_rows, problem.n_samples)
        return {
            "samples": array_in(np.float32, *shape),
            "sums": array_inout(np.float32, *shape),
            "smoothed": array_out(np.float32, *shape),
            "positive": array_out(np.uint8, *shape, align=1),
        }

    def sizes(self, problem: Problem, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
        return {"n_samples": shapes["samples"][1]}

    def launch(self, problem: Problem, config: Config) -> Launch:
        grid = (ceil_div(problem.n_samples, config.WGS), problem.n_rows, 1)
        return Launch(grid, (config.WGS, 1, 1), 4 * config.WGS + config.PAD)

    def scalars(self, problem: Problem, inputs: Any) -> dict[str, np.generic]:
        return {
            "gain": np.float32(inputs["gain"]),
            "offset": np.float64(inputs["offset"]),
            "n_samples": np.int32(problem.n_samples),
        }

    def work(self, problem: Problem) -> Work:
        n = problem.n_rows * problem.n_samples
        return Work(flops=2 * n, bytes=17 * n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        shape = (problem.n_rows, problem.n_samples)
        return {
            "samples": rng.normal(size=shape).astype(np.float32),
            "sums": rng.normal(size=shape).astype(np.float32),
            "gain": float(rng.uniform(1, 2)),
            "offset": float(rng.uniform(1, 2)),
        }

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n_samples=1), replace(problem, n_samples=config.WGS + 1)

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        sums = inputs["sums"].astype(float) + inputs["gain"] * inputs["samples"].astype(float) + inputs["offset"]
        return {"sums": sums, "smoothed": sums, "positive": (inputs["samples"] > 0).astype(np.uint8)}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Three roundings of float32."""
        return Tolerance(atol=1e-6, rtol=1e-6)
