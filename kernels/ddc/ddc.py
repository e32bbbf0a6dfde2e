"""Narrowband down-conversion: mix, low-pass filter and decimate in one kernel.

y[p, j] = sum over k < taps of w[k] x[p, j D + k] e^(2 pi i (f (j D + k) + phase)), with D = decimation. Outputs that
decimation would throw away are never computed. A sample takes 4 taps / D flops and, for example, 10 bits of input.
Arithmetic limits variants in float32, while variants on tensor cores come near the memory's speed. Template:
templates/ddc.cu.j2; page: docs/kernels/ddc.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
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
    array_out,
    ceil_div,
    unpack_samples,
)

from .defaults import choices
from .problem import Problem
from .runs import blocks_of
from .space import MAX_HALF_BITS, SPACE, geometry_of
from .tensor import TensorGeometry

REFERENCE_ROWS = 1 << 13  # rows of decimation samples that the reference holds at once


class Ddc(Kernel[Problem]):
    """samples, weights, mix_frequency, mix_phase -> baseband."""

    least_arch = "sm_80"
    space = SPACE
    default: Mapping[str, object] = dict(
        ALGORITHM="register", WGS=64, COARSEN=8, PHASES=4, MIN_BLOCKS=1, TILES=4, STORE="direct"
    )
    arguments = ("baseband", "samples", "weights", "frequency_high", "frequency_low", "phase", "n_out", "row_bytes")
    tuned = (Problem(taps=256, decimation=16, sample_bits=10), Problem(taps=128, decimation=8, sample_bits=10))
    extra_problems = (
        Problem(taps=255, decimation=5, sample_bits=13),
        Problem(taps=32, decimation=32, sample_bits=7),
        Problem(taps=257, decimation=32, sample_bits=8),
        Problem(n_pols=1),
    )
    host_sizes: Mapping[str, int] = {"n_samples": 65536}
    scalar_defaults: Mapping[str, float] = {"mix_phase": 0.0}

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """baseband: complex64 [n_pols, n_out]; samples: uint8 [n_pols, row_bytes]; weights: float32 [taps]."""
        return {
            "baseband": array_out(np.complex64, problem.n_pols, problem.n_out),
            "samples": array_in(np.uint8, problem.n_pols, problem.row_bytes),
            "weights": array_in(np.float32, problem.taps),
        }

    def launch(self, problem: Problem, config: Config) -> Launch:
        """A block computes outputs of one polarisation. Polarisations are the grid's y axis."""
        geometry = geometry_of(problem, config)
        block, shared = (geometry.n_threads, 1, 1), geometry.shared_bytes
        if not isinstance(geometry, TensorGeometry):
            n_blocks = ceil_div(ceil_div(problem.n_out, geometry.outputs_per_block), int(config.TILES))
            return Launch((n_blocks, problem.n_pols, 1), block, shared)
        launch = Launch((blocks_of(problem, geometry.outputs_per_block), problem.n_pols, 1), block, shared)
        if not geometry.uses_wgmma:
            return launch
        return replace(launch, maps=(geometry.tensor_map,), most_blocks=geometry.min_blocks)

    def constants(self, problem: Problem, config: Config) -> dict[str, object]:
        """The template prints attributes of the geometry as its constants, under the same names."""
        return {"shape": geometry_of(problem, config)}

    def scalars(self, problem: Problem, inputs: Mapping[str, Any]) -> dict[str, np.generic]:
        high, low = divmod(fixed_point("mix_frequency", float(inputs["mix_frequency"]), 128), 2**64)
        return {
            "frequency_high": np.uint64(high),
            "frequency_low": np.uint64(low),
            "phase": np.uint64(fixed_point("mix_phase", float(inputs["mix_phase"]), 64)),
            "n_out": np.int64(problem.n_out),
            "row_bytes": np.int64(problem.row_bytes),
        }

    def sizes(self, problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Returns the sizes of the samples: every whole sample of the rows counts."""
        if len(shapes.get("samples", ())) != 2:
            return {}
        n_pols, n_bytes = shapes["samples"]
        return {"n_pols": n_pols, "n_samples": n_bytes * 8 // problem.sample_bits}

    def work(self, problem: Problem) -> Work:
        """Each tap of an output takes a multiply-add for the real and one for the imaginary part. Each byte moves once.
        Tensor cores take three multiply-adds in int8 instead for each byte of a sample; or two in float16 if halves
        hold the samples.
        """
        parts = 2 * problem.taps * problem.n_pols * problem.n_out
        n_bytes = problem.n_pols * problem.row_bytes + 4 * problem.taps + 8 * problem.n_pols * problem.n_out
        if 8 < problem.sample_bits <= MAX_HALF_BITS:
            return Work(4.0 * parts, n_bytes, "float16")
        return Work(6.0 * parts * ceil_div(problem.sample_bits, 8), n_bytes, "int8")

    def default_for(self, problem: Problem, device: Device) -> Mapping[str, Any]:
        """Returns a config for tensor cores if the device has them and the filter is long enough; else for threads."""
        return self.space.first_allowed(problem, device, choices(problem, device))

    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, object]:
        """Draws samples of all values with the same probability, and weights of random sign and similar size, so that
        each tap matters.
        """
        size = rng.uniform(0.5, 1.5, problem.taps) / np.sqrt(problem.taps)
        return {
            "samples": rng.integers(0, 256, (problem.n_pols, problem.row_bytes), dtype=np.uint8),
            "weights": (size * rng.choice((-1.0, 1.0), problem.taps)).astype(np.float32),
            "mix_frequency": float(rng.uniform(-0.5, 0.5)),
            "mix_phase": float(rng.uniform()),
        }

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """Returns one output of one stream; and two streams of one output more than a tile, with samples left over and
        rows that start at any byte. So some loads are aligned, some are not, and some end with the buffer.
        """
        n_samples = geometry_of(problem, config).outputs_per_block * problem.decimation + problem.taps
        while ceil_div(n_samples * problem.sample_bits, 8) % 2 == 0 and problem.sample_bits != 16:
            n_samples += 1
        return (replace(problem, n_pols=1, n_samples=problem.taps), replace(problem, n_pols=2, n_samples=n_samples))

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns baseband: complex128 [n_pols, n_out]. Mixed samples and taps are in rows of D, and products are
        summed along diagonals: y[j] = sum over r of row j + r of the samples times row r of the taps. It goes through
        chunks that fit in memory.
        """
        decimation, rows = problem.decimation, problem.rows_of_taps
        taps = np.zeros((rows, decimation))
        taps.reshape(-1)[: problem.taps] = inputs["weights"]
        baseband = np.zeros((problem.n_pols, problem.n_out), np.complex128)
        chunk = max(8, min(REFERENCE_ROWS, 2**20 // decimation) // 8 * 8)
        for first in range(0, problem.n_out, chunk):
            n_out = min(chunk, problem.n_out - first)
            n_rows = n_out + rows - 1
            phasors = mixer(inputs["mix_frequency"], inputs["mix_phase"], first * decimation, n_rows * decimation)
            for pol in range(problem.n_pols):
                samples = unpack_samples(
                    inputs["samples"][pol], problem.sample_bits, first * decimation, n_rows * decimation
                )
                out = baseband[pol, first : first + n_out]
                for phasor, part in ((phasors.real, out.real), (phasors.imag, out.imag)):
                    mixed = (phasor * samples).reshape(n_rows, decimation)
                    for r in range(0, rows, 256):
                        some = taps[r : r + 256]
                        products = some @ mixed[r : r + n_out + len(some) - 1].T
                        for i, row in enumerate(products):
                            part += row[i : i + n_out]
        return {"baseband": baseband}

    def tolerance(self, problem: Problem) -> Tolerance:
        """Allows for the rounding of a float32 sum of taps products, as docs/kernels/ddc.md derives. It is relative to
        the expected rms of outputs of such inputs, since the outputs at hand may be a single one near zero.
        """
        rms_of_samples = 2.0**problem.sample_bits / np.sqrt(12)
        rms_of_outputs = rms_of_samples * np.sqrt(13 / 12)  # sum of the squared weights: uniform in [0.5, 1.5], squared
        return Tolerance(atol=float(4 * np.sqrt(problem.taps + 16) * np.finfo(np.float32).eps * rms_of_outputs))


# ---------------------------------------------------------------------- phases as exact integers
def fixed_point(name: str, cycles: float, bits: int) -> int:
    """Returns ``cycles`` modulo 1 as a fraction of 2^bits, rounded down.

    Raises:
        UsageError: if ``cycles`` is not finite.
    """
    if not np.isfinite(cycles):
        raise UsageError(f"{name} is {cycles}: it must be a finite number of cycles")
    numerator, denominator = cycles.as_integer_ratio()
    return (numerator % denominator << bits) // denominator


def phase_at(mix_frequency: float, sample: int, mix_phase: float = 0.0) -> float:
    """Returns the mixer's phase at a sample, in cycles, in [0, 1). It is the ``mix_phase`` of a call that starts
    there.
    """
    return float((Fraction(mix_phase) + Fraction(mix_frequency) * sample) % 1) % 1.0


def mixer(frequency: float, phase: float, first: int, n_samples: int) -> np.ndarray:
    """Returns e^(2 pi i (f n + phase)) for n from ``first`` on: complex128 [n_samples], products of anchors and steps.

    The phases of anchors and steps are integers, in units of 2^-1200 cycles, so they are exact for all doubles.
    """
    n_steps = 1 << max(1, n_samples.bit_length() // 2)
    step, start = (fixed_point(name, value, 1200) for name, value in (("frequency", frequency), ("phase", phase)))
    anchors = _phasors(start + step * first, step * n_steps, ceil_div(n_samples, n_steps))
    phasors: np.ndarray = (anchors[:, np.newaxis] * _phasors(0, step, n_steps)).reshape(-1)[:n_samples]
    return phasors


def _phasors(start: int, step: int, n: int) -> np.ndarray:
    """Returns e^(2 pi i (start + step i)) for i < n: complex128 [n]. Both are in units of 2^-1200 cycles."""
    phases = [(start + step * i) % 2**1200 >> 1147 for i in range(n)]
    return np.exp(2j * np.pi * 2.0**-53 * np.array(phases, float))
