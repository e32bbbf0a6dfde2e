"""Compiles CUDA source to a cubin with NVRTC, which needs no GPU, and parses registers and spills from ptxas.

The tuner and the packages that ``autotune emit`` writes both compile with this module, so the measured code is the code
that runs. It emits SASS for one architecture, never PTX, and never uses ``-ftz=true``.
"""

import ctypes
import hashlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..core.errors import Status, TrialFailure, clipped
from ..core.kept import keep, take
from ..core.launch import last_name

# -lineinfo lets profilers and sanitizers name source lines; the machine code is the same without it.
OPTIONS = ("--std=c++17", "-lineinfo")  # recorded with every binary; CuPy would add -ftz=true
REMEDY = 'install CuPy and NVRTC: pip install "cupy-cuda13x>=14" "cuda-toolkit[nvrtc,cudart]==13.*"'
N_ERRORS_TOLD = 3
HEADERS = Path(__file__).with_name("headers")  # headers of C and C++, with the parts that device code may call
TOOLKIT = Path("/usr/local/cuda/include")
INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<([^>\n]+)>", re.MULTILINE)
NAMES = "__nv_name_map"  # the file in which NVRTC reports name expressions that it cannot resolve
UNKNOWN = re.compile(rf"{NAMES}\(\d+\): error: (?P<why>[^\n]*)\n\s*#pragma nv_mangled_name (?P<name>[^\n]*)")


@dataclass(frozen=True)
class Figures:
    """The resources of one ``__global__`` function that ptxas reports."""

    registers: int | None = None  # registers of one thread
    spill_bytes: int | None = None  # stores and loads, for one thread
    shared_bytes: int | None = None  # static, for one block
    stack_bytes: int | None = None  # local memory frame of one thread


@dataclass(frozen=True)
class Cubin:
    """A compiled cubin, with the resources of its kernel, and in ``also`` those of other functions."""

    data: bytes = field(repr=False)
    arch: str
    key: str  # content address: source, options, architecture, compiler
    registers: int | None = None  # registers of one thread
    spill_bytes: int | None = None  # stores and loads, for one thread
    shared_bytes: int | None = None  # static, for one block
    stack_bytes: int | None = None  # local memory frame of one thread
    compile_s: float = 0.0  # duration of its compilation
    cached: bool = False  # whether it came from the cache
    path: Path | None = None  # its file, if it is in the cache
    log: str = field(default="", repr=False)
    also: Mapping[str, Figures] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)  # function -> symbol, where they differ

    def symbol(self, function: str) -> str:
        """Returns the symbol in the cubin of a function, a name expression."""
        return self.symbols.get(function, function)

    def of(self, function: str) -> Figures:
        """Returns the resources of a function in ``also``, or else of the kernel."""
        own = Figures(self.registers, self.spill_bytes, self.shared_bytes, self.stack_bytes)
        return self.also.get(function, own)


def available() -> str | None:
    """Returns None if this machine can compile, or else why not and what to install."""
    try:
        version()
    except TrialFailure as failure:
        return failure.message
    return None


@lru_cache(maxsize=1)
def version() -> str:
    """Returns the version of the NVRTC in use with its patch level, such as ``13.0.88``.

    Raises:
        TrialFailure: compile_failed, when NVRTC is missing; the message says what to install.
    """
    nvrtc = _library()
    try:
        major, minor = nvrtc.getVersion()
        program = nvrtc.createProgram("", "version.cu", (), ())
        try:  # only the head of a PTX file names the patch level
            nvrtc.compileProgram(program, ())
            found = re.search(rb"release [\d.]+, V([\d.]+)", nvrtc.getPTX(program))
        finally:
            nvrtc.destroyProgram(program)
    except Exception as error:  # the error for a missing library depends on how it is searched for
        raise TrialFailure(Status.COMPILE_FAILED, f"NVRTC does not work ({error}); {REMEDY}") from error
    return found[1].decode() if found else f"{major}.{minor}"


def described(arch: str) -> str:
    """Returns the compiler's name, version and options for ``arch``, in the form of records. Raises as ``version``."""
    return f"NVRTC {version()} {arch} {' '.join(OPTIONS)}"


