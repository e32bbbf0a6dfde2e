"""Judges of outputs that no reference is compared with: a function of the caller's, or the first config's results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import Status, TrialFailure
from ..devices.comparison import compare_arrays
from ..trial.bench import Bench
from ..trial.worker import Job
from .call import Call
from .probing import LOOSE


@dataclass(frozen=True)
class Asked:
    """Asks the caller's function about the outputs of each config."""

    call: Call
    bench: Bench
    verify: Callable[..., Any]
    answer: list[Any]
    atol: float

    def __call__(self, job: Job, deadline_s: float) -> str:
        """Returns nothing to remark.

        Raises:
            TrialFailure: wrong, unless the function takes the outputs for right.
        """
        with self.bench.turn:
            found = self.bench.worker.outputs(job, deadline_s)
        pairs = zip(self.call.arguments, self.answer, strict=True)
        outputs = [None if known is None else found.get(each.name, each.value) for each, known in pairs]
        try:
            is_right = self._asked(outputs)
        except Exception as error:  # a function of the caller's may raise anything
            raise TrialFailure(Status.WRONG, f"verify raised {type(error).__name__}: {error}") from error
        if not is_right:
            raise TrialFailure(Status.WRONG, "verify does not take the outputs for right")
        return ""

    def _asked(self, outputs: list[Any]) -> bool:
        try:
            return bool(np.all(self.verify(self.answer, outputs, atol=self.atol)))
        except TypeError as error:
            if "atol" not in str(error):
                raise
            return bool(np.all(self.verify(self.answer, outputs)))


@dataclass(frozen=True)
class Compared:
    """Compares the outputs of each config with those of the first one, of which nobody knows whether they are right."""

    bench: Bench
    first: Mapping[str, np.ndarray]

    def __call__(self, job: Job, deadline_s: float) -> str:
        """Returns that nothing is verified, and where results differ."""
        with self.bench.turn:
            found = self.bench.worker.outputs(job, deadline_s)
        for name, array in self.first.items():
            differs = compare_arrays(found[name], array, LOOSE)
            if differs.n_bad:
                return f"unverified: {name} differs from the first config's in {differs.n_bad} of {differs.n_total}"
        return "unverified"
