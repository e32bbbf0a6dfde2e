"""The result of an enumeration: the allowed configurations or a sample of them, and why the others were refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .config import Config, Value
from .errors import UsageError
from .parameter import Constraint, clause
from .product import value_distance

MOST_WRITTEN = 10**15  # smaller numbers are printed with all of their digits


@dataclass(frozen=True)
class Enumeration:
    """The allowed configurations, and the number that the constraints refused.

    ``refused`` counts configurations by the reason of a constraint that each one broke. ``n_allowed``: about how many
    are allowed, where ``configs`` is a sample; 0: ``configs`` is complete. ``unjudged``: each constraint that raised at
    a config that no other one refused, with the config and the error.
    """

    configs: tuple[Config, ...]
    refused: Mapping[str, int] = field(default_factory=dict)
    n_allowed: int = 0
    unjudged: tuple[tuple[Constraint, Config, Exception], ...] = ()

    @property
    def told_sample(self) -> str:
        """Returns a sentence that says how large the sample is; "" where ``configs`` is complete."""
        if not self.n_allowed:
            return ""
        n = len(self.configs)
        return f"about {self.n_allowed:.3g} configs are allowed; {n} of them, drawn at random, are searched"

    @property
    def reasons(self) -> str:
        """Returns the reasons and how many configurations each refused, in one line."""
        numbers = ((f"{n}" if n < MOST_WRITTEN else f"{n:.3g}", n, why) for why, n in self.refused.items())
        return "; ".join(f"{number} {clause(why, n)}" for number, n, why in numbers)

    def nearest(self, wanted: Mapping[str, Value]) -> Config:
        """Returns the configuration that differs least from ``wanted``: fewest parameters, then smallest log-distance.

        Raises:
            UsageError: when the space is empty.
        """
        if not self.configs:
            raise UsageError(f"no configuration is allowed here: {self.reasons}")
        if wanted in self.configs:
            return Config(wanted)
        return min(self.configs, key=lambda config: _distance(config, wanted))


def _distance(config: Config, wanted: Mapping[str, Value]) -> tuple[int, float]:
    """Returns (parameters that differ, sum of absolute log-ratios of the numbers among them)."""
    steps = [value_distance(config.get(name), wanted.get(name)) for name in {**config, **wanted}]
    return sum(differs for differs, _ in steps), sum(log_ratio for _, log_ratio in steps)
