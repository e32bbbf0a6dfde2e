"""Compile processes: variants become binaries beside the sweep, each within a deadline, and none can take it down."""

import os
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any

from pebble import ProcessExpired, ProcessPool

from .definition import Device, Launch
from .devices import Target, device_module
from .devices.base import Binary
from .errors import TrialFailure
from .processes import CleanContext, die_with_parent
from .render import Variant

DEADLINE_S = 60.0  # a variant takes a second; a runaway unroll takes minutes


@dataclass(frozen=True)
class Pending:
    """A compile under way."""

    future: Any
    deadline_s: float

    def result(self) -> Binary:
        """Wait for it.

        Raises:
            TrialFailure: compile_failed, resources or timed_out.
        """
        try:
            return self.future.result()  # type: ignore[no-any-return]
        except FutureTimeout as error:
            raise TrialFailure("timed_out", f"the compiler took longer than {self.deadline_s:g} s") from error
        except ProcessExpired as error:
            raise TrialFailure("compile_failed", f"the compiler's process died: {error}") from error


class CompilePool:
    """``n_processes`` compile processes for one device."""

    def __init__(self, target: Target, n_processes: int, deadline_s: float = DEADLINE_S) -> None:
        self.target = target
        self.deadline_s = deadline_s
        self._pool = ProcessPool(
            max_workers=n_processes,
            context=CleanContext(),
            initializer=die_with_parent,
            initargs=(os.getpid(),),
        )

    def __enter__(self) -> "CompilePool":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()

    def submit(self, variant: Variant, builds: tuple[str, ...] | None = None) -> Pending:
        arguments = (self.target.kind, variant, self.target.device, builds)
        return Pending(self._pool.schedule(_compile, args=arguments, timeout=self.deadline_s), self.deadline_s)


def check_limits(binary: Binary, launch: Launch, device: Device) -> None:
    """What the driver would refuse, refused with the figures before the launch.

    Raises:
        TrialFailure: resources.
    """
    shared = launch.shared_bytes + (binary.shared_bytes or 0)
    registers = (binary.registers or 0) * launch.n_threads
    for what, value, limit in (
        ("threads in a block", launch.n_threads, device.max_threads_per_block),
        ("bytes of shared memory in a block", shared, device.max_shared_bytes),
        ("registers in a block", registers, device.registers_per_block),
        *((f"blockDim.{axis}", n, most) for axis, n, most in zip("xyz", launch.block, device.max_block, strict=True)),
        *((f"gridDim.{axis}", n, most) for axis, n, most in zip("xyz", launch.grid, device.max_grid, strict=True)),
    ):
        if value > limit:
            raise TrialFailure("resources", f"{value} {what}; {device.name} has {limit}")


def _compile(kind: str, variant: Variant, device: Device, builds: tuple[str, ...] | None) -> Binary:
    return device_module(kind).compile(variant, device, builds)
