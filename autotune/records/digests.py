"""The digests that `autotune digest` stored: of trials whose own lines lack them, and of today's texts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.schema import as_text, as_word, mapping_of, members_of, sealed
from .cell import DIGEST
from .trial import Trial, trial_number_text

GAP = "-"


@dataclass(frozen=True)
class Digests:
    """Digests of machine code and conditions by trial number, and of machine code by source text.

    ``codes``: compiler -> trial number -> digest. ``texts``: compiler -> key of a rendered source -> digest. Together
    they show, without a compiler, whether a rewritten text gives the measured machine code.
    """

    codes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @staticmethod
    def read(content: object) -> "Digests":
        """Returns the content of digests.json. Raises Unsound when a member is missing or invalid."""
        return Digests(**_digests(sealed(content)))

    def as_json(self) -> dict[str, object]:
        """Returns the content of digests.json: digests as cells write them, each behind its number or key."""
        codes = {compiler: _listed(by_number) for compiler, by_number in self.codes.items() if by_number}
        texts = {
            compiler: " ".join(f"{DIGEST.write(key)}:{DIGEST.write(code)}" for key, code in by_key.items())
            for compiler, by_key in self.texts.items()
            if by_key
        }
        parts = {"codes": codes, "conditions": _listed(self.conditions), "texts": texts}
        return {name: part for name, part in parts.items() if part}

    def of_numbers(self, trials: Mapping[int, Trial], compiler: str) -> "Digests":
        """Returns the digests that these trials do not have themselves; ``compiler``: of trials that name none."""
        own = {(trial.compiler or compiler, str(n)) for n, trial in trials.items() if trial.code}
        codes = {c: {n: code for n, code in by.items() if (c, n) not in own} for c, by in self.codes.items()}
        conditions = {n: each for n, each in self.conditions.items() if not trials[int(n)].conditions}
        return Digests({c: by for c, by in codes.items() if by}, conditions, self.texts)

    def of_own_compiler(self, trial: Trial, compiler: str) -> Trial:
        """Returns ``trial`` with the digests that its own compiler has; ``compiler``: if it names none."""
        own = trial.compiler or compiler
        code = trial.code or self.codes.get(own, {}).get(str(trial.number), "")
        conditions = self.condition(trial)
        return replace(trial, compiler=own if code else trial.compiler, code=code, conditions=conditions)

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


def _listed(digests: Mapping[str, str]) -> str:
    """Returns the digests of trials in the order of their numbers, and GAP where one has none."""
    own = {int(number): digest for number, digest in digests.items()}
    return " ".join(DIGEST.write(own[n]) if n in own else GAP for n in range(max(own, default=-1) + 1))


def _of_list(value: object) -> Any:
    """Checks the digests of trials: the text of ``_listed``, or an object by number, as in older records."""
    if isinstance(value, str):
        return {str(n): DIGEST.read(cell) for n, cell in enumerate(value.split()) if cell != GAP}
    return _by_number(value)


def _of_pairs(value: object) -> Any:
    """Checks the digests of texts: a text of key:digest, or an object by key, as in older records."""
    if isinstance(value, str):
        pairs = [each.partition(":") for each in value.split()]
        return {DIGEST.read(key): DIGEST.read(digest) for key, _, digest in pairs}
    return _by_key(value)


_by_number, _by_key = mapping_of(trial_number_text, as_word), mapping_of(as_word, as_word)
_digests = members_of(
    {"codes": mapping_of(as_text, _of_list), "conditions": _of_list, "texts": mapping_of(as_text, _of_pairs)}
)
