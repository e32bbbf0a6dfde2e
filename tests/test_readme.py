"""The README's first kernel works as it is printed, and its engines, by the commands that are printed there."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def typed(commands: Iterable[str], folder: Path) -> str:
    """Runs commands of autotune in a folder, one after the other; returns all that they said."""
    said = ""
    for command in commands:
        ran = subprocess.run(
            [sys.executable, "-m", "autotune", *shlex.split(command)],
            cwd=folder,
            env={**os.environ, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        said += ran.stdout + ran.stderr
    return said


def test_the_first_kernel_is_verified_tuned_and_emitted(tmp_path: Path) -> None:
    section = README.split("## Five minutes")[1].split("\n## ")[0]
    (definition,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (template,) = re.findall(r"```cuda\n(.*?)```", section, re.DOTALL)
    (tmp_path / "power.py").write_text(definition)
    (tmp_path / "power.cu.j2").write_text(template)
    commands = re.findall(r"^    autotune (.+)$", section, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["verify", "sweep", "emit"]
    commands[1] += " --device host"  # whatever GPU there is
    said = typed(commands, tmp_path)
    assert "16 passed, 0 failed" in said
    assert "16 measured" in said
    wisdom = (tmp_path / "tuned" / "wisdom.json").read_text()
    assert '"power"' in wisdom
    asked = "import tuned; print(*tuned._package.kernel('power').arguments)"  # of the signature, which it brings along
    ran = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "power voltage n\n"


def test_the_engines_correlate_the_tutorials_recording(tmp_path: Path) -> None:
    section = README.split("## The kernels")[1].split("\n## ")[0]
    commands = re.findall(r"^    autotune (.+)$", section, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["sky", "correlate"]
    example = tmp_path / commands[0].split()[1]  # an eighth of the time, of four antennas
    example.parent.mkdir(parents=True)
    sky = (ROOT / commands[0].split()[1]).read_text()
    short = sky.replace("n_samples = 4194304", "n_samples = 524288").replace("n_antennas = 16", "n_antennas = 4")
    example.write_text(short)
    assert short.count("524288") == short.count("n_antennas = 4") == 1
    commands[1] += " --device host"
    said = typed(commands, tmp_path)
    assert re.search(r"vis\.h5: 1 dumps of .*, 128 channels x 10 baselines x 4 products\n", said), said
    assert (tmp_path / "vis.h5").is_file() and (tmp_path / "vis.png").is_file()
