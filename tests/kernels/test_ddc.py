"""ddc: the definition against its formula, variants of every parameter value against the definition, and mutants."""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from autotune.kernels.ddc import Ddc, Problem, fixed_point, mixer, phase_at

from autotune import Config, UsageError, unpack_samples
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory, numpy_case

from .common import check, check_mutant, covering, first_is_quick, packed_bits, session_on
from .goldens import check_golden, write_goldens

KERNEL = Ddc()
REGISTER = Config(ALGORITHM="register", WGS=64, COARSEN=4, PHASES=4, MIN_BLOCKS=1, TILES=4, STORE="direct")
STAGED = Config({**REGISTER, "STORE": "staged"})
SUBGROUP = Config(ALGORITHM="subgroup", WGS=64, SG_SIZE=4, COARSEN=8, TILES=4)
DEFAULT = KERNEL.tuned[0]
MUTATED = KERNEL.problem({"taps": 129})  # whose last sample ends within a word
PROBLEMS = [
    {"taps": 128, "decimation": 8},
    {"taps": 255, "decimation": 5, "sample_bits": 13},  # rows and groups of samples that do not fit into each other
    {"taps": 32, "decimation": 32, "sample_bits": 7},  # one row of taps
    {"taps": 257, "decimation": 32, "sample_bits": 8},  # one tap in the last row
    {"taps": 7, "decimation": 3, "sample_bits": 2},
    {"taps": 40, "decimation": 1, "sample_bits": 16},
    {"taps": 1, "decimation": 2, "sample_bits": 5},
    {"taps": 100, "decimation": 128, "sample_bits": 12},  # fewer taps than the decimation
    {"taps": 1000, "decimation": 6, "sample_bits": 11},
]


# ---------------------------------------------------------------------- the definition
@pytest.mark.quick
@pytest.mark.parametrize(("taps", "decimation", "bits"), [(256, 16, 10), (7, 3, 2), (20, 32, 13), (1, 1, 16)])
def test_reference_is_the_formula(taps: int, decimation: int, bits: int) -> None:
    problem = Problem(taps=taps, decimation=decimation, sample_bits=bits, n_pols=2, n_samples=taps + 5 * decimation + 1)
    rng = np.random.default_rng(taps)
    inputs = KERNEL.inputs(problem, rng)
    samples = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (2, problem.n_samples))
    f, phase = inputs["mix_frequency"], inputs["mix_phase"]
    expected = np.zeros((2, problem.n_out), np.complex128)
    for j in range(problem.n_out):
        for k in range(taps):
            n = j * decimation + k
            expected[:, j] += inputs["weights"][k] * samples[:, n] * np.exp(2j * np.pi * (f * n + phase))
    got = KERNEL.reference(problem, **{**inputs, "samples": packed_bits(samples, bits)})["baseband"]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_reference_is_the_same_across_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(taps=33, decimation=8, n_samples=2000)
    inputs = KERNEL.inputs(problem, np.random.default_rng(3))
    whole = KERNEL.reference(problem, **inputs)["baseband"]
    monkeypatch.setattr("autotune.kernels.ddc.ddc.REFERENCE_ROWS", 16)
    np.testing.assert_allclose(KERNEL.reference(problem, **inputs)["baseband"], whole, rtol=1e-12)


def test_problems_that_cannot_be_say_why() -> None:
    with pytest.raises(UsageError, match="n_samples=255 holds no output: the first needs taps=256 samples"):
        KERNEL.problem({"n_samples": 255})
    with pytest.raises(UsageError, match="sample_bits=17 must be 2 to 16"):
        KERNEL.problem({"sample_bits": 17})
    with pytest.raises(UsageError, match="each is at least 1"):
        KERNEL.problem({"decimation": 0})
    with pytest.raises(UsageError, match="mix_frequency is nan"):
        KERNEL.scalars(DEFAULT, {"mix_frequency": float("nan"), "mix_phase": 0.0})


