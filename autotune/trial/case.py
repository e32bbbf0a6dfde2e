"""The data for the check of a binary: a problem's random inputs and expected outputs.

Small cases, at the edge sizes, are made in the process that needs them. The case of the timed problem may take
gigabytes and seconds of NumPy: a compile process makes it beside the first compiles, in files that the device's process
maps. ``CaseInMemory`` is a case in the device's memory, where outputs are poisoned, launched into and compared. Where
NumPy would need minutes, the output of a verified config stands in for the reference.
"""

import pickle
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core.definition import AnyKernel, Array, Kernel, Launch, P, Tolerance, fault, problem_name
from ..core.errors import DefinitionError, Status, TrialFailure, explained
from ..core.files import named_errors
from ..core.problem import Problem
from ..devices.base import TIMED_ALIGN, Argument, Buffer, Constant, Function, Session
from ..runtime.binding import Binding
from ..runtime.comparison import another, differs
from ..runtime.signature import ArgumentTypeError
from . import contract
from .input_values import changed, kind_of
from .parts import Part, parts_of

REFERENCE_FLOPS = 2e11  # above it the NumPy reference takes minutes
POISONS = (0xFF, 0x6D)  # bytes; the first is NaN in every float format, the second a number in all of them
PARTS = "parts.pickle"
N_SMALL = 256  # most small cases (a few thousand elements) that a process keeps
N_LARGE = 24  # most timed problems in use at a time


@dataclass(frozen=True)
class Case:
    """A problem with its inputs (arrays and numbers) and its outputs by name."""

    key: str
    problem: Problem
    inputs: Mapping[str, object]
    reference: Mapping[str, np.ndarray]
    tolerances: Mapping[str, Tolerance]  # tolerance of each output
    slack: float = 1.0  # allowed multiple of the tolerance: 2 if the reference itself may be off by one tolerance
    values: str = ""  # kind and input, where one has other values than the definition's
    parts: tuple[Part, ...] = ()  # parts of outputs from NumPy, where it would need minutes for whole outputs


def case_key(kernel: Kernel[P], problem: P) -> str:
    """Returns the key that names a case in every process."""
    return f"{kernel.name} {problem_name(problem)}"


def too_large_for_numpy(kernel: Kernel[P], problem: P) -> bool:
    """Returns whether a verified config must stand in for the reference."""
    return kernel.work(problem).flops > REFERENCE_FLOPS


def random_inputs(kernel: Kernel[P], problem: P, number: int = 0) -> dict[str, Any]:
    """Returns the definition's inputs. They are the same in every process; each ``number`` gives other inputs."""
    seed = zlib.crc32(case_key(kernel, problem).encode())
    return contract.inputs_of(kernel, problem, np.random.default_rng([seed, number] if number else seed))


def numpy_case(kernel: Kernel[P], problem: P, number: int = 0) -> Case:
    """Returns the case of ``problem``, with the definition's reference; each ``number`` gives other inputs."""
    inputs = random_inputs(kernel, problem, number)
    reference = contract.expected_outputs(kernel, problem, inputs)
    key = case_key(kernel, problem) + (f" {number}" if number else "")
    return Case(key, problem, inputs, reference, _tolerances(kernel, problem))


@lru_cache(maxsize=N_SMALL)
def valued_case(kernel: Kernel[P], problem: P, number: int) -> Case:
    """Returns ``small_case`` with the kind of values that ``number`` names; as it is if the reference has no answer."""
    plain = small_case(kernel, problem)
    chosen = kind_of(kernel, problem, plain.inputs, number)
    array = None if chosen is None else changed(np.asarray(plain.inputs[chosen[1]]), chosen[0])
    if chosen is None or array is None:
        return plain
    array.flags.writeable = False
    inputs = {**plain.inputs, chosen[1]: array}
    with np.errstate(all="ignore"):
        try:
            reference = contract.expected_outputs(kernel, problem, inputs)
        except DefinitionError:  # not finite: these values mean nothing here
            return plain
        grown = _grown(kernel, problem, plain.reference, reference)
    if grown is None:
        return plain
    looser = {out: replace(of, atol=of.atol * max(1.0, grown[out])) for out, of in plain.tolerances.items()}
    name = " ".join(chosen)
    key = f"{plain.key} {name}"
    return replace(plain, key=key, inputs=inputs, reference=reference, tolerances=looser, values=name)


