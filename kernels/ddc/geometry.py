"""The geometry of a variant: the numbers that follow from problem and config, derived once for Python and CUDA."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from autotune import Config

from .problem import Problem


@dataclass(frozen=True)
class Geometry(ABC):
    """A block's share of the work, and the threads, registers and shared memory that it needs.

    The template prints attributes as its constants, under their names in capitals: ``shape.outputs_per_block`` is
    ``OUTPUTS_PER_BLOCK``. It asserts the relations between them, and derives none of them again.
    """

    problem: Problem
    config: Config

    @property
    @abstractmethod
    def n_threads(self) -> int:
        """Returns the threads of a block."""

    @property
    @abstractmethod
    def min_blocks(self) -> int:
        """Returns the number of blocks for which a multiprocessor must have registers and shared memory."""

    @property
    @abstractmethod
    def outputs_per_block(self) -> int:
        """Returns the outputs that a block computes in one pass, by which the grid is divided."""

    @property
    @abstractmethod
    def shared_bytes(self) -> int:
        """Returns the bytes of dynamic shared memory, which the template asserts."""

    @property
    @abstractmethod
    def registers(self) -> int:
        """Returns about how many registers a thread needs to avoid spills."""
