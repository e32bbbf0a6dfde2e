"""Sources that fill the engine's own memory, such as network receivers, so that the host copies nothing."""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

Answer_co = TypeVar("Answer_co", covariant=True)  # the answer about a chunk: Samples or Batches


@runtime_checkable
class Lends(Protocol[Answer_co]):
    """A Source or VoltageSource that fills lent arrays. Its ``read`` is not called.

    It may fill several arrays at once, and needs free ones to go on: the taker must give them back soon. If it has
    ``stop``, another thread may call that, and ``take`` then returns None soon.
    """

    is_live: bool

    def n_kept(self, shape: Sequence[int]) -> int:
        """Returns the number of arrays of this shape that it fills at once."""

    @property
    def is_short(self) -> bool:
        """Returns whether it cannot go on until the array that was taken last comes back."""

    def lend(self, arrays: Sequence[np.ndarray]) -> None:
        """Take memory to fill, before any other call. Arrays have the shape and dtype of ``out`` of ``read``."""

    def take(self) -> tuple[int, Answer_co] | None:
        """Returns the number of a filled array, and the answer that ``read`` would give; None at the end. Waits.

        Raises:
            UsageError: as ``read`` does.
        """

    def give_back(self, number: int) -> None:
        """Take an array again, which may be filled. Any thread may call it."""
