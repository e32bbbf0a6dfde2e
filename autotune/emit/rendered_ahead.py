"""Renders configs in advance, for problems without a record that a package shall serve without Jinja2."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..core.definition import AnyKernel, Device, baked_values
from ..core.errors import TrialFailure, UsageError
from ..core.problem import Problem
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
    rendered: list[Ahead] = []
    sources: dict[str, str] = {}
    for path in lists:
        name, problems = read_problems(path)
        if name not in known:
            raise UsageError(f"{path}: {name} is not emitted; emitted are {', '.join(known) or 'none'}")
        kernel, experience = kernels[name], known[name]
        devices = {one.device.arch: one.device for one in experience.problems}
        for values in problems:
            problem = kernel.problem_with(values)
            for device in devices.values():
                for ahead, source in _ahead(kernel, experience, problem, device):
                    rendered.append(ahead)
                    sources[ahead.source_key] = source
    return rendered, sources


def _ahead(kernel: AnyKernel, experience: Experience, problem: Problem, device: Device) -> list[tuple[Ahead, str]]:
    """Returns the configurations for one problem on one architecture, with their sources."""
    rendered = []
    for one in candidates(experience, kernel, problem, device, N_AHEAD):
        try:
            variant = render(kernel, problem, one.config, numbered=False)
        except TrialFailure:
            continue
        ahead = Ahead(kernel.name, device.arch, baked_values(problem), one.config, variant.key)
        rendered.append((ahead, variant.source))
    return rendered
