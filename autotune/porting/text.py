"""Writes the text of a definition for a call: Python that a person can read and edit."""

import inspect
import json
from collections.abc import Mapping
from keyword import iskeyword
from math import isfinite

import numpy as np

from ..core.definition import Tolerance
from .array_memory import dtype_text
from .call import FITS, CallArgument
from .formula_tables import FormulaTable
from .formulas import Formulas, define_lines
from .outputs import Outputs
from .rules import Rule

HEAD = '''"""{kernel} of {file}, from a call of tune_kernel. The .npy files beside it are its arrays and answers."""

import json
from dataclasses import dataclass
from math import ceil, prod
from pathlib import Path

import numpy as np

from autotune import Kernel, Launch, Space, Tolerance, {words}

FOLDER = Path(__file__).parent
SPACE = Space({space})


@dataclass(frozen=True)
class Problem:
{fields}    data: str = baked({data!r}, "the source, and a digest of arguments, answers and restrictions")


def loaded(name):
    return np.load(FOLDER / f"{{name}}.npy", mmap_mode="r")


{lines}{constraints}class Ported(Kernel[Problem]):
    """{kernel} of {file}: {told}."""

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

    def edge_problems(self, problem, c):
        return (problem,)  # the answers are for one size

    def inputs(self, problem, rng):
        return {{
{inputs}
        }}

    def reference(self, problem, **inputs):
        return {{name: loaded(f"answer.{{name}}") for name in {outputs!r}}}

    def tolerance(self, problem):
        return {tolerance}

    def constants(self, problem, c):
{constants}
'''


def definition_text(formulas: Formulas, outputs: Outputs, table: FormulaTable | None, data: str) -> str:
    """Returns the definition; ``data`` names the source and a digest of the arrays."""
    call, sizes = formulas.call, formulas.sizes
    numbers = [each for each in call.arguments if not each.is_array]
    words = {_word(each, outputs.kinds) for each in call.arrays} | {"baked"} | ({"runtime"} if sizes.fields else set())
    return HEAD.format(
        words=", ".join(sorted(words)),
        kernel=call.name,
        file=call.source.file,
        told=formulas.told,
        space=_space(call.space),
        fields=_fields(formulas),
        data=data,
        lines=f"{inspect.getsource(define_lines)}\n\n",
        constraints="".join(_constraints(formulas, table)),
        default=dict(call.default),
        arguments=tuple(each.name for each in call.arguments),
        arrays="\n".join(
            f"            {each.name!r}: {_array(each, formulas, outputs.kinds)}," for each in call.arrays
        ),
        scalars=", ".join(f"{each.name!r}: {_scalar(each, formulas)}" for each in numbers),
        launch=_launch(formulas),
        inputs="\n".join(_inputs(formulas, outputs.kinds)),
        outputs=tuple(outputs.compared),
        tolerance=_tolerance(outputs),
        constants=_constants(formulas, table),
    )


# ---------------------------------------------------------------------- parts of the text
def _space(space: Mapping[str, tuple[object, ...]]) -> str:
    """Returns the arguments of Space; as a dict if a macro's name is a Python keyword."""
    if any(map(iskeyword, space)):
        return f"**{space!r}"
    return ", ".join(f"{name}={values!r}" for name, values in space.items())


def _fields(formulas: Formulas) -> str:
    sizes = formulas.sizes.fields
    lines = [f'    {name}: int = runtime({value!r}, "an argument of the kernel")\n' for name, value in sizes.items()]
    size = formulas.call.problem_size
    size_values = tuple(size) if isinstance(size, tuple | list) else (size,)
    if not sizes and size_values and not callable(size):
        name = "x".join(str(each) for each in size_values)
        lines.append(f'    size: str = baked({name!r}, "the problem size, as it was given")\n')
    return "".join(lines)


def _constraints(formulas: Formulas, table: FormulaTable | None) -> list[str]:
    call = formulas.call
    statements = [_table_text(table)] if table is not None else []
    written = [rule for rule in call.restrictions if rule.written]
    statements += [f"SPACE.require({rule.written!r}{_reason(rule)})\n" for rule in written]
    statements += ["\n\n"] if written else []
    if not call.is_written:
        statements.append(
            "@SPACE.constraint('what the functions in restrictions allow', reads=SPACE.parameters)\n"
            "def allowed(problem, c, device):\n    return row_of(c) in ROWS\n\n\n"
        )
    if call.axes:
        block = ", ".join(formulas.block)
        statements.append(
            f"@SPACE.constraint({FITS!r}, reads={call.axes!r})\n"
            f"def fits(problem, c, device):\n    block = ({block})\n"
            "    along = all(n <= most for n, most in zip(block, device.max_block))\n"
            "    return along and prod(block) <= device.max_threads_per_block\n\n\n"
        )
    return statements


