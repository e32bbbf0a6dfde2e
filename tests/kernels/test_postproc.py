"""postproc: the definition against its formula, variants of all parameter values against the definition, mutants."""

import cmath
import dataclasses
from typing import Any

import numpy as np
import pytest
from autotune.kernels.postproc import Postproc, Problem, rotations

from autotune import Config, UsageError
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory

from .common import check, check_mutant, covering, first_is_quick, session_on
from .goldens import check_golden, write_goldens

KERNEL = Postproc()
FAST = Config(KERNEL.default)
STEPPED = Config({**KERNEL.default, "PHASE": "accurate"})
SPLIT = Config(WGS=128, BLOCK_C=64, BLOCK_S=32, TIMES=4, PHASE="accurate", ORDER="spectra", HINTS="stream")
SMALL = KERNEL.problem({"n_channels": 70, "spectra_per_heap": 37, "n_heaps": 2})
DEFAULT = KERNEL.tuned[0]
PROBLEMS: list[dict[str, Any]] = [
    {"n_channels": 33, "spectra_per_heap": 67, "n_heaps": 2},  # 4 bytes a store, a channel in the second tile
    {"n_channels": 1, "spectra_per_heap": 1, "n_heaps": 5},
    {"n_channels": 96, "nyquist": 0, "n_pols": 1, "spectra_per_heap": 75, "n_heaps": 2},  # 2 bytes a store
    {"n_channels": 65, "bits": 4, "spectra_per_heap": 66, "n_heaps": 2},
    {"n_channels": 40, "bits": 4, "n_pols": 1, "spectra_per_heap": 77, "n_heaps": 2},  # 1 byte a store
    {"n_channels": 31, "layout": "blocks", "spectra_per_heap": 80, "n_heaps": 2},
    {"n_channels": 33, "layout": "blocks", "times_per_block": 1, "spectra_per_heap": 33, "n_heaps": 2},
    {"n_channels": 20, "layout": "blocks", "times_per_block": 2, "n_pols": 1, "spectra_per_heap": 50, "n_heaps": 1},
    {"n_channels": 33, "layout": "blocks", "times_per_block": 64, "spectra_per_heap": 64, "n_heaps": 2},
    {"n_channels": 40, "layout": "blocks", "bits": 4, "times_per_block": 32, "spectra_per_heap": 96, "n_heaps": 1},
    {"n_channels": 37, "bits": 4, "nibbles": "real_high", "spectra_per_heap": 35, "n_heaps": 2},
    {"n_channels": 33, "bits": 4, "nibbles": "real_high", "layout": "blocks", "spectra_per_heap": 48, "n_heaps": 1},
]
HIGH = PROBLEMS[10]


def identify(values: dict[str, Any]) -> str:
    return "-".join(map(str, values.values()))


# ---------------------------------------------------------------------- the definition
def parts_of(voltages: np.ndarray, problem: Problem, index: tuple[int, ...]) -> tuple[int, int]:
    """Of receiver, polarisation, spectrum, channel: where the page says that the voltage lies."""
    receiver, pol, s, k = index
    if problem.layout == "blocks":
        block, time = divmod(s, problem.times_per_block)
        found = voltages[k, block, receiver, pol, time]
    else:
        heap, time = divmod(s, problem.spectra_per_heap)
        found = voltages[heap, receiver, k, time, pol]
    if problem.bits == 8:
        return int(found[0]), int(found[1])
    low, high = (nibble - 16 * (nibble > 7) for nibble in (int(found) & 15, int(found) >> 4 & 15))
    return (low, high) if problem.nibbles == "real_low" else (high, low)


