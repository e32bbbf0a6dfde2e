"""beamform: the definition against its formula, variants of all parameter values against the definition, mutants."""

import cmath
import dataclasses
from typing import Any

import numpy as np
import pytest
from autotune.kernels.beamform import Beamform, Problem
from autotune.kernels.beamform.beamform import MARGINS, is_exact
from autotune.kernels.beamform.problem import PRECISIONS
from autotune.kernels.beamform.voltages import beams_before_rounding, dither, unpacked, weights_of
from autotune.kernels.correlate import Correlate
from autotune.kernels.correlate import Problem as Correlation

from autotune import Config, UsageError
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory

from .common import check, check_mutant, covering, first_is_quick, session_on
from .goldens import check_golden, write_goldens

KERNEL = Beamform()
THREADS = Config({**KERNEL.default, "TIMES": 128, "SPLIT": 2, "ANTENNAS_PER_STAGE": 8})
TENSOR = Config(
    ALGORITHM="mma_sync", BEAMS_PER_BLOCK=16, TIMES=64, COARSEN=1, ANTENNAS_PER_STAGE=8, STAGES=3, WEIGHTS="kept",
    SPLIT=2, STORE="plain",
)  # fmt: skip
STAGED = Config({**THREADS, "BEAMS_PER_BLOCK": 4, "COARSEN": 1, "WEIGHTS": "staged", "STORE": "stream"})
STAGED_TENSOR = Config({**TENSOR, "COARSEN": 2, "BEAMS_PER_BLOCK": 8, "WEIGHTS": "staged", "STORE": "stream"})
SMALL: dict[str, Any] = {"n_times": 76, "n_antennas": 19, "n_channels": 2, "n_batches": 3}
DEFAULT = KERNEL.tuned[0]
PROBLEMS: list[dict[str, Any]] = [
    {**SMALL, "n_beams": 11},
    {**SMALL, "n_beams": 1, "n_times": 4, "n_antennas": 3, "n_channels": 5},
    {**SMALL, "n_beams": 45, "dither": True, "n_antennas": 4, "first_channel": 30000, "n_all_channels": 32768},
    {**SMALL, "n_beams": 6, "mixes": True, "n_antennas": 33},
    {**SMALL, "n_beams": 5, "bits": 4, "n_times": 40, "dither": True, "first_time": 2**40},
    {**SMALL, "n_beams": 9, "bits": 4, "n_times": 72, "nibbles": "real_high", "mixes": True, "n_antennas": 80},
    {**SMALL, "n_beams": 4, "n_times": 260, "n_batches": 5, "first_batch": 1, "n_used": 3, "n_antennas": 8},
    {**SMALL, "n_beams": 11, "precision": "half"},
    {**SMALL, "n_beams": 19, "precision": "half", "mixes": True, "dither": True, "n_times": 80, "n_antennas": 33},
    {**SMALL, "n_beams": 5, "precision": "half", "bits": 4, "n_times": 40, "first_channel": 9, "n_all_channels": 16384},
    {**SMALL, "n_beams": 11, "precision": "planes", "n_antennas": 33},
    {**SMALL, "n_beams": 9, "precision": "planes", "n_antennas": 1024, "n_times": 12, "mixes": True},
    {**SMALL, "n_beams": 2, "precision": "planes", "n_antennas": 4},
    {**SMALL, "n_beams": 3, "precision": "half", "n_antennas": 3, "n_channels": 1, "n_batches": 1, "n_times": 324},
    {
        **SMALL,
        "n_beams": 19,
        "precision": "planes",
        "mixes": True,
        "dither": True,
        "n_antennas": 9,
        "first_time": 2**33,
    },
    {**SMALL, "n_beams": 5, "precision": "planes", "bits": 4, "n_times": 72, "nibbles": "real_high", "n_antennas": 80},
]


def identify(values: dict[str, Any]) -> str:
    return "-".join(f"{name}={value}" for name, value in values.items() if SMALL.get(name) != value)


