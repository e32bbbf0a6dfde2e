"""The interface between stations and devices. A new device is one module that implements it.

The interface has two parts. ``DeviceModule`` describes and compiles without hardware; it runs in the parent and in
compile processes. ``Session`` owns the hardware; it lives in the device's worker process, which may die.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from ..core.definition import Device, Launch, Tolerance
from ..core.device import Ceilings
from ..rendering.render import Variant
from ..runtime.comparison import OutputComparison
from ..runtime.nvrtc import Figures

CANARY_BYTES = 16  # least bytes on each side of a buffer: the widest store of a thread, so that an overrun shows
TIMED_ALIGN = 256  # bytes: alignment of a timed problem's arrays, that of device allocators


@dataclass(frozen=True)
class Binary:
    """The result of compiling a variant. ``files`` maps a build (``cubin``; ``check``, ``plain``) to its file."""

    variant: str  # the variant's name
    kernel: str  # the __global__ function, as a name expression
    key: str  # content address: source, options, architecture, compiler
    code: str  # digest of the machine code, independent of source text
    files: dict[str, Path]
    registers: int | None = None  # per thread; None if the device has none
    spill_bytes: int | None = None  # spill stores plus loads
    shared_bytes: int | None = None  # static shared memory
    compile_s: float = 0.0  # duration of the compile that made it
    cached: bool = False  # whether it came from the cache
    log: str = ""
    parameters: tuple[str, ...] = ()  # names in the source's signature, as far as it has them; for messages
    also: Mapping[str, Figures] = field(default_factory=dict)  # figures of the other launched functions, by name
    symbols: Mapping[str, str] = field(default_factory=dict)  # function -> its symbol, if that differs from its name

    def symbol(self, function: str) -> str:
        """Returns the symbol of a function in the files."""
        return self.symbols.get(function, function)

    def of(self, function: str) -> Figures:
        """Returns the figures of a launched function; "" is the kernel itself."""
        return self.also.get(function, Figures(self.registers, self.spill_bytes, self.shared_bytes))


@dataclass(frozen=True)
class Sample:
    """One timed launch: seconds, and the SM clock in hertz while it ran (0 where there is none)."""

    seconds: float
    clock_hz: float = 0.0


@dataclass(frozen=True)
class LaunchRun:
    """A run of back-to-back launches."""

    seconds: list[float]  # time from the end of one launch to the next; in a long run, the mean over a few launches
    n_launches: int
    joules: float | None = None  # energy of the whole device over the run; None if it has no meter


class Buffer(Protocol):
    """Device memory with canaries on both sides, and inaccessible addresses beyond them.

    It ends as near to the inaccessible addresses as its alignment allows: CANARY_BYTES, and less than ``align`` more
    bytes, before them.
    """

    def write(self, data: np.ndarray) -> None: ...
    def read(self) -> np.ndarray: ...
    def keep(self) -> None:
        """Saves the current content on the device."""

    def restore(self) -> None:
        """Restores the content that ``keep`` saved."""

    def poison(self, pattern: int) -> None:
        """Fills the array with a byte."""

    def hold_another(self) -> None:
        """Changes the content to another answer: moves elements by one, or changes them if all seem to be equal."""

    def damage(self) -> str | None:
        """Returns a description of writes before the start or past the end, or None."""

    def compare(self, reference: np.ndarray, tolerance: Tolerance, key: str) -> OutputComparison:
        """Compares on the device; ``key`` names the reference, which is copied to the device only once."""

    def free(self) -> None: ...


@dataclass(frozen=True)
class Constant:
    """The content of the ``__constant__`` variable ``name``. It is copied before the launches, and not timed.

    Constants follow the kernel's own arguments.
    """

    name: str
    values: np.ndarray


Argument = Buffer | np.generic | Constant


class Function(Protocol):
    """A loaded kernel. If other launches follow a ``Launch``, each call makes all of them, on one stream.

    ``arguments``: those of the kernel, the workspace, and constants; each launch takes its ``own`` among them.
    """

    def launch(self, launch: Launch, arguments: Sequence[Argument], *, seed: int = 0) -> None:
        """Launches and waits. ``seed`` varies, if the device can, what hardware leaves open, such as the schedule.

        Raises:
            TrialFailure: resources or launch_failed.
        """

    def samples(self, launch: Launch, arguments: Sequence[Argument], n: int, *, cold: bool) -> list[Sample]:
        """Returns the times of ``n`` launches, each with the launches that follow it.

        If ``cold``, no argument is in the last-level cache when a launch begins.
        """

    def stream(self, launch: Launch, arguments: Sequence[Argument], seconds: float) -> LaunchRun:
        """Launches back to back for about ``seconds``; returns the times."""


class Session(Protocol):
    """The opened hardware. Every error that a variant causes is a TrialFailure."""

    device: Device
    keep_bytes: int  # arguments and references that may stay on the device between trials

    @property
    def check_builds(self) -> tuple[str, ...]:
        """Returns the builds that verification runs, in order."""

    @property
    def timed_build(self) -> str:
        """Returns the build that is measured."""

    def load(self, binary: Binary, build: str) -> Function: ...
    def clock_hz(self) -> float:
        """Returns the clock of the idle device's multiprocessors; 0 if there is none."""

    def release(self) -> None:
        """Frees the memory that stays between trials; the session stays open."""

    def ceilings(self) -> Ceilings | None:
        """Measures the roofline of this device; returns None if efficiency is meaningless on it."""

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], *, written: bool, align: int = TIMED_ALIGN
    ) -> Buffer:
        """Returns a new array that is aligned to ``align`` bytes, but not to twice as many."""


