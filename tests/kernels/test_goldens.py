"""Goldens: another text is the same golden only if a compiler shows it."""

import json
from pathlib import Path

import pytest

from kernels.accumulate import Accumulate

from . import goldens
from .goldens import check_golden
from .test_accumulate import GOLDENS

KERNEL, NAME = Accumulate(), "default"


def check_with(monkeypatch: pytest.MonkeyPatch, folder: Path, **changes: str) -> None:
    """Checks a golden of which the committed file says something else."""
    committed = json.loads((goldens.GOLDEN / "accumulate.json").read_text())
    committed[NAME] |= changes
    (folder / "accumulate.json").write_text(json.dumps(committed))
    monkeypatch.setattr(goldens, "GOLDEN", folder)
    check_golden(KERNEL, NAME, *GOLDENS[NAME])


def test_another_text_with_the_same_machine_code_passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    check_with(monkeypatch, tmp_path, text="0123456789abcdef")


def test_other_machine_code_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="default: other machine code"):
        check_with(monkeypatch, tmp_path, text="0123456789abcdef", code="0123456789abcdef")


def test_another_text_and_another_compiler_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="default: another text, whose machine code is unknown"):
        check_with(monkeypatch, tmp_path, text="0123456789abcdef", compiler="NVRTC 1.0")
