"""Filters of engines: windowed sincs for a filter bank, and for the decimation in front of a narrow band.

A sinc is the impulse response of an ideal low-pass filter; a window makes it finite (R. E. Crochiere, L. R. Rabiner,
Multirate Digital Signal Processing, 1983, section 4.3).
"""

from math import pi

import numpy as np

from ...core.errors import UsageError

# Window(n) = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), n < N: F. J. Harris, On the use of windows for harmonic
# analysis with the discrete Fourier transform, Proc. IEEE 66, 1978, section V.
WINDOWS = {
    "hann": (0.5, 0.5, 0.0),
    "hamming": (0.54, 0.46, 0.0),
    "blackman": (0.42, 0.5, 0.08),
    "rectangular": (1.0, 0.0, 0.0),
}


def prototype(n_channels: int, taps: int, window: str = "hann", is_complex: bool = False) -> np.ndarray:
    """Returns the prototype filter of a critically sampled polyphase filter bank: float32 [taps, L].

    w[t, c] = window(n) sinc(n / L - taps / 2) with n = t L + c, a low-pass filter that ends at half a channel (D. C.
    Price, Spectrometers and Polyphase Filterbanks in Radio Astronomy, arXiv:1607.03579). L is 2 ``n_channels``, or
    ``n_channels`` of complex samples.

    The filter bank multiplies a complex exponential in the middle of a channel by the sum of all weights, which is L
    within 3 % from 4 taps on (10 % for rectangular). A real tone is two of these, each of half its amplitude. The power
    of white noise is multiplied, in every channel, by the sum of the squares of all weights.

    Raises:
        UsageError: for an unknown window, n_channels or taps below 1, or fewer than 2 weights.
    """
    if n_channels < 1:
        raise UsageError(f"n_channels={n_channels} must be 1 or more")
    step = n_channels if is_complex else 2 * n_channels
    return _windowed_sinc(taps * step, step, window).reshape(taps, step).astype(np.float32)


def low_pass(taps: int, decimation: int, window: str = "hann") -> np.ndarray:
    """Returns the low-pass filter in front of a decimation: float32 [taps], with the sum 1.

    It ends at half the output's sampling rate, 1 / (2 ``decimation``) cycles per sample, where it is 6 dB down. A
    longer filter is flat up to nearer this frequency; 8 ``decimation`` taps are usual. It delays by ``taps`` / 2
    samples.

    Raises:
        UsageError: for an unknown window, a decimation below 1, or taps below 2.
    """
    if decimation < 1:
        raise UsageError(f"decimation={decimation} must be 1 or more")
    weights = _windowed_sinc(taps, decimation, window)
    return np.asarray(weights / weights.sum(), np.float32)


def _windowed_sinc(n_taps: int, zeros_apart: int, window: str) -> np.ndarray:
    """Returns a windowed sinc about n = ``n_taps`` / 2, with zeros ``zeros_apart`` samples apart: float64 [n_taps]."""
    if n_taps < 2:
        raise UsageError(f"a filter of {n_taps} weights: it needs 2 or more")
    if window not in WINDOWS:
        raise UsageError(f"there is no window {window!r}: choose one of {', '.join(WINDOWS)}")
    n = np.arange(n_taps)
    mean, once, twice = WINDOWS[window]
    shape = mean - once * np.cos(2 * pi * n / n_taps) + twice * np.cos(4 * pi * n / n_taps)
    return np.asarray(shape * np.sinc((n - n_taps / 2) / zeros_apart))
