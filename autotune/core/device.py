"""A device as data: its name, its kind and its limits."""

from dataclasses import dataclass
from typing import Annotated

from .schema import as_amount, as_count, as_word, dataclass_of, sequence_of

RESERVED_SHARED_BYTES = 1024  # the system adds them to each block; a multiprocessor has one block's limit plus these


@dataclass(frozen=True)
class Device:
    """The name and the limits of a device; constraints are predicates over it."""

    name: Annotated[str, as_word]  # "NVIDIA H200", or "host"
    kind: Annotated[str, as_word]  # the module of autotune.devices that drives it
    arch: Annotated[str, as_word]  # "sm_90"; "host" on a CPU
    max_threads_per_block: Annotated[int, as_count] = 1024
    max_block: Annotated[tuple[int, int, int], sequence_of(as_count, 3)] = (1024, 1024, 64)
    max_grid: Annotated[tuple[int, int, int], sequence_of(as_count, 3)] = (2**31 - 1, 65535, 65535)
    max_shared_bytes: Annotated[int, as_count] = 232448  # dynamic plus static per block, after opting in
    max_registers: Annotated[int, as_count] = 255  # per thread
    registers_per_block: Annotated[int, as_count] = 65536
    n_multiprocessors: Annotated[int, as_count] = 0
    l2_bytes: Annotated[int, as_count] = 0
    max_clock_hz: Annotated[float, as_amount] = 0.0

    @property
    def compute_capability(self) -> int:
        """Returns 90 for sm_90; 0 for any device that is not a GPU of a known architecture."""
        return compute_capability(self.arch)

    def has_shared(self, n_bytes: int, n_blocks: int = 1) -> bool:
        """Returns whether a multiprocessor fits ``n_blocks`` blocks of ``n_bytes`` shared each, dynamic plus static."""
        return n_blocks * (n_bytes + RESERVED_SHARED_BYTES) <= self.max_shared_bytes + RESERVED_SHARED_BYTES


def compute_capability(arch: str) -> int:
    """Returns 90 for sm_90; 0 for any other text."""
    digits = arch.removeprefix("sm_")
    return int(digits) if digits.isdigit() else 0


@dataclass(frozen=True)
class Ceilings:
    """The measured roofline of a device."""

    bytes_per_s: Annotated[float, as_amount]  # read plus written by a large copy
    flops_per_s: Annotated[float, as_amount]  # float32 multiply-adds, two operations each
    float16_per_s: Annotated[float, as_amount] = 0.0  # tensor cores, float16 inputs, float32 sums; 0: there are none
    int8_per_s: Annotated[float, as_amount] = 0.0  # tensor core operations on int8


as_device = dataclass_of(Device, needed=("name", "kind", "arch"))  # checks for a device in JSON
as_ceilings = dataclass_of(Ceilings, needed=("bytes_per_s", "flops_per_s"))
