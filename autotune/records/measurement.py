"""The measurement of a launch: the protocol, samples, quartiles, and sustained runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Annotated

from ..core.schema import as_amount, as_count, as_seconds, optional

DIGITS = 7  # significant ones of a time


@dataclass(frozen=True)
class Protocol:
    """The measuring protocol; it is recorded with every sweep, and a change makes trials stale."""

    n_warmup: int = 2
    n_samples: int = 12
    cold: bool = True
    incumbent_s: float | None = None  # median to beat; None: never stop early
    energy_s: float = field(default=0.0, repr=False)  # seconds of launches per energy; times are the same


@dataclass(frozen=True)
class Measurement:
    """The time of one launch: the samples, their median and quartiles, and the clock during the samples."""

    samples_s: tuple[float, ...]
    median_s: float
    q1_s: float
    q3_s: float
    clock_hz: float  # median clock; 0 if there is none
    cold: bool
    n_throttled: int  # discarded samples
    stopped_early: bool
    max_error: float  # error of the timed problem's output, relative to rms(reference)
    rms_error: float
    joules: float | None = None  # energy of the device for one launch; None if not requested, or without a meter
    watts: float | None = None  # mean power over the launches that took this energy

    def interval(self) -> tuple[float, float]:
        """Returns ``interval_of`` its samples."""
        return interval_of(self.samples_s)


def interval_of(samples_s: Sequence[float]) -> tuple[float, float]:
    """Returns a 95 % confidence interval of the median, from the order statistics of the samples."""
    ordered, n = sorted(samples_s), len(samples_s)
    half = 0.98 * n**0.5  # 1.96 standard deviations of Binomial(n, 1/2), each sqrt(n)/2
    low, high = max(0, int(n / 2 - half)), min(n - 1, int(n / 2 + half))
    return ordered[low], ordered[high]


def summary_of(samples_s: Sequence[float]) -> dict[str, float]:
    """Returns median and quartiles of samples, with the digits that a record keeps."""
    q1_s, _, q3_s = quantiles(samples_s, n=4, method="inclusive") if len(samples_s) > 1 else 3 * tuple(samples_s)
    figures = {"median_s": median(samples_s), "q1_s": q1_s, "q3_s": q3_s}
    return {name: float(f"{seconds:.{DIGITS}g}") for name, seconds in figures.items()}


@dataclass(frozen=True)
class Sustained:
    """The time of one of many back-to-back launches; each one starts with the caches of the last one."""

    short_s: Annotated[float, as_seconds]  # median of the first N_SHORT, before a power limit takes effect
    sustained_s: Annotated[float, as_seconds]  # median of the last quarter
    n: Annotated[int, as_count]  # launches
    duration_s: Annotated[float, as_amount] = 0.0  # duration of all launches; older records lack it
    joules: Annotated[float | None, optional(as_amount)] = None  # energy for one launch; None without a meter

    @property
    def watts(self) -> float | None:
        """Returns the mean power of the device over the run."""
        return None if self.joules is None or not self.duration_s else self.joules * self.n / self.duration_s
