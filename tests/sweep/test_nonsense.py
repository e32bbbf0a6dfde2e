"""A device of another package may return anything: it costs trials, and the record reads back whole."""

import os
from pathlib import Path

import pytest

from autotune.records.folder import SweepFolder, find_sweeps

from ..commands import autotune
from ..conftest import EXAMPLE

FOLDER = Path(__file__).parents[1] / "nonsense"
WRONG = ("-1", "word", "half", "nan", "huge", "list", "object")
CASES = [
    *(f"{field}={value}" for field in ("registers", "shared_bytes", "spill_bytes") for value in WRONG),
    *(f"compile_s={value}" for value in ("-1", "word", "nan", "inf", "object")),
    *(f"code={value}" for value in ("-1", "none", "escape", "list")),
    *(f"files={value}" for value in ("none", "word")),
    *(f"seconds={value}" for value in ("-1", "word", "nan", "inf", "none", "huge", "object")),
    *(f"clock_hz={value}" for value in ("-1", "word", "nan", "none")),
    *(f"samples={value}" for value in ("none", "word", "list", "-1", "raises", "hangs")),
    *(f"ceilings={value}" for value in ("word", "none", "-1")),
    *(f"bytes_per_s={value}" for value in ("-1", "nan", "word")),
    *(f"compile={value}" for value in ("none", "word", "raises", "hangs")),
    "launch=raises",
    "launch=hangs",
]
FEW = ("registers=-1", "seconds=nan", "compile=none", "ceilings=word")


def test_there_are_sixty() -> None:
    assert len(set(CASES)) >= 60 and set(FEW) <= set(CASES)


@pytest.mark.parametrize("case", [pytest.param(c, marks=() if c in FEW else pytest.mark.thorough) for c in CASES])
def test_nonsense_costs_its_trials_and_never_the_record(
    case: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ["sweep", "--kernel", EXAMPLE, "--device", "nonsense", "--trials", "3", "--deadline", "2"]
    words += ["--compile-processes", "1", "--results", str(tmp_path / "results")]
    paths = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = autotune(*words, env={**os.environ, "PYTHONPATH": paths, "NONSENSE": case})
    assert "Traceback" not in done.stderr and done.returncode in (0, 1, 2), (done.returncode, done.stderr)
    if done.returncode == 2:
        assert "nonsense" in done.stderr or "device" in done.stderr, done.stderr
    if not list(tmp_path.rglob("sweep.json")):
        return
    (folder,) = find_sweeps(tmp_path)
    trials, outcome = folder.trials(), SweepFolder(folder.path).outcome()
    assert not caplog.messages, "all that was written is read"
    assert all(trial.status != "measured" or trial.median_s for trial in trials)
    assert done.returncode == 2 or trials
    assert outcome is None or outcome.winner.median_s > 0
