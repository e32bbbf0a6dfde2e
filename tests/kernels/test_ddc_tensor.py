"""ddc on tensor cores: variants against the definition, its accuracy, the range of weights, and mutants."""

from typing import Any

import numpy as np
import pytest
from autotune.kernels.ddc import Ddc
from autotune.kernels.ddc.tensor import TensorGeometry

from autotune import Config
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory

from .common import check, check_mutant, covering, first_is_quick, packed_bits, session_on
from .goldens import check_golden, write_goldens

KERNEL = Ddc()
TENSOR = Config(
    ALGORITHM="tensor",
    MMA="mma_sync",
    RESIDENT=16,
    STEP=2,
    RUN=64,
    STAGE=8,
    STAGES=2,
    UNROLL=2,
    WINDOW=32,
)
SHORT = KERNEL.tuned[1]
LONG = KERNEL.problem({"taps": 1024, "decimation": 64})  # weights in shared memory, and short chains
PAIRED = Config({**TENSOR, "STAGE": 6})  # for decimation 16, the default
LONG_TENSOR = Config({**TENSOR, "RESIDENT": 4, "STAGE": 1, "UNROLL": 1})
LONG_WGMMA = Config(
    ALGORITHM="tensor", MMA="wgmma", WARPS=4, CHAIN=8, PART=2, STEP=2, RUN=64, STAGE=1, STAGES=2, WINDOW=32
)  # of sm_90 only
PROBLEMS = [
    {"taps": 255, "decimation": 5},  # 16 outputs a step
    {"taps": 7, "decimation": 3, "sample_bits": 2},
    {"taps": 40, "decimation": 1, "sample_bits": 4},
    {"taps": 129, "decimation": 16, "sample_bits": 11},  # groups of samples of 11 bytes
    {"taps": 120, "decimation": 12, "sample_bits": 12},
    {"taps": 257, "decimation": 32, "sample_bits": 8},
    {"taps": 200, "decimation": 16, "sample_bits": 6},  # pairs of samples in a register
    {"taps": 200, "decimation": 16, "sample_bits": 2},
    {"taps": 65, "decimation": 8, "sample_bits": 9},
    {"taps": 64, "decimation": 4, "sample_bits": 5},
    {"taps": 100, "decimation": 128, "sample_bits": 12},  # fewer taps than the decimation
    {"taps": 1, "decimation": 16},
    {"taps": 2048, "decimation": 128},
    {"taps": 4200, "decimation": 256, "sample_bits": 2},  # 33 weights a thread: turns of two times 32
]


def tensor_configs(values: Any, target: Target, **only: tuple[Any, ...]) -> list[Config]:
    problem = values if not isinstance(values, dict) else KERNEL.problem(values)
    return list(
        KERNEL.space.enumerate(problem, target.device, {"ALGORITHM": ("tensor",), "MMA": ("mma_sync",), **only}).configs
    )


# ---------------------------------------------------------------------- the variants
# All shorter than two windows, two of each kind of remainder, and the longest: each length is a compile.
SOME_RUNS = (*range(24, 73, 8), 96, 120, 128, 496, 512)


def test_every_parameter_value_is_right(target: Target) -> None:
    for config in covering(KERNEL, SHORT, target, ALGORITHM=("tensor",), RUN=SOME_RUNS):
        check(KERNEL, SHORT, config, target, session_on(target).check_builds[0])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", PROBLEMS, ids=lambda values: "-".join(map(str, values.values())))
def test_any_problem_is_right(values: dict[str, int], target: Target) -> None:
    configs = tensor_configs(values, target, RUN=(64,), STAGES=(2,))
    problem = KERNEL.problem(values)
    smallest = min(configs, key=lambda config: TensorGeometry(problem, config).outputs_per_block)
    check(KERNEL, problem, smallest, target, session_on(target).check_builds[0])


def test_what_cannot_be_says_why() -> None:
    device = find_device("host").device
    for values, reason in (
        ({"sample_bits": 13}, "at most 12 bits"),
        ({"decimation": 8}, "a third more"),
        ({"decimation": 3, "taps": 100}, "whole products"),
    ):
        config = Config({**TENSOR, "STEP": 16 if values.get("decimation") == 8 else 2})
        broken = KERNEL.space.broken(KERNEL.problem(values), config, device)
        assert broken is not None and reason in broken.reason


