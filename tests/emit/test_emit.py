"""From recorded sweeps to a package: what wins, what is left out, and that the package stands alone."""

import ast
import dataclasses
import json
import logging
import os
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune import UsageError
from autotune.core.schema import seal
from autotune.emit.vendor import BROUGHT, ROOMS, definition_sources
from autotune.emit.winners import gather
from autotune.emit.writer import _docstring, emit
from autotune.runtime.lookup import report_choice
from autotune.runtime.package import Package
from autotune.runtime.wisdom import Wisdom
from autotune.search.recorded_space import read_space
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..recorded import A100, DEFAULT, H100, H200, HOST, INTEGRATE, KERNELS, TALL, WIDE, record, rewrite_about, unsealed

MEDIANS = {DEFAULT: 30.0, WIDE: 20.0, TALL: 25.0}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two sizes on one GPU, another GPU, and the host."""
    results = tmp_path / "results"
    record(results, H200, MEDIANS)
    record(results, H200, {DEFAULT: 300.0, WIDE: 250.0, TALL: 200.0}, n_chan=65536)
    record(results, A100, {DEFAULT: 40.0, WIDE: 50.0, TALL: 45.0})
    record(results, HOST, MEDIANS, n_time=7)
    return emit([results], tmp_path / "tuned", kernels=KERNELS)


def python(code: str, folder: Path, *flags: str, **environment: str) -> str:
    """Run ``code`` in ``folder`` by a Python that has no autotune on its path; its stdout."""
    block = "import sys\nfor name in ('autotune', 'jinja2', 'optuna', 'pandas'): sys.modules[name] = None\n"
    done = subprocess.run(
        [sys.executable, *flags, "-c", block + code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---------------------------------------------------------------------- what is emitted
def test_winner_with_its_evidence(package: Path) -> None:
    wisdom = Wisdom.load(package / "wisdom.json")
    entry = next(e for e in wisdom.entries if e.device.name == "NVIDIA H200" and e.runtime == {"n_chan": 4096})
    assert (entry.config, entry.baked, entry.device) == (WIDE, {"n_time": 100}, H200)
    evidence = entry.evidence
    assert evidence.median_s == pytest.approx(20e-6)
    assert evidence.speed_up == pytest.approx(1.5)
    assert (evidence.registers, evidence.max_error, evidence.ties) == (32, 1.5e-7, 1)
    assert evidence.verified_on == ("n_chan=1", "n_chan=129")
    assert (evidence.commit, evidence.date[:10]) == ("0123456789ab", "2026-11-01")
    source = (package / "sources" / f"{entry.source_key}.cu").read_text()
    assert "constexpr int BLOCK_C = 128;" in source and "{{" not in source


def test_default_is_there_for_every_set_of_baked_fields(package: Path) -> None:
    fallbacks = Wisdom.load(package / "wisdom.json").fallbacks
    assert [(f.baked, f.config, f.inputs) for f in fallbacks] == [
        ({"n_time": 100}, DEFAULT, ("voltage",)),
        ({"n_time": 7}, DEFAULT, ("voltage",)),
    ]
    assert all((package / "sources" / f"{f.source_key}.cu").is_file() for f in fallbacks)


def test_default_may_win(package: Path) -> None:
    entry = next(e for e in Wisdom.load(package / "wisdom.json").entries if e.device == A100)
    assert (entry.config, entry.evidence.speed_up) == (DEFAULT, 1.0)


def test_wisdom_survives_a_round_trip(package: Path) -> None:
    text = (package / "wisdom.json").read_text()
    assert Wisdom.load(package / "wisdom.json").as_json() == text


def test_emitting_again_gives_the_same_bytes(package: Path, tmp_path: Path) -> None:
    again = emit([tmp_path / "results", tmp_path / "results"], tmp_path / "elsewhere" / "tuned", kernels=KERNELS)
    files = sorted(p.relative_to(package) for p in package.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
    for name in files:
        assert (package / name).read_bytes() == (again / name).read_bytes()


def test_rooms_are_copied_unchanged(package: Path) -> None:
    for room in ROOMS:
        own, copied = Path(autotune.__file__).parent / room, package / BROUGHT / room
        names = {path.name for path in own.iterdir() if path.suffix == ".py"}
        assert {path.name for path in copied.iterdir()} - {"__pycache__"} == names
        assert all((copied / name).read_text() == (own / name).read_text() for name in names)


# ---------------------------------------------------------------------- which trial wins
def test_verdict_counts_before_the_search(tmp_path: Path) -> None:
    path = record(tmp_path, H200, MEDIANS)
    verdict = unsealed((path / "verdict.json").read_text())
    trials = [unsealed(line) for line in (path / "trials.jsonl").read_text().splitlines()]
    (path / "verdict.json").write_text(json.dumps({**verdict, "winner": {**trials[2], "median_s": 19e-6}}))
    wisdom, _, _ = gather([tmp_path], kernels=KERNELS)
    assert wisdom.entries[0].config == TALL
    assert wisdom.entries[0].evidence.median_s == 19e-6


def test_without_verdict_the_fastest_measured_counts(tmp_path: Path) -> None:
    path = record(tmp_path, H200, MEDIANS, verdict=False)
    wrong = unsealed((path / "trials.jsonl").read_text().splitlines()[0])
    with open(path / "trials.jsonl", "a") as file:
        file.write(json.dumps({**wrong, "status": "wrong", "median_s": 1e-9, "config": {"BLOCK_C": 32}}) + "\n")
        file.write('{"number": 9, "status": "measured", "median_s": 1e-9, "conf')  # a kill in mid-line
    wisdom, _, _ = gather([tmp_path], kernels=KERNELS)
    assert wisdom.entries[0].config == WIDE
    assert wisdom.entries[0].evidence.speed_up == pytest.approx(1.5)


def test_a_configs_last_trial_counts(tmp_path: Path) -> None:
    path = record(tmp_path, H200, MEDIANS, verdict=False)
    fastest = unsealed((path / "trials.jsonl").read_text().splitlines()[1])
    with open(path / "trials.jsonl", "a") as file:
        file.write(json.dumps({**fastest, "status": "wrong", "median_s": None, "stamp": "newer"}) + "\n")
    assert gather([tmp_path], kernels=KERNELS)[0].entries[0].config == TALL


def test_newer_of_two_records_of_one_thing(tmp_path: Path) -> None:
    record(tmp_path / "a", H200, {DEFAULT: 30.0, TALL: 1.0}, started="2026-01-01T00:00:00+00:00")
    record(tmp_path / "b", H200, {DEFAULT: 30.0, WIDE: 9.0}, started="2026-02-01T00:00:00+00:00")
    entries = gather([tmp_path], kernels=KERNELS)[0].entries
    assert [e.config for e in entries] == [WIDE]


def test_a_changed_template_makes_a_winner_stale(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record(tmp_path, H200, MEDIANS, key="000000000000")
    with pytest.raises(UsageError, match=r"has changed since.*Sweep again: autotune sweep --kernel .*detect"):
        emit([tmp_path], tmp_path / "tuned", kernels=KERNELS)
    record(tmp_path, H100, MEDIANS)
    with caplog.at_level(logging.WARNING):
        emit([tmp_path], tmp_path / "tuned", kernels=KERNELS)
    assert "NVIDIA_H200" in caplog.text and "has changed since" in caplog.text
    assert [e.device.name for e in Wisdom.load(tmp_path / "tuned" / "wisdom.json").entries] == ["NVIDIA H100 PCIe"]


def test_a_kernel_of_which_all_is_stale_has_no_function(tmp_path: Path) -> None:
    record(tmp_path / "results", H200, MEDIANS, key="000000000000")
    problem = load_kernel(INTEGRATE).tuned[0]
    config = load_kernel(INTEGRATE).default_config(problem, H200)
    record(tmp_path / "results", H200, {config: 1.0}, problem={}, default=config, definition=INTEGRATE)
    package = emit([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)
    assert "def detect(" not in (package / "__init__.py").read_text()
    assert [p.name for p in (package / "kernels").iterdir() if p.stem != "__init__"] == ["integrate.py"]


def test_sweep_without_a_correct_variant_is_left_out(tmp_path: Path) -> None:
    record(tmp_path, H200, MEDIANS, verdict=False, status="wrong", median_s=None)
    with pytest.raises(UsageError, match="none of its 3 configurations was measured"):
        emit([tmp_path], tmp_path / "tuned", kernels=KERNELS)


def test_damaged_record_is_told(tmp_path: Path) -> None:
    path = record(tmp_path, H200, MEDIANS)
    (path / "sweep.json").write_text('{"kernel": "det')
    with pytest.raises(UsageError, match="damaged"):
        emit([tmp_path], tmp_path / "tuned", kernels=KERNELS)


def test_nothing_recorded(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recorded sweep"):
        emit([tmp_path], tmp_path / "tuned", kernels=KERNELS)


# ---------------------------------------------------------------------- what each tier loses
def test_losses_reach_the_one_who_asks(package: Path) -> None:
    answer = report_choice(package, "detect", {"n_time": 100, "n_chan": 5000}, "NVIDIA H200")
    assert answer["left_out"] == {
        **{"kernel": "detect", "where": "NVIDIA H200", "tier": "nearest"},
        **{"n": 2, "n_untold": 0, "median": 0.25, "worst": 0.25},
    }
    assert "expected slowdown: 25.0 % (median; worst 25.0 %, from 2 held-out problems)" in answer["text"]
    answer = report_choice(package, "detect", {"n_time": 100, "n_chan": 5000}, "sm_75")
    assert (answer["tier"], answer["left_out"]["where"]) == ("default", "cuda")


# ---------------------------------------------------------------------- where it is written
def test_folder_must_be_a_module_name(tmp_path: Path) -> None:
    record(tmp_path, H200, MEDIANS)
    with pytest.raises(UsageError, match="'tuned-v2' cannot be imported"):
        emit([tmp_path], tmp_path / "tuned-v2", kernels=KERNELS)


def test_what_was_not_emitted_is_not_overwritten(tmp_path: Path) -> None:
    record(tmp_path / "results", H200, MEDIANS)
    precious = tmp_path / "tuned" / "thesis.tex"
    precious.parent.mkdir()
    precious.write_text("years of work")
    with pytest.raises(UsageError, match="no emitted package"):
        emit([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)
    assert precious.read_text() == "years of work"


def test_an_emitted_package_is_replaced_as_a_whole(package: Path, tmp_path: Path) -> None:
    (package / "sources" / "stale.cu").write_text("old")
    emit([tmp_path / "results"], package, kernels=KERNELS)
    assert not (package / "sources" / "stale.cu").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == [], "no temporary folder is left"


# ---------------------------------------------------------------------- definitions
@pytest.mark.parametrize(
    ("statement", "culprit"),
    [
        ("import scipy.signal", "import scipy.signal"),
        ("import autotune", "import autotune"),
        ("from autotune import sweep", "from autotune import sweep"),
        ("from autotune.records.folder import load", "from autotune.records.folder import"),
        ("from .helpers import window", "from .helpers import"),
        ("def late():\n    import cupy", "import cupy"),
    ],
)
def test_definition_may_bring_only_what_a_package_has(tmp_path: Path, statement: str, culprit: str) -> None:
    text = Path(EXAMPLE).read_text()
    path = tmp_path / "importing.py"
    path.write_text(text)
    kernel = load_kernel(str(path))
    path.write_text(text + "\n\n" + statement + "\n")
    line = len(text.splitlines()) + 3 + statement.count("\n")
    with pytest.raises(UsageError) as raised:
        definition_sources(kernel)
    assert f"importing.py:{line}: `{culprit}" in str(raised.value)
    assert "Tolerance" in str(raised.value), "says what may be imported"


def test_definition_changes_in_its_imports_only() -> None:
    kernel = load_kernel(EXAMPLE)
    changed = [
        (before, after)
        for before, after in zip(
            Path(EXAMPLE).read_text().splitlines(), definition_sources(kernel)["detect.py"].splitlines(), strict=True
        )
        if before != after
    ]
    assert len(changed) == 1 and changed[0][0].startswith("from autotune import ")
    assert changed[0][1] == changed[0][0].replace("from autotune import ", "from .._autotune.core import ")


def test_a_definition_brings_its_parts(tmp_path: Path) -> None:
    """What they import, too; and each is held to what a package has."""
    text = Path(EXAMPLE).read_text()
    folder = tmp_path / "detect"
    folder.mkdir()
    (folder / "detect.py").write_text(text.replace("\nimport numpy", "\nfrom .one import ONE\nimport numpy", 1))
    (folder / "one.py").write_text("from .two import ONE\n")
    (folder / "two.py").write_text("from autotune import Space\n\nONE = Space()\n")
    (folder / "plot.py").write_text("import matplotlib\n")  # which is no part
    kernel = load_kernel(str(folder))
    assert [path.name for path in kernel.source_paths] == ["detect.py", "one.py", "two.py"]
    sources = definition_sources(kernel)
    assert sorted(sources) == ["detect/__init__.py", "detect/detect.py", "detect/one.py", "detect/two.py"]
    assert sources["detect/two.py"].startswith("from ..._autotune.core import Space")
    assert "ONE" not in sources["detect/__init__.py"]
    (folder / "__init__.py").write_text("from .one import ONE\n")
    assert definition_sources(kernel)["detect/__init__.py"] == "from .one import ONE\n"
    (folder / "two.py").write_text("import cupy\n")
    with pytest.raises(UsageError, match=r"two\.py:1: `import cupy` cannot be emitted"):
        definition_sources(kernel)


def test_a_package_finds_a_definition_of_several_files(tmp_path: Path) -> None:
    folder = tmp_path / "detect"
    folder.mkdir()
    text = Path(EXAMPLE).read_text()
    (folder / "detect.py").write_text(text.replace("\nimport numpy", "\nfrom .one import ONE\nimport numpy", 1))
    (folder / "one.py").write_text("ONE = 1\n")
    (folder / "detect.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    record(tmp_path / "results", H200, MEDIANS, definition=str(folder / "detect.py"))
    emit([tmp_path / "results"], tmp_path / "tuned", kernels=[folder])
    code = "import tuned; print(tuned._package.kernel('detect').name, tuned.kernels.detect.one.ONE)"
    assert python(code, tmp_path).strip() == "detect 1"


@pytest.mark.parametrize("name", ["correlate", "ddc"])
def test_own_kernels_can_be_emitted(name: str) -> None:
    assert "from ..._autotune.core" in definition_sources(load_kernel(name))[f"{name}/{name}.py"]


# ---------------------------------------------------------------------- the package on its own
ASK = """
import tuned
print(tuned.detect(n_time=100, device="NVIDIA H200", n_chan=4096).choice.config)
choice = tuned.detect(n_time=100, device="sm_75").choice
print(choice.tier, choice.config)
import cupy
"""


@pytest.mark.quick
def test_imports_and_looks_up_with_numpy_alone(package: Path) -> None:
    """No autotune, no CuPy, no GPU."""
    code = "sys.modules['cupy'] = sys.modules['cupy_backends'] = None\n" + ASK.replace("import cupy\n", "")
    assert python(code, package.parent).splitlines() == [str(WIDE), f"default {DEFAULT}"]


@pytest.mark.quick
def test_result_is_the_definition_too(package: Path) -> None:
    code = """
