"""Reads the parameters of a ``__global__`` function from the syntax tree of CUDA."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from tree_sitter import Node

from ..core.errors import UsageError
from .syntax import CLASSES, Item, last_identifier, listed_in, text_of, walk

NOT_OF_TYPE = re.compile(r"\b(?:volatile|typename|struct|class|enum|union|const|register)\b|\b(?:cuda::)?std::|^\s*::")
LENGTHS = ("unsigned", "signed", "long", "short", "int", "char")  # words of integer types, in any order
MOST_ALIASES = 32  # longest chain of aliases
SPELLINGS = {  # NumPy type of the value that is passed for a scalar argument -> its types in C++
    "?": ("bool",),
    "b": ("char", "signed char", "int8_t"),
    "B": ("unsigned char", "uint8_t"),
    "h": ("short", "int16_t"),
    "H": ("unsigned short", "uint16_t"),
    "i": ("int", "int32_t", "signed", "signed int"),
    "I": ("unsigned", "unsigned int", "uint", "uint32_t"),
    "q": ("long long", "long", "int64_t", "ptrdiff_t"),
    "Q": ("unsigned long long", "unsigned long", "uint64_t", "size_t", "cudaTextureObject_t", "cudaSurfaceObject_t"),
    "e": ("half", "__half"),
    "f": ("float",),
    "d": ("double",),
}  # handles of textures and surfaces are there, too: a kernel may leave them unused
KINDS = {name: kind for kind, names in SPELLINGS.items() for name in names}

VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double|half|__half)([1-4])")
COMPLEX = {
    "cuComplex": "float",
    "cuFloatComplex": "float",
    "cuDoubleComplex": "double",
    "complex<float>": "float",  # both of std and of cuda::std
    "complex<double>": "double",
    "thrust::complex<float>": "float",
    "thrust::complex<double>": "double",
}
UNSIGNED = {name: f"unsigned {name.removeprefix('u')}" for name in ("uchar", "ushort", "ulong", "ulonglong")}
UNSIGNED |= {"longlong": "long long", "unsigned longlong": "unsigned long long"}
POINTER_OF_CUDA = {"cudaPitchedPtr": "ptr", "cudaArray_t": "array", "cudaMemcpy3DParms": "srcPtr.ptr"}
HALVES = ("half", "__half")  # also accepted as their bits, in uint16, like bfloat16


@dataclass(frozen=True)
class CudaParameter:
    """A parameter of the function."""

    name: str
    type: str  # without qualifiers, and without the pointer
    is_array: bool
    is_const: bool  # an array's elements are const
    pointers: tuple[str, ...] = ()  # those in it, to memory that only the source's own host code can name

    def dtype(self) -> np.dtype[np.generic] | None:
        """Returns NumPy's type of a scalar, or None for a type that is not in KINDS."""
        return np.dtype(KINDS[self.type]) if self.type in KINDS else None

    def refuses(self, dtype: np.dtype[np.generic]) -> str | None:
        """Returns the type that an array must have, if ``dtype`` does not fit; None if it fits.

        The sign of an integer, and two floats in place of a complex number, do not matter: the bytes are the same.
        """
        vector, base = VECTOR.fullmatch(self.type), _scalar_of(self.type)
        if dtype.names is not None:
            return f"{self.type}*, not a structure" if base in KINDS and not vector and base == self.type else None
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
        if dtype.kind == "c" and expected.kind == "f":
            return f"{self.type}*: give .astype(np.complex{16 * expected.itemsize})"
        return f"{self.type}*: give .astype(np.{expected}), or .view(..) for the same bytes"


def n_bytes_of(kind: str) -> int | None:
    """Returns the size of a C++ type of KINDS, of a vector of it or of a complex number; None for other types."""
    vector = VECTOR.fullmatch(kind)
    n = int(vector[2]) if vector else 1 + (kind in COMPLEX)
    base = KINDS.get(_scalar_of(kind))
    return None if base is None else n * np.dtype(base).itemsize


def _scalar_of(kind: str) -> str:
    """Returns the type of a vector's or a complex number's parts, or the type itself."""
    vector = VECTOR.fullmatch(kind)
    base = vector[1] if vector else COMPLEX.get(kind, kind)
    return UNSIGNED.get(UNSIGNED.get(base, base), UNSIGNED.get(base, base))


def parameters_of(
    function: Item, values: Mapping[str, str], found: Sequence[Item], where: str
) -> tuple[CudaParameter, ...]:
    """Returns the parameters of a function.

    Args:
        values: values of the parameters of its template, by name.
        found: the items of the source, among them the types.

    Raises:
        UsageError: for a function with a variable number of parameters.
    """
    assert function.function is not None
    nodes = listed_in(function.function, "parameters")
    if len(nodes) == 1 and text_of(nodes[0]) == "void":
        return ()
    if not all(node.type in ("parameter_declaration", "optional_parameter_declaration") for node in nodes):
        why = "takes any number of arguments: give a kernel with a list of parameters"
        if "..." not in (said := text_of(function.function.child_by_field_name("parameters"))):
            why = f"has the parameters {' '.join(said.split())}: is a macro of the call called as one of them?"
        raise UsageError(f"{where} {why}")
    aliases = aliases_in(found)
    parameters = [_parameter(node, number, values, aliases) for number, node in enumerate(nodes)]
    return tuple(replace(each, pointers=each.pointers or (*_pointers_in(each.type, found),)) for each in parameters)


