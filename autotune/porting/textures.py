"""Finds code that uses textures and surfaces; they are not supported, since arrays cannot be bound to them."""

import re
from collections.abc import Collection, Sequence

from tree_sitter import Node

from .syntax import NAME_NODES, Item, listed_in, text_of, walk

TEXTURE = re.compile(r"cuda(?:Texture|Surface)Object_t|(?:tex|surf)(?:1D|2D|3D|Cubemap)\w*")
# types of variables that functions name
TEXTURE_TYPES = frozenset(("texture", "surface", "cudaTextureObject_t", "cudaSurfaceObject_t"))


def textured(items: Collection[Item]) -> dict[Item, str]:
    """Returns the functions, types and variables that use textures, each with the name that shows it."""
    declared = (item for item in items if item.inner.type == "declaration" and item.function is None)
    variables = {name for item in declared if item.uses & TEXTURE_TYPES for name in item.names}
    shown = {}
    for item in items:
        words = [name for name in item.uses if TEXTURE.fullmatch(name) or name in variables]
        is_type = bool(item.names) and item.inner.type in ("struct_specifier", "class_specifier")
        if item.function is not None and TEXTURE_TYPES.issuperset(words):
            words = words if _uses_parameter(item, item.function) else []
        if words and (item.function is not None or is_type or variables.issuperset(item.names)):
            shown[item] = min(words)
    return shown


def _uses_parameter(item: Item, function: Node) -> bool:
    """Returns whether a function's body has a texture, or names a parameter that is one."""
    body = item.inner.child_by_field_name("body")
    if body is None:
        return False
    within = {text_of(node) for node in walk(body) if node.type in NAME_NODES}
    parameters = [node for node in listed_in(function, "parameters") if TEXTURE.search(text_of(node))]
    named = {text_of(node) for each in parameters for node in walk(each) if node.type == "identifier"}
    return bool(within & (TEXTURE_TYPES | named))


def used_by(kernel: Item, found: Sequence[Item], also: Sequence[str]) -> list[Item]:
    """Returns the kernel, and all items that it uses by name, directly or indirectly; it uses the names ``also``."""
    by_name: dict[str, list[Item]] = {}
    for item in found:
        if not item.is_kernel:
            for name in item.names:
                by_name.setdefault(name, []).append(item)
    items, unread = {kernel: None}, [kernel]
    while unread:
        item = unread.pop()
        for name in (*item.uses_of_others, *(also if item is kernel else ())):
            more = [item for item in by_name.get(name, ()) if item not in items]
            items.update(dict.fromkeys(more))
            unread += more
    return list(items)


def with_callers(left_out: Sequence[Item], items: Collection[Item]) -> set[Item]:
    """Returns the removed items, and functions and variables that use a name that only removed items declare."""
    gone = set(left_out)
    while True:
        present = {name for item in items if item not in gone for name in item.names}
        missing = {name for item in gone for name in item.names} - present
        users = [item for item in items if item.function or item.inner.type == "declaration"]
        more = {item for item in users if item not in gone and item.uses_of_others & missing}
        if not more:
            return gone
        gone |= more
