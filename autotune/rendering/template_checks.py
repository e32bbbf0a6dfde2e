"""Refuses contradictions between rendered source and definition: in arguments, constant memory and textures."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.definition import CONSTANT_BYTES, Array, Kernel, P, fault
from ..core.derived import without_type_arguments
from ..core.errors import Status, TrialFailure
from ..core.launch import last_name

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
CONDITION = re.compile(r"[ \t]*#[ \t]*(?:(?P<begin>if)|(?P<end>endif\b))")
DIRECTIVE = re.compile(r'#line (\d+) "(.*)"')
TEXTURE = re.compile(
    r"\b(?:texture|surface)<\s*\w|\bcuda(?:Texture|Surface)Object_t\b|\b(?:tex|surf)(?:1D|2D|3D|Cubemap)\w*\s*[<(]"
)


def check_order(kernel: Kernel[P], function: str, arguments: Sequence[str], source: str, path: Path) -> None:
    """Refuses ``arguments`` in another order than the signature's: pointers of one type would be swapped silently.

    A name that only one of them contains is not a mistake, and parameters may follow the arguments (tensor maps). If
    the preprocessor chooses between several functions of that name, one must have the order. A signature that contains
    a preprocessor directive is not checked.

    Raises:
        TrialFailure: definition_failed, with both orders.
    """
    text = COMMENT.sub(" ", source)
    name = re.escape(last_name(function))
    wrong: list[list[str]] = []
    for found in re.finditer(rf"__global__[^;{{}}]*?\b{name}\s*\(([^;{{}}]*?)\)\s*\{{", text):
        parameters = [(re.findall(r"\w+", part) or [""])[-1] for part in without_type_arguments(found[1]).split(",")]
        alike = all(parameters.index(each) == i for i, each in enumerate(arguments) if each in parameters)
        if alike or "#" in found[1]:
            return
        wrong.append(parameters)
    if wrong:
        why = f"has arguments = ({', '.join(arguments)}), but {function}() in {path.name} takes"
        why += f" ({', '.join(wrong[0])}); give both the same order"
        raise TrialFailure(Status.DEFINITION_FAILED, str(fault(kernel, "", why)))


def check_arrays(kernel: Kernel[P], arguments: tuple[str, ...], specs: Mapping[str, Array]) -> None:
    """Refuses arrays that a kernel cannot reach or gets twice, and arrays that exceed constant memory.

    Raises:
        TrialFailure: definition_failed or resources.
    """
    for name, spec in specs.items():
        if spec.constant and name in arguments:
            why = f"states {name} as array_constant(), but has it in its arguments, too; a kernel gets no pointer to"
            why += " constant memory: take it out of the arguments, or state array_in()"
            raise TrialFailure(Status.DEFINITION_FAILED, str(fault(kernel, "arrays", why)))
        if not spec.constant and name not in arguments:
            why = f"states the array {name}, which is not in the arguments, so that the kernel cannot reach it; add it"
            why += " there, or state array_constant()"
            raise TrialFailure(Status.DEFINITION_FAILED, str(fault(kernel, "arrays", why)))
    if (why_not := too_large(kernel.name, specs)) is not None:
        raise TrialFailure(Status.RESOURCES, why_not)


def too_large(kernel: str, specs: Mapping[str, Array]) -> str | None:
    """Returns why arrays are too large for constant memory, and what to do; None: they fit."""
    each = {name: spec.n_bytes for name, spec in specs.items() if spec.constant}
    if sum(each.values()) <= CONSTANT_BYTES:
        return None
    listed = ", ".join(f"{name} {n_bytes}" for name, n_bytes in each.items())
    why = f"arrays in constant memory take {sum(each.values())} bytes ({listed}), and a kernel has {CONSTANT_BYTES}"
    return f"{kernel}: {why}; choose a smaller problem, or state array_in() for the largest"


def check_textures(numbered: str, path: Path) -> None:
    """Refuses textures and surfaces, since a definition cannot bind them.

    Lines between #if and #endif are left to the compiler, since it knows which of them it skips.

    Raises:
        TrialFailure: render_failed, with the line of the template.
    """
    if TEXTURE.search(numbered) is None:  # the usual case: to look for comments is slow
        return
    text = COMMENT.sub(lambda match: "\n" * match[0].count("\n"), numbered)
    name, number, depth = path.name, 0, 0
    for line in text.split("\n"):
        if directive := DIRECTIVE.fullmatch(line):
            number, name = int(directive[1]) - 1, directive[2]
        elif condition := CONDITION.match(line):
            depth += 1 if condition["begin"] else -1
        elif depth == 0 and (found := TEXTURE.search(STRING.sub("", line))):
            what = found[0].partition("<")[0].rstrip(" (")
            why = f"{name}:{number}: textures and surfaces ({what}) cannot be bound to an argument"
            why += "; read a const T* __restrict__, with __ldg(), which takes the same cache"
            raise TrialFailure(Status.RENDER_FAILED, why)
        number += 1
