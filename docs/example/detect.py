"""Square-law detection, integrated over time: power[c] = sum over t of |voltage[t, c]|**2.

Half a flop a byte, so a good variant runs at memory bandwidth. Template: detect.cu.j2, beside this file.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune import Config, Kernel, Launch, Space, Tolerance, Work, array_in, array_out, baked, ceil_div, runtime


@dataclass(frozen=True)
class Problem:
    """One integration of a block of channels."""

    n_time: int = baked(1024, "samples integrated per channel")
    n_chan: int = runtime(65536, "channels; any positive value")


SPACE = Space(
    BLOCK_C=(32, 64, 128),  # blockDim.x, channels per block; >= 32 keeps a warp in one row
    BLOCK_T=(1, 2, 4, 8, 16),  # blockDim.y, time lanes; powers of two, because the fold halves them
    UNROLL=(1, 4),  # independent loads in flight per thread
)


@SPACE.constraint("a block has 64 to max_threads_per_block threads")
def block_fits(problem: Problem, config: Config, device: Any) -> bool:
    return 64 <= config.BLOCK_C * config.BLOCK_T <= device.max_threads_per_block


class Detect(Kernel[Problem]):
    """voltage -> power."""

    space = SPACE
    default = {"BLOCK_C": 64, "BLOCK_T": 4, "UNROLL": 1}
    arguments = ("power", "voltage", "n_chan")  # order of the __global__ signature
    tuned = (Problem(),)
    host_sizes = {"n_chan": 200}

    def arrays(self, problem: Problem) -> dict[str, Any]:
        return {
            "power": array_out(np.float32, problem.n_chan),
            "voltage": array_in(np.complex64, problem.n_time, problem.n_chan),
        }

    def sizes(self, problem: Problem, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
        return {"n_chan": shapes["voltage"][1]}

    def launch(self, problem: Problem, config: Config) -> Launch:
        """One thread per channel and time lane: the mapping drawn in the template."""
        return Launch((ceil_div(problem.n_chan, config.BLOCK_C), 1, 1), (config.BLOCK_C, config.BLOCK_T, 1))

    def work(self, problem: Problem) -> Work:
        """Two multiplies and two adds per sample; each byte moves once."""
        n_samples = problem.n_time * problem.n_chan
        return Work(flops=4 * n_samples, bytes=8 * n_samples + 4 * problem.n_chan)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        """voltage: unit-variance noise."""
        parts = rng.normal(size=(problem.n_time, 2 * problem.n_chan)).astype(np.float32)
        return {"voltage": parts.view(np.complex64)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        return replace(problem, n_chan=1), replace(problem, n_chan=config.BLOCK_C + 1)

    def reference(self, problem: Problem, *, voltage: np.ndarray) -> dict[str, np.ndarray]:
        return {"power": np.sum(np.abs(voltage.astype(np.complex128)) ** 2, axis=0)}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Rounding of an n_time-term float32 sum; far below 1 / n_time, the share of one sample."""
        return Tolerance(rtol=float(4 * np.sqrt(problem.n_time) * np.finfo(np.float32).eps))
