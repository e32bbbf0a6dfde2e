"""Reads CUDA source as users have it, and makes the template of a kernel from it."""

import re
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import UsageError
from ..rendering.template_checks import TEXTURE
from .cuda_signature import COMMENT

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*$', re.MULTILINE)
MOST_INCLUDES = 256
UNROLL = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+unroll[ \t]+(\w+)[ \t]*$", re.MULTILINE)
ODD = re.compile(r"[^\w.+-]")  # characters that a file's name is told without: it stands in generated code
BLOCKS = ("{% raw %}", "{% endraw %}")


class KernelText:
    """The text of a kernel, with what it includes in quotes put in its place.

    Args:
        given: text, or the path of a file; of several files the first is the kernel's, the others lie where it looks
            for them.
        folders: where files that are included in quotes may lie, besides beside the file.

    Raises:
        UsageError: for a file that is not there, or textures.
    """

    def __init__(self, given: str | Path | Sequence[str | Path], folders: Sequence[Path] = ()) -> None:
        first, *others = [given] if isinstance(given, str | Path) else list(given)
        self.path = _path(first)
        self.name = ODD.sub("_", self.path.name) if self.path else "kernel.cu"
        text = _read(self.path) if self.path else str(first)
        places = [self.path.parent] if self.path else [Path()]
        self._places = [*places, *folders, *(Path(other).parent for other in others)]
        self._n_included = 0
        self._seen: set[Path] = set()
        self.text = self._included(text, self.name, self._places)
        if found := TEXTURE.search(COMMENT.sub(" ", self.text)):
            raise UsageError(
                f"{self.name} uses textures ({found[0].strip(' (')}), which are not served: read a const __restrict__ "
                "pointer instead, through __ldg() or as it is"
            )

    def template(self, kernel: str, unroll: Sequence[str], is_one: bool = True) -> str:
        """Returns the Jinja template of the kernel: defines of the config, and the text with its own line numbers.

        ``unroll``: parameters whose value 0 takes a ``#pragma unroll NAME`` away. ``is_one``: all configs have this
        text; otherwise ``source`` is that of each, as ``named`` makes it.
        """
        if not is_one:
            return f'{{{{ defines }}}}#line 1 "{self.name}"\n{{{{ source }}}}\n'
        for block in BLOCKS:
            if block in self.text:
                raise UsageError(f"{self.name} has {block}, which is Jinja's")

        def conditional(found: re.Match[str]) -> str:
            if found[1] not in unroll:
                return found[0]
            return f"{BLOCKS[1]}{{{{ '' if config['{found[1]}'] == 0 else '#pragma unroll {found[1]}' }}}}{BLOCKS[0]}"

        text = UNROLL.sub(conditional, self.named(kernel))
        return f'{{{{ defines }}}}{BLOCKS[0]}#line 1 "{self.name}"\n{text}\n{BLOCKS[1]}\n'

    def named(self, kernel: str) -> str:
        """Returns the text with a kernel that is found by its name as it is written."""
        place = re.search(rf"__global__\b[^;{{}}]*?\b{re.escape(kernel)}\s*\(", _without_comments(self.text))
        if place is None:
            raise UsageError(f"{self.name}: a config's source has no kernel {kernel!r}")
        if 'extern "C"' in self.text:
            return self.text
        return f'{self.text[: place.start()]}extern "C" {self.text[place.start() :]}'

    def _included(self, text: str, name: str, places: Sequence[Path]) -> str:
        """Returns the text with files that lie in ``places`` in the place of their includes."""

        def content(found: re.Match[str]) -> str:
            path = next((place / found[1] for place in places if (place / found[1]).is_file()), None)
            if path is None:
                return found[0]  # one of CUDA's own, which the compiler has
            self._n_included += 1
            if self._n_included > MOST_INCLUDES:
                raise UsageError(f"{name} includes more than {MOST_INCLUDES} files; does {found[1]} include itself?")
            line = text.count("\n", 0, found.start()) + 2
            inner = _read(path)
            if "#pragma once" in inner and path.resolve() in self._seen:
                return ""
            self._seen.add(path.resolve())
            inner = self._included(inner.replace("#pragma once", ""), found[1], [path.parent, *self._places])
            return f'#line 1 "{found[1]}"\n{inner}\n#line {line} "{name}"'

        return INCLUDE.sub(content, text)


def _path(given: str | Path) -> Path | None:
    """Returns the path that is meant, or None for text."""
    if isinstance(given, str) and ("\n" in given or "{" in given):
        return None
    return Path(given)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise UsageError(f"{path}: the source cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: the source is not text in UTF-8: {error.reason}") from error


def _without_comments(text: str) -> str:
    """Returns the text with blanks for comments, so that places stay."""
    return COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
