"""Problems that a campaign draws from ranges: they depend on the seed alone, and their work is within limits."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autotune import UsageError
from autotune.campaign.campaign_plan import read_plan
from autotune.core.problem import problem_name
from autotune.devices import find_device
from autotune.source.registry import load_kernel

from ..conftest import EXAMPLE

pytest.importorskip("distributed")
pytestmark = pytest.mark.quick
KERNEL = load_kernel(str(EXAMPLE))
RANGES = """
[[ranges]]
half = { from = 1, to = 500 }
n_time = "2 * half"
n_chan = [64, 1000]

[[ranges]]
n_time = [16]
n_chan = { from = 100, to = 100000 }
"""


def written(folder: Path, text: str = RANGES) -> Path:
    file = folder / "campaign.toml"
    file.write_text(f'kernel = "{EXAMPLE}"\n{text}')
    return file


def test_more_problems_of_a_seed_begin_with_the_same_ones(tmp_path: Path) -> None:
    file = written(tmp_path)
    few, many, others = (
        list(read_plan(file, draw=n, seed=seed).draw.problems(KERNEL)) for n, seed in ((10, 1), (40, 1), (10, 2))
    )
    assert many[:10] == few != others and len({*many}) > 30
    assert all(one.n_time % 2 == 0 and one.n_chan in (64, 1000) for one in many[::2])
    assert all(one.n_time == 16 and 100 <= one.n_chan <= 100000 for one in many[1::2])
    octaves = [one.n_chan.bit_length() for one in many[1::2]]
    assert min(octaves) <= 9 and max(octaves) >= 15, "logarithms are uniform"


def test_work_of_a_launch_is_within_the_limits(tmp_path: Path) -> None:
    limits = "[work]\nleast_bytes = 1e4\nmost_bytes = 1e6"
    found = list(read_plan(written(tmp_path, f"{limits}\n{RANGES}"), draw=30).draw.problems(KERNEL))
    assert len(found) == 30 and all(1e4 <= KERNEL.work(one).bytes <= 1e6 for one in found)
    none = read_plan(written(tmp_path, f"[work]\nmost_bytes = 1\n{RANGES}"), draw=1).draw.problems(KERNEL)
    with pytest.raises(UsageError, match=r"no problem of detect was found in 10000 draws; the last: no problem in"):
        list(none)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[ranges]]\nn_chan = { from = 0, to = 4 }", r"ranges\[1\].n_chan goes from 0 to 4: from must be 1 or more"),
        ("[[ranges]]\nn_chan = { from = 1 }", r"ranges\[1\].n_chan must be \{ from = 1, to = 2048 \}"),
        ("[[ranges]]\nn_chan = []", r"ranges\[1\].n_chan must be a list of values"),
        ("[[ranges]]\nn_chan = [4]\nodd = [4]", r"ranges\[1\].odd is not a field of detect's problem, and not used"),
        ("[work]\nbytes = 4\n[[ranges]]\nn_chan = [4]", r"unknown key bytes in \[work\]"),
        ("draw = 3", r"draw needs \[\[ranges\]\]"),
        ("draw = -3", "draw"),
        ("recorded = 1", "recorded"),
    ],
)
def test_wrong_ranges_are_told(tmp_path: Path, text: str, why: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UsageError, match=why):
        list(read_plan(file, draw=None if "draw" in text else 1).draw.problems(KERNEL))


def test_what_has_the_fewest_trials_comes_first(tmp_path: Path) -> None:
    results = tmp_path / "r"

    def run(*words: str) -> dict[str, object]:
        command = [sys.executable, "-m", "autotune", "campaign", str(file), "--device", "simulated:0", "--json", *words]
        done = subprocess.run([*command, "--results", str(results)], capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        summary: dict[str, object] = json.loads(done.stdout)
        return summary

    file = written(tmp_path, f"{RANGES}\n[sweep]\ntrials = 4")
    assert run("--draw", "2", "--seed", "5")["new_trials"] == 8
    target = find_device("simulated:0")
    both = {problem_name(problem) for problem in read_plan(file, draw=2, seed=5).draw.problems(KERNEL)}
    ordered = list(map(problem_name, read_plan(file, results, draw=4, seed=5).problems(target)))
    assert set(ordered[2:]) == both and len(ordered) == 4
    assert {problem_name(one) for one in read_plan(file, results, recorded=True).problems(target)} == both
    again = run("--draw", "3", "--seed", "5", "--recorded")
    assert (again["problems"], again["new_trials"]) == (3, 4)
