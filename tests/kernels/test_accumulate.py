"""accumulate: the definition against its formula, variants of every parameter value against the definition, mutants."""

import numpy as np
import pytest
from autotune.kernels.accumulate import LARGEST, MISSING, Accumulate, Problem

from autotune import Config, UsageError
from autotune.core.definition import Device
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory

from .common import check, check_mutant, covering, first_is_quick, session_on
from .goldens import check_golden, write_goldens

KERNEL = Accumulate()
CHANNELS = Config(GRID="channels", WGS=128, VECTOR=1, COARSEN=2, DEPTH=4, READ="plain", CLEAR="plain", STORE="plain")
FLAT = Config(
    GRID="flat", WGS=128, VECTOR=2, COARSEN=1, DEPTH=4, TILES=4, READ="streaming", CLEAR="streaming", STORE="streaming"
)
DEFAULT = KERNEL.tuned[0]
PROBLEMS = [{"n_accumulators": n} for n in (1, 2, 3, 5, 16, 33)]


# ---------------------------------------------------------------------- the definition
def dump(sums: list[tuple[int, int]], present: list[int]) -> tuple[np.ndarray, int]:
    """The formula, one visibility of one accumulator's at a time: (visibilities, how many were saturated)."""
    made, n_saturated = [], 0
    for i, parts in enumerate(sums):
        if present[i // 4]:
            made.append([max(-LARGEST, min(LARGEST, part)) for part in parts])
            n_saturated += any(abs(part) > LARGEST for part in parts)
        else:
            made.append(list(MISSING))
    return np.array(made), n_saturated


@pytest.mark.quick
@pytest.mark.parametrize("n_accumulators", [1, 2, 8])
def test_reference_is_the_formula(n_accumulators: int) -> None:
    problem = Problem(n_accumulators=n_accumulators, n_channels=3, n_receivers=7)
    inputs = KERNEL.inputs(problem, np.random.default_rng(n_accumulators))
    got = KERNEL.reference(problem, **inputs)
    assert problem.n_baselines == 28
    total = 0
    for c in range(3):
        z_all = inputs["accumulators"][:, c].reshape(n_accumulators, -1, 2).tolist()
        sums = [(sum(z[i][0] for z in z_all), sum(z[i][1] for z in z_all)) for i in range(4 * 28)]
        expected, n_saturated = dump(sums, inputs["present"].tolist())
        np.testing.assert_array_equal(got["visibilities"][c].reshape(-1, 2), expected)
        total += n_saturated
    assert got["saturated"].tolist() == [inputs["saturated"].item() + total] and total > 0
    assert got["saturated"].item() > 2**32  # the inputs are so near that the sum passes it
    assert got["accumulators"].shape == inputs["accumulators"].shape and not got["accumulators"].any()


def test_inputs_have_every_case() -> None:
    problem = Problem(n_accumulators=2, n_channels=4, n_receivers=20)
    inputs = KERNEL.inputs(problem, np.random.default_rng(0))
    sums = inputs["accumulators"].sum(axis=0)
    for edge in (LARGEST, LARGEST + 1, -LARGEST, -LARGEST - 1, -(2**40)):
        assert (sums == edge).any()
    assert 0 < np.count_nonzero(inputs["present"]) < problem.n_baselines
    assert np.abs(inputs["accumulators"]).max() > 2**32


def test_problems_that_cannot_be_say_why() -> None:
    with pytest.raises(UsageError, match="n_accumulators=0, n_channels=64, n_receivers=256: each is at least 1"):
        KERNEL.problem({"n_accumulators": 0})
    with pytest.raises(UsageError, match="n_receivers=32768 must be at most 32767"):
        KERNEL.problem({"n_receivers": 32768})


@pytest.mark.parametrize("n_receivers", [1, 2, 3, 64, 256, 32767])
def test_sizes_follow_from_the_accumulators(n_receivers: int) -> None:
    n_baselines = n_receivers * (n_receivers + 1) // 2
    sizes = KERNEL.sizes(DEFAULT, {"accumulators": (8, 6, n_baselines, 4, 2)})
    assert sizes == {"n_channels": 6, "n_receivers": n_receivers}
    assert KERNEL.arrays(KERNEL.problem(sizes))["present"].shape == (n_baselines,)
    assert KERNEL.sizes(DEFAULT, {"accumulators": (8, 6, n_baselines)}) == {}


def test_the_largest_channel_is_counted_in_31_bits() -> None:
    problem = KERNEL.problem({"n_receivers": 32767})
    assert problem.n_visibilities < 2**31 <= KERNEL.problem({"n_receivers": 32766}).n_visibilities + 2**18
    assert KERNEL.scalars(problem, {})["n_baselines"] == problem.n_baselines


# ---------------------------------------------------------------------- limits
@pytest.mark.parametrize(("n_channels", "allowed"), [(65535, True), (65536, False)])
def test_channels_are_as_many_as_a_grid_has(n_channels: int, allowed: bool) -> None:
    """Its y axis ends at 65,535; x, which flat uses, at 2^31 - 1."""
    device = find_device("host").device
    problem = KERNEL.problem({"n_channels": n_channels, "n_receivers": 4})
    broken = KERNEL.space.broken(problem, CHANNELS, device)
    assert (broken is None) == allowed
    assert broken is None or broken.name == "grid_fits"
    assert KERNEL.space.broken(problem, FLAT, device) is None


def test_every_problem_has_a_configuration() -> None:
    gpu = Device("a GPU", "cuda", "sm_90")
    for values in PROBLEMS:
        problem = KERNEL.problem(values)
        configs = KERNEL.space.enumerate(problem, gpu).configs
        assert 150 <= len(configs) <= 600, (values, len(configs))
        assert {config.DEPTH for config in configs} <= {n for n in (1, 2, 4, 8, 16) if n <= problem.n_accumulators}
        KERNEL.default_config(problem, gpu)


# ---------------------------------------------------------------------- the variants
def test_every_parameter_value_is_right(target: Target) -> None:
    for values in ({}, {"n_accumulators": 1}):
        problem = KERNEL.problem(values)
        for config in covering(KERNEL, problem, target):
            check(KERNEL, problem, config, target)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("values", first_is_quick(PROBLEMS), ids=lambda values: str(values["n_accumulators"]))
def test_any_problem_is_right(values: dict[str, int], target: Target) -> None:
    problem = KERNEL.problem(values)
    configs = KERNEL.space.enumerate(problem, target.device)
    for wanted in (CHANNELS, FLAT):
        check(KERNEL, problem, configs.nearest(wanted), target, session_on(target).check_builds[0])


@pytest.mark.parametrize("config", [CHANNELS, FLAT], ids=lambda config: config.GRID)
def test_the_next_dump_starts_from_nothing(config: Config, target: Target) -> None:
    """A second launch on what the first one left: all visibilities 0, missing ones apart, and the count unchanged."""
    problem = Problem(n_channels=2, n_receivers=30)
    inputs = KERNEL.inputs(problem, np.random.default_rng(2))
    binary = target.module.compile(render(KERNEL, problem, config), target.device)
    session = session_on(target)
    function = session.load(binary, session.check_builds[0])
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(function, KERNEL.launch(problem, config))
        first = placed.outputs()
        placed.launch(function, KERNEL.launch(problem, config))
        second = placed.outputs()
    np.testing.assert_array_equal(second["saturated"], first["saturated"])
    missing = inputs["present"] == 0
    assert not second["visibilities"][:, ~missing].any()
    np.testing.assert_array_equal(second["visibilities"][:, missing], first["visibilities"][:, missing])


@pytest.mark.parametrize("config", [CHANNELS, FLAT], ids=lambda config: config.GRID)
def test_every_visibility_may_be_saturated(config: Config, target: Target) -> None:
    """One part or both, all positive or all negative: counted once each, over all warps, blocks and tiles."""
    problem = Problem(n_channels=3, n_receivers=17)
    accumulators = np.full(KERNEL.arrays(problem)["accumulators"].shape, 2**60, np.int64)
    accumulators[:, 1] = -(2**60)
    accumulators[:, 2, ..., 0] = 1
    inputs = {
        "accumulators": accumulators,
        "saturated": np.zeros(1, np.uint64),
        "present": np.ones(problem.n_baselines, np.uint8),
    }
    accumulators //= 2  # 8 of 2^59 fit in 64 bits
    binary = target.module.compile(render(KERNEL, problem, config), target.device)
    session = session_on(target)
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(session.load(binary, session.check_builds[0]), KERNEL.launch(problem, config))
        got = placed.outputs()
    assert got["saturated"].tolist() == [3 * problem.n_visibilities]
    np.testing.assert_array_equal(got["visibilities"][0], LARGEST)
    np.testing.assert_array_equal(got["visibilities"][1], -LARGEST)
    np.testing.assert_array_equal(got["visibilities"][2, ..., 0], 0)


MUTANTS: list[tuple[str, Config, str, str, str]] = [
    ("last accumulator", CHANNELS, "batch < N_ACCUMULATORS / AT_ONCE", "batch < N_ACCUMULATORS / AT_ONCE - 1", "wrong"),
    ("rest of the accumulators", CHANNELS, "N_ACCUMULATORS % AT_ONCE, N>", "0, N>", "wrong"),
    ("stride", CHANNELS, "z * stride", "z * (stride + 1)", "launch_failed"),
    ("not cleared", CHANNELS, "clear(first", "(void)(first", "wrong"),
    ("sum of 32 bits", CHANNELS, "sums[i].x += loaded", "sums[i].x += (int)loaded", "wrong"),
    ("clipped to -2^31", FLAT, "+ LARGEST > 2ull * LARGEST", "+ LARGEST + 1 > 2ull * LARGEST + 1", "wrong"),
    ("sign of what is clipped", FLAT, "sum < 0 ? -LARGEST : LARGEST", "LARGEST", "wrong"),
    ("a part only", CHANNELS, "does_not_fit(sums[i].x) | does_not_fit(sums[i].y)", "does_not_fit(sums[i].x)", "wrong"),
    ("missing ones counted", CHANNELS, "is_present[i] & (", "(", "wrong"),
    ("missing ones as 0", FLAT, "make_int2(-LARGEST - 1, 1)", "make_int2(0, 0)", "wrong"),
    ("baseline of two products", CHANNELS, "/ PRODUCTS) != 0", "/ 2) != 0", "launch_failed"),
    ("the next channel's baselines", FLAT, "visibility % n_visibilities", "visibility", "launch_failed"),
    ("channel", CHANNELS, "first_of_channel + begin", "begin", "launch_failed"),
    ("end of a channel", CHANNELS, "CHANNELS ? n_visibilities : n_all", "n_all", "launch_failed"),
    ("last tile", CHANNELS, "end - begin >= TILE", "end - begin >= TILE - 32", "launch_failed"),
    ("last run", CHANNELS, "run < n_left", "run + RUN <= n_left", "wrong"),
    (
        "last visibilities",
        CHANNELS,
        "int n_left = static_cast<int>(end - begin)",
        "int n_left = end - begin - 4",
        "wrong",
    ),
    ("further tiles", FLAT, "if constexpr (TILES == 1)", "", "wrong"),
    ("lanes of a pair", FLAT, "trade(odd ? made[i] : made[i + 1])", "trade(odd ? made[i + 1] : made[i])", "wrong"),
    ("order of a pair", FLAT, "odd ? make_int4(received.x", "!odd ? make_int4(received.x", "wrong"),
    ("place of a pair", FLAT, "odd ? 31 : 0", "odd ? 32 : 0", "launch_failed"),
    ("one count for the warps", CHANNELS, "if (threadIdx.x % 32 == 0)", "if (threadIdx.x == 0)", "wrong"),
    ("count of a lane", CHANNELS, "__reduce_add_sync(0xffffffffu, n_saturated)", "n_saturated", "wrong"),
    ("count is set", FLAT, "atomicAdd(saturated,", "atomicExch(saturated,", "wrong"),
    (
        "no barrier before the warps add",
        CHANNELS,
        "__syncthreads_or(n_saturated != 0)",
        "n_saturated != 0 || true",
        "launch_failed",
    ),
    ("no barrier after the warps have", CHANNELS, "__syncthreads();  // all warps", "// all warps", "launch_failed"),
]


@pytest.mark.planted
@pytest.mark.parametrize(
    ("config", "old", "new", "status"), first_is_quick(m[1:] for m in MUTANTS), ids=[m[0] for m in MUTANTS]
)
def test_mutants_fail(config: Config, old: str, new: str, status: str) -> None:
    check_mutant(KERNEL, KERNEL.problem({"n_accumulators": 6}), config, old, new, status)


# ---------------------------------------------------------------------- the text
GOLDENS = {
    "default": (DEFAULT, KERNEL.default),
    "flat_pairs": (KERNEL.problem({"n_accumulators": 5}), FLAT),
    "one_accumulator": (
        KERNEL.problem({"n_accumulators": 1}),
        {**CHANNELS, "DEPTH": 1, "VECTOR": 2, "COARSEN": 8, "READ": "streaming"},
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_accumulate`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
