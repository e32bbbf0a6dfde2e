"""Leaves out of a source what a device's compiler refuses and the kernel does not need: host code, and textures.

NVRTC takes no function and no variable without a word such as ``__device__``, called or not. A function that device
code calls stays, and the compiler says what is wrong with it; a ``constexpr`` one becomes one of the device's.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from ..core.errors import UsageError
from .preprocessing import Preprocessed
from .syntax import CLASSES, MEMORY_WORDS, Item, text_of, walk

TEXTURE = re.compile(r"cuda(?:Texture|Surface)Object_t|(?:tex|surf)(?:1D|2D|3D|Cubemap)\w*")
TEXTURE_TYPES = ("texture", "surface")  # texture<float> t: its variable is what functions name
PLAIN_TYPES = ("primitive_type", "sized_type_specifier")
MOST_NAMED = 6  # things that are left out, by name


@dataclass(frozen=True)
class DeviceCode:
    """A source as it is compiled: ``text`` has blanks for what is left out, which ``told`` says, one line each."""

    text: str
    told: tuple[str, ...]


def device_code(text: str, given: Preprocessed, found: Sequence[Item], kernel: Item, file: str) -> DeviceCode:
    """Returns the source without host code, and without other kernels that use textures.

    Args:
        text: of which ``given`` is what the preprocessor leaves.
        found: what stands at file and namespace scope there.

    Raises:
        UsageError: when the kernel, or what it calls, uses textures.
    """
    textured = _textured(found)
    reached = _reached(kernel, found)
    for item in reached:
        if item in textured:
            what = next(iter(sorted(item.names)), file)
            line = given.line(item.inner.start_byte)
            raise UsageError(
                f"{file}:{line}: {what} uses textures ({textured[item]}), which are not served: read a const "
                "__restrict__ pointer instead, through __ldg() or as it is"
            )
    with_textures = _with_callers(list(textured), found)
    kept, left_out = _sorted_out([item for item in found if item not in with_textures])
    cuts = [(item, span) for item in (*with_textures, *left_out) if (span := given.span(*_range(item))) is not None]
    annotated = [given.span(item.inner.start_byte, item.inner.end_byte) for item in kept if _is_constexpr(item)]
    blanked = _blanked(text, [span for _, span in cuts], [span[0] for span in annotated if span is not None])
    told = (
        _told(file, "since it is host code", [item for item, _ in cuts if item not in with_textures]),
        _told(file, "since textures are not served", [item for item, _ in cuts if item in with_textures]),
    )
    return DeviceCode(blanked, tuple(filter(None, told)))


# ---------------------------------------------------------------------- what is left out
def _sorted_out(found: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Returns the host code that device code uses, and all other host code."""
    of_classes = [method for item in found if item.is_class for method in item.methods]
    candidates = [item for item in (*found, *of_classes) if _is_host(item)]
    own = {name for item in (*found, *of_classes) if item.is_device_function for name in item.names}
    used: set[str] = set()
    for item in found:
        if item not in candidates:
            used |= _needs(item, candidates)
    kept: list[Item] = []
    while more := [item for item in candidates if item not in kept and _is_used(item, used, own)]:
        kept += more
        used |= {name for item in more for name in _needs(item, candidates)}
    return kept, [item for item in candidates if item not in kept and not _is_inside(item, candidates, kept)]


def _is_host(item: Item) -> bool:
    """Returns whether a device's compiler refuses it, or may."""
    kind = item.inner.type
    if kind in ("expression_statement", "namespace_alias_definition"):
        return item.inner.named_child_count > 0
    if kind == "using_declaration":
        return any(child.type == "qualified_identifier" for child in item.inner.named_children)
    if item.words & MEMORY_WORDS or "virtual" in item.words:
        return False
    if item.function is not None:
        return not _is_defaulted(item)
    if item.is_class:
        return any(_is_host(method) for method in item.methods) or _has_host_types(item)
    if kind != "declaration":
        return False
    type_node = item.inner.child_by_field_name("type")
    is_plain = type_node is not None and type_node.type in PLAIN_TYPES
    is_pointer = any(_is_pointer(node) for node in item.inner.children_by_field_name("declarator"))
    return not (is_plain and not is_pointer and item.words & {"const", "constexpr"})


def _is_pointer(declarator: Node) -> bool:
    inner: Node | None = declarator
    while inner is not None and inner.type != "pointer_declarator":
        inner = inner.child_by_field_name("declarator")
    return inner is not None


def _is_defaulted(item: Item) -> bool:
    """Returns whether it is ``= default`` or ``= delete``, which is of host and device alike."""
    return any(child.type in ("default_method_clause", "delete_method_clause") for child in item.inner.children)


def _has_host_types(item: Item) -> bool:
    return any(node.type == "qualified_identifier" and text_of(node).startswith("std::") for node in walk(item.node))


def _is_used(item: Item, used: set[str], own: set[str]) -> bool:
    """Returns whether device code uses it: by its name, unless a function of the device has that name."""
    if item.is_constructor or any(name.startswith("operator") for name in item.names):
        return "constexpr" in item.words  # the names do not say who calls it
    if item.function is not None:
        return any(name in used and name not in own for name in item.names)
    return any(name in used for name in item.names or _last_names(item))


