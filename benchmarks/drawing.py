"""Problems of each kernel, drawn by a seed over the whole ranges of their fields, as strangers would ask for them.

    python benchmarks/drawing.py --kernel correlate --seed 2001 --problems 10 > drawn.toml
    autotune campaign drawn.toml

Run as a program, it prints a campaign of problems of a usual size.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from autotune.core.definition import AnyKernel
from autotune.core.errors import UsageError
from autotune.source.registry import load_kernel

Draw = Callable[[random.Random], dict[str, Any]]
LEAST_BYTES, MOST_BYTES, MOST_FLOPS = 4e6, 4e8, 4e11  # of a launch of a usual size


def between(rng: random.Random, least: int, most: int) -> int:
    """Returns an integer whose logarithm is uniform."""
    return min(most, int(least * ((most + 1) / least) ** rng.random()))


def of_ddc(rng: random.Random) -> dict[str, Any]:
    taps = between(rng, 1, 2048)
    return {
        "taps": taps,
        "decimation": between(rng, 1, 256),
        "sample_bits": rng.randint(2, 16),
        "n_pols": rng.randint(1, 4),
        "n_samples": taps + between(rng, 1, 2**26),
    }


def of_correlate(rng: random.Random) -> dict[str, Any]:
    bits, layout = rng.choice((4, 8, 16)), rng.choice(("blocks", "batches"))
    unit, n_slices = 128 // bits, rng.choice((1, 1, 2, 8))
    return {
        "bits": bits,
        "layout": layout,
        "n_receivers": between(rng, 1, 1024),
        "n_times": unit if layout == "blocks" else unit // 4 * between(rng, 1, 64),
        "overwrites": rng.random() < 0.5,
        "count_lowest": bits < 16 and rng.random() < 0.3,
        "n_channels": between(rng, 1, 32768),
        "n_batches": n_slices * between(rng, 1, 30),
        "n_slices": n_slices,
    }


def heap(rng: random.Random, layout: str) -> dict[str, Any]:
    times = 2 ** rng.randint(0, 6)
    spectra = times * between(rng, 1, 16) if layout == "blocks" else between(rng, 1, 1024)
    return {"layout": layout, "times_per_block": times, "spectra_per_heap": spectra}


def of_channelise(rng: random.Random) -> dict[str, Any]:
    return {
        "taps": between(rng, 1, 64),
        "n_channels": 2 ** rng.randint(6, 16),
        "sample_bits": rng.choice((*range(2, 17), 64)),
        "n_pols": rng.randint(1, 2),
        "bits": rng.choice((4, 8)),
        "precision": rng.choice(("single", "half")),
        **heap(rng, rng.choice(("batches", "blocks"))),
        "n_heaps": between(rng, 1, 256),
    }


def of_pfb_fir(rng: random.Random) -> dict[str, Any]:
    return {
        "taps": between(rng, 1, 64),
        "n_channels": between(rng, 8, 200000),
        "sample_bits": rng.choice((*range(2, 17), 64)),
        "n_pols": rng.randint(1, 4),
        "n_spectra": between(rng, 1, 100000),
    }


def of_postproc(rng: random.Random) -> dict[str, Any]:
    return {
        "n_channels": between(rng, 1, 200000),
        "nyquist": rng.randint(0, 1),
        "n_pols": rng.randint(1, 2),
        "bits": rng.choice((4, 8)),
        **heap(rng, rng.choice(("batches", "blocks"))),
        "n_receivers": between(rng, 1, 64),
        "n_heaps": between(rng, 1, 256),
    }


def of_accumulate(rng: random.Random) -> dict[str, Any]:
    return {
        "n_accumulators": between(rng, 1, 64),
        "n_channels": between(rng, 1, 32768),
        "n_receivers": between(rng, 1, 1024),
    }


def of_dequantize(rng: random.Random) -> dict[str, Any]:
    scaled = rng.random() < 0.5
    return {
        "out_type": rng.choice(("float32", "float16", "bfloat16")),
        "scale_offset": scaled,
        "missing": rng.random() < 0.5,
        "n_beams": between(rng, 1, 64),
        "n_freqs": between(rng, 1, 32768),
        "n_times": (256 if scaled else 8) * between(rng, 1, 1024),
    }


DRAWS: dict[str, Draw] = {
    "ddc": of_ddc,
    "correlate": of_correlate,
    "channelise": of_channelise,
    "pfb_fir": of_pfb_fir,
    "postproc": of_postproc,
    "accumulate": of_accumulate,
    "dequantize": of_dequantize,
}


def drawn(kernel: AnyKernel, n: int, seed: int) -> Iterator[Any]:
    """Yields ``n`` problems, the same for the same seed."""
    rng = random.Random(f"{kernel.name} {seed}")
    for _ in range(n):
        yield kernel.problem(DRAWS[kernel.name](rng))


def usual(kernel: AnyKernel, n: int, seed: int) -> Iterator[Any]:
    """Yields ``n`` problems that are allowed and whose launch is neither tiny nor huge, the same for the same seed."""
    rng = random.Random(f"{kernel.name} {seed}")
    while n:
        try:
            problem = kernel.problem(DRAWS[kernel.name](rng))
            work = kernel.work(problem)
        except UsageError:
            continue
        if LEAST_BYTES <= work.bytes <= MOST_BYTES and work.flops <= MOST_FLOPS:
            n -= 1
            yield problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", required=True, choices=DRAWS)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--problems", type=int, default=10)
    parser.add_argument("--trials", type=int, default=40, help="of each sweep")
    asked = parser.parse_args()
    kernel = load_kernel(asked.kernel)
    print(f"# Drawn by benchmarks/drawing.py, seed {asked.seed}.")
    print(f'kernel = "{kernel.name}"\nrevisit = 0\n')
    print(f"[sweep]\ntrials = {asked.trials}\nfinalists = 2\nsamples = 9")
    for problem in usual(kernel, asked.problems, asked.seed):
        print("\n[[problems]]")
        for name, value in vars(problem).items():
            print(f"{name} = {json.dumps(value)}")


if __name__ == "__main__":
    main()
