"""Grid, block, macros and source of a call as Python expressions of a config ``c``, each written once.

The definition is written from these texts, and the probe evaluates them. A function of the caller appears as
``table_value('name', c)``; a definition then has a table of its values.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import ceil
from types import CodeType, SimpleNamespace
from typing import Any

import jinja2

from ..core.errors import UsageError
from ..core.expressions import CALLS, checked_expression
from .call import AXES, DEFAULT_BLOCK, UNROLL, Call, with_values
from .sizes import Sizes

PARAMETER = re.compile(r"c\['(\w+)'\]")  # checked_expression writes parameters so
ConfigFunction = Callable[[Mapping[str, object]], Any]
ConfigFunctions = dict[str, ConfigFunction]


@dataclass(frozen=True)
class LaunchValues:
    """Launch and macros of one config. ``defines``: lines before the source. ``function``: "" or a name expression."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    defines: str
    function: str = ""


def define_lines(macros: dict[str, object], unrolled: dict[str, object]) -> str:
    """Returns the lines that stand before the source: macros, and constants that #pragma unroll takes."""
    plain = {name: str(int(value) if isinstance(value, bool) else value) for name, value in macros.items()}
    goes_on = {name: text.replace("\n", " \\\n") + "/**/" * text.endswith("\\") for name, text in plain.items()}
    lines = [f"#define {name} {text}\n" for name, text in goes_on.items()]
    lines += [f"constexpr int {name} = {value};\n" for name, value in unrolled.items()]
    return "".join(lines)


