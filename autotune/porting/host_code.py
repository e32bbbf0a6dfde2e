"""Separates host code, which a device's compiler refuses, from device code and from code that device code uses."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from .syntax import CLASSES, MEMORY_WORDS, Item, last_identifier, last_part, text_of, walk

LIBRARIES = ("std::", "thrust::")  # mostly host code
PLAIN_TYPES = ("primitive_type", "sized_type_specifier")
KNOWN_TYPE = re.compile(
    r"u?(?:char|short|int|long|longlong|float|double|half)[1-4]?|dim3|__half2?|u?int(?:_least|_fast)?\d+_t|"
    r"size_t|ptrdiff_t|u?intptr_t|clock_t|__?nv_\w+|cuda\w+Object_t|cu\w*Complex|curandState\w*|wmma|fragment"
)


@dataclass(frozen=True)
class HostCode:
    """The items of a source in groups: ``left_out`` is host code, ``stays`` is all else.

    ``of_device``: items that stay and become device functions. ``variables``: classes that stay without their
    variables, as in ``struct S {..} variable;``. ``used``: names that the remaining items use, in any reading.
    """

    left_out: tuple[Item, ...]
    stays: tuple[Item, ...]
    of_device: tuple[Item, ...]
    variables: tuple[Item, ...]
    used: frozenset[str]


def host_code(readings: Sequence[Sequence[Item]]) -> list[HostCode]:
    """Returns the host code in each reading of a source; an item that one reading uses stays in all of them."""
    whole = [[*items, *(method for item in items for method in item.methods)] for items in readings]
    declared = {name for items in whole for item in items for name in (*item.names, *_types_in(item))}
    candidates = [_candidates(items, declared) for items in whole]
    own = {name for items in whole for item in items if item.is_device_function for name in item.names}
    scopes = _scopes([item for items in whole for item in items], declared)
    used: set[str] = set()
    for items, host in zip(readings, candidates, strict=True):
        used.update(*(_needs(item, host, scopes) for item in items if item not in host))
    kept: set[Item] = set()
    while more := {item for host in candidates for item in host - kept if _is_used(item, used, own)}:
        kept |= more
        used.update(*(_needs(item, host, scopes) for host in candidates for item in host & more))
    return [_divided(items, host, kept, used) for items, host in zip(whole, candidates, strict=True)]


def _divided(items: Sequence[Item], host: set[Item], kept: set[Item], used: set[str]) -> HostCode:
    gone = [item for item in items if item in host - kept]
    classes = [_range(item) for item in gone if item.inner.type in CLASSES]
    # A member goes with its class.
    inside = {item for item in items if any(begin < item.node.start_byte < end for begin, end in classes)}
    return HostCode(
        left_out=tuple(item for item in gone if item not in inside),
        stays=tuple(item for item in items if item not in gone and item not in inside),
        of_device=tuple(item for item in items if item in host & kept and _becomes_device(item) and item not in inside),
        variables=tuple(item for item in items if item in host & kept and item.variables and not used & item.variables),
        used=frozenset(used),
    )


def _candidates(items: Sequence[Item], declared: set[str]) -> set[Item]:
    """Returns the items that are host code unless device code uses them, with the types that are made of such types."""
    host = {item for item in items if _is_host(item, declared)}
    types = [item for item in items if _is_type(item)]
    while True:
        names = {name for item in types if item in host for name in item.names}
        more = [item for item in types if item not in host and not names.isdisjoint(item.uses_of_others)]
        if not more:
            return host
        host.update(more)


def _is_type(item: Item) -> bool:
    return item.is_class or item.inner.type in ("type_definition", "alias_declaration")


def _is_host(item: Item, declared: set[str]) -> bool:
    """Returns whether a device's compiler may refuse the item."""
    kind = item.inner.type
    if kind in ("expression_statement", "namespace_alias_definition"):
        return item.inner.named_child_count > 0
    if kind == "using_declaration":
        return any(child.type == "qualified_identifier" for child in item.inner.named_children)
    if item.words & MEMORY_WORDS:
        return False
    if item.function is not None or kind == "template_instantiation":
        return "virtual" in item.words or not _is_defaulted(item)
    if _is_type(item):
        return any(_is_host(method, declared) for method in item.methods) or _has_unknown_types(item, declared)
    if kind != "declaration":
        return False
    type_node = item.inner.child_by_field_name("type")
    is_plain = type_node is not None and type_node.type in PLAIN_TYPES
    is_pointer = any(_is_pointer(node) for node in item.inner.children_by_field_name("declarator"))
    return not (is_plain and not is_pointer and item.words & {"const", "constexpr"})


