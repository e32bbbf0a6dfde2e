"""Some of the paths of `python -m tests.paths`; every door of every command has its right words there."""

from pathlib import Path

from .paths import RIGHT, Place, doors, found, pairs

N_DRAWN, SEED = 60, 63
COMPARED = ("bomb",)


def test_wrong_paths_and_somebodys_end_in_a_line(tmp_path: Path) -> None:
    assert {door.command for door in doors()} == RIGHT.keys()
    assert list(found(Place(tmp_path), pairs(N_DRAWN, SEED), COMPARED)) == []