@dataclass(frozen=True)
class Formulas:
    """Python expressions of ``c`` and ``problem``; those in ``defines`` may also use ``grid`` and ``block``."""

    call: Call
    sizes: Sizes
    grid: tuple[str, str, str]
    block: tuple[str, str, str]
    shared: str
    defines: Mapping[str, str]
    unrolled: tuple[str, ...]
    function: str  # the kernel's name expression; "": its plain name
    functions: Mapping[str, ConfigFunction] = field(default_factory=dict)

    @staticmethod
    def of(call: Call, sizes: Sizes) -> "Formulas":
        """Returns the formulas of a call; ``sizes`` are the numbers that may change between problems.

        Raises:
            UsageError: for a text that is not arithmetic over parameters.
        """
        functions: ConfigFunctions = {}

        def text(value: object, what: str, place: str) -> str:
            """Returns Python for a number, a text or a function, or for the product of a list of these."""
            if callable(value):
                functions[place] = lambda config: call.resolved(value, config, what)
                return f"table_value({place!r}, c)"
            if isinstance(value, tuple | list):
                parts = [text(each, what, f"{place}.{i}") for i, each in enumerate(value)]
                return " * ".join(f"({part})" for part in parts) or "1"
            return checked_expression(value, call.space, what) if isinstance(value, str) else repr(value)

        launch = call.launch
        if launch is None:
            x, y, z = (_item(call, name, n) for name, n in zip(call.block_names, DEFAULT_BLOCK, strict=True))
            by_default = [_item(call, name, 1) for name in call.block_names]
            by_text = isinstance(call.shared_bytes, str)
            shared = _of_launch(call, sizes, str(call.shared_bytes)) if by_text else ""
            shared = shared or text(call.shared_bytes, "the size of smem_args", "shared")
        else:
            x, y, z = by_default = [_of_launch(call, sizes, each) for each in launch.block or ()]
            shared = _of_launch(call, sizes, str(call.shared_bytes))
        grid = [] if launch is None or launch.grid is None else [_of_launch(call, sizes, each) for each in launch.grid]
        for i, divisor in enumerate(call.divisors if not grid else ()):
            size = _size(call, sizes, i, functions, text)
            by = by_default[i] if divisor is None else text(divisor, "the divisor of the grid", f"divisor {i}")
            grid.append(size if by == "1" else f"ceil(({size}) / ({by}))")
        defines, unrolled = _defines(call, sizes, functions)
        function = _function(call, dict(zip(call.block_names, (x, y, z), strict=True)), defines)
        places = (grid[0], grid[1], grid[2]), (x, y, z)
        return Formulas(call, sizes, *places, shared, defines, unrolled, function, functions)

    def said(self, config: Mapping[str, object]) -> LaunchValues:
        """Returns launch and macros of a config.

        Raises:
            UsageError: if a formula cannot be computed at this config.
        """
        names: dict[str, Any] = {"c": config, "problem": SimpleNamespace(**self.sizes.values)}
        names["called"] = lambda problem: vars(self.sizes.calls[-1])
        names["table_value"] = lambda place, c: self.functions[place](c)
        extents = [
            self._whole(each, f"the grid along {axis}", names) for axis, each in zip(AXES, self.grid, strict=True)
        ]
        grid, block = tuple(extents), tuple(int(_value(each, "the block", names)) for each in self.block)
        names |= {"grid": grid, "block": block}
        macros = {name: _value(each, f"the macro {name}", names) for name, each in self.defines.items()}
        shared = self._whole(self.shared, "the size of smem_args", names, least=0)
        lines = define_lines(macros, {name: config[name] for name in self.unrolled})
        function = str(_value(self.function, "the kernel's name", names)) if self.function else ""
        return LaunchValues((grid[0], grid[1], grid[2]), (block[0], block[1], block[2]), shared, lines, function)

    def said_by(self, place: str, config: Mapping[str, object]) -> Any:
        """Returns the value of one of ``functions`` at a config. Raises UsageError if the function raises."""
        try:
            return self.functions[place](config)
        except UsageError:
            raise
        except Exception as error:  # the caller's function may raise anything
            raise UsageError(f"{place} raises {type(error).__name__} at {_config_text(config)}: {error}") from error

    @property
    def told(self) -> str:
        """Returns a text for people on the arguments of a package of this kernel."""
        odd = {each.name: each.memory for each in self.call.arrays}
        turned = [name for name, memory in odd.items() if memory.order != tuple(range(memory.given.ndim))]
        bits = [name for name, memory in odd.items() if not memory.is_plain]
        given = [each.name for each in self.call.other_numbers]
        parts = [self.sizes.told]
        parts += [f"{', '.join(given)} given by each call"] if given else []
        parts += [f"{', '.join(turned)} with axes in the order of memory"] if turned else []
        parts += [f"{', '.join(bits)} as bits"] if bits else []
        return "; ".join(parts)

    def told_launch(self, config: Mapping[str, object]) -> str:
        """Returns a text for people: grid and block of a config, and what sets them."""
        said, call = self.said(config), self.call
        sizes = [f"{what} {'x'.join(map(str, of))}" for what, of in (("grid", said.grid), ("block", said.block))]
        told = f"{', '.join(sizes)} at {_config_text(config)}"
        if call.launch is not None:
            told = f"{told}: {call.launch.told}"
        elif not call.axes:
            blocks = zip(call.block_names, DEFAULT_BLOCK, strict=True)
            told = f"{told}; no parameter is called {', '.join(f'{name} ({n})' for name, n in blocks)}"
            told += f"; the source says {call.unused_launch}" * bool(call.unused_launch)
        if call.launch is None or call.launch.grid is None:
            told = f"{told}; the grid covers the problem size"
        return told

    def template(self, is_one: bool) -> str:
        """Returns the Jinja template; ``is_one``: all configs share one source text."""
        return self.call.source.template(self.unrolled, is_one)

    def source(self, config: Mapping[str, object]) -> str:
        """Returns the CUDA of a config, rendered like the definition's template."""
        own = self.call.generated(config) if self.call.generate is not None else ""
        variables = {"config": dict(config), "defines": self.said(config).defines, "source": own}
        return _environment().from_string(self.template(not own)).render(variables)

    def _whole(self, text: str, what: str, names: Mapping[str, Any], least: int = 1) -> int:
        number = _value(text, what, names)
        if not number >= least:
            raise UsageError(f"{what} is {number} at {_config_text(names['c'])}; it must be {least} or more")
        whole: int = ceil(number)
        return whole


def _size(call: Call, sizes: Sizes, axis: int, functions: ConfigFunctions, text: Callable[[Any, str, str], str]) -> str:
    """Returns Python for the problem size along an axis of the grid."""
    problem_size, what = call.problem_size, "the problem size"
    if callable(problem_size):

        def along(config: Mapping[str, object]) -> Any:
            result = problem_size(dict(config))
            listed = list(result) if isinstance(result, tuple | list) else [result]
            return call.resolved([*listed, 1, 1][axis], config, what)

        functions[f"size {axis}"] = along
        return f"table_value('size {axis}', c)"
    each = [*(problem_size if isinstance(problem_size, tuple | list) else [problem_size]), 1, 1][axis]
    if callable(each) or isinstance(each, str):
        return text(each, what, f"size {axis}")
    return sizes.spans[axis] if axis < len(sizes.spans) else str(int(each))


