"""Reads what a call of ``tune_kernel`` says: values are checked, and texts become expressions of parameters."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import UsageError
from ..core.expressions import checked_expression, value_of
from .array_memory import Memory, scalar_as_in_cuda
from .cuda_signature import CudaParameter
from .named_kernel import kernel_name as name_of
from .rules import Rule, rule_of
from .source import KernelSource, KernelText

AXES = "xyz"
BLOCK_SIZES = tuple(f"block_size_{axis}" for axis in AXES)
DEFAULT_BLOCK = (256, 1, 1)
UNROLL = "loop_unroll_factor"  # parameters whose names begin so: 0 takes the pragma away
MOST_LISTED = 1_000_000  # combinations that are gone through where a function says which are allowed
PLAIN = (str, int, float, bool)
NAME = re.compile(r"[A-Za-z_]\w*")

Divisor = Any  # None, a number, a text, a function of the parameters, or a list of such
ConfigValues = Mapping[str, Any]


@dataclass(frozen=True)
class CallArgument:
    """An argument of the kernel, or an array in its constant memory."""

    name: str
    value: Memory | np.generic
    parameter: CudaParameter | None  # None: constant memory

    @property
    def is_array(self) -> bool:
        return isinstance(self.value, Memory)

    @property
    def memory(self) -> Memory:
        """Returns the array as it lies; only arrays have one."""
        assert isinstance(self.value, Memory)
        return self.value

    @property
    def number(self) -> np.generic:
        """Returns the number; only numbers and structures by value have one."""
        assert isinstance(self.value, np.generic)
        return self.value

    @property
    def may_be_written(self) -> bool:
        return self.is_array and self.parameter is not None and not self.parameter.is_const


@dataclass(frozen=True)
class Call:
    """A kernel with its arguments, its space and its geometry, as ``tune_kernel`` was told them.

    ``formulas.Formulas`` says what follows from it for a config. ``given_name``: the kernel's name as it was given,
    ``fir::scale<float, tile>``; ``name``: ``scale`` of it.
    """

    name: str
    given_name: str
    source: KernelSource
    generate: Callable[[dict[str, object]], str] | None
    problem_size: Any
    arguments: tuple[CallArgument, ...]
    constants: tuple[CallArgument, ...]
    space: dict[str, tuple[object, ...]]
    divisors: tuple[Divisor, Divisor, Divisor]
    block_names: tuple[str, ...]
    restrictions: tuple[Rule, ...]
    shared_bytes: Any
    defines: Mapping[str, object] | None
    macros: Mapping[str, str]

    @property
    def arrays(self) -> tuple[CallArgument, ...]:
        """Returns the arrays among the arguments, and those in constant memory."""
        return tuple(each for each in (*self.arguments, *self.constants) if each.is_array)

    @cached_property
    def has_functions(self) -> bool:
        """Whether something that depends on the config is a Python function."""
        size = self.problem_size
        given = [*self._flat(self.divisors), *(size if isinstance(size, tuple | list) else [size]), self.shared_bytes]
        given += (self.defines or {}).values()
        is_function = any(not rule.text for rule in self.restrictions)
        return is_function or any(map(callable, given)) or self.generate is not None

    def configs(self) -> list[dict[str, object]]:
        """Returns the configs that all restrictions allow. Raises UsageError where there are too many to go through."""
        if (n := prod(map(len, self.space.values()))) > MOST_LISTED:
            raise UsageError(
                f"{n} combinations are too many to ask a function about each: give restrictions and sizes as text"
            )
        return list(self.allowed())

    def allowed(self) -> Iterator[dict[str, object]]:
        """Yields the configs that all restrictions allow, in the order of the space."""
        for values in product(*self.space.values()):
            config = dict(zip(self.space, values, strict=True))
            if all(rule.allows(config) for rule in self.restrictions):
                yield config

    @cached_property
    def default(self) -> dict[str, object]:
        """Returns the first config that is allowed. Raises UsageError where none is."""
        for config in self.allowed():
            return config
        raise UsageError(f"{self.name}: the restrictions allow no config")

    def generated(self, config: ConfigValues) -> str:
        """Returns the source of a config, from the function that makes it."""
        assert self.generate is not None
        return self._read(KernelText(self.generate(dict(config))), config).text

    def macros_at(self, config: ConfigValues) -> dict[str, object]:
        """Returns the macros of a config by name, but for the size of the grid."""
        if self.defines is not None:
            said: dict[str, object] = {name: self._macro(value, config) for name, value in self.defines.items()}
        else:
            blocks = zip(self.block_names, DEFAULT_BLOCK, strict=True)
            said = {name: config.get(name, n) for name, n in blocks} | {"kernel_tuner": 1}
            said |= {name: value for name, value in config.items() if not name.startswith(UNROLL)}
        return {**said, **self.macros}

    def reading(self, text: KernelText) -> "Call":
        """Returns the call with its kernel in this text, as it is at the default config."""
        return replace(self, source=self._read(text, self.default))

    def _read(self, text: KernelText, config: ConfigValues) -> KernelSource:
        return text.read(self.given_name, self.macros_at(config))

    def _macro(self, given: object, config: ConfigValues) -> str:
        """Returns a macro of ``defines``, in which names of parameters stand for their values."""
        return with_values(str(given(dict(config)) if callable(given) else given), config)

    def resolved(self, given: object, config: ConfigValues, what: str) -> Any:
        """Returns the value at ``config`` of a number, a text, a function, or the product of a list of such."""
        if callable(given):
            given = given(dict(config))
        if isinstance(given, tuple | list):
            return prod(self.resolved(each, config, what) for each in given)
        return value_of(checked_expression(given, self.space, what), config) if isinstance(given, str) else given

    def _flat(self, given: object) -> list[object]:
        if isinstance(given, tuple | list):
            return [each for some in given for each in self._flat(some)]
        return [given]


def with_values(text: str, config: ConfigValues) -> str:
    """Returns a text with the values of parameters for their names."""
    return re.sub(r"\b\w+\b", lambda found: str(config.get(found[0], found[0])), text)


def read_call(
    kernel_name: str,
    kernel_source: Any,
    problem_size: object,
    arguments: Sequence[object],
    tune_params: Mapping[str, Sequence[object]],
    *,
    divisors: tuple[Divisor, Divisor, Divisor] = (None, None, None),
    restrictions: Any = None,
    smem_args: Mapping[str, object] | None = None,
    cmem_args: Mapping[str, Any] | None = None,
    block_size_names: Sequence[str] | None = None,
    defines: Mapping[str, object] | None = None,
    macros: Mapping[str, str] | None = None,
    folders: Sequence[Path] = (),
) -> Call:
    """Returns the call, checked.

    Raises:
        UsageError: for what cannot be tuned; names the argument.
    """
    name = name_of(kernel_name).last
    space = _space(tune_params)
    generate = kernel_source if callable(kernel_source) else None
    first = {name: values[0] for name, values in space.items()}
    text = KernelText(generate(dict(first)) if generate else kernel_source, folders)
    block = (*(block_size_names or ()), *BLOCK_SIZES[len(block_size_names or ()) :])
    _check_sizes(space, block, problem_size, smem_args)
    if callable(restrictions) or isinstance(restrictions, str) or _is_named(restrictions):
        restrictions = [restrictions]
    call = Call(
        name=name,
        given_name=kernel_name,
        source=KernelSource(text.name, text.text, "", (), frozenset()),
        generate=generate,
        problem_size=problem_size,
        arguments=(),
        constants=tuple(_constant(name, value) for name, value in (cmem_args or {}).items()),
        space=space,
        divisors=divisors,
        block_names=tuple(block),
        restrictions=tuple(rule_of(rule, tuple(space)) for rule in restrictions or ()),
        shared_bytes=(smem_args or {}).get("size", 0),
        defines=defines,
        macros=dict(macros or {}),
    ).reading(text)
    return replace(call, arguments=_arguments(name, call.source.parameters, arguments))


def _is_named(given: object) -> bool:
    """Returns whether that is one function with the names of what it takes, and no list of restrictions."""
    return isinstance(given, tuple) and len(given) == 2 and callable(given[0]) and not callable(given[1])


def _space(given: Mapping[str, Sequence[object]]) -> dict[str, tuple[object, ...]]:
    space = {}
    for name, values in given.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise UsageError(f"the parameter {name!r} of tune_params is not a name in CUDA")
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise UsageError(f"the values of {name} must be a list, not {values!r}")
        plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
        if not plain or not all(isinstance(value, PLAIN) for value in plain):
            raise UsageError(f"the values of {name} must be numbers or texts, one at least: {plain!r}")
        if not all(isfinite(value) for value in plain if isinstance(value, float)):
            raise UsageError(f"the values of {name} must be finite: {plain!r}")
        space[name] = tuple(dict.fromkeys(plain))
    if not space:
        raise UsageError("tune_params is empty: name a parameter and its values")
    return space


def _check_sizes(
    space: Mapping[str, tuple[object, ...]],
    block: Sequence[str],
    problem_size: Any,
    smem_args: Mapping[str, Any] | None,
) -> None:
    """Raises UsageError for a block, a grid or shared memory that no GPU can have."""
    for name in block:
        for value in space.get(name, ()):
            if type(value) is not int or value < 1:
                raise UsageError(
                    f"the values of {name} are threads along an axis of a block: {value!r} must be 1 or more"
                )
    sizes = problem_size if isinstance(problem_size, tuple | list) else [problem_size]
    if not 1 <= len(sizes) <= len(AXES):
        raise UsageError(f"the problem size has {len(sizes)} axes; a grid has 1 to 3")
    for size in sizes:
        if not callable(size) and not isinstance(size, str) and not (_is_whole(size) and size >= 1):
            raise UsageError(f"the problem size {size!r} must be 1 or more, or a text over parameters")
    shared = (smem_args or {}).get("size", 0)
    if not callable(shared) and not isinstance(shared, str) and not (_is_whole(shared) and shared >= 0):
        raise UsageError(f"the size of smem_args, {shared!r}, must be bytes, or a text over parameters")


def _is_whole(value: object) -> bool:
    """Returns whether that is a whole number; scripts divide sizes, so that they are floats."""
    return isinstance(value, int | float | np.integer | np.floating) and value == value // 1


def _arguments(kernel: str, expected: Sequence[CudaParameter], given: Sequence[object]) -> tuple[CallArgument, ...]:
    takes = ", ".join(parameter.name for parameter in expected)
    if len(given) != len(expected):
        raise UsageError(f"{kernel} takes {len(expected)} arguments ({takes}); {len(given)} were given")
    return tuple(_argument(kernel, parameter, value) for parameter, value in zip(expected, given, strict=True))


def _argument(kernel: str, parameter: CudaParameter, value: object) -> CallArgument:
    where = f"{kernel}: the argument {parameter.name}"
    if parameter.is_array:
        memory = Memory.of(where, value)
        if (remedy := parameter.refuses(memory.given.dtype)) is not None:
            raise UsageError(f"{where} is an array of {memory.given.dtype}, and the kernel takes {remedy}")
        return CallArgument(parameter.name, memory, parameter)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, np.generic):
        raise UsageError(f"{where} is {type(value).__name__}, must be a NumPy number of {parameter.type}")
    expected = parameter.dtype()
    if expected is not None and (value.dtype.kind != expected.kind or value.dtype.itemsize != expected.itemsize):
        raise UsageError(f"{where} is {value.dtype}, and the kernel takes {parameter.type}: give np.{expected}(..)")
    return CallArgument(parameter.name, scalar_as_in_cuda(where, value), parameter)


def _constant(name: str, value: object) -> CallArgument:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UsageError(f"{name!r} of cmem_args is not a name in CUDA")
    return CallArgument(name, Memory.of(f"{name} of cmem_args", value), None)
