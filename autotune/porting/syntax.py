"""Reads the syntax tree of preprocessed CUDA: the declarations at file and namespace scope, and the names they use."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

KERNEL = "__global__"
DEVICE_WORDS = {KERNEL, "__device__"}
MEMORY_WORDS = {"__device__", "__constant__", "__shared__", "__managed__", "__global__"}
WORD_NODES = {"type_qualifier", "storage_class_specifier", "virtual", *DEVICE_WORDS, *MEMORY_WORDS, "__host__"}
CLASSES = ("class_specifier", "struct_specifier", "union_specifier")
TYPES = (*CLASSES, "enum_specifier")
NAME_NODES = ("identifier", "type_identifier", "namespace_identifier")
DECLARATORS = (
    "pointer_declarator",
    "reference_declarator",
    "array_declarator",
    "init_declarator",
    "parenthesized_declarator",
    "attributed_declarator",
)


@dataclass(frozen=True)
class Item:
    """A declaration or a definition: a function, a variable, a type, or another statement of a scope.

    ``node`` includes the ``template <..>`` and the ``extern "C"`` in front, ``inner`` does not. ``scope``: the
    namespaces and the class around it; "" for one without a name.
    """

    node: Node
    inner: Node
    scope: tuple[str, ...]
    template: Node | None = None  # the template's parameters in <>

    @cached_property
    def words(self) -> frozenset[str]:
        """Returns the words before the type, such as ``static`` and ``__device__``."""
        return frozenset(text_of(child) for child in self.inner.children if child.type in WORD_NODES)

    @cached_property
    def function(self) -> Node | None:
        """Returns the declarator of the function that the item declares or defines, or None."""
        return function_declarator(self.inner)

    @property
    def is_kernel(self) -> bool:
        """Returns whether the item defines a ``__global__`` function."""
        return KERNEL in self.words and self.function is not None and self.inner.type == "function_definition"

    @property
    def is_device_function(self) -> bool:
        return self.function is not None and bool(self.words & DEVICE_WORDS)

    @property
    def is_class(self) -> bool:
        return self.inner.type in CLASSES

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Returns the declared names without their scope: one function, or several variables, types or enumerators."""
        if self.function is not None:
            declarator = self.function.child_by_field_name("declarator")
            return (last_identifier(declarator),) if declarator is not None else ()
        kind = self.inner.child_by_field_name("type")  # struct S {..} s; declares both S and s
        kind = self.inner if kind is None or self.inner.type in TYPES else kind
        declared = [*self.inner.children_by_field_name("declarator")]
        if kind.type in TYPES and (body := kind.child_by_field_name("body")) is not None:
            declared += [each for each in body.named_children if each.type == "enumerator"]
            declared.insert(0, kind)
        elif (name := self.inner.child_by_field_name("name")) is not None:
            return (last_identifier(name),)
        named = [each for each in declared if each.type not in TYPES or each.child_by_field_name("name") is not None]
        return tuple(last_identifier(each) for each in named)

    @property
    def variables(self) -> frozenset[str]:
        """Returns the variables that are declared together with a named type: ``struct S {..} one, two;``."""
        kind = self.inner.child_by_field_name("type")
        if self.inner.type != "declaration" or kind is None or kind.type not in TYPES:
            return frozenset()
        is_known = kind.child_by_field_name("name") is not None or kind.type not in CLASSES
        is_whole = is_known and kind.child_by_field_name("body") is not None
        return frozenset(map(last_identifier, self.inner.children_by_field_name("declarator") if is_whole else ()))

    @cached_property
    def uses(self) -> frozenset[str]:
        """Returns the names in the item, except members, and its own parameters and local variables."""
        names, own, of_scopes = set[str](), set[str](), set[str]()
        for node in walk(self.node):
            if node.type in NAME_NODES:
                is_of_scope = node.parent is not None and node.parent.type == "qualified_identifier"
                found = of_scopes if is_of_scope else own if _is_declared(node, self.inner) else names
                found.add(text_of(node))
        return frozenset((names - own) | of_scopes)

    @cached_property
    def uses_of_others(self) -> frozenset[str]:
        """Returns the names in the item, including members, except those that it declares."""
        members = {text_of(node) for node in walk(self.node) if node.type == "field_identifier"}
        return (self.uses | members) - frozenset(self.names)

    @cached_property
    def methods(self) -> "tuple[Item, ...]":
        """Returns the functions in a class, and in its nested classes."""
        body = self.inner.child_by_field_name("body") if self.is_class else None
        members = _items(body, (*self.scope, *self.names)) if body is not None else ()
        return tuple(item for each in members for item in ((each,) if each.function is not None else each.methods))

    @property
    def is_constructor(self) -> bool:
        """Returns whether the item is a constructor: ``S(..)`` in the class S, or ``S::S(..)`` outside."""
        declarator = self.function.child_by_field_name("declarator") if self.function is not None else None
        if declarator is None or self.inner.child_by_field_name("type") is not None:
            return False
        scope = declarator.child_by_field_name("scope")
        around = text_of(scope).partition("<")[0] if scope is not None else (*self.scope, "")[-2 if self.scope else -1]
        return bool(self.names) and around == self.names[0]