def _defines(call: Call, sizes: Sizes, functions: ConfigFunctions) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns Python for the value of each macro, and the parameters that become constants in place of macros."""
    macros: dict[str, str] = {}
    unrolled: tuple[str, ...] = ()
    if call.defines is not None:
        for name, value in call.defines.items():
            if callable(value):
                functions[f"macro {name}"] = partial(_macro_text, value)
                macros[name] = f"table_value('macro {name}', c)"
            else:
                macros[name] = _joined(str(value), call)
    else:
        # A grid that follows the sizes of a call is not a constant, so it is a macro only if the source uses it.
        macros |= {f"grid_size_{axis}": f"grid[{i}]" for i, axis in enumerate(AXES)} if call.has_grid_sizes else {}
        macros |= {name: f"block[{i}]" for i, name in enumerate(call.block_names)}
        unrolled = tuple(name for name in call.space if name.startswith(UNROLL))
        macros |= {name: f"c[{name!r}]" for name in call.space if name not in (*unrolled, *call.block_names)}
        macros["kernel_tuner"] = "1"
    whole = call.whole_macros
    macros |= {n: f"problem.{sizes.fields[n]}" if n in whole else repr(value) for n, value in call.macros.items()}
    named = {name: text for name, text in macros.items() if name not in call.source.of_templates}
    return {call.source.macro_of(name): text for name, text in named.items()}, unrolled


def _macro_text(macro: ConfigFunction, config: Mapping[str, object]) -> str:
    """Returns the text of a macro that a function computes; parameters in it are replaced by their values."""
    return with_values(str(macro(dict(config))), config)


def _function(call: Call, blocks: Mapping[str, str], defines: Mapping[str, str]) -> str:
    """Returns Python for the kernel's name expression, with macros replaced by their values.

    Raises:
        UsageError: for a macro whose value only a function computes, or that depends on the grid.
    """
    if not call.source.function:
        return ""
    parts = []
    for part in re.split(r"\b([A-Za-z_]\w*)\b", call.source.function):
        if part in blocks:
            parts.append(f"str({blocks[part]})")
        elif part in call.space:
            is_bool = any(isinstance(value, bool) for value in call.space[part])
            parts.append(f"str(int(c[{part!r}]))" if is_bool else f"str(c[{part!r}])")
        elif part in defines:
            if re.search(r"\btable_value\(|\bgrid\[|\bblock\[", defines[part]):
                raise UsageError(f"the kernel's name {call.given_name!r}: {part} is not a parameter; give a value")
            parts.append(f"str({defines[part]})")
        elif part:
            parts.append(repr(part))
    return " + ".join(parts)


def _of_launch(call: Call, sizes: Sizes, text: str) -> str:
    """Returns Python for an expression of parameters and arguments."""

    def meant(found: re.Match[str]) -> str:
        name = found[1]
        return found[0] if name in call.space else f"problem.{sizes.fields[name]}"

    return PARAMETER.sub(meant, checked_expression(text, {*call.space, *call.whole}, f"{call.name}'s launch"))


def _item(call: Call, name: str, otherwise: int) -> str:
    return f"c[{name!r}]" if name in call.space else str(otherwise)


def _joined(text: str, call: Call) -> str:
    """Returns Python for a text in which names of parameters are replaced by their values."""
    parts = re.split(rf"\b({'|'.join(map(re.escape, call.space))})\b", text)
    return " + ".join(f"str(c[{part!r}])" if part in call.space else repr(part) for part in parts if part) or "''"


@lru_cache(maxsize=1024)
def _compiled(text: str) -> CodeType:
    return compile(text, "call", "eval")


def _value(text: str, what: str, names: Mapping[str, Any]) -> Any:
    """Returns the value of a text that is made of results of ``checked_expression``."""
    try:
        return eval(_compiled(text), {"__builtins__": {}, "ceil": ceil, "str": str, **CALLS, **names})
    except UsageError:
        raise
    except Exception as error:  # the caller's function may raise anything
        raise UsageError(f"{what} raises {type(error).__name__} at {_config_text(names['c'])}: {error}") from error


def _config_text(config: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items())


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
