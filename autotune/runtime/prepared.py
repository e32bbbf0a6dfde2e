"""A prepared kernel: one configuration, compiled and loaded on one GPU, for any runtime sizes that it allows.

An engine that runs for hours must not stall after its first sample, so a call looks up, compiles and allocates nothing.
Each call states its own sizes, and its arrays may be parts of longer ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..core.config import Config
from ..core.definition import Device, Kernel, Launch, problem_name
from ..core.errors import UsageError
from ..core.parameter import clause
from ..core.problem import Problem, named_fields
from . import gpu
from .arrays import check_alignment, check_cupy, read_constant
from .binding import Binding
from .constants import ConstantMemory, memory_for, source_of
from .field_types import check_field_types
from .loaded import Enqueue, LoadedKernel
from .signature import NUMBERS, ArgumentTypeError

N_SIZES = 4096  # problems whose launch geometries are cached: runs have any length up to a batch's
N_LAYOUTS = 8192  # layouts of arrays whose shared launch data is cached


class _Plan(NamedTuple):
    """The data that all calls of the same sizes share."""

    binding: Binding
    geometry: Launch
    launch: Enqueue
    low_bits: int  # see Binding.low_bits
    constants: ConstantMemory | None = None  # None: no array is in constant memory


@dataclass(slots=True)
class _Layout:
    """The data that all launches with arrays of one layout share."""

    plan: _Plan
    lengths: dict[str, int]  # scalar -> length of a whole array
    last: tuple[Mapping[str, object], dict[str, object]]  # numbers and scalars of the last launch; both change at once


class PreparedKernel:
    """A prepared kernel. Call it by name: ``kernel(samples=.., weights=.., filtered=.., sizes={..})``.

    Any thread may call it. A call costs little, since what depends on types, shapes, strides and GPUs of its arrays is
    checked at the first call of each kind; addresses are checked at every call.

    Args:
        problem: the largest sizes; the configuration must allow them.
        source: the CUDA source of (baked fields, config).
        index: the GPU's number.
        inputs: the names of its inputs, or () if they are unknown. A call with other names is refused.

    Raises:
        UsageError: when the source does not compile, or the configuration does not allow the problem.
    """

    def __init__(
        self,
        kernel: Kernel[Problem],
        problem: Problem,
        config: Config,
        source: str,
        device: Device,
        index: int,
        inputs: tuple[str, ...] = (),
    ) -> None:
        self.kernel, self.problem, self.config = kernel, problem, config
        self._takes = frozenset((*inputs, *kernel.arrays(problem))) if inputs else None
        self._device, self._index = device, index
        self._loaded = LoadedKernel(kernel, kernel.launch(problem, config), source, device, index)
        self._plan = lru_cache(maxsize=N_SIZES)(self._plan_of)
        self._layouts: dict[tuple[object, ...], _Layout] = {}
        self._plan(problem)

    @property
    def workspace_bytes(self) -> int:
        """Returns the bytes of device memory that it uses in addition to its arguments."""
        return self._loaded.workspace_bytes

    def __call__(self, *, sizes: Mapping[str, int] | None = None, stream: object = None, **given: object) -> None:
        """Launches on CuPy arrays; ``sizes``: the runtime fields that differ from those of the prepared problem.

        Raises:
            UsageError: when the configuration does not allow these sizes, or an array does not fit them.
        """
        problem = self.kernel.problem(sizes, base=self.problem) if sizes else self.problem
        specs = self._plan(problem).binding.specs
        if self._takes is not None and not self._takes.issuperset(given):
            takes, unknown = ", ".join(sorted(self._takes)), ", ".join(sorted(given.keys() - self._takes))
            raise ArgumentTypeError(f"{self.kernel.name} takes {takes}, not {unknown}")
        arrays = {name: array for name, array in given.items() if name in specs}
        inputs = {name: value for name, value in given.items() if name not in specs}
        own = None if stream is None else gpu.stream_of(stream, self._index)
        self.launch(problem, arrays, inputs, own)

    def launch(self, problem: Problem, arrays: Mapping[str, Any], inputs: Mapping[str, object], stream: object) -> None:
        """Launches for ``problem`` on ``stream``; ``inputs``: the numbers among the kernel's inputs.

        Raises:
            UsageError: as for a call.
        """
        together = 0
        signatures: list[object] = [problem]
        try:
            for name, array in arrays.items():
                data = array.data
                signatures.append((name, array.shape, array.strides, array.dtype, data.device_id))
                together |= data.ptr
        except AttributeError:  # not an array of CuPy, which only constant memory takes
            own = self.kernel.name
            signatures = [problem, *((n, read_constant(f"{own}: {n}", one)[0]) for n, one in arrays.items())]
            together = -1
        key = tuple(signatures)
        if (layout := self._layouts.get(key)) is None:
            layout = self._new_layout(key, problem, arrays, inputs)
        plan = layout.plan
        if together & plan.low_bits:  # an address with less alignment may still suit its own array
            aligns = plan.binding.aligns.items()
            check_alignment(self.kernel.name, ((name, align, arrays[name].data.ptr) for name, align in aligns))
        before, scalars = layout.last
        if (inputs or before) and (not NUMBERS.issuperset(map(type, inputs.values())) or inputs != before):
            scalars = self._scalars(plan, inputs, layout.lengths)
            layout.last = dict(inputs), scalars
        ordered = tuple(plan.binding.ordered(arrays, scalars))
        if plan.constants is None:
            plan.launch(ordered, stream)
        else:
            given = {name: source_of(arrays[name]) for name in plan.binding.constants}
            with gpu.made_current(self._index):
                plan.constants.launch(given, stream, lambda: plan.launch(ordered, stream))

    def _new_layout(
        self, key: tuple[object, ...], problem: Problem, arrays: Mapping[str, object], inputs: Mapping[str, object]
    ) -> _Layout:
        """Returns and caches the data that all launches of a layout share."""
        plan = self._plan(problem)
        check_cupy(self.kernel.name, plan.binding.specs, arrays, self._index)
        lengths = plan.binding.lengths(arrays)
        if len(self._layouts) >= N_LAYOUTS:
            self._layouts.clear()
        layout = self._layouts[key] = _Layout(plan, lengths, (dict(inputs), self._scalars(plan, inputs, lengths)))
        return layout

    def _scalars(self, plan: _Plan, inputs: Mapping[str, object], lengths: Mapping[str, int]) -> dict[str, object]:
        scalars = plan.binding.scalars(inputs, lengths)
        if not any(isinstance(value, np.void) for value in scalars.values()):
            return dict(scalars)  # without structures, CuPy passes all scalars as they are
        return plan.binding.as_passed(scalars, plan.geometry, self._loaded.cubin.data)

    def _plan_of(self, problem: Problem) -> _Plan:
        kernel = self.kernel
        where = f"{kernel.name}[{problem_name(problem)}]"
        check_field_types(where, named_fields(problem), self.problem)
        if (broken := kernel.space.broken(problem, self.config, self._device)) is not None:
            raise UsageError(f"{where}: {self.config} does not serve; it {clause(broken.reason)}")
        geometry = kernel.launch(problem, self.config)
        binding = Binding.of(kernel, problem)
        if geometry.is_empty:
            return _Plan(binding, geometry, lambda arguments, stream: None, 0)
        try:
            launch = self._loaded.bound(geometry)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error
        with gpu.made_current(self._index):
            constants = memory_for(kernel.name, self._loaded.cubin, self._loaded.own, binding.specs)
        return _Plan(binding, geometry, launch, binding.low_bits, constants)
