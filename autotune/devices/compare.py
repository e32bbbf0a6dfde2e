"""One comparison for every device: ``xp`` is NumPy or CuPy."""

from typing import Any

import numpy as np

from ..definition import Tolerance
from .base import Comparison


def compare(xp: Any, got: Any, want: Any, tolerance: Tolerance) -> Comparison:
    """``got`` against ``want``, arrays of one shape on the device of ``xp``; integers exactly unless told otherwise."""
    if tolerance == Tolerance() and np.dtype(want.dtype).kind in "biu":
        wrong = got != want.astype(got.dtype)
        size = 1.0
        if not bool(wrong.any()):
            return Comparison(0, int(got.size), 0.0, 0.0)
        error = xp.abs(got.astype(xp.float64) - want.astype(xp.float64))
    else:
        error = xp.abs(got.astype(want.dtype) - want)
        magnitude = xp.abs(want)
        size = float(xp.sqrt(xp.mean(magnitude * magnitude))) if want.size else 1.0
        wrong = ~(error <= tolerance.atol + tolerance.rtol * magnitude + tolerance.of_rms * size)  # a NaN is wrong
        error = xp.where(xp.isnan(error), xp.inf, error)
    size = size or 1.0
    n_bad = int(xp.count_nonzero(wrong))
    max_error = float(xp.max(error)) / size if got.size else 0.0
    rms_error = float(xp.sqrt(xp.mean(error * error))) / size if got.size else 0.0
    if not n_bad:
        return Comparison(0, int(got.size), max_error, rms_error)
    index = tuple(int(i) for i in np.unravel_index(int(xp.argmax(wrong)), got.shape))
    return Comparison(n_bad, int(got.size), max_error, rms_error, index, got[index].item(), want[index].item())
