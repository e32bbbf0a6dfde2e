"""Checks one configuration at edge sizes on the GPU against the definition's reference, also in packages.

A sweep checks more: it also watches the memory around the arrays, and runs the timed size. This check finds a
configuration whose results are wrong.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.array import Array
from ..core.config import Config
from ..core.definition import Device, Kernel, Tolerance, problem_name
from ..core.errors import Status, TrialFailure
from ..core.problem import Problem
from . import gpu
from .comparison import compare_arrays, differs
from .prepared import PreparedKernel

POISON = 0xFF  # value of the bytes of outputs before a launch; floats are NaN then


def check_edges(
    kernel: Kernel[Problem], problem: Problem, config: Config, source: str, device: Device, index: int
) -> tuple[str, ...]:
    """Runs the configuration at the edge sizes of ``problem`` on the GPU ``index``. Returns the problems' names.

    Raises:
        TrialFailure: wrong, with the first element that differs.
        UsageError: when the source does not compile, or cannot be launched.
    """
    names: list[str] = []
    for edge in kernel.edge_problems(problem, config):
        inputs = kernel.inputs(edge, np.random.default_rng(len(names)))
        reference = kernel.reference(edge, **inputs)
        specs = kernel.arrays(edge)
        prepared = PreparedKernel(kernel, edge, config, source, device, index)
        arrays = {name: _on_gpu(name, spec, inputs, index) for name, spec in specs.items()}
        numbers = {name: value for name, value in inputs.items() if name not in specs}
        prepared.launch(edge, arrays, numbers, gpu.current_stream())
        gpu.synchronize()
        for name, spec in specs.items():
            if not spec.is_compared:
                continue
            tolerance = _tolerance(kernel, edge, name)
            found = compare_arrays(arrays[name].get(), np.asarray(reference[name]).reshape(spec.shape), tolerance)
            if found.n_bad:
                raise TrialFailure(Status.WRONG, f"{differs(name, found, tolerance)} (at {problem_name(edge)})")
        names.append(problem_name(edge))
    return tuple(dict.fromkeys(names))


def _on_gpu(name: str, spec: Array, inputs: Mapping[str, object], index: int) -> Any:
    """Returns the array for an argument, on the GPU: the input, or poison."""
    given = np.full(spec.n_bytes, POISON, np.uint8).view(spec.dtype).reshape(spec.shape)
    if spec.read:
        given = np.ascontiguousarray(np.asarray(inputs[name], spec.dtype)).reshape(spec.shape)
    return gpu.array(given, index)


def _tolerance(kernel: Kernel[Problem], problem: Problem, name: str) -> Tolerance:
    found = kernel.tolerance(problem)
    return found if isinstance(found, Tolerance) else found[name]
