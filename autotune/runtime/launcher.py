"""Calls a tuned kernel as a Python function of arrays; all arguments are checked before the launch.

The first call with arrays of given shapes makes a plan: problem, configuration, binary, geometry. Later calls find this
plan by the arrays' signatures, check addresses, and launch.
"""

import logging
import threading
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..core.config import Config
from ..core.definition import Array, Device, Kernel, Launch, baked_values, problem_name, runtime_fields
from ..core.errors import UsageError
from ..core.problem import Problem
from . import gpu
from .arrays import (
    HOST,
    ArrayLayout,
    allocate,
    check_alignment,
    check_fit,
    check_kind,
    layout_of,
    read_constant,
    reader_for,
    readers,
)
from .binding import Binding
from .chooser import ONLY_READ, Chooser
from .constants import ConstantMemory, memory_for
from .loaded import Enqueue, LoadedKernel
from .lookup import Choice, Predicting, asked_problem
from .named_devices import device_named
from .prepared import PreparedKernel
from .signature import MISSING, NUMBERS, ArgumentValueError, Signature, call_order
from .tune_once import FirstUse
from .wisdom import Wisdom, fields_text

N_PLANS = 1024  # plans in memory; a caller whose sizes never repeat must not fill it


@dataclass(slots=True)
class LaunchPlan:
    """The data that all calls with arrays of the same signatures share."""

    binding: Binding
    last: tuple[Any, Choice]  # problem and choice
    gpu: int  # index of the arrays' GPU
    current: Callable[[], int]  # returns the index of the current GPU
    library: str  # "torch" if all inputs are PyTorch's: outputs then are, too, and its current stream is used
    aligns: tuple[tuple[str, int], ...]  # alignments of the inputs, then of the outputs
    low_bits: int  # see Binding.low_bits
    outputs: tuple[Array, ...]
    arguments: Callable[[list[object]], tuple[object, ...]]  # puts inputs, outputs and scalars in the kernel's order
    loaded: "_Loaded | None"  # None: there is nothing to compute
    constants: dict[str, int]  # bytes of each array in constant memory
    scalars: tuple[tuple[object, ...], list[object]] = ((MISSING,), [])  # the last call's: as given, and as arguments


class _Loaded(NamedTuple):
    """A loaded binary with its geometry."""

    launch: Enqueue
    geometry: Launch
    kernel: LoadedKernel
    constants: ConstantMemory | None  # None: no array is in constant memory


