"""Collects a search's knowledge before its first trial: first configs, occupancy, predictions from neighbours."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from ..core.config import Config
from ..core.definition import Device, Kernel
from ..core.enumeration import Enumeration
from ..core.problem import Problem
from ..system.one_thread import one_thread
from ..transfer.coordinates import domain_of
from ..transfer.left_out import losses_nearby, model_is_better
from ..transfer.model import expect
from ..transfer.neighbour import AWAY, OTHER_DEVICE, Neighbour, octave
from ..transfer.occupancy import known_of
from ..transfer.off_default import known_at

N_WINNERS = 2  # configs of the nearest problems


def warm_start(
    kernel: Kernel[Problem],
    problem: Problem,
    device: Device,
    enumeration: Enumeration,
    near: Sequence[Neighbour],
    own: Mapping[Config, float],
    n_hints: int,
    done: Collection[Config],
    before: Neighbour | None = None,
) -> tuple[tuple[Config, ...], dict[str, np.ndarray]]:
    """Returns the allowed configs to try after the default, without ``done``, and columns by name, float [n_configs].

    First come winners of the problem itself: the one from before the definition changed, and winners on other devices
    of the architecture, the most similar device first. Then come the winners of the N_WINNERS nearest problems and
    ``n_hints`` predictions of the model; the predictions come first if the model loses less at left-out problems.

    ``near``: recorded sweeps. ``own``: known medians of this problem, in seconds. ``before``: measurements of this
    problem from before the definition changed.
    """
    columns = known_of(kernel, problem, enumeration.configs, device)
    everything = sorted((*([before] if before else ()), *near), key=lambda one: _remoteness(one, device))
    related = [one for one in everything if one.kinship != OTHER_DEVICE]
    allowed = set(enumeration.configs).difference(done)
    same = _winners((one for one in related if one.distance == 0), allowed)
    winners = _winners((one for one in related if one.distance > 0), allowed.difference(same))[:N_WINNERS]
    domain, fill = domain_of(kernel.space.parameters), partial(known_at, kernel, device)
    with one_thread():
        expectation = expect(problem, everything, enumeration, domain, own, fill)
        if expectation is None:
            return (*same, *winners), columns
        hints = expectation.hints(n_hints, {*done, *same})
        hints_first = model_is_better(losses_nearby(everything, domain, fill, expectation.scales))
    others = (*hints, *winners) if hints_first else (*winners, *hints)
    return tuple(dict.fromkeys((*same, *others))), columns | {"expected by neighbours": expectation.times}


def _remoteness(one: Neighbour, device: Device) -> tuple[float, float]:
    """Returns the distance of a neighbour, and the size ratio of the two devices, both in octaves."""
    unlike = abs(octave(one.device.n_multiprocessors) - octave(device.n_multiprocessors))
    return one.distance + AWAY[one.kinship], unlike


def _winners(neighbours: Iterable[Neighbour], allowed: Container[Config]) -> tuple[Config, ...]:
    """Returns the winner of each neighbour if it is ``allowed``, each config once."""
    winners = (one.measured[0][0] for one in neighbours)
    return tuple(dict.fromkeys(config for config in winners if config in allowed))
