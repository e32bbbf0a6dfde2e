"""Digests everything that a trial's outcome depends on, except its machine code: the meaning, not the text."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np

from ..core.config import Config
from ..core.definition import Kernel, Launch, P, problem_name
from ..core.digest import digest
from ..records.measurement import Protocol
from ..runtime.binding import Binding
from .case import small_case
from .contract import tolerance_of
from .measure import MEASURING

STEPS = 1e4  # values are rounded to rms / STEPS, since the last bits vary between machines


def conditions_of(kernel: Kernel[P], problem: P, config: Config, protocol: Protocol) -> str:
    """Returns a digest of the launch geometry, the definition's mathematics and the measuring protocol.

    Raises:
        TrialFailure: definition_failed.
    """
    edges = kernel.edge_problems(problem, config)
    geometry = [(problem_name(p), *_geometry(kernel.launch(p, config))) for p in (problem, *edges)]
    small = min(edges, key=lambda edge: sum(array.n_bytes for array in kernel.arrays(edge).values()))
    return digest(geometry, mathematics(kernel, problem, small), protocol, f"measuring {MEASURING}")


@lru_cache(maxsize=1024)
def mathematics(kernel: Kernel[P], problem: P, small: P) -> str:
    """Returns a digest of arguments, work, and inputs with reference and tolerance at the edge problem ``small``."""
    case = small_case(kernel, small)
    binding = Binding.of(kernel, small)
    arrays = binding.specs
    return digest(
        sorted(arrays.items()),
        kernel.arguments_for(problem),
        _plain(astuple(kernel.work(problem))),
        [_plain(astuple(tolerance_of(kernel, problem, name))) for name, array in arrays.items() if array.is_compared],
        sorted((name, value.dtype, value.tolist()) for name, value in binding.scalars(case.inputs).items()),
        _values(case.inputs),
        _values(case.reference),
        *filter(None, [kernel.judged_by(problem)]),
    )


def _geometry(launch: Launch) -> Iterator[object]:
    """Yields the demands of each launch, and those that several launches share."""
    for step in launch.steps:
        yield replace(step, most_blocks=0)
        if step.positions is not None:
            yield step.function, step.positions, sorted(step.workspace.items())


def _plain(values: tuple[Any, ...]) -> list[Any]:
    """Converts numbers so that they print alike under every version of NumPy."""
    return [value if isinstance(value, str) else float(value) for value in values]


def _values(given: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name, _rounded(np.asarray(value))) for name, value in sorted(given.items())]


def _rounded(array: np.ndarray) -> str:
    if isinstance(array, np.memmap) or isinstance(array.base, np.memmap):  # a file's array is the same everywhere
        return digest(array.shape, array.dtype, sha256(np.ascontiguousarray(array).data).hexdigest())
    values, scale = np.ascontiguousarray(array).reshape(-1), ""
    if array.dtype.kind in "fc":
        parts = values.astype(np.complex128).view(np.float64)
        rms = float(np.sqrt(np.mean(parts**2))) if parts.size else 0.0
        values, scale = np.rint(parts / (rms or 1.0) * STEPS).astype(np.int64), f"{rms:.6g}"
    return digest(array.shape, array.dtype, scale, values.tobytes().hex())
