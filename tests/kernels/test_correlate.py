"""correlate: the definition against its formula, variants of every parameter value against the definition."""

import importlib.resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from autotune.kernels import accumulate, postproc
from autotune.kernels.correlate import Correlate, Problem, samples
from autotune.kernels.correlate.geometry import Geometry

from autotune import Config, Launch, UsageError
from autotune.core.definition import Device
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory

from ..devices.bench import Bench
from .common import check, covering, first_is_quick, session_on
from .goldens import check_golden, write_goldens

KERNEL = Correlate()
DEFAULT = KERNEL.tuned[0]
SMALL = Config(
    MMA="mma_sync",
    NR_RECEIVERS_PER_BLOCK=32,
    NR_RECEIVERS_PER_BLOCK_X=32,
    NR_TIMES_PER_BLOCK=32,
    NR_SHARED_BUFFERS=3,
    READ_AHEAD=2,
    WARPS=4,
    WARPS_J=2,
    STORE="direct",
)
LATE = Config({**SMALL, "READ_AHEAD": 1, "STORE": "paired"})  # copies start before the barrier
WGMMA = Config(MMA="wgmma", STAGES=7, IN_FLIGHT=1, CHAIN=2, TAPER=1, FETCH=128, STORE="stream")
WIDE = Config({**SMALL, "NR_RECEIVERS_PER_BLOCK_X": 64, "WARPS": 8})
TALL = Config({**SMALL, "NR_RECEIVERS_PER_BLOCK": 64, "WARPS": 8, "WARPS_J": 4})
PAIRS = Config(
    MMA="mma_sync",
    CUT="pairs",
    SIDE=32,
    PAIRS_PER_WARP=4,
    UNROLL=2,
    NR_TIMES_PER_BLOCK=32,
    NR_SHARED_BUFFERS=3,
    READ_AHEAD=2,
    STORE="atomic",
    SPLIT=4,
)
TIMES = {"blocks": {4: 32, 8: 16, 16: 8}, "batches": {4: 40, 8: 36, 16: 22}}  # those of batches end within a unit
PROBLEMS: list[dict[str, Any]] = [
    {"n_receivers": n_receivers, "bits": bits, "layout": layout, "n_times": TIMES[layout][bits]}
    for n_receivers, bits, layout in (
        (1, 8, "blocks"),
        (2, 4, "batches"),
        (31, 8, "batches"),
        (33, 16, "blocks"),
        (47, 4, "blocks"),
        (65, 16, "batches"),
        (100, 8, "blocks"),
    )
]


def small(**values: Any) -> Problem:
    return KERNEL.problem({"n_channels": 2, "n_batches": 5, **values})


def run(
    problem: Problem, config: Config, target: Target, inputs: dict[str, Any], output: str = "accumulators"
) -> np.ndarray:
    """An output after one launch, of the last of the target's builds: on the host the fast one."""
    binary = target.module.compile(render(KERNEL, problem, config), target.device)
    session = session_on(target)
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.poison(0x55)
        placed.launch(session.load(binary, session.timed_build), KERNEL.launch(problem, config))
        return placed.outputs()[output]


