"""Compares outputs with references in NumPy: on `host`, in packages, and to describe errors that a GPU found."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.definition import Tolerance

INTEGERS = "biu"


@dataclass(frozen=True)
class OutputComparison:
    """The result of comparing one output with its reference."""

    n_bad: int
    n_total: int
    max_error: float  # relative to rms(reference), or to 1 where that is 0; NaN outputs count as infinite
    rms_error: float  # likewise
    first_bad: tuple[int, ...] | None = None
    got: complex | float | int | None = None
    want: complex | float | int | None = None


def compare_arrays(got: Any, want: Any, tolerance: Tolerance) -> OutputComparison:
    """Compares ``got`` with ``want``, arrays of one shape and kind; exactly if there is no tolerance.

    Values are not rounded, wrapped or clipped first: a reference value that the output's type cannot hold is an error.
    """
    if tolerance.nibbles:
        got, want, tolerance = nibbles(got), nibbles(want), replace(tolerance, nibbles=False)
    if tolerance == Tolerance():
        wrong = _differ(got, want)
        if not bool(wrong.any()):
            return OutputComparison(0, int(got.size), 0.0, 0.0)
    error = _distance(got, want)
    size = 1.0 if tolerance == Tolerance() and want.dtype.kind in INTEGERS else _rms(want)
    if tolerance != Tolerance():
        magnitude = np.abs(_wide(want))
        wrong = ~(error <= tolerance.atol + tolerance.rtol * magnitude + tolerance.of_rms * size)  # a NaN is wrong
    error = np.where(np.isnan(error), np.inf, error)
    size = size or 1.0
    n_bad = int(np.count_nonzero(wrong))
    max_error = float(np.max(error)) / size if got.size else 0.0
    rms_error = float(np.sqrt(np.mean(error * error))) / size if got.size else 0.0
    if not n_bad:
        return OutputComparison(0, int(got.size), max_error, rms_error)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), got.shape))
    return OutputComparison(n_bad, int(got.size), max_error, rms_error, index, got[index].item(), want[index].item())


def differs(name: str, found: OutputComparison, tolerance: Tolerance) -> str:
    """Returns one line for people that says how an output differs from its reference."""
    index = ", ".join(map(str, found.first_bad or ()))
    parts = {"atol": tolerance.atol, "rtol": tolerance.rtol, "rms x": tolerance.of_rms}
    allowed = ", ".join(f"{what} {value:.2g}" for what, value in parts.items() if value) or "exactness"
    return (
        f"{name}[{index}] is {found.got}, reference {found.want}; "
        f"{found.n_bad} of {found.n_total} beyond {allowed} (largest error {found.max_error:.3g} of rms)"
    )


def nibbles(array: Any) -> Any:
    """Returns the signed nibbles of bytes along a new last axis: int8 [.., 2], the low one first."""
    signed = np.ascontiguousarray(array).view(np.int8)
    return np.stack((signed << 4 >> 4, signed >> 4), axis=-1)


def another(answer: np.ndarray) -> np.ndarray:
    """Returns a different but plausible answer: elements moved by one, or changed if all are equal."""
    moved = np.roll(answer, 1)
    if not np.array_equal(moved, answer):
        return moved
    return ~answer if answer.dtype.kind in INTEGERS else (answer + 1).astype(answer.dtype)


def fits(values: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Returns whether ``dtype`` can hold all of these values: integers, or floats for a type at least as wide."""
    if np.can_cast(values.dtype, dtype, "safe") or values.size == 0:
        return True
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return bool(least <= int(values.min()) and int(values.max()) <= most)


def _differ(got: Any, want: Any) -> Any:
    """Returns which elements differ; NaNs with the same bits are equal."""
    wrong = got != want
    if got.dtype == want.dtype and bool(np.any(wrong)):
        a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, -1) for x in (got, want))
        wrong = wrong & (a != b).any(axis=1).reshape(got.shape)
    return wrong


def _distance(got: Any, want: Any) -> Any:
    """Returns |got - want| in float64; integers do not overflow."""
    if got.dtype.kind not in INTEGERS or want.dtype.kind not in INTEGERS:
        with np.errstate(invalid="ignore"):  # inf - inf is a NaN, which counts as wrong
            return np.abs(_wide(got) - _wide(want))
    larger = np.asarray(got > want)
    a, b = (x.astype(np.uint64) if x.dtype.kind == "u" else x.astype(np.int64).view(np.uint64) for x in (got, want))
    return np.where(larger, a - b, b - a).astype(np.float64)  # exact modulo 2^64, since no distance reaches it


def _rms(want: Any) -> float:
    if not want.size:
        return 1.0
    magnitude = np.abs(_wide(want))
    return float(np.sqrt(np.mean(magnitude * magnitude)))


def _wide(array: Any) -> Any:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False)
