"""The processes of a test: who started whom, and who has ended."""

from pathlib import Path


def descendants(pid: int) -> list[int]:
    """The processes that it started, and those that they did."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    direct = [int(child) for path in found for child in path.read_text().split()]
    return direct + [grandchild for child in direct for grandchild in descendants(child)]


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
