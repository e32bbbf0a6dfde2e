"""A config that the definition excludes by now is not a winner: its trials stay recorded and do not count."""

import json
import re
from pathlib import Path

import pytest

from autotune.records.folder import find_sweeps
from autotune.records.record import SweepRecord

from ..commands import autotune
from .test_verdict import copied_example

BLOCK_FITS = '@SPACE.constraint("a block has 64'
CONSTRAINT = """@SPACE.constraint("BLOCK_T is not {0}")
def not_so(problem: Problem, config: Config, device: Any) -> bool:
    return config.BLOCK_T != {0}


"""
UNSUPPORTED = """    def unsupported(self, config: Config, device: Any) -> str | None:
        return "BLOCK_T={0} is broken here" if config.BLOCK_T == {0} else None

    def launch("""


def sweep(definition: Path, results: Path) -> str:
    words = ["--device", "simulated", "--trials", "100", "--only", "UNROLL=1", "--only", "BLOCK_C=64"]
    words += ["--compile-processes", "1"]
    done = autotune("sweep", "--kernel", str(definition), *words, "--results", str(results))
    assert done.returncode == 0, done.stderr
    return done.stderr


def winner(results: Path) -> SweepRecord:
    (folder,) = find_sweeps(results)
    return SweepRecord.of(folder)


def excluding(text: str, how: str, value: int) -> str:
    """The definition's text with one value of BLOCK_T excluded."""
    if how == "constraint":
        return text.replace(BLOCK_FITS, CONSTRAINT.format(value) + BLOCK_FITS)
    if how == "unsupported":
        return text.replace("    def launch(", UNSUPPORTED.format(value))
    return re.sub(r"BLOCK_T=\(1, 2, 4, 8, 16\)", f"BLOCK_T={tuple(v for v in (1, 2, 4, 8, 16) if v != value)}", text)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("how", ["constraint", "unsupported", "smaller space"])
def test_a_config_that_is_excluded_by_now_is_not_the_winner(how: str, tmp_path: Path) -> None:
    definition, results = copied_example(tmp_path / "kernel"), tmp_path / "results"
    definition.write_text(definition.read_text().replace('"BLOCK_T": 4', '"BLOCK_T": 1'))  # none of the fast ones
    sweep(definition, results)
    before = winner(results)
    assert before.winner is not None
    best = before.winner.config
    text = definition.read_text()
    edited = excluding(text, how, int(best["BLOCK_T"]))
    assert edited != text
    definition.write_text(edited)
    told = sweep(definition, results)
    assert "1 recorded trial does not count, since detect no longer allows such configs here" in told
    after = winner(results)
    assert after.winner is not None and after.outcome is not None and after.winner.config != best
    assert before.winner.number in after.about.stale
    assert best not in after.median_s
    shown = autotune("show", str(results))
    assert re.search("earlier trials? do(es)? not count", shown.stdout)
    emitted = autotune("emit", str(results), "--kernel", str(definition), "--out", str(tmp_path / "tuned"))
    assert emitted.returncode == 0, emitted.stderr
    (entry,) = json.loads((tmp_path / "tuned" / "wisdom.json").read_text())["entries"]
    assert entry["config"] == dict(after.winner.config)

    definition.write_text(text)  # it counts again once it is allowed again
    sweep(definition, results)
    again = winner(results)
    assert again.winner is not None and again.winner.config == best
