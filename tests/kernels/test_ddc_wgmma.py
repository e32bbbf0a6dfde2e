"""ddc by wgmma: variants against the definition, on the host too, which multiplies at once; and mutants."""

from dataclasses import replace
from typing import Any

import pytest
from autotune.kernels.ddc import Ddc
from autotune.kernels.ddc.tensor import TensorGeometry

from autotune import Config
from autotune.core.definition import Device
from autotune.devices import Target
from autotune.rendering.render import render
from autotune.trial.bench import Bench
from autotune.trial.case import small_case
from autotune.trial.measure import repeated

from .common import (
    check,
    check_gpu_mutant,
    check_mutant,
    first_is_quick,
    mutated,
    session_on,
)
from .goldens import check_golden, write_goldens

KERNEL = Ddc()
WGMMA = Config(
    ALGORITHM="tensor", MMA="wgmma", WARPS=4, CHAIN=0, STEP=2, RUN=64, STAGE=12, STAGES=2, WINDOW=32
)  # for decimation 8
VARIANTS: list[tuple[dict[str, int], dict[str, int]]] = [
    ({"taps": 128, "decimation": 8}, {"STAGE": 8, "STAGES": 3}),
    ({"taps": 256, "decimation": 16}, {"WARPS": 8, "STAGE": 6}),  # samples in pairs
    ({"taps": 256, "decimation": 16}, {"WARPS": 8, "STEP": 4, "STAGE": 2}),
    ({"taps": 257, "decimation": 32, "sample_bits": 8}, {"WARPS": 8, "STAGE": 2, "STAGES": 3}),
    ({"taps": 129, "decimation": 16, "sample_bits": 11}, {"WARPS": 8, "STAGE": 4}),
    ({"taps": 65, "decimation": 8, "sample_bits": 9}, {"STEP": 4, "STAGE": 4}),
    ({"taps": 64, "decimation": 4, "sample_bits": 12}, {"STEP": 4, "STAGE": 8}),
    ({"taps": 1, "decimation": 16}, {"STEP": 4, "STAGE": 2}),
    # chains that are cut
    ({"taps": 512, "decimation": 32}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "RUN": 32, "STAGE": 6}),  # two parts a step
    ({"taps": 512, "decimation": 32, "sample_bits": 12}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "STEP": 4, "STAGE": 2}),
    ({"taps": 512, "decimation": 32, "sample_bits": 11}, {"CHAIN": 8, "PART": 2, "STAGE": 4}),
    ({"taps": 600, "decimation": 40}, {"CHAIN": 8, "PART": 1, "RUN": 32, "STAGE": 4}),  # an odd number of products
    # chains of 8 and of 6 products
    ({"taps": 1000, "decimation": 64}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "RUN": 32, "STAGE": 1, "WINDOW": 16}),
    ({"taps": 2048, "decimation": 128}, {"CHAIN": 8, "PART": 4, "WARPS": 8, "RUN": 32, "STAGE": 1}),
    ({"taps": 1000, "decimation": 56}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "STEP": 4, "STAGE": 1}),
    ({"taps": 256, "decimation": 16}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "STEP": 4, "STAGE": 4}),
    ({"taps": 300, "decimation": 24, "sample_bits": 8}, {"CHAIN": 8, "PART": 1, "STEP": 2, "STAGE": 4}),
    # parts of two products, and of one
    ({"taps": 300, "decimation": 20, "sample_bits": 8}, {"CHAIN": 8, "PART": 2, "STEP": 4, "STAGE": 2}),
    ({"taps": 100, "decimation": 10}, {"STEP": 8, "STAGE": 2}),  # stages that start anywhere within 16 bytes
    ({"taps": 320, "decimation": 20}, {"CHAIN": 8, "PART": 1, "STEP": 4, "STAGE": 4}),
    ({"taps": 1536, "decimation": 96}, {"CHAIN": 8, "PART": 2, "WARPS": 12, "RUN": 32, "STAGE": 1, "WINDOW": 8}),
    # steps of whole bytes: products that are filled up
    ({"taps": 240, "decimation": 15}, {"CHAIN": 8, "PART": 2, "STEP": 4, "STAGE": 2}),  # 75 bytes
    ({"taps": 240, "decimation": 15}, {"CHAIN": 8, "PART": 2, "STEP": 8, "STAGE": 2}),  # 150, samples in pairs
    ({"taps": 300, "decimation": 30, "sample_bits": 12}, {"CHAIN": 8, "PART": 2, "STEP": 2, "STAGE": 4}),  # 90
    ({"taps": 500, "decimation": 63, "sample_bits": 8}, {"CHAIN": 8, "PART": 4, "STEP": 2, "STAGE": 2}),
    ({"taps": 400, "decimation": 25, "sample_bits": 11}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "STEP": 8, "STAGE": 1}),
    ({"taps": 1600, "decimation": 100}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "RUN": 32, "STEP": 2, "STAGE": 1}),
    ({"taps": 80, "decimation": 5, "sample_bits": 9}, {"CHAIN": 8, "PART": 2, "STEP": 16, "STAGE": 2}),  # 80 of 96
    ({"taps": 50, "decimation": 3, "sample_bits": 11}, {"CHAIN": 8, "PART": 2, "STEP": 16, "STAGE": 4}),  # 48 of 64
    # steps of any bits
    # 317 bytes and a half
    ({"taps": 2032, "decimation": 127}, {"CHAIN": 8, "PART": 4, "WARPS": 8, "STEP": 2, "STAGE": 1, "RUN": 32}),
    ({"taps": 250, "decimation": 31, "sample_bits": 6}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "STEP": 2, "STAGE": 4}),
    ({"taps": 500, "decimation": 31, "sample_bits": 9}, {"CHAIN": 8, "PART": 2, "STEP": 4, "STAGE": 2, "RUN": 128}),
    ({"taps": 1008, "decimation": 63, "sample_bits": 11}, {"CHAIN": 8, "PART": 2, "STEP": 2, "STAGE": 2, "RUN": 128}),
    # rows that drift in their boxes, forwards and backwards: steps of whole bytes, and of any bits
    ({"taps": 500, "decimation": 31}, {"CHAIN": 8, "PART": 2, "STEP": 4, "STAGE": 2, "RUN": 96}),
    ({"taps": 1008, "decimation": 63, "sample_bits": 11}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "STAGE": 1, "STAGES": 3}),
    ({"taps": 1584, "decimation": 99}, {"CHAIN": 8, "PART": 2, "WARPS": 8, "STAGE": 1, "RUN": 48, "WINDOW": 16}),
    (
        {"taps": 300, "decimation": 25},
        {"CHAIN": 8, "PART": 2, "STEP": 4, "STAGE": 1, "RUN": 24, "WINDOW": 8, "WARPS": 12},
    ),
    ({"taps": 700, "decimation": 63, "sample_bits": 9}, {"CHAIN": 8, "PART": 2, "STAGE": 2, "RUN": 48, "WINDOW": 16}),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("values", "changes"), VARIANTS[::2], ids=[f"{v}-{c}" for v, c in VARIANTS[::2]])
