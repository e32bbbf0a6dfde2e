"""A device as data: its name, its kind and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RESERVED_SHARED_BYTES = 1024  # the system adds them to each block; a multiprocessor has one block's limit plus these


@dataclass(frozen=True)
class Device:
    """The name and the limits of a device; constraints are predicates over it."""

    name: str  # "NVIDIA H200", or "host"
    kind: str  # the module of autotune.devices that drives it
    arch: str  # "sm_90"; "host" on a CPU
    max_threads_per_block: int = 1024
    max_block: tuple[int, int, int] = (1024, 1024, 64)
    max_grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    max_shared_bytes: int = 232448  # dynamic plus static per block, after opting in
    max_registers: int = 255  # per thread
    registers_per_block: int = 65536
    n_multiprocessors: int = 0
    l2_bytes: int = 0
    max_clock_hz: float = 0.0

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


def device_of(values: Mapping[str, Any]) -> Device:
    """Returns the Device that JSON describes; its lists become tuples."""
    fixed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    return Device(**fixed)


@dataclass(frozen=True)
class Ceilings:
    """The measured roofline of a device."""

    bytes_per_s: float  # read plus written by a large copy
    flops_per_s: float  # float32 multiply-adds, two operations each
    float16_per_s: float = 0.0  # tensor core operations, float16 inputs and float32 sums; 0: there are no tensor cores
    int8_per_s: float = 0.0  # tensor core operations on int8