def _grown(
    kernel: Kernel[P], problem: P, before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]
) -> dict[str, float] | None:
    """Returns how many times as large outputs are; None if they are all 0, or too large for the output's type."""
    grown = {}
    for name, spec in kernel.arrays(problem).items():
        if not spec.is_compared:
            continue
        old, new = (float(np.abs(each).max(initial=0)) for each in (before[name], after[name]))
        most = float(np.finfo(spec.dtype.char).max) if spec.dtype.kind in "fc" else np.inf
        if (not new and old) or new > most:
            return None
        grown[name] = new / old if old else 1.0
    return grown


def _tolerances(kernel: Kernel[P], problem: P) -> dict[str, Tolerance]:
    arrays = kernel.arrays(problem).items()
    return {name: contract.tolerance_of(kernel, problem, name) for name, array in arrays if array.is_compared}


@lru_cache(maxsize=N_SMALL)
def small_case(kernel: Kernel[P], problem: P, number: int = 0) -> Case:
    """Returns ``numpy_case``, cached."""
    return numpy_case(kernel, problem, number)


_repeated: set[tuple[AnyKernel, Any]] = set()


def check_reference_repeats(kernel: Kernel[P], problem: P, small: P) -> None:
    """Checks, once for each ``problem``, that two runs of the reference agree at ``small``, one of its smallest sizes.

    Raises:
        DefinitionError: if they differ.
    """
    if (kernel, problem) not in _repeated:
        case = small_case(kernel, small)
        contract.check_repeats(kernel, small, case.inputs, case.reference)
        _repeated.add((kernel, problem))


# ---------------------------------------------------------------------- the timed problem's, in files
def write_case(kernel: Kernel[P], problem: P, folder: Path, with_reference: bool = True, number: int = 0) -> None:
    """Makes the case of ``problem`` in ``folder``; each ``number`` gives other inputs.

    Where NumPy would need minutes for the reference, only parts of it are written.
    """
    too_large = too_large_for_numpy(kernel, problem)
    with_reference = with_reference and not too_large
    folder.mkdir(parents=True, exist_ok=True)
    inputs = random_inputs(kernel, problem, number)
    if too_large and not number:
        (folder / PARTS).write_bytes(pickle.dumps(parts_of(kernel, problem, inputs)))
    reference = contract.expected_outputs(kernel, problem, inputs) if with_reference else {}
    numbers = {name: value for name, value in inputs.items() if not isinstance(value, np.ndarray)}
    (folder / "numbers.pickle").write_bytes(pickle.dumps(numbers))
    for kind, values in (("input", inputs), ("output", reference)):
        save_arrays(folder, kind, {name: value for name, value in values.items() if name not in numbers})


@lru_cache(maxsize=N_LARGE)
def read_case(kernel: Kernel[P], problem: P, folder: Path) -> Case:
    """Reads a case that ``write_case`` wrote; the arrays are mapped, not copied.

    Raises:
        FileNotFoundError: if files of it are gone, since somebody deletes the cache.
    """
    inputs = pickle.loads((folder / "numbers.pickle").read_bytes())
    inputs |= arrays_of(folder, "input")
    for name, spec in kernel.arrays(problem).items():
        if spec.read and name not in inputs:
            raise FileNotFoundError(folder / f"input.{name}.npy")
    key, tolerances = case_key(kernel, problem), _tolerances(kernel, problem)
    return Case(key, problem, inputs, arrays_of(folder, "output"), tolerances, parts=read_parts(folder))


def read_parts(folder: Path) -> tuple[Part, ...]:
    """Returns the parts of outputs that NumPy computed into ``folder``."""
    path = folder / PARTS
    parts: tuple[Part, ...] = pickle.loads(path.read_bytes()) if path.exists() else ()
    return parts


