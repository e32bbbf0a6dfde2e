"""What `autotune new` writes is a definition that loads, and no file of anybody's is written over."""

from pathlib import Path

import pytest

from autotune import Config, UsageError
from autotune.rendering.render import render
from autotune.source.registry import load_kernel
from autotune.source.starter import write_starter

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", ["total", "my_sum_2"])
def test_the_pair_loads_and_renders(name: str, tmp_path: Path) -> None:
    definition, template = write_starter(name, tmp_path / "kernels")
    kernel = load_kernel(str(definition))
    assert (kernel.name, template.name, kernel.arguments) == (name, f"{name}.cu.j2", ("total", "first", "second", "n"))
    variant = render(kernel, kernel.tuned[0], Config(kernel.default))
    assert f"void {name}(" in variant.source and "KERNEL" not in definition.read_text() + variant.source


@pytest.mark.parametrize("name", ["class", "float", "9a", "Sum", "a b", "_a", "numpy", "json", "../a", "", "ä"])
def test_names_that_cannot_be_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be a kernel's name|a keyword of Python or C\+\+|a Python module"):
        write_starter(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", ["total.py", "total.cu.j2"])
def test_files_are_not_written_over(there: str, tmp_path: Path) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(UsageError, match=f"{there}: it exists; give another name"):
        write_starter("total", tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(there, "mine")]
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        write_starter("total", tmp_path / "file" / "folder")


def test_a_kernel_in_the_tree_works_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition, template = write_starter("moved", tmp_path / "kernels")
    templates = tmp_path / "templates"
    templates.mkdir()
    template = template.rename(templates / template.name)
    monkeypatch.setattr("autotune.core.definition.library_path", lambda: templates)
    kernel = load_kernel(str(definition))
    assert kernel.template == template and kernel.arguments == ("total", "first", "second", "n")
    assert "void moved(" in render(kernel, kernel.tuned[0], Config(kernel.default)).source
