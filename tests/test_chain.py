"""An F-engine made of the kernels, against theory: pfb_fir, FFT, postproc, or channelise; and ddc before either.

Each figure has a bound, derived where it is made. `python -m tests.test_chain` prints them, as
docs/lab/2026-11-21-chain-against-theory.md has them.
"""

from collections.abc import Callable
from dataclasses import replace
from math import erf, pi, sqrt
from typing import Any

import numpy as np
import pytest

from autotune.devices import Target, find_device
from autotune.engines.f.filters import low_pass, prototype

from .sky import (
    ROUNDOFF,
    Figure,
    Made,
    Setting,
    Tone,
    bandwidth,
    by_chain,
    by_channelise,
    channelised,
    compared,
    correlations,
    decibels,
    down_converted,
    filter_rounding,
    fourier_rounding,
    mixed_down,
    noise,
    quantised,
    rms,
    spectra_of,
    turn_bound,
    turned,
    voltages_of,
)

pytestmark = pytest.mark.quick

C, L, TAPS, HEAP, N_SPECTRA = 64, 128, 8, 64, 512
N_SAMPLES = (N_SPECTRA + TAPS) * L  # a spectrum more than is made, for the offsets
WEIGHTS = prototype(C, TAPS)
SUM, ABSOLUTE = float(WEIGHTS.sum(dtype=float)), float(np.abs(WEIGHTS).sum(dtype=float))
ENERGY = float(np.sum(WEIGHTS.astype(float) ** 2))
POSTPROC_ERROR = 5e-6  # of a voltage, before it is rounded: docs/design/postproc.md
APART = 0.7  # radians that the polarisations are set apart

LATE = (0.0, 21.3)  # samples that each polarisation is late: what offsets and fine delays make up for
OFFSETS = (13, 34)  # 130 and 340 bits: neither is whole bytes, nor at the same bit of one
LEFT = np.array(LATE) - np.array(OFFSETS) + OFFSETS[0]  # what the offsets leave to the fine delays
CHANNEL, BESIDE = 50, 0.2  # the tone's channel, far from the middle, and how far from its centre it is
TONE = Tone((CHANNEL + BESIDE) / L, 500, cycles=0.15)

DECIMATION, MIXER, MIXER_PHASE = 8, 0.21, 0.3  # the narrow band is 1 / 8 wide, about 0.21 cycles a sample
LOW_PASS = low_pass(8 * DECIMATION, DECIMATION).reshape(8, DECIMATION)
# Signs that alternate turn each channel into the one C / 2 further on: the mixer's frequency comes to channel C / 2.
NARROW = prototype(C, TAPS, is_complex=True) * np.where(np.arange(C) % 2, -1, 1).astype(np.float32)
NARROW_LATE = (0.0, 43.7)
NARROW_OFFSETS = (3, 8)  # of outputs, 8 samples each
NARROW_LEFT = np.array(NARROW_LATE) - DECIMATION * (np.array(NARROW_OFFSETS) - NARROW_OFFSETS[0])
NARROW_TONE = Tone(MIXER + (CHANNEL - C / 2 + BESIDE) / (C * DECIMATION), 500, cycles=0.15)
NARROW_SPECTRA = 32

FilterBank = Callable[..., Callable[[Setting], Made]]  # by_chain or by_channelise


def setting(scale: float, offsets: tuple[int, int], delays: Any, phases: Any, n_spectra: int = N_SPECTRA) -> Setting:
    """These delays and phases for each polarisation, beside a common drift; gains of 0.8 to 1.2 times ``scale``, at
    any angle.
    """
    rng = np.random.default_rng(7)
    s = np.arange(n_spectra)[:, np.newaxis]
    gains = scale * rng.uniform(0.8, 1.2, (C, 2)) * np.exp(2j * pi * rng.uniform(size=(C, 2)))
    delays, phases = 0.45 + delays + 1e-3 * s, 0.5 + np.array([0, APART]) + phases + 0.01 * s
    return Setting(offsets, delays.astype(np.float32), phases.astype(np.float32), gains.astype(np.complex64))


def wide_setting(scale: float) -> Setting:
    """A delay turns about channel C / 2: the phase puts that back."""
    return setting(scale, OFFSETS, -LEFT, pi / 2 * LEFT)