def _is_used(item: Item, used: set[str], own: set[str]) -> bool:
    """Returns whether device code uses the item, by its name, and no device function has that name.

    Device code cannot call a function that launches kernels, and does not need explicit instances of a template.
    """
    if item.inner.type == "template_instantiation" or _launches(item):
        return False
    if item.is_constructor or any(name.startswith("operator") for name in item.names):
        return "constexpr" in item.words  # such a call does not contain the name
    if item.function is not None:
        return any(name in used and name not in own for name in item.names)
    return any(name in used for name in item.names or _last_names(item))


def _needs(item: Item, host: set[Item], scopes: set[str]) -> frozenset[str]:
    """Returns the names that an item uses. In a class, methods that are host code do not count.

    A name in a namespace outside of ``scopes``, as in ``cg::reduce``, does not belong to the source.
    """
    ranges = [_range(method) for method in item.methods if method in host]
    others = {last_part(node).id for node in _qualified(item) if _first(node) not in scopes}
    leaves = (node for node in walk(item.node) if not node.children and node.type.endswith("identifier"))
    named = {
        text_of(node)
        for node in leaves
        if node.id not in others and not any(begin <= node.start_byte < end for begin, end in ranges)
    }
    return item.uses_of_others & named


def _scopes(items: Sequence[Item], declared: set[str]) -> set[str]:
    """Returns the namespaces and types that the source declares."""
    own = {"", *(scope for item in items for scope in item.scope)}
    aliases = [item for item in items if item.inner.type == "namespace_alias_definition"]
    meant = {item.names[0]: text_of(item.inner.named_children[-1]).split("::")[0] for item in aliases}
    return own | declared - {alias for alias, name in meant.items() if name not in own}


def _qualified(item: Item) -> Iterator[Node]:
    """Yields the qualified names in an item, each as a whole."""
    for node in walk(item.node):
        if node.type == "qualified_identifier" and (node.parent is None or node.parent.type != node.type):
            yield node


def _first(name: Node) -> str:
    """Returns the first scope of a qualified name; "" for ``::name``."""
    scope = name.child_by_field_name("scope")
    return last_identifier(scope) if scope is not None else ""


def _launches(item: Item) -> bool:
    """Returns whether the item is a function that launches a kernel, ``<<<..>>>``."""
    return item.function is not None and any(node.type == "kernel_call_syntax" for node in walk(item.inner))


def _last_names(item: Item) -> tuple[str, ...]:
    """Returns the unqualified names of a using declaration: ``vector`` of ``using std::vector``."""
    return tuple(text_of(child).rpartition("::")[2] for child in item.inner.named_children)


def _becomes_device(item: Item) -> bool:
    return item.function is not None and "constexpr" in item.words and "__host__" not in item.words


def _is_pointer(declarator: Node) -> bool:
    inner: Node | None = declarator
    while inner is not None and inner.type != "pointer_declarator":
        inner = inner.child_by_field_name("declarator")
    return inner is not None


def _is_defaulted(item: Item) -> bool:
    """Returns whether the function is ``= default`` or ``= delete``; unless virtual, it works on host and device."""
    return any(child.type in ("default_method_clause", "delete_method_clause") for child in item.inner.children)


def _has_unknown_types(item: Item, declared: set[str]) -> bool:
    """Returns whether the item uses types that neither the source nor CUDA declares, such as a host library's."""
    body = item.inner.child_by_field_name("body") or item.inner.child_by_field_name("type")
    bases = [child for child in item.inner.children if child.type == "base_class_clause"]
    nodes = (node for part in (body, *bases) if part is not None for node in walk(part))
    return any(
        text_of(node).startswith(LIBRARIES) if node.type == "qualified_identifier" else not _is_known(node, declared)
        for node in nodes
        if node.type in ("qualified_identifier", "type_identifier")
    )


def _is_known(node: Node, declared: set[str]) -> bool:
    return text_of(node) in declared or KNOWN_TYPE.fullmatch(text_of(node)) is not None


def _types_in(item: Item) -> Iterator[str]:
    """Yields the names of template parameters, and of types that a class declares."""
    for node in walk(item.node):
        if node.type in ("type_definition", "alias_declaration"):
            named = node.children_by_field_name("declarator") or node.children_by_field_name("name")
            yield from map(last_identifier, named)
        elif node.type.endswith("type_parameter_declaration"):
            yield from (text_of(child) for child in node.named_children[:1])


def _range(item: Item) -> tuple[int, int]:
    return item.node.start_byte, item.node.end_byte
