"""The tuner of first use on the host, with real faults: none is chosen, and each costs only its own candidate."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest

from autotune import Config
from autotune.devices import find_device
from autotune.first_use import tuner
from autotune.first_use.tuner import tune_first
from autotune.runtime.tune_once import TunedHere, checked_outcome
from autotune.system.cache import cache_dir
from autotune.system.lock import device_lock

from ..conftest import DEFINITIONS
from ..family import descendants, gone, name_of
from .asking import PARTIES, answer, faulty, request, statuses, ways


@pytest.mark.quick
def test_the_fastest_of_a_few_is_chosen_with_what_was_checked() -> None:
    found = answer(faulty("none", "none", "wrong_element"))
    assert statuses(found) == ["measured", "measured", "wrong"]
    assert found.winner in (0, 1) and found.is_final and found.why == ""
    assert found.checked[:2] == ("factor=2,n=7", "factor=2,n=1025")
    assert len(found.checked) == 5 and found.checked[-1] == "factor=2,n=3001 (against NumPy)"  # two are drawn
    for attempt in found.attempts[:2]:
        assert attempt.q1_s <= attempt.median_s <= attempt.q3_s and 5 <= attempt.n_samples <= 40
    assert found.attempts[2].median_s is None and "y[3]" in found.attempts[2].message


@pytest.mark.parametrize(
    ("fault", "ends"),
    [
        ("wrong_element", "wrong"),
        ("unwritten_element", "wrong"),
        ("input_written", "wrong"),
        ("near_write_when_timed", "wrong"),
        ("segfault", "launch_failed"),
        ("illegal_address", "launch_failed"),
        ("trap", "launch_failed"),
        ("exits", "launch_failed"),
        ("no_compile", "compile_failed"),
        ("too_much_dynamic_shared", "resources"),
        ("gpu_of_the_future", "measured"),  # the caller asks only for configs that its device allows
    ],
)
def test_a_fault_costs_only_its_candidate(fault: str, ends: str) -> None:
    resource_tracker.ensure_running()  # Python's own process, which stays until this one ends
    before = set(descendants(os.getpid()))
    found = answer(faulty(fault, "none", "none"))
    assert statuses(found) == [ends, "measured", "measured"], found.attempts[0]
    assert found.winner != 0 or ends == "measured"
    assert set(descendants(os.getpid())) <= before, "its processes have ended"


def test_a_candidate_that_never_ends_costs_a_quarter_of_the_time() -> None:
    found = answer(faulty("endless_loop", "none"), seconds=8.0)
    assert statuses(found) == ["timed_out", "measured"] and found.winner == 1
    assert "longer than 2 s" in found.attempts[0].message


def test_after_too_many_faults_the_rest_is_not_tried() -> None:
    found = answer(faulty("trap", "trap", "exits", "none"))
    assert statuses(found) == ["launch_failed"] * 3 + ["not_tried"] and found.winner is None
    assert not found.is_final, "the next start may be luckier"


def test_where_all_are_wrong_none_is_chosen_and_that_is_final() -> None:
    found = answer(faulty("wrong_element", "unwritten_element"))
    assert found.winner is None and found.checked == () and found.is_final
    assert found.why.startswith("no config passed, the first ended as wrong: y[3] is "), found.why


# ---------------------------------------------------------------------- kills
def until_it_runs(pid: int) -> tuple[int, set[int]]:
    """Waits until the device's process of ``pid`` runs its kernel. Returns it, and all processes below ``pid``."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        everyone = set(descendants(pid))
        for each in everyone:
            if name_of(each) == "autotune-device" and any(line.endswith(".plain.so") for line in mapped(each)):
                return each, everyone
        time.sleep(0.02)
    raise AssertionError(f"no process of {pid} runs a kernel")


def mapped(pid: int) -> list[str]:
    """The files that a process maps; none when it has gone."""
    try:
        return Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return []


