"""Reads from a cubin the sizes of constant variables and of parameters, on which launches rely."""

import re
import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.definition import BEYOND_CONSTANTS, Array
from ..core.errors import Status, TrialFailure
from .elf import OBJECT, Section, sections, symbols

CONSTANTS = re.compile(r"\.nv\.constant\d+$")  # variables that all kernels share; a kernel's own section has its name
LONG_FORM = 4  # form of a .nv.info entry whose value follows, with the size that the entry states
PARAMETER = 0x17  # EIATTR_KPARAM_INFO of .nv.info.<kernel>: index, ordinal and offset; size in the upper 14 bits


def constant_bytes(cubin: bytes) -> dict[str, int]:
    """Returns name -> bytes of the ``__constant__`` variables; names in a namespace are mangled."""
    found = sections(cubin)
    inside = (s for s in symbols(found) if s.kind == OBJECT and 0 < s.section < len(found))
    return {s.name: s.n_bytes for s in inside if CONSTANTS.match(found[s.section].name)}


@lru_cache(maxsize=64)
def parameter_bytes(cubin: bytes, kernel: str) -> tuple[int, ...]:
    """Returns the bytes of each parameter of a kernel, in order; () where the cubin does not state them."""
    told: dict[int, int] = {}
    for section in sections(cubin):
        if section.name == f".nv.info.{kernel}":
            values = (
                value for attribute, value in kernel_attributes(section) if attribute == PARAMETER and len(value) == 12
            )
            told |= {ordinal: size >> 18 for _, ordinal, _, size in map(_PARAMETER.unpack, values)}
    return tuple(told[i] for i in range(len(told))) if set(told) == set(range(len(told))) else ()


_PARAMETER = struct.Struct("<IHHI")


def kernel_attributes(section: Section) -> Iterator[tuple[int, bytes]]:
    """Returns (attribute, value) of each entry of a ``.nv.info`` section.

    An entry has a format byte, an attribute byte, and two bytes with the value, or in format 4 the length of the value,
    which follows.
    """
    data, at = section.data, 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        yield attribute, data[at + 4 : at + 4 + size] if form == LONG_FORM else data[at + 2 : at + 4]
        at += 4 + (size if form == LONG_FORM else 0)


def check_constants(kernel: str, specs: Mapping[str, Array], declared: Mapping[str, int]) -> None:
    """Checks that the source declares, for each array in constant memory, a variable of its name that is large enough.

    Raises:
        TrialFailure: definition_failed, with the name and both sizes.
    """
    for name, spec in specs.items():
        if not spec.constant:
            continue
        if name not in declared:
            has = ", ".join(name for name in declared if name != BEYOND_CONSTANTS) or "none"
            why = f"{name} is array_constant(), but the source declares no such variable (it has {has}); declare it as"
            why += f" __constant__ {name}[..], outside of namespaces and not initialised"
            raise TrialFailure(Status.DEFINITION_FAILED, f"{kernel}: {why}")
        if declared[name] < spec.n_bytes:
            why = f"__constant__ {name} has {declared[name]} bytes in the source, the array {spec.n_bytes}"
            why += f" ({spec.dtype} {list(spec.shape)}); declare it as large"
            raise TrialFailure(Status.DEFINITION_FAILED, f"{kernel}: {why}")


def check_structures(kernel: str, cubin: bytes, arguments: Mapping[str, object]) -> None:
    """Checks that structures have the size that the source states; ``arguments`` are in the order of the signature.

    Raises:
        TrialFailure: launch_failed, with the name and both sizes.
    """
    if not any(isinstance(value, np.void) for value in arguments.values()):
        return
    for (name, value), size in zip(arguments.items(), parameter_bytes(cubin, kernel), strict=False):
        if isinstance(value, np.void) and value.itemsize != size:
            why = f"{name} is a structure of {value.itemsize} bytes, {size} in the source"
            raise TrialFailure(Status.LAUNCH_FAILED, f"{kernel}: {why}; give both the same fields and alignment")


def as_passed(value: object) -> Any:
    """Returns a scalar in the form that CuPy passes by value: a structure becomes an array of one element."""
    return np.asarray(value) if isinstance(value, np.void) else value
