"""Campaigns: what a file asks for, and that every problem is tuned once, whatever happens to the workers."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from autotune import UsageError
from autotune.campaign.campaign_plan import read_plan
from autotune.devices import find_device
from autotune.records.folder import SweepFolder, find_sweeps
from autotune.system.lock import device_lock

from ..conftest import EXAMPLE
from ..family import children, descendants, gone
from ..killing import n_trials
from ..waiting import wait_until

pytest.importorskip("distributed")
N_DEVICES, N_PROBLEMS, N_TRIALS, N_REVISIT = 3, 8, 10, 3


def write(path: Path, **more: str) -> Path:
    file = path / "campaign.toml"
    lines = {
        "kernel": f'kernel = "{EXAMPLE}"\nrevisit = {N_REVISIT}',
        "grid": "[grid]\nhalf = [16, 32]\nn_chan = [64, 100, 128, 1000]",
        "problem": '[problem]\nn_time = "2 * half"',
        "sweep": f"[sweep]\ntrials = {N_TRIALS}\nsampler = 'random'",
    }
    file.write_text("\n".join({**lines, **more}.values()) + "\n")
    return file


def start(path: Path, n_devices: int) -> "subprocess.Popen[str]":
    devices = [word for i in range(n_devices) for word in ("--device", f"simulated:{i}")]
    command = [sys.executable, "-m", "autotune", "campaign", str(write(path)), *devices, "--results", str(path / "r")]
    slow = {**os.environ, "AUTOTUNE_SIMULATED_COMPILE_S": "0.05"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=slow)


def contents(path: Path) -> dict[Path, bytes]:
    """The recorded trials, as files: no line that another one replaces has been added to them."""
    return {file: file.read_bytes() for file in path.rglob("trials.*")}


def workers(pid: int) -> list[int]:
    """Dask's worker processes: the children that have children of their own."""
    return [child for child in children(pid) if children(child)]


def test_two_workers_are_killed_and_every_problem_is_tuned_once(tmp_path: Path) -> None:
    rng = random.Random(os.getpid())
    campaign = start(tmp_path, N_DEVICES)
    family: set[int] = set()
    for goal in (10, 50):  # trials, some way into the campaign
        while n_trials(tmp_path) < goal and campaign.poll() is None:
            time.sleep(0.02)
        family |= set(descendants(campaign.pid))
        os.kill(rng.choice(workers(campaign.pid)), signal.SIGKILL)
    out, progress = campaign.communicate(timeout=240)
    assert campaign.returncode == 0, progress
    assert f"{N_PROBLEMS} of {N_PROBLEMS} tuned, 0 failed" in out, out + progress
    sweeps = find_sweeps(tmp_path / "r")
    assert len(sweeps) == N_PROBLEMS
    for sweep in sweeps:
        assert sweep.outcome() is not None
        trials = sweep.trials()
        assert [t.number for t in trials] == list(range(N_TRIALS + N_REVISIT))
        assert len({t.config for t in trials}) == N_TRIALS + N_REVISIT
    wait_until(lambda: all(map(gone, family)), lambda: "a process outlived the campaign")

    before = contents(tmp_path)
    again = start(tmp_path, 1)
    out, progress = again.communicate(timeout=240)
    assert again.returncode == 0 and "; 0 new in this run" in out, out + progress
    assert contents(tmp_path) == before


@pytest.mark.quick
def test_one_problem_that_cannot_be_tuned_is_told_and_the_others_are(tmp_path: Path) -> None:
    file = write(tmp_path, grid="[grid]\nhalf = [8]\nn_chan = [64, 128]")
    blocked = tmp_path / "r" / "simulated" / "detect" / "n_time=16,n_chan=64"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a folder must be")
    words = ["campaign", str(file), "--device", "simulated:0", "--results", str(tmp_path / "r"), "--json"]
    done = subprocess.run([sys.executable, "-m", "autotune", *words], capture_output=True, text=True, timeout=240)
    assert done.returncode == 1, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["problems"], summary["tuned"]) == (2, 1)
    (failed,) = [o for o in summary["outcomes"] if o["error"]]
    assert failed["problem"]["n_chan"] == 64 and "cannot write" in failed["error"]
    assert SweepFolder(blocked.with_name("n_time=16,n_chan=128")).outcome() is not None


