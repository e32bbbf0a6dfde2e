"""The command line: parses, calls, prints. Data to stdout, progress to stderr.

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C.
"""

import errno
import logging
import re
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from ..core.architecture import ARCHITECTURES
from ..core.config import Config
from ..core.definition import Kernel
from ..core.errors import TrialFailure, UsageError, one_line
from ..core.problem import Problem
from ..devices import Target, cuda
from ..rendering.render import render as render_variant
from ..source.registry import all_kernels, load_kernel
from ..sweep.request import parse_config, parse_values, problems_on
from ..system.installation import VERSION
from . import report as kernel_report
from .commands.array import array
from .commands.campaign import campaign, worker
from .commands.channelise import channelise
from .commands.compare import compare
from .commands.correlate import correlate
from .commands.digest import digest
from .commands.doctor import doctor
from .commands.emit import emit
from .commands.export import export
from .commands.new import new
from .commands.options import ConfigOption, JsonOption, KernelOption, ProblemOption
from .commands.portfolio import portfolio
from .commands.replay import replay
from .commands.report import report
from .commands.services import dsim, fengine, xengine
from .commands.show import show
from .commands.sky import sky
from .commands.sweep import sweep
from .commands.tune import tune
from .commands.verify import verify
from .console import only_data, print_json, stderr, stdout, whole_streams
from .help import CommandsInGroups, HelpfulCommand
from .stopped import NOTHING, STANDS, stopped


class Command(HelpfulCommand):
    """A command whose standard output holds its data and nothing else."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command with only its data on standard output; Ctrl-C ends it in one line."""
        try:
            with only_data():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise stopped(STANDS.get(ctx.info_name, NOTHING)) from None


app = typer.Typer(
    name="autotune",
    cls=CommandsInGroups,
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


@app.command("list", cls=Command)
def list_kernels(
    kernel: Annotated[
        str, typer.Option("--kernel", help="Only this one: its name, or the path of its definition (x.py).")
    ] = "",
    arch: Annotated[
        str, typer.Option("--arch", help="Architecture whose limits apply. [default: that of the GPU here, or sm_90]")
    ] = "",
    problem: Annotated[
        str,
        typer.Option(
            "--problem",
            metavar="FIELD=VALUE,..",
            help="With --kernel: the problem whose configs are counted. [default: the kernel's default problem]",
        ),
    ] = "",
    json: JsonOption = False,
) -> None:
    """List kernels with their problems, parameters and the size of their space.

    With --kernel it also says how many configs each constraint refuses.
    """
    if problem and not kernel:
        raise UsageError("--problem is for one kernel: name it by --kernel")
    here = [] if arch else cuda.identifiers()
    device = cuda.describe(here[0]) if here else cuda.of_architecture(arch or "sm_90")
    listed = [load_kernel(kernel)] if kernel else all_kernels().values()
    target = Target("cuda", device.arch, device)
    asked = [problem] if problem else []
    kernels = [kernel_report.kernel_summary(each, device, problems_on(each, asked, target)[0]) for each in listed]
    if json:
        return print_json(kernels)
    for summary in kernels:
        kernel_report.print_kernel(summary, with_refused=bool(kernel))


@app.command(cls=Command)
def render(
    kernel: KernelOption,
    problem: ProblemOption = [],
    config: ConfigOption = "",
    arch: Annotated[
        str,
        typer.Option(
            "--arch", help=f"Architecture whose limits and default configuration apply: {', '.join(ARCHITECTURES)}."
        ),
    ] = "sm_90",
) -> None:
    """Print the CUDA source of one variant: the default configuration unless --config names one."""
    definition = load_kernel(kernel)
    target = Target("cuda", arch, cuda.of_architecture(arch))
    for chosen in problems_on(definition, problem, target):
        stdout.file.write(render_variant(definition, chosen, _config(definition, config, chosen, target)).source)


app.command(cls=Command)(new)
app.command(cls=Command)(verify)
app.command(cls=Command)(sweep)
app.command(cls=Command)(tune)
app.command(cls=Command)(campaign)
app.command(cls=Command)(worker)
app.command(cls=Command)(show)
app.command(cls=Command)(report)
app.command(cls=Command)(compare)
app.command(cls=Command)(export)
app.command(cls=Command)(emit)
app.command(cls=Command)(digest)
app.command(cls=Command)(portfolio)
app.command(cls=Command)(replay)
app.command(cls=Command)(sky)
app.command(cls=Command)(channelise)
app.command(cls=Command)(correlate)
app.command(cls=Command)(array)
app.command(cls=Command)(dsim)
app.command(cls=Command)(fengine)
app.command(cls=Command)(xengine)


@app.command(cls=Command)
def lookup(
    package: Annotated[Path, typer.Argument(help="A package that `autotune emit` wrote.")],
    kernel: Annotated[str, typer.Option("--kernel", help="A kernel of the package.")],
    problem: Annotated[str, typer.Option("--problem", help="taps=256,decimation=16,...")] = "",
    device: Annotated[
        str, typer.Option("--device", help="A device's name, such as 'NVIDIA H200'. [default: the GPU here]")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Show which configuration a package would choose, and why; needs no GPU if --device names one."""
    from ..runtime.lookup import report_choice

    logging.disable(logging.WARNING)  # this command prints what the package would log
    answer = report_choice(package, kernel, parse_values(problem), device or None)
    if json:
        return print_json(answer)
    stdout.print(answer["text"], markup=False)


app.command(cls=Command)(doctor)


def _config(kernel: Kernel[Problem], text: str, problem: Problem, target: Target) -> Config:
    return parse_config(kernel, text, problem, target) if text else kernel.default_config(problem, target.device)


def main() -> None:
    """Runs the command line; every expected error becomes one line on stderr."""
    whole_streams()
    try:
        code = app(args=sys.argv[1:] or ["--help"], prog_name="autotune", standalone_mode=False)
    except WRONG_WORDS as error:
        where = f" (see `{error.ctx.command_path} -h`)" if error.ctx else ""
        _fail(f"{error.format_message()}{_hint(error.format_message())}{where}", 2)
    except typer.Abort:  # Ctrl-C before the command began
        code = stopped(NOTHING).exit_code
    except UsageError as error:
        _fail(str(error), 1 if _is_of_the_disk(error) else 2)
    except TrialFailure as failure:  # of the one variant that a command makes
        _fail(str(failure), 1)
    except BrokenPipeError:  # the reader of our output has closed the pipe
        sys.stderr.close()
        code = 1
    except OSError as error:  # a cache or an output that cannot be written or read
        _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", 1)
    except MemoryError as error:
        _fail(f"out of memory ({error or 'no details'}); choose smaller sizes with --problem", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _hint(message: str) -> str:
    """Returns what is probably meant where a list was written with spaces."""
    found = re.search(r"unexpected extra argument\S* \((\w+=[^ )]*)", message)
    return f"; fields of one option are separated by commas, as --problem taps=64,{found[1]}" if found else ""


def _is_of_the_disk(error: UsageError) -> bool:
    """Returns whether a full or broken disk is what an error tells of."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.errno in OF_THE_DISK:
            return True
        found = found.__cause__ or found.__context__
    return False


def _fail(text: str, code: int) -> NoReturn:
    stderr.print(f"autotune: {one_line(text)}", markup=False)
    sys.exit(code)