@pytest.mark.quick
@pytest.mark.parametrize("values", [*PROBLEMS[:6], HIGH], ids=identify)
def test_reference_is_the_formula(values: dict[str, Any]) -> None:
    problem = KERNEL.problem({**values, "n_channels": min(values["n_channels"], 9), "n_receivers": 2})
    problem = dataclasses.replace(problem, n_heaps=2)
    inputs = KERNEL.inputs(problem, np.random.default_rng(5))
    got = KERNEL.reference(problem, **inputs)
    counts = inputs["saturated"].astype(int)
    c = problem.n_channels
    for r, p, s, k in np.ndindex(2, problem.n_pols, problem.n_spectra, c):
        angle = float(inputs["phases"][r, s, p]) - np.pi * float(inputs["delays"][r, s, p]) * (k - c / 2) / c
        v = complex(inputs["spectra"][r, p, s, k]) * cmath.exp(1j * angle) * complex(inputs["gains"][r, k, p])
        rounded = round(v.real), round(v.imag)  # Python rounds halves to even
        expected = tuple(max(-problem.maximum, min(problem.maximum, part)) for part in rounded)
        assert parts_of(got["voltages"], problem, (r, p, s, k)) == expected
        counts[s // problem.spectra_per_heap, r, p] += rounded != expected
    np.testing.assert_array_equal(got["saturated"], counts)


def test_reference_is_the_same_across_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = KERNEL.inputs(SMALL, np.random.default_rng(3))
    whole = KERNEL.reference(SMALL, **inputs)
    monkeypatch.setattr("autotune.kernels.postproc.CHUNK", 500)
    for name, array in KERNEL.reference(SMALL, **inputs).items():
        np.testing.assert_array_equal(array, whole[name])


@pytest.mark.parametrize("n_channels", [1, 63, 64, 65, 1024])
def test_rotations_are_the_formula(n_channels: int) -> None:
    phases, delays = np.float32([[0, 3.1], [-9.5, 0]]), np.float32([[0, 2.5], [-4, 0]])
    angles = phases[..., None] - np.pi * delays[..., None] * (np.arange(n_channels) - n_channels / 2) / n_channels
    got = rotations(phases, delays, n_channels)
    np.testing.assert_allclose(got, np.exp(1j * angles.astype(float)), rtol=0, atol=2e-6)
    np.testing.assert_array_equal(got[0, 0], 1)  # exactly


@pytest.mark.parametrize("bits", [8, 4])
def test_inputs_are_halves_or_far_from_where_rounding_changes(bits: int) -> None:
    problem = dataclasses.replace(SMALL, bits=bits, n_receivers=2, n_heaps=10)
    inputs = KERNEL.inputs(problem, np.random.default_rng(1))
    turned = np.moveaxis(rotations(inputs["phases"], inputs["delays"], 70), 1, 2) * inputs["spectra"][..., :70]
    v = turned * inputs["gains"].transpose(0, 2, 1)[:, :, np.newaxis]
    parts = np.stack([v.real, v.imag], axis=-1)
    from_half = np.abs(np.abs(parts - np.rint(parts)) - 0.5)
    halves = from_half == 0
    assert from_half[~halves].min() > 0.0999
    assert 0.01 < halves.mean() < 0.04
    assert set(np.floor(parts[halves & (np.abs(parts) < 2)]) % 2) == {0, 1}  # to be rounded up, and down
    saturated = (np.abs(np.rint(parts)) > problem.maximum).any(axis=-1)
    assert 0.05 < saturated.mean() < 0.25
    assert (np.abs(parts[halves]) == problem.maximum + 0.5).any()
    assert KERNEL.reference(problem, **inputs)["saturated"].sum() == inputs["saturated"].sum() + saturated.sum()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"layout": "blocks", "spectra_per_heap": 8}, "not whole blocks of times_per_block=16"),
        ({"layout": "rows"}, "layout=rows must be batches or blocks"),
        ({"times_per_block": 12}, "times_per_block=12 must be a power of two from 1 to 64"),
        ({"bits": 16}, "bits=16 must be 4 or 8"),
        ({"nibbles": "high", "bits": 4}, "nibbles=high must be real_low or real_high"),
        ({"nibbles": "real_high", "bits": 8}, "nibbles=real_high is for bits=4; with bits=8 each part has a byte"),
        ({"n_pols": 3}, "n_pols=3 must be 1 or 2"),
        ({"nyquist": 2}, "nyquist=2 must be 0 or 1"),
        ({"n_channels": 0}, "n_channels=0, .*: each is at least 1"),
        ({"n_channels": 2**24 + 1}, "above 2\\^24 a float32 does not number them"),
    ],
)
def test_problems_that_cannot_be_say_why(values: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        KERNEL.problem(values)


def test_sizes_follow_from_the_spectra() -> None:
    spectra = np.zeros((3, 2, 74, 71), np.complex64)
    problem = KERNEL.problem_for({"n_channels": 70, "spectra_per_heap": 37}, {"spectra": spectra})
    assert (problem.n_receivers, problem.n_spectra, problem.n_heaps) == (3, 74, 2)
    assert KERNEL.arrays(problem)["voltages"].shape == (2, 3, 70, 37, 2, 2)
    with pytest.raises(UsageError, match="n_spectra=73, not whole heaps of spectra_per_heap=37"):
        KERNEL.problem_for({"spectra_per_heap": 37}, {"spectra": spectra[:, :, :73]})
    blocks = dataclasses.replace(problem, layout="blocks", times_per_block=1, bits=4)
    assert KERNEL.arrays(blocks)["voltages"].shape == (70, 74, 3, 2, 1)


# ---------------------------------------------------------------------- the space
def test_every_problem_has_a_configuration() -> None:
    device = find_device("host").device
    for values in (*PROBLEMS, {"n_channels": 2**20, "spectra_per_heap": 4096, "n_heaps": 1}):
        problem = KERNEL.problem(values)
        config = KERNEL.default_config(problem, device)
        assert KERNEL.launch(problem, config).shared_bytes <= device.max_shared_bytes
    assert 150 <= len(KERNEL.space.enumerate(DEFAULT, device).configs) <= 600


@pytest.mark.parametrize(
    ("values", "change", "reason"),
    [
        ({}, {"WGS": 512, "TIMES": 8}, "the warps of a block share its spectra evenly"),
        ({}, {"BLOCK_C": 128, "TIMES": 8, "WGS": 128}, "at most MAX_LOADS"),
        ({"layout": "blocks", "times_per_block": 64}, {"BLOCK_S": 32}, "a tile holds whole blocks of times"),
        ({"n_channels": 32}, {}, "less than twice as large"),
        ({"n_channels": 33}, {}, ""),
        ({"spectra_per_heap": 32}, {}, "less than twice as large"),
        ({"n_receivers": 65536}, {}, "the grid has room"),
        ({"n_receivers": 65535}, {}, ""),
        ({"n_channels": 64, "spectra_per_heap": 64, "n_heaps": 2**31 - 1}, {}, ""),
        ({"n_channels": 64, "spectra_per_heap": 64, "n_heaps": 2**31}, {}, "the grid has room"),
    ],
)
def test_constraints_hold_where_they_say(values: dict[str, Any], change: dict[str, Any], reason: str) -> None:
    config = Config({**FAST, **({"BLOCK_S": 64, "WGS": 256} | change)})
    broken = KERNEL.space.broken(KERNEL.problem(values), config, find_device("host").device)
    assert bool(reason) == (broken is not None) and reason in getattr(broken, "reason", "")


def test_a_tile_that_does_not_fit_is_refused() -> None:
    device = dataclasses.replace(find_device("host").device, max_shared_bytes=64 * (256 + 16) + 64 * 16 + 80)
    assert KERNEL.space.broken(DEFAULT, FAST, device) is None
    broken = KERNEL.space.broken(
        DEFAULT, FAST, dataclasses.replace(device, max_shared_bytes=device.max_shared_bytes - 1)
    )
    assert broken is not None and broken.reason == "the tile fits in shared memory"


# ---------------------------------------------------------------------- the variants
def test_every_parameter_value_is_right(target: Target) -> None:
    problem = KERNEL.problem({"n_channels": 130, "spectra_per_heap": 129, "n_heaps": 1})
    for config in covering(KERNEL, problem, target):
        check(KERNEL, problem, config, target)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", first_is_quick(PROBLEMS), ids=identify)
def test_any_problem_is_right(values: dict[str, Any], target: Target) -> None:
    problem = KERNEL.problem(values)
    config = KERNEL.space.enumerate(problem, target.device).nearest(SPLIT if problem.layout == "blocks" else FAST)
    check(KERNEL, problem, config, target, session_on(target).check_builds[0])


@pytest.mark.parametrize("config", [FAST, STEPPED], ids=lambda config: config.PHASE)
def test_large_phases_and_what_is_not_finite(config: Config, target: Target) -> None:
    """A phase of many turns is as good as one of few. What is not a number is -MAXIMUM and counts as saturated."""
    problem = dataclasses.replace(SMALL, n_heaps=1)
    inputs = KERNEL.inputs(problem, np.random.default_rng(2))
    inputs["phases"][0, 3:20:3] += np.float32(1e5)  # another angle: u is no longer far from a half, but mostly is
    spectra, gains = inputs["spectra"], inputs["gains"]
    wrong = np.zeros(spectra.shape, bool)
    for index, value in (((0, 0, 0, 0), np.nan), ((0, 1, 5, 69), complex(0, np.inf)), ((0, 1, 6, 1), -np.inf)):
        spectra[index] = value
        wrong[index] = True
    gains[0, 9, 0] = np.nan
    wrong[0, 0, :, 9] = True
    inputs["delays"][0, 8, 1], inputs["phases"][0, 10, 0] = np.nan, np.inf
    wrong[0, 1, 8] = wrong[0, 0, 10] = True
    finite = {
        name: np.nan_to_num(array, nan=1, posinf=1, neginf=1) if array.dtype.kind in "cf" else array
        for name, array in inputs.items()
    }
    expected = KERNEL.reference(problem, **finite)["voltages"]
    binary = target.module.compile(render(KERNEL, problem, config), target.device)
    session = session_on(target)
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(session.load(binary, session.check_builds[0]), KERNEL.launch(problem, config))
        got = placed.outputs()
    wrong = wrong[0, :, :, :70].transpose(2, 1, 0)  # as voltages are: channel, spectrum, polarisation
    assert (np.abs(got["voltages"][0, 0][wrong]) == problem.maximum).all()
    differs = (got["voltages"] != expected)[0, 0][~wrong]
    assert differs.mean() < 1e-4
    sure = (np.abs(expected.astype(int)) == problem.maximum).any(axis=-1)[0, 0]
    assert got["saturated"].sum() - inputs["saturated"].sum() >= wrong.sum() + 0.5 * sure[~wrong].sum()


def mutants() -> list[Any]:
    """(config, fields of the problem, text to replace, its replacement, the status that must follow)."""
    one_pol, four_bits = {"n_pols": 1}, {"bits": 4}
    high, blocks = four_bits | {"nibbles": "real_high"}, {"layout": "blocks", "spectra_per_heap": 48, "n_heaps": 1}
    rounded = "fminf(fmaxf(v.y, -MAX), MAX)"
    found = [
        (FAST, {}, "__syncthreads();  // the turns", "//", "launch_failed"),
        (FAST, {}, "__syncthreads();  // the tile and", "//", "launch_failed"),
        (FAST, four_bits, f"{rounded} + ROUND", f"floorf({rounded} + 0.5f) + ROUND", "wrong"),
        (FAST, {}, f"{rounded} + ROUND", f"truncf({rounded}) + ROUND", "wrong"),
        (FAST, {}, "fmaxf(v.x, -MAX)", "fmaxf(v.x, -MAX - 1)", "wrong"),
        (FAST, {}, "< MAX + 0.5f", "< MAX + 1.5f", "wrong"),
        (FAST, four_bits, "< MAX + 0.5f", "<= MAX + 0.5f", "wrong"),
        (FAST, {}, "fmaxf(fabsf(v.x), fabsf(v.y))", "fabsf(v.x)", "wrong"),
        (FAST, {}, "if (threadIdx.x < N_POLS)", "if (threadIdx.x < 1)", "wrong"),
        (FAST, {}, "tile.heap * static_cast<long long>(gridDim.z) + receiver;", "receiver;", "wrong"),
        (FAST, {}, "__fmaf_rn(-turn.y,", "__fmaf_rn(turn.y,", "wrong"),
        (FAST, {}, "2 * channel - N_CHANNELS", "2 * channel", "wrong"),
        (FAST, {}, "half_turns - 2.0 * rint(0.5 * half_turns)", "half_turns - rint(half_turns)", "wrong"),
        (STEPPED, {}, "unit_vector(-delay * (32", "unit_vector(delay * (32", "wrong"),
        (STEPPED, {}, "STEPPED ? shared.steps[i]", "STEPPED ? shared.steps[0]", "wrong"),
        (FAST, {}, "[place(t, p)]", "[place(t, N_POLS - 1 - p)]", "wrong"),
        (FAST, {}, "gains + c * 32 * N_POLS + p", "gains + c * 32 * N_POLS + (p ^ 1)", "wrong"),
        (FAST, one_pol, "N_CHANNELS + tile.channel + lane) * N_POLS", "N_CHANNELS + tile.channel) * N_POLS", "wrong"),
        (FAST, {}, "tile.spectrum + s < SPECTRA_PER_HEAP", "tile.spectrum + s <= SPECTRA_PER_HEAP", "launch_failed"),
        (FAST, {}, "tile.spectrum + s < SPECTRA_PER_HEAP", "tile.spectrum + s < SPECTRA_PER_HEAP - 1", "wrong"),
        (FAST, {}, "tile.channel + c < N_CHANNELS", "tile.channel + c <= N_CHANNELS", "launch_failed"),
        (FAST, {}, "N_CHANNELS + 1;  // channels of", "N_CHANNELS;  // channels of", "wrong"),
        (FAST, {}, "corner + (p * n_spectra + s) * ROW", "corner + (p * n_spectra + s + 1) * ROW", "launch_failed"),
        (FAST, {}, "s += WARPS * TIMES;", "s += WARPS * TIMES + TIMES;", "launch_failed"),
        (FAST, {}, "(ROW_BYTES + 16) / 4", "ROW_BYTES / 4", "compile_failed"),
        (FAST, four_bits, "im << 4 & ~15u", "im << 4 & ~31u", "wrong"),
        (FAST, high, "re << 4 & ~15u", "re << 4 & ~31u", "wrong"),
        (FAST, high, "(im & 15u) | (re << 4", "(re & 15u) | (im << 4", "wrong"),
        (SPLIT, blocks, "* gridDim.z + receiver) * RUN_BYTES", "* gridDim.z) * RUN_BYTES", "launch_failed"),
        (SPLIT, blocks, "piece * TIMES_PER_BLOCK", "(1 - piece) * TIMES_PER_BLOCK", "wrong"),
    ]
    return [pytest.param(*mutant, id=f"{mutant[3]}{mutant[1] or ''}") for mutant in found]


@pytest.mark.planted
@pytest.mark.parametrize(("config", "values", "old", "new", "status"), first_is_quick(mutants()))
def test_mutants_fail(config: Config, values: dict[str, Any], old: str, new: str, status: str) -> None:
    check_mutant(KERNEL, dataclasses.replace(SMALL, **values), config, old, new, status)


# ---------------------------------------------------------------------- the text
GOLDENS = {
    "default": (DEFAULT, KERNEL.default),
    "nibbles_stepped": (KERNEL.problem(PROBLEMS[3]), STEPPED),
    "blocks_split": (KERNEL.tuned[3], SPLIT),
    "real_high": (KERNEL.problem(HIGH), FAST),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_postproc`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
