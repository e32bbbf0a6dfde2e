"""Runs the preprocessor over CUDA text, and keeps the original place of each token.

The result has no comments, directives or dead branches, and its macros are expanded. Includes of ``<..>`` are not
read, so their macros are unknown here, except the version of CUDA.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from pcpp import Preprocessor
from pcpp.parser import Action, OutputDirective

from ..core.errors import UsageError
from ..runtime.nvrtc import cudart_version

PREDEFINED = {
    "__CUDACC__": "1",
    "__CUDACC_RTC__": "1",
    "__CUDA_ARCH__": "900",
    "__cplusplus": "201703L",
    "__LP64__": "1",
    # attributes of declarations, which do not change the declared name and type
    "_Pragma(x)": "",
    "__align__(n)": "",
    "__builtin_align__(n)": "",
    "__cluster_dims__(...)": "",
    "__block_size__(...)": "",
    "__maxnreg__(n)": "",
}
MOST_TOKENS = 800_000  # words of a text, counted again in each macro that they go through
MOST_NAMED = 3
WORD_OR_BLANK = re.compile(r"[\w\s]")
TRIGRAPH = re.compile(r"\?\?(?=[=/'()!<>-])")
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
OF_DRIVER = re.compile(r'[<"]cuda\.h[>"]')  # the header with CUDA_VERSION
ODD_BLANK = re.compile(r"[\r\f\v\x1c-\x1e\x85\u2028\u2029]")  # Python takes some of these for line ends


@dataclass(frozen=True)
class Place:
    """The place of a token in the text: its span, or the whole lines of the call if a macro made it."""

    start: int
    end: int
    is_made: bool


@dataclass(frozen=True)
class Preprocessed:
    """The output of the preprocessor for ``original``; both are ASCII."""

    original: str
    text: str
    starts: tuple[int, ...]  # start of each token in ``text``
    places: tuple[Place, ...]  # place of each token in ``original``
    names: frozenset[str]  # names in the text, and in the conditions of directives
    assumed: frozenset[str]  # names in conditions without a definition here; the compiler's headers may define them
    included: frozenset[str] = frozenset()  # headers that are not read, where conditions hold
    given: frozenset[str] = frozenset()  # macros with a value from outside of the text

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Returns the span in the original of a part of ``text``; None if one macro made it and its neighbour.

        If the part begins or ends in a macro, the span extends to the neighbouring token, or to the end of the line.
        """
        first, last = self._token(start), self._token(end - 1)
        before = self.places[first - 1] if first else Place(0, 0, False)
        n, is_last = len(self.original), last + 1 == len(self.places)
        after = Place(n, n, False) if is_last else self.places[last + 1]
        begins, ends = self.places[first], self.places[last]
        for one, other in ((begins, before), (ends, after)):
            if one.is_made and other.is_made and one.start == other.start:
                return None
        begin = max(begins.start, before.end) if begins.is_made and not before.is_made else begins.start
        return begin, min(ends.end, after.start) if ends.is_made and not after.is_made else ends.end

    def cut(self, start: int, end: int) -> tuple[int, int] | None:
        """Returns ``span`` with the words before it that are empty macros here, and may not be so for a compiler."""
        if (span := self.span(start, end)) is None:
            return None
        first, begin = self._token(start), span[0]
        while begin > (self.places[first - 1].end if first else 0) and WORD_OR_BLANK.match(self.original[begin - 1]):
            begin -= 1
        return begin, span[1]

    def calls(self, start: int, end: int) -> tuple[int, int]:
        """Returns a part of ``text`` that contains this one, and the whole output of macros at its start and end."""
        first, last = self._token(start), self._token(end - 1)
        while first and self.places[first].is_made and self.places[first - 1] == self.places[first]:
            first -= 1
        while last + 1 < len(self.places) and self.places[last].is_made and self.places[last + 1] == self.places[last]:
            last += 1
        return self.starts[first], self.starts[last] + 1

    def at(self, start: int) -> int:
        """Returns the start, in the original, of the token at the place ``start`` of ``text``."""
        return self.places[self._token(start)].start

    def _token(self, at: int) -> int:
        return bisect_right(self.starts, at) - 1


def tidied(text: str) -> str:
    """Returns text without a byte order mark and without trailing blanks, in the form that ``preprocessed`` needs."""
    return "\n".join(line.rstrip() for line in ODD_BLANK.sub(" ", text.removeprefix("\ufeff")).split("\n"))


def preprocessed(text: str, macros: Mapping[str, object], kept: Mapping[str, str] = {}) -> Preprocessed:
    """Returns the output of the preprocessor for a tidied text.

    ``macros``: name -> value. ``kept``: names that stay as they are, whatever the text defines; conditions take their
    values.
    """
    preprocessor = _Preprocessor(NOT_ASCII.sub("?", text), kept)
    given = {**PREDEFINED, "CUDART_VERSION": cudart_version(), **macros}
    for name, value in given.items():
        preprocessor.define(f"{name} {int(value) if isinstance(value, bool) else value}")
    for name in kept:
        preprocessor.define(f"{name} {name}")
    return replace(preprocessor.result(), given=frozenset(name.partition("(")[0] for name in (*given, *kept)))


