"""Verifies a binary against the reference at edge sizes, with poison, canaries and untouched inputs.

Runs in the device's worker process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..core.config import Config
from ..core.definition import Kernel, P, fault, problem_name
from ..core.errors import TrialFailure
from ..devices.base import Binary, Session
from .case import N_LARGE, POISONS, Case, Placed, bytes_of, check_reference_repeats, small_case


@dataclass(frozen=True)
class Verdict:
    """A binary that passed: what it was checked on, and the largest errors relative to rms(reference)."""

    verified_on: tuple[str, ...]
    max_error: float
    rms_error: float


def verify(
    session: Session,
    kernel: Kernel[P],
    problem: P,
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