@pytest.mark.thorough
def test_workers_of_another_scheduler_are_used(tmp_path: Path) -> None:
    address = tmp_path / "scheduler.json"
    python, quiet = [sys.executable, "-m"], {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    words = ["--scheduler-file", str(address), "--port", "0", "--host", "127.0.0.1", "--no-dashboard"]
    address.touch()
    scheduler = subprocess.Popen([*python, "distributed.cli.dask_scheduler", *words], **quiet)
    while not address.read_text().endswith("}") and scheduler.poll() is None:  # there before it is written
        time.sleep(0.05)
    tcp = json.loads(address.read_text())["address"]
    serving = subprocess.Popen([*python, "autotune", "worker", tcp, "--device", "simulated:0"], **quiet)
    words = ["campaign", str(write(tmp_path)), "--scheduler", tcp, "--results", str(tmp_path / "r"), "--json"]
    try:
        for _ in range(20):  # until the worker is there
            done = subprocess.run([*python, "autotune", *words], capture_output=True, text=True, timeout=240)
            if "has no workers; on each host run: autotune worker" not in done.stderr:
                break
        serving.send_signal(signal.SIGINT)
        assert serving.wait(120) == 0
    finally:
        for process in (serving, scheduler):  # who stays has the device, and others wait for it for ever
            process.kill()
            process.wait(30)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["tuned"] == N_PROBLEMS and summary["devices"] == ["simulated:0"]


@pytest.mark.quick
def test_the_grid_is_every_combination_with_fields_computed(tmp_path: Path) -> None:
    plan = read_plan(write(tmp_path), tmp_path)
    problems = plan.problems(find_device("simulated"))
    wanted = {(t, c) for t in (32, 64) for c in (64, 100, 128, 1000)}
    assert {(p.n_time, p.n_chan) for p in problems} == wanted
    assert plan.settings.trials == N_TRIALS and plan.settings.results == tmp_path.resolve()


def test_the_first_problems_lie_far_apart(tmp_path: Path) -> None:
    plan = read_plan(write(tmp_path, grid="[grid]\nhalf = [1, 2, 4, 8, 16, 32, 64]\nn_chan = [64]"), tmp_path)
    first = [p.n_time for p in plan.problems(find_device("simulated"))][:3]
    assert first[0] == 16 and set(first[1:]) == {2, 128}


def test_pilots_go_first_with_their_own_effort(tmp_path: Path) -> None:
    plan = read_plan(write(tmp_path, kernel=f'kernel = "{EXAMPLE}"\npilots = 2\npilot_effort = "full"'), tmp_path)
    assert [plan.settings_of(i).sampler for i in range(3)] == ["exhaustive", "exhaustive", "random"]
    assert [plan.settings_of(i).trials for i in range(3)] == [None, None, N_TRIALS]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"kernel": "kernel = 'nothing'"}, "no kernel is called 'nothing'"),
        ({"kernel": "kernels = 'ddc'"}, "kernels is not a setting; settings are .*did you mean kernel"),
        ({"grid": ""}, "needs kernel"),
        ({"grid": "[grid]\nratio = [1, 2]"}, "ratio in \\[grid\\] is not a field"),
        ({"problem": "[problem]\nn_time = '2 ** half'"}, "is not made of integers"),
        ({"problem": "[problem]\nn_time = '2 *'"}, "is not an expression"),
        ({"problem": "[problem]\nn_times = 'half'"}, "'n_times' is not a field"),
        ({"sweep": "[sweep]\ntrial = 3"}, "\\[sweep\\] trial is not a setting; settings are trials, "),
        ({"sweep": "[sweep]\neffort = 'most'"}, "unknown effort 'most'"),
        ({"sweep": "[sweep"}, "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_says_why(tmp_path: Path, more: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_plan(write(tmp_path, **more), tmp_path).problems(find_device("simulated"))


def test_no_scheduler_and_no_file_are_one_line(tmp_path: Path) -> None:
    with socket.socket() as another:
        with suppress(OSError):  # it is not free
            another.bind(("", 8787))  # of the scheduler's pages, which another campaign may have
            another.listen()
        for words, says in (
            ([str(tmp_path / "none.toml")], "cannot read the campaign"),
            ([str(write(tmp_path)), "--device", "cuda:77"], "device 'cuda:77' is not here"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "autotune", "campaign", *words], capture_output=True, text=True, timeout=240
            )
            assert done.returncode == 2 and says in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_what_a_worker_process_opened_is_closed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from autotune.campaign.task_worker import DEVICE_VARIABLE, OneBench

    target = find_device("simulated:0")
    monkeypatch.setenv(DEVICE_VARIABLE, target.identifier)
    monkeypatch.setattr(OneBench, "found", {target.identifier: (target, 1)})
    OneBench.bench().open()
    OneBench().teardown(object())
    assert OneBench._bench is None
    with device_lock(target.module.lock_name(target.identifier), pytest.fail):  # would say that it waits
        pass
