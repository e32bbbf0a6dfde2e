"""The text of a definition that is written for a call: Python that a person can read, and edit."""

import inspect
from collections.abc import Mapping
from keyword import iskeyword
from math import isfinite

import numpy as np

from ..core.definition import Tolerance
from .array_memory import dtype_text
from .call import CallArgument
from .formula_tables import FormulaTable
from .formulas import Formulas, define_lines
from .outputs import Outputs

HEAD = '''"""{kernel} of {file}, as tune_kernel was told. Its arrays and answers, of one size, lie beside as .npy."""

import json
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np

from autotune import Kernel, Launch, Space, Tolerance, {words}

FOLDER = Path(__file__).parent
SPACE = Space({space})


@dataclass(frozen=True)
class Problem:
{fields}    data: str = baked({data!r}, "digest of the arguments, their answers and the restrictions")


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
        return (problem,)  # the answers are of one size

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
    """Returns the definition; ``data`` is a digest of its arrays."""
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
        lines="" if table is not None else f"{inspect.getsource(define_lines)}\n\n",
        constraints="".join(_constraints(formulas, table)),
        default=call.default,
        arguments=tuple(each.name for each in call.arguments),
        arrays="\n".join(
            f"            {each.name!r}: {_array(each, formulas, outputs.kinds)}," for each in call.arrays
        ),
        scalars=", ".join(f"{each.name!r}: {_scalar(each, formulas)}" for each in numbers),
        launch=_launch(formulas, table),
        inputs="\n".join(_inputs(formulas, outputs.kinds)),
        outputs=tuple(outputs.compared),
        tolerance=_tolerance(outputs),
        constants=_constants(formulas, table),
    )


# ---------------------------------------------------------------------- parts of the text
def _space(space: Mapping[str, tuple[object, ...]]) -> str:
    """Returns the arguments of Space; a macro may be called as a word of Python's."""
    if any(map(iskeyword, space)):
        return f"**{space!r}"
    return ", ".join(f"{name}={values!r}" for name, values in space.items())


def _fields(formulas: Formulas) -> str:
    sizes = formulas.sizes.fields
    made = [f'    {name}: int = runtime({value!r}, "an argument of the kernel")\n' for name, value in sizes.items()]
    size = formulas.call.problem_size
    told = tuple(size) if isinstance(size, tuple | list) else (size,)
    if not sizes and not callable(size):
        name = "x".join(str(each) for each in told)
        made.append(f'    size: str = baked({name!r}, "the problem size, as it was given")\n')
    return "".join(made)


def _constraints(formulas: Formulas, table: FormulaTable | None) -> list[str]:
    made, call = [], formulas.call
    for number, rule in enumerate(call.restrictions):
        if rule.text:
            head = f"@SPACE.constraint({rule.said})\ndef restriction_{number}(problem, c, device):\n"
            made.append(f"{head}    return {rule.text}\n\n\n")
    if any(not rule.text for rule in call.restrictions):
        made.append(
            "@SPACE.constraint('what the function in restrictions allows')\n"
            f"def allowed(problem, c, device):\n    return {_key(formulas)} in TABLE\n\n\n"
        )
    if table is not None:
        made.insert(0, _table_text(table))
    return made


def _table_text(table: FormulaTable) -> str:
    """Returns the table as Python."""
    rows = [f"    {r.config!r}: ({r.grid!r}, {r.shared_bytes}, {r.defines!r}, {r.source}),\n" for r in table.rows]
    head = "TABLE = {  # of each config: grid, bytes of dynamic shared memory, lines before the source, its number\n"
    return head + "".join(rows) + "}\n\n\n"


def _key(formulas: Formulas) -> str:
    names = ", ".join(f"c[{name!r}]" for name in formulas.call.space)
    return f"({names},)"


def _launch(formulas: Formulas, table: FormulaTable | None) -> str:
    block, function = f"({', '.join(formulas.block)})", formulas.function and f", function={formulas.function}"
    if table is not None:
        lines = f"        grid, shared, *_ = TABLE[{_key(formulas)}]\n"
        return f"{lines}        return Launch(grid, {block}, shared{function})"
    return f"        return Launch(({', '.join(formulas.grid)}), {block}, {formulas.shared}{function})"


def _constants(formulas: Formulas, table: FormulaTable | None) -> str:
    if table is not None:
        lines = f"        *_, defines, source = TABLE[{_key(formulas)}]\n"
        if not table.sources:
            return lines + "        return {'defines': defines}"
        read = "json.loads((FOLDER / 'sources.json').read_text())"
        return lines + f"        return {{'defines': defines, 'source': {read}[source]}}"
    items = "".join(f"            {name!r}: {text},\n" for name, text in formulas.defines.items())
    unrolled = ", ".join(f"{name!r}: c[{name!r}]" for name in formulas.unrolled)
    return (
        "        launch = self.launch(problem, c)\n"
        "        grid, block = launch.grid, launch.block\n"
        f"        said = {{\n{items}        }}\n"
        f"        return {{'defines': define_lines(said, {{{unrolled}}})}}"
    )


def _array(given: CallArgument, formulas: Formulas, kinds: Mapping[str, str]) -> str:
    array = given.memory.stored
    shape = "".join(f", {formulas.sizes.extent(n)}" for n in array.shape)
    return f"{_word(given, kinds)}(np.dtype({array.dtype.str!r}){shape})"


def _word(given: CallArgument, kinds: Mapping[str, str]) -> str:
    return f"array_{'constant' if given.parameter is None else kinds[given.name]}"


def _inputs(formulas: Formulas, kinds: Mapping[str, str]) -> list[str]:
    """Returns a line for each input, in the order of the signature: that of a call of the tuned kernel."""
    call, sizes = formulas.call, formulas.sizes
    made = []
    for each in (*call.arguments, *call.constants):
        if each.is_array and kinds.get(each.name) != "out":
            made.append(f"            {each.name!r}: loaded({each.name!r}),")
        elif each.name in sizes.inputs:
            made.append(f"            {each.name!r}: {_number(each.number)},")
    return made


def _scalar(each: CallArgument, formulas: Formulas) -> str:
    """Returns Python for an argument of the kernel that is a number: a size, an input, or a constant."""
    sizes, dtype = formulas.sizes, each.number.dtype
    if each.name in sizes.of:
        return f"np.{dtype.name}(problem.{sizes.of[each.name]})"
    if each.name not in sizes.inputs:
        return _number(each.number)
    if dtype.names is not None:
        return f"np.array(inputs[{each.name!r}], {dtype_text(dtype)})[()]"
    return f"np.{_type_name(dtype)}(inputs[{each.name!r}])"


def _number(value: np.generic) -> str:
    """Returns Python for exactly this number."""
    dtype = value.dtype
    plain = value.item()
    if dtype.names is None and dtype.kind in "biuf" and (dtype.kind != "f" or isfinite(plain)):
        return f"np.{_type_name(dtype)}({plain!r})"
    return f"np.frombuffer(bytes.fromhex({value.tobytes().hex()!r}), {dtype_text(dtype)})[0]"


def _type_name(dtype: np.dtype[np.generic]) -> str:
    return "bool_" if dtype.kind == "b" else dtype.name


def _tolerance(outputs: Outputs) -> str:
    """Returns Python for one tolerance, or of several outputs that differ each one's own."""
    each = {name: answer.tolerance for name, answer in outputs.compared.items()}
    return repr(each) if len(set(each.values())) > 1 else repr(next(iter(each.values()), Tolerance()))