def _last_names(item: Item) -> tuple[str, ...]:
    """Returns the names that ``using std::vector`` brings."""
    return tuple(text_of(child).rpartition("::")[2] for child in item.inner.named_children)


def _own_uses(item: Item) -> frozenset[str]:
    return item.uses - frozenset(item.names)


def _needs(item: Item, candidates: Sequence[Item]) -> set[str]:
    """Returns the names that it uses; of a class not those in its methods that are host code."""
    ranges = [_range(method) for method in item.methods if method in candidates]
    leaves = (node for node in walk(item.node) if not node.children and node.type.endswith("identifier"))
    outside = (node for node in leaves if not any(begin <= node.start_byte < end for begin, end in ranges))
    return {text_of(node) for node in outside} & _own_uses(item) if ranges else set(_own_uses(item))


def _is_inside(item: Item, candidates: Sequence[Item], kept: Sequence[Item]) -> bool:
    """Returns whether a class that is left out has it."""
    begin, end = _range(item)
    around = (each for each in candidates if each.inner.type in CLASSES and each not in kept and each is not item)
    return any(_range(each)[0] <= begin and end <= _range(each)[1] for each in around)


def _is_constexpr(item: Item) -> bool:
    return item.function is not None and "constexpr" in item.words and "__host__" not in item.words


# ---------------------------------------------------------------------- textures
def _textured(found: Sequence[Item]) -> dict[Item, str]:
    """Returns what uses textures, with the word that shows it."""
    variables = {
        name
        for item in found
        if item.inner.type == "declaration" and item.uses & set(TEXTURE_TYPES)
        for name in item.names
    }
    shown = {}
    for item in found:
        words = [name for name in item.uses if TEXTURE.fullmatch(name) or name in variables]
        words += [name for name in TEXTURE_TYPES if name in item.uses and set(item.names) & variables]
        if words and (item.function is not None or set(item.names) & variables):
            shown[item] = min(words)
    return shown


def _with_callers(left_out: list[Item], found: Sequence[Item]) -> list[Item]:
    """Returns what is left out, and the functions that have what is left out by no other name."""
    while True:
        there = {name for item in found if item not in left_out for name in item.names}
        gone = {name for item in left_out for name in item.names} - there
        more = [item for item in found if item.function and item not in left_out and _own_uses(item) & gone]
        if not more:
            return left_out
        left_out = [*left_out, *more]


def _reached(kernel: Item, found: Sequence[Item]) -> list[Item]:
    """Returns the kernel, and all that it uses by name, directly or not."""
    by_name: dict[str, list[Item]] = {}
    for item in found:
        if not item.is_kernel:
            for name in item.names:
                by_name.setdefault(name, []).append(item)
    reached, unread = [kernel], [kernel]
    while unread:
        for name in unread.pop().uses:
            for item in by_name.get(name, ()):
                if item not in reached:
                    reached.append(item)
                    unread.append(item)
    return reached


# ---------------------------------------------------------------------- text
def _range(item: Item) -> tuple[int, int]:
    return item.node.start_byte, item.node.end_byte


def _blanked(text: str, spans: Sequence[tuple[int, int]], annotated: Sequence[int]) -> str:
    """Returns text with blanks in spans, but for lines of the preprocessor, and ``__device__`` at some places."""
    chars = list(text)
    kept = bytearray(len(text) + 1)
    for begin, end in _directives(text):
        kept[begin:end] = b"\1" * (end - begin)
    for begin, end in spans:
        for at in range(begin, end):
            if chars[at] != "\n" and not kept[at]:
                chars[at] = " "
    for at in annotated:
        chars[at] = f"__device__ {chars[at]}"
    return "".join(chars)


def _directives(text: str) -> Iterator[tuple[int, int]]:
    """Yields where the lines of the preprocessor begin and end."""
    at, is_inside, begin = 0, False, 0
    for line in text.split("\n"):
        if not is_inside and line.lstrip().startswith("#"):
            is_inside, begin = True, at
        at += len(line) + 1
        if is_inside and not line.endswith("\\"):
            is_inside = False
            yield begin, at


def _told(file: str, why: str, left_out: Sequence[Item]) -> str:
    """Returns a line on what is left out; "" if that is nothing."""
    functions = list(dict.fromkeys(name for item in left_out if item.function is not None for name in item.names))
    others = len([item for item in left_out if item.function is None])
    if not functions and not others:
        return ""
    named = ", ".join(functions[:MOST_NAMED]) + (", .." if len(functions) > MOST_NAMED else "")
    counted = f"{len(functions)} function{'s' if len(functions) != 1 else ''}" if functions else ""
    more = f"{others} declaration{'s' if others != 1 else ''}" if others else ""
    counts = " and ".join(filter(None, (counted, more)))
    return f"left out of {file}, {why}: {f'{named} ({counts})' if named else counts}"
