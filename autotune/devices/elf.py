"""The sections and symbols of compiled files, host libraries and cubins alike, read without any other tool."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

SYMBOL_TABLE, RELOCATIONS, ZEROS = 2, 4, 8  # types of sections; ZEROS: it occupies memory but not the file (.bss)
OBJECT = 1  # type of a symbol: a variable


@dataclass(frozen=True)
class Section:
    """A section. ``data`` is empty where it only occupies memory."""

    name: str
    kind: int
    n_bytes: int
    data: bytes
    link: int  # the index of a section that belongs to it: of a symbol table, that of its names


@dataclass(frozen=True)
class Symbol:
    """A name. ``offset``: from where the file is loaded, or from the start of its section in a file to be linked."""

    name: str  # mangled
    kind: int
    section: int  # its index
    offset: int
    n_bytes: int


def sections(data: bytes) -> list[Section]:
    """Those of a 64-bit little-endian ELF file."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    entry_bytes, n_sections, names = struct.unpack_from("<HHH", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQI", data, table + i * entry_bytes) for i in range(n_sections)]
    start = rows[names][4] if rows else 0
    return [
        Section(_text(data, start + name), kind, n_bytes, b"" if kind == ZEROS else data[at : at + n_bytes], link)
        for name, kind, _, _, at, n_bytes, link in rows
    ]


def symbols(found: list[Section]) -> Iterator[Symbol]:
    """Every symbol of every table, in their order."""
    for table in found:
        if table.kind == SYMBOL_TABLE:
            names = found[table.link].data
            for name, info, _, section, offset, n_bytes in struct.iter_unpack("<IBBHQQ", table.data):
                yield Symbol(_text(names, name), info & 15, section, offset, n_bytes)


def relocations(section: Section) -> Iterator[tuple[int, int, int, int]]:
    """(offset, type, index of the symbol, addend) of each entry of a section of relocations."""
    for offset, info, addend in struct.iter_unpack("<QQq", section.data):
        yield offset, info & 0xFFFFFFFF, info >> 32, addend


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()
