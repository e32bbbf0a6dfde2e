"""Values of a kernel's arguments as a command line writes them: numbers, files of arrays, and new arrays."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..core.errors import UsageError
from ..core.files import opened
from .array_memory import why_not
from .cuda_signature import CudaParameter

MOST_ELEMENTS = 1 << 34
WHOLE = re.compile(r"([+-]?)(?:0[xX]([\da-fA-F]+)|0[bB]([01]+)|(\d+))[uUlLzZ]{0,3}")
DECIMAL = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFlL]?")
HEXADECIMAL = re.compile(r"([+-]?0[xX][\da-fA-F]*\.?[\da-fA-F]*[pP][+-]?\d+)[fFlL]?")
SEPARATOR = re.compile(r"(?<=[\da-fA-F])[_'](?=[\da-fA-F])")  # between digits: Python's and C++'s
WORDS = {"true": 1, "false": 0, "inf": np.inf, "infinity": np.inf, "nan": np.nan}
NULL = ("NULL", "nullptr", "null", "None")
SHAPE = re.compile(r"\d{1,12}(x\d{1,12})*")
MOST_DRAWN = 100  # a random signed integer is not larger, so that sums and products of some fit 32 bits


def argument_value(parameter: CudaParameter, text: str) -> Any:
    """Returns the value that ``--arg NAME=text`` gives to a parameter of a kernel.

    Args:
        text: x.npy, 3000, 2.5f, int32:3000, zeros:float32:4096x4096, random:float32:100 or random:int32:100:0:9.

    Raises:
        UsageError: if the text is none of these, or the kernel cannot take the value.
    """
    name = parameter.name
    if parameter.is_array and (text in NULL or number_in(text) == 0) and not Path(text).is_file():
        why = "a null pointer cannot be given, and what the kernel does without an array is not tuned"
        raise UsageError(f"--arg {name}={text}: {why}; give an array of its own type, zeros:float32:100 or x.npy")
    kind, _, rest = text.partition(":")
    where = f"--arg {name}={text}"
    if not rest:
        if number_in(text) is not None and not Path(text).is_file():
            return _number_for(where, parameter, text)
        return loaded_array(text)
    try:
        if kind not in ("zeros", "random"):
            dtype, expected = _dtype(where, kind), parameter.dtype()
            if expected is not None and dtype != expected and not parameter.is_array:
                raise UsageError(f"{where}: the kernel takes {parameter.type}; give {name}={expected}:{rest}")
            return _plain_number(where, dtype, rest)
        dtype_name, _, rest = rest.partition(":")
        shape_text, *ends = rest.split(":")
        if not SHAPE.fullmatch(shape_text):
            raise UsageError(f"{where}: a shape is written with x, as {kind}:{dtype_name}:4096x4096")
        dtype, shape = _dtype(where, dtype_name), tuple(int(n) for n in shape_text.split("x"))
        between = [number for end in ends if (number := number_in(end)) is not None]
        if ends and (kind == "zeros" or len(between) != 2 or len(ends) != 2 or not between[0] <= between[1]):
            raise UsageError(f"{where}: two numbers may follow a random shape, the least and the largest")
        if not all(n > 0 for n in shape) or np.prod(shape, dtype=object) > MOST_ELEMENTS:
            raise UsageError(f"{where}: a shape has 1 to {MOST_ELEMENTS} elements")
        return np.zeros(shape, dtype) if kind == "zeros" else _random(name, dtype, shape, between)
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
        what = "give a number with its type, as int32:3, or an array of one structure in a file, x.npy"
        raise UsageError(f"{where}: the kernel takes {parameter.type}; {what}")
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
    plain = number_in(text)
    if dtype.kind not in "fc":
        if plain is None or plain != plain // 1:
            raise ValueError(f"{text} is not a whole number")
        number, least, most = int(plain), 0, 1
        if dtype.kind != "b":
            least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        if not least <= number <= most:
            raise UsageError(f"{where}: {dtype} holds {least} to {most}; give a number in between, or a wider type")
        return dtype.type(number)
    wide: complex = plain if plain is not None else complex(text) if dtype.kind == "c" else float(text)
    with np.errstate(over="ignore"):
        narrow = dtype.type(wide)
    if not np.isfinite(narrow) and (np.isfinite(wide) or (plain is not None and text[-1].isdigit())):
        raise UsageError(f"{where}: {dtype} holds up to {np.finfo(dtype).max:.3g}; give a smaller number")
    return narrow


def number_in(text: str) -> int | float | None:
    """Returns the number in a text as C, C++ or Python write it: ``0x10``, ``.5``, ``1.5f``; None: it is not one."""
    text = SEPARATOR.sub("", text)
    if found := WHOLE.fullmatch(text):
        sign, *digits = found.groups()
        return int(f"{sign}1") * next(int(some, base) for some, base in zip(digits, (16, 2, 10), strict=True) if some)
    if found := HEXADECIMAL.fullmatch(text):
        return float.fromhex(found[1])
    if found := DECIMAL.fullmatch(text):
        return float(found[1])
    number = WORDS.get(text.lower().lstrip("+-"))
    return -number if number is not None and text.startswith("-") else number


def _random(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], between: Sequence[float]) -> np.ndarray:
    """Returns random numbers; the name seeds the generator.

    ``between``: the least and the largest; none: floats are normally distributed, and signed integers of more than 8
    bits are small, since a sum that overflows them is an error in C++.
    """
    rng = np.random.default_rng(sum(map(ord, name)))
    if dtype.kind in "iu":
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        if dtype.kind == "i" and dtype.itemsize > 1:
            low, high = -MOST_DRAWN, MOST_DRAWN
        low, high = map(int, between) if between else (low, high)
        return rng.integers(low, high, shape, dtype, endpoint=True)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    n_parts = 2 if dtype.kind == "c" else 1
    whole = (n_parts, *shape)
    parts = rng.uniform(between[0], between[1], whole) if between else rng.standard_normal(whole)
    array: np.ndarray = (parts[0] + 1j * parts[1] if n_parts == 2 else parts[0]).astype(dtype)
    return array


def loaded_array(path: str) -> np.ndarray:
    """Returns the array of a ``.npy`` file. Raises UsageError if there is none."""
    try:
        with opened(Path(path), "rb") as file:
            array = np.load(file, allow_pickle=False)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: there is no such file") from error
    except (OSError, ValueError, EOFError, SyntaxError, BadZipFile, MemoryError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise UsageError(f"{path}: not a NumPy array: {why}") from error
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{path}: the file holds several arrays; save one of them, as .npy")
    return array
