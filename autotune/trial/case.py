"""The data that a binary is checked with: a problem's random inputs and expected outputs.

Small cases, at the edge sizes, are made where they are needed. The timed problem's may be gigabytes and seconds of
NumPy: a compile process makes it beside the first compiles, and leaves it in files that the device's process maps.
Where NumPy would need minutes, the output of a verified config stands in for the reference.
"""

import pickle
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core.definition import Kernel, problem_name
from . import contract

REFERENCE_FLOPS = 2e11  # above it the NumPy reference takes minutes
N_SMALL = 256  # small cases (a few thousand elements) that a process keeps
N_LARGE = 24  # timed problems in use at a time


@dataclass(frozen=True)
class Case:
    """A problem with its inputs (arrays and numbers) and its outputs by name."""

    key: str
    problem: Any
    inputs: Mapping[str, Any]
    reference: Mapping[str, np.ndarray]
    slack: float = 1.0  # multiple of the tolerance that is allowed: 2 if the reference itself may be off by one


def case_key(kernel: Kernel[Any], problem: Any) -> str:
    """Returns the key that names a case in every process."""
    return f"{kernel.name} {problem_name(problem)}"


def too_large_for_numpy(kernel: Kernel[Any], problem: Any) -> bool:
    """Returns whether a verified config must stand in for the reference."""
    return kernel.work(problem).flops > REFERENCE_FLOPS


def random_inputs(kernel: Kernel[Any], problem: Any) -> dict[str, Any]:
    """Returns the definition's inputs, the same in every process."""
    seed = zlib.crc32(case_key(kernel, problem).encode())
    return contract.inputs_of(kernel, problem, np.random.default_rng(seed))


def numpy_case(kernel: Kernel[Any], problem: Any) -> Case:
    """Returns the case of ``problem``, its reference made by the definition."""
    inputs = random_inputs(kernel, problem)
    return Case(case_key(kernel, problem), problem, inputs, contract.reference_of(kernel, problem, inputs))


@lru_cache(maxsize=N_SMALL)
def small_case(kernel: Kernel[Any], problem: Any) -> Case:
    """Returns ``numpy_case``, cached."""
    return numpy_case(kernel, problem)


_repeated: set[tuple[Kernel[Any], Any]] = set()


def check_reference_repeats(kernel: Kernel[Any], problem: Any, small: Any) -> None:
    """Checks once for each ``problem`` that the reference gives the same again at ``small``, one of its smallest sizes.

    Raises:
        DefinitionError: when it does not.
    """
    if (kernel, problem) not in _repeated:
        case = small_case(kernel, small)
        contract.check_repeats(kernel, small, case.inputs, case.reference)
        _repeated.add((kernel, problem))


# ---------------------------------------------------------------------- the timed problem's, in files
def write_case(kernel: Kernel[Any], problem: Any, folder: Path, with_reference: bool = True) -> None:
    """Make the case of ``problem`` and leave it in ``folder``; without a reference where NumPy would need minutes."""
    with_reference = with_reference and not too_large_for_numpy(kernel, problem)
    folder.mkdir(parents=True, exist_ok=True)
    inputs = random_inputs(kernel, problem)
    reference = contract.reference_of(kernel, problem, inputs) if with_reference else {}
    numbers = {name: value for name, value in inputs.items() if not isinstance(value, np.ndarray)}
    (folder / "numbers.pickle").write_bytes(pickle.dumps(numbers))
    for kind, values in (("input", inputs), ("output", reference)):
        for name, value in values.items():
            if name not in numbers:
                np.save(folder / f"{kind}.{name}.npy", value)


@lru_cache(maxsize=N_LARGE)
def read_case(kernel: Kernel[Any], problem: Any, folder: Path) -> Case:
    """Reads what ``write_case`` wrote; the arrays are mapped, not copied."""
    inputs = pickle.loads((folder / "numbers.pickle").read_bytes())
    return Case(case_key(kernel, problem), problem, {**inputs, **_arrays(folder, "input")}, _arrays(folder, "output"))


def _arrays(folder: Path, kind: str) -> dict[str, np.ndarray]:
    paths = sorted(folder.glob(f"{kind}.*.npy"))
    return {path.name.removeprefix(f"{kind}.").removesuffix(".npy"): np.load(path, mmap_mode="r") for path in paths}
