"""Kernels by name, by path and by entry point; what a definition file may get wrong."""

import os
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from autotune import UsageError
from autotune.source.installed import installed
from autotune.source.registry import kernel_reference, load_kernel

from ..conftest import EXAMPLE

pytestmark = pytest.mark.quick


def test_a_kernel_is_found_again_by_its_reference() -> None:
    assert kernel_reference(load_kernel("ddc")) == "ddc"
    assert kernel_reference(load_kernel(EXAMPLE)) == str(Path(EXAMPLE).resolve())


def test_two_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    kernels = []
    for folder in ("a", "b"):
        path = tmp_path / folder / "detect.py"
        path.parent.mkdir()
        path.write_text(Path(EXAMPLE).read_text())
        kernels.append(load_kernel(str(path)))
    assert [k.source_path.parent.name for k in kernels] == ["a", "b"]


def test_an_edit_of_the_same_size_in_the_same_second_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's bytecode would be taken for that of the file, and of a file beside it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    texts = {
        tmp_path / "detect.py": "from .one import FLOPS\n" + Path(EXAMPLE).read_text(),
        tmp_path / "one.py": "FLOPS = 4\n",
    }

    def loaded() -> tuple[object, object]:
        load_kernel.cache_clear()
        kernel = load_kernel(str(tmp_path / "detect.py"))
        module = sys.modules.pop(type(kernel).__module__)
        del sys.modules[module.__name__.rpartition(".")[0] + ".one"]
        return module.FLOPS, kernel.work(kernel.problem({})).flops

    found = []
    for old, new in (("4", "4"), ("4", "5")):
        for path, text in texts.items():
            path.write_text(text.replace(f"flops={old}", f"flops={new}").replace(f"FLOPS = {old}", f"FLOPS = {new}"))
            os.utime(path, (1e9, 1e9))
        found.append(loaded())
    (first, flops), (second, more) = found
    assert (first, second) == (4, 5) and more == flops * 5 / 4
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_definition_may_be_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named by its folder or by its file; and by its name, where it is installed."""
    folder = tmp_path / "detect"
    folder.mkdir()
    text = Path(EXAMPLE).read_text()
    (folder / "detect.py").write_text(text.replace("\nimport numpy", "\nfrom .one import ONE\nimport numpy", 1))
    (folder / "one.py").write_text("ONE = 1\n")
    named = [load_kernel(str(folder)), load_kernel(str(folder / "detect.py"))]
    assert [kernel.source_path for kernel in named] == [folder / "detect.py"] * 2
    assert load_kernel(kernel_reference(named[0])).name == "detect"
    with pytest.raises(UsageError, match=r"other/other\.py does not exist"):
        (tmp_path / "other").mkdir()
        load_kernel(str(tmp_path / "other"))
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("sky_detect", "detect", "autotune.kernels")
    monkeypatch.setattr("autotune.source.registry.installed", lambda group: {point.name: point})
    assert load_kernel("sky_detect").source_path == folder / "detect.py"


def test_an_installed_package_offers_kernels_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "observatory.py").write_text(Path(EXAMPLE).read_text())
    about = tmp_path / "observatory-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: observatory\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[autotune.kernels]\nobservatory_detect = observatory\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()  # asked once in a process
    try:
        assert load_kernel("observatory_detect").name == "detect"
    finally:
        installed.cache_clear()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "defines 0 kernels; a definition file holds exactly one"),
        ("def broken(:", "does not import: SyntaxError"),
        ("import no_such_module", "does not import: ModuleNotFoundError"),
    ],
)
def test_a_file_that_is_no_definition_is_told(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"mine\.py") as error:
        load_kernel(str(path))
    assert says in str(error.value)


def test_a_definition_that_lacks_a_method_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(Path(EXAMPLE).read_text().replace("def reference", "def referrence"))
    with pytest.raises(UsageError, match=r"abstract method '?reference"):
        load_kernel(str(path))
