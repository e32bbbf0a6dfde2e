"""Finds the delays that are left in visibilities: the slope of phase over the band, by a Fourier transform to lags.

A wave that reaches antenna j tau later than antenna i turns V_ij by +2 pi f tau, so the transform of the correlation
coefficients over frequency has its peak at the lag tau (Thompson, Moran, Swenson: Interferometry and Synthesis in Radio
Astronomy, section 9.3, the delay part of a fringe fit). The noise of a coefficient of n spectra is 1 / sqrt(n).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.units import seconds_text
from .visibility_summary import Baseline, VisibilitySummary

FINER = 16  # steps of lag for each lag that the band resolves
CLOSE = 0.01  # samples: the text calls a smaller delay "no delay"
FOUND = 6.0  # times the noise: a few thousand lags of pure noise almost never have such a peak


@dataclass(frozen=True)
class ResidualDelay:
    """The delay that is left on a baseline, over the whole time."""

    baseline: Baseline
    delay_s: float  # positive if waves reach antenna j later than antenna i
    delay_samples: float
    coefficient: float  # mean correlation coefficient of both polarisations, without the phase slope
    signal_to_noise: float
    largest_s: float  # delays from -largest_s to largest_s are unambiguous

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
        return f"{here} - {there}: {delay}; {strength}"


def residual_delays(summary: VisibilitySummary) -> list[ResidualDelay]:
    """Returns the residual delay of each baseline that the summary follows and that has data.

    Delays beyond ``largest_s`` appear shifted by a multiple of twice that.
    """
    info, counts = summary.info, summary.fine.counts
    step_hz = abs(info.channel_width_hz) * float(np.median(counts))
    if step_hz == 0 or len(counts) < 2:
        return []
    rate_hz, sign = info.antennas[0].sample_rate_hz, 1 if info.channel_width_hz > 0 else -1
    n_spectra = summary.weights.values[..., 0].sum(axis=0)  # [n_baselines, 2]
    delays = []
    coefficients = summary.coefficients()  # [n_fine, n_baselines, 2]
    for number, baseline in enumerate(summary.baselines):
        if not n_spectra[number].any():
            continue
        spectra = coefficients[:, number]
        lags = np.fft.fft(np.nan_to_num(spectra), FINER * len(spectra), axis=0) / len(spectra)
        n_each = n_spectra[number] * counts.sum()  # independent products in each polarisation's mean
        power = (np.abs(lags) ** 2 * n_each).sum(axis=1)
        peak = int(np.argmax(power))
        lag = (peak + len(power) // 2) % len(power) - len(power) // 2 + _between(power, peak)
        delay_s = sign * lag / (len(power) * step_hz)
        noise = np.count_nonzero(n_each)  # the mean of ``power`` for noise alone
        delays.append(
            ResidualDelay(
                baseline=baseline,
                delay_s=delay_s,
                delay_samples=delay_s * rate_hz,
                coefficient=float(np.abs(lags[peak])[n_each > 0].mean()),
                signal_to_noise=float(np.sqrt(power[peak] / noise)),
                largest_s=0.5 / step_hz,
            )
        )
    return delays


def _between(power: np.ndarray, peak: int) -> float:
    """Returns the offset of the vertex of the parabola through the largest value and its neighbours, in bins."""
    before, at, behind = power[peak - 1], power[peak], power[(peak + 1) % len(power)]
    curvature = before - 2 * at + behind
    return float((before - behind) / (2 * curvature)) if curvature else 0.0
