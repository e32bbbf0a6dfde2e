"""Finds the delays that are left in visibilities: the slope of phase over the band, by a Fourier transform to lags.

A wave that reaches antenna j tau later than antenna i turns V_ij by +2 pi f tau, so the transform of the correlation
coefficients over frequency has its peak at the lag tau (Thompson, Moran, Swenson: Interferometry and Synthesis in Radio
Astronomy, section 9.3, the delay part of a fringe fit). The noise of a coefficient of n spectra is 1 / sqrt(n).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.units import seconds_text
from ..streams.visibilities import VisibilityInfo
from .visibility_summary import Baseline, VisibilitySummary

PARALLEL, CROSS = slice(0, 2), slice(2, 4)  # places in the summary's products
FINER = 16  # steps of lag for each lag that the band resolves
CLOSE = 0.01  # samples: the text calls a smaller delay "no delay"
FOUND = 6.0  # times the noise: a few thousand lags of pure noise almost never have such a peak
CROSSED = 10.0  # times the noise: a peak of cross hands beside none of parallel ones tells of swapped polarisations


@dataclass(frozen=True)
class ResidualDelay:
    """The delay that is left on a baseline, over the whole time."""

    baseline: Baseline
    delay_s: float  # positive if waves reach antenna j later than antenna i
    delay_samples: float
    coefficient: float  # mean correlation coefficient of both products, without the phase slope
    signal_to_noise: float
    largest_s: float  # delays from -largest_s to largest_s are unambiguous
    products: tuple[str, ...] = ()  # the cross hands, if the fringe is in them and not in the parallel ones
    swapped: Mapping[int, str] = field(default_factory=dict)  # antennas that may be swapped: the names to state instead

    @property
    def is_found(self) -> bool:
        return self.signal_to_noise >= FOUND

    def text(self, names: Sequence[str]) -> str:
        """Returns the result as text. ``names`` has the names of all antennas."""
        here, there = names[self.baseline.i], names[self.baseline.j]
        if not self.is_found:
            within = f"within +-{seconds_text(self.largest_s)} of delay"
            return (
                f"{here} - {there}: no fringe {within}; the largest peak is {self.signal_to_noise:.1f} times the noise"
            )
        late = "later" if self.delay_s >= 0 else "earlier"
        delay = (
            f"{there} is {abs(self.delay_samples):.2f} samples ({seconds_text(abs(self.delay_s))}) {late} than {here}"
        )
        if abs(self.delay_samples) < CLOSE:
            delay = f"no delay, within {CLOSE:g} samples"
        strength = f"correlation {self.coefficient:.3g}, {self.signal_to_noise:.0f} times the noise"
        return f"{here} - {there}: {delay}; {strength}{self._crossed_text(names)}"

    def _crossed_text(self, names: Sequence[str]) -> str:
        """Returns text about a fringe in the cross hands, with the remedy; "" for one in the parallel hands."""
        each = " or ".join(f'polarisations = "{stated}" of {names[n]}' for n, stated in self.swapped.items())
        who = " or ".join(names[n] for n in self.swapped)
        where = f"; in the cross hands ({', '.join(self.products)}), not in the parallel ones"
        return f"{where}: {who} is probably swapped: state {each} in array.toml" if self.products else ""


def residual_delays(summary: VisibilitySummary) -> list[ResidualDelay]:
    """Returns the residual delay of each baseline that the summary follows and that has data.

    Delays beyond ``largest_s`` appear shifted by a multiple of twice that.
    """
    info, counts = summary.info, summary.fine.counts
    step_hz = abs(info.channel_width_hz) * float(np.median(counts))
    if step_hz == 0 or len(counts) < 2:
        return []
    rate_hz, sign = info.antennas[0].sample_rate_hz, 1 if info.channel_width_hz > 0 else -1
    n_spectra = summary.weights.values[..., 0].sum(axis=0)  # [n_baselines, 4]
    delays = []
    coefficients = summary.coefficients()  # [n_fine, n_baselines, 4]
    for number, baseline in enumerate(summary.baselines):
        found = []
        for hands in (PARALLEL, CROSS):
            n_each = n_spectra[number, hands] * counts.sum()  # independent products in each mean
            if n_each.any():
                lag, coefficient, signal_to_noise = _fringe(coefficients[:, number, hands], n_each)
                delay_s = sign * lag / step_hz
                found.append(
                    ResidualDelay(baseline, delay_s, delay_s * rate_hz, coefficient, signal_to_noise, 0.5 / step_hz)
                )
        if len(found) > 1 and not found[0].is_found and found[1].signal_to_noise >= CROSSED:
            names = np.array(info.products(baseline.i, baseline.j))[1:-1]
            found[0] = replace(found[1], products=tuple(names[n_spectra[number, CROSS] > 0].tolist()))
        delays += found[:1]
    return _with_swapped(delays, info)


def _fringe(spectra: np.ndarray, n_each: np.ndarray) -> tuple[float, float, float]:
    """Returns the lag of the peak in steps of the band's inverse width, its coefficient, and its ratio to the noise.

    Args:
        spectra: coefficients, complex128 [n_fine, 2].
        n_each: independent products in each of them, int64 [2]; 0 where no data came.
    """
    lags = np.fft.fft(np.nan_to_num(spectra), FINER * len(spectra), axis=0) / len(spectra)
    power = (np.abs(lags) ** 2 * n_each).sum(axis=1)
    peak = int(np.argmax(power))
    lag = (peak + len(power) // 2) % len(power) - len(power) // 2 + _between(power, peak)
    noise = np.count_nonzero(n_each)  # the mean of ``power`` for noise alone
    return lag / len(power), float(np.abs(lags[peak])[n_each > 0].mean()), float(np.sqrt(power[peak] / noise))


def _with_swapped(delays: Sequence[ResidualDelay], info: VisibilityInfo) -> list[ResidualDelay]:
    """Returns delays of which crossed ones name the antenna that has most of them; both, if both have as many."""
    ends = [(each.baseline.i, each.baseline.j) if each.products else () for each in delays]
    n_crossed, named = Counter(sum(ends, ())), []
    for each, antennas in zip(delays, ends, strict=True):
        most = [n for n in antennas if n_crossed[n] == max(n_crossed[end] for end in antennas)]
        other = {n: "".join(info.bases[n][1 - place] for place in info.antennas[n].places) for n in most}
        named.append(replace(each, swapped=other))
    return named


def _between(power: np.ndarray, peak: int) -> float:
    """Returns the offset of the vertex of the parabola through the largest value and its neighbours, in bins."""
    before, at, behind = power[peak - 1], power[peak], power[(peak + 1) % len(power)]
    curvature = before - 2 * at + behind
    return float((before - behind) / (2 * curvature)) if curvature else 0.0
