"""Finds the items of a source that a kernel may need, whichever branches the compiler takes."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from .inclusion import COMMENT
from .preprocessing import Preprocessed
from .syntax import DEVICE_WORDS, Item, text_of, walk

WORD = re.compile(r"[A-Za-z_]\w*")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)
BRANCH = re.compile(r"^[ \t]*#[ \t]*if", re.MULTILINE)
UNSAID = frozenset(("begin", "end", "get"))  # functions that a loop or a structured binding calls without their names


@dataclass(frozen=True)
class ReadSource:
    """A source after the preprocessor, and its items at file and namespace scope."""

    given: Preprocessed
    found: tuple[Item, ...]

    def span(self, item: Item) -> tuple[int, int] | None:
        """Returns an item's span in the source, or None if one macro made it together with its neighbour."""
        return self.given.span(item.node.start_byte, item.node.end_byte)

    def spans_of(self, items: Collection[Item]) -> Iterator[tuple[tuple[int, int], Item]]:
        """Yields the span of each item; of several that one macro made, only if all of its items are among them."""
        among = sorted({*self.found, *items}, key=lambda item: item.node.start_byte)
        begins = [item.node.start_byte for item in among]
        for item in items:
            begin, end = item.node.start_byte, item.node.end_byte
            if (span := self.given.cut(begin, end)) is None:
                begin, end = self.given.calls(begin, end)
                inside = among[bisect_left(begins, begin) : bisect_left(begins, end)]
                span = self.given.cut(begin, end) if all(each in items for each in inside) else None
            if span is not None:
                yield span, item

    def without(self, items: Collection[Item]) -> Iterator[tuple[tuple[int, int], str]]:
        """Yields the span of each call of a macro that makes some of the items and others, and what it makes of these.

        Calls whose text depends on macros from outside of the source stay as they are.
        """
        found = {self.given.calls(item.node.start_byte, item.node.end_byte) for item in items if not self.span(item)}
        for begin, end in found:
            inside = [item for item in self.found if begin <= item.node.start_byte < end]
            span = self.given.span(begin, end)
            if span is None or all(item in items for item in inside) or inside[-1].node.end_byte > end:
                continue
            words = self.with_macros(WORD.findall(self.given.original[span[0] : span[1]]))
            if not words & self.given.given:
                kept = list(self.given.text[begin:end])
                for item in (item for item in inside if item in items):
                    start, stop = item.node.start_byte - begin, item.node.end_byte - begin
                    kept[start:stop] = " " * (stop - start)
                yield span, " ".join("".join(kept).split())

    def place(self, item: Item) -> tuple[int, int] | None:
        """Returns an item's span in the source, without ``template <..>`` and ``extern "C"`` before it."""
        return self.given.span(item.inner.start_byte, item.inner.end_byte)

    def around_type(self, item: Item) -> list[tuple[int, int]]:
        """Returns the spans, in the source, of the words before a variable's type and of the declarators after it."""
        kind, *_ = item.inner.children_by_field_name("type")
        first, *_, last = item.inner.children_by_field_name("declarator") * 2
        parts = (item.inner.start_byte, kind.start_byte), (first.start_byte, last.end_byte)
        spans = [self.given.span(begin, end) for begin, end in parts if begin < end]
        return [span for span in spans if span is not None]

    def words_of(self, item: Item) -> set[str]:
        """Returns the names in an item, and the words of its branches, since other ones may be compiled."""
        begin, span = self.given.at(item.node.start_byte), self.span(item)
        text = self.given.original[begin : span[1]] if span else ""
        return {*item.uses_of_others, *(WORD.findall(COMMENT.sub(" ", text)) if BRANCH.search(text) else ())}

    def with_macros(self, words: Iterable[str]) -> set[str]:
        """Returns the words, with those of the macros that they name."""
        known, unread = set(words), list(words)
        while unread:
            more = self._macros.get(unread.pop(), frozenset()) - known
            known |= more
            unread += more
        return known

    @cached_property
    def _macros(self) -> Mapping[str, frozenset[str]]:
        """Returns the words in each macro of the source, in any branch."""
        macros: dict[str, frozenset[str]] = {}
        for name, body in MACRO.findall(self.given.original):
            macros[name] = macros.get(name, frozenset()) | frozenset(WORD.findall(body))
        return macros


def reached(source: ReadSource, kernel: Item, function: str) -> frozenset[Item]:
    """Returns the kernel and the items that it may need, by their names.

    ``function``: the kernel's name expression, whose template arguments it uses, too. An operator is needed if the
    types of its operands are, and a statement without a name if all that it names is.
    """
    by_name: dict[str, list[Item]] = {}
    for item in source.found:
        for name in item.names:
            by_name.setdefault(name.lstrip("~"), []).append(item)
    own = {name for item in source.found if item.is_device_function for name in item.names}
    unnamed = {item: _signature(item) & by_name.keys() for item in source.found if not item.names or _is_operator(item)}
    names = source.with_macros({*UNSAID, *WORD.findall(function)})
    known: set[Item] = set()
    more = {kernel}
    while more:
        known |= more
        for item in more:
            if item.function is None or item.words & DEVICE_WORDS or own.isdisjoint(item.names):  # it may be called
                names |= source.with_macros({*source.words_of(item), *item.names} - names)
        more = {item for name in names & by_name.keys() for item in by_name[name]} - known
        more |= {item for item, signature in unnamed.items() if signature <= names} - known
    return frozenset(known)


def _is_operator(item: Item) -> bool:
    return item.function is not None and any(name.startswith("operator") for name in item.names)


def _signature(item: Item) -> frozenset[str]:
    """Returns the names of types in a function's declarator, or all names of another item."""
    if item.function is None:
        return item.uses
    return frozenset(text_of(node) for node in walk(item.function) if node.type == "type_identifier")
