"""Checks values from JSON one by one as they are read, so that later code may rely on their types.

A check takes a value and returns it in the form that later code uses, or raises Unsound. Control characters of text for
people are escaped here, since a terminal obeys them.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn, get_type_hints

from .errors import printable

Check = Callable[[Any], Any]

MOST_WHOLE = 2**63  # range of an integer column of a table
MOST = 1e30  # largest magnitude of a number: the product of two stays finite
SHORTEST_S, LONGEST_S = 1e-15, 1e12  # range of a measured time


class Unsound(ValueError):
    """An invalid value; the message says which one, and what it must be."""


def _refuse(constant: str) -> NoReturn:
    raise Unsound(f"{constant} is not a number in JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).decode


def parse(data: bytes) -> Any:
    """Parses ``data`` as JSON.

    Raises:
        Unsound: for anything else, including NaN and infinities.
    """
    try:
        return _decode(data.decode())
    except RecursionError as error:
        raise Unsound("it is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise Unsound(f"byte {error.start} is not UTF-8") from error
    except Unsound:
        raise
    except ValueError as error:
        raise Unsound(f"it is not JSON: {error}") from error


SEAL, LEAST_DIGITS = "sha256", 16


def seal(content: Mapping[str, object], n_digits: int = 64) -> dict[str, object]:
    """Returns ``content`` with the SHA-256 of its JSON, which does not depend on layout, or its first digits."""
    return {**content, SEAL: _sha256(content)[:n_digits]}


def sealed(content: object, needed: bool = False) -> Any:
    """Returns ``content`` without its seal. Older files may lack one, unless it is ``needed``.

    Raises:
        Unsound: when the seal does not match the content, or content that needs one is not an object.
    """
    if needed and not isinstance(content, dict):
        raise Unsound("it is not a JSON object")
    if not isinstance(content, dict) or not (needed or SEAL in content):
        return content
    inside = {member: value for member, value in content.items() if member != SEAL}
    stated = content.get(SEAL)
    if not isinstance(stated, str) or len(stated) < LEAST_DIGITS or not _sha256(inside).startswith(stated):
        raise Unsound(f"its content does not have the {SEAL} that it states")
    return inside


def _sha256(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def plain(text: str) -> str:
    """Escapes unprintable characters except newlines and tabs, so that a terminal shows them and obeys none."""
    return printable(text, kept="\n\t")


def value_text(value: object) -> str:
    """Formats ``value`` for an error message, in one line of at most 60 characters."""
    text = ascii(value) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:56] + " ..."


# ---------------------------------------------------------------------- single values
def as_flag(value: object) -> bool:
    """Checks for true or false."""
    if isinstance(value, bool):
        return value
    raise Unsound(f"is {value_text(value)}, must be true or false")


def as_integer(value: object) -> int:
    """Checks for an integer of 64 bits."""
    if type(value) is int and -MOST_WHOLE < value < MOST_WHOLE:
        return value
    raise Unsound(f"is {value_text(value)}, must be an integer of 64 bits")


def as_count(value: object) -> int:
    """Checks for an integer, zero or more."""
    if type(value) is int and 0 <= value < MOST_WHOLE:
        return value
    raise Unsound(f"is {value_text(value)}, must be an integer, zero or more")


def as_number(value: Any) -> float | int:
    """Checks for a finite number of at most MOST."""
    if type(value) in (int, float) and -MOST < value < MOST:
        return value  # type: ignore[no-any-return]
    raise Unsound(f"is {value_text(value)}, must be a number of at most {MOST:g}")


def as_amount(value: Any) -> float:
    """Checks for a number, zero or more."""
    if type(value) in (int, float) and 0 <= value < MOST:
        return float(value)
    raise Unsound(f"is {value_text(value)}, must be a number from 0 to {MOST:g}")


def as_seconds(value: Any) -> float:
    """Checks for a measured time."""
    if type(value) in (int, float) and SHORTEST_S < value < LONGEST_S:
        return float(value)
    raise Unsound(f"is {value_text(value)}, must be a time in seconds from {SHORTEST_S:g} to {LONGEST_S:g}")


def as_text(value: object) -> str:
    """Checks for text for people, and escapes its control characters."""
    if isinstance(value, str):
        return plain(value)
    raise Unsound(f"is {value_text(value)}, must be text")


def as_word(value: object) -> str:
    """Checks for a name in one line of printable characters."""
    if isinstance(value, str) and value.isprintable():
        return value
    raise Unsound(f"is {value_text(value)}, must be text of printable characters")


def as_words(value: object) -> tuple[str, ...]:
    """Checks for a text, or a list of one or more."""
    words = (as_word(value),) if isinstance(value, str) else sequence_of(as_word)(value)
    if not words:
        raise Unsound("is empty, must be a text or a list of texts")
    return words


def as_name(value: object) -> str:
    """Checks for the name of a kernel, a parameter or a field."""
    if isinstance(value, str) and value.isidentifier():
        return value
    raise Unsound(f"is {value_text(value)}, must be a name")


def as_scalar(value: Any) -> bool | int | float | str:
    """Checks for the value of a parameter or of a problem's field; the text of a macro may have several lines."""
    kind = type(value)
    if (kind is int and -MOST_WHOLE < value < MOST_WHOLE) or kind is bool:
        return value  # type: ignore[no-any-return]
    if kind is str:
        as_word(value.replace("\n", " ").replace("\t", " "))
        return str(value)
    return as_number(value)


