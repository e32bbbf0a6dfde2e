"""Digests of machine code, which comments, names and line numbers of the source do not change.

A time belongs to the machine code that ran. So a record holds for as long as the same comes out of the compiler,
whatever becomes of the text that it came from.
"""

import hashlib
import re
import struct

from .elf import RELOCATIONS, Section, relocations, sections, symbols

LOADED = re.compile(r"\.(rela\.)?(text|nv\.constant\d+|nv\.global\.init|nv\.global|nv\.shared)(?![\w])")
COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")""", re.DOTALL)
LONG_FORM = 4  # of an entry of .nv.info
LAUNCH = {0x05: "most threads", 0x10: "threads", 0x3D: "blocks of a cluster"}  # EIATTR_ of .nv.info.<kernel>
LINE = re.compile(r"^[ \t]*#[ \t]*(line\b|\d).*$", re.MULTILINE)


def of_cubin(data: bytes, *figures: object) -> str:
    """Returns 16 hex digits over the code, constants and variables of a cubin and ``figures`` such as registers.

    What a kernel demands of its launch, such as the size of clusters, counts too: it need not show in the code. Names
    of functions and variables are masked, and so is the order of the sections that bear them.
    """
    found = sections(data)
    places = [(_masked(found[s.section].name) if s.section < len(found) else "", s.offset) for s in symbols(found)]
    parts = sorted(_part(section, places) for section in found if LOADED.match(section.name))
    demands = sorted(str(_demands(section.data)) for section in found if section.name.startswith(".nv.info."))
    return digest(*parts, *demands, *figures)


def of_text(text: str) -> str:
    """Returns 16 hex digits over C++ without comments and layout, for compilers whose output depends on those."""
    return digest(*without_comments(LINE.sub("", text)).split())


def without_comments(text: str) -> str:
    """Returns C++ or CUDA with each comment replaced by a space."""
    return COMMENT.sub(lambda match: match[1] or " ", text)


def _part(section: Section, places: list[tuple[str, int]]) -> str:
    """Returns what a section contributes; in relocations, a symbol counts as the place that it names."""
    content: object = hashlib.sha256(section.data).hexdigest()
    if section.kind == RELOCATIONS:
        content = sorted((at, kind, places[symbol], addend) for at, kind, symbol, addend in relocations(section))
    return f"{_masked(section.name)} {section.n_bytes} {content}"


def _demands(data: bytes) -> list[tuple[str, str]]:
    """Returns the attributes of LAUNCH in a ``.nv.info`` section of one kernel.

    An entry is a byte of format, one of attribute and two bytes: its value, or in format 4 the length of what follows.
    """
    found, at = [], 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        value = data[at + 4 : at + 4 + size] if form == LONG_FORM else data[at + 2 : at + 4]
        if attribute in LAUNCH:
            found.append((LAUNCH[attribute], value.hex()))
        at += 4 + (size if form == LONG_FORM else 0)
    return sorted(found)


def _masked(name: str) -> str:
    match = LOADED.match(name)
    return match[0] if match else name.split(".")[1] if name.startswith(".") else name


def digest(*parts: object) -> str:
    """Returns 16 hex digits of a SHA-256 over the text of ``parts``."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]
