"""Copies arrays to constant memory before a launch, in stream order.

All launches of a loaded module share its constant memory, so they run one after another, whatever their streams.
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

        ``stream`` None: the current one. The caller has made the GPU current.
        """
        on = gpu.current_stream() if stream is None else stream
        with self._lock:  # no other thread may copy between these copies and the launch
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
    """Returns the constant memory of ``loaded``, the cubin's kernel on the current GPU; all its launches share one.

    None: no array is in constant memory.

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
    """Returns (source, bytes) of a contiguous NumPy or CuPy array, for ``ConstantMemory.launch``."""
    return (value if isinstance(value, np.ndarray) else int(value.data.ptr), int(value.nbytes))
