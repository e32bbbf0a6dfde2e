"""Says which structures can be passed by value: those whose bytes lie in NumPy as they lie in CUDA.

A structure is a ``numpy.void`` of a dtype with fields. C++ aligns each field to a multiple of its own size, NumPy does
so with ``align=True`` only, and never for complex numbers, which are ``float2`` and ``double2`` in CUDA.
"""

from collections.abc import Mapping

import numpy as np

KINDS = "biufc"  # of numbers that CUDA has, but for the longest float
MOST_BYTES = 8  # of a real number
ALIGNED = "np.dtype([...], align=True)"


def check_layout(dtype: np.dtype[np.generic]) -> str | None:
    """Returns why CUDA lays out a structure of this dtype otherwise, and what to do; None: it does not."""
    if not dtype.isalignedstruct:
        return f"is a structure without align=True, and C++ aligns its fields; make it of {ALIGNED}"
    try:
        _alignment(dtype, "")
    except _Differs as why:
        return str(why)
    return None


def wrong_scalars(scalars: Mapping[str, object]) -> str | None:
    """Returns what is wrong with the first structure among a kernel's scalars that cannot be passed by value."""
    for name, value in scalars.items():
        if isinstance(value, np.void) and value.dtype.names and (why := check_layout(value.dtype)):
            return f"returns {name!r}, which {why}"
    return None


class _Differs(Exception):
    """A part that CUDA lays out otherwise; the message goes on from the name of the structure."""


def _alignment(dtype: np.dtype[np.generic], path: str) -> int:
    """Returns the alignment of a number or structure in CUDA, in bytes.

    Raises:
        _Differs: when NumPy has another layout.
    """
    if dtype.subdtype is not None:
        return _alignment(dtype.subdtype[0], path)
    if dtype.fields is None:
        if dtype.kind not in KINDS or dtype.itemsize > (2 * MOST_BYTES if dtype.kind == "c" else MOST_BYTES):
            raise _Differs(f"has the field {path} of {dtype}, which CUDA has not; use numbers, and structures of them")
        if not dtype.isnative:
            raise _Differs(f"has the field {path} in the other byte order; use {dtype.newbyteorder('=')}")
        return dtype.itemsize
    largest = 1
    for name, (field, offset, *_) in dtype.fields.items():
        place = f"{path}.{name}" if path else name
        alignment = _alignment(field, place)
        if offset % alignment:
            where = f"begins at byte {offset}, in CUDA at a multiple of {alignment}"
            raise _Differs(f"has the field {place} of {field}, which {where}; put a field before it to fill up")
        largest = max(largest, alignment)
    if dtype.itemsize % largest:
        what = f"{path or 'all of it'} in {dtype.itemsize} bytes, in CUDA a multiple of {largest}"
        raise _Differs(f"has {what}; add a field at its end to fill up")
    return largest
