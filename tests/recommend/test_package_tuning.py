"""An emitted package tunes at first use, with the installed autotune: here its candidates run on the host."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import pytest

from autotune.emit.writer import write_package
from autotune.first_use import tuner as installed
from autotune.runtime.tune_once import TunedHere, all_outcomes, checked_outcome, keep_outcome

from ..fake_gpu import FakeGpu, array, import_package, install
from ..host_files import with_host_files
from ..recorded import DEFAULT, H200, KERNELS, TALL, WIDE, record
from .test_packaged import recorded_on

T = TypeVar("T")
N_CHAN = 700  # channels of these calls, which nobody recorded


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(with_host_files(tmp_path / "cache")))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("first")
    return write_package([recorded_on(H200, base / "results")], base / "tuned", kernels=KERNELS)


@pytest.fixture
def tuned(folder: Path) -> ModuleType:
    return import_package(folder, "tuned_first_use")


@pytest.fixture
def gpu(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return install(monkeypatch, tuned, H200, H200)


class OnHost:
    """The installed tuner, whose device is the host; or only an answer."""

    def __init__(self, fastest: Any = None) -> None:
        self.requests: list[Mapping[str, Any]] = []
        self.fastest = fastest  # the config to answer with, without running anything

    def __call__(self, request: Mapping[str, Any], tell: Any) -> Mapping[str, Any]:
        self.requests.append(request)
        if self.fastest is None:
            return installed.tune_first({**request, "identifier": "host", "seconds": 60.0}, tell)
        asked = checked_outcome(request["outcome"].encode())
        times = {"median_s": 1e-5, "q1_s": 1e-5, "q3_s": 1e-5, "n_samples": 9, "registers": 30}
        attempts = tuple(replace(one, status="measured", **times) for one in asked.attempts)
        winner = [one.config for one in attempts].index(self.fastest)
        return {"outcome": replace(asked, attempts=attempts, winner=winner, checked=("n_chan=1",)).as_json()}


def tuning_with(tuner: T, tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> T:
    room = sys.modules[f"{tuned.__name__}._autotune.recommend.packaged"]
    monkeypatch.setattr(room, "installed_tuner", lambda: tuner)
    return tuner


@pytest.fixture
def answered(tuned: ModuleType, monkeypatch: pytest.MonkeyPatch) -> OnHost:
    """A tuner that finds the default to be the fastest, which no record says."""
    return tuning_with(OnHost(DEFAULT), tuned, monkeypatch)


def voltage(n_chan: int = N_CHAN, n_time: int = 100) -> Any:
    return array(np.ones((n_time, n_chan), np.complex64))


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage().split("\n")[0] for record in caplog.records]


def test_a_package_tunes_its_own_definition_with_the_installed_autotune(
    tuned: ModuleType, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tuner = tuning_with(OnHost(), tuned, monkeypatch)
    detect = tuned.detect(n_time=100, tune=3)
    assert detect.choice.tier == "nearest", "asking tunes nothing"
    detect(voltage())
    assert (detect.choice.tier, detect.choice.verified, len(tuner.requests)) == ("first use", True, 1)
    (request,) = tuner.requests
    asked = checked_outcome(request["outcome"].encode()).attempts
    origins = [one.origin for one in asked]
    assert origins[:2] == ["nearest", "default"] and len(origins) == 3
    assert asked[0].config == WIDE and asked[1].config == DEFAULT
    assert Path(request["reference"]).parts[-2:] == ("kernels", "detect.py") and request["identifier"] == "cuda:0"
    (outcome,) = all_outcomes(pytest.fail)
    assert {one.status for one in outcome.attempts} == {"measured"} and outcome.fastest is not None
    assert gpu.last.block == (outcome.fastest.config.BLOCK_C, outcome.fastest.config.BLOCK_T, 1)
    text = str(detect.choice)
    assert "tier      first use: the fastest of 3 configs on this machine's NVIDIA H200" in text
    assert "expected slowdown: measured here as the fastest of these; a sweep may find a faster one" in text
    assert "verified on 4 problems" in text and text in detect.explain()
    start, *_, chosen = told(caplog)[1:]
    assert start == f"detect[n_time=100,n_chan={N_CHAN}]: first use on NVIDIA H200, trying 3 configs"
    assert chosen.startswith(f"detect[n_time=100|n_chan={N_CHAN}] on NVIDIA H200: first use: the fastest of 3 configs")


@pytest.mark.quick
def test_the_next_kernel_and_the_next_process_read_what_was_found(
    tuned: ModuleType, folder: Path, gpu: FakeGpu, answered: OnHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned.detect(n_time=100, tune=4)(voltage())
    again = tuned.detect(n_time=100, tune=4)
    assert again.choice_for(n_chan=N_CHAN).config == DEFAULT and again.choice_for(n_chan=N_CHAN + 1).tier == "nearest"
    again(voltage())
    assert (again.choice.tier, again.choice.config) == ("first use", DEFAULT)
    fixed = tuned.detect(n_time=100, n_chan=N_CHAN, tune="2 s")
    assert fixed.choice.tier == "first use", "its sizes are known before a call"
    other = import_package(folder, "tuned_first_use_later")
    install(monkeypatch, other, H200)
    assert other.detect(n_time=100, n_chan=N_CHAN, tune=4).choice.config == DEFAULT
    assert len(answered.requests) == 1
    assert tuned.detect(n_time=100, n_chan=N_CHAN).choice.tier == "nearest", "who does not ask does not read"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOTUNE_FIRST_USE", "4")
        assert tuned.detect(n_time=100, n_chan=N_CHAN).choice.tier == "first use"
        assert tuned.detect(n_time=100, n_chan=N_CHAN, tune=0).choice.tier == "nearest"


def test_nothing_is_tuned_once_the_kernel_runs_but_by_prepare(
    tuned: ModuleType, gpu: FakeGpu, answered: OnHost, caplog: pytest.LogCaptureFixture
) -> None:
    detect = tuned.detect(n_time=100, tune=4)
    detect(voltage())
    for _ in range(2):
        detect(voltage(900))
    assert detect.choice.tier == "nearest" and len(answered.requests) == 1
    why = "the kernel runs already; detect.prepare(..) tunes further sizes"
    assert told(caplog).count(f"detect[n_time=100,n_chan=900]: without a first use: {why}") == 1
    prepared = detect.prepare(n_chan=900)
    assert prepared.config == DEFAULT and len(answered.requests) == 2
    prepared(voltage=voltage(800), power=array(np.zeros(800, np.float32)), sizes={"n_chan": 800})
    assert len(answered.requests) == 2, "what is prepared never tunes"
    started = tuned.detect(n_time=100, tune=4)
    started.prepare(n_chan=900)
    started(voltage(600))
    assert started.choice.tier == "nearest" and len(answered.requests) == 2, "its stream has begun"


def test_nothing_is_tuned_while_a_graph_is_captured(
    tuned: ModuleType, gpu: FakeGpu, answered: OnHost, caplog: pytest.LogCaptureFixture
) -> None:
    gpu.is_capturing = True
    detect = tuned.detect(n_time=100, tune=4)
    detect(voltage())
    assert detect.choice.tier == "nearest" and not answered.requests
    assert f"detect[n_time=100,n_chan={N_CHAN}]: without a first use: the stream records a graph" in told(caplog)


def test_a_recorded_problem_needs_no_first_use(
    tmp_path: Path, answered: OnHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path / "results", H200, {DEFAULT: 3.0, WIDE: 2.0, TALL: 4.0}, n_chan=N_CHAN)
    folder = write_package([tmp_path / "results"], tmp_path / "exact", kernels=KERNELS)
    other = import_package(folder, "exact_first_use")
    install(monkeypatch, other, H200)
    tuner = tuning_with(OnHost(DEFAULT), other, monkeypatch)
    detect = other.detect(tune=4)
    detect(voltage())
    assert (detect.choice.tier, detect.choice.config) == ("exact", WIDE) and not tuner.requests
    detect = other.detect(tune=4)
    detect(voltage(N_CHAN + 1))
    assert (detect.choice.tier, detect.choice.config) == ("first use", DEFAULT), "before the nearest"


@pytest.mark.parametrize("what", ["driver", "card", "template"])
def test_what_may_change_the_times_tunes_it_again(
    what: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    copy = Path(shutil.copytree(folder, tmp_path / "tuned"))
    tuned = import_package(copy, "tuned_first_use_copy")
    fake = install(monkeypatch, tuned, H200)
    tuner = tuning_with(OnHost(DEFAULT), tuned, monkeypatch)
    tuned.detect(n_time=100, tune=4)(voltage())
    if what == "driver":
        fake.driver = "590.1"
    elif what == "card":
        fake.devices[0] = replace(H200, name="NVIDIA H200 NVL")
    else:
        template = copy / "kernels" / "detect.cu.j2"
        template.write_text(template.read_text() + "// one more line\n")
        tuned = import_package(copy, "tuned_first_use_copy_2")
        install(monkeypatch, tuned, H200)
        tuning_with(tuner, tuned, monkeypatch)
    tuned.detect(n_time=100, tune=4)(voltage())
    assert len(tuner.requests) == 2


# ---------------------------------------------------------------------- where it cannot be
def without(tuned: ModuleType, caplog: pytest.LogCaptureFixture) -> str:
    """Calls it once, and returns the line that says why nothing was tuned."""
    detect = tuned.detect(n_time=100, tune=4)
    detect(voltage())
    assert (detect.choice.tier, detect.choice.config) == ("nearest", WIDE)
    (line,) = [line for line in told(caplog) if "without a first use" in line]
    return line.partition("without a first use: ")[2]


def test_without_autotune_one_line_says_what_is_missing(
    tuned: ModuleType, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "autotune.first_use.tuner", None)
    assert without(tuned, caplog) == (
        "tune= needs autotune itself in this Python (import of autotune.first_use.tuner halted; None in sys.modules): "
        "install its checkout, or leave tune= out"
    )


def test_without_memory_one_line_says_how_much_is_missing(
    tuned: ModuleType, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tuning_with(OnHost(), tuned, monkeypatch)
    gpu.free_bytes = 100_000
    assert "needs 0.00113 GB of memory on host, of which 0.0001 GB are free" in without(tuned, caplog)
    assert list(all_outcomes(pytest.fail)) == []


def test_where_faults_are_shared_nothing_is_tried(
    tuned: ModuleType, gpu: FakeGpu, answered: OnHost, caplog: pytest.LogCaptureFixture
) -> None:
    gpu.shares_faults = "a CUDA MPS daemon runs"
    assert without(tuned, caplog) == "a CUDA MPS daemon runs" and not answered.requests


def test_another_autotune_that_renders_other_code_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import shutil

    copy = Path(shutil.copytree(folder, tmp_path / "tuned"))
    rendering = copy / "_autotune" / "rendering" / "render.py"
    rendering.write_text(rendering.read_text().replace('header = f"// {name}\\n"', 'header = f"//  {name}\\n"'))
    tuned = import_package(copy, "tuned_first_use_other")
    install(monkeypatch, tuned, H200)
    tuning_with(OnHost(), tuned, monkeypatch)
    assert "renders another source of detect than the package does: emit it again" in without(tuned, caplog)


def test_an_outcome_of_another_source_is_removed(
    tuned: ModuleType, gpu: FakeGpu, answered: OnHost, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned.detect(n_time=100, tune=4)(voltage())
    (outcome,) = all_outcomes(pytest.fail)
    changed = replace(outcome, attempts=tuple(replace(one, source_key="f" * 12) for one in outcome.attempts))
    assert keep_outcome(changed) is None
    caplog.clear()
    assert without(tuned, caplog).startswith("the outcome that was kept belongs to another source")
    assert list(all_outcomes(pytest.fail)) == []


def test_where_no_candidate_is_right_the_prediction_runs(
    tuned: ModuleType, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(OnHost):
        def __call__(self, request: Mapping[str, Any], tell: Any) -> Mapping[str, Any]:
            found = checked_outcome(super().__call__(request, tell)["outcome"].encode())
            wrong = tuple(replace(one, status="wrong", median_s=None) for one in found.attempts)
            return {"outcome": replace(found, attempts=wrong, winner=None, why="none is right").as_json()}

    failing = tuning_with(Failing(DEFAULT), tuned, monkeypatch)
    assert without(tuned, caplog) == "none is right"
    (outcome,) = all_outcomes(pytest.fail)
    assert isinstance(outcome, TunedHere) and outcome.winner is None
    tuned.detect(n_time=100, tune=4)(voltage())
    assert len(failing.requests) == 1, "it is not tried at each start"


def test_an_effort_that_is_none_is_refused(tuned: ModuleType, gpu: FakeGpu) -> None:
    with pytest.raises(tuned.UsageError, match="tune=1 must be a number of configs from 2 to 16"):
        tuned.detect(n_time=100, tune=1)


def test_the_callers_log_has_one_line_for_what_happens(
    tuned: ModuleType, gpu: FakeGpu, answered: OnHost, caplog: pytest.LogCaptureFixture
) -> None:
    detect = tuned.detect(n_time=100, n_chan=N_CHAN, tune=4)
    detect(voltage())
    lines = [record for record in caplog.records if "first use on" in record.getMessage()]
    assert len(lines) == 1 and lines[0].levelno == logging.WARNING and lines[0].name == tuned.__name__
