"""Parts of outputs that NumPy answers where it would need minutes for all of them.

A size of many kernels is a number of things that have nothing to do with each other, such as channels: an axis of all
outputs, and of no input more than once. Which size is one is not stated but found: by shapes, and by the reference
itself, which must give the same for a part alone as within the whole, at a small size.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ..core.config import Config
from ..core.definition import Inputs, Kernel, P
from ..core.errors import UsageError
from ..core.problem import replaced, size_fields
from ..runtime.comparison import compare_arrays
from . import contract

PART_FLOPS = 2e10  # some seconds of NumPy
N_DRAWN = 2  # parts besides the last one
FEW = 3  # of such a size, at which independence is tried

Axes = Mapping[str, int | None]  # the axis of each array that a size is the extent of


@dataclass(frozen=True)
class Part:
    """What NumPy makes of a part: those elements of each output whose index along an axis is ``number``."""

    field: str  # the size that it is one of
    number: int
    axes: Axes
    reference: Mapping[str, np.ndarray]

    def of(self, name: str, output: np.ndarray) -> np.ndarray:
        """Returns the part of an output."""
        return np.ascontiguousarray(_taken(output, self.axes[name], self.number))

    def __str__(self) -> str:
        return f"{self.field.removeprefix('n_')} {self.number}"


def parts_of(kernel: Kernel[P], problem: P, inputs: Inputs) -> tuple[Part, ...]:
    """Returns parts of the outputs for ``inputs``: some that are drawn, and the last one; none where none is known."""
    for field in size_fields(problem):
        axes, alone = _axes(kernel, problem, field), replaced(problem, {field: 1})
        if axes is None or alone is None or kernel.work(alone).flops > PART_FLOPS:
            continue
        if not _is_independent(kernel, problem, field):
            continue
        n = getattr(problem, field)
        drawn = np.random.default_rng(n).choice(n - 1, min(N_DRAWN, n - 1), replace=False)
        return tuple(
            Part(field, number, axes, contract.expected_outputs(kernel, alone, _inputs(axes, inputs, number)))
            for number in [*sorted(map(int, drawn)), n - 1]
        )
    return ()


def _is_independent(kernel: Kernel[P], problem: P, field: str) -> bool:
    """Returns whether the reference makes the same of one part alone as of a few together."""
    for size in kernel.edge_problems(problem, Config(kernel.default)):
        few, alone = replaced(size, {field: FEW}), replaced(size, {field: 1})
        axes = None if few is None or alone is None else _axes(kernel, few, field)
        if few is None or alone is None or axes is None or kernel.work(alone).flops > PART_FLOPS:
            continue
        with suppress(UsageError, ValueError, TypeError, IndexError):
            inputs = contract.inputs_of(kernel, few, np.random.default_rng(FEW))
            whole = contract.expected_outputs(kernel, few, inputs)
            for number in range(FEW):
                part = contract.expected_outputs(kernel, alone, _inputs(axes, inputs, number))
                for name, answer in part.items():
                    wanted = np.ascontiguousarray(_taken(whole[name], axes[name], number))
                    if compare_arrays(answer, wanted, contract.tolerance_of(kernel, alone, name)).n_bad:
                        return False
            return True
    return False


def _axes(kernel: Kernel[P], problem: P, field: str) -> Axes | None:
    """Returns the axis of each array that ``field`` is the extent of; None where it is not one of every output."""
    n = getattr(problem, field)
    other = replaced(problem, {field: n - 1}) if n > 1 else None
    if other is None:
        return None
    axes: dict[str, int | None] = {}
    shapes = {name: spec.shape for name, spec in kernel.arrays(other).items()}
    for name, spec in kernel.arrays(problem).items():
        if name not in shapes or len(shapes[name]) != len(spec.shape):
            return None
        changed = [axis for axis, (a, b) in enumerate(zip(spec.shape, shapes[name], strict=True)) if a != b]
        if any(spec.shape[axis] != n for axis in changed) or len(changed) > 1 or (spec.is_compared and not changed):
            return None
        axes[name] = changed[0] if changed else None
    return axes


def _inputs(axes: Axes, inputs: Inputs, number: int) -> dict[str, object]:
    """Returns the inputs of one part alone."""
    return {
        name: np.ascontiguousarray(_taken(value, axes.get(name), number)) if isinstance(value, np.ndarray) else value
        for name, value in inputs.items()
    }


def _taken(array: np.ndarray, axis: int | None, number: int) -> np.ndarray:
    return array if axis is None else array.take([number], axis=axis)
