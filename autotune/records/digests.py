"""Digests that `autotune digest` found: of trials whose own lines lack them, and of texts as they are today."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .trial import Trial


@dataclass(frozen=True)
class Digests:
    """Digests of machine code and conditions by trial number, and of machine code by the text that makes it.

    ``codes``: compiler -> number of the trial -> digest. ``texts``: compiler -> key of a rendered source -> digest.
    Together they say without a compiler whether a text that was rewritten makes the machine code that was measured.
    """

    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def code(self, trial: Trial, compiler: str) -> str:
        """Returns the digest of the machine code that ``compiler`` made of a trial's source; "" if unknown."""
        if trial.code and trial.compiler == compiler:
            return trial.code
        return self.codes.get(compiler, {}).get(str(trial.number), "")

    def made_by(self, trial: Trial) -> dict[str, str]:
        """Returns the digests of the machine code of a trial's source, by compiler."""
        own = {trial.compiler: trial.code} if trial.code else {}
        return {c: code for c, by in self.codes.items() if (code := by.get(str(trial.number)))} | own

    def of_text(self, key: str, trial: Trial) -> tuple[str, str] | None:
        """Returns (what the source ``key`` makes, what that of ``trial`` made) by one compiler; None if unknown."""
        made = ((self.texts.get(compiler, {}).get(key), code) for compiler, code in self.made_by(trial).items())
        return next(((now, then) for now, then in made if now), None)

    def condition(self, trial: Trial) -> str:
        """Returns the digest of the trial's other conditions; "" if unknown."""
        return trial.conditions or self.conditions.get(str(trial.number), "")
