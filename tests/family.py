"""The processes of a test: who started whom, and who has ended."""

import os
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes that it started; none when it has gone."""
    tasks = _names(pid, "task")
    return [int(child) for task in tasks for child in _read(pid, f"task/{task}/children").split()]


def descendants(pid: int) -> list[int]:
    """The processes that it started, and those that they did."""
    direct = children(pid)
    return direct + [grandchild for child in direct for grandchild in descendants(child)]


def open_files(pid: int) -> list[str]:
    """What its file descriptors refer to, as the kernel names it; none when it has gone."""
    found = []
    for number in _names(pid, "fd"):
        with suppress(OSError):  # closed since it was listed
            found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    return _read(pid, "stat").rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"])


def name_of(pid: int) -> str:
    """What the kernel calls it; "" when it has gone."""
    return _read(pid, "comm").strip()


def command_of(pid: int) -> str:
    """Its command line; "" when it has gone."""
    return _read(pid, "cmdline").replace("\0", " ")


def _read(pid: int, what: str) -> str:
    try:
        return Path(f"/proc/{pid}/{what}").read_text(errors="replace")
    except OSError:
        return ""


def _names(pid: int, what: str) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/{what}")
    except OSError:  # it ended, perhaps between two lines of ours
        return []