# ---------------------------------------------------------------------- the response of a channel
def response(target: Target) -> list[Figure]:
    """Tones of 16 bits about channel 20, a stream each: the amplitude in the channel, of that at its centre."""
    amplitude, channel, n_spectra = 32000.0, 20, 16
    peak = amplitude / 2 * SUM
    beside = np.linspace(-1.5, 1.5, 13)
    tones = [Tone((channel + by) / L, amplitude, cycles=0.1 + by) for by in beside]
    samples = quantised([tone.stream((n_spectra + TAPS) * L) for tone in tones], 16)
    spectra, _ = channelised(target, samples, WEIGHTS, range(len(tones)), n_spectra, bits=16)
    # Samples are rounded by a half at most, and each weight meets one. The two lines of a tone, each in at most two
    # channels, have spectra of a norm below twice the peak.
    rounding = filter_rounding(WEIGHTS, amplitude) + fourier_rounding(L, 2 * peak)
    bound = (0.5 * ABSOLUTE + rounding) / peak
    figures, errors = [], []
    for i, (by, tone) in enumerate(zip(beside, tones, strict=True)):
        found = spectra[i, :, channel] / peak
        theory = spectra_of(tone.lines, WEIGHTS, i, n_spectra, C)[:, channel] / peak
        figures.append(Figure(f"a tone {by:+.2f} channels beside", rms(found), rms(theory), bound, "of the peak"))
        errors.append(np.abs(found - theory).max())
    return [*figures, Figure("largest error, of any spectrum", float(max(errors)), 0, bound, "of the peak")]


# ---------------------------------------------------------------------- a tone and nothing else
def clean() -> tuple[np.ndarray, Setting, np.ndarray]:
    """Samples, the setting that makes voltages of about 100 of them, and these voltages in theory."""
    given = wide_setting(100 / (TONE.amplitude / 2 * SUM))
    late = TONE.delayed(LATE)
    samples = quantised([tone.stream(N_SAMPLES) for tone in late], 10)
    return samples, given, voltages_of([tone.lines for tone in late], WEIGHTS, given)


def clean_bound(given: Setting) -> float:
    """Of |voltage - theory|: both parts are rounded by a half at most, samples were, and float32 is."""
    of_spectra = 0.5 * ABSOLUTE + filter_rounding(WEIGHTS, TONE.amplitude) + fourier_rounding(L, TONE.amplitude * SUM)
    return float(sqrt(0.5) + np.abs(given.gains).max() * of_spectra + POSTPROC_ERROR * 127)


def wide(target: Target, by: FilterBank, samples: np.ndarray, given: Setting) -> np.ndarray:
    return by(target, samples, WEIGHTS, given, HEAP)(given).voltages


def clean_tone(target: Target, by: FilterBank) -> list[Figure]:
    samples, given, theory = clean()
    made = by(target, samples, WEIGHTS, given, HEAP)
    v, bound = made(given).voltages, clean_bound(given)
    angle, from_centre = turn_bound(theory[..., CHANNEL], bound), (CHANNEL - C / 2) / C
    # The fine delay is right for the channel's centre: what is beside it is left, and APART.
    figures = compared(v, theory, given, CHANNEL, bound, 2 * pi * BESIDE / L * LEFT[1] - APART)
    # 2 pi f L, and the drifts. Least squares of phases that are each off by at most ``angle``: 3 angle / N_SPECTRA.
    advance = (2 * pi * TONE.frequency * L + 0.01 - pi * 1e-3 * from_centre) % (2 * pi)
    s = np.arange(N_SPECTRA)
    for p in range(2):
        rest = np.unwrap(np.angle(v[:, p, CHANNEL] * np.exp(-1j * advance * s)))
        found = advance + float(np.polyfit(s, rest, 1)[0])
        figures.append(
            Figure(f"advance a spectrum, less {advance:.6f}, pol {p}", found - advance, 0, 3 * angle / N_SPECTRA, "rad")
        )
    still = replace(given, delays=np.zeros_like(given.delays), phases=np.zeros_like(given.phases))
    of_still = made(still).voltages[..., CHANNEL]
    value = np.full_like(given.delays, 1.5)
    others = {"delays": replace(still, delays=value), "phases": replace(still, phases=value)}
    for (name, other), expected in zip(others.items(), (-pi * 1.5 * from_centre, 1.5), strict=True):
        turned_by = np.angle(np.sum(made(other).voltages[..., CHANNEL] * of_still.conj()))
        figures.append(Figure(f"turned by {name} of 1.5", float(turned_by), expected, 2 * angle, "rad"))
    return figures


