"""The blocks of a GUPPI RAW file: headers of cards of 80 characters, each followed by samples."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ...core.errors import UsageError
from .reading import Bytes, Header, cut_off, cut_text, refuse
from .time_order import FAR, Frames

CARD = 80
MOST_HEADER, USUAL_HEADER = 1 << 20, 1 << 15  # bytes
STRAIGHT = 512  # bytes: with DIRECTIO headers are padded to a multiple of this
SEARCHED = 1 << 22  # bytes in one step of the search for a header
ALIKE = ("BLOCSIZE", "NBITS", "OBSNCHAN", "NPOL", "OVERLAP", "PKTSIZE", "PIPERBLK", "PKTFMT")


@dataclass(frozen=True)
class Block:
    """A header and the samples after it."""

    number: int
    header: Header
    byte: int  # the first byte of the header
    data: int  # the first byte of the samples

    @property
    def end(self) -> int:
        """Returns the byte after the samples."""
        return self.data + self.header.integer("BLOCSIZE", 0, 1 << 62)


def block_at(file: Bytes, number: int, byte: int) -> Block | None:
    """Returns the block whose header begins at ``byte``; None if the file ends before the samples.

    Raises:
        UsageError: when no header is there.
    """
    text = file.take(byte, USUAL_HEADER).tobytes()
    if len(text) == USUAL_HEADER and not re.search(rb"END {77}", text):
        text = file.take(byte, MOST_HEADER).tobytes()
    values: dict[str, str] = {}
    for at in range(0, len(text) - CARD + 1, CARD):
        card = text[at : at + CARD].decode("latin-1")
        if card[:8].rstrip() == "END":
            n = at + CARD
            if values.get("DIRECTIO", "0") != "0":
                n = -(-n // STRAIGHT) * STRAIGHT
            header = Header(file.path, f"the header of block {number} at byte {byte}", values)
            return Block(number, header, byte, byte + n)
        if not card.isprintable():
            refuse(file.path, f"block {number} has no header at byte {byte}, where it must begin")
        values[card[:8].strip()] = _value(card[9:]) if card[8] == "=" else ""
    if len(text) == MOST_HEADER:
        refuse(file.path, f"the header of block {number} at byte {byte} has no END in {MOST_HEADER} bytes")
    return None


def blocks_from(file: Bytes, block: Block | None) -> Iterator[Block]:
    """Yields a block and those after it. Raises UsageError where no header follows, unless the file ends there."""
    while block is not None:
        yield block
        block = block_at(file, block.number + 1, block.end)


def first_block(file: Bytes) -> Block:
    """Returns the first block. Raises UsageError when the file has none."""
    return block_at(file, 0, 0) or cut_off(file, "in the middle of the header of block 0, which begins at byte 0")


def _value(text: str) -> str:
    """Returns a card's value: the text in quotes, or the text before the comment."""
    quoted = re.match(r"\s*'((?:[^']|'')*)'", text)
    return quoted[1].replace("''", "'").strip() if quoted else text.partition("/")[0].strip()


@dataclass
class BlockReader:
    """Reads blocks in the order of the file. It does not read their samples.

    Where no header like the first one follows a block, the reader searches for the next one. Where there is no header
    at all, bytes were lost or inserted, and it leaves the block out. It also leaves out a block without a time.
    """

    file: Bytes
    first: Block
    step: int  # packets from one block to the next
    slot_of: Callable[[Block], int | None]  # returns a block's time in packets since the first one; None: it has none
    n_here: Callable[[Block], int]  # returns the number of a block's packets in the file now
    places: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._block, self._n_done, self._last = self.first, 0, -FAR  # block, its packets done, slot before it

    def load(self, n_wanted: int) -> Frames | None:
        """Returns the next block, or the part of it that came since; None at the end."""
        while True:
            block, later = self._block, self._following()
            if later is None or self._name(block.end) == self._name(self.first.byte):
                n, slot = self.n_here(block) - self._n_done, self.slot_of(block)
                if slot is not None and 0 < abs(slot - self._last) < self.step:
                    slot = None  # it would share samples with the one before
                if n > 0 and slot is not None:
                    row = np.array([[slot + self._n_done, n, 0, block.byte, block.data, self._n_done]])
                    self._n_done, self._last = self._n_done + n, slot
                    return Frames(row[:, 0], row[:, 1], row[:, 2], np.ones(1, bool), row[:, 3], row[:, 4:])
                if slot is None and later is not None:
                    self.places.append(block.byte)
            if later is None:
                return None
            if later.byte != block.end:
                self.places.append(block.end)
            self._block, self._n_done = later, 0

    def end(self) -> tuple[int, str]:
        """Returns the bytes that are left out at the end, and a text about them; it is empty if there are none."""
        block, size = self._block, self.file.size()
        if size < block.end:
            where = f"in the middle of block {block.number}, which begins at byte {block.data}"
            return size - block.data, f"{cut_text(self.file, where)}; {self._n_done} packets of it are read"
        if size - block.end >= CARD and self._name(block.end) != self._name(self.first.byte):
            text = f"no block begins at byte {block.end}, after block {block.number}, nor later"
            return size - block.end, f"{text}; {size - block.end} bytes there are left out"
        where = f"in the middle of the header of block {block.number + 1}, which begins at byte {block.end}"
        return size - block.end, cut_text(self.file, where, size - block.end) if size > block.end else ""

    def _name(self, byte: int) -> bytes:
        """Returns the name on the card at ``byte``."""
        return self.file.take(byte, 9).tobytes()

    def _following(self) -> Block | None:
        """Returns the next block with a header like the first one's; None if there is none now."""
        number, byte = self._block.number + 1, self._block.end
        if self.file.size() - byte < CARD:
            return None
        if (later := self._block_like_first(number, byte)) is not None:
            return later
        names = (re.escape(self._name(self.first.byte + n)) for n in (0, CARD))
        cards, byte = re.compile((b".{%d}" % (CARD - 9)).join(names), re.DOTALL), self._block.data
        while (some := self.file.take(byte, SEARCHED + 2 * CARD).tobytes()) and len(some) > 2 * CARD:
            for found in cards.finditer(some):
                if (later := self._block_like_first(number, byte + found.start())) is not None:
                    return later
            byte += SEARCHED
        return None

    def _block_like_first(self, number: int, byte: int) -> Block | None:
        """Returns the block at ``byte``; None if none like the first one is there."""
        try:
            block = block_at(self.file, number, byte)
        except UsageError:
            return None
        same = block is not None and all(block.header.values.get(n) == self.first.header.values.get(n) for n in ALIKE)
        return block if same else None
