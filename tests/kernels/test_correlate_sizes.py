"""correlate at the sizes that telescopes have, and at others: pairs of octets by a table, and all other variants."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from autotune.kernels.correlate import Correlate, Problem
from autotune.kernels.correlate.geometry import Geometry
from autotune.kernels.correlate.shares import n_pairs, shares

from autotune import Config
from autotune.core.definition import Device
from autotune.devices import Target, find_device
from autotune.rendering.render import render
from autotune.trial.verify import verify

from .common import check_mutant, first_is_quick, session_on
from .test_correlate import run

KERNEL = Correlate()
GPU = Device("a GPU", "cuda", "sm_90", n_multiprocessors=132)
HOST = find_device("host")
PAIRS = {"MMA": ("mma_sync",), "CUT": ("pairs",)}
RECTANGLES = {"MMA": ("mma_sync",), "CUT": ("rectangles",)}
SIZES = (4, 8, 16, 27, 32, 36, 48, 64, 80, 96, 110, 128, 197, 256, 384, 576)


def generator() -> np.random.Generator:
    """Draws anew in each run; the seed is shown where a test fails."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def check(problem: Problem, config: Config, build: str = "", *, full: bool = True, target: Target = HOST) -> None:
    """The target's fast build runs, unless another one is named."""
    builds = (build,) if build else target.module.builds[-1:]
    binary = target.module.compile(render(KERNEL, problem, config), target.device, builds)
    verify(session_on(target), KERNEL, problem, config, binary, builds, full)


def drawn_problem(rng: np.random.Generator, n_receivers: int) -> Problem:
    """Returns a problem of any type and layout, with few channels and batches; most integers are added."""
    bits, layout = int(rng.choice([4, 8, 16])), str(rng.choice(["blocks", "batches"]))
    n_times = 128 // bits if layout == "blocks" else 32 // bits * int(rng.integers(1, 20))
    given = {"bits": bits, "layout": layout, "n_times": n_times, "n_receivers": n_receivers}
    small = {"n_channels": int(rng.integers(1, 3)), "n_batches": int(rng.integers(1, 6))}
    return KERNEL.problem({**given, **small, "overwrites": bool(rng.random() < 0.3)})


def drawn_config(rng: np.random.Generator, problem: Problem, **only: tuple[Any, ...]) -> Config:
    """Any that is allowed for usual sizes: heuristics depend on them."""
    usual = KERNEL.problem(
        {**{name: getattr(problem, name) for name in ("bits", "layout", "n_times", "n_receivers", "overwrites")}}
        | {"n_channels": 64, "n_batches": 400}
    )
    configs = KERNEL.space.enumerate(usual, GPU, only).configs
    return configs[int(rng.integers(len(configs)))]


# ---------------------------------------------------------------------- the table
@pytest.mark.quick
@pytest.mark.parametrize("is_triangle", [True, False])
def test_shares_have_each_pair_once(is_triangle: bool) -> None:
    for n in range(1, 13):
        wanted = sorted((row, column) for row in range(n) for column in range(n) if column <= row or not is_triangle)
        assert len(wanted) == n_pairs(n, is_triangle=is_triangle)
        for n_warps in range(1, min(len(wanted), 16) + 1):
            made = shares(n, n_warps, is_triangle=is_triangle)
            assert sorted(pair for share in made for pair in share.pairs) == wanted
            sizes = [len(share.pairs) for share in made]
            assert len(sizes) == n_warps and max(sizes) - min(sizes) <= 1