import numpy as np, tuned
kernel = tuned._package.kernel("detect")
power = kernel.reference(kernel.problem({"n_time": 3, "n_chan": 2}), voltage=np.full((3, 2), 2j))["power"]
print(power.tolist())
"""
    assert python(code, package.parent).strip() == "[12.0, 12.0]"


def test_no_gpu_is_told_with_what_to_do(package: Path) -> None:
    code = """
sys.modules['cupy'] = None
import tuned
try:
    tuned.detect(n_time=100)
except tuned.UsageError as error:
    print(error)
"""
    said = python(code, package.parent)
    assert "CuPy is missing" in said and 'device=... (recorded: "NVIDIA A100", "NVIDIA H200", "host")' in said


def test_fields_that_differ_must_be_given(package: Path, tmp_path: Path) -> None:
    code = """
import inspect, tuned
print([p.default is inspect.Parameter.empty for p in inspect.signature(tuned.detect).parameters.values()])
"""
    assert python(code, package.parent).strip() == "[True, False, False]"
    record(tmp_path / "one", H200, MEDIANS)
    emit([tmp_path / "one"], tmp_path / "b" / "tuned", kernels=KERNELS)
    assert python("import tuned; print(tuned.detect(device='NVIDIA H200').problem)", tmp_path / "b").startswith(
        "Problem(n_time=100"
    )


def test_pip_installs_it_beside_numpy_alone(package: Path, tmp_path: Path) -> None:
    """A wheel from the folder, in an environment that has NumPy and nothing else."""
    site = tmp_path / "site"
    site.mkdir()
    numpy = Path(np.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (numpy.parent / name).exists():
            (site / name).symlink_to(numpy.parent / name)
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target", str(site)]
    if int(version("setuptools").split(".")[0]) >= 71:  # makes wheels by itself: no index is needed
        install.append("--no-build-isolation")
    subprocess.run([sys.executable, *install, str(package)], check=True, capture_output=True, text=True)
    installed = site / "tuned"
    assert sorted(p.name for p in installed.iterdir() if p.name != "__pycache__") == sorted(
        ["__init__.py", "_autotune", "kernels", "py.typed", "sources", "wisdom.json"]
    )
    alone = ["-S", "-P", "-E"]  # no site-packages, no current folder, no environment
    code = f"sys.path.insert(0, {str(site)!r})\n" + ASK.replace("import cupy\n", "print(tuned.__file__)")
    lines = python(code, tmp_path / "site", *alone).splitlines()
    assert lines == [str(WIDE), f"default {DEFAULT}", str(installed / "__init__.py")]


# ---------------------------------------------------------------------- asking a package
@pytest.mark.quick
def test_report_is_the_packages_own_choice(package: Path) -> None:
    answer = report_choice(package, "detect", {"n_time": 100, "n_chan": 5000}, "NVIDIA H200")
    assert (answer["tier"], answer["config"]) == ("nearest", dict(WIDE))
    assert answer["expected_loss"] == 0.25


@pytest.mark.parametrize(
    ("kernel", "values", "device", "message"),
    [
        ("ddc", {}, "NVIDIA H200", "it has detect"),
        ("detect", {"n_time": 5}, "NVIDIA H200", "autotune sweep --kernel detect --problem n_time=5"),
        ("detect", {}, "NVIDIA H200", r"'n_time'.*has n_time, n_chan"),
        ("detect", {"n_time": 100, "colour": 3}, "NVIDIA H200", r"'colour'.*has n_time, n_chan"),
    ],
)
def test_report_errors_are_usage_errors(
    package: Path, kernel: str, values: dict[str, Any], device: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        report_choice(package, kernel, values, device)


def test_report_needs_a_package(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a package"):
        report_choice(tmp_path, "detect", {}, "NVIDIA H200")


def test_damaged_wisdom_is_told(package: Path) -> None:
    path = package / "wisdom.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(UsageError, match="format 99"):
        Wisdom.load(path)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(UsageError, match="damaged"):
        Wisdom.load(path)


def test_two_definitions_of_one_name_cannot_share_a_package(tmp_path: Path) -> None:
    copy = tmp_path / "copied.py"
    copy.write_text(Path(EXAMPLE).read_text())
    copy.with_name("copied.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    record(tmp_path / "results", H200, MEDIANS)
    record(tmp_path / "results", H100, MEDIANS, definition=str(copy))
    with pytest.raises(UsageError, match=r"both define detect; name one of them"):
        gather([tmp_path / "results"], kernels=[EXAMPLE, copy])
    wisdom, _, kernels = gather([tmp_path / "results"], kernels=[copy])
    assert (len(wisdom.entries), list(kernels)) == (2, ["detect"]), "both render as they were measured"
    assert kernels["detect"].source_path == copy


# ---------------------------------------------------------------------- records are data
def test_a_record_does_not_choose_the_definition(tmp_path: Path) -> None:
    """It names a file, which would run when it is imported."""
    evil = tmp_path / "it's evil.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + Path(EXAMPLE).read_text())
    evil.with_name("it's evil.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    path = record(tmp_path / "results", H200, MEDIANS)
    rewrite_about(path, definition=str(evil))
    with pytest.raises(UsageError) as raised:
        emit([tmp_path / "results"], tmp_path / "tuned")
    assert f"detect was recorded with the definition {evil}" in str(raised.value)
    assert f"give --kernel {shlex.quote(str(evil))} if you trust" in str(raised.value)
    assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match="records 3 configs"):
        read_space(path)
    assert not (tmp_path / "ran").exists() and not (tmp_path / "tuned").exists()
    emit([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)


def test_a_replay_does_not_import_what_a_record_names(tmp_path: Path) -> None:
    evil = tmp_path / "evil.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + Path(EXAMPLE).read_text())
    problem = load_kernel(EXAMPLE).problem({"n_time": 100, "n_chan": 4096})
    configs = load_kernel(EXAMPLE).space.enumerate(problem, H200).configs[:12]
    path = record(tmp_path / "results", H200, {config: 1.0 + i for i, config in enumerate(configs)})
    rewrite_about(path, definition=str(evil))
    assert read_space(path).known == {} and not (tmp_path / "ran").exists()
    assert "waves" in read_space(path, [EXAMPLE]).known


def test_an_installed_kernels_name_stands_for_it_alone(tmp_path: Path) -> None:
    """A user's own file of the same name was recorded: the installed one is not taken for it."""
    path = record(tmp_path, H200, MEDIANS)
    rewrite_about(path, kernel="ddc", definition=str(tmp_path / "ddc.py"))
    with pytest.raises(UsageError, match=r"ddc was recorded with the definition .*/ddc\.py"):
        gather([tmp_path])
    rewrite_about(path, kernel="nowhere", definition="nowhere")
    with pytest.raises(
        UsageError, match=r"nowhere is not installed here: give the path of its definition, --kernel PATH"
    ):
        gather([tmp_path])


