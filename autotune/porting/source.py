"""Reads the user's CUDA source, and makes the template of a kernel from it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from ..core.errors import UsageError
from ..rendering.includes import is_of_compiler, place_in
from .cuda_signature import POINTER_OF_CUDA, CudaParameter
from .device_code import device_code
from .inclusion import IF_THERE, Inclusion, read_text
from .named_kernel import kernel_name, named_kernel, split_at_commas
from .preprocessing import TooManyWordsError, preprocessed, tidied
from .reached_code import ReadSource
from .syntax import items, syntax_tree

ALIGNED = re.compile(r"\b(?:__align__|alignas|__builtin_align__)\s*\(\s*(\d+)")
UNROLL = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+unroll[ \t]+(\w+)[ \t]*$", re.MULTILINE)
TEMPLATE = re.compile(r"\btemplate\s*<([^;{}#]*?)>\s*(?=[\w_])")
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+?)[ \t]*(?://.*|/\*.*)?$", re.MULTILINE)
OWN_DEFINE = re.compile(
    r"(?P<guard>^[ \t]*#[ \t]*if(?:ndef[ \t]+|[ \t]*![ \t]*defined[ \t]*\(?[ \t]*)(?P<guarded>\w+)[^\n]*\n)?"
    r"^[ \t]*#[ \t]*(?P<word>define|undef)[ \t]+(?P<name>(?(guard)(?P=guarded)|\w+))\b(?!\()(?:\\\n|[^\n])*$",
    re.MULTILINE,
)
VALUE_OF = "autotune_value_of_"  # begins the name of the macro whose value a constant of the source takes
OWN_CONSTANT = re.compile(
    r"^(?P<head>[ \t]*(?:(?:static|inline|__device__|__constant__)[ \t]+)*(?P<word>const(?:expr)?)[ \t]+"
    r"(?:[\w:]+[ \t]+)+)(?P<values>\w+[ \t]*=[ \t]*[^;{}]*);",
    re.MULTILINE,
)
CONSTANT = re.compile(r"\s*(\w+)\s*=\s*(.*)", re.DOTALL)
HEADER = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<(?P<header>[^>\n]+)>[^\n]*$", re.MULTILINE)
DECLARED = re.compile(r"(?:^|,)[^,=]*?\b([A-Za-z_]\w*)\s*(?==|,|$)")  # the last name of each parameter
ODD = re.compile(r"[^\w.+-]")  # characters that are replaced in a file's name, since it appears in generated code
ERROR = re.compile(r"^[ \t]*#[ \t]*error\b(?:\\\n|[^\n])*$", re.MULTILINE)
LACKS = "AUTOTUNE_LACKS_HEADER"  # is defined behind a header that is left out
WITHOUT = "left out where the compiler has no such header"
SYSTEM = "include", "lib/gcc/*/*/include"  # folders below /usr
GRID_SIZES = frozenset(f"grid_size_{axis}" for axis in "xyz")
OF_HOST = dict.fromkeys(("__x86_64__", "__x86_64", "__amd64__", "__linux__", "__linux", "__unix__", "__SSE2__"), 1)
OF_HOST |= {"__GNUC__": 12, "__GNUG__": 12, "__SSE__": 1, "__ELF__": 1}  # g++ defines them so
BLOCKS = ("{% raw %}", "{% endraw %}")
# macros that NVRTC defines, for devices with another compiler
COMPILER = "#ifndef __CUDACC__\n#define __CUDACC__\n#define __CUDACC_RTC__\n#endif\n"


@dataclass(frozen=True)
class KernelSource:
    """A kernel of a source, read with the macros of one config.

    ``text``: the source for the compiler. ``function``: the kernel's name expression; "": its plain name is enough.
    ``names``: names in the text. ``of_templates``: parameters of its templates, which a macro of
    the same name would replace. ``told``: lines that name the removed code. ``digest``: of the whole file with what it
    includes. ``defined``: its macros of one word and its constants, by name; ``constants``: the latter.
    """

    file: str
    text: str
    function: str
    parameters: tuple[CudaParameter, ...]
    names: frozenset[str]
    of_templates: frozenset[str] = frozenset()
    told: tuple[str, ...] = ()
    digest: str = ""
    defined: Mapping[str, str] = field(default_factory=dict)
    constants: frozenset[str] = frozenset()
    lacking: tuple[str, ...] = ()  # headers that no compiler here has
    alignment: int = 16  # bytes: the largest that a type of the source asks for

    def macro_of(self, name: str) -> str:
        """Returns the macro that gives a parameter its value: itself, or the one that a constant of its name takes."""
        return VALUE_OF + name if name in self.constants else name

    def template(self, unroll: Sequence[str], is_one: bool = True) -> str:
        """Returns the Jinja template of the kernel: defines of the config, and the text with its own line numbers.

        ``unroll``: parameters whose value 0 removes ``#pragma unroll NAME``. ``is_one``: all configs share this text;
        otherwise the template inserts ``source``.
        """
        if not is_one:
            return f'{COMPILER}{{{{ defines }}}}#line 1 "{self.file}"\n{{{{ source }}}}\n'
        for block in BLOCKS:
            if block in self.text:
                raise UsageError(f"{self.file} contains {block}, which Jinja would interpret")

        def conditional(match: re.Match[str]) -> str:
            if match[1] not in unroll:
                return match[0]
            return f"{BLOCKS[1]}{{{{ '' if config['{match[1]}'] == 0 else '#pragma unroll {match[1]}' }}}}{BLOCKS[0]}"

        text = UNROLL.sub(conditional, self.text)
        return f'{COMPILER}{{{{ defines }}}}{BLOCKS[0]}#line 1 "{self.file}"\n{text}\n{BLOCKS[1]}\n'


class KernelText:
    """The text of a source, in which included files are inserted, as far as they are found.

    Args:
        source: text, the path of a file, or several paths: the first file has the kernel, and includes are also looked
            for beside the others.
        folders: folders of included files; files in quotes are also looked for beside the including file.

    Raises:
        UsageError: for a file that does not exist, or is not text.
    """

    def __init__(self, source: str | Path | Sequence[str | Path], folders: Sequence[Path] = ()) -> None:
        first, *others = [source] if isinstance(source, str | Path) else list(source)
        path = _path(first)
        self.name = ODD.sub("_", path.name) if path else "kernel.cu"
        text = read_text(path) if path else tidied(str(first))
        places = [path.parent] if path else [Path()]
        places += [*folders, *(Path(other).parent for other in others)]
        self._told: tuple[str, ...] = ()

        def inserted(of_system: Sequence[Path]) -> str:
            whole = Inclusion(of_system, places).inserted(text, self.name, (path.resolve(),) if path else ())
            return _with_excusable_errors(whole, self.name)

        self._inserted, self.text = inserted, inserted(folders)

    def read(self, kernel: str, macros: Mapping[str, object]) -> KernelSource:
        """Returns the kernel with this name expression; ``macros``: name -> value; parameters of templates are none.

        Raises:
            UsageError: if there is no such kernel, or it uses textures.
        """
        given = tuple(sorted(macros.items()))
        try:
            found = _read_kernel(self.text, self.name, kernel, given)
        except TooManyWordsError:
            if self._told:
                raise
            self._told = ("left out, since the source is too large with them: headers in <> from folders of -I",)
            self.text = self._inserted(())
            found = _read_kernel(self.text, self.name, kernel, given)
        return replace(found, told=(*self._told, *found.told))


@lru_cache(maxsize=4096)
def _read_kernel(whole: str, file: str, kernel: str, macros: tuple[tuple[str, object], ...]) -> KernelSource:
    """Reads a source, once for each text and each set of macros.

    A condition on a name from the compiler's headers may hide host code. So the source is read a second time, with
    these names defined; and, if the host's compiler has some of them, with these alone.
    """
    of_templates = frozenset(name for found in TEMPLATE.finditer(whole) for name in DECLARED.findall(found[1]))
    values = {name: value for name, value in macros if name not in of_templates}
    text, gave_way = _without_own_values(whole, values, file)
    constants = _constants_in(whole)
    values = {VALUE_OF + name if name in constants else name: value for name, value in values.items()}
    first = _reading(text, values)
    named = named_kernel(first.found, kernel_name(kernel), dict(macros), file)
    assumed = dict.fromkeys(first.given.assumed - GRID_SIZES, 1)
    of_host = {name: OF_HOST[name] for name in assumed if name in OF_HOST}
    readings = [first, *(_reading(text, values | names) for names in (assumed, of_host) if names)]
    left = device_code(text, readings, named.item, file, named.function)
    left_text, asked = _with_missing_headers(left.text, file)
    lacking = [header for header in asked if header in first.given.included]
    return KernelSource(
        file=file,
        text=left_text,
        function=named.function,
        parameters=tuple(_as_read(each, left.members) for each in named.parameters),
        names=first.given.names & {*re.findall(r"\w+", left.text)},
        of_templates=of_templates,
        told=(*gave_way, *left.told, *([f"{WITHOUT}: {', '.join(lacking)}"] if lacking else ())),
        lacking=tuple(header for header in lacking if "." in header and not _is_of_system(header)),
        digest=sha256(whole.encode()).hexdigest(),
        defined=dict(DEFINE.findall(whole)) | constants,
        constants=frozenset(constants),
        alignment=max([16, *map(int, ALIGNED.findall(left.text))]),
    )


def _as_read(parameter: CudaParameter, members: frozenset[str]) -> CudaParameter:
    """Returns a parameter without the pointers in its structure that device code never reads."""
    if parameter.type in POINTER_OF_CUDA:
        return parameter
    read = (name for name in parameter.pointers if name == parameter.name or name.rpartition(".")[2] in members)
    return replace(parameter, pointers=tuple(read))


def _without_own_values(text: str, macros: Mapping[str, object], file: str) -> tuple[str, tuple[str, ...]]:
    """Returns the text without its own values of ``macros``, #define and const, which would win over a config's; and
    lines that name them, whatever the conditions around them.

    Raises:
        UsageError: for a macro that would replace a part of a qualified name.
    """
    told, constants, replaced = [], _constants_in(text), dict[str, list[str]]()
    for name in macros.keys() - constants.keys():
        if use := re.search(rf"\w+\s*::\s*{re.escape(name)}\b", text):
            place = "{}:{}".format(*place_in(text, use.start(), file, 1))
            raise UsageError(f"{place} has {use[0]}, so {name} cannot be a macro: give the parameter another name")

    def blank(found: re.Match[str]) -> str:
        name, guard, word = found["name"], found["guard"] or "", found["word"]
        if name not in macros:
            return found[0]
        if word != "undef" and not guard:
            replaced.setdefault(name, []).append("{}:{}".format(*place_in(text, found.start("word"), file, 1)))
        return guard + "\n" * found[0].removeprefix(guard).count("\n")

    def without(found: re.Match[str]) -> str:
        parts = list(split_at_commas(found["values"]))
        place = "{}:{}".format(*place_in(text, found.start("word"), file, 1))
        for i, part in enumerate(parts):
            if (own := CONSTANT.fullmatch(part)) is not None and own[1] in macros:
                parts[i] = f"{own[1]} = {VALUE_OF}{own[1]}"
                told.append(f"{place}: {found['word']} {own[1]} has the value that the call gives")
        if f" = {VALUE_OF}" not in " ".join(parts):
            return found[0]
        return f"{found['head']}{', '.join(parts)};" + "\n" * found[0].count("\n")

    text = OWN_DEFINE.sub(blank, text)
    text = OWN_CONSTANT.sub(without, text)
    told += [f"{name} has the value that the call gives, not that of {', '.join(of)}" for name, of in replaced.items()]
    return text, tuple(dict.fromkeys(told))


def _constants_in(text: str) -> dict[str, str]:
    parts = [part for found in OWN_CONSTANT.finditer(text) for part in split_at_commas(found["values"])]
    return {own[1]: own[2].strip() for part in parts if (own := CONSTANT.fullmatch(part)) is not None}


def _with_missing_headers(text: str, file: str) -> tuple[str, tuple[str, ...]]:
    """Returns the text in which headers are included only if the compiler has them, and their names.

    Host code needs most of them. What device code needs of a missing one, the compiler reports as undefined.
    """
    names = []

    def asked(found: re.Match[str]) -> str:
        header = found["header"]
        if is_of_compiler(header) or text.endswith(IF_THERE.format(header), 0, found.end() + 1):
            return found[0]
        names.append(header)
        own, line = place_in(text, found.end(), file, 1)
        return f'{IF_THERE.format(header)}#else\n#define {LACKS}\n#endif\n#line {line + 1} "{own}"'

    return HEADER.sub(asked, text), tuple(dict.fromkeys(names))


def _with_excusable_errors(text: str, file: str) -> str:
    """Returns the text in which an ``#error`` of an included file is none after a header that is left out, since it may
    ask for what that header defines.
    """

    def asked(found: re.Match[str]) -> str:
        own, line = place_in(text, found.end(), file, 1)
        return found[0] if own == file else f'#ifndef {LACKS}\n{found[0]}\n#endif\n#line {line + 1} "{own}"'

    return ERROR.sub(asked, text)


def _is_of_system(header: str) -> bool:
    return any(path for folder in SYSTEM for path in Path("/usr").glob(f"{folder}/{header}"))


def _reading(text: str, macros: Mapping[str, object]) -> ReadSource:
    text_read = preprocessed(text, macros)
    return ReadSource(text_read, tuple(items(syntax_tree(text_read.text))))


def _path(source: str | Path) -> Path | None:
    """Returns the path, or None if the argument is the text of a source."""
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return None
    return Path(source)
