"""Finds the kernel with a given name: a plain function, a function in a namespace, or an instance of a template."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from ..core.errors import UsageError
from .cuda_signature import CudaParameter, parameters_of, types_of
from .syntax import Item, text_of

PATH = r"(?:::)?(?P<path>\w+(?:::\w+)*)\s*(?:<(?P<arguments>.*)>)?"
EXPRESSION = re.compile(rf"\s*{PATH}\s*", re.DOTALL)
CAST = re.compile(
    rf"\s*static_cast\s*<\s*void\s*\(\s*\*\s*\)\s*\((?P<types>.*)\)\s*>\s*\(\s*&?\s*{PATH}\s*\)\s*", re.DOTALL
)
WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class KernelName:
    """The parts of a name expression, ``fir::scale<float, tile>``, possibly in a cast that selects an overload.

    ``arguments``: the template arguments; None: the name has no <>. ``types``: the parameter types in the cast; None:
    there is no cast.
    """

    path: tuple[str, ...]
    arguments: tuple[str, ...] | None
    types: str | None = None

    @property
    def last(self) -> str:
        """Returns the name without namespaces."""
        return self.path[-1]


@dataclass(frozen=True)
class NamedKernel:
    """A kernel of a source. ``function``: its name expression for the compiler; "": the plain name is enough."""

    item: Item
    function: str
    parameters: tuple[CudaParameter, ...]


def kernel_name(text: str) -> KernelName:
    """Returns the parts of a name expression.

    Raises:
        UsageError: for a text that is not a name expression.
    """
    if match := EXPRESSION.fullmatch(text):
        return _name(match["path"], match["arguments"])
    if match := CAST.fullmatch(text):
        return _name(match["path"], match["arguments"], match["types"])
    raise UsageError(
        f"the kernel's name {text!r} is not a name in CUDA, such as scale, fir::scale or scale<float, block_size_x>"
    )


def named_kernel(found: Sequence[Item], name: KernelName, macros: Mapping[str, object], file: str) -> NamedKernel:
    """Returns the kernel with that name.

    Args:
        found: the items that the source ``file`` declares.
        macros: values of macros; template arguments may be names of macros.

    Raises:
        UsageError: if there is no such kernel, or several, or the arguments do not fit its template.
    """
    item = _only(found, name, file)
    values = _template_values(item, name, macros, file)
    parameters = parameters_of(item, values, found, name.last)
    function = "::".join((*filter(None, item.scope), name.last))
    if item.template is not None:
        function += f"<{', '.join(name.arguments or ())}>"
    alike = [each for each in found if each.is_device_function and name.last in each.names and not _is_special(each)]
    if any(each.scope == item.scope and _tight(types_of(each)) != _tight(types_of(item)) for each in alike):
        named = _template_values(item, name, {}, file)  # macros depend on the config, so their names stay
        types = WORD.sub(lambda word: named.get(word[0], word[0]), types_of(item))
        function = f"static_cast<void (*)({types})>({function})"
    return NamedKernel(item, "" if function == name.last else function, parameters)


def _only(items: Sequence[Item], name: KernelName, file: str) -> Item:
    """Returns the one definition with this name; raises UsageError if there is none, or several."""
    kernels = [each for each in items if each.is_kernel and not _is_special(each)]
    alike = [each for each in kernels if name.last in each.names and _ends(each, name.path[:-1])]
    exact = [each for each in alike if tuple(filter(None, each.scope)) == name.path[:-1]]
    several = exact or alike
    if name.arguments is not None:
        several = [each for each in several if each.template is not None] or several
    if name.types is not None:
        several = [each for each in several if _tight(types_of(each)) == _tight(name.types)]
    if not alike:
        names = ", ".join(dict.fromkeys("::".join((*filter(None, each.scope), *each.names)) for each in kernels))
        raise UsageError(f"{file} has no kernel {'::'.join(name.path)!r}; it has {names or 'none'}")
    if len(several) != 1:
        paths = {each.node.id: "::".join((*filter(None, each.scope), name.last)) for each in alike}
        is_unique = len(set(paths.values())) == len(alike)
        given = f"<{', '.join(name.arguments)}>" if name.arguments is not None else ""
        casts = [f"static_cast<void (*)({types_of(each)})>({paths[each.node.id]}{given})" for each in alike]
        choices = " or ".join(paths.values() if is_unique else casts)
        raise UsageError(f"{file} has {len(alike)} kernels {name.last!r}: say which one as {choices}")
    return several[0]


def _name(path: str, arguments: str | None, types: str | None = None) -> KernelName:
    return KernelName(tuple(path.split("::")), None if arguments is None else split_at_commas(arguments), types)


def _ends(item: Item, path: tuple[str, ...]) -> bool:
    """Returns whether ``path`` are the innermost namespaces around the item."""
    scope = tuple(filter(None, item.scope))
    return not path or scope[-len(path) :] == path


def _is_special(item: Item) -> bool:
    """Returns whether the item is a specialization of a template: ``template <> .. f<float>(..)``."""
    declarator = item.function.child_by_field_name("declarator") if item.function is not None else None
    return declarator is not None and declarator.type == "template_function"


def _template_values(item: Item, name: KernelName, macros: Mapping[str, object], file: str) -> dict[str, str]:
    """Returns the values of the parameters of a kernel's template, by name."""
    if item.template is None:
        if name.arguments is not None:
            raise UsageError(f"{name.last} of {file} is not a template: name it without <{', '.join(name.arguments)}>")
        return {}
    declared = [node for node in item.template.named_children if node.type != "comment"]
    names = [_declared_name(node) for node in declared]
    arguments = list(name.arguments or ())
    defaults = [_default(node) for node in declared]
    is_open = any("variadic" in node.type for node in declared)
    lacking = [names[i] for i in range(len(arguments), len(declared)) if defaults[i] is None]
    if (lacking or len(arguments) > len(declared)) and not is_open:
        parameters = ", ".join(" ".join(text_of(node).split()) for node in declared)
        wrong = f"lacks {', '.join(lacking)}" if lacking else f"has {len(arguments)} arguments for {len(declared)}"
        example = f"{name.last}<{', '.join(names)}>"
        raise UsageError(
            f"{name.last} of {file} is a template <{parameters}>: name an instance of it as {example}; the arguments "
            f"in <> may be tuned parameters. The given name {wrong}"
        )
    values: dict[str, str] = {}
    for i, parameter in enumerate(names[: max(len(arguments), len(declared))]):
        text = arguments[i] if i < len(arguments) else defaults[i] or ""
        text = WORD.sub(lambda word: str(values.get(word[0], macros.get(word[0], word[0]))), text)
        values[parameter] = text
    return values


