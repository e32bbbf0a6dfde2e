"""How the cells of a packed table write the figures of a trial, and how they read them.

A cell is as short as its figure is known: times have whole nanoseconds where a clock has no finer ones, digests have
six bits a character, launch geometry leaves out ones at its end. An empty cell stands for a missing figure.
"""

import json
import zlib
from base64 import b85decode, b85encode, urlsafe_b64encode
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.config import Value
from ..core.schema import Unsound, parse, value_text

PREFIXES = {"n": 1e9, "m": 1e3, "M": 1e-6, "": 1.0}
PADDING = ("", "===", "==", "=")
PLAIN = "="  # begins a digest that is not hexadecimal
STEPS_NS = (32, 1)  # the step of a GPU's event clock, and that of most others
SAMPLE_ROUNDING = 1e-7  # relative; event times are float32
MOST_TEXT = 1 << 24  # bytes of samples, decompressed
MOST_ZEROS = 3  # a number with more of them at its end has an exponent
LAUNCH = ("function", "grid", "block", "registers", "spill_bytes", "shared_bytes")


@dataclass(frozen=True)
class Cell:
    """How a figure is written and read; ``prefix``: that of its unit in a packed table, such as n for nanoseconds."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]
    prefix: str = ""

    def column(self, name: str) -> str:
        """Returns the name of the column for a field: ``median_ns`` for ``median_s``."""
        stem, _, unit = name.rpartition("_")
        return f"{stem}_{self.prefix}{unit}".lower() if self.prefix else name


def number_of(text: str) -> int | float:
    """Reads a number."""
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:
        raise Unsound(f"is {value_text(text)}, must be a number") from None


def rounded(digits: int, prefix: str = "", least: float = 0.0) -> Cell:
    """Returns a cell for numbers of so many significant digits, and multiples of ``least`` if that is not 0."""
    scale = PREFIXES[prefix]

    def write(value: float) -> str:
        scaled = round(value * scale / least) * least if least else value * scale
        mantissa, e, exponent = f"{scaled:.{digits}g}".partition("e")
        if not e or 0 <= int(exponent) < MOST_ZEROS + digits:
            return f"{float(mantissa + e + exponent):.0f}" if e else mantissa
        return f"{mantissa}e{int(exponent)}"

    def read(text: str) -> float:
        return (int(text) if text.isdecimal() else number_of(text)) / scale

    return Cell(write, read if prefix else number_of, prefix)


def _digest(text: str) -> str:
    """Returns six bits a character for a lower-case hexadecimal digest; any other text begins with PLAIN."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return PLAIN + text
    return urlsafe_b64encode(data).decode().rstrip("=") if data.hex() == text and data else PLAIN + text


def _of_digest(cell: str) -> str:
    if cell.startswith(PLAIN):
        return cell[len(PLAIN) :]
    try:
        return a2b_base64(cell.replace("-", "+").replace("_", "/") + PADDING[len(cell) % 4]).hex()
    except ValueError as error:
        raise Unsound(f"is {value_text(cell)}, must be a digest") from error


def _extent(values: Sequence[int]) -> str:
    """Returns 191x2 for (191, 2, 1)."""
    kept = list(values)
    while len(values) == 3 and len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "x".join(map(str, kept)) + ("" if len(values) == 3 else "x")


def _of_extent(cell: str) -> list[int | float]:
    values = [number_of(text) for text in cell.removesuffix("x").split("x")]
    return values if cell.endswith("x") else values + [1] * (3 - len(values))


def _launches(launches: Sequence[Mapping[str, Any]]) -> str:
    """Returns the launches as function:grid:block:registers:spill:shared, with a blank between two."""
    write: dict[str, Callable[[Any], str]] = {"grid": _extent, "block": _extent}
    return " ".join(
        ":".join("" if (value := each.get(name)) is None else write.get(name, str)(value) for name in LAUNCH)
        for each in launches
    )


def _of_launches(cell: str) -> list[dict[str, Any]]:
    read: dict[str, Callable[[str], Any]] = {"function": str, "grid": _of_extent, "block": _of_extent}
    rows = [dict(zip(LAUNCH, text.split(":"), strict=False)) for text in cell.split(" ")]
    return [{name: read.get(name, number_of)(text) for name, text in row.items() if text} for row in rows]


def samples_text(samples: Sequence[float]) -> str:
    """Returns samples as the clock's step, the median in steps, and each sample's distance from it in steps.

    The distances are text (-3 0 5), compressed by zlib and written in base 85: 160 of them take 300 characters. Without
    a step (s), they are seconds.
    """
    for step_ns in STEPS_NS:
        counts = [round(each * 1e9 / step_ns) for each in samples]
        pairs = zip(counts, samples, strict=True)
        if all(abs(n * step_ns * 1e-9 - each) <= SAMPLE_ROUNDING * each for n, each in pairs):
            middle = sorted(counts)[len(counts) // 2] if counts else 0
            return f"{step_ns}ns {middle} {_compressed(n - middle for n in counts)}"
    return f"s {_compressed(samples)}"


def _compressed(numbers: Iterable[float]) -> str:
    return b85encode(zlib.compress(" ".join(map(str, numbers)).encode(), 9)).decode()


def samples_of(text: str) -> list[float]:
    """Returns the seconds of ``samples_text``. Raises Unsound."""
    try:
        unit, *middle, packed = text.split(" ")
        stream = zlib.decompressobj()
        words = stream.decompress(b85decode(packed), MOST_TEXT).decode().split()
    except (ValueError, zlib.error) as error:
        raise Unsound(f"is {value_text(text)}, must be samples: {error}") from error
    if not stream.eof:
        raise Unsound(f"is {value_text(packed)}, must be whole samples")
    values = [number_of(word) for word in words]
    try:
        if not middle:
            return [float(value) for value in values]
        first, step_ns = number_of(middle[0]), number_of(unit.removesuffix("ns"))
        return [(first + each) * step_ns / 1e9 for each in values]
    except OverflowError as error:
        raise Unsound(f"is {value_text(text)}, must be samples: {error}") from error


def json_of_cell(cell: str) -> Any:
    """Reads JSON. Raises Unsound."""
    return parse(cell.encode(errors="surrogatepass"))


def value_cell(value: Value) -> str:
    """Returns the cell of a parameter's value: a number as it is, a word as it is unless it reads as anything else."""
    if isinstance(value, str):
        return value if value and _reads_as(value) is value else json.dumps(value)
    return json.dumps(value)


def value_of_cell(cell: str) -> Any:
    """Returns the value of a parameter from its cell."""
    return json_of_cell(cell) if cell.startswith('"') else _reads_as(cell)


def _reads_as(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') or not (text[:1].isdigit() or text[:1] == "-"):
        return text if not text.startswith('"') else None
    try:
        return number_of(text)
    except Unsound:
        return text


TEXT = Cell(str, str)
NUMBER = Cell(json.dumps, number_of)
FLAG = Cell(lambda value: str(int(value)), lambda text: {"0": False, "1": True}.get(text, text))
DIGEST = Cell(_digest, _of_digest)
EXTENT = Cell(_extent, _of_extent)
LAUNCHES = Cell(_launches, _of_launches)
WORDS = Cell(" ".join, lambda text: text.split(" "))
JSON = Cell(lambda value: json.dumps(value, separators=(",", ":")), json_of_cell)
