"""`autotune tune` tunes a kernel in a plain .cu file, from the command line alone."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from ...core.config import listed_parts, parse_value, unquoted
from ...core.errors import UsageError
from ...devices import find_device
from ...porting.argument_texts import argument_value, loaded_array
from ...porting.call import BLOCK_SIZES, DEFAULT_BLOCK, read_call
from ...porting.call_tuning import PortedSweep
from ...porting.call_tuning import tune_call as tune_call
from ...porting.source import KernelText
from ...sweep.settings import Settings
from .. import report
from ..console import ConsoleProgress, print_json, stderr
from .declared_options import given_of, with_settings
from .options import DeviceOption, JsonOption


@with_settings(Settings, only=("deadline", "results", "begin_from", "dashboard"))
def tune(
    source: Annotated[Path, typer.Argument(metavar="SOURCE.cu", help="CUDA C++; the file is not changed.")],
    kernel: Annotated[
        str,
        typer.Option("--kernel", metavar="FUNCTION", help="Name of the __global__ function: f, a::f, f<float, tile>."),
    ],
    param: Annotated[
        list[str],
        typer.Option("--param", metavar="NAME=V1,V2,..", help="A macro of the source and its values. Repeatable."),
    ],
    arg: Annotated[
        list[str],
        typer.Option(
            "--arg",
            metavar="NAME=VALUE",
            help="The value of a parameter of the function: a number, 3000 or 2.5f, with its type if the kernel's is "
            "not a number's: int32:3000; an array in a file, x.npy; or a new array, zeros:float32:4096x4096 or "
            "random:float32:4096x4096 (normally distributed; integers are uniform, signed ones from -100 to 100), or "
            "with its ends: random:int32:1000:0:255. Repeatable.",
        ),
    ] = [],
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="X[,Y[,Z]]",
            help="How many elements the grid covers along x, y and z, such as 4096,4096. Each may be an expression of "
            "parameters. [default: the grid with which the source launches the kernel]",
        ),
    ] = None,
    answer: Annotated[
        list[str],
        typer.Option("--answer", metavar="NAME=x.npy", help="Expected content of an array after a launch. Repeatable."),
    ] = [],
    constant: Annotated[
        list[str],
        typer.Option("--constant", metavar="NAME=x.npy", help="An array in __constant__ memory. Repeatable."),
    ] = [],
    atol: Annotated[float, typer.Option("--atol", min=0, help="|output - answer| <= atol + 1e-5 |answer|.")] = 1e-6,
    restrict: Annotated[
        list[str],
        typer.Option("--restrict", help="A condition on configs, such as 'block_size_x * tile <= 1024'. Repeatable."),
    ] = [],
    block_size_names: Annotated[
        str | None,
        typer.Option(
            "--block-size-names",
            metavar="X[,Y[,Z]]",
            help="The parameters that set the threads of a block. [default: as the source launches the kernel, or "
            "block_size_x,block_size_y,block_size_z]",
        ),
    ] = None,
    folder: Annotated[
        list[Path], typer.Option("-I", metavar="FOLDER", help="A folder of included files. Repeatable.")
    ] = [],
    define: Annotated[
        list[str],
        typer.Option("-D", metavar="NAME[=VALUE]", help="A macro of the source that is not tuned. Repeatable."),
    ] = [],
    grid_div_x: Annotated[
        str | None, typer.Option("--grid-div-x", help="Divisor of the size along x. [default: block_size_x]")
    ] = None,
    grid_div_y: Annotated[
        str | None, typer.Option("--grid-div-y", help="Divisor of the size along y. [default: block_size_y]")
    ] = None,
    grid_div_z: Annotated[
        str | None, typer.Option("--grid-div-z", help="Divisor of the size along z. [default: block_size_z]")
    ] = None,
    shared: Annotated[
        str | None,
        typer.Option("--shared", help="Bytes of dynamic shared memory. [default: as the source launches it, or 0]"),
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="How many configs a search tries. [default: all]")
    ] = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
    **options: Any,
) -> None:
    """Tune a kernel in an existing .cu file.

    Parameters become macros of the source. Grid and block are those with which the source's host code launches the
    kernel, if they follow from arguments and parameters; else block_size_x, block_size_y and block_size_z set the
    block, and --size the grid. The launch is printed before the first trial.

    Without --answer results are only compared with those of the first config.
    """
    if not isfinite(atol):
        raise UsageError(f"--atol {atol}: it must be a finite number")
    space = {name: _values(values) for name, values in _by_name(param, "--param").items()}
    first = {name: values[0] for name, values in space.items()}
    macros = {name: value if is_given else "1" for name, is_given, value in (each.partition("=") for each in define)}
    named = [] if block_size_names is None else block_size_names.split(",")
    if others := [name for name in named if name not in space]:
        raise UsageError(f"--block-size-names {others[0]}: it is not a --param, which are {', '.join(space) or 'none'}")
    blocks = dict(zip((*named, *BLOCK_SIZES[len(named) :]), DEFAULT_BLOCK, strict=False))
    read = KernelText(source, folder).read(kernel, blocks | {"kernel_tuner": 1} | first | macros)
    expected = [parameter.name for parameter in read.parameters]
    texts = _by_name(arg, "--arg")
    missing = [name for name in expected if name not in texts]
    if missing or len(texts) > len(expected):
        takes = ", ".join(expected) or "no arguments"
        raise UsageError(f"{kernel} takes {takes}; --arg gives {', '.join(texts) or 'nothing'}")
    answers = {name: loaded_array(path) for name, path in _by_name(answer, "--answer").items()}
    if unknown := answers.keys() - set(expected):
        raise UsageError(f"--answer {min(unknown)}=..: {kernel} takes {', '.join(expected)}")
    target = find_device(device)
    call = read_call(
        kernel,
        source,
        None if size is None else tuple(_number(part) for part in size.split(",")),
        [argument_value(parameter, texts[parameter.name]) for parameter in read.parameters],
        space,
        divisors=(grid_div_x, grid_div_y, grid_div_z),
        restrictions=restrict,
        smem_args=None if shared is None else {"size": _number(shared)},
        cmem_args={name: loaded_array(path) for name, path in _by_name(constant, "--constant").items()},
        block_size_names=named or None,
        macros=macros,
        folders=folder,
        device=target.device,
        is_as_launched=True,
    )
    ordered_answers = [answers.get(name) for name in expected] if answers else None
    sampler = "exhaustive" if trials is None else "auto"
    chosen = Settings(trials=trials, sampler=sampler, **given_of(Settings, options))
    clock = target.module.clock
    _tell(tune_call(call, ordered_answers, atol, None, device, chosen, ConsoleProgress()), clock, json)


def _tell(ported: PortedSweep, clock: str, json: bool) -> None:
    path = str(ported.kernel.source_path)
    if json:
        print_json({**report.sweep_summary(ported.sweep, clock), "definition": path, "checked": ported.note})
    else:
        report.print_sweep(ported.sweep, clock, out="tuned", kernel=path)
        stderr.print(f"{ported.note}; the definition is {path}", markup=False)
    if ported.sweep.interrupted:
        raise typer.Exit(130)
    if ported.sweep.best is None:
        raise typer.Exit(1)


# ---------------------------------------------------------------------- values
def _by_name(texts: Sequence[str], option: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or name in values:
            raise UsageError(f"{option} {text}: must be NAME=VALUE, each name once")
        values[name] = value
    return values


def _values(text: str) -> tuple[object, ...]:
    return tuple(parse_value(part) if (plain := unquoted(part)) == part else plain for part in listed_parts(text))


def _number(text: str) -> Any:
    """Returns the integer in ``text``, or the text itself, an expression."""
    return int(text) if text.strip().isdigit() else text