@lru_cache(maxsize=1)
def cudart_version() -> int:
    """Returns NVRTC's value of CUDART_VERSION, such as 13050 for 13.5; 13000 without NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    try:  # this finds what CuPy does; CuPy itself takes a quarter of a second to import
        from cuda.pathfinder import load_nvidia_dynamic_lib

        nvrtc = ctypes.CDLL(load_nvidia_dynamic_lib("nvrtc").abs_path)
        nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return 1000 * major.value + 10 * minor.value
    except Exception:  # without it, or where it finds none
        return _version_by_cupy()


def _version_by_cupy() -> int:
    try:
        major, minor = _library().getVersion()
    except Exception:  # the error for a missing library depends on how it is searched for
        return 13000
    return 1000 * int(major) + 10 * int(minor)


def native_arch(arch: str) -> str:
    """Returns ``sm_90a`` for ``sm_90``: from Hopper on, this name enables chip-specific instructions (wgmma)."""
    number = re.fullmatch(r"sm_(\d+)", arch)
    return f"{arch}a" if number and int(number[1]) >= 90 else arch


def compile_cubin(
    source: str, name: str, arch: str, options: Sequence[str] = OPTIONS, also: Sequence[str] = ()
) -> Cubin:
    """Compiles ``source`` for ``arch`` (``sm_80``; ``sm_90`` includes wgmma). Returns it with the figures of ``name``.

    ``name``: the kernel as a name expression: ``scale``, or ``fir::scale<float, 64>``, which instantiates a template.
    ``also``: further ``__global__`` functions.

    Raises:
        TrialFailure: compile_failed with the first errors, or when there is no kernel of that name; resources when a
            block's static shared memory is more than the architecture has.
    """
    wanted = (name, *also)
    key = cubin_key(source, arch, options, wanted)
    arch = native_arch(arch)
    given = (f"-arch={arch}", "--ptxas-options=-v", *fresh_options(), *options, *include_options())
    start = time.perf_counter()
    data, log, lowered = _compiled(source, name, arch, given, wanted)
    lowered = {function: lowered.get(function, function) for function in wanted}
    for function, symbol in lowered.items():
        if f".text.{symbol}\0".encode() not in data:
            raise TrialFailure(Status.COMPILE_FAILED, f"the source defines no __global__ function called {function}")
    # CuPy drops the last byte of the file, so that byte is a zero
    cubin = Cubin(data + b"\0", arch, key, compile_s=time.perf_counter() - start, log=log)
    figures = {function: _resources(log, symbol) for function, symbol in lowered.items()}
    others = {other: Figures(**figures[other]) for other in also}
    symbols = {function: symbol for function, symbol in lowered.items() if symbol != function}
    return replace(cubin, **figures[name], also=others, symbols=symbols)


def _compiled(
    source: str, name: str, arch: str, given: Sequence[str], wanted: Sequence[str]
) -> tuple[bytes, str, dict[str, str]]:
    """Returns the cubin, the compiler's log, and name expression -> symbol.

    The mapping lacks a plain name that a device function shares: the symbol of an ``extern "C"`` kernel is its name.
    """
    nvrtc = _library()
    program = nvrtc.createProgram(source, f"{last_name(name)}.cu", (), ())
    try:
        for function in wanted:
            nvrtc.addNameExpression(program, function)
        try:
            nvrtc.compileProgram(program, given)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program).replace("\0", "")
            alike = {found["name"].strip() for found in UNKNOWN.finditer(log) if "overloaded" in found["why"]}
            asked = [function for function in wanted if not (function.isidentifier() and function in alike)]
            if len(asked) == len(wanted):
                raise _failure(name, arch, str(error), log) from error
        else:
            lowered = {function: nvrtc.getLoweredName(program, function) for function in wanted}
            return nvrtc.getCUBIN(program), nvrtc.getProgramLog(program).replace("\0", "").strip(), lowered
    finally:
        nvrtc.destroyProgram(program)
    return _compiled(source, name, arch, given, asked)


def cached_cubin(
    directory: str | os.PathLike[str],
    source: str,
    name: str,
    arch: str,
    options: Sequence[str] = OPTIONS,
    also: Sequence[str] = (),
) -> Cubin:
    """Returns the cubin in ``directory``; compiles it if it is missing. Its figures lie beside it as JSON.

    Several processes may need the same key at a time: each file appears whole.

    Raises:
        TrialFailure: as ``compile_cubin``.
        OSError: when the directory cannot be written.
    """
    folder = Path(directory)
    key = cubin_key(source, arch, options, (name, *also))
    path = folder / f"{last_name(name)}-{key}.cubin"
    if (found := take(path)) is not None:
        with suppress(TypeError, KeyError):  # another version wrote the facts
            facts = found[1]
            figures_of = {other: Figures(**facts["also"][other]) for other in also}
            return Cubin(data=found[0], cached=True, path=path, **{**facts, "also": figures_of})
    cubin = compile_cubin(source, name, arch, options, also)
    figures: dict[str, object] = asdict(replace(cubin, data=b""))
    del figures["data"], figures["cached"], figures["path"]
    keep(path, cubin.data, figures)
    return replace(cubin, path=path)


def cubin_key(source: str, arch: str, options: Sequence[str] = OPTIONS, functions: Sequence[str] = ()) -> str:
    """Returns the content address: 32 hex digits of a SHA-256 over everything that determines the machine code.

    Only functions that are name expressions contribute, since they select instances of templates.
    """
    instances = (function for function in functions if not function.isidentifier())
    named = own_headers().keys() & INCLUDED.findall(source)
    texts = own_headers().values() if named else ()  # they include each other
    parts = (version(), native_arch(arch), *options, *instances, *texts, source)
    digest = hashlib.sha256("\0".join(parts).encode())
    return digest.hexdigest()[:32]


@lru_cache(maxsize=1)
def fresh_options() -> tuple[str, ...]:
    """Returns options that bypass NVRTC 13's own cache, which would suppress the report of ptxas."""
    return ("--no-cache",) if int(version().split(".")[0]) >= 13 else ()


