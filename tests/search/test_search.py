"""Searchers: the default first, then the hints, nothing twice, nothing invalid, and models that beat chance."""

import math
from collections import deque
from itertools import product

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from autotune import Config, UsageError
from autotune.recommend.gaussian_process import Hyperparameters, Posterior, Prior, squared_differences
from autotune.search import SAMPLERS, actual_sampler, bayesian, check_sampler, searcher
from autotune.search.bayesian import GaussianProcess, Limits, log_expected_improvement, standardized
from autotune.search.features import features_of, levels_of
from autotune.search.sampler import Request
from autotune.search.search import Search
from autotune.system import one_thread

# MODE decides whether C is there; B is neither all powers of two nor without them.
CONFIGS = [
    Config(A=a, B=b, MODE=mode, FAST=fast, **({"C": c} if mode == "tiled" else {}))
    for a, b, mode, fast in product((1, 2, 4, 8, 16), (1, 2, 3, 4), ("plain", "tiled"), (False, True))
    for c in ((2, 4, 8) if mode == "tiled" else (0,))
]
DEFAULT = CONFIGS[17]
MODELS = ("tpe", "gp")


def seconds_of(config: Config) -> float | None:
    """A bowl in the logarithms, with a failing corner; the best are tiled."""
    if config.A == 16 and config.B == 4:
        return None
    tile = abs(math.log2(config.C / 4)) if config.MODE == "tiled" else 1.5
    return 1e-3 * (1 + math.log2(config.A / 4) ** 2 + (config.B - 2) ** 2 + tile + 0.5 * config.FAST)


def outcome_of(config: Config) -> tuple[float] | None:
    seconds = seconds_of(config)
    return None if seconds is None else (seconds,)


def drive(search: Search, n: int, ahead: int = 1, seed: int | None = None) -> list[Config]:
    """Up to ``n`` proposals; ``seed``: outcomes come in a random order."""
    rng = np.random.default_rng(seed)
    proposals: list[Config] = []
    outstanding: deque[Config] = deque()
    while True:
        while len(outstanding) < ahead and len(proposals) < n and (config := search.propose()) is not None:
            proposals.append(config)
            outstanding.append(config)
        if not outstanding:
            return proposals
        outstanding.rotate(0 if seed is None else int(rng.integers(ahead)))
        config = outstanding.popleft()
        search.observe(config, outcome_of(config))


def run(name: str, n: int, seed: int = 0, ahead: int = 1) -> list[Config]:
    return drive(searcher(name, CONFIGS, DEFAULT, n, seed), n, ahead)


# ---------------------------------------------------------------------- every searcher
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("ahead", [1, 16])
@pytest.mark.quick
def test_default_first_each_config_once_and_all_of_them(name: str, ahead: int) -> None:
    search = searcher(name, CONFIGS, DEFAULT, None, 0)
    proposals = drive(search, 10_000, ahead, seed=1)
    assert proposals[0] == DEFAULT
    assert len(proposals) == len(set(proposals)) == len(CONFIGS)
    assert set(proposals) == set(CONFIGS)
    assert search.propose() is None


@pytest.mark.parametrize("name", SAMPLERS)
def test_what_is_done_is_not_proposed_again(name: str) -> None:
    done = (DEFAULT, *CONFIGS[:25], Config(A=3))
    search = searcher(name, CONFIGS, DEFAULT, len(CONFIGS), 0)
    for config in done[:-1]:
        search.observe(config, outcome_of(config))
    search.observe(done[-1], (1.0,))  # of a space that was larger
    assert set(drive(search, 10_000)) == set(CONFIGS) - set(done)


@pytest.mark.parametrize("name", SAMPLERS)
def test_hints_follow_the_default_in_their_order(name: str) -> None:
    hints = (CONFIGS[60], Config(A=3), CONFIGS[5], DEFAULT, CONFIGS[60], CONFIGS[9], CONFIGS[70])
    search = searcher(name, CONFIGS, DEFAULT, 20, 0, hints)
    search.observe(CONFIGS[9], (1.0,))
    proposals = drive(search, 20)
    assert proposals[:4] == [DEFAULT, CONFIGS[60], CONFIGS[5], CONFIGS[70]]
    assert len(proposals) == len(set(proposals))


@pytest.mark.parametrize("name", SAMPLERS)
def test_proposals_ahead_of_all_outcomes_are_distinct(name: str) -> None:
    search = searcher(name, CONFIGS, DEFAULT, None, 0)
    assert len({search.propose() for _ in CONFIGS}) == len(CONFIGS)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_seed_repeats_its_search_and_another_does_not(name: str) -> None:
    assert run(name, 30, seed=1, ahead=4) == run(name, 30, seed=1, ahead=4)
    assert (run(name, 30, seed=1) == run(name, 30, seed=2)) == (name == "exhaustive")


