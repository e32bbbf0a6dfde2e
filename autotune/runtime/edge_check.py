"""Checks one configuration at edge sizes on the GPU against the definition's reference, also in packages.

A sweep checks more: it also watches the memory around the arrays, and runs the timed size. This check finds a
configuration whose results are wrong.
"""

import numpy as np

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
        inputs, specs = kernel.inputs(edge, np.random.default_rng(len(names))), kernel.arrays(edge)
        reference, tolerances = kernel.reference(edge, **inputs), kernel.tolerance(edge)
        arrays = {}
        for name, spec in specs.items():
            given = np.full(spec.n_bytes, POISON, np.uint8).view(spec.dtype)
            if spec.read:
                given = np.ascontiguousarray(np.asarray(inputs[name], spec.dtype))
            arrays[name] = gpu.array(given.reshape(spec.shape), index)
        numbers = {name: value for name, value in inputs.items() if name not in specs}
        prepared = PreparedKernel(kernel, edge, config, source, device, index)
        prepared.launch(edge, arrays, numbers, gpu.current_stream())
        gpu.synchronize()
        for name, spec in specs.items():
            if spec.is_compared:
                tolerance = tolerances if isinstance(tolerances, Tolerance) else tolerances[name]
                found = compare_arrays(arrays[name].get(), np.asarray(reference[name]).reshape(spec.shape), tolerance)
                if found.n_bad:
                    raise TrialFailure(Status.WRONG, f"{differs(name, found, tolerance)} (at {problem_name(edge)})")
        names.append(problem_name(edge))
    return tuple(dict.fromkeys(names))
