"""Separates common from differing fields of problems, so that tables only show the latter."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.config import config_value_text

ProblemFields = Mapping[str, Any]


def assignments(values: Mapping[str, object]) -> str:
    """Returns the values as ``taps=256,decimation=16``; texts are quoted where necessary, as in configs."""
    texts = {name: config_value_text(value) if isinstance(value, str) else value for name, value in values.items()}
    return ",".join(f"{name}={text}" for name, text in texts.items())


def common_fields(kernels: Sequence[str], problems: Sequence[ProblemFields]) -> dict[str, dict[str, object]]:
    """Returns kernel -> the fields with the same value in all of its problems; {} for a kernel with one problem.

    ``kernels``: the kernel of each problem.
    """
    of_kernel: dict[str, list[ProblemFields]] = {}
    for kernel, problem in zip(kernels, problems, strict=True):
        of_kernel.setdefault(kernel, []).append(problem)
    return {
        kernel: {
            name: value
            for name, value in first.items()
            if any(dict(other) != dict(first) for other in others)
            and all(name in other and other[name] == value for other in others)
        }
        for kernel, (first, *others) in of_kernel.items()
    }


def telling_fields(problems: Sequence[ProblemFields]) -> list[str]:
    """Returns the fewest fields that distinguish as many problems as all fields; later fields are dropped first."""

    def told_apart(names: Sequence[str]) -> int:
        return len({tuple(str(problem.get(name)) for name in names) for problem in problems})

    names = list(dict.fromkeys(name for problem in problems for name in problem))
    for name in reversed(names):
        rest = [other for other in names if other != name]
        if told_apart(rest) == told_apart(names):
            names = rest
    return names


def own_fields(problem: ProblemFields, common: ProblemFields) -> dict[str, Any]:
    """Returns the fields of ``problem`` that are not ``common``."""
    return {name: value for name, value in problem.items() if name not in common}


def told_common(common: Mapping[str, ProblemFields]) -> list[str]:
    """Returns a line for each kernel whose problems have common fields."""
    return [f"all of {kernel} have {assignments(fields)}" for kernel, fields in sorted(common.items()) if fields]