def types_of(function: Item) -> str:
    """Returns the types of a function's parameters as the source writes them: ``float*, const int``."""
    assert function.function is not None
    return ", ".join(_without_name(node) for node in listed_in(function.function, "parameters"))


def aliases_in(items: Iterable[Item]) -> dict[str, str]:
    """Returns the aliases that ``using`` and ``typedef`` declare: name -> type."""
    aliases: dict[str, str] = {}
    for item in items:
        node = item.inner
        kind = node.child_by_field_name("type")
        if kind is None or item.template is not None or "{" in text_of(kind):
            continue
        if node.type == "alias_declaration":
            aliases.update(dict.fromkeys(item.names, text_of(kind)))
        elif node.type == "type_definition":
            words = " ".join(text_of(child) for child in node.children if child.type == "type_qualifier")
            for declarator in node.children_by_field_name("declarator"):
                if declarator.type in ("type_identifier", "pointer_declarator", "primitive_type"):
                    stars = "*" * text_of(declarator).count("*")
                    aliases[last_identifier(declarator)] = f"{words} {text_of(kind)}{stars}"
    return aliases


def _parameter(node: Node, number: int, values: Mapping[str, str], aliases: Mapping[str, str]) -> CudaParameter:
    name = _name_of(node)
    kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
    inner = [each.type for each in walk(declarator)] if declarator is not None else []
    if any(each.endswith("function_declarator") for each in inner):
        return CudaParameter(text_of(name) if name else f"argument_{number}", _without_name(node), False, False)
    words = [text_of(child) for child in node.children if child.type == "type_qualifier"]
    text = _meant(text_of(kind), values, aliases)
    pointers = sum(each.endswith(("pointer_declarator", "array_declarator", "reference_declarator")) for each in inner)
    stars = sum(each.endswith("pointer_declarator") for each in inner) + text[len(text.rstrip("* ")) :].count("*")
    is_array_of_pointers = "pointer_declarator" in inner[:1] and "array_declarator" in inner
    is_const = "const" in words or re.search(r"\bconst\b(?![^<]*>)", text.partition("*")[0]) is not None
    return CudaParameter(
        name=text_of(name) if name else f"argument_{number}",
        type=plain_type(text.rstrip("* ")),
        is_array=pointers > 0 or text.rstrip().endswith("*"),
        is_const=is_const,
        pointers=(text_of(name),) if name and (stars > 1 or is_array_of_pointers) else (),
    )


def _pointers_in(kind: str, found: Sequence[Item], within: tuple[str, ...] = ()) -> Iterator[str]:
    """Yields the names of the pointers that a structure of the source has, also in its members."""
    kind = kind.partition("<")[0].rpartition("::")[2]
    if kind in POINTER_OF_CUDA:
        yield POINTER_OF_CUDA[kind]
    known = [item.inner for item in found if kind in item.names] or [*_classes_called(kind, found)]
    for node in (node for each in known if kind not in within for node in walk(each)):
        if node.type == "field_declaration" and (kept := node.children_by_field_name("declarator")):
            inner = [each.type for declarator in kept for each in walk(declarator)]
            if "function_declarator" not in inner and "pointer_declarator" in inner:
                yield from map(last_identifier, kept)
            elif (member := node.child_by_field_name("type")) is not None:
                inside = _pointers_in(text_of(member), found, (*within, kind))
                yield from (f"{last_identifier(kept[0])}.{pointer}" for pointer in inside)


def _classes_called(name: str, found: Sequence[Item]) -> Iterator[Node]:
    """Yields the classes of this name inside other ones."""
    for node in (node for item in found if item.is_class for node in walk(item.inner)):
        called = node.child_by_field_name("name") if node.type in CLASSES else None
        if called is not None and text_of(called) == name:
            yield node


def _name_of(node: Node) -> Node | None:
    declarator = node.child_by_field_name("declarator")
    return next((each for each in walk(declarator) if each.type == "identifier"), None) if declarator else None


def _without_name(node: Node) -> str:
    """Returns a parameter's type: the parameter without its name and its default value."""
    default, name = node.child_by_field_name("default_value"), _name_of(node)
    text, begin = text_of(node), node.start_byte
    if default is not None:
        text = text[: default.start_byte - begin].rstrip().removesuffix("=").rstrip()
    if name is not None:
        text = text[: name.start_byte - begin] + text[name.end_byte - begin :]
    return " ".join(text.replace("__grid_constant__", " ").split())


def _meant(text: str, values: Mapping[str, str], aliases: Mapping[str, str]) -> str:
    """Returns a type in which template parameters and aliases are replaced by their meaning."""
    text = re.sub(r"\b\w+\b", lambda match: values.get(match[0], match[0]), text)
    for _ in range(MOST_ALIASES):
        plain = re.sub(r"\bconst\b", " ", text).strip().rstrip("* ").removeprefix("typename ").strip()
        meaning = aliases.get(plain.rpartition("::")[2] if "<" not in plain else plain)
        if meaning is None or meaning == plain:
            break
        text = text.replace(plain, meaning)
    return text


def plain_type(text: str) -> str:
    """Returns a type without qualifiers; words of integer types are in the usual order."""
    words = NOT_OF_TYPE.sub(" ", text).split()
    if words and set(words) <= set(LENGTHS):
        unsigned = ["unsigned"] if "unsigned" in words else []
        size = [word for word in words if word in ("long", "short", "char")]
        signed = ["signed"] if "signed" in words and "char" in size else []
        words = [*unsigned, *signed, *size] if size else [*unsigned, "int"]
    elif set(words) == {"long", "double"}:
        words = ["long", "double"]
    return " ".join(words)
