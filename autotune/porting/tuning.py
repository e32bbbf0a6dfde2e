"""Tunes a kernel of a plain .cu file: probes what it writes, writes its definition, and sweeps it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.config import Config
from ..core.definition import Kernel
from ..core.errors import TrialFailure, UsageError
from ..devices import find_device
from ..source.registry import load_kernel, reference_of
from ..sweep.progress import Progress
from ..sweep.run import Sweep, run_sweep
from ..sweep.settings import Settings
from ..trial.bench import COMPILE_PROCESSES, Bench
from ..trial.case import write_case
from ..trial.compile import Subject
from ..trial.context import Judge
from ..trial.worker import Job
from .call import Call
from .definition import write_definition
from .judges import Asked, Compared
from .outputs import Outputs
from .probing import Probed, outputs_of, probe, unchecked

Verify = Callable[..., Any]


@dataclass(frozen=True)
class Ported:
    """A kernel that was tuned: its definition, its sweep, and what could not be checked."""

    kernel: Kernel[Any]
    sweep: Sweep
    note: str


def tune(
    call: Call,
    answer: Sequence[Any] | None,
    atol: float,
    verify: Verify | None,
    device: str,
    settings: Settings,
    progress: Progress,
    compile_processes: int = COMPILE_PROCESSES,
) -> Ported:
    """Tunes the kernel of ``call``.

    Args:
        answer: of each argument what it must hold after a launch, or None; None altogether: nothing is known.
        verify: a function of (answer, outputs, atol) that takes the place of comparing each element.

    Raises:
        UsageError: for answers that do not fit, and as ``run_sweep``.
    """
    target = find_device(device)
    answers = _answers(call, answer) if verify is None else None
    with Bench(target, compile_processes, note=progress.note) as bench:
        bench.open_early()
        probed = probe(call, settings.results, bench, settings.launch_deadline_s)
        if probed.failure is not None:
            progress.note(f"none of the first configs ran: {probed.failure}")
        outputs, judge = _judging(call, probed, answers, list(answer or ()), atol, verify, bench)
        progress.note(f"{call.name}: {outputs.note}")
        kernel: Kernel[Any] = load_kernel(str(write_definition(call, outputs, settings.results)))
        sweep = run_sweep(kernel, kernel.tuned[0], bench, settings, progress, judge)
    return Ported(kernel, sweep, outputs.note)


def _judging(
    call: Call,
    probed: Probed,
    answers: dict[str, np.ndarray] | None,
    answer: list[Any],
    atol: float,
    verify: Verify | None,
    bench: Bench,
) -> tuple[Outputs, Judge | None]:
    """Returns what becomes of the arrays, and who judges what the device's process does not compare."""
    if verify is not None:
        told = unchecked(call, probed, "outputs are judged by verify, and by nothing else")
        written = frozenset(name for name, kind in told.kinds.items() if kind == "scratch")
        asked = Asked(call, bench, verify, answer, atol, written)
        return replace(told, judged=asked.digest), asked
    if answers is None:
        told = unchecked(call, probed, "there is no answer: nothing is verified, and results that differ are told")
        return told, Compared.with_first(bench, probed.written)
    return outputs_of(call, probed, answers, atol), None


def run_once(call: Call, config: Mapping[str, Any], device: str, results: Path, deadline_s: float) -> list[Any]:
    """Launches one config on the caller's arrays; returns all arguments, as they are afterwards.

    Raises:
        UsageError: when the config does not compile or run; says why.
    """
    kernel = load_kernel(str(write_definition(call, unchecked(call), results)))
    problem = kernel.tuned[0]
    with Bench(find_device(device), 1) as bench:
        folder = bench.folder(bench.join())
        write_case(kernel, problem, folder)
        try:
            binary = bench.pool.start(Subject(kernel, problem, 0), Config(config)).binary()
            job = Job(reference_of(kernel), asdict(problem), Config(config), binary, case=folder)
            found = bench.worker.outputs(job, deadline_s)
        except TrialFailure as failure:
            raise UsageError(f"{call.name}: {failure}") from failure
    return [found.get(each.name, each.value) for each in call.arguments]


def _answers(call: Call, answer: Sequence[Any] | None) -> dict[str, np.ndarray] | None:
    """Returns the answers by name, checked."""
    if answer is None:
        return None
    if len(answer) != len(call.arguments):
        n = len(call.arguments)
        raise UsageError(f"answer has {len(answer)} entries, and {call.name} {n} arguments: give None for the others")
    found = {}
    for each, known in zip(call.arguments, answer, strict=True):
        if known is None:
            continue
        array = np.asarray(known)
        if not each.is_array or array.size != each.value.size:
            raise UsageError(
                f"the answer of {each.name} has the shape {list(array.shape)}, must be that of {each.name}"
            )
        found[each.name] = _as_wide(array.reshape(each.value.shape), each.value.dtype)
    if not found:
        raise UsageError("answer has None only: leave it out, or give what an output must hold")
    return found


def _as_wide(array: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Returns an answer in its own type, or in that of the output where it is narrower."""
    return array if np.can_cast(dtype, array.dtype, "safe") and array.dtype.kind == dtype.kind else array.astype(dtype)
