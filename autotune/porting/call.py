"""Reads the arguments of ``tune_kernel``: values are checked, and texts become expressions of parameters."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from ..core.config import Config, config_value_text
from ..core.device import Device
from ..core.enumeration import Enumeration
from ..core.errors import UsageError
from ..core.expressions import checked_expression, value_of
from ..core.schema import Unsound, as_scalar
from ..core.space import Space
from .array_memory import Memory, scalar_as_in_cuda
from .cuda_signature import CudaParameter
from .host_launch import HostLaunch, host_launch
from .named_kernel import kernel_name as name_of
from .rules import Rule, rules_of
from .source import GRID_SIZES, KernelSource, KernelText

AXES = "xyz"
BLOCK_SIZES = tuple(f"block_size_{axis}" for axis in AXES)
DEFAULT_BLOCK = (256, 1, 1)
UNROLL = "loop_unroll_factor"  # prefix of parameters for #pragma unroll; the value 0 removes the pragma
FITS = "a block has no more threads than the device allows, in all and along each axis"
PLAIN = (str, int, float, bool)
NAME = re.compile(r"[A-Za-z_]\w*")
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)

Divisor = Any  # None, a number, a text, a function of the parameters, or a list of these
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
        """Returns the array's memory; the argument must be an array."""
        assert isinstance(self.value, Memory)
        return self.value

    @property
    def number(self) -> np.generic:
        """Returns the value; the argument must be a number, or a structure by value."""
        assert isinstance(self.value, np.generic)
        return self.value

    @property
    def may_be_written(self) -> bool:
        return self.is_array and self.parameter is not None and not self.parameter.is_const


