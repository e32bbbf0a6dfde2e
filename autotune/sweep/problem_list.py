"""A list of problems of one kernel in a TOML file: a grid, single problems, and fields that are computed from them.

Campaigns and ``autotune emit --for`` read it. They never run code from the file.
"""

import ast
import operator
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any

from ..core.definition import AnyKernel
from ..core.errors import UsageError
from ..core.expressions import parsed
from ..core.files import MOST_TEXT, content_of
from ..source.registry import load_kernel
from ..system.limits import check_type
from ..system.setting import Setting, check_settings, in_files, of_file
from .request import of_types

MOST_PROBLEMS = 100_000


@dataclass(frozen=True, kw_only=True)
class ProblemList:
    """The keys of a list of problems."""

    kernel: Annotated[str, Setting("What to tune.", words="a kernel's name, or the path of its definition")]
    grid: Annotated[Mapping[str, Any], Setting("Every combination of these values.", words="a table of lists")] = field(
        default_factory=dict
    )
    problem: Annotated[Mapping[str, Any], Setting("Fixed fields, and those that are computed from the grid.")] = field(
        default_factory=dict
    )
    problems: Annotated[tuple[Any, ...], Setting("Single problems.", words="a list of tables, [[problems]]")] = ()

    def __post_init__(self) -> None:
        check_settings(self)


def toml_of(path: Path, what: str) -> dict[str, Any]:
    """Returns the content of a TOML file; ``what``: a name of the file for messages.

    Raises:
        UsageError: for a file that does not exist, or is not TOML.
    """
    try:
        return tomllib.loads(content_of(path, MOST_TEXT).decode())
    except OSError as error:
        raise UsageError(f"cannot read {what} {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # ValueError also covers text that is not UTF-8
        raise UsageError(f"{path} is not TOML: {error}") from error


def read_problems(path: Path) -> tuple[str, list[dict[str, object]]]:
    """Returns the kernel's name and the fields of each problem; other keys of the file are for campaigns.

    Raises:
        UsageError: for a file that does not exist, is not TOML, or has a wrong value; the message names the key.
    """
    text, own = toml_of(path, "the list of problems"), in_files(ProblemList)
    try:
        listed = of_file(ProblemList, {key: value for key, value in text.items() if key in own})
        kernel = load_kernel(listed.kernel)
        return kernel.name, [of_types(kernel, values) for values in problem_values(listed, kernel)]
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def problem_values(listed: ProblemList, kernel: AnyKernel) -> list[dict[str, object]]:
    """Returns the fields of each problem that ``[grid]`` and ``[[problems]]`` name, with those of ``[problem]``.

    Raises:
        UsageError: for a value that is not a table, or a name that is not a field of the kernel's problem.
    """
    if not (listed.grid or listed.problems):
        raise UsageError('it needs kernel = "...", and a [grid] with at least one list of values, or [[problems]]')
    fixed = listed.problem
    problems = _values(listed.grid, fixed, kernel) if listed.grid else []
    for number, named in enumerate(listed.problems, 1):
        check_type(f"problems[{number}]", named, dict, "a table")
        for name, value in named.items():
            check_type(f"problems[{number}].{name}", value, (int, float, str, bool), "a number, true or false, or text")
        others = {name: value for name, value in fixed.items() if name not in named}
        problems += _values({name: [value] for name, value in named.items()}, others, kernel)
    return problems


def _values(grid: Mapping[str, object], fixed: Mapping[str, object], kernel: AnyKernel) -> list[dict[str, object]]:
    lists = {name: values if isinstance(values, list) else [values] for name, values in grid.items()}
    for name, value in [*((n, v) for n, values in lists.items() for v in values), *fixed.items()]:
        check_type(name, value, (int, float, str, bool), "a number, true or false, or text")
    if not 1 <= prod(map(len, lists.values())) <= MOST_PROBLEMS:
        sizes = " x ".join(str(len(values)) for values in lists.values())
        raise UsageError(f"[grid] has {sizes} combinations; it must have 1 to {MOST_PROBLEMS}")
    fields = set(vars(kernel.tuned[0]))
    nodes = [node for v in fixed.values() if isinstance(v, str) for node in ast.walk(_parsed(v))]
    read = {node.id for node in nodes if isinstance(node, ast.Name)}
    for name in lists:
        if name not in fields and name not in read:
            raise UsageError(
                f"{name} in [grid] is not a field of {kernel.name}'s problem (has {', '.join(fields)}), and "
                "nothing in [problem] is computed from it"
            )
    problems = []
    for combination in product(*lists.values()):
        chosen = dict(zip(lists, combination, strict=True))
        computed = {n: evaluated(v, chosen) if isinstance(v, str) else v for n, v in fixed.items()}
        problems.append(
            {name: value for name, value in {**chosen, **computed}.items() if name in fields or name in fixed}
        )
    return problems


OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def evaluated(text: str, names: Mapping[str, object]) -> Any:
    """Evaluates integers, names of the grid, ``+ - * //`` and parentheses; any other text stands for itself."""

    def value(node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return _number(text, type(node.op), value(node.left), value(node.right))
        if isinstance(node, ast.Name):
            return node.id
        raise UsageError(f"{text!r} is not made of integers, names of the [grid], + - * // and parentheses")

    return value(_parsed(text).body)


def _number(text: str, operation: type, left: object, right: object) -> int:
    if not isinstance(left, int) or not isinstance(right, int):
        raise UsageError(f"{text!r} computes with {left!r} and {right!r}; both must be integers")
    if operation is ast.FloorDiv and right == 0:
        raise UsageError(f"{text!r} divides by zero, where {left} // {right}")
    result: int = OPERATORS[operation](left, right)
    if abs(result) >= 2**63:
        raise UsageError(f"{text!r} overflows 64 bits")
    return result


def _parsed(text: str) -> ast.Expression:
    return parsed(text, "in [problem]")
