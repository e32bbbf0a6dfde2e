"""The interface of a sweep's progress. The sweep calls it, the command line shows it, a notebook may ignore it."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from ..records.trial import Trial


@runtime_checkable
class Progress(Protocol):
    """Receives a sweep's progress; all calls come from the sweep's own thread."""

    def note(self, text: str) -> None:
        """Show one line to the user."""

    def begin(self, title: str, n_total: int, n_done: int) -> None:
        """Trials are about to run; ``n_done`` of them were recorded before."""

    def trial(self, trial: Trial, n_done: int, best: Trial | None) -> None:
        """A trial is on disk."""

    def finalists(self, n: int) -> None:
        """The best ``n`` are being measured again."""

    def end(self, counts: Mapping[str, int]) -> None:
        """No trial follows; ``counts`` has the number of trials by status."""


class Quiet:
    """Ignores all progress."""

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
