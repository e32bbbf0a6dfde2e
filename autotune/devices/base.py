"""The interface of a device: what the stations may ask of one. A new device is one module that fills it in.

A device has two faces. ``DeviceModule`` describes and compiles and needs no hardware; it runs in the parent and in
compile processes. ``Session`` owns the hardware; it lives in the device's worker process, which may die.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..core.definition import Device, Launch, Tolerance
from ..source.render import Variant

CANARY_BYTES = 16  # at least, on each side of a buffer: the widest store of a thread, so that a near one is told apart
TIMED_ALIGN = 256  # bytes: of a timed problem's arrays, as allocators of devices give it


@dataclass(frozen=True)
class Binary:
    """What a compiler made of a variant. ``files`` maps a build (``cubin``; ``check``, ``plain``) to its file."""

    variant: str  # the variant's name
    kernel: str  # name of the __global__ function
    key: str  # content address: source, options, architecture, compiler
    code: str  # digest of what runs, whatever text it came from
    files: dict[str, Path]
    registers: int | None = None  # for one thread; None where the device has none
    spill_bytes: int | None = None  # stores and loads
    shared_bytes: int | None = None  # static
    compile_s: float = 0.0  # seconds, of the compile that made it
    cached: bool = False  # whether this call found it made
    log: str = ""


@dataclass(frozen=True)
class Sample:
    """One timed launch: seconds, and the SM clock in hertz while it ran (0 where there is none)."""

    seconds: float
    clock_hz: float = 0.0


@dataclass(frozen=True)
class Ceilings:
    """The measured roofline of a device."""

    bytes_per_s: float  # read plus written, of a large copy
    flops_per_s: float  # float32 multiply-adds, two operations each
    float16_per_s: float = 0.0  # operations of tensor cores, of products of float16 summed in float32; 0: it has none
    int8_per_s: float = 0.0  # of products of int8

    def of(self, unit: str) -> float:
        """Operations a second of a unit that Work names; of float32 where the device has no such unit."""
        return {"float16": self.float16_per_s, "int8": self.int8_per_s}.get(unit, 0.0) or self.flops_per_s


@dataclass(frozen=True)
class Comparison:
    """An output against its reference."""

    n_bad: int
    n_total: int
    max_error: float  # relative to rms(reference), or to 1 where that is 0; NaN outputs count as infinite
    rms_error: float  # likewise
    first_bad: tuple[int, ...] | None = None
    got: complex | float | int | None = None
    want: complex | float | int | None = None


class Buffer(Protocol):
    """Device memory with canaries on both sides and, beyond them, addresses at which nothing may be read or written.

    It ends as near to those as its alignment allows: after CANARY_BYTES, and less than ``align`` bytes more.
    """

    def write(self, data: np.ndarray) -> None: ...
    def read(self) -> np.ndarray: ...
    def keep(self) -> None:
        """Remember, on the device, what it holds now."""

    def restore(self) -> None:
        """Hold again what it held when it was told to keep it."""

    def poison(self, pattern: int) -> None:
        """Fill with a byte."""

    def damage(self) -> str | None:
        """What was written before the start or past the end, or None."""

    def compare(self, reference: np.ndarray, tolerance: Tolerance, key: str) -> Comparison:
        """On the device; ``key`` names the reference, so that it travels there once."""

    def free(self) -> None: ...


Argument = Buffer | np.generic


class Function(Protocol):
    """A loaded kernel."""

    def launch(self, launch: Launch, arguments: Sequence[Argument], *, seed: int = 0) -> None:
        """Run to the end. ``seed`` varies what the hardware leaves open, where the device can.

        Raises:
            TrialFailure: resources or launch_failed.
        """

    def samples(self, launch: Launch, arguments: Sequence[Argument], n: int, *, cold: bool) -> list[Sample]:
        """``n`` timed launches; ``cold``: nothing of the arguments is in the last-level cache when one begins."""

    def stream(self, launch: Launch, arguments: Sequence[Argument], seconds: float) -> list[float]:
        """Launches back to back for about ``seconds``: the seconds from the end of each to the end of the next."""


class Session(Protocol):
    """The hardware, opened. Everything raised about a variant is a TrialFailure."""

    device: Device
    keep_bytes: int  # of arguments, and of references, that may stay on the device from trial to trial

    @property
    def check_builds(self) -> tuple[str, ...]:
        """Builds that verification runs, in order."""

    @property
    def timed_build(self) -> str:
        """The build that is measured."""

    def load(self, binary: Binary, build: str) -> Function: ...
    def clock_hz(self) -> float:
        """Of the idle device's multiprocessors; 0 where there is none."""

    def ceilings(self) -> Ceilings | None:
        """What this device reaches, measured here; None where efficiency means nothing."""

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], *, written: bool, align: int = TIMED_ALIGN
    ) -> Buffer:
        """Memory for an array, at a multiple of ``align`` bytes and of no more than that."""


@dataclass(frozen=True)
class Finding:
    """One line of ``autotune doctor``."""

    what: str
    works: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Defaults:
    """What a sweep does on a kind of device unless it is told otherwise, and how long it expects it to take."""

    trials: int = 200
    checked_launches: int = 500  # of the winner
    most_placements: int = 1_000_000  # of the buffers in the final round: 1 where a time says little
    has_full_sizes: bool = True  # whether problems keep their sizes, or take the definition's ``host_sizes``
    start_s: float = 1.0  # until a process has opened the device
    trial_s: tuple[float, float] = (0.5, 0.1)  # compiling, and on the device, before anything is recorded
    caches: tuple[str, ...] = ()  # folders of the cache that it fills, which are pruned


class DeviceModule(Protocol):
    """What a module of ``autotune.devices`` offers, or one of an installed package."""

    kind: str
    defaults: Defaults
    clock: str  # what a second on this device is: "GPU time", "host time"
    builds: tuple[str, ...]  # what compile makes of a variant

    def identifiers(self) -> list[str]:
        """Usable devices of this kind here, such as ``cuda:0``; empty where there is none."""

    def describe(self, identifier: str) -> Device: ...
    def lock_name(self, identifier: str) -> str:
        """The same for two names of one piece of hardware."""

    def compiler(self, device: Device) -> str:
        """Name and version of the compiler, and its options: a part of what makes a trial stale.

        Raises:
            UsageError: when there is no compiler; says what to install.
        """

    def compile(self, variant: Variant, device: Device, builds: Sequence[str] | None = None) -> Binary:
        """Compile, or find in the cache.

        Raises:
            TrialFailure: compile_failed or resources.
        """

    def compiled_anew(self, variant: Variant, device: Device) -> str:
        """The ``code`` of another compile, past the cache: a compiler may not make the same each time.

        Raises:
            TrialFailure: compile_failed or resources.
        """

    def open(self, identifier: str) -> Session:
        """For the worker process."""

    def findings(self) -> list[Finding]: ...
