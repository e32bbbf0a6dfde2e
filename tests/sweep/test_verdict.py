"""A verdict belongs to its trials: what changed, and changed back, and two definitions of one name, get their own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from autotune.records.folder import SweepFolder, find_sweeps

from ..commands import autotune
from ..conftest import EXAMPLE


def copied_example(folder: Path) -> Path:
    folder.mkdir()
    for path in (Path(EXAMPLE), Path(EXAMPLE).with_name("detect.cu.j2")):
        shutil.copy(path, folder)
    return folder / "detect.py"


def sweep(definition: Path, results: Path, device: str = "simulated") -> dict[str, Any]:
    command = ["sweep", "--kernel", str(definition), "--device", device, "--trials", "100", "--json"]
    command += ["--only", "UNROLL=1", "--only", "BLOCK_C=32", "--compile-processes", "1", "--results", str(results)]
    done = autotune(*command)
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)
    return dict(answer)


def shown(results: Path) -> dict[str, Any]:
    (answer,) = json.loads(autotune("show", results, "--json").stdout)
    return dict(answer)


def check(results: Path, told: dict[str, Any], standing: range) -> None:
    """The winner that is told is of the trials that stand, and so is all that `show` tells."""
    (folder,) = find_sweeps(results)
    outcome = folder.outcome()
    assert outcome is not None and outcome.trials == ((standing[0], standing[-1]),)
    assert outcome.winner.number in standing and told["best"]["config"] == dict(outcome.winner.config)
    assert told["best"]["median_s"] == outcome.winner.median_s
    answer = shown(results)
    assert answer["n_trials"] == len(standing) == sum(answer["counts"].values())
    assert answer["best_s"] == told["best"]["median_s"] and answer["config"] == told["best"]["config"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("edited", "before", "after", "device"),
    [
        ("detect.py", "flops=4", "flops=5", "simulated"),
        # another order of the sum, which is other machine code at each BLOCK_T, as another fold would not be
        ("detect.cu.j2", "v.x * v.x + v.y * v.y;", "v.y * v.y + v.x * v.x;", "host"),
    ],
)
def test_what_is_edited_and_reverted_has_its_own_winner_each_time(
    edited: str, before: str, after: str, device: str, tmp_path: Path
) -> None:
    definition, results = copied_example(tmp_path / "kernel"), tmp_path / "results"
    path = definition.with_name(edited)
    text = path.read_text()
    first = sweep(definition, results, device)
    n = len(SweepFolder(Path(first["path"])).trials())
    check(results, first, range(n))
    assert before in text
    path.write_text(text.replace(before, after))
    check(results, sweep(definition, results, device), range(n, 2 * n))
    path.write_text(text)
    again = sweep(definition, results, device)
    check(results, again, range(n))
    assert again["trials"] == first["trials"]


@pytest.mark.thorough
def test_two_definitions_of_one_name_do_not_share_a_winner(tmp_path: Path) -> None:
    results = tmp_path / "results"
    one, other = copied_example(tmp_path / "one"), copied_example(tmp_path / "other")
    other.write_text(other.read_text().replace("flops=4", "flops=5"))
    n = sum(sweep(one, results)["trials"].values())
    for definition, standing in ((other, range(n, 2 * n)), (one, range(n)), (other, range(n, 2 * n))):
        check(results, sweep(definition, results), standing)
