"""ddc by products of bytes: variants of every width against the definition, accuracy, weights of any size, mutants."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from autotune.kernels.ddc import Ddc
from autotune.kernels.ddc.tensor import TensorGeometry

from autotune import Config
from autotune.core.definition import Device
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory

from .common import check, check_mutant, first_is_quick, mutated, packed_bits, session_on
from .goldens import check_golden, write_goldens

KERNEL = Ddc()
HOPPER = Device("a GPU", "cuda", "sm_90")
INT8 = Config(
    ALGORITHM="tensor", MMA="wgmma_int8", WARPS=4, PART=1, SUMS="stay", STEP=4, STAGE=4, STAGES=2, WINDOW=32, RUN=32
)  # for decimation 16
VARIANTS: list[tuple[tuple[int, int, int], dict[str, int]]] = [  # taps, decimation, sample_bits
    ((256, 16, 8), {"RUN": 64}),  # five tiles of three octets, and one that fills the product
    ((257, 32, 8), {"STEP": 2, "WARPS": 8}),  # one tap more than four tiles have; lanes trade bytes
    ((288, 32, 8), {"STEP": 2, "STAGES": 3}),  # no room for runs that start earlier
    ((200, 25, 8), {"STEP": 2}),  # steps of 50 bytes, in products of 64
    ((1, 16, 8), {}),
    ((192, 48, 8), {"STEP": 2, "WARPS": 12, "WINDOW": 8}),  # parts of one product, of three
    ((99, 24, 4), {"STEP": 8, "PART": 2, "STAGE": 2}),
    ((150, 24, 2), {"STEP": 16, "PART": 4, "STAGE": 2}),
    ((200, 25, 6), {"PART": 2, "RUN": 64}),  # of 75
    ((257, 32, 3), {"STEP": 8, "PART": 4, "STAGE": 2}),
    ((100, 12, 5), {"STEP": 16, "PART": 4, "STAGE": 2}),
    ((200, 25, 7), {"STEP": 8, "PART": 4, "STAGE": 1, "RUN": 128}),  # of 175
    ((300, 24, 8), {"STEP": 4, "PART": 2, "STAGE": 2}),  # a part of two products, and one of one
    ((150, 24, 2), {"STEP": 8, "PART": 4, "STAGE": 4}),  # of four and of two
    ((1000, 64, 8), {"STEP": 4, "PART": 2, "RUN": 64, "STAGE": 1, "SUMS": "move"}),
    # sample by sample
    ((112, 7, 3), {"STEP": 8, "STAGE": 6, "WINDOW": 16, "RUN": 208}),  # rows that drift, of 10 pieces
    ((120, 7, 3), {"STEP": 8, "STAGE": 6, "RUN": 208}),  # whose last window is of 16 outputs; pairs of no 16 bytes
    ((90, 9, 2), {"STEP": 8, "STAGE": 8, "RUN": 64}),
    ((200, 33, 2), {"STEP": 2, "STAGE": 8, "RUN": 64}),  # steps of half bytes
    ((300, 31, 5), {"STEP": 4, "PART": 2, "STAGE": 2, "RUN": 64}),
    ((150, 31, 6), {"STEP": 2, "STAGE": 4, "RUN": 48, "WINDOW": 16}),
    ((150, 21, 7), {"STEP": 4, "STAGE": 2, "RUN": 64}),
    # two bytes a sample
    ((144, 16, 16), {"WARPS": 8}),  # no room for runs that start earlier
    ((125, 25, 16), {"STEP": 2, "STAGE": 2}),
    ((512, 32, 12), {"STEP": 2}),
    ((75, 15, 12), {}),  # 90 bytes
    ((120, 15, 8), {"STEP": 8, "RUN": 24, "WINDOW": 8, "WARPS": 12}),  # rows that start at two places of 16 bytes
    ((200, 25, 10), {"STEP": 8, "PART": 2, "STAGE": 1, "RUN": 24, "WINDOW": 8, "WARPS": 12}),  # at eight
    ((32, 32, 8), {"STEP": 4, "RUN": 44, "STAGE": 2}),  # one tile, and a window that is cut
    ((64, 4, 12), {"STEP": 16, "STAGE": 2}),
    ((300, 32, 10), {"PART": 2, "STAGE": 2}),
    ((100, 25, 10), {"STEP": 8, "PART": 2, "STAGE": 1, "RUN": 64}),  # 250 bytes, in four parts
    ((120, 15, 14), {"STEP": 8, "PART": 2, "STAGE": 1, "RUN": 64}),
    # and sample by sample
    ((64, 4, 14), {"STEP": 16, "STAGE": 4}),  # parts of one product, of two
    ((250, 31, 10), {"STEP": 2, "RUN": 56, "WINDOW": 16}),  # steps of half bytes, a window of 8 outputs
    ((130, 63, 14), {"STEP": 2, "PART": 2, "STAGE": 1}),
    # and of an odd width
    ((256, 32, 9), {"PART": 2, "STAGE": 2}),
    ((120, 9, 9), {"STEP": 16}),
    ((230, 24, 11), {"STEP": 2}),  # 48 samples, of 64
    ((250, 31, 11), {"STEP": 2, "RUN": 48, "WINDOW": 16}),  # steps of any bits, and rows at any even byte
    ((192, 64, 13), {"PART": 4, "STAGE": 1}),  # samples in up to 248 registers
    ((256, 16, 13), {"RUN": 40}),  # a window of 8 outputs
    ((75, 15, 13), {"STEP": 8, "STAGE": 2}),
    ((150, 48, 15), {"STEP": 2, "STAGE": 1}),
    ((200, 31, 15), {"PART": 2, "STAGE": 2}),
]


def problem_of(taps: int, decimation: int, sample_bits: int, **others: int) -> Any:
    return KERNEL.problem({"taps": taps, "decimation": decimation, "sample_bits": sample_bits, **others})


@cache
def variant(i: int, device: Device) -> tuple[Any, Config]:
    """The problem, and what the space has that is nearest to the configuration: of bytes, too."""
    problem, wanted = problem_of(*VARIANTS[i][0]), Config({**INT8, **VARIANTS[i][1]})
    only = {name: (wanted[name],) for name in ("ALGORITHM", "MMA", "WARPS", "RUN", "WINDOW")}
    any_run = replace(device, n_multiprocessors=0)  # such as fill no waves, too
    config = KERNEL.space.enumerate(problem, any_run, only).nearest(wanted)
    assert config.MMA == "wgmma_int8"
    return problem, config


def need_wgmma(target: Target) -> None:
    if target.device.arch not in ("sm_90", "host"):
        pytest.skip(f"only sm_90 has wgmma; this GPU is {target.device.arch}")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("i", range(0, len(VARIANTS), 2))
def test_variants_are_right(i: int, target: Target) -> None:
    """In the build that compiles fast; races are looked for in the variants that mutants are made of."""
    need_wgmma(target)
    check(KERNEL, *variant(i, target.device), target, session_on(target).check_builds[-1])


@pytest.mark.gpu
@pytest.mark.parametrize("i", range(1, len(VARIANTS), 2))
def test_the_other_variants_are_right_on_a_gpu(i: int, gpu: Target) -> None:
    need_wgmma(gpu)
    check(KERNEL, *variant(i, gpu.device), gpu, session_on(gpu).check_builds[-1])


def test_variants_cover_every_path() -> None:
    found = [variant(i, find_device("host").device) for i in range(len(VARIANTS))]
    geometries = [TensorGeometry(problem, config) for problem, config in found]
    assert {problem.sample_bits for problem, _ in found} == set(range(2, 17))
    for name, values in (("STEP", {2, 4, 8, 16}), ("WARPS", {4, 8, 12}), ("STAGES", {2, 3})):
        assert {config[name] for _, config in found} == values
    words = {(g.bits_per_step // 8 % 4 == 0, g.words_per_group * 32 == g.bits_per_group) for g in geometries}
    assert words == {(True, True), (True, False), (False, False)}  # whole words, and groups that are
    assert {g.mmas_per_part for g in geometries} == {1, 2, 4} and {g.byte_period for g in geometries} == {1, 2, 4, 8}
    assert {g.mmas_per_step * 32 > g.samples_per_step for g in geometries} == {True, False}
    assert {g.fill_octets > 0 for g in geometries} == {True, False}
    assert 1 in {g.n_tiles for g in geometries}


# ---------------------------------------------------------------------- accuracy
BYTE = (problem_of(256, 16, 8), Config({**INT8, "RUN": 64}))
TWO = (problem_of(512, 32, 12), Config({**INT8, "STEP": 2}))
WIDE = (problem_of(144, 16, 16), Config({**INT8, "WARPS": 8}))


def outputs(
    problem: Any, config: Config, target: Target, inputs: dict[str, Any], old: str = "", new: str = ""
) -> np.ndarray:
    """What the variant makes of these inputs; with ``old`` replaced in its source, if it is given."""
    session = session_on(target)
    build = session.check_builds[-1]
    rendered = mutated(KERNEL, problem, config, old, new) if old else render(KERNEL, problem, config)
    binary = target.module.compile(rendered, target.device, (build,))
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(session.load(binary, build), KERNEL.launch(problem, config))
        return placed.outputs()["baseband"]


def set_samples(kind: str, problem: Any, inputs: dict[str, Any]) -> None:
    """Samples of one stream; and weights and a mixer, where they belong to these."""
    n, largest = np.arange(problem.n_samples), 2 ** (problem.sample_bits - 1) - 1
    if (
        kind == "lowest"
    ):  # the largest sums there are: weights with bytes 127, 127 and 126, the most that scaling leaves
        inputs["weights"], inputs["mix_frequency"] = np.full(problem.taps, 2.0**23 - 32898, np.float32), 0.0
        samples = np.full(n.size, -largest - 1)
    elif kind == "noise":
        samples = np.random.default_rng(11).integers(-largest - 1, largest + 1, n.size)
    elif kind == "tone":
        samples = np.rint(largest * np.cos(2 * np.pi * 0.9999 * inputs["mix_frequency"] * n)).astype(int)
    else:  # every product of the first output is positive
        signs = np.cos(2 * np.pi * inputs["mix_frequency"] * n) * np.resize(inputs["weights"], n.size)
        samples = np.where(signs < 0, -largest - 1, largest)
    inputs["samples"] = packed_bits(samples[np.newaxis], problem.sample_bits)


@pytest.mark.parametrize("kind", ["noise", "tone", "signs", "lowest"])
@pytest.mark.parametrize(("problem", "config"), [BYTE, TWO, WIDE], ids=["8", "12", "16"])
def test_errors_are_those_of_float32(problem: Any, config: Config, kind: str, target: Target) -> None:
    need_wgmma(target)
    problem = KERNEL.problem({**vars(problem), "n_pols": 1, "n_samples": problem.taps + 1500 * problem.decimation})
    inputs = KERNEL.inputs(problem, np.random.default_rng(5))
    set_samples(kind, problem, inputs)
    reference = KERNEL.reference(problem, **inputs)["baseband"]
    error = np.abs(outputs(problem, config, target, inputs) - reference)
    scale = max(np.sqrt(np.mean(np.abs(reference) ** 2)), KERNEL.tolerance(problem).atol * 0.1 / 2.0**-23)
    assert error.max() < 4 * np.sqrt(problem.taps + 16) * 2.0**-23 * np.abs(reference).max()
    assert np.sqrt(np.mean(error**2)) < 6e-7 * scale


# ---------------------------------------------------------------------- weights of any size
SIZED = (problem_of(100, 32, 9, n_pols=1, n_samples=3000), Config({**INT8, "STEP": 8, "PART": 4, "STAGE": 1}))


def error_of(size: float, target: Target, old: str = "", new: str = "") -> float:
    """Largest error with weights of this size, over what it may be: of 9 bits, whose sums have the smallest scale.

    Weights are rounded as float32's are; and, below 2^-97, to multiples of 2^-119.
    """
    inputs = KERNEL.inputs(SIZED[0], np.random.default_rng(5))
    inputs["weights"] = (inputs["weights"] * size).astype(np.float32)
    error = np.abs(
        outputs(*SIZED, target, inputs, old, new) / size - KERNEL.reference(SIZED[0], **inputs)["baseband"] / size
    )
    rounding = np.sqrt(2) * 2.0**-120 / size * SIZED[0].taps * 2.0**8
    return float(error.max() / (KERNEL.tolerance(SIZED[0]).atol + (rounding if size < 2.0**-93 else 0)))


@pytest.mark.parametrize("size", [1e-37, 2.0**-99, 2.0**-93, 1e-12, 3e4, 1e30])  # the largest weight is 0.15 of it
def test_weights_of_any_size(size: float, target: Target) -> None:
    need_wgmma(target)
    assert error_of(size, target) < 1


def test_the_scale_of_small_weights_does_not_underflow(target: Target) -> None:
    need_wgmma(target)
    assert error_of(2.0**-99, target, "LEAST_EXPONENT = 30", "LEAST_EXPONENT = 29") > 1


def test_weights_of_zero(target: Target) -> None:
    need_wgmma(target)
    inputs = {**KERNEL.inputs(SIZED[0], np.random.default_rng(5)), "weights": np.zeros(SIZED[0].taps, np.float32)}
    assert not outputs(*SIZED, target, inputs).any()


def is_right_at_edge(below: int, target: Target, old: str = "", new: str = "") -> bool:
    """With a largest weight `below` floats below 2, and the others up to it, of either sign, not mixed."""
    problem = problem_of(100, 16, 8, n_pols=1, n_samples=3000)
    inputs = {**KERNEL.inputs(problem, np.random.default_rng(5)), "mix_frequency": 0.0, "mix_phase": 0.0}
    largest = 2 - below * 2.0**-23
    inputs["weights"] = np.float32(largest) * (inputs["weights"] / np.abs(inputs["weights"]).max())
    inputs["weights"][[3, 40]] = largest, -largest
    reference = KERNEL.reference(problem, **inputs)["baseband"]
    error = np.abs(outputs(problem, INT8, target, inputs, old, new) - reference).max()
    return bool(error < 4 * np.sqrt(problem.taps + 16) * 2.0**-23 * np.abs(reference).max())


@pytest.mark.parametrize("below", [0, 1, 32896, 65793, 65794, 65795, 65796])
def test_largest_weights_just_below_a_power_of_two(below: int, target: Target) -> None:
    """Bytes 0 and 1 are signed: those of 2^23 - 32896 and above would take their signs from a byte 2 of 128."""
    need_wgmma(target)
    assert is_right_at_edge(below, target)


@pytest.mark.planted
@pytest.mark.parametrize(("below", "almost"), [(1, 0), (65793, 65792)])
def test_mutants_of_the_scale_fail(below: int, almost: int, target: Target) -> None:
    need_wgmma(target)
    assert not is_right_at_edge(below, target, "ALMOST = 65795;", f"ALMOST = {almost};")


# ---------------------------------------------------------------------- mutants
MUTATED = {  # small: most of the time of a test is the compiler's
    "one": (problem_of(100, 16, 8), INT8),
    "two": (problem_of(33, 32, 12), Config({**INT8, "STEP": 2})),
    "turned": (problem_of(200, 15, 10), Config({**INT8, "STEP": 8, "PART": 2, "RUN": 64, "STAGE": 2})),  # of 150 bytes
    "moved": (problem_of(1000, 64, 8), Config({**INT8, "PART": 2, "RUN": 64, "STAGE": 1, "SUMS": "move"})),
    "short": (problem_of(100, 24, 8), Config({**INT8, "PART": 2, "STAGE": 2})),  # parts of two products and of one
    "narrow": (problem_of(112, 7, 3), Config({**INT8, "STEP": 8, "STAGE": 6, "WINDOW": 16, "RUN": 208})),
    "cut": (problem_of(112, 7, 3), Config({**INT8, "STEP": 8, "STAGE": 6, "RUN": 208})),  # windows of 32
    "two bits": (problem_of(90, 9, 2), Config({**INT8, "STEP": 8, "STAGE": 8, "RUN": 64})),
    "fields": (problem_of(50, 31, 11), Config({**INT8, "STEP": 2, "RUN": 64})),  # of 682 bits
}
MUTANTS = {
    "order of bytes": ("two", "bits_of<AT + 8, SAMPLE_BITS - 8>", "bits_of<AT, SAMPLE_BITS - 8>", "wrong"),
    "lower byte's sign": (
        "two",
        "multiply_u8<Shape::COLUMNS_PER_MMA>(sums",
        "multiply<Shape::COLUMNS_PER_MMA>(sums",
        "wrong",
    ),
    "upper byte's columns": ("two", "block, Weights::COLUMNS_EARLIER)", "block, 0)", "wrong"),
    "zeros in front": ("two", "this->before[threadIdx.x] = 0;", "", "launch_failed"),
    "carry": ("one", "+ 0x8080u) ^ 0x8080u", "+ 0x0080u) ^ 0x0080u", "wrong"),
    "bits of the next sample": ("two", "0xff00u >> n_bits &", "0xff00u >> n_bits + 1 &", "wrong"),
    "no skew": ("two", "? Shape::BYTE_PERIOD * (BYTES", "? 0 * (BYTES", "wrong"),
    "weights of the skew": ("one", "OUTPUTS * DECIMATION - skew;", "OUTPUTS * DECIMATION;", "wrong"),
    "gathered": ("turned", "(b3 / 4 > b2 / 4) * 4", "0", "wrong"),
    "bits of the next byte": ("turned", ">> (8 - o) & ~UPPER", ">> (7 - o) & ~UPPER", "wrong"),
    "order of samples": (
        "one",
        "+ q % Shape::BYTE_PERIOD + b * Shape::BYTE_PERIOD",
        "+ q % Shape::BYTE_PERIOD + (3 - b) * Shape::BYTE_PERIOD",
        "wrong",
    ),
    "byte of a word": ("turned", "0x1111u * (group_bit >> 3 & 3)", "0x1111u * (group_bit >> 3 & 1)", "wrong"),
    "bytes of a step": ("turned", "decode.align_to(stages.bit);  //", "//", "wrong"),
    "samples of the next step": ("turned", "is_own ? Shape::place_of_any", "true ? Shape::place_of_any", "wrong"),
    "no weight's zero": ("one", "mixed.weights[Shape::place_of_weight(TAPS)] = {};", ";", "launch_failed"),
    "phasors of far weights": ("moved", "own_weight(lane + 32 * i) - lane", "own_weight(32 * i) - lane", "wrong"),
    "phasors of near weights": (
        "one",
        "near = unit_vector(advance(frequency, lane))",
        "near = unit_vector(0)",
        "wrong",
    ),
    "register of a word": ("one", "is_second ? im : re;", "re;", "wrong"),
    "lanes that trade": ("two", "has_odd ? first : second, 2)", "has_odd ? first : second, 1)", "wrong"),
    "rows that are traded": ("two", "(has_odd ? second : first) +", "(has_odd ? first : second) +", "wrong"),
    "worth of odd bytes": ("two", "has_odd ? 0x1p8f : 1.0f", "has_odd ? 0x1p7f : 1.0f", "wrong"),
    "worth of bytes": ("moved", "fmaf(number, 0x1p8f,", "fmaf(number, 0x1p7f,", "wrong"),
    "worth of two bytes": ("one", "bytes[0] + bytes[4] * 256", "bytes[0] + bytes[4] * 128", "wrong"),
    "worth of the other bytes": ("one", "fmaf(number, 0x1p16f,", "fmaf(number, 0x1p15f,", "wrong"),
    "first bytes": ("fields", "(low, high, 0x7632)", "(low, high, 0x6732)", "wrong"),
    "second bytes": ("fields", "(low, high, 0x5410)", "(low, high, 0x4510)", "wrong"),
    "field in two words": ("fields", "__funnelshift_l(group[word + 1], group[word], at)", "group[word] << at", "wrong"),
    "samples of a register": ("fields", ": r * 4 + b;", ": r * 4 + 3 - b;", "wrong"),
    "samples of two bits": ("two bits", "4 * (1 - b % 2) + b / 2 * 2 + r", "4 * (b % 2) + b / 2 * 2 + r", "wrong"),
    "half a byte": ("two bits", "(twice << 4 ^ twice)", "(twice << 2 ^ twice)", "wrong"),
    "rows of one box": (
        "narrow",
        "Shape::DRIFT != 0 && Shape::ROWS_PER_BOX %",
        "false && Shape::ROWS_PER_BOX %",
        "wrong",
    ),
    "samples of a product": ("narrow", "(4 * Shape::SAMPLES_PER_GROUP)", "(3 * Shape::SAMPLES_PER_GROUP)", "wrong"),
    "products of a part": ("short", "MMAS_PER_STEP - part * MMAS_PER_PART : MMAS_PER_PART", "1 : 1", "wrong"),
    "products of the last part": (
        "short",
        "? MMAS_PER_STEP - part * MMAS_PER_PART :",
        "? MMAS_PER_PART :",
        "launch_failed",
    ),
    "place that is done": (
        "one",
        "put_place<(Shape::N_TILES - FIRST + 1) %",
        "put_place<(Shape::N_TILES - FIRST) %",
        "wrong",
    ),
    "blocks of a step": (
        "one",
        "block > 0 ? block - 1 : Shape::N_TILES - 1",
        "block < Shape::N_TILES - 1 ? block + 1 : 0",
        "wrong",
    ),
    "place of an open tile": ("one", "(Shape::STEPS_PER_RUN + 1 + TILE)", "(Shape::STEPS_PER_RUN + TILE)", "wrong"),
    "sums that do not move": ("moved", "done[i] : sums[i - Mma::SUMS_PER_TILE];", "done[i] : sums[i];", "wrong"),
    "second place of a block": (
        "one",
        "!Shape::SUMS_MOVE && at < Shape::N_TILES - 1;",
        "!Shape::SUMS_MOVE && at < Shape::N_TILES - 2;",
        "launch_failed",
    ),
    "order of blocks": ("moved", "Shape::SUMS_MOVE ? Shape::N_TILES - 1 - at", "Shape::SUMS_MOVE ? at", "wrong"),
    "bits of a byte": ("fields", "Shape::STEPS_ARE_BYTES ? 0 : opaque(group_bit & 7);", "0;", "wrong"),
    "bits of the next word": ("fields", "w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0", "0", "wrong"),
    "byte of a field's word": ("fields", "0x1111u * (group_bit >> 3 & 3)", "0x1111u * (group_bit >> 3 & 1)", "wrong"),
    "pairs at any output": ("turned", "(row - lead) % 16 == 0", "(row - lead) % 8 == 0", "launch_failed"),
    "second of a pair": ("turned", "make_float2(y.at[2], y.at[3])", "make_float2(y.at[2], y.at[1])", "wrong"),
    "second of half of the outputs": ("turned", "two[pair.apart]", "two[1]", "wrong"),
    "first of half of the outputs": ("turned", "(is_paired ? 2 : 1)", "2", "wrong"),
    "phasors of half of the outputs": ("turned", "first + i * apart", "first + i", "wrong"),
    "outputs behind a run": ("cut", "offset + pair.first >= Shape::OUTPUTS_PER_RUN)", "false)", "launch_failed"),
    "second outputs behind it": ("cut", "offset + pair.first + pair.apart < Shape::OUTPUTS_PER_RUN;", "true;", "wrong"),
    "a last window that is cut": (
        "cut",
        "epilogue.drain(Shape::OUTPUTS_PER_RUN / Shape::OUTPUTS_PER_WINDOW * Shape::OUTPUTS_PER_WINDOW);",
        ";",
        "wrong",
    ),
    "behind the last row": ("two", "overlap - (n_behind < 1) * Shape::WINDOW_PITCH", "overlap", "launch_failed"),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", MUTATED)
def test_what_mutants_are_made_of_is_right(name: str, target: Target) -> None:
    need_wgmma(target)
    assert KERNEL.space.broken(*MUTATED[name], target.device) is None
    check(KERNEL, *MUTATED[name], target, session_on(target).check_builds[0])


@pytest.mark.planted
@pytest.mark.parametrize("name", first_is_quick(MUTANTS))
def test_mutants_fail(name: str) -> None:
    of, old, new, status = MUTANTS[name]
    check_mutant(KERNEL, *MUTATED[of], old, new, status)


# ---------------------------------------------------------------------- the space, and the text
def int8_configs(taps: int, decimation: int, sample_bits: int, arch: str = "sm_90") -> tuple[Config, ...]:
    only = {"ALGORITHM": ("tensor",), "MMA": ("wgmma_int8",), "WARPS": (4,), "RUN": (64,), "WINDOW": (32,)}
    device = Device("a GPU", "cuda", arch)
    return tuple(KERNEL.space.enumerate(problem_of(taps, decimation, sample_bits), device, only).configs)


def test_samples_of_any_width_have_it() -> None:
    for sample_bits in range(2, 17):
        assert int8_configs(512, 32, sample_bits)


def test_only_hopper_has_it_and_steps_have_two_parts() -> None:
    assert not int8_configs(512, 32, 8, "sm_80")
    assert not int8_configs(32, 2, 8)  # 16 outputs are one product


def test_tensor_cores_have_little_more_to_do_than_they_must() -> None:
    """At most a third more than by the best STEP; or STEP is twice the least."""

    def steps(taps: int, decimation: int, sample_bits: int) -> set[int]:
        return {int(config.STEP) for config in int8_configs(taps, decimation, sample_bits)}

    assert steps(512, 32, 8) == {2, 4, 8}  # 16: 2 tiles of 512 samples, 8: 3 of 256
    assert steps(80, 5, 4) == {8, 16}  # 40 of 64 samples, and 80 of 96
    assert steps(15, 15, 8) == {4, 8}  # one tile in any case: twice the least


def test_columns_of_products() -> None:
    byte, pair, two = (TensorGeometry(*some) for some in (BYTE, (BYTE[0], Config({**INT8, "STEP": 2})), TWO))
    assert (byte.n_tiles, byte.operands_per_sample, byte.columns_per_output) == (5, 1, 6)
    assert (byte.octets_per_tile, byte.fill_octets) == (3, 1)
    assert (pair.operands_per_sample, pair.columns_per_output) == (1, 8)  # a fourth byte, for whole octets
    assert (two.n_tiles, two.operands_per_sample, two.columns_per_output) == (9, 2, 8)
    assert pair.fill_octets == two.fill_octets == 0
    assert byte.columns_per_mma == 128  # an even number of octets


GOLDENS: dict[str, tuple[Any, Any]] = {
    "wgmma_int8": (problem_of(1024, 64, 8), Config({**INT8, "PART": 2, "RUN": 64, "STAGE": 1})),
    "wgmma_int8_two": (TWO[0], TWO[1]),
    "wgmma_int8_fields": (problem_of(496, 31, 11), Config({**INT8, "STEP": 2})),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_ddc_int8`, and read the diff."""
    assert KERNEL.space.broken(*GOLDENS[name], HOPPER) is None
    check_golden(KERNEL, name, *GOLDENS[name])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
