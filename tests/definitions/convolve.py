"""An input in constant memory: convolved[y, x] = sum over i, j of image[y + i, x + j] d_filter[i, j].

Template: convolve.cu.j2.
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
    array_constant,
    array_in,
    array_out,
    baked,
    ceil_div,
    runtime,
)


@dataclass(frozen=True)
class Problem:
    """A filter of n_side x n_side, and an image that is n_side - 1 larger than what comes out."""

    n_side: int = baked(5)
    n_rows: int = runtime(20)
    n_columns: int = runtime(40)


class Convolve(Kernel[Problem]):
    """image, d_filter -> convolved."""

    space = Space(WIDTH=(32, 64))  # threads of a block, along a row
    default = {"WIDTH": 32}
    arguments = ("convolved", "image", "n_columns")
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        margin = problem.n_side - 1
        return {
            "image": array_in(np.float32, problem.n_rows + margin, problem.n_columns + margin),
            "d_filter": array_constant(np.float32, problem.n_side, problem.n_side),
            "convolved": array_out(np.float32, problem.n_rows, problem.n_columns),
        }

    def sizes(self, problem: Problem, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
        n_rows, n_columns = (extent - problem.n_side + 1 for extent in shapes["image"])
        return {"n_rows": n_rows, "n_columns": n_columns}

    def launch(self, problem: Problem, config: Config) -> Launch:
        return Launch((ceil_div(problem.n_columns, config.WIDTH), problem.n_rows, 1), (config.WIDTH, 1, 1))

    def work(self, problem: Problem) -> Work:
        n = problem.n_rows * problem.n_columns
        return Work(flops=2 * problem.n_side**2 * n, bytes=8 * n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        read = {name: spec for name, spec in self.arrays(problem).items() if spec.read}
        return {name: rng.normal(size=spec.shape).astype(spec.dtype) for name, spec in read.items()}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n_rows=1, n_columns=1), replace(problem, n_rows=2, n_columns=config.WIDTH + 1)

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        image, weights = inputs["image"].astype(float), inputs["d_filter"].astype(float)
        windows = np.lib.stride_tricks.sliding_window_view(image, weights.shape)
        return {"convolved": np.einsum("yxij,ij->yx", windows, weights)}

    def tolerance(self, problem: Problem) -> Tolerance:
        """n_side**2 products of numbers near 1, each rounded to float32."""
        return Tolerance(atol=4 * problem.n_side**2 * float(np.finfo(np.float32).eps))
