"""Verifies a binary against the reference at edge sizes, with poisoned outputs, canaries and a check of the inputs.

It runs in the device's worker process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ..core.config import Config
from ..core.definition import AnyKernel, Inputs, Kernel, Launch, P, Tolerance, fault, problem_name
from ..core.errors import Status, TrialFailure, explained
from ..devices.base import Binary, Buffer, Function, Session
from ..records.checks_made import (
    EDGE_SIZES,
    FRESH_INPUTS,
    GUARDS,
    LONGER_ARRAYS,
    OLD_OUTPUTS,
    POISON,
    VALUES,
    WORKSPACES,
)
from ..records.edge_sizes import RULE, RULES
from ..runtime.binding import Binding
from ..runtime.comparison import OutputComparison, differs
from .case import (
    N_LARGE,
    POISONS,
    Case,
    CaseInMemory,
    as_given,
    bytes_of,
    check_reference_repeats,
    constants_of,
    small_case,
    valued_case,
)
from .input_values import KINDS

EXTRA = 3  # additional entries of the longer array; not a multiple of a vector's width
SHORT = 4  # the largest of the fixed sizes has so many times the bytes of a short one
AROUND = 0xA5  # byte that fills the rest of the longer array


@dataclass(frozen=True)
class Verdict:
    """The result for a binary that passed: the checked problems, and the largest errors relative to rms(reference).

    ``checks``: those that were made, by their names in records. ``rule``, ``seed``: the edge sizes follow from them.
    """

    verified_on: tuple[str, ...]
    max_error: float
    rms_error: float
    checks: tuple[str, ...] = ()
    rule: int = RULE
    seed: int = 0


def verify(
    session: Session,
    kernel: Kernel[P],
    problem: P,
    config: Config,
    binary: Binary,
    builds: Sequence[str] | None = None,
    full: bool = False,
    seed: int = 0,
) -> Verdict:
    """Checks every build of ``binary`` at the edge sizes of ``problem``; ``full``: also at its own size.

    ``seed``: draws remainders of sizes, and kinds of values.

    Raises:
        TrialFailure: wrong, with the first element that differs; launch_failed or resources from the device.
    """
    names: list[str] = []
    errors = [(0.0, 0.0)]
    edges = RULES[RULE](kernel, problem, config, seed)
    if not edges:
        raise fault(
            kernel, "edge_problems", f"returns nothing at {problem_name(problem)}; it must return one problem at least"
        )
    fixed = tuple(kernel.edge_problems(problem, config))
    drawn = [edge for edge in edges if edge not in fixed]
    cases = [(edge, False) for edge in edges]
    if edges[-1] != problem:  # one size has values of another kind: a drawn one, or the last one once more
        cases = [*(cases[:-1] if edges[-1] in drawn else cases), (edges[-1], True)]
    cases += [(problem, False)] if full else []
    largest = max(fixed, key=lambda at: bytes_of(kernel.arrays(at)))
    check_reference_repeats(kernel, problem, min(fixed, key=lambda at: bytes_of(kernel.arrays(at))))
    checked = tuple(builds or session.check_builds)
    made = dict.fromkeys((POISON, GUARDS, WORKSPACES))
    if any(edge != problem for edge in edges):
        made |= dict.fromkeys((EDGE_SIZES, VALUES) if {*KINDS} - {*kernel.meaningless(problem)} else (EDGE_SIZES,))
    for build in checked:
        function = session.load(binary, build)
        for number, (edge, is_valued) in enumerate(cases):
            case = valued_case(kernel, edge, seed) if is_valued else small_case(kernel, edge)
            is_added = is_valued or edge in drawn
            where = f"at {problem_name(edge)}" + (f", with {case.values}" if case.values else "")
            where += f", {build} build" if len(session.check_builds) > 1 else ""
            with explained(where=where):
                if is_added and build != checked[0 if _is_short(kernel, config, edge, largest) else -1]:
                    continue  # one build is enough: that with the most checks may take 30 times as long
                with CaseInMemory(session, kernel, edge, case.inputs, align=None) as placed:
                    placed.poison(POISONS[number % len(POISONS)])
                    placed.launch(function, kernel.launch(edge, config), seed=number)
                    errors.append(placed.check(case))
                    if edge == largest and build == session.timed_build and not is_added:
                        placed.check_overwrites(function, kernel.launch(edge, config), case, number)
                        other = small_case(kernel, edge, 1)
                        placed.check_other_inputs(function, kernel.launch(edge, config), other, number)
                        made[OLD_OUTPUTS] = None
                        made |= dict.fromkeys((FRESH_INPUTS,) if not _are_same(case.inputs, other.inputs) else ())
                    if edge == largest and build == checked[-1] and not is_added:
                        errors.append(_check_parts(session, kernel, edge, case, function, kernel.launch(edge, config)))
                        made[LONGER_ARRAYS] = None
            if problem_name(edge) not in names:
                names.append(problem_name(edge))
    counted = tuple(check for check in made if check not in kernel.unchecked)
    return Verdict(tuple(names), max(e[0] for e in errors), max(e[1] for e in errors), counted, seed=seed)


def _is_short(kernel: Kernel[P], config: Config, edge: P, largest: P) -> bool:
    """Returns whether a launch at ``edge`` has a small part of the bytes at ``largest``, and no more blocks."""
    bytes_here, bytes_there = (bytes_of(kernel.arrays(at)) for at in (edge, largest))
    blocks_here, blocks_there = (prod(kernel.launch(at, config).grid) for at in (edge, largest))
    return SHORT * bytes_here <= bytes_there and blocks_here <= blocks_there


def _are_same(inputs: Inputs, others: Inputs) -> bool:
    """Returns whether inputs of two numbers are the same, so that a definition has no others."""
    return all(np.array_equal(inputs[name], others[name]) for name in inputs)


def _check_parts(
    session: Session, kernel: Kernel[P], problem: P, case: Case, function: Function, geometry: Launch
) -> tuple[float, float]:
    """Returns the (largest, rms) error with arrays as parts of longer ones; (0, 0) if no array may be a part.

    Raises:
        TrialFailure: wrong, also if the rest of a longer array was written.
    """
    binding = Binding.of(kernel, problem)
    specs = binding.specs
    if not any(spec.longer for spec in specs.values()) or geometry.is_empty:
        return 0.0, 0.0
    of_buffers = {name: spec for name, spec in {**specs, **geometry.workspace}.items() if not spec.constant}
    lengths: dict[str, int] = {}
    buffers: dict[str, Buffer] = {}
    before: dict[str, np.ndarray] = {}
    try:
        for name, spec in of_buffers.items():
            whole = list(spec.shape)
            if spec.longer:
                axis, length = spec.longer
                whole[axis] += EXTRA
                lengths[length] = whole[axis]
            n_bytes = int(np.prod(whole, dtype=np.int64)) * spec.dtype.itemsize
            content = np.full(n_bytes, AROUND, np.uint8).view(spec.dtype).reshape(whole)
            if spec.read:
                content[tuple(map(slice, spec.shape))] = as_given(kernel, name, spec, case.inputs)
            before[name] = content
            buffers[name] = session.buffer(name, tuple(whole), spec.dtype, written=spec.written, align=spec.align)
            buffers[name].write(content)
        arguments = binding.ordered(buffers, binding.scalars(case.inputs, lengths))
        workspace = [buffers[name] for name in geometry.workspace]
        function.launch(geometry, [*arguments, *workspace, *constants_of(binding, case.inputs)])
        worst = (0.0, 0.0)
        for name, spec in of_buffers.items():
            found, some = buffers[name].read(), tuple(map(slice, spec.shape))
            if spec.is_compared:
                tolerance, part = case.tolerances[name].times(case.slack), np.ascontiguousarray(found[some])
                errors = _compare(session, name, part, case.reference[name], tolerance, f"{case.key} {name}")
                if errors.n_bad:
                    raise TrialFailure(Status.WRONG, f"in part of a longer array: {differs(name, errors, tolerance)}")
                worst = max(worst[0], errors.max_error), max(worst[1], errors.rms_error)
                found[some] = before[name][some]
            if spec.compared and not np.array_equal(_bytes(found), _bytes(before[name])):
                what = "the rest of the longer array was" if spec.written else "the input was"
                raise TrialFailure(Status.WRONG, f"{name}: {what} written")
        return worst
    finally:
        for buffer in buffers.values():
            buffer.free()


def _compare(
    session: Session, name: str, values: np.ndarray, reference: np.ndarray, tolerance: Tolerance, key: str
) -> OutputComparison:
    """Compares a part of an output with its reference, on the device, where millions take milliseconds."""
    buffer = session.buffer(name, values.shape, values.dtype, written=True)
    try:
        buffer.write(values)
        return buffer.compare(reference, tolerance, key)
    finally:
        buffer.free()


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


_of_oracles: dict[str, Case | TrialFailure] = {}  # keys name a problem and a stand-in


def case_of_oracle(session: Session, kernel: AnyKernel, case: Case, config: Config, oracle: Binary) -> Case:
    """Returns ``case`` with the output of the verified ``oracle`` as its reference.

    Raises:
        TrialFailure: wrong, if the oracle itself is wrong in a part that NumPy computes.
    """
    key = f"{case.key} by {oracle.key}"
    if key not in _of_oracles:
        function = session.load(oracle, session.timed_build)
        with CaseInMemory(session, kernel, case.problem, case.inputs) as placed:
            placed.poison(POISONS[0])
            placed.launch(function, kernel.launch(case.problem, config))
            outputs = placed.outputs()
        while len(_of_oracles) >= N_LARGE:
            del _of_oracles[next(iter(_of_oracles))]
        try:
            _check_against_numpy(session, kernel, case, outputs)
            _of_oracles[key] = replace(case, key=key, reference=outputs, slack=2.0)
        except TrialFailure as failure:
            _of_oracles[key] = failure
    found = _of_oracles[key]
    if isinstance(found, TrialFailure):
        raise TrialFailure(found.status, found.message)
    return found


def _check_against_numpy(session: Session, kernel: AnyKernel, case: Case, outputs: Mapping[str, np.ndarray]) -> None:
    """Raises TrialFailure, wrong, if the outputs differ from NumPy's in a part that NumPy computes."""
    for part in case.parts:
        for name, reference in part.reference.items():
            found, tolerance = part.of(name, outputs[name]), case.tolerances[name]
            compared = _compare(session, name, found, reference, tolerance, f"{case.key} {name} {part}")
            if compared.n_bad:
                raise TrialFailure(Status.WRONG, f"at full size, {part}: {differs(name, compared, tolerance)}")
