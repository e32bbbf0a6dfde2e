"""Processes that run tasks: the dead are replaced, Ctrl-C leaves a pool in order, nothing is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, wait
from multiprocessing.context import SpawnContext
from multiprocessing.popen_spawn_posix import Popen
from pathlib import Path
from typing import Any

import pytest

from autotune.system import processes
from autotune.system.processes import Child, Died, RankedPool, _Process, _serve, uninterrupted, work_quietly

from ..family import gone
from ..waiting import DEADLINE_S, wait_until


class InterruptedOnce(deque[Any]):
    """The waiters of a condition. Somebody presses Ctrl-C when the first one has been woken up and is still listed."""

    left = 1

    def remove(self, waiter: Any) -> None:
        if self.left:
            self.left = 0
            signal.raise_signal(signal.SIGINT)
        super().remove(waiter)


def ends(pool: RankedPool) -> bool:
    ending = threading.Thread(target=pool.end, daemon=True)
    ending.start()
    ending.join(DEADLINE_S)
    return not ending.is_alive()


def kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_the_first(mark: Path) -> int:
    """Dies in the first process that runs it."""
    if not mark.exists():
        mark.touch()
        kill_myself()
    return os.getpid()


def sleep_beside_another(mark: Path) -> None:
    """Starts a process, tells its number, and waits for ever."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    mark.with_suffix(".part").write_text(str(other.pid))
    mark.with_suffix(".part").rename(mark)
    time.sleep(600)


def tried(child: Child, task: Callable[[Path], None], mark: Path) -> None:
    """Runs a task until somebody ends its process."""
    with pytest.raises(Died):
        child.call(task, (mark,))


def wait_for_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_interrupted_while_it_takes_a_task_a_pool_still_ends() -> None:
    pool = RankedPool(1, "tested", work_quietly)
    assert pool.schedule(os.getppid, ()).result(60) == os.getpid()
    changing: Any = pool._changing
    wait_until(lambda: bool(changing._waiters))
    changing._waiters = InterruptedOnce(changing._waiters)
    with pytest.raises(KeyboardInterrupt):
        pool.schedule(os.getppid, ())
    assert pool.schedule(os.getppid, ()).result(60) == os.getpid()
    assert ends(pool)


def test_an_idle_process_that_is_killed_is_replaced() -> None:
    pool = RankedPool(2, "tested", work_quietly)
    for _ in range(5):
        pids = {pool.schedule(os.getpid, ()).result(60) for _ in range(4)}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert pool.schedule(os.getppid, ()).result(60) == os.getpid()
    assert ends(pool)


@pytest.mark.quick
def test_what_was_in_flight_is_tried_once_more(tmp_path: Path) -> None:
    child = Child("tested", work_quietly)
    assert child.call(kill_the_first, (tmp_path / "mark",), 60) != os.getpid()
    with pytest.raises(Died, match="SIGKILL"):
        child.call(kill_myself, (), 60)
    assert child.call(os.getppid, (), 60) == os.getpid()
    child.end()


def test_a_task_with_one_try_is_not_tried_again(tmp_path: Path) -> None:
    child = Child("tested", work_quietly, tries=1)
    with pytest.raises(Died, match="SIGKILL"):
        child.call(kill_the_first, (tmp_path / "mark",), 60)
    assert child.call(os.getppid, (), 60) == os.getpid(), "the next task gets a process"
    child.end()


def told_in_steps(mark: Path, last_s: float) -> Iterator[str]:
    """Tells a step, dies once, and tells another one."""
    yield "begun"
    kill_the_first(mark)
    time.sleep(last_s)
    yield "done"


def test_steps_come_one_by_one_each_in_its_own_time(tmp_path: Path) -> None:
    child = Child("tested", work_quietly)
    steps = child.steps(told_in_steps, (tmp_path / "mark", 0.0), 60)
    assert list(steps) == ["begun", "begun", "done"], "the second process tells all of them"
    late = child.steps(told_in_steps, (tmp_path / "mark", 600.0), 1)
    assert next(late) == "begun"
    with pytest.raises(TimeoutError):
        next(late)
    child.end()


