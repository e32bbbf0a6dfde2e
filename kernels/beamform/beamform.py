"""Beamforming: weighted sums of all antennas' voltages, rounded to 8 bits, with the clipped samples counted.

beam[n, b, c, t] = q(sum over a, p of W[b, a, p, c] x[n, a, c, t, p]), with W = w e^(j pi d (c0 + c - C / 2)) for
antennas that are present in batch n, else 0. A good variant of few beams is bound by memory: voltages are read once and
beams written once. Template: templates/beamform.cu.j2; page: docs/kernels/beamform.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from autotune import (
    Array,
    Config,
    Device,
    Kernel,
    Launch,
    Tolerance,
    UsageError,
    Work,
    array_in,
    array_inout,
)

from .defaults import starting_configs
from .geometry import Geometry
from .problem import Problem
from .space import SPACE
from .voltages import (
    beams_before_rounding,
    dither_of,
    drawn_voltages,
    quantised,
    shape_of_voltages,
    voltages_of,
    weights_of,
)

RMS, LOUD_RMS = 12.0, 40.0  # parts of a usual beam, and of one in four that is sometimes clipped
LONE = 7, 3  # beams b with b % 7 == 3 have one antenna and exact sums
LONE_WEIGHTS = (1, 0.5, -1j, -0.5, 1j)
MOST_EXACT = 1 << 21  # products of a problem up to which inputs keep every rounding unambiguous
# Sums keep this distance from a half, in rms of the products that they add up: more than these weights are wrong by. Of
# planes, whose errors are alike, products are of the largest weight. With more beams than the second number, hardly any
# voltages keep it in all of them.
MARGINS = {"single": (3e-5, 512), "half": (1e-3, 24), "planes": (2e-4, 48)}


class Beamform(Kernel[Problem]):
    """voltages, weights, delays, pols, present -> some of beams. It adds to saturated."""

    least_arch = "sm_80"
    space = SPACE
    default: Mapping[str, object] = dict(
        ALGORITHM="threads", BEAMS_PER_BLOCK=8, TIMES=256, COARSEN=2, ANTENNAS_PER_STAGE=16, STAGES=3, WEIGHTS="kept",
        SPLIT=4, STORE="plain",
    )  # fmt: skip
    arguments = (
        *("beams", "saturated", "voltages", "weights", "delays", "pols", "present"),
        *("n_antennas", "n_channels", "first_batch", "n_used", "first_channel", "n_all_channels", "seed", "first_time"),
    )
    tuned = (
        Problem(),
        Problem(n_beams=1),
        Problem(n_beams=4),
        Problem(n_beams=16, precision="half"),
        Problem(n_beams=64, precision="half"),
        Problem(n_beams=512, precision="half", n_channels=64, n_batches=8),
        Problem(n_beams=16, precision="planes"),
        Problem(n_beams=64, precision="planes"),
    )
    extra_problems = (
        Problem(n_beams=3, n_times=36),
        Problem(n_beams=5, n_times=40, mixes=True, dither=True),
        Problem(n_beams=9, n_times=72, bits=4),
        Problem(n_beams=1, n_times=8, bits=4, nibbles="real_high", mixes=True),
        Problem(n_beams=11, n_times=36, precision="half"),
        Problem(n_beams=17, n_times=72, bits=4, mixes=True, precision="half"),
        Problem(n_beams=19, n_times=36, precision="planes", dither=True),
        Problem(n_beams=9, n_times=72, bits=4, nibbles="real_high", mixes=True, precision="planes"),
    )
    host_sizes: Mapping[str, int] = {"n_antennas": 11, "n_channels": 2, "n_batches": 3}

    def arguments_for(self, problem: Problem) -> tuple[str, ...]:
        """Returns all arguments, without pols for beams that have both polarisations."""
        return tuple(name for name in self.arguments if name != "pols" or not problem.mixes)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """voltages: int8 [n_batches, n_antennas, n_channels, n_times, 2, 2], without the last axis at 4 bits; weights:
        complex64 [n_beams, n_antennas], with mixes [n_beams, n_antennas, 2]; delays: float32 [n_beams, n_antennas];
        pols: uint8 [n_beams]; present: uint8 [n_batches, n_antennas]; beams: int8 [n_batches, n_beams, n_channels,
        n_times, 2]; saturated: uint32 [n_batches, n_beams]. A launch reads and writes only the batches in its range.
        """
        n_batches, n_beams, n_antennas = problem.n_batches, problem.n_beams, problem.n_antennas
        pols = (2,) if problem.mixes else ()
        found = {
            "beams": array_inout(np.int8, n_batches, n_beams, problem.n_channels, problem.n_times, 2),
            "saturated": array_inout(np.uint32, n_batches, n_beams),
            "voltages": array_in(np.int8, *shape_of_voltages(problem)),
            "weights": array_in(np.complex64, n_beams, n_antennas, *pols),
            "delays": array_in(np.float32, n_beams, n_antennas),
            "pols": array_in(np.uint8, n_beams, align=1),
            "present": array_in(np.uint8, n_batches, n_antennas, align=1),
        }
        return {name: found[name] for name in self.arguments_for(problem) if name in found}

    def launch(self, problem: Problem, config: Config) -> Launch:
        """A block makes a tile of beams and times of a channel, for one part of the batches."""
        geometry = Geometry(problem, config)
        return Launch((geometry.n_blocks, 1, 1), (geometry.n_threads, 1, 1), geometry.shared_bytes)

    def constants(self, problem: Problem, config: Config) -> dict[str, object]:
        return {"shape": Geometry(problem, config)}

    def default_for(self, problem: Problem, device: Device) -> Mapping[str, Any]:
        """Returns a tile that fits the beams and the batch. A prototype chose it on an H100: no record tells yet."""
        return self.space.first_allowed(problem, device, starting_configs(problem))

    def scalars(self, problem: Problem, inputs: Mapping[str, object]) -> dict[str, np.generic]:
        return {
            "n_antennas": np.int32(problem.n_antennas),
            "n_channels": np.int32(problem.n_channels),
            "first_batch": np.int32(problem.first_batch),
            "n_used": np.int32(len(problem.batches)),
            "first_channel": np.int32(problem.first_channel),
            "n_all_channels": np.int32(problem.all_channels),
            "seed": np.int32(problem.seed),
            "first_time": np.int64(problem.first_time),
        }

    def sizes(self, problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Returns the sizes of the voltages. Raises UsageError where their batches have another length."""
        voltages = shapes.get("voltages", ())
        if len(voltages) != len(shape_of_voltages(problem)):
            return {}
        n_batches, n_antennas, n_channels, n_times = voltages[:4]
        if n_times != problem.n_times:
            raise UsageError(f"voltages has n_times={n_times}, the problem n_times={problem.n_times}")
        return {"n_batches": n_batches, "n_antennas": n_antennas, "n_channels": n_channels}

    def work(self, problem: Problem) -> Work:
        """A complex multiply-add is 8 operations. Voltages are read once, and beams written once."""
        samples = len(problem.batches) * problem.n_channels * problem.n_times
        products = problem.n_antennas * problem.n_beams * problem.n_pols
        weights = problem.n_beams * problem.n_antennas * (8 * problem.n_pols + 4)
        n_bytes = samples * (problem.n_antennas * problem.jones_bytes + 2 * problem.n_beams) + weights
        unit = {"single": "float32", "half": "float16", "planes": "int8"}[problem.precision]
        return Work(8.0 * samples * products, n_bytes, unit)

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """Returns one antenna; and a range of batches with antennas that begin a third stage, at the end of a wide
        band, where the number of the first sample passes 2^32.
        """
        one = replace(
            problem, n_antennas=1, n_channels=1, n_batches=1, first_batch=0, n_used=0, first_channel=0, n_all_channels=0
        )
        n_antennas = min(2 * int(config.ANTENNAS_PER_STAGE) + 1, problem.n_antennas + 22)
        several = replace(one, n_antennas=n_antennas, n_batches=5, first_batch=1, n_used=3, first_channel=30000)
        several = replace(several, n_all_channels=32768, seed=12345, first_time=2**32 - 2 * problem.n_times + 3)
        return (one, several)

    # ------------------------------------------------------------------ inputs and truth
    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, object]:
        """Draws voltages of all values. Beams have parts of 12 rms, one in four of 40, some of which are clipped; some
        have a single antenna, and sums that are integers or halves. One antenna in eight is missing, and one delay in
        eight is a turn a channel. If there are few products, no other sum comes near a half.
        """
        n_beams, n_antennas = problem.n_beams, problem.n_antennas
        arrays = self.arrays(problem)
        shape = arrays["weights"].shape
        size = np.exp(rng.normal(0, 0.3, shape))
        power = np.sum(size**2, axis=tuple(range(1, len(shape))), keepdims=True)
        rms = np.where(np.arange(n_beams) % 4 == 1, LOUD_RMS, RMS).reshape(-1, *[1] * (len(shape) - 1))
        rms_in = 16.0 if problem.bits == 8 else 4.6
        weights = (rms / rms_in / np.sqrt(power) * size * np.exp(2j * np.pi * rng.uniform(size=shape))).astype(
            np.complex64
        )
        delays = rng.uniform(-1.5, 1.5, (n_beams, n_antennas)).astype(np.float32)
        delays[rng.integers(0, 8, delays.shape) == 0] = 2.0
        for b in range(LONE[1], n_beams, LONE[0]):
            weights[b], delays[b] = 0, 0
            weights[(b, b % n_antennas, *((b // 7 % 2,) if problem.mixes else ()))] = LONE_WEIGHTS[b // 7 % 5]
        present = rng.integers(1, 256, arrays["present"].shape, dtype=np.uint8)
        present[rng.integers(0, 8, present.shape) == 0] = 0
        made: dict[str, Any] = {
            "beams": rng.integers(-128, 128, arrays["beams"].shape, dtype=np.int8),
            "saturated": rng.integers(0, 1000, arrays["saturated"].shape, dtype=np.uint32),
            "voltages": drawn_voltages(problem, rng, shape_of_voltages(problem)),
            "weights": weights,
            "delays": delays,
            "pols": rng.integers(0, 2, n_beams, dtype=np.uint8),
            "present": present,
        }
        made = {name: made[name] for name in arrays}
        if is_exact(problem):
            avoid_halves(problem, made, rng)
        return made

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns beams: int8, and saturated: int64. It evaluates the formula in complex128."""
        beams, saturated = inputs["beams"].copy(), inputs["saturated"].astype(np.int64)
        for n, c, sums in beams_before_rounding(problem, inputs):
            beams[n, :, c], clipped = quantised(sums)
            saturated[n] += clipped.sum(axis=-1)
        return {"beams": beams, "saturated": saturated}

    def meaningless(self, problem: Problem) -> tuple[str, ...]:
        """All kinds: these inputs make rounding unambiguous; with others a part may be one off."""
        return ("large", "small", "tied", "negative", "zeros")

    def tolerance(self, problem: Problem) -> Mapping[str, Tolerance]:
        """Nothing may differ if the inputs make rounding unambiguous; otherwise a part may be rounded the other way."""
        if is_exact(problem):
            return {"beams": Tolerance(), "saturated": Tolerance()}
        # The share of samples of a loud beam so near the limit that they may be clipped or not; its density is 0.0003.
        near = 2 * 0.001 * MARGINS[problem.precision][0] * LOUD_RMS
        return {
            "beams": Tolerance(atol=1.0),
            "saturated": Tolerance(atol=4 + near * problem.n_channels * problem.n_times),
        }


def is_exact(problem: Problem) -> bool:
    """Returns whether inputs keep sums so far from halves that no rounding is in doubt."""
    products = problem.n_batches * problem.n_channels * problem.n_times * problem.n_antennas * problem.n_beams
    return products <= MOST_EXACT and problem.n_beams <= MARGINS[problem.precision][1]


def avoid_halves(problem: Problem, inputs: dict[str, Any], rng: np.random.Generator) -> None:
    """Draws the voltages of a time again until no sum of a beam is near a half, but for those that are exact."""
    for c in range(problem.n_channels):
        weights = weights_of(problem, inputs, c).reshape(problem.n_beams, -1)
        sizes = np.abs(weights)
        if problem.precision == "planes":
            sizes[:] = sizes.max(axis=-1, keepdims=True)
        for n in problem.batches:
            voltages, doubtful = inputs["voltages"][n, :, c], np.arange(problem.n_times)
            while len(doubtful):
                x = voltages_of(problem, inputs, n, c, doubtful)
                parts = (weights @ x + dither_of(problem, n, c, doubtful)).view(np.float64)
                near = MARGINS[problem.precision][0] * np.sqrt(sizes**2 @ np.abs(x) ** 2)
                near[LONE[1] :: LONE[0]] = -1  # sums that are exact are never near
                from_half = np.abs(parts - np.floor(parts) - 0.5).reshape(*near.shape, 2)
                is_near = from_half < near[..., np.newaxis]
                doubtful = doubtful[is_near.any(axis=(0, 2))]
                voltages[:, doubtful] = drawn_voltages(problem, rng, voltages[:, doubtful].shape)
