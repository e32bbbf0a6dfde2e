"""Reads parts of C++ in a syntax tree: arguments, parts of a dim3, initial values of variables."""

from collections.abc import Iterator

from tree_sitter import Node

from .syntax import last_identifier, syntax_tree, text_of


class Unknown(Exception):
    """A part of a launch that does not follow from what the file says."""


def at_file_scope(node: Node) -> Iterator[Node]:
    """Yields what stands at the scope of the file, and of its namespaces."""
    for child in node.named_children:
        if child.type in ("namespace_definition", "linkage_specification", "declaration_list"):
            yield from at_file_scope(child)
        else:
            yield child


def child_of_type(node: Node, kind: str) -> Node | None:
    """Returns the first child of a type, or None."""
    return next((child for child in node.named_children if child.type == kind), None)


def type_of(node: Node) -> str:
    """Returns the type of a declaration; "" if it has none."""
    return text_of(node.child_by_field_name("type"))


def arguments_of(node: Node) -> list[Node]:
    """Returns what a call, or a variable's declaration with (..), passes."""
    listed = node.child_by_field_name("arguments") or child_of_type(node, "argument_list")
    return [each for each in listed.named_children if each.type != "comment"] if listed is not None else []


def parts_of_dim3(node: Node) -> list[Node] | None:
    """Returns the parts of ``dim3(a, b)``, ``{a, b}`` or ``(a, b)``; None for another expression."""
    function = node.child_by_field_name("function") or node.child_by_field_name("type")
    if node.type in ("argument_list", "initializer_list"):
        return list(node.named_children)
    if function is None or text_of(function) not in ("dim3", "uint3", "make_uint3"):
        return None
    value = node.child_by_field_name("value")
    return list(value.named_children) if value is not None else arguments_of(node)


def declared_values(declaration: Node) -> Iterator[tuple[tuple[str, str], Node]]:
    """Yields (name, type) of the variables in a declaration, with their initial values; they must have some."""
    for each in declaration.children_by_field_name("declarator"):
        value = each.child_by_field_name("value")
        if value is None:
            raise Unknown(f"{last_identifier(each)}, which has no initial value")
        yield (last_identifier(each), type_of(declaration)), value


def initial_values(declaration: Node, name: str) -> list[Node | None]:
    """Returns the initial value of a variable in a declaration, as a list; [None]: it has none; []: it is another's."""
    for each in declaration.children_by_field_name("declarator"):
        if each.type == "identifier" and text_of(each) == name:
            return [None]
        if last_identifier(each) != name:
            continue
        if each.type == "function_declarator":  # dim3 block(A, B), which is written like a function
            call = f"auto made = dim3{text_of(each.child_by_field_name('parameters')) or '()'};"
            made = syntax_tree(call).named_children[0].child_by_field_name("declarator")
            return [made.child_by_field_name("value") if made is not None else None]
        return [each.child_by_field_name("value")]
    return []
