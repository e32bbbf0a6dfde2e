"""One step of heat flow in a plate, with a template beside it: the definition that ../diffuse_cu became.

after[y, x] = before + rate * (sum of four neighbours - 4 before) + step_s * source; no heat passes the edges.
"""

from dataclasses import dataclass

import numpy as np

from autotune import Kernel, Launch, Space, Tolerance, Work, array_in, array_out, baked, ceil_div, runtime


@dataclass(frozen=True)
class Problem:
    """A plate, and what lies beyond its edges."""

    edges: str = baked("closed", "closed: no heat passes; cold: beyond the edges it is 0 K")
    width: int = runtime(4000, "points along a row; an argument of the kernel")
    height: int = runtime(3000, "rows; an argument of the kernel")


SPACE = Space(
    BLOCK_X=(16, 32, 64),  # blockDim.x, points of a row
    BLOCK_Y=(4, 8),  # blockDim.y, rows that a block has at a time
    ROWS=(1, 2, 4),  # rows of a thread, BLOCK_Y apart
)


@SPACE.constraint("a block has 128 threads or more, as many as the device allows")
def block_fits(problem, config, device):
    return 128 <= config.BLOCK_X * config.BLOCK_Y <= device.max_threads_per_block


class Diffuse(Kernel[Problem]):
    """Its template is diffuse.cu.j2, in which the function has this name, in lower case."""

    space = SPACE
    tuned = (Problem(), Problem(edges="cold"))  # one source for each; sizes share it
    host_sizes = {"width": 300, "height": 200}

    def arrays(self, problem):
        shape = problem.height, problem.width
        return {
            "after": array_out(np.float32, *shape),
            "before": array_in(np.float32, *shape),
            "source": array_in(np.float32, *shape),
        }

    def scalars(self, problem, inputs):
        """The float arguments come with the inputs of each call; width and height are added from the problem."""
        return {"rate": np.float32(inputs["rate"]), "step_s": np.float32(inputs["step_s"])}

    def inputs(self, problem, rng):
        shape = problem.height, problem.width
        return {
            "before": rng.uniform(280, 300, shape).astype(np.float32),  # kelvins
            "source": rng.uniform(0, 5, shape).astype(np.float32),  # kelvins a second
            "rate": np.float32(0.2),
            "step_s": np.float32(0.01),
        }

    def reference(self, problem, before, source, rate, step_s):
        """Returns the plate after one step, float64 [height, width], for a problem of any size."""
        padded = np.pad(before.astype(np.float64), 1, "edge" if problem.edges == "closed" else "constant")
        neighbours = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
        return {"after": before + float(rate) * (neighbours - 4.0 * before) + float(step_s) * source}

    def tolerance(self, problem):
        """Eight roundings of numbers below 4 * 300, half a unit of 2^-13 each: a lost point would be off by kelvins."""
        return Tolerance(atol=8 * 2**-14)

    def work(self, problem):
        points = problem.width * problem.height
        return Work(
            flops=8 * points, bytes=12 * points
        )  # a point of before and of source is read, one of after written

    def launch(self, problem, config):
        rows = config.BLOCK_Y * config.ROWS
        grid = ceil_div(problem.width, config.BLOCK_X), ceil_div(problem.height, rows), 1
        return Launch(grid, (config.BLOCK_X, config.BLOCK_Y, 1))
