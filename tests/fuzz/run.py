"""One command in this process: what it prints, how it ends, how long it takes, and what it opens for writing."""

import io
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.cli import console, program
from autotune.core.errors import UsageError
from autotune.records import damage

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
MADE = {"os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1, "os.truncate": 0, "os.remove": 0, "os.rmdir": 0}


@dataclass
class Ended:
    """How a command ended; ``faults`` is empty where nothing was wrong with that."""

    code: int
    out: str
    err: str
    seconds: float
    faults: list[str] = field(default_factory=list)
    written: str = ""  # what lies in the folder that it was to write to


class Hang(BaseException):
    """A command that passed its deadline."""


class _Watch:
    """Notes what is written outside the allowed folders; an audit hook, which stays for the life of the process."""

    def __init__(self) -> None:
        self.allowed: tuple[str, ...] | None = None
        self.found: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.allowed is None:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING:
                self._check(event, path)
        elif event in MADE and not any(isinstance(value, int) and value > 2 for value in arguments):  # nor in a folder
            self._check(event, arguments[MADE[event]])

    def _check(self, event: str, path: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        allowed, self.allowed = self.allowed, None  # what follows opens nothing, but is audited, too
        try:
            real = os.path.realpath(os.fsdecode(path))
            inside = any(real == folder or real.startswith(folder + os.sep) for folder in allowed or ())
            if not inside and "__pycache__" not in real and not real.startswith(("/dev/", "/proc/")):
                self.found.append(f"{event} {real}")
        finally:
            self.allowed = allowed


_watches: list[_Watch] = []


@contextmanager
def watched(folders: Sequence[Path]) -> Iterator[list[str]]:
    """What is written outside ``folders``, the cache and the folder of temporary files' own names."""
    if not _watches:
        _watches.append(_Watch())
    (watch,) = _watches
    cache = os.environ.get("AUTOTUNE_CACHE_DIR", "")
    watch.found = found = []
    watch.allowed = tuple(os.path.realpath(f) for f in (*map(str, folders), *filter(None, [cache])))
    try:
        yield found
    finally:
        watch.allowed = None


def call(action: Callable[[], object], folders: Sequence[Path], deadline_s: float = 60.0) -> Ended:
    """``action()``, which writes into ``folders`` only, as a command in a process of its own would be."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    console.stdout._buffer.clear()  # of what another run could not write
    console.stderr._buffer.clear()
    handler = logging.StreamHandler(err)
    log = logging.getLogger("autotune")
    faults: list[str] = []
    began = time.monotonic()

    def hang(*_: object) -> None:
        raise Hang

    damage._told.clear()
    before = signal.signal(signal.SIGALRM, hang)
    log.addHandler(handler)
    temporary, tempfile.tempdir = tempfile.tempdir, str(folders[0])
    try:
        with watched(folders) as written, redirect_stdout(out), redirect_stderr(err):
            signal.setitimer(signal.ITIMER_REAL, deadline_s)
            code = _code_of(action, faults)
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        tempfile.tempdir = temporary
        log.removeHandler(handler)
        logging.disable(logging.NOTSET)
        signal.signal(signal.SIGALRM, before)
    faults += [f"written outside: {what}" for what in written]
    said, told = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    if "Traceback" in told:
        faults.append("a traceback on stderr")
    if code not in (0, 1, 2):
        faults.append(f"exit code {code}")
    if code and not told.strip():
        faults.append(f"exit code {code} without a message")
    if "\x1b" in said + told:
        faults.append("an escape sequence reaches the terminal")
    return Ended(code, said, told, time.monotonic() - began, faults)


def _code_of(action: Callable[[], object], faults: list[str]) -> int:
    try:
        action()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Hang as hang:
        faults.append("passed its deadline:\n" + "".join(traceback.format_tb(hang.__traceback__, limit=-4)))
        return 1
    except Exception:
        faults.append(traceback.format_exc(limit=-4))
        return 1
    return 0


def as_command(action: Callable[[], object]) -> Callable[[], object]:
    """Errors as the command line ends with them: who lies need not be understood."""

    def run() -> None:
        try:
            action()
        except UsageError as error:
            print(f"autotune: {error}", file=sys.stderr)
            raise SystemExit(2) from error

    return run


def command(words: Sequence[str], folders: Sequence[Path], deadline_s: float = 60.0) -> Ended:
    """`autotune` with these words."""

    def run() -> None:
        before, sys.argv = sys.argv, ["autotune", *words]
        try:
            program.main()
        finally:
            sys.argv = before

    return call(run, folders, deadline_s)
