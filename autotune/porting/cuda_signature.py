"""Reads the parameters of a ``__global__`` function from CUDA source."""

import re
from dataclasses import dataclass

import numpy as np

from ..core.errors import UsageError

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
BOUNDS = re.compile(r"__launch_bounds__\s*\([^()]*(\([^()]*\)[^()]*)*\)")
QUALIFIERS = {"const", "volatile", "restrict", "__restrict__", "__restrict", "__grid_constant__", "struct"}
KINDS = {  # C++ types that a scalar argument may have, and those of NumPy that they are passed from
    "bool": "?",
    "char": "b",
    "signed char": "b",
    "int8_t": "b",
    "unsigned char": "B",
    "uint8_t": "B",
    "short": "h",
    "int16_t": "h",
    "unsigned short": "H",
    "uint16_t": "H",
    "int": "i",
    "int32_t": "i",
    "signed": "i",
    "signed int": "i",
    "unsigned": "I",
    "unsigned int": "I",
    "uint": "I",
    "uint32_t": "I",
    "long long": "q",
    "long": "q",
    "int64_t": "q",
    "ptrdiff_t": "q",
    "unsigned long long": "Q",
    "unsigned long": "Q",
    "uint64_t": "Q",
    "size_t": "Q",
    "half": "e",
    "__half": "e",
    "float": "f",
    "double": "d",
}


VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double|half|__half)([1-4])")
COMPLEX = {
    "cuComplex": "float",
    "cuFloatComplex": "float",
    "cuDoubleComplex": "double",
    "cuda::std::complex<float>": "float",
    "cuda::std::complex<double>": "double",
}
UNSIGNED = {name: f"unsigned {name.removeprefix('u')}" for name in ("uchar", "ushort", "ulong", "ulonglong")}
UNSIGNED |= {"longlong": "long long", "unsigned longlong": "unsigned long long"}
HALVES = ("half", "__half")  # also given as their bits, in uint16, as bfloat16 is


@dataclass(frozen=True)
class CudaParameter:
    """A parameter of the function."""

    name: str
    type: str  # without qualifiers, and without the pointer
    is_array: bool
    is_const: bool  # what an array points to is not written

    def dtype(self) -> np.dtype[np.generic] | None:
        """Returns NumPy's type of a scalar, or None for a type that is not known here."""
        return np.dtype(KINDS[self.type]) if self.type in KINDS else None

    def refuses(self, dtype: np.dtype[np.generic]) -> str | None:
        """Returns what the elements of an array must be, unless those of ``dtype`` are; None: they may be.

        Signs of integers, and whether two floats are one complex number, make no difference to the bytes.
        """
        vector = VECTOR.fullmatch(self.type)
        base = vector[1] if vector else COMPLEX.get(self.type, self.type)
        base = UNSIGNED.get(UNSIGNED.get(base, base), UNSIGNED.get(base, base))
        if dtype.names is not None:
            return f"{self.type}*, no structure" if base in KINDS and not vector and base == self.type else None
        if (base in HALVES or "bfloat16" in base) and dtype == np.uint16:
            return None
        if "bfloat16" in base:
            return None if dtype.name == "bfloat16" else f"{self.type}*: give ml_dtypes.bfloat16, or its bits in uint16"
        if base not in KINDS:
            return None  # a name that the source defines
        expected = np.dtype(KINDS[base])
        size = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
        kind = {"c": "f", "u": "i", "b": "i"}.get(dtype.kind, dtype.kind)
        if size == expected.itemsize and kind == {"u": "i", "b": "i"}.get(expected.kind, expected.kind):
            return None
        return f"{self.type}*: give .astype(np.{expected}), or .view(..) for the same bytes"


def parameters(source: str, name: str) -> tuple[CudaParameter, ...]:
    """Returns the parameters of the ``__global__`` function ``name``.

    Raises:
        UsageError: when there is no such function, or it is a template.
    """
    text = BOUNDS.sub(" ", COMMENT.sub(" ", source))
    found = re.search(rf"__global__\b(?P<between>[^;{{}}]*?)\b{re.escape(name)}\s*\((?P<list>[^{{;]*?)\)\s*\{{", text)
    if found is None:
        known = ", ".join(re.findall(r"__global__[^;{}]*?\b(\w+)\s*\([^{;]*\)\s*\{", text)) or "none"
        raise UsageError(f"the source has no kernel {name!r}; it has {known}")
    if re.search(r"\btemplate\s*<[^;{}]*>\s*$", text[: found.start()]):
        raise UsageError(f"{name} is a template: give a kernel without parameters in <>, one that calls it")
    return tuple(_parameter(part, number) for number, part in enumerate(_split(found["list"])))


def _split(text: str) -> list[str]:
    """Splits at commas that are not inside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "<([") - (char in ">)]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part.strip() not in ("", "void")]


def _parameter(text: str, number: int) -> CudaParameter:
    before, star, after = text.partition("*")
    is_array = bool(star) or "[" in text
    text = re.sub(r"\[[^\]]*\]", " ", before + " " + after if star else text)
    words = [word for word in re.findall(r"[\w:<>]+", text)]
    is_const = "const" in re.findall(r"\w+", before if star else text)
    words = [word for word in words if word not in QUALIFIERS]
    name = words.pop() if len(words) > 1 and " ".join(words) not in KINDS else f"argument_{number}"
    if not name.isidentifier():
        name = f"argument_{number}"
    return CudaParameter(name, " ".join(words), is_array, is_const)
