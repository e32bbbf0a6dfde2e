"""Filters against plain definitions, and what they do to tones."""

from math import cos, pi, sin

import numpy as np
import pytest

from autotune import UsageError
from autotune.engines.f.filters import WINDOWS, low_pass, prototype

from ...sky import decibels, transfer

PLAIN = {
    "hann": lambda x: sin(pi * x) ** 2,
    "hamming": lambda x: 0.08 + 0.92 * sin(pi * x) ** 2,
    "blackman": lambda x: 0.42 - 0.5 * cos(2 * pi * x) + 0.08 * cos(4 * pi * x),
    "rectangular": lambda x: 1.0,
}


def sinc(x: float) -> float:
    return sin(pi * x) / (pi * x) if x else 1.0


def test_every_window_has_a_plain_definition() -> None:
    assert WINDOWS.keys() == PLAIN.keys()


@pytest.mark.parametrize("window", PLAIN)
@pytest.mark.parametrize(
    ("n_channels", "taps", "is_complex"), [(8, 4, False), (5, 3, True), (1, 1, False), (33, 8, True)]
)
def test_a_prototype_is_its_definition(window: str, n_channels: int, taps: int, is_complex: bool) -> None:
    weights = prototype(n_channels, taps, window, is_complex)
    step = n_channels * (1 if is_complex else 2)
    assert weights.shape == (taps, step) and weights.dtype == np.float32
    n = [[t * step + c for c in range(step)] for t in range(taps)]
    expected = [[PLAIN[window](i / (taps * step)) * sinc(i / step - taps / 2) for i in row] for row in n]
    assert np.abs(weights - expected).max() < 1e-7


@pytest.mark.parametrize("window", PLAIN)
@pytest.mark.parametrize(("taps", "decimation"), [(64, 8), (2, 1), (37, 5), (16, 16)])
def test_a_low_pass_is_its_definition(window: str, taps: int, decimation: int) -> None:
    weights = low_pass(taps, decimation, window)
    assert weights.shape == (taps,) and weights.dtype == np.float32
    plain = np.array([PLAIN[window](n / taps) * sinc((n - taps / 2) / decimation) for n in range(taps)])
    assert np.abs(weights - plain / plain.sum()).max() < 1e-7


def test_tones_pass_as_they_should() -> None:
    weights = prototype(64, 8)
    passed = np.abs(transfer(weights, np.array([0, 0.5, 1, 2, 7]) / weights.shape[1])) / weights.sum(dtype=float)
    assert weights.sum(dtype=float) == pytest.approx(128, rel=0.01)
    assert decibels(passed[1] ** 2) == pytest.approx(-6.03, abs=0.05)
    assert (passed[2:] < 1e-3).all()
    assert np.argmax([abs(transfer(prototype(64, 8, w), 1 / 128)) for w in WINDOWS]) == len(WINDOWS) - 1

    passed = np.abs(transfer(low_pass(128, 8), np.array([0, 0.02, 1 / 16, 0.1, 0.3])))
    assert passed[0] == pytest.approx(1, abs=1e-6) and passed[1] == pytest.approx(1, abs=0.01)
    assert passed[2] == pytest.approx(0.5, abs=0.01) and (passed[3:] < 2e-3).all()


def test_what_cannot_be_made_is_told() -> None:
    with pytest.raises(UsageError, match="there is no window 'kaiser': choose one of hann, hamming, blackman, rect"):
        prototype(8, 4, "kaiser")
    with pytest.raises(UsageError, match="n_channels=0 must be 1 or more"):
        prototype(0, 4)
    with pytest.raises(UsageError, match="a filter of 0 weights: it needs 2 or more"):
        prototype(8, 0)
    with pytest.raises(UsageError, match="decimation=0 must be 1 or more"):
        low_pass(8, 0)
    with pytest.raises(UsageError, match="a filter of 1 weights"):
        low_pass(1, 1)
