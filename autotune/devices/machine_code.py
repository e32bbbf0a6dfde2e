"""What a compiler made of a source, as a digest that no text changes: comments, names and lines leave no trace in it.

A time belongs to the machine code that ran. So a record holds for as long as the same comes out of the compiler,
whatever becomes of the text that it came from.
"""

import hashlib
import re

from .elf import RELOCATIONS, Section, relocations, sections, symbols

LOADED = re.compile(r"\.(rela\.)?(text|nv\.constant\d+|nv\.global\.init|nv\.global|nv\.shared)(?![\w])")
COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")""", re.DOTALL)
LINE = re.compile(r"^[ \t]*#[ \t]*(line\b|\d).*$", re.MULTILINE)


def of_cubin(data: bytes, *figures: object) -> str:
    """16 hex digits: of the code, the constants and the variables of a cubin, and of ``figures`` such as registers.

    Names of functions and variables are masked, and so is the order of the sections that bear them.
    """
    found = sections(data)
    places = [(_masked(found[s.section].name) if s.section < len(found) else "", s.offset) for s in symbols(found)]
    parts = sorted(_part(section, places) for section in found if LOADED.match(section.name))
    return digest(*parts, *figures)


def of_text(text: str) -> str:
    """16 hex digits: of C++ without its comments and layout, where compilers leave traces of them in what they make."""
    return digest(*without_comments(LINE.sub("", text)).split())


def without_comments(text: str) -> str:
    """C++ or CUDA with a space in the place of each comment."""
    return COMMENT.sub(lambda match: match[1] or " ", text)


def _part(section: Section, places: list[tuple[str, int]]) -> str:
    """What a section contributes; in relocations a symbol is the place that it names."""
    content: object = hashlib.sha256(section.data).hexdigest()
    if section.kind == RELOCATIONS:
        content = sorted((at, kind, places[symbol], addend) for at, kind, symbol, addend in relocations(section))
    return f"{_masked(section.name)} {section.n_bytes} {content}"


def _masked(name: str) -> str:
    match = LOADED.match(name)
    return match[0] if match else name.split(".")[1] if name.startswith(".") else name


def digest(*parts: object) -> str:
    """16 hex digits of a SHA-256 over what ``parts`` say of themselves."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]