@lru_cache(maxsize=1)
def include_options() -> tuple[str, ...]:
    """Returns ``-I`` for HEADERS, and for existing folders of cuda_fp16.h and CCCL; no key depends on a path."""
    return tuple(f"-I{folder}" for folder in (HEADERS, *cuda_headers()))


def cuda_headers() -> tuple[Path, ...]:
    """Returns the installed folders of CUDA headers: those of wheels, then those of /usr/local/cuda.

    The latter contain headers that may be missing from wheels, such as ``crt/mma.h`` without the wheel of crt.
    """
    folders: list[str] = []
    with suppress(ImportError):
        from cuda.pathfinder import find_nvidia_header_directory

        for library in ("cudart", "cccl", "curand"):
            with suppress(Exception):  # an unknown library or a broken installation: its headers are missing
                folders += filter(None, [find_nvidia_header_directory(library)])
    toolkit = (folder for folder in (TOOLKIT, TOOLKIT / "cccl") if folder.is_dir())
    return (*map(Path, folders), *toolkit)


@lru_cache(maxsize=1)
def own_headers() -> dict[str, str]:
    """Returns name -> text of the C and C++ headers in HEADERS, such as ``stdint.h``."""
    files = (path for path in sorted(HEADERS.rglob("*")) if path.is_file())
    return {path.relative_to(HEADERS).as_posix(): path.read_text() for path in files}


def _library() -> Any:
    try:
        from cupy_backends.cuda.libs import nvrtc
    except ImportError as error:
        raise TrialFailure(
            Status.COMPILE_FAILED, f"CuPy, which brings NVRTC to Python, is missing; {REMEDY}"
        ) from error
    return nvrtc


def _resources(log: str, name: str) -> dict[str, Any]:
    """Parses the report of ptxas on the kernel ``name``: the lines after its ``Compiling entry function``."""
    for part in log.split("Compiling entry function ")[1:]:
        if part.startswith(f"'{name}'"):
            break
    else:
        return {}
    numbers = {what: sum(map(int, re.findall(pattern, part))) for what, pattern in _FIGURES.items()}
    return numbers if "registers" in part else {}


_FIGURES = {
    "registers": r"Used (\d+) registers",
    "spill_bytes": r"(\d+) bytes spill (?:stores|loads)",
    "shared_bytes": r"(\d+) bytes smem",
    "stack_bytes": r"(\d+) bytes stack frame",
}


def _failure(name: str, arch: str, error: str, log: str) -> TrialFailure:
    """Returns a failure with the log's first errors, each with the lines that show its place."""
    blocks = re.split(r"\n(?=\S)", log.strip("\n \0"))  # an error's own lines are indented below it
    found = [block.rstrip() for block in blocks if re.search(r"\berror\b\s*:|\bfatal\b\s*:", block)]
    errors = [block for block in found if not block.startswith(NAMES)]  # if there are none, the name is wrong
    if not errors and (unknown := UNKNOWN.match("\n".join(found))):
        why = f"the source defines no __global__ function called {unknown['name'].strip()} ({unknown['why']})"
        return TrialFailure(Status.COMPILE_FAILED, why)
    told = "\n".join(errors[:N_ERRORS_TOLD]) or log.strip("\n \0") or error
    more = f"\n({len(errors) - N_ERRORS_TOLD} more)" if len(errors) > N_ERRORS_TOLD else ""
    if re.search(r"uses too (?:much|many) ", told):
        return TrialFailure(Status.RESOURCES, f"{name} for {arch}: {clipped(told)}{more}")
    if "invalid value for --gpu-architecture" in told:
        told += f"; NVRTC {version()} compiles for {', '.join(f'sm_{n}' for n in _library().getSupportedArchs())}"
    return TrialFailure(Status.COMPILE_FAILED, f"{name} for {arch}: {clipped(told)}{more}")