# ---------------------------------------------------------------------- the definition
@pytest.mark.quick
@pytest.mark.parametrize("layout", ["blocks", "batches"])
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_reference_is_the_formula(bits: int, layout: str) -> None:
    n_times = TIMES[layout][bits]
    problem = small(n_receivers=3, bits=bits, layout=layout, n_times=n_times, first_batch=1, n_used=3, n_slices=2)
    inputs = KERNEL.inputs(problem, np.random.default_rng(bits))
    x = np.zeros((5, 3, 2, n_times, 2), complex)  # [batch, receiver, channel, time, pol]
    for batch, r, c, t, pol in np.ndindex(x.shape):
        place = (c, batch, r, pol, t) if layout == "blocks" else (batch, r, c, t, pol)
        value = inputs["voltages"][place]
        if bits == 4:
            value = [(int(value) % 16 ^ 8) - 8, (int(value) // 16 % 16 ^ 8) - 8]
        x[batch, r, c, t, pol] = complex(*(float(part) for part in value))
    expected = inputs["accumulators"].astype(float)
    for z, batches in enumerate((range(1, 2), range(2, 4))):
        for c, j in np.ndindex(2, 3):
            for i in range(j + 1):
                for number, (p, q) in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):  # aa, ba, ab, bb
                    v = sum((x[b, i, c, :, p] * x[b, j, c, :, q].conj()).sum() for b in batches)
                    expected[z, c, j * (j + 1) // 2 + i, number] += v.real, v.imag
    np.testing.assert_array_equal(KERNEL.reference(problem, **inputs)["accumulators"], expected)


def test_inputs_have_every_value_but_the_most_negative() -> None:
    for values in ({}, {"bits": 4, "n_times": 32}):
        problem = small(n_receivers=20, n_batches=40, **values)
        x = samples(problem, KERNEL.inputs(problem, np.random.default_rng(0))["voltages"], 1, range(40))
        for part in (x.real, x.imag):
            assert np.unique(part).tolist() == list(range(-problem.maximum, problem.maximum + 1))


def test_accumulators_are_those_that_accumulate_reads() -> None:
    problem = small(n_receivers=9, n_slices=3)
    dump = accumulate.Problem(n_accumulators=3, n_channels=2, n_receivers=9)
    theirs, ours = accumulate.Accumulate().arrays(dump)["accumulators"], KERNEL.arrays(problem)["accumulators"]
    assert (theirs.shape, theirs.dtype) == (ours.shape, ours.dtype)


@pytest.mark.parametrize("layout", ["blocks", "batches"])
@pytest.mark.parametrize("bits", [4, 8])
def test_voltages_are_those_that_postproc_writes(bits: int, layout: str) -> None:
    n_times = 128 // bits
    written = postproc.Problem(
        n_channels=2,
        bits=bits,
        layout=layout,
        times_per_block=n_times,
        spectra_per_heap=n_times,
        n_receivers=3,
        n_heaps=4,
    )
    problem = small(n_receivers=3, bits=bits, layout=layout, n_times=n_times, n_batches=4)
    shape = (3, 4 * n_times, 2, 2, 2)  # [receiver, spectrum, channel, pol, part]
    quantised = np.random.default_rng(1).integers(-problem.maximum, problem.maximum + 1, shape).astype(np.int8)
    voltages = postproc.laid_out(written, quantised)
    assert voltages.shape == KERNEL.arrays(problem)["voltages"].shape
    got = samples(problem, voltages, 1, range(1, 4)).reshape(-1, 3, 2)
    expected = quantised[:, n_times:, 1].transpose(1, 0, 2, 3).astype(float)
    np.testing.assert_array_equal(got, expected[..., 0] + 1j * expected[..., 1])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"bits": 6}, "bits=6 must be 4, 8 or 16"),
        ({"layout": "rows"}, "layout=rows must be blocks or batches"),
        ({"n_receivers": 1025}, "n_receivers=1025 must be 1 to 1024"),
        ({"n_slices": 0}, "n_slices=0: each is at least 1"),
        ({"bits": 4, "n_times": 16}, "n_times=16 must be 128 / bits = 32 in layout blocks"),
        ({"layout": "batches", "n_times": 18}, "n_times=18 of bits=8 is not whole pieces of 16 bytes"),
        (
            {"first_batch": 190, "n_used": 3, "n_batches": 192},
            "n_used=3: not a range of the n_batches=192 batches",
        ),
        ({"first_batch": 192, "n_batches": 192}, "not a range"),
        ({"bits": 16, "n_times": 8, "count_lowest": True}, "count_lowest=True is for integers"),
    ],
)
def test_problems_that_cannot_be_say_why(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        KERNEL.problem(values)


@pytest.mark.parametrize(("bits", "n_times", "largest", "scale"), [(8, 4, 127, 1), (4, 8, 7, 256)])
def test_no_slice_of_visibilities_is_longer_than_its_sums_have_bits(
    bits: int, n_times: int, largest: int, scale: int
) -> None:
    most = (2**31 - 1) // (2 * largest**2 * scale)
    values = {"layout": "batches", "bits": bits, "n_times": n_times, "overwrites": True}
    assert KERNEL.problem({**values, "n_batches": most // n_times}).slice_samples > most - n_times
    with pytest.raises(UsageError, match=f"more than {most} may not fit in 32 bits; use fewer batches, more than"):
        KERNEL.problem({**values, "n_batches": most // n_times + 1, "n_slices": 1})
    KERNEL.problem({**values, "n_batches": most // n_times + 1, "n_slices": 2})
    KERNEL.problem({**values, "n_batches": most // n_times + 1, "first_batch": 1})


def test_slices_share_the_batches() -> None:
    for n in (1, 2, 7, 30):
        for n_slices in (1, 2, 3, 9):
            problem = small(n_receivers=1, n_batches=40, first_batch=3, n_used=n, n_slices=n_slices)
            assert [batch for batches in problem.slices for batch in batches] == list(range(3, 3 + n))
            assert max(map(len, problem.slices)) * 16 <= problem.slice_samples


def test_sizes_follow_from_the_arrays() -> None:
    for values in ({}, {"layout": "batches", "n_times": 36}, {"bits": 4, "n_times": 32}):
        problem = small(n_receivers=6, n_slices=3, **values)
        shapes = {name: array.shape for name, array in KERNEL.arrays(problem).items()}
        assert KERNEL.sizes(problem, shapes) == {"n_channels": 2, "n_batches": 5, "n_slices": 3}
        assert KERNEL.sizes(problem, {"voltages": shapes["voltages"][1:]}) == {}
    with pytest.raises(UsageError, match="voltages has n_receivers=6, the problem n_receivers=256"):
        KERNEL.sizes(small(bits=4, n_times=32), shapes)


# ---------------------------------------------------------------------- the triangle
@pytest.mark.parametrize(("side_j", "side_i"), [(32, 32), (64, 64), (64, 32), (32, 64), (48, 64), (64, 48)])
def test_blocks_cover_the_triangle_for_every_number_of_receivers(side_j: int, side_i: int) -> None:
    """Each block with a baseline once, and no other: the template's own function."""
    folder = Path(str(importlib.resources.files("autotune.templates")))
    text = f"constexpr int RECEIVERS_J = {side_j}, RECEIVERS_I = {side_i};\n"
    text += (folder / "correlate" / "triangle.cuh").read_text()
    text += """
extern "C" __global__ void blocks_of(int2* blocks, int n_receivers, int n_blocks)
{
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n_blocks) {
        const Block block = block_of(index, n_receivers);
        blocks[index] = make_int2(block.first_j, block.first_i);
    }
}
"""
    host = Bench(find_device("host"))
    config = Config({**SMALL, "NR_RECEIVERS_PER_BLOCK": side_j, "NR_RECEIVERS_PER_BLOCK_X": side_i})
    for n in range(1, 1025):
        wanted = [
            (first_j, first_i)
            for first_j in range(0, n, side_j)
            for first_i in range(0, n, side_i)
            if first_i <= min(first_j + side_j, n) - 1
        ]
        problem = small(n_receivers=n)
        assert Geometry(problem, config).n_blocks == len(wanted)
        if n % 32 in (0, 1, 15) or n < 70:  # a launch takes longer than the rest
            arguments = {
                "blocks": np.zeros((len(wanted), 2), np.int32),
                "n_receivers": np.int32(n),
                "n_blocks": np.int32(len(wanted)),
            }
            launch = Launch((len(wanted) // 64 + 1, 1, 1), (64, 1, 1))
            got = host.run("blocks_of", arguments, launch, build="plain", outputs=["blocks"], text=text)["blocks"]
            np.testing.assert_array_equal(got, wanted)


# ---------------------------------------------------------------------- limits
@pytest.mark.parametrize(
    ("values", "allowed"),
    [({"n_channels": 65535}, True), ({"n_channels": 65536}, False), ({"n_slices": 65535}, True)],
)
def test_channels_and_slices_are_as_many_as_a_grid_has(values: dict[str, int], allowed: bool) -> None:
    broken = KERNEL.space.broken(KERNEL.problem(values), Config(KERNEL.default), find_device("host").device)
    assert (broken is None) == allowed
    assert broken is None or broken.name == "grid_fits"


def test_every_problem_has_a_configuration() -> None:
    gpu = Device("a GPU", "cuda", "sm_90")
    for problem in KERNEL.tuned:
        assert 150 <= len(KERNEL.space.enumerate(problem, gpu).configs) <= 1100
    for values in PROBLEMS:
        KERNEL.default_config(KERNEL.problem(values), gpu)
    problem = KERNEL.problem({"n_receivers": 48})
    configs = KERNEL.space.enumerate(problem, gpu, {"MMA": ("mma_sync",), "CUT": ("rectangles",)}).configs
    assert {config.NR_RECEIVERS_PER_BLOCK for config in configs} == {32, 48}
    older = Device("an older GPU", "cuda", "sm_80")
    assert {config.MMA for config in KERNEL.space.enumerate(DEFAULT, older).configs} == {"mma_sync"}
    smaller = Device("another", "cuda", "sm_86", max_shared_bytes=64 * 1024)
    assert KERNEL.launch(DEFAULT, KERNEL.default_config(DEFAULT, smaller)).shared_bytes <= 64 * 1024


# ---------------------------------------------------------------------- the variants
def test_every_parameter_value_is_right(target: Target) -> None:
    problem = KERNEL.problem({"n_receivers": 65})
    for config in covering(KERNEL, problem, target):
        check(KERNEL, problem, config, target)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "values", first_is_quick(PROBLEMS), ids=lambda v: f"{v['n_receivers']}-{v['bits']}-{v['layout']}"
)
def test_any_problem_is_right(values: dict[str, Any], target: Target) -> None:
    problem = KERNEL.problem(values)
    configs = KERNEL.space.enumerate(problem, target.device)
    for config in {configs.nearest(wanted) for wanted in (SMALL, WIDE if values["bits"] == 8 else TALL)}:
        check(KERNEL, problem, config, target, session_on(target).check_builds[0])


@pytest.mark.parametrize("values", [PROBLEMS[2], PROBLEMS[3]], ids=["batches", "blocks"])
def test_slices_and_ranges_are_right(values: dict[str, Any], target: Target) -> None:
    """More slices than batches, too; what is not used, and other slices' accumulators, stay as they are."""
    for more in ({"n_slices": 3}, {"n_slices": 7}, {"first_batch": 4}, {"first_batch": 1, "n_used": 3, "n_slices": 2}):
        problem = small(**values, **more)
        inputs = KERNEL.inputs(problem, np.random.default_rng(3))
        config = KERNEL.space.enumerate(problem, target.device).nearest(LATE)
        got = run(problem, config, target, inputs)
        np.testing.assert_array_equal(got, KERNEL.reference(problem, **inputs)["accumulators"])


@pytest.mark.parametrize(("bits", "n_batches"), [(8, 4160), (4, 2674)])
def test_the_largest_sums_fit(bits: int, n_batches: int, target: Target) -> None:
    """As many samples as a slice may have, of the largest values; and what they are added to has more than 32 bits."""
    problem = KERNEL.problem(
        {"n_receivers": 2, "bits": bits, "n_times": 128 // bits, "n_channels": 1, "n_batches": n_batches}
    )
    largest = problem.maximum
    assert problem.max_samples - problem.n_times < problem.slice_samples
    voltages = np.full(KERNEL.arrays(problem)["voltages"].shape, largest if bits == 8 else largest * 17, np.int8)
    voltages[:, :, 1, 1] = -largest if bits == 8 else -largest % 16 * 17 - 256
    accumulators = np.full(KERNEL.arrays(problem)["accumulators"].shape, 2**40, np.int64)
    inputs = {"accumulators": accumulators, "voltages": voltages}
    config = KERNEL.space.enumerate(problem, target.device).nearest(SMALL)
    got = run(problem, config, target, inputs)
    full = 2 * largest**2 * problem.slice_samples
    assert got[0, 0, 0, 0, 0] == 2**40 + full and got[0, 0, 1, 2, 0] == 2**40 - full
    np.testing.assert_array_equal(got, KERNEL.reference(problem, **inputs)["accumulators"])


@pytest.mark.parametrize("values", [PROBLEMS[2], PROBLEMS[3], PROBLEMS[4]], ids=["batches", "halves", "nibbles"])
def test_visibilities_are_overwritten(values: dict[str, Any], target: Target) -> None:
    """By 0 where a slice has no batch; whatever was there."""
    problem = small(**values, overwrites=True, n_slices=7)
    inputs = KERNEL.inputs(problem, np.random.default_rng(5))
    assert list(inputs) == ["voltages"]
    for wanted in (SMALL, LATE):
        config = KERNEL.space.enumerate(problem, target.device).nearest(wanted)
        got = run(problem, config, target, inputs, "visibilities")
        np.testing.assert_array_equal(got, KERNEL.reference(problem, **inputs)["visibilities"])


@pytest.mark.parametrize("values", [PROBLEMS[2], PROBLEMS[6], PROBLEMS[4]], ids=["batches", "blocks", "nibbles"])
def test_the_lowest_integers_are_counted(values: dict[str, Any], target: Target) -> None:
    """Each once, however many blocks read it; of the batches that are used."""
    problem = small(**values, count_lowest=True, first_batch=1, n_used=3, n_slices=2)
    inputs = KERNEL.inputs(problem, np.random.default_rng(6))
    nothing = KERNEL.reference(problem, **inputs)["n_lowest"]
    assert nothing == inputs["n_lowest"]
    rng = np.random.default_rng(7)
    inputs["voltages"] = rng.integers(-128, 128, inputs["voltages"].shape, dtype=np.int8)
    expected = KERNEL.reference(problem, **inputs)["n_lowest"]
    assert expected > nothing
    for wanted in (SMALL, WIDE, TALL):
        config = KERNEL.space.enumerate(problem, target.device).nearest(wanted)
        np.testing.assert_array_equal(run(problem, config, target, inputs, "n_lowest"), expected)


def test_halves_of_any_size_are_within_the_bound(target: Target) -> None:
    """Derived in docs/design/correlate.md: 17 terms an instruction, each off by less than 2^-23 of the largest."""
    problem = small(n_receivers=5, bits=16, n_times=8, n_batches=40)
    rng = np.random.default_rng(4)
    shapes = {name: array.shape for name, array in KERNEL.arrays(problem).items()}
    inputs = {
        "accumulators": rng.normal(size=shapes["accumulators"]).astype(np.float32),
        "voltages": rng.normal(size=shapes["voltages"]).astype(np.float16),
    }
    got = run(problem, KERNEL.space.enumerate(problem, target.device).nearest(SMALL), target, inputs)
    parts = np.abs(inputs["voltages"].astype(np.float32))
    sizes = {"voltages": np.zeros_like(parts), "accumulators": np.abs(inputs["accumulators"])}
    sizes["voltages"][..., 0] = parts.sum(axis=-1)  # (|re| + |im|) (|re| + |im|) is at least what either part sums
    largest = KERNEL.reference(problem, **sizes)["accumulators"].max(axis=-1, keepdims=True)
    bound = (17 * 320 / 8 + 1) * 2.0**-23 * largest
    assert (np.abs(got - KERNEL.reference(problem, **inputs)["accumulators"]) <= bound).all()


# ---------------------------------------------------------------------- the text
GOLDENS = {
    "default": (DEFAULT, KERNEL.default),
    "nibbles": (KERNEL.problem({"bits": 4, "n_times": 32}), LATE),
    "wgmma": (KERNEL.problem({"overwrites": True}), WGMMA),
    "wgmma_nibbles": (KERNEL.problem({"bits": 4, "n_times": 32, "count_lowest": True}), WGMMA),
    "wgmma_clusters": (KERNEL.problem({"overwrites": True}), Config({**WGMMA, "CHAIN": 8, "CLUSTER": 4})),
    "pairs": (KERNEL.problem({"n_receivers": 60}), PAIRS),
    "halves_in_batches": (KERNEL.problem({"bits": 16, "layout": "batches", "n_times": 22, "n_receivers": 47}), WIDE),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_correlate`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
