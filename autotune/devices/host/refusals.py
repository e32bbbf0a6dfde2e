"""Decides whether a source failed to compile for the host because it needs a GPU, and names the missing feature."""

import re

from .. import machine_code

REFUSED = re.compile(r"static assertion failed: the host device has no ([^\n]*)")  # refused.hpp
HEADER = re.compile(r"fatal error: '?((?:cub|cuda|thrust|cute|cutlass|nv)/[\w./]+|curand\w*\.h)'?[: ]")
ASM = re.compile(
    r"^[^\n:]*:\d+: Error: [^`\n]*`([^'\n]*)'|\berror: [^\n]*'asm'|\berror: [^\n]*inline asm"
    r"|\berror: (?:\w+ constraint \d|invalid \w+ constraint|unknown register name)",
    re.MULTILINE,
)
BEFORE_LAUNCH = re.compile(r"expected primary-expression before .<. token|error: expected expression")  # g++, clang
LIBRARIES = {"cub": "CUB", "cuda": "libcu++", "cute": "CuTe", "cutlass": "CUTLASS", "thrust": "Thrust", "nv": "libcu++"}
PLACE = re.compile(r"^([^/\s:]+:\d+):\d+: ", re.MULTILINE)  # the shim's own files have a path


def needs_gpu(errors: str, source: str) -> str | None:
    """Returns a line that names the missing feature of the host device, from the compiler's errors; None: none."""
    if found := REFUSED.search(errors):
        lacking = found[1]
    elif found := HEADER.search(errors):
        lacking = f"{LIBRARIES.get(found[1].partition('/')[0], 'cuRAND')} ({found[1]})"
    elif found := ASM.search(errors):
        lacking = f"inline PTX ({found[1].split()[0]})" if found[1] else "inline PTX"
    elif BEFORE_LAUNCH.search(errors) and "<<<" in machine_code.without_comments(source):
        lacking = "launches from device code (<<<...>>>)"
    else:
        return None
    place = PLACE.search(errors)
    where = f"{place[1]}: " if place else ""
    return f"{where}the host device has no {lacking}; a GPU can tune it"
