"""Parses Python safely in several threads at once.

Python 3.11 counts the depth of all trees that are being built in one variable: when another thread or a finaliser
builds a tree at the same time, the parser may raise SystemError (https://github.com/python/cpython/issues/106905). The
text is then parsed again.
"""

import ast
from collections.abc import Callable
from typing import TypeVar

Tree = TypeVar("Tree", ast.Module, ast.Expression)
MOST_TRIES = 20


def module_tree(text: str) -> ast.Module:
    """Returns the tree of a module. Raises the exceptions of ``ast.parse``."""
    return _made(lambda: ast.parse(text))


def expression_tree(text: str) -> ast.Expression:
    """Returns the tree of an expression. Raises the exceptions of ``ast.parse``."""
    return _made(lambda: ast.parse(text, mode="eval"))


def _made(make: Callable[[], Tree]) -> Tree:
    for _ in range(MOST_TRIES - 1):
        try:
            return make()
        except SystemError:
            continue
    return make()
