"""What is installed is what is in the tree, and what the README says is what CI runs."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from autotune.system.installation import VERSION

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (".py", ".c", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".j2", ".css", ".js", ".typed")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as a clone has it: setuptools takes files from what an earlier installation left beside the sources."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("autotune", "kernels", "templates"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_every_package_of_the_tree_is_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {path.parent.relative_to(ROOT) for name in ("autotune", "kernels") for path in (ROOT / name).rglob("*.py")}
    names = {
        ".".join(path.parts) if path.parts[0] == "autotune" else ".".join(("autotune", *path.parts)) for path in found
    }
    assert sorted(listed) == sorted({*names, "autotune.templates"})


def test_the_wheel_holds_every_source_and_nothing_global(tmp_path: Path, clone: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(clone),
    ]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    tree = {p.relative_to(ROOT) for folder in ("autotune", "kernels", "templates") for p in (ROOT / folder).rglob("*")}
    own = {p for p in tree if p.suffix in SOURCES and "__pycache__" not in p.parts}
    own |= {p for p in tree if "headers" in p.parts and (ROOT / p).is_file()}  # those of C++ have no suffix
    expected = {str(p) if p.parts[0] == "autotune" else f"autotune/{p}" for p in own}
    assert names == expected


def test_an_installed_wheel_works_away_from_the_checkout(tmp_path: Path, clone: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(tmp_path),
        str(clone),
    ]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    code = (
        "import autotune; from pathlib import Path; from autotune.core.library import library_path;"
        f"assert Path(autotune.__file__).is_relative_to({str(tmp_path)!r});"
        "assert 'ddc' in autotune.kernels(); assert (library_path() / 'ddc.cu.j2').is_file();"
        "import autotune.cli.program, autotune.engines.jobs.correlate, autotune.emit.writer"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = [
        line.strip() for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("    python3 -m venv")
    ]
    assert len(commands) == 2
    assert commands[0].endswith("autotune sweep --kernel ddc") and commands[1].endswith("pytest -n 2")
    assert "README.md" in (ROOT / ".ci" / "run").read_text()


def test_each_step_of_other_peoples_ci_is_a_script_of_this_tree() -> None:
    lines = (ROOT / ".github" / "workflows" / "ci.yml").read_text().splitlines()
    steps = [line.split("run: ", 1)[1] for line in lines if "run: " in line and "apt-get" not in line]
    assert steps and all(os.access(ROOT / step, os.X_OK) for step in steps)


def test_the_version_is_the_same_everywhere() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert said == VERSION
    assert f"version: {said}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {said} - " in (ROOT / "CHANGELOG.md").read_text()


def test_ci_runs_it_as_a_newcomer_does(tmp_path: Path) -> None:
    """The caller's environment is not there, but for pip's settings; the home is new, and goes; the status stays."""
    command = "python3 -m venv --help >help && touch ~/pytest && env >told && exit 7"
    config = tmp_path / "old" / ".config" / "pip" / "pip.conf"
    for path in (config, tmp_path / ".ci" / "run"):
        path.parent.mkdir(parents=True)
    config.touch()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "README.md").write_text(f"    {command}\n")
    pip = {"PIP_EXTRA_INDEX_URL": "a b", "PIP_X": "'$Y\""}
    given = {"HOME": str(tmp_path / "old"), "PATH": "/usr/bin:/bin", "LANG": "C", **pip}

    def told(**more: str) -> dict[str, str]:
        done = subprocess.run([tmp_path / ".ci" / "run"], env=given | more, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (7, f"{command}\n", "")
        found = dict(line.split("=", 1) for line in (tmp_path / "told").read_text().splitlines())
        assert not Path(found.pop("HOME")).exists() and found.pop("PATH") == "/usr/bin:/bin"
        return {name: value for name, value in found.items() if name not in ("PWD", "OLDPWD", "SHLVL", "_")}

    assert told() == {**pip, "PIP_CONFIG_FILE": str(config)}
    assert told(PIP_CONFIG_FILE="/dev/null") == {**pip, "PIP_CONFIG_FILE": "/dev/null"}
    assert not (tmp_path / "old" / "pytest").exists()