@dataclass(frozen=True)
class Call:
    """A kernel with its arguments, its space and its geometry, as the caller gave them to ``tune_kernel``.

    ``device``: its limits apply to blocks; None: blocks may have any size. ``given_name``: the kernel's name as the
    caller wrote it, such as ``fir::scale<float, tile>``; ``name``: its last part, ``scale``. ``formulas.Formulas``
    computes grid, block and macros of a config from a call.
    """

    name: str
    given_name: str
    source: KernelSource
    generate: Callable[[dict[str, object]], str] | None
    problem_size: Any
    arguments: tuple[CallArgument, ...]
    constants: tuple[CallArgument, ...]
    space: dict[str, tuple[Any, ...]]
    divisors: tuple[Divisor, Divisor, Divisor]
    block_names: tuple[str, ...]
    restrictions: tuple[Rule, ...]
    shared_bytes: Any
    defines: Mapping[str, object] | None
    macros: Mapping[str, str]
    device: Device | None = None
    launch: HostLaunch | None = None  # the launch of the source, if grid and block follow it
    unused_launch: str = ""  # the launch of the source, for people, where no parameter sets the block

    @property
    def arrays(self) -> tuple[CallArgument, ...]:
        """Returns the arrays among the arguments, and the arrays in constant memory."""
        return tuple(each for each in (*self.arguments, *self.constants) if each.is_array)

    @cached_property
    def has_functions(self) -> bool:
        """Whether Python functions of the caller compute the launch or the source."""
        size = self.problem_size
        values = [*self._flat(self.divisors), *(size if isinstance(size, tuple | list) else [size]), self.shared_bytes]
        values += (self.defines or {}).values()
        return any(map(callable, values)) or self.generate is not None

    @property
    def is_written(self) -> bool:
        """Returns whether all restrictions are texts."""
        return all(rule.written for rule in self.restrictions)

    @property
    def axes(self) -> tuple[str, ...]:
        """Returns the parameters that set the threads along an axis of a block."""
        named = self.block_names if self.launch is None else sorted(self.launch.of_block)
        return tuple(name for name in named if name in self.space)

    @property
    def whole(self) -> dict[str, int]:
        """Returns the arguments that are integers, and the macros that are, by name."""
        numbers = (each for each in self.arguments if not each.is_array and each.number.dtype.kind in "iu")
        return {**{each.name: int(each.number) for each in numbers}, **self.whole_macros}

    @property
    def other_numbers(self) -> list[CallArgument]:
        """Returns the arguments that are numbers, but not integers: those that each call of a package gives."""
        return [each for each in self.arguments if not each.is_array and each.name not in self.whole]

    @property
    def whole_macros(self) -> dict[str, int]:
        """Returns the macros, beside the parameters, that are integers."""
        named = {name: value for name, value in self.macros.items() if name not in self.space}
        return {name: int(value) for name, value in named.items() if WHOLE.fullmatch(value)}

    @property
    def has_grid_sizes(self) -> bool:
        """Whether the source depends on the size of the grid, which is a macro then."""
        return self.defines is None and bool(GRID_SIZES & self.source.names)

    def block_at(self, config: ConfigValues) -> list[int]:
        """Returns the threads along each axis of a block."""
        if self.launch is None:
            return [int(config.get(name, n)) for name, n in zip(self.block_names, DEFAULT_BLOCK, strict=False)]
        values = {**self.whole, **config}
        block = self.launch.block or ()
        return [int(value_of(checked_expression(each, values, "the block"), values)) for each in block]

    @cached_property
    def enumeration(self) -> Enumeration:
        """Returns the configs that all restrictions allow, in the order of the space, or a sample of them.

        Raises:
            UsageError: if no config is allowed, or a restriction raises at a config that the others allow.
        """
        space = Space(**self.space)
        space.constraints += [rule.constraint for rule in self.restrictions]
        if self.axes:
            space.constraint(FITS, reads=self.axes)(self._fits)
        nothing: Any = None  # restrictions know neither a problem nor a device
        enumeration = space.enumerate(nothing, nothing)
        rules = {rule.said: rule for rule in self.restrictions}
        for constraint, config, error in enumeration.unjudged:
            raise UsageError(rules[constraint.name].told_error(config, error)) from error
        if not enumeration.configs:
            raise UsageError(f"{self.name}: the restrictions allow no config: {enumeration.reasons}")
        return enumeration

    def _fits(self, problem: object, config: Config, _: object) -> bool:
        device = self.device
        if device is None:
            return True
        block = self.block_at(config)
        return prod(block) <= device.max_threads_per_block and all(map(int.__le__, block, device.max_block))

    @property
    def default(self) -> Config:
        """Returns the first allowed config. Raises UsageError if no config is allowed."""
        return self.enumeration.configs[0]

    def generated(self, config: ConfigValues) -> str:
        """Returns the source of a config, from the caller's function."""
        assert self.generate is not None
        return self._read(KernelText(self.generate(dict(config))), config).text

    def macros_at(self, config: ConfigValues) -> dict[str, object]:
        """Returns the macros of a config by name, without the size of the grid."""
        if self.defines is not None:
            own = {name: of(dict(config)) if callable(of) else of for name, of in self.defines.items()}
            macros: dict[str, object] = {name: with_values(str(value), config) for name, value in own.items()}
        else:
            blocks = zip(self.block_names, DEFAULT_BLOCK, strict=True)
            macros = {name: config.get(name, n) for name, n in blocks} | {"kernel_tuner": 1}
            macros |= {name: value for name, value in config.items() if not name.startswith(UNROLL)}
        return {**macros, **self.macros}

    def reading(self, text: KernelText) -> "Call":
        """Returns the call with the kernel that this text contains at the default config."""
        return replace(self, source=self._read(text, self.default))

    def _without_unused(self, text: str) -> "Call":
        """Returns the call without the constants that its source declares and its kernel does not use."""
        used = {each.name: each.name in self.source.names for each in self.constants}
        declared = (name for name in used if re.search(rf"\b__constant__\b[^;]*\b{re.escape(name)}\b", text))
        if not (unused := [name for name in declared if not used[name]]):
            return self
        told = f"{self.name} does not use {', '.join(unused)} in constant memory"
        constants = tuple(each for each in self.constants if each.name not in unused)
        return replace(self, constants=constants, source=replace(self.source, told=(*self.source.told, told)))

    def _read(self, text: KernelText, config: ConfigValues) -> KernelSource:
        return text.read(self.given_name, self.macros_at(config))

    def resolved(self, value: object, config: ConfigValues, what: str) -> Any:
        """Returns the value at ``config`` of a number, a text or a function, or the product of a list of these."""
        if callable(value):
            value = value(dict(config))
        if isinstance(value, tuple | list):
            return prod(self.resolved(each, config, what) for each in value)
        return value_of(checked_expression(value, self.space, what), config) if isinstance(value, str) else value

    def _flat(self, value: object) -> list[object]:
        if isinstance(value, tuple | list):
            return [each for some in value for each in self._flat(some)]
        return [value]


