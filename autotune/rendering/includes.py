"""Replaces each ``#include "file"`` by the file's text, so that it becomes part of the source.

A variant is identified by its text: its key, its record and its package cover all compiled code except the headers of
CUDA and of the compiler, which are included in ``<>``.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import Status, TrialFailure
from ..runtime.nvrtc import own_headers

DIRECTIVE = re.compile(r'^#line (\d+) "(.*)"$', re.MULTILINE)
ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*$", re.MULTILINE)
CONTINUED = re.compile(r"\\[ \t]*\n")
BLANK = r"(?:[ \t]|/\*[^\n]*?\*/)*"
# Comments and strings are matched too, since a directive inside them does not count.
TOKEN = re.compile(
    rf"(?:^|(?<=\*/)){BLANK}(?:#|%:){BLANK}(?:(?P<condition>if(?:n?def)?|el(?:se|if(?:n?def)?)|endif)\b"
    r"|(?P<word>include(?:_next)?|import|embed)\b(?P<what>(?:\\[ \t]*\n|[^\n])*)$)"
    r'|//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"',
    re.DOTALL | re.MULTILINE,
)
WHAT = re.compile(rf'{BLANK}(?:"(?P<file>[^"\n]+)"|<(?P<header>[^>\n]+)>){BLANK}(?://[^\n]*)?')
CUDAS = re.compile(
    r"(?:cuda|cub/|thrust/|cuComplex|curand|cooperative_groups|device_|driver_types|host_|mma\.|math_|nv/|"
    r"sm_\d|surface_|texture_|vector_)[\w./]*"
)  # names of CUDA's headers
DEEPEST = 32  # levels of nested includes


def with_includes(text: str, name: str, folders: Sequence[Path], numbered: bool) -> str:
    """Returns the text of the template ``name`` with its included files, which lie in one of ``folders``.

    ``numbered``: put ``#line`` directives, which name the files, around each.

    Raises:
        TrialFailure: render_failed, for a file that is missing or is not text, for endless includes, and for a
            directive that does not name its file literally.
    """
    return _Includes(folders, numbered).inlined(text, name, (), 1)


class _Includes:
    """Inlines the includes of one source, and remembers the files with ``#pragma once``."""

    def __init__(self, folders: Sequence[Path], numbered: bool) -> None:
        self._folders, self._numbered = folders, numbered
        self._once: set[Path] = set()

    def inlined(self, text: str, name: str, within: tuple[Path, ...], first_line: int) -> str:
        def content(found: re.Match[str]) -> str:
            if found["word"] is None:
                return found[0]
            file, line = place_in(text, found.start(), name, first_line)
            where = f"{file}:{line}: {' '.join(CONTINUED.sub(' ', found[0]).split())}"
            path = self._meant(found, where, within)
            if isinstance(path, str):
                return path
            if path.resolve() in self._once:
                return ""
            if len(within) >= DEEPEST:
                raise _refused(f"{where}: more than {DEEPEST} files include each other; take one of these lines out")
            part = _read(path, where)
            if ONCE.search(part):
                self._once.add(path.resolve())
                part = ONCE.sub("", part)
            part = self.inlined(part, path.name, (*within, path), 1)
            if not self._numbered:
                return part
            return f'#line 1 "{path.name}"\n{part}\n#line {line + 1 + found[0].count(chr(10))} "{file}"'

        return TOKEN.sub(content, text)

    def _meant(self, found: re.Match[str], where: str, within: tuple[Path, ...]) -> Path | str:
        """Returns the file of a directive, or for a header of CUDA or the compiler the line that includes it.

        This line uses ``<>``, so that the compiler does not find a file of the same name in the current folder.
        """
        said = WHAT.fullmatch(CONTINUED.sub("", found["what"]))
        if said is None or found["word"] != "include":
            raise _refused(f'{where}: a template may #include "file" and #include <header>, each on a line of its own')
        if (header := said["header"]) is not None:
            if header.startswith(("/", "~")) or ".." in Path(header).parts:
                raise _refused(f'{where}: name a file in quotes, so that its text is a part of the source: "{header}"')
            return found[0]
        places = [within[-1].parent, *self._folders] if within else self._folders
        for place in places:
            if (path := place / said["file"]).is_file():
                return path
        if is_of_compiler(said["file"]):
            return f"#include <{said['file']}>"
        raise _refused(
            f"{where}: there is no such file beside the template; put it there, or write #include <{said['file']}> if "
            "it is a header of CUDA's"
        )


def is_of_compiler(header: str) -> bool:
    """Returns whether a header is one of CUDA's, of C or of C++, whichever way the source includes it."""
    return CUDAS.fullmatch(header) is not None or header in own_headers()


def place_in(text: str, at: int, name: str, first_line: int) -> tuple[str, int]:
    """Returns the file and the line of a position in a text, from the last ``#line`` before it if there is one."""
    last = DIRECTIVE.match(text, text.rfind("\n#line ", 0, at) + 1)
    if last is None or last.end() > at:
        return name, first_line + text.count("\n", 0, at)
    return last[2], int(last[1]) + text.count("\n", last.end() + 1, at)


def _read(path: Path, where: str) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise _refused(f"{where}: {path.name} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise _refused(f"{where}: {path.name} is not text in UTF-8: {error.reason}") from error


def _refused(why: str) -> TrialFailure:
    return TrialFailure(Status.RENDER_FAILED, why)
