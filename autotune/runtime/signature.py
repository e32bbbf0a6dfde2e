"""Describes how a kernel is called from Python, and checks the names in a call."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from ..core.config import Config
from ..core.definition import Kernel, P
from ..core.errors import UsageError
from ..core.problem import Problem

MISSING: Any = object()
MOST_INPUT_BYTES = 1 << 32  # size limit of inputs that are generated only to learn their order
NUMBERS = frozenset((int, float, bool, complex, *(np.dtype(code).type for code in "?bhilqBHILQefdFD")))


class ArgumentValueError(UsageError, ValueError):
    """An argument of the right kind that does not fit: shape, device, alignment, contiguity."""


class ArgumentTypeError(UsageError, TypeError):
    """An argument that is missing, unknown, of the wrong dtype, or not an array on a GPU."""


@dataclass(frozen=True)
class Signature:
    """The names of inputs and outputs for one set of baked fields."""

    kernel: str
    inputs: tuple[str, ...]  # names in the order of a call
    arrays: tuple[str, ...]  # inputs that are array arguments
    constants: tuple[str, ...]  # inputs that are arrays in constant memory
    scalars: tuple[tuple[str, Any], ...]  # the other inputs, with their defaults or MISSING
    outputs: tuple[str, ...]  # arrays that the kernel writes and does not read: allocated, or given in out=
    returned: tuple[str, ...]  # the outputs; if there are none, the arrays that are updated in place

    @staticmethod
    def of(kernel: Kernel[Problem], problem: Problem, inputs: tuple[str, ...]) -> "Signature":
        """Returns the signature for problems of these baked fields; ``inputs``: names in the order of a call."""
        specs = kernel.arrays(problem)
        outputs = tuple(name for name, spec in specs.items() if spec.written and not spec.read)
        return Signature(
            kernel=kernel.name,
            inputs=inputs,
            arrays=tuple(name for name in inputs if name in specs and not specs[name].constant),
            constants=tuple(name for name in inputs if name in specs and specs[name].constant),
            scalars=tuple((name, kernel.scalar_defaults.get(name, MISSING)) for name in inputs if name not in specs),
            outputs=outputs,
            returned=outputs or tuple(name for name, spec in specs.items() if spec.written),
        )

    def given_outputs(self, out: object) -> Sequence[Any]:
        """Returns the arrays in ``out=``, in order.

        Raises:
            ArgumentTypeError: unless there is one array for each output.
        """
        if not self.outputs:
            raise ArgumentTypeError(f"{self.kernel} takes no out=: it updates {', '.join(self.returned)} in place")
        wanted = ", ".join(self.outputs)
        if isinstance(out, Mapping):
            if set(out) != set(self.outputs):
                raise ArgumentTypeError(f"{self.kernel}: out has {', '.join(map(str, out))}; must have {wanted}")
            return [out[name] for name in self.outputs]
        found = list(out) if isinstance(out, tuple | list) else [out]
        if len(found) != len(self.outputs):
            raise ArgumentTypeError(f"{self.kernel}: out has {len(found)} arrays; must have {wanted}")
        return found

    def misnamed(self, n_positional: int, named: Mapping[str, object]) -> ArgumentTypeError:
        """Returns the error for too many arguments, or for names that are unknown or given twice."""
        takes = f"{self.kernel} takes {', '.join(self.inputs)}"
        if n_positional > len(self.inputs):
            return ArgumentTypeError(f"{takes}; {n_positional} arguments were given by position")
        if unknown := sorted(set(named) - set(self.inputs)):
            return ArgumentTypeError(f"{takes}, not {', '.join(unknown)}")
        twice = sorted(set(self.inputs[:n_positional]) & set(named))
        return ArgumentTypeError(f"{takes}; {', '.join(twice)} was given twice")

    def checked_scalars(self, values: Sequence[object]) -> dict[str, object]:
        """Returns the scalars by name.

        Raises:
            ArgumentTypeError: when one is missing or is not a number.
        """
        found = {name: value for (name, _), value in zip(self.scalars, values, strict=True)}
        for name, value in found.items():
            if value is MISSING:
                raise ArgumentTypeError(f"{self.kernel}: {name} is missing; it is a number")
            if not isinstance(value, Number | np.generic):
                raise ArgumentTypeError(f"{self.kernel}: {name} is of type {type(value).__name__}, not a number")
        return found


def call_order(kernel: Kernel[P], problem: P, config: Config) -> tuple[str, ...]:
    """Returns the names of the inputs in the order in which the definition generates them, at its smallest problem.

    Raises:
        UsageError: when the definition generates no input for an array that the kernel reads.
    """
    sizes = [problem, *kernel.edge_problems(problem, config)]
    with suppress(UsageError):  # these baked fields may not allow the sizes
        sizes.append(kernel.problem(kernel.host_sizes, base=problem))
    small = min(sizes, key=lambda p: _n_bytes(kernel, p))
    if _n_bytes(kernel, small) > MOST_INPUT_BYTES:
        raise UsageError(
            f"{kernel.name}: its smallest problem has {_n_bytes(kernel, small)} bytes; give it edge_problems() ones"
        )
    order = tuple(kernel.inputs(small, np.random.default_rng(0)))
    missing = [name for name, spec in kernel.arrays(small).items() if spec.read and name not in order]
    if missing:
        raise UsageError(f"{kernel.source_path}: inputs() makes no {', '.join(missing)}, which arrays() says are read")
    return order


def _n_bytes(kernel: Kernel[P], problem: P) -> int:
    return sum(array.n_bytes for array in kernel.arrays(problem).values())
