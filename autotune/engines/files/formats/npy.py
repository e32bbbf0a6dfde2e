"""NumPy arrays in files, x.npy: samples of one or two polarisations, [n] or [n_pols, n], read piece by piece."""

import io
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ...streams.samples import SampleInfo
from .. import checks
from ..flat import FlatPiece, FlatSamples
from ..interleaved_bytes import Layout
from ..numbers import Numbers, numbers_of
from ..reading import Bytes, HeaderOverrides, Tell, closed_on_error, refuse, start_of, tell_coarse
from .interface import SAMPLES

suffixes, holds, help = (".npy",), SAMPLES, "an array of NumPy"
MAGIC = b"\x93NUMPY"
MOST_HEADER = 1 << 14  # bytes
READERS: dict[tuple[int, int], Callable[[io.BytesIO], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def recognises(file: Bytes) -> bool:
    """Returns whether a file is of this format, by its first bytes."""
    return file.take(0, len(MAGIC)).tobytes() == MAGIC


def read(path: Path, overrides: HeaderOverrides, tell: Tell) -> FlatSamples:
    """Opens a file. Its header has no sample rate, which is 1 Hz unless it is given.

    Raises:
        UsageError: when its header is wrong, or it is an array of another shape or of other numbers.
    """
    if overrides.sample_rate_hz is None and (overrides.centre_frequency_hz, overrides.sync_time_unix) != (None, None):
        refuse(path, "an array has no sample rate: give sample_rate_hz with centre_frequency_hz or sync_time_unix")
    overrides.one_channel(path, 1)
    file = Bytes(path)
    with closed_on_error([file]):
        shape, is_fortran, dtype, begin = _header(file)
        numbers, is_complex = _numbers(path, dtype)
        n_pols, n = shape if len(shape) == 2 else (1, *shape)
        is_together = is_fortran and n_pols == 2
        layout = Layout(1, n_pols if is_together else 1, is_complex, 0, numbers=numbers)
        row_bytes = n * layout.sample_bytes if n_pols == 2 and not is_together else 0
        info = overrides.over(SampleInfo(layout.sample_bits, n_pols, overrides.sample_rate_hz or 1.0, 1))
        source = FlatSamples(file, info, layout, [FlatPiece(begin, 0, n)], tell, row_bytes)
    tell_coarse(path, info, None if overrides.sync_time_unix is None else start_of(overrides.sync_time_unix), tell)
    return source


def _header(file: Bytes) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Returns the shape, whether the first axis varies fastest, the dtype, and the first byte of the numbers."""
    text = io.BytesIO(file.take(0, MOST_HEADER).tobytes())
    try:
        version = np.lib.format.read_magic(text)  # type: ignore[no-untyped-call]
        if version not in READERS:
            refuse(file.path, f"its format's version is {version[0]}.{version[1]}, but only 1.0 and 2.0 can be read")
        shape, is_fortran, dtype = READERS[version](text)
    except (ValueError, TypeError, SyntaxError, RecursionError, OverflowError, tokenize.TokenError) as error:
        refuse(file.path, f"its header is not that of an array: {str(error)[:100]}")
    if (
        not 1 <= len(shape) <= 2
        or (len(shape) == 2 and shape[0] not in (1, 2))
        or not 0 < shape[-1] <= checks.MOST_TIME
    ):
        more = ": transpose it" if len(shape) == 2 and shape[1] in (1, 2) else ""
        refuse(file.path, f"it is an array {list(shape)}, must be [n] or [n_pols, n] with 1 or 2 rows{more}")
    return tuple(map(int, shape)), is_fortran, dtype, text.tell()


def _numbers(path: Path, dtype: np.dtype) -> tuple[Numbers, bool]:
    parts, kind = (2, "f") if dtype.kind == "c" else (1, dtype.kind)
    order = {">": "_be", "<": "_le"}.get(dtype.str[0], "")
    numbers = numbers_of(f"{'cr'[parts == 1]}{kind}{8 * dtype.itemsize // parts}{order}")
    if numbers is None:
        refuse(
            path, f"it is an array of {dtype}, must be of integers or of floats of 32 or 64 bits: convert it by astype"
        )
    return numbers
