"""Checks of a winner alone: all remainders of sizes, all kinds of values, and faults that come after many launches."""

import time
from dataclasses import dataclass, field
from itertools import cycle, islice

from ..core.config import Config
from ..core.definition import AnyKernel, Kernel, P, problem_name
from ..core.errors import explained
from ..devices.base import Binary, Function, Session
from ..records.checks_made import COUNTED, REMAINDERS
from .case import POISONS, Case, CaseInMemory, bytes_of, small_case, valued_case
from .input_values import KINDS, valued

N_SEEDS = 16  # seeds in a row have all remainders
N_LAUNCHES = 1000  # launches of one size, each checked
LONGEST_S = 10.0  # a check that takes longer ends early, and counts as not made
N_JUDGED = 16  # launches, from which it is foreseen whether a check takes longer
LONGER = 1.2  # times LONGEST_S, as foreseen


@dataclass(frozen=True)
class _Examination:
    session: Session
    kernel: AnyKernel
    config: Config
    function: Function
    begin: float = field(default_factory=time.monotonic)

    def is_over(self, n_done: int, n: int) -> bool:
        """Returns whether the check of ``n`` launches has taken too long, or will."""
        passed = time.monotonic() - self.begin
        return passed > LONGEST_S or (n_done >= N_JUDGED and passed * n > LONGER * LONGEST_S * n_done)

    def launched(self, placed: CaseInMemory, case: Case, number: int, of: str) -> None:
        """Launches once, and compares the outputs with the case's."""
        placed.poison(POISONS[number % len(POISONS)])
        placed.launch(self.function, self.kernel.launch(case.problem, self.config), seed=number)
        where = f"{of}at {problem_name(case.problem)}" + (f", with {case.values}" if case.values else "")
        with explained(where=where):
            placed.check_outputs(case)


def examined(
    session: Session, kernel: Kernel[P], problem: P, config: Config, binary: Binary, seed: int
) -> tuple[str, ...]:
    """Launches the timed binary at drawn sizes, and often at the smallest one; returns the names of the checks made.

    Raises:
        TrialFailure: wrong, or a failure of the device.
    """
    edges = kernel.edge_problems(problem, config)
    if edges == (problem,):
        return REMAINDERS, COUNTED
    function, made = session.load(binary, session.timed_build), list[str]()
    examination = _Examination(session, kernel, config, function)
    sizes = [edge for at in range(seed, seed + N_SEEDS) for edge in kernel.drawn_problems(problem, config, at)]
    n_plain = len(sizes)
    n = n_plain + (len(KINDS) + 1) * len(valued(kernel, problem)) if sizes else 0
    for number, edge in enumerate(islice(cycle(sizes), n)):
        if examination.is_over(number, n):
            break
        case = small_case(kernel, edge) if number < n_plain else valued_case(kernel, edge, number)
        with CaseInMemory(session, kernel, edge, case.inputs, align=None) as placed:
            examination.launched(placed, case, number, "")
    else:
        made.append(REMAINDERS)
    smallest = min(edges, key=lambda edge: bytes_of(kernel.arrays(edge)))
    case, examination = small_case(kernel, smallest), _Examination(session, kernel, config, function)
    with CaseInMemory(session, kernel, smallest, case.inputs, align=None) as placed:
        for number in range(N_LAUNCHES):
            if examination.is_over(number, N_LAUNCHES):
                return tuple(made)
            examination.launched(placed, case, number, f"launch {number + 1} ")
    return (*made, COUNTED)
