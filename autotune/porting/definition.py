"""Writes the definition of a called kernel: Python that a person can read, its template, and its arrays as ``.npy``.

The folder's name has a digest of all that is in it, so the same call finds the same definition, and its record.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..core.definition import Tolerance
from ..core.errors import UsageError
from ..core.files import write_whole
from .call import AXES, UNROLL, Argument, Call, digest_of
from .expressions import checked

HEAD = '''"""{kernel} of {file}, as tune_kernel was told: one size. Its arrays and answers lie beside, as .npy."""

from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

from autotune import Kernel, Launch, Space, Tolerance, Work, {words}, baked

FOLDER = Path(__file__).parent
SPACE = Space({space})


@dataclass(frozen=True)
class Problem:
    size: str = baked({size!r}, "the problem size, as it was given")
    data: str = baked({data!r}, "digest of the arguments, their answers and the restrictions")


def loaded(name):
    return np.load(FOLDER / f"{{name}}.npy", mmap_mode="r")


{constraints}
class Ported(Kernel[Problem]):
    kernel_name = {kernel!r}
    space = SPACE
    default = {default!r}
    arguments = {arguments!r}
    tuned = (Problem(),)

    def arrays(self, problem):
        return {{
{arrays}
        }}

    def scalars(self, problem, inputs):
        return {{{scalars}}}

    def launch(self, problem, c):
{launch}

    def work(self, problem):
        return Work(0.0, {n_bytes})

    def inputs(self, problem, rng):
        return {{name: loaded(name) for name in {inputs!r}}}

    def reference(self, problem, **inputs):
        return {{name: loaded(f"answer.{{name}}") for name in {outputs!r}}}

    def tolerance(self, problem):
        return {tolerance!r}

    def constants(self, problem, c):
{constants}
'''


@dataclass(frozen=True)
class Outputs:
    """What becomes of the arrays: ``kinds`` are in, out, inout and scratch; the answers of out and inout."""

    kinds: Mapping[str, str]
    answers: Mapping[str, np.ndarray]
    tolerance: Tolerance
    note: str = ""  # what could not be checked


def write_definition(call: Call, outputs: Outputs, results: Path) -> Path:
    """Writes the definition below ``results``, unless it is there; returns its path.

    Raises:
        UsageError: when no config is allowed, or it cannot be written.
    """
    template = call.source.template(call.name, [name for name in call.space if name.startswith(UNROLL)])
    given = [each for each in (*call.arguments, *call.constants) if each.is_array]
    arrays = {each.name: (each.digest, each.value) for each in given}
    arrays |= {f"answer.{name}": (digest_of(answer), answer) for name, answer in outputs.answers.items()}
    tables = _tables(call)
    digest = sha256(str([(name, content) for name, (content, _) in arrays.items()]).encode())
    digest.update(json.dumps([tables, str(outputs.kinds), str(outputs.tolerance), template]).encode())
    text = _text(call, outputs, tables, digest.hexdigest()[:12])
    whole = sha256(text.encode() + digest.digest()).hexdigest()[:12]
    folder = results / "definitions" / f"{call.name}-{whole}"
    path = folder / f"{call.name}.py"
    if path.is_file():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (content, array) in arrays.items():
            _store(results / "definitions" / "arrays", content, array, folder / f"{name}.npy")
        write_whole(folder / f"{call.name}.cu.j2", template.encode())
        if tables:
            write_whole(folder / "tables.json", json.dumps(tables).encode())
        write_whole(path, text.encode())
    except OSError as error:
        raise UsageError(f"{folder}: the definition cannot be written: {error.strerror}") from error
    return path


def _store(store: Path, content: str, array: np.ndarray, path: Path) -> None:
    """Saves an array once for all definitions that have it, and links it to ``path``."""
    store.mkdir(parents=True, exist_ok=True)
    kept = store / f"{content[:32]}.npy"
    if not kept.is_file():
        part = store / f"{path.parent.name}.{path.name}"
        np.save(part, array)
        part.rename(kept)
    try:
        os.link(kept, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        np.save(path, array)


def _text(call: Call, outputs: Outputs, tables: Mapping[str, Any], data: str) -> str:
    arrays = [each for each in (*call.arguments, *call.constants) if each.is_array]
    compared = [name for name, kind in outputs.kinds.items() if kind in ("out", "inout")]
    words = {_word(each, outputs.kinds) for each in arrays}
    return HEAD.format(
        words=", ".join(sorted(words)),
        kernel=call.name,
        file=call.source.name,
        space=", ".join(f"{name}={values!r}" for name, values in call.space.items()),
        size="x".join(map(str, _told_size(call))),
        data=data,
        constraints="".join(_constraints(call, tables)),
        default=_default(call),
        arguments=tuple(each.name for each in call.arguments),
        arrays="\n".join(f"            {each.name!r}: {_array(each, outputs.kinds)}," for each in arrays),
        scalars=", ".join(f"{each.name!r}: {_scalar(each.value)}" for each in call.arguments if not each.is_array),
        launch=_launch(call),
        n_bytes=float(sum(each.value.nbytes for each in arrays)),
        inputs=tuple(each.name for each in arrays if outputs.kinds.get(each.name) != "out"),
        outputs=tuple(compared),
        tolerance=outputs.tolerance,
        constants=_constants(call),
    )


def _told_size(call: Call) -> tuple[Any, ...]:
    """Returns the problem's size for people: that of the default config where it depends on the config."""
    size = call.problem_size
    if callable(size):
        return call.sizes(_default(call))
    return tuple(size) if isinstance(size, tuple | list) else (size,)


