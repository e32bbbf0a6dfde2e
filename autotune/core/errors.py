"""The two families of errors: a trial that fails with a status, and a request that cannot be served."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class Status(StrEnum):
    """How a trial ended. Records hold these words."""

    MEASURED = "measured"  # verified and timed
    CONSTRAINT = "constraint"  # refused by a named constraint of the space
    DEFINITION_FAILED = "definition_failed"  # a method of the definition raised, or returned a wrong value
    RENDER_FAILED = "render_failed"  # the template did not render
    COMPILE_FAILED = "compile_failed"  # the compiler refused the source
    RESOURCES = "resources"  # more threads, registers, shared memory or grid than the device has
    LAUNCH_FAILED = "launch_failed"  # the kernel crashed: illegal or misaligned address, a trap, a dead process
    TIMED_OUT = "timed_out"  # a compile or a launch passed its deadline
    WRONG = "wrong"  # an output differs from the reference or is unwritten, or the kernel wrote elsewhere
    NOISY = "noisy"  # the clock was throttled or the samples never settled
    SKIPPED = "skipped"  # this device cannot run the config; the message says why

    @property
    def words(self) -> str:
        return self.replace("_", " ")


class UsageError(Exception):
    """A request for something that does not exist or is impossible; the message says what to do instead."""


class DefinitionError(UsageError):
    """A definition that breaks its contract; the message names file, line and method, and what it must do instead."""


class TrialFailure(Exception):
    """A config that failed at a station of its trial: it becomes a row of the record, and never ends the sweep.

    ``status`` is a Status, or its word. ``sticky``: the process that raised it can no longer be trusted (a CUDA context
    after an illegal address) and must be replaced.
    """

    def __init__(self, status: Status | str, message: str, *, sticky: bool = False) -> None:
        super().__init__(status, message)
        self.status = Status(status)
        self.message = message
        self.sticky = sticky

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_failure, (self.status, self.message, self.sticky))


@contextmanager
def explained(before: str = "", where: str = "") -> Iterator[None]:
    """Lets the message of a TrialFailure in the block begin with ``before``, or end with ``where``."""
    try:
        yield
    except TrialFailure as failure:
        message = f"{before}: {failure.message}" if before else f"{failure.message} ({where})"
        raise TrialFailure(failure.status, message, sticky=failure.sticky) from failure


def _rebuild_failure(status: Status, message: str, sticky: bool) -> TrialFailure:
    """Rebuilds the failure when it is unpickled, since exceptions pickle positional arguments only."""
    return TrialFailure(status, message, sticky=sticky)


def error_text(error: BaseException) -> str:
    """Describes an exception of a user's code in one line: its type, message, and where it was raised."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    where = f" at {traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}" if traceback else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


def clipped(text: str, n: int = 2000) -> str:
    """Cuts ``text`` to ``n`` characters: a compiler's message may be megabytes of template arguments."""
    return text if len(text) <= n else f"{text[:n]}... ({len(text) - n} more characters)"


def one_line(text: str) -> str:
    """Joins ``text`` into one line and escapes control characters, since parts of it may come from anybody."""
    joined = re.sub(r"\s*\n\s*", " ", text.strip())
    return printable(joined)


def printable(text: str, kept: str = "") -> str:
    """Escapes the characters of ``text`` that a terminal would obey instead of show, except those in ``kept``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)
