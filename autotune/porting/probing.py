"""Finds out what a kernel writes, by one launch of its first config on the caller's arrays."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ..core.definition import Tolerance
from ..core.errors import TrialFailure
from ..devices.comparison import compare_arrays
from ..source.registry import load_kernel, reference_of
from ..trial.bench import Bench
from ..trial.case import write_case
from ..trial.compile import Subject
from ..trial.worker import Job
from .call import Call
from .definition import Outputs, write_definition

RTOL = 1e-5  # that of numpy.allclose
LOOSE = Tolerance(rtol=1e-3, of_rms=1e-4)  # of configs among each other, whose sums may have another order
EXACT = Tolerance()
N_TRIED = 8  # configs, until one runs


@dataclass(frozen=True)
class Probed:
    """What the first config that runs wrote: the arrays that changed, and which of them it overwrites.

    ``failure``: why none ran.
    """

    written: dict[str, np.ndarray]
    overwritten: frozenset[str] = frozenset()
    failure: TrialFailure | None = None


def probe(call: Call, results: Path, bench: Bench, deadline_s: float) -> Probed:
    """Launches the first config that compiles and runs on the caller's arrays, and once more on changed outputs."""
    kernel = load_kernel(str(write_definition(call, unchecked(call), results)))
    problem, folder = kernel.tuned[0], bench.folder(bench.join())
    write_case(kernel, problem, folder)
    given = {each.name: each.value for each in call.arguments if each.is_array}
    failure: TrialFailure | None = None
    for config in kernel.space.enumerate(problem, bench.target.device).configs[:N_TRIED]:
        try:
            binary = bench.pool.start(Subject(kernel, problem, 0), config).binary()
            job = Job(reference_of(kernel), asdict(problem), config, binary, case=folder)
            with bench.turn:
                found = bench.worker.outputs(job, deadline_s)
                written = {name: array for name, array in found.items() if _is_output(given[name], array)}
                others = {name: _other(given[name]) for name in written}
                again = bench.worker.outputs(replace(job, case=_with(folder, others)), deadline_s)
        except TrialFailure as its_own:
            failure = failure or its_own
            continue
        same = (name for name, array in written.items() if not compare_arrays(again[name], array, LOOSE).n_bad)
        return Probed(written, frozenset(same))
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


def _is_output(before: np.ndarray, after: np.ndarray) -> bool:
    """Returns whether a launch wrote an array, or may have: one of a single value is more likely an output."""
    return before.tobytes() != after.tobytes() or (before.size > 1 and not (before != before.flat[0]).any())


def _other(array: np.ndarray) -> np.ndarray:
    """Returns an array of other bytes, none of which make a NaN."""
    return (np.ascontiguousarray(array).view(np.uint8) ^ np.uint8(1)).view(array.dtype).reshape(array.shape)


def _with(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    """Returns a folder like this one with other arrays for inputs."""
    other = folder.with_name(f"{folder.name}-changed")
    other.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name.removeprefix("input.").removesuffix(".npy") not in arrays:
            (other / path.name).unlink(missing_ok=True)
            (other / path.name).symlink_to(path)
    for name, array in arrays.items():
        np.save(other / f"input.{name}.npy", array)
    return other


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
