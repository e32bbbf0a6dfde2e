"""Turns CUDA into C++ for the host's compiler, line by line; the shim's macros and headers do the rest."""

import re
from collections.abc import Mapping
from pathlib import Path

from ...core.launch import last_name
from ...rendering.render import Variant
from ...runtime.nvrtc import HEADERS as OF_NVRTC
from ...runtime.nvrtc import own_headers
from .own_files import text_digest

SHIM = Path(__file__).resolve().parent / "cuda"
HEADERS = SHIM / "headers"
FOLDERS = f"-I{HEADERS}", "-idirafter", str(OF_NVRTC)  # folders of headers; those of C and C++ are the system's
IF_THERE = "#if __has_include(<{0}>)\n#include <{0}>\n#endif\n"
MOST = "cuda_host_most_"  # begins the name of the most threads of a block
OF_SHIM = ("__noinline__", "alignas")  # macros of the shim that headers of C++ use otherwise
WITHOUT_SHIM = (
    "".join(f'#pragma push_macro("{name}")\n#undef {name}\n' for name in OF_SHIM)
    + "{}"
    + "".join(f'#pragma pop_macro("{name}")\n' for name in OF_SHIM)
)
ALLOWANCES = {"INTS_WRAP": 0, "EARLY_RETURNS": 1, "UNSET_SHARED": 2}  # macro -> its bit in abi.hpp
BEGIN = "namespace cuda_user { inline namespace {\n"  # headers of C++ stand before it
OF_USER = "_ZN9cuda_user12_GLOBAL__N_1"  # begins a mangled name of the source
PART = re.compile(r"L?(\d+)")  # the number in front of a part of a mangled name: how many characters follow
NO_MACROS = "".join(f"#undef {word}\n" for word in ("auto", "constexpr"))  # a source may define them for itself
EXTERN_C = re.compile(r'\bextern\s*"C"')
DYNAMIC_SHARED = re.compile(
    r"\bextern\s+__shared__\s+(?:(?:__align__|alignas)\s*\([^)]*\)\s*)?([^;]*?)\s*\b(\w+)\s*\[\s*\]\s*;"
)
BRACE = re.compile(r"(?P<namespace>\bnamespace\b[\w\s:]*|\bextern\s*)?\{|\}")  # the text is blank in quotes
STATIC_SHARED = re.compile(r"\bstatic\b(?=\s+__shared__\b)|(?<=\b__shared__) +static\b")  # the shim adds static
INCLUDE = re.compile(r"^([ \t]*)#[ \t]*include[ \t]*<([^>\n]+)>", re.MULTILINE)
# macros with which a source allows what is refused otherwise; for integers that wrap there is a pragma
ALLOWED = {name: re.compile(rf"^#define AUTOTUNE_{name}\b(?! 0$)", re.MULTILINE) for name in ALLOWANCES}
WRAPPING = '#pragma GCC optimize("wrapv")\n'
# headers of CUDA whose content is always in the shim
NAMES = """
    builtin_types channel_descriptor common_functions cuda_device_runtime_api cuda_pipeline
    cuda_pipeline_primitives cuda_runtime cuda_runtime_api cuda_surface_types cuda_texture_types
    device_atomic_functions device_functions device_launch_parameters driver_types host_config host_defines
    library_types math_functions sm_20_intrinsics sm_30_intrinsics sm_32_intrinsics sm_35_intrinsics
    sm_60_atomic_functions sm_61_intrinsics surface_functions surface_types texture_fetch_functions
    texture_types vector_functions vector_types
"""
BUILT_IN = frozenset(f"{name}.h" for name in NAMES.split())
OF_CUDA = re.compile(  # libraries of CUDA that the shim lacks, so that their lack is told
    r"(?:cub|cuda|thrust|cute|cutlass|nv)/|cu\w+\.h|curand|mma\.h|cooperative_groups"
)
OF_TYPES = re.compile(r"^(?:typedef|#include) ", re.MULTILINE)  # a header with types that device code may use
OF_CPP = frozenset(("algorithm", "array", "complex", "functional", "tuple"))  # too large for the shim
CUB = "cub/cub.cuh"
NO_CUB = f'static_assert(false, "the host device has no CUB ({CUB})");'
# comments, texts and directives, which may hold anything
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE)
BOUNDED = re.compile(
    r"(?P<template>\btemplate\s*(?P<parameters><[^;{}]*?>)\s*)?(?P<words>\b(?:[A-Za-z_]\w*\s+)*?)"
    r"(?P<bounds>\b__launch_bounds__\s*\()"
)
COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?(?:\*/|$)", re.DOTALL)
CONDITION = re.compile(r"[ \t]*#[ \t]*(?:if|el|endif)")
DEFINITION = re.compile(r"[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)")
KERNEL_NAME = re.compile(r"\)[^;{}()]*?\b([A-Za-z_]\w*)\s*\(")
NAME_EXPRESSION = re.compile(r"(?P<scope>(?:\w+::)*)(?P<name>\w+)\s*(?P<arguments><.*>)?\s*", re.DOTALL)
TRAP = re.compile(r'\b(?:asm|__asm__)\s*(?:volatile\s*)?\(\s*"\s*trap\s*;\s*"\s*\)')  # the one PTX with a word in C++
KERNEL = "cuda_host_kernel_"  # prefix of a kernel's name after the translation


