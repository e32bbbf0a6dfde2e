"""`autotune tune` tunes a kernel in a plain .cu file, from the command line alone."""

import re
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Annotated, Any
from zipfile import BadZipFile

import numpy as np
import typer

from ...core.config import listed_parts, parse_value, unquoted
from ...core.errors import UsageError
from ...devices import find_device
from ...porting.array_memory import why_not
from ...porting.call import BLOCK_SIZES, DEFAULT_BLOCK, read_call
from ...porting.call_tuning import PortedSweep
from ...porting.call_tuning import tune_call as tune_call
from ...porting.cuda_signature import CudaParameter
from ...porting.source import KernelText
from ...sweep.settings import Settings
from ...system.limits import DEADLINE
from .. import report
from ..console import ConsoleProgress, print_json, stderr
from .options import BeginOption, DashboardOption, DeviceOption, JsonOption, ResultsOption, in_range

MOST_ELEMENTS = 1 << 34
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
SHAPE = re.compile(r"\d{1,12}(x\d{1,12})*")


def tune(
    source: Annotated[Path, typer.Argument(metavar="SOURCE.cu", help="CUDA C++; the file is not changed.")],
    kernel: Annotated[
        str,
        typer.Option("--kernel", metavar="FUNCTION", help="Name of the __global__ function: f, a::f, f<float, tile>."),
    ],
    size: Annotated[
        str,
        typer.Option(
            "--size",
            metavar="X[,Y[,Z]]",
            help="How many elements the grid covers along x, y and z, such as 4096,4096. Each may be an expression of "
            "parameters.",
        ),
    ],
    arg: Annotated[
        list[str],
        typer.Option(
            "--arg",
            metavar="NAME=VALUE",
            help="The value of a parameter of the function: a number, 3000 or 2.5, with its type if the kernel's is "
            "not a number's: int32:3000; an array in a file, x.npy; or a new array, zeros:float32:4096x4096 or "
            "random:float32:4096x4096 (normally distributed; integers are uniform). Repeatable.",
        ),
    ],
    param: Annotated[
        list[str],
        typer.Option("--param", metavar="NAME=V1,V2,..", help="A macro of the source and its values. Repeatable."),
    ],
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
    grid_div_x: Annotated[
        str | None, typer.Option("--grid-div-x", help="Divisor of the size along x. [default: block_size_x]")
    ] = None,
    grid_div_y: Annotated[
        str | None, typer.Option("--grid-div-y", help="Divisor of the size along y. [default: block_size_y]")
    ] = None,
    grid_div_z: Annotated[
        str | None, typer.Option("--grid-div-z", help="Divisor of the size along z. [default: block_size_z]")
    ] = None,
    shared: Annotated[str, typer.Option("--shared", help="Bytes of dynamic shared memory.")] = "0",
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="How many configs a search tries. [default: all]")
    ] = None,
    deadline: Annotated[
        float,
        typer.Option("--deadline", callback=in_range(DEADLINE), help="Seconds that one check or timing may take."),
    ] = Settings.launch_deadline_s,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    begin_from: BeginOption = None,
    dashboard: DashboardOption = None,
    json: JsonOption = False,
) -> None:
    """Tune a kernel in an existing .cu file.

    Parameters become macros of the source; block_size_x, block_size_y and block_size_z also set the size of a block.

    Without --answer results are only compared with those of the first config.
    """
    if not isfinite(atol):
        raise UsageError(f"--atol {atol}: it must be a finite number")
    space = {name: _values(values) for name, values in _by_name(param, "--param").items()}
    first = {name: values[0] for name, values in space.items()}
    read = KernelText(source).read(kernel, dict(zip(BLOCK_SIZES, DEFAULT_BLOCK, strict=True)) | first)
    expected = [parameter.name for parameter in read.parameters]
    texts = _by_name(arg, "--arg")
    missing = [name for name in expected if name not in texts]
    if missing or len(texts) > len(expected):
        raise UsageError(f"{kernel} takes {', '.join(expected)}; --arg gives {', '.join(texts) or 'nothing'}")
    answers = {name: _loaded(path) for name, path in _by_name(answer, "--answer").items()}
    if unknown := answers.keys() - set(expected):
        raise UsageError(f"--answer {min(unknown)}=..: {kernel} takes {', '.join(expected)}")
    target = find_device(device)
    call = read_call(
        kernel,
        source,
        tuple(_number(part) for part in size.split(",")),
        [_value(parameter, texts[parameter.name]) for parameter in read.parameters],
        space,
        divisors=(grid_div_x, grid_div_y, grid_div_z),
        restrictions=restrict,
        smem_args={"size": _number(shared)},
        cmem_args={name: _loaded(path) for name, path in _by_name(constant, "--constant").items()},
        device=target.device,
    )
    ordered_answers = [answers.get(name) for name in expected] if answers else None
    sampler = "exhaustive" if trials is None else "auto"
    settings = Settings(
        results=results,
        begin_from=begin_from,
        dashboard=dashboard,
        trials=trials,
        sampler=sampler,
        launch_deadline_s=deadline,
    )
    clock = target.module.clock
    _tell(tune_call(call, ordered_answers, atol, None, device, settings, ConsoleProgress(clock)), clock, json)


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


