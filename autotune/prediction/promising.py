"""The few configs of a problem that are most likely to be fast: candidates to try at its first use."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain, zip_longest

from ..core.config import Config
from ..core.definition import Device, Kernel
from ..core.errors import TrialFailure, UsageError
from ..core.problem import Problem, named_fields
from ..rendering.render import render
from ..runtime.lookup import refusal
from ..runtime.tune_once import Contender
from ..runtime.tuned_here import FROM_DEFAULT, FROM_MODEL, FROM_RECORD
from ..runtime.wisdom import Wisdom
from ..transfer.neighbour import AWAY, apart, kinship


def promising(
    kernel: Kernel[Problem],
    problem: Problem,
    device: Device,
    predicted: Iterable[Config],
    winners: Iterable[Config],
    n: int,
) -> tuple[Contender, ...]:
    """Returns up to ``n`` configs that render and that the device allows, the most promising first.

    They are the first of ``predicted``, the default, the first of ``winners``, the second of ``predicted`` and so on.
    The default comes early, so that it is tried even if little time is left. ``predicted`` may be lazy.
    """
    mixed = _mixed(kernel, problem, device, predicted, winners)
    found: dict[Config, Contender] = {}
    with suppress(UsageError):  # no further config is allowed
        for config, origin in mixed:
            if len(found) == n:
                break
            if config in found or refusal(kernel, problem, config, device) is not None:
                continue
            with suppress(TrialFailure):
                found[config] = Contender(config, origin, render(kernel, problem, config).key)
    return tuple(found.values())


def _mixed(
    kernel: Kernel[Problem], problem: Problem, device: Device, predicted: Iterable[Config], winners: Iterable[Config]
) -> Iterable[tuple[Config, str]]:
    default = kernel.default_config(problem, device)
    by_model = ((config, FROM_MODEL) for config in predicted if config != default)
    by_record = ((config, FROM_RECORD) for config in winners if config != default)
    alternating = chain.from_iterable(zip_longest(by_model, by_record))
    found = (each for each in alternating if each is not None)
    first = next(found, None)
    return chain([first] if first else [], [(default, FROM_DEFAULT)], found)


def recorded_winners(wisdom: Wisdom, kernel: Kernel[Problem], problem: Problem, device: Device) -> Sequence[Config]:
    """Returns the configs that won on devices of this kind and are still in the space, the nearest problem first."""
    fields = named_fields(problem)
    near = sorted(
        (e for e in wisdom.entries if e.kernel == kernel.name and e.device.kind == device.kind),
        key=lambda e: apart(fields, {**e.baked, **e.runtime}) + AWAY[kinship(e.device, device)],
    )
    found: dict[Config, None] = {}
    for entry in near:
        with suppress(UsageError):
            found[kernel.space.parse(entry.config)] = None
    return tuple(found)