def test_a_device_process_that_is_killed_costs_one_candidate() -> None:
    def kill() -> None:
        os.kill(until_it_runs(os.getpid())[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    found = answer(faulty("endless_loop", "none", "none"), seconds=240.0)
    thread.join()
    assert statuses(found) == ["launch_failed", "measured", "measured"]
    assert found.attempts[0].message == "the verification killed its process: SIGKILL (Killed)"


def test_a_caller_that_is_killed_takes_all_its_processes_along() -> None:
    code = "from tests.first_use.asking import answer, faulty\nanswer(faulty('endless_loop', 'none'), seconds=600.0)\n"
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    _, everyone = until_it_runs(caller.pid)
    caller.kill()
    caller.wait()
    end = time.monotonic() + 60
    while not all(map(gone, everyone)):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert answer(faulty("none", "none")).winner is not None
    left = [path.name for path in cache_dir("scratch").iterdir()]
    assert not any(f"-{caller.pid}-" in name for name in left), "its folder goes with the next first use"


# ---------------------------------------------------------------------- at the caller's sizes, without NumPy
@pytest.fixture
def without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "LITTLE_FLOPS", 0)


@pytest.mark.usefixtures("without_numpy")
def test_those_that_agree_outvote_one_that_is_wrong_only_at_the_callers_sizes() -> None:
    for faults in (("near_write_when_timed", "none", "none"), ("none", "near_write_when_timed", "none")):
        found = answer(faulty(*faults))
        wrong = faults.index("near_write_when_timed")
        assert found.winner not in (None, wrong) and statuses(found)[wrong] == "wrong"
        assert found.checked[-1] == "factor=2,n=3001 (against each other)"


def voted(*names: str) -> TunedHere:
    return answer(ways(*names), definition=PARTIES, fields={"n": 5000})


@pytest.mark.usefixtures("without_numpy")
@pytest.mark.parametrize("others", ["low", "low high"])
def test_a_majority_at_the_callers_sizes_is_right(others: str) -> None:
    names = (*others.split(), "right", "right", "right")
    found = voted(*names)
    assert names[found.winner] == "right"
    assert statuses(found) == ["measured" if name == "right" else "wrong" for name in names]
    told = found.attempts[names.index("low")].message
    assert told == "at these sizes its outputs differ from those of 3 others"


@pytest.mark.usefixtures("without_numpy")
@pytest.mark.parametrize("names", ["low right", "low low right right", "low high right right"])
def test_without_a_majority_nothing_is_chosen(names: str) -> None:
    found = voted(*names.split())
    assert found.winner is None and set(statuses(found)) == {"wrong"} and found.is_final
    n = len(names.split())
    assert found.why == f"the outputs of {n} configs differ at these sizes, and no more than half of them agree"


def test_where_numpy_is_quick_it_decides_also_against_a_majority() -> None:
    found = voted("low", "low", "right")
    assert found.winner == 2 and statuses(found) == ["wrong", "wrong", "measured"]


def test_a_config_that_needs_too_much_memory_is_left_out() -> None:
    found = answer(ways("greedy", "right", "right"), definition=PARTIES, free_bytes=1 << 30)
    assert statuses(found) == ["resources", "measured", "measured"]
    assert found.attempts[0].message == "its workspace of 1.1e+03 GB does not fit into 1.07 GB"


def test_the_fastest_wins_and_ties_go_by_the_rule_of_sweeps() -> None:
    found = voted("patient", "right", "patient")
    assert found.winner == 1


# ---------------------------------------------------------------------- requests that cannot be served
def refused(**changes: Any) -> str:
    return str(tune_first(request(faulty("none", "none"), **changes), lambda line: None)["refused"])


def test_what_is_needed_is_known_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuner, "CompilePool", None)
    n_bytes = 2 * (4 * 3001 * 2 + 4 * 3001)  # x, y and the outputs' reference, all of them twice
    why = f"a process that tries its configs needs {n_bytes / 1e9:.3g} GB of memory on host, of which 1e-06 GB are free"
    assert refused(free_bytes=1000) == why


def test_a_device_in_use_is_waited_for_only_so_long() -> None:
    target = find_device("host")
    told: list[str] = []
    with device_lock(target.module.lock_name("host"), told.append):
        assert "the device is still in use after 0.1 s, by process" in refused(wait_s=0.1)


def test_other_versions_and_other_sources_are_refused_in_one_line() -> None:
    assert "emit it again" in refused(format=0)
    asked = checked_outcome(request(faulty("none", "none"))["outcome"].encode())
    others = replace(asked, attempts=tuple(replace(one, source_key="0" * 12) for one in asked.attempts))
    assert "renders another source of faulty" in refused(outcome=others.as_json())
    assert "it has format 1" in refused(outcome='{"format": 1}')
    assert "does not exist" in refused(reference="/nowhere/x.py")
    assert "device 'cuda:99' is not here" in refused(identifier="cuda:99")


def test_inputs_that_take_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    never: Future[None] = Future()
    monkeypatch.setattr(tuner.CompilePool, "prepare", lambda *arguments, **named: never)
    monkeypatch.setattr(tuner, "INPUTS_S", 0.0)
    assert "NumPy needs more than 0 s for inputs of these sizes" in refused()


def test_references_that_take_numpy_too_long_cost_their_candidates(tmp_path: Path) -> None:
    for name in ("parties.py", "parties.cu.j2"):
        shutil.copy(DEFINITIONS / name, tmp_path)
    slow = tmp_path / "parties.py"
    line = '        return {"y": problem.factor * x'
    assert line in slow.read_text()
    delayed = f"        import time; time.sleep(3 * (problem.n < 300))\n{line}"
    slow.write_text(slow.read_text().replace(line, delayed))
    found = answer(ways("right", "right"), definition=str(slow), seconds=4.0)
    assert statuses(found) == ["timed_out"] * 2 and found.winner is None and not found.is_final
    why = "no config passed, the first ended as timed_out: the verification took longer than 1 s"
    assert found.why == why and found.took_s < 60


def test_the_simulated_device_chooses_its_best(tmp_path: Path) -> None:
    configs = [Config(FAULT="none", WGS=wgs) for wgs in (64, 128, 256)]
    found = answer(configs, identifier="simulated:0")
    times = [attempt.median_s for attempt in found.attempts]
    known = [time for time in times if time is not None]
    assert known and found.winner is not None and times[found.winner] <= 1.006 * min(known)
