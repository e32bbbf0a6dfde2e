"""correlate, slices that several blocks share: variants against the exact reference, and mutants that must fail."""

from dataclasses import replace

import numpy as np
import pytest
from autotune.kernels.correlate import Correlate, Problem
from autotune.kernels.correlate.geometry import Geometry
from autotune.kernels.correlate.parts import parts_that_end_first

from autotune import Config
from autotune.core.definition import Device
from autotune.devices import find_device
from autotune.rendering.render import render
from autotune.trial.case import CaseInMemory
from autotune.trial.verify import verify

from .common import check_mutant, session_on

KERNEL = Correlate()
GPU = Device("a GPU", "cuda", "sm_90", n_multiprocessors=132)
HOST = find_device("host")
TIMES = {"blocks": {4: 32, 8: 16}, "batches": {4: 40, 8: 36}}  # those of batches end within a unit


def config_of(problem: Problem, mma: str, split: int) -> Config:
    """A config of stages of a few units, so that a short slice has several parts, and ends within a stage."""
    if mma == "wgmma":
        return Config(MMA="wgmma", STAGES=5, IN_FLIGHT=1, CHAIN=1, FETCH=128, STORE="atomic", SPLIT=split)
    units = {"NR_TIMES_PER_BLOCK": 2 * problem.unit_times}
    return Config({**KERNEL.default, **units, "STORE": "atomic", "SPLIT": split})


def check(problem: Problem, config: Config, *others: Problem, build: str = "check") -> None:
    """At edge sizes, at its own and at those of ``others``, whose baked fields are the same."""
    binary = HOST.module.compile(render(KERNEL, problem, config), HOST.device, (build,))
    for each in (problem, *others):
        verify(session_on(HOST), KERNEL, each, config, binary, (build,), full=True)


# ---------------------------------------------------------------------- parts of a slice
@pytest.mark.quick
@pytest.mark.parametrize("mma", ["mma_sync", "wgmma"])
def test_parts_are_added(mma: str) -> None:
    """Ranges that begin anywhere, several slices, and fewer stages than parts; parts begin and end within a batch."""
    problem = KERNEL.problem({"n_receivers": 33, "layout": "batches", "n_times": 36, "n_channels": 2, "n_batches": 13})
    others = replace(problem, first_batch=2, n_used=7, n_slices=3), replace(problem, n_batches=2, n_slices=2)
    for split in (1, 2, 8):
        check(problem, config_of(problem, mma, split), *others)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("mma", ["mma_sync", "wgmma"])
@pytest.mark.parametrize(("bits", "layout"), [(4, "batches"), (4, "blocks"), (8, "blocks")])
def test_parts_of_any_problem_are_added(bits: int, layout: str, mma: str) -> None:
    n_times = TIMES[layout][bits]
    given = {"bits": bits, "layout": layout, "n_times": n_times, "n_receivers": 65}
    problem = KERNEL.problem({**given, "n_channels": 2, "n_batches": 19})
    config = config_of(problem, mma, 4)
    check(problem, config, replace(problem, first_batch=3, n_used=15, n_slices=2))