def syntax_tree(text: str) -> Node:
    """Returns the syntax tree of preprocessed ASCII text."""
    return _parser().parse(text.encode()).root_node


def items(root: Node) -> list[Item]:
    """Returns the items at file and namespace scope, in order."""
    return list(_items(root, ()))


def _items(parent: Node, scope: tuple[str, ...]) -> Iterator[Item]:
    for node in parent.named_children:
        body = node.child_by_field_name("body")
        if node.type == "namespace_definition" and body is not None:
            name = node.child_by_field_name("name")
            yield from _items(body, (*scope, *(text_of(name).split("::") if name is not None else ("",))))
        elif node.type == "linkage_specification" and body is not None:
            if body.type == "declaration_list":
                yield from _items(body, scope)
            else:
                yield Item(node, body, scope)
        else:
            inner, template = node, None
            while inner.type == "template_declaration":
                template = inner.child_by_field_name("parameters")
                inner = next(child for child in reversed(inner.named_children))
            yield Item(node, inner, scope, template)


def function_declarator(node: Node) -> Node | None:
    """Returns the function declarator in a declaration, or None; a pointer to a function does not count."""
    at = node.child_by_field_name("declarator")
    while at is not None and at.type in ("pointer_declarator", "reference_declarator"):
        at = at.child_by_field_name("declarator") or next(iter(at.named_children), None)
    if at is None or at.type != "function_declarator":
        return None
    name = at.child_by_field_name("declarator")
    return at if name is not None and name.type != "parenthesized_declarator" else None


def last_identifier(node: Node) -> str:
    """Returns the unqualified name in a declarator or in a qualified name."""
    return text_of(last_part(node))


def last_part(node: Node) -> Node:
    """Returns the node of the unqualified name in a declarator or in a qualified name."""
    while True:
        inner = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if inner is None and node.type in DECLARATORS:
            inner = next((child for child in node.named_children if child.type != "type_qualifier"), None)
        if inner is None:
            return node
        node = inner


def walk(node: Node) -> Iterator[Node]:
    """Yields a node and all nodes below it."""
    unread = [node]
    while unread:
        found = unread.pop()
        yield found
        unread += reversed(found.children)


def text_of(node: Node | None) -> str:
    """Returns the source text of a node; "" for None."""
    return ((node and node.text) or b"").decode()


def listed_in(node: Node | None, field: str) -> list[Node]:
    """Returns what a node lists in a field, without comments; [] if it has no such field."""
    listed = node.child_by_field_name(field) if node is not None else None
    return [each for each in listed.named_children if each.type != "comment"] if listed is not None else []


def _is_declared(name: Node, whole: Node) -> bool:
    """Returns whether a name declares a parameter or a local variable."""
    node = name
    while (parent := node.parent) is not None and parent.id != whole.id:
        is_declarator = node.id in (each.id for each in parent.children_by_field_name("declarator"))
        if parent.type in DECLARATORS and (is_declarator or parent.child_by_field_name("declarator") is None):
            node = parent
        else:
            return is_declarator and parent.type != "function_declarator"
    return False


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_cuda.language()))
