"""What a definition launches: the geometry of one launch, those that follow it, and their arguments."""

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

    ``most_blocks``: that a multiprocessor has registers for; 0: not known. For searches, which know it no other way.
    ``then``: the launch that follows on the same stream, and may have another that follows it.
    ``function``: the ``__global__`` function; by default the one that bears the kernel's name, which one of them must
    be. It may be a name expression, which says an instance of a template or a function in a namespace:
    ``fir::scale<float, 64>`` bears the name ``scale``.
    ``arguments``: its own by name, in the order of its signature; by default those of the kernel. A tensor map
    follows them, and counts them.
    ``workspace``: arrays, by name, that the first launch and those after it need while they run.
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
        """Returns this launch and those that follow, in order."""
        return (self, *(self.then.steps if self.then is not None else ()))

    @property
    def is_empty(self) -> bool:
        """Returns whether nothing is launched, since all grids are empty."""
        return all(0 in step.grid for step in self.steps)

    @property
    def workspace_bytes(self) -> int:
        return sum(array.n_bytes for array in self.workspace.values())

    def own(self, arguments: Sequence[T]) -> list[T]:
        """Returns the arguments of this launch, from those of the kernel followed by the workspace."""
        return list(arguments) if self.positions is None else [arguments[i] for i in self.positions]


def last_name(function: str) -> str:
    """Returns the name that a name expression ends in: ``scale`` of ``fir::scale<float, 64>``, and of a cast of it."""
    found = LAST_NAME.search(CAST.sub("", function, 1))
    return found[1] if found else function


def function_named(kernel: str, launch: Launch) -> str:
    """Returns the function, among those that are launched, that bears the kernel's name."""
    functions = (step.function or kernel for step in launch.steps)
    return next((function for function in functions if last_name(function) == kernel), kernel)


def with_positions(kernel: str, first: Launch, names: tuple[str, ...]) -> tuple[Launch, str | None]:
    """Returns launches with the positions of their arguments, and what is wrong with them, if anything.

    A launch that is alone and takes what the kernel is called with stays as it is.
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