def test_sizes_follow_from_the_rows() -> None:
    inputs = {"samples": np.zeros((3, 1001), np.uint8), "weights": np.zeros(256, np.float32)}
    problem = KERNEL.problem_for({}, inputs)
    assert (problem.n_pols, problem.n_samples) == (3, 800)
    assert KERNEL.arrays(problem)["baseband"].shape == (3, (800 - 256) // 16 + 1)


def test_every_problem_has_a_configuration() -> None:
    device = find_device("host").device
    for values in (*PROBLEMS, {"taps": 4096}, {"taps": 300, "decimation": 128, "sample_bits": 16}):
        problem = KERNEL.problem(values)
        config = KERNEL.default_config(problem, device)
        assert KERNEL.launch(problem, config).shared_bytes <= device.max_shared_bytes


# ---------------------------------------------------------------------- the phase
def test_phase_is_exact_after_2_48_samples() -> None:
    n = 2**48 - 12345
    for f in (0.1, -0.25 + 2.0**-50, 1e-9, 123.456, np.nextafter(0.5, 0)):
        exact = (Fraction(f) * n + Fraction(0.3)) % 1
        assert abs(Fraction(phase_at(f, n, 0.3)) - exact) < Fraction(1, 2**53)
        high, low = divmod(fixed_point("f", f, 128), 2**64)
        on_device = (
            fixed_point("phase", 0.3, 64) + high * n + (low * n >> 64)
        ) % 2**64  # what templates/lib/phase.cuh does
        assert abs(Fraction(on_device, 2**64) - exact) < Fraction(1, 2**62)


def test_mixer_is_the_exact_phase() -> None:
    turns = mixer(0.1234567, 0.75, 2**40, 5000)
    exact = np.exp(2j * np.pi * np.array([phase_at(0.1234567, 2**40 + i, 0.75) for i in range(5000)]))
    np.testing.assert_allclose(turns, exact, rtol=0, atol=4e-15)


@pytest.mark.parametrize("config", [REGISTER, SUBGROUP], ids=lambda config: config.ALGORITHM)
@pytest.mark.parametrize("start", [16 * 40, 2**48 - 12345])
def test_a_stream_may_be_cut_into_calls(config: Config, start: int, target: Target) -> None:
    """A call from sample ``start`` on, with the phase that the mixer has there, continues the stream."""
    problem = Problem(n_pols=1, n_samples=256 + 16 * 300)
    inputs = {**KERNEL.inputs(problem, np.random.default_rng(7)), "mix_frequency": 0.3000000123}
    inputs["mix_phase"] = phase_at(inputs["mix_frequency"], start, 0.125)
    binary = target.module.compile(render(KERNEL, problem, config), target.device)
    session = session_on(target)
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(session.load(binary, session.check_builds[0]), KERNEL.launch(problem, config))
        got = placed.outputs()["baseband"]
    turns = mixer(inputs["mix_frequency"], 0.125, start, problem.n_samples)  # counts from the stream's first sample
    mixed = unpack_samples(inputs["samples"][0], 10, 0, problem.n_samples) * turns
    windows = np.lib.stride_tricks.sliding_window_view(mixed, problem.taps)[:: problem.decimation]
    expected = windows @ inputs["weights"].astype(np.float64)
    np.testing.assert_allclose(got[0], expected, rtol=0, atol=KERNEL.tolerance(problem).atol)


# ---------------------------------------------------------------------- the variants
def test_every_parameter_value_is_right(target: Target) -> None:
    for config in covering(KERNEL, DEFAULT, target, ALGORITHM=("register", "subgroup")):
        check(KERNEL, DEFAULT, config, target)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", first_is_quick(PROBLEMS), ids=lambda values: "-".join(map(str, values.values())))
def test_any_problem_is_right(values: dict[str, int], target: Target) -> None:
    problem = KERNEL.problem(values)
    configs = KERNEL.space.enumerate(problem, target.device)
    for wanted in (STAGED, SUBGROUP):
        check(KERNEL, problem, configs.nearest(wanted), target, session_on(target).check_builds[0])


def mutants() -> list[Any]:
    """(config, text to replace, its replacement, the status that must follow)."""
    found: list[Any] = []
    both = {
        "last tap": ("k < TAPS ?", "k < TAPS - 1 ?", "wrong"),
        "last byte": ("if (offset + i < n_bytes)", "if (offset + i + 1 < n_bytes)", "wrong"),
        "bytes past the end": ("offset + 4 <= n_bytes)", "offset + 2 <= n_bytes)", "launch_failed"),
        "sign": ("sign_and_exponent = (1u << (position + BITS - 1)) |", "sign_and_exponent =", "wrong"),
        "phase wraps at half a cycle": ("static_cast<int>(phase >> 32)", "static_cast<int>(phase << 1 >> 33)", "wrong"),
        "phase of 24 bits": ("return f.high * n +", "return (f.high >> 40 << 40) * n +", "wrong"),
        "misaligned bytes": ("0x1111 * static_cast<unsigned>(offset & 3)", "0x1111 * 0u", "wrong"),
        "polarisation's row": ("row_bytes * blockIdx.y +", "(row_bytes + 1) * blockIdx.y +", "wrong"),
        "output past the end": ("if (first + i < n_out)", "if (first + i <= n_out)", "launch_failed"),
    }
    for name, (old, new, status) in both.items():
        for config in (REGISTER, SUBGROUP):
            found.append(pytest.param(config, old, new, status, id=f"{config.ALGORITHM}: {name}"))
    barriers = [
        (REGISTER, "__syncthreads();  // the tile, its phasor"),
        (REGISTER, "__syncthreads();  // nobody reads the tile any more"),
        (STAGED, "__syncthreads();  // warps have read"),
        (STAGED, "__syncwarp();  // a warp's outputs are complete"),
        (STAGED, "__syncwarp();  // a thread may unpack"),
        (SUBGROUP, "__syncthreads();  // the slice is complete"),
        (SUBGROUP, "__syncthreads();  // nobody reads this tile's"),
    ]
    for config, barrier in barriers:
        found.append(
            pytest.param(config, barrier, "//", "launch_failed", id=f"{config.ALGORITHM}: without {barrier[20:]}")
        )
    others = [
        (
            REGISTER,
            "a sample late",
            "advance(frequency, t * SAMPLES_PER_CHUNK)",
            "advance(frequency, t * SAMPLES_PER_CHUNK + 1)",
            "wrong",
        ),
        (
            REGISTER,
            "no last group",
            "for (; group < GROUPS_PER_TILE; group",
            "for (; group < GROUPS_PER_TILE - 1; group",
            "launch_failed",
        ),
        (REGISTER, "no gap", "CHUNK_STRIDE = 68;", "CHUNK_STRIDE = 64;", "compile_failed"),
        (SUBGROUP, "lanes", "threadIdx.x & WIDTH / 2", "threadIdx.x & 1", "wrong"),
        (SUBGROUP, "last slice", "slice < N_SLICES", "slice < N_SLICES - 1", "wrong"),
    ]
    for config, name, old, new, status in others:
        found.append(pytest.param(config, old, new, status, id=f"{config.ALGORITHM}: {name}"))
    return found


@pytest.mark.planted
@pytest.mark.parametrize(("config", "old", "new", "status"), first_is_quick(mutants()))
def test_mutants_fail(config: Config, old: str, new: str, status: str) -> None:
    check_mutant(KERNEL, MUTATED, config, old, new, status)


# ---------------------------------------------------------------------- the text
GOLDENS = {
    "default": (DEFAULT, KERNEL.default),
    "subgroup": (DEFAULT, SUBGROUP),
    "staged_odd": (KERNEL.problem(PROBLEMS[1]), {**STAGED, "PHASES": 1}),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_ddc`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


def test_an_output_that_happens_to_be_small_is_not_held_to_its_own_size() -> None:
    """The only output of this problem's first edge size is 0.015 of what such outputs have."""
    problem = KERNEL.problem({"taps": 16, "decimation": 4, "sample_bits": 10})
    one = KERNEL.edge_problems(problem, Config(KERNEL.default))[0]
    size = abs(numpy_case(KERNEL, one).reference["baseband"].item())
    many = numpy_case(KERNEL, dataclasses.replace(one, n_samples=100_000)).reference["baseband"]
    rms = np.sqrt(np.mean(np.abs(many) ** 2))
    assert size < 0.02 * rms
    allowed = KERNEL.tolerance(problem)
    assert allowed.atol == pytest.approx(4 * np.sqrt(16 + 16) * np.finfo(np.float32).eps * rms, rel=0.05)


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
