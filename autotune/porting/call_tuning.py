"""Tunes a kernel in a plain .cu file: finds the arrays that it writes, writes its definition, and sweeps it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from threading import Thread
from typing import Any

from ..core.definition import AnyKernel
from ..core.errors import Status, TrialFailure, UsageError
from ..devices import find_device
from ..source.registry import load_kernel
from ..sweep.progress import Progress
from ..sweep.run import Sweep, run_sweep
from ..sweep.settings import Settings
from ..trial.bench import COMPILE_PROCESSES, Bench
from ..trial.context import Judge
from .answers import Answer, Outputs, answers_of
from .array_memory import Memory
from .call import Call
from .definition_writer import write_definition
from .formulas import Formulas
from .judges import ByVerify, WithAnswers, WithFirstConfig
from .launching import ConfigLauncher
from .probing import ProbeResult, outputs_of, probe, unchecked
from .sizes import sizes_of_call

Verify = Callable[..., Any]


@dataclass(frozen=True)
class PortedSweep:
    """A tuned kernel: its definition, its sweep, and a note on checks that were not possible."""

    kernel: AnyKernel
    sweep: Sweep
    note: str


def tune_call(
    call: Call,
    answer: Sequence[object] | None,
    atol: float,
    verify: Verify | None,
    device: str,
    settings: Settings,
    progress: Progress,
    compile_processes: int = COMPILE_PROCESSES,
) -> PortedSweep:
    """Tunes the kernel of ``call``.

    Args:
        answer: expected content of each argument after a launch; None for an input. answer=None: no expected output
            is known.
        verify: a function of (answer, outputs, atol) that returns whether outputs are right, in place of the
            comparison of each element.

    Raises:
        UsageError: for answers that do not fit the arguments, and where ``run_sweep`` raises it.
    """
    target = find_device(device)
    answers = answers_of(call, answer, atol) if verify is None else {}
    formulas = Formulas.of(call, sizes_of_call(call))
    progress.note(f"{call.name}: {formulas.told_launch(call.default)}")
    n_processes = min(compile_processes, len(call.enumeration.configs) + 1)  # one process makes the reference
    with Bench(target, n_processes, note=progress.note, stays=True) as bench:
        # A sweep needs this module: import it now, while the device's process starts.
        Thread(target=import_module, args=("autotune.search.search",), name="autotune-imports", daemon=True).start()
        probed = probe(call, answers, ConfigLauncher(call, formulas, bench, settings.deadline), progress.note)
        if probed.failure is not None:
            lacking = ", ".join(call.source.lacking)
            is_of_it = lacking and probed.failure.status == Status.COMPILE_FAILED
            without = f", without {lacking}, which is not here" if is_of_it else ""
            progress.note(f"none of the configs ran{without}: {probed.failure}")
        for name, why in probed.doubt.items():
            progress.note(f"it is unknown whether {call.name} reads {name}, so it starts with the given values: {why}")
        outputs, judge = _judging(call, probed, answers, list(answer or ()), atol, verify, bench)
        for line in call.source.told:
            progress.note(line)
        progress.note(f"{call.name}: {outputs.note}")
        if call.enumeration.refused:
            progress.note(f"{call.name}: combinations left out: {call.enumeration.reasons}")
        kernel: AnyKernel = load_kernel(str(write_definition(formulas, outputs, settings.results)))
        progress.note(f"{type(kernel).__doc__}")
        own = {name: (kernel.default[name],) for name in kernel.space.parameters if name not in call.space}
        own |= {name: v for name, v in call.space.items() if len(v) < len(kernel.space.parameters[name].values)}
        sweep = run_sweep(kernel, kernel.tuned[-1], bench, replace(settings, only=own), progress, judge)
    return PortedSweep(kernel, sweep, outputs.note)


def _judging(
    call: Call,
    probed: ProbeResult,
    answers: Mapping[str, Answer],
    answer: list[Any],
    atol: float,
    verify: Verify | None,
    bench: Bench,
) -> tuple[Outputs, Judge | None]:
    """Returns the roles of the arrays, and the judge of outputs that the definition's reference cannot check."""
    if verify is not None:
        unjudged = unchecked(call, probed, "outputs are checked by verify only")
        written = frozenset(name for name, kind in unjudged.kinds.items() if kind == "scratch")
        by_verify = ByVerify(call, bench, verify, answer, atol, written)
        return replace(unjudged, judged=by_verify.digest), by_verify
    if not answers:
        unjudged = unchecked(
            call, probed, "no answer was given: results were only compared with those of the first config"
        )
        return unjudged, WithFirstConfig.of(bench, call, probed.written)
    outputs, judged = outputs_of(call, probed, answers), WithAnswers.of(answers, probed, bench)
    return (outputs, None) if judged is None else (replace(outputs, judged=judged.digest), judged)


def run_once(call: Call, config: Mapping[str, object], device: str, deadline_s: float) -> list[object]:
    """Launches one config on the caller's arrays; returns all arguments as they are after the launch.

    Raises:
        UsageError: if the config does not compile or run; the message says why.
    """
    formulas = Formulas.of(call, sizes_of_call(call))
    names = [each.name for each in call.arguments if each.may_be_written]
    with Bench(find_device(device), 1, stays=True) as bench:
        try:
            launcher = ConfigLauncher(call, formulas, bench, deadline_s)
            ready = next(launcher.ready([config]))
            if isinstance(ready, TrialFailure):
                raise ready
            results = launcher.launched(ready, names, is_checked=False)
        except TrialFailure as failure:
            raise UsageError(f"{call.name}: {failure}") from failure
    after = {
        e.name: e.memory.restored(results[e.name]).copy() if e.name in results else e.value for e in call.arguments
    }
    return [value.given.copy(order="K") if isinstance(value, Memory) else value for value in after.values()]
