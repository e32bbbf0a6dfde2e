"""What is installed is what is in the tree, and what the README says is what CI runs."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (".py", ".hpp", ".cpp", ".cu", ".cuh", ".j2", ".css", ".js", ".typed")


def test_the_wheel_holds_every_source_and_nothing_global(tmp_path: Path) -> None:
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
        str(ROOT),
    ]
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # where setuptools leaves what earlier trees had
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    tree = {p.relative_to(ROOT) for folder in ("autotune", "kernels", "templates") for p in (ROOT / folder).rglob("*")}
    own = {p for p in tree if p.suffix in SOURCES and "__pycache__" not in p.parts}
    expected = {str(p) if p.parts[0] == "autotune" else f"autotune/{p}" for p in own}
    assert names == expected


def test_an_installed_wheel_works_away_from_the_checkout(tmp_path: Path) -> None:
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
        str(ROOT),
    ]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    code = (
        "import autotune; from pathlib import Path; from autotune.source.render import library_path;"
        f"assert Path(autotune.__file__).is_relative_to({str(tmp_path)!r});"
        "assert 'ddc' in autotune.kernels(); assert (library_path() / 'ddc.cu.j2').is_file()"
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
