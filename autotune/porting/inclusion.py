"""Inserts the files that a user's CUDA source includes, under the conditions that stand around them."""

import re
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import UsageError
from ..core.files import content_of
from ..rendering.includes import TOKEN, WHAT, is_of_compiler
from .preprocessing import tidied

MOST_INCLUDES = 2000
IF_THERE = "#if __has_include(<{0}>)\n#include <{0}>\n"
ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.MULTILINE)
GUARD = re.compile(
    r"^[ \t]*#[ \t]*if(?:ndef[ \t]+|[ \t]*![ \t]*defined[ \t]*\(?[ \t]*)(\w+)[^\n]*\n\s*#[ \t]*define[ \t]+\1\b",
    re.MULTILINE,
)
UNDEFINED = re.compile(r"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.MULTILINE)
COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?\*/", re.DOTALL)


class Inclusion:
    """Inserts files into one source.

    Args:
        folders: folders of included files; files in quotes are also looked for beside the including file.
        places: folders in which files in quotes are looked for, ``folders`` among them.
    """

    def __init__(self, folders: Sequence[Path], places: Sequence[Path]) -> None:
        self._folders, self._places = ([each for each in of if not _is_of_cuda(each)] for of in (folders, places))
        self._n_included = self._n_branches = 0
        self._inserted: dict[Path, list[tuple[int, ...]]] = {}  # file with a guard -> the branches around its places

    def inserted(self, text: str, name: str, within: tuple[Path, ...], around: tuple[int, ...] = ()) -> str:
        """Returns the text in which includes of files that are found are replaced by the files' texts.

        ``name``: of the file, in ``#line`` directives. ``within``: the files that include each other down to this one.
        ``around``: numbers of the branches around it. A file with a guard is inserted once for all places at which the
        branches of the first one are compiled, too.

        Raises:
            UsageError: for too many files, or a file that cannot be read.
        """
        places = [within[-1].parent, *self._places] if within else self._places
        branches: list[tuple[int, ...]] = []  # the number of each open branch; () for the file's own guard
        guard = _own_guard(text)

        def content(found: re.Match[str]) -> str:
            if condition := found["condition"]:
                self._n_branches += 1
                if not condition.startswith("if") and branches:
                    branches.pop()
                if condition != "endif":
                    is_own = guard is not None and guard.start() <= found.start() < guard.end()
                    branches.append(() if is_own else (self._n_branches,))
            if found["word"] != "include":
                return found[0]  # a comment, a text, or a directive that the compiler refuses
            return self._content_of(found, text, name, places, within, sum(branches, around))

        return TOKEN.sub(content, text)

    def _content_of(
        self,
        found: re.Match[str],
        text: str,
        name: str,
        places: Sequence[Path],
        within: tuple[Path, ...],
        branches: tuple[int, ...],
    ) -> str:
        """Returns what replaces one include in ``text``."""
        match = WHAT.fullmatch(found["what"])
        if match is None:
            return error_at(found, "a macro names the file, which is not followed: write its name")
        file, line = match["file"] or match["header"], text.count("\n", 0, found.end()) + 2
        among = places if match["file"] else self._folders  # <..> does not look beside the file
        path = next((place / file for place in among if (place / file).is_file()), None)
        is_of_system = ".." not in Path(file).parts and not file.startswith(("/", "~"))
        is_inner = len(within) > 1 and is_of_system  # host code of a header may need it
        if path is None and (match["header"] or is_of_compiler(file) or is_inner):
            return f"#include <{file}>"
        if path is None:
            error = error_at(found, f"there is no such file beside {name}, or in a folder of -I")
            if not is_of_system:
                return error
            at = f'#line {text.count(chr(10), 0, found.start()) + 1} "{name}"'
            return f'{IF_THERE.format(file)}#else\n{at}\n{error}\n#endif\n#line {line} "{name}"'
        inner, whole = read_text(path), path.resolve()
        known = any(branches[: len(first)] == first for first in self._inserted.get(whole, ()))
        is_guarded = _own_guard(inner) is not None
        if known or (whole in within and is_guarded):
            return ""
        if within.count(whole) > 1:  # a guard that does not hold all of it may end this, or a condition
            return error_at(found, f"{file} includes itself endlessly")
        self._n_included += 1
        if self._n_included > MOST_INCLUDES:
            raise UsageError(f"the source includes more than {MOST_INCLUDES} files; the last one is {file}, in {name}")
        before = after = ""
        if ONCE.search(inner):
            number = list({**self._inserted, whole: []}).index(whole)
            before, after = f"#ifndef AUTOTUNE_ONCE_{number}\n#define AUTOTUNE_ONCE_{number}\n", "#endif\n"
        if before or is_guarded:
            self._inserted.setdefault(whole, []).append(branches)
        inner = self.inserted(ONCE.sub("", inner), file, (*within, whole), branches)
        return f'{before}#line 1 "{file}"\n{inner}\n{after}#line {line} "{name}"'


def _is_of_cuda(folder: Path) -> bool:
    """Returns whether the folder has the toolkit's headers, which the compiler brings itself."""
    return (folder / "cuda_runtime_api.h").is_file() and (folder / "crt").is_dir()


def read_text(path: Path) -> str:
    """Returns the tidied text of a source file.

    Raises:
        UsageError: for a file that cannot be read, or is not text.
    """
    try:
        data = content_of(path)
    except OSError as error:
        raise UsageError(f"{path}: the source cannot be read: {error.strerror}") from error
    if b"\0" in data:
        raise UsageError(f"{path}: the source is not text: it has bytes of 0")
    try:
        return tidied(data.decode())
    except UnicodeDecodeError:  # older files have other bytes in their comments
        return tidied(data.decode("latin-1"))


def error_at(found: re.Match[str], why: str) -> str:
    """Returns a directive with which a compile fails where the condition around the include holds, and only there."""
    said, n_lines = " ".join(found[0].replace("\\\n", " ").split()), found[0].count("\n")
    return f"#error {said}: {why}".replace("'", " ") + "\n" * n_lines


def _own_guard(text: str) -> re.Match[str] | None:
    """Returns the condition and the definition of the macro with which a file says that it counts once; else None.

    The file's whole text stands between them and the ``#endif``.
    """
    guard = GUARD.search(text)
    if guard is None or COMMENT.sub("", text[: guard.start()]).strip() or guard[1] in UNDEFINED.findall(text):
        return None
    depth = end = 0
    for found in TOKEN.finditer(text, guard.start()):
        if condition := found["condition"]:
            if end or (depth == 1 and condition.startswith("el")):
                return None
            depth += condition.startswith("if") - (condition == "endif")
            end = 0 if depth else found.end()
    rest = text[end:].partition("\n")[2]  # the line of an #endif may have more words, which compilers ignore
    return guard if end and not COMMENT.sub("", rest).strip() else None
