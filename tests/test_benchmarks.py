"""Benchmarks need a GPU and minutes, so nobody runs them here; but what they take from the package must be there."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parent.parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_benchmark_imports_is_there(file: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if node.module and node.module.split(".")[0] == "autotune"]
    for node in own:
        module = import_module(node.module or "")
        assert [name.name for name in node.names if not hasattr(module, name.name)] == []
