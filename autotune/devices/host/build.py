"""Compiles for the host: the runtime once, the shim's precompiled header per build, a library per variant.

Each file in the cache is named by a hash of its inputs, and is written as a whole, so that a process that is killed
leaves no broken file. A cached file is used only if its content is intact (kept.py).
"""

import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...core.definition import Device
from ...core.derived import arguments_in
from ...core.digest import digest
from ...core.errors import Status, TrialFailure, UsageError, clipped
from ...core.kept import facts_of, keep, take
from ...core.launch import last_name
from ...rendering.render import Variant
from ...runtime.cubin import check_constants
from ...runtime.elf import OBJECT, WRITABLE, ZEROS, sections, symbols
from ...runtime.nvrtc import Figures, cudart_version, own_headers
from ...system.cache import cache_dir
from ...system.temporary import temporary_folder
from ..base import Binary
from .own_files import is_whole, keep_compiled, own_library, text_digest
from .refusals import needs_gpu
from .toolchain import Compiler, ToolResult, find_compiler, run_compiler, was_killed
from .translation import FOLDERS, HEADERS, INCLUDE, KERNEL, SHIM, own_name, symbol_of, translate

HERE = Path(__file__).resolve().parent
RUNTIME = HERE / "runtime"
STATEMENT_END = re.compile(r"[;{}()]")
STATIC = re.compile(r"\bstatic\b[^=]*")
WORD = re.compile(r"[A-Za-z_]\w*")
EXPORT = re.compile(r"export of \w+:(?P<number>\d+):(?:\d+:)? (?:fatal )?error: (?P<why>.*)")
MAX_STATIC_SHARED_BYTES = 48 * 1024  # CUDA's limit; more must be dynamic
N_ERRORS_TOLD = 4

ARCHITECTURE = {"__CUDA_ARCH__": 900}  # sources are read as for it, so that they are compiled as they are read
COMMON_FLAGS = (
    "-std=c++17",
    "-fPIC",
    "-w",
    "-fno-strict-aliasing",
    "-fno-threadsafe-statics",
    "-fno-math-errno",
    "-ffp-contract=off",  # a GPU may contract multiply-adds; tolerances allow for it
)
BUILD_FLAGS = {
    # Every load, store and undefined operation calls a hook of the runtime. Shifts of negative numbers are allowed:
    # CUDA and C++20 define them. gdwarf-4: binutils 2.40 names the wrong file under DWARF 5. No variables are tracked:
    # this takes up to half of a compile, and only line numbers are used. Og would compile faster, but then a structure
    # in shared memory that is passed by value is read without a hook.
    "check": (
        "-O1",
        "-g1",
        "-gdwarf-4",
        "-fno-var-tracking",
        "-DCUDA_HOST_CHECK",
        "-fsanitize=thread",
        "-fsanitize=undefined",
        "-fno-sanitize=vptr,return,shift-base",
    ),
    "plain": ("-O1",),
}
# The process has loaded the C++ library with the runtime. To read its symbols would be most of the work of a link.
LINKED, LIBRARIES = ("-shared", "-nodefaultlibs"), ("-lm", "-lgcc", "-lc")


@dataclass(frozen=True)
class Variable:
    """A variable of a compiled library.

    ``kind``: s for shared memory, v for a variable of the module, g for the compiler's guard of a class object.
    """

    name: str
    offset: int  # distance from the load address of the library
    n_bytes: int
    kind: str
    writable: bool = True  # whether its memory may be written


@dataclass(frozen=True)
class BuildFacts:
    """The facts that are stored beside a compiled library."""

    variables: tuple[Variable, ...]
    compile_s: float

    @classmethod
    def of(cls, stored: dict[str, Any]) -> "BuildFacts":
        """Returns the facts from the output of ``asdict``."""
        return cls(tuple(Variable(**variable) for variable in stored["variables"]), stored["compile_s"])

    @property
    def constant_bytes(self) -> dict[str, int]:
        """Returns the variables that a launch can fill, name -> bytes."""
        return {v.name: v.n_bytes for v in self.variables if v.kind == "v" and v.writable}

    @property
    def shared_bytes(self) -> int:
        return sum(variable.n_bytes for variable in self.variables if variable.kind == "s")


