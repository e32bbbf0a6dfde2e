"""Reads how the host code of a source launches a kernel, ``k<<<grid, block, shared>>>(..)``, as expressions.

Names in the expressions are tuned parameters and the kernel's own parameters: a variable that the launch passes to the
kernel stands for that argument. Other variables, dim3 objects and functions are followed to what they are made of.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from tree_sitter import Node

from ..core.errors import UsageError
from ..rendering.includes import place_in
from .argument_texts import number_in
from .cuda_signature import KINDS, CudaParameter, n_bytes_of, plain_type
from .host_nodes import (
    Unknown,
    arguments_of,
    at_file_scope,
    child_of_type,
    declared_values,
    initial_values,
    parts_of_dim3,
    type_of,
)
from .named_kernel import KernelName, kernel_name
from .preprocessing import preprocessed
from .syntax import function_declarator, items, last_identifier, listed_in, syntax_tree, text_of, walk

ROUNDING = {"ceil": "(-(-({}) // 1))", "floor": "(({}) // 1)"}  # results of the functions of C
OPERATORS = {"&&": "and", "||": "or"} | {op: op for op in (*"+-*%&|^<>", "<<", ">>", "<=", ">=", "==", "!=")}
CALL = r"\b{}\b[^;{{}}]*?<<<.*?>>>\s*\((.*?)\)\s*;"  # a launch, and what it passes, in the text
DEFINED = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+\(?[ \t]*(\d\w*)[ \t]*\)?[ \t]*(?://.*|/\*.*)?$", re.MULTILINE
)
CONDITION = re.compile(  # lines from which a condition of the preprocessor may follow, but for guards
    r"^[ \t]*#[ \t]*(?:(?:el)?if\b|define[ \t]+\w+)((?:\\\n|[^\n])*)", re.MULTILINE
)
WHOLE_KINDS = "bBhHiIqQ"  # NumPy's integers
PASSED = ("identifier", "field_expression", "subscript_expression", "cast_expression", "qualified_identifier")
LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
DEEPEST = 20  # variables and functions that lead to each other
AXES = "xyz"

Triple = tuple[str, str, str]
T = TypeVar("T")
Own = Mapping[str, tuple[str, bool]]  # name of a parameter -> Python for its value, and whether it is a float


@dataclass(frozen=True)
class HostLaunch:
    """The launch of a kernel in its source: expressions of parameters and arguments. ``place``: file and line.

    ``grid``, ``block``, ``shared``: None if it cannot be read; ``lacks`` and ``lacks_shared`` say why. ``grid``: None,
    too, where the caller states the size.
    """

    grid: Triple | None
    block: Triple | None
    shared: str | None
    place: str
    lacks: str = ""
    lacks_shared: str = ""

    @property
    def of_grid(self) -> frozenset[str]:
        """Returns the names in the expressions of the grid."""
        return _names(self.grid or ())

    @property
    def of_block(self) -> frozenset[str]:
        """Returns the names in the expressions of the block."""
        return _names(self.block or ())

    @property
    def told(self) -> str:
        """Returns a text for people."""
        grid = "" if self.grid is None else f"grid {_shown(self.grid)}, "
        block = "" if self.block is None else f"block {_shown(self.block)}, "
        return f"{grid}{block}as {self.place} launches it"


def host_launch(
    text: str,
    file: str,
    kernel: KernelName,
    parameters: Sequence[CudaParameter],
    macros: Mapping[str, object],
    tuned: Mapping[str, Sequence[object]],
) -> HostLaunch:
    """Returns the first launch of ``kernel`` that follows from parameters and arguments; else the first one, in part.

    Args:
        macros: name -> value, also of parameters.
        tuned: parameter -> its values; a condition of the preprocessor must not change the launch between them.

    Raises:
        UsageError: if there is none; the message says why.
    """
    if "<<<" not in text:  # most sources: they are not read again
        raise UsageError(f"{file} has no launch of it by name")
    launches = []
    asked = {word for line in CONDITION.findall(text) for word in re.findall(r"\w+", line)}
    for pick in (0, -1) if asked & tuned.keys() else (0,):
        values = dict(macros) | {name: values[pick] for name, values in tuned.items()}
        launches.append(_LaunchReader(text, file, kernel, parameters, values, tuple(tuned)).launch())
    if launches[0] != launches[-1]:
        raise UsageError(
            f"{launches[0].place}: how {kernel.last} is launched depends on a condition of the preprocessor"
        )
    return launches[0]


def _names(texts: Sequence[str]) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", " ".join(texts))) - {"int", "min", "max", "if", "else", "and", "or"}


def _shown(texts: Triple) -> str:
    return f"({', '.join(texts)})"


class _LaunchReader:
    """A source, preprocessed at one config; macros that stand for parameters and arguments keep their names."""

    def __init__(
        self,
        text: str,
        file: str,
        kernel: KernelName,
        parameters: Sequence[CudaParameter],
        values: Mapping[str, object],
        tuned: Sequence[str],
    ) -> None:
        self._text, self._file, self._kernel, self._tuned = text, file, kernel, tuned
        self._parameters = parameters
        passed = {
            name for found in re.finditer(CALL.format(kernel.last), text, re.DOTALL) for name in found[1].split(",")
        }
        self._macros = {name: number for name, number in DEFINED.findall(text) if name in map(str.strip, passed)}
        kept = {name: str(values.get(name, self._macros.get(name))) for name in (*tuned, *self._macros)}
        self._given = preprocessed(text, {name: v for name, v in values.items() if name not in kept}, kept)
        self._root = syntax_tree(self._given.text)
        self._arguments: dict[str, str] = {}
        self._types: Mapping[str, str] = {}  # a name in the launch's <..> -> what the kernel's name has there
        self._around: Node | None = None
        self._end = 0
        self._loops: list[Node] = []  # around the launch, the innermost one first

    def launch(self) -> HostLaunch:
        """Returns the launch that can be read and names the most tuned parameters, the first of several; else the first
        one, as far as it can be read.

        Raises:
            UsageError: if there is none, or another kernel of this name has as many parameters.
        """
        launches: list[HostLaunch] = []
        for node in walk(self._root):
            if node.type != "call_expression" or (how := child_of_type(node, "kernel_call_syntax")) is None:
                continue
            function = node.child_by_field_name("function")
            if function is None or not self._is_of_kernel(node, function):
                continue
            place = "{}:{}".format(*place_in(self._text, self._given.at(node.start_byte), self._file, 1))
            launches.append(self._read(node, how.named_children, place))
        if not launches:
            raise UsageError(f"{self._file} has no launch of it by name")
        readable = [each for each in launches if not (each.lacks or each.lacks_shared)]
        return max(readable or launches[:1], key=lambda each: len((each.of_grid | each.of_block) & {*self._tuned}))

    def _is_of_kernel(self, node: Node, function: Node) -> bool:
        """Returns whether a launch is one of this kernel, by its name, its arguments and those of its template."""
        if last_identifier(function).partition("<")[0] != self._kernel.last:
            return False
        if len(arguments_of(node)) != len(self._parameters):
            return False
        alike = [each for each in items(self._root) if each.is_kernel and self._kernel.last in each.names]
        if sum(len(_parameters(each.inner)) == len(self._parameters) for each in alike) > 1:
            raise UsageError(
                f"{self._file} has several kernels {self._kernel.last} of {len(self._parameters)} parameters"
            )
        return not any(_differ(given, launched) for launched, given in self._template_arguments(node).items())

    def _template_arguments(self, launch: Node) -> dict[str, str]:
        with suppress(UsageError):
            launched = kernel_name(text_of(launch.child_by_field_name("function"))).arguments or ()
            return dict(zip(launched, self._kernel.arguments or (), strict=False))
        return {}

    def _read(self, node: Node, how: Sequence[Node], place: str) -> HostLaunch:
        self._arguments = {}
        for value, parameter in zip(listed_in(node, "arguments"), self._parameters, strict=False):
            if not parameter.is_array and KINDS.get(parameter.type, "-") in WHOLE_KINDS:
                within = value.child_by_field_name("value") if value.type == "cast_expression" else None
                passed = [each for each in (value, within) if each is not None and each.type in PASSED]
                self._arguments |= {"".join(text_of(each).split()): parameter.name for each in passed}
        self._types = self._template_arguments(node)
        self._around, self._end, self._loops = node, node.start_byte, []
        while self._around.type not in ("function_definition", "translation_unit") and self._around.parent is not None:
            self._around = self._around.parent
            self._loops += [self._around] if self._around.type in LOOPS else []
        lacks, of_shared = list[str](), list[str]()
        grid, block = (self._part(how, i, lambda each: _plain(self._dimensions(each, 0)), lacks) for i in (0, 1))
        shared: str | None = "0"
        if len(how) > 2:
            shared = self._part(how, 2, lambda each: ast.unparse(ast.parse(self._whole(each, 0))), of_shared)
        whys = (f"{place} launches it by {some[0]}" if some else "" for some in (lacks, of_shared))
        return HostLaunch(grid, block, shared, place, *whys)

    def _part(self, how: Sequence[Node], i: int, read: Callable[[Node], T], lacks: list[str]) -> T | None:
        """Returns a value in <<<>>>; None if it cannot be read, and adds why to ``lacks``."""
        try:
            return read(how[i])
        except IndexError:
            lacks.append("fewer than two values in <<<>>>")
        except Unknown as unknown:
            tail = ", which is neither an argument nor a parameter"
            if str(unknown) in [parameter.name for parameter in self._parameters]:
                tail = ", a variable of the host code, which it does not pass as that argument"
            tail = "" if "," in str(unknown) else tail
            if not i:
                direct = text_of(how[0]) == str(unknown)
                tail += f" ({'as' if direct else 'if it is'} a number of blocks: with --grid-div-x 1)"
            lacks.append(f"{unknown}{tail}")
        return None

    # ------------------------------------------------------------------ three dimensions
    def _dimensions(self, node: Node, depth: int, own: Own = {}) -> Triple:
        """Returns x, y and z of a dim3, or of a number. ``own``: the parameters of an inlined function."""
        if depth > DEEPEST:
            raise Unknown(text_of(node))
        if node.type == "parenthesized_expression":
            return self._dimensions(node.named_children[0], depth + 1, own)
        if node.type == "identifier" and (found := self._dim3(text_of(node), depth)) is not None:
            return found
        if (parts := parts_of_dim3(node)) is not None:
            if len(parts) == 1 and (parts[0].type == "identifier" or self._inlined(parts[0], depth, own) is not None):
                return self._dimensions(parts[0], depth + 1, own)
            x, y, z, *_ = [*(self._whole(part, depth, own) for part in parts), "1", "1", "1"]
            return x, y, z
        if (inlined := self._inlined(node, depth, own)) is not None and inlined[0] == "dim3":
            return self._dimensions(inlined[1], depth + 1, inlined[2])
        return self._whole(node, depth, own), "1", "1"

    def _dim3(self, name: str, depth: int) -> Triple | None:
        """Returns the dimensions of a variable; None if it is not a dim3."""
        if depth > DEEPEST:
            raise Unknown(name)
        declared = [
            each for each in self._before() if each.type == "declaration" and type_of(each) in ("dim3", "uint3")
        ]
        if not any(initial_values(each, name) for each in declared):
            return None
        at, value = self._given_to(name)
        sizes = list(self._dimensions(value, depth + 1)) if value is not None else ["1", "1", "1"]
        for i, axis in enumerate(AXES):
            at_axis, along = self._given_to(f"{name}.{axis}")
            sizes[i] = self._whole(along, depth + 1) if along is not None and at_axis > at else sizes[i]
        return sizes[0], sizes[1], sizes[2]

    # ------------------------------------------------------------------ numbers
    def _whole(self, node: Node, depth: int, own: Own = {}) -> str:
        text, is_float = self._number(node, depth, own)
        return f"int({text})" if is_float else text

    def _number(self, node: Node, depth: int, own: Own = {}) -> tuple[str, bool]:
        """Returns Python for a number, and whether it is a float. ``own``: the parameters of an inlined function."""
        if depth > DEEPEST:
            raise Unknown(text_of(node))

        def of(child: Node | None) -> tuple[str, bool]:
            if child is None:
                raise Unknown(text_of(node))
            return self._number(child, depth, own)

        field = node.child_by_field_name
        if not own and (argument := self._arguments.get("".join(text_of(node).split()))) is not None:
            return argument, False
        match node.type:
            case "number_literal":
                number = number_in(text_of(node))
                if number is not None:
                    return repr(number), isinstance(number, float)
            case "qualified_identifier":
                return self._named(text_of(node).rpartition("::")[2], depth)
            case "identifier":
                return own[text_of(node)] if text_of(node) in own else self._named(text_of(node), depth)
            case "parenthesized_expression":
                return of(node.named_children[0])
            case "binary_expression":
                (a, a_float), (b, b_float) = of(field("left")), of(field("right"))
                operator, is_float = text_of(node.children[1]), a_float or b_float
                if operator == "/":
                    return f"({a} {'/' if is_float else '//'} {b})", is_float
                if operator in OPERATORS:
                    return f"({a} {OPERATORS[operator]} {b})", is_float and operator in "+-*%"
            case "unary_expression":
                text, is_float = of(field("argument"))
                if (sign := text_of(node.children[0])) in "-+~":
                    return f"({sign}{text})", is_float
            case "conditional_expression":
                (a, a_float), (b, b_float) = of(field("consequence")), of(field("alternative"))
                return f"({a} if {of(field('condition'))[0]} else {b})", a_float or b_float
            case "cast_expression":
                return _as(text_of(field("type") or node), *of(field("value")))
            case "sizeof_expression":
                named = text_of(field("type") or field("value") or node).strip("() ")
                kind = plain_type(self._types.get(named, named))
                if (n_bytes := n_bytes_of(kind)) is not None:
                    return str(n_bytes), False
            case "field_expression":
                found = self._dim3(text_of(field("argument") or node), depth + 1)
                if found is not None and (axis := text_of(field("field") or node)) in AXES:
                    return f"({found[AXES.index(axis)]})", False
            case "call_expression":
                return self._called(node, [of(each) for each in arguments_of(node)], depth)
        raise Unknown(" ".join(text_of(node).split()))

    def _called(self, node: Node, values: list[tuple[str, bool]], depth: int) -> tuple[str, bool]:
        """Returns Python for a call: of a function of C++, of a cast, or of a function with one return statement."""
        name, *kinds = re.split(r"[<>]", text_of(node.child_by_field_name("function")))
        name = name.rpartition("::")[2]
        texts, is_float = [text for text, _ in values], any(is_float for _, is_float in values)
        if len(values) == 1 and name.removesuffix("f") in ROUNDING:
            return ROUNDING[name.removesuffix("f")].format(texts[0]), True
        if len(values) == 1 and (name == "static_cast" or plain_type(name) in KINDS):
            return _as(kinds[0] if name == "static_cast" else name, *values[0])
        if len(values) == 2 and name in ("min", "max"):
            return f"{name}({', '.join(texts)})", is_float
        if (inlined := self._inlined(node, depth, {}, values)) is not None:
            kind, returned, own = inlined
            text, is_float = self._number(returned, depth + 1, own)
            return f"({_as(kind, text, is_float)[0]})", kind in ("float", "double")
        raise Unknown(f"{name}(), which is not a function of declarations and a return here")

    def _inlined(
        self, node: Node, depth: int, own: Own, values: Sequence[tuple[str, bool]] | None = None
    ) -> tuple[str, Node, Own] | None:
        """Returns type, returned expression and names of a call of a function of declarations and a return at last."""
        function = node.child_by_field_name("function")
        if node.type != "call_expression" or function is None:
            return None
        name = re.split(r"[<>]", text_of(function))[0].rpartition("::")[2]
        for item in at_file_scope(self._root):
            for each in (item, *item.named_children):
                declarator, body = each.child_by_field_name("declarator"), each.child_by_field_name("body")
                if each.type != "function_definition" or declarator is None or body is None:
                    continue
                said, names = body.named_children, [last_identifier(of) for of in listed_in(declarator, "parameters")]
                kinds = [of.type for of in said]
                is_plain = kinds[-1:] == ["return_statement"] and set(kinds[:-1]) <= {"declaration"}
                if last_identifier(declarator) == name and is_plain and len(names) == len(arguments_of(node)):
                    given = values or [self._number(of, depth + 1, own) for of in arguments_of(node)]
                    inner = {n: (f"({text})", is_float) for n, (text, is_float) in zip(names, given, strict=True)}
                    for local, value in (pair for of in said[:-1] for pair in declared_values(of)):
                        text, is_float = _as(local[1], *self._number(value, depth + 1, inner))
                        inner[local[0]] = f"({text})", is_float
                    returned = said[-1].named_children
                    return (type_of(each), returned[0], inner) if returned else None
        return None

    def _named(self, name: str, depth: int) -> tuple[str, bool]:
        """Returns Python for a variable: a parameter, an argument of the launch, or the one value that it is given."""
        if name in self._tuned:
            return name, False
        if name in self._arguments:
            return self._arguments[name], False
        given = self._types.get(name, "")
        if given in self._tuned:
            return given, False
        if (number := number_in(given)) is not None:
            return str(number), False
        if name in self._macros:
            return str(number_in(self._macros[name])), False
        _, value = self._given_to(name)
        if value is None:
            raise Unknown(name)
        kinds = [type_of(each) for each in self._before() if each.type == "declaration" and initial_values(each, name)]
        text, is_float = _as(kinds[0] if kinds else "auto", *self._number(value, depth + 1))
        return f"({text})", is_float

    def _given_to(self, name: str) -> tuple[int, Node | None]:
        """Returns the value that a variable has at the launch, and where it gets it; (-1, None): it gets none.

        It is the last one in front of the launch, unless that is in a branch, or a loop around the launch changes it.
        """
        found: list[tuple[int, Node | None]] = []
        for each in self._before():
            values = initial_values(each, name) if each.type == "declaration" else []
            found += [(each.start_byte if each.start_byte < self._end else 0, v) for v in values if v is not None]
        found += [(at, right) for at, left, right in self._assigned(self._before()) if text_of(left) == name]
        at, value = max(found, key=lambda pair: pair[0], default=(-1, None))
        later = [at for at, left, _ in self._assigned(self._later()) if text_of(left) == name]
        loops = [loop for loop in self._loops if any(loop.start_byte <= each < loop.end_byte for each in later)]
        addresses = [node.start_byte for node in self._before() if node.type == "pointer_expression"]
        if found and all(given is None and at in addresses for at, given in found):
            raise Unknown(name)
        if (found and value is None) or any(at < loop.start_byte for loop in loops):
            raise Unknown(f"{name}, which has several values")
        return at, value

    def _before(self) -> list[Node]:
        """Returns the nodes in front of the launch in its function, and those at the file's scope.

        Declarations in a block that has ended are left out.
        """
        assert self._around is not None
        inside = [node for node in walk(self._around) if node.start_byte < self._end]
        inside = [node for node in inside if node.type != "declaration" or self._is_always_run(node)]
        return [*inside, *(node for node in at_file_scope(self._root) if node.id != self._around.id)]

    def _later(self) -> list[Node]:
        """Returns the nodes after the launch in the outermost loop around it."""
        return [node for node in walk(self._loops[-1]) if node.start_byte >= self._end] if self._loops else []

    def _is_always_run(self, statement: Node) -> bool:
        """Returns whether a statement stands in a block that contains the launch, and not in a branch of its own."""
        block = statement.parent
        return block is not None and block.type == "compound_statement" and block.end_byte > self._end

    def _assigned(self, nodes: Sequence[Node]) -> list[tuple[int, Node, Node | None]]:
        """Returns the places of changes, what is changed, and the new value; None: it may be another one."""
        found = []
        for node in nodes:
            left = node.child_by_field_name("left") or node.child_by_field_name("argument")
            if left is None:
                continue
            if node.type == "assignment_expression" and text_of(node.children[1]) == "=":
                is_sure = node.parent is not None and self._is_always_run(node.parent)
                found.append((node.start_byte, left, node.child_by_field_name("right") if is_sure else None))
            elif node.type in ("assignment_expression", "update_expression") or (
                node.type == "pointer_expression" and text_of(node.children[0]) == "&"
            ):
                found.append((node.start_byte, left, None))
        return found


def _plain(texts: Triple) -> Triple:
    """Returns expressions without brackets that mean nothing."""
    x, y, z = (ast.unparse(ast.parse(text)) for text in texts)
    return x, y, z


def _parameters(function: Node) -> list[Node]:
    return listed_in(function_declarator(function), "parameters")


def _differ(given: str, launched: str) -> bool:
    """Returns whether two arguments of a template are both known, and are not the same."""
    numbers, types = (number_in(given), number_in(launched)), (plain_type(given), plain_type(launched))
    return (None not in numbers and numbers[0] != numbers[1]) or (KINDS.keys() >= {*types} and types[0] != types[1])


def _as(kind: str, text: str, is_float: bool) -> tuple[str, bool]:
    """Returns Python for a number that becomes one of this type."""
    plain = plain_type(kind)
    if plain in ("float", "double"):
        return text, True
    return (f"int({text})", False) if is_float and KINDS.get(plain, "-") in f"{WHOLE_KINDS}?" else (text, is_float)
