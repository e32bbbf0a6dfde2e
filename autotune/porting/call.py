"""Reads what a call of ``tune_kernel`` says: values are checked, and texts become expressions of parameters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import UsageError
from ..core.expressions import checked, value_of
from .signature import Parameter, parameters
from .source import Source

AXES = "xyz"
BLOCK_SIZES = tuple(f"block_size_{axis}" for axis in AXES)
DEFAULT_BLOCK = (256, 1, 1)
UNROLL = "loop_unroll_factor"  # parameters whose names begin so: 0 takes the pragma away
MOST_LISTED = 1_000_000  # combinations that are gone through where a function says which are allowed
PLAIN = (str, int, float, bool)

Divisor = Any  # None, a number, a text, a function of the parameters, or a list of such
Config = Mapping[str, Any]


@dataclass(frozen=True)
class Argument:
    """An argument of the kernel, or an array in its constant memory."""

    name: str
    value: Any  # np.ndarray, C-contiguous, or a NumPy number
    parameter: Parameter | None  # None: constant memory

    @property
    def is_array(self) -> bool:
        return isinstance(self.value, np.ndarray) and bool(self.parameter is None or self.parameter.is_array)

    @cached_property
    def digest(self) -> str:
        """Returns a digest of an array's content, dtype and shape."""
        return digest_of(self.value)


def digest_of(array: np.ndarray) -> str:
    """Returns a digest of an array's content, dtype and shape."""
    made = sha256(f"{array.dtype.str} {array.shape}".encode())
    made.update(np.ascontiguousarray(array).data if array.size else b"")
    return made.hexdigest()


@dataclass(frozen=True)
class Call:
    """A kernel with its arguments, its space and its geometry, as ``tune_kernel`` was told them."""

    name: str
    source: Source
    generate: Callable[[dict[str, Any]], str] | None
    problem_size: Any
    arguments: tuple[Argument, ...]
    constants: tuple[Argument, ...]
    space: dict[str, tuple[Any, ...]]
    divisors: tuple[Divisor, Divisor, Divisor]
    block_names: tuple[str, ...]
    restrictions: tuple[str | Callable[[dict[str, Any]], bool], ...]
    shared_bytes: Any
    defines: Mapping[str, Any] | None
    macros: Mapping[str, str]

    @property
    def has_functions(self) -> bool:
        """Whether something that depends on the config is a Python function."""
        size, functions = self.problem_size, [f for f in self.restrictions if callable(f)]
        given = [*self._flat(self.divisors), *(size if isinstance(size, tuple | list) else [size]), self.shared_bytes]
        given += (self.defines or {}).values()
        return bool(functions) or any(map(callable, given)) or self.generate is not None

    def configs(self) -> list[dict[str, Any]]:
        """Returns the configs that all restrictions allow. Raises UsageError where there are too many to go through."""
        if (n := prod(map(len, self.space.values()))) > MOST_LISTED:
            raise UsageError(
                f"{n} combinations are too many to ask a function about each: give restrictions and sizes as text"
            )
        every = (dict(zip(self.space, values, strict=True)) for values in product(*self.space.values()))
        return [config for config in every if self.allows(config)]

    def generated(self, config: dict[str, Any]) -> str:
        """Returns the source of a config, from the function that makes it."""
        assert self.generate is not None
        return Source(self.generate(dict(config))).named(self.name)

    def allows(self, config: dict[str, Any]) -> bool:
        """Returns whether all restrictions hold."""
        return all(
            bool(rule(dict(config)) if callable(rule) else self.value(rule, config, "the restriction"))
            for rule in self.restrictions
        )

    def block(self, config: Config) -> tuple[int, int, int]:
        x, y, z = (int(config.get(n, size)) for n, size in zip(self.block_names, DEFAULT_BLOCK, strict=True))
        return x, y, z

    def grid(self, config: Config) -> tuple[int, int, int]:
        """Returns the blocks along each axis: the problem's size, divided and rounded up."""
        sizes = self.sizes(config)
        found = []
        for size, divisor, name in zip(sizes, self.divisors, self.block_names, strict=True):
            by = float(self._divisor(config.get(name, 1) if divisor is None else divisor, config))
            if by <= 0:
                raise UsageError(f"the grid is divided by {by:g} at {dict(config)}")
            found.append(int(np.ceil(size / by)))
        return found[0], found[1], found[2]

    def sizes(self, config: Config) -> tuple[int, int, int]:
        given = self.problem_size(dict(config)) if callable(self.problem_size) else self.problem_size
        listed = list(given) if isinstance(given, tuple | list) else [given]
        found = [int(self.value(each, config, "the problem size")) for each in listed]
        x, y, z = (*found, 1, 1, 1)[:3]
        return x, y, z

    def shared(self, config: Config) -> int:
        """Returns the bytes of dynamic shared memory."""
        given = self.shared_bytes(dict(config)) if callable(self.shared_bytes) else self.shared_bytes
        return int(self.value(given, config, "the size of smem_args"))

    def value(self, given: Any, config: Config, what: str) -> Any:
        """Returns the value of a number, or of a text at ``config``."""
        if not isinstance(given, str):
            return given
        return value_of(checked(given, self.space, what), config)

    def _divisor(self, given: Divisor, config: Config) -> float:
        if callable(given):
            given = given(dict(config))
        if isinstance(given, tuple | list):
            return prod(self._divisor(each, config) for each in given)
        return float(self.value(given, config, "the divisor of the grid"))

    def _flat(self, given: Any) -> list[Any]:
        if isinstance(given, tuple | list):
            return [each for some in given for each in self._flat(some)]
        return [given]