@pytest.mark.parametrize("status", [0, 3])
def test_an_exit_is_a_death_at_once(status: int) -> None:
    child = Child("tested", work_quietly)
    with pytest.raises(Died, match=f"exit code {status}"):
        child.call(os._exit, (status,), 600)
    with pytest.raises(RuntimeError, match="SystemExit"):
        child.call(sys.exit, (status,), 600)
    child.end()


def close_pipes_and_exit(status: int) -> None:
    os.closerange(3, 64)
    time.sleep(0.2)
    os._exit(status)


@pytest.mark.parametrize("exit_early", [os._exit, close_pipes_and_exit])
def test_a_process_that_cannot_start_is_told(exit_early: Callable[[int], None]) -> None:
    child = Child("tested", exit_early, 7)
    with pytest.raises(Died, match="3 processes could not be started, the last one: exit code 7"):
        child.call(os.getppid, (), 60)


def test_what_a_process_started_goes_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    child = Child("tested", work_quietly)
    caller = threading.Thread(target=tried, args=(child, sleep_beside_another, mark))
    caller.start()
    wait_for_file(mark)
    child.end()
    caller.join(DEADLINE_S)
    pid = int(mark.read_text())
    wait_until(lambda: gone(pid))


def test_what_it_prints_is_no_data(capfd: pytest.CaptureFixture[str]) -> None:
    child = Child("tested", work_quietly)
    child.call(os.write, (1, b"noise"), 60)
    child.end()
    out, err = capfd.readouterr()
    assert (out, err) == ("", "noise")


def test_ctrl_c_counts_when_it_is_over() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")
    assert done and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_may_be_asked_for_in_any_thread() -> None:
    done = []

    def work() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done


def test_the_lowest_rank_that_waits_goes_first(tmp_path: Path) -> None:
    pool = RankedPool(1, "tested", work_quietly)
    order: list[int] = []
    first = pool.schedule(wait_for_file, (tmp_path / "all wait",), rank=9)
    wait_until(first.running)
    tasks = []
    for rank in (5, 1, 3, 1):
        tasks.append(pool.schedule(os.getppid, (), rank=rank))
        tasks[-1].add_done_callback(lambda _, rank=rank: order.append(rank))
    dropped = pool.schedule(os.getppid, (), rank=0)
    assert dropped.cancel()
    (tmp_path / "all wait").touch()
    wait([first, *tasks], timeout=60)
    assert order == [1, 1, 3, 5]
    assert ends(pool)


@pytest.mark.quick
def test_what_fails_in_a_process_is_raised_here() -> None:
    pool = RankedPool(1, "tested", work_quietly)
    with pytest.raises(ZeroDivisionError):
        pool.schedule(divmod, (1, 0)).result(60)
    with pytest.raises(TimeoutError):
        pool.schedule(time.sleep, (60,), timeout=0.2).result(60)
    assert pool.schedule(os.getppid, ()).result(60) == os.getpid()
    assert ends(pool)


def test_who_waits_when_a_pool_ends_is_told() -> None:
    pool = RankedPool(1, "tested", work_quietly)
    tasks = [pool.schedule(time.sleep, (60,)) for _ in range(8)]
    assert ends(pool)
    for task in tasks:
        with pytest.raises(CancelledError):
            task.result(60)


def test_a_process_that_is_not_wanted_any_more_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """A process may still be starting when its parent is told to stop it."""
    ours, its = SpawnContext().Pipe()
    process = _Process(target=_serve, args=(its, os.getpid(), "tested", work_quietly, ()))
    process.start()
    its.close()
    ours.close()
    process.join(DEADLINE_S)
    assert process.exitcode == 0 and capfd.readouterr().err == ""


def test_what_a_start_adds_is_for_the_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads os.environ in the middle of a start finds it as it was before and after."""
    for name in processes.THREADS:
        monkeypatch.delenv(name, raising=False)
    before, during = dict(os.environ), list[dict[str, str]]()

    def noted(process: object) -> Popen:
        during.append(dict(os.environ))
        return Popen(process)

    monkeypatch.setattr(processes, "Popen", noted)
    child = Child("tested", work_quietly)
    assert [child.call(os.getenv, (name,), 60) for name in processes.THREADS] == ["1"] * len(processes.THREADS)
    child.end()
    assert during == [before] and dict(os.environ) == before