def as_json_value(value: object) -> Any:
    """Checks any JSON value for finite numbers, and escapes its text."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): as_json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_json_value(each) for each in value]
    if type(value) is int and abs(value) >= MOST_WHOLE:
        raise Unsound(f"is {value_text(value)}, must be less than 2^63")
    return value if value is None or isinstance(value, bool) else as_number(value)


# ---------------------------------------------------------------------- compound values
def optional(check: Check) -> Check:
    """Returns a check for None or what ``check`` accepts."""
    return lambda value: None if value is None else check(value)


def one_of(allowed: Collection[str]) -> Check:
    """Returns a check for one of these words."""

    def checked(value: object) -> Any:
        if isinstance(value, str) and value in allowed:
            return value
        raise Unsound(f"is {value_text(value)}, must be one of {', '.join(allowed)}")

    return checked


def sequence_of(check: Check, n: int | None = None) -> Check:
    """Returns a check for a list (of ``n`` values if given), which becomes a tuple."""

    def checked(value: object) -> tuple[object, ...]:
        if not isinstance(value, list) or (n is not None and len(value) != n):
            raise Unsound(f"is {value_text(value)}, must be a list{'' if n is None else f' of {n}'}")
        return tuple([check(each) for each in value])

    return checked


def mapping_of(key: Check, check: Check) -> Check:
    """Returns a check for an object with any number of members."""

    def checked(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise Unsound(f"is {value_text(value)}, must be an object")
        return {key(member): _member(member, check, each) for member, each in value.items()}

    return checked


def members_of(checks: Mapping[str, Check], needed: Collection[str] = (), other: Check | None = None) -> Check:
    """Returns a check for an object with these members; ``needed`` are required, ``other`` checks the rest.

    Without ``other`` nothing else may be there.
    """

    def checked(value: object) -> dict[str, object]:
        if not isinstance(value, dict):
            raise Unsound(f"is {value_text(value)}, must be an object")
        unknown = [] if other is not None else [str(member) for member in value if member not in checks]
        lacking = [member for member in needed if member not in value]
        if lacking and not any(suggestion(member, lacking) for member in unknown):
            raise Unsound(f"lacks {lacking[0]}")
        found = {}
        for member, each in value.items():
            check = checks.get(member, other)
            if check is None:
                raise Unsound(f"has {value_text(member)}, which nothing here knows{suggestion(str(member), checks)}")
            found[plain(member)] = _member(member, check, each)
        return found

    return checked


def dataclass_of(kind: type[Any], needed: Collection[str] | None = None) -> Check:
    """Returns a check for an object with the fields of a dataclass, which it becomes; ``Annotated`` has the checks.

    ``needed``: the fields that must be there; None: all.
    """
    checks = {name: hint.__metadata__[0] for name, hint in get_type_hints(kind, include_extras=True).items()}
    checked = members_of(checks, needed=tuple(checks) if needed is None else needed)
    return lambda value: kind(**checked(value))


def suggestion(name: str, known: Collection[str]) -> str:
    """Returns the hint for an error about an unknown name: the nearest known one; "" if there is none."""
    found = get_close_matches(name[:60], known, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def _member(member: str, check: Check, value: object) -> Any:
    try:
        return check(value)
    except RecursionError as error:
        raise Unsound("it is nested too deeply") from error
    except Unsound as error:
        raise Unsound(f"{value_text(member)[1:-1]} {error}") from None
