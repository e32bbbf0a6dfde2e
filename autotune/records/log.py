"""The trials of a sweep under way that stand: each is on disk before the next begins."""

from collections import Counter
from dataclasses import dataclass

from ..core.errors import TrialFailure
from ..trial.row import Trial
from .folder import SweepFolder


@dataclass
class TrialLog:
    """``trials`` are those that hold of the record in ``folder``, and what this sweep adds; its thread alone writes."""

    folder: SweepFolder
    trials: list[Trial]
    next_number: int

    def add(self, trial: Trial) -> None:
        """Records one more trial.

        Raises:
            UsageError: when it cannot be written.
        """
        self.folder.append(trial)
        self.trials.append(trial)
        self.next_number = trial.number + 1

    def refute(self, trial: Trial, failure: TrialFailure) -> None:
        """Records that ``trial``, which is one of them, failed after all."""
        refuted = trial.refuted(failure)
        self.folder.append(refuted)
        self.trials[self.trials.index(trial)] = refuted

    @property
    def fastest(self) -> Trial | None:
        measured = [t for t in self.trials if t.median_s]
        return min(measured, key=lambda t: t.median_s or 0.0) if measured else None

    def counts(self) -> dict[str, int]:
        """Returns the number of trials by status."""
        return dict(Counter(t.status for t in self.trials))
