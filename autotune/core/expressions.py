"""Expressions as text, for restrictions, sizes and metrics: arithmetic over parameters and figures, and nothing else.

The cost of an expression is bounded before it is evaluated: by its length, depth and constants, and by limits on
exponents and shifts, which also hold where they are only known during evaluation.
"""

import ast
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

from .errors import UsageError
from .python_syntax import expression_tree

CALLS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "int": int,
    "float": float,
    "round": round,
}
NODES = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.Invert, ast.IfExp),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift),
    *(ast.BitAnd, ast.BitOr, ast.BitXor, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In),
    *(ast.NotIn, ast.Constant, ast.Name, ast.Load, ast.Tuple, ast.List, ast.Call),
)
MOST_CHARACTERS, DEEPEST = 2000, 100  # limits of the text's length and of its tree's depth
LARGEST_CONSTANT = 1 << 64
MOST_EXPONENT, MOST_SHIFT = 64, 1024
MOST_STACKED, MOST_GROWN = 3, 2  # nested powers and shifts; those nested in the left side


def checked_expression(text: str, names: Collection[str], what: str) -> str:
    """Returns the expression as Python source, in which ``c["x"]`` stands for the parameter x.

    Raises:
        UsageError: when it contains anything but numbers, texts, parameters, arithmetic, comparisons and CALLS, or
            when it could take long to evaluate.
    """
    tree = parsed(text, what)
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    for node in ast.walk(tree):
        if not isinstance(node, NODES) or (isinstance(node, ast.Call) and (node.func not in called or node.keywords)):
            raise UsageError(
                f"{what} {expression_text(text)} may have numbers, parameters and arithmetic, not {_shown(node)}"
            )
        if isinstance(node, ast.Name) and node.id not in (CALLS if node in called else names):
            known = ", ".join(CALLS if node in called else names)
            raise UsageError(f"{what} {expression_text(text)}: there is no {node.id!r}; there are {known}")
    if isinstance(tree.body, ast.Tuple | ast.List):
        product = " * ".join(ast.unparse(each) for each in tree.body.elts) or "1"
        raise UsageError(f"{what} {expression_text(text)} is a list; give one expression, such as {product}")
    why = "too many powers and shifts of each other" if _is_stacked(tree.body) else _beyond(tree.body)
    if why is not None:
        raise UsageError(f"{what} {expression_text(text)}: {why}")
    return ast.unparse(ast.fix_missing_locations(_Bounded().visit(_Parameters(called).visit(tree))))


def parsed(text: str, what: str) -> ast.Expression:
    """Returns the tree of an expression from an untrusted text.

    Raises:
        UsageError: when it is not an expression, is too long, or is nested too deeply.
    """
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{what} {expression_text(text)} has {len(text)} characters; {MOST_CHARACTERS} are allowed")
    try:
        tree = expression_tree(text.strip())
    except (SyntaxError, ValueError) as error:  # ValueError: a null in the text
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"{what} {expression_text(text)} is not an expression: {why}") from error
    except (RecursionError, MemoryError) as error:  # Python's parser gives up on a deep nesting in either way
        raise UsageError(
            f"{what} {expression_text(text)} is nested too deeply; {DEEPEST} levels are allowed"
        ) from error
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise UsageError(f"{what} {expression_text(text)} is nested too deeply; {DEEPEST} levels are allowed")
    return tree


def value_of(expression: str, values: Mapping[str, object]) -> Any:
    """Returns the value of an expression from ``checked_expression`` at these parameters."""
    return eval(_compiled_expression(expression), {"__builtins__": {}, **CALLS, "c": values})


@lru_cache(maxsize=4096)
def _compiled_expression(expression: str) -> CodeType:
    return compile(expression, "expression", "eval")


def names_of(expression: str) -> tuple[str, ...]:
    """Returns the parameters in an expression from ``checked_expression``, each once."""
    nodes = ast.walk(expression_tree(expression))
    found = (
        node.slice.value for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    )
    return tuple(dict.fromkeys(name for name in found if isinstance(name, str)))