def compile_variant(variant: Variant, device: Device, builds: Sequence[str] | None = None) -> Binary:
    """Returns the libraries of ``variant``, compiled or found in the cache.

    Raises:
        TrialFailure: compile_failed with the template's lines, resources, or skipped if the source needs a GPU.
        UsageError: if there is no compiler.
    """
    compiler = find_compiler()
    text = translate(variant)
    key = text_digest(text, compiler.key, package_fingerprint())
    included = {build: _included(compiler, build, text, variant) for build in builds or tuple(BUILD_FLAGS)}
    files, facts, found = {}, [], []
    for build, headers in included.items():
        path = cache_dir("host") / f"{key}-{text_digest(*flags(build), headers)[:8]}.{build}.so"
        taken = take(path)
        found.append(taken is not None)
        facts.append(BuildFacts.of(taken[1]) if taken else _compile(compiler, build, text, path, variant))
        files[build] = path
    check_constants(variant.kernel, dict(variant.constants), facts[0].constant_bytes)
    shared_bytes = max(fact.shared_bytes for fact in facts)
    if shared_bytes > MAX_STATIC_SHARED_BYTES:
        raise TrialFailure(
            Status.RESOURCES,
            f"{variant.name}: {shared_bytes} bytes of static shared memory; CUDA allows {MAX_STATIC_SHARED_BYTES}, "
            "and more only as `extern __shared__`",
        )
    return Binary(
        variant=variant.name,
        kernel=variant.kernel,
        key=text_digest(key, *included.values()) if any(included.values()) else key,
        code=digest(files.get("plain", path).read_bytes()),
        files=files,
        shared_bytes=shared_bytes,
        compile_s=sum(fact.compile_s for fact in facts),
        cached=all(found),
        parameters=arguments_in(variant.source, last_name(variant.kernel)) or (),
        also={function: Figures(shared_bytes=shared_bytes) for function in variant.also},
        symbols={function: symbol_of(function) for function in (variant.kernel, *variant.also)},
    )


def flags(build: str) -> tuple[str, ...]:
    """Returns the compiler's options for a build.

    Raises:
        UsageError: for a build that does not exist.
    """
    if build not in BUILD_FLAGS:
        raise UsageError(f"{build!r} is not a build of the host device (has {', '.join(BUILD_FLAGS)})")
    known = {"CUDART_VERSION": cudart_version(), **ARCHITECTURE}
    return (*COMMON_FLAGS, *(f"-D{name}={value}" for name, value in known.items()), *BUILD_FLAGS[build])


def read_facts(library: Path) -> BuildFacts:
    """Returns the facts that were stored beside ``library`` when it was compiled.

    Raises:
        FileNotFoundError: if their file is missing or damaged.
    """
    stored = facts_of(library)
    if stored is None:
        raise FileNotFoundError(f"{library}: what was known of it is gone from the cache, or damaged")
    return BuildFacts.of(stored)


# ---------------------------------------------------------------------- shared libraries and headers
def runtime_library() -> Path:
    """Returns the library with the scheduler, the barriers and the checker.

    Raises:
        UsageError: if the compiler cannot make it.
    """
    options = ("-std=c++17", "-O2", "-fPIC", "-w", "-shared", "-x", "c++")
    sources = sorted(RUNTIME.glob("*.cpp"))
    text = "".join(f'#include "{source}"\n' for source in sources)  # a single unit compiles three times faster
    return own_library("runtime", options, text, package_fingerprint())


def shim_header(build: str) -> Path:
    """Returns the header to include before a kernel; its precompiled form lies beside it."""
    compiler = find_compiler()
    name = f"shim-{text_digest(compiler.key, package_fingerprint(), *flags(build))}"
    header = cache_dir("host") / f"{name}.hpp"
    precompiled = header.with_name(f"{header.name}.gch")
    if not is_whole(header):
        keep(header, f'#include "{SHIM / "cuda.hpp"}"\n'.encode(), {})
    if not is_whole(precompiled):
        keep_compiled([*compiler.command, *flags(build), "-x", "c++-header", header], None, precompiled)
    return header


@lru_cache(maxsize=1)
def package_fingerprint() -> str:
    """Returns a hash of all C++ files of this device."""
    files = sorted([*SHIM.rglob("*.hpp"), *HEADERS.rglob("*.h"), *RUNTIME.glob("*.hpp"), *RUNTIME.glob("*.cpp")])
    return text_digest(*(f"{file.name}\n{file.read_text()}" for file in files), *own_headers().values())


# ---------------------------------------------------------------------- compiling one variant
INCLUDES = re.compile(r"(?:#|%:)[^\n]*\b(?:include\w*|import|embed)\b|\b__has_(?:include|embed)")


def _included(compiler: Compiler, build: str, text: str, variant: Variant) -> str:
    """Returns a digest of the preprocessed source if it includes other headers than those of the shim, else "".

    So the content of the headers counts, whichever folder or macro selects them.
    """
    foreign = INCLUDE.sub(lambda found: "" if (HEADERS / found[2]).is_file() else found[0], text)
    if not INCLUDES.search(re.sub(r"\\[ \t]*\n", "", foreign)):
        return ""
    given = (*FOLDERS, "-include", SHIM / "cuda.hpp", "-x", "c++", "-E", "-P", "-")
    outcome = run_compiler([*compiler.command, *flags(build), *given], text)
    if outcome.code != 0:
        raise _failed(outcome, compiler, variant)
    return text_digest(outcome.output)


UNDEFINED = re.compile(r"undefined [^\n]*")


