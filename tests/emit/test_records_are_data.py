"""A record is data: no text of it becomes code, and no value of it goes unchecked."""

import ast
import dataclasses
import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from recorded_spaces import read_space

from autotune import UsageError
from autotune.emit.winners import gather, valid
from autotune.emit.writer import _docstring, write_package
from autotune.records.folder import SweepFolder
from autotune.records.pack import pack
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE
from ..recorded import A100, H200, KERNELS, record, rewrite_about, unsealed
from .conftest import MEDIANS, python


def test_a_record_does_not_choose_the_definition(tmp_path: Path) -> None:
    """It names a file, which would run when it is imported."""
    evil = tmp_path / "it's evil.py"
    evil.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + Path(EXAMPLE).read_text())
    evil.with_name("it's evil.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    path = record(tmp_path / "results", H200, MEDIANS)
    rewrite_about(path, definition=str(evil))
    with pytest.raises(UsageError) as raised:
        write_package([tmp_path / "results"], tmp_path / "tuned")
    assert f"detect was recorded with the definition {evil}" in str(raised.value)
    assert f"give --kernel {shlex.quote(str(evil))} if you trust" in str(raised.value)
    assert "\n" not in str(raised.value)
    with pytest.raises(UsageError, match="records 3 configs"):
        read_space(path)
    assert not (tmp_path / "ran").exists() and not (tmp_path / "tuned").exists()
    write_package([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)


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
        gather(valid([tmp_path]))
    rewrite_about(path, kernel="nowhere", definition="nowhere")
    with pytest.raises(
        UsageError, match=r"nowhere is not installed here: give the path of its definition, --kernel PATH"
    ):
        gather(valid([tmp_path]))


HOSTILE = 'x"""\nopen("ran", "w")\n"""\\'


@pytest.mark.parametrize("is_packed", [False, True])
def test_no_string_of_a_record_becomes_code(tmp_path: Path, is_packed: bool) -> None:
    name = HOSTILE.replace("\n", ";")
    record(tmp_path / "results", dataclasses.replace(H200, name=name), MEDIANS, started="2026-11-01\nx = 1")
    path = record(tmp_path / "results", H200, MEDIANS, started='9"\n[evil]')
    rewrite_about(path, compiler=HOSTILE, commit=HOSTILE, machine=HOSTILE)
    if is_packed:
        pack(SweepFolder(path))
        assert any('(\\"ran\\"' in file.read_text() for file in path.parent.glob("setup-*.json"))
    package = write_package([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)
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
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_winner_is_of_the_space_and_has_a_key(
    tmp_path: Path, winner: dict[str, Any], why: str, is_packed: bool
) -> None:
    no_key = {"key": None} if winner.get("key", "") is None else {}  # else the winner's is that of its trial
    path = record(tmp_path / "results", H200, MEDIANS, **no_key)
    verdict = unsealed((path / "verdict.json").read_text())
    (path / "verdict.json").write_text(json.dumps({**verdict, "winner": {**verdict["winner"], **winner}}))
    if is_packed:
        pack(SweepFolder(path))
    with pytest.raises(UsageError, match=why):
        write_package([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"default": {"BLOCK_C": 64, "BLOCK_T": 4, "UNROLL": "1; evil"}}, "UNROLL=1; evil is not in the space"),
        ({"default": {"BLOCK_C": 64, "BLOCK_T": 4, "UNROLL": True}}, "UNROLL=True of the record is not in the space"),
        ({"problem": {"n_time": "100; evil", "n_chan": 4096}}, "n_time='100; evil' of the record is not a plain value"),
        (
            {"problem": {"n_time": True, "n_chan": 4096}},
            "n_time=True of the record is not a plain value of the type int",
        ),
        ({"problem": {"n_time": [1], "n_chan": 4096}}, "of the type int"),
        ({"problem": {"n_time": 100}, "runtime": []}, "has the runtime fields n_chan, but its record has others"),
        ({"baked": ["n_time", "n_chan"], "runtime": []}, "has the baked fields n_time, but its record has others"),
    ],
)
def test_values_of_a_problem_have_the_fields_types(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    path = record(tmp_path / "results", H200, MEDIANS)
    rewrite_about(path, **changes)
    with pytest.raises(UsageError, match=why):
        write_package([tmp_path / "results"], tmp_path / "tuned", kernels=KERNELS)


def test_what_a_definition_raises_for_a_record_is_a_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not the end of an emission in which other sweeps are whole."""
    broken = tmp_path / "divides.py"
    hook = "    def unsupported(self, config, device):\n        assert device.name != 'NVIDIA A100'\n\n"
    broken.write_text(Path(EXAMPLE).read_text().replace("    def launch(self", hook + "    def launch(self", 1))
    broken.with_name("divides.cu.j2").write_text(Path(EXAMPLE).with_name("detect.cu.j2").read_text())
    record(tmp_path / "results", H200, MEDIANS)
    record(tmp_path / "results", A100, MEDIANS)
    wisdom, *_ = gather(valid([tmp_path / "results"], kernels=[broken]))
    assert [entry.device.name for entry in wisdom.entries] == ["NVIDIA H200"]
    assert "can no longer run" in caplog.text and "unsupported() raises AssertionError" in caplog.text
