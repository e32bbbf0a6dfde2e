"""An advisory lock for each device, so that one process measures at a time; the kernel releases it at exit.

Its file is in a folder that all users of this machine share, wherever their caches are, since two simultaneous
measurements would spoil each other. Any user may hold a lock and write into its file, so the file's content is only
shown in messages. Files are never created through a link, and content is never written to a file with another link.
"""

import errno
import fcntl
import json
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from ..core.errors import UsageError, one_line
from ..core.files import lock
from .cache import cache_dir

FOLDER = Path("/tmp/autotune-locks")  # AUTOTUNE_LOCK_DIR overrides it; TMPDIR may differ between users
POLL_S = 0.2
REMEDY = "name a folder on another one in AUTOTUNE_LOCK_DIR"
OPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # never wait for a pipe or a terminal
FOLDER_ALONE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # opens a folder, but not a link to one
MOST_TOLD = 200  # characters of a command line in a message
N_ATTEMPTS = 20  # attempts to open a file that another process creates or removes


@contextmanager
def device_lock(name: str, note: Callable[[str], None], most_s: float = inf) -> Iterator[None]:
    """Holds the lock of the device ``name``. If another process holds it, calls ``note`` with its name, and waits.

    If the folder cannot be used, ``note`` gets a warning, and the lock only covers processes that share this cache.

    Raises:
        UsageError: when another process still holds it after ``most_s`` seconds.
    """
    root, file_name = Path(os.environ.get("AUTOTUNE_LOCK_DIR") or FOLDER), re.sub(r"[^\w.-]", "_", name) + ".lock"
    with ExitStack() as stack:
        try:
            folder, file = _with_file(_shared_folder(root), file_name)
        except OSError as error:
            own = cache_dir("locks")
            note(
                f"warning: the locks of devices in {root} cannot be used ({error.strerror}); "
                f"whoever measures on {name} with another cache than {own.parent} is not waited for"
            )
            folder, file = _with_file(os.open(own, FOLDER_ALONE), file_name)
        stack.callback(os.close, folder)
        stack.callback(os.close, file)
        _take(folder, file_name, file, root, note, most_s)
        _write(file, {"pid": os.getpid(), "command": shlex.join(sys.argv), "since": datetime.now(UTC).isoformat()})
        stack.callback(_write, file, None)
        yield


def _take(folder: int, name: str, file: int, root: Path, note: Callable[[str], None], most_s: float) -> None:
    """Locks ``file``; if it was deleted meanwhile, opens and locks the new file of this name in its place."""
    told, end = False, time.monotonic() + most_s
    while True:
        if not lock(file, root, REMEDY):
            if time.monotonic() >= end:
                raise UsageError(f"the device is still in use after {most_s:g} s, by {_holder(file)}") from None
            if not told:
                note(f"waiting: the device is in use by {_holder(file)}")
                told = True
            time.sleep(POLL_S)
            continue
        if _is_named(folder, name, file):
            return
        renewed = _open(folder, name)
        os.dup2(renewed, file, inheritable=False)
        os.close(renewed)


def _is_named(folder: int, name: str, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(file))
    except FileNotFoundError:
        return False


# ---------------------------------------------------------------------- a folder and files that anybody may use
def _with_file(folder: int, name: str) -> tuple[int, int]:
    """Returns ``folder`` and the lock file in it, both open."""
    try:
        return folder, _open(folder, name)
    except OSError:
        os.close(folder)
        raise


def _shared_folder(path: Path) -> int:
    """Opens the folder and returns it; creates it if missing. All users may create files in it, and delete their own.

    Raises:
        OSError: when it cannot be created, or is a link or not a folder.
    """
    try:
        os.mkdir(path, 0o777)
    except FileExistsError:
        pass
    except OSError:
        if not path.is_dir():
            raise
    folder = os.open(path, FOLDER_ALONE)
    about = os.fstat(folder)
    if about.st_uid == os.geteuid() and stat.S_IMODE(about.st_mode) != 0o1777:
        os.fchmod(folder, 0o1777)  # undo the umask
    return folder


def _open(folder: int, name: str) -> int:
    """Opens the lock's file and returns it; creates it if missing. All users may write to it.

    Linux may refuse O_CREAT for another user's file in such a folder (fs.protected_regular), so an existing file is
    opened without it.

    Raises:
        OSError: when it can be neither created nor opened, or is not a plain file.
    """
    for attempt in range(N_ATTEMPTS):
        try:
            return _plain(_opened(folder, name), name)
        except FileNotFoundError:
            try:
                file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | OPEN, 0o666, dir_fd=folder)
            except FileExistsError:
                continue
            except PermissionError:  # the folder's creator has not set its mode yet
                if attempt == N_ATTEMPTS - 1:
                    raise
                time.sleep(POLL_S / N_ATTEMPTS)
                continue
            os.fchmod(file, 0o666)
            return file
    raise OSError(errno.EAGAIN, "its file comes and goes", name)


def _opened(folder: int, name: str) -> int:
    try:
        return os.open(name, os.O_RDWR | OPEN, dir_fd=folder)
    except PermissionError:  # a lock does not need write access
        return os.open(name, os.O_RDONLY | OPEN, dir_fd=folder)


def _plain(file: int, name: str) -> int:
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "its file is not a plain file", name)


# ---------------------------------------------------------------------- who holds it, for people
def _write(file: int, holder: dict[str, object] | None) -> None:
    """Writes ``holder`` into the lock file, unless it has another hard link, which may be a user's file."""
    if os.fstat(file).st_nlink != 1 or fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        return
    os.ftruncate(file, 0)
    if holder is not None:
        os.pwrite(file, json.dumps(holder).encode(), 0)


def _holder(file: int) -> str:
    try:
        holder = json.loads(os.pread(file, 1 << 16, 0))
        command, since = one_line(str(holder["command"])), one_line(str(holder["since"])[:19])
        shown = command if len(command) <= MOST_TOLD else command[: MOST_TOLD - 3] + "..."
        return f"process {int(holder['pid'])} ({shown}) since {since} UTC"
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, OSError):
        return "another process"  # the file was just truncated, or has other content
