"""Reads arrays of callers without a copy: CuPy's, PyTorch's, and others with ``__cuda_array_interface__``.

A reader turns an array into (signature, argument, address). A launch plan is found by signatures, so they contain every
property that decides whether an array fits. ``layout_of`` names these properties, on the slow path only.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.definition import Array
from .signature import ArgumentTypeError, ArgumentValueError

Reading = tuple[tuple[Any, ...], Any, int]
Reader = Callable[[Any], Reading]

HOST = "numpy"  # ``library`` of arrays that a launch copies from the host
readers: dict[type, Reader] = {}  # array type -> reader, filled as types appear


@dataclass(frozen=True)
class ArrayLayout:
    """The properties of an array that the checks use."""

    shape: tuple[int, ...]
    dtype: str
    contiguous: bool
    gpu: int  # the GPU's index; negative on the CPU
    library: str
    unusable: str = ""  # another fault and its remedy, or ""


def read_cupy(array: Any) -> Reading:
    """Reads a CuPy array; the array itself is the kernel's argument."""
    data = array.data
    return (array.shape, array.strides, array.dtype, data.device_id), array, data.ptr


def read_torch(tensor: Any) -> Reading:
    """Reads a PyTorch tensor; its address, an integer, is the kernel's argument."""
    pointer = tensor.data_ptr()
    flags = (tensor.requires_grad, tensor.is_conj(), tensor.is_neg())
    return (tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device(), flags), pointer, pointer


def read_foreign(array: object) -> Reading:
    """Reads another array through a CuPy view, which also waits for the stream that the interface names."""
    import cupy

    return read_cupy(cupy.asarray(array))


def reader_for(name: str, value: object) -> Reader:
    """Returns the reader for arrays of ``value``'s type, and registers it in ``readers``.

    Raises:
        ArgumentTypeError: when it is not an array on a GPU.
    """
    import cupy

    torch = sys.modules.get("torch")
    if isinstance(value, cupy.ndarray):
        reader: Reader = read_cupy
    elif torch is not None and isinstance(value, torch.Tensor):
        reader = read_torch
    elif isinstance(value, np.ndarray | np.generic):
        own_name = name.rpartition(": ")[2]
        raise ArgumentTypeError(f"{name} is a NumPy array, on the CPU; use cupy.asarray({own_name})")
    elif hasattr(value, "__cuda_array_interface__"):
        reader = read_foreign
    else:
        what = "missing" if value is None else f"of type {type(value).__name__}"
        raise ArgumentTypeError(f"{name} is {what}; it must be an array on the GPU, such as a cupy.ndarray")
    readers[type(value)] = reader
    return reader


