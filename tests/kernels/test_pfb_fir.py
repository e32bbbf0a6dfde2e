"""pfb_fir: the definition against its formula, variants of every parameter value against it, and mutants."""

from typing import Any

import numpy as np
import pytest
from autotune.kernels.pfb_fir import PfbFir

from autotune import Config, UsageError
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory

from .common import check, check_mutant, covering, first_is_quick, packed_bits, session_on
from .goldens import check_golden, write_goldens

KERNEL = PfbFir()
DEFAULT = KERNEL.tuned[0]
SMALL = KERNEL.problem({"taps": 5, "n_channels": 50, "n_spectra": 70, "n_samples": 8000})  # ends within a block
ODD = KERNEL.problem({"taps": 5, "n_channels": 37, "sample_bits": 13, "n_spectra": 70, "n_samples": 8000})
CONFIG = Config(WGS=64, COLUMNS=1, SPECTRA=32, MIN_BLOCKS=1, TURNS=1, STAGES=3, STORE="streaming")
PAIRS = Config({**CONFIG, "COLUMNS": 2, "TURNS": 2, "STAGES": 2})
PROBLEMS: list[dict[str, int]] = [
    {"taps": 1, "n_channels": 3, "sample_bits": 2},
    {"taps": 2, "n_channels": 1, "sample_bits": 3},
    {"taps": 4, "n_channels": 64, "sample_bits": 8},  # rows that are multiples of 16 bytes
    {"taps": 5, "n_channels": 37, "sample_bits": 13},  # rows that start at any bit
    {"taps": 7, "n_channels": 40, "sample_bits": 16},
    {"taps": 16, "n_channels": 100, "sample_bits": 12},
    {"taps": 33, "n_channels": 48, "sample_bits": 10},
    {"taps": 64, "n_channels": 32, "sample_bits": 9},
    {"taps": 8, "n_channels": 96, "sample_bits": 64},  # complex
    {"taps": 3, "n_channels": 35, "sample_bits": 64},
]


def small(values: dict[str, int]) -> Any:
    return KERNEL.problem({"n_spectra": 1, "n_samples": 1 << 20, **values})


# ---------------------------------------------------------------------- the definition
@pytest.mark.quick
@pytest.mark.parametrize(("taps", "n_channels", "bits"), [(16, 4, 10), (3, 5, 7), (1, 1, 16), (4, 6, 64)])
def test_reference_is_the_formula(taps: int, n_channels: int, bits: int) -> None:
    problem = KERNEL.problem(
        {"taps": taps, "n_channels": n_channels, "sample_bits": bits, "n_spectra": 6, "n_samples": 300}
    )
    rng = np.random.default_rng(taps)
    inputs = KERNEL.inputs(problem, rng)
    step, offsets = problem.step, inputs["offsets"]
    if problem.is_complex:
        samples = inputs["samples"].astype(np.complex128)
    else:
        samples = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (2, problem.n_samples))
        inputs["samples"] = packed_bits(samples, bits)
    filtered = np.zeros((2, 6, step), np.complex128)
    power = [0, 0]
    for p in range(2):
        for s in range(6):
            for c in range(step):
                at = [offsets[p] + (s + t) * step + c for t in range(taps)]
                filtered[p, s, c] = sum(float(inputs["weights"][t, c]) * samples[p, at[t]] for t in range(taps))
                power[p] += 0 if problem.is_complex else int(samples[p, at[-1]]) ** 2
    got = KERNEL.reference(problem, **inputs)
    np.testing.assert_allclose(got["filtered"], filtered, rtol=0, atol=1e-12 * np.abs(filtered).max())
    if not problem.is_complex:
        assert got["total_power"].tolist() == [a + int(b) for a, b in zip(power, inputs["total_power"], strict=True)]


def test_reference_is_the_same_across_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = KERNEL.inputs(SMALL, np.random.default_rng(3))
    whole = KERNEL.reference(SMALL, **inputs)
    monkeypatch.setattr("autotune.kernels.pfb_fir.REFERENCE_SPECTRA", 800)
    parts = KERNEL.reference(SMALL, **inputs)
    np.testing.assert_array_equal(parts["total_power"], whole["total_power"])
    np.testing.assert_allclose(parts["filtered"], whole["filtered"], rtol=1e-12)


def test_problems_that_cannot_be_say_why() -> None:
    with pytest.raises(UsageError, match="taps=65 must be 1 to 64"):
        KERNEL.problem({"taps": 65})
    with pytest.raises(UsageError, match="sample_bits=17 must be 2 to 16, or 64 for complex float32"):
        KERNEL.problem({"sample_bits": 17})
    with pytest.raises(UsageError, match="n_samples=1000 is too few: n_spectra=32768 of taps=16 need 67139584"):
        KERNEL.problem({"n_samples": 1000})
    with pytest.raises(UsageError, match="each is at least 1"):
        KERNEL.problem({"n_channels": 0})
    with pytest.raises(UsageError, match=r"n_channels=67108864 is too many: 2\^31 weights or more, with taps=16"):
        KERNEL.problem({"n_channels": 2**26})


