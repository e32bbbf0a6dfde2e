"""Finds the numbers of a call that are sizes: they stay arguments of the tuned kernel, and arrays and grid follow them.

An integer argument is a size if the grid's extent is this number or a product of two such numbers, or if an array's
extent is one of these, a multiple, or one with a halo. Equal numbers are one size. If an extent of the grid does not
follow from the arguments, no number is a size: with a larger one the kernel would compute only a part.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from keyword import iskeyword
from typing import Any

from .call import Call
from .source import GRID_SIZES

LEAST = 2  # smaller numbers are flags and counts
MOST_TIMES = 16  # largest ratio of an extent to a size
MOST_HALO = 8  # elements that a halo may add to a size
RESERVED = ("data", "size", "device", "runtime", "baked", "str")  # names that a problem or a package already uses
SizeExpression = tuple[str, tuple[str, ...]]  # Python for a number, and the sizes that occur in it


@dataclass(frozen=True)
class Sizes:
    """The roles of the numbers of a call.

    ``fields``: name of each size -> its tuned value. ``of``: argument -> name of its size. ``inputs``: numbers that
    each call of the package gives. ``fixed``: arguments that are constants of the definition; ``why`` they are.
    """

    fields: Mapping[str, int] = field(default_factory=dict)
    of: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    why: str = ""

    def extent(self, n: int) -> str:
        """Returns Python for an array's length along an axis: an expression of sizes, or the number itself."""
        text = _text(n, self.fields)
        return str(n) if text is None else text

    def span(self, n: int) -> str:
        """Returns Python for the problem size along an axis of the grid."""
        text = _text(n, self.fields, is_span=True)
        return str(n) if text is None else text

    @property
    def told(self) -> str:
        """Returns a text for people: the arguments of a package of the kernel, and the fixed numbers."""
        sizes = [f"{name}={value}" for name, value in self.fields.items()]
        alike = [f"{argument} is {name}" for argument, name in self.of.items() if argument != name]
        parts = [f"tuned at {', '.join(sizes)}, and callable at others" if sizes else "callable at this size only"]
        parts += [f"{', '.join(self.fixed)} fixed, since {self.why}"] if self.fixed else []
        parts += [", ".join(alike)] if alike else []
        parts += [f"{', '.join(self.inputs)} given by each call"] if self.inputs else []
        return "; ".join(parts)


def sizes_of_call(call: Call) -> Sizes:
    """Returns the roles of the numbers of a call."""
    numbers = {each.name: each.number for each in call.arguments if not each.is_array}
    launch = call.launch
    launched = (launch.of_grid | launch.of_block) & call.whole.keys() if launch is not None else frozenset()
    whole = {name: n for name, n in call.whole.items() if n >= LEAST or name in launched}
    listed = () if launch is not None and launch.grid is not None else call.problem_size
    listed = listed if isinstance(listed, tuple | list) else [listed]
    spans = [int(n) for n in listed if not callable(n) and not isinstance(n, str) and n >= LEAST]
    extents = [n for each in call.arrays for n in each.memory.stored.shape if n >= LEAST]
    named: dict[int, str] = {}
    for name, n in whole.items():
        named.setdefault(n, _field(name))
    fields = {name: n for n, name in named.items()}
    used = {name for n in spans for name in _used(n, fields, is_span=True)}
    used |= {name for n in extents for name in _used(n, fields)} | {named[whole[name]] for name in launched}
    sizes = {name: n for name, n in fields.items() if name in used}
    why = _why_fixed(call, spans, extents, sizes)
    if why:
        fixed = tuple(whole)  # each of them may be a bound of an array
        return Sizes(inputs=tuple(name for name in numbers if name not in fixed), fixed=fixed, why=why)
    of = {name: named[n] for name, n in whole.items() if named[n] in sizes}
    free = [name for name in numbers if name not in of]
    halos = [n for n in extents if "+" in (_text(n, sizes) or "")]
    fixed = tuple(name for name in free if numbers[name].dtype.kind in "iu") if halos else ()
    why = f"an array has a halo ({halos[0]} is {_text(halos[0], sizes)}), which may follow from it" if halos else ""
    return Sizes(sizes, of, tuple(name for name in free if name not in fixed), fixed, why.replace("problem.", ""))


def _field(name: str) -> str:
    """Returns the name of the size for the argument ``name``."""
    if name in RESERVED or iskeyword(name):
        return f"{name}_"
    return f"size{name}" if name.startswith("_") else name


def _why_fixed(call: Call, spans: list[int], extents: list[int], sizes: Mapping[str, int]) -> str:
    """Returns why all numbers must keep their tuned values, or ""."""
    if call.has_functions:
        return "functions compute the grid"
    if call.launch is not None and call.launch.grid is not None and not call.launch.of_grid & call.whole.keys():
        return f"no argument sets the grid of {call.launch.place}"
    if call.defines is None and GRID_SIZES & call.source.names:
        return "the source uses grid_size_x, y or z"
    if unknown := [n for n in spans if _text(n, sizes, is_span=True) is None]:
        return f"the grid spans {unknown[0]}, which is not an argument"
    unknown = [n for n in extents if _text(n, sizes) is None and n >= min(sizes.values(), default=n + 1)]
    return f"an array has {unknown[0]} elements along an axis, which is not an argument" if unknown else ""


def _text(n: int, fields: Mapping[str, int], is_span: bool = False) -> str | None:
    """Returns Python for ``n``; None if it does not follow from the sizes, or follows in several ways."""
    for candidates in _candidates(n, fields)[: 2 if is_span else None]:
        if candidates:
            return candidates[0][0] if len(candidates) == 1 else None
    return None


def _used(n: int, fields: Mapping[str, int], is_span: bool = False) -> tuple[str, ...]:
    """Returns the names of the sizes that give ``n``."""
    for candidates in _candidates(n, fields)[: 2 if is_span else None]:
        if candidates:
            return candidates[0][1] if len(candidates) == 1 else ()
    return ()


def _candidates(n: int, fields: Mapping[str, int]) -> list[list[SizeExpression]]:
    """Returns the expressions that give ``n``, in groups: sizes, products, multiples, and sizes with a halo."""
    same: list[SizeExpression] = [(f"problem.{name}", (name,)) for name, value in fields.items() if value == n]
    pairs: list[tuple[Any, Any]] = [
        (a, b) for a, b in combinations_with_replacement(fields.items(), 2) if a[1] * b[1] == n
    ]
    products: list[SizeExpression] = [(f"problem.{a[0]} * problem.{b[0]}", (a[0], b[0])) for a, b in pairs]
    times: list[SizeExpression] = [
        (f"{n // value} * problem.{name}", (name,))
        for name, value in fields.items()
        if n % value == 0 and 1 < n // value <= MOST_TIMES
    ]
    halo: list[SizeExpression] = [
        (f"problem.{name} + {n - value}", (name,))
        for name, value in fields.items()
        if 0 < n - value <= min(MOST_HALO, value // 8)
    ]
    return [same, products, times, halo]
