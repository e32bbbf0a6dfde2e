"""Renders a template for a baked problem and a config: the CUDA source of one variant.

The text does not depend on devices, clocks or paths. Each template gives two texts: the plain one, which is hashed,
stored and read; and the same with ``#line`` directives, which is compiled, so that compilers, checkers and profilers
name the template's lines. Files that a template includes in quotes are a part of both.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import jinja2
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from ..core.config import Config
from ..core.definition import BEYOND_BYTES, BEYOND_CONSTANTS, CONSTANT_BYTES, Array, Kernel, P
from ..core.errors import Status, TrialFailure
from ..core.launch import function_named
from ..core.library import library_path
from ..core.problem import baked_fields, baked_values
from .includes import with_includes
from .template_checks import check_arrays, check_order, check_textures

INCLUDES = re.compile(r"\b(?:include|import|embed)")  # a text without these words has no include directives
UNDEFINED = re.compile(r"(?:attribute '|^')(\w+)'")  # the undefined name in a message of Jinja


@dataclass(frozen=True)
class Variant:
    """The rendered source of (baked problem, config). ``name`` and ``key`` identify it everywhere."""

    kernel: str  # the __global__ function that has the kernel's name, as a name expression
    name: str  # ddc[taps=256,decimation=16,sample_bits=10|ALGORITHM=register,WGS=128]
    key: str  # first 12 hex digits of the source's SHA-256
    source: str
    numbered: str  # the source with #line directives
    config: Config
    constants: tuple[tuple[str, Array], ...] = ()  # arrays in constant memory, by name
    also: tuple[str, ...] = ()  # the other launched __global__ functions


def render(kernel: Kernel[P], problem: P, config: Config, numbered: bool = True) -> Variant:
    """Returns the variant of ``problem``'s baked fields and ``config``, which may lack parameters that are newer.

    ``numbered``: whether to render the text with #line directives, too, without which its ``numbered`` is the source.

    Raises:
        TrialFailure: render_failed, with the template's file and line, also if an included file is missing;
            definition_failed, if the signature and the definition's ``arguments`` have a name at different positions.
    """
    path, config = kernel.template, kernel.space.completed(config)
    context = {
        "problem": {name: getattr(problem, name) for name in baked_fields(type(problem))},
        "config": dict(config),
        **{name: value for name, value in kernel.constants(problem, config).items()},
    }
    baked = ",".join(f"{name}={value}" for name, value in baked_values(problem).items())
    name = f"{kernel.name}[{baked}|{config}]"
    header = f"// {name}\n"
    texts = []
    for has_lines in (False, True) if numbered else (False,):
        try:
            texts.append(_environment(path.parent, has_lines).get_template(path.name).render(context))
        except Exception as error:  # an expression of a template may raise anything
            raise TrialFailure(Status.RENDER_FAILED, _explain(error, path, kernel, config)) from error
    source, compiled = texts[0], texts[-1]
    if INCLUDES.search(source):
        folders = (path.parent, library_path())
        if numbered:  # first: it knows the template's lines
            compiled = with_includes(compiled, path.name, folders, numbered=True)
        source = with_includes(source, path.name, folders, numbered=False)
    arguments = kernel.arguments_for(problem)
    launch = kernel.launch(problem, config)
    functions = tuple(dict.fromkeys(step.function or kernel.name for step in launch.steps))
    own = function_named(kernel.name, launch)
    if instances := [function for function in functions if not function.isidentifier()]:
        header += f"// {', '.join(instances)}\n"  # another instance of the same text then has another key
    source = header + source
    for step in launch.steps:
        check_order(kernel, step.function or kernel.name, step.own((*arguments, *launch.workspace)), source, path)
    specs = kernel.arrays(problem)
    check_arrays(kernel, arguments, specs)
    if not numbered:
        compiled = source.removeprefix(header)
    check_textures(compiled, path)
    constants = tuple((array, spec) for array, spec in specs.items() if spec.constant)
    if constants and sum(spec.n_bytes for _, spec in constants) <= CONSTANT_BYTES // 2:
        # Compilers lay out variables in the order of the source, so a read beyond the last array finds this one.
        beyond = f"\n__constant__ unsigned char {BEYOND_CONSTANTS}[{BEYOND_BYTES}];\n"
        source, compiled = source + beyond, compiled + beyond
    key = hashlib.sha256(source.encode()).hexdigest()[:12]
    also = tuple(function for function in functions if function != own)
    return Variant(own, name, key, source, header + compiled, config, constants, also)


class LineDirectives(Extension):
    """Writes ``#line`` wherever rendered lines stop following the template's; without these lines the text is plain."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        at_line_start = True  # true at the top of a template, and after a statement that is alone on its line
        for token in stream:
            if token.type == "data":
                if at_line_start:
                    token = Token(token.lineno, "data", f'#line {token.lineno} "{stream.name}"\n{token.value}')
                at_line_start = False
            elif token.type == "block_end":
                at_line_start = True
            elif token.type == "variable_begin":
                at_line_start = False
            yield token


@lru_cache(maxsize=16)
def _environment(folder: Path, numbered: bool) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, library_path()]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=[LineDirectives] if numbered else [],
    )


def _explain(error: Exception, path: Path, kernel: Kernel[P], config: Config) -> str:
    """Returns the message for a template that does not render: where, why, and what to do."""
    line = getattr(error, "lineno", None)
    where = getattr(error, "name", None) or path.name
    traceback = error.__traceback__
    while line is None and traceback is not None:  # the traceback of a runtime error contains the template's line
        if traceback.tb_frame.f_code.co_filename.endswith(".j2"):
            where = Path(traceback.tb_frame.f_code.co_filename).name
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    if not isinstance(error, jinja2.TemplateError):
        return f"{where}:{line}: {type(error).__name__}: {error}"
    names = UNDEFINED.findall(str(error))
    if lacking := [name for name in names if name in kernel.space.parameters and name not in config]:
        return f"{where}:{line}: the config lacks {lacking[0]}, a parameter of {kernel.name} ({config}); add it there"
    if bare := [name for name in names if name in config]:
        return f"{where}:{line}: {error}; a template writes a parameter as {{{{ config.{bare[0]} }}}}"
    parameters = ", ".join(kernel.space.parameters)
    known = f"a template knows problem, config (with {parameters}) and the constants of {kernel.name}"
    return f"{where}:{line}: {error}; {known}; add it to the space, or correct the name"