def _declared_name(node: Node) -> str:
    names = [child for child in _leaves(node) if child.type in ("identifier", "type_identifier")]
    default = node.child_by_field_name("default_type") or node.child_by_field_name("default_value")
    own = [each for each in names if default is None or each.end_byte <= default.start_byte]
    return text_of(own[-1]) if own else ""


def _default(node: Node) -> str | None:
    default = node.child_by_field_name("default_type") or node.child_by_field_name("default_value")
    return text_of(default) if default is not None else None


def _leaves(node: Node) -> list[Node]:
    return [leaf for child in node.children for leaf in _leaves(child)] if node.children else [node]


def split_at_commas(text: str) -> tuple[str, ...]:
    """Returns the parts between commas outside of brackets; inside of round brackets < and > are comparisons."""
    parts, depth, angles = [""], 0, 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        angles += ((char == "<") - (char == ">")) * (depth == 0)
        if char == "," and depth == 0 and angles == 0:
            parts.append("")
        else:
            parts[-1] += char
    return tuple(" ".join(part.split()) for part in parts if part.strip())


def _tight(text: str) -> str:
    """Returns types without blanks and pointer qualifiers, so that two spellings of one type are equal."""
    return re.sub(r"\s+|\b__restrict(?:__)?\b", "", text)
