"""correlate, the design for wgmma, against the exact reference: on the host few problems, on a GPU of sm_90 many."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from autotune.kernels.correlate import Correlate, Problem
from autotune.kernels.correlate.clusters import members
from autotune.kernels.correlate.geometry import Geometry

from autotune import Config, TrialFailure
from autotune.core.definition import Device
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.bench import Bench
from autotune.trial.case import CaseInMemory
from autotune.trial.verify import verify

from .common import check as check_variant
from .common import check_gpu_mutant, check_mutant, mutated, session_on

KERNEL = Correlate()
CONFIGS = [
    Config(MMA="wgmma", STAGES=7, IN_FLIGHT=1, CHAIN=1, FETCH=128, STORE="stream"),
    Config(MMA="wgmma", STAGES=5, IN_FLIGHT=3, CHAIN=4, TAPER=1, FETCH=256, STORE="stream"),
    Config(MMA="wgmma", STAGES=7, IN_FLIGHT=2, CHAIN=8, TAPER=0, FETCH=128, CLUSTER=1, STORE="direct"),
]
TIMES = {"blocks": {4: 32, 8: 16, 16: 8}, "batches": {4: 40, 8: 36, 16: 22}}  # those of batches end within a unit


def problem_of(bits: int, layout: str, n_receivers: int, **values: Any) -> Problem:
    given = {"bits": bits, "layout": layout, "n_times": TIMES[layout][bits], "n_receivers": n_receivers}
    return KERNEL.problem({"n_channels": 11, "n_batches": 13, **given, **values})


def config_for(problem: Problem, number: int, target: Target, cluster: int = 1) -> Config:
    """One of those above, or the nearest that converters leave registers for; in clusters of so many blocks."""
    only = {"MMA": ("wgmma",), **({"CHAIN": (8,), "CLUSTER": (cluster,)} if cluster > 1 else {})}
    return KERNEL.space.enumerate(problem, target.device, only).nearest(CONFIGS[number % len(CONFIGS)])


def check(problem: Problem, config: Config, target: Target, *others: Problem) -> None:
    """At edge sizes, at its own and at those of ``others``, whose baked fields are the same."""
    binary, session = target.module.compile(render(KERNEL, problem, config), target.device), session_on(target)
    for each in (problem, *others):
        verify(session, KERNEL, each, config, binary, full=True)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("layout", ["blocks", "batches"])
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_the_host_agrees(bits: int, layout: str) -> None:
    """Integers added or overwritten, and counted; a range that starts anywhere; copies that end in any order."""
    host, counted = find_device("host"), bits != 16
    problem = problem_of(bits, layout, 65, overwrites=bits == 4, count_lowest=counted, n_channels=3)
    check(problem, config_for(problem, bits // 4, host), host, replace(problem, first_batch=2, n_used=7, n_slices=3))


@pytest.mark.gpu
@pytest.mark.parametrize("n_receivers", [1, 2, 31, 33, 47, 64, 65, 100])
@pytest.mark.parametrize("layout", ["blocks", "batches"])
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_any_problem_is_exact(bits: int, layout: str, n_receivers: int, gpu: Target) -> None:
    """Added or overwritten; one batch, ranges that start anywhere, one slice and many, more slices than batches."""
    counted, number = bits != 16 and n_receivers % 2 == 1, n_receivers + bits // 4
    problem = problem_of(bits, layout, n_receivers, overwrites=number % 2 == 1, count_lowest=counted)
    some, many = replace(problem, first_batch=2, n_used=7, n_slices=3), replace(problem, n_slices=20, n_channels=3)
    check(problem, config_for(problem, number, gpu), gpu, some, many)


# ---------------------------------------------------------------------- clusters of blocks
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("bits", "layout", "n_receivers", "cluster"),
    [(8, "blocks", 129, 4), (8, "batches", 100, 2), (4, "blocks", 190, 2), (16, "batches", 65, 4)],
)
def test_the_host_agrees_on_clusters(bits: int, layout: str, n_receivers: int, cluster: int) -> None:
    """On their tiles: a block there has no partners."""
    host = find_device("host")
    problem = problem_of(bits, layout, n_receivers, count_lowest=bits == 8, n_channels=1, n_batches=3, n_slices=2)
    check_variant(KERNEL, problem, config_for(problem, n_receivers, host, cluster), host, "check")


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("n_tiles", range(2, 17))
def test_partners_of_a_cluster_are_each_others(n_tiles: int, size: int) -> None:
    """Every tile of the triangle has a block; few blocks have none."""
    blocks = members(n_tiles, size)
    tiles = [(block.j, block.i) for block in blocks if block.j >= 0]
    assert sorted(tiles) == [(j, i) for j in range(n_tiles) for i in range(j + 1)]
    assert len(blocks) == -(-len(tiles) // size) * size
    for first in range(0, len(blocks), size):
        cluster = blocks[first : first + size]
        for rank, block in enumerate(cluster):
            if block.same_j >= 0:
                assert block.same_j != rank and cluster[block.same_j].same_j == rank
                assert cluster[block.same_j].j == block.j
            if block.same_i >= 0:
                assert block.same_i != rank and cluster[block.same_i].same_i == rank
                assert cluster[block.same_i].i == block.i


def test_clusters_share_most_of_what_they_copy() -> None:
    """Of 9 rows of tiles: 90 sides, of which a square of four copies 4 instead of 8, and a pair 3 instead of 4."""

    def copied(size: int) -> int:
        return sum(4 - (block.same_j >= 0) - (block.same_i >= 0) for block in members(9, size) if block.j >= 0) // 2

    assert copied(4) == 90 - 10 * 4 and copied(2) == 90 - 22


@pytest.mark.gpu
@pytest.mark.parametrize("n_receivers", [65, 100, 128, 129, 190, 193])
@pytest.mark.parametrize("layout", ["blocks", "batches"])
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_clusters_are_exact(bits: int, layout: str, n_receivers: int, gpu: Target) -> None:
    """As any problem above, of both sizes by turns."""
    number = n_receivers + bits // 4 + (layout == "batches")
    counted, cluster = bits != 16 and n_receivers % 2 == 1, (2, 4)[number // 2 % 2]
    problem = problem_of(bits, layout, n_receivers, overwrites=number % 2 == 1, count_lowest=counted)
    some, many = replace(problem, first_batch=2, n_used=7, n_slices=3), replace(problem, n_slices=20, n_channels=3)
    check(problem, config_for(problem, number, gpu, cluster), gpu, some, many)


@pytest.mark.gpu
@pytest.mark.parametrize("cluster", [2, 4])
@pytest.mark.parametrize("bits", [4, 8])
def test_clusters_of_a_large_array_are_exact(bits: int, cluster: int, gpu: Target) -> None:
    problem = problem_of(bits, "blocks", 576, overwrites=True, n_channels=3, n_batches=192)
    check(problem, config_for(problem, 0, gpu, cluster), gpu)


def test_clusters_need_more_than_one_tile() -> None:
    gpu = Device("a GPU", "cuda", "sm_90")
    for n_receivers, clusters in ((64, {1}), (65, {1, 2, 4})):
        configs = KERNEL.space.enumerate(problem_of(8, "blocks", n_receivers), gpu, {"MMA": ("wgmma",)}).configs
        assert {config.CLUSTER for config in configs if config.CHAIN == 8} == clusters


@pytest.mark.gpu
@pytest.mark.parametrize(("bits", "layout"), [(8, "blocks"), (8, "batches"), (4, "blocks")])
def test_the_lowest_integers_are_counted(bits: int, layout: str, gpu: Target) -> None:
    problem = problem_of(bits, layout, 100, count_lowest=True, first_batch=1, n_used=7, n_slices=2)
    rng = np.random.default_rng(7)
    inputs = KERNEL.inputs(problem, rng)
    inputs["voltages"] = rng.integers(-128, 128, inputs["voltages"].shape, dtype=np.int8)
    config, session = config_for(problem, 0, gpu), session_on(gpu)
    binary = gpu.module.compile(render(KERNEL, problem, config), gpu.device)
    with CaseInMemory(session, KERNEL, problem, inputs) as placed:
        placed.launch(session.load(binary, session.timed_build), KERNEL.launch(problem, config))
        counted = placed.outputs()["n_lowest"]
    expected = KERNEL.reference(problem, **inputs)["n_lowest"]
    assert counted == expected and expected > inputs["n_lowest"]


@pytest.mark.gpu
def test_a_large_array_is_exact(gpu: Target) -> None:
    problem = problem_of(8, "blocks", 576, overwrites=True, n_channels=2, n_batches=192)
    check(problem, CONFIGS[0], gpu)


MUTANTS = [
    (8, "blocks", "        wait_for_stage(ring);\n", ""),  # nobody waits for the copies
    (8, "blocks", "wait(ring.released(), ring.parity ^ 1);", ""),  # nor for those who read a stage
    (4, "blocks", "        wait(ring.converted(), ring.parity);", "        ;"),  # nor for the converters
    (8, "blocks", "while (index >= blocks", "while (index > blocks"),  # the row of the triangle
    (8, "blocks", "N_RECEIVERS && i <= j", "N_RECEIVERS && i < j"),  # its diagonal
    (8, "blocks", "place = p * (N / 2)", "place = (1 - p) * (N / 2)"),  # polarisations of i swapped
    (8, "batches", "BLOCKS ? lane / 4 % 2 : half;", "1 - half;"),  # of j
    (8, "blocks", "im[p] = -im[place]", "im[p] = im[place]"),
    (8, "blocks", "first += index * length;", "first += index * length + 1;"),  # the channels of a chain
    (8, "blocks", "stage < n_units / UNITS_PER_STAGE", "stage < (n_units + 1) / UNITS_PER_STAGE"),  # units of a stage
    (8, "blocks", "unit < n_units % UNITS_PER_STAGE", "unit < n_units % UNITS_PER_STAGE - 1"),  # past the last full one
    (4, "batches", "range.n_units - first - unit", "range.n_units - first - unit - 1"),  # that are converted
    (16, "batches", "2 * product + half)", "2 * product + 1 - half)"),  # the order along K
    (8, "blocks", "consumer == 0)", "consumer == 1)"),  # which rows need half of the columns
]


def mutant_case(bits: int, layout: str, target: Target, n_channels: int) -> tuple[Problem, Config]:
    problem = problem_of(bits, layout, 100, overwrites=True, n_batches=63, n_channels=n_channels)
    return problem, config_for(problem, 0 if bits == 4 else 1, target)


@pytest.mark.planted
@pytest.mark.parametrize(("bits", "layout", "old", "new"), MUTANTS)
def test_mutants_fail(bits: int, layout: str, old: str, new: str) -> None:
    check_mutant(KERNEL, *mutant_case(bits, layout, find_device("host"), 2), old, new, full=True)


@pytest.mark.gpu
@pytest.mark.parametrize(("bits", "layout", "old", "new"), MUTANTS)
def test_mutants_fail_on_a_gpu(bits: int, layout: str, old: str, new: str, gpu: Target, gpu_bench: Bench) -> None:
    check_gpu_mutant(KERNEL, *mutant_case(bits, layout, gpu, 11), old, new, gpu_bench)


CLUSTER_MUTANTS = [
    (8, "blocks", "own[1] * RECEIVERS_I", "own[0] * RECEIVERS_I"),  # the tile of a rank
    (8, "blocks", "= MEMBERS[index]", "= MEMBERS[index / BLOCKS_PER_CLUSTER]"),  # which it is
    (8, "batches", "tile.first_j >= 0;", "tile.first_j > 0;"),  # whether it has one
    (8, "blocks", "later = has_j ? 0 : SIDE", "later = 0"),  # where the only side lies
]
PARTNER_MUTANTS = [
    (129, 8, "rank < partner ? 0 : UNITS_PER_STAGE / 2", "0"),  # both copy the first half
    # where the only side lies: the last tile of four rows has a partner to its left, and none above
    (200, 4, "earlier = has_i ? SIDE : 0", "earlier = SIDE"),
]


def cluster_mutant_case(
    bits: int, layout: str, target: Target, n_channels: int, n_receivers: int = 129
) -> tuple[Problem, Config]:
    problem = problem_of(bits, layout, n_receivers, overwrites=True, n_channels=n_channels)
    return problem, config_for(problem, 0, target, 4)


@pytest.mark.planted
@pytest.mark.parametrize(("bits", "layout", "old", "new"), CLUSTER_MUTANTS)
def test_mutants_of_clusters_fail(bits: int, layout: str, old: str, new: str) -> None:
    check_mutant(KERNEL, *cluster_mutant_case(bits, layout, find_device("host"), 1), old, new)


@pytest.mark.gpu
@pytest.mark.parametrize(("bits", "layout", "old", "new"), CLUSTER_MUTANTS)
def test_mutants_of_clusters_fail_on_a_gpu(
    bits: int, layout: str, old: str, new: str, gpu: Target, gpu_bench: Bench
) -> None:
    check_gpu_mutant(KERNEL, *cluster_mutant_case(bits, layout, gpu, 5), old, new, gpu_bench)


@pytest.mark.gpu
@pytest.mark.parametrize(("n_receivers", "bits", "old", "new"), PARTNER_MUTANTS)
def test_mutants_of_partners_fail_on_a_gpu(
    n_receivers: int, bits: int, old: str, new: str, gpu: Target, gpu_bench: Bench
) -> None:
    check_gpu_mutant(KERNEL, *cluster_mutant_case(bits, "blocks", gpu, 5, n_receivers), old, new, gpu_bench)


@pytest.mark.parametrize(("bits", "layout"), [(4, "blocks"), (8, "batches")])
def test_converters_wait_for_the_copies_of_all_stages(bits: int, layout: str) -> None:
    """Else a team that comes to a stage a round too early goes on: on a GPU once in thousands of launches."""
    old = "        wait(ring.copied(), ring.parity);\n        if (is_own) {\n"
    new = "        if (is_own) {\n            wait(ring.copied(), ring.parity);\n"
    host = find_device("host")
    problem, config = mutant_case(bits, layout, host, 2)
    session = session_on(host)
    binary = host.module.compile(mutated(KERNEL, problem, config, old, new), host.device, ("plain",))
    inputs = KERNEL.inputs(problem, np.random.default_rng(0))
    with CaseInMemory(session, KERNEL, problem, inputs) as placed, pytest.raises(TrialFailure, match="deadlock"):
        placed.launch(
            session.load(binary, "plain"), KERNEL.launch(problem, config), seed=1
        )  # the newest copy ends first


def test_chains_have_every_channel_once() -> None:
    """As the template's chain_of walks them: as many chains, and as many channels in each."""
    for length in (1, 2, 4, 8):
        for taper in (0, 1) if length > 1 else (0,):
            config = Config(MMA="wgmma", CHAIN=length, TAPER=taper)
            for n_channels in range(1, 70):
                found = []
                for index in range(Geometry(KERNEL.problem({"n_channels": n_channels}), config).n_chains):
                    first, n = chain_of(index, n_channels, length, bool(taper))
                    found += list(range(first, min(first + n, n_channels)))
                assert found == list(range(n_channels))


def chain_of(index: int, n_channels: int, length: int, tapered: bool) -> tuple[int, int]:
    """(first channel, most channels)."""
    first = 0
    while tapered and length > 1:
        n = (n_channels - first) // 2 // length
        if index < n:
            break
        index, first, length = index - n, first + n * length, length // 2
    return first + index * length, length


def test_only_hopper_has_it() -> None:
    problem = problem_of(8, "blocks", 33)
    for arch, exists in (("sm_80", False), ("sm_90", True), ("sm_120", False)):
        broken = KERNEL.space.broken(problem, CONFIGS[0], Device("a GPU", "cuda", arch))
        assert (broken is None) == exists