def _compile(compiler: Compiler, build: str, text: str, path: Path, variant: Variant) -> BuildFacts:
    header = shim_header(build)
    start = time.perf_counter()
    with temporary_folder() as folder:  # the cache may be deleted meanwhile
        unlinked, library = folder / "unlinked.o", folder / "linked.so"
        given = (*FOLDERS, "-include", header, "-x", "c++", "-c", "-", "-o", unlinked)
        outcome = run_compiler([*compiler.command, *flags(build), *given], text)
        if outcome.code == 0:
            # Linked separately: -fsanitize would add the libraries that the runtime replaces.
            outcome = run_compiler([*compiler.command, *LINKED, unlinked, *LIBRARIES, "-o", library])
        if outcome.code != 0:
            raise _failed(outcome, compiler, variant)
        facts = BuildFacts(_variables(library, text), time.perf_counter() - start)
        keep(path, library.read_bytes(), asdict(facts))
    return facts


def _failed(outcome: ToolResult, compiler: Compiler, variant: Variant) -> TrialFailure:
    """Returns the failure: skipped for a source that needs a GPU, compile_failed for others."""
    if not was_killed(outcome) and (why := needs_gpu(outcome.errors, variant.source)):
        return TrialFailure(Status.SKIPPED, f"{variant.name}: {why}")
    return TrialFailure(Status.COMPILE_FAILED, f"{variant.name}: {_explain(outcome, compiler, variant)}")


def _explain(outcome: ToolResult, compiler: Compiler, variant: Variant) -> str:
    """Returns the first errors, which name the template's lines."""
    lines = [line for line in outcome.errors.splitlines() if re.search(r"\berror: |undefined reference", line)]
    lines.sort(key=lambda line: ("#error" not in line, KERNEL in line))  # their consequences come after them
    if lacking := {own_name(found) for found in UNDEFINED.findall(outcome.errors)} - {""}:
        return f"the source declares {', '.join(sorted(lacking))} and does not define it"
    if export := EXPORT.match("\n".join(lines)):
        function = (variant.kernel, *variant.also)[int(export["number"]) - 1]
        return f"the source defines no __global__ function called {function} ({export['why']})"
    if lines and not was_killed(outcome):
        return clipped("\n".join(lines[:N_ERRORS_TOLD]))
    how = f"signal {-outcome.code}" if outcome.code < 0 else f"exit code {outcome.code}"
    again = ", twice, as something killed it" if was_killed(outcome) else ""
    last = "\n".join(outcome.errors.splitlines()[-N_ERRORS_TOLD:])
    return f"{' '.join(compiler.command)} ended with {how}{again}; the last it wrote was: {clipped(last) or 'nothing'}"


def _variables(library: Path, text: str) -> tuple[Variable, ...]:
    """Returns the variables that the kernel's source declares: local ones are shared, others belong to the module.

    A local variable that is ``static`` and not ``__shared__`` belongs to the module, too.

    Names are mangled: _ZZ<function>E<length><name> for a local variable, else
    _ZN9cuda_user12_GLOBAL__N_1<length><name>E, with an L before the length if it is static.
    """
    found = []
    places = sections(library.read_bytes())
    statics = _statics(text)
    for symbol in symbols(places):
        if symbol.kind != OBJECT or not 0 < symbol.section < len(places) or "9cuda_user" not in symbol.name:
            continue
        writable = bool(places[symbol.section].flags & WRITABLE)
        if symbol.name.startswith("_ZGV"):
            found.append(Variable(_last_name(symbol.name), symbol.offset, symbol.n_bytes, "g"))
        elif symbol.name.startswith("_ZN"):
            found.append(Variable(own_name(symbol.name) or symbol.name, symbol.offset, symbol.n_bytes, "v", writable))
        elif symbol.name.startswith("_ZZ") and writable:
            name = _last_name(symbol.name)
            is_shared = places[symbol.section].kind == ZEROS and name not in statics
            found.append(Variable(name, symbol.offset, symbol.n_bytes, "s" if is_shared else "v"))
    return tuple(found)


def _statics(text: str) -> set[str]:
    """Returns the words of statements with ``static`` and without ``__shared__``, up to the initial value."""
    found = set[str]()
    for statement in STATEMENT_END.split(text):  # one by one, since a source has long runs of blanks
        said = STATIC.search(statement)
        if said is not None and "__shared__" not in statement[: said.end()]:
            found.update(WORD.findall(statement, 0, said.end()))
    return found


def _last_name(symbol: str) -> str:
    """Returns the last <length><name> of a mangled symbol."""
    for match in reversed(list(re.finditer(r"(?<!\d)\d+", symbol))):
        name = symbol[match.end() : match.end() + int(match[0])]
        if len(name) == int(match[0]) and re.fullmatch(r"[A-Za-z_]\w*", name):
            return name
    return symbol
