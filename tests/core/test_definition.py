"""Definitions that raise or answer wrongly: for one config it is one trial, as a whole it is one line."""

import re
from collections import Counter
from pathlib import Path

import pytest

from autotune.devices import find_device
from autotune.source.registry import load_kernel
from autotune.sweep.request import problem_on
from autotune.sweep.run import Sweep, run_sweep
from autotune.sweep.settings import Settings
from autotune.trial.bench import Bench

from ..commands import ended
from ..conftest import DEFINITIONS, EXAMPLE

MOODY = str(DEFINITIONS / "moody.py")


def moody_sweep(results: Path) -> Sweep:
    kernel, target = load_kernel(MOODY), find_device("host")
    with Bench(target, compile_processes=2) as bench:
        settings = Settings(results=results, trials=100, finalist_samples=9)
        return run_sweep(kernel, problem_on(kernel, {}, target), bench, settings)


@pytest.mark.quick
def test_what_raises_for_one_config_is_one_trial(tmp_path: Path) -> None:
    for _ in range(2):  # and the same when it is started again
        sweep = moody_sweep(tmp_path)
        assert sweep.best is not None and sweep.best.config["MOOD"] == "none"
        ((reason, n),) = sweep.refused.items()
        assert (
            n == 2
            and reason.startswith("cannot be judged: the constraint mood_allows raises ZeroDivisionError")
            and "moody.py:27" in reason
        )
        rows = sweep.trials.to_dict("records")
        assert len(rows) == 14
        ended = {(r["MOOD"], r["status"]): r["message"] for r in rows if r["MOOD"] != "none"}
        assert Counter(status for _, status in ended) == {"definition_failed": 5, "render_failed": 1}
        for method in ("launch", "edge_problems", "constants", "unsupported"):
            assert re.match(rf".*moody\.py:\d+: moody\.{method}\(\) raises", ended[method, "definition_failed"])
        assert "launch() returns NoneType None; it must return a Launch" in ended["launch_type", "definition_failed"]
        assert ended["template", "render_failed"].startswith("moody.cu.j2:3: ZeroDivisionError")


WRONG = {  # what is put in the place of a part of the example -> what the one line says
    "no tuned": (r"tuned = .*", "tuned = ()", "detect has no tuned problem"),
    "tuned type": (r"tuned = .*", "tuned = (1024,)", "it must be a tuple of Problem"),
    "arguments type": (r"arguments = .*", "arguments = 7", "has arguments = 7; it must be a tuple of names"),
    "argument that is nothing": (
        r"arguments = .*",
        'arguments = ("power", "voltage", "length")',
        "detect has the argument length, which is neither in arrays() nor in scalars(), nor a runtime field",
    ),
    "misspelt": (
        r"host_sizes = ",
        "host_size = ",
        "detect defines host_size, which nothing reads; rename it to host_sizes",
    ),
    "misspelt method": (r"def edge_problems", "def edge_problem", "rename it to edge_problems, or to _edge_problem"),
    "default": (r'"UNROLL": 1', '"UNROL": 1', "a default that is not in its space: 'UNROL' is not a parameter"),
    "default value": (
        r'"UNROLL": 1',
        '"UNROLL": 3',
        "not in its space: UNROLL=3 is not in the space; UNROLL may be 1, 4",
    ),
    "no space": (r"space = SPACE", "", "has space = None; it must be a Space"),
    "work type": (r"return Work\(.*\)", "return 4", "detect.work() returns int 4; it must return a Work"),
    "work raises": (
        r"return Work\(.*\)",
        "return Work(1, 1, 'parsec')",
        "detect.work() raises ValueError: unit=parsec",
    ),
    "launch type": (r"return Launch\(.*\)", "return (1, 1)", "detect.launch() returns tuple (1, 1)"),
    "launch raises": (r"return Launch\(.*\)", "return undefined_name", "detect.launch() raises NameError"),
    "default_for raises": (
        r"    def launch\(",
        "    def default_for(self, problem, device):\n        return 1 / 0\n\n    def launch(",
        "detect.default_for() raises ZeroDivisionError",
    ),
    "default_for type": (
        r"    def launch\(",
        "    def default_for(self, problem, device):\n        return 64\n\n    def launch(",
        "detect.default_for() returns int 64; it must return a dict",
    ),
    "default_for value": (
        r"    def launch\(",
        "    def default_for(self, problem, device):\n        return {'UNROLL': 3}\n\n    def launch(",
        "detect.default_for() returns a config that is not in its space: UNROLL=3 is not in the space",
    ),
    "misspelt default_for": (r"    def edge_problems", "    def default_fo", "rename it to default_for"),
    "tolerance type": (r"return Tolerance\(.*\)", "return 1e-6", "detect.tolerance() returns float 1e-06"),
    "inputs type": (r"return \{\"voltage\".*\}", "return [1]", "detect.inputs() returns list [1]"),
    "reference raises": (r"return \{\"power\": np.*\}", "return 1 / 0", "detect.reference() raises ZeroDivisionError"),
    "reference type": (r"return \{\"power\": np.*\}", "return 3", "detect.reference() returns int 3"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_definition_that_is_wrong_as_a_whole_ends_with_one_line(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern, replacement, message = WRONG[what]
    text, n = re.subn(pattern, replacement, Path(EXAMPLE).read_text(), count=1)
    assert n == 1, f"{pattern} is not in the example"
    definition = tmp_path / "detect.py"
    definition.write_text(text)
    (tmp_path / "detect.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    command = ["sweep", "--kernel", str(definition), "--device", "host", "--trials", "2"]
    command += ["--results", str(tmp_path / "results"), "--compile-processes", "1"]
    code, told = ended(command, capsys, monkeypatch)
    assert code == 2, told
    last = told.splitlines()[-1]
    assert last.startswith("autotune: ") and message in last and "detect.py:" in last, told
