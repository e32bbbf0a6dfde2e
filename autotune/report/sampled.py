"""Samples very many configs for a picture: browsers handle some thousand dots well, and pages stay small."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

MOST_DOTS = 3000
N_BEST = MOST_DOTS // 4


def sampled(items: Sequence[T], most: int = MOST_DOTS, n_first: int = 0) -> list[T]:
    """Returns at most ``most`` of the items, in their order: the first ``n_first``, and others evenly spaced."""
    if len(items) <= most:
        return list(items)
    rest, n = items[n_first:], most - n_first
    return [*items[:n_first], *(rest[i * (len(rest) - 1) // (n - 1)] for i in range(n))]


def sampling_text(n: int, what: str = "configs", most: int = MOST_DOTS, best: str = "") -> str:
    """Returns a sentence that says how the drawn configs were chosen; "" if all are drawn."""
    if n <= most:
        return ""
    return f" Of {n} {what}, {most} are drawn: {f'the {N_BEST} {best}, and others ' if best else ''}spaced evenly."
