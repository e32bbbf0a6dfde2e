"""Checks that the fields of a problem have values of their types, before anything computes with them."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..core.errors import UsageError

# by the type of a field's default: what is accepted, and what it is called
ACCEPTED: Mapping[type, tuple[Any, str]] = {
    bool: ((bool, np.bool_), "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "text"),
}


def check_field_types(where: str, values: Mapping[str, object], defaults: object) -> None:
    """Checks values of fields by the types of those that ``defaults``, a problem, has.

    Raises:
        UsageError: for text where a number belongs and the like, in one line with an example.
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
