"""Who won: the best of the search measured again side by side, and compared as intervals, not as numbers."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from .measure import Measurement, Sustained
from .record import Trial

SAME = 0.005  # medians within half a percent are the same in practice
TIE = SAME / 2  # and within half of that, something else decides
PREFERENCE = (
    "fewer registers, then less shared memory, then fewer parameters that differ from the default, "
    f"of those within {100 * TIE:g} % of the fastest"
)


@dataclass(frozen=True)
class Finalist:
    """A config with its measurement among the others; ``relation`` is to the fastest."""

    trial: Trial
    measurement: Measurement
    relation: str  # fastest, same, ambiguous or slower
    sustained: Sustained | None = None  # where it was asked for
    checked_launches: int = 0  # whose outputs were all right; of the winner

    def retimed(self) -> Trial:
        """The trial with the times of the final round."""
        m = self.measurement
        return replace(self.trial, median_s=m.median_s, q1_s=m.q1_s, q3_s=m.q3_s, clock_hz=m.clock_hz)

    def as_json(self) -> dict[str, Any]:
        m = self.measurement
        low, high = m.interval()
        return {
            "number": self.trial.number,
            "config": dict(self.trial.config),
            "key": self.trial.key,
            "compiler": self.trial.compiler,
            "code": self.trial.code,
            "conditions": self.trial.conditions,
            "relation": self.relation,
            "median_s": m.median_s,
            "q1_s": m.q1_s,
            "q3_s": m.q3_s,
            "interval_s": [low, high],
            "samples_s": list(m.samples_s),
            "clock_hz": m.clock_hz,
            "cold": m.cold,
            "registers": self.trial.registers,
            "shared_bytes": self.trial.shared_bytes,
            "spill_bytes": self.trial.spill_bytes,
            "max_error": m.max_error,
            "rms_error": m.rms_error,
            "verified_on": list(self.trial.verified_on),
            **({"sustained": asdict(self.sustained)} if self.sustained else {}),
            **({"checked_launches": self.checked_launches} if self.checked_launches else {}),
        }


def compare(a: Measurement, b: Measurement) -> str:
    """How ``a`` stands to ``b``: faster, slower, same or ambiguous.

    same: the medians differ by at most SAME. ambiguous: they differ by more, but their intervals overlap.
    """
    if abs(a.median_s / b.median_s - 1) <= SAME:
        return "same"
    (a_low, a_high), (b_low, b_high) = a.interval(), b.interval()
    if a_high < b_low:
        return "faster"
    return "slower" if b_high < a_low else "ambiguous"


def rank(contestants: list[tuple[Trial, Measurement]], default: dict[str, Any]) -> list[Finalist]:
    """The finalists, the winner first: among those within TIE of the fastest, by PREFERENCE."""
    ordered = sorted(contestants, key=lambda c: c[1].median_s)
    fastest = ordered[0]
    finalists = [
        Finalist(trial, m, "fastest" if trial is fastest[0] else compare(m, fastest[1])) for trial, m in ordered
    ]
    tied = [f for f in finalists if f.measurement.median_s <= fastest[1].median_s * (1 + TIE)]
    winner = min(tied, key=lambda f: _preference(f.trial, default))
    return [winner, *(f for f in finalists if f is not winner)]


def _preference(trial: Trial, default: dict[str, Any]) -> tuple[int, int, int, int]:
    names = {**trial.config, **default}
    n_different = sum(trial.config.get(name) != default.get(name) for name in names)
    return trial.registers or 0, trial.shared_bytes or 0, n_different, trial.number
