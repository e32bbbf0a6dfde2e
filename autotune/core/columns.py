"""Evaluates expressions at many configs at once: Python's arithmetic on NumPy columns.

NumPy and Python may differ on whole numbers beyond 2**52, divisions by zero, arithmetic with texts, and values that fit
no array. Such expressions raise ``NotVectorised``, and the caller evaluates them in Python.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf
from typing import Any

import numpy as np

from .config import Value
from .python_syntax import expression_tree

MOST_GROWN_BY = 62  # largest exponent or shift
MOST_EXACT = 2.0**52  # floats represent whole numbers, and their bounds, exactly up to here


class NotVectorised(Exception):
    """NumPy might not compute this expression, or these operands, as Python does."""


@dataclass(frozen=True)
class _Column:
    """A column, and an upper bound on the magnitude of its elements."""

    column: Any
    most: float

    @property
    def kind(self) -> str:
        """Returns the kind of the elements: whole numbers "i", floats "f", truths "b" or texts "U"."""
        return np.asarray(self.column).dtype.kind


def column_of(values: Sequence[Value]) -> np.ndarray:
    """Returns the values of a parameter as an array; truths become whole numbers.

    Raises:
        NotVectorised: for values of several types, and for numbers and texts that an array would change.
    """
    if all(isinstance(value, str) for value in values):
        if any(str(value).endswith("\0") for value in values):
            raise NotVectorised
        return np.array(values)
    if any(isinstance(value, str) for value in values) or any(abs(float(value)) > MOST_EXACT for value in values):
        raise NotVectorised
    return np.array(values, np.int64 if all(isinstance(value, int) for value in values) else np.float64)


def truths(expression: str, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns whether an expression from ``checked_expression`` is true: bool, [1] or one element per row.

    Raises:
        NotVectorised: when NumPy's answer might differ from Python's at some row.
    """
    most = {name: _most(column) for name, column in columns.items()}
    given = {name: _Column(column, most[name]) for name, column in columns.items()}
    try:
        with np.errstate(all="raise", under="ignore"):
            found = _Evaluation(given).truth(expression_tree(expression).body)
    except (FloatingPointError, TypeError, OverflowError, ZeroDivisionError) as error:
        raise NotVectorised from error
    return np.atleast_1d(found)


def _most(column: np.ndarray) -> float:
    if column.dtype.kind == "U" or not column.size:
        return 0.0
    return float(max(abs(float(column.min())), abs(float(column.max()))))


