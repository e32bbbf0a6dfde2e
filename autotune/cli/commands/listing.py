"""`autotune list`, `render` and `lookup`: kernels, their sources, and what a package would choose."""

import logging
from pathlib import Path
from typing import Annotated

import typer

from ...core.architecture import ARCHITECTURES
from ...core.config import Config
from ...core.definition import Kernel
from ...core.errors import UsageError
from ...core.problem import Problem
from ...devices import Target, cuda
from ...rendering.render import render as render_variant
from ...runtime.lookup import report_choice
from ...source.registry import all_kernels, load_kernel
from ...sweep.request import parse_config, parse_values, problems_on
from .. import report as kernel_report
from ..console import print_json, stdout
from .options import ConfigOption, JsonOption, KernelOption, ProblemOption


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
    """List kernels with their problems, their parameters and the size of their space.

    With --kernel, it also counts the configs that each constraint refuses.
    """
    if problem and not kernel:
        raise UsageError("--problem belongs to one kernel: name it with --kernel")
    here = [] if arch else cuda.identifiers()
    device = cuda.describe(here[0]) if here else cuda.of_architecture(arch or "sm_90")
    listed = [load_kernel(kernel)] if kernel else all_kernels().values()
    target, problems = Target("cuda", device.arch, device), [problem] if problem else []
    kernels = [kernel_report.kernel_summary(each, device, problems_on(each, problems, target)[0]) for each in listed]
    if json:
        return print_json(kernels)
    for summary in kernels:
        kernel_report.print_kernel(summary, with_refused=bool(kernel))


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


def lookup(
    package: Annotated[Path, typer.Argument(help="A package that `autotune emit` wrote.")],
    kernel: Annotated[str, typer.Option("--kernel", help="A kernel of the package.")],
    problem: Annotated[str, typer.Option("--problem", help="taps=256,decimation=16,...")] = "",
    device: Annotated[
        str, typer.Option("--device", help="A device's name, such as 'NVIDIA H200'. [default: the GPU here]")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Show which configuration a package would choose, and why. With --device, it needs no GPU."""
    logging.disable(logging.WARNING)  # this command prints what the package would log
    answer = report_choice(package, kernel, parse_values(problem), device or None)
    if json:
        return print_json(answer)
    stdout.print(answer["text"], markup=False)


def _config(kernel: Kernel[Problem], text: str, problem: Problem, target: Target) -> Config:
    return parse_config(kernel, text, problem, target) if text else kernel.default_config(problem, target.device)
