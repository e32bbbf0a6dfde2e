"""Digests of machine code, which do not depend on comments, names and line numbers of the source.

A time belongs to the machine code that ran. So a record stays valid as long as the compiler makes the same code, even
if the source changes.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass

from ..core.digest import digest
from ..runtime.cubin import kernel_attributes
from ..runtime.elf import OBJECT, RELOCATIONS, Section, Symbol, relocations, sections, symbols

LOADED = re.compile(r"\.(rela\.)?(text|nv\.constant\d+|nv\.global\.init|nv\.global|nv\.shared)(?![\w])")
VARIABLES = re.compile(r"\.nv\.global(\.init)?$")  # sections of variables
ADDRESSES = re.compile(r"\.nv\.constant4$")  # section from which code loads the addresses of variables
PTX = ".nv_debug_ptx_txt"  # section with the PTX of a cubin that has line numbers
TOKEN = re.compile(r"[\w$%]+")
COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")""", re.DOTALL)
LAUNCH = {0x05: "most threads", 0x10: "threads", 0x3D: "blocks of a cluster"}  # EIATTR_ of .nv.info.<kernel>


def of_cubin(data: bytes, *figures: object) -> str:
    """Returns 16 hex digits over the code, constants and variables of a cubin and ``figures`` such as registers.

    A kernel's demands on its launch, such as the size of clusters, count, too, since the code need not show them. Names
    of functions and variables are masked, and so is the order of their sections. Unused variables do not count: a
    compiler keeps one for every constant of the source, even after it has put the value into the code.
    """
    found = sections(data)
    cubin = _Cubin(found, list(symbols(found)), _unused(found))
    parts = sorted(cubin.part(section) for section in found if LOADED.match(section.name))
    demands = sorted(str(_demands(section)) for section in found if section.name.startswith(".nv.info."))
    return digest(*filter(None, parts), *demands, *figures)


def without_comments(text: str) -> str:
    """Returns C++ or CUDA with each comment replaced by a space."""
    return COMMENT.sub(lambda match: match[1] or " ", text)


@dataclass(frozen=True)
class _Cubin:
    """The sections and symbols of a cubin, and the names of unused variables."""

    sections: list[Section]
    symbols: list[Symbol]
    unused: frozenset[str]

    def part(self, section: Section) -> str:
        """Returns a section's part of the digest; "" if it has none."""
        content: object = hashlib.sha256(section.data).hexdigest()
        n_bytes = section.n_bytes
        if section.kind == RELOCATIONS:
            meant = ((at, kind, self.symbols[symbol], addend) for at, kind, symbol, addend in relocations(section))
            used = [entry for entry in meant if entry[2].name not in self.unused]
            content = sorted((at, kind, self._place(symbol), addend) for at, kind, symbol, addend in used)
            n_bytes = len(used)
        elif self.unused and VARIABLES.match(section.name):
            content = [_value(section, symbol) for symbol in self._used(section)]
            n_bytes = len(self._used(section))
        elif self.unused and ADDRESSES.match(section.name) and not any(section.data):
            content, n_bytes = [], 0  # the relocations describe the section's content
        return f"{_masked(section.name)} {n_bytes} {content}" if n_bytes else ""

    def _place(self, symbol: Symbol) -> tuple[str, int]:
        """Returns a symbol's section and its offset; in sections of variables, its number among the used ones."""
        section = self.sections[symbol.section] if symbol.section < len(self.sections) else None
        if section is None:
            return "", symbol.offset
        if self.unused and VARIABLES.match(section.name):
            return _masked(section.name), self._used(section).index(symbol)
        return _masked(section.name), symbol.offset

    def _used(self, section: Section) -> list[Symbol]:
        inside = (s for s in self.symbols if s.kind == OBJECT and self.sections[s.section : s.section + 1] == [section])
        return sorted((s for s in inside if s.name not in self.unused), key=lambda symbol: symbol.offset)


def _unused(found: list[Section]) -> frozenset[str]:
    """Returns the variables whose names occur only once in the PTX, in their declaration. Without PTX it returns none.

    It also returns none if a relocation refers to a whole section of variables, since it may mean any of them.
    """
    ptx = next((section.data.decode(errors="replace") for section in found if section.name == PTX), "")
    counts = Counter(TOKEN.findall(ptx))
    of_variables = {number for number, section in enumerate(found) if VARIABLES.match(section.name)}
    symbols_found = list(symbols(found))
    for section in found:
        if section.kind == RELOCATIONS and LOADED.match(section.name):
            meant = (symbols_found[symbol] for _, _, symbol, _ in relocations(section))
            if any(symbol.section in of_variables and symbol.kind != OBJECT for symbol in meant):
                return frozenset()
    variables = (s.name for s in symbols_found if s.section in of_variables and s.kind == OBJECT)
    return frozenset(name for name in variables if counts[name] == 1)


def _value(section: Section, symbol: Symbol) -> tuple[int, str]:
    """Returns the length of a variable and a digest of its initial value."""
    data = section.data[symbol.offset : symbol.offset + symbol.n_bytes]
    return symbol.n_bytes, hashlib.sha256(data).hexdigest()


def _demands(section: Section) -> list[tuple[str, str]]:
    """Returns the attributes of LAUNCH in a ``.nv.info`` section of one kernel."""
    return sorted(
        (LAUNCH[attribute], value.hex()) for attribute, value in kernel_attributes(section) if attribute in LAUNCH
    )


def _masked(name: str) -> str:
    match = LOADED.match(name)
    return match[0] if match else name.split(".")[1] if name.startswith(".") else name
