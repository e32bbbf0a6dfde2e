"""Writes the winners of recorded sweeps, or a portfolio, as a package that needs only NumPy and, to launch, CuPy.

    <name>/__init__.py        one function for each kernel
           wisdom.json        the configurations with their evidence; text for diffs
           measured.json      what was learnt for problems without a record, and how much such choices lose
           sources/<key>.cu   the sources of these and of the default configurations
           kernels/<name>.py  the definitions; kernels/<name>/<name>.py if there are several files
           _autotune/         lookup, launcher, predictions: unchanged rooms of autotune, and the templates
           pyproject.toml     makes the folder installable; it can also be imported from beside it

The files depend only on the records, the definitions and autotune's own files: emitting twice gives the same bytes.
Records and help texts become docstrings and constants, never code: every literal is checked.
"""

import ast
import keyword
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import Field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..analysis.experiences import experiences
from ..core.definition import AnyKernel
from ..core.errors import UsageError
from ..core.python_syntax import module_tree
from ..recommend.experience import as_json
from ..recommend.packaged import MEASURED, measured_text
from ..recommend.predictor import JINJA
from ..runtime.lookup import ASKED_BESIDE
from ..runtime.wisdom import Wisdom
from .rendered_ahead import rendered_ahead
from .vendor import BROUGHT, ROOMS, definition_sources, room_sources, template_sources
from .winners import gather, valid

DATE = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")  # the date at the start of a timestamp
# names in the emitted module
OWN_NAMES = ("Any", "Path", "PredictingPackage", "TunedKernel", "UsageError", *ASKED_BESIDE)
MARK = "wisdom.json"  # a folder without this file is not an emitted package, and is never overwritten


def write_package(
    paths: Sequence[Path | str],
    out: Path | str,
    portfolio: int | None = None,
    kernels: Iterable[str | Path] = (),
    problems: Iterable[Path] = (),
    tell: Callable[[str], None] = lambda line: None,
) -> Path:
    """Writes a package from all sweeps recorded at or under ``paths``. Returns its folder.

    ``out``: the folder, whose last part is the package's name.
    ``portfolio``: the largest number of configurations for each (kernel, device), with the least worst-case regret;
    None: the winner of every sweep. ``kernels``: names or paths of definitions that are not installed.
    ``problems``: lists (``sweep.problem_list``) of problems without a record, for which predictions are rendered.
    ``tell``: takes lines of progress.
    An existing emitted package is replaced as a whole. Sweeps that cannot be emitted are logged with the reason.

    Raises:
        UsageError: when nothing can be emitted, when ``out`` is not a valid name or contains something else, or when a
            definition imports a module that a package cannot contain.
    """
    folder = Path(out).resolve()
    if not _is_name(folder.name):
        raise UsageError(f"{folder.name!r} cannot be imported; --out needs a folder named like a Python module: tuned")
    if folder.exists() and not (folder / MARK).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not an emitted package (it has no {MARK}); choose another --out")
    found = valid([Path(path) for path in paths], kernels)
    with ThreadPoolExecutor(1) as beside:  # processes of their own learn meanwhile
        learning = beside.submit(experiences, found.sweeps, found.definitions, tell)
        wisdom, sources, definitions, _ = gather(found, portfolio)
        known = learning.result()
    ahead, more = rendered_ahead(problems, known, definitions)
    wisdom = replace(wisdom, ahead=tuple(ahead))
    follows = {
        **{f"kernels/{file}": text for k in definitions.values() for file, text in definition_sources(k).items()},
        **template_sources(definitions.values()),
    }
    rooms = room_sources()
    digest = sha256("\0".join(f"{name}\0{text}" for name, text in sorted({**follows, **rooms}.items())).encode())
    files = {
        "pyproject.toml": _pyproject(folder.name, wisdom),
        "__init__.py": _init(folder.name, wisdom, definitions),
        "py.typed": "",
        MARK: wisdom.as_json(),
        MEASURED: measured_text({**as_json(known.values()), "files": digest.hexdigest()}),
        "kernels/__init__.py": '"""What each kernel computes."""\n',
        **follows,
        **{f"sources/{key}.cu": text for key, text in sorted({**sources, **more}.items())},
        **rooms,
    }
    _replace(folder, files)
    return folder


def _replace(folder: Path, files: Mapping[str, str]) -> None:
    """Writes all files beside ``folder``, then swaps: a reader sees the old package or the new one."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
            new, old = Path(temporary) / "new", Path(temporary) / "old"
            for name, text in files.items():
                path = new / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode())
            if folder.exists():
                os.replace(folder, old)
            os.replace(new, folder)
            shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}") from error


def _init(name: str, wisdom: Wisdom, kernels: Mapping[str, AnyKernel]) -> str:
    """Returns the text of a module with one function for each kernel, whose keywords are the problem's fields."""
    for kernel in kernels:
        if not _is_name(kernel) or kernel in OWN_NAMES:
            raise UsageError(f"a kernel called {kernel!r} cannot be a function of a package; rename its class")
    first = f"Tuned kernels: {', '.join(sorted(kernels))}; measured on {', '.join(sorted(wisdom.devices()))}"
    doc = (
        f"{_sentence(first)}\n\n"
        f"    kernel = {name}.{sorted(kernels)[0]}(...)   print(kernel.choice)   outputs = kernel(inputs...)\n\n"
        f"Written by {wisdom.tuner} emit; wisdom.json holds the measurements.\n"
    )
    parts = [
        f"{_docstring(doc)}\n",
        "from pathlib import Path\nfrom typing import Any\n",
        f"from .{BROUGHT}.core.errors import UsageError\nfrom .{BROUGHT}.recommend.packaged import PredictingPackage\n"
        f"from .{BROUGHT}.runtime.launcher import TunedKernel\n",
        f"__all__ = {sorted(kernels)!r}\n",
        "_package = PredictingPackage(__name__, Path(__file__).parent)\n",
        '\ndef __dir__() -> list[str]:\n    """Returns the names for callers."""\n    return __all__\n',
        *(_function(kernel, wisdom) for _, kernel in sorted(kernels.items())),
    ]
    return _checked("\n".join(parts), 1 + len(kernels))