def save_arrays(folder: Path, kind: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Saves arrays in ``folder`` for ``arrays_of``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        with named_errors(folder):
            np.save(folder / f"{kind}.{name}.npy", array)


def arrays_of(folder: Path, kind: str) -> dict[str, np.ndarray]:
    """Returns the arrays of one kind in ``folder`` by name; they are mapped, not copied."""
    paths = sorted(folder.glob(f"{kind}.*.npy"))
    return {path.name.removeprefix(f"{kind}.").removesuffix(".npy"): np.load(path, mmap_mode="r") for path in paths}


# ---------------------------------------------------------------------- device memory
class CaseInMemory:
    """The arguments of one problem in device memory, aligned to ``align`` bytes; None: as the definition states.

    The workspace of a launch is allocated at the launch, and kept until another one is needed.
    """

    def __init__(
        self,
        session: Session,
        kernel: AnyKernel,
        problem: Problem,
        inputs: Mapping[str, object],
        align: int | None = TIMED_ALIGN,
    ) -> None:
        self.kernel = kernel
        self.problem = problem
        self._session, self._align, self._pattern = session, align, POISONS[0]
        self._workspace: dict[str, tuple[Array, Buffer]] = {}
        self._binding = Binding.of(kernel, problem)
        self.specs = self._binding.specs
        self.buffers: dict[str, Buffer] = {}
        for name, spec in self.specs.items():
            if spec.constant:
                continue
            at = spec.align if align is None else align
            self.buffers[name] = session.buffer(name, spec.shape, spec.dtype, written=spec.written, align=at)
        self.give(inputs)

    def give(self, inputs: Mapping[str, object]) -> None:
        """Writes these inputs to the arguments; the input of an accumulator is its initial value."""
        for name, spec in self.specs.items():
            if spec.read and not spec.constant:
                self.buffers[name].write(as_given(self.kernel, name, spec, inputs))
                if spec.written:
                    self.buffers[name].keep()
        try:
            scalars = self._binding.scalars(inputs)
        except ArgumentTypeError as error:  # scalars() reads an input that the definition does not make
            raise fault(self.kernel, "scalars", f"reads what inputs() does not make: {error}") from None
        self._arguments: list[Argument] = self._binding.ordered(self.buffers, scalars)
        self._constants = constants_of(self._binding, inputs)

    def __enter__(self) -> "CaseInMemory":
        return self

    def __exit__(self, *_: object) -> None:
        for buffer in (*self.buffers.values(), *(buffer for _, buffer in self._workspace.values())):
            buffer.free()

    def arguments(self, geometry: Launch) -> list[Argument]:
        """Returns the arguments of a launch, with its workspace."""
        return [*self._arguments, *(self._space(*item) for item in geometry.workspace.items()), *self._constants]

    def _space(self, name: str, spec: Array) -> Buffer:
        known = self._workspace.get(name)
        if known is not None and known[0] == spec:
            return known[1]
        if known is not None:
            del self._workspace[name]
            known[1].free()
        at = spec.align if self._align is None else max(spec.align, self._align)
        buffer = self._session.buffer(name, spec.shape, spec.dtype, written=True, align=at)
        buffer.poison(self._pattern)
        self._workspace[name] = spec, buffer
        return buffer

    def poison(self, pattern: int, with_workspace: bool = True) -> None:
        """Fills outputs and workspace with a byte, and restores the initial values of accumulators."""
        self._pattern = pattern
        for _, buffer in self._workspace.values() if with_workspace else ():
            buffer.poison(pattern)
        for name, spec in self.specs.items():
            if spec.written and not spec.read:
                self.buffers[name].poison(pattern)
            elif spec.written:
                self.buffers[name].restore()

    def hold_another(self) -> None:
        """Changes outputs to another plausible answer, and restores the initial values of accumulators.

        The workspace stays as the last launch left it.
        """
        for name, spec in self.specs.items():
            if spec.written and not spec.read:
                self.buffers[name].hold_another()
            elif spec.written:
                self.buffers[name].restore()

    def launch(self, function: Function, geometry: Launch, seed: int = 0) -> None:
        if not geometry.is_empty:
            function.launch(geometry, self.arguments(geometry), seed=seed)

    def check(self, case: Case) -> tuple[float, float]:
        """Returns the (largest, rms) error over all outputs; also checks that nothing else was written.

        Raises:
            TrialFailure: wrong.
        """
        for name, buffer in (*self.buffers.items(), *((n, buffer) for n, (_, buffer) in self._workspace.items())):
            if (damage := buffer.damage()) is not None:
                raise TrialFailure(Status.WRONG, f"{name}: {damage}")
        errors = self.check_outputs(case)
        for name, spec in self.specs.items():
            if not spec.written and not spec.constant:
                given = as_given(self.kernel, name, spec, case.inputs)
                found = self.buffers[name].compare(given, Tolerance(), key=f"{case.key} {name}")
                if found.n_bad:
                    raise TrialFailure(Status.WRONG, f"the input was written: {differs(name, found, Tolerance())}")
        return errors

    def check_outputs(self, case: Case) -> tuple[float, float]:
        """Returns the (largest, rms) error over all outputs.

        Raises:
            TrialFailure: wrong.
        """
        worst = (0.0, 0.0)
        for name, spec in self.specs.items():
            if spec.is_compared:
                tolerance = case.tolerances[name].times(case.slack)
                found = self.buffers[name].compare(case.reference[name], tolerance, key=f"{case.key} {name}")
                if found.n_bad:
                    raise TrialFailure(Status.WRONG, differs(name, found, tolerance))
                worst = (max(worst[0], found.max_error), max(worst[1], found.rms_error))
        return worst

    def check_overwrites(self, function: Function, geometry: Launch, case: Case, seed: int) -> None:
        """Launches on outputs that hold the answer, and on outputs that hold another one; the result must not depend.

        A kernel that adds to its output, or skips elements that look like results, can be right after a poison.

        Raises:
            TrialFailure: wrong.
        """
        plain = [name for name, spec in self.specs.items() if spec.is_compared and not spec.read and spec.n_bytes]
        answers = {name: np.asarray(case.reference[name]).astype(self.specs[name].dtype) for name in plain}
        others = {name: another(answer) for name, answer in answers.items()}
        for what, before in (("the answer", answers), ("another answer", others)) if plain else ():
            self.poison(POISONS[0])  # this also restores accumulators
            for name, values in before.items():
                self.buffers[name].write(values)
            self.launch(function, geometry, seed=seed)
            with explained(f"where outputs held {what} before the launch"):
                self.check(case)

    def check_other_inputs(self, function: Function, geometry: Launch, case: Case, seed: int) -> None:
        """Launches on the inputs of another case, with the workspace as the last launch left it.

        A kernel that keeps results of earlier inputs, in the workspace or in its own variables, is right only there.

        Raises:
            TrialFailure: wrong.
        """
        self.give(case.inputs)
        self.poison(POISONS[0], with_workspace=False)
        self.launch(function, geometry, seed=seed)
        with explained("on other inputs than the launch before had"):
            self.check(case)

    def outputs(self) -> dict[str, np.ndarray]:
        return {name: self.buffers[name].read() for name, spec in self.specs.items() if spec.written}


def bytes_of(specs: Mapping[str, Array]) -> int:
    """Returns the device bytes of these arrays; accumulators count twice, for their initial values."""
    return sum(spec.n_bytes * (2 if spec.read and spec.written else 1) for spec in specs.values())


def constants_of(binding: Binding, inputs: Mapping[str, object]) -> list[Constant]:
    """Returns the contents of constant memory for a launch on these inputs."""
    kernel = binding.kernel
    return [Constant(name, as_given(kernel, name, spec, inputs)) for name, spec in binding.constants.items()]


def as_given(kernel: AnyKernel, name: str, spec: Array, inputs: Mapping[str, object]) -> np.ndarray:
    """Returns the input ``name`` as a contiguous array.

    Raises:
        TypeError: if it is missing, or its shape or dtype is not that of the definition.
    """
    if name not in inputs:
        raise TypeError(f"{kernel.name} needs the input {name} ({spec.dtype}, {list(spec.shape)})")
    array = np.asarray(inputs[name])
    if array.dtype != spec.dtype or array.shape != spec.shape:
        raise TypeError(
            f"{kernel.name}: {name} is {array.dtype} {list(array.shape)}, must be {spec.dtype} {list(spec.shape)}"
        )
    return np.ascontiguousarray(array)