def computed(problem: Problem, config: Config, target: Target, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
    """What one launch makes of the inputs."""
    session = session_on(target)
    binary = target.module.compile(render(KERNEL, problem, config), target.device)
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(session.load(binary, session.check_builds[0]), KERNEL.launch(problem, config))
        return dict(placed.outputs())


def plain_inputs(problem: Problem, seed: int = 0) -> dict[str, Any]:
    """Inputs without delays, whose antennas are all present and which begin from nothing."""
    inputs: dict[str, Any] = dict(KERNEL.inputs(problem, np.random.default_rng(seed)))
    inputs["saturated"] = np.zeros_like(inputs["saturated"])
    inputs["delays"] = np.zeros_like(inputs["delays"])
    inputs["present"] = np.ones_like(inputs["present"])
    return inputs


def configs_of(problem: Problem, target: Target) -> list[Config]:
    """One config of each algorithm that the problem has."""
    found = KERNEL.space.enumerate(problem, target.device)
    wanted = {"single": (THREADS, STAGED), "half": (TENSOR, STAGED), "planes": (TENSOR, STAGED_TENSOR)}
    return [found.nearest(each) for each in wanted[problem.precision]]


# ---------------------------------------------------------------------- the definition
def mixed(word: int) -> int:
    word = (word ^ word >> 16) * 0x7FEB352D % 2**32
    word = (word ^ word >> 15) * 0x846CA68B % 2**32
    return word ^ word >> 16


def noise(seed: int, channel: int, beam: int, time: int) -> complex:
    """The hash that the page states, one sample at a time."""
    first = mixed((mixed((mixed(seed) + channel) % 2**32) + beam) % 2**32)
    second = mixed((mixed((mixed(seed ^ 0x9E3779B9) + beam) % 2**32) + channel) % 2**32)
    low, high = time % 2**32, time // 2**32
    word = mixed(mixed((low + first) % 2**32) ^ (second + high * 0x85EBCA6B) % 2**32)
    return complex((word % 65536 + 0.5) / 65536 - 0.5, (word // 65536 + 0.5) / 65536 - 0.5)


def part_of(problem: Problem, voltages: np.ndarray, index: tuple[int, ...]) -> complex:
    """Returns one voltage. ``index``: batch, antenna, channel, time, polarisation."""
    found = voltages[index]
    if problem.bits == 8:
        return complex(*found.tolist())
    low, high = (nibble - 16 * (nibble > 7) for nibble in (int(found) & 15, int(found) >> 4 & 15))
    return complex(low, high) if problem.nibbles == "real_low" else complex(high, low)


@pytest.mark.quick
@pytest.mark.parametrize("values", PROBLEMS[:6], ids=identify)
def test_reference_is_the_formula(values: dict[str, Any]) -> None:
    problem = KERNEL.problem({**values, "n_times": 8, "n_antennas": min(values["n_antennas"], 5), "n_batches": 2})
    inputs: Any = KERNEL.inputs(problem, np.random.default_rng(5))
    got = KERNEL.reference(problem, **inputs)
    counts = inputs["saturated"].astype(int)
    for n, b, c, t in np.ndindex(2, problem.n_beams, problem.n_channels, 8):
        total = 0j
        for a in range(problem.n_antennas):
            number = problem.first_channel + c - (problem.n_all_channels or problem.n_channels) / 2
            turn = cmath.exp(1j * cmath.pi * (float(inputs["delays"][b, a]) * number % 2))
            for p in (0, 1) if problem.mixes else (int(inputs["pols"][b]),):
                w = complex(inputs["weights"][(b, a, p) if problem.mixes else (b, a)])
                if inputs["present"][n, a]:
                    total += w * turn * part_of(problem, inputs["voltages"], (n, a, c, t, p))
        if problem.dither:
            total += noise(problem.seed, problem.first_channel + c, b, problem.first_time + n * 8 + t)
        rounded = round(total.real), round(total.imag)  # Python rounds halves to even
        assert got["beams"][n, b, c, t].tolist() == [max(-127, min(127, part)) for part in rounded]
        counts[n, b] += max(map(abs, rounded)) > 127
    np.testing.assert_array_equal(got["saturated"], counts)


def test_dither_is_uniform_and_of_no_other_beam_channel_or_time() -> None:
    times = np.arange(2**32 - 2000, 2**32 + 2000)
    one, other = dither(1, 5, 64, times), dither(1, 6, 64, times)
    for parts in (one.real, one.imag):
        assert -0.5 < parts.min() < -0.499 and 0.499 < parts.max() < 0.5
        assert abs(parts.mean()) < 3e-3 and abs(parts.var() - 1 / 12) < 1e-3
    pairs = [
        *((one.real, one.imag), (one, other), (one, dither(2, 5, 64, times)), (one[1:], one[:-1])),
        *((one[:, 1:], one[:, :-1]), (one, dither(1, 5, 64, times + 2**32))),
    ]
    for a, b in pairs:
        assert abs(np.mean(a * np.conj(b)) * 12) < 0.02


@pytest.mark.parametrize("precision", PRECISIONS)
def test_inputs_are_exact_or_far_from_where_rounding_changes(precision: str) -> None:
    problem = KERNEL.problem({**SMALL, "n_beams": 18, "n_times": 64, "precision": precision})
    inputs: Any = KERNEL.inputs(problem, np.random.default_rng(1))
    assert is_exact(problem)
    sums = np.stack([found for _, _, found in beams_before_rounding(problem, inputs)])
    parts = sums.view(np.float64)
    from_half = np.abs(parts - np.floor(parts) - 0.5)
    halves = from_half == 0
    lone = np.count_nonzero(inputs["weights"], axis=1) == 1
    assert halves[:, lone].any() and not halves[:, ~lone].any()
    assert from_half[:, ~lone].min() > MARGINS[precision][0] * 6
    clipped = (np.abs(np.rint(parts)) > 127).mean()
    assert 0 < clipped < 0.1 and (inputs["voltages"] == -128).any() and (inputs["present"] == 0).any()
    assert KERNEL.tolerance(problem)["beams"].atol == 0 < KERNEL.tolerance(DEFAULT)["beams"].atol == 1


def test_a_phase_has_no_more_than_rounding_at_the_end_of_a_wide_band() -> None:
    problem = KERNEL.problem({"n_beams": 1, "first_channel": 32767, "n_all_channels": 32768, "n_channels": 1})
    inputs: Any = KERNEL.inputs(problem, np.random.default_rng(1))
    angle = np.pi * inputs["delays"].astype(np.longdouble) * np.longdouble(32767 - 16384)
    expected = inputs["weights"] * np.exp(1j * angle.astype(np.clongdouble))
    got = weights_of(problem, inputs, 0)[..., int(inputs["pols"][0])]
    np.testing.assert_allclose(got, expected.astype(complex), rtol=0, atol=1e-10)


def test_beams_have_the_power_that_visibilities_say() -> None:
    """w^H V w of correlate's visibilities is a beam's power, for beams of one polarisation and of both."""
    n_antennas = 7
    correlate, correlation = (
        Correlate(),
        Correlation(layout="batches", n_receivers=n_antennas, n_times=76, n_channels=2, n_batches=3),
    )
    i, j = (np.array(x) for x in zip(*((i, j) for j in range(n_antennas) for i in range(j + 1)), strict=True))
    for mixes in (False, True):
        problem = KERNEL.problem({**SMALL, "n_antennas": n_antennas, "n_beams": 6, "mixes": mixes})
        inputs: Any = KERNEL.inputs(problem, np.random.default_rng(3))
        inputs["present"][:] = 1
        inputs["voltages"] = np.maximum(inputs["voltages"], -127)
        zeros = np.zeros(correlate.arrays(correlation)["accumulators"].shape, np.int64)
        found = correlate.reference(correlation, voltages=inputs["voltages"], accumulators=zeros)["accumulators"][0]
        power = np.zeros((problem.n_beams, 2))
        for _, c, sums in beams_before_rounding(problem, inputs):
            power[:, c] += (np.abs(sums) ** 2).sum(axis=-1)
        for c in range(2):
            products = (found[c, ..., 0] + 1j * found[c, ..., 1]).reshape(-1, 2, 2)  # [baseline, q, p]
            v = np.zeros((n_antennas, 2, n_antennas, 2), complex)
            v[j, :, i, :] = products.conj()
            v[i, :, j, :] = products.transpose(0, 2, 1)
            w = weights_of(problem, inputs, c).reshape(problem.n_beams, -1)
            from_visibilities = np.einsum("bi,ij,bj->b", w, v.reshape(w.shape[1], -1), w.conj())
            np.testing.assert_allclose(from_visibilities, power[:, c], rtol=1e-9)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"n_beams": 4097}, "n_beams=4097 must be 1 to 4096"),
        ({"n_antennas": 0}, "n_antennas=0 must be 1 to 1024"),
        ({"n_channels": 0}, "n_channels=0, n_batches=32: each is at least 1"),
        ({"bits": 16}, "bits=16 must be 4 or 8"),
        ({"nibbles": "high", "bits": 4}, "nibbles=high must be real_low or real_high"),
        ({"nibbles": "real_high"}, "nibbles=real_high is for bits=4"),
        ({"n_times": 6}, "n_times=6 of bits=8 is not whole pieces of 16 bytes: use a multiple of 4"),
        ({"n_times": 12, "bits": 4}, "n_times=12 of bits=4 is not whole pieces of 16 bytes: use a multiple of 8"),
        ({"precision": "double"}, "precision=double must be single, half, planes"),
        (
            {"first_batch": 30, "n_used": 3, "n_batches": 32},
            "n_used=3: not a range of the n_batches=32 b",
        ),
        (
            {"first_channel": 9, "n_all_channels": 256, "n_channels": 256},
            "n_channels=256: not a range of the n_all",
        ),
        ({"n_all_channels": 2**23 + 2}, "above 2\\^23 a float32 does not number them"),
        ({"seed": -1}, "seed=-1 must be 0 to"),
        ({"first_time": 2**62}, "must be 0 to 2\\^62 - 1"),
    ],
)
def test_problems_that_cannot_be_say_why(values: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        KERNEL.problem(values)


def test_sizes_follow_from_the_voltages() -> None:
    voltages = np.zeros((3, 19, 6, 36, 2, 2), np.int8)
    problem = KERNEL.problem_for({"n_times": 36}, {"voltages": voltages})
    assert (problem.n_batches, problem.n_antennas, problem.n_channels) == (3, 19, 6)
    assert KERNEL.arrays(problem)["beams"].shape == (3, 8, 6, 36, 2)
    with pytest.raises(UsageError, match="voltages has n_times=36, the problem n_times=40"):
        KERNEL.problem_for({"n_times": 40}, {"voltages": voltages})


# ---------------------------------------------------------------------- the space
def test_every_problem_has_a_configuration() -> None:
    device = find_device("host").device
    few = ({"n_beams": n, "precision": precision} for n in range(1, 10) for precision in PRECISIONS)
    for values in (*PROBLEMS, *few, {"n_beams": 4096, "n_antennas": 1024, "mixes": True}, {"n_times": 4096}):
        problem = KERNEL.problem(values)
        config = KERNEL.default_config(problem, device)
        assert KERNEL.launch(problem, config).shared_bytes <= device.max_shared_bytes


@pytest.mark.parametrize(
    ("values", "change", "reason"),
    [
        ({}, {"TIMES": 512, "COARSEN": 1}, "a block has 32 to 256 threads"),
        ({}, {"TIMES": 32}, "a block has 32 to 256 threads"),
        ({"n_beams": 4}, {}, "less than twice as wide as the beams"),
        ({"n_beams": 5}, {}, ""),
        ({"n_times": 64}, {"TIMES": 128}, "less than twice as long as a batch"),
        ({"n_times": 65 * 4}, {"TIMES": 512}, ""),
        ({"n_beams": 16}, {"BEAMS_PER_BLOCK": 16, "COARSEN": 4, "TIMES": 128}, "sums fit in its registers"),
        ({"n_beams": 16}, {"BEAMS_PER_BLOCK": 1}, "four sums or more"),
        ({"n_beams": 1}, {"BEAMS_PER_BLOCK": 1}, ""),
        ({"n_antennas": 1024, "n_beams": 16}, {"BEAMS_PER_BLOCK": 16, "COARSEN": 1}, ""),
        ({"n_antennas": 1024, "n_beams": 16, "mixes": True}, {"BEAMS_PER_BLOCK": 16, "COARSEN": 1}, "fit in shared"),
        (
            {"precision": "planes"},
            {},
            "float32 cores are for precision single or half",
        ),
        ({}, dict(TENSOR), "float32 cores are for precision single or half"),
        ({"precision": "half"}, {**TENSOR, "BEAMS_PER_BLOCK": 4}, "whole octets of beams"),
        ({"precision": "half", "n_beams": 1}, {**TENSOR, "BEAMS_PER_BLOCK": 8}, ""),
        ({"precision": "half", "n_beams": 64}, {**TENSOR, "BEAMS_PER_BLOCK": 64}, ""),
        ({"precision": "planes", "n_beams": 64}, {**TENSOR, "BEAMS_PER_BLOCK": 64}, "sums fit in its registers"),
        ({"n_channels": 2**21, "n_batches": 1}, {"TIMES": 64}, ""),
        ({"n_channels": 2**21, "n_batches": 1, "n_times": 2**16}, {"TIMES": 64}, "the grid has room"),
    ],
)
def test_constraints_hold_where_they_say(values: dict[str, Any], change: dict[str, Any], reason: str) -> None:
    broken = KERNEL.space.broken(KERNEL.problem(values), Config({**THREADS, **change}), find_device("host").device)
    assert bool(reason) == (broken is not None) and reason in getattr(broken, "reason", "")


# ---------------------------------------------------------------------- the variants
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"mixes": True, "dither": True},
        {"precision": "half", "n_beams": 24},
        {"precision": "planes", "n_beams": 33, "n_antennas": 200},
        {"precision": "half", "n_beams": 20, "mixes": True, "bits": 4},
    ],
    ids=identify,
)
def test_every_parameter_value_is_right(values: dict[str, Any], target: Target) -> None:
    problem = KERNEL.problem(
        {"n_beams": 17, "n_times": 264, "n_antennas": 300, "n_channels": 1, "n_batches": 9} | values
    )
    for config in covering(KERNEL, problem, target):
        check(KERNEL, problem, config, target)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", first_is_quick(PROBLEMS), ids=identify)