@pytest.mark.parametrize("name", SAMPLERS)
def test_failures_alone_do_not_stop_a_search(name: str) -> None:
    search = searcher(name, CONFIGS, DEFAULT, len(CONFIGS), 0)
    for _ in range(30):
        config = search.propose()
        assert config is not None
        search.observe(config, None)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(
    "configs", [[Config()], [Config(A=1)], [Config(A="x"), Config(A="y")], [Config(), Config(B=1)]]
)
def test_tiny_spaces_are_searched(name: str, configs: list[Config]) -> None:
    search = searcher(name, configs, configs[0], None, 0)
    for _ in configs:
        config = search.propose()
        assert config is not None and config in configs
        search.observe(config, (1.0,))
    assert search.propose() is None


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("ahead", [1, 8])
def test_models_find_better_configs_than_chance(name: str, ahead: int) -> None:
    def found(name: str) -> float:
        best = [min(t for c in run(name, 30, seed, ahead) if (t := seconds_of(c))) for seed in range(6)]
        return sum(best) / len(best)

    assert found(name) < found("random")


# ---------------------------------------------------------------------- auto
def rough_space(seed: int) -> tuple[list[Config], dict[Config, float | None]]:
    """2,000 of 4,608 configs: interacting sizes, a category, cliffs, failures, 1 % noise. Not the models' family."""
    rng = np.random.default_rng(seed)
    axes = {"W": (16, 32, 48, 64, 96, 128), "H": (1, 2, 4, 8), "T": (1, 2, 3, 4), "U": (1, 2, 4, 8), "V": (1, 2, 4)}
    every = [
        Config(dict(zip((*axes, "S", "P"), values, strict=True)))
        for values in product(*axes.values(), ("reg", "mem"), (False, True))
    ]
    configs = [every[i] for i in rng.choice(len(every), 2000, replace=False)]
    seconds: dict[Config, float | None] = {}
    for c in configs:
        threads, registers = c.W * c.H, 16 + 3 * c.T * c.U + 4 * c.V
        resident = min(2048 // threads, 65536 // (threads * registers), 16) * threads / 2048
        traffic = (1 + 8 / (c.T * c.H)) * (1.0 if c.W % 32 == 0 else 1.3) * (1.2 if c.S == "mem" and not c.P else 1.0)
        work = (1 + 0.3 / c.U) * (1 + 0.1 * abs(math.log2(c.V) - 1)) * (1.0 if c.S == "mem" else 1.15)
        time = (traffic**3 + work**3) ** (1 / 3) / min(1.0, 0.3 + resident * (c.T * c.U) ** 0.3)
        seconds[c] = None if resident == 0 or registers > 120 else time * math.exp(rng.normal(0, 0.01))
    return configs, seconds


def test_auto_beats_chance_by_a_margin_on_a_rough_space() -> None:
    configs, seconds = rough_space(0)
    order = sorted(t for t in seconds.values() if t is not None)
    for seed in range(3):
        search = searcher("auto", configs, configs[0], 60, seed)
        best = math.inf
        for _ in range(60):
            config = search.propose()
            assert config is not None
            best = min(best, seconds[config] or math.inf)
            time = seconds[config]
            search.observe(config, None if time is None else (time,))
        assert order.index(best) < 15  # chance: about the 30th in the mean


def test_auto_is_exhaustive_exactly_when_the_budget_allows() -> None:
    n = len(CONFIGS)
    assert [actual_sampler("auto", budget, n) for budget in (n, n - 1, None)] == ["exhaustive", "gp", "exhaustive"]


def test_unknown_sampler_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="auto, exhaustive, random, tpe, gp"):
        searcher("annealing", CONFIGS, DEFAULT, None, 0)


# ---------------------------------------------------------------------- the model
@pytest.mark.parametrize("ahead", [1, 20])
def test_a_model_that_knows_little_and_is_asked_about_few_still_ends_with_every_config(ahead: int) -> None:
    limits = Limits(n_fit=8, n_model=12, n_pool=30)
    search = Search(GaussianProcess(Request(CONFIGS), limits), [DEFAULT])
    assert len(set(drive(search, 10_000, ahead, seed=0))) == len(CONFIGS)


def test_equal_times_do_not_stop_the_model() -> None:
    search = Search(GaussianProcess(Request(CONFIGS, 40)), [DEFAULT])
    for _ in range(40):
        config = search.propose()
        assert config is not None
        search.observe(config, (1e-3,))


def test_the_model_avoids_where_configs_fail() -> None:
    search = Search(GaussianProcess(Request(CONFIGS, 60)), [DEFAULT])
    proposals = []
    for _ in range(60):
        config = search.propose()
        assert config is not None
        proposals.append(config)
        search.observe(config, None if config.A >= 8 else (1e-3 / config.A,))  # the failing side looks the fastest
    assert sum(c.A >= 8 for c in proposals) < 60 * sum(c.A >= 8 for c in CONFIGS) / len(CONFIGS)


