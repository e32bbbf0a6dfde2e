"""Sources that fill memory of the engine's own, so that nothing is copied on the host: receivers of a network."""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

Answer_co = TypeVar("Answer_co", covariant=True)  # the answer about a chunk: Samples or Batches


@runtime_checkable
class Lends(Protocol[Answer_co]):
    """A source that is lent arrays, besides what it is as a Source or a VoltageSource; its ``read`` is not called.

    It may fill several arrays at once, and needs some to go on: whoever takes them gives them back soon.
    """

    is_live: bool

    def lend(self, arrays: Sequence[np.ndarray]) -> None:
        """Take memory to fill, before anything else; arrays have the shape and dtype of ``out`` of ``read``."""

    def take(self) -> tuple[int, Answer_co] | None:
        """Returns the number of an array that is filled, and what ``read`` says of it; None at the end. Waits.

        Raises:
            UsageError: as ``read`` does.
        """

    def give_back(self, number: int) -> None:
        """Take an array again, which may be filled; another thread than that of ``take`` may call it."""
