"""What another tuner measured is where a sweep begins: its fastest configs that are allowed here, and no more."""

import json
from pathlib import Path
from typing import Any

import pytest

from autotune import Config, Space, UsageError
from autotune.records.folder import find_sweeps
from autotune.search.warm_start import N_BEST, begun_elsewhere

from ..commands import autotune
from ..conftest import EXAMPLE

SPACE = Space(X=(1, 2, 4, 8), KIND=("a", "b"), only=(7,))
ALLOWED = {Config(X=x, KIND=kind, only=7) for x in (1, 2, 4) for kind in "ab"}


def cache(path: Path, rows: list[dict[str, Any]]) -> Path:
    names = [name for name in rows[0] if name != "time"]
    content = {"tune_params_keys": names, "cache": {str(i): row for i, row in enumerate(rows)}}
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("more", [{}, {"only": 7}, {"unknown": 3}], ids=["it lacks one", "it has all", "it has more"])
def test_the_fastest_that_are_allowed_come_first(more: dict[str, Any], tmp_path: Path) -> None:
    rows = [
        {"X": 1, "KIND": "a", **more, "time": 3.0},
        {"X": 8, "KIND": "a", **more, "time": 0.1},
        {"X": 2, "KIND": "b", **more, "time": 1.0},
        {"X": 4, "KIND": "b", **more, "time": "RuntimeFailedConfig"},
        {"X": 2, "KIND": "a", **more, "time": 2.0},
    ]
    found, told = begun_elsewhere(cache(tmp_path / "cache.json", rows), SPACE, ALLOWED)
    assert found == tuple(Config(X=x, KIND=kind, only=7) for x, kind in ((2, "b"), (2, "a"), (1, "a")))
    assert told == f"{tmp_path / 'cache.json'}: 3 of its 4 measured configs are tried first"


def test_no_more_than_some_are_taken(tmp_path: Path) -> None:
    space = Space(X=tuple(range(100)))
    path = cache(tmp_path / "cache.json", [{"X": x, "time": 100.0 - x} for x in range(100)])
    found, _ = begun_elsewhere(path, space, set(space.enumerate(None, None).configs))  # type: ignore[arg-type]
    assert [config.X for config in found] == list(range(99, 99 - N_BEST, -1))


def test_a_file_of_another_kernel_is_refused(tmp_path: Path) -> None:
    path = cache(tmp_path / "cache.json", [{"Y": 1, "time": 1.0}])
    with pytest.raises(UsageError, match="has 1 measured configs of Y, and none of them is allowed here"):
        begun_elsewhere(path, SPACE, ALLOWED)


def test_a_sweep_begins_from_a_file(tmp_path: Path) -> None:
    best = {"BLOCK_C": 64, "BLOCK_T": 2, "UNROLL": 4}
    cache(tmp_path / "cache.json", [{**best, "time": 0.5}, {**best, "UNROLL": 1, "time": 0.9}])
    words = ["sweep", "--kernel", EXAMPLE, "--device", "simulated", "--trials", "3", "--begin-from", "cache.json"]
    done = autotune(*words, cwd=tmp_path)
    assert done.returncode == 0 and "cache.json: 2 of its 2 measured configs are tried first" in done.stderr
    (sweep,) = find_sweeps(tmp_path)
    assert [dict(trial.config) for trial in sweep.trials()[1:3]] == [best, {**best, "UNROLL": 1}]
    missing = autotune(*words[:-1], "none.json", "--results", "others", cwd=tmp_path)
    assert missing.returncode == 2 and "cannot read none.json: No such file or directory" in missing.stderr
