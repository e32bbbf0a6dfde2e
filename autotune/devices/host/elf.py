"""The symbols of a compiled library, read from its file: no tool besides the compiler is needed."""

import struct
from dataclasses import dataclass
from pathlib import Path

SYMBOL_TABLE, ZEROS = 2, 8  # types of sections; ZEROS: it occupies memory but not the file (.bss)
OBJECT = 1  # type of a symbol: a variable


@dataclass(frozen=True)
class Symbol:
    """A variable. ``offset``: from where the library is loaded; ``starts_zero``: it has no initial value."""

    name: str  # mangled
    offset: int
    n_bytes: int
    starts_zero: bool


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    n_bytes: int
    link: int  # of a symbol table: the index of its section of names


def variables(library: Path) -> list[Symbol]:
    """Every variable that a 64-bit little-endian ELF file defines, in the order of its symbol table."""
    data = library.read_bytes()
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry_bytes, n_sections = struct.unpack_from("<HH", data, 0x3A)
    sections = [_section(data, table + i * entry_bytes) for i in range(n_sections)]
    found = []
    for section in (section for section in sections if section.kind == SYMBOL_TABLE):
        names = sections[section.link].offset
        rows = data[section.offset : section.offset + section.n_bytes]
        for name, info, _, index, offset, n_bytes in struct.iter_unpack("<IBBHQQ", rows):
            if info & 15 == OBJECT and 0 < index < n_sections:
                start = names + name
                text = data[start : data.index(b"\0", start)].decode()
                found.append(Symbol(text, offset, n_bytes, sections[index].kind == ZEROS))
    return found


def _section(data: bytes, offset: int) -> _Section:
    _, kind, _, _, start, n_bytes, link = struct.unpack_from("<IIQQQQI", data, offset)
    return _Section(kind, start, n_bytes, link)
