"""Arrays as the kernel gets them: their bytes in the order of memory, whatever the order of their axes.

A definition states C-contiguous arrays of numbers. So the axes are put in the order of memory, and structures and
bfloat16 are stated as their bits. Structures are compared by their leaves: the numbers in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np

from ..core.errors import UsageError
from ..core.structures import check_layout

SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}  # bytes of CUDA's numbers
BFLOAT16 = "bfloat16"  # a type of the package ml_dtypes


@dataclass(frozen=True)
class Memory:
    """A dense array of the caller.

    ``order``: its axes in the order of memory, slowest first: ``given.transpose(order)`` is C-contiguous.
    """

    given: np.ndarray
    order: tuple[int, ...]

    @staticmethod
    def of(where: str, value: object) -> "Memory":
        """Returns the memory of a NumPy or CuPy array.

        Raises:
            UsageError: for an array with gaps, or with a type that CUDA lacks. The message begins with ``where``.
        """
        if hasattr(value, "get") and hasattr(value, "data") and not isinstance(value, np.ndarray):
            value = value.get(order="A")  # a CuPy array, copied in the order of memory
        if not isinstance(value, np.ndarray):
            raise UsageError(f"{where} is {type(value).__name__}, must be a NumPy array")
        if (why := why_not(value.dtype)) is not None:
            raise UsageError(f"{where} {why}")
        order = _order(value)
        if not value.transpose(order).flags.c_contiguous:
            raise UsageError(
                f"{where} has gaps, or runs backwards (strides {value.strides}), and cannot be passed: "
                "give np.ascontiguousarray(..) of it"
            )
        return Memory(value, order)

    @cached_property
    def typed(self) -> np.ndarray:
        """Returns the elements in the order of memory, in the caller's type."""
        return self.given.transpose(self.order) if self.given.ndim else self.given.reshape(1)

    @cached_property
    def stored(self) -> np.ndarray:
        """Returns the array that a definition states: numbers, or bits of a type that it cannot state. It is a view."""
        return stored(self.typed)

    @cached_property
    def digest(self) -> str:
        """Returns a digest of content, type and shape."""
        return digest_of(self.stored)

    def restored(self, found: np.ndarray) -> np.ndarray:
        """Returns ``found``, stored like this array, with the caller's type and axes."""
        back = self.as_typed(found)
        return back.transpose(np.argsort(self.order)) if self.given.ndim else back.reshape(())

    def as_typed(self, found: np.ndarray) -> np.ndarray:
        """Returns ``found``, stored like this array, in the caller's type."""
        return as_typed(found, self.given.dtype)

    @property
    def is_plain(self) -> bool:
        """Whether a definition can state the elements as numbers, so that its reference can be compared with them."""
        return is_plain(self.given.dtype)


def stored(typed: np.ndarray) -> np.ndarray:
    """Returns an array's numbers, or the bits of elements whose type a definition cannot state."""
    if is_plain(typed.dtype):
        return typed
    if typed.dtype.name == BFLOAT16:
        return typed.view(np.uint16)
    return np.ascontiguousarray(typed).reshape(*typed.shape, 1).view(np.uint8)


def as_typed(found: np.ndarray, dtype: np.dtype[np.generic]) -> np.ndarray:
    """Returns the inverse of ``stored``: the array in the type ``dtype``."""
    if is_plain(dtype):
        return found
    if dtype.name == BFLOAT16:
        return np.ascontiguousarray(found).view(dtype)
    return np.ascontiguousarray(found).view(dtype)[..., 0]


def is_plain(dtype: np.dtype[np.generic]) -> bool:
    """Returns whether a definition can state arrays of this type."""
    return dtype.kind in SIZES


def why_not(dtype: np.dtype[np.generic]) -> str | None:
    """Returns why CUDA cannot use elements of this type, and a remedy; None if it can."""
    if dtype.names is not None:
        layout = laid_out(dtype)
        return None if layout is not None else check_layout(dtype) or "is a structure that C++ lays out otherwise"
    if dtype.name == BFLOAT16:
        return None
    if dtype.itemsize not in SIZES.get(dtype.kind, ()):
        types = "integers, float16, float32, float64, complex numbers, bfloat16 and structures of them"
        return f"is of {dtype}, which CUDA lacks; known are {types}"
    return None if dtype.isnative else f"is of the other byte order; give .astype('{dtype.newbyteorder('=')}')"


def laid_out(dtype: np.dtype[np.generic]) -> np.dtype[np.generic] | None:
    """Returns the structure with C++ alignment, or None if its fields do not have that layout."""
    if dtype.names is None or dtype.fields is None:
        return None
    parts = [dtype.fields[name] for name in dtype.names]
    layout = {
        "names": list(dtype.names),
        "formats": [part[0] for part in parts],
        "offsets": [part[1] for part in parts],
    }
    try:
        aligned: np.dtype[np.generic] = np.dtype({**layout, "itemsize": dtype.itemsize}, align=True)  # type: ignore[call-overload]
    except ValueError:  # a field is not at a multiple of its alignment
        return None
    return aligned if check_layout(aligned) is None else None


def scalar_as_in_cuda(where: str, value: np.generic) -> np.generic:
    """Returns a number, or a structure by value in the layout of C++.

    Raises:
        UsageError: for a structure with another layout.
    """
    if (why := why_not(value.dtype)) is not None:
        raise UsageError(f"{where} {why}")
    if (layout := laid_out(value.dtype)) is None:
        return value
    scalar: np.generic = np.frombuffer(value.tobytes(), layout)[0]
    return scalar


def digest_of(array: np.ndarray) -> str:
    """Returns a digest of an array's content, dtype and shape."""
    content_hash = sha256(f"{array.dtype.str} {array.shape}".encode())
    content_hash.update(np.ascontiguousarray(array).data if array.size else b"")
    return content_hash.hexdigest()


def leaves(typed: np.ndarray, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yields the numbers in an array's elements: the path of each field, and a view of its values."""
    if typed.dtype.names is None:
        yield name, typed
        return
    for field in typed.dtype.names:
        yield from leaves(typed[field], f"{name}.{field}")


def is_same(a: np.ndarray, b: np.ndarray) -> bool:
    """Returns whether two arrays of one type agree bit for bit, except in the padding between fields."""
    return all(
        np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()
        for (_, x), (_, y) in zip(leaves(a), leaves(b), strict=True)
    )


def dtype_text(dtype: np.dtype[np.generic]) -> str:
    """Returns Python code for a type; that of a structure includes the offsets of its fields."""
    if dtype.subdtype is not None:
        return f"({dtype_text(dtype.subdtype[0])}, {dtype.subdtype[1]!r})"
    if dtype.fields is None or dtype.names is None:
        return repr(dtype.str)
    parts = [dtype.fields[name] for name in dtype.names]
    formats = ", ".join(dtype_text(part[0]) for part in parts)
    offsets = [int(part[1]) for part in parts]
    fields = f"'names': {list(dtype.names)!r}, 'formats': [{formats}], 'offsets': {offsets!r}"
    return f"np.dtype({{{fields}, 'itemsize': {dtype.itemsize}}}, align={dtype.isalignedstruct})"


def _order(array: np.ndarray) -> tuple[int, ...]:
    """Returns the axes by falling stride, with axes of length 1 last; a C-contiguous array keeps its order."""
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    if array.flags.f_contiguous:
        return tuple(reversed(range(array.ndim)))
    return tuple(sorted(range(array.ndim), key=lambda i: (array.shape[i] == 1, -abs(array.strides[i]), i)))
