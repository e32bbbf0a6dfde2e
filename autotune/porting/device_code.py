"""Removes from a source the code that a device's compiler refuses and the kernel does not need: host code, textures.

NVRTC refuses every function and variable without a word such as ``__device__``, even an unused one. A host function
that device code calls stays, so that the compiler reports it; a ``constexpr`` function becomes a device function.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.errors import UsageError
from ..core.units import counted
from ..rendering.includes import place_in
from .host_code import host_code
from .preprocessing import Preprocessed
from .syntax import Item
from .textures import reached, textured, with_callers

# Libraries for host and device: their headers are needed only if device code uses their namespace.
OF_LIBRARY = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(cub|thrust)/[^>\n]*>", re.MULTILINE)
LIBRARY_MACRO = re.compile(r"\b(CUB|THRUST)_\w+")
MOST_NAMED = 6  # how many of the removed functions a message names


@dataclass(frozen=True)
class DeviceCode:
    """A source for the device's compiler. ``text``: blanks replace removed code. ``told``: lines that name it."""

    text: str
    told: tuple[str, ...]


@dataclass(frozen=True)
class ReadSource:
    """A source after the preprocessor, and its items at file and namespace scope."""

    given: Preprocessed
    found: tuple[Item, ...]

    def span(self, item: Item) -> tuple[int, int] | None:
        """Returns an item's span in the source, or None if one macro made it together with its neighbour."""
        return self.given.span(item.node.start_byte, item.node.end_byte)

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


def device_code(text: str, readings: Sequence[ReadSource], kernel: Item, file: str, function: str = "") -> DeviceCode:
    """Returns the source without host code, and without other kernels that use textures.

    ``readings``: the first one is the config's and contains the kernel. Host code of the others is removed as well.
    ``function``: the kernel's name expression, whose template arguments it uses, too.

    Raises:
        UsageError: if the kernel, or a function that it calls, uses textures.
    """
    first = readings[0]
    shown = textured(first.found)
    for item in reached(kernel, first.found, re.findall(r"\w+", function)):
        if item in shown:
            where, line = place_in(text, first.given.at(item.inner.start_byte), file, 1)
            raise UsageError(
                f"{where}:{line}: {min(item.names, default=file)} uses textures ({shown[item]}), which are not "
                "supported: read a const __restrict__ pointer instead, with or without __ldg()"
            )
    place = first.span(kernel)
    alike = [(each, item) for each in readings for item in each.found if item.is_kernel and each.span(item) == place]
    cuts: dict[tuple[int, int], tuple[Item, bool]] = {}
    stays: set[int] = set()  # the ends of items that stay: words before an item may be macros of one reading only
    with_textures = [with_callers(list(textured(each.found)), each.found) for each, _ in alike]
    others = [[i for i in each.found if i not in gone] for (each, _), gone in zip(alike, with_textures, strict=True)]
    starts, used = set[int](), set[str]()
    for (each, own), gone, host in zip(alike, with_textures, host_code(others), strict=True):
        if own in gone:  # this reading of the kernel uses textures
            continue
        left_out = [*(gone if each is first else ()), *host.left_out]
        stays |= {span[1] for item in host.stays if (span := each.span(item)) is not None}
        cuts |= {span: (item, item in gone) for item in left_out if (span := each.span(item)) is not None}
        cuts |= {span: (item, False) for item in host.variables for span in each.around_type(item)}
        used |= host.used
        starts |= {span[0] for item in host.of_device if (span := each.place(item)) is not None}
    spans = sorted(span for span in cuts if span[1] not in stays)
    used |= {found.lower() for found in LIBRARY_MACRO.findall(text)}
    blanked = OF_LIBRARY.sub(lambda match: match[0] if match[1] in used else "", _blanked(text, spans, sorted(starts)))
    gone_by_why = [[cuts[span][0] for span in spans if cuts[span][1] is is_texture] for is_texture in (False, True)]
    whys = "host code", "textures are not supported"
    lines = [_removal_line(file, why, left_out) for why, left_out in zip(whys, gone_by_why, strict=True)]
    return DeviceCode(blanked, tuple(filter(None, lines)))


def _blanked(text: str, spans: Sequence[tuple[int, int]], starts: Sequence[int]) -> str:
    """Returns the text with blanks in ``spans`` and ``__device__`` at ``starts``; preprocessor lines are kept."""
    chars = list(text)
    kept = bytearray(len(text) + 1)
    for begin, end in _directives(text):
        kept[begin:end] = b"\1" * (end - begin)
    for begin, end in spans:
        for at in range(begin, end):
            if chars[at] != "\n" and not kept[at]:
                chars[at] = " "
    for at in starts:
        chars[at] = f"__device__ {chars[at]}"
    return "".join(chars)


def _directives(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and the end of each preprocessor line."""
    at, is_inside, begin = 0, False, 0
    for line in text.split("\n"):
        if not is_inside and line.lstrip().startswith("#"):
            is_inside, begin = True, at
        at += len(line) + 1
        if is_inside and not line.endswith("\\"):
            is_inside = False
            yield begin, at


def _removal_line(file: str, why: str, left_out: Sequence[Item]) -> str:
    """Returns a line that names the removed items; "" if there are none."""
    functions = list(dict.fromkeys(name for item in left_out if item.function is not None for name in item.names))
    n_others = sum(item.function is None for item in dict.fromkeys(left_out))
    if not functions and not n_others:
        return ""
    named = ", ".join(functions[:MOST_NAMED]) + (", .." if len(functions) > MOST_NAMED else "")
    counts = (len(functions), "function"), (n_others, "declaration")
    how_many = " and ".join(counted(n, what) for n, what in counts if n)
    return f"left out of {file} ({why}): {f'{named} ({how_many})' if named else how_many}"
