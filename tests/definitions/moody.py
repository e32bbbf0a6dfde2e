"""A right kernel, y = 2 x, whose definition or template raises for the config that MOOD names."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune import Config, Kernel, Launch, Space, Tolerance, Work, array_in, array_out, baked, ceil_div, runtime


@dataclass(frozen=True)
class Problem:
    """So many elements."""

    factor: int = baked(2)
    n: int = runtime(1000)


SPACE = Space(
    MOOD=("none", "constraint", "launch", "launch_type", "edge_problems", "constants", "unsupported", "template"),
    BLOCK=(64, 128),
)


@SPACE.constraint("the mood allows it")
def mood_allows(problem: Problem, config: Config, device: Any) -> bool:
    return config.MOOD != "constraint" or config.BLOCK // 0 > 0


class Moody(Kernel[Problem]):
    """y = factor x."""

    space = SPACE
    default = {"MOOD": "none", "BLOCK": 64}
    arguments = ("y", "x", "n")
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Any]:
        return {"y": array_out(np.float32, problem.n), "x": array_in(np.float32, problem.n)}

    def launch(self, problem: Problem, config: Config) -> Any:
        if config.MOOD == "launch_type":
            return None
        block = config.BLOCK // (config.MOOD != "launch")
        return Launch((ceil_div(problem.n, block), 1, 1), (block, 1, 1))

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        if config.MOOD == "edge_problems":
            raise KeyError("n")
        return (Problem(problem.factor, 1), Problem(problem.factor, 65))

    def constants(self, problem: Problem, config: Config) -> dict[str, Any]:
        return {"DIVISOR": int("no number") if config.MOOD == "constants" else int(config.MOOD != "template")}

    def unsupported(self, config: Config, device: Any) -> str | None:
        if config.MOOD == "unsupported":
            raise AttributeError("device.no_such_limit")
        return None

    def work(self, problem: Problem) -> Work:
        return Work(flops=problem.n, bytes=8 * problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"x": rng.normal(size=problem.n).astype(np.float32)}

    def reference(self, problem: Problem, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"y": problem.factor * x.astype(np.float64)}

    def tolerance(self, problem: Problem) -> Tolerance:
        return Tolerance(rtol=1e-6)
