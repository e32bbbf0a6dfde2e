"""The README's first kernel works as it is printed, by the commands that are printed below it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_first_kernel_is_verified_tuned_and_emitted(tmp_path: Path) -> None:
    section = README.read_text().split("## Five minutes")[1].split("\n## ")[0]
    (definition,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (template,) = re.findall(r"```cuda\n(.*?)```", section, re.DOTALL)
    (tmp_path / "power.py").write_text(definition)
    (tmp_path / "power.cu.j2").write_text(template)
    commands = re.findall(r"^    autotune (.+)$", section, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["verify", "sweep", "emit"]
    said = ""
    for command in commands:
        here = ["--device", "host"] if command.startswith("sweep") else []  # whatever GPU there is
        ran = subprocess.run(
            [sys.executable, "-m", "autotune", *shlex.split(command), *here],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        said += ran.stdout + ran.stderr
    assert "16 passed, 0 failed" in said
    assert "16 measured" in said
    wisdom = (tmp_path / "tuned" / "wisdom.json").read_text()
    assert '"power"' in wisdom
    asked = "import tuned; print(*tuned._package.kernel('power').arguments)"  # of the signature, which it brings along
    ran = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "power voltage n\n"
