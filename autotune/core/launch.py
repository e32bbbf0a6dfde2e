"""Launches of a definition: the geometry of each, their order, and their arguments."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar

from .array import Array, TensorMap

T = TypeVar("T")
CAST = re.compile(r"\s*static_cast\s*<.*?\)\s*>\s*\(", re.DOTALL)
LAST_NAME = re.compile(r"(\w+)\s*(?:<.*>)?\s*\)?\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Launch:
    """Launch geometry: threads, the bytes of dynamic shared memory, and the tensor maps.

    ``most_blocks``: the number of blocks for which a multiprocessor has registers; 0: unknown. Only searches read it.
    ``then``: the launch that follows on the same stream; it may have a successor itself.
    ``function``: the ``__global__`` function; by default the one that has the kernel's name. One of the launches must
    call that one. It may be a name expression, for an instance of a template or a function in a namespace:
    ``fir::scale<float, 64>`` has the name ``scale``.
    ``arguments``: the names of this launch's arguments, in the order of its signature; by default those of the kernel.
    Tensor maps follow them, and refer to them by position.
    ``workspace``: arrays, by name, that this launch and its successors need while they run; only the first states it.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    maps: tuple[TensorMap, ...] = ()
    most_blocks: int = 0
    then: "Launch | None" = field(default=None, repr=False)
    function: str = field(default="", repr=False)
    arguments: tuple[str, ...] = field(default=(), repr=False)
    workspace: Mapping[str, Array] = field(default_factory=dict, repr=False, hash=False)
    positions: tuple[int, ...] | None = field(default=None, repr=False)  # filled in by ``Kernel``

    @property
    def n_threads(self) -> int:
        return prod(self.block)

    @property
    def steps(self) -> tuple["Launch", ...]:
        """Returns this launch and its successors, in order."""
        return (self, *(self.then.steps if self.then is not None else ()))

    @property
    def is_empty(self) -> bool:
        """Returns whether there is nothing to launch: all grids are empty."""
        return all(0 in step.grid for step in self.steps)

    @property
    def workspace_bytes(self) -> int:
        return sum(array.n_bytes for array in self.workspace.values())

    def own(self, arguments: Sequence[T]) -> list[T]:
        """Returns the arguments of this launch; ``arguments``: those of the kernel, then the workspace."""
        return list(arguments) if self.positions is None else [arguments[i] for i in self.positions]


def last_name(function: str) -> str:
    """Returns the last name of a name expression: ``scale`` for ``fir::scale<float, 64>``, and for a cast of it."""
    found = LAST_NAME.search(CAST.sub("", function, 1))
    return found[1] if found else function


def function_named(kernel: str, launch: Launch) -> str:
    """Returns the launched function that has the kernel's name."""
    functions = (step.function or kernel for step in launch.steps)
    return next((function for function in functions if last_name(function) == kernel), kernel)


def with_positions(kernel: str, first: Launch, names: tuple[str, ...]) -> tuple[Launch, str | None]:
    """Returns the launches with the positions of their arguments, and an error or None.

    A single launch that takes the kernel's own arguments stays as it is.
    """
    is_own = first.function != kernel and last_name(first.function or kernel) == kernel
    if first.then is None and is_own and not (first.arguments or first.workspace):
        return first, None
    if all(last_name(step.function or kernel) != kernel for step in first.steps):
        return first, f"has no launch of {kernel}(), whose name is the kernel's; one must be"
    places = {name: i for i, name in enumerate((*names, *first.workspace))}
    done: Launch | None = None
    for step in reversed(first.steps):
        own = step.arguments or names
        if unknown := [name for name in own if name not in places]:
            given = f"has {step.function or kernel}() take {', '.join(unknown)}"
            return first, f"{given}; it may take the kernel's arguments and workspace ({', '.join(places)})"
        if step is not first and step.workspace:
            return first, "has a later launch with a workspace; state it in the first"
        function = step.function or kernel
        done = replace(step, then=done, function=function, positions=tuple(places[name] for name in own))
    return done or first, None
