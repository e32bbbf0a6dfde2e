"""Digests of machine code and conditions that `autotune digest` found, for trials whose own lines lack them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .trial import Trial


@dataclass(frozen=True)
class Digests:
    """Digests by trial number, for recorded trials whose own lines lack them."""

    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # compiler -> number of the trial -> digest
    conditions: Mapping[str, str] = field(default_factory=dict)

    def code(self, trial: Trial, compiler: str) -> str:
        """Returns the digest of the machine code that ``compiler`` made of a trial's source; "" if unknown."""
        if trial.code and trial.compiler == compiler:
            return trial.code
        return self.codes.get(compiler, {}).get(str(trial.number), "")

    def condition(self, trial: Trial) -> str:
        """Returns the digest of the trial's other conditions; "" if unknown."""
        return trial.conditions or self.conditions.get(str(trial.number), "")