def _reason(rule: Rule) -> str:
    return "" if rule.said == repr(rule.written) else f", {rule.said!r}"


def _table_text(table: FormulaTable) -> str:
    """Returns the table as Python: all columns in one JSON text, which Python reads fast."""
    columns = json.dumps({"config": table.config, "said": table.said}, separators=(",", ":"))
    return (
        "# Values of the call's functions: the value numbers of each parameter by row, and the values by function.\n"
        f"TABLE = json.loads({columns!r})\n"
        "NUMBERS = {name: {v: i for i, v in enumerate(SPACE.parameters[name].values)} for name in TABLE['config']}\n"
        "ROWS = {row: i for i, row in enumerate(zip(*TABLE['config'].values()))} or {(): 0}\n\n\n"
        "def row_of(c):\n    return tuple(numbers[c[name]] for name, numbers in NUMBERS.items())\n\n\n"
        "def table_value(place, c):\n    column = TABLE['said'][place]\n"
        "    return column['values'][column['of'][ROWS[row_of(c)]]]\n\n\n"
    )


def _launch(formulas: Formulas) -> str:
    block, function = f"({', '.join(formulas.block)})", formulas.function and f", function={formulas.function}"
    shared = formulas.shared if formulas.shared.isdigit() else f"ceil({formulas.shared})"
    return f"        return Launch(({', '.join(formulas.grid)}), {block}, {shared}{function})"


def _constants(formulas: Formulas, table: FormulaTable | None) -> str:
    items = "".join(f"            {name!r}: {text},\n" for name, text in formulas.defines.items())
    unrolled = ", ".join(f"{name!r}: c[{name!r}]" for name in formulas.unrolled)
    lines = (
        "        launch = self.launch(problem, c)\n"
        "        grid, block = launch.grid, launch.block\n"
        f"        said = {{\n{items}        }}\n"
        f"        defines = define_lines(said, {{{unrolled}}})\n"
    )
    if table is None or not table.sources:
        return f"{lines}        return {{'defines': defines}}"
    source = "json.loads((FOLDER / 'sources.json').read_text())[TABLE['said']['source']['of'][ROWS[row_of(c)]]]"
    return f"{lines}        return {{'defines': defines, 'source': {source}}}"


def _array(argument: CallArgument, formulas: Formulas, kinds: Mapping[str, str]) -> str:
    array = argument.memory.stored
    shape = "".join(f", {formulas.sizes.extent(n)}" for n in array.shape)
    return f"{_word(argument, kinds)}(np.dtype({array.dtype.str!r}){shape})"


def _word(argument: CallArgument, kinds: Mapping[str, str]) -> str:
    return f"array_{'constant' if argument.parameter is None else kinds[argument.name]}"


def _inputs(formulas: Formulas, kinds: Mapping[str, str]) -> list[str]:
    """Returns a line for each input, in the order of the kernel's parameters."""
    call, sizes = formulas.call, formulas.sizes
    lines = []
    for each in (*call.arguments, *call.constants):
        if each.is_array and kinds.get(each.name) != "out":
            lines.append(f"            {each.name!r}: loaded({each.name!r}),")
        elif each.name in sizes.inputs:
            lines.append(f"            {each.name!r}: {_number(each.number)},")
    return lines


def _scalar(each: CallArgument, formulas: Formulas) -> str:
    """Returns Python for a number among the kernel's arguments: a size, an input, or a constant."""
    sizes, dtype = formulas.sizes, each.number.dtype
    if each.name in sizes.of:
        return f"np.{dtype.name}(problem.{sizes.of[each.name]})"
    if each.name not in sizes.inputs:
        return _number(each.number)
    if dtype.names is not None:
        return f"np.array(inputs[{each.name!r}], {dtype_text(dtype)})[()]"
    return f"np.{_type_name(dtype)}(inputs[{each.name!r}])"


def _number(value: np.generic) -> str:
    """Returns Python that gives exactly this number."""
    dtype = value.dtype
    plain = value.item()
    if dtype.names is None and dtype.kind in "biuf" and (dtype.kind != "f" or isfinite(plain)):
        return f"np.{_type_name(dtype)}({plain!r})"
    return f"np.frombuffer(bytes.fromhex({value.tobytes().hex()!r}), {dtype_text(dtype)})[0]"


def _type_name(dtype: np.dtype[np.generic]) -> str:
    return "bool_" if dtype.kind == "b" else dtype.name


def _tolerance(outputs: Outputs) -> str:
    """Returns Python for the common tolerance of all outputs, or for a dict if they differ."""
    each = {name: answer.tolerance for name, answer in outputs.compared.items()}
    return repr(each) if len(set(each.values())) > 1 else repr(next(iter(each.values()), Tolerance()))
