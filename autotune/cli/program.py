"""The command line parses words, calls the other rooms and prints: data to stdout, progress to stderr.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C.
"""

import errno
import gc
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from ..core.errors import TrialFailure, UsageError, one_line
from ..system.installation import VERSION
from ..system.quiet_start import interrupts
from .commands.options import BOTH_WORDS
from .console import only_data, stderr, stdout, whole_streams
from .help import EXAMPLES, CommandsInGroups, HelpfulCommand
from .stopped import NOTHING, STANDS, stopped

MODULES = {  # module of several commands; others have the module of their name
    **dict.fromkeys(("list", "render", "lookup"), "listing"),
    **dict.fromkeys(("dsim", "fengine", "xengine"), "services"),
    "worker": "campaign",
}
FUNCTIONS = {"list": "list_kernels"}  # commands whose function has another name


class Command(HelpfulCommand):
    """A command that writes its data, and nothing else, to standard output."""

    def invoke(self, ctx: Any) -> Any:
        """Runs the command with only its data on standard output; Ctrl-C ends it with one line."""
        interrupts()  # not before: what it raises in an import may become another error
        try:
            with only_data():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise stopped(STANDS.get(ctx.info_name, NOTHING)) from None


class CommandTable(Mapping[str, Any]):
    """The commands by name. A command's module is imported on first use: each command needs a part of the tree."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in EXAMPLES:
            raise KeyError(name)
        if name not in self._made:
            module = import_module(f".commands.{MODULES.get(name, name)}", __package__)
            one = typer.Typer(add_completion=False, rich_markup_mode=None)
            one.command(name, cls=Command)(getattr(module, FUNCTIONS.get(name, name)))
            self._made[name] = typer.main.get_command(one)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(EXAMPLES)

    def __len__(self) -> int:
        return len(EXAMPLES)


class CommandGroup(CommandsInGroups):
    """``autotune`` itself."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = CommandTable()


app = typer.Typer(
    name="autotune",
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
WRONG_WORDS: Any = typer.BadParameter.__base__  # the base of all usage errors, which typer does not export


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        stdout.print(f"autotune {VERSION}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and exit.")
    ] = False,
) -> None:
    """Generates variants of a CUDA kernel, proves them correct, measures them, and ships the fastest."""


def main() -> None:
    """Runs the command line; every expected error becomes one line on stderr."""
    whole_streams()
    gc.set_threshold(50_000, 20, 50)  # records are millions of values that stay, and few of ours are cycles
    try:
        code = app(args=sys.argv[1:] or ["--help"], prog_name="autotune", standalone_mode=False)
    except WRONG_WORDS as error:
        where = f" (see `{error.ctx.command_path} -h`)" if error.ctx else ""
        _fail(f"{error.format_message()}{_hint(error.format_message())}{where}", 2)
    except typer.Abort:  # Ctrl-C before the command began
        code = stopped(NOTHING).exit_code
    except UsageError as error:
        _fail(str(error), 1 if _is_of_the_disk(error) else 2)
    except TrialFailure as failure:  # the one variant that a command makes has failed
        _fail(str(failure), 1)
    except BrokenPipeError:  # the reader of our output has closed the pipe
        sys.stderr.close()
        code = 1
    except OSError as error:  # a cache or an output that cannot be written or read
        unnamed = "standard output" if error.errno in OF_THE_DISK else "input or output"
        _fail(f"{error.filename or unnamed}: {error.strerror or error}", 1)
    except MemoryError as error:
        _fail(f"out of memory ({error or 'no details'}): choose smaller sizes, or give it more", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _hint(message: str) -> str:
    """Returns a hint for a list of fields with spaces in place of commas, a direction without quotes, or ``replay``."""
    if message == "No such command 'replay'.":
        return " It is a program of autotune's repository: python benchmarks/searches.py SPACE"
    match = re.search(r"unexpected extra argument\S* \((\w+=[^ )]*)", message)
    if match:
        return f"; fields of one option are separated by commas, as --problem taps=64,{match[1]}"
    return f"; {BOTH_WORDS}" if "--phase-centre" in sys.argv and "No such option: -" in message else ""


def _is_of_the_disk(error: UsageError) -> bool:
    """Returns whether a full or broken disk caused the error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in OF_THE_DISK:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _fail(text: str, code: int) -> NoReturn:
    stderr.print(f"autotune: {one_line(text)}", markup=False)
    sys.exit(code)