def translate(variant: Variant) -> str:
    """Returns the C++ to compile: the source in the shim's namespace, with rewrites where macros are not enough.

    Lines keep their numbers. ``extern "C"`` is removed, because a kernel called ``pipe`` would be bound to that of the
    C library. A kernel gets a new name, since a device function may have the same one. Includes are removed if the shim
    contains the header, or device code cannot use it. Headers of C++ come first, outside of the namespace; CUDA headers
    in the folder ``headers`` are included where the source includes them, and so in its namespace.
    """
    source = STATIC_SHARED.sub("", _with_dynamic_shared(variant.numbered))
    source = TRAP.sub("__trap()", EXTERN_C.sub('extern "C++"', source))
    headers = _headers_of_cpp(source)
    allowed = [name for name, macro in ALLOWED.items() if macro.search(variant.source)]
    source = INCLUDE.sub(_included_in_place, source)
    source, bounds = _with_bounds(source)
    functions, name = (variant.kernel, *variant.also), last_name(variant.kernel)
    expressions = {function: last_name(function) for function in functions if not function.isidentifier()}
    instances = exports = ""
    for number, function in enumerate(functions, 1):
        symbol = called = symbol_of(function)
        if function in expressions:
            instances += f'#line {number} "export of {name}"\nconstexpr auto& {symbol} = *({function});\n'
        elif function not in expressions.values():
            # declarations and definitions
            source, n_renamed = re.subn(rf"(__global__[^;{{]*?\b){function}(\s*\()", rf"\1{KERNEL}{function}\2", source)
            called = KERNEL + function if n_renamed else function
        if bound := _bounds_of(function, bounds):
            instances += f'#line {number} "export of {name}"\nconst unsigned {MOST}{symbol} = {bound};\n'
        exports += f"CUDA_HOST_EXPORT({symbol}, {called}, {bound and f'cuda_user::{MOST}{symbol}'})\n"
    return (
        WRAPPING * ("INTS_WRAP" in allowed)
        + headers
        + f'{BEGIN}#line 1 "{name}.cu"\n{source}\n{NO_MACROS}{instances}}} }}\n'
        f"#undef CUDA_HOST_ALLOWED\n#define CUDA_HOST_ALLOWED {sum(ALLOWANCES[each] for each in allowed)}\n"
        f'#line 1 "export of {name}"\n{exports}'
    )


def _with_dynamic_shared(source: str) -> str:
    """Returns the source in which pointers stand for dynamic shared arrays; one outside of functions is a reference to
    the pointer of the launch.
    """

    plain = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)  # places stay the same

    def pointer(found: re.Match[str]) -> str:
        scopes: list[bool] = []  # whether each open brace is that of a namespace
        for brace in BRACE.finditer(plain, 0, found.start()):
            if brace[0] != "}":
                scopes.append(brace["namespace"] is not None)
            elif scopes:
                scopes.pop()
        return f"CUDA_HOST_DYNAMIC_SHARED{'_OF_FILE' * all(scopes)}({found[1]}, {found[2]});"

    return DYNAMIC_SHARED.sub(pointer, source)


