"""Binds a call to a kernel's parameters: the arrays and numbers of a problem, and their order.

All callers that launch kernels (trials, ``autotune.run``, packages, engines) use it; each one manages memory and
launches itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..core.definition import AnyKernel, Array, Launch, as_int32, fault, runtime_fields
from ..core.errors import TrialFailure, UsageError
from ..core.problem import Problem
from .arrays import whole_lengths
from .cubin import as_passed, check_structures
from .signature import ArgumentTypeError


class _Inputs(Mapping[str, Any]):
    """The inputs of a call, for a definition's ``scalars``; reading a missing one raises an error for the caller.

    ``read``: the names that ``scalars`` has read.
    """

    def __init__(self, kernel: str, values: Mapping[str, object]) -> None:
        self._kernel, self._values = kernel, values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        if name not in self._values:
            raise ArgumentTypeError(f"{self._kernel}: {name} is missing; it is a number")
        return self._values[name]

    def get(self, name: str, default: object = None) -> Any:
        self.read.add(name)
        return self._values.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Binding:
    """The parameters of one problem's ``__global__`` function.

    ``specs``: every array by name. ``names``: the arguments in the kernel's order, arrays and scalars.
    """

    kernel: AnyKernel
    problem: Problem
    specs: Mapping[str, Array]
    names: tuple[str, ...]

    @staticmethod
    def of(kernel: AnyKernel, problem: Problem) -> "Binding":
        """Returns the binding of ``problem``, from its definition."""
        return Binding(kernel, problem, kernel.arrays(problem), kernel.arguments_for(problem))

    @cached_property
    def constants(self) -> Mapping[str, Array]:
        """Returns the arrays in constant memory; they are not arguments."""
        return {name: spec for name, spec in self.specs.items() if spec.constant}

    @cached_property
    def aligns(self) -> Mapping[str, int]:
        """Returns the alignment in bytes that each array outside constant memory needs."""
        return {name: spec.align for name, spec in self.specs.items() if not spec.constant}

    @cached_property
    def low_bits(self) -> int:
        """Returns the bits that no array's address has, unless it needs a lesser alignment than another one."""
        return max(self.aligns.values(), default=1) - 1

    @cached_property
    def passed(self) -> tuple[str, ...]:
        """Returns the names of the arguments that are not arrays."""
        return tuple(name for name in self.names if name not in self.specs)

    def scalars(self, inputs: Mapping[str, object], lengths: Mapping[str, int] | None = None) -> dict[str, np.generic]:
        """Returns the arguments that are not arrays, in the signature's types.

        The definition's ``scalars`` computes them from ``inputs``, in which a missing number has its default. The other
        runtime fields of the problem are passed as int32.

        Args:
            inputs: the numbers among the kernel's inputs by name; it may also contain arrays.
            lengths: scalar -> length of a whole array, as from ``lengths()``.

        Raises:
            ArgumentTypeError: when a number is missing.
            DefinitionError: when an argument is neither an array nor a scalar.
        """
        scalars = dict(self.kernel.scalars(self.problem, self._with_defaults(inputs)))
        for name in self.passed:
            if name in scalars:
                continue
            if name not in runtime_fields(type(self.problem)):
                what = f"has the argument {name}, which is neither in arrays() nor in scalars(), nor a runtime field of"
                raise fault(self.kernel, "", f"{what} the problem; call it as one of these, or add it to them")
            scalars[name] = as_int32(name, getattr(self.problem, name))
        for name, length in (lengths or {}).items():
            scalars[name] = type(scalars[name])(length)
        return scalars

    def unread(self, inputs: Mapping[str, object]) -> list[str]:
        """Returns the names in ``inputs`` of numbers that the definition's ``scalars`` does not read.

        Raises:
            ArgumentTypeError: when a number is missing.
        """
        given = self._with_defaults(inputs)
        self.kernel.scalars(self.problem, given)
        return [name for name in inputs if name not in self.specs and name not in given.read]

    def _with_defaults(self, inputs: Mapping[str, object]) -> _Inputs:
        return _Inputs(self.kernel.name, {**self.kernel.scalar_defaults, **inputs})

    def lengths(self, arrays: Mapping[str, object]) -> dict[str, int]:
        """Returns scalar -> length of the whole array, for arrays that may be parts of longer ones.

        Raises:
            ArgumentValueError: unless dtype, shape and strides of each array fit its specification.
        """
        return whole_lengths(self.kernel.name, self.specs, arrays)

    def ordered(self, arrays: Mapping[str, object], scalars: Mapping[str, object]) -> list[Any]:
        """Returns the arguments in the kernel's order; ``arrays``: those outside constant memory."""
        return [arrays[name] if name in self.specs else scalars[name] for name in self.names]

    def as_passed(self, scalars: Mapping[str, object], launch: Launch, cubin: bytes) -> dict[str, object]:
        """Returns scalars as CuPy passes them to the functions of ``cubin``.

        Raises:
            UsageError: when a structure has another size in the source.
        """
        try:
            names = (*self.names, *launch.workspace)
            for step in launch.steps:
                given = {name: scalars.get(name) for name in step.own(names)}
                check_structures(step.function or self.kernel.name, cubin, given)
        except TrialFailure as failure:
            raise UsageError(failure.message) from failure
        return {name: as_passed(value) for name, value in scalars.items()}