class TooManyWordsError(UsageError):
    """A source, with the files that it includes, is too large to be read."""


class _Preprocessor(Preprocessor):  # type: ignore[misc]
    """Records the places of tokens and the names in conditions. It ignores errors, which the compiler reports."""

    def __init__(self, original: str, kept: Mapping[str, str]) -> None:
        super().__init__()
        self._original, self._kept, self._n_expanded = original, kept, 0
        self._asked: set[str] = set()  # names in conditions that have no value
        self._included: set[str] = set()
        self._defined: set[str] = set()  # names that a #define defines, in any branch

    def result(self) -> Preprocessed:
        lengths = accumulate((len(line) + 1 for line in self._original.split("\n")), initial=0)
        lines = list(lengths)
        self.parse(TRIGRAPH.sub("? ", self._original))  # C++17 has none, and they would move what follows
        parts: list[str] = []
        starts: list[int] = []
        places: list[Place] = []
        names, at, was_made = set[str](), 0, False
        while (token := self.token()) is not None:
            is_made = bool(getattr(token, "expanded_from", ()))
            if is_made != was_made:  # a blank keeps the output of a macro apart from its neighbours
                parts.append(" ")
                at += 1
            was_made = is_made
            if token.value.strip():
                place = Place(token.lexpos, token.lexpos + len(token.value), False)
                if is_made:
                    place = self._call(token, lines)
                    within = places[-1] if places and places[-1].is_made else place
                    place = within if within.start <= place.start < within.end else place
                starts.append(at)
                places.append(place)
                if token.type == self.t_ID:
                    names.add(token.value)
            parts.append(token.value)
            at += len(token.value)
        named, assumed = frozenset(names | self._asked), frozenset(self._asked - self._defined)
        included = frozenset(self._included)
        return Preprocessed(self._original, "".join(parts), tuple(starts), tuple(places), named, assumed, included)

    def _call(self, token: Any, lines: list[int]) -> Place:
        """Returns the lines of the macro's call that made a token."""
        start, end = lines[token.lineno - 1], lines[token.lineno] - 1
        called = re.compile(rf"\b{token.expanded_from[0]}\s*\(").search(self._original, start, end)
        at, depth = (called.end(), 1) if called is not None else (end, 0)
        while depth and at < len(self._original):
            depth += {"(": 1, ")": -1}.get(self._original[at], 0)
            at += 1
        return Place(start, max(end, at), True)

    def expand_macros(self, tokens: Any, expanding_from: Any = []) -> Any:
        """Expands macros as the base class does. Raises UsageError if they grow without measure."""
        self._n_expanded += len(tokens)
        if self._n_expanded > MOST_TOKENS:
            names = ", ".join(dict.fromkeys(expanding_from[:MOST_NAMED]))
            by = f", by macros such as {names}" if names else ", with the files that it includes"
            counted = f"more than {MOST_TOKENS} words, counted again in each macro{by}"
            what = "leave out folders (-I) of headers that only its host code needs"
            raise TooManyWordsError(f"the source has {counted}: {what}")
        return super().expand_macros(tokens, expanding_from)

    def include(self, tokens: Any, original_line: Any) -> Iterator[Any]:
        """Notes the header, and reads nothing."""
        said = "".join(token.value for token in tokens).strip()
        self._included.add(said[1:-1])
        if OF_DRIVER.fullmatch(said):
            self.define("CUDA_VERSION CUDART_VERSION")
        return iter(())

    def on_error(self, file: object, line: int, message: str) -> None:
        """Ignores the error: the compiler will report it."""

    def on_directive_handle(self, directive: Any, tokens: Any, ifpassthru: bool, before: Any) -> bool | None:
        super().on_directive_handle(directive, tokens, ifpassthru, before)
        if directive.value in ("define", "undef") and tokens and tokens[0].value in self._kept:
            raise OutputDirective(Action.IgnoreAndRemove)
        if directive.value == "define" and tokens:
            self._defined.add(tokens[0].value)
        return True

    def on_directive_unknown(self, directive: Any, tokens: Any, ifpassthru: bool, before: Any) -> bool:
        return True

    def on_unknown_macro_in_defined_expr(self, token: Any) -> bool:
        self._asked.add(token.value)
        return False

    def on_unknown_macro_in_expr(self, name: str) -> int:
        if name in self._kept:
            value = self._kept[name]
            return int(value) if value.lstrip("-").isdigit() else int(value == "True")
        self._asked.add(name)
        return int(name == "true")
