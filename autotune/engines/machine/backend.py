"""The interface of a machine for an engine: memory, streams, Fourier transforms and launches.

There are two: a GPU, through CuPy, and ``host``, where the CPU runs the rendered CUDA and each step at once.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from ...core.config import Config
from ...core.definition import AnyKernel, Device
from ...core.errors import UsageError
from ...core.parameter import clause
from ...core.problem import Problem

ALIGN = 16  # bytes: arrays in one memory begin at multiples of this
MOST_SENT = 4  # small arrays that go to the device together
DeviceArray = Any  # cupy.ndarray or numpy.ndarray: both have shape, strides, dtype, and views by slices
Sent = tuple[DeviceArray, np.ndarray]  # the target of a small array, and pinned memory of its shape and dtype


class Event(Protocol):
    """A point in a stream's work."""

    def wait(self) -> None:
        """Wait until the work before it is done. Other threads run meanwhile."""

    def is_done(self) -> bool: ...

    def seconds_since(self, earlier: Any) -> float:
        """Returns the seconds from ``earlier`` to this event; both must be timed and done."""


class Stream(Protocol):
    """Work that is done in order, concurrently with other streams."""

    def copy_in(self, to: DeviceArray, source: np.ndarray) -> None:
        """Copy pinned memory to the device. Entries along the first axis may lie apart."""

    def send(self, pieces: Sequence[Sent]) -> None:
        """Copy up to MOST_SENT small contiguous arrays from pinned memory, without waiting for other copies in."""

    def copy_out(self, to: np.ndarray, source: DeviceArray) -> None:
        """Copy from the device to pinned memory. Entries along the first axis may lie apart."""

    def copy(self, to: DeviceArray, source: DeviceArray) -> None:
        """Copy within the device. Entries along the first axis may lie apart."""

    def zero(self, array: DeviceArray) -> None: ...

    def after(self, event: Any) -> None:
        """Make later work of the stream wait on the device for ``event``."""

    def record(self, is_timed: bool = False) -> Event:
        """Returns the event after all work given to the stream so far."""


class Launcher(Protocol):
    """One configuration of a kernel, compiled and loaded, for any runtime sizes that it allows."""

    config: Config

    def __call__(
        self, problem: Problem, arrays: Mapping[str, DeviceArray], inputs: Mapping[str, object], on: Any
    ) -> None:
        """Launch for ``problem``. ``inputs``: the numbers among the kernel's inputs. Nothing is allocated or compiled.

        Raises:
            UsageError: when the configuration does not serve the problem, or an array does not fit it.
        """


Transform = Callable[[DeviceArray, DeviceArray, Any], None]  # (output, input, stream)


class Backend(Protocol):
    """A GPU or the host."""

    device: Device
    identifier: str  # the device's name in sweeps: host, cuda:0

    def pinned(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """Returns host memory for copies that run while the CPU works."""

    def empty(self, shape: Sequence[int], dtype: object) -> DeviceArray: ...

    def stream(self) -> Stream: ...

    def launcher(self, kernel: AnyKernel, problem: Problem, config: Config, source: str | None = None) -> Launcher:
        """Compile and load ``config`` for the baked fields of ``problem``. ``source``: its source, if rendered."""

    def fourier(self, length: int, n: int, is_complex: bool) -> Transform:
        """Returns a transform of ``n`` rows of ``length`` floats to length / 2 + 1 channels, or of complex numbers."""

    def finish(self) -> None:
        """Wait until all streams are done."""


def together(
    empty: Callable[[Sequence[int], Any], DeviceArray], parts: Mapping[str, tuple[Sequence[int], Any]]
) -> tuple[DeviceArray, dict[str, DeviceArray]]:
    """Returns uint8 memory, and arrays of (shape, dtype) in it one after the other, so that one copy moves all."""
    ends = [0]
    for shape, dtype in parts.values():
        n_bytes = prod(shape) * np.dtype(dtype).itemsize
        ends.append(-(-(ends[-1] + n_bytes) // ALIGN) * ALIGN)
    memory = empty((ends[-1],), np.uint8)
    arrays = {}
    for (name, (shape, dtype)), begin in zip(parts.items(), ends, strict=False):
        n_bytes = prod(shape) * np.dtype(dtype).itemsize
        arrays[name] = memory[begin : begin + n_bytes].view(dtype).reshape(shape)
    return memory, arrays


def check_served(kernel: AnyKernel, problem: Problem, config: Config, device: Device) -> None:
    """Raises UsageError unless ``config`` may run for ``problem`` on ``device``."""
    if (broken := kernel.space.broken(problem, config, device)) is not None:
        raise UsageError(f"{kernel.name}: {config} cannot run here; it {clause(broken.reason)}")
    if (why := kernel.unsupported(config, device)) is not None:
        raise UsageError(f"{kernel.name}: {config} cannot run here: {why}")