HOSTILE = 'x"""\nopen("ran", "w")\n"""\\'


def test_no_string_of_a_record_becomes_code(tmp_path: Path) -> None:
    name = HOSTILE.replace("\n", ";")
    record(tmp_path / "results", dataclasses.replace(H200, name=name), MEDIANS, started="2026-11-01\nx = 1")
    path = record(tmp_path / "results", H200, MEDIANS, started='9"\n[evil]')
    rewrite_about(path, compiler=HOSTILE, commit=HOSTILE, machine=HOSTILE)
    package = emit([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)
    assert name in (ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or "")
    python("import tuned\ntuned.detect(n_time=100, device='NVIDIA H200')", tmp_path)
    assert not (tmp_path / "ran").exists()
    project = tomllib.loads((package / "pyproject.toml").read_text())
    assert project["project"]["version"] == "2026.11.1" and "evil" not in project


@pytest.mark.parametrize("text", ["", "a", 'a"', '"""', "\\", 'a"""b\\"""', "a\nb", "\0", '"', "'''\"\"\""])
def test_a_docstring_is_its_text(text: str) -> None:
    assert ast.literal_eval(_docstring(text)) == text


@pytest.mark.parametrize(
    ("winner", "why"),
    [
        ({"key": None}, "has no key"),
        ({"key": "../../../x"}, "has no key"),
        ({"key": "0" * 11}, "has no key"),
        ({"key": None, "config": {"BLOCK_C": "64; evil", "BLOCK_T": 4, "UNROLL": 1}}, "has no key"),
        ({"config": {"BLOCK_C": "64; evil", "BLOCK_T": 4, "UNROLL": 1}}, "BLOCK_C=64; evil is not in the space"),
        ({"config": {"BLOCK_C": 64, "BLOCK_T": 4}}, "lacks UNROLL"),
        ({"config": {"BLOCK_C": 64, "BLOCK_T": 4, "UNROLL": True}}, "UNROLL=True of the record is not in the space"),
        ({"config": {"BLOCK_C": 64, "BLOCK_T": 4, "UNROLL": 1.0}}, r"UNROLL=1\.0 of the record is not in the space"),
    ],
)
def test_a_winner_is_of_the_space_and_has_a_key(tmp_path: Path, winner: dict[str, Any], why: str) -> None:
    path = record(tmp_path / "results", H200, MEDIANS)
    verdict = unsealed((path / "verdict.json").read_text())
    (path / "verdict.json").write_text(json.dumps({**verdict, "winner": {**verdict["winner"], **winner}}))
    with pytest.raises(UsageError, match=why):
        emit([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"default": {"BLOCK_C": 64, "BLOCK_T": 4, "UNROLL": "1; evil"}}, "UNROLL=1; evil is not in the space"),
        ({"default": {"BLOCK_C": 64, "BLOCK_T": 4, "UNROLL": True}}, "UNROLL=True of the record is not in the space"),
        ({"problem": {"n_time": "100; evil", "n_chan": 4096}}, "n_time='100; evil' of the record is no plain value"),
        ({"problem": {"n_time": True, "n_chan": 4096}}, "n_time=True of the record is no plain value of the type int"),
        ({"problem": {"n_time": [1], "n_chan": 4096}}, "of the type int"),
        ({"problem": {"n_time": 100}, "runtime": []}, "has the runtime fields n_chan, its record others"),
        ({"baked": ["n_time", "n_chan"], "runtime": []}, "has the baked fields n_time, its record others"),
    ],
)
def test_values_of_a_problem_have_the_fields_types(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    path = record(tmp_path / "results", H200, MEDIANS)
    rewrite_about(path, **changes)
    with pytest.raises(UsageError, match=why):
        emit([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)


def test_what_a_definition_raises_for_a_record_is_a_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not the end of an emission in which other sweeps are whole."""
    broken = tmp_path / "divides.py"
    hook = "    def unsupported(self, config, device):\n        assert device.name != 'NVIDIA A100'\n\n"
    broken.write_text(Path(EXAMPLE).read_text().replace("    def launch(self", hook + "    def launch(self", 1))
    broken.with_name("divides.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    record(tmp_path / "results", H200, MEDIANS)
    record(tmp_path / "results", A100, MEDIANS)
    wisdom, _, _ = gather([tmp_path / "results"], kernels=[broken])
    assert [entry.device.name for entry in wisdom.entries] == ["NVIDIA H200"]
    assert "can no longer run" in caplog.text and "unsupported() raises AssertionError" in caplog.text


# ---------------------------------------------------------------------- damaged packages
@pytest.mark.quick
def test_a_source_is_what_its_key_says(package: Path, tmp_path: Path) -> None:
    inside = Package("tuned", package)
    key = inside.wisdom.entries[0].source_key
    assert inside.source(key).startswith("// detect[")
    path = package / "sources" / f"{key}.cu"
    path.write_text(path.read_text().replace("sum", "mum", 1))
    with pytest.raises(UsageError, match=rf"{key}\.cu is damaged: its SHA-256 does not begin with {key}; install"):
        inside.source(key)
    (tmp_path / "secret.cu").write_text("x")
    for key in ("../../secret", "", "0" * 13, "0" * 12 + "\n"):
        with pytest.raises(UsageError, match="is no key of a source"):
            inside.source(key)


def test_wisdom_that_was_changed_is_not_answered_from(package: Path) -> None:
    """Laid out otherwise it is the same."""
    path = package / "wisdom.json"
    content, whole = json.loads(path.read_text()), Wisdom.load(path)
    path.write_text(json.dumps(content))
    assert Wisdom.load(path) == whole
    for change in (
        {"entries": [{**content["entries"][0], "regret": 0.5}, *content["entries"][1:]]},
        {"entries": content["entries"][1:]},
        {"tuner": "another"},
        {"sha256": "0" * 64},
        {"sha256": None},
    ):
        path.write_text(json.dumps({**content, **change}))
        with pytest.raises(UsageError, match=r"wisdom\.json is damaged: its content does not have the sha256.*Emit"):
            Wisdom.load(path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"source_key": "../../x"}, "is no key of a source"),
        ({"config": {"BLOCK_C": []}}, "BLOCK_C is a list"),
        ({"regret": "much"}, "regret is 'much'"),
        ({"device": "a stranger"}, "names the device a stranger"),
        ({"evidence": {"median_s": -1, "verified_on": []}}, "median_s is -1"),
        ({"baked": [1]}, "baked is a list"),
        ({"more": 1}, "'more', which nothing here knows"),
    ],
)
def test_a_right_checksum_over_nonsense_is_refused(package: Path, changes: dict[str, Any], why: str) -> None:
    path = package / "wisdom.json"
    content = json.loads(path.read_text())
    content["entries"][0] |= changes
    del content["sha256"]
    path.write_text(json.dumps(seal(content)))
    with pytest.raises(UsageError, match=rf"wisdom\.json is damaged: .*{why}"):
        Wisdom.load(path)
