"""A kernel whose definition prints wherever it can, and whose values are words that read as something else."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune import Config, Kernel, Launch, Space, Tolerance, Work, array_in, array_out, baked, ceil_div, runtime


def talk(where: str) -> None:
    print(f"talking in {where}")
    os.write(1, f"talking in {where}, below Python\n".encode())


talk("import")


@dataclass(frozen=True)
class Problem:
    """How many, in which words."""

    word: str = baked("1e5")
    n: int = runtime(1000)


SPACE = Space(WORD=("nan", "inf", "1e5", "true", "007"), WGS=(64, 128), FLAG=(True, False))


@SPACE.constraint("words are words")
def words_are_words(problem: Problem, config: Config, device: Any) -> bool:
    talk("a constraint")
    return isinstance(config.WORD, str) and isinstance(problem.word, str)


class Talkative(Kernel[Problem]):
    """numbers -> twice."""

    space = SPACE
    default = {"WORD": "nan", "WGS": 64, "FLAG": True}
    arguments = ("twice", "numbers", "n")
    tuned = (Problem(),)

    def arrays(self, problem: Problem) -> dict[str, Any]:
        talk("arrays")
        return {"twice": array_out(np.float32, problem.n), "numbers": array_in(np.float32, problem.n)}

    def launch(self, problem: Problem, config: Config) -> Launch:
        talk("launch")
        return Launch((ceil_div(problem.n, config.WGS), 1, 1), (config.WGS, 1, 1))

    def work(self, problem: Problem) -> Work:
        return Work(flops=problem.n, bytes=8 * problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"numbers": rng.normal(size=problem.n).astype(np.float32)}

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        talk("reference")
        return {"twice": 2.0 * inputs["numbers"].astype(np.float64)}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Exact: a power of two."""
        return Tolerance(atol=0.0, rtol=0.0)
