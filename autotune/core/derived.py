"""Derives the parts that a definition may leave out: sizes, edge sizes, the default config, the order of arguments.

Each function evaluates the definition at other sizes, and concludes only what holds at all of them. This module does
not know ``Kernel``: a definition is passed as functions of a problem.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf, prod
from typing import NamedTuple, TypeVar

from .config import Value
from .errors import UsageError
from .problem import Problem, replaced, replacements
from .space import Space

P = TypeVar("P", bound=Problem)
Shapes = Mapping[str, tuple[int, ...]]
Grid = tuple[int, int, int]

PROBES = (*range(1, 33), 48, 64, 96, 128, 256, 512, 1024)  # added to a size: they distinguish n / 2 from n // 2
MOST_LEAST = 4096  # upper limit of the search for the smallest size that a problem allows
MOST_SPAN = 1 << 20  # upper limit of the search for the size that one block covers
REMAINDERS = 32  # threads of a warp, and a multiple of the widths of vectors
MOST_DRAWN = 1 << 17  # most elements of a drawn problem
MOST_ELEMENTS = 1 << 24  # most elements of an edge problem, in all arrays together


# ---------------------------------------------------------------------- runtime sizes from shapes
class _Line(NamedTuple):
    """An extent as a function of a size: slope x size + offset."""

    slope: Fraction
    offset: Fraction

    def size_at(self, extent: int) -> int | None:
        """Returns the integer size that has this extent, or None if there is none."""
        size = (extent - self.offset) / self.slope
        return int(size) if size.denominator == 1 else None


def sizes_of(shapes_at: Callable[[P], Shapes], problem: P, names: Sequence[str], shapes: Shapes) -> dict[str, int]:
    """Returns the sizes among ``names`` that ``shapes`` determine; the other fields are as in ``problem``.

    An axis determines a size if its extent depends on this size alone, and is a x size + b at every probed size. Axes
    that round (``n // 2`` for any n) or that depend on two sizes determine nothing.
    """
    found: dict[str, int] = {}
    for name in names:
        moved = [(at, shapes_at(at)) for at in _others(problem, names, name)]
        probes = [(getattr(at, name), shapes_at(at)) for at in _probes(problem, names, name)]
        for array, shape in shapes.items():
            if any(len(s.get(array, ())) != len(shape) for _, s in (*probes, *moved)):
                continue
            for axis, extent in enumerate(shape):
                line = _line([(size, s[array][axis]) for size, s in probes])
                is_free = all(s[array][axis] == probes[0][1][array][axis] for _, s in moved)
                if name not in found and line and is_free and (size := line.size_at(extent)) is not None:
                    found[name] = size
    return found


def asked_sizes(
    kernel: str, shapes_at: Callable[[P], Shapes], problem: P, names: Sequence[str], shapes: Shapes
) -> dict[str, int]:
    """Returns ``sizes_of``, and requires all of ``names``; ``shapes_at`` gives the shapes of the inputs.

    Later checks report an input that is missing or has another number of axes.

    Raises:
        UsageError: when the shapes do not determine one of ``names``; the message says how to give it.
    """
    found = sizes_of(shapes_at, problem, names, shapes)
    asked = [name for name in names if name not in found]
    if asked and all(len(shapes.get(name, ())) == len(shape) for name, shape in shapes_at(problem).items()):
        told = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items()) or "there are no arrays"
        in_dict = ", ".join(f'"{name}": {getattr(problem, name)}' for name in asked)
        in_call = ", ".join(f"{name}={getattr(problem, name)}" for name in asked)
        raise UsageError(
            f"{kernel}: the shapes of the inputs ({told}) do not determine {', '.join(asked)}; give it by name, as in "
            f"autotune.run(..., problem={{{in_dict}}}) or {kernel}({in_call}) of a package"
        )
    return found


def _probes(problem: P, names: Sequence[str], name: str) -> list[P]:
    """Returns the problem, and those with a larger ``name`` that the definition accepts; if it must equal other sizes,
    these are larger, too.
    """
    size = getattr(problem, name)
    alike = [other for other in names if getattr(problem, other) == size]
    others = [n for n in dict.fromkeys((2 * size, 3 * size, *(size + more for more in PROBES))) if n != size]
    tried = (replaced(problem, {name: n}) or replaced(problem, dict.fromkeys(alike, n)) for n in others)
    return [problem, *(other for other in tried if other is not None)]


def _others(problem: P, names: Sequence[str], name: str) -> Iterator[P]:
    """Yields problems that differ in one of the other sizes, and not in ``name``."""
    for other in names:
        if other != name:
            yield from (at for at in _probes(problem, names, other)[1:4] if getattr(at, name) == getattr(problem, name))


def _line(points: Sequence[tuple[int, int]]) -> _Line | None:
    """Returns the rising line through all points (size, extent), or None if there is none."""
    (size, extent), *others = points
    if len(others) < 2:
        return None
    slope = Fraction(others[0][1] - extent, others[0][0] - size)
    line = _Line(slope, extent - slope * size)
    return line if slope > 0 and all(e == line.slope * s + line.offset for s, e in others) else None


# ---------------------------------------------------------------------- edge sizes
def edge_sizes(
    problem: P, names: Sequence[str], grid_at: Callable[[P], Grid], shapes_at: Callable[[P], Shapes], n_threads: int
) -> tuple[P, ...]:
    """Returns the smallest problem, and two for each size in ``names``: 1 more than a block covers, with all other
    sizes 2; and 1 less than two blocks cover.

    A block covers the largest size that needs no more blocks than the smallest one; where the grid does not depend on a
    size, it covers ``n_threads``. A size that the problem refuses is raised to the next multiple of the smallest size.
    A problem that is still refused, or has an empty array or grid, is left out.
    """

    least = _least(problem, names, grid_at, shapes_at)
    found = {least: None}
    for name in names:
        span = _span(least, name, grid_at) or n_threads
        beside = {other: 2 for other in names if other != name}
        for sizes in ({name: span + 1, **beside}, {name: 2 * span - 1}):
            edge = _near(least, sizes)
            if edge is not None and _n_elements(edge, grid_at, shapes_at) <= MOST_ELEMENTS:
                found[edge] = None
    return tuple(found)


def drawn_sizes(
    problem: P,
    names: Sequence[str],
    grid_at: Callable[[P], Grid],
    shapes_at: Callable[[P], Shapes],
    n_threads: int,
    seed: int,
) -> tuple[P, ...]:
    """Returns two problems with other remainders by 32 of each size in ``names``: 16 seeds in a row have all of them.

    A size is the least one with its remainder beyond what a block covers, or of 1 to 32 where arrays would be large. A
    size that the problem refuses is raised as in ``edge_sizes``.
    """
    least = _least(problem, names, grid_at, shapes_at)
    spans = {name: _span(least, name, grid_at) or n_threads for name in names}
    found: dict[P, None] = {}
    for at in (2 * seed, 2 * seed + 1):
        remainders = {name: ((2 * k + 1) * at + 5 * k) % REMAINDERS for k, name in enumerate(names)}
        beyond = {name: span + 1 + (remainders[name] - span - 1) % REMAINDERS for name, span in spans.items()}
        small = {name: remainder or REMAINDERS for name, remainder in remainders.items()}
        one = names[at % len(names)]
        for sizes in (beyond, {**small, one: beyond[one]}, small):
            edge = _near(least, sizes)
            if edge is not None and _n_elements(edge, grid_at, shapes_at) <= MOST_DRAWN:
                found[edge] = None
                break
    return tuple(found)


def _least(problem: P, names: Sequence[str], grid_at: Callable[[P], Grid], shapes_at: Callable[[P], Shapes]) -> P:
    """Returns the problem with the smallest sizes that have no empty array or grid."""
    least = problem
    for name in names:
        tried = (replaced(least, {name: size}) for size in range(_first_size(least, name), MOST_LEAST))
        least = next((at for at in tried if at is not None and _n_elements(at, grid_at, shapes_at) < inf), least)
    return least


@lru_cache(maxsize=256)  # it is the same for all configs, and a class may refuse hundreds of sizes
def _first_size(problem: Problem, name: str) -> int:
    """Returns the first size that the problem's class accepts; MOST_LEAST if there is none below."""
    tried = enumerate(replacements(problem, name, range(1, MOST_LEAST)), 1)
    return next((size for size, at in tried if at is not None), MOST_LEAST)


def _n_elements(at: P, grid_at: Callable[[P], Grid], shapes_at: Callable[[P], Shapes]) -> float:
    """Returns the number of elements in all arrays; infinity if an array or the grid is empty."""
    sizes = [prod(shape) for shape in shapes_at(at).values()]
    return sum(sizes) if min(grid_at(at)) > 0 and min(sizes, default=1) > 0 else inf


def _span(least: P, name: str, grid_at: Callable[[P], Grid]) -> int | None:
    """Returns the largest size whose grid equals that of ``least``; None where the grid does not depend on the size."""
    first, low = grid_at(least), max(1, int(getattr(least, name)))
    high = low

    def is_same(size: int) -> bool:
        at = _near(least, {name: size})
        return at is None or grid_at(at) == first

    while is_same(high):
        low, high = high, 2 * high
        if high > MOST_SPAN:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_same(middle) else (low, middle)
    return low


def _near(least: P, sizes: Mapping[str, int]) -> P | None:
    """Returns the problem of these sizes; a size that is refused is raised to a multiple of the smallest."""
    at: P | None = least
    for name, size in sizes.items():
        if at is not None:
            unit = max(1, getattr(least, name))
            at = replaced(at, {name: size}) or replaced(at, {name: -(-size // unit) * unit})
    return at


# ---------------------------------------------------------------------- class attributes
def first_config(space: Space) -> dict[str, Value]:
    """Returns the first value of each parameter that applies, given the values before it."""
    chosen: dict[str, Value] = {}
    for name, parameter in space.parameters.items():
        if parameter.applies(chosen):
            chosen[name] = parameter.values[0]
    return chosen


COMMENT = re.compile(r"\{#.*?#\}|//[^\n]*|/\*.*?\*/", re.DOTALL)
EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
TYPE_ARGUMENTS = re.compile(r"<[^<>]*>")


def arguments_in(template: str, function: str) -> tuple[str, ...] | None:
    """Returns the names of the parameters of a ``__global__`` function of a template, without its tensor maps.

    None: the template lacks the function, or its signature depends on Jinja statements or macros.
    """
    text = EXPRESSION.sub("0", COMMENT.sub(" ", template))
    found = re.search(rf"__global__[^;{{}}]*?\b{re.escape(function)}\s*\(([^;{{}}]*?)\)\s*\{{", text)
    if found is None:
        return None
    parts = [part for part in without_type_arguments(found[1]).split(",") if "__grid_constant__" not in part]
    words = [re.findall(r"\w+", part) for part in parts if part.strip()]
    if words == [["void"]]:
        return ()
    if "(" in found[1] or any(len(each) < 2 for each in words):  # a macro makes them
        return None
    return tuple(each[-1] for each in words)


def without_type_arguments(parameters: str) -> str:
    """Returns the parameters of a function without the type arguments in <>, which may contain commas."""
    while (shorter := TYPE_ARGUMENTS.sub("", parameters)) != parameters:
        parameters = shorter
    return parameters
