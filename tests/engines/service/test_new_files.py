"""Files of engines one after the other: free names, and none that is empty."""

from pathlib import Path

import pytest

from autotune import UsageError
from autotune.engines.service.new_files import NewFile, numbered


class TextSink:
    """Writes text to a file, until it fails."""

    def __init__(self, path: Path, error: UsageError | None = None) -> None:
        self._path, self._error = path, error
        path.touch()

    def write(self, text: str) -> None:
        if self._error is not None:
            raise self._error
        self._path.write_text(text)

    def close(self) -> None:
        if self._error is not None:
            raise self._error


def test_what_nothing_came_into_is_removed(tmp_path: Path) -> None:
    NewFile(TextSink(path := tmp_path / "x.h5"), path).close()
    assert not path.exists()
    file = NewFile(TextSink(path), path)
    file.write("some")
    file.close()
    assert path.read_text() == "some"


def test_a_file_whose_first_dump_cannot_be_written_is_removed_and_its_errors_are_raised(tmp_path: Path) -> None:
    file = NewFile(TextSink(path := tmp_path / "x.h5", UsageError("x.h5: no space left")), path)
    for call in (lambda: file.write("some"), file.close):
        with pytest.raises(UsageError, match="no space left"):
            call()
    assert not path.exists()


def test_later_engines_take_the_next_name_that_is_free(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    path.touch()
    (tmp_path / "x-3.h5").touch()
    told: list[str] = []
    assert numbered(tmp_path / "y.h5", 1, told.append).name == "y.h5" and not told
    assert [numbered(path, n, told.append).name for n in (1, 2, 3, 4)] == ["x-2.h5", "x-2.h5", "x-4.h5", "x-4.h5"]
    assert told == [f"{path} exists, and stays: this engine writes x-2.h5"], "as after a kill"