def _checked(text: str, n_functions: int) -> str:
    """Returns ``text`` after checking that it contains only a docstring, imports, two assignments and functions."""
    expected = [ast.Expr, *[ast.ImportFrom] * 5, ast.Assign, ast.Assign, *[ast.FunctionDef] * n_functions]
    body = module_tree(text).body
    within = [type(node) for function in body if isinstance(function, ast.FunctionDef) for node in function.body]
    if [type(node) for node in body] != expected or within != [ast.Expr, ast.Return] * n_functions:
        raise AssertionError(f"this is not a module of a package:\n{text}")
    return text


def _function(kernel: AnyKernel, wisdom: Wisdom) -> str:
    """Returns the text of one function. A field with one tuned value has it as default; the others are derived by
    ``Kernel.problem_with``.
    """
    baked_sets = wisdom.baked_sets(kernel.name)
    inputs = next(f.inputs for f in wisdom.fallbacks if f.kernel == kernel.name)
    lines: list[str] = []
    remarks: list[tuple[Field[Any], str]] = []
    for field in fields(kernel.problem_type):
        if field.name in ASKED_BESIDE:
            raise UsageError(f"{kernel.name}: a problem's field cannot be called {field.name}; the function has one")
        if field.metadata.get("runtime"):
            lines.append(f"    {field.name}: Any = None,")
            remarks.append((field, "runtime: follows from the arrays; give it to fix it"))
            continue
        values = list(dict.fromkeys(baked.get(field.name, field.default) for baked in baked_sets))
        default = _literal(kernel, field.name, values[0]) if len(values) == 1 else "None"
        lines.append(f"    {field.name}: Any = {default},")
        usual = "" if len(values) == 1 else f"; default {getattr(kernel.tuned[0], field.name)}"
        remarks.append((field, f"tuned: {', '.join(map(str, values))}{usual}"))
    arguments = "\n".join(f"        {f.name}: {f.metadata.get('help') or 'baked'} ({how})" for f, how in remarks)
    values_text = ", ".join(f'"{field.name}": {field.name}' for field, _ in remarks)
    first = (type(kernel).__doc__ or "").strip().splitlines() or [kernel.name]
    doc = (
        f"{_sentence(first[0])}\n\n    The result is called with {', '.join(inputs)}.\n\n    Args:\n{arguments}\n"
        "        device: a recorded GPU's name, to see its choice; None: the current GPU\n"
        "        verify: check a predicted config at edge sizes, on the current GPU\n"
        "        tune: tune at first use: a number of configs, or a time such as '2 s'; None: AUTOTUNE_FIRST_USE\n\n"
        "    Raises:\n        UsageError: when no config is known or can be predicted; the message says why\n    "
    )
    return (
        f"\ndef {kernel.name}(\n    *,\n" + "\n".join(lines) + "\n    device: Any = None,\n    verify: bool = False,\n"
        f"    tune: Any = None,\n) -> TunedKernel:\n    {_docstring(doc)}\n"
        f'    return _package.tuned("{kernel.name}", {{{values_text}}}, device, verify, tune)\n'
    )


def _pyproject(name: str, wisdom: Wisdom) -> str:
    dates = [match for entry in wisdom.entries if (match := DATE.match(entry.evidence.date))]
    version = max((tuple(map(int, match.groups())) for match in dates), default=(0,))
    parts = (BROUGHT, *(f"{BROUGHT}.{room}" for room in (*ROOMS, "templates")), "kernels")
    packages = ", ".join(f'"{package}"' for package in (name, *(f"{name}.{part}" for part in parts)))
    return f'''[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "{".".join(map(str, version))}" # the date of the newest sweep
description = "CUDA kernels tuned by autotune, with their launcher."
requires-python = ">=3.11"
dependencies = ["numpy>=2.0"]

[project.optional-dependencies]
render = ["{JINJA}"]
cuda13 = ["cupy-cuda13x>=14", "cuda-toolkit[nvrtc,cudart,cccl,crt]==13.*"]
cuda12 = ["cupy-cuda12x>=13", "cuda-toolkit[nvrtc,cudart,cccl,nvcc]==12.*"]

[tool.setuptools]
packages = [{packages}]

[tool.setuptools.package-dir]
"{name}" = "."

[tool.setuptools.package-data]
"{name}" = ["wisdom.json", "measured.json", "sources/*.cu", "kernels/**/*", "_autotune/templates/**/*", "py.typed"]
"{name}.{BROUGHT}.runtime" = ["headers/**/*"]
'''


def _literal(kernel: AnyKernel, name: str, value: object) -> str:
    text = repr(value)
    try:
        if ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError):
        pass
    raise UsageError(f"{kernel.name}: {name}={text} cannot be written as a constant; use numbers, strings or bools")


def _docstring(text: str) -> str:
    """Returns ``text`` as a string literal, in several lines if possible."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    for literal in (f'"""{escaped}"""', repr(text)):
        try:
            if ast.literal_eval(literal) == text:
                return literal
        except (ValueError, SyntaxError):  # the text ends in a quotation mark or contains a NUL
            continue
    raise UsageError(f"{text!r} cannot be written as text")


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _sentence(text: str) -> str:
    return text.rstrip(".") + "."
