"""Parts of outputs that NumPy computes where whole outputs would take it minutes.

In many kernels a size counts independent things, such as channels: it is an axis of all outputs, and at most one axis
of each input. Definitions do not state such a size. It is found by shapes, and by the reference itself: at a small size
a part computed alone must equal the same part of the whole.
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

PART_FLOPS = 2e10  # NumPy takes some seconds for them
N_DRAWN = 2  # random parts, in addition to the last one
FEW = 3  # value of such a size at which independence is checked

Axes = Mapping[str, int | None]  # array -> the axis whose extent is the size, or None


@dataclass(frozen=True)
class Part:
    """The reference of a part: the elements of each output whose index along an axis is ``number``."""

    field: str  # the size, a field of the problem
    number: int
    axes: Axes
    reference: Mapping[str, np.ndarray]

    def of(self, name: str, output: np.ndarray) -> np.ndarray:
        """Returns the part of an output."""
        return np.ascontiguousarray(_taken(output, self.axes[name], self.number))

    def __str__(self) -> str:
        return f"{self.field.removeprefix('n_')} {self.number}"


def parts_of(kernel: Kernel[P], problem: P, inputs: Inputs) -> tuple[Part, ...]:
    """Returns parts of the outputs for ``inputs``: random ones and the last one; empty if no size is independent."""
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
    """Returns whether the reference of one part alone equals that part of the reference of FEW together."""
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
    """Returns the axis of each array whose extent is ``field``; None if some output has no such axis."""
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
    return {
        name: np.ascontiguousarray(_taken(value, axes.get(name), number)) if isinstance(value, np.ndarray) else value
        for name, value in inputs.items()
    }


def _taken(array: np.ndarray, axis: int | None, number: int) -> np.ndarray:
    return array if axis is None else array.take([number], axis=axis)
