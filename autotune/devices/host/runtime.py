"""Binds the runtime library: its structures, its functions, and the source lines of its messages."""

import ctypes
import re
import shutil
from functools import lru_cache
from pathlib import Path

from .build import RUNTIME, runtime_library
from .toolchain import run_tool
from .translation import SHIM

MAX_PARAMETERS = 64
SCHEDULES = {"ascending": 0, "descending": 1, "random": 2, "warp_ahead": 3}
RANDOM_POISON = -1


class Options(ctypes.Structure):
    """cuda_host::Options of runtime.hpp."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("seed", ctypes.c_uint),
        ("schedule", ctypes.c_int),
        ("block_order", ctypes.c_int),
        ("poison", ctypes.c_int),
        ("check", ctypes.c_int),
    )


class MemoryRange(ctypes.Structure):
    """cuda_host::Range of runtime.hpp."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("start", ctypes.c_void_p),
        ("n_bytes", ctypes.c_size_t),
        ("kind", ctypes.c_char),
        ("writable", ctypes.c_char),
    )


class KernelInfo(ctypes.Structure):
    """cuda_host::KernelInfo of abi.hpp."""

    _fields_ = (
        ("call", ctypes.c_void_p),
        ("n_parameters", ctypes.c_int),
        ("sizes", ctypes.c_int * MAX_PARAMETERS),
        ("kinds", ctypes.c_char * MAX_PARAMETERS),
        ("most_threads", ctypes.c_long),
        ("allowed", ctypes.c_uint),
    )


@lru_cache(maxsize=1)
def host_runtime() -> ctypes.CDLL:
    """Returns the library, loaded so that kernels find its symbols."""
    library = ctypes.CDLL(str(runtime_library()), mode=ctypes.RTLD_GLOBAL)
    library.cuda_host_error.restype = ctypes.c_char_p
    library.cuda_host_launch.argtypes = (
        ctypes.c_char_p,
        ctypes.POINTER(KernelInfo),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(Options),
        ctypes.POINTER(MemoryRange),
        ctypes.c_uint,
    )
    library.cuda_host_map.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    library.cuda_host_map.restype = ctypes.c_void_p
    library.cuda_host_unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    library.cuda_host_unmap.restype = None
    return library


def schedule_of(seed: int) -> tuple[int, int, int]:
    """Returns (schedule, block order, poison) for a seed: plain for seed 0, alternating for others."""
    if seed == 0:
        return SCHEDULES["ascending"], SCHEDULES["ascending"], 0xFF
    schedule = ("descending", "random", "warp_ahead", "ascending")[(seed - 1) % 4]
    block_order = ("descending", "random", "ascending")[(seed - 1) % 3]
    return SCHEDULES[schedule], SCHEDULES[block_order], (0, RANDOM_POISON, 0xFF)[(seed - 1) % 3]


def name_lines(message: str, library: Path) -> str:
    """Returns ``message`` with each ``[pc 0x..]`` replaced by the template's ``[file:line]``, if addr2line knows it."""
    return re.sub(r"\[pc 0x([0-9a-f]+)\]", lambda match: f"[{_line_of(match[1], library)}]", message)


def _line_of(address: str, library: Path) -> str:
    """Returns the innermost line outside the shim."""
    tool = next((name for name in ("addr2line", "llvm-addr2line") if shutil.which(name)), None)
    if tool is None:
        return "line unknown: install binutils, whose addr2line names it"
    outcome = run_tool([tool, "--inlines", "--basenames", "--exe", library, address])
    own = {path.name for folder in (SHIM, RUNTIME) for path in folder.rglob("*")}
    frames = [line.split(" ")[0] for line in outcome.output.splitlines()]
    return next((frame for frame in frames if frame.split(":")[0] not in own), "line unknown")