class _Parameters(ast.NodeTransformer):
    """Replaces each name x that is not called by ``c["x"]``."""

    def __init__(self, called: Collection[ast.AST]) -> None:
        self._called = called

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node in self._called:
            return node
        return ast.Subscript(ast.Name("c", ast.Load()), ast.Constant(node.id), ast.Load())


class _Bounded(ast.NodeTransformer):
    """Makes variable exponents and shifts raise a ValueError where they exceed their limit."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        most = _most(node)
        if most is None or _constant(node.right) is not None:
            return node
        what = "an exponent" if isinstance(node.op, ast.Pow) else "a shift"
        bounded = expression_tree(f"0 if -{most} <= 0 <= {most} else float('{what} beyond {most}')").body
        assert isinstance(bounded, ast.IfExp) and isinstance(bounded.test, ast.Compare)
        bounded.body = bounded.test.comparators[0] = node.right
        node.right = bounded
        return node


def _most(node: ast.AST) -> int | None:
    """Returns the largest right side that a power or a left shift may have; None for other nodes."""
    if not isinstance(node, ast.BinOp):
        return None
    return MOST_EXPONENT if isinstance(node.op, ast.Pow) else MOST_SHIFT if isinstance(node.op, ast.LShift) else None


def _is_stacked(node: ast.AST, n_stacked: int = 0, n_grown: int = 0) -> bool:
    """Returns whether too many powers and shifts are nested.

    ``n_stacked``: the number that contain ``node``; ``n_grown``: the number that contain it in their left side.
    """
    most = _most(node)
    n_stacked, n_grown = n_stacked + (most is not None), n_grown + (most is not None)
    if n_stacked > MOST_STACKED or n_grown > MOST_GROWN:
        return True
    right = getattr(node, "right", None) if most is not None else None
    return any(_is_stacked(each, n_stacked, 0 if each is right else n_grown) for each in ast.iter_child_nodes(node))


def _beyond(node: ast.AST) -> str | None:
    """Returns why an expression could take long or much memory to evaluate; None: it cannot.

    ``_is_stacked`` must have accepted it.
    """
    most = _most(node)
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int) and node.value > LARGEST_CONSTANT:
            return "a constant beyond 2**64"
    elif isinstance(node, ast.BinOp):
        if most is not None and not _is_within(node.right, most):
            return f"{'an exponent' if isinstance(node.op, ast.Pow) else 'a shift'} beyond {most}"
        if _is_text(node.left) or _is_text(node.right):
            return "arithmetic with a text or a list"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "round":
        digits = [_constant(each) for each in node.args[1:]]
        if any(each is None or abs(each) > MOST_EXPONENT for each in digits):
            return f"round() takes a constant number of digits, up to {MOST_EXPONENT}"
    found = map(_beyond, ast.iter_child_nodes(node))
    return next((why for why in found if why is not None), None)


def _is_within(node: ast.AST, most: int) -> bool:
    """Returns whether a part is at most ``most``; True where its value depends on names or cannot be computed."""
    called = {id(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}
    if any(isinstance(each, ast.Name) and id(each) not in called for each in ast.walk(node)) or _beyond(node):
        return True
    try:
        return bool(abs(value_of(ast.unparse(_Bounded().visit(expression_tree(ast.unparse(node)))), {})) <= most)
    except OverflowError:
        return False
    except ValueError as error:
        return "beyond" not in str(error)
    except (ArithmeticError, TypeError):
        return True


def _constant(node: ast.AST) -> float | None:
    """Returns the value of a number with or without a sign; None for other nodes."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _constant(node.operand)
        return None if value is None else -value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, int | float) else None


def _is_text(node: ast.AST) -> bool:
    """Returns whether a part may be a text or a list, judged by its syntax."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    if isinstance(node, ast.Tuple | ast.List):
        return True
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) or _is_text(node.orelse)
    if isinstance(node, ast.BoolOp):
        return any(map(_is_text, node.values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
        return any(map(_is_text, node.args))
    return False


def expression_text(text: str) -> str:
    """Returns an expression as errors show it: a long one is cut."""
    return repr(text if len(text) <= 100 else f"{text[:97]}...")


def _shown(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except (AttributeError, ValueError):
        return type(node).__name__
