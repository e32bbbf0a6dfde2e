"""Checks the types of a problem's fields before they are used."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..core.errors import UsageError

# type of a field's default -> accepted types, and their name in messages
ACCEPTED: Mapping[type, tuple[Any, str]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
}


def check_field_types(where: str, values: Mapping[str, object], defaults: object) -> None:
    """Checks the values of fields against the types of the same fields of the problem ``defaults``.

    Raises:
        UsageError: for a value of another type, such as text in place of a number; the message has an example.
    """
    for name, value in values.items():
        usual = getattr(defaults, name, None)
        if type(usual) not in ACCEPTED:
            continue
        accepted, what = ACCEPTED[type(usual)]
        is_flag = isinstance(value, bool | np.bool_)
        if not isinstance(value, accepted) or is_flag != isinstance(usual, bool):
            kind = type(value).__name__
            raise UsageError(f"{where}: {name}={value!r} is of type {kind}, must be {what}, such as {name}={usual!r}")
