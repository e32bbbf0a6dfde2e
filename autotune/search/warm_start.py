"""Collects a search's knowledge before its first trial: near sweeps, what they recommend, another tuner's best configs.

A neighbour is a sweep of the same kernel for another problem, or on another device of the same kind, or a sweep of this
problem on this device from before the definition changed. Only ratios of times within one sweep are used, never times
of two devices.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..core.config import Config, Value, parse_value
from ..core.definition import Device, Kernel, problem_name
from ..core.enumeration import Enumeration
from ..core.errors import UsageError
from ..core.parameter import Parameter
from ..core.problem import Problem, named_fields
from ..core.space import Space
from ..recommend.candidates import candidates, scores
from ..recommend.distance import AWAY, OTHER_DEVICE, SAME_ARCHITECTURE, SAME_DEVICE, apart, kinship, octave
from ..recommend.experience import MeasuredProblem
from ..recommend.learning import learnt
from ..recommend.occupancy import known_of
from ..records.about import About
from ..records.damage import Damaged, tell
from ..records.folder import FILES, SWEEP, SweepFolder
from ..records.paths import part, sweep_path
from ..records.record import medians
from .tuner_files import tuner_trials

N_READ = {SAME_DEVICE: 20, SAME_ARCHITECTURE: 6, OTHER_DEVICE: 3}  # most sweeps whose trials are read
N_FIRST = 3  # candidates besides the hints: the rule, a winner, and one that does not know the rule
N_BEST = 8  # configs of another tuner's file that are tried first


def known(results: Path, kernel: Kernel[Problem], problem: Problem, device: Device) -> tuple[MeasuredProblem, ...]:
    """Returns the nearest recorded sweeps under ``results``: same device before same architecture before other devices.

    The result never includes other kinds of device, or this problem on this device; it always includes this problem on
    other devices of the architecture. All folder names are compared, but only the returned sweeps are read, and read
    again only after a change. Sweeps that are damaged or without a measurement are skipped.
    """
    own = sweep_path(results, device.name, kernel.name, problem_name(problem))
    places = (
        (kin, apart(_fields(each), _fields(own.name)), os.path.join(folder, each))
        for kin, folder, names in _folders(results, kernel.name, device)
        for each in names
    )
    near, n_others = list[MeasuredProblem](), Counter[int]()
    for kin, octaves, path in sorted(places):
        one = _measured(path, kernel.space.added) if path != str(own) and n_others[kin] < N_READ[kin] else None
        if one is not None:
            near.append(one)
            n_others[kin] += octaves > 0
    return tuple(near)


def winners_elsewhere(results: Path, kernel: Kernel[Problem], problem: Problem, device: Device) -> set[Config]:
    """Returns the winners of this problem on other devices of the architecture."""
    name, folders = part(problem_name(problem)), _folders(results, kernel.name, device)
    paths = (os.path.join(folder, name) for kin, folder, _ in folders if kin == SAME_ARCHITECTURE)
    return {one.measured[0][0] for path in paths if (one := _measured(path, kernel.space.added)) is not None}


def earlier(folder: SweepFolder, problem: Problem, device: Device, allowed: Set[Config]) -> MeasuredProblem | None:
    """Returns the outdated trials of the sweep in ``folder``, of this problem on this device, as a neighbour.

    Only configs that are still ``allowed`` count; None if none of them was measured.
    """
    median_s = {config: median for config, median in medians(folder.earlier()).items() if config in allowed}
    return MeasuredProblem.of(named_fields(problem), device, median_s) if median_s else None


def warm_start(
    kernel: Kernel[Problem],
    problem: Problem,
    device: Device,
    enumeration: Enumeration,
    near: Sequence[MeasuredProblem],
    own: Mapping[Config, float],
    n_hints: int,
    done: Collection[Config],
    before: MeasuredProblem | None = None,
) -> tuple[tuple[Config, ...], dict[str, np.ndarray]]:
    """Returns the allowed configs to try after the default, without ``done``, and columns by name, float [n_configs].

    First come winners of the problem itself: the one from before the definition changed, and winners on other devices
    of the architecture, the most similar device first. Then come the candidates that ``near`` and ``own`` recommend.

    ``near``: recorded sweeps. ``own``: known medians of this problem, in seconds. ``before``: measurements of this
    problem from before the definition changed.
    """
    columns, fields = known_of(kernel, problem, enumeration.configs, device), named_fields(problem)

    def away(one: MeasuredProblem) -> tuple[float, float]:
        """Returns the distance of a neighbour, and the size ratio of the two devices, both in octaves."""
        unlike = abs(octave(one.device.n_multiprocessors) - octave(device.n_multiprocessors))
        return apart(one.problem, fields) + AWAY[kinship(one.device, device)], unlike

    recorded = sorted([*near] if before is None else [before, *near], key=away)
    same = [one for one in recorded if kinship(one.device, device) != OTHER_DEVICE and not apart(one.problem, fields)]
    allowed = set(enumeration.configs).difference(done)
    first = tuple(dict.fromkeys(one.measured[0][0] for one in same if one.measured[0][0] in allowed))
    here = [MeasuredProblem.of(fields, device, own)] if own and recorded else []
    try:
        experience = learnt(kernel, [*recorded, *here])
    except ValueError:  # nothing near was measured
        return first, columns
    ranked = scores(experience, kernel, problem, device, enumeration.configs)
    n = n_hints + N_FIRST + len(done) + len(first)
    found = candidates(experience, kernel, problem, device, n, enumeration.configs, ranked)
    others = [one.config for one in found if one.config in allowed and one.config not in first]
    return (*first, *others[: n_hints + N_FIRST - 1]), columns | {"expected by neighbours": ranked[0]}


def begun_elsewhere(path: Path, space: Space, allowed: Collection[Config]) -> tuple[tuple[Config, ...], str]:
    """Returns the fastest allowed configs of a Kernel Tuner cache or of T4 results, and a note for the user.

    A parameter with one value may be missing in the file. The file's times are not used: each config is verified and
    measured here.

    Raises:
        UsageError: for a file that cannot be read, or without an allowed config.
    """
    outcomes = {trial.config: trial.seconds for trial in tuner_trials(path)}  # the last outcome of a config counts
    times = {config: seconds for config, seconds in outcomes.items() if seconds is not None}
    constant = {name: each.values[0] for name, each in space.parameters.items() if len(each.values) == 1}
    found = ({**constant, **config} for config in sorted(times, key=times.__getitem__))
    own = dict.fromkeys(Config({name: given[name] for name in space.parameters if name in given}) for given in found)
    usable = [config for config in own if config in allowed][:N_BEST]
    if not usable:
        names = ", ".join(next(iter(times), {}))
        raise UsageError(
            f"{path} has {len(times)} measured configs{f' of {names}' if names else ''}, and none of them is allowed "
            f"here: name a file of this kernel, whose parameters are {', '.join(space.parameters)}"
        )
    return tuple(usable), f"{path}: {len(usable)} of its {len(times)} measured configs are tried first"


def _folders(results: Path, kernel: str, device: Device) -> Iterator[tuple[int, str, list[str]]]:
    """Yields the kinship of each device of this kind, its folder of ``kernel``, and the names of its sweeps."""
    for each in sorted(os.listdir(results)) if results.is_dir() else ():
        folder = os.path.join(results, each, part(kernel))
        with suppress(OSError):  # a file, or a device without sweeps of this kernel
            names = sorted(os.listdir(folder))
            abouts = (_about(SweepFolder(Path(folder, name))) for name in names)
            other = next((about.device for about in abouts if about is not None), None)
            if other is not None and other.kind == device.kind:
                yield kinship(other, device), folder, names


@lru_cache(maxsize=1 << 16)
def _fields(name: str) -> Mapping[str, Value]:
    """Parses ``taps=256,window=hann`` into values by field; ``inf`` and ``nan`` stay as text."""
    pairs = (piece.partition("=") for piece in re.split(r",(?=[A-Za-z_]\w*=)", name))
    return {field: parse_value(text) for field, _, text in pairs}


def _about(folder: SweepFolder) -> About | None:
    """Returns what sweep.json says; None without it and, with a warning, if it is damaged."""
    try:
        return folder.about() if folder.stamp(SWEEP) else None
    except Damaged as error:
        tell(f"{error}. This sweep is left out")
        return None


def _measured(path: str, added: tuple[Parameter, ...]) -> MeasuredProblem | None:
    return _read(path, tuple(map(SweepFolder(Path(path)).stamp, FILES)), added)


@lru_cache(maxsize=1024)
def _read(path: str, stamps: tuple[object, ...], added: tuple[Parameter, ...]) -> MeasuredProblem | None:
    """Returns what a sweep measured; None for nothing. Damaged lines are skipped, with a warning.

    The fastest config comes first or, if it took part in a final round, the winner of that round.
    """
    folder = SweepFolder(Path(path), added)
    if (about := _about(folder)) is None or not (median_s := medians(folder.current())):
        return None
    outcome = folder.current_outcome()
    won = outcome.won if outcome else lambda fastest: None
    return MeasuredProblem.of(about.problem, about.device, median_s, won=won)
