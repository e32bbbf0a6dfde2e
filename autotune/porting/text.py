"""The text of a definition that is written for a call: Python that a person can read, and edit."""

import re
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from ..core.errors import UsageError
from ..core.expressions import checked
from .call import AXES, DEFAULT_BLOCK, UNROLL, Argument, Call
from .outputs import Outputs
from .tables import Table

HEAD = '''"""{kernel} of {file}, as tune_kernel was told: one size. Its arrays and answers lie beside, as .npy."""

import json
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


def definition_text(call: Call, outputs: Outputs, table: Table | None, data: str) -> str:
    """Returns the definition; ``data`` is a digest of its arrays."""
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
        constraints="".join(_constraints(call, table)),
        default=_default(call),
        arguments=tuple(each.name for each in call.arguments),
        arrays="\n".join(f"            {each.name!r}: {_array(each, outputs.kinds)}," for each in arrays),
        scalars=", ".join(f"{each.name!r}: {_scalar(each.value)}" for each in call.arguments if not each.is_array),
        launch=_launch(call),
        n_bytes=float(sum(each.value.nbytes for each in arrays)),
        inputs=tuple(each.name for each in arrays if outputs.kinds.get(each.name) != "out"),
        outputs=tuple(compared),
        tolerance=outputs.tolerance,
        constants=_constants(call, table),
    )


def _told_size(call: Call) -> tuple[Any, ...]:
    """Returns the problem's size for people: that of the default config where it depends on the config."""
    size = call.problem_size
    if callable(size):
        return call.sizes(_default(call))
    return tuple(size) if isinstance(size, tuple | list) else (size,)


def _default(call: Call) -> dict[str, Any]:
    """Returns the first config that is allowed."""
    for values in product(*call.space.values()):
        config = dict(zip(call.space, values, strict=True))
        if call.allows(config):
            return config
    raise UsageError(f"{call.name}: the restrictions allow no config")


# ---------------------------------------------------------------------- parts of the text
def _constraints(call: Call, table: Table | None) -> list[str]:
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
    if table is not None:
        made.insert(0, _table_text(table))
    return made


def _table_text(table: Table) -> str:
    """Returns the table as Python."""
    rows = [f"    {r.config!r}: ({r.grid!r}, {r.shared_bytes}, {r.defines!r}, {r.source}),\n" for r in table.rows]
    head = "TABLE = {  # of each config: grid, bytes of dynamic shared memory, lines before the source, its number\n"
    return head + "".join(rows) + "}\n\n\n"


def _launch(call: Call) -> str:
    block = ", ".join(_item(call, name, size) for name, size in zip(call.block_names, DEFAULT_BLOCK, strict=True))
    if call.has_functions:
        names = ", ".join(f"c[{name!r}]" for name in call.space)
        return f"        grid, shared, *_ = TABLE[({names},)]\n        return Launch(grid, ({block}), shared)"
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


def _constants(call: Call, table: Table | None) -> str:
    if table is not None:
        names = ", ".join(f"c[{name!r}]" for name in call.space)
        lines = f"        *_, defines, source = TABLE[({names},)]\n"
        if not table.sources:
            return lines + "        return {'defines': defines}"
        read = "json.loads((FOLDER / 'sources.json').read_text())"
        return lines + f"        return {{'defines': defines, 'source': {read}[source]}}"
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
