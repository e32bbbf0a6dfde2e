"""The delay that is left on a baseline is found with its sign, to a part of a sample; noise alone has none."""

from pathlib import Path

import numpy as np
import pytest

from autotune.engines import Bands, Running, correlate
from autotune.engines.plots.residual_delays import ResidualDelay, residual_delays
from autotune.engines.plots.visibility_summary import VisibilitySummary

from ...commands import typed

C, TAPS, N = 32, 8, 1 << 15
RATE_HZ = 3e6


def recorded(delays: list[float], is_complex: bool, seed: int, share: float = 0.3) -> list[np.ndarray]:
    """Stations that get one noise, with so much of the power, each so many samples late, in noise of their own."""
    rng = np.random.default_rng(seed)
    width = 4 * N
    sky = rng.normal(size=(2, width)) + (1j * rng.normal(size=(2, width)) if is_complex else 0)
    found = []
    for delay in delays:
        turned = np.fft.fft(sky) * np.exp(-2j * np.pi * np.fft.fftfreq(width) * delay)
        late = np.fft.ifft(turned)[:, N : 2 * N]
        own = rng.normal(size=(2, N)) + (1j * rng.normal(size=(2, N)) if is_complex else 0)
        heard = np.sqrt(share) * late + np.sqrt(1 - share) * own
        found.append(
            heard.astype(np.complex64) if is_complex else np.rint(20 * heard.real).clip(-127, 127).astype(np.int8)
        )
    return found


def left(samples: list[np.ndarray], sideband: str = "upper", **said: object) -> list[ResidualDelay]:
    header = {"sample_rate_hz": RATE_HZ, "centre_frequency_hz": 1e9, "sideband": sideband, **said}
    made = correlate(
        samples, Bands(C, TAPS, spectra_per_heap=16), accumulate=4, header=header, running=Running(device="host")
    )
    summary = VisibilitySummary(made.info)
    for time, visibilities, weights in zip(made.timestamps.tolist(), made.visibilities, made.weights, strict=True):
        summary.write(time, visibilities, weights, 0)
    return residual_delays(summary)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_delays_are_found_with_their_signs(is_complex: bool, seed: int) -> None:
    delays = [0.0, *np.random.default_rng(seed + 50).uniform(-7, 7, 2)]
    found = left(recorded(delays, is_complex, seed))
    assert [(each.baseline.i, each.baseline.j) for each in found] == [(0, 1), (0, 2), (1, 2)]
    for each in found:
        expected = delays[each.baseline.j] - delays[each.baseline.i]
        assert each.is_found and each.delay_samples == pytest.approx(expected, abs=0.05)
        assert each.delay_s == pytest.approx(each.delay_samples / RATE_HZ)
        assert 0.2 < each.coefficient < 0.33, "it loses what comes too late for the filter"
        assert abs(expected) < each.largest_s * RATE_HZ


def test_a_band_that_falls_has_the_same_delays() -> None:
    (found,) = left(recorded([0.0, 6.25], False, 7), sideband="lower")
    assert found.delay_samples == pytest.approx(6.25, abs=0.05)
    assert found.text(["On", "Ef"]).startswith("On - Ef: Ef is 6.2")


@pytest.mark.parametrize("names", ["RL", None])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_swapped_polarisations_are_named(n: int, names: str | None) -> None:
    delays = [0.0, 2.0, -3.0, 5.0][:n]
    samples = recorded(delays, False, 9)
    samples[1] = samples[1][::-1]
    found = left(samples, polarisations=names)
    stated, products = ("YX", ("YX", "XY")) if names is None else ("LR", ("LR", "RL"))
    for each in found:
        ends = each.baseline.i, each.baseline.j
        assert each.is_found and each.delay_samples == pytest.approx(delays[ends[1]] - delays[ends[0]], abs=0.05)
        assert each.products == (products if 1 in ends else ())
        assert each.swapped == ({} if 1 not in ends else {1: stated} if n > 2 else {0: stated, 1: stated})
    assert ("probably swapped" in found[0].text("abcd")) and f'polarisations = "{stated}" of b' in found[0].text("abcd")
    assert all("swapped" not in each.text("abcd") for each in found if 1 not in (each.baseline.i, each.baseline.j))


def test_one_of_another_name_is_found_in_the_cross_hand() -> None:
    samples = recorded([0.0, 4.0], False, 3)
    (found,) = left([samples[0], samples[1][1:]])
    assert found.products == ("YX",) and found.swapped[1] == "Y" and found.delay_samples == pytest.approx(4, abs=0.05)
    assert left([samples[0], samples[1][:1]])[0].products == ()


def test_weak_cross_hands_say_nothing_beside_parallel_ones() -> None:
    """Leakage: both pairs of hands have the fringe."""
    samples = recorded([0.0, 4.0], False, 3)
    leaked = np.rint(0.7 * samples[1] + 0.6 * samples[1][::-1]).astype(np.int8)
    (found,) = left([samples[0], leaked])
    assert found.is_found and found.products == () and not found.swapped


def test_noise_alone_has_none() -> None:
    for seed in range(20):
        (found,) = left(recorded([0.0, 3.0], True, seed, share=0.0))
        assert not found.is_found and "a - b: no fringe within +-" in found.text("ab")


def test_the_command_tells_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, rows in enumerate(recorded([0.0, -2.5], False, 3)):
        np.save(tmp_path / f"{'ab'[number]}.npy", rows)
    words = ["correlate", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), "--channels", str(C), "--taps", str(TAPS)]
    words += ["--spectra-per-heap", "16", "--accumulate", "4", "--plot", str(tmp_path / "x.png"), "--device", "host"]
    typed([*words, "--header", "sample_rate_hz=3e6"], monkeypatch)
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith("m000 - m001: m001 is 2.") and " samples (0.8" in told and " earlier than m000" in told
