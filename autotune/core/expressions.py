"""Restrictions, sizes and metrics as text: arithmetic over the names of parameters and figures, and nothing else."""

import ast
from collections.abc import Callable, Collection, Mapping
from typing import Any

from .errors import UsageError

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


def checked(text: str, names: Collection[str], what: str) -> str:
    """Returns an expression as Python writes it, in which ``c["x"]`` stands for the parameter x.

    Raises:
        UsageError: when it is no expression of numbers, texts, parameters, arithmetic, comparisons and CALLS.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise UsageError(f"{what} {text!r} is no expression: {error.msg}") from error
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    for node in ast.walk(tree):
        if not isinstance(node, NODES) or (isinstance(node, ast.Call) and (node.func not in called or node.keywords)):
            raise UsageError(f"{what} {text!r} may have numbers, parameters and arithmetic, not {_shown(node)}")
        if isinstance(node, ast.Name) and node.id not in (CALLS if node in called else names):
            known = ", ".join(CALLS if node in called else names)
            raise UsageError(f"{what} {text!r}: there is no {node.id!r}; there are {known}")
    return ast.unparse(_Parameters(called).visit(tree))


def value_of(expression: str, values: Mapping[str, Any]) -> Any:
    """Returns the value of an expression that ``checked`` has returned, at these parameters."""
    return eval(compile(expression, "expression", "eval"), {"__builtins__": {}, **CALLS, "c": values})


class _Parameters(ast.NodeTransformer):
    """Puts ``c["x"]`` in the place of each name x that is not called."""

    def __init__(self, called: Collection[ast.AST]) -> None:
        self._called = called

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node in self._called:
            return node
        return ast.Subscript(ast.Name("c", ast.Load()), ast.Constant(node.id), ast.Load())


def _shown(node: ast.AST) -> str:
    try:
        return ast.unparse(node)
    except (AttributeError, ValueError):
        return type(node).__name__
