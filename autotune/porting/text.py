"""Writes the text of a definition for a call: Python that a person can read and edit."""

import inspect
import json
import re
from collections.abc import Mapping
from keyword import iskeyword
from math import isfinite

import numpy as np

from ..records.checks_made import OLD_OUTPUTS, POISON
from .array_memory import dtype_text
from .call import FITS, CallArgument
from .formula_tables import FormulaTable
from .formulas import Formulas, define_lines
from .known_calls import N_DIGITS, KnownCall, KnownCalls

UNSURE = (POISON, OLD_OUTPUTS)  # checks that say nothing where it is unknown which arrays a kernel reads
FIELD = re.compile(r"\bproblem\.(\w+)")
HEAD = '''"""{kernel} of {file}. The .npy files beside it are the arrays and answers of the calls in calls.json."""

import json
from dataclasses import dataclass, replace
from math import ceil, prod
from pathlib import Path

import numpy as np

from autotune import Kernel, Launch, Space, Tolerance, {words}

FOLDER = Path(__file__).parent
SPACE = Space({space})
CALLS = {{  # values of the problem's fields -> files of arrays, and tolerances of compared outputs
{calls}}}


def key_of(problem):
    return ({key},)


def called(problem):
    return CALLS.get(key_of(problem), {{}})


@dataclass(frozen=True)
class Problem:
{fields}    data: str = baked({data!r}, "the source, and a digest of the kernel")
{demands}

def loaded(name, problem, shape):
    call = called(problem) or next(iter(CALLS.values()))  # another size gets the first call's array, cut or repeated
    array = np.load(FOLDER / f"{{name}}.{{call['files'][name]}}.npy", mmap_mode="r")
    return array if array.shape == shape else np.resize(array, shape)


{lines}{constraints}class Ported(Kernel[Problem]):
    """{kernel} of {file}: {told}."""

    kernel_name = {kernel!r}
    space = SPACE
    default = {default!r}
    arguments = {arguments!r}
    tuned = tuple(Problem(*key[:{n_fields}]) for key in CALLS)
{unchecked}
    def arrays(self, problem):
        compared = called(problem).get("tolerance", {{}})
        arrays = {{
{arrays}
        }}
        written = {{name: array for name, array in arrays.items() if array.is_compared}}
        return arrays | {{name: replace(array, compared=name in compared) for name, array in written.items()}}

    def scalars(self, problem, inputs):
        return {{{scalars}}}

    def launch(self, problem, c):
{launch}

    def edge_problems(self, problem, c):
        return (problem,)  # the answers are for one size

    def inputs(self, problem, rng):
        shapes = {{name: array.shape for name, array in self.arrays(problem).items()}}
        return {{
{inputs}
        }}

    def reference(self, problem, **inputs):
        shapes = {{name: array.shape for name, array in self.arrays(problem).items()}}
        return {{name: loaded(f"answer.{{name}}", problem, shapes[name]) for name in self.tolerance(problem)}}

    def tolerance(self, problem):
        return called(problem).get("tolerance", {{}})

    def judged_by(self, problem):
        return called(problem).get("judged", "")

    def constants(self, problem, c):
{constants}
'''


def definition_text(
    formulas: Formulas, known: KnownCalls, table: FormulaTable | None, default: Mapping[str, object]
) -> str:
    """Returns the definition of a kernel with its calls; the last one is that of ``formulas``, and has the default."""
    call, sizes, kinds = formulas.call, formulas.sizes, known.kinds
    numbers = [each for each in call.arguments if not each.is_array]
    has_label = any(each.sizes.label for each in known.calls)
    words = {_word(each, kinds) for each in call.arrays} | {"baked"}
    words |= {"runtime"} if sizes.fields and not call.has_grid_sizes else set()
    words |= {"TrialFailure"} | ({"since"} if known.since else set()) | ({"UsageError"} if sizes.demands else set())
    return HEAD.format(
        words=", ".join(sorted(words)),
        kernel=call.name,
        file=call.source.file,
        told=formulas.told,
        space=_space(call.space, known.since),
        calls="".join(_call(each, formulas) for each in known.calls),
        key=", ".join([*(f"problem.{name}" for name in sizes.fields.values()), "problem.size" if has_label else "''"]),
        fields=_fields(formulas, known, has_label),
        data=known.data,
        demands=_demands(formulas),
        lines=f"{inspect.getsource(define_lines)}\n\n",
        constraints="".join(_constraints(formulas, table)),
        default=dict(default),
        arguments=tuple(each.name for each in call.arguments),
        n_fields=len(sizes.fields) + has_label,
        unchecked="" if known.is_sure else f"    unchecked = {UNSURE}  # which arrays the kernel reads is unknown\n",
        arrays="\n".join(f"            {each.name!r}: {_array(each, formulas, kinds)}," for each in call.arrays),
        scalars=", ".join(f"{each.name!r}: {_scalar(each, formulas)}" for each in numbers),
        launch=_launch(formulas),
        inputs="\n".join(_inputs(formulas, kinds)),
        constants=_constants(formulas, table),
    )