class TunedKernel:
    """A tuned kernel. Call it with the kernel's inputs by position or name.

    It returns outputs as new CuPy arrays (PyTorch tensors if all inputs are), or writes them to ``out=``: an array, or
    for several outputs a sequence in order or a mapping. ``stream=``: a CuPy or PyTorch stream, or its address; by
    default the current one. Arrays that are read and written are updated in place. A call does not wait for the GPU.
    """

    def __init__(
        self,
        kernel: Kernel[Problem],
        wisdom: Wisdom,
        source: Callable[[str], str],
        values: Mapping[str, object],
        device: Device | str | None,
        log: logging.Logger,
        predicting: Predicting | None = None,
        tuning: FirstUse | None = None,
    ) -> None:
        self._kernel, self._wisdom, self._source = kernel, wisdom, source
        problem = asked_problem(wisdom, kernel, values)
        self._baked = baked_values(problem)
        self._values = {**self._baked, **values}
        self._device = device_named(wisdom, device) if isinstance(device, str) else device
        self._chooser = Chooser(kernel, wisdom, self._baked, log, predicting, tuning)
        self._lock = threading.Lock()
        self._plans: dict[tuple[object, ...], LaunchPlan] = {}
        self._loaded: dict[tuple[str, int], LoadedKernel] = {}
        self._sizes = {name: values[name] for name in runtime_fields(type(problem)) if name in values}
        here = self._device or self._device_here()
        read = None if self._device else self._chooser.tuned_here(problem, here, ONLY_READ)
        # A kernel with ``tuning`` probably tunes at its first call, so a prediction now would be in vain.
        self._last: tuple[Any, Choice | None] = (problem, read)
        config = kernel.default_config(problem, here) if tuning and not self._device else self.choice.config
        self._signature = Signature.of(kernel, problem, self._order(problem, config))
        self._inputs, self._arrays = self._signature.inputs, self._signature.arrays
        self._constants = self._signature.constants
        self._one_output = len(self._signature.outputs) == 1
        self._names, self._scalars = frozenset(self._inputs), self._signature.scalars
        self._result = namedtuple(f"{type(kernel).__name__}Outputs", self._signature.returned)  # type: ignore[misc]

    def _order(self, problem: Problem, config: Config) -> tuple[str, ...]:
        """Returns the names of a call's inputs in order: as recorded for these baked fields, else as generated.

        A definition whose inputs are files has none in a package: then the order is that of its other baked fields.
        """
        known = {tuple(f.baked.items()): f.inputs for f in self._wisdom.fallbacks if f.kernel == self._kernel.name}
        if (recorded := known.get(tuple(self._baked.items()))) is not None:
            return recorded
        try:
            return call_order(self._kernel, problem, config)
        except UsageError:
            read = {name for name, spec in self._kernel.arrays(problem).items() if spec.read}
            others = {inputs for inputs in known.values() if read <= {*inputs}}
            if len(others) != 1:
                raise
            return others.pop()

    # ------------------------------------------------------------------ choices
    @property
    def choice(self) -> Choice:
        """Returns the choice of the latest call; before the first call, the one for the default sizes."""
        problem, choice = self._last
        if choice is None:
            choice = self._chooser.chosen(self._sizes or None, self._device or self._device_here())
            self._last = problem, choice
        return choice

    @property
    def problem(self) -> Any:
        """Returns the problem of the latest call."""
        return self._last[0]

    def choice_for(self, **sizes: object) -> Choice:
        """Returns the choice for other runtime sizes: ``ddc.choice_for(n_samples=2**24)``. Nothing is tuned for it."""
        device = self._device or self._device_here()
        if sizes and not self._device:
            problem = asked_problem(self._wisdom, self._kernel, {**self._values, **sizes})
            if (here := self._chooser.tuned_here(problem, device, ONLY_READ)) is not None:
                return here
        return self._chooser.looked_up(sizes or None, device)

    def explain(self) -> str:
        """Returns the choice, its evidence, and the other records for these baked fields."""
        lines = [str(self.choice), "  recorded"]
        for entry in self._wisdom.entries:
            if entry.kernel == self._kernel.name and entry.baked == self._baked:
                median = f"{1e6 * entry.evidence.median_s:.4g} us"
                lines.append(f"    {entry.device.name}, {fields_text(entry.runtime)}: {entry.config}, {median}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self._kernel.name}[{fields_text(self._baked)}], {self.choice.tier} on {self.choice.device}>"

    @property
    def workspace_bytes(self) -> int:
        """Returns the bytes of device memory that its launches so far use in addition to their arguments."""
        return sum(loaded.workspace_bytes for loaded in self._loaded.values())

    def prepare(self, **sizes: object) -> PreparedKernel:
        """Returns the kernel loaded for these sizes on the current GPU; its calls choose and compile nothing.

        ``sizes``: the largest runtime fields, as ``n_spectra=8192``. Those that the definition computes follow from
        them; other missing ones are the default problem's, or the nearest recorded ones where the default contradicts
        the given fields. If the kernel was made with ``tune=``, these sizes are tuned at their first use.

        Raises:
            UsageError: when there is no GPU, or no configuration fits.
        """
        index = gpu.current()
        device = self._device_of(index)
        problem = asked_problem(self._wisdom, self._kernel, {**self._values, **sizes})
        choice = self._chooser.prepared(problem, device)
        source = self._source(choice.source_key)
        return PreparedKernel(self._kernel, problem, choice.config, source, device, index, self._inputs)

    # ------------------------------------------------------------------ a call
    def __call__(self, *positional: object, out: object = None, stream: object = None, **named: object) -> Any:
        given = named
        if positional:
            given = dict(zip(self._inputs, positional, strict=False))
            given.update(named)
        if len(given) != len(positional) + len(named) or not self._names.issuperset(given):
            raise self._signature.misnamed(len(positional), named)
        outputs: Any = None
        if out is not None:
            plain = self._one_output and type(out) in readers
            outputs = [out] if plain else self._signature.given_outputs(out)
        signatures, arguments, addresses, together = [], [], [], 0
        for name in self._arrays:
            value = given.get(name)
            reader = readers.get(type(value)) or reader_for(f"{self._kernel.name}: {name}", value)
            signature, argument, address = reader(value)
            signatures.append(signature)
            arguments.append(argument)
            addresses.append(address)
            together |= address
        for value in outputs or ():
            reader = readers.get(type(value)) or reader_for(self._name_of(outputs, value), value)
            signature, argument, address = reader(value)
            signatures.append(signature)
            arguments.append(argument)
            addresses.append(address)
            together |= address
        constants = {}
        for name in self._constants:
            signature, argument, address = read_constant(f"{self._kernel.name}: {name}", given.get(name))
            signatures.append(signature)
            constants[name] = argument if isinstance(argument, np.ndarray) else address
        key = tuple(signatures)
        plan = self._plans.get(key) or self._make_plan(key, given, outputs, stream)
        self._last = plan.last
        if together & plan.low_bits:  # an address with less alignment may still suit its own array
            pairs = zip(plan.aligns, addresses, strict=False)
            check_alignment(self._kernel.name, ((name, align, address) for (name, align), address in pairs))
        values = tuple([given.get(name, default) for name, default in self._scalars])
        before, scalars = plan.scalars
        if not NUMBERS.issuperset(map(type, values)) or values != before:
            scalars = self._scalar_arguments(plan, values)
        own = None if stream is None else gpu.stream_of(stream, plan.gpu)
        stream = gpu.stream_of(None, plan.gpu) if own is None and plan.library == "torch" else own
        if plan.current() == plan.gpu:
            outputs = self._run(plan, arguments, outputs, scalars, constants, stream, own)
        else:
            with gpu.made_current(plan.gpu):
                outputs = self._run(plan, arguments, outputs, scalars, constants, stream, own)
        if not outputs:
            outputs = [given[name] for name in self._signature.returned]
        return outputs[0] if len(outputs) == 1 else self._result(*outputs)

    def _run(
        self,
        plan: LaunchPlan,
        arguments: list[object],
        outputs: object,
        scalars: list[object],
        constants: Mapping[str, object],
        stream: object,
        own_stream: object,
    ) -> Any:
        """Launches on ``stream``; ``own_stream``: the stream that the caller gave, or None for the current one."""
        if outputs is None:
            outputs = allocate(plan.outputs, plan.library, plan.gpu, own_stream)
            arguments.extend([readers[type(array)](array)[1] for array in outputs])
        if plan.loaded is not None:
            arguments.extend(scalars)
            launch, _, _, memory = plan.loaded
            ordered = plan.arguments(arguments)
            if memory is None:
                launch(ordered, stream)
            else:
                sources = {name: (source, plan.constants[name]) for name, source in constants.items()}
                memory.launch(sources, stream, lambda: launch(ordered, stream))
        return outputs

    # ------------------------------------------------------------------ the first call of a kind
    def _make_plan(
        self, key: tuple[object, ...], given: Mapping[str, object], outputs: Sequence[object] | None, stream: object
    ) -> LaunchPlan:
        kernel, names = self._kernel, self._signature
        found = {name: layout_of(given[name]) for name in (*names.arrays, *names.constants)}
        usual = kernel.arrays(self._last[0])
        for name in found:
            check_kind(kernel.name, name, found[name], usual[name])  # sizes() relies on this
        problem = kernel.problem_for(self._values, found)
        binding = Binding.of(kernel, problem)
        specs = binding.specs
        libraries = {found[name].library for name in names.arrays or names.constants}
        library = "torch" if libraries == {"torch"} else "cupy"
        if outputs is not None:
            found.update({name: layout_of(value) for name, value in zip(names.outputs, outputs, strict=True)})
        for name in found:
            check_kind(kernel.name, name, found[name], specs[name])
            check_fit(f"{kernel.name}[{problem_name(problem)}]", name, found[name], specs[name])
        index = self._one_gpu(found)
        device = self._device_of(index)
        nothing = all(spec.n_bytes == 0 for spec in specs.values() if spec.written)
        choice = self.choice if nothing else self._chooser.called(problem, device, index, library, stream)
        order = (*names.arrays, *names.outputs, *binding.passed)
        plan = LaunchPlan(
            binding=binding,
            last=(problem, choice),
            gpu=index,
            current=gpu.current_getter(),
            library=library,
            aligns=tuple((name, binding.aligns[name]) for name in (*names.arrays, *names.outputs)),
            low_bits=binding.low_bits,
            outputs=tuple(specs[name] for name in names.outputs),
            arguments=_picker([order.index(name) for name in binding.names]),
            loaded=None if nothing else self._load(problem, choice, device, index),
            constants={name: specs[name].n_bytes for name in names.constants},
        )
        if len(self._plans) >= N_PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan

    def _load(self, problem: Problem, choice: Choice, device: Device, index: int) -> _Loaded | None:
        """Returns the loaded binary with its geometry, or None if the grid is empty."""
        name, geometry = self._kernel.name, self._kernel.launch(problem, choice.config)
        if geometry.is_empty:
            return None
        place = (choice.source_key, index)
        with self._lock, gpu.made_current(index):
            if place not in self._loaded:
                source = self._source(choice.source_key)
                self._loaded[place] = LoadedKernel(self._kernel, geometry, source, device, index)
            loaded = self._loaded[place]
            memory = memory_for(name, loaded.cubin, loaded.own, self._kernel.arrays(problem))
            return _Loaded(loaded.bound(geometry), geometry, loaded, memory)

    def _device_here(self) -> Device:
        try:
            return gpu.describe_gpu(gpu.current())
        except UsageError as error:
            names = ", ".join(f'"{name}"' for name in sorted(self._wisdom.devices())) or "none"
            raise UsageError(
                f"{error}. To see what a GPU would run, name it by device= or --device (recorded: {names})"
            ) from None

    def _device_of(self, index: int) -> Device:
        """Returns the GPU of the arrays; raises UsageError if the kernel was made for another named device."""
        actual = gpu.describe_gpu(index)
        if self._device is not None and (actual.name, actual.arch) != (self._device.name, self._device.arch):
            raise UsageError(
                f"{self._kernel.name} was made for {self._device.name}; the arrays are on GPU {index}, {actual.name}. "
                "Leave device= out to run there"
            )
        return actual

    def _one_gpu(self, found: Mapping[str, ArrayLayout]) -> int:
        gpus = {name: f.gpu for name, f in found.items() if f.library != HOST}
        if len(set(gpus.values())) > 1:
            where = ", ".join(f"{name} on GPU {index}" for name, index in gpus.items())
            raise ArgumentValueError(f"{self._kernel.name}: all arrays must be on one GPU, but {where}")
        return next(iter(gpus.values())) if gpus else gpu.current()

    def _scalar_arguments(self, plan: LaunchPlan, values: tuple[object, ...]) -> list[object]:
        """Returns the kernel's scalars, and keeps them in the plan, so that unchanged values cost nothing."""
        found: dict[str, Any] = plan.binding.scalars(self._signature.checked_scalars(values))
        if plan.loaded is not None:
            found = plan.binding.as_passed(found, plan.loaded.geometry, plan.loaded.kernel.cubin.data)
        arguments = [found[name] for name in plan.binding.passed]
        plan.scalars = (values, arguments)
        return arguments

    def _name_of(self, outputs: Sequence[object], value: object) -> str:
        name = next(name for name, one in zip(self._signature.outputs, outputs, strict=True) if one is value)
        return f"{self._kernel.name}: {name}"


def _picker(positions: list[int]) -> Callable[[list[object]], tuple[object, ...]]:
    if len(positions) == 1:
        return lambda values: (values[positions[0]],)
    return itemgetter(*positions)
