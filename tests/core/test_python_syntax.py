"""A tree is made also where the garbage collector makes another one meanwhile, which old Pythons do not stand."""

import ast
import gc
from collections.abc import Iterator

import pytest

from autotune.core.expressions import checked_expression
from autotune.core.python_syntax import expression_tree, module_tree

TEXT = "\n".join(f"def f{i}(a, b=({i},)): return [a + b[0] * (c - {i}) for c in range(a)]" for i in range(200))


@pytest.fixture
def disturbed() -> Iterator[list[int]]:
    """Garbage is collected all the time, and a collector's callback makes trees: the first few times."""
    thresholds, made = gc.get_threshold(), list[int]()

    def callback(phase: str, info: dict[str, int]) -> None:
        if len(made) < 3:
            made.append(0)
            ast.parse("a + b")

    gc.callbacks.append(callback)
    gc.set_threshold(50)
    yield made
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(callback)


def test_trees_are_made_while_others_are(disturbed: list[int]) -> None:
    assert ast.dump(module_tree(TEXT)) == ast.dump(ast.parse(TEXT))
    assert disturbed


def test_what_cannot_be_parsed_is_said_at_once() -> None:
    with pytest.raises(SyntaxError):
        expression_tree("a +")


def test_expressions_are_read_while_others_are(disturbed: list[int]) -> None:
    text = " + ".join(f"x * {i}" for i in range(60))
    assert checked_expression(text, ["x"], "it").count("x") == 60
