"""The C++ compiler of the host device: finding one, and running it so that it ends with this process."""

import ctypes
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...errors import UsageError

MINIMUM_GCC = 12  # the first with _Float16 on x86-64 in C++
CPU_LIMIT_S = 600  # of a compiler process; its deadline is the caller's to enforce
REMEDY = "install g++ 12 or newer (Debian, Ubuntu: `apt install g++`), or name a compiler in CXX"
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Compiler:
    """A compiler that works, as its command and what it says it is. ``is_gcc``: the check build knows its hooks."""

    command: tuple[str, ...]
    version: str
    is_gcc: bool


@dataclass(frozen=True)
class Outcome:
    """How a process ended; ``errors`` is what it wrote to stderr."""

    code: int
    output: str
    errors: str


@lru_cache(maxsize=1)
def find_compiler() -> Compiler:
    """The compiler in ``CXX``, or else the first that works of g++, its numbered versions, and clang++.

    Raises:
        UsageError: when there is none; says what to install.
    """
    if given := os.environ.get("CXX"):
        compiler = _identify(tuple(shlex.split(given)))
        if compiler is None:
            raise UsageError(f"CXX={given!r} is no C++ compiler that the host device can use; {REMEDY}")
        return compiler
    names = ["g++", *(f"g++-{n}" for n in range(20, MINIMUM_GCC - 1, -1)), "clang++"]
    for name in names:
        if shutil.which(name) and (compiler := _identify((name,))):
            return compiler
    raise UsageError(f"the host device has no C++ compiler; {REMEDY}")


def run(command: Sequence[str | os.PathLike[str]], text: str | None = None) -> Outcome:
    """Run ``command`` to its end with ``text`` as its stdin; it is killed when this process dies."""
    environment = {**os.environ, "LC_ALL": "C"}  # messages in ASCII, alike everywhere
    done = subprocess.run(
        [os.fspath(word) for word in command],
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        preexec_fn=_bind_to_parent,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def _bind_to_parent() -> None:
    """In the child, before the compiler starts. The limit also ends the processes that the driver of g++ starts."""
    pr_set_pdeathsig = 1
    _libc.prctl(pr_set_pdeathsig, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))


def _identify(command: tuple[str, ...]) -> Compiler | None:
    """The compiler behind ``command``, or None where it is not there or too old."""
    try:
        outcome = run([*command, "-dM", "-E", "-x", "c++", "-"], text="")
    except OSError:
        return None
    macros = dict(re.findall(r"^#define (\w+) (.*)$", outcome.output, re.MULTILINE))
    if outcome.code != 0 or "__GNUC__" not in macros:
        return None
    is_gcc = "__clang__" not in macros
    if is_gcc and int(macros["__GNUC__"]) < MINIMUM_GCC:
        return None
    name = "g++" if is_gcc else "clang++"
    return Compiler(command, f"{name} {macros.get('__VERSION__', '').strip(chr(34))}", is_gcc)