@pytest.mark.thorough
def test_parts_of_any_range_are_added() -> None:
    """Sizes drawn anew in each run."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")  # shown where it fails
    rng = np.random.default_rng(seed)
    for _ in range(12):
        bits, layout = int(rng.choice([4, 8])), str(rng.choice(["blocks", "batches"]))
        n_times = 128 // bits if layout == "blocks" else 32 // bits * int(rng.integers(1, 30))
        given = {"bits": bits, "layout": layout, "n_times": n_times, "n_receivers": int(rng.integers(1, 80))}
        n_batches = int(rng.integers(2, 30))
        problem = KERNEL.problem({**given, "n_channels": int(rng.integers(1, 4)), "n_batches": n_batches})
        first = int(rng.integers(n_batches))
        n_used, n_slices = int(rng.integers(1, n_batches - first + 1)), int(rng.integers(1, 5))
        config = config_of(problem, str(rng.choice(["mma_sync", "wgmma"])), int(rng.choice([2, 4, 8, 16])))
        check(problem, config, replace(problem, first_batch=first, n_used=n_used, n_slices=n_slices), build="plain")


def test_atomics_add_only_to_64_bit_integers() -> None:
    for values in ({"bits": 16}, {"overwrites": True}):
        problem = KERNEL.problem(values)
        broken = KERNEL.space.broken(problem, config_of(problem, "mma_sync", 2), GPU)
        assert broken is not None and broken.name == "order_does_not_matter"


def test_slices_are_split_where_blocks_are_few() -> None:
    few = KERNEL.problem({"layout": "batches", "n_times": 256, "n_channels": 64, "n_batches": 32, "n_receivers": 32})
    splits = {config.get("SPLIT") for config in KERNEL.space.enumerate(few, GPU).configs}
    assert splits == {None, 1, 2, 4, 8, 16}  # None: without atomics, or of chains
    many = KERNEL.problem({})
    assert {config.get("SPLIT") for config in KERNEL.space.enumerate(many, GPU).configs} == {None, 1}
    for mma in ("mma_sync", "wgmma"):
        config = config_of(few, mma, 4)
        assert KERNEL.launch(few, config).grid[0] == 4 * Geometry(few, config).n_blocks


@pytest.mark.parametrize(
    ("n_units", "n_blocks", "n_warps", "octets", "parts"),
    [
        (512, 64, 4, 6, 4),  # 48 receivers: 256 blocks, two for each multiprocessor
        (512, 64, 8, 10, 2),  # 80 receivers: one block of 8 warps is enough for each
        (512, 64, 1, 1, 16),  # 8 receivers: a block has one warp
        (512, 132, None, 8, 1),  # wgmma: each multiprocessor has its tile
        (512, 192, None, 16, 2),  # the second wave would be short
        (512, 640, None, 32, 1),
        (40, 90, None, 8, 1),  # a third of the multiprocessors idle, but parts would take two waves
        (5000, 1, 4, 4, 16),  # never more than there are
    ],
)
def test_parts_of_a_slice_end_first(n_units: int, n_blocks: int, n_warps: int | None, octets: int, parts: int) -> None:
    assert parts_that_end_first(n_units, n_blocks, 132, n_warps, octets) == parts


# ---------------------------------------------------------------------- slices of any length
@pytest.mark.parametrize(("bits", "layout", "n_batches"), [(8, "blocks", 8_400), (4, "batches", 5_500)])
def test_slices_of_any_length_are_exact(bits: int, layout: str, n_batches: int) -> None:
    """All values are the largest, so that sums of all samples, or of half of them, do not fit in 32 bits."""
    given = {"bits": bits, "layout": layout, "n_times": 128 // bits, "n_receivers": 2, "n_channels": 1}
    problem = KERNEL.problem({**given, "n_batches": n_batches})
    assert problem.slice_samples > 2 * problem.max_samples
    largest = problem.maximum
    arrays = KERNEL.arrays(problem)
    inputs = {name: np.zeros(array.shape, array.dtype) for name, array in arrays.items()}
    inputs["voltages"][:] = largest if bits == 8 else largest * 17
    expected = KERNEL.reference(problem, **inputs)["accumulators"]
    assert expected[0, 0, 0, 0, 0] == 2 * largest**2 * problem.slice_samples
    for mma in ("mma_sync", "wgmma"):
        config = config_of(problem, mma, 2)
        launch, geometry = KERNEL.launch(problem, config), Geometry(problem, config)
        assert geometry.n_parts > 2
        too_few = replace(launch, grid=(2 * geometry.n_blocks, 1, 1))  # parts: sums overflow
        binary = HOST.module.compile(render(KERNEL, problem, config), HOST.device, ("plain",))
        loaded = session_on(HOST).load(binary, "plain")
        for each, is_exact in ((launch, True), (too_few, False)):
            with CaseInMemory(session_on(HOST), KERNEL, problem, inputs) as placed:
                placed.launch(loaded, each)
                assert np.array_equal(placed.outputs()["accumulators"], expected) == is_exact


def test_long_slices_are_split() -> None:
    """Into parts whose sums fit; by the default, too."""
    problem = KERNEL.problem({"n_receivers": 256, "n_batches": 5000})
    assert not problem.sums_fit
    configs = KERNEL.space.enumerate(problem, GPU).configs
    assert configs and {config.STORE for config in configs} == {"atomic"}
    assert KERNEL.default_config(problem, GPU).STORE == "atomic"
    stream = Config(MMA="wgmma", STAGES=5, IN_FLIGHT=1, CHAIN=1, FETCH=128, STORE="stream")
    broken = KERNEL.space.broken(problem, stream, GPU)
    assert broken is not None and broken.name == "sums_fit"
    for n_batches in (4161, 5000, 100_003):
        geometry = Geometry(replace(problem, n_batches=n_batches), config_of(problem, "wgmma", 2))
        n_units = -(-n_batches // (geometry.n_parts * geometry.units_per_stage)) * geometry.units_per_stage
        assert n_units * problem.unit_times <= problem.max_samples


# ---------------------------------------------------------------------- mutants
MUTANTS = [
    (
        "mma_sync",
        "own_part(int n_units)\n{\n",
        "own_part(int n_units)\n{\n    n_units -= UNITS_PER_STAGE;\n",
    ),  # the end
    ("mma_sync", "* (part + 1) / n_parts)", "* (part + 1) / n_parts + 1)"),  # a stage twice
    ("mma_sync", "n_stages * part / n_parts)", "(n_stages * part + n_parts - 1) / n_parts)"),  # a stage lost
    ("mma_sync", "min(end, n_units)", "end"),  # units past the slice
    ("mma_sync", "min(end, n_units)", "min(end, n_units - 1)"),
    ("mma_sync", "n_units % BATCH_UNITS * UNIT_BYTES;", "0;"),  # the place in its batch where a part begins
    ("mma_sync", "in_batch += some;", ";"),
    ("mma_sync", "ATOMIC ? blockIdx.x % N_BLOCKS", "ATOMIC ? blockIdx.x / N_BLOCKS"),
    ("mma_sync", "atomicAdd(reinterpret_cast", "atomicExch(reinterpret_cast"),  # overwrites instead of adding
    ("mma_sync", "for (int apart = 1; apart < 4", "for (int apart = 2; apart < 4"),
    ("mma_sync", "place + threadIdx.x % 4", "place + threadIdx.x % 2"),
    ("wgmma", "part.first / BATCH_UNITS, part.n", "part.n"),
    ("wgmma", "part.first % BATCH_UNITS}", "0}"),
    ("wgmma", "? (first + m * 2) * 8", "? (first + m) * 8"),
    ("wgmma", "both[k].re[0], both[k].im[0], both[k].re[1]", "both[k].re[0], both[k].im[0], both[k].re[0]"),
]


@pytest.mark.planted
@pytest.mark.parametrize(("mma", "old", "new"), MUTANTS)
def test_mutants_fail(mma: str, old: str, new: str) -> None:
    given = {"n_receivers": 40, "layout": "batches", "n_times": 36, "n_channels": 1, "n_batches": 13}
    problem = KERNEL.problem(given)
    check_mutant(KERNEL, problem, config_of(problem, mma, 4), old, new, full=True)
