"""The digests that `autotune digest` stored: of trials whose own lines lack them, and of today's texts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .trial import Trial


@dataclass(frozen=True)
class Digests:
    """Digests of machine code and conditions by trial number, and of machine code by source text.

    ``codes``: compiler -> trial number -> digest. ``texts``: compiler -> key of a rendered source -> digest. Together
    they show, without a compiler, whether a rewritten text gives the measured machine code.
    """

    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def code(self, trial: Trial, compiler: str) -> str:
        """Returns the digest of ``compiler``'s machine code for a trial's source; "" if unknown."""
        if trial.code and trial.compiler == compiler:
            return trial.code
        return self.codes.get(compiler, {}).get(str(trial.number), "")

    def made_by(self, trial: Trial) -> dict[str, str]:
        """Returns compiler -> digest of the machine code for a trial's source."""
        own = {trial.compiler: trial.code} if trial.code else {}
        return {c: code for c, by in self.codes.items() if (code := by.get(str(trial.number)))} | own

    def of_text(self, key: str, trial: Trial) -> tuple[str, str] | None:
        """Returns the digests (of source ``key``, of the source of ``trial``) by one compiler; None if unknown."""
        digests = ((self.texts.get(compiler, {}).get(key), code) for compiler, code in self.made_by(trial).items())
        return next(((now, then) for now, then in digests if now), None)

    def condition(self, trial: Trial) -> str:
        """Returns the digest of the trial's other conditions; "" if unknown."""
        return trial.conditions or self.conditions.get(str(trial.number), "")
