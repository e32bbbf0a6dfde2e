"""Checks which structures can be passed by value: those with the same layout in NumPy and in CUDA.

A structure is a ``numpy.void`` of a dtype with fields. C++ aligns each field to a multiple of its own size. NumPy does
so only with ``align=True``, and never for complex numbers, which are ``float2`` and ``double2`` in CUDA.
"""

from collections.abc import Mapping

import numpy as np

KINDS = "biufc"  # kinds of numbers that exist in CUDA, except the longest float
MOST_BYTES = 8  # size of the largest real number
ALIGNED = "np.dtype([...], align=True)"


def check_layout(dtype: np.dtype[np.generic]) -> str | None:
    """Returns why CUDA lays out a structure of this dtype differently, and what to do; None: the layouts agree."""
    if not dtype.isalignedstruct:
        return f"is a structure without align=True, and C++ aligns its fields; make it of {ALIGNED}"
    try:
        _alignment(dtype, "")
    except _Differs as why:
        return str(why)
    return None


def wrong_scalars(scalars: Mapping[str, object]) -> str | None:
    """Returns why the first structure that cannot be passed by value is wrong; None: all scalars can be passed."""
    for name, value in scalars.items():
        if isinstance(value, np.void) and value.dtype.names and (why := check_layout(value.dtype)):
            return f"returns {name!r}, which {why}"
    return None


class _Differs(Exception):
    """CUDA lays out a part differently; the message continues after the name of the structure."""


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
