"""Reads sections and symbols of ELF files (host libraries and cubins) without other tools."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

SYMBOL_TABLE, RELOCATIONS, ZEROS = 2, 4, 8  # section types; ZEROS occupies memory but no file space (.bss)
OBJECT = 1  # symbol type: a variable
WRITABLE = 1  # flag of a section that a program may write


@dataclass(frozen=True)
class Section:
    """A section. ``data`` is empty if it only occupies memory."""

    name: str
    kind: int
    n_bytes: int
    data: bytes
    link: int  # index of a related section; for a symbol table, the one with its names
    flags: int = 0


@dataclass(frozen=True)
class Symbol:
    """A symbol. ``offset`` counts from the load address, or from the section's start in a relocatable file."""

    name: str  # mangled name
    kind: int
    section: int  # index of its section
    offset: int
    n_bytes: int


def sections(data: bytes) -> list[Section]:
    """Returns the sections of a 64-bit little-endian ELF file."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry_bytes, n_sections, names = struct.unpack_from("<HHH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQI", data, table + i * entry_bytes) for i in range(n_sections)]
    start = rows[names][4] if rows else 0
    return [
        Section(
            _text(data, start + name), kind, n_bytes, b"" if kind == ZEROS else data[at : at + n_bytes], link, flags
        )
        for name, kind, flags, _, at, n_bytes, link in rows
    ]


def symbols(found: list[Section]) -> Iterator[Symbol]:
    """Returns every symbol of every table, in file order."""
    for table in found:
        if table.kind == SYMBOL_TABLE:
            names = found[table.link].data
            for name, info, _, section, offset, n_bytes in struct.iter_unpack("<IBBHQQ", table.data):
                yield Symbol(_text(names, name), info & 15, section, offset, n_bytes)


def relocations(section: Section) -> Iterator[tuple[int, int, int, int]]:
    """Returns (offset, type, symbol index, addend) of each entry of a relocation section."""
    for offset, info, addend in struct.iter_unpack("<QQq", section.data):
        yield offset, info & 0xFFFFFFFF, info >> 32, addend


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
