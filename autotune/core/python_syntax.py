"""Python's syntax trees, also where several threads make some at once.

Python 3.11 counts the depth of all trees under way in one variable: where another thread makes one, or a finaliser
does, while one is made, it ends with a SystemError (https://github.com/python/cpython/issues/106905). It is made again
then.
"""

import ast
from collections.abc import Callable
from typing import TypeVar

Tree = TypeVar("Tree", ast.Module, ast.Expression)
MOST_TRIES = 20


def module_tree(text: str) -> ast.Module:
    """Returns the tree of a module. Raises what ``ast.parse`` does."""
    return _made(lambda: ast.parse(text))


def expression_tree(text: str) -> ast.Expression:
    """Returns the tree of an expression. Raises what ``ast.parse`` does."""
    return _made(lambda: ast.parse(text, mode="eval"))


def _made(make: Callable[[], Tree]) -> Tree:
    for _ in range(MOST_TRIES - 1):
        try:
            return make()
        except SystemError:
            continue
    return make()
