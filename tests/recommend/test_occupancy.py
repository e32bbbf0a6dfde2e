"""How launches fill a device: the numbers, and what searches and hints make of them."""

from collections.abc import Mapping
from itertools import product
from math import log2, prod
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from recorded_spaces import read_space

import autotune
from autotune import Config, Launch
from autotune.core.definition import Device, Kernel
from autotune.recommend.occupancy import COLUMNS, known_of, occupancy
from autotune.search import searcher
from autotune.search.features import features_of, levels_of
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..recorded import rewrite_about

pytestmark = pytest.mark.quick

DEVICE = Device("a GPU", "cuda", "sm_90", n_multiprocessors=4)


class Always:
    """As much of a kernel as is asked."""

    def __init__(self, launch: Launch) -> None:
        self.launch = lambda problem, config: launch


def kernel_of(launch: Launch) -> Kernel[Any]:
    return cast(Kernel[Any], Always(launch))


@pytest.mark.parametrize(
    ("launch", "waves", "last", "threads"),
    [
        (Launch((10, 1, 1), (1024, 1, 1)), 10 / 8, 16 / 10, 2048),  # two blocks at a time by their threads
        (Launch((5, 4, 1), (64, 2, 1)), 20 / 64, 64 / 20, 2048),
        (Launch((8, 1, 1), (128, 1, 1), 100_000), 8 / 8, 1.0, 256),  # two by their shared memory
        (Launch((9, 1, 1), (32, 1, 1)), 9 / 128, 128 / 9, 1024),  # 32 blocks at most
        (Launch((0, 1, 1), (32, 1, 1)), 1 / 128, 128, 1024),
        (Launch((9, 1, 1), (128, 1, 1), 1000, (), 3), 9 / 12, 12 / 9, 384),  # three by their registers
    ],
)
def test_waves_of_blocks(launch: Launch, waves: float, last: float, threads: int) -> None:
    (row,) = occupancy(kernel_of(launch), None, [Config(A=1)], DEVICE)
    np.testing.assert_allclose(2.0**row, (waves, last, threads))


def test_limits_are_those_of_the_architecture() -> None:
    small = Launch((24, 1, 1), (512, 1, 1))
    rows = [
        occupancy(kernel_of(small), None, [Config(A=1)], Device("a GPU", "cuda", arch, n_multiprocessors=4))[0]
        for arch in ("sm_100", "sm_120", "sm_999")
    ]
    assert [round(2 ** row[2]) for row in rows] == [2048, 1536, 2048]  # 4 blocks at a time, 3, and as on sm_90


def test_a_device_without_multiprocessors_has_no_columns() -> None:
    host = Device("host", "host", "host")
    asked = kernel_of(Launch((1, 1, 1), (32, 1, 1))), None, [Config(A=1)] * 3, host
    assert occupancy(*asked).tolist() == [[0.0] * 3] * 3 and known_of(*asked) == {}


def test_recorded_sweeps_of_ours_have_them(tmp_path: Path) -> None:
    swept = autotune.sweep(EXAMPLE, problem={"n_chan": 256}, device="simulated:0", results=tmp_path, trials=12)
    space = read_space(swept.path, [EXAMPLE])
    assert tuple(space.known) == COLUMNS
    assert all(column.shape == (12,) for column in space.known.values())
    rewrite_about(swept.path, definition="gone.py")
    assert read_space(swept.path).known == {}, "what a record names is not imported"


CONFIGS = [Config(A=a, B=b, C=c) for a, b, c in product(range(1, 9), range(1, 9), range(1, 9))]
UNEVEN = np.array([(c.A * 7 + c.B * 5 + c.C * 3) % 11 / 10 for c in CONFIGS])  # nothing that A, B and C let one guess


def test_what_is_known_beside_the_parameters_is_a_feature_of_its_own() -> None:
    plain = features_of(levels_of(CONFIGS))
    more = features_of(levels_of(CONFIGS), {"uneven": 3.0 * UNEVEN, "constant": np.ones(len(CONFIGS))})
    assert more.names == (*plain.names, "uneven")
    np.testing.assert_allclose(more.columns[:, -1], UNEVEN)


def test_a_search_that_knows_it_finds_the_best_sooner() -> None:
    times = {config: 1.0 + uneven + 0.02 * config.A for config, uneven in zip(CONFIGS, UNEVEN, strict=True)}

    def found(seed: int, known: Mapping[str, np.ndarray] | None) -> float:
        search = searcher("gp", CONFIGS, CONFIGS[seed], 25, seed, (), known)
        best = np.inf
        for _ in range(25):
            config = search.propose()
            assert config is not None
            search.observe(config, (times[config],))
            best = min(best, times[config])
        return float(best)

    plain = [found(seed, None) for seed in range(8)]
    knowing = [found(seed, {"uneven": UNEVEN}) for seed in range(8)]
    assert np.mean(knowing) < np.mean(plain)
    assert max(knowing) <= 1.0 + 0.02 + 0.1, "the best value of what is known, and nearly of A"


def test_of_several_launches_the_largest_counts() -> None:
    kernel = load_kernel("channelise")
    problem, device = kernel.tuned[0], Device("a GPU", "cuda", "sm_90", n_multiprocessors=4, max_shared_bytes=232448)
    config = kernel.default_config(problem, device)
    tables, main = kernel.launch(problem, config).steps
    assert prod(tables.grid) < prod(main.grid)
    waves, _, threads = occupancy(kernel, problem, [config], device)[0]
    assert threads == log2(main.n_threads) and waves == log2(prod(main.grid) / device.n_multiprocessors)
