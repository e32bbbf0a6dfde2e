"""The comparison in NumPy: of the device `host`, and of what a GPU has found wrong."""

from typing import Any

import numpy as np

from ..definition import Tolerance
from .base import Comparison


def compare(got: Any, want: Any, tolerance: Tolerance) -> Comparison:
    """``got`` against ``want``, arrays of one shape; integers exactly unless told otherwise."""
    if tolerance == Tolerance() and np.dtype(want.dtype).kind in "biu":
        wrong = got != want.astype(got.dtype)
        size = 1.0
        if not bool(wrong.any()):
            return Comparison(0, int(got.size), 0.0, 0.0)
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
    else:
        error = np.abs(got.astype(want.dtype) - want)
        magnitude = np.abs(want)
        size = float(np.sqrt(np.mean(magnitude * magnitude))) if want.size else 1.0
        wrong = ~(error <= tolerance.atol + tolerance.rtol * magnitude + tolerance.of_rms * size)  # a NaN is wrong
        error = np.where(np.isnan(error), np.inf, error)
    size = size or 1.0
    n_bad = int(np.count_nonzero(wrong))
    max_error = float(np.max(error)) / size if got.size else 0.0
    rms_error = float(np.sqrt(np.mean(error * error))) / size if got.size else 0.0
    if not n_bad:
        return Comparison(0, int(got.size), max_error, rms_error)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), got.shape))
    return Comparison(n_bad, int(got.size), max_error, rms_error, index, got[index].item(), want[index].item())
