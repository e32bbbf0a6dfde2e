"""Finds the C++ compiler of the host device, and runs it so that it ends with this process."""

import ctypes
import importlib.util
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from ...core.errors import UsageError
from ...system.temporary import temporary_folder

MINIMUM_GCC = 12  # the first version with _Float16 on x86-64 in C++
REMEDY = (
    "install g++ 12 or newer (Debian, Ubuntu: `apt install g++`), or `pip install ziglang`, or name a compiler in CXX"
)

# A compiler starts other processes, which outlive it when it is killed. So it runs in a process group under a shell.
# If this process dies, the kernel sends TERM to the shell, which then kills the group. `exec 3<&0`: a shell does not
# pass stdin to background commands.
SUPERVISED = ("/bin/sh", "-c", 'exec 3<&0; trap "kill -9 0" TERM; "$@" <&3 3<&- & wait $!', "compiler")
# The caller enforces the deadline; these limits bound the compiler's use of the machine until then.
CPU_LIMIT_S = 600
MEMORY_LIMIT_BYTES = 4 * 1024**3  # 20 times the need of a variant; runaway templates would use all memory
_libc = ctypes.CDLL(None)
# A compiler's message that KILL or TERM ended one of its processes; these signals say nothing about the source.
KILLED = re.compile(
    r"\b(?:Killed|Terminated) signal terminated program|terminated with signal (?:9|15)\b"
    r"|unable to execute command: (?:Killed|Terminated)"
)
STEERING = ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")  # variables


@dataclass(frozen=True)
class Compiler:
    """A working compiler: its command and version text. ``is_gcc``: the check build detects all kinds of errors.

    clang++ (ziglang contains it) does not detect misaligned addresses where a whole vector is copied.
    """

    command: tuple[str, ...]
    version: str
    is_gcc: bool

    @property
    def key(self) -> str:
        """Returns what affects the output besides options: the program, flags in CXX, environment variables."""
        program = os.path.realpath(shutil.which(self.command[0]) or self.command[0])
        return "\n".join((self.version, program, *self.command[1:], *(os.environ.get(name, "") for name in STEERING)))


@dataclass(frozen=True)
class ToolResult:
    """The end of a process; ``code`` is negative for a signal, ``errors`` is its output on stderr."""

    code: int
    output: str
    errors: str


@lru_cache(maxsize=1)
def find_compiler() -> Compiler:
    """Returns the compiler in ``CXX``, or the first working one of g++ (any version), clang++ and PyPI's ziglang.

    Raises:
        UsageError: if there is none; the message says what to install.
    """
    if given := os.environ.get("CXX"):
        compiler = _identify(tuple(shlex.split(given)))
        if compiler is None:
            raise UsageError(f"CXX={given!r} is not a C++ compiler that the host device can use; {REMEDY}")
        return compiler
    names = ["g++", *(f"g++-{n}" for n in range(20, MINIMUM_GCC - 1, -1)), "clang++"]
    for name in names:
        if shutil.which(name) and (compiler := _identify((name,))):
            return compiler
    if importlib.util.find_spec("ziglang") and (compiler := _identify((sys.executable, "-m", "ziglang", "c++"))):
        return compiler
    raise UsageError(f"the host device has no C++ compiler; {REMEDY}")


def run_tool(command: Sequence[str | os.PathLike[str]], text: str | None = None) -> ToolResult:
    """Runs ``command`` with ``text`` as stdin; if this process dies, the command and its processes are killed.

    Raises:
        MemoryError: when there is none for a process.
    """
    parent = os.getpid()
    with temporary_folder() as folder, _memory_errors():
        done = subprocess.run(
            [*SUPERVISED, *(os.fspath(word) for word in command)],
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            # Messages are in ASCII in every locale. A killed compiler leaves its files in a folder that is removed.
            env={**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)},
            start_new_session=True,
            preexec_fn=lambda: _bind_to(parent),
        )
    code = 128 - done.returncode if done.returncode > 128 else done.returncode  # a shell reports signal n as 128 + n
    return ToolResult(code, done.stdout, done.stderr)


@contextmanager
def _memory_errors() -> Iterator[None]:
    try:
        yield
    except subprocess.SubprocessError as error:  # the child could not run its first lines
        raise MemoryError("a compiler cannot be started") from error


def run_compiler(command: Sequence[str | os.PathLike[str]], text: str | None = None) -> ToolResult:
    """Calls ``run_tool``, and once more if a signal killed the compiler, which says nothing about the source."""
    outcome = run_tool(command, text)
    return run_tool(command, text) if was_killed(outcome) else outcome


def was_killed(outcome: ToolResult) -> bool:
    """Returns whether an external signal ended the compiler or a process that it started."""
    if outcome.code in (-signal.SIGKILL, -signal.SIGTERM):
        return True
    return outcome.code != 0 and KILLED.search(outcome.errors) is not None


def _bind_to(parent: int) -> None:
    """Runs in the child before the shell starts."""
    pr_set_pdeathsig = 1
    _libc.prctl(pr_set_pdeathsig, signal.SIGTERM)
    if os.getppid() != parent:  # the parent died before the signal was requested
        os._exit(1)
    for limited, most in ((resource.RLIMIT_CPU, CPU_LIMIT_S), (resource.RLIMIT_AS, MEMORY_LIMIT_BYTES)):
        allowed = resource.getrlimit(limited)[1]  # `ulimit` sets it, and nobody raises it
        most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(limited, (most, most))


def _identify(command: tuple[str, ...]) -> Compiler | None:
    """Returns the compiler behind ``command``, or None if it is missing or too old."""
    outcome = run_tool([*command, "-dM", "-E", "-x", "c++", "-"], text="")
    macros = dict(re.findall(r"^#define (\w+) (.*)$", outcome.output, re.MULTILINE))
    if outcome.code != 0 or "__GNUC__" not in macros:
        return None
    is_gcc = "__clang__" not in macros
    if is_gcc and int(macros["__GNUC__"]) < MINIMUM_GCC:
        return None
    name = "g++" if is_gcc else "clang++"
    return Compiler(command, f"{name} {macros.get('__VERSION__', '').strip(chr(34))}", is_gcc)
