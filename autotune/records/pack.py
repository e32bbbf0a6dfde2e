"""Packs records of any version: a table of the trials, and each fact once."""

from collections.abc import Sequence
from dataclasses import replace

from ..core.definition import AnyKernel
from ..core.errors import TrialFailure, UsageError
from .about import About
from .as_recorded import of_definition, problem_of
from .folder import SweepFolder
from .trial import Trial, as_recorded_trial


def pack(folder: SweepFolder, kernel: AnyKernel | None = None, constraints: Sequence[str] = ()) -> None:
    """Packs the record in ``folder``. The caller holds its lock.

    ``kernel``: the definition, which knows the unit of its work; None if it is not here. ``constraints``: reasons of
    the constraints, which the sweeps of a kernel share.

    Raises:
        UsageError: when the record is damaged or cannot be written; it stays as it is.
    """
    about, recorded, outcome = folder.whole()
    digests = folder.digests()
    own = (digests.of_own_compiler(trial, about.compiler) for trial in recorded)
    trials = [as_recorded_trial(replace(trial, samples_s=())) for trial in own]
    about = replace(about, constraints=tuple(dict.fromkeys((*about.constraints, *constraints))))
    if outcome is not None and not about.preference_among_ties:
        about = replace(about, preference_among_ties=outcome.preference_among_ties)
    folder.write_packed(about if about.work else replace(about, work=_work(about, trials, kernel)), trials, outcome)


def _work(about: About, trials: Sequence[Trial], kernel: AnyKernel | None) -> dict[str, object]:
    """Returns the work of an older record by its trials' rates; the unit is the definition's."""
    unit = "float32"
    if kernel is not None:
        try:
            problem = of_definition(kernel, problem_of, kernel, about)
            unit = of_definition(kernel, kernel.work, problem).unit
        except (UsageError, TrialFailure):
            pass
    rated = [t for t in trials if t.median_s and t.gb_per_s is not None and t.tflop_per_s is not None]
    if not rated:
        return {}
    median_s = rated[0].median_s or 0.0
    n_bytes, flops = 1e9 * (rated[0].gb_per_s or 0.0) * median_s, 1e12 * (rated[0].tflop_per_s or 0.0) * median_s
    return {"bytes": float(round(n_bytes)), "flops": float(round(flops)), "unit": unit}
