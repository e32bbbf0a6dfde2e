"""Turns records of older versions over to today's form, in place: what follows from other facts is no longer written.

SweepFolder.write_packed writes the files of a sweep. This module brings the trials, the outcome and the description of
an older one to what a new one says, so that the same code writes both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..core.definition import AnyKernel
from ..core.errors import TrialFailure, UsageError
from .about import About
from .as_recorded import of_definition, problem_of
from .edge_sizes import size_names
from .folder import SweepFolder
from .outcome import Finalist, Outcome
from .trial import Trial, as_recorded_trial

OLD_RULE = 0  # the rule of all sizes that were recorded by name
OF_SIZES = ("rule", "seed", "stand_in", "numpy_parts", "verified_on", "stamp")
AGAINST, NUMPY = " (against ", "; NumPy answers "


def pack(folder: SweepFolder, kernel: AnyKernel | None = None, constraints: Sequence[str] = ()) -> None:
    """Packs the record in ``folder``, of any version. The caller holds its lock.

    ``kernel``: the definition, by which sizes that were recorded by name follow from a rule; None if it is not here.
    ``constraints``: reasons of the constraints, which the sweeps of a kernel share.

    Raises:
        UsageError: when the record is damaged or cannot be written; it stays as it is.
    """
    about, recorded, outcome = folder.whole()
    digests = folder.digests()
    turning = _Turning(kernel, about, constraints, folder.is_old())
    trials = turning.new_trials([digests.of_own_compiler(trial, about.compiler) for trial in recorded])
    if outcome is not None:
        outcome = turning.new_outcome(outcome, recorded, trials)
    folder.write_packed(turning.new_about(trials, outcome), trials, outcome)


@dataclass(frozen=True)
class _Turning:
    """Makes today's record of an older one.

    ``constraints``: reasons that the sweeps of a kernel share. ``is_old``: its stamps are of an older version.
    """

    kernel: AnyKernel | None  # None: its definition is not here, so names of sizes stay as they are
    about: About
    constraints: Sequence[str] = ()
    is_old: bool = False

    def new_about(self, trials: Sequence[Trial], outcome: Outcome | None) -> About:
        """Returns the description with the work, and the reasons of the constraints apart from their numbers."""
        about = replace(self.about, constraints=tuple(dict.fromkeys((*self.about.constraints, *self.constraints))))
        if outcome is not None and not about.preference_among_ties:
            about = replace(about, preference_among_ties=outcome.preference_among_ties)
        return about if about.work else replace(about, work=self._work(trials))

    def _work(self, trials: Sequence[Trial]) -> dict[str, object]:
        """Returns the work by the trials' rates; the unit is the definition's."""
        unit = "float32"
        if self.kernel is not None:
            try:
                problem = of_definition(self.kernel, problem_of, self.kernel, self.about)
                unit = of_definition(self.kernel, self.kernel.work, problem).unit
            except (UsageError, TrialFailure):
                pass
        rated = [t for t in trials if t.median_s and t.gb_per_s is not None and t.tflop_per_s is not None]
        if not rated:
            return {}
        median_s = rated[0].median_s or 0.0
        n_bytes, flops = 1e9 * (rated[0].gb_per_s or 0.0) * median_s, 1e12 * (rated[0].tflop_per_s or 0.0) * median_s
        return {"bytes": float(round(n_bytes)), "flops": float(round(flops)), "unit": unit}

    def new_trials(self, trials: Sequence[Trial]) -> list[Trial]:
        """Returns trials with the rule of their sizes instead of their names, and without samples and old stamps."""
        numbers = {f"{AGAINST}{trial.config}": trial.number for trial in reversed(trials)}
        return [self._new_trial(trial, trials, numbers) for trial in trials]

    def _new_trial(self, trial: Trial, trials: Sequence[Trial], numbers: dict[str, int]) -> Trial:
        stamp = "" if self.is_old else trial.stamp
        trial = as_recorded_trial(replace(trial, samples_s=(), stamp=stamp))
        if not trial.verified_on or self.kernel is None:
            return trial
        _, _, against = trial.verified_on[-1].partition(AGAINST)
        stand_in, _, parts = against.removesuffix(")").partition(NUMPY)
        number = numbers.get(AGAINST + stand_in) if against else None
        new = replace(trial, rule=OLD_RULE, seed=0, stand_in=number, numpy_parts=parts, verified_on=())
        try:
            names = of_definition(self.kernel, size_names, self.kernel, self.about, new, trials)
        except (UsageError, TrialFailure):
            return trial
        return new if names == trial.verified_on else trial

    def new_outcome(self, outcome: Outcome, old: Sequence[Trial], new: Sequence[Trial]) -> Outcome:
        """Returns the outcome with the sizes of its trials as those state them now."""
        before, after = ({trial.number: trial for trial in each} for each in (old, new))

        def turned(finalist: Finalist) -> Finalist:
            then, now = before.get(finalist.number), after.get(finalist.number)
            if then is None or now is None or finalist.verified_on != then.verified_on:
                return finalist
            own = {name: getattr(now, name) for name in OF_SIZES}
            return replace(finalist, **own)

        default = turned(outcome.default) if outcome.default else None
        finalists = tuple(map(turned, outcome.finalists))
        return replace(outcome, winner=turned(outcome.winner), default=default, finalists=finalists)
