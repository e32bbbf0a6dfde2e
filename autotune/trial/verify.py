"""Verifies a binary against the reference at edge sizes, with poison, canaries and untouched inputs.

Runs in the device's worker process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.config import Config
from ..core.definition import Array, Kernel, Launch, Tolerance, fault, problem_name
from ..core.errors import TrialFailure
from ..devices.base import TIMED_ALIGN, Binary, Buffer, Comparison, Function, Session
from .case import N_LARGE, Case, check_reference_repeats, small_case
from .contract import tolerance_of

POISONS = (0xFF, 0x6D)  # NaN in every float format; a number in all of them


@dataclass(frozen=True)
class Verdict:
    """A binary that passed: what it was checked on, and the largest errors relative to rms(reference)."""

    verified_on: tuple[str, ...]
    max_error: float
    rms_error: float


def verify(
    session: Session,
    kernel: Kernel[Any],
    problem: Any,
    config: Config,
    binary: Binary,
    builds: Sequence[str] | None = None,
    full: bool = False,
) -> Verdict:
    """Check every build of ``binary`` at the edge sizes of ``problem``; ``full``: and at its own.

    Raises:
        TrialFailure: wrong, with the first element that differs; launch_failed or resources from the device.
    """
    names: list[str] = []
    errors = [(0.0, 0.0)]
    edges = kernel.edge_problems(problem, config)
    if not edges:
        raise fault(
            kernel, "edge_problems", f"returns nothing at {problem_name(problem)}; it must return one problem at least"
        )
    problems = (*edges, *((problem,) if full else ()))
    by_size = sorted(edges, key=lambda p: bytes_of(kernel.arrays(p)))
    check_reference_repeats(kernel, problem, by_size[0])
    for build in builds or session.check_builds:
        function = session.load(binary, build)
        for seed, edge in enumerate(problems):
            case = small_case(kernel, edge)
            try:
                with Placed(session, kernel, edge, case.inputs, align=None) as placed:
                    placed.poison(POISONS[seed % len(POISONS)])
                    placed.launch(function, kernel.launch(edge, config), seed=seed)
                    errors.append(placed.check(case))
                    if edge == by_size[-1] and build == session.timed_build:
                        placed.check_overwrites(function, kernel.launch(edge, config), case, seed)
            except TrialFailure as failure:
                where = f"at {problem_name(edge)}" + (f", {build} build" if len(session.check_builds) > 1 else "")
                raise TrialFailure(failure.status, f"{failure.message} ({where})", sticky=failure.sticky) from failure
            if problem_name(edge) not in names:
                names.append(problem_name(edge))
    return Verdict(tuple(names), max(e[0] for e in errors), max(e[1] for e in errors))


class Placed:
    """The arguments of one problem in device memory, at multiples of ``align``, or of what the definition states."""

    def __init__(
        self,
        session: Session,
        kernel: Kernel[Any],
        problem: Any,
        inputs: Mapping[str, Any],
        align: int | None = TIMED_ALIGN,
    ) -> None:
        self.kernel = kernel
        self.problem = problem
        self.specs: dict[str, Array] = kernel.arrays(problem)
        self.buffers: dict[str, Buffer] = {}
        for name, spec in self.specs.items():
            at = spec.align if align is None else align
            self.buffers[name] = session.buffer(name, spec.shape, spec.dtype, written=spec.written, align=at)
            if spec.read:
                self.buffers[name].write(as_given(kernel, name, spec, inputs))
                if spec.written:
                    self.buffers[name].keep()
        scalars = kernel.scalars(problem, inputs)
        names = kernel.arguments_for(problem)
        missing = [n for n in names if n not in self.buffers and n not in scalars]
        if missing:
            raise TypeError(f"{kernel.name}: arguments {missing} are neither in arrays() nor in scalars()")
        self.arguments = [self.buffers[n] if n in self.buffers else scalars[n] for n in names]

    def __enter__(self) -> "Placed":
        return self

    def __exit__(self, *_: object) -> None:
        for buffer in self.buffers.values():
            buffer.free()

    def poison(self, pattern: int) -> None:
        """Outputs get a pattern that is no result; accumulators their initial values again."""
        for name, spec in self.specs.items():
            if spec.written and not spec.read:
                self.buffers[name].poison(pattern)
            elif spec.written:
                self.buffers[name].restore()

    def launch(self, function: Function, geometry: Launch, seed: int = 0) -> None:
        if 0 not in geometry.grid:
            function.launch(geometry, self.arguments, seed=seed)

    def check(self, case: Case) -> tuple[float, float]:
        """Returns the (largest, rms) error over all outputs; nothing else may have been written.

        Raises:
            TrialFailure: wrong.
        """
        for name, buffer in self.buffers.items():
            if (damage := buffer.damage()) is not None:
                raise TrialFailure("wrong", f"{name}: {damage}")
        errors = self.check_outputs(case)
        for name, spec in self.specs.items():
            if not spec.written:
                given = as_given(self.kernel, name, spec, case.inputs)
                found = self.buffers[name].compare(given, Tolerance(), key=f"{case.key} {name}")
                if found.n_bad:
                    raise TrialFailure("wrong", f"the input was written: {_differs(name, found, Tolerance())}")
        return errors

    def check_outputs(self, case: Case) -> tuple[float, float]:
        """Returns the (largest, rms) error over all outputs.

        Raises:
            TrialFailure: wrong.
        """
        worst = (0.0, 0.0)
        for name, spec in self.specs.items():
            if spec.written:
                tolerance = tolerance_of(self.kernel, self.problem, name).times(case.slack)
                found = self.buffers[name].compare(case.reference[name], tolerance, key=f"{case.key} {name}")
                if found.n_bad:
                    raise TrialFailure("wrong", _differs(name, found, tolerance))
                worst = (max(worst[0], found.max_error), max(worst[1], found.rms_error))
        return worst

    def check_overwrites(self, function: Function, geometry: Launch, case: Case, seed: int) -> None:
        """Launch on outputs that hold the answer, and on outputs that hold another: what is there must not matter.

        A kernel that adds to its output, or that leaves alone what looks like a result, can be right after a poison.

        Raises:
            TrialFailure: wrong.
        """
        plain = [name for name, spec in self.specs.items() if spec.written and not spec.read and spec.n_bytes]
        answers = {name: np.asarray(case.reference[name]).astype(self.specs[name].dtype) for name in plain}
        others = {name: _other(answer) for name, answer in answers.items()}
        for what, before in (("the answer", answers), ("another answer", others)) if plain else ():
            self.poison(POISONS[0])  # accumulators have their initial values
            for name, values in before.items():
                self.buffers[name].write(values)
            self.launch(function, geometry, seed=seed)
            try:
                self.check(case)
            except TrialFailure as failure:
                message = f"where outputs held {what} before the launch: {failure.message}"
                raise TrialFailure(failure.status, message, sticky=failure.sticky) from failure

    def outputs(self) -> dict[str, np.ndarray]:
        return {name: self.buffers[name].read() for name, spec in self.specs.items() if spec.written}


def bytes_of(specs: Mapping[str, Array]) -> int:
    """Returns the device bytes of these arrays; accumulators count twice, since their initial values are kept."""
    return sum(spec.n_bytes * (2 if spec.read and spec.written else 1) for spec in specs.values())


def as_given(kernel: Kernel[Any], name: str, spec: Array, inputs: Mapping[str, Any]) -> np.ndarray:
    """Returns the input ``name``, contiguous.

    Raises:
        TypeError: when it is missing or not of the shape and dtype that the definition states.
    """
    if name not in inputs:
        raise TypeError(f"{kernel.name} needs the input {name} ({spec.dtype}, {list(spec.shape)})")
    array = np.asarray(inputs[name])
    if array.dtype != spec.dtype or array.shape != spec.shape:
        raise TypeError(
            f"{kernel.name}: {name} is {array.dtype} {list(array.shape)}, must be {spec.dtype} {list(spec.shape)}"
        )
    return np.ascontiguousarray(array)


def _other(answer: np.ndarray) -> np.ndarray:
    """Returns a different but plausible answer: elements shifted by one, or changed if all are equal."""
    moved = np.roll(answer, 1)
    if not np.array_equal(moved, answer):
        return moved
    return ~answer if answer.dtype.kind in "biu" else (answer + 1).astype(answer.dtype)


_of_oracles: dict[str, Case] = {}  # one for each problem in use


def case_of_oracle(session: Session, kernel: Kernel[Any], case: Case, config: Config, oracle: Binary) -> Case:
    """Returns ``case`` with the output of the verified ``oracle`` as its reference."""
    key = f"{case.key} by {oracle.key}"
    if key not in _of_oracles:
        function = session.load(oracle, session.timed_build)
        with Placed(session, kernel, case.problem, case.inputs) as placed:
            placed.poison(POISONS[0])
            placed.launch(function, kernel.launch(case.problem, config))
            while len(_of_oracles) >= N_LARGE:
                del _of_oracles[next(iter(_of_oracles))]
            _of_oracles[key] = replace(case, key=key, reference=placed.outputs(), slack=2.0)
    return _of_oracles[key]


def _differs(name: str, found: Comparison, tolerance: Tolerance) -> str:
    index = ", ".join(map(str, found.first_bad or ()))
    parts = {"atol": tolerance.atol, "rtol": tolerance.rtol, "rms x": tolerance.of_rms}
    allowed = ", ".join(f"{what} {value:.2g}" for what, value in parts.items() if value) or "exactness"
    return (
        f"{name}[{index}] is {found.got}, reference {found.want}; "
        f"{found.n_bad} of {found.n_total} beyond {allowed} (largest error {found.max_error:.3g} of rms)"
    )
