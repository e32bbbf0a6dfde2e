"""What a sweep tells while it runs. The stations call it; the command line shows it; a notebook may ignore it."""

from collections.abc import Mapping
from typing import Protocol

from ..trial.row import Trial


class Progress(Protocol):
    """All calls come from the sweep's own thread."""

    def note(self, text: str) -> None:
        """One line that a person should see."""

    def begin(self, title: str, n_total: int, n_done: int) -> None:
        """Trials are about to run; ``n_done`` of them were recorded before."""

    def trial(self, trial: Trial, n_done: int, best: Trial | None) -> None:
        """A trial is on disk."""

    def finalists(self, n: int) -> None:
        """The best ``n`` are being measured again."""

    def end(self, counts: Mapping[str, int]) -> None:
        """No trial follows; how many ended in each status."""


class Quiet:
    """Says nothing."""

    def note(self, text: str) -> None:
        pass

    def begin(self, title: str, n_total: int, n_done: int) -> None:
        pass

    def trial(self, trial: Trial, n_done: int, best: Trial | None) -> None:
        pass

    def finalists(self, n: int) -> None:
        pass

    def end(self, counts: Mapping[str, int]) -> None:
        pass