# ---------------------------------------------------------------------- parts of the text
def _space(space: Mapping[str, tuple[object, ...]], since: Mapping[str, object]) -> str:
    """Returns the arguments of Space; as a dict if a macro's name is a Python keyword."""
    values = {name: f"since({since[name]!r}, {of!r})" if name in since else repr(of) for name, of in space.items()}
    if any(map(iskeyword, space)):
        return f"**{{{', '.join(f'{name!r}: {text}' for name, text in values.items())}}}"
    return ", ".join(f"{name}={text}" for name, text in values.items())


def _call(known: KnownCall, formulas: Formulas) -> str:
    """Returns the line of a call: its key, and what the methods look up."""
    parts = {
        "files": repr({name: digest[:N_DIGITS] for name, digest in known.files.items()}),
        "tolerance": f"{{{', '.join(f'{name!r}: Tolerance{of!r}' for name, of in known.tolerances.items())}}}",
    }
    others = formulas.call.other_numbers
    numbers = {e.name: np.frombuffer(bytes.fromhex(known.numbers[e.name]), e.number.dtype)[0] for e in others}
    parts |= (
        {"numbers": f"{{{', '.join(f'{name!r}: {_number(n)}' for name, n in numbers.items())}}}"} if numbers else {}
    )
    parts |= {"judged": repr(known.judged)} if known.judged else {}
    if formulas.sizes.why:
        parts |= {"shapes": repr(dict(known.sizes.shapes)), "spans": repr(known.sizes.spans)}
    return f"    {known.sizes.key!r}: {{{', '.join(f'{name!r}: {text}' for name, text in parts.items())}}},\n"


def _fields(formulas: Formulas, known: KnownCalls, has_label: bool) -> str:
    first, call = known.calls[0].sizes, formulas.call
    lines = []
    for name, own in formulas.sizes.fields.items():
        is_macro = name in call.whole_macros
        word = "baked" if is_macro or call.has_grid_sizes else "runtime"
        what = f"the macro {name}" if is_macro else "an argument of the kernel"
        lines.append(f"    {own}: int = {word}({first.whole[name]!r}, {what!r})\n")
    if has_label:
        lines.append("    size: str = baked('', 'the problem size', added=True)\n")
    return "".join(lines)


def _demands(formulas: Formulas) -> str:
    """Returns the method that refuses problems at which arrays or grid would not be known."""
    lines = []
    for condition, why in formulas.sizes.demands.items():
        why = f"{formulas.call.name}: {why}".replace("{", "{{").replace("}", "}}")
        named = ", ".join(f"{name}={{problem.{name}}}" for name in dict.fromkeys(FIELD.findall(condition)))
        said = repr(f"{why} (here {named})" if named else why)
        lines.append(f"        if not ({condition}):\n            raise UsageError(f{said})\n")
    return f"\n    def __post_init__(self):\n        problem = self\n{''.join(lines)}" if lines else ""


def _constraints(formulas: Formulas, table: FormulaTable | None) -> list[str]:
    call = formulas.call
    statements = [_table_text(table)] if table is not None else []
    written = [rule for rule in call.restrictions if rule.written]
    for rule in written:
        reason = "" if rule.said == repr(rule.written) else f", {rule.said!r}"
        statements.append(f"SPACE.require({rule.written!r}{reason})\n")
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
    return (
        f"        launch = Launch(({', '.join(formulas.grid)}), {block}, {shared}{function})\n"
        "        if not all(launch.grid):\n"
        "            raise TrialFailure('launch_failed', f'the grid is {launch.grid}; each extent must be 1 or more')\n"
        "        return launch"
    )


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
    dtype, extents = argument.memory.stored.dtype, formulas.sizes.extents[argument.name]
    shape, most = "".join(f", {extent}" for extent in extents), formulas.call.source.alignment
    align = f", align={most}" if most > 16 and argument.parameter is not None else ""
    return f"{_word(argument, kinds)}(np.dtype({dtype.str!r}){shape}{align})"


def _word(argument: CallArgument, kinds: Mapping[str, str]) -> str:
    return f"array_{'constant' if argument.parameter is None else kinds[argument.name]}"


def _inputs(formulas: Formulas, kinds: Mapping[str, str]) -> list[str]:
    """Returns a line for each input, in the order of the kernel's parameters."""
    call = formulas.call
    others = [each.name for each in call.other_numbers]
    lines = []
    for each in (*call.arguments, *call.constants):
        if each.is_array and kinds.get(each.name) != "out":
            lines.append(f"            {each.name!r}: loaded({each.name!r}, problem, shapes[{each.name!r}]),")
        elif each.name in others:
            lines.append(
                f"            {each.name!r}: (called(problem) or next(iter(CALLS.values())))['numbers'][{each.name!r}],"
            )
    return lines


def _scalar(each: CallArgument, formulas: Formulas) -> str:
    """Returns Python for a number among the kernel's arguments: a field, or an input."""
    dtype = each.number.dtype
    if each.name in formulas.sizes.fields:
        return f"np.{dtype.name}(problem.{formulas.sizes.fields[each.name]})"
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
