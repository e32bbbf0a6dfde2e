"""What float32, and halves between two launches, do to voltages of channelise: beside float64, and to a pure tone.

    python benchmarks/channelise_accuracy.py --device host

One line for each problem and config. Noise of rms 60, gains for an rms of 30: how many parts of the voltages are not
those of float64, rounded, and how far from a half these are. Then a full-scale tone in the middle of a channel, with
gains that make the largest of the other channels 120: the largest error there, relative to the tone, in dB, and what
rounding to 8 bits alone could do.
"""

import argparse
from dataclasses import asdict
from typing import Any

import numpy as np

import autotune
from autotune.cli.tables import print_table
from autotune.core.config import Config
from autotune.engines.files.packing import pack_samples
from autotune.sweep.request import problem_on, resolve

SPECTRA, TAPS, BITS, FULL = 16, 16, 10, 511
CASES: tuple[tuple[int, dict[str, str]], ...] = (
    *((256, {}), (1024, {}), (2048, {}), (2048, {"BETWEEN": "half"})),
    *((8192, {}), (8192, {"BETWEEN": "half"}), (32768, {}), (32768, {"BETWEEN": "half"})),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="host")
    given = parser.parse_args()
    rows = []
    for n_channels, wanted in CASES:
        kernel, target = resolve("channelise", given.device)
        values: dict[str, Any] = {"n_channels": n_channels, "taps": TAPS, "sample_bits": BITS}
        values |= {"spectra_per_heap": SPECTRA, "n_heaps": 1, "n_spectra": SPECTRA, "n_samples": 0}
        values["precision"] = "half" if wanted else "single"
        problem = problem_on(kernel, values, target)
        space = kernel.space.enumerate(problem, target.device, {name: (value,) for name, value in wanted.items()})
        config = space.nearest(Config({**kernel.default_config(problem, target.device), **wanted}))
        bank = Bank(n_channels, problem, config, given.device)
        rows.append((n_channels, config.get("BETWEEN", "-"), *bank.of_noise(), *bank.of_a_tone(), str(config)))
    print_table(("channels", "between", "differ", "from a half", "error", "rounding", "config"), rows)


class Bank:
    """One filter bank, on the device and in float64."""

    def __init__(self, n_channels: int, problem: Any, config: Config, device: str) -> None:
        self.n_channels, self.step = n_channels, 2 * n_channels
        self.problem, self.config, self.device = problem, config, device
        t = (np.arange(TAPS * self.step) + 0.5) / self.step - TAPS / 2
        window = np.sinc(t) * np.hanning(TAPS * self.step)
        self.weights = (window / window.sum() * self.step).astype(np.float32).reshape(TAPS, self.step)

    def exact(self, samples: np.ndarray) -> np.ndarray:
        """Returns the spectra in float64, complex [n_spectra, n_channels]."""
        rows = samples.astype(np.float64).reshape(-1, self.step)
        sums = sum(self.weights[t].astype(np.float64) * rows[t : t + SPECTRA] for t in range(TAPS))
        return np.asarray(np.fft.rfft(sums, axis=1)[:, : self.n_channels])

    def voltages(self, samples: np.ndarray, gains: np.ndarray) -> np.ndarray:
        """Returns what the device makes, complex [n_spectra, n_channels]."""
        zeros = np.zeros((SPECTRA, 2), np.float32)
        found = autotune.run(
            "channelise",
            inputs={
                "voltages": np.zeros((1, self.n_channels, SPECTRA, 2, 2), np.int8),
                "saturated": np.zeros((1, 2), np.uint32),
                "total_power": np.zeros(2, np.uint64),
                "samples": np.stack([pack_samples(samples, BITS)] * 2),
                "weights": self.weights,
                "offsets": np.repeat(np.arange(SPECTRA, dtype=np.int64)[:, None] * self.step, 2, axis=1),
                "delays": zeros,
                "phases": zeros,
                "gains": np.stack([gains] * 2, axis=1).astype(np.complex64),
            },
            problem=asdict(self.problem),
            config=dict(self.config),
            device=self.device,
        )
        parts = found["voltages"][0, :, :, 0].astype(np.float64)
        return np.asarray((parts[..., 0] + 1j * parts[..., 1]).T)

    def of_noise(self) -> tuple[str, str]:
        """Returns how many parts differ, and the largest distance of such a one from a half."""
        noise = np.random.default_rng(0).normal(0, 60, (SPECTRA + TAPS - 1) * self.step)
        samples = np.clip(np.rint(noise), -FULL - 1, FULL).astype(np.int16)
        exact = self.exact(samples)
        gains = np.full(self.n_channels, 30 / np.sqrt(np.mean(exact.real**2)))
        wanted, found = parts_of(exact * gains.astype(np.float32)), parts_of(self.voltages(samples, gains))
        differ = found != np.clip(np.rint(wanted), -127, 127)
        from_half = np.abs(wanted - np.floor(wanted) - 0.5)[differ]
        return f"{differ.sum()} of {differ.size} ({differ.mean():.1e})", f"{max(from_half, default=0.0):.1e}"

    def of_a_tone(self) -> tuple[str, str]:
        """Returns the largest error away from the tone, and half a unit of the voltages there, in dB of the tone."""
        at = self.n_channels // 3
        phase = 2 * np.pi * at * np.arange((SPECTRA + TAPS - 1) * self.step) / self.step
        samples = np.rint(FULL * np.cos(phase + 0.3)).astype(np.int16)
        exact = self.exact(samples)
        tone = np.abs(exact[:, at]).max()
        others = np.abs(np.arange(self.n_channels) - at) > TAPS
        gain = np.float32(120 / np.abs(exact[:, others]).max())
        found = self.voltages(samples, np.where(others, gain, 1 / tone))
        error = np.abs(parts_of(found - exact * gain)[:, others])
        more = error.max() - 0.5 > 1e-2  # less is a part that lies near a half
        return decibel(error.max() / gain / tone) if more else "none more", decibel(0.5 / gain / tone)


def parts_of(values: np.ndarray) -> np.ndarray:
    return np.stack([values.real, values.imag], axis=-1)


def decibel(ratio: float) -> str:
    return f"{20 * np.log10(ratio):.0f} dB"


if __name__ == "__main__":
    main()