def test_any_problem_is_right(values: dict[str, Any], target: Target) -> None:
    problem = KERNEL.problem(values)
    assert is_exact(problem)
    for config in configs_of(problem, target):
        check(KERNEL, problem, config, target, session_on(target).check_builds[0])
        inputs: Any = KERNEL.inputs(problem, np.random.default_rng(8))
        got, expected = computed(problem, config, target, inputs), KERNEL.reference(problem, **inputs)
        for name, array in expected.items():
            np.testing.assert_array_equal(got[name], array)


@pytest.mark.parametrize(("precision", "share"), [("single", 2e-4), ("half", 0.01), ("planes", 4e-3)])
def test_what_differs_is_near_a_half(precision: str, share: float, target: Target) -> None:
    """With any inputs: few parts differ, by 1, where the exact sum lies as near a half as MARGINS says."""
    fields = {"n_beams": 32, "n_times": 128, "n_antennas": 32, "n_channels": 2, "n_batches": 2, "precision": precision}
    problem = KERNEL.problem(fields)
    drawn = dataclasses.replace(problem, n_antennas=512)  # too many products for inputs without doubt
    assert not is_exact(drawn)
    inputs: Any = KERNEL.inputs(drawn, np.random.default_rng(6))
    for name, axis in (("voltages", 1), ("weights", 1), ("delays", 1), ("present", 1)):
        inputs[name] = np.ascontiguousarray(np.take(inputs[name], range(32), axis=axis))
    inputs["weights"] *= 4  # a sixteenth of the antennas
    sums = np.empty((2, 32, 2, 128), complex)
    for n, c, found in beams_before_rounding(problem, inputs):
        sums[n, :, c] = found
    parts = sums.view(np.float64).reshape(2, 32, 2, 128, 2)
    from_half = np.abs(parts - np.floor(parts) - 0.5)
    expected = KERNEL.reference(problem, **inputs)
    for config in configs_of(problem, target):
        got = computed(problem, config, target, inputs)
        differs = got["beams"] != expected["beams"]
        assert np.abs(got["beams"].astype(int) - expected["beams"]).max() <= 1
        assert differs.mean() <= share
        rms = np.sqrt(np.mean(np.abs(sums) ** 2, axis=(0, 2, 3))).reshape(1, -1, 1, 1, 1)
        assert (from_half / rms)[differs].max(initial=0) <= 4 * MARGINS[precision][0]
        assert np.abs(got["saturated"].astype(int) - expected["saturated"]).max() <= 4


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("bits", [8, 4])
def test_a_beam_of_one_antenna_is_its_voltages(bits: int, precision: str, target: Target) -> None:
    """Bit by bit; -128 becomes -127, and is counted."""
    problem = KERNEL.problem({**SMALL, "n_beams": 5, "bits": bits, "n_times": 40, "precision": precision})
    inputs = plain_inputs(problem)
    inputs["weights"][:] = 0
    chosen = (0, 7, 18, 3, 11)
    inputs["weights"][range(5), chosen] = 1
    parts = unpacked(problem, inputs["voltages"])
    expected = np.stack([parts[:, a, :, :, p] for a, p in zip(chosen, inputs["pols"], strict=True)], axis=1)
    lowest = (expected == -128).any(axis=-1).sum(axis=(2, 3))
    assert (lowest > 0).any() == (bits == 8)
    for config in configs_of(problem, target):
        got = computed(problem, config, target, inputs)
        np.testing.assert_array_equal(got["beams"], np.maximum(expected, -127))
        np.testing.assert_array_equal(got["saturated"], lowest)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_may_be_zero_tiny_or_so_large_that_all_is_clipped(precision: str, target: Target) -> None:
    problem = KERNEL.problem({**SMALL, "n_beams": 10, "precision": precision})
    inputs = plain_inputs(problem)
    inputs["weights"] *= np.repeat(np.float32([0, 1e-9, 1e-3, 1e6, 1e15]), 2)[:, np.newaxis]
    expected = KERNEL.reference(problem, **inputs)
    for config in configs_of(problem, target):
        got = computed(problem, config, target, inputs)
        np.testing.assert_array_equal(got["saturated"], expected["saturated"])
        assert (got["beams"] != expected["beams"]).mean() < 1e-3  # the sign of a sum that nearly cancels may differ
        assert not got["beams"][:, :6].any() and (got["saturated"][:, 6:] >= 0.9 * 2 * 76).all()


