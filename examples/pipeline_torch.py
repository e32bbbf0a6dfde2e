"""A narrow band in PyTorch: a tuned down-converter among tensors, on a stream of its own. It needs a GPU.

    python examples/pipeline_torch.py

The package is made of one sweep of `ddc` that was recorded on an H200; docs/runtime.md says what it does on another
GPU. When all arrays that go in are tensors, what comes out is one, and the current stream is PyTorch's.
"""

import sys
from pathlib import Path

import numpy as np
import torch

import autotune
from autotune.engines.f.filters import low_pass
from autotune.engines.files.packing import pack_samples

ROOT = Path(__file__).parents[1] / "results" / "NVIDIA_H200" / "ddc"
RECORD = ROOT / "taps=256,decimation=16,sample_bits=10,n_pols=2,n_samples=33554432"
TAPS, DECIMATION, BITS, N_POLS = 256, 16, 10, 2
N_SAMPLES, N_BLOCKS = 1 << 23, 4  # samples in a block
CENTRE, TONE = 0.21, 0.2151  # cycles a sample: the middle of the narrow band, and a tone in it


def main() -> None:
    package = autotune.emit([RECORD], "tuned_ddc")
    sys.path.insert(0, str(package.parent))
    import tuned_ddc

    ddc = tuned_ddc.ddc(taps=TAPS, decimation=DECIMATION, sample_bits=BITS)
    print(ddc.choice)  # config, tier, evidence, for the GPU at hand

    rng = np.random.default_rng(1)
    wave = 100 * np.cos(2 * np.pi * TONE * np.arange(N_SAMPLES)) + rng.normal(0, 50, (N_POLS, N_SAMPLES))
    packed = torch.from_numpy(pack_samples(np.rint(wave).clip(-511, 511).astype(np.int16), BITS))
    block = packed.pin_memory()  # pinned: its copy does not wait for the host
    weights = torch.from_numpy(low_pass(TAPS, DECIMATION)).cuda()
    samples = block.cuda()

    # The mixer turns forward, so a negative frequency moves CENTRE to 0. The first call compiles and loads, and returns
    # a new tensor: complex64 [n_pols, n_out].
    baseband = ddc(samples, weights, mix_frequency=-CENTRE)
    power = torch.zeros(baseband.shape, device="cuda")

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())  # wait until the tensors above are complete
    with torch.cuda.stream(stream):
        for _ in range(N_BLOCKS):
            samples.copy_(block, non_blocking=True)
            ddc(samples, weights, mix_frequency=-CENTRE, out=baseband)  # the call reuses its memory, and does not wait
            power += torch.fft.fft(baseband).abs() ** 2
    stream.synchronize()

    # A frequency f of the samples is at (f - CENTRE) DECIMATION cycles an output.
    spectrum = power.sum(dim=0).cpu().numpy()
    found = np.fft.fftfreq(spectrum.size)[spectrum.argmax()] / DECIMATION + CENTRE
    print(ddc.problem)  # the problem of the latest call, whose sizes follow from the tensors
    print(f"most power is at {found:.4f} cycles a sample; the tone is at {TONE}")


if __name__ == "__main__":
    main()