def test_sizes_follow_from_the_samples() -> None:
    inputs = {"samples": np.zeros((3, 100_001), np.uint8), "weights": np.zeros((16, 128), np.float32)}
    problem = KERNEL.problem_for({"n_channels": 64}, inputs)
    assert (problem.n_pols, problem.n_samples, problem.n_spectra) == (3, 80_000, 80_000 // 128 - 16)
    given = KERNEL.problem_for({"n_channels": 64, "n_spectra": 3}, inputs)
    assert given.n_spectra == 3


def test_every_problem_has_a_configuration() -> None:
    device = find_device("host").device
    for values in PROBLEMS:
        problem = small(values)
        config = KERNEL.default_config(problem, device)
        assert KERNEL.launch(problem, config).shared_bytes <= device.max_shared_bytes


def test_the_grid_is_a_constraint() -> None:
    device = find_device("host").device
    for n_spectra, fits in ((32 * 65535, True), (32 * 65535 + 1, False)):
        problem = KERNEL.problem({"taps": 4, "n_channels": 1, "n_spectra": n_spectra, "n_samples": 2**23})
        broken = KERNEL.space.broken(problem, CONFIG, device)
        assert (broken is None) == fits
    assert broken is not None and "grid" in broken.reason


# ---------------------------------------------------------------------- the variants
def test_every_parameter_value_is_right(target: Target) -> None:
    problem = KERNEL.problem({"taps": 4, "n_channels": 120, "n_spectra": 1, "n_samples": 1 << 20})
    for config in covering(KERNEL, problem, target):
        check(KERNEL, problem, config, target)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", first_is_quick(PROBLEMS), ids=lambda values: "-".join(map(str, values.values())))
def test_any_problem_is_right(values: dict[str, int], target: Target) -> None:
    problem = small(values)
    configs = KERNEL.space.enumerate(problem, target.device)
    for wanted in (CONFIG, PAIRS):
        check(KERNEL, problem, configs.nearest(wanted), target, session_on(target).check_builds[0])


def test_offsets_are_of_samples(target: Target) -> None:
    """A stream that starts ``o`` samples late is the stream from sample ``o`` on, for each bit of a byte."""
    session = session_on(target)
    rng = np.random.default_rng(5)
    samples = rng.integers(-512, 512, (1, 8000))
    binary = target.module.compile(render(KERNEL, SMALL, CONFIG), target.device)
    function = session.load(binary, session.check_builds[0])
    for offset in (0, 1, 2, 3, 5, 63, 64):
        one = KERNEL.problem({"n_pols": 1}, base=SMALL)
        inputs = KERNEL.inputs(one, rng)
        inputs |= {"offsets": np.array([offset]), "samples": packed_bits(samples, 10)}
        with CaseInMemory(session, KERNEL, one, inputs) as placed:
            placed.launch(function, KERNEL.launch(one, CONFIG))
            got = placed.outputs()["filtered"][0]
        rows = samples[0, offset : offset + 74 * 100].reshape(74, 100)
        expected = sum(inputs["weights"][t].astype(np.float64) * rows[t : t + 70] for t in range(5))
        tolerance = KERNEL.tolerance(SMALL)["filtered"].atol
        np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance)


MUTANTS = {
    "last tap": ("for (int t = 0; t < TAPS; ++t)  // the", "for (int t = 0; t < TAPS - 1; ++t)  // the", "wrong"),
    "oldest first": ("(j + 1 + t) % TAPS", "(j + t) % TAPS", "wrong"),
    "unsigned": ("static_cast<int>(top) >> (32 - SAMPLE_BITS)", "top >> (32 - SAMPLE_BITS)", "wrong"),
    "a bit late": ("threadIdx.x * (COLUMNS * SAMPLE_BITS)", "threadIdx.x * (COLUMNS * SAMPLE_BITS) + 1", "wrong"),
    "aligned rows": ("static_cast<unsigned>(ROW_BITS % 128)", "0u", "wrong"),
    "offset": ("offsets[pol] + first * STEP", "(offsets[pol] & ~7ll) + first * STEP", "wrong"),
    "polarisation's row": ("8 * row_bytes * pol", "8 * (row_bytes + 1) * pol", "wrong"),
    "last copy": ("item < ITEMS; item += WGS", "item < ITEMS - 2; item += WGS", "launch_failed"),
    "bytes past the end": ("n_left >= 16 ? 16", "n_left >= 1 ? 16", "launch_failed"),
    "last bytes": ("n_left > 0 ? static_cast<int>(n_left) : 0", "0", "wrong"),
    "spectrum past the end": ("if (FULL || j < n)", "if (FULL || j <= n)", "launch_failed"),
    "column past the end": ("column < STEP;", "column <= STEP;", "launch_failed"),
    "part of a longer array": ("pol * filtered_spectra", "pol * n_spectra", "wrong"),
    "power in 16 bits": ("return high + low", "return high + (low & 0xffffu)", "wrong"),
    "power of one warp": ("warp < WGS / 32", "warp < 1", "wrong"),
    "wait": ("wait_for_groups<STAGES - 2>()", "wait_for_groups<STAGES - 1>()", "launch_failed"),
    "stage's barrier": ("__syncthreads();  // the stage is complete", "//", "launch_failed"),
    "power's barrier": ("__syncthreads();  // the sums of all warps", "//", "launch_failed"),
}  # fmt: skip


@pytest.mark.planted
@pytest.mark.parametrize("name", first_is_quick(MUTANTS))
def test_mutants_fail(name: str) -> None:
    check_mutant(KERNEL, ODD, CONFIG, *MUTANTS[name])


# ---------------------------------------------------------------------- the text
GOLDENS = {
    "default": (DEFAULT, KERNEL.default),
    "pairs": (DEFAULT, PAIRS),
    "complex": (KERNEL.problem({"taps": 8, "n_channels": 96, "sample_bits": 64}), CONFIG),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_pfb_fir`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
