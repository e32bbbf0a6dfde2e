"""Compiling for the host: the runtime once, the shim's precompiled header once a build, a library for each variant.

Everything lands in the cache under a name that is the hash of all it depends on, and is put there whole, so that a
process killed at any moment leaves nothing broken.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from ...cache import cache_dir, used
from ...definition import Device
from ...errors import TrialFailure, UsageError
from ...render import Variant
from ..base import Binary
from . import elf
from .toolchain import Compiler, Outcome, find_compiler, run

HERE = Path(__file__).resolve().parent
SHIM = HERE / "cuda"
RUNTIME = HERE / "runtime"
MAX_STATIC_SHARED_BYTES = 48 * 1024  # CUDA's limit; more must be dynamic
N_ERRORS_TOLD = 4

COMMON_FLAGS = (
    "-std=c++17",
    "-fPIC",
    "-w",
    "-fno-strict-aliasing",
    "-fno-threadsafe-statics",
    "-fno-math-errno",
    "-ffp-contract=off",  # what a GPU contracts is its own affair; tolerances allow for it
)
BUILD_FLAGS = {
    # Every load, store and undefined operation calls a hook of the runtime. Shifts of negative numbers are left alone:
    # CUDA and C++20 define them. gdwarf-4: binutils 2.40 names the wrong file under DWARF 5.
    "check": (
        "-O1",
        "-g1",
        "-gdwarf-4",
        "-DCUDA_HOST_CHECK",
        "-fsanitize=thread",
        "-fsanitize=undefined",
        "-fno-sanitize=vptr,return,shift-base",
    ),
    "plain": ("-O1",),
}


@dataclass(frozen=True)
class Variable:
    """A variable of a compiled library. ``kind``: s for shared memory, v for a variable of the module."""

    name: str
    offset: int  # from where the library is loaded
    n_bytes: int
    kind: str


@dataclass(frozen=True)
class Facts:
    """What is kept beside a compiled library."""

    variables: tuple[Variable, ...]
    compile_s: float

    @property
    def shared_bytes(self) -> int:
        return sum(variable.n_bytes for variable in self.variables if variable.kind == "s")


def compile_variant(variant: Variant, device: Device, builds: Sequence[str] | None = None) -> Binary:
    """The libraries of ``variant``, compiled or found in the cache.

    Raises:
        TrialFailure: compile_failed with the template's lines, or resources.
        UsageError: when there is no compiler.
    """
    compiler = find_compiler()
    text = translate(variant)
    key = _digest(text, compiler.version, package_fingerprint())
    files, facts, found = {}, [], []
    for build in builds or tuple(BUILD_FLAGS):
        path = cache_dir("host") / f"{key}-{_digest(*flags(build))[:8]}.{build}.so"
        found.append(path.is_file() and _facts_path(path).is_file())
        if found[-1]:
            used(path, _facts_path(path))
        else:
            _compile(compiler, build, text, path, variant)
        files[build] = path
        facts.append(read_facts(path))
    shared_bytes = max(fact.shared_bytes for fact in facts)
    if shared_bytes > MAX_STATIC_SHARED_BYTES:
        raise TrialFailure(
            "resources",
            f"{variant.name}: {shared_bytes} bytes of static shared memory; CUDA allows {MAX_STATIC_SHARED_BYTES}, "
            "and more only as `extern __shared__`",
        )
    return Binary(
        variant=variant.name,
        kernel=variant.kernel,
        key=key,
        files=files,
        shared_bytes=shared_bytes,
        compile_s=sum(fact.compile_s for fact in facts),
        cached=all(found),
    )


def flags(build: str) -> tuple[str, ...]:
    """The compiler's options for a build.

    Raises:
        UsageError: for a build that does not exist.
    """
    if build not in BUILD_FLAGS:
        raise UsageError(f"{build!r} is not a build of the host device (has {', '.join(BUILD_FLAGS)})")
    return (*COMMON_FLAGS, *BUILD_FLAGS[build])


def read_facts(library: Path) -> Facts:
    """What was written beside ``library`` when it was compiled."""
    stored = json.loads(_facts_path(library).read_text())
    return Facts(tuple(Variable(**variable) for variable in stored["variables"]), stored["compile_s"])


# ---------------------------------------------------------------------- CUDA -> C++
DYNAMIC_SHARED = re.compile(
    r"\bextern\s+__shared__\s+(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?([^;]*?)\s*\b(\w+)\s*\[\s*\]\s*;"
)
CUDA_INCLUDE = re.compile(r"^([ \t]*)#[ \t]*include[ \t]*<(?:cuda_\w+|mma|vector_types)\.h>", re.MULTILINE)


def translate(variant: Variant) -> str:
    """The C++ that is compiled: the source in a namespace, with the three things that no macro can spell.

    Lines stay where they are. ``extern "C"`` goes, because a kernel called ``pipe`` would be bound to the C library's.
    """
    source = DYNAMIC_SHARED.sub(r"CUDA_HOST_DYNAMIC_SHARED(\1, \2);", variant.numbered)
    source = re.sub(r'\bextern\s*"C"', 'extern "C++"', source)
    source = CUDA_INCLUDE.sub(r"\1", source)
    return (
        f'namespace cuda_user {{ namespace {{\n#line 1 "{variant.kernel}.cu"\n{source}\n}} }}\n'
        f'#line 1 "export of {variant.kernel}"\nCUDA_HOST_EXPORT({variant.kernel})\n'
    )


# ---------------------------------------------------------------------- what is compiled once
def runtime_library() -> Path:
    """The scheduler, barriers and checker, as a library.

    Raises:
        UsageError: when the compiler cannot make it.
    """
    compiler = find_compiler()
    options = ("-std=c++17", "-O2", "-fPIC", "-w", "-shared")
    path = cache_dir("host") / f"runtime-{_digest(compiler.version, package_fingerprint(), *options)}.so"
    if path.is_file():
        used(path)
    else:
        sources = sorted(RUNTIME.glob("*.cpp"))
        text = "".join(f'#include "{source}"\n' for source in sources)  # one unit compiles three times faster
        _publish_compiled([*compiler.command, *options, "-x", "c++", "-"], text, path)
    return path


def shim_header(build: str) -> Path:
    """The header to include before a kernel; beside it lies its precompiled form, which the compiler prefers."""
    compiler = find_compiler()
    folder = cache_dir("host") / f"shim-{_digest(compiler.version, package_fingerprint(), *flags(build))}"
    header = folder / "cuda.hpp"
    precompiled = folder / "cuda.hpp.gch"
    if not precompiled.is_file():
        folder.mkdir(exist_ok=True)
        _publish_text(header, f'#include "{SHIM / "cuda.hpp"}"\n')
        _publish_compiled([*compiler.command, *flags(build), "-x", "c++-header", header], None, precompiled)
    return header


@lru_cache(maxsize=1)
def package_fingerprint() -> str:
    """Changes with any C++ file of this device."""
    files = sorted([*SHIM.glob("*.hpp"), *RUNTIME.glob("*.hpp"), *RUNTIME.glob("*.cpp")])
    return _digest(*(f"{file.name}\n{file.read_text()}" for file in files))


# ---------------------------------------------------------------------- compiling one variant
def _compile(compiler: Compiler, build: str, text: str, path: Path, variant: Variant) -> None:
    header = shim_header(build)
    start = time.perf_counter()
    temporary = _temporary(path)
    unlinked = temporary.with_suffix(".o")
    # Compiled and linked apart: at linking, -fsanitize would bring in the libraries that the runtime stands in for.
    compiling: list[str | Path] = [
        *compiler.command,
        *flags(build),
        "-include",
        header,
        "-x",
        "c++",
        "-c",
        "-",
        "-o",
        unlinked,
    ]
    linking: list[str | Path] = [*compiler.command, "-O2", "-shared", unlinked, "-o", temporary]
    try:
        for command, given in ((compiling, text), (linking, None)):
            outcome = run(command, given)
            if outcome.code != 0:
                raise TrialFailure("compile_failed", f"{variant.name}: {_explain(outcome, compiler, variant)}")
        facts = Facts(_variables(temporary), time.perf_counter() - start)
        _publish_text(_facts_path(path), json.dumps(asdict(facts)))
        os.replace(temporary, path)
    finally:
        unlinked.unlink(missing_ok=True)
        temporary.unlink(missing_ok=True)


def _explain(outcome: Outcome, compiler: Compiler, variant: Variant) -> str:
    """The first errors, which name the template's lines."""
    if not re.search(rf"__global__[^;{{]*\b{variant.kernel}\s*\(", variant.source):
        return f"the source defines no __global__ function called {variant.kernel}"
    lines = [line for line in outcome.errors.splitlines() if re.search(r"\berror: |undefined reference", line)]
    if lines:
        return "\n".join(lines[:N_ERRORS_TOLD])
    how = f"signal {-outcome.code}" if outcome.code < 0 else f"exit code {outcome.code}"
    last = "\n".join(outcome.errors.splitlines()[-N_ERRORS_TOLD:])
    return f"{' '.join(compiler.command)} ended with {how}; the last it wrote was: {last or 'nothing'}"