def test_variants_are_right(values: dict[str, int], changes: dict[str, int], target: Target) -> None:
    check_variant(values, changes, target)


@pytest.mark.gpu
@pytest.mark.parametrize(("values", "changes"), VARIANTS[1::2], ids=[f"{v}-{c}" for v, c in VARIANTS[1::2]])
def test_the_other_variants_are_right_on_a_gpu(values: dict[str, int], changes: dict[str, int], gpu: Target) -> None:
    check_variant(values, changes, gpu)


def check_variant(values: dict[str, int], changes: dict[str, int], target: Target) -> None:
    problem = KERNEL.problem(values)
    any_run = replace(target.device, n_multiprocessors=0)  # such as fill no waves, too
    only = {name: (value,) for name, value in {"MMA": "wgmma", **changes}.items()}
    config = KERNEL.space.enumerate(problem, any_run, only).nearest(Config({**WGMMA, **changes}))
    assert {name: config[name] for name in changes} == changes
    check(KERNEL, problem, config, target, session_on(target).check_builds[0])


BOXED = KERNEL.problem({"taps": 128, "decimation": 8, "n_pols": 2, "n_samples": 200_001})
MUTANTS = {
    "order of the ring": ("at == 0 ? 0 : Shape::N_TILES - at", "at", "wrong"),
    "place that is done": ("(PLACE + 1) % Shape::N_TILES>", "PLACE % Shape::N_TILES>", "wrong"),
    "no zeros": ("tile[i] = zero;", ";", "wrong"),
    "blocks of a step": ("ring, k, (Shape::N_TILES - PLACE) % Shape::N_TILES", "ring, k, PLACE", "wrong"),
    "first window": (
        "step - FIRST_PLACE + Shape::STEPS_PER_WINDOW",
        "step - FIRST_PLACE + 2 * Shape::STEPS_PER_WINDOW",
        "launch_failed",
    ),
    "words too early": ("step + 1 < stage_end, ", "step + 2 < stage_end, ", "wrong"),
    "end of a stage": ("? step + Shape::STEPS_PER_STAGE", "? step + Shape::STEPS_PER_STAGE + 1", "launch_failed"),
    "samples of a warp": ("row_bytes * blockIdx.y + run *", "row_bytes * blockIdx.y + (run + 1) *", "wrong"),
    "pieces of a column": ("PIECE = PIECE_WORDS * 4", "PIECE = PIECE_WORDS * 2", "wrong"),
    "octets of columns": ("OCTET = 128 / 16;", "OCTET = 64 / 16;", "wrong"),
    "without a barrier: stage": ("__syncwarp();  // nobody reads the stage any more", "", "launch_failed"),
    "without a barrier: ring": ("__syncthreads();  // the ring is complete", "", "launch_failed"),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", first_is_quick(MUTANTS))
def test_mutants_fail(name: str) -> None:
    problem = KERNEL.problem({"taps": 128, "decimation": 8, "n_pols": 2, "n_samples": 20001})
    check_mutant(KERNEL, problem, WGMMA, *MUTANTS[name])


CHAINED = KERNEL.problem({"taps": 500, "decimation": 80, "n_pols": 2, "n_samples": 20001})  # chains of 8 and of 2
CHAINS = Config({**WGMMA, "CHAIN": 8, "PART": 2, "STAGE": 2})
MUTANTS_OF_CHAINS = {
    "products that are not added": ("part % PARTS_PER_CHAIN == PARTS_PER_CHAIN - 1 ||", "", "wrong"),
    "products that are added twice": ("part % PARTS_PER_CHAIN == 0 && k == 0", "part == 0 && k == 0", "wrong"),
    "products of the last chain": (
        "|| part == Shape::PARTS_PER_STEP - 1",
        "&& part != Shape::PARTS_PER_STEP - 1",
        "wrong",
    ),
    "sums that do not move": ("done[i] : sums[i - Mma::SUMS_PER_TILE];", "done[i] : sums[i];", "wrong"),
    "zeros of a new tile": ("sums[(Shape::N_TILES - 1) * Mma::SUMS_PER_TILE + i] = 0;", ";", "wrong"),
    "order of blocks": ("Shape::SUMS_MOVE ? Shape::N_TILES - 1 - at", "Shape::SUMS_MOVE ? at", "wrong"),
    "blocks of a part": ("product = part * Shape::MMAS_PER_PART + k;", "product = k;", "wrong"),
    "words of a part": ("from + loaded *", "from + (part + 1) % Shape::PARTS_PER_STEP *", "wrong"),
    "stage too early": ("if (part == Shape::PARTS_PER_STEP - 2)", "if (part == Shape::PARTS_PER_STEP - 3)", "wrong"),
    "stage too late": ("if (part == Shape::PARTS_PER_STEP - 2)", "if (part == Shape::PARTS_PER_STEP - 1)", "wrong"),
    "end of a stage": (
        "end(Shape::STEPS_PER_STAGE - Shape::WARM_UP_STEPS)",
        "end(Shape::STEPS_PER_STAGE - Shape::WARM_UP_STEPS + 1)",
        "launch_failed",
    ),
    "first window": (
        "window_end = Shape::WARM_UP_STEPS > 0 ? 0 :",
        "window_end = Shape::WARM_UP_STEPS > 0 ? 1 :",
        "launch_failed",
    ),
    "without a barrier: stage": ("__syncwarp();  // nobody reads the stage any more", "", "launch_failed"),
    "overlap that is not added": (
        " + overlap[row][TILE * (2 * Shape::OUTPUTS_PER_STEP) + place];",
        ";",
        "wrong",
    ),
    "overlap of the row itself": (
        "lane_window + Shape::OVERLAP_AT + Shape::WINDOW_PITCH;",
        "lane_window + Shape::OVERLAP_AT;",
        "wrong",
    ),
    "overlap of another tile": (
        "overlap[row][TILE *",
        "overlap[row][(TILE + 1) % Shape::WARM_UP_STEPS *",
        "wrong",
    ),
    "place of an open tile": ("Shape::SUMS_MOVE ? TILE :", "Shape::SUMS_MOVE ? (TILE + 1) % Shape::N_TILES :", "wrong"),
    "behind the last row": ("(n_behind < 9 ? 7 : 8)", "8", "launch_failed"),
    "runs of a block": ("* ROWS_PER_WARP - Shape::RUNS_OVERLAP;", "* ROWS_PER_WARP;", "wrong"),
    "without a barrier: overlap": (
        "rows_have_left()\n    {\n        __syncthreads();",
        "rows_have_left()\n    {",
        "launch_failed",
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", MUTANTS_OF_CHAINS)
def test_mutants_of_chains_fail(name: str) -> None:
    check_mutant(KERNEL, CHAINED, CHAINS, *MUTANTS_OF_CHAINS[name])


ODD = KERNEL.problem({"taps": 200, "decimation": 31, "n_pols": 2, "n_samples": 400_001})  # rows of 3720 bytes
ODD_ROWS = Config({**CHAINS, "STAGE": 3, "RUN": 96})
BOXES = [  # of the copy engine, in whose place lanes copy on the host; that nobody waits for it shows too rarely
    (BOXED, WGMMA, "slot = 0, parity ^= 1;", "slot = 0;"),
    (BOXED, WGMMA, "start_of_stage() / 4 + zero;", "start_of_stage() / 4 + 4 + zero;"),
    (BOXED, WGMMA, "(pieces.first / Shape::BOX_PITCH)", "(pieces.first / Shape::BOX_PITCH + 1)"),
    (BOXED, WGMMA, "to + pieces.slot * STAGE_BYTES;", "to;"),
    (ODD, ODD_ROWS, "stage + b * BOX_BYTES, map", "stage, map"),
    (
        ODD,
        ODD_ROWS,
        "b * static_cast<int>(Shape::ROWS_PER_BOX * Shape::RUN_BYTES / 4)",
        "b * static_cast<int>(Shape::ROWS_PER_BOX * Shape::BOX_PITCH / 4)",
    ),
]


@pytest.mark.parametrize(("problem", "config", "old", "new"), BOXES)
def test_mutants_of_boxes_change_something(problem: Any, config: Config, old: str, new: str) -> None:
    mutated(KERNEL, problem, config, old, new)


@pytest.mark.gpu
@pytest.mark.parametrize(("problem", "config", "old", "new"), BOXES)
def test_mutants_of_boxes_fail(problem: Any, config: Config, old: str, new: str, gpu_bench: Bench) -> None:
    check_gpu_mutant(KERNEL, problem, config, old, new, gpu_bench)


RACED = KERNEL.problem({"taps": 256, "decimation": 32, "sample_bits": 8})
# Without the wait one launch of 55 was wrong on an H200, and far fewer in other runs: not a mutant that must fail.
RACING = Config({**CHAINS, "WARPS": 12, "STEP": 4, "STAGE": 1, "STAGES": 3})


@pytest.mark.gpu
def test_copies_wait_for_loads(gpu: Target) -> None:
    binary = gpu.module.compile(render(KERNEL, RACED, RACING), gpu.device)
    repeated(session_on(gpu), KERNEL, small_case(KERNEL, RACED), RACING, binary, 20_000)  # or as many as fit into 1 s


FILLED = KERNEL.problem({"taps": 200, "decimation": 15, "n_pols": 2, "n_samples": 40001})  # a step has 75 bytes
MUTANTS_OF_FILLED_PRODUCTS = {
    "samples of the next step": ("|| own + of_row_0 < Shape::SAMPLES_PER_STEP;", "|| true;", "wrong"),
    "bytes of the first step": ("decode.align_to(stages.bit);  //", "//", "wrong"),
    "bytes of a step": ("bit += Shape::BITS_PER_STEP;", "bit += Shape::BITS_PER_STEP & ~31;", "wrong"),
    "start of a stage": ("bit = pipeline.pieces.start +", "bit = (pipeline.pieces.start & 96) +", "wrong"),
    "units of a block": ("is_last ? 0 : unit + 1", "is_last ? 0 : unit", "wrong"),
    "weights of the next unit": ("is_last ? product : of", "of", "wrong"),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", MUTANTS_OF_FILLED_PRODUCTS)
def test_mutants_of_filled_products_fail(name: str) -> None:
    check_mutant(KERNEL, FILLED, Config({**CHAINS, "STEP": 4, "STAGE": 2}), *MUTANTS_OF_FILLED_PRODUCTS[name])


MUTANTS_OF_ODD_ROWS = {
    "drift of a lane's rows": (
        "drift(Shape::FIRST_DRIFT + lane / 4 * Shape::DRIFT)",
        "drift(Shape::FIRST_DRIFT)",
        "wrong",
    ),
    "drift of a box's first row": (" FIRST_DRIFT = 28;", " FIRST_DRIFT = 0;", "launch_failed"),
    "rows of the second box": (
        "(Shape::ROWS_PER_BOX * Shape::RUN_BYTES) + p * 16",
        "(Shape::ROWS_PER_BOX * Shape::BOX_PITCH) + p * 16",
        "wrong",
    ),
    "row of a lane's copies": ("start_of_stage() + lane_row * Shape::BOX_PITCH", "start_of_stage()", "wrong"),
    "start of the first stage": ("pipeline.pieces.offset + pipeline.pieces.drift)", "pipeline.pieces.offset)", "wrong"),
    "start of a stage": ("pipeline.pieces.start + pipeline.pieces.drift * 8", "pipeline.pieces.start", "wrong"),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", MUTANTS_OF_ODD_ROWS)
def test_mutants_of_odd_rows_fail(name: str) -> None:
    problem = KERNEL.problem({"taps": 200, "decimation": 31, "n_pols": 2, "n_samples": 40001})
    check_mutant(KERNEL, problem, Config({**ODD_ROWS, "RUN": 80, "WINDOW": 16}), *MUTANTS_OF_ODD_ROWS[name])


RAGGED = KERNEL.problem({"taps": 200, "decimation": 31, "n_pols": 2, "n_samples": 40001})  # a step has 620 bits
MUTANTS_OF_RAGGED_STEPS = {
    "bits of the first step": ("decode.align_to(stages.bit);  //", "//", "wrong"),
    "bits of a byte": ("Shape::STEPS_ARE_BYTES ? 0 : opaque(group_bit & 7);", "0;", "wrong"),
    "bits of the next word": ("w + 1 < SHIFTED_WORDS ? whole[w + 1] : 0", "0", "wrong"),
    "start of a stage": ("bit = pipeline.pieces.start +", "bit = (pipeline.pieces.start & ~7) +", "wrong"),
    "start of its copies": (
        "stage * Shape::BITS_PER_STAGE) / 128 * 16",
        "stage * (Shape::BITS_PER_STAGE & ~7)) / 128 * 16",
        "wrong",
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", MUTANTS_OF_RAGGED_STEPS)
def test_mutants_of_ragged_steps_fail(name: str) -> None:
    check_mutant(KERNEL, RAGGED, Config({**CHAINS, "STAGE": 3}), *MUTANTS_OF_RAGGED_STEPS[name])


def test_steps_that_are_not_whole_products_fill_them() -> None:
    def steps(decimation: int, sample_bits: int) -> set[int]:
        problem = KERNEL.problem({"taps": 8 * decimation, "decimation": decimation, "sample_bits": sample_bits})
        found = KERNEL.space.enumerate(problem, Device("a GPU", "cuda", "sm_90"), {"ALGORITHM": ("tensor",)}).configs
        return {int(config.STEP) for config in found if config.get("CHAIN") == 8}

    assert steps(32, 10) == {2, 4}
    assert steps(15, 10) == {4, 8}  # 60 of 64 samples, and 120 of 128
    assert steps(63, 8) == {2, 4}
    assert steps(33, 10) == {2, 4, 8}  # 66 of 96 samples, 132 of 160, and 264 of 288
    assert steps(127, 10) == {2}  # 254 of 256 samples, 317 bytes and a half
    assert steps(5, 9) == {8, 16}  # 40 of 64 samples, and 80 of 96


def test_long_chains_are_cut() -> None:
    """From 33 products on; where a step has two parts at least."""

    def chains(taps: int, decimation: int) -> set[int]:
        problem = KERNEL.problem({"taps": taps, "decimation": decimation})
        hopper = Device("a GPU", "cuda", "sm_90")
        return {
            int(c.CHAIN) for c in KERNEL.space.enumerate(problem, hopper, {"MMA": ("wgmma",)}).configs if "CHAIN" in c
        }

    assert chains(32, 2) == {0}  # two products a step at most
    assert chains(128, 8) == chains(256, 16) == {0, 8}
    assert chains(512, 32) == chains(2048, 128) == {8}


def test_stages_start_anywhere_within_16_bytes(target: Target) -> None:
    """Copied by lanes and by boxes; rows of both polarisations start differently."""
    problem = KERNEL.problem({"taps": 150, "decimation": 10, "n_pols": 3, "n_samples": 300_003})
    for changes in ({"STEP": 8, "STAGE": 3, "STAGES": 3}, {"CHAIN": 8, "PART": 2, "STEP": 8, "STAGE": 2}):
        config = Config({**WGMMA, **changes})
        assert TensorGeometry(problem, config).bits_per_stage % 128
        check(KERNEL, problem, config, target, session_on(target).check_builds[0])


@pytest.mark.planted
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("slot * STAGE_WORDS + pipeline.pieces.shift();", "slot * STAGE_WORDS;"),
        ("(offset * 8 + stage * Shape::BITS_PER_STAGE) / 128", "stage * Shape::BITS_PER_STAGE / 128"),
        ("start = start + Shape::BITS_PER_STAGE & 127;", "start = start - Shape::BITS_PER_STAGE & 127;"),
    ],
)
def test_mutants_of_stages_that_start_anywhere_fail(old: str, new: str) -> None:
    problem = KERNEL.problem({"taps": 150, "decimation": 10, "n_pols": 2, "n_samples": 20001})
    check_mutant(KERNEL, problem, Config({**WGMMA, "STEP": 8, "STAGE": 3}), old, new, "wrong")


def test_a_multiprocessor_has_as_many_warps_as_its_registers_and_its_shared_memory() -> None:
    def warps(taps: int, decimation: int, **changes: Any) -> int:
        problem = KERNEL.problem({"taps": taps, "decimation": decimation})
        geometry = TensorGeometry(problem, Config({**CHAINS, **changes}))
        return geometry.n_warps * geometry.min_blocks

    assert warps(512, 32, WARPS=8) == 16
    assert warps(512, 32, WARPS=4) == 12  # shared memory
    assert warps(512, 16, WARPS=4, STEP=4, STAGE=4) == 8  # registers
    assert warps(2048, 128) == 4
    assert warps(1600, 100, WARPS=12, STAGE=1, WINDOW=8) == 12


def test_12_warps_share_a_ring_where_8_are_alone() -> None:
    def windows(taps: int, decimation: int) -> set[int]:
        problem = KERNEL.problem({"taps": taps, "decimation": decimation})
        found = KERNEL.space.enumerate(problem, Device("a GPU", "cuda", "sm_90")).configs
        configs = [config for config in found if config.get("MMA") == "wgmma"]
        assert all(config.WARPS == 12 for config in configs if config.WINDOW == 8)
        return {int(config.WINDOW) for config in configs if config.WARPS == 12}

    assert windows(1536, 96) == {8, 16, 32}
    assert windows(1600, 100) == {8, 16}
    assert windows(32, 4) == set()


def test_only_hopper_has_it_and_filters_are_short() -> None:
    def broken(taps: int, arch: str) -> str:
        problem = KERNEL.problem({"taps": taps, "decimation": 8})
        found = KERNEL.space.broken(problem, WGMMA, Device("a GPU", "cuda", arch))
        return found.name if found else ""

    assert broken(128, "sm_90") == ""
    assert broken(128, "sm_80") == "wgmma_fits"
    assert broken(600, "sm_90") == "chain_is_short"


def test_shared_memory_is_what_constraints_reckon_with() -> None:
    """Whatever RUN is: where rows drift, stages have room for it."""
    device = Device("a GPU", "cuda", "sm_90", n_multiprocessors=132)
    for decimation, sample_bits in ((112, 11), (80, 15), (99, 16), (63, 10)):
        problem = KERNEL.problem({"taps": 16 * decimation, "decimation": decimation, "sample_bits": sample_bits})
        for config in KERNEL.space.enumerate(problem, device, {"MMA": ("wgmma", "wgmma_int8")}).configs:
            if config.ALGORITHM == "tensor":
                geometry = TensorGeometry(problem, config)
                assert geometry.shared_bytes <= geometry.most_shared_bytes <= device.max_shared_bytes


def test_searches_look_at_runs_that_fill_the_device() -> None:
    """And what was tuned for one length of streams, on one GPU, serves others."""
    device = Device("a GPU", "cuda", "sm_90", n_multiprocessors=132)
    problem = KERNEL.problem({"taps": 1792, "decimation": 112, "sample_bits": 2})
    wgmma = {"MMA": ("wgmma", "wgmma_int8")}
    config = next(c for c in KERNEL.space.enumerate(problem, device, wgmma).configs if c.get("WARPS") == 12)
    grids = {run: KERNEL.launch(problem, Config({**config, "RUN": run})).grid for run in (24, 28, 32)}
    assert grids == {24: (66, 2, 1), 28: (57, 2, 1), 32: (50, 2, 1)}
    found = KERNEL.space.enumerate(problem, device, {"WARPS": (12,), "WINDOW": (8,), **wgmma}).configs
    assert {c.RUN for c in found if c.ALGORITHM == "tensor"} == {24, 28}
    for n_samples in (10**5, 10**7, 10**9):
        other = KERNEL.problem({**vars(problem), "n_samples": n_samples})
        assert KERNEL.space.enumerate(other, device, wgmma).configs
        assert KERNEL.space.broken(other, config, replace(device, n_multiprocessors=114)) is None


GOLDENS: dict[str, tuple[Any, Any]] = {
    "wgmma": (KERNEL.problem({"taps": 128, "decimation": 8}), WGMMA),
    "wgmma_chained": (CHAINED, CHAINS),
    "wgmma_ragged": (RAGGED, Config({**CHAINS, "STAGE": 3})),
    "wgmma_odd_rows": (ODD, Config({**ODD_ROWS, "STEP": 4, "STAGE": 2})),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", GOLDENS)
def test_goldens(name: str) -> None:
    """After a change: `python -m tests.kernels.test_ddc_wgmma`, and read the diff."""
    check_golden(KERNEL, name, *GOLDENS[name])


if __name__ == "__main__":
    write_goldens(KERNEL, GOLDENS)