def test_the_largest_weights_fit_in_planes(target: Target) -> None:
    """Those just below a power of two, and at the limit of 15 bits, of either sign and in either part."""
    problem = KERNEL.problem({**SMALL, "n_beams": 8, "precision": "planes"})
    inputs = plain_inputs(problem)
    inputs["weights"][:] = 0
    inputs["weights"][range(8), range(8)] = np.outer((1 - 2**-14, 16319 / 16384), (1, -1, 1j, -1j)).ravel()
    expected = KERNEL.reference(problem, **inputs)["beams"]
    for config in configs_of(problem, target):
        got = computed(problem, config, target, inputs)["beams"]
        assert np.abs(got.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_missing_antenna_counts_nothing(precision: str, target: Target) -> None:
    """Whatever its voltages are; a batch without any antenna is zeros, and other batches stay as they are."""
    fields = {**SMALL, "n_beams": 5, "n_batches": 4, "first_batch": 1, "n_used": 2, "precision": precision}
    problem = KERNEL.problem(fields)
    inputs = plain_inputs(problem)
    inputs["present"][1, ::2] = inputs["present"][2] = 0
    inputs["voltages"][1, ::2] = -128
    absent = {**inputs, "voltages": inputs["voltages"].copy()}
    absent["voltages"][1, ::2] = absent["voltages"][2] = 0
    for config in configs_of(problem, target):
        got, expected = (computed(problem, config, target, each) for each in (inputs, absent))
        for name, array in expected.items():
            np.testing.assert_array_equal(got[name], array)
        assert got["beams"][1].any() and not got["beams"][2].any() and not got["saturated"][2].any()
        np.testing.assert_array_equal(got["beams"][[0, 3]], inputs["beams"][[0, 3]])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("dithers", [False, True])
def test_cuts_of_times_and_channels_change_nothing(dithers: bool, precision: str, target: Target) -> None:
    """A launch of all batches is two of some, and one of a part of the array and the band by itself."""
    values = {**SMALL, "n_beams": 6, "dither": dithers, "n_batches": 5, "seed": 77, "first_time": 2**32 - 100}
    values["precision"] = precision
    problem = KERNEL.problem({**values, "n_channels": 4, "first_channel": 3, "n_all_channels": 64})
    inputs: Any = KERNEL.inputs(problem, np.random.default_rng(4))
    for config in configs_of(problem, target):
        whole = computed(problem, config, target, inputs)
        first = computed(dataclasses.replace(problem, n_used=2), config, target, inputs)
        both = computed(dataclasses.replace(problem, first_batch=2, n_used=3), config, target, {**inputs, **first})
        later = dataclasses.replace(
            problem, n_batches=2, n_channels=2, first_channel=5, first_time=problem.first_time + 3 * problem.n_times
        )
        cut = {
            **inputs,
            **{name: inputs[name][3:] for name in ("saturated", "present")},
            "beams": np.ascontiguousarray(inputs["beams"][3:, :, 2:]),
            "voltages": np.ascontiguousarray(inputs["voltages"][3:, :, 2:]),
        }
        alone = computed(later, config, target, cut)
        for name, array in whole.items():
            np.testing.assert_array_equal(both[name], array)
        np.testing.assert_array_equal(alone["beams"], whole["beams"][3:, :, 2:])


def mutants() -> list[Any]:
    """(config, fields of the problem, text to replace, its replacement, the status that must follow)."""
    dithers, mixes, four_bits = {"dither": True}, {"mixes": True}, {"bits": 4, "n_times": 80}
    high, clamped = four_bits | {"nibbles": "real_high"}, "fmaxf(v.x, -MAXIMUM), MAXIMUM)"
    half, planes = {"precision": "half"}, {"precision": "planes"}
    found = [
        (THREADS, {}, "__syncthreads();  // all weights", "//", "launch_failed"),
        (STAGED, {}, "__syncthreads();  // nobody", "//", "launch_failed"),
        (STAGED, {}, "__syncthreads();  // the weights", "//", "launch_failed"),
        (THREADS, {}, "__syncwarp();  // all lanes", "//", "launch_failed"),
        (THREADS, {}, "wait_for_groups<STAGES - 2>", "wait_for_groups<STAGES - 1>", ""),
        (THREADS, {}, "(mask >> row & 1) != 0", "(mask >> row & 1) != 2", "launch_failed"),
        (THREADS, {}, "is_there ? __ldg(present", "is_there ? 1 | __ldg(present", "wrong"),
        (THREADS, {}, "own < n_antennas", "own <= n_antennas", "launch_failed"),
        (THREADS, {}, "own < n_antennas", "own < n_antennas - 1", "wrong"),
        (THREADS, {}, "antenna = 0, ++batch;", "antenna = 0;", "wrong"),
        (THREADS, {}, "byte < n_bytes", "byte < n_bytes - 16", "wrong"),
        (THREADS, {}, "product - 2.0f * rintf(0.5f * product) + error", "product - rintf(product) + error", "wrong"),
        (THREADS, {}, "rintf(0.5f * product) + error", "rintf(0.5f * product)", "wrong"),
        (THREADS, {}, "w.x * cosine - w.y * sine", "w.x * cosine + w.y * sine", "wrong"),
        (THREADS, {}, "2 * channel - n_all_channels", "2 * tile.channel - n_all_channels", "wrong"),
        (THREADS, {}, "__fmaf_rn(-w.y, x.y, sum.x)", "__fmaf_rn(w.y, x.y, sum.x)", "wrong"),
        (THREADS, {}, "pols >> b & 1", "pols >> b & 0", "wrong"),
        (THREADS, mixes, "x[t][1]);", "x[t][0]);", "wrong"),
        (THREADS, four_bits, "doubled << 4 & FIRST", "doubled << 4 & FIRST << 1", "wrong"),
        (THREADS, high, "constexpr bool REAL_LOW = false", "constexpr bool REAL_LOW = true", "wrong"),
        (THREADS, {}, "fmaxf(fabsf(v.x), fabsf(v.y))", "fabsf(v.x)", "wrong"),
        (THREADS, {}, "< MAXIMUM + 0.5f", "< MAXIMUM + 1.5f", "wrong"),
        (THREADS, {}, "fmaxf(v.y, -MAXIMUM)", "fmaxf(v.y, -MAXIMUM - 1.0f)", "wrong"),
        (THREADS, {}, f"{clamped} + ROUND", f"{clamped} + 0.01f + ROUND", "wrong"),
        (THREADS, {}, "beam >= N_BEAMS || time >= N_TIMES", "beam >= N_BEAMS || time > N_TIMES", ""),
        (THREADS, {}, "beam >= N_BEAMS || time >= N_TIMES", "time >= N_TIMES", "launch_failed"),
        (THREADS, {}, "__reduce_add_sync(0xffffffffu, n_clipped)", "n_clipped", "wrong"),
        (THREADS, {}, "atomicAdd(saturated", "atomicExch(saturated", "wrong"),
        (THREADS, {}, "(part + 1) * n_used / SPLIT", "part * n_used / SPLIT + 1", ""),
        (THREADS, dithers, "+ time + i);", "+ time);", "wrong"),
        (THREADS, dithers, "static_cast<long long>(batch) * N_TIMES + time", "time", "wrong"),
        (THREADS, dithers, "time >> 32", "time >> 40", "wrong"),
        (THREADS, dithers, "static_cast<unsigned>(channel), f", "static_cast<unsigned>(tile.channel), f", "wrong"),
        (TENSOR, half, "lane / 4 * (4 * JONES_BYTES)", "lane / 4 * (2 * JONES_BYTES)", ""),
        (TENSOR, half, "(antenna + half * 4) * STAGE_ROW", "antenna * STAGE_ROW", "wrong"),
        (TENSOR, half, "== term ? of_octets[at] : 0", "== term ? of_octets[at] : 0x3c003c00", "wrong"),
        (TENSOR, half, "(own_pols >> octet & 1) == term", "true", "wrong"),
        (TENSOR, half, "used[1] |= __any_sync(0xffffffffu, pol != 0) ? 1u", "used[1] |= pol != 0 ? 0u", "wrong"),
        (TENSOR, half, "0x1032) ^ 0x00008000u", "0x1032) ^ 0x80000000u", "wrong"),
        (TENSOR, half, "0x64806480u", "0x64816481u", "wrong"),
        (TENSOR, half, "static_cast<unsigned>(254 - biased)", "static_cast<unsigned>(255 - biased)", "wrong"),
        (TENSOR, half, "__syncthreads();  // all scales", "//", "launch_failed"),
        (TENSOR, half, "output.count_octet(batch, first_beam + of_block, n_clipped)", "", "wrong"),
        (TENSOR, half, "n_clipped, 2);", "n_clipped, 4);", "wrong"),
        (TENSOR, half, "threadIdx.x % 4 == 0 && n_clipped != 0", "n_clipped != 0", "wrong"),
        (TENSOR, half, "antenna < n; antenna += 8", "antenna + 7 < n; antenna += 8", "wrong"),
        (TENSOR, half, "2 + column", "3 - column", "wrong"),
        (TENSOR, planes, "(integer + 64) >> 7", "(integer + 64) >> 8", "wrong"),
        (TENSOR, planes, ", 128.0f, static_cast", ", 127.0f, static_cast", "wrong"),
        (TENSOR, planes, "0x01000100u -", "0x00ff00ffu -", "wrong"),
        (STAGED_TENSOR, planes, "u * (32 * JONES_BYTES)", "0 * (32 * JONES_BYTES)", "wrong"),
        (STAGED_TENSOR, planes, "__ldg(pols + all) != 0", "__ldg(pols + all) == 0", "wrong"),
    ]  # fmt: skip
    return [pytest.param(*mutant, id=f"{mutant[3]}{mutant[1] or ''}") for mutant in found]


@pytest.mark.planted
@pytest.mark.parametrize(("config", "values", "old", "new", "status"), first_is_quick(mutants()))
def test_mutants_fail(config: Config, values: dict[str, Any], old: str, new: str, status: str) -> None:
    problem = KERNEL.problem({**SMALL, "n_beams": 12} | values)
    check_mutant(KERNEL, problem, config, old, new, status)


# ---------------------------------------------------------------------- the text
GOLDENS = {
    "default": (DEFAULT, KERNEL.default),
    "staged": (KERNEL.problem(PROBLEMS[4]), STAGED),
    "mixes": (KERNEL.problem(PROBLEMS[3]), THREADS),
    "half": (KERNEL.tuned[3], TENSOR),
    "planes": (KERNEL.problem(PROBLEMS[11]), STAGED_TENSOR),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_beamform`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