# ---------------------------------------------------------------------- a tone in noise
def sky(target: Target, by: FilterBank) -> list[Figure]:
    """Noise of rms 60 and a tone of amplitude 20, the same in both polarisations, the second late."""
    sigma, weak = 60.0, replace(TONE, amplitude=20)
    late = weak.delayed(LATE)
    streams = noise(np.random.default_rng(11), N_SAMPLES, sigma, LATE) + [tone.stream(N_SAMPLES) for tone in late]
    samples = quantised(streams, 10)
    of_noise = (sigma**2 + 1 / 12) * ENERGY  # in a channel; the rounding of samples is white, too
    given = wide_setting(20 / sqrt(of_noise))  # parts of rms 14: they do not saturate
    v, _, total_power = by(target, samples, WEIGHTS, given, HEAP)(given)
    theory = voltages_of([tone.lines for tone in late], WEIGHTS, given)
    squared = np.abs(given.gains.T.astype(complex)) ** 2
    quiet = np.abs(np.arange(C) - CHANNEL) > 2  # channels that the tone does not reach
    of_channel, of_all = correlations(WEIGHTS)
    figures = []
    for p in range(2):
        newest = samples[p, given.offsets[p] + (TAPS - 1) * L :][: N_SPECTRA * L]
        figures.append(Figure(f"total_power, pol {p}", int(total_power[p]), int(newest @ newest), 0, ""))
        # |X|^2 varies as much as its mean. Each part of a voltage is rounded: 1 / 12. Five standard deviations.
        power = float(np.mean(np.mean(np.abs(v[:, p]) ** 2, axis=0)[quiet] / squared[p, quiet]))
        of_theory = of_noise + float(np.mean(1 / 6 / squared[p, quiet]))
        off = 5 * sqrt(of_all / (N_SPECTRA * quiet.sum()))
        figures.append(Figure(f"noise power of a channel, pol {p}", power / of_theory, 1, off, "of theory"))
        # Half of the noise is in phase with the tone, half is not.
        t = theory[:, p, CHANNEL]
        of_tone = float(np.mean(np.abs(t) ** 2))
        found = complex(np.mean(v[:, p, CHANNEL] * t.conj())) / of_tone
        noise_here = squared[p, CHANNEL] * of_noise + 1 / 6
        aside = 5 * sqrt(noise_here * of_channel / (2 * N_SPECTRA) / of_tone)
        figures.append(Figure(f"amplitude of the tone, pol {p}", found.real, 1, aside, "of theory"))
        figures.append(Figure(f"phase of the tone, pol {p}", float(np.angle(found)), 0, float(np.arcsin(aside)), "rad"))
        of_tone /= squared[p, CHANNEL]
        ratio, expected = decibels(found.real**2 * of_tone / power), decibels(of_tone / of_theory)
        figures.append(
            Figure(f"signal to noise, pol {p}", ratio, expected, -decibels((1 - aside) ** 2 * (1 - off)), "dB")
        )
    # What the polarisations do not share, as part of the noise: roundings, and the fine delay's turn within a channel.
    alone = 2 * (ENERGY / 12 + 1 / 6 / squared.min()) / of_noise + (2 * pi * LEFT[1] * bandwidth(WEIGHTS)) ** 2
    wobble = 5 * sqrt(alone * of_channel / (2 * N_SPECTRA))
    products = np.sum(v[:, 0] * np.conj(v[:, 1]), axis=0) / (given.gains[:, 0] * given.gains[:, 1].conj())
    phases, k = np.angle(products * np.exp(1j * APART))[quiet], np.arange(C)[quiet]
    figures.append(Figure("between pols, in any channel", float(np.abs(phases).max()), 0, wobble, "rad"))
    slope, to_samples = np.polyfit(k, phases, 1)[0], L / (2 * pi)
    limit = wobble / sqrt(np.sum((k - k.mean()) ** 2)) * to_samples
    return [*figures, Figure("delay left between pols", float(slope * to_samples), 0, limit, "samples")]


