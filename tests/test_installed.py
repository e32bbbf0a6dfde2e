"""A package that is installed beside autotune adds a device, a sampler and an export format; nothing else changes."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.records.folder import find_sweeps

from . import commands
from .conftest import EXAMPLE

DEVICE = '''
"""A kind of device: the formula of the simulated one under another name."""

from autotune import Device
from autotune.devices import simulated
from autotune.devices.base import Defaults, Finding

kind, clock, builds = "toy", "toy time", simulated.builds
defaults = Defaults(trials=7, checked_launches=1, has_full_sizes=False)
compile, compiled_anew = simulated.compile, simulated.compiled_anew


def identifiers():
    return ["toy:0", "toy:1"]


def describe(identifier):
    return Device(name="A toy", kind=kind, arch="toy")


def lock_name(identifier):
    return identifier.replace(":", "-")


def compiler(device):
    return "toy compiler 1"


def open(identifier):
    session = simulated.open("simulated:0")
    session.device = describe(identifier)
    return session


def findings():
    return [Finding("toy", True, "made of wood")]
'''
SAMPLER = '''
"""A sampler: the last config that is open."""

from autotune.search.sampler import ListSampler


class Backwards(ListSampler):
    def choose(self):
        return int(self.open_rows()[-1])
'''
FORMAT = '''
"""An export format: a line for each trial."""

is_table, is_text = True, True


def contents(sweeps):
    lines = [f"{sweep.kernel} {trial.number} {trial.status}" for sweep in sweeps for trial in sweep.trials]
    return {".txt": "".join(f"{line}\\n" for line in lines).encode()}
'''
ENTRY_POINTS = """
[autotune.devices]
toy = toybox.device

[autotune.samplers]
mine = toybox.sampler:Backwards

[autotune.exports]
mine = toybox.format
"""


def install(folder: Path, modules: Mapping[str, str], entry_points: str) -> Path:
    """Leave a package in ``folder`` as pip does."""
    package, about = folder / "toybox", folder / "toybox-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    for name, text in {"__init__": "", **modules}.items():
        (package / f"{name}.py").write_text(text)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toybox\nVersion: 1.0\n")
    (about / "INSTALLER").write_text("pip\n")
    (about / "entry_points.txt").write_text(entry_points)
    files = [path for path in folder.rglob("*") if path.is_file()]
    (about / "RECORD").write_text("".join(f"{path.relative_to(folder)},,\n" for path in files))
    return folder


def autotune(*words: str, site: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """The command, in a process that finds the packages in ``site``."""
    environment = {**os.environ, **({"PYTHONPATH": str(site)} if site else {})}
    return commands.autotune(*words, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    modules = {"device": DEVICE, "sampler": SAMPLER, "format": FORMAT}
    return install(tmp_path_factory.mktemp("site"), modules, ENTRY_POINTS)


@pytest.fixture(scope="module")
def results(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep on the device ``toy`` by the sampler ``mine``."""
    path = tmp_path_factory.mktemp("results")
    words = ["sweep", "--kernel", EXAMPLE, "--device", "toy", "--sampler", "mine", "--results", str(path)]
    done = autotune(*words, site=site)
    assert done.returncode == 0, done.stderr
    return path


def test_a_device_and_a_sampler_are_added(results: Path) -> None:
    (folder,) = find_sweeps(results)
    about, trials = folder.about(), folder.trials()
    assert about.device.kind == "toy" and about.compiler == "toy compiler 1"
    assert about.settings["sampler"] == "mine"
    assert len(trials) == 7, "the device's own number of trials"
    last_values = {name: values[-1] for name, values in about.space.items()}
    assert trials[0].config == about.default
    assert {trial.config["BLOCK_C"] for trial in trials[1:]} == {last_values["BLOCK_C"]}
    assert folder.path.parts[-3] == "A_toy"


def test_an_export_format_is_added(site: Path, results: Path, tmp_path: Path) -> None:
    shown = autotune("export", str(results), "--format", "mine", site=site)
    lines = shown.stdout.splitlines()
    assert len(lines) == 7 and lines[0].startswith("detect 0 "), shown.stderr
    written = autotune("export", str(results), "--format", "mine", "--out", str(tmp_path / "x.txt"), site=site)
    assert written.returncode == 0 and (tmp_path / "x.txt").read_text() == shown.stdout


def test_what_is_added_is_told(site: Path) -> None:
    told = json.loads(autotune("doctor", "--json", site=site).stdout)
    assert {"what": "toy", "works": True, "detail": "made of wood", "remedy": ""} in told["findings"]
    unknown = autotune("sweep", "--kernel", EXAMPLE, "--device", "toy:7", site=site)
    assert unknown.returncode == 2 and "device 'toy:7' is not here" in unknown.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sweep", "--kernel", EXAMPLE, "--device", "toy"], "device 'toy' is not here"),
        (["sweep", "--kernel", EXAMPLE, "--device", "simulated", "--sampler", "mine"], "no sampler is called 'mine'"),
        (["export", "RESULTS", "--format", "mine"], "no export format is called 'mine' (there are: csv, parquet, t4"),
        (["digest", "RESULTS", "--kernel", EXAMPLE], "'toy' is not a kind of device"),
    ],
)
def test_without_the_package_each_is_told_in_one_line(results: Path, words: list[str], says: str) -> None:
    done = autotune(*(str(results) if word == "RESULTS" else word for word in words))
    assert done.returncode == 2 and says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "words", "says"),
    [
        ("device", "raise RuntimeError('no driver')", ["--device", "toy"], "RuntimeError: no driver"),
        ("device", "kind = 'toy'", ["--device", "toy"], "lacks builds, clock, compile,"),
        ("device", DEVICE.replace('"toy", "toy time"', '"cuda", "t"'), ["--device", "toy"], "calls itself 'cuda'"),
        ("sampler", "", ["--device", "simulated", "--sampler", "mine"], "has no attribute 'Backwards'"),
        (
            "sampler",
            "class Backwards: ...",
            ["--device", "simulated", "--sampler", "mine"],
            "lacks after_trial, before_trial,",
        ),
    ],
)
def test_a_package_that_is_broken_is_told(tmp_path: Path, name: str, text: str, words: list[str], says: str) -> None:
    site = install(
        tmp_path / "site", {"device": DEVICE, "sampler": SAMPLER, "format": FORMAT, name: text}, ENTRY_POINTS
    )
    done = autotune("sweep", "--kernel", EXAMPLE, "--results", str(tmp_path / "results"), *words, site=site)
    assert done.returncode == 2 and says in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert autotune("sweep", "-h", site=site).returncode == 0, "what is not asked for is not loaded"


def test_a_name_in_a_record_imports_nothing(results: Path, tmp_path: Path) -> None:
    """The module is there to be imported, and is registered for nothing."""
    site = install(
        tmp_path / "site", {"device": "from pathlib import Path\nPath(__file__).with_name('ran').touch()"}, ""
    )
    shutil.copytree(results, tmp_path / "results")
    (folder,) = find_sweeps(tmp_path / "results")
    about = folder.about()
    folder.take_up(replace(about, device=replace(about.device, kind="toybox.device")))
    done = autotune("digest", str(tmp_path / "results"), "--kernel", EXAMPLE, site=site)
    assert "'toybox.device' is not a kind of device" in done.stderr, done.stderr
    assert not (site / "toybox" / "ran").exists()
