"""Compile processes turn variants into binaries, each within a deadline; the crash of one does not end the sweep."""

from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ..core.config import Config
from ..core.definition import Device, Kernel, P
from ..core.errors import Status, TrialFailure, UsageError
from ..devices import Target, device_module
from ..devices.base import Binary, DeviceModule
from ..records.measurement import Protocol
from ..rendering.render import Variant, render
from ..source.registry import load_kernel
from ..system.cache import cache_dir
from ..system.processes import Died, RankedPool, work_quietly
from .case import write_case
from .conditions import conditions_of

DEADLINE_S = 60.0  # a variant takes a second; a runaway unroll takes minutes
N_ANEW = 3  # further compiles of a changed source that look for the same machine code
MOST_CACHES_LOST = 3  # deletions of the cache that one compile, or one trial, survives
PREPARE_DEADLINE_S = 900.0  # inputs and reference of the timed problem, by NumPy; minutes at worst


T = TypeVar("T")


@dataclass(frozen=True)
class Pending(Generic[T]):
    """A running compile in another process."""

    future: "Future[T]"
    deadline_s: float

    def result(self) -> T:
        """Waits for the result, and returns it.

        Raises:
            TrialFailure: compile_failed, resources or timed_out.
        """
        try:
            return self.future.result()
        except TimeoutError as error:
            raise TrialFailure(Status.TIMED_OUT, f"the compiler took longer than {self.deadline_s:g} s") from error
        except Died as death:
            raise TrialFailure(
                Status.COMPILE_FAILED, f"the compiler killed its process, and a second one: {death}"
            ) from death
        except (TrialFailure, UsageError, OSError, CancelledError):
            raise
        except Exception as error:  # a device of another package may raise anything
            raise TrialFailure(Status.COMPILE_FAILED, f"the compiler raises {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Subject(Generic[P]):
    """A kernel and a problem to compile for. Compiles with the lowest ``rank`` go first."""

    kernel: Kernel[P]
    problem: P
    rank: int


@dataclass(frozen=True)
class CompileResult:
    """A config after its compile; ``binary`` is the binary, or the failure."""

    config: Config
    variant: Variant | None  # None: it did not render, or the device cannot run it
    binary: Binary | TrialFailure


@dataclass(frozen=True)
class Proposal:
    """A config before its trial: its variant, and its running compile or the failure."""

    config: Config
    variant: Variant | None
    outcome: Pending[Binary] | TrialFailure

    @property
    def future(self) -> "Future[Binary]":
        """Returns a future that is done after the compile (at once if there is none), and that can be cancelled."""
        if not isinstance(self.outcome, TrialFailure):
            return self.outcome.future
        ended: Future[Binary] = Future()
        ended.set_exception(self.outcome)
        return ended

    def binary(self) -> Binary:
        """Waits for the compile, and returns the binary.

        Raises:
            TrialFailure: as ``Pending.result``, or the reason why there is no compile.
        """
        if isinstance(self.outcome, TrialFailure):
            raise self.outcome
        return self.outcome.result()

    def compiled(self) -> CompileResult:
        """Waits for the compile, and returns the binary or the failure."""
        try:
            return CompileResult(self.config, self.variant, self.binary())
        except TrialFailure as failure:
            return CompileResult(self.config, self.variant, failure)


@dataclass(frozen=True)
class RecordedConfig:
    """A recorded trial to compare with; ``kernel``: a name or path for ``load_kernel``."""

    kernel: str
    problem: dict[str, object]
    config: Config
    protocol: Protocol
    code: str = ""  # digest of the recorded machine code
    conditions: str = ""


class CompilePool:
    """``n_processes`` compile processes for one device. The lowest waiting rank goes first."""

    def __init__(self, target: Target, n_processes: int, deadline_s: float = DEADLINE_S) -> None:
        self.target, self.n_processes = target, n_processes
        self.deadline_s = deadline_s
        self._pool = RankedPool(n_processes, "autotune-build", _open, target.kind, target.device)

    @property
    def compiler(self) -> str:
        """Returns the compiler's name, version and options, in the form of records."""
        return self.target.module.compiler(self.target.device)

    def __enter__(self) -> "CompilePool":
        """Starts the processes, which import their modules while the first sweep gets ready."""
        for _ in range(self.n_processes):
            self._pool.schedule(_get_ready, ())
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.end()

    def start(self, subject: Subject[P], config: Config, builds: tuple[str, ...] | None = None) -> Proposal:
        """Renders ``config`` and begins to compile it, unless the device cannot run it."""
        try:
            if reason := subject.kernel.unsupported(config, self.target.device):
                return Proposal(config, None, TrialFailure(Status.SKIPPED, reason))
            variant = render(subject.kernel, subject.problem, config)
        except TrialFailure as failure:
            return Proposal(config, None, failure)
        return Proposal(config, variant, self.submit(variant, builds, subject.rank))

    def submit(self, variant: Variant, builds: tuple[str, ...] | None = None, rank: int = 0) -> Pending[Binary]:
        """Begins to compile ``variant``, or to look for it in the cache."""
        future = self._pool.schedule(_compile, (variant, builds), self.deadline_s, rank)
        return Pending(future, self.deadline_s)

    def holds(self, recorded: "RecordedConfig", rank: int = 0) -> "Future[bool]":
        """Returns whether a config still has the machine code and the conditions of a recorded trial."""
        return self._pool.schedule(_holds, (recorded,), self.deadline_s, rank)

    def code_of(self, variant: Variant, wanted: str) -> "Future[str]":
        """Returns ``code_of`` for ``variant``, computed in a compile process."""
        return self._pool.schedule(_code_of, (variant, wanted), self.deadline_s)

    def conditions(self, recorded: "RecordedConfig", rank: int = 0) -> "Future[str]":
        """Returns the digest of the conditions of a config: everything that its outcome depends on, except its code."""
        return self._pool.schedule(_conditions, (recorded,), self.deadline_s, rank)

    def prepare(
        self,
        kernel: str,
        problem: Mapping[str, object],
        folder: Path,
        with_reference: bool,
        rank: int = 0,
        number: int = 0,
    ) -> "Future[None]":
        """Makes the case of a problem in ``folder``; ``kernel``: a name or path for ``load_kernel``.

        ``number``: 0 for the timed inputs; each other number gives other inputs.
        """
        arguments = kernel, problem, folder, with_reference, number
        return self._pool.schedule(_prepare, arguments, PREPARE_DEADLINE_S, rank)


def code_of(kind: str, variant: Variant, device: Device, wanted: str) -> str:
    """Returns the digest of the machine code of ``variant``; ``wanted``, if one of several compiles gives that digest.

    NVRTC may order the instructions of one source in several ways, so it compiles up to 1 + N_ANEW times. "": the
    variant does not compile.
    """
    module = device_module(kind)
    try:
        first = _compiled(module, variant, device, None).code
    except TrialFailure:
        return ""
    again = (module.compiled_anew(variant, device) for _ in range(N_ANEW))
    return wanted if first == wanted or any(each == wanted for each in again) else first


def _compiled(module: DeviceModule, variant: Variant, device: Device, builds: tuple[str, ...] | None) -> Binary:
    """Calls the device's compile, and tries again if the cache was deleted meanwhile."""
    for _ in range(MOST_CACHES_LOST):
        try:
            return module.compile(variant, device, builds)
        except FileNotFoundError:
            continue
        except (TrialFailure, UsageError) as error:
            if str(cache_dir(module.kind).parent) not in str(error):
                raise
    return module.compile(variant, device, builds)


# ---------------------------------------------------------------------- inside a compile process
_module: DeviceModule
_device: Device


def _open(kind: str, device: Device) -> None:
    """Runs first: it sets the one device that the process compiles for."""
    global _module, _device
    work_quietly()
    _module, _device = device_module(kind), device


def _get_ready() -> None:
    _module.compiler(_device)


def _compile(variant: Variant, builds: tuple[str, ...] | None) -> Binary:
    return _compiled(_module, variant, _device, builds)


def _code_of(variant: Variant, wanted: str) -> str:
    return code_of(_module.kind, variant, _device, wanted)


def _conditions(recorded: RecordedConfig) -> str:
    kernel = load_kernel(recorded.kernel)
    return conditions_of(kernel, kernel.problem(recorded.problem), recorded.config, recorded.protocol)


def _holds(recorded: RecordedConfig) -> bool:
    """Runs the definition in this process, whose crash does not end a sweep."""
    try:
        if _conditions(recorded) != recorded.conditions:
            return False
        kernel = load_kernel(recorded.kernel)
        variant = render(kernel, kernel.problem(recorded.problem), recorded.config)
        return code_of(_module.kind, variant, _device, recorded.code) == recorded.code
    except TrialFailure:
        return False


def _prepare(name: str, problem: Mapping[str, object], folder: Path, with_reference: bool, number: int) -> None:
    kernel = load_kernel(name)
    write_case(kernel, kernel.problem(problem), folder, with_reference, number)
