"""Checks a definition's inputs, reference and tolerance before they judge a kernel.

A reference lets a wrong kernel pass if it is truncated, broadcast, real in place of complex, or writes its inputs. Each
refusal is a DefinitionError, which names the method and what it must do.
"""

import math
from collections.abc import Mapping

import numpy as np

from ..core.definition import Array, Inputs, Kernel, P, Tolerance, fault, problem_name
from ..runtime.comparison import INTEGERS, compare_arrays, fits

CHUNK = 1 << 20  # elements that are checked at a time
TRUTHS = {"f": "floating point", "c": "complex", "i": "integers", "u": "integers", "b": "integers or bool"}


def inputs_of(kernel: Kernel[P], problem: P, rng: np.random.Generator) -> dict[str, object]:
    """Returns the definition's inputs, read-only.

    Raises:
        DefinitionError: if an input is missing, or differs from its statement in ``arrays``.
    """
    inputs = kernel.inputs(problem, rng)
    for name, spec in kernel.arrays(problem).items():
        if not spec.read:
            continue
        must = f"it must be {spec.dtype} {list(spec.shape)}, as arrays() states it at {problem_name(problem)}"
        if name not in inputs:
            raise fault(kernel, "inputs", f"returns no {name!r}; {must}")
        array = inputs[name]
        if not isinstance(array, np.ndarray) or array.dtype != spec.dtype or array.shape != spec.shape:
            raise fault(kernel, "inputs", f"returns {name!r} as {_what(array)}; {must}")
    for value in inputs.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return dict(inputs)


def expected_outputs(kernel: Kernel[P], problem: P, inputs: Inputs) -> dict[str, np.ndarray]:
    """Returns the definition's outputs for ``inputs``, which ``inputs_of`` made.

    Raises:
        DefinitionError: if the outputs are not exactly the written arrays, or one has a wrong shape, is not finite, or
            has a dtype that cannot hold exact results: it must be at least as wide as the output's, complex for
            complex, integers for integers.
    """
    outputs = kernel.reference(problem, **inputs)
    written = {name: spec for name, spec in kernel.arrays(problem).items() if spec.is_compared}
    if set(outputs) != set(written):
        given = ", ".join(map(str, outputs)) or "nothing"
        raise fault(kernel, "reference", f"returns {given}; it must return the written arrays: {', '.join(written)}")
    for name, spec in written.items():
        if (wrong := _wrong_output(outputs[name], spec)) is not None:
            raise fault(kernel, "reference", f"returns {name!r} {wrong} (at {problem_name(problem)})")
    return {name: np.asarray(outputs[name]) for name in written}


def tolerance_of(kernel: Kernel[P], problem: P, output: str) -> Tolerance:
    """Returns the tolerance of one output.

    Raises:
        DefinitionError: if there is no tolerance for the output, or it is not a finite number.
    """
    stated = kernel.tolerance(problem)
    if isinstance(stated, Mapping) and output not in stated:
        given = ", ".join(map(str, stated)) or "nothing"
        raise fault(kernel, "tolerance", f"returns tolerances of {given}; it must return one for {output!r}, too")
    tolerance = stated[output] if isinstance(stated, Mapping) else stated
    for part in ("rtol", "atol", "of_rms"):
        value = getattr(tolerance, part)
        if not isinstance(value, int | float | np.integer | np.floating) or not 0 <= value < math.inf:
            why = f"returns {part}={value!r} for {output!r}; it must be a finite number, 0 or more"
            raise fault(kernel, "tolerance", why)
    if tolerance.nibbles and (dtype := kernel.arrays(problem)[output].dtype).name not in ("int8", "uint8"):
        raise fault(kernel, "tolerance", f"returns nibbles for {output!r}, which is {dtype}; only bytes have them")
    return tolerance


def check_repeats(kernel: Kernel[P], problem: P, inputs: Inputs, reference: Mapping[str, np.ndarray]) -> None:
    """Computes the reference once more, and compares.

    Raises:
        DefinitionError: if two runs with the same inputs differ by more than the tolerance.
    """
    for name, again in expected_outputs(kernel, problem, inputs).items():
        if compare_arrays(again, reference[name], tolerance_of(kernel, problem, name)).n_bad:
            why = f"returns another {name!r} each time that it is called with the same inputs"
            why += f" (at {problem_name(problem)}); it must depend on its inputs only"
            raise fault(kernel, "reference", why)


def _wrong_output(given: object, spec: Array) -> str | None:
    """Returns why an output of the reference is wrong, and what it must be, or None."""
    if not isinstance(given, np.ndarray | np.generic):
        return f"as {_what(given)}; it must be a NumPy array"
    array = np.asarray(given)
    if array.shape != spec.shape:
        return f"with shape {list(array.shape)}; it must have {list(spec.shape)}, as arrays() states it"
    wide_enough = np.can_cast(spec.dtype, array.dtype, "safe")
    same_kind = array.dtype.kind in INTEGERS if spec.dtype.kind in INTEGERS else array.dtype.kind == spec.dtype.kind
    if not same_kind or (spec.dtype.kind not in INTEGERS and not wide_enough):
        truth = TRUTHS.get(spec.dtype.kind, str(spec.dtype))
        return f"as {array.dtype}; the output is {spec.dtype}, so it must be {truth}, at least as wide"
    if array.dtype.kind in INTEGERS and not fits(array, spec.dtype):
        return f"with values from {array.min()} to {array.max()}; they must fit the output's {spec.dtype}"
    if array.dtype.kind not in INTEGERS and not _finite(array):
        return "with values that are not finite, or whose squares are not; it must have none"
    return None


def _finite(array: np.ndarray) -> bool:
    """Returns whether the mean square is finite, since tolerances are relative to it."""
    flat = array.reshape(-1)
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, flat.size, CHUNK):
            some = flat[first : first + CHUNK].astype(wide, copy=False)
            if not math.isfinite(np.vdot(some, some).real / array.size):
                return False
    return True


def _what(value: object) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype} {list(value.shape)}"
    return f"{type(value).__name__}"
