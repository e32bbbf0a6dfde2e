"""Finds how arrays and grid follow from the numbers of a call, so that one definition serves other sizes.

The numbers are integer arguments, and macros that are integers; each is a field of the definition's problem. An extent
is one of them, a product of two, a multiple, or one with a halo, in all calls that are known. Where several numbers
would do, since they were equal in each call, the first is taken, and problems in which they differ are refused. Where
none does, the definition serves the sizes of its calls only: with a larger one the kernel would compute only a part.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from keyword import iskeyword

from .call import Call

LEAST = 2  # smaller numbers are flags and counts
MOST_TIMES = 16  # largest ratio of an extent to a size
MOST_HALO = 8  # elements that a halo may add to a size
MOST_SHOWN_HALO = 64  # elements, where calls of several sizes show it
RESERVED = ("data", "size", "device", "runtime", "baked", "str")  # names that a problem or a package already uses
SizeExpression = tuple[str, tuple[str, ...]]  # Python for a number, and the fields that occur in it
Extents = tuple[int, ...]  # a number in each call
SomeExtents = tuple[int | None, ...]  # None: the call does not say it


@dataclass(frozen=True)
class CallSizes:
    """The numbers of one call.

    ``whole``: integer arguments and macros, by name. ``spans``: the problem size along each axis of the grid; None: it
    is not a number there; (): the source's launch sets the grid. ``shapes``: those of the arrays. ``label``: the size,
    where ``whole`` does not tell.
    """

    whole: Mapping[str, int]
    spans: tuple[int | None, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    label: str = ""

    @property
    def key(self) -> tuple[int | str, ...]:
        """Returns what tells the problem from the others of its definition."""
        return *self.whole.values(), self.label

    @staticmethod
    def of(call: Call) -> "CallSizes":
        listed = () if call.launch is not None and call.launch.grid is not None else call.problem_size
        listed = listed if isinstance(listed, tuple | list) else [listed]
        shapes = {each.name: each.memory.stored.shape for each in call.arrays}
        spans = tuple(None if callable(n) or isinstance(n, str) else int(n) for n in listed)
        return CallSizes(call.whole, spans, shapes, "" if call.whole else _label(spans))


@dataclass(frozen=True)
class Sizes:
    """How the numbers of a definition follow from the fields of its problem.

    ``fields``: argument or macro -> its field. ``extents``: Python for each axis of each array, ``spans``: for each
    axis of the problem size. ``demands``: conditions on a problem, as Python, with their reason. ``why``: the reason to
    serve the sizes of the calls only. ``calls``: those that are known; the last one is the call itself.
    """

    calls: tuple[CallSizes, ...]
    fields: Mapping[str, str]
    extents: Mapping[str, tuple[str, ...]]
    spans: tuple[str, ...]
    demands: Mapping[str, str]
    why: str

    @property
    def values(self) -> dict[str, int]:
        """Returns the value of each field in the call itself."""
        return {self.fields[name]: n for name, n in self.calls[-1].whole.items()}

    @property
    def told(self) -> str:
        """Returns a text for people: the arguments of a package of the kernel."""
        now = ", ".join(f"{name}={value}" for name, value in self.values.items())
        if self.why or not now:
            only = f"callable at {f'{len(self.calls)} sizes' if len(self.calls) > 1 else 'this size'} only"
            fixed = f"; {', '.join(self.fields)} fixed" if now else ""
            return f"{only}{fixed}, since {self.why}" if self.why else only
        more = f" and {len(self.calls) - 1} more" if len(self.calls) > 1 else ""
        varied = [own for name, own in self.fields.items() if len({each.whole[name] for each in self.calls}) > 1]
        formulas = " ".join((*self.spans, *(text for texts in self.extents.values() for text in texts)))
        is_shown = any(re.search(rf"\bproblem\.{own}\b", formulas) for own in varied)
        told = f"tuned at {now}{more}, and callable at others"
        told += "" if is_shown else " if their arrays grow as this size shows"
        return "; ".join([told, *dict.fromkeys(self.demands.values())])


def sizes_of_call(call: Call, known: Sequence[CallSizes] = ()) -> Sizes:
    """Returns the roles of the numbers of a call, after the calls ``known`` of the same kernel."""
    own = CallSizes.of(call)
    if not set(own.spans) - {1} <= set(own.whole.values()) and _sizes_of(call, (own,)).why:
        own = replace(own, label=_label(own.spans))
    own = _labelled(own, known)
    return _sizes_of(call, (*(each for each in known if each.key != own.key), own))


def _sizes_of(call: Call, calls: tuple[CallSizes, ...]) -> Sizes:
    finder = _Finder(calls, _fields(calls[-1].whole))
    spanning = [each.spans for each in calls]
    why = _why_fixed(call)
    spans = []
    for axis in range(len(calls[-1].spans)):
        ns = tuple((*of, 1, 1, 1)[axis] if of else None for of in spanning)
        text = "1" if set(ns) <= {1, None} else finder.text(ns, is_span=True)
        why = why or ("" if text else f"the grid spans {ns[-1]}, which is not an argument")
        spans.append(text or (str(ns[-1]) if set(ns) == {ns[-1]} else f"called(problem)['spans'][{axis}]"))
    extents: dict[str, list[str]] = {name: [] for name in calls[-1].shapes}
    unknown: list[int] = []
    n_fixed = {each.name: 1 for each in call.arrays if not each.memory.is_plain}  # axes of a structure's bytes
    for name, shape in calls[-1].shapes.items():
        for axis, n in enumerate(shape):
            ns = tuple(each.shapes[name][axis] for each in calls)
            text = finder.text(ns)
            if not text and set(ns) == {n}:
                text = str(n)
                unknown += [n] if n >= LEAST and axis < len(shape) - n_fixed.get(name, 0) else []
            elif not text:
                why = why or f"an array has {n} elements along an axis, which is not an argument"
            extents[name].append(text or f"called(problem)['shapes'][{name!r}][{axis}]")
    used = [n for name, n in calls[-1].whole.items() if finder.fields[name] in finder.used]
    large = [n for n in unknown if MOST_TIMES * n >= min(used, default=MOST_TIMES * n + 1)]  # it may be a part of one
    if large and len(calls) == 1:
        why = why or f"an array has {large[0]} elements along an axis, which is not an argument"
    told = "{} and {} were equal in each call, and either may set an extent: tune where they differ"
    demands = {f"{a} == {b}": told.format(a, b).replace("problem.", "") for a, b in finder.alike}
    if finder.halo:
        ends, text = finder.halo
        for name, named in finder.fields.items():
            values = {each.whole[name] for each in calls}
            if named not in finder.used and len(values) == 1:
                told = f"{name} fixed, since an array has a halo ({ends} is {text}), which may follow from it"
                demands[f"problem.{named} == {values.pop()}"] = told.replace("problem.", "")
    if why:
        demands = {"key_of(problem) in CALLS": f"callable at the sizes of its calls only, since {why}"}
    return Sizes(
        calls, finder.fields, {name: tuple(each) for name, each in extents.items()}, tuple(spans), demands, why
    )


def _labelled(sizes: CallSizes, known: Sequence[CallSizes]) -> CallSizes:
    """Returns the sizes, with a label if a known call has the same numbers, and arrays or a grid of other sizes."""
    alike = [each for each in known if each.key == sizes.key]
    if all((each.spans, each.shapes) == (sizes.spans, sizes.shapes) for each in alike):
        return sizes
    text = _label(sizes.spans) + "".join(f"+{'x'.join(map(str, s))}" for s in sizes.shapes.values())
    return replace(sizes, label=text)


def _label(spans: Sequence[int | None]) -> str:
    return "x".join("any" if n is None else str(n) for n in spans)


def _fields(names: Mapping[str, int]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name in names:
        own = f"{name}_" if name in RESERVED or iskeyword(name) else f"size{name}" if name.startswith("_") else name
        while own in fields.values():
            own += "_"
        fields[name] = own
    return fields


def _why_fixed(call: Call) -> str:
    """Returns why a kernel serves the sizes of its calls only, whatever these are; "": that depends on the sizes."""
    if call.has_functions:
        return "functions compute the grid"
    if call.launch is not None and call.launch.grid is not None and not call.launch.of_grid & call.whole.keys():
        return f"no argument sets the grid of {call.launch.place}"
    sizes = call.problem_size if isinstance(call.problem_size, tuple | list) else [call.problem_size]
    if texts := [each for each in sizes if isinstance(each, str)]:
        return f"the problem size {texts[0]!r} names no argument"
    if call.has_grid_sizes:
        return "the source uses grid_size_x, y or z"
    return ""


class _Finder:
    """Finds Python for extents, and remembers what it used."""

    def __init__(self, calls: Sequence[CallSizes], fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        self.used: set[str] = set()
        self.alike: dict[tuple[str, str], None] = {}  # expressions that were equal in each call
        self.halo: tuple[int, str] | None = None
        self._values = {own: tuple(each.whole[name] for each in calls) for name, own in fields.items()}
        self._said: list[int] = []  # positions of the calls that say the present extent

    def text(self, extents: SomeExtents, is_span: bool = False) -> str:
        """Returns Python that gives the extent in each call; "" if there is none."""
        self._said = [i for i, n in enumerate(extents) if n is not None]
        ns = tuple(n for n in extents if n is not None)
        if max(ns) < LEAST:
            return ""
        rules = (self._same, self._products, self._multiples, self._halos)
        for i, candidates in enumerate(rules[: 2 if is_span else 4]):
            found = list(candidates(ns))
            if not found:
                continue
            (first, names), *others = found
            self.used.update(names)
            self.alike |= {(first, other): None for other, _ in others}
            self.alike |= {(f"problem.{a}", f"problem.{b}"): None for a in names for b in self._equal_to(a)}
            if i == 3:
                self.halo = self.halo or (ns[-1], first)
            return first
        return ""

    def _sizes(self) -> Iterator[tuple[str, Extents]]:
        """Yields the fields, one of those that were equal in each call, with their values."""
        for name, values in self._values.items():
            said = tuple(values[i] for i in self._said)
            is_first = next(other for other, of in self._values.items() if of == values) == name
            if is_first and max(said) >= LEAST and min(said) > 0:
                yield name, said

    def _equal_to(self, name: str) -> list[str]:
        return [other for other, of in self._values.items() if of == self._values[name] and other != name]

    def _same(self, ns: Extents) -> Iterator[SizeExpression]:
        return ((f"problem.{name}", (name,)) for name, values in self._sizes() if values == ns)

    def _products(self, ns: Extents) -> Iterator[SizeExpression]:
        for (a, of_a), (b, of_b) in combinations_with_replacement(self._sizes(), 2):
            if tuple(m * n for m, n in zip(of_a, of_b, strict=True)) == ns:
                yield f"problem.{a} * problem.{b}", (a, b)

    def _multiples(self, ns: Extents) -> Iterator[SizeExpression]:
        for name, values in self._sizes():
            times = {(n // value if n % value == 0 else 0) for n, value in zip(ns, values, strict=True)}
            if len(times) == 1 and 1 < (by := times.pop()) <= MOST_TIMES:
                yield f"{by} * problem.{name}", (name,)

    def _halos(self, ns: Extents) -> Iterator[SizeExpression]:
        for name, values in self._sizes():
            more = {n - value for n, value in zip(ns, values, strict=True)}
            most = min(MOST_HALO, min(values) // 8) if len(set(values)) == 1 else MOST_SHOWN_HALO
            if len(more) == 1 and 0 < (halo := more.pop()) <= most:
                yield f"problem.{name} + {halo}", (name,)