class _Evaluation:
    """Evaluates the nodes of an expression on columns, which it finds by name."""

    def __init__(self, given: Mapping[str, _Column]) -> None:
        self._given = given

    def truth(self, node: ast.AST) -> Any:
        """Returns whether a part is true."""
        if isinstance(node, ast.BoolOp):
            join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return reduce(join, map(self.truth, node.values))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return np.logical_not(self.truth(node.operand))
        if isinstance(node, ast.Compare):
            return self._compared(node)
        if isinstance(node, ast.IfExp):
            return np.where(self.truth(node.test), self.truth(node.body), self.truth(node.orelse))
        found = self._value(node)
        return found.column != ("" if found.kind == "U" else 0)

    def _compared(self, node: ast.Compare) -> Any:
        sides = [node.left, *node.comparators]
        pairs = zip(node.ops, sides, sides[1:], strict=False)
        return reduce(np.logical_and, (self._compare(op, left, right) for op, left, right in pairs))

    def _compare(self, op: ast.cmpop, left: ast.AST, right: ast.AST) -> Any:
        a = self._value(left)
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List):
                raise NotVectorised
            found = [self._equal(a, self._value(each)) for each in right.elts]
            is_in = reduce(np.logical_or, found, np.zeros(np.shape(a.column), bool))
            return is_in if isinstance(op, ast.In) else np.logical_not(is_in)
        b = self._value(right)
        if type(op) not in COMPARISONS or (a.kind == "U") != (b.kind == "U"):
            raise NotVectorised
        return COMPARISONS[type(op)](a.column, b.column)

    @staticmethod
    def _equal(a: _Column, b: _Column) -> Any:
        if (a.kind == "U") != (b.kind == "U"):
            raise NotVectorised
        return a.column == b.column

    def _value(self, node: ast.AST) -> _Column:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str):
            column = column_of([node.value])[0]
            return _Column(column, 0.0 if isinstance(node.value, str) else abs(float(node.value)))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return self._given[str(node.slice.value)]
        if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            return _Column(np.asarray(self.truth(node)).astype(np.int64), 1.0)
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return self._arithmetic(node)
        if isinstance(node, ast.BinOp) and type(node.op) in GROWING:
            return self._grown(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            operand = self._number(node.operand)
            return _Column(-operand.column if isinstance(node.op, ast.USub) else operand.column, operand.most)
        if isinstance(node, ast.IfExp):
            a, b = self._number(node.body), self._number(node.orelse)
            return _Column(np.where(self.truth(node.test), a.column, b.column), max(a.most, b.most))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._called(node.func.id, [self._number(each) for each in node.args])
        raise NotVectorised

    def _number(self, node: ast.AST) -> _Column:
        found = self._value(node)
        if found.kind == "U":
            raise NotVectorised
        return found

    def _arithmetic(self, node: ast.BinOp) -> _Column:
        a, b = self._number(node.left), self._number(node.right)
        compute, most = ARITHMETIC[type(node.op)]
        if isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor) and "f" in (a.kind, b.kind):
            raise NotVectorised
        found = _Column(compute(a.column, b.column), most(a.most, b.most))
        if found.kind == "f" and isinstance(node.op, ast.FloorDiv):
            return _Column(found.column, inf)
        if found.kind != "f" and not found.most <= MOST_EXACT:
            raise NotVectorised
        return found

    def _grown(self, node: ast.BinOp) -> _Column:
        """Returns a power or a shift of whole numbers; ``checked_expression`` has bounded a variable right side."""
        is_bounded = isinstance(node.right, ast.IfExp) and isinstance(node.right.orelse, ast.Call)
        right = node.right.body if is_bounded and isinstance(node.right, ast.IfExp) else node.right
        a, b = self._number(node.left), self._number(right)
        compute, most = GROWING[type(node.op)]
        if "f" in (a.kind, b.kind) or b.most > MOST_GROWN_BY or np.any(b.column < 0):
            raise NotVectorised
        found = _Column(compute(a.column, b.column), most(a.most, b.most))
        if not found.most <= MOST_EXACT:
            raise NotVectorised
        return found

    @staticmethod
    def _called(name: str, given: list[_Column]) -> _Column:
        columns, most = [each.column for each in given], max(each.most for each in given)
        if name == "abs" and len(given) == 1:
            return _Column(np.abs(columns[0]), most)
        if name in ("min", "max") and len(given) > 1:
            return _Column(reduce(np.minimum if name == "min" else np.maximum, columns), most)
        if name == "int" and len(given) == 1 and most <= MOST_EXACT:
            return _Column(np.trunc(columns[0]).astype(np.int64), most)
        raise NotVectorised


COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
# Each operator's function, and the bound of its result from the bounds of both sides.
ARITHMETIC: Mapping[type[ast.operator], tuple[Callable[[Any, Any], Any], Callable[[float, float], float]]] = {
    ast.Add: (np.add, lambda a, b: a + b),
    ast.Sub: (np.subtract, lambda a, b: a + b),
    ast.Mult: (np.multiply, lambda a, b: a * b),
    ast.Div: (np.true_divide, lambda a, b: inf),
    ast.FloorDiv: (np.floor_divide, lambda a, b: a),  # a bound for whole numbers; _arithmetic replaces it for floats
    ast.Mod: (np.remainder, lambda a, b: b),
    ast.BitAnd: (np.bitwise_and, lambda a, b: 2 * max(a, b) + 1),
    ast.BitOr: (np.bitwise_or, lambda a, b: 2 * max(a, b) + 1),
    ast.BitXor: (np.bitwise_xor, lambda a, b: 2 * max(a, b) + 1),
}
GROWING: Mapping[type[ast.operator], tuple[Callable[[Any, Any], Any], Callable[[float, float], float]]] = {
    ast.Pow: (np.power, lambda a, b: max(a, 1.0) ** b),
    ast.LShift: (np.left_shift, lambda a, b: a * 2.0**b),
    ast.RShift: (np.right_shift, lambda a, b: a),
}
