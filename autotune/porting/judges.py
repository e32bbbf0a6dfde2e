"""Judges of outputs that no reference is compared with: a function of the caller's, or the first config's results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from ..core.errors import Status, TrialFailure
from ..trial.bench import Bench
from ..trial.case import save_arrays
from ..trial.worker import Job
from .call import Call, digest_of
from .probing import LOOSE


@dataclass(frozen=True)
class Asked:
    """Asks the caller's function about the outputs of each config."""

    call: Call
    bench: Bench
    verify: Callable[..., Any]
    answer: list[Any]
    atol: float
    written: frozenset[str]  # arrays that a launch may change

    def __call__(self, job: Job, deadline_s: float) -> str:
        """Returns nothing to remark.

        Raises:
            TrialFailure: wrong, unless the function takes the outputs for right.
        """
        pairs = list(zip(self.call.arguments, self.answer, strict=True))
        names = [each.name for each, known in pairs if known is not None and each.name in self.written]
        with self.bench.turn:
            found = self.bench.worker.written(job, names, deadline_s)
        outputs = [None if known is None else found.get(each.name, each.value) for each, known in pairs]
        try:
            is_right = self._asked(outputs)
        except Exception as error:  # a function of the caller's may raise anything
            raise TrialFailure(Status.WRONG, f"verify raised {type(error).__name__}: {error}") from error
        if not is_right:
            raise TrialFailure(Status.WRONG, "verify does not take the outputs for right")
        return ""

    @property
    def digest(self) -> str:
        """Returns a digest of the function's code and the answer, by which a changed judge is told from this one."""
        code = getattr(self.verify, "__code__", None)
        text = repr(self.verify) if code is None else f"{code.co_code!r} {code.co_names} {_plain(code.co_consts)}"
        answers = [None if known is None else digest_of(np.asarray(known)) for known in self.answer]
        return sha256(f"{text} {answers} {self.atol}".encode()).hexdigest()[:12]

    def _asked(self, outputs: list[Any]) -> bool:
        try:
            return bool(np.all(self.verify(self.answer, outputs, atol=self.atol)))
        except TypeError as error:
            if "atol" not in str(error):
                raise
            return bool(np.all(self.verify(self.answer, outputs)))


def _plain(constants: tuple[Any, ...]) -> list[str]:
    """Returns constants of a function's code as text without addresses: of nested code its instructions."""
    return [repr(each.co_code) if isinstance(each, CodeType) else repr(each) for each in constants]


@dataclass(frozen=True)
class Compared:
    """Compares the outputs of each config with those of the first one, of which nobody knows whether they are right."""

    bench: Bench
    first: Path  # folder of what the first config wrote

    @staticmethod
    def with_first(bench: Bench, written: Mapping[str, np.ndarray]) -> "Compared":
        """Returns a judge that compares with ``written``, which it keeps in files of the bench."""
        folder = bench.folder(bench.join())
        save_arrays(folder, "output", written)
        return Compared(bench, folder)

    def __call__(self, job: Job, deadline_s: float) -> str:
        """Returns that nothing is verified, and where results differ."""
        with self.bench.turn:
            compared = self.bench.worker.unlike(job, self.first, LOOSE, deadline_s)
        for name, found in compared.items():
            if found.n_bad:
                return f"unverified: {name} differs from the first config's in {found.n_bad} of {found.n_total}"
        return "unverified"
