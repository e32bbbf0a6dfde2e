"""Turns CUDA into the C++ that the host's compiler takes, line by line; the shim's macros and headers do the rest."""

import re
from pathlib import Path

from ...core.launch import last_name
from ...rendering.render import Variant
from ...runtime.nvrtc import own_headers
from .own_files import text_digest

SHIM = Path(__file__).resolve().parent / "cuda"
HEADERS = SHIM / "headers"
EXTERN_C = re.compile(r'\bextern\s*"C"')
DYNAMIC_SHARED = re.compile(
    r"\bextern\s+__shared__\s+(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?([^;]*?)\s*\b(\w+)\s*\[\s*\]\s*;"
)
STATIC_SHARED = re.compile(r"\bstatic\b(?=\s+__shared__\b)|(?<=\b__shared__) +static\b")  # __shared__ is static here
INCLUDE = re.compile(r"^([ \t]*)#[ \t]*include[ \t]*<([^>\n]+)>", re.MULTILINE)
BUILT_IN = frozenset(  # headers of CUDA's whose content the shim always has
    f"{name}.h"
    for name in [
        "builtin_types",
        "cuda_device_runtime_api",
        "cuda_pipeline",
        "cuda_pipeline_primitives",
        "cuda_runtime",
        "cuda_runtime_api",
        "device_atomic_functions",
        "device_functions",
        "device_launch_parameters",
        "math_functions",
        "sm_20_intrinsics",
        "sm_30_intrinsics",
        "sm_32_intrinsics",
        "sm_35_intrinsics",
        "sm_60_atomic_functions",
        "sm_61_intrinsics",
        "vector_functions",
        "vector_types",
    ]
)
OF_CPP = frozenset(("algorithm", "array", "complex", "functional", "tuple"))  # too large for the shim
CUB = "cub/cub.cuh"  # which the host device has not
KERNEL = "cuda_host_kernel_"  # what the name of a kernel begins with, once it is translated


def translate(variant: Variant) -> str:
    """Returns the C++ to compile: the source in the shim's namespace, with constructs rewritten that macros cannot.

    Lines stay where they are. ``extern "C"`` goes, because a kernel called ``pipe`` would be bound to the C library's.
    A kernel gets a name of its own, since a device function may have the same one. Headers go that the shim has
    already, or of which device code can use nothing, and those of C++ come first, outside of the namespace; those of
    CUDA in the folder ``headers`` are included where the source does it, and so in its namespace.
    """
    source = DYNAMIC_SHARED.sub(r"CUDA_HOST_DYNAMIC_SHARED(\1, \2);", variant.numbered)
    source = STATIC_SHARED.sub("", source)
    source = EXTERN_C.sub('extern "C++"', source)
    named = sorted({header for _, header in INCLUDE.findall(source) if _of_cpp(header)})
    source = INCLUDE.sub(lambda found: found[1] if _in_shim(found[2]) else found[0], source)
    functions, name = (variant.kernel, *variant.also), last_name(variant.kernel)
    expressions = {function: last_name(function) for function in functions if not function.isidentifier()}
    instances = exports = ""
    for number, function in enumerate(functions, 1):
        symbol = called = symbol_of(function)
        if function in expressions:
            instances += f'#line {number} "export of {name}"\nconstexpr auto& {symbol} = *({function});\n'
        elif function not in expressions.values():
            source, n_renamed = _kernel_called(function).subn(rf"\1{KERNEL}{function}\2", source)
            called = KERNEL + function if n_renamed else function
        exports += f"CUDA_HOST_EXPORT({symbol}, {called})\n"
    return (
        "".join(f"#if __has_include(<{header}>)\n#include <{header}>\n#endif\n" for header in named)
        + f'namespace cuda_user {{ inline namespace {{\n#line 1 "{name}.cu"\n{source}\n{instances}}} }}\n'
        f'#line 1 "export of {name}"\n{exports}'
    )


def symbol_of(function: str) -> str:
    """Returns the identifier by which a function, given as a name expression, is exported."""
    return function if function.isidentifier() else f"{last_name(function)}_{text_digest(function)[:8]}"


def _kernel_called(function: str) -> re.Pattern[str]:
    """Returns what finds a declaration or definition of a kernel, in two parts: before and after its name."""
    return re.compile(rf"(__global__[^;{{]*?\b){function}(\s*\()")


def _in_shim(header: str) -> bool:
    return header in BUILT_IN or (header in own_headers() and header != CUB and not (HEADERS / header).is_file())


def _of_cpp(header: str) -> bool:
    """Returns whether it is a header of C++, such as ``<numbers>``, that the shim has not."""
    return header in OF_CPP or (header.isidentifier() and not _in_shim(header))
