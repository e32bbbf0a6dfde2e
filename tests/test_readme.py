"""The README's engines correlate by the commands that are printed there, on a shorter recording of fewer antennas."""

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from .commands import autotune

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def typed(commands: Iterable[str], folder: Path) -> str:
    """Runs commands of autotune in a folder, one after the other; returns all that they said."""
    said = ""
    for command in commands:
        ran = autotune(*shlex.split(command), cwd=folder, env={**os.environ, "COLUMNS": "200"})
        assert ran.returncode == 0, ran.stderr
        said += ran.stdout + ran.stderr
    return said


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
    assert re.search(r"vis\.h5: 1 dumps of .*, 128 channels x 10 baselines x 4 products", said), said
    assert (tmp_path / "vis.h5").is_file() and (tmp_path / "vis.png").is_file()