def read_call(
    kernel_name: str,
    kernel_source: Any,
    problem_size: Any,
    arguments: Sequence[Any],
    tune_params: Mapping[str, Sequence[Any]],
    *,
    divisors: tuple[Divisor, Divisor, Divisor] = (None, None, None),
    restrictions: Any = None,
    smem_args: Mapping[str, Any] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    defines: Mapping[str, Any] | None = None,
    macros: Mapping[str, str] | None = None,
    folders: Sequence[Path] = (),
) -> Call:
    """Returns the call, checked.

    Raises:
        UsageError: for what cannot be tuned; names the argument.
    """
    space = _space(tune_params)
    generate = kernel_source if callable(kernel_source) else None
    first = {name: values[0] for name, values in space.items()}
    source = Source(generate(dict(first)) if generate else kernel_source, folders)
    block = (*(block_size_names or ()), *BLOCK_SIZES[len(block_size_names or ()) :])
    rules = [restrictions] if callable(restrictions) or isinstance(restrictions, str) else list(restrictions or ())
    call = Call(
        name=kernel_name,
        source=source,
        generate=generate,
        problem_size=problem_size,
        arguments=_arguments(kernel_name, parameters(source.text, kernel_name), arguments),
        constants=tuple(Argument(name, _array(name, value), None) for name, value in (cmem_args or {}).items()),
        space=space,
        divisors=divisors,
        block_names=tuple(block),
        restrictions=tuple(rules),
        shared_bytes=(smem_args or {}).get("size", 0),
        defines=defines,
        macros=dict(macros or {}),
    )
    for rule in call.restrictions:
        if not callable(rule):
            checked(rule, space, "the restriction")
    return call


def _space(given: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    space = {}
    for name, values in given.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise UsageError(f"the parameter {name!r} of tune_params is no name in CUDA")
        plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
        if not plain or not all(isinstance(value, PLAIN) for value in plain):
            raise UsageError(f"the values of {name} must be numbers or texts, one at least: {plain!r}")
        space[name] = tuple(dict.fromkeys(plain))
    if not space:
        raise UsageError("tune_params is empty: name a parameter and its values")
    return space


def _arguments(kernel: str, expected: Sequence[Parameter], given: Sequence[Any]) -> tuple[Argument, ...]:
    takes = ", ".join(parameter.name for parameter in expected)
    if len(given) != len(expected):
        raise UsageError(f"{kernel} takes {len(expected)} arguments ({takes}); {len(given)} were given")
    return tuple(_argument(kernel, parameter, value) for parameter, value in zip(expected, given, strict=True))


def _argument(kernel: str, parameter: Parameter, value: Any) -> Argument:
    where = f"{kernel}: the argument {parameter.name}"
    if parameter.is_array:
        return Argument(parameter.name, _array(where, value), parameter)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, np.generic):
        raise UsageError(f"{where} is {type(value).__name__}, must be a NumPy number of {parameter.type}")
    expected = parameter.dtype()
    if expected is not None and (value.dtype.kind != expected.kind or value.dtype.itemsize != expected.itemsize):
        raise UsageError(f"{where} is {value.dtype}, and the kernel takes {parameter.type}: give np.{expected}(..)")
    return Argument(parameter.name, value, parameter)


def _array(where: str, value: Any) -> np.ndarray:
    if hasattr(value, "get") and hasattr(value, "data") and not isinstance(value, np.ndarray):
        value = value.get()  # an array of CuPy's
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        raise UsageError(f"{where} is {type(value).__name__}, must be an array of NumPy")
    return np.ascontiguousarray(value)