def outputs(problem: Any, config: Config, target: Target, inputs: dict[str, Any]) -> np.ndarray:
    """What the variant makes of these inputs."""
    session = session_on(target)
    build = session.check_builds[-1]
    binary = target.module.compile(render(KERNEL, problem, config), target.device, (build,))
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(session.load(binary, build), KERNEL.launch(problem, config))
        return placed.outputs()["baseband"]


@pytest.mark.parametrize(
    ("n_samples", "decimation"), [*((n, 8) for n in range(8193, 8211, 2)), *((n, 16) for n in range(8193, 8211, 3))]
)
def test_rows_may_start_anywhere(n_samples: int, decimation: int, target: Target) -> None:
    """Rows of samples at any byte, and rows of outputs at any multiple of 8 bytes."""
    taps = 16 * decimation
    problem = KERNEL.problem({"taps": taps, "decimation": decimation, "n_pols": 3, "n_samples": n_samples})
    inputs = KERNEL.inputs(problem, np.random.default_rng(n_samples))
    got, reference = (
        outputs(problem, TENSOR if decimation == 8 else PAIRED, target, inputs),
        KERNEL.reference(problem, **inputs)["baseband"],
    )
    np.testing.assert_allclose(got, reference, rtol=0, atol=KERNEL.tolerance(problem).atol)


# ---------------------------------------------------------------------- accuracy
def samples_of(kind: str, problem: Any, weights: np.ndarray, frequency: float) -> np.ndarray:
    """Packed samples of one stream."""
    n = np.arange(problem.n_samples)
    largest = 2 ** (problem.sample_bits - 1) - 1
    rng = np.random.default_rng(11)
    if kind == "noise":
        samples = rng.integers(-largest - 1, largest + 1, problem.n_samples)
    elif kind == "tone":
        samples = np.rint(largest * np.cos(2 * np.pi * 0.9999 * frequency * n))
    else:  # every product of the first output is positive
        samples = np.where(np.cos(2 * np.pi * frequency * n) * np.resize(weights, n.size) < 0, -largest - 1, largest)
    return packed_bits(samples.astype(int)[np.newaxis], problem.sample_bits)


@pytest.mark.parametrize("kind", ["noise", "tone", "signs"])
@pytest.mark.parametrize(
    ("problem", "config"),
    [(SHORT, TENSOR), (KERNEL.tuned[0], TENSOR), (LONG, LONG_TENSOR), (LONG, LONG_WGMMA)],
    ids=["8", "16", "64", "64 by wgmma"],
)
def test_errors_are_those_of_float32(problem: Any, config: Config, kind: str, target: Target) -> None:
    if config.MMA == "wgmma" and target.device.arch not in ("sm_90", "host"):
        pytest.skip(f"only sm_90 has wgmma; this GPU is {target.device.arch}")
    problem = KERNEL.problem({**vars(problem), "n_pols": 1, "n_samples": problem.taps + 1500 * problem.decimation})
    inputs = KERNEL.inputs(problem, np.random.default_rng(5))
    inputs["samples"] = samples_of(kind, problem, inputs["weights"], inputs["mix_frequency"])
    reference = KERNEL.reference(problem, **inputs)["baseband"]
    error = np.abs(outputs(problem, config, target, inputs) - reference)
    scale = max(np.sqrt(np.mean(np.abs(reference) ** 2)), KERNEL.tolerance(problem).atol * 0.1 / 2.0**-23)
    assert error.max() < 4 * np.sqrt(problem.taps + 16) * 2.0**-23 * np.abs(reference).max()
    assert np.sqrt(np.mean(error**2)) < 6e-7 * scale


@pytest.mark.parametrize("size", [1e-37, 2.0**-99, 1e-12, 3e4, 1e30])
def test_weights_of_any_size(size: float, target: Target) -> None:
    problem = KERNEL.problem({"taps": 128, "decimation": 8, "n_pols": 1, "n_samples": 3000})
    inputs = KERNEL.inputs(problem, np.random.default_rng(5))
    inputs["weights"] = (inputs["weights"] * size).astype(np.float32)
    reference = KERNEL.reference(problem, **inputs)["baseband"]
    np.testing.assert_allclose(
        outputs(problem, TENSOR, target, inputs) / size,
        reference / size,
        rtol=0,
        atol=KERNEL.tolerance(problem).atol,
    )


def test_weights_of_zero(target: Target) -> None:
    problem = KERNEL.problem({"taps": 128, "decimation": 8, "n_pols": 1, "n_samples": 3000})
    inputs = {**KERNEL.inputs(problem, np.random.default_rng(5)), "weights": np.zeros(128, np.float32)}
    assert not outputs(problem, TENSOR, target, inputs).any()


