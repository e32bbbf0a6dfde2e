"""The processes of a test: who started whom, and who has ended."""

from pathlib import Path


def descendants(pid: int) -> list[int]:
    """The processes that it started, and those that they did."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    direct = []
    for path in found:
        try:
            direct += [int(child) for child in path.read_text().split()]
        except OSError:  # the thread has ended meanwhile
            continue
    return direct + [grandchild for child in direct for grandchild in descendants(child)]


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


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
