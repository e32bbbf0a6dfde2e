"""out = 2 in + 1, with a fault by parameter: every way in which a trial can go wrong, for real."""

import ctypes
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autotune import (
    Array,
    Config,
    Device,
    Kernel,
    Launch,
    Space,
    Tolerance,
    Work,
    array_in,
    array_out,
    baked,
    ceil_div,
    runtime,
    when,
)  # fmt: skip

FAULTS = (
    "none",
    "wrong_element",
    "unwritten_element",
    "past_the_end",
    "input_written",
    "no_compile",
    "compiles_for_ever",
    "too_much_static_shared",
    "too_much_dynamic_shared",
    "far_write",
    "early_write",
    "far_read",
    "near_write_when_timed",
    "far_write_when_timed",
    "early_write_when_timed",
    "far_read_when_timed",
    "illegal_address",
    "segfault",
    "trap",
    "exits",
    "endless_loop",
    "template_error",
    "gpu_of_the_future",
)


@dataclass(frozen=True)
class Problem:
    """A row of numbers."""

    factor: int = baked(2, "of each number")
    n: int = runtime(100_003, "numbers")


SPACE = Space(
    FAULT=FAULTS,
    WGS=when((64, 128, 256, 1024), FAULT="none"),  # threads of a block
)


@SPACE.constraint("the block is not the forbidden size")
def not_forbidden(problem: Problem, config: Config, device: Device) -> bool:
    return config.get("WGS") != 1024


class Faulty(Kernel[Problem]):
    """x -> y."""

    space = SPACE
    default = {"FAULT": "none", "WGS": 128}
    arguments = ("y", "x", "n")
    tuned = (Problem(),)
    host_sizes = {"n": 1003}

    def arrays(self, problem: Problem) -> dict[str, Array]:
        return {"y": array_out(np.float32, problem.n), "x": array_in(np.float32, problem.n)}

    def sizes(self, problem: Problem, shapes: dict[str, tuple[int, ...]]) -> dict[str, int]:
        return {"n": shapes["x"][0]}

    def launch(self, problem: Problem, config: Config) -> Launch:
        wgs = config.get("WGS", 128)
        shared = 300_000 if config.FAULT == "too_much_dynamic_shared" else 0
        return Launch((ceil_div(problem.n, wgs), 1, 1), (wgs, 1, 1), shared)

    def work(self, problem: Problem) -> Work:
        return Work(flops=2 * problem.n, bytes=8 * problem.n)

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"x": rng.uniform(1, 2, problem.n).astype(np.float32)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        if config.FAULT == "segfault":  # in the worker process, whatever the device: this is asked for there only
            ctypes.string_at(0)
        return replace(problem, n=7), replace(problem, n=1025)

    def reference(self, problem: Problem, *, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"y": problem.factor * x.astype(np.float64) + 1}

    def tolerance(self, problem: Problem) -> Tolerance:
        return Tolerance(rtol=4 * float(np.finfo(np.float32).eps))

    def unsupported(self, config: Config, device: Device) -> str | None:
        return "needs sm_999" if config.FAULT == "gpu_of_the_future" else None