# ---------------------------------------------------------------------- mutants
MUTATED = KERNEL.problem({"taps": 127, "decimation": 8, "n_pols": 2, "n_samples": 20001})
MUTANTS = {
    "parts of weights": ("as_ushort(high), __half_as_ushort(low)", "as_ushort(low), __half_as_ushort(high)", "wrong"),
    "low part's size": ("0x1p-11f", "0x1p-10f", "wrong"),
    "no low part": ("(x - __half2float(high)) * 2048.0f", "0.0f", "wrong"),
    "last tap": ("static_cast<unsigned>(TAPS)));", "static_cast<unsigned>(TAPS - 1)));", "wrong"),
    "a later output's start": ("own - column / 4 * DECIMATION", "own - (column / 4 + 1) * DECIMATION", "wrong"),
    "blocks of weights": (
        "weights.fragment(Shape::N_TILES - 1 - t,",
        "weights.fragment((Shape::N_TILES - t) % Shape::N_TILES,",
        "wrong",
    ),
    "tiles do not move": ("part == 0 && k == 0 ? t + 1 : t;", "t;", "wrong"),
    "order of samples": ("r * 2 + 1 - h;", "r * 2 + h;", "wrong"),
    "bytes": ("byte_of(sample) * 0x1100u", "byte_of(sample) * 0x1010u", "wrong"),
    "lane's byte": ("0x1111u * (group_bit >> 3 & 3)", "0x1111u * (group_bit >> 3 & 1)", "wrong"),
    "sign": ("LOW << 16, BIAS * 0x10001", "LOW << 16, EXPONENT * 0x10001", "wrong"),
    "scale": ("(exponent - Weights::LARGEST -", "(exponent - Weights::LARGEST + 1 -", "wrong"),
    "no phasor of the row": (
        "multiply(*reinterpret_cast<const float2*>(phasor), pair.phasors[I])",
        "pair.phasors[I]",
        "wrong",
    ),
    "phasor of another output": ("advance(frequency, output *", "advance(frequency, (output + 1) *", "wrong"),
    "phase of the lead": ("phase(phase - advance(frequency, lead * DECIMATION))", "phase(phase)", "wrong"),
    "samples of the lead": ("(static_cast<long long>(lead) +", "(static_cast<long long>(0) +", "wrong"),
    "polarisation's samples": ("row_bytes * blockIdx.y +", "row_bytes * 0 +", "wrong"),
    "output past the end": (
        "is_stored(output + r * Shape::OUTPUTS_PER_RUN + pair.apart)",
        "is_stored(output + r * Shape::OUTPUTS_PER_RUN)",
        "launch_failed",
    ),
    "output before the start": ("+ pair.first - begin;", "+ pair.first;", "launch_failed"),
    "bytes past the end": ("capped(n_bytes - from);", "capped(n_bytes - from + 16);", "launch_failed"),
    "last tile": ("if (first_output(task) >= n_out", "if (first_output(task) + 2000 >= n_out", "wrong"),
    "words of the same step": ("from + (i + 1) * Shape::PART_STRIDE", "from + i * Shape::PART_STRIDE", "wrong"),
    "words of the same stage": ("from = lane_words + slot *", "from = lane_words + 0 *", "wrong"),
    "an iteration of the loop": (
        "from += Shape::STEPS_PER_ITERATION * Shape::PARTS_PER_STEP *",
        "from += Shape::PARTS_PER_STEP *",
        "wrong",
    ),
    "bytes of the next stage": (
        "? stage * (Shape::BITS_PER_STAGE / 8)",
        "? stage * (Shape::BITS_PER_STAGE / 8 - 16)",
        "wrong",
    ),
    "bytes of the lane": ("Shape::BOX_PITCH + lane_piece * 16;", "Shape::BOX_PITCH;", "wrong"),
    "without waiting": ("wait_for_groups<Shape::N_STAGES - 1>();", "", "launch_failed"),
    "without a barrier: copies": ("__syncwarp();  // for every lane", "//", "launch_failed"),
    "without a barrier: stage": ("__syncwarp();  // nobody reads the stage", "//", "launch_failed"),
    "without a barrier: window": ("__syncwarp();  // the window and its phasors", "//", "launch_failed"),
    "without a barrier: largest": ("__syncthreads();  // the largest", "//", "launch_failed"),
    "without a barrier: mixed": ("__syncthreads();  // the mixed weights", "//", "launch_failed"),
    "without a barrier: fragments": ("__syncthreads();  // the fragments", "//", "launch_failed"),
    "without a barrier: windows": ("__syncthreads();  // all threads have their fragments", "//", "launch_failed"),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", first_is_quick(MUTANTS))
def test_mutants_fail(name: str) -> None:
    check_mutant(KERNEL, MUTATED, TENSOR, *MUTANTS[name])


EIGHT = {"taps": 127, "decimation": 8, "sample_bits": 8}
BYTES = Config({**TENSOR, "STAGE": 12})
OTHERS = {
    "bytes before the start": (
        {"taps": 150, "decimation": 8},  # whose first steps are one more than needed
        TENSOR,
        "static_cast<unsigned>(left) > static_cast<unsigned>(end - begin)",
        "left < 0",
        "launch_failed",
    ),
    "a pair's shift": ({}, PAIRED, "bytes_5, selectors[1]) >> 6", "bytes_5, selectors[1]) >> 4", "wrong"),
    "a pair's bytes": ({}, PAIRED, "0x0145u + (rest & 0xff00u)", "0x0145u + rest", "wrong"),
    "a pair's last bytes": ({}, PAIRED, "0x2345u + (rest & 0x00ffu)", "0x2345u", "wrong"),
    "a pair's order": ({}, PAIRED, "+ Shape::BYTE_PERIOD * (1 - h)", "+ Shape::BYTE_PERIOD * h", "wrong"),
    "a pair's distance": (EIGHT, BYTES, "= Shape::BYTE_PERIOD * SAMPLE_BITS / 8;", "= SAMPLE_BITS / 4;", "wrong"),
    "a leader's bytes": (EIGHT, BYTES, "* 0x0101u + from_first", "* 0x0100u + from_first", "wrong"),
    "a leader's last byte": (
        {**EIGHT, "sample_bits": 12},
        BYTES,
        "0x1010u + last_byte_of(leader)",
        "0x1010u + (last_byte_of(leader) - 1)",
        "wrong",
    ),
    "pairs of a product": (
        EIGHT,
        BYTES,
        "first + pair / 2][pair % 2 * 2 + r]",
        "first + pair / 2][(1 - pair % 2) * 2 + r]",
        "wrong",
    ),
    "bits behind a pair": (
        {**EIGHT, "sample_bits": 12},
        BYTES,
        "(last_byte_of(leader) + 1) * 8 - (leader + 1) * SAMPLE_BITS",
        "4 - (last_byte_of(leader) + 1) * 8 + (leader + 1) * SAMPLE_BITS",
        "wrong",
    ),
    "samples of the skew": ({}, PAIRED, "first_byte -= skew * SAMPLE_BITS / 8;", "", "wrong"),
    "weights of the skew": ({}, PAIRED, "* DECIMATION - skew;", "* DECIMATION;", "wrong"),
    "chain": ({"taps": 1024, "decimation": 64}, LONG_TENSOR, "+ chain.at[c]", "+ chain.at[0]", "wrong"),
    "top bits": (
        {"taps": 128, "decimation": 8, "sample_bits": 12},
        {**TENSOR, "STAGE": 12},
        "1280 + (128 << TOP_BITS)",
        "1280 + (64 << TOP_BITS)",
        "wrong",
    ),
    "a field in two words": (
        {"taps": 129, "decimation": 16, "sample_bits": 11},
        {**TENSOR, "STAGE": 4},
        "group[word - in_two]",
        "group[word]",
        "wrong",
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", OTHERS)
def test_mutants_of_other_problems_fail(name: str) -> None:
    values, config, old, new, status = OTHERS[name]
    check_mutant(KERNEL, KERNEL.problem({**values, "n_samples": 20001}), Config(config), old, new, status)


# ---------------------------------------------------------------------- the text
GOLDENS = {
    "tensor": (SHORT, TENSOR),
    "tensor_chained": (LONG, LONG_TENSOR),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_ddc_tensor`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


def test_long_filters_are_added_in_short_chains() -> None:
    short, long = TensorGeometry(SHORT, TENSOR), TensorGeometry(LONG, LONG_TENSOR)
    assert short.mmas_per_chain == 0 and short.n_tiles == 9
    assert long.mmas_per_chain == 8 and long.weights_are_shared


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