def read_constant(name: str, value: object) -> Reading:
    """Reads an array for constant memory. A launch copies it there, so it may also be a NumPy array."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype, HOST), value, 0
    return (readers.get(type(value)) or reader_for(name, value))(value)


def layout_of(value: Any) -> ArrayLayout:
    """Returns the layout of an array that a reader accepts, or of a NumPy array, which counts as contiguous."""
    if isinstance(value, np.ndarray):
        return ArrayLayout(value.shape, str(value.dtype), True, -1, HOST)
    if readers[type(value)] is read_torch:
        wrong = ""
        if value.requires_grad:
            wrong = "requires a gradient, which a kernel cannot pass on; use .detach()"
        elif value.is_conj() or value.is_neg():
            wrong = "is lazily conjugated or negated; use .resolve_conj().resolve_neg()"
        dtype = str(value.dtype).removeprefix("torch.")
        return ArrayLayout(tuple(value.shape), dtype, value.is_contiguous(), value.get_device(), "torch", wrong)
    import cupy

    own = isinstance(value, cupy.ndarray)
    library, view = ("cupy", value) if own else ("other", cupy.asarray(value))
    return ArrayLayout(view.shape, str(view.dtype), view.flags.c_contiguous, view.data.device_id, library)


def check_kind(kernel: str, name: str, found: ArrayLayout, spec: Array) -> None:
    """Raises unless device, dtype and number of axes are right, which do not depend on sizes."""
    where = f"{kernel}: {name}"
    if found.gpu < 0 and found.library != HOST:
        raise ArgumentValueError(f"{where} is on the CPU; use {name}.cuda()")
    if found.dtype != spec.dtype.name:
        remedy = f"{name}.to(torch.{spec.dtype})" if found.library == "torch" else f'{name}.astype("{spec.dtype}")'
        if spec.dtype.kind in "iu" and found.dtype.lstrip("u") == spec.dtype.name.lstrip("u"):
            remedy += f" for the same values, .view for the same bits as {spec.dtype}"
        raise ArgumentTypeError(f"{where} is {found.dtype}, must be {spec.dtype}; use {remedy}")
    if len(found.shape) != len(spec.shape):
        axes = f"{len(found.shape)} axes, {list(found.shape)}; must have {len(spec.shape)}, as in {list(spec.shape)}"
        raise ArgumentValueError(f"{where} has {axes}")


def check_fit(kernel: str, name: str, found: ArrayLayout, spec: Array) -> None:
    """Raises unless shape and layout fit ``spec``; each call checks the address."""
    where = f"{kernel}: {name}"
    if found.shape != spec.shape:
        raise ArgumentValueError(f"{where} has shape {list(found.shape)}, must have {list(spec.shape)}")
    if not found.contiguous:
        copy = f"{name}.contiguous()" if found.library == "torch" else f"cupy.ascontiguousarray({name})"
        raise ArgumentValueError(f"{where} is not C-contiguous; use {copy}")
    if found.unusable:
        raise ArgumentValueError(f"{where} {found.unusable}")


def check_alignment(kernel: str, found: Iterable[tuple[str, int, int]]) -> None:
    """Raises ArgumentValueError for an array at a wrong address; ``found``: (name, bytes of alignment, address)."""
    for name, align, address in found:
        if address % align:
            raise ArgumentValueError(
                f"{kernel}: {name} starts at address {address:#x}, which is not a multiple of {align} bytes; "
                f"pass a copy ({name}.copy()), or a view that starts on such a boundary"
            )


def check_cupy(kernel: str, specs: Mapping[str, Array], arrays: Mapping[str, Any], index: int) -> None:
    """Raises unless each array is CuPy's and on the GPU ``index``; one for constant memory may also be NumPy's."""
    for name, array in arrays.items():
        where = f"{kernel}: {name}"
        if specs[name].constant and isinstance(array, np.ndarray):
            continue
        reader = readers.get(type(array)) or reader_for(where, array)
        if reader is not read_cupy:
            what = f"{type(array).__module__}.{type(array).__qualname__}"
            raise ArgumentTypeError(f"{where} is a {what}; a prepared call takes CuPy's arrays: cupy.asarray({name})")
        if array.data.device_id != index:
            raise ArgumentValueError(f"{where} is on GPU {array.data.device_id}, and it was prepared for GPU {index}")


def whole_lengths(kernel: str, specs: Mapping[str, Array], arrays: Mapping[str, Any]) -> dict[str, int]:
    """Returns scalar argument -> length of the whole array, for arrays that may be parts of longer ones.

    Scalars without effect are left out.

    Raises:
        ArgumentValueError: unless dtype, shape and strides of each array fit its specification.
    """
    found: dict[str, int] = {}
    for name, spec in specs.items():
        where = f"{kernel}: {name}"
        if name not in arrays:
            raise ArgumentValueError(f"{where} is missing; it must be {spec.dtype} {list(spec.shape)}")
        given = arrays[name]
        if given.dtype != spec.dtype or tuple(given.shape) != spec.shape:
            wanted = f"{spec.dtype} {list(spec.shape)}"
            raise ArgumentValueError(f"{where} is {given.dtype} {list(given.shape)}; it must be {wanted}")
        length = spec.whole_length(given.strides)
        if length is None:
            part = f", or part of an array that is longer along axis {spec.longer[0]}" if spec.longer else ""
            raise ArgumentValueError(f"{where} must be C-contiguous{part}; its strides are {given.strides}")
        if spec.longer and length and found.setdefault(spec.longer[1], length) != length:
            raise ArgumentValueError(
                f"{where} is part of an array of {length} along axis {spec.longer[0]}; those that share "
                f"{spec.longer[1]} with it are parts of {found[spec.longer[1]]}"
            )
    return found


def allocate(specs: Sequence[Array], library: str, index: int, stream: Any) -> list[Any]:
    """Allocates uninitialised arrays on the current GPU ``index``, ordered on ``stream`` (None: the current one)."""
    if library == "torch":
        import torch

        types = [getattr(torch, spec.dtype.name) for spec in specs]
        outside = nullcontext() if stream is None else torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr, index))
        with outside:
            arrays = [torch.empty(s.shape, dtype=t, device=index) for s, t in zip(specs, types, strict=True)]
        readers[torch.Tensor] = read_torch
        return arrays
    import cupy

    readers[cupy.ndarray] = read_cupy
    if stream is None:
        return [cupy.empty(spec.shape, spec.dtype) for spec in specs]
    with stream:
        return [cupy.empty(spec.shape, spec.dtype) for spec in specs]
