"""The digests that `autotune digest` stored: of trials whose own lines lack them, and of today's texts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.schema import Unsound, as_text, as_word, mapping_of, members_of, sealed, value_text
from .cell import DIGEST
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

    @staticmethod
    def read(content: object) -> "Digests":
        """Returns the content of digests.json. Raises Unsound when a member is missing or invalid."""
        return Digests(**_digests(sealed(content)))

    def as_json(self) -> dict[str, object]:
        """Returns the content of digests.json: digests as cells write them, each behind its number or key."""
        codes = {compiler: _listed(by_number, str) for compiler, by_number in self.codes.items() if by_number}
        texts = {compiler: _listed(by_key, DIGEST.write) for compiler, by_key in self.texts.items() if by_key}
        return {"codes": codes, "conditions": _listed(self.conditions, str), "texts": texts}

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


def _listed(digests: Mapping[str, str], name: Callable[[str], str]) -> str:
    return " ".join(f"{name(key)}:{DIGEST.write(digest)}" for key, digest in digests.items())


def _of_list(key: Callable[[Any], str]) -> Callable[[Any], dict[str, str]]:
    """Returns a check for digests by name: a text of name:digest, or an object, as in older records."""
    members = mapping_of(as_word, as_word)
    read = DIGEST.read if key is as_word else str

    def checked(value: object) -> dict[str, str]:
        if isinstance(value, str):
            pairs = [each.partition(":") for each in value.split()]
            value = {read(name): DIGEST.read(digest) for name, _, digest in pairs}
        found: dict[str, str] = members(value)  # type: ignore[assignment]
        return {key(name): digest for name, digest in found.items()}

    return checked


def _digits(value: object) -> str:
    """Checks that a member's name is the number of a trial."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return value
    raise Unsound(f"is {value_text(value)}, must be the number of a trial")


_digests = members_of(
    {
        "codes": mapping_of(as_text, _of_list(_digits)),
        "conditions": _of_list(_digits),
        "texts": mapping_of(as_text, _of_list(as_word)),
    },
    needed=("codes", "conditions"),
)
