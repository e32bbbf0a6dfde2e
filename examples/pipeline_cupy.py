"""A spectrometer on the GPU: a tuned filter bank between copies, cuFFT and CuPy, on one stream. It needs a GPU.

    python examples/pipeline_cupy.py

The package is made of the sweeps of `pfb_fir` recorded on an H200. On another GPU it answers by another tier: the same
architecture, a prediction, or the default (docs/runtime.md). Your own records do as well.
"""

import sys
from pathlib import Path

import cupy as cp
import numpy as np

import autotune
from autotune.engines.f.filters import prototype
from autotune.engines.files.packing import pack_samples

RECORDS = Path(__file__).parents[1] / "results" / "NVIDIA_H200" / "pfb_fir"
N_CHANNELS, TAPS, BITS, N_POLS = 1024, 16, 10, 2
N_SPECTRA, N_BLOCKS = 512, 8  # spectra in a block, and blocks in the stream
TONE = 300.25  # channels


def main() -> None:
    package = autotune.emit([RECORDS], "tuned_pfb")
    sys.path.insert(0, str(package.parent))
    import tuned_pfb

    step = 2 * N_CHANNELS  # real samples from one spectrum to the next
    kernel = tuned_pfb.pfb_fir(taps=TAPS, n_channels=N_CHANNELS, sample_bits=BITS)
    print(kernel.choice)  # config, tier, evidence, for the GPU at hand

    # The stream is a tone in noise, packed as a digitiser sends it. A block overlaps the next by TAPS - 1 steps.
    n_samples = (N_SPECTRA + TAPS - 1) * step
    rng = np.random.default_rng(1)
    wave = 100 * np.cos(np.pi * TONE / N_CHANNELS * np.arange(n_samples)) + rng.normal(0, 50, (N_POLS, n_samples))
    host = cp.cuda.alloc_pinned_memory(N_POLS * n_samples * BITS // 8)  # pinned: the copy does not wait for the host
    packed = np.frombuffer(host, np.uint8, N_POLS * n_samples * BITS // 8).reshape(N_POLS, -1)
    packed[:] = pack_samples(np.rint(wave).clip(-511, 511).astype(np.int16), BITS)

    # The kernel's arrays are allocated once, and the kernel is compiled before the first block.
    samples = cp.empty(packed.shape, cp.uint8)
    filtered = cp.empty((N_POLS, N_SPECTRA, step), cp.float32)
    power = cp.zeros((N_POLS, N_CHANNELS), cp.float32)
    total = cp.zeros(N_POLS, cp.uint64)  # the kernel adds to it: such arrays are inputs, and change in place
    weights, offsets = cp.asarray(prototype(N_CHANNELS, TAPS)), cp.zeros(N_POLS, cp.int64)
    sizes = {"n_pols": N_POLS, "n_spectra": N_SPECTRA, "n_samples": n_samples}
    prepared = kernel.prepare(**sizes)  # the config is chosen, compiled and loaded: calls only launch it
    cp.cuda.Device().synchronize()  # wait until arrays of the default stream exist for the other one

    stream = cp.cuda.Stream(non_blocking=True)
    arrays = {"samples": samples, "weights": weights, "offsets": offsets, "total_power": total, "filtered": filtered}
    with stream:  # CuPy's own work uses this stream, too
        for _ in range(N_BLOCKS):
            samples.set(packed, stream=stream)
            prepared(**arrays, stream=stream)
            spectra = cp.fft.rfft(filtered, axis=-1)[..., :N_CHANNELS]
            power += (spectra.real**2 + spectra.imag**2).mean(axis=1)
    stream.synchronize()

    rms = (int(total[0]) / (N_BLOCKS * N_SPECTRA * step)) ** 0.5

    # `kernel` is called without preparing: it finds the sizes in the inputs, and returns a new array, or fills `out`.
    # A definition says what sizes follow; pfb_fir's leaves one spectrum to the offsets.
    again = kernel(samples=samples, weights=weights, offsets=offsets, total_power=total)
    print("a call without preparing gives the same:", bool(cp.allclose(again, filtered[:, :-1], atol=1e-2)))
    print(f"rms of the samples: {rms:.1f}")
    print(f"most power is in channel {int(power[0].argmax())}; the tone is at {TONE}")


if __name__ == "__main__":
    main()