def _default(call: Call) -> dict[str, Any]:
    """Returns the first config that is allowed."""
    from itertools import product

    for values in product(*call.space.values()):
        config = dict(zip(call.space, values, strict=True))
        if call.allows(config):
            return config
    raise UsageError(f"{call.name}: the restrictions allow no config")


# ---------------------------------------------------------------------- what functions of the call say, as tables
def _tables(call: Call) -> dict[str, Any]:
    """Returns, for each config that is allowed, what only functions know; nothing where all is said by text."""
    if not call.has_functions and not any(map(callable, (call.defines or {}).values())):
        return {}
    configs = call.configs()
    table: dict[str, Any] = {
        "configs": [list(config.values()) for config in configs],
        "launches": [[call.grid(config), call.shared(config)] for config in configs],
        "defines": [_define_lines(call, config) for config in configs],
    }
    if call.generate is not None:
        texts = [call.generate(dict(config)) for config in configs]
        if any(text != call.source.text for text in texts):
            raise UsageError(
                f"{call.name}: its source is a function that gives another text for each config, which is not served: "
                "give one text with the parameters as macros, or write a template (docs/kernels.md)"
            )
    return table


def _define_lines(call: Call, config: Mapping[str, Any]) -> str:
    """Returns the lines that stand before the source, as users of Kernel Tuner know them."""
    if call.defines is not None:
        given = {name: value(dict(config)) if callable(value) else value for name, value in call.defines.items()}
        said: dict[str, Any] = {name: _replaced(str(value), config) for name, value in given.items()}
    else:
        said = {f"grid_size_{axis}": n for axis, n in zip(AXES, call.grid(config), strict=True)}
        said |= dict(zip(call.block_names, call.block(config), strict=True))
        said |= {name: value for name, value in config.items() if not name.startswith(UNROLL)}
        said["kernel_tuner"] = 1
    said |= call.macros
    lines = [f"#define {name} {_plain(value)}" for name, value in said.items()]
    if call.defines is None:
        lines += [f"constexpr int {name} = {value};" for name, value in config.items() if name.startswith(UNROLL)]
    return "\n".join(lines) + "\n"


def _replaced(text: str, config: Mapping[str, Any]) -> str:
    return re.sub(r"\b\w+\b", lambda found: str(config.get(found[0], found[0])), text)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


# ---------------------------------------------------------------------- parts of the text
def _constraints(call: Call, tables: Mapping[str, Any]) -> list[str]:
    made = []
    for number, rule in enumerate(call.restrictions):
        if not callable(rule):
            text = checked(rule, call.space, "the restriction")
            head = f"@SPACE.constraint({rule.strip()!r})\ndef restriction_{number}(problem, c, device):\n"
            made.append(f"{head}    return {text}\n\n\n")
    if any(map(callable, call.restrictions)):
        names = ", ".join(f"c[{name!r}]" for name in call.space)
        made.append(
            "@SPACE.constraint('what the function in restrictions allows')\n"
            f"def allowed(problem, c, device):\n    return ({names},) in TABLE\n\n\n"
        )
    if tables:
        made.insert(0, _table_text(tables))
    return made


