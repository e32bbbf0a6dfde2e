"""An F-engine's filter bank, FFT and quantisation without spectra in memory: packed samples become voltages.

z[s, p, c] = sum over t < taps of w[t, c] x[p, o[s, p] + t L + c], c < L; X is its Fourier transform; and
v[s, p, k] = X[s, p, k] e^(i (phase[s, p] - pi delay[s, p] (k - C/2) / C)) gain[k, p], k < C, is rounded, saturated and
transposed. L is 2 C for real samples and C for complex ones. pfb_fir, an FFT and postproc take three passes over
float32 spectra; channelise takes one pass or two. Template: templates/channelise.cu.j2; page:
docs/kernels/channelise.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import log2
from typing import Any

import numpy as np

from autotune import (
    Array,
    Config,
    Device,
    Kernel,
    Launch,
    Tolerance,
    Work,
    array_in,
    array_inout,
    array_workspace,
    ceil_div,
    unpack_samples,
)

from .defaults import parts
from .geometry import Geometry
from .problem import Problem
from .space import SPACE

TABLE_THREADS = 256  # threads of a block that computes tables
MOST_MULTIPROCESSORS = 256  # limit for a device; with one launch, more blocks than run at once would find no part left
REFERENCE_SAMPLES = 1 << 22  # samples that inputs and reference hold at once
MOST_EXACT = 300  # spectra up to which inputs keep every rounding unambiguous
MARGIN = 8e-6  # share of the largest voltage: parts keep this distance from a half, which is more than float32's error
FAR = -(1 << 40)  # start of spectra that are not computed

TABLES = ("twiddles", "splits", "polar")


class Channelise(Kernel[Problem]):
    """samples, weights, offsets, delays, phases, gains -> some of voltages. It adds to saturated and total_power."""

    least_arch = "sm_80"
    space = SPACE
    default: Mapping[str, object] = dict(
        ALGORITHM="one", SPECTRA=16, POLS="in_turn", THREADS=512, MIN_BLOCKS=1, FIR_SPECTRA=16, FIR_TAPS=16,
        POST_SPECTRA=16, TWIDDLES="global", KEPT="registers", SAMPLES="ahead", UNPACKING="in_place",
    )  # fmt: skip
    arguments = (
        *("voltages", "saturated", "total_power", "samples", "weights", "offsets", "delays", "phases", "gains"),
        *("first_spectrum", "n_spectra", "n_times", "row_bytes"),
    )
    tuned = (
        Problem(n_samples=2**26 + 2**15),
        Problem(n_channels=8192, n_heaps=16, n_samples=2**26 + 2**18),
        Problem(n_channels=32768, n_heaps=4, n_samples=2**26 + 2**20),
    )
    extra_problems = (
        Problem(taps=5, n_channels=64, sample_bits=13, spectra_per_heap=40, n_heaps=2),
        Problem(taps=8, n_channels=128, sample_bits=64, spectra_per_heap=32, n_heaps=2),
        Problem(taps=1, n_channels=64, sample_bits=2, n_pols=1, bits=4, spectra_per_heap=33, n_heaps=2),
        Problem(taps=33, n_channels=256, sample_bits=16, layout="blocks", spectra_per_heap=32, n_heaps=2),
        Problem(taps=3, n_channels=64, sample_bits=8, bits=4, nibbles="real_high", spectra_per_heap=34, n_heaps=2),
    )
    host_sizes: Mapping[str, int] = {"n_heaps": 2, "n_spectra": 20, "n_samples": 0}

    def arguments_for(self, problem: Problem) -> tuple[str, ...]:
        """Returns all arguments, without total_power for complex floats, whose sum of squares would not be exact."""
        return tuple(name for name in self.arguments if name != "total_power" or not problem.is_complex)

    def arrays(self, problem: Problem) -> dict[str, Array]:
        """voltages: int8 [n_heaps, C, spectra_per_heap, n_pols, 2], or [C, n_times / times_per_block, n_pols,
        times_per_block, 2], without the last axis at 4 bits; saturated: uint32 [n_heaps, n_pols]; total_power: uint64
        [n_pols]; samples: uint8 [n_pols, row_bytes] (complex64 [n_pols, n_samples]); weights: float32 [taps, L];
        offsets: int64 [n_times, n_pols], in samples; delays, phases: float32 [n_times, n_pols]; gains: complex64 [C,
        n_pols]. A launch reads and writes only the spectra in its range.
        """
        of_times = problem.n_times, problem.n_pols
        samples = (np.complex64, problem.n_samples) if problem.is_complex else (np.uint8, problem.row_bytes)
        found = {
            "voltages": array_inout(np.int8, *shape_of_voltages(problem)),
            "saturated": array_inout(np.uint32, problem.n_heaps, problem.n_pols),
            "total_power": array_inout(np.uint64, problem.n_pols, align=8),
            "samples": array_in(samples[0], problem.n_pols, samples[1]),
            "weights": array_in(np.float32, problem.taps, problem.step),
            "offsets": array_in(np.int64, *of_times, align=8),
            "delays": array_in(np.float32, *of_times),
            "phases": array_in(np.float32, *of_times),
            "gains": array_in(np.complex64, problem.n_channels, problem.n_pols),
        }
        return {name: found[name] for name in self.arguments_for(problem) if name in found}

    def launch(self, problem: Problem, config: Config) -> Launch:
        """Returns a launch that computes tables from gains and sizes, then one or two that filter and transform."""
        shape = Geometry(problem, config)
        has = self.arguments_for(problem)
        workspace = {
            "twiddles": array_workspace(np.complex64, shape.n_twiddles),
            "splits": array_workspace(np.complex64, shape.n_all_pairs),
            "polar": array_workspace(np.float32, problem.n_pols, shape.n_all_pairs, 4),
        }
        filtering = [name for name in ("total_power", "samples", "weights", "offsets") if name in has]
        place = ("first_spectrum", "n_spectra")
        source = ("between",) if shape.n1 > 1 else (*filtering, "row_bytes", "n_taken")
        n_blocks = shape.n_blocks
        if shape.n1 == 1:
            workspace["n_taken"] = array_workspace(np.uint32, 1)  # counter of the parts that blocks have taken
            n_blocks = min(n_blocks, MOST_MULTIPROCESSORS * int(config.MIN_BLOCKS))
        last = Launch(
            (n_blocks, 1, 1),
            (int(config.THREADS), 1, 1),
            shape.shared_bytes,
            arguments=("voltages", "saturated", "delays", "phases", *TABLES, *place, "n_times", *source),
        )
        if shape.n1 > 1:
            value = (np.float16, 2) if config.BETWEEN == "half" else (np.float32, 2)
            workspace["between"] = array_workspace(value[0], shape.between_values, value[1])
            last = Launch(
                (shape.n_parts * (shape.n2 // int(config.COLUMNS)), problem.n_pols, 1),
                (int(config.COLUMN_THREADS), 1, 1),
                shape.column_shared_bytes,
                function="channelise_columns",
                arguments=("between", *filtering, *place, "row_bytes"),
                then=last,
            )
        n_entries = max(shape.n_twiddles, problem.n_pols * shape.n_all_pairs)
        return Launch(
            (ceil_div(n_entries, TABLE_THREADS), 1, 1),
            (TABLE_THREADS, 1, 1),
            function="channelise_tables",
            arguments=(*TABLES, *(() if shape.n1 > 1 else ("n_taken",)), "gains"),
            then=last,
            workspace=workspace,
        )

    def constants(self, problem: Problem, config: Config) -> dict[str, object]:
        cosines = [f"{np.float32(np.cos(2 * np.pi * i / 64))}f" for i in range(16)]
        return {"shape": Geometry(problem, config), "table_threads": TABLE_THREADS, "cosines": cosines}

    def scalars(self, problem: Problem, inputs: Mapping[str, object]) -> dict[str, np.generic]:
        return {
            "first_spectrum": np.int64(problem.first_spectrum),
            "n_spectra": np.int64(problem.n_spectra),
            "n_times": np.int64(problem.n_times),
            "row_bytes": np.int64(problem.row_bytes),
        }

    def sizes(self, problem: Problem, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Returns the sizes of the samples and heaps, and all spectra of all heaps as the range."""
        if len(shapes.get("samples", ())) != 2 or len(shapes.get("saturated", ())) != 2:
            return {}
        length, n_heaps = shapes["samples"][1], shapes["saturated"][0]
        n_samples = length if problem.is_complex else length * 8 // problem.sample_bits
        n_spectra = n_heaps * problem.spectra_per_heap
        return {"n_heaps": n_heaps, "n_samples": n_samples, "first_spectrum": 0, "n_spectra": n_spectra}

    def work(self, problem: Problem) -> Work:
        """Each tap takes a multiply-add, each spectrum an FFT, and each voltage two complex products and an angle. Each
        byte moves once.
        """
        spectra = problem.n_spectra * problem.n_pols
        floats, points = (2, 5.0) if problem.is_complex else (1, 2.5)
        of_spectrum = 2.0 * problem.taps * floats * problem.step + points * problem.step * log2(problem.step)
        of_spectrum += 16.0 * problem.n_channels
        read = problem.n_pols * ceil_div(problem.n_needed * problem.sample_bits, 8)
        n_bytes = read + 4 * problem.taps * problem.step + 8 * problem.n_channels * problem.n_pols
        return Work(of_spectrum * spectra, n_bytes + spectra * (problem.n_channels * problem.voltage_bytes + 16))

    def default_for(self, problem: Problem, device: Device) -> Mapping[str, Any]:
        """Returns a config with one launch for up to 1024 channels and two for more, whose parts fit and fill the
        device.
        """
        return self.space.first_allowed(problem, device, parts(problem, device))

    # ------------------------------------------------------------------ inputs and truth
    def inputs(self, problem: Problem, rng: np.random.Generator) -> dict[str, object]:
        """Draws samples of all values with the same probability; weights of random sign and similar size, so that each
        tap matters; starts that jump now and then; and gains that make some voltages saturate. If there are few
        spectra, gains are such that no part of a voltage comes near a half.
        """
        shape = (problem.taps, problem.step)
        size = rng.uniform(0.5, 1.5, shape) / np.sqrt(problem.taps)
        of_times = (problem.n_times, problem.n_pols)
        if problem.is_complex:
            parts = rng.standard_normal((problem.n_pols, 2 * problem.n_samples), np.float32)
            samples: np.ndarray = parts.view(np.complex64)
        else:
            samples = rng.integers(0, 256, (problem.n_pols, problem.row_bytes), dtype=np.uint8)
        found = {
            "voltages": rng.integers(-128, 128, shape_of_voltages(problem), dtype=np.int8),
            "saturated": rng.integers(0, 1000, (problem.n_heaps, problem.n_pols), dtype=np.uint32),
            "total_power": rng.integers(0, 2**40, problem.n_pols, dtype=np.uint64),
            "samples": samples,
            "weights": (size * rng.choice((-1.0, 1.0), shape)).astype(np.float32),
            "offsets": starts(problem, rng),
            "delays": rng.uniform(-4, 4, of_times).astype(np.float32),
            "phases": rng.uniform(-10, 10, of_times).astype(np.float32),
        }
        if problem.is_complex:
            del found["total_power"]
        return {**found, "gains": gains(problem, rng, found)}

    def edge_problems(self, problem: Problem, config: Config) -> tuple[Problem, ...]:
        """Returns one spectrum whose samples fill the buffer; and more than two parts across the end of a heap, with
        rows of samples that start at any byte.
        """
        part = Geometry(problem, config).part_spectra
        one = replace(problem, n_heaps=1, first_spectrum=0, n_spectra=1, n_samples=problem.taps * problem.step)
        heap = problem.spectra_per_heap
        first = max(0, heap - part // 2 - 1)
        n_spectra = 2 * part + 3
        n_heaps = ceil_div(first + n_spectra, heap)
        n_samples = (n_spectra + problem.taps - 1) * problem.step + 37
        while not problem.is_complex and ceil_div(n_samples * problem.sample_bits, 8) % 2 == 0 and n_samples % 64:
            n_samples += 1
        return one, replace(problem, n_heaps=n_heaps, first_spectrum=first, n_spectra=n_spectra, n_samples=n_samples)

    def reference(self, problem: Problem, **inputs: Any) -> dict[str, np.ndarray]:
        """Returns voltages: int8, saturated: int64, and total_power: uint64. It evaluates the formula in complex128, in
        chunks of spectra.
        """
        voltages, saturated = inputs["voltages"].copy(), inputs["saturated"].astype(np.int64)
        power = np.zeros(problem.n_pols, np.uint64)
        by_time = in_time_order(problem, voltages)
        for pol, some, rotated, squares in rotated_spectra(problem, inputs):
            v = rotated * inputs["gains"][:, pol]
            parts = np.rint(v.view(np.float64).reshape(*v.shape, 2))
            beyond = (np.abs(parts) > problem.maximum).any(axis=-1).sum(axis=-1)
            np.add.at(saturated[:, pol], np.arange(some.start, some.stop) // problem.spectra_per_heap, beyond)
            codes = np.clip(parts, -problem.maximum, problem.maximum).astype(np.int8)
            if problem.bits == 4:
                low, high = (0, 1) if problem.nibbles == "real_low" else (1, 0)
                codes = (codes[..., low] & 15) | (codes[..., high] << 4)
            for s, code in enumerate(codes, some.start):
                by_time(s)[:, pol] = code
            power[pol] += squares
        found = {"voltages": voltages, "saturated": saturated}
        return found if problem.is_complex else {**found, "total_power": power + inputs["total_power"]}

    def meaningless(self, problem: Problem) -> tuple[str, ...]:
        """All kinds: gains fit these inputs so that rounding is unambiguous; with others a voltage may be one off."""
        return ("large", "small", "tied", "negative", "zeros")

    def tolerance(self, problem: Problem) -> Mapping[str, Tolerance]:
        """Nothing may differ if the inputs make rounding unambiguous; otherwise a part may be rounded the other way."""
        if is_exact(problem):
            exact = Tolerance()
            found = {"voltages": exact, "saturated": exact}
        else:
            near = 1e-6 if problem.precision == "single" else 2e-4  # share of voltages near the limit of saturation
            most = 4 + near * problem.n_channels * problem.spectra_per_heap
            found = {"voltages": Tolerance(atol=1.0, nibbles=problem.bits == 4), "saturated": Tolerance(atol=most)}
        return found if problem.is_complex else {**found, "total_power": Tolerance()}


# ---------------------------------------------------------------------- layouts
def shape_of_voltages(problem: Problem) -> tuple[int, ...]:
    """Returns the shape of the voltages. With 4 bits, both parts share a byte."""
    parts = (2,) if problem.bits == 8 else ()
    if problem.layout == "blocks":
        times = problem.times_per_block
        return (problem.n_channels, problem.n_times // times, problem.n_pols, times, *parts)
    return (problem.n_heaps, problem.n_channels, problem.spectra_per_heap, problem.n_pols, *parts)


def in_time_order(problem: Problem, voltages: np.ndarray) -> Any:
    """Returns a function that returns a view of a spectrum's voltages: [C, n_pols], or [C, n_pols, 2] at 8 bits."""
    if problem.layout == "blocks":
        return lambda s: voltages[:, s // problem.times_per_block, :, s % problem.times_per_block]
    return lambda s: voltages[s // problem.spectra_per_heap, :, s % problem.spectra_per_heap]


# ---------------------------------------------------------------------- inputs
def is_exact(problem: Problem) -> bool:
    return problem.precision == "single" and problem.n_spectra <= MOST_EXACT


def starts(problem: Problem, rng: np.random.Generator) -> np.ndarray:
    """Draws the start of each spectrum: int64 [n_times, n_pols]. The last stream jumps once, early, so that whole parts
    follow; with two streams, the first one jumps three times, anywhere. No jump needs more samples than there are.
    """
    slack = problem.n_samples - problem.n_needed
    found = np.full((problem.n_times, problem.n_pols), FAR, np.int64)
    made = np.arange(problem.n_spectra)
    for pol in range(problem.n_pols):
        is_last = pol == problem.n_pols - 1
        jumps = np.sort([problem.n_spectra // 4] if is_last else rng.integers(0, problem.n_spectra, 3))
        drift = rng.integers(0, slack + 1, len(jumps) + 1)[np.searchsorted(jumps, made, side="right")]
        found[problem.first_spectrum : problem.first_spectrum + problem.n_spectra, pol] = made * problem.step + drift
    return found


def gains(problem: Problem, rng: np.random.Generator, inputs: Mapping[str, object]) -> np.ndarray:
    """Draws complex64 [C, n_pols] of any angle. A typical voltage is a third of the largest one. If there are few
    spectra, the gain of every fourth channel is scaled until the channel's largest part is less than half a step from
    the limit of saturation. Then each gain is drawn again until no part of its voltages is so near a half that rounding
    is in doubt.
    """
    rms_of_samples = 1.0 if problem.is_complex else 2.0**problem.sample_bits / np.sqrt(12)
    usual = problem.maximum / 3 / (rms_of_samples * np.sqrt(problem.step * 13 / 24))

    def drawn(n: int) -> np.ndarray:
        size = usual * 2 ** rng.uniform(-1.5, 1.0, n)
        return np.asarray(size * np.exp(1j * rng.uniform(0, 2 * np.pi, n)), np.complex64)

    found = np.stack([drawn(problem.n_channels) for _ in range(problem.n_pols)], axis=1)
    if not is_exact(problem):
        return found
    spectra: list[list[np.ndarray]] = [[] for _ in range(problem.n_pols)]
    for pol, _, rotated, _ in rotated_spectra(problem, inputs):
        spectra[pol].append(rotated)
    for pol, chunks in enumerate(spectra):
        v, doubtful = np.concatenate(chunks), np.arange(problem.n_channels)
        some = doubtful[::4]
        parts = v[:, some] * found[some, pol]
        largest = np.maximum(np.abs(parts.real), np.abs(parts.imag)).max(axis=0)
        beside = problem.maximum + 0.5 + rng.choice((-1, 1), len(some)) * rng.uniform(0.05, 0.45, len(some))
        found[some, pol] *= beside / largest
        while len(doubtful):
            parts = v[:, doubtful] * found[doubtful, pol]
            near = [np.abs(np.abs(x - np.floor(x) - 0.5)) < MARGIN * problem.maximum for x in (parts.real, parts.imag)]
            doubtful = doubtful[(near[0] | near[1]).any(axis=0)]
            found[doubtful, pol] = drawn(len(doubtful))
    return found


# ---------------------------------------------------------------------- mathematics
def rotated_spectra(problem: Problem, inputs: Mapping[str, Any]) -> Iterator[tuple[int, slice, np.ndarray, np.uint64]]:
    """Yields (polarisation, spectra, their transforms rotated by phase and delay, squares of their newest samples)."""
    step, taps, last = problem.step, problem.taps, problem.first_spectrum + problem.n_spectra
    weights = inputs["weights"].astype(np.float64)
    position = (np.arange(problem.n_channels) - problem.n_channels / 2) / problem.n_channels
    most = max(1, REFERENCE_SAMPLES // step)
    for pol in range(problem.n_pols):
        offsets = inputs["offsets"][:, pol]
        first = problem.first_spectrum
        while first < last:
            n = 1
            while n < most and first + n < last and offsets[first + n] == offsets[first] + n * step:
                n += 1
            start, count = int(offsets[first]), (n + taps - 1) * step
            if problem.is_complex:
                rows = inputs["samples"][pol, start : start + count].astype(np.complex128).reshape(-1, step)
                squares = np.uint64(0)
            else:
                samples = unpack_samples(inputs["samples"][pol], problem.sample_bits, start, count)
                newest = samples[(taps - 1) * step :].astype(np.int64)
                squares, rows = np.uint64(newest @ newest), samples.astype(np.float64).reshape(-1, step)
            z = sum(weights[t] * rows[t : t + n] for t in range(taps))
            spectra = np.fft.fft(z) if problem.is_complex else np.fft.rfft(z)[:, : problem.n_channels]
            some = slice(first, first + n)
            delays, phases = (inputs[name][some, pol, np.newaxis].astype(float) for name in ("delays", "phases"))
            yield pol, some, spectra * np.exp(1j * (phases - np.pi * delays * position)), squares
            first += n
