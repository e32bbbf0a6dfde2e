"""Each program of examples/ runs, with small sizes, and prints what its README says that it does."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from autotune.source.registry import load_kernel

from .test_installed import autotune, install

EXAMPLES = Path(__file__).parents[1] / "examples"
Run = Callable[..., str]


def loaded(name: str, **smaller: object) -> ModuleType:
    """The program, with other values of its constants."""
    spec = importlib.util.spec_from_file_location(f"examples_{Path(name).stem}", EXAMPLES / name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for constant, value in smaller.items():
        assert hasattr(module, constant), f"{name} has no {constant}"
        setattr(module, constant, value)
    return module


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs a program's ``main`` in an empty folder; returns what it prints. A package that it imports goes again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(name: str, *arguments: str, **smaller: object) -> str:
        loaded(name, **smaller).main(*arguments)
        return capfd.readouterr().out

    yield run
    for module in [name for name in sys.modules if name.partition(".")[0] == "tuned"]:
        del sys.modules[module]


def number(pattern: str, said: str) -> float:
    """The number in the parentheses of a pattern, which is found once."""
    (found,) = re.findall(pattern, said)
    return float(found)


def test_a_cu_file_is_tuned_as_it_is(run: Run) -> None:
    space = {"block_size_x": [32], "block_size_y": [4], "rows_per_thread": [2]}
    said = run("diffuse_cu/tune.py", "host", WIDTH=70, HEIGHT=45, SPACE=space)
    assert "rate, step_s given by each call" in said and "1 configs are right; the fastest is block_size_x=32" in said
    assert "tuned_cu.diffuse()(before, source, rate, step_s)" in said


FEW = ("BLOCK_X=32", "BLOCK_Y=8", "ROWS=2")  # one config


@pytest.mark.parametrize("device", ["host", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_the_definition_makes_one_package_of_two_problems(run: Run, device: str) -> None:
    said = run("diffuse/tune.py", device, ONLY=FEW)
    assert "closed edges: BLOCK_X=32,BLOCK_Y=8" in said and "cold edges: BLOCK_X=32,BLOCK_Y=8" in said
    assert " [ 0. 20. 20. 20.  0.]\n" in said, said
    assert "nearest: " in said


def test_the_definition_computes_what_the_cu_file_does() -> None:
    kernel = load_kernel(str(EXAMPLES / "diffuse" / "diffuse.py"))
    problem = kernel.problem({"width": 9, "height": 7})
    inputs = kernel.inputs(problem, np.random.default_rng(1))
    answer = loaded("diffuse_cu/tune.py").diffused(**inputs)
    np.testing.assert_allclose(kernel.reference(problem, **inputs)["after"], answer, rtol=1e-7)


def test_a_portfolio(run: Run) -> None:
    said = run("portfolio.py")
    worst = [float(share) for share in re.findall(r"regret ([\d.]+)% at worst", said)]
    assert len(worst) == 4 and worst == sorted(worst, reverse=True) and worst[0] < 15
    assert "with a regret of " in said and "tuned_few: " in said


def test_importances(run: Run) -> None:
    said = run("importances.py")
    assert "ddc: 600 trials" in said and "the fastest takes 46.3 us" in said
    assert re.search(r"^slowdown of the best config with each STAGE:\n +\d+ +0\.0%\n", said, re.MULTILINE), said


@pytest.mark.parametrize("device", ["simulated", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_energy(run: Run, device: str) -> None:
    said = run("energy.py", device, TRIALS=8, ENERGY_S=0.2)
    assert "8 trials" in said and re.search(r"us +[\d.]+ mJ +\d+ W  best ", said), said
    assert number(r"least energy x time: [\d.]+ us, ([\d.]+) mJ", said) > 0


def test_vlbi(run: Run) -> None:
    said = run("vlbi.py", "host", N_SAMPLES=160_000)
    assert "vlbi.h5: 2 dumps" in said and "late by 21.00 samples, 1.312 us" in said, said


def test_a_phase_centre(run: Run) -> None:
    assert "is at l = 0.0040, m = -0.0060" in run("phase_centre.py", "host")


def test_a_live_source(run: Run) -> None:
    said = run("live_source.py", "host", N_SAMPLES=200_000)
    assert "is in channel 41, 640625 Hz" in said, said
    assert number(r"(\d+) packets missing", said) == 3 or number(r"(\d+) chunks too late", said) > 0


def test_a_campaign(run: Run) -> None:
    pytest.importorskip("distributed")
    said = run("campaign/run.py", "simulated:0")
    assert "6 of 6 tuned, 0 failed" in said and len(re.findall(r"BLOCK_X=\d+, BLOCK_Y=\d, ROWS=\d\n", said)) == 6, said


def test_a_device_and_a_sampler_from_a_package(tmp_path: Path) -> None:
    folder = EXAMPLES / "toybox"
    points = re.findall(r'entry-points\."([\w.]+)"\]\n(\w+) = "([\w.:]+)"', (folder / "pyproject.toml").read_text())
    assert [group for group, _, _ in points] == ["autotune.devices", "autotune.samplers"]
    modules: dict[str, Any] = {path.stem: path.read_text() for path in (folder / "toybox").glob("*.py")}
    text = "".join(f"[{group}]\n{name} = {place}\n" for group, name, place in points)
    site = install(tmp_path / "site", modules, text)
    words = ["--device", "paper", "--sampler", "climber", "--problem", "width=1000,height=700", "--trials", "8"]
    definition = str(EXAMPLES / "diffuse" / "diffuse.py")
    done = autotune("sweep", "--kernel", definition, *words, "--results", str(tmp_path / "results"), site=site)
    assert done.returncode == 0, done.stderr
    assert "8 measured" in done.stdout and "paper time" in done.stdout


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "needs"), [("pipeline_cupy.py", "cupy"), ("pipeline_torch.py", "torch")])
def test_pipelines(tmp_path: Path, name: str, needs: str) -> None:
    pytest.importorskip(needs)
    done = subprocess.run([sys.executable, EXAMPLES / name], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"most power is (in channel 300|at 0\.2151)", done.stdout), done.stdout


def test_the_page_names_every_program() -> None:
    text = (EXAMPLES / "README.md").read_text()
    programs = [path for path in EXAMPLES.rglob("*.py") if "def main" in path.read_text()]
    assert [path for path in programs if f"({path.relative_to(EXAMPLES)})" not in text] == []


def test_the_page_from_a_cu_file_shows_what_the_files_have() -> None:
    page = (EXAMPLES.parent / "docs" / "from-cu-to-definition.md").read_text()
    files = [path.read_text() for path in (EXAMPLES / "diffuse").iterdir() if path.is_file()]
    have = {line.strip() for text in files for line in text.splitlines()}
    blocks = re.findall(r"^```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6 and [line for line in "".join(blocks).splitlines() if line.strip() not in have] == []
