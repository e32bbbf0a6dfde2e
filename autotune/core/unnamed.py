"""Finds the fields that a question leaves open, where those of the default problem contradict the fields it names.

A question names some fields of a problem: ``n_channels=8192``. What it names stays; the sizes that it does not name
follow from it. Nothing here knows ``Kernel``: a definition comes in as problems, and as a function that judges one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from .problem import Problem, baked_fields, distance, replaced, runtime_fields, size_fields

P = TypeVar("P", bound=Problem)
ProblemBytes = Callable[[P], int | None]  # the bytes of a problem's arrays, or None: it is refused

LIGHT_BYTES = 1 << 25  # arrays that are small on any device
MOST_BITS = 32  # of a size


def completed_problem(
    base: P, named: Mapping[str, object], usual: Mapping[str, object], known: Sequence[P], judge: ProblemBytes[P]
) -> P | None:
    """Returns a problem that has the fields ``named``, where ``base`` with them cannot be; None: there is none.

    The other baked fields are those of ``base``, or what the definition makes of their defaults. The other sizes are
    the nearest that are ``known`` for these baked fields. If none are, they are those of ``base``, or ``usual`` in
    their place, but for those that the definition computes; and where these cannot be, or take far more memory than
    ``base`` does, one of them is halved or doubled until they can.
    """
    known = sorted(known, key=lambda one: _distance(one, base))
    runtime = runtime_fields(type(base))
    left_open = computed(base, named)
    sizes = {name: value for name, value in left_open.items() if name in runtime}
    for opened in (sizes, left_open) if left_open != sizes else (sizes,):
        found = _resized(base, {**usual, **opened, **named}, _sizes(base, usual, opened, named), usual, judge)
        own = base if found is None else found
        baked = {name: named.get(name, getattr(own, name)) for name in baked_fields(type(base))}
        for one in known:
            at = replaced(one, named) if all(getattr(one, name) == value for name, value in baked.items()) else None
            if at is not None and judge(at) is not None:
                return at
        if found is not None:
            return found
    return None


def besides(
    base: P, named: Mapping[str, object], examples: Sequence[P], can_be: Callable[[Mapping[str, object]], bool]
) -> str:
    """Returns what could be named besides ``named`` to make a problem of it, as ``n_times=32 or layout=batches``.

    A field is tried with the values that ``examples`` have. "": none of them would help.
    """
    found: list[str] = []
    for name in baked_fields(type(base)):
        if name not in named:
            values = dict.fromkeys(getattr(one, name) for one in examples)
            found += [f"{name}={value}" for value in values if can_be({**named, name: value})][:1]
    return " or ".join(found)


def computed(base: P, named: Mapping[str, object]) -> dict[str, object]:
    """Returns the fields beside ``named`` that the definition computes where they have their default, with that one."""
    found = {}
    for field in fields(base):
        at = None if field.default is MISSING else replaced(base, {field.name: field.default})
        if at is not None and getattr(at, field.name) != field.default and field.name not in named:
            found[field.name] = field.default
    return found


def _sizes(
    base: P, usual: Mapping[str, Any], opened: Mapping[str, object], named: Mapping[str, object]
) -> dict[str, int]:
    """Returns the sizes that may change, the largest first, those that the definition computes last."""
    sizes = {name: int(usual.get(name, getattr(base, name))) for name in size_fields(base) if name not in named}
    names = sorted((name for name, size in sizes.items() if size > 0), key=lambda name: (name in opened, -sizes[name]))
    return {name: sizes[name] for name in names}


def _resized(
    base: P, values: Mapping[str, object], sizes: Mapping[str, int], usual: Mapping[str, object], judge: ProblemBytes[P]
) -> P | None:
    """Returns ``base`` with ``values``, and one of the ``sizes`` changed where need be; None: that does not help.

    The first is taken that needs at most half as much memory again as ``base``; if none does, that of the least memory.
    """
    usually = judge(replaced(base, usual) or base) or 0
    least: tuple[int, P] | None = None
    for at in _tried(base, values, sizes):
        n_bytes = None if at is None else judge(at)
        if at is None or n_bytes is None:
            continue
        if n_bytes <= max(usually * 3 // 2, LIGHT_BYTES):
            return at
        if least is None or n_bytes < least[0]:
            least = n_bytes, at
    return None if least is None else least[1]


def _tried(base: P, values: Mapping[str, object], sizes: Mapping[str, int]) -> Iterator[P | None]:
    """Yields the problem of ``values``; then those with one size halved until it is 1; then with one doubled."""
    yield replaced(base, values)
    for name, usual in sizes.items():
        for power in range(1, usual.bit_length()):
            yield replaced(base, {**values, name: usual >> power})
    for name, usual in sizes.items():
        for power in range(1, MOST_BITS - usual.bit_length()):
            yield replaced(base, {**values, name: usual << power})


def _distance(one: P, other: P) -> float:
    sizes = size_fields(other)
    return distance({name: getattr(one, name) for name in sizes}, {name: getattr(other, name) for name in sizes})
