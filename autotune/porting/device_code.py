"""Leaves out of a source what a device's compiler refuses and the kernel does not need: host code, and textures.

NVRTC takes no function and no variable without a word such as ``__device__``, called or not. A function that device
code calls stays, and the compiler says what is wrong with it; a ``constexpr`` one becomes one of the device's.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..core.errors import UsageError
from ..rendering.includes import place_in
from .host_code import host_code
from .preprocessing import Preprocessed
from .syntax import Item
from .textures import reached, textured, with_callers

# Libraries for both sides, each with a namespace: their headers are of use where device code names that.
OF_LIBRARY = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(cub|thrust)/[^>\n]*>", re.MULTILINE)
MOST_NAMED = 6  # things that are left out, by name


@dataclass(frozen=True)
class DeviceCode:
    """A source as it is compiled: ``text`` has blanks for what is left out, which ``told`` says, one line each."""

    text: str
    told: tuple[str, ...]


@dataclass(frozen=True)
class ReadSource:
    """What the preprocessor leaves of a source, and what stands at file and namespace scope there."""

    given: Preprocessed
    found: tuple[Item, ...]

    def span(self, item: Item) -> tuple[int, int] | None:
        """Returns where an item stands in the source; None: a macro made it together with what is beside."""
        return self.given.span(item.node.start_byte, item.node.end_byte)

    def place(self, item: Item) -> tuple[int, int] | None:
        """Returns where an item stands in the source, without what is before its words."""
        return self.given.span(item.inner.start_byte, item.inner.end_byte)

    def around_type(self, item: Item) -> list[tuple[int, int]]:
        """Returns where the words before a variable's type and the declarators after it stand in the source."""
        kind, *_ = item.inner.children_by_field_name("type")
        first, *_, last = item.inner.children_by_field_name("declarator") * 2
        parts = (item.inner.start_byte, kind.start_byte), (first.start_byte, last.end_byte)
        spans = [self.given.span(begin, end) for begin, end in parts if begin < end]
        return [span for span in spans if span is not None]


def device_code(text: str, readings: Sequence[ReadSource], kernel: Item, file: str) -> DeviceCode:
    """Returns the source without host code, and without other kernels that use textures.

    ``readings``: the first one is of the config, and has the kernel. What another one has besides is left out, too.

    Raises:
        UsageError: when the kernel, or what it calls, uses textures.
    """
    first = readings[0]
    shown = textured(first.found)
    for item in reached(kernel, first.found):
        if item in shown:
            where, line = place_in(text, first.given.at(item.inner.start_byte), file, 1)
            raise UsageError(
                f"{where}:{line}: {min(item.names, default=file)} uses textures ({shown[item]}), which are not served: "
                "read a const __restrict__ pointer instead, through __ldg() or as it is"
            )
    place = first.span(kernel)
    alike = [(each, item) for each in readings for item in each.found if item.is_kernel and each.span(item) == place]
    cuts: dict[tuple[int, int], tuple[Item, bool]] = {}
    stays: set[int] = set()  # where what stays ends: words before it may be macros of one reading only
    with_textures = [with_callers(list(textured(each.found)), each.found) for each, _ in alike]
    others = [[i for i in each.found if i not in gone] for (each, _), gone in zip(alike, with_textures, strict=True)]
    starts, used = set[int](), set[str]()
    for (each, own), gone, host in zip(alike, with_textures, host_code(others), strict=True):
        if own in gone:  # where the preprocessor does not read it so
            continue
        left_out = [*(gone if each is first else ()), *host.left_out]
        stays |= {span[1] for item in host.stays if (span := each.span(item)) is not None}
        cuts |= {span: (item, item in gone) for item in left_out if (span := each.span(item)) is not None}
        cuts |= {span: (item, False) for item in host.variables for span in each.around_type(item)}
        used |= host.used
        starts |= {span[0] for item in host.of_device if (span := each.place(item)) is not None}
    spans = sorted(span for span in cuts if span[1] not in stays)
    blanked = OF_LIBRARY.sub(lambda found: found[0] if found[1] in used else "", _blanked(text, spans, sorted(starts)))
    gone_by_why = [[cuts[span][0] for span in spans if cuts[span][1] is is_texture] for is_texture in (False, True)]
    whys = "since it is host code", "since textures are not served"
    told = [_told(file, why, left_out) for why, left_out in zip(whys, gone_by_why, strict=True)]
    return DeviceCode(blanked, tuple(filter(None, told)))


def _blanked(text: str, spans: Sequence[tuple[int, int]], starts: Sequence[int]) -> str:
    """Returns text with blanks in spans, but for lines of the preprocessor, and ``__device__`` at ``starts``."""
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
    """Yields where the lines of the preprocessor begin and end."""
    at, is_inside, begin = 0, False, 0
    for line in text.split("\n"):
        if not is_inside and line.lstrip().startswith("#"):
            is_inside, begin = True, at
        at += len(line) + 1
        if is_inside and not line.endswith("\\"):
            is_inside = False
            yield begin, at


def _told(file: str, why: str, left_out: Sequence[Item]) -> str:
    """Returns a line on what is left out; "" if that is nothing."""
    functions = list(dict.fromkeys(name for item in left_out if item.function is not None for name in item.names))
    n_others = sum(item.function is None for item in dict.fromkeys(left_out))
    if not functions and not n_others:
        return ""
    named = ", ".join(functions[:MOST_NAMED]) + (", .." if len(functions) > MOST_NAMED else "")
    counts = (len(functions), "function"), (n_others, "declaration")
    counted = " and ".join(f"{n} {what}{'s' if n > 1 else ''}" for n, what in counts if n)
    return f"left out of {file}, {why}: {f'{named} ({counted})' if named else counted}"