def _table_text(tables: Mapping[str, Any]) -> str:
    """Returns the table as Python: what is launched and defined for each config that functions allow."""
    rows = zip(tables["configs"], tables["launches"], tables["defines"], strict=True)
    lines = [
        f"    {tuple(config)!r}: ({tuple(grid)!r}, {shared}, {defines!r}),\n"
        for config, (grid, shared), defines in rows
    ]
    return (
        "TABLE = {  # of each config: grid, bytes of dynamic shared memory, lines before the source\n"
        + "".join(lines)
        + "}\n\n\n"
    )


def _launch(call: Call) -> str:
    block = ", ".join(_item(call, name, size) for name, size in zip(call.block_names, (256, 1, 1), strict=True))
    if call.has_functions:
        names = ", ".join(f"c[{name!r}]" for name in call.space)
        return f"        grid, shared, _ = TABLE[({names},)]\n        return Launch(grid, ({block}), shared)"
    given = call.problem_size
    sizes = [*(given if isinstance(given, tuple | list) else [given]), 1, 1][:3]
    grid = []
    for size, divisor, name in zip(sizes, call.divisors, call.block_names, strict=True):
        by = _item(call, name, 1) if divisor is None else _product(call, divisor)
        text = checked(size, call.space, "the problem size") if isinstance(size, str) else str(int(size))
        grid.append(text if by == "1" else f"ceil(({text}) / ({by}))")
    shared = call.shared_bytes
    shared = checked(shared, call.space, "smem_args") if isinstance(shared, str) else str(int(shared))
    return f"        return Launch(({', '.join(grid)}), ({block}), {shared})"


def _product(call: Call, divisor: Any) -> str:
    if isinstance(divisor, tuple | list):
        return " * ".join(f"({_product(call, each)})" for each in divisor) or "1"
    return checked(divisor, call.space, "the divisor of the grid") if isinstance(divisor, str) else repr(divisor)


def _item(call: Call, name: str, otherwise: int) -> str:
    return f"c[{name!r}]" if name in call.space else str(otherwise)


def _constants(call: Call) -> str:
    if call.has_functions or any(map(callable, (call.defines or {}).values())):
        names = ", ".join(f"c[{name!r}]" for name in call.space)
        return f"        return {{'defines': TABLE[({names},)][2]}}"
    if call.defines is not None:
        said = {name: _joined(str(value), call) for name, value in call.defines.items()}
        unrolled: list[str] = []
    else:
        said = {f"grid_size_{axis}": f"launch.grid[{i}]" for i, axis in enumerate(AXES)}
        said |= {name: f"launch.block[{i}]" for i, name in enumerate(call.block_names)}
        unrolled = [name for name in call.space if name.startswith(UNROLL)]
        said |= {name: f"c[{name!r}]" for name in call.space if name not in (*unrolled, *call.block_names)}
        said["kernel_tuner"] = "1"
    said |= {name: repr(value) for name, value in call.macros.items()}
    items = "".join(f"            {name!r}: {value},\n" for name, value in said.items())
    return (
        "        launch = self.launch(problem, c)\n"
        f"        said = {{\n{items}        }}\n"
        "        lines = [f'#define {name} {int(v) if isinstance(v, bool) else v}' for name, v in said.items()]\n"
        f"        lines += [f'constexpr int {{name}} = {{c[name]}};' for name in {unrolled!r}]\n"
        "        return {'defines': '\\n'.join(lines) + '\\n'}"
    )


def _joined(text: str, call: Call) -> str:
    """Returns Python for a text in which names of parameters stand for their values."""
    parts = re.split(rf"\b({'|'.join(map(re.escape, call.space))})\b", text)
    return " + ".join(f"str(c[{part!r}])" if part in call.space else repr(part) for part in parts if part) or "''"


def _array(given: Argument, kinds: Mapping[str, str]) -> str:
    dtype = given.value.dtype
    told = repr(dtype.str) if dtype.names is None else repr(dtype.descr)
    shape = "".join(f", {n}" for n in given.value.shape)
    return f"{_word(given, kinds)}(np.dtype({told}){shape})"


def _word(given: Argument, kinds: Mapping[str, str]) -> str:
    return f"array_{'constant' if given.parameter is None else kinds[given.name]}"


def _scalar(value: np.generic) -> str:
    """Returns Python for exactly this number."""
    dtype = value.dtype
    told = repr(dtype.str) if dtype.names is None else f"np.dtype({dtype.descr!r}, align=True)"
    return f"np.frombuffer(bytes.fromhex({value.tobytes().hex()!r}), {told})[0]"
