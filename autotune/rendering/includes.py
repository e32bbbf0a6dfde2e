"""Puts what a source includes in quotes in the place of the ``#include``, so that it is a part of the text.

A variant is known by its text: its key, its record and its package hold all that is compiled, but for the headers of
CUDA and of the compiler, which are written in ``<>``.
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
# Comments and texts are passed over, since what looks like a directive in one of them is none.
TOKEN = re.compile(
    rf"(?:^|(?<=\*/)){BLANK}(?:#|%:){BLANK}"
    r"(?P<word>include(?:_next)?|import|embed)\b(?P<what>(?:\\[ \t]*\n|[^\n])*)$"
    r'|//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"',
    re.DOTALL | re.MULTILINE,
)
WHAT = re.compile(rf'{BLANK}(?:"(?P<file>[^"\n]+)"|<(?P<header>[^>\n]+)>){BLANK}(?://[^\n]*)?')
CUDAS = re.compile(
    r"(?:cuda|cub/|cuComplex|curand|cooperative_groups|device_|mma\.|math_|nv/|vector_)[\w./]*"
)  # its headers, by name
DEEPEST = 32  # files that include each other


def with_includes(text: str, name: str, folders: Sequence[Path], numbered: bool) -> str:
    """Returns the text of the template ``name`` with the files that it includes; they lie in one of ``folders``.

    ``numbered``: with ``#line`` directives around each, which name the files.

    Raises:
        TrialFailure: render_failed, for a file that is not there or is not text, for files that include each other
            without an end, and for a directive of which no text says which file it means.
    """
    return _Includes(folders, numbered).inlined(text, name, (), 1)


class _Includes:
    """The files that one source has included so far."""

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
        """Returns the file that a directive means; of a header of CUDA's or the compiler's, the line to include it.

        That is in ``<>``, so that no file in the folder in which a command is given is taken for it.
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
        if CUDAS.fullmatch(said["file"]) or said["file"] in own_headers():
            return f"#include <{said['file']}>"
        raise _refused(
            f"{where}: there is no such file beside the template; put it there, or write #include <{said['file']}> if "
            "it is a header of CUDA's"
        )


def place_in(text: str, at: int, name: str, first_line: int) -> tuple[str, int]:
    """Returns the file and the line of a place in a text: by the ``#line`` before it, where there is one."""
    directives = list(DIRECTIVE.finditer(text, 0, at))
    if not directives:
        return name, first_line + text.count("\n", 0, at)
    last = directives[-1]
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
