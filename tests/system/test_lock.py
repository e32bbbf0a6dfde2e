"""The lock of a device: shared by all users and caches of a machine, whatever others leave where it lies."""

import fcntl
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune import UsageError
from autotune.system import lock
from autotune.system.lock import device_lock

from ..conftest import EXAMPLE
from ..forked import Command

SOMEBODY = 65534


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place that every user reaches, with no folder of locks yet."""
    place = Path(tempfile.mkdtemp(prefix="autotune-test-", dir="/tmp"))
    place.chmod(0o1777)
    monkeypatch.setenv("AUTOTUNE_LOCK_DIR", str(place / "locks"))
    yield place / "locks"
    shutil.rmtree(place)


def held(told: list[str]) -> None:
    with device_lock("host", told.append):
        pass


def forked(what: Callable[[], None], uid: int | None = None, umask: int = 0o22) -> int:
    """A process of this one's kind that does ``what``, as another user if asked to."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.umask(umask)
            if uid is not None:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            what()
            status = 0
        finally:
            os._exit(status)
    return pid


def test_two_caches_do_not_measure_one_device_together(tmp_path: Path, shared: Path) -> None:
    assert not str(lock.FOLDER).startswith(tempfile.gettempdir() + "/pytest")
    running = []
    for i in range(2):
        environment = {**os.environ, "AUTOTUNE_CACHE_DIR": str(tmp_path / f"cache{i}"), "TMPDIR": str(tmp_path)}
        environment["AUTOTUNE_SIMULATED_COMPILE_S"] = "0.4"
        words = ["sweep", "--kernel", EXAMPLE, "--device", "simulated:0", "--trials", "12"]
        running.append(Command(*words, "--results", tmp_path / f"r{i}", env=environment))
        while i == 0 and not list(tmp_path.glob("r0/**/trials.jsonl")) and running[0].poll() is None:
            time.sleep(0.02)
    told = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], told
    assert f"waiting: the device is in use by process {running[0].pid} (" in told[1], told
    assert "waiting" not in told[0] and str(words[2]) in told[1], told


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize(("first", "second"), [(None, SOMEBODY), (SOMEBODY, None)])
def test_two_users_with_other_umasks_share_it(shared: Path, first: int | None, second: int | None) -> None:
    ready, release = os.pipe(), os.pipe()

    def hold() -> None:
        with device_lock("host", lambda text: os._exit(2)):
            os.write(ready[1], b"x")
            os.read(release[0], 1)

    def wait() -> None:
        def note(text: str) -> None:
            assert text.startswith(f"waiting: the device is in use by process {holder} ("), text
            os.write(release[1], b"x")

        with device_lock("host", note):
            os.write(ready[1], b"y")

    holder = forked(hold, first, umask=0o77)
    assert os.read(ready[0], 1) == b"x"
    waiter = forked(wait, second, umask=0o27)
    assert [os.waitpid(pid, 0)[1] for pid in (holder, waiter)] == [0, 0]
    assert os.read(ready[0], 1) == b"y"
    assert shared.stat().st_mode & 0o7777 == 0o1777
    assert (shared / "host.lock").stat().st_mode & 0o777 == 0o666


def test_who_waits_too_long_is_told_who_holds_it(shared: Path) -> None:
    told: list[str] = []
    with (
        device_lock("host", print),
        pytest.raises(UsageError, match=rf"still in use after 0 s, by process {os.getpid()} "),
        device_lock("host", told.append, 0.0),
    ):
        raise AssertionError("it is held twice")
    assert told == []
    with device_lock("host", told.append, 0.0):
        assert told == [], "it is free again"


def test_a_killed_holder_leaves_it_free(shared: Path) -> None:
    ready = os.pipe()

    def hold() -> None:
        with device_lock("host", print):
            os.write(ready[1], b"x")
            signal.pause()

    holder = forked(hold)
    os.read(ready[0], 1)
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    held(told := [])
    assert told == []


# ---------------------------------------------------------------------- what others may leave there
def plant_link(file: Path, victim: Path) -> None:
    file.symlink_to(victim)


def plant_dangling_link(file: Path, victim: Path) -> None:
    file.symlink_to(victim.with_name("made through a link"))


def plant_pipe(file: Path, victim: Path) -> None:
    os.mkfifo(file)


def plant_folder(file: Path, victim: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize("plant", [plant_link, plant_dangling_link, plant_pipe, plant_folder])
def test_what_is_no_lock_is_neither_followed_nor_waited_for(
    plant: Callable[[Path, Path], None], shared: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    shared.mkdir()
    plant(shared / "host.lock", victim)
    held(told := [])
    assert len(told) == 1 and told[0].startswith(f"warning: the locks of devices in {shared} cannot be used"), told
    assert [p.name for p in tmp_path.iterdir()] == ["victim"] and victim.read_text() == "precious"


def test_a_folder_that_is_a_link_or_cannot_be_made_is_not_used(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.symlink_to(tmp_path)
    for folder in (shared, Path("/proc/1/nowhere"), Path("/dev/null/locks")):
        monkeypatch.setenv("AUTOTUNE_LOCK_DIR", str(folder))
        held(told := [])
        assert len(told) == 1 and f"{folder} cannot be used" in told[0], told
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_another_name_as_well_is_locked_and_not_written(shared: Path, tmp_path: Path) -> None:
    victim = shared.parent / "victim"
    victim.write_text("precious")
    shared.mkdir()
    os.link(victim, shared / "host.lock")
    with device_lock("host", print):
        assert victim.read_text() == "precious"
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("text", "shows"),
    [
        (
            json.dumps({"pid": 1, "command": "a\x1b]0;x\x07\n\u202eb", "since": "2026\r\n"}),
            r"process 1 (a\x1b]0;x\x07 \u202eb)",
        ),
        (
            json.dumps({"pid": 1, "command": "x" * 9999, "since": "2026"}),
            f"({'x' * (lock.MOST_TOLD - 3)}...) since 2026",
        ),
        (json.dumps({"pid": "1\n2", "command": "", "since": ""}), "another process"),
        (json.dumps({"pid": None, "command": "", "since": ""}), "another process"),
        ("[" * 100_000, "another process"),
        ("[1]", "another process"),
        ("", "another process"),
        ("\x00\xff", "another process"),
    ],
)
def test_what_stands_in_it_is_told_in_one_harmless_line(text: str, shared: Path, shows: str) -> None:
    shared.mkdir()
    (shared / "host.lock").write_text(text)
    with open(shared / "host.lock") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)

        def note(line: str) -> None:
            told.append(line)
            fcntl.flock(holder, fcntl.LOCK_UN)

        told: list[str] = []
        with device_lock("host", note):
            pass
    assert len(told) == 1 and shows in told[0] and told[0].isprintable(), told


def test_a_lock_that_is_deleted_while_it_is_waited_for_is_made_again(shared: Path) -> None:
    shared.mkdir()
    file = shared / "host.lock"
    with open(file, "w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)

        def note(line: str) -> None:
            file.unlink()
            fcntl.flock(holder, fcntl.LOCK_UN)

        with device_lock("host", note), open(file) as there, pytest.raises(BlockingIOError):
            fcntl.flock(there, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_command_line_that_is_told_is_quoted(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["autotune", "it's", "a\nb"])
    with device_lock("host", print):
        assert json.loads((shared / "host.lock").read_text())["command"] == "autotune 'it'\"'\"'s' 'a\nb'"
    assert (shared / "host.lock").read_text() == ""
