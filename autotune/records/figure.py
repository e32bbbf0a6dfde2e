"""Declares a field of a record in one place, from which its reading, checks, writing and explanation follow."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args, get_type_hints

from ..core.schema import Check, Unsound, as_json_value, as_name, mapping_of
from .cell import NUMBER, Cell

NEAR = 1e-6  # relative difference by rounding
OTHERS = "others"  # the field of a record for members of a later version, which are kept unchanged


@dataclass(frozen=True)
class Figure:
    """The declaration of a field, as part of its type: ``registers: Annotated[int | None, Figure(...)]``.

    Args:
        check: takes the value from JSON and returns it in the form that code uses, or raises Unsound.
        meaning: one phrase for people. Adjacent fields with the same meaning share a row in docs/record.md.
        unit: the unit, or "".
        noun: the noun after its value where `show` and the report state the winner's resources: "72 registers".
        cell: how the packed table of a finished sweep writes it.
        plain: turns the value into JSON; by default it is JSON already.
        in_verdict: whether a finalist's JSON contains it.
        in_exports: whether the formats t4 and kernel-tuner contain it beside the times.
        in_metrics: whether a metric may use it by its name; it must be a number.
        shared: the file beside the sweeps of a kernel in which they share its value, such as "setup"; or "".
    """

    check: Check
    meaning: str
    unit: str = ""
    noun: str = ""
    cell: Cell = NUMBER
    plain: Callable[[Any], object] | None = None
    in_verdict: bool = False
    in_exports: bool = False
    in_metrics: bool = False
    shared: str = ""

    def json(self, value: Any) -> object:
        """Returns a value as JSON."""
        return value if value is None or self.plain is None else self.plain(value)

    def is_same(self, value: Any, other: Any) -> bool:
        """Returns whether two values are the same as far as the figure is known."""
        if is_near(value, other) or value is None or other is None or self.plain is not None:
            return is_near(value, other)
        return self.cell.write(value) == self.cell.write(other)


def figures_of(record: type[Any]) -> Mapping[str, Figure]:
    """Returns field name -> figure of a dataclass, in the order of declaration."""
    if record not in _figures:
        hints = get_type_hints(record, include_extras=True)
        pairs = [(field.name, part) for field in fields(record) for part in get_args(hints[field.name])[1:]]
        _figures[record] = {name: part for name, part in pairs if isinstance(part, Figure)}
    return _figures[record]


def defaults_of(record: type[Any]) -> Mapping[str, Any]:
    """Returns field name -> default of a dataclass, for the fields that have one."""
    if record not in _defaults:
        made = {f.name: f.default_factory() for f in fields(record) if f.default_factory is not MISSING}
        _defaults[record] = made | {f.name: f.default for f in fields(record) if f.default is not MISSING}
    return _defaults[record]


_figures: dict[type[Any], Mapping[str, Figure]] = {}
_defaults: dict[type[Any], Mapping[str, Any]] = {}
_others = mapping_of(as_name, as_json_value)


def checked_fields(
    record: type[Any], row: object, needed: Collection[str], ignored: Collection[str] = ()
) -> dict[str, Any]:
    """Returns the fields of a dataclass in a JSON object; ``others``: members of a later version, checked as JSON.

    A member that is null counts as missing unless its check accepts null.

    Raises:
        Unsound: when ``row`` is not an object, or a member is missing or invalid.
    """
    if not isinstance(row, dict):
        raise Unsound("it is not a JSON object")
    for name in needed:
        if name not in row:
            raise Unsound(f"it lacks {name}")
    name, found, others = "", {}, {}
    figures = figures_of(record)
    try:
        for name, value in row.items():
            if (figure := figures.get(name)) is not None:
                found[name] = figure.check(value)
            elif name not in ignored:
                others[name] = value
        if others:
            name, found[OTHERS] = "a field of a later version", _others(others)
    except RecursionError:
        raise Unsound(f"{name} is nested too deeply") from None
    except Unsound as error:
        raise Unsound(f"{name} {error}") from None
    return found


def as_members(record: Any) -> dict[str, object]:
    """Returns the fields of a record as JSON members, with the members of a later version."""
    members = {name: figure.json(getattr(record, name)) for name, figure in figures_of(type(record)).items()}
    return {**members, **record.others}


def stated(record: Any) -> dict[str, object]:
    """Returns ``as_members`` without the fields that have their defaults, and so need not be written."""
    defaults = defaults_of(type(record))
    return {
        name: value
        for name, value in as_members(record).items()
        if name not in defaults or getattr(record, name) != defaults[name]
    }


def is_near(value: Any, other: Any) -> bool:
    """Returns whether two values are equal but for rounding, so that one need not be written beside the other."""
    if isinstance(value, tuple) and isinstance(other, tuple) and len(value) == len(other):
        return all(map(is_near, value, other))
    if isinstance(value, float) and isinstance(other, float | int):
        return abs(value - other) <= NEAR * abs(value)
    return bool(value == other)
