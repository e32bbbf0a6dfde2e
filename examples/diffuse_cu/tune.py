"""Tunes a 2-D kernel with float arguments in its unchanged .cu file, and packs the winner.

    python examples/diffuse_cu/tune.py [DEVICE]

An array says what the kernel must compute: NumPy makes it once, at the size that is tuned. Each config is compared
with it before it is timed. Without a GPU the device is `host`, where the CPU runs the kernel.
"""

import sys
from pathlib import Path

import numpy as np

import autotune

WIDTH, HEIGHT = 1000, 700  # points; neither is a multiple of a block, so the guards at the edges are tested
RATE, STEP_S = 0.2, 0.01  # the float arguments
SPACE = {"block_size_x": [16, 32, 64], "block_size_y": [4, 8], "rows_per_thread": [1, 2, 4]}


def diffused(before: np.ndarray, source: np.ndarray, rate: float, step_s: float) -> np.ndarray:
    """Returns the plate after one step, float64 [height, width]."""
    padded = np.pad(before.astype(np.float64), 1, mode="edge")
    neighbours = padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
    return before + rate * (neighbours - 4.0 * before) + step_s * source


def main(device: str = "auto") -> None:
    rng = np.random.default_rng(1)
    before = rng.uniform(280, 300, (HEIGHT, WIDTH)).astype(np.float32)  # kelvins
    source = rng.uniform(0, 5, (HEIGHT, WIDTH)).astype(np.float32)  # kelvins a second
    # A number has the type of its parameter in the signature: float32 for float, int32 for int.
    rate, step_s = np.float32(RATE), np.float32(STEP_S)
    arguments = [np.zeros_like(before), before, source, rate, step_s, np.int32(WIDTH), np.int32(HEIGHT)]
    after = diffused(before, source, float(rate), float(step_s)).astype(np.float32)

    configs, environment = autotune.tune_kernel(
        "diffuse",
        str(Path(__file__).with_name("diffuse.cu")),
        (WIDTH, HEIGHT),  # the extent of the grid: x, y
        arguments,
        SPACE,
        grid_div_y=["block_size_y", "rows_per_thread"],  # rows that a block covers; along x a block covers block_size_x
        restrictions="block_size_x * block_size_y >= 128",
        answer=[after, None, None, None, None, None, None],  # None: an input, which must stay unchanged
        atol=1e-4,  # a few roundings of numbers near 300, whose last bit is 3e-5
        device=device,
    )
    print(f"{len(configs)} configs are right; the fastest is {configs.sweep.best.config}")

    # The package holds the winner. A call takes plates of any size and other floats, and does not compile again.
    package = autotune.emit([configs.sweep.path], "tuned_cu", kernels=[str(environment["definition"])])
    print(f"{package.name}: on a GPU, {package.name}.diffuse()(before, source, rate, step_s)")


if __name__ == "__main__":
    main(*sys.argv[1:2])