def _value(parameter: CudaParameter, text: str) -> Any:
    """Reads x.npy, 3000, int32:3000, zeros:float32:4096x4096 or random:float32:100."""
    name = parameter.name
    kind, _, rest = text.partition(":")
    where = f"--arg {name}={text}"
    if not rest:
        if NUMBER.fullmatch(text) and not Path(text).exists():
            return _number_for(where, parameter, text)
        return _loaded(text)
    try:
        if kind not in ("zeros", "random"):
            dtype, expected = _dtype(where, kind), parameter.dtype()
            if expected is not None and dtype != expected and not parameter.is_array:
                raise UsageError(f"{where}: the kernel takes {parameter.type}; give {name}={expected}:{rest}")
            return _plain_number(where, dtype, rest)
        dtype_name, _, shape_text = rest.partition(":")
        if not SHAPE.fullmatch(shape_text):
            raise UsageError(f"{where}: a shape is written with x, as {kind}:{dtype_name}:4096x4096")
        dtype, shape = _dtype(where, dtype_name), tuple(int(n) for n in shape_text.split("x"))
        if not all(n > 0 for n in shape) or np.prod(shape, dtype=object) > MOST_ELEMENTS:
            raise UsageError(f"{where}: a shape has 1 to {MOST_ELEMENTS} elements")
        return np.zeros(shape, dtype) if kind == "zeros" else _random(name, dtype, shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{where}: {error}") from error
    except MemoryError as error:
        raise UsageError(f"{where}: there is not enough memory; give a smaller shape") from error


def _dtype(where: str, name: str) -> np.dtype[np.generic]:
    """Returns the type of a number.

    Raises:
        UsageError: if CUDA has no such type of numbers.
        TypeError: if the name is not a type.
    """
    dtype = np.dtype(name)
    if (why := why_not(dtype)) is not None:
        raise UsageError(f"{where} {why}")
    return dtype


def _number_for(where: str, parameter: CudaParameter, text: str) -> Any:
    """Returns a number that is written without a type as the type that the kernel takes."""
    dtype = parameter.dtype()
    if parameter.is_array:
        raise UsageError(f"{where}: the kernel takes an array; give zeros:float32:{text}, or a file, x.npy")
    if dtype is None:
        raise UsageError(f"{where}: the kernel takes {parameter.type}; give the number a type, as int32:{text}")
    try:
        return _plain_number(where, dtype, text)
    except ValueError as error:
        raise UsageError(f"{where}: the kernel takes {parameter.type}: {error}") from error


def _plain_number(where: str, dtype: np.dtype[Any], text: str) -> Any:
    """Returns the number in ``text``, of type ``dtype``.

    Raises:
        UsageError: if the number is outside of the type's range.
        ValueError: if ``text`` is not a number.
    """
    if dtype.kind not in "fc":
        number, least, most = int(text), 0, 1
        if dtype.kind != "b":
            least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        if not least <= number <= most:
            raise UsageError(f"{where}: {dtype} holds {least} to {most}; give a number in between, or a wider type")
        return dtype.type(number)
    wide: complex = complex(text) if dtype.kind == "c" else float(text)
    with np.errstate(over="ignore"):
        narrow = dtype.type(wide)
    if not np.isfinite(narrow) and np.isfinite(wide):
        raise UsageError(f"{where}: {dtype} holds up to {np.finfo(dtype).max:.3g}; give a smaller number")
    return narrow


def _random(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Returns normal numbers, or integers over the whole range of the type; the name seeds the generator."""
    rng = np.random.default_rng(sum(map(ord, name)))
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    normal = rng.standard_normal(shape)
    return (normal + 1j * rng.standard_normal(shape) if dtype.kind == "c" else normal).astype(dtype)


def _values(text: str) -> tuple[object, ...]:
    return tuple(parse_value(part) if (plain := unquoted(part)) == part else plain for part in listed_parts(text))


def _number(text: str) -> Any:
    """Returns the integer in ``text``, or the text itself, an expression."""
    return int(text) if text.strip().isdigit() else text


def _loaded(path: str) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: there is no such file") from error
    except (OSError, ValueError, EOFError, SyntaxError, BadZipFile, MemoryError) as error:
        raise UsageError(f"{path}: not a NumPy array: {error}") from error
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{path}: the file holds several arrays; save one of them, as .npy")
    return array