# ---------------------------------------------------------------------- saturation
def saturation(target: Target, by: FilterBank) -> list[Figure]:
    """Noise whose parts reach 127.5 at two standard deviations."""
    sigma = 60.0
    samples = quantised(noise(np.random.default_rng(12), N_SAMPLES, sigma, LATE), 10)
    given = wide_setting(1.0)
    gains = given.gains / np.abs(given.gains) * (127.5 / 2 / sqrt((sigma**2 + 1 / 12) * ENERGY / 2))
    gains[0] = 0.01 * gains[1]  # channel 0 is real, so its parts are not normal alike: it is kept out
    given = replace(given, gains=gains.astype(np.complex64))
    voltages, saturated, _ = by(target, samples, WEIGHTS, given, HEAP)(given)

    rows = [samples[p, o:][: (N_SPECTRA + TAPS - 1) * L].reshape(-1, L) for p, o in enumerate(given.offsets)]
    weights = WEIGHTS.astype(float)
    filtered = [sum(weights[t] * row[t : t + N_SPECTRA] for t in range(TAPS)) for row in rows]
    exact = np.fft.rfft(np.stack(filtered, axis=1))[..., :C]
    parts = _parts(turned(exact, given))
    norm = sqrt(2) * float(np.linalg.norm(exact, axis=-1).max())  # with the half that a real FFT leaves out
    rounding = filter_rounding(WEIGHTS, float(np.abs(samples).max())) + fourier_rounding(L, norm)
    margin = rounding * float(np.abs(gains).max()) + POSTPROC_ERROR * sqrt(2) * float(np.abs(parts).max())
    from_edge, from_half = np.abs(parts) - 127.5, np.abs(parts - np.floor(parts) - 0.5)
    of_heaps = (-1, HEAP, 2, C)
    counted, doubtful = (
        np.sum(x.any(axis=-1).reshape(of_heaps), axis=(1, 3)) for x in (from_edge > 0, np.abs(from_edge) < margin)
    )
    off = _parts(voltages) - np.clip(np.rint(parts), -127, 127)
    share, n = 1 - erf(sqrt(2)) ** 2, N_SPECTRA * 2 * (C - 1)
    spread = 5 * sqrt(share * (1 - share) * correlations(WEIGHTS)[1] / n)  # five standard deviations
    miscounted = np.abs(saturated.astype(int) - counted)
    return [
        Figure("saturated voltages, of all", float(saturated.sum()) / n, share, spread, ""),
        Figure("largest miscount of a heap", float(miscounted.max()), 0, float(doubtful.max()), ""),
        Figure("miscounts beyond what is doubtful", float((miscounted - doubtful).clip(0).sum()), 0, 0, ""),
        Figure(
            "parts that float64 rounds otherwise", float((off != 0).sum()), 0, float((from_half < margin).sum()), ""
        ),
        Figure("farthest of them from a half", float((from_half * (off != 0)).max()), 0, margin, ""),
        Figure("parts off by more than 1", float((np.abs(off) > 1).sum()), 0, 0, ""),
    ]


# ---------------------------------------------------------------------- a narrow band
def narrow_theory() -> tuple[Setting, np.ndarray]:
    """Delays of postproc are in half outputs here, channels being 1 / C cycles apart, not 1 / 2 C. The phase is that
    of the mixer's frequency, which channel C / 2 has, over the whole delay.
    """
    lines = [mixed_down(late.lines, LOW_PASS, -MIXER, MIXER_PHASE) for late in NARROW_TONE.delayed(NARROW_LATE)]
    strength = abs(lines[0][0].amplitude) * float(prototype(C, TAPS, is_complex=True).sum(dtype=float))
    phases = 2 * pi * MIXER * np.array(NARROW_LATE) % (2 * pi)
    given = setting(100 / strength, NARROW_OFFSETS, -2 * NARROW_LEFT / DECIMATION, phases, NARROW_SPECTRA)
    return given, voltages_of(lines, NARROW, given)


