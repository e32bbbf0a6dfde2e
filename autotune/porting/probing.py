"""Finds out what a kernel writes, by one launch of its first config on the caller's arrays."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..core.definition import Tolerance
from ..core.errors import TrialFailure
from ..source.registry import load_kernel, reference_of
from ..trial.bench import Bench
from ..trial.case import write_case
from ..trial.compile import Subject
from ..trial.worker import Job
from .call import Call
from .definition import write_definition
from .outputs import Outputs

RTOL = 1e-5  # that of numpy.allclose
LOOSE = Tolerance(rtol=1e-3, of_rms=1e-4)  # of configs among each other, whose sums may have another order
EXACT = Tolerance()
N_TRIED = 8  # configs, until one runs


@dataclass(frozen=True)
class Probed:
    """What the first config that runs wrote: the arrays that changed, and which of them it overwrites.

    ``failure``: why none ran.
    """

    written: Mapping[str, np.ndarray]
    overwritten: frozenset[str] = frozenset()
    failure: TrialFailure | None = None


def probe(call: Call, results: Path, bench: Bench, deadline_s: float) -> Probed:
    """Launches the first config that compiles and runs on the caller's arrays, and once more on changed outputs."""
    kernel = load_kernel(str(write_definition(call, unchecked(call), results)))
    problem, folder = kernel.tuned[0], bench.folder(bench.join())
    write_case(kernel, problem, folder)
    blank = frozenset(each.name for each in call.arguments if each.is_array and _is_blank(each.value))
    failure: TrialFailure | None = None
    for config in kernel.space.enumerate(problem, bench.target.device).configs[:N_TRIED]:
        try:
            binary = bench.pool.start(Subject(kernel, problem, 0), config).binary()
            job = Job(reference_of(kernel), asdict(problem), config, binary, case=folder)
            with bench.turn:
                found = bench.worker.effects(job, blank, LOOSE, deadline_s)
        except TrialFailure as its_own:
            failure = failure or its_own
            continue
        return Probed(found.written, found.overwritten)
    return Probed({}, failure=failure)


def outputs_of(call: Call, probed: Probed, answers: dict[str, np.ndarray], atol: float) -> Outputs:
    """Returns what becomes of each array.

    An output that the kernel overwrites is poisoned before each launch; one that it adds to, or writes in part, starts
    as the caller's array. What is written and has no answer is not compared.
    """
    kinds = dict(unchecked(call, probed).kinds) | {
        name: "out" if name in probed.overwritten or probed.failure is not None else "inout" for name in answers
    }
    is_exact = atol < 1 and all(answer.dtype.kind in "biu" for answer in answers.values())
    tolerance = EXACT if is_exact else Tolerance(rtol=RTOL, atol=atol)
    return Outputs(kinds, answers, tolerance, "the answer is of one size: other sizes cannot be checked")


def _is_blank(array: np.ndarray) -> bool:
    """Returns whether all elements are the same: such an array is more likely an output, also where none changes."""
    return array.size > 1 and not (array != array.flat[0]).any()


def unchecked(call: Call, probed: Probed | None = None, note: str = "") -> Outputs:
    """Returns outputs of which nothing is known: those that were written, or that the kernel may write."""
    if probed is None or probed.failure is not None:
        return Outputs(_kinds(call, "scratch"), {}, EXACT, note)
    return Outputs(_kinds(call, "in") | dict.fromkeys(probed.written, "scratch"), {}, EXACT, note)


def _kinds(call: Call, kind: str) -> dict[str, str]:
    """Returns ``kind`` for arrays that the kernel may write, and in for the others."""
    return {
        each.name: "in" if each.parameter is None or each.parameter.is_const else kind
        for each in call.arguments
        if each.is_array
    }