def with_values(text: str, config: ConfigValues) -> str:
    """Returns a text in which names of parameters are replaced by their values."""
    return re.sub(r"\b\w+\b", lambda match: str(config.get(match[0], match[0])), text)


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
    device: Device | None = None,
    is_as_launched: bool = False,
) -> Call:
    """Returns the checked call.

    Args:
        problem_size: None: the grid is that of the launch in the source.
        device: its limits apply to blocks.
        is_as_launched: grid and block are those with which the source's host code launches the kernel, unless
            ``divisors``, ``block_size_names`` or parameters name others.

    Raises:
        UsageError: for an argument that cannot be tuned; the message names it.
    """
    name = name_of(kernel_name).last
    block = (*(block_size_names or ()), *BLOCK_SIZES[len(block_size_names or ()) :])
    space = _space(tune_params, block)
    generate = kernel_source if callable(kernel_source) else None
    first = {name: values[0] for name, values in space.items()}
    text = KernelText(generate(dict(first)) if generate else kernel_source, folders)
    _check_sizes(space, block, () if problem_size is None and is_as_launched else problem_size, smem_args)
    call = Call(
        name=name,
        given_name=kernel_name,
        source=KernelSource(text.name, text.text, "", (), frozenset()),
        generate=generate,
        problem_size=() if problem_size is None else problem_size,
        arguments=(),
        constants=tuple(_constant(name, value) for name, value in (cmem_args or {}).items()),
        space=space,
        divisors=divisors,
        block_names=tuple(block),
        restrictions=rules_of(restrictions, space),
        shared_bytes=(smem_args or {}).get("size", 0),
        defines=defines,
        macros=dict(macros or {}),
        device=device,
    ).reading(text)
    call = replace(call, arguments=_arguments(name, call.source.parameters, arguments))._without_unused(text.text)
    has_divisors = any(divisor is not None for divisor in divisors)
    is_named = block_size_names is not None or has_divisors
    if is_as_launched and is_named and problem_size is None:
        raise UsageError(f"{name}: --block-size-names and --grid-div-x, y, z replace the source's launch: give --size")
    if is_as_launched and block_size_names is None:
        return _as_launched(call, text, problem_size is not None, (smem_args or {}).get("size"))
    if not is_named and not call.axes:
        with suppress(UsageError):
            launch = _launch_in(text, call)
            return replace(call, unused_launch="" if launch.block is None else launch.told)
    return call


def _as_launched(call: Call, text: KernelText, has_size: bool, shared_bytes: object) -> Call:
    """Returns the call with the grid and the block of the launch in the source, if that launch can be read; and with
    its dynamic shared memory, unless ``shared_bytes`` are given.

    Raises:
        UsageError: if it cannot, and the call has no size.
    """
    tuned = set(call.space)
    try:
        launch = _launch_in(text, call)
    except UsageError as error:
        if not has_size:
            raise UsageError(f"{error}: give --size, and --block-size-names if the block has other names") from error
        return call
    if launch.grid is None and not has_size:
        names = ", and --block-size-names if the block has other names" if launch.block is None else ""
        raise UsageError(f"{launch.lacks}: give --size{names}")
    if launch.shared is None and shared_bytes is None:
        raise UsageError(f"{launch.lacks_shared}: give --shared")
    call = replace(call, shared_bytes=launch.shared if shared_bytes is None else shared_bytes)
    if tuned & set(BLOCK_SIZES) and not launch.of_block & set(BLOCK_SIZES):
        if not has_size:
            names = ", ".join(sorted(tuned & set(BLOCK_SIZES)))
            raise UsageError(f"{launch.place} launches it with a block that {names} does not set: give --size")
        return call  # block_size_x is asked for, and the source's own block is another
    if launch.block is None:
        return call
    if any(each is not None for each in call.divisors) or (has_size and not launch.of_grid & call.whole.keys()):
        launch = replace(launch, grid=None)  # the caller's grid, or one for one size only
    return replace(call, launch=launch)


def _launch_in(text: KernelText, call: Call) -> HostLaunch:
    kept = {**call.space, **{name: (value,) for name, value in call.whole_macros.items()}}
    return host_launch(text.text, text.name, name_of(call.given_name), call.source.parameters, call.macros, kept)


