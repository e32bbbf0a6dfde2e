"""Samplers of Optuna's by name: they keep what all searches promise, see what was tried, and fail in one line."""

import sys
from pathlib import Path

import pytest

from autotune import Config, UsageError
from autotune.search import check_sampler, searcher
from autotune.search.by_optuna import SnappedSampler
from autotune.source.installed import installed

from .test_search import CONFIGS, DEFAULT, drive, outcome_of, seconds_of

NAMES = ("optuna:RandomSampler", "optuna:QMCSampler", "optuna:NSGAIISampler", "optuna:BruteForceSampler")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ahead", [1, 16])
def test_default_and_hints_first_then_each_config_once(name: str, ahead: int) -> None:
    hints = (CONFIGS[60], CONFIGS[5])
    search = searcher(name, CONFIGS, DEFAULT, None, 3, hints)
    search.observe(CONFIGS[9], outcome_of(CONFIGS[9]))
    proposals = drive(search, 10_000, ahead, seed=1)
    assert proposals[:3] == [DEFAULT, *hints]
    assert len(proposals) == len(CONFIGS) - 1
    assert set(proposals) == set(CONFIGS) - {CONFIGS[9]}
    assert search.propose() is None


@pytest.mark.parametrize("configs", [[Config()], [Config(A="x"), Config(A="y")], [Config(), Config(B=1)]])
def test_tiny_spaces_are_searched(configs: list[Config]) -> None:
    search = searcher("optuna:NSGAIISampler", configs, configs[0], None, 0)
    for _ in configs:
        config = search.propose()
        assert config is not None and config in configs
        search.observe(config, (1.0,))
    assert search.propose() is None


def test_a_seed_repeats_its_search() -> None:
    first, same, other = (
        drive(searcher("optuna:NSGAIISampler", CONFIGS, DEFAULT, 40, seed), 40, 4) for seed in (1, 1, 2)
    )
    assert first == same != other


def test_a_population_is_of_the_configs_that_were_tried() -> None:
    """The sampler's own trials hold the configs, their logarithms and their failures: one trial each."""
    search = searcher("optuna:NSGAIISampler", CONFIGS, DEFAULT, None, 0)
    assert isinstance(search.sampler, SnappedSampler)
    proposals = drive(search, 80)
    assert search.propose() is not None  # it learns of the last one when it is asked again
    *trials, _ = search.sampler._inner.study.trials
    grid = search.sampler._grid
    tried = [tuple(grid.choices[j][trial.params[n]] for j, n in enumerate(grid.names)) for trial in trials]
    assert tried == [tuple(config.get(n, "-") for n in grid.names) for config in proposals]
    assert [trial.state.name == "FAIL" for trial in trials] == [seconds_of(config) is None for config in proposals]
    generations = [trial.system_attrs["NSGAIISampler:generation"] for trial in trials if trial.state.name == "COMPLETE"]
    assert generations == [0] * 50 + [1] * (len(generations) - 50)


@pytest.mark.parametrize("name", [*NAMES, "optuna:TPESampler"])
def test_samplers_say_nothing(name: str, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    drive(searcher(name, CONFIGS, DEFAULT, None, 0), 16, ahead=3)
    assert not recwarn.list and capfd.readouterr().err == ""


OWN = """
from optuna.samplers import BaseSampler, RandomSampler
class Shy(RandomSampler):
    def sample_independent(self, study, trial, name, distribution):
        if len(study.trials) > 20:
            raise RuntimeError("had\\nenough")
        return distribution.high if hasattr(distribution, "high") else distribution.choices[-1]
class Unfinished(BaseSampler): ...
class Hungry(RandomSampler):
    def __init__(self): import no_such_package.part
number = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "toysampler.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "toysampler", raising=False)
    return "optuna:toysampler"


def test_a_sampler_of_another_package_proposes_until_it_raises(own: str) -> None:
    search = searcher(f"{own}.Shy", CONFIGS, DEFAULT, None, 0)
    first, second = search.propose(), search.propose()
    assert first == DEFAULT and second == Config(A=16, B=4, MODE="tiled", FAST=True, C=8)
    with pytest.raises(UsageError, match=r"^the sampler 'optuna:toysampler.Shy' raises RuntimeError: had enough at "):
        drive(search, 30)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("optuna:NSGA2", r"no sampler 'NSGA2' .*\(there are: .*NSGAIISampler, .*QMCSampler"),
        ("optuna:", "no sampler ''"),
        ("optuna:nsgaii", "is not a class that extends optuna.samplers.BaseSampler"),
        ("optuna:BaseSampler", "raises TypeError: .*abstract"),
        ("optuna:GridSampler", "raises TypeError: .*search_space.* is made with a seed alone"),
        ("optuna:no_such_package.X", "no_such_package cannot be imported: ModuleNotFoundError"),
        ("optuna:../x.Y", "is not a name such as"),
        ("OWN.number", "is not a class that extends"),
        ("OWN.Nobody", "toysampler has no Nobody"),
        ("OWN.Unfinished", "raises TypeError: .*abstract.*sample_independent"),
        ("OWN.Hungry", "needs the package no_such_package, which is not installed"),
    ],
)
def test_what_is_no_sampler_is_told_in_one_line(own: str, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        check_sampler(name.replace("OWN", own))
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_told_before_the_first_trial() -> None:
    """Optuna's Gaussian process imports torch when it models first, after ten trials."""
    try:
        import torch  # noqa: F401
    except ImportError:
        with pytest.raises(UsageError, match="'optuna:GPSampler' needs the package torch, which is not installed"):
            check_sampler("optuna:GPSampler")


def test_a_class_of_optunas_kind_may_be_installed_by_name(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "toy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[autotune.samplers]\nshy = toysampler:Shy\nunfinished = toysampler:Unfinished\nnumber = toysampler:number\n"
    )
    installed.cache_clear()
    try:
        search = searcher("shy", CONFIGS, DEFAULT, None, 0)
        assert [search.propose(), search.propose()] == [DEFAULT, Config(A=16, B=4, MODE="tiled", FAST=True, C=8)]
        for name, says in (
            ("unfinished", "'unfinished' raises TypeError"),
            ("number", "lacks after_trial, before_trial"),
        ):
            with pytest.raises(UsageError, match=says):
                searcher(name, CONFIGS, DEFAULT, None, 0).propose()
    finally:
        installed.cache_clear()
