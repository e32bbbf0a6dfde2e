"""Removes from a source the code that the kernel does not need, much of which a device's compiler would refuse.

NVRTC refuses every function and variable without a word such as ``__device__``, even an unused one. A host function
that device code calls stays, so that the compiler reports it; a ``constexpr`` function becomes a device function.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.errors import UsageError
from ..core.units import counted
from ..rendering.includes import place_in
from .host_code import host_code
from .inclusion import COMMENT
from .reached_code import ReadSource, reached
from .syntax import Item, text_of, walk
from .textures import textured, used_by, with_callers

# Libraries for host and device: their headers are needed only if device code uses their names.
OF_LIBRARY = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(cub(?=/)|thrust(?=/)|curand(?=_))[^>\n]*>", re.MULTILINE)
# A condition may ask for the version of a header that is left out; this one is CUDA 13.0's.
LIBRARY_VERSION = {"cub": "#define CUB_VERSION 300000", "thrust": "#define THRUST_VERSION 300000", "curand": ""}
LIBRARY_NAME = re.compile(r"cub|thrust|(?:(curand|CUB|THRUST|CURAND)_?\w+)")
MOST_NAMED = 6  # how many of the removed functions a message names


@dataclass(frozen=True)
class DeviceCode:
    """A source for the device's compiler. ``text``: blanks replace removed code. ``told``: lines that name it.

    ``members``: names of members that the functions left use.
    """

    text: str
    told: tuple[str, ...]
    members: frozenset[str]


def device_code(text: str, readings: Sequence[ReadSource], kernel: Item, file: str, function: str = "") -> DeviceCode:
    """Returns the source without what the kernel does not need, and without host code.

    ``readings``: the first one is the config's and contains the kernel. What any of them needs stays.
    ``function``: the kernel's name expression, whose template arguments it uses, too.

    Raises:
        UsageError: if the kernel, or a function that it calls, uses textures.
    """
    first = readings[0]
    shown = textured(first.found)
    for item in used_by(kernel, first.found, re.findall(r"\w+", function)):
        if item in shown:
            where, line = place_in(text, first.given.at(item.inner.start_byte), file, 1)
            raise UsageError(
                f"{where}:{line}: {min(item.names, default=file)} uses textures ({shown[item]}), which are not "
                "supported: read a const __restrict__ pointer instead, with or without __ldg()"
            )
    place = first.span(kernel)
    alike = [(each, item) for each in readings for item in each.found if item.is_kernel and each.span(item) == place]
    needed = [reached(each, own, function) for each, own in alike]
    with_textures = [with_callers(list(textured(items)), items) for items in needed]
    whole = list(zip(alike, needed, with_textures, strict=True))
    others = [[item for item in each.found if item in items - gone] for (each, _), items, gone in whole]
    cuts: dict[tuple[int, int], Item] = {}
    stays: set[int] = set()  # the ends of items that stay: words before an item may be macros of one reading only
    starts, used, members = set[int](), set[str](), set[str]()
    made: list[dict[tuple[int, int], str]] = []  # text of macros' calls that stays, in each reading
    for ((each, own), items, gone), host in zip(whole, host_code(others), strict=True):
        if own in gone:  # this reading of the kernel uses textures
            continue
        left_out = {*(item for item in each.found if item not in items), *host.left_out, *gone}
        present = [item for item in host.stays if text_of(item.node).strip("; ")]  # the other reading may have more
        stays |= {span[1] for item in present if (span := each.span(item)) is not None}
        cuts |= dict(each.spans_of(left_out))
        made.append(dict(each.without(left_out)))
        cuts |= {span: item for item in host.variables for span in each.around_type(item)}
        used |= host.used
        bodies = [item.node for item in host.stays if item.function is not None]
        members |= {text_of(node) for body in bodies for node in walk(body) if node.type == "field_identifier"}
        starts |= {span[0] for item in host.of_device if (span := each.place(item)) is not None}
    spans = sorted(span for span in cuts if span[1] not in stays)
    instead = {span: of for span, of in made[0].items() if all(other.get(span) == of for other in made)}
    blanked = _blanked(text, spans, sorted(starts), instead)
    code = list(blanked)
    for begin, end in _directives(blanked):
        code[begin:end] = " " * (end - begin)
    used |= set(re.findall(r"\b(?:CUB|THRUST|CURAND)_\w+", COMMENT.sub(" ", "".join(code))))
    named = {(found[1] or found[0]).lower() for name in used if (found := LIBRARY_NAME.fullmatch(name)) is not None}
    blanked = OF_LIBRARY.sub(lambda match: match[0] if match[1] in named else LIBRARY_VERSION[match[1]], blanked)
    told = _removal_line(file, [cuts[span] for span in spans])
    return DeviceCode(blanked, (told,) if told else (), frozenset(members))


def _blanked(
    text: str, spans: Sequence[tuple[int, int]], starts: Sequence[int], instead: Mapping[tuple[int, int], str]
) -> str:
    """Returns the text with blanks in ``spans`` and ``__device__`` at ``starts``; preprocessor lines are kept.

    ``instead``: what replaces other spans.
    """
    chars = list(text)
    kept = bytearray(len(text) + 1)
    for begin, end in _directives(text):
        kept[begin:end] = b"\1" * (end - begin)
    for begin, end in (*spans, *instead):
        for at in range(begin, end):
            if chars[at] != "\n" and not kept[at]:
                chars[at] = " "
    for at in starts:
        chars[at] = f"__device__ {chars[at]}"
    for (begin, _), said in instead.items():
        chars[begin] = f"{said}{chars[begin]}"
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


def _removal_line(file: str, left_out: Sequence[Item]) -> str:
    """Returns a line that names the removed items; "" if there are none."""
    functions = list(dict.fromkeys(name for item in left_out if item.function is not None for name in item.names))
    n_others = sum(item.function is None for item in dict.fromkeys(left_out))
    if not functions and not n_others:
        return ""
    named = ", ".join(functions[:MOST_NAMED]) + (", .." if len(functions) > MOST_NAMED else "")
    counts = (len(functions), "function"), (n_others, "declaration")
    how_many = " and ".join(counted(n, what) for n, what in counts if n)
    return f"left out of {file} (not needed by the kernel): {f'{named} ({how_many})' if named else how_many}"