def _space(parameters: Mapping[str, Sequence[object]], block: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Returns the distinct values of each parameter; the values of block sizes become integers."""
    space = {}
    for name, values in parameters.items():
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise UsageError(f"the parameter {name!r} of tune_params is not a name in CUDA")
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise UsageError(f"the values of {name} must be a list, not {values!r}")
        plain: tuple[Any, ...] = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
        if not plain or not all(isinstance(value, PLAIN) for value in plain):
            raise UsageError(f"the values of {name} must be numbers or texts, one at least: {plain!r}")
        if not all(isfinite(value) for value in plain if isinstance(value, float)):
            raise UsageError(f"the values of {name} must be finite: {plain!r}")
        for value in plain:
            try:
                as_scalar(value)  # a record must be able to hold it
            except Unsound as why:
                raise UsageError(f"a value of {name} {why}") from why
        if name in block:
            plain = tuple(int(value) if isinstance(value, float) and value.is_integer() else value for value in plain)
        space[name] = tuple(dict.fromkeys(plain))
        if len({config_value_text(value) for value in space[name]}) < len(space[name]):
            raise UsageError(f"the values of {name} print alike: {plain!r}; give each a text of its own")
    if not space:
        raise UsageError("tune_params is empty: name a parameter and its values")
    return space


def _check_sizes(
    space: Mapping[str, tuple[object, ...]],
    block: Sequence[str],
    problem_size: Any,
    smem_args: Mapping[str, Any] | None,
) -> None:
    """Raises UsageError for a block, a grid or a size of shared memory that no GPU supports."""
    for name in block:
        for value in space.get(name, ()):
            if type(value) is not int or value < 1:
                raise UsageError(
                    f"the values of {name} are threads along an axis of a block: {value!r} must be 1 or more"
                )
    sizes = problem_size if isinstance(problem_size, tuple | list) else [problem_size]
    if not 1 <= len(sizes) <= len(AXES) and problem_size != ():
        raise UsageError(f"the problem size has {len(sizes)} axes; a grid has 1 to 3")
    for size in sizes:
        if not callable(size) and not isinstance(size, str) and not (_is_whole(size) and size >= 1):
            raise UsageError(f"the problem size {size!r} must be 1 or more, or a text over parameters")
    shared = (smem_args or {}).get("size", 0)
    if not callable(shared) and not isinstance(shared, str) and not (_is_whole(shared) and shared >= 0):
        raise UsageError(f"the size of smem_args, {shared!r}, must be bytes, or a text over parameters")


def _is_whole(value: object) -> bool:
    """Returns whether a value is a whole number; scripts divide sizes, so it may be a float."""
    return isinstance(value, int | float | np.integer | np.floating) and value == value // 1


def _arguments(kernel: str, expected: Sequence[CudaParameter], values: Sequence[object]) -> tuple[CallArgument, ...]:
    takes = ", ".join(parameter.name for parameter in expected)
    if len(values) != len(expected):
        raise UsageError(f"{kernel} takes {len(expected)} arguments ({takes}); {len(values)} were given")
    return tuple(_argument(kernel, parameter, value) for parameter, value in zip(expected, values, strict=True))


def _argument(kernel: str, parameter: CudaParameter, value: object) -> CallArgument:
    where = f"{kernel}: the argument {parameter.name}"
    if parameter.pointers:
        why = f"holds a pointer ({parameter.pointers[0]}) to memory that a call cannot give"
        raise UsageError(f"{where}, {parameter.type}, {why}: let the kernel take each array as an argument of its own")
    if parameter.is_array:
        memory = Memory.of(where, value)
        if (remedy := parameter.refuses(memory.given.dtype)) is not None:
            raise UsageError(f"{where} is an array of {memory.given.dtype}, and the kernel takes {remedy}")
        return CallArgument(parameter.name, memory, parameter)
    if isinstance(value, np.ndarray) and (value.ndim == 0 or (value.dtype.names and value.size == 1)):
        value = value.reshape(())[()]  # a file of one structure may have an axis
    if not isinstance(value, np.generic):
        raise UsageError(f"{where} is {type(value).__name__}, must be a NumPy number or structure of {parameter.type}")
    expected = parameter.dtype()
    if expected is not None and (value.dtype.kind != expected.kind or value.dtype.itemsize != expected.itemsize):
        raise UsageError(f"{where} is {value.dtype}, and the kernel takes {parameter.type}: give np.{expected}(..)")
    return CallArgument(parameter.name, scalar_as_in_cuda(where, value), parameter)


def _constant(name: str, value: object) -> CallArgument:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UsageError(f"{name!r} of cmem_args is not a name in CUDA")
    return CallArgument(name, Memory.of(f"{name} of cmem_args", value), None)
