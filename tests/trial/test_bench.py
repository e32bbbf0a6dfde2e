"""What sweeps on one device share, and what is said of their time: benches, ledgers, estimates, caches."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autotune import Tolerance, UsageError
from autotune.devices import find_device
from autotune.records.folder import SweepFolder, find_sweeps
from autotune.records.folder_lock import locked
from autotune.source.registry import load_kernel
from autotune.sweep.estimate import estimate
from autotune.sweep.run import Sweep, run_sweep
from autotune.sweep.settings import EFFORTS, Settings, effort
from autotune.system.cache import cache_dir, prune, scratch_dir
from autotune.trial import ledger as module
from autotune.trial.bench import Bench
from autotune.trial.ledger import Ledger, idle_share

from ..conftest import EXAMPLE
from ..recorded import created
from ..waiting import DEADLINE_S

KERNEL = load_kernel(EXAMPLE)
PROBLEM = KERNEL.problem({"n_time": 64, "n_chan": 100})
SIMULATED = find_device("simulated:5")


def settings(path: Path, **more: Any) -> Settings:
    return replace(Settings(results=path, trials=6, sampler="random"), **more)


# ---------------------------------------------------------------------- benches
def test_threads_share_a_bench_and_every_sweep_is_whole(tmp_path: Path) -> None:
    found: list[Sweep] = []
    with Bench(SIMULATED, compile_processes=2, n_sharing=4) as bench:
        problems = [KERNEL.problem({"n_time": n, "n_chan": 100}) for n in (8, 16, 32, 64)]
        threads = [
            threading.Thread(target=lambda p=p: found.append(run_sweep(KERNEL, p, bench, settings(tmp_path))))
            for p in problems
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
    assert len(found) == 4 and all(sweep.best is not None for sweep in found)
    for folder in find_sweeps(tmp_path):
        trials = folder.trials()
        assert [t.number for t in trials] == list(range(6)) and len({t.config for t in trials}) == 6


@pytest.mark.quick
def test_more_trials_later_continue_and_a_longer_final_round_is_made_again(tmp_path: Path) -> None:
    with Bench(SIMULATED) as bench:
        short = settings(tmp_path, finalist_samples=9)
        first = run_sweep(KERNEL, PROBLEM, bench, short)
        assert run_sweep(KERNEL, PROBLEM, bench, short).spent_s == {}  # nothing was left to do
        longer = run_sweep(KERNEL, PROBLEM, bench, settings(tmp_path, finalist_samples=12))
        assert "final round" in longer.spent_s and len(longer.trials) == len(first.trials) == 6
        placed = settings(tmp_path, finalist_samples=12, placements=5)
        assert "final round" in run_sweep(KERNEL, PROBLEM, bench, placed).spent_s
        assert run_sweep(KERNEL, PROBLEM, bench, placed).spent_s == {}
        more = run_sweep(KERNEL, PROBLEM, bench, settings(tmp_path, trials=9, trust_recorded=True))
    assert len(more.trials) == 9 and more.best is not None
    measured = [t for t in SweepFolder(first.path).trials() if t.status == "measured"]
    assert sum(t.stand_in is not None for t in measured) == sum(t == "measured" for t in more.trials["status"][6:])


def test_two_processes_do_not_write_one_record(tmp_path: Path) -> None:
    folder = created(tmp_path / "sweep", {})
    code = (
        "import sys; from pathlib import Path; from autotune.records.folder_lock import locked\n"
        "with locked(Path(sys.argv[1]), lambda text: print(text, flush=True)): print('mine', flush=True)\n"
    )
    with locked(folder.path, lambda text: None):
        other = subprocess.Popen([sys.executable, "-c", code, str(folder.path)], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None and "another process is at work" in other.stdout.readline()
    assert other.stdout.readline() == "mine\n" and other.wait(DEADLINE_S) == 0


# ---------------------------------------------------------------------- time
def test_a_ledger_adds_up_to_the_wall_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(s=100.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.s))
    ledger = Ledger()
    for what, seconds in (("measuring", 2.0), ("searching", 1.0), ("measuring", 3.0)):
        with ledger.on(what):
            clock.s += seconds
        clock.s += 0.5
    assert list(ledger.spent_s().items()) == [("measuring", 5.0), ("other", 1.5), ("searching", 1.0)]
    assert ledger.wall_s == 7.5


def test_idle_is_what_the_device_was_not_used() -> None:
    assert idle_share({"verifying": 1.0, "measuring": 1.0, "waiting for compilers": 6.0}) == 0.75
    assert idle_share({}) == 0.0


def test_an_estimate_says_what_it_rests_on(tmp_path: Path) -> None:
    guess = estimate(tmp_path, KERNEL, SIMULATED.device, 100, 4)
    assert guess.n_sweeps == 0 and "no history yet" in str(guess)
    with Bench(SIMULATED) as bench:
        run_sweep(KERNEL, PROBLEM, bench, settings(tmp_path))
    known = estimate(tmp_path, KERNEL, SIMULATED.device, 100, 4)
    assert known.n_sweeps == 1 and "from 1 recorded sweep" in str(known)
    assert known.seconds > estimate(tmp_path, KERNEL, SIMULATED.device, 10, 4).seconds


# ---------------------------------------------------------------------- settings
def test_efforts_differ_in_what_they_may_spend() -> None:
    n = {name: Settings(**effort(name)).budget("cuda", 1000) for name in EFFORTS}
    assert n["quick"] < n["normal"] < n["full"] == 1000
    with pytest.raises(UsageError, match="unknown effort 'most'"):
        effort("most")


# ---------------------------------------------------------------------- caches
def test_the_least_recently_used_files_go_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path))
    long_ago = time.time() - 10 * 3600
    for i in range(5):
        path = cache_dir("cubin") / str(i)
        path.write_bytes(bytes(100))
        os.utime(path, (long_ago + i, long_ago + i))
    os.utime(cache_dir("cubin") / "0")
    assert prune("cubin", limit_bytes=250) == 300
    assert sorted(p.name for p in cache_dir("cubin").iterdir()) == ["0", "4"]
    assert prune("cubin", limit_bytes=0) == 100, "what was used within the hour stays"
    monkeypatch.setenv("AUTOTUNE_CACHE_BYTES", "much")
    with pytest.raises(UsageError, match="AUTOTUNE_CACHE_BYTES='much'"):
        prune("cubin")


def test_scratch_of_a_dead_process_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AUTOTUNE_CACHE_DIR", str(tmp_path))
    code = (
        "import os, signal; from autotune.system.cache import scratch_dir\n"
        "with scratch_dir() as path: (path / 'large').write_text('x'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60)
    assert len(list(cache_dir("scratch").iterdir())) == 1
    others = cache_dir("scratch") / f"autotune-00000000-{os.getpid()}-1-abc"  # of a container that shares the cache
    others.mkdir()
    with scratch_dir() as mine:
        assert {*cache_dir("scratch").iterdir()} == {mine, others}
    assert list(cache_dir("scratch").iterdir()) == [others]


# ---------------------------------------------------------------------- a verified config for a reference
def test_two_that_may_each_be_off_by_a_tolerance_differ_by_at_most_two() -> None:
    assert Tolerance(rtol=1.0, atol=2.0, of_rms=3.0).times(2.0) == Tolerance(rtol=2.0, atol=4.0, of_rms=6.0)
    assert Tolerance().times(2.0) == Tolerance()
