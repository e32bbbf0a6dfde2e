"""Completes a problem of which a user names some fields, where the default values contradict them.

A user names some fields: ``n_channels=8192``. These stay, and the other sizes follow from them. This module does not
know ``Kernel``: a definition is passed as problems, and as a function that judges one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from .problem import Problem, baked_fields, distance, replaced, runtime_fields, size_fields

P = TypeVar("P", bound=Problem)
ProblemBytes = Callable[[P], int | None]  # problem -> bytes of its arrays, or None if it is refused

LIGHT_BYTES = 1 << 25  # arrays of this size are small on any device
MOST_BITS = 32  # width of the largest size


def completed_problem(
    base: P, named: Mapping[str, object], usual: Mapping[str, object], known: Sequence[P], judge: ProblemBytes[P]
) -> P | None:
    """Returns a problem with the fields ``named``, where ``base`` with these fields is refused; None: there is none.

    The other baked fields come from ``base``, or the definition computes them from their defaults. The other sizes are
    those of the nearest ``known`` problem with these baked fields. If there is none, they come from ``usual`` or else
    ``base``, except those that the definition computes; and where the problem is then refused, or takes far more memory
    than ``base``, one size is halved or doubled until it fits.
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
    """Returns fields that would complete ``named`` to a problem, such as ``n_times=32 or layout=batches``.

    Each field is tried with the values that it has in ``examples``. "": none of them helps.
    """
    found: list[str] = []
    for name in baked_fields(type(base)):
        if name not in named:
            values = dict.fromkeys(getattr(one, name) for one in examples)
            found += [f"{name}={value}" for value in values if can_be({**named, name: value})][:1]
    return " or ".join(found)


def computed(base: P, named: Mapping[str, object]) -> dict[str, object]:
    """Returns the default values of the fields, not ``named``, that the definition computes if they are left out."""
    found = {}
    for field in fields(base):
        at = None if field.default is MISSING else replaced(base, {field.name: field.default})
        if at is not None and getattr(at, field.name) != field.default and field.name not in named:
            found[field.name] = field.default
    return found


def _sizes(
    base: P, usual: Mapping[str, Any], opened: Mapping[str, object], named: Mapping[str, object]
) -> dict[str, int]:
    """Returns the sizes that may change: the largest first; those that the definition computes come last."""
    sizes = {name: int(usual.get(name, getattr(base, name))) for name in size_fields(base) if name not in named}
    names = sorted((name for name, size in sizes.items() if size > 0), key=lambda name: (name in opened, -sizes[name]))
    return {name: sizes[name] for name in names}


def _resized(
    base: P, values: Mapping[str, object], sizes: Mapping[str, int], usual: Mapping[str, object], judge: ProblemBytes[P]
) -> P | None:
    """Returns ``base`` with ``values``, and if necessary with one of ``sizes`` changed; None: that does not help.

    The first problem that needs at most 1.5 times the memory of ``base`` is taken; else the one that needs the least.
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