def test_shares_are_nearly_rectangles() -> None:
    """Squares of three where these fit; and no warp of many loads many more octets than a square would need."""
    made = shares(6, 4, is_triangle=False)
    assert all(len(share.rows) == len(share.columns) == 3 for share in made)
    for n in range(2, 13):
        for most in range(4, 10):
            n_warps = -(-n_pairs(n, is_triangle=True) // most)
            loads = [len(s.rows) + len(s.columns) for s in shares(n, n_warps, is_triangle=True)]
            assert sum(loads) <= 1.7 * n_warps * 2 * most**0.5


def test_a_block_has_no_more_pairs_than_needed() -> None:
    """36 receivers are 5 octets: 15 pairs in one block, where tiles of 32 are 3 blocks of 16 pairs."""
    problem = KERNEL.problem({"n_receivers": 36, "n_channels": 64})
    configs = KERNEL.space.enumerate(problem, GPU, PAIRS).configs
    assert {config.SIDE for config in configs} == {40}
    for config in configs:
        geometry = Geometry(problem, config)
        assert geometry.is_one_block and geometry.n_blocks == 1
        assert sum(len(share.pairs) for share in geometry.shares) == 15
        assert geometry.stage_bytes == geometry.units_per_stage * 40 * 64


# ---------------------------------------------------------------------- sizes
def check_size(rng: np.random.Generator, n_receivers: int, target: Target = HOST) -> None:
    problem = drawn_problem(rng, n_receivers)
    for only in (PAIRS, RECTANGLES, {"MMA": ("wgmma",)}):
        config = drawn_config(rng, problem, **only)
        print(problem, config)
        check(problem, config, target=target)


DEVICES = ["host", pytest.param("cuda:0", marks=pytest.mark.gpu)]


@pytest.mark.thorough
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_receivers", SIZES)
def test_sizes_of_telescopes_are_exact(n_receivers: int, device: str) -> None:
    """Each design runs a config, a type and a layout that are drawn anew."""
    check_size(generator(), n_receivers, find_device(device))


def test_some_sizes_are_exact() -> None:
    """One of a telescope, and one of all."""
    rng = generator()
    check_size(rng, int(rng.choice(SIZES[:12])))
    check_size(rng, int(rng.integers(1, 130)))


@pytest.mark.thorough
@pytest.mark.parametrize("device", DEVICES)
def test_any_size_is_exact(device: str) -> None:
    rng = generator()
    for _ in range(10):
        check_size(rng, int(rng.integers(1, 300)), find_device(device))


@pytest.mark.gpu
@pytest.mark.parametrize("n_receivers", [*SIZES, *[0] * 20])
def test_defaults_are_exact_on_a_gpu(n_receivers: int) -> None:
    """All sizes run, and 20 that are drawn anew (0), as types and layouts are; most integers are added."""
    rng, target = generator(), find_device("cuda:0")
    for _ in range(2):
        problem = drawn_problem(rng, n_receivers or int(rng.integers(1, 300)))
        usual = replace(problem, n_channels=64, n_batches=400)
        check(problem, KERNEL.default_config(usual, target.device), target=target)


CHECKED = [(16, 8, "batches", 3), (33, 8, "batches", 5), (60, 4, "blocks", 4), (100, 16, "batches", 7)]


@pytest.mark.parametrize(("n_receivers", "bits", "layout", "most"), first_is_quick(CHECKED))
def test_pairs_touch_nothing_else(n_receivers: int, bits: int, layout: str, most: int) -> None:
    """With all checks of the host."""
    n_times = 128 // bits if layout == "blocks" else 288 // bits
    given = {"bits": bits, "layout": layout, "n_times": n_times, "n_receivers": n_receivers}
    problem = KERNEL.problem({**given, "n_channels": 2, "n_batches": 5, "n_slices": 2})
    check(problem, pairs_config(problem, most), "check")


def pairs_config(problem: Problem, most: int) -> Config:
    """The longest side with so many pairs for a warp."""
    configs = KERNEL.space.enumerate(problem, GPU, {**PAIRS, "PAIRS_PER_WARP": (most,), "STORE": ("stream",)}).configs
    return max(configs, key=lambda config: (config.SIDE, config.READ_AHEAD))


# ---------------------------------------------------------------------- the last receivers as columns
def columns_config(split: int = 1) -> Config:
    values = {"STAGES": 5, "IN_FLIGHT": 1, "CHAIN": 1, "FETCH": 128, "LAST": "columns", "STORE": "stream"}
    return split_into(split, Config(MMA="wgmma", **values))


def split_into(n_parts: int, config: Config) -> Config:
    """The config with slices of several parts."""
    return Config({**config, "STORE": "atomic", "SPLIT": n_parts}) if n_parts > 1 else config


@pytest.mark.parametrize("layout", ["blocks", "batches"])
@pytest.mark.parametrize(("n_receivers", "bits"), [(70, 8), (90, 4), (110, 16), (40, 8)])
def test_the_last_receivers_may_be_columns(n_receivers: int, bits: int, layout: str) -> None:
    """With each width; added and overwritten, whole or in parts."""
    n_times = 128 // bits if layout == "blocks" else 288 // bits
    given = {"bits": bits, "layout": layout, "n_times": n_times, "n_receivers": n_receivers}
    for overwrites in (False, True):
        problem = KERNEL.problem({**given, "overwrites": overwrites, "n_channels": 2, "n_batches": 5})
        for split in (1, 4) if bits < 16 and not overwrites else (1,):
            assert KERNEL.space.broken(problem, columns_config(split), GPU) is None
            check(problem, columns_config(split))


def test_only_few_last_receivers_are_columns() -> None:
    """So that they are fewer than the tile has without."""
    for n_receivers, is_allowed in ((64, False), (65, True), (112, True), (113, False), (128, False), (576, False)):
        problem = KERNEL.problem({"n_receivers": n_receivers})
        assert (KERNEL.space.broken(problem, columns_config(), GPU) is None) == is_allowed


COLUMN_MUTANTS = [
    ("blocks", "{{tile.first_i, tile.first_j}", "{{tile.first_i, tile.first_i}"),
    ("blocks", "is_above<N>(block) ? lane_offset<false>() : row_offset()", "row_offset()"),
    ("blocks", "first_i + lane / 4) * 8", "first_i + lane % 8) * 8"),
    ("batches", "q * (N / 2) + octet * 4 + p * 2 + k;", "p * (N / 2) + octet * 4 + q * 2 + k;"),
    ("batches", "im[p] = im[place];", "im[p] = -im[place];"),
    ("batches", "octet * 8 + lane % 4 * 2 + k;", "octet * 8 + lane % 4 + k * 4;"),
    ("batches", "valid[k] = j < N_RECEIVERS;", "valid[k] = true;"),
]


@pytest.mark.planted
@pytest.mark.parametrize(("layout", "old", "new"), COLUMN_MUTANTS)
def test_mutants_of_columns_fail(layout: str, old: str, new: str) -> None:
    problem = KERNEL.problem(
        {"n_receivers": 75, "layout": layout, "count_lowest": True, "n_channels": 1, "n_batches": 5}
    )
    check_mutant(KERNEL, problem, columns_config(), old, new, full=True)


# ---------------------------------------------------------------------- the lowest integers
@pytest.mark.parametrize(("n_receivers", "most", "split"), [(40, 5, 1), (75, 7, 1), (75, 4, 4), (75, 0, 4)], ids=str)
def test_the_lowest_integers_are_counted_once(n_receivers: int, most: int, split: int) -> None:
    """In the batches that are used, however many blocks and warps read a receiver; without pairs, by wgmma."""
    given = {"n_receivers": n_receivers, "count_lowest": True, "n_channels": 2, "n_batches": 9}
    problem = KERNEL.problem({**given, "first_batch": 1, "n_used": 7, "n_slices": 2})
    config = split_into(split, pairs_config(problem, most)) if most else columns_config(split)
    inputs = KERNEL.inputs(problem, np.random.default_rng(6))
    inputs["voltages"] = np.random.default_rng(7).integers(-128, 128, inputs["voltages"].shape, dtype=np.int8)
    expected = KERNEL.reference(problem, **inputs)["n_lowest"]
    assert expected > inputs["n_lowest"]
    np.testing.assert_array_equal(run(problem, config, HOST, inputs, "n_lowest"), expected)


# ---------------------------------------------------------------------- mutants
def table_mutants() -> list[tuple[str, str]]:
    """A pair that nobody has, one that two have, and results that go to another pair's place."""
    text = render(KERNEL, *mutant_case()).source
    table = re.search(r"SHARES\[\] = \{\n(.*?)\n    \};", text, re.DOTALL)
    places = re.search(r"PAIRS\[\]\[PAIRS_PER_WARP\]\[2\] = \{\n(.*?)\n\};", text, re.DOTALL)
    assert table and places
    first, second = table[1].split(",\n")[:2]
    *head, bits = first.rstrip("}").split("{")
    fewer = ", ".join([str(int(bits.split(",")[0]) & ~1), *bits.split(",")[1:]])
    first_place = re.search(r"\{\d+, \d+\}, \{\d+, \d+\}", places[1])
    assert first_place
    one, other = re.findall(r"\{\d+, \d+\}", first_place[0])
    return [
        (first, "{".join([*head, fewer]) + "}}"),
        (second, first),
        (first_place[0], f"{other}, {one}"),
        (first_place[0], f"{other}, {other}"),
    ]


def mutant_case() -> tuple[Problem, Config]:
    problem = KERNEL.problem({"n_receivers": 60, "n_channels": 1, "n_batches": 5})
    return problem, pairs_config(problem, 8)


MUTANTS = [
    ("share(threadIdx.x / 32 + (square ? 0 : WARPS))", "share(threadIdx.x / 32)"),
    ("own.rows[k] * 8", "own.rows[0] * 8"),
    ("own.columns[column] * 8", "own.columns[0] * 8"),
    ("int of_column = pair;", "int of_column = 0;"),
    ("FIRST_ROWS[share] * 8 <", "FIRST_ROWS[share] * 8 + 32 <"),
    ("(square ? 0 : UNITS_J)", "0"),
    ("if (row < 0)", "if (row <= 0)"),
    ("UNITS_PER_STAGE; ++unit)\n            add_unit", "UNITS_PER_STAGE - 1; ++unit)\n            add_unit"),
    ("PAIRS[share][pair][1] * 8", "PAIRS[share][pair][0] * 8"),
]


@pytest.mark.planted
@pytest.mark.parametrize("number", range(4), ids=["pair lost", "share twice", "places exchanged", "place twice"])
def test_mutants_of_the_table_fail(number: int) -> None:
    check_mutant(KERNEL, *mutant_case(), *table_mutants()[number], full=True)


@pytest.mark.planted
@pytest.mark.parametrize(("old", "new"), MUTANTS)
def test_mutants_fail(old: str, new: str) -> None:
    problem = KERNEL.problem({"n_receivers": 60, "n_channels": 1, "n_batches": 5})
    config = pairs_config(problem, 8)
    config = Config({**config, "SIDE": 32, "PAIRS_PER_WARP": 8, "NR_TIMES_PER_BLOCK": 32})
    check_mutant(KERNEL, problem, config, old, new, full=True)
