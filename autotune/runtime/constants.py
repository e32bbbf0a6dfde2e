"""Arrays in constant memory at a launch: they are copied there before it, in stream order.

A loaded module has one such memory, which all its launches share. So they follow each other, on whichever streams.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.definition import Array
from ..core.errors import TrialFailure, UsageError
from . import gpu
from .cubin import check_constants, constant_bytes
from .nvrtc import Cubin


class ConstantMemory:
    """The ``__constant__`` variables of one loaded module, by their addresses."""

    def __init__(self, addresses: Mapping[str, int]) -> None:
        self._addresses = addresses
        self._lock, self._order = threading.Lock(), gpu.Order()

    def launch(self, given: Mapping[str, tuple[Any, int]], stream: object, launch: Callable[[], None]) -> None:
        """Copies arrays, given as (NumPy array or address, bytes) by name, and calls ``launch``, both on ``stream``.

        ``stream`` None is the current one. The GPU is current.
        """
        on = gpu.current_stream() if stream is None else stream
        with self._lock:  # between copies and launch no other thread may copy
            self._order.begin(on)
            for name, (source, n_bytes) in given.items():
                gpu.copy_to(self._addresses[name], source, n_bytes, on)
            try:
                launch()
            finally:
                self._order.end(on)


_known: dict[tuple[tuple[str, int], ...], ConstantMemory] = {}
_lock = threading.Lock()


def memory_for(kernel: str, cubin: Cubin, loaded: object, specs: Mapping[str, Array]) -> ConstantMemory | None:
    """Returns the constant memory of ``loaded``, the cubin's kernel on the current GPU; all who launch it share one.

    None: none of the arrays is there.

    Raises:
        UsageError: when a variable is missing, or smaller than its array.
    """
    if not any(spec.constant for spec in specs.values()):
        return None
    try:
        check_constants(kernel, specs, constant_bytes(cubin.data))
    except TrialFailure as failure:
        raise UsageError(failure.message) from failure
    addresses = {name: gpu.constant_address(loaded, name) for name, spec in specs.items() if spec.constant}
    place = tuple(addresses.items())
    with _lock:
        if place not in _known:
            _known[place] = ConstantMemory(addresses)
        return _known[place]


def source_of(value: Any) -> tuple[Any, int]:
    """Returns what ``ConstantMemory.launch`` takes for a NumPy or CuPy array, which is contiguous."""
    return (value if isinstance(value, np.ndarray) else int(value.data.ptr), int(value.nbytes))
