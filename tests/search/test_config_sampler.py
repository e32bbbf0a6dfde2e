"""The list's samplers in anybody's study: each config once, whoever begins a trial, and several objectives."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

import autotune
from autotune import Config, ConfigSampler, UsageError
from autotune.search import searcher
from autotune.search.sampler import ListSampler, Request, log_of
from autotune.search.search import Search

from .test_search import CONFIGS, DEFAULT, outcome_of, seconds_of


@pytest.fixture(autouse=True)
def silent() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


class First(ListSampler):
    """Proposes the configs in order."""

    def choose(self) -> int:
        return int(self.open_rows()[0])


def objective_of(sampler: ConfigSampler) -> Callable[[optuna.Trial], float]:
    def objective(trial: optuna.Trial) -> float:
        return seconds_of(sampler.suggest(trial)) or math.nan  # Optuna takes nan for a failure

    return objective


def configs_of(study: optuna.Study) -> list[Config]:
    return [Config(trial.params) for trial in study.trials]


# ---------------------------------------------------------------------- a study of one's own
@pytest.mark.quick
def test_optimize_finds_the_best_of_a_list_and_ends_with_it() -> None:
    sampler = ConfigSampler([dict(config) for config in CONFIGS], seed=1)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective_of(sampler), n_trials=40)
    assert study.best_value == min(filter(None, map(seconds_of, CONFIGS)))
    study.optimize(objective_of(sampler), n_trials=10_000)
    assert Counter(configs_of(study)) == Counter(CONFIGS)


def test_values_may_be_suggested_one_by_one_whatever_their_distributions() -> None:
    study = optuna.create_study(sampler=ConfigSampler(CONFIGS, budget=30), direction="maximize")
    running = []
    for _ in range(30):
        trial = study.ask()
        a, b = trial.suggest_int("A", 1, 16, log=True), trial.suggest_float("B", 0, 4, step=1)
        mode = trial.suggest_categorical("MODE", ["tiled", "plain"])
        tile: dict[str, Any] = {"C": trial.suggest_categorical("C", [2, 4, 8])} if mode == "tiled" else {}
        config = Config(A=a, B=b, MODE=mode, FAST=trial.suggest_categorical("FAST", [True, False]), **tile)
        running.append((trial, config))
        if len(running) == 4:
            trial, config = running.pop(0)
            seconds = seconds_of(config)
            study.tell(trial, None if seconds is None else 1 / seconds, None if seconds else TrialState.FAIL)
    found = configs_of(study)
    assert set(found) <= set(CONFIGS) and len(set(found)) == 30
    assert 1 / study.best_value < sorted(filter(None, map(seconds_of, CONFIGS)))[8]


def test_enqueued_and_added_trials_are_heard_of() -> None:
    sampler = ConfigSampler(CONFIGS, seed=3)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial(dict(CONFIGS[5]))
    study.enqueue_trial({"A": 8, "C": 4})  # the rest is the sampler's
    assert sampler.suggest(study.ask()) == CONFIGS[5]
    partial = sampler.suggest(study.ask())
    assert partial in CONFIGS and (partial.A, partial.C) == (8, 4)
    space = {name: optuna.distributions.CategoricalDistribution(sampler.values(name)) for name in sampler._values}
    for config in CONFIGS[20:]:
        study.add_trial(create_trial(params=dict(config), distributions={n: space[n] for n in config}, value=1.0))
    left = {sampler.suggest(study.ask()) for _ in range(19 - (partial in CONFIGS[:20]))}
    assert left == {*CONFIGS[:20]} - {CONFIGS[5], partial}
    again = sampler.suggest(study.ask())
    assert again in CONFIGS, "a list that is used up begins again"


def test_a_config_without_parameters_is_one_like_any_other() -> None:
    sampler = ConfigSampler([{"A": 1}, {}, {"A": 2}])
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"B": 3})  # which none of them has
    study.optimize(lambda trial: 1.0 + len(sampler.suggest(trial)), n_trials=5)
    assert sorted(map(len, configs_of(study))) == [0, 1, 1]


def test_workers_that_share_a_storage_propose_nothing_twice() -> None:
    storage = optuna.storages.InMemoryStorage()
    optuna.create_study(storage=storage, study_name="shared")
    samplers = [ConfigSampler(CONFIGS, seed) for seed in (0, 0)]
    studies = [optuna.load_study(study_name="shared", storage=storage, sampler=sampler) for sampler in samplers]
    for _ in range(12):
        for study, sampler in zip(studies, samplers, strict=True):
            trial = study.ask()
            study.tell(trial, seconds_of(sampler.suggest(trial)) or 1.0)
    studies[0].optimize(objective_of(samplers[0]), n_trials=12, n_jobs=4)
    assert len(set(configs_of(studies[0]))) == 36


def test_what_a_study_cannot_be_is_told() -> None:
    sampler = ConfigSampler([{"A": 1}, {"A": 1}, {"A": 2, "B": 1}])
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"A": 1})
    with pytest.raises(ValueError, match="trial 0 is of A=1, which has no B; suggest it no value"):
        study.ask().suggest_categorical("B", [1, 2])
    with pytest.raises(ValueError, match=r"this sampler belongs to the study .*; make another one for 'other'"):
        optuna.create_study(sampler=sampler, study_name="other").ask()
    with pytest.raises(UsageError, match="at least one config"):
        ConfigSampler([])
    two = Search(First(Request(CONFIGS)), (DEFAULT,), ("minimize", "minimize"))
    with pytest.raises(UsageError, match="First searches by one objective, and this study has 2"):
        two.propose()


# ---------------------------------------------------------------------- several objectives
def energy_of(config: Config) -> float:
    """What is fast takes power: 4 of the 160 are on the front."""
    return float((1.0 + 16.0 / config.A) * (1.0 + 0.5 * config.FAST) * config.B)


def front(configs: Iterable[Config]) -> set[Config]:
    values = {c: (seconds, energy_of(c)) for c in configs if (seconds := seconds_of(c)) is not None}
    return {c for c, v in values.items() if not any(w != v and w[0] <= v[0] and w[1] <= v[1] for w in values.values())}


def searched(name: str, seed: int) -> optuna.Study:
    """40 trials, the least time and the most work for an energy."""
    search = searcher(name, CONFIGS, DEFAULT, 40, seed, directions=("minimize", "maximize"))
    for _ in range(40):
        config = search.propose()
        assert config is not None
        seconds = outcome_of(config)
        search.observe(config, seconds and (*seconds, 1 / energy_of(config)))
    return search.study


@pytest.mark.parametrize("name", ["tpe", "optuna:NSGAIISampler", "exhaustive"])
def test_samplers_search_by_two_objectives(name: str) -> None:
    study = searched(name, 0)
    tried = set(configs_of(study))
    assert len(tried) == 40 and {Config(t.params) for t in study.best_trials} == front(tried)


def test_the_model_finds_the_front_of_two_objectives() -> None:
    n_found = {
        name: sum(len(front(CONFIGS) & {*configs_of(searched(name, s))}) for s in (0, 1)) for name in ("gp", "random")
    }
    assert n_found["gp"] >= 2 * len(front(CONFIGS)) - 1 > n_found["random"]


# ---------------------------------------------------------------------- the study of a search
def test_a_search_is_a_study_with_enqueued_running_and_failed_trials() -> None:
    search = searcher("gp", CONFIGS, DEFAULT, 20, 0, hints=(CONFIGS[60], CONFIGS[5]))
    search.observe(CONFIGS[5], None, {"status": "timeout"})  # recorded before
    first = [search.propose() for _ in range(3)]
    search.observe(DEFAULT, (2e-3,))
    search.observe(CONFIGS[60], None, {"status": "wrong", "message": "power[3] is 2"})
    recorded, default, hint, running = search.study.trials
    assert (recorded.state, recorded.user_attrs) == (TrialState.FAIL, {"status": "timeout"})
    assert (default.params, default.values) == (dict(DEFAULT), [2e-3])
    assert hint.state == TrialState.FAIL and hint.user_attrs == {"status": "wrong", "message": "power[3] is 2"}
    assert (running.state, Config(running.params)) == (TrialState.RUNNING, first[2])


def test_values_that_have_no_logarithm_have_a_place_all_the_same() -> None:
    values = [-math.inf, -1e6, -1.0, -1e-40, 0.0, 1e-40, 1e-30, 1e-6, 1.0]
    logs = [log_of(value) for value in values[1:]]
    assert logs == sorted(logs) and len(set(logs[:3])) == 3
    assert log_of(1e-6) == math.log(1e-6)
    assert log_of(-1.0) - log_of(-1e6) == pytest.approx(math.log(1e6))
    assert autotune.ConfigSampler is ConfigSampler


def test_workers_that_share_a_journal_take_each_config_once(tmp_path: Path) -> None:
    """Two workers have begun trials before either suggests a value: what was chosen stands in the journal."""
    storages = [JournalStorage(JournalFileBackend(str(tmp_path / "study.journal"))) for _ in range(2)]
    workers = []
    for storage in storages:
        sampler = ConfigSampler(CONFIGS, seed=0)
        study = optuna.create_study(study_name="s", storage=storage, load_if_exists=True, sampler=sampler)
        workers.append((sampler, study))
    begun = [(sampler, study.ask()) for _ in range(len(CONFIGS) // 2) for sampler, study in workers]
    taken = [sampler.suggest(trial) for sampler, trial in begun]
    assert len(set(taken)) == len(taken) == len(CONFIGS) // 2 * 2


def test_a_list_that_is_used_up_is_told(caplog: pytest.LogCaptureFixture) -> None:
    sampler = ConfigSampler([{"A": 1}, {"A": 2}, {"A": 4}])
    study = optuna.create_study(sampler=sampler)
    with caplog.at_level(logging.INFO, "autotune"):
        study.optimize(lambda trial: float(sampler.suggest(trial)["A"]), n_trials=10)
        assert len(study.trials) == 3 and caplog.messages == ["all 3 configs of the list have been proposed"]
        config = sampler.suggest(study.ask())
    assert caplog.messages[1:] == [f"trial 3 repeats {config}: all 3 configs of the list have been proposed"]