@dataclass(frozen=True)
class Finding:
    """One line of ``autotune doctor``."""

    what: str
    works: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Defaults:
    """The defaults of a sweep on a kind of device, and its expected times."""

    trials: int = 200
    checked_launches: int = 500  # launches of the winner whose outputs are checked
    most_placements: int = 1_000_000  # placements of the buffers in the final round: 1 if times mean little
    has_full_sizes: bool = True  # whether problems keep their sizes; else they take the definition's ``host_sizes``
    most_bytes: int | None = None  # limit on the arrays of default sizes; None: no limit
    start_s: float = 1.0  # time until a process has opened the device
    trial_s: tuple[float, float] = (0.5, 0.1)  # guessed compile and device seconds of a trial, until some are recorded
    caches: tuple[str, ...] = ()  # folders of the cache that the device fills, and that are pruned


class DeviceModule(Protocol):
    """The interface of a module in ``autotune.devices``, or in an installed package."""

    kind: str
    defaults: Defaults
    clock: str  # the clock of this device's times: "GPU time", "host time"
    builds: tuple[str, ...]  # the builds that ``compile`` makes

    def identifiers(self) -> list[str]:
        """Returns the usable devices of this kind, such as ``cuda:0``; empty if there is none."""

    def describe(self, identifier: str) -> Device: ...
    def lock_name(self, identifier: str) -> str:
        """Returns a name that is the same for all identifiers of one piece of hardware."""

    def compiler(self, device: Device) -> str:
        """Returns name, version and options of the compiler; a change of them makes trials stale.

        Raises:
            UsageError: if there is no compiler; the message says what to install.
        """

    def compile(self, variant: Variant, device: Device, builds: Sequence[str] | None = None) -> Binary:
        """Returns the binary, compiled or from the cache.

        Raises:
            TrialFailure: compile_failed, resources, or skipped if this kind of device lacks a feature.
        """

    def compiled_anew(self, variant: Variant, device: Device) -> str:
        """Compiles again without the cache and returns the ``code``; a compiler may not be deterministic.

        Raises:
            TrialFailure: compile_failed, resources, or skipped if this kind of device lacks a feature.
        """

    def open(self, identifier: str) -> Session:
        """Opens the device in the worker process."""

    def findings(self) -> list[Finding]: ...
