"""Renders configs in advance, for problems without a record that a package shall serve without Jinja2."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path

from ..core.definition import AnyKernel, baked_values
from ..core.errors import TrialFailure, UsageError
from ..recommend.candidates import candidates
from ..recommend.experience import Experience
from ..rendering.render import render
from ..runtime.wisdom import Ahead
from ..sweep.problem_list import read_problems

N_AHEAD = 3  # configurations per problem and architecture: if one does not compile, the next one is used


def rendered_ahead(
    lists: Iterable[Path], known: Mapping[str, Experience], kernels: Mapping[str, AnyKernel]
) -> tuple[list[Ahead], dict[str, str]]:
    """Returns configurations for the problems in ``lists`` on each recorded architecture, and their sources.

    Raises:
        UsageError: for a list that cannot be read, a kernel that is not emitted, or an impossible problem.
    """
    rendered, sources = list[Ahead](), dict[str, str]()
    for path in lists:
        name, problems = read_problems(path)
        if name not in known:
            raise UsageError(f"{path}: {name} is not emitted; emitted are {', '.join(known) or 'none'}")
        kernel, devices = kernels[name], {one.device.arch: one.device for one in known[name].problems}
        for problem, device in product(map(kernel.problem_with, problems), devices.values()):
            for one in candidates(known[name], kernel, problem, device, N_AHEAD):
                with suppress(TrialFailure):  # it does not render
                    variant = render(kernel, problem, one.config, numbered=False)
                    rendered.append(Ahead(name, device.arch, baked_values(problem), one.config, variant.key))
                    sources[variant.key] = variant.source
    return rendered, sources