def _headers_of_cpp(source: str) -> str:
    """Returns the includes of those headers of C++ that the source includes, under its own conditions.

    The source's macros are known in these conditions, and not in the headers.
    """
    directives = [COMMENT.sub(" ", found[0]) for found in NOT_CODE.finditer(source) if found[0].lstrip()[0] == "#"]
    lines, named = [], dict[str, str]()
    for line in directives:
        included = INCLUDE.match(line)
        if included is not None and _of_cpp(included[2]):
            flag = named.setdefault(included[2], f"cuda_host_includes_{len(named)}")
            lines.append(f"#undef {flag}\n#define {flag}")
        elif CONDITION.match(line) or DEFINITION.match(line):
            lines.append(line)
    if not named:
        return ""
    defined = (found[1] for line in lines if (found := DEFINITION.match(line)) is not None)
    macros = dict.fromkeys(name for name in defined if not name.startswith("cuda_host_includes_"))
    saved, restored = ("".join(f'#pragma {word}_macro("{name}")\n' for name in macros) for word in ("push", "pop"))
    includes = "".join(f"#ifdef {flag}\n{IF_THERE.format(header)}#endif\n" for header, flag in named.items())
    return saved + "\n".join(lines) + f"\n{restored}" + WITHOUT_SHIM.format(includes)


def own_name(text: str) -> str:
    """Returns the user's function or variable, such as ``inner::name``, of the first mangled name in a text, or ""."""
    rest, parts = text.partition(OF_USER)[2], list[str]()
    while length := PART.match(rest):
        end = length.end() + int(length[1])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(parts)


def symbol_of(function: str) -> str:
    """Returns the identifier by which a function, given as a name expression, is exported."""
    return function if function.isidentifier() else f"{last_name(function)}_{text_digest(function)[:8]}"


def _with_bounds(source: str) -> tuple[str, dict[str, str]]:
    """Returns the source with a constant before each kernel that has launch bounds, and kernel -> its constant.

    The constant is the most threads of a block. It has the parameters of the kernel's template.
    """
    if "__launch_bounds__" not in source:
        return source, {}
    plain = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)  # places stay the same
    parts, names, at = [], dict[str, str](), 0
    for found in BOUNDED.finditer(plain):
        end = _closing(plain, found.end("bounds"), ",)")
        after = KERNEL_NAME.match(plain, _closing(plain, found.end("bounds"), ")"))
        is_kernel = "__global__" in found["words"] or (after is not None and "__global__" in after[0])
        if after is None or not is_kernel or after[1] in names or found["parameters"] == "<>":
            continue
        names[after[1]] = f"cuda_host_bounds_{len(names)}"
        start = found.start("template") if found["template"] else found.start("words")
        kind = f"template {source[found.start('parameters') : found.end('parameters')]} " if found["template"] else ""
        most = " ".join(source[found.end("bounds") : end].split())
        parts.append(f"{source[at:start]}{kind}constexpr long {names[after[1]]} = ({most}); ")
        at = start
    return "".join([*parts, source[at:]]), names


def _closing(text: str, at: int, ends: str) -> int:
    """Returns the place, behind ``at``, of the first of ``ends`` that is not inside further brackets."""
    depth = 0
    while at < len(text) and (depth or text[at] not in ends):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
    return at


def _bounds_of(function: str, bounds: Mapping[str, str]) -> str:
    """Returns C++ for the most threads of a block of ``function``, a name expression; "" if it has no launch bounds."""
    found = NAME_EXPRESSION.fullmatch(function.rpartition(")>(")[2].removesuffix(")"))
    if found is None or found["name"] not in bounds:
        return ""
    return f"{found['scope'] or ''}{bounds[found['name']]}{found['arguments'] or ''}"


def _included_in_place(found: re.Match[str]) -> str:
    """Returns what stands where the source includes a header."""
    if found[2] == CUB:
        return found[1] + NO_CUB
    return found[1] if _in_shim(found[2]) else found[0]


def _in_shim(header: str) -> bool:
    own = own_headers().get(header)
    if own is None or (HEADERS / header).is_file():
        return header in BUILT_IN
    return not (OF_CUDA.match(header) and OF_TYPES.search(own))


def _of_cpp(header: str) -> bool:
    """Returns whether a header belongs to C++ or to the system, and neither to the shim nor to CUDA."""
    return header in OF_CPP or not (_in_shim(header) or (HEADERS / header).is_file() or OF_CUDA.match(header))