def test_features_of_numbers_categories_and_conditional_parameters() -> None:
    features = features_of(levels_of(CONFIGS))
    # FAST is 0 or 1; "C?" says what MODE says and is left out; products only of numbers with several values
    assert features.names == ("A", "B", "2^ in B", "MODE", "FAST", "C", "A * B", "A * C", "B * C")
    columns = dict(zip([features.names[g] for g in features.groups], features.columns.T, strict=False))
    assert [columns["A"][CONFIGS.index(c)] for c in CONFIGS[::16]] == pytest.approx(
        [math.log2(c.A) / 4 for c in CONFIGS[::16]]
    )
    assert columns["2^ in B"][[i for i, c in enumerate(CONFIGS) if c.B == 3]].max() == 0.0
    assert {columns["C"][i] for i, c in enumerate(CONFIGS) if "C" not in c} == {0.5}
    assert features.columns.min() >= 0 and features.columns.max() <= 1


def test_another_value_of_a_parameter_that_brings_others_is_one_difference() -> None:
    differences = levels_of(CONFIGS).differences(0)
    tiled = Config(A=1, B=1, MODE="tiled", FAST=False, C=8)
    assert (differences[0], differences[CONFIGS.index(tiled)]) == (0, 1)


def test_gradient_of_the_hyperparameters_is_that_of_their_density() -> None:
    rng = np.random.default_rng(0)
    features = features_of(levels_of(CONFIGS))
    rows = rng.choice(len(CONFIGS), 25, replace=False)
    squares = squared_differences(features.columns[rows], features.groups, len(features.names))
    hyper, y = Hyperparameters(len(features.names), Prior()), rng.normal(size=25)
    theta = rng.normal(size=len(hyper.theta)) * 0.3 + hyper.theta
    _, slope = hyper.loss(theta, squares, y)
    for i, step in enumerate(1e-5 * np.eye(len(theta))):
        ahead, behind = hyper.loss(theta + step, squares, y)[0], hyper.loss(theta - step, squares, y)[0]
        assert slope[i] == pytest.approx((ahead - behind) / 2e-5, rel=1e-3, abs=1e-4)


def test_a_posterior_that_grew_is_the_one_built_at_once_and_pending_rows_move_no_mean() -> None:
    rng = np.random.default_rng(0)
    features = features_of(levels_of(CONFIGS))
    columns, groups, pool = features.columns, features.groups, np.arange(len(CONFIGS))
    hyper = Hyperparameters(len(features.names), Prior())
    rows = [int(i) for i in rng.choice(len(CONFIGS), 20, replace=False)]
    whole = Posterior(columns, groups, hyper, rows, pool)
    grown = Posterior(columns, groups, hyper, rows[:12], pool)
    for row in rows[12:]:
        grown.add(row)
    values, known = rng.normal(size=20), np.ones(20, bool)
    for a, b in zip(whole.predict(values, known), grown.predict(values, known), strict=True):
        assert a == pytest.approx(b, abs=2e-3)
    known[15:] = False
    few = Posterior(columns, groups, hyper, rows[:15], pool)
    mean, deviation = few.predict(values[:15], known[:15])
    believed_mean, believed_deviation = whole.predict(values, known)
    assert believed_mean == pytest.approx(mean, abs=2e-3)
    assert (believed_deviation <= deviation + 1e-3).all()
    assert (believed_deviation[rows[15:]] < deviation[rows[15:]]).all()


def test_expected_improvement_is_exact_and_its_logarithm_never_underflows() -> None:
    gain, deviation = np.array([0.3, -0.5, -3.0]), np.array([0.5, 1.0, 1.0])
    draws = np.random.default_rng(0).normal(size=(400_000, 1)) * deviation + gain
    exact = np.maximum(draws, 0).mean(axis=0)
    assert np.exp(log_expected_improvement(gain, deviation)[:2]) == pytest.approx(exact[:2], rel=0.01)
    far = log_expected_improvement(np.array([-3.9, -4.1, -10.0, -60.0]), np.ones(4))
    assert np.isfinite(far).all() and (np.diff(far) < 0).all()


def test_slow_outliers_do_not_stretch_what_the_model_sees() -> None:
    plain = np.log([1.0, 1.1, 1.2, 1.3, 1.4])
    fast, with_outlier = standardized(plain), standardized(np.append(plain, math.log(1e6)))
    assert np.argsort(with_outlier).tolist() == [0, 1, 2, 3, 4, 5]
    assert np.ptp(with_outlier[:5]) > 0.3 * np.ptp(fast)


# ---------------------------------------------------------------------- its threads
def test_the_model_is_built_and_asked_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    numpys = {library.filepath for library in one_thread._blas}  # other packages bring a BLAS of their own

    def n_threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["filepath"] in numpys]

    class Watched(Posterior):
        def mean(self, values: np.ndarray) -> np.ndarray:
            numbers.extend(n_threads())
            return super().mean(values)

    monkeypatch.setattr(bayesian, "Posterior", Watched)
    with threadpool_limits(2, user_api="blas"):
        drive(Search(GaussianProcess(Request(CONFIGS, 30)), [DEFAULT]), 30)
        after = n_threads()
    assert set(numbers) == {1} and set(after) == {2}


def test_a_sampler_of_an_older_version_has_one_in_its_place(caplog: pytest.LogCaptureFixture) -> None:
    check_sampler("local")
    assert actual_sampler("local", None, 100) == "gp" and "local is gone: gp" in caplog.text