def narrow(target: Target, by: FilterBank, mixer: float = -MIXER, weights: np.ndarray = NARROW) -> np.ndarray:
    """Voltages of the narrow band about MIXER; or as they are with another mixer or other weights."""
    given, _ = narrow_theory()
    n_samples = (NARROW_SPECTRA + TAPS) * C * DECIMATION + LOW_PASS.size
    samples = quantised([tone.stream(n_samples) for tone in NARROW_TONE.delayed(NARROW_LATE)], 10)
    baseband = down_converted(target, samples, LOW_PASS, mix_frequency=mixer, mix_phase=MIXER_PHASE)
    return by(target, baseband, weights, given, HEAP // 4)(given).voltages


def narrow_bound() -> float:
    """As ``clean_bound``: an output of ddc is off by half the sum of |weights|, and its own roundings, 16 besides its
    taps (docs/design/ddc-arithmetic.md).
    """
    given, _ = narrow_theory()
    passed, spread = (float(np.abs(w).sum(dtype=float)) for w in (LOW_PASS, NARROW))
    largest = NARROW_TONE.amplitude * passed
    of_outputs = 0.5 * passed + (LOW_PASS.size + 16) * ROUNDOFF * largest
    of_spectra = of_outputs * spread + filter_rounding(NARROW, largest) + fourier_rounding(C, largest * spread)
    return float(sqrt(0.5) + np.abs(given.gains).max() * of_spectra + POSTPROC_ERROR * 127)


def narrow_tone(target: Target, by: FilterBank) -> list[Figure]:
    given, theory = narrow_theory()
    left = 2 * pi * BESIDE / (C * DECIMATION) * NARROW_LEFT[1] - APART  # as in ``clean_tone``
    return compared(narrow(target, by), theory, given, CHANNEL, narrow_bound(), left)


# ---------------------------------------------------------------------- the tests
FIGURES: list[Callable[[Target, FilterBank], list[Figure]]] = [clean_tone, sky, saturation, narrow_tone]
BOTH = pytest.mark.parametrize("by", [by_chain, by_channelise], ids=lambda by: by.__name__)


def test_the_response_is_that_of_theory(target: Target) -> None:
    for figure in response(target):
        assert figure.holds, figure


@BOTH
@pytest.mark.parametrize("figures", FIGURES, ids=lambda figures: figures.__name__)
def test_figures_are_those_of_theory(
    figures: Callable[[Target, FilterBank], list[Figure]], by: FilterBank, target: Target
) -> None:
    for figure in figures(target, by):
        assert figure.holds, figure


@BOTH
@pytest.mark.parametrize("wrong", ["sign of the fine delay", "polarisations", "offset"])
def test_what_is_set_wrong_shows(wrong: str, by: FilterBank, target: Target) -> None:
    samples, given, theory = clean()
    used = {
        "sign of the fine delay": replace(given, delays=-given.delays),
        "polarisations": given,
        "offset": replace(given, offsets=(OFFSETS[0], OFFSETS[1] + 1)),
    }[wrong]
    v = wide(target, by, samples[::-1] if wrong == "polarisations" else samples, used)
    assert np.abs(v - theory).max() > 10 * clean_bound(given)


@BOTH
@pytest.mark.parametrize("wrong", ["sign of the mixer", "weights that do not alternate"])
def test_what_is_wrong_in_the_narrow_band_shows(wrong: str, by: FilterBank, target: Target) -> None:
    v = (
        narrow(target, by, mixer=MIXER)
        if wrong == "sign of the mixer"
        else narrow(target, by, weights=prototype(C, TAPS, is_complex=True))
    )
    assert np.abs(v - narrow_theory()[1]).max() > 10 * narrow_bound()


def _parts(voltages: np.ndarray) -> np.ndarray:
    return np.stack([voltages.real, voltages.imag], axis=-1)


if __name__ == "__main__":
    host = find_device("host")
    printed = {"response": response(host)} | {of.__name__: of(host, by_chain) for of in FIGURES}
    for name, of_name in printed.items():
        print(f"\n| {name} | measured | theory | bound |\n| --- | --- | --- | --- |")
        for figure in of_name:
            print(figure.row)