def _variables(library: Path) -> tuple[Variable, ...]:
    """The variables that the kernel's source declares: function-local ones are shared memory, others the module's.

    Names are mangled: _ZZ<function>E<length><name> for a local one, _ZN9cuda_user12_GLOBAL__N_1L<length><name>E else.
    """
    found = []
    for symbol in elf.variables(library):
        if "9cuda_user" not in symbol.name:
            continue
        if symbol.name.startswith("_ZZ") and symbol.starts_zero:
            found.append(Variable(_last_name(symbol.name), symbol.offset, symbol.n_bytes, "s"))
        elif symbol.name.startswith("_ZN"):
            found.append(Variable(_last_name(symbol.name.removesuffix("E")), symbol.offset, symbol.n_bytes, "v"))
    return tuple(found)


def _last_name(symbol: str) -> str:
    """The last <length><name> of a mangled symbol."""
    for match in reversed(list(re.finditer(r"(?<!\d)\d+", symbol))):
        name = symbol[match.end() : match.end() + int(match[0])]
        if len(name) == int(match[0]) and re.fullmatch(r"[A-Za-z_]\w*", name):
            return name
    return symbol


# ---------------------------------------------------------------------- files that appear whole
def _publish_compiled(command: Sequence[str | Path], text: str | None, path: Path) -> None:
    temporary = _temporary(path)
    try:
        outcome = run([*command, "-o", temporary], text)
        if outcome.code != 0:
            raise UsageError(f"{command[0]} cannot compile the host device's own files: {outcome.errors[:2000]}")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _publish_text(path: Path, text: str) -> None:
    temporary = _temporary(path)
    temporary.write_text(text)
    os.replace(temporary, path)


def _temporary(path: Path) -> Path:
    return path.with_name(f"{path.stem}.{os.getpid()}{path.suffix}")


def _facts_path(library: Path) -> Path:
    return library.with_suffix(".json")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
