"""What commands to install say, printed or written: the checkout or a file, since names on an index are others'."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from autotune.system import installation

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[2]
OURS = re.compile(r"""pip install(?: -\S+)* ['"]?(?:autotune|tuned)\b(?!/)""")  # by a bare name


def test_the_distribution_has_a_name_of_its_own() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == installation.DISTRIBUTION != "autotune"
    assert project["version"] == installation.VERSION
    assert project["scripts"] == {"autotune": "autotune.cli:main"}


def test_no_command_fetches_a_name_of_ours_from_an_index() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "autotune").rglob("*.py")]
    told = [f"{path.name}: {found.group()}" for path in pages for found in OURS.finditer(path.read_text())]
    assert told == []


def test_an_extra_is_installed_from_where_autotune_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a checkout"
    about = tmp_path / "site" / "autotune_dsp-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: autotune-dsp\nVersion: 1\n")
    monkeypatch.setattr(sys, "path", [str(about.parent)])
    assert installation.install_with("cuda13") == "pip install '.[cuda13]' in autotune's checkout"
    (about / "direct_url.json").write_text(f'{{"url": "{source.as_uri()}", "dir_info": {{}}}}')
    assert installation.install_with("cuda13") == "pip install '.[cuda13]' in autotune's checkout", "it is gone"
    source.mkdir()
    assert installation.install_with("cuda13") == f"pip install '{source}[cuda13]'"
    (about / "direct_url.json").write_text("no JSON")
    assert installation.install_with("cuda13") == "pip install '.[cuda13]' in autotune's checkout"


def test_doctor_names_no_index() -> None:
    done = subprocess.run([sys.executable, "-m", "autotune", "doctor"], capture_output=True, text=True, timeout=60)
    assert "[cuda13]" in done.stdout and not OURS.search(done.stdout), done.stdout
