"""Recorded sweeps near the problem to tune.

A neighbour is a sweep of the same kernel for another problem, or on another device of the same kind, or a sweep of this
problem on this device from before the definition changed. Only ratios of times within one sweep are used, never times
of two devices.
"""

import os
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from pathlib import Path
from threading import Lock

from ..core.config import Config, parse_value
from ..core.definition import Device, Kernel, problem_name
from ..core.parameter import Parameter
from ..core.problem import Problem, named_fields
from ..recommend.distance import OTHER_DEVICE, SAME_ARCHITECTURE, SAME_DEVICE, apart, kinship
from ..recommend.experience import MeasuredProblem
from ..records.damage import Damaged, tell
from ..records.folder import FILES, SHARED_NAME, SWEEP, SweepFolder
from ..records.objectives import FASTEST, Objective
from ..records.paths import kernel_path, part, sweep_path
from ..records.record import earlier_medians, medians

N_READ = {SAME_DEVICE: 20, SAME_ARCHITECTURE: 6, OTHER_DEVICE: 3}  # most sweeps whose trials are read

Stamp = tuple[str, int, int]  # path of a file, its modification time in ns, its size in bytes


def known(results: Path, kernel: Kernel[Problem], problem: Problem, device: Device) -> tuple[MeasuredProblem, ...]:
    """Returns the nearest recorded sweeps under ``results``: same device before same architecture before other devices.

    The result never includes other kinds of device, or this problem on this device; it always includes this problem on
    other devices of the architecture. All folder names are compared, but only the returned sweeps are read, and read
    again only after a change. Sweeps that are damaged or without a measurement are skipped.
    """
    name = problem_name(problem)
    own, wanted = str(sweep_path(results, device.name, kernel.name, name)), _fields(part(name))
    found: dict[int, list[tuple[float, str, str]]] = {kin: [] for kin in N_READ}
    with _lock:
        for folder, names in _folders(results, kernel.name):
            other = next((about[1] for each in names if (about := _about(folder, each))), None)
            if other is not None and other.kind == device.kind:
                far = ((apart(_fields(each), wanted), folder, each) for each in names)
                found[kinship(other, device)] += (one for one in far if os.path.join(folder, one[2]) != own)
        near: list[MeasuredProblem] = []
        for kin, places in found.items():
            n_others = 0
            for octaves, folder, each in sorted(places):
                if n_others == N_READ[kin]:
                    break
                if (measured := _measured(folder, each, kernel.space.added)) is not None:
                    near.append(measured)
                    n_others += octaves > 0
        return tuple(near)


def winners_elsewhere(results: Path, kernel: Kernel[Problem], problem: Problem, device: Device) -> tuple[Config, ...]:
    """Returns the winners of this problem on other devices of the architecture."""
    name, own = part(problem_name(problem)), str(kernel_path(results, device.name, kernel.name))
    found: dict[Config, None] = {}
    with _lock:
        for folder, _ in _folders(results, kernel.name):
            about = _about(folder, name)
            if folder != own and about is not None and kinship(about[1], device) == SAME_ARCHITECTURE:
                measured = _measured(folder, name, kernel.space.added)
                found |= {measured.measured[0][0]: None} if measured is not None else {}
    return tuple(found)


def earlier(
    folder: SweepFolder, problem: Problem, device: Device, allowed: Container[Config]
) -> MeasuredProblem | None:
    """Returns the outdated trials of the sweep in ``folder``, of this problem on this device, as a neighbour.

    Only configs that are still ``allowed`` count; None if none of them was measured.
    """
    median_s = {config: median for config, median in earlier_medians(folder).items() if config in allowed}
    return MeasuredProblem.of(named_fields(problem), device, median_s) if median_s else None


# ---------------------------------------------------------------------- folders
_lock = Lock()  # a campaign reads from several threads


def _folders(results: Path, kernel: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the folder of each device with sweeps of ``kernel``, and the names of these sweeps."""
    for device in sorted(os.listdir(results)) if results.is_dir() else ():
        folder = os.path.join(results, device, part(kernel))
        with suppress(OSError):  # a file, or a device without sweeps of this kernel
            names = [name for name in sorted(os.listdir(folder)) if not SHARED_NAME.fullmatch(name)]
            yield folder, names


@lru_cache(maxsize=1 << 16)
def _fields(name: str) -> Mapping[str, object]:
    """Parses ``taps=256,window=hann`` into values by field; words, ``inf`` and ``nan`` stay as text."""
    fields: dict[str, object] = {}
    for piece in re.split(r",(?=[A-Za-z_]\w*=)", name):
        field, _, text = piece.partition("=")
        fields[field], value = text, parse_value(text)
        with suppress(OverflowError):
            if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
                fields[field] = float(value)
    return fields


# ---------------------------------------------------------------------- files, read again when they have changed
def _about(folder: str, name: str) -> tuple[Mapping[str, object], Device] | None:
    return _read_about(*stamp) if (stamp := _stamp(folder, name, SWEEP)) else None


def _measured(folder: str, name: str, added: tuple[Parameter, ...]) -> MeasuredProblem | None:
    """Returns what a sweep measured; None for nothing. The fastest config comes first or, if it took part in a final
    round, the winner of that round.
    """
    about, stamps = _about(folder, name), tuple(_stamp(folder, name, file) for file in FILES)
    if about is None or not any(stamps):
        return None
    median_s, winner = _read_measured(os.path.join(folder, name), stamps, added)
    if not median_s:
        return None
    one = MeasuredProblem.of(*about, median_s)
    return replace(one, measured=tuple(sorted(one.measured, key=lambda pair: pair[0] != winner)))


def _stamp(folder: str, name: str, file: str) -> Stamp | None:
    path = os.path.join(folder, name, file)
    try:
        status = os.stat(path)
    except OSError:
        return None
    return path, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=4096)
def _read_about(path: str, mtime_ns: int, size: int) -> tuple[Mapping[str, object], Device] | None:
    """Returns the problem's fields and the device; None for a damaged record, with a warning."""
    try:
        about = SweepFolder(Path(path).parent).about()
    except Damaged as error:
        tell(f"{error}. This sweep is left out")
        return None
    return about.problem, about.device


@lru_cache(maxsize=1024)
def _read_measured(
    path: str, stamps: tuple[Stamp | None, ...], added: tuple[Parameter, ...]
) -> tuple[Mapping[Config, float], Config | None]:
    """Returns medians, and the config to name first; damaged lines are skipped, with a warning."""
    folder = SweepFolder(Path(path), added)
    median_s, outcome = medians(folder), folder.current_outcome()
    fastest = min(median_s, key=lambda config: median_s[config], default=None)
    if fastest is None or outcome is None or tuple(map(Objective.read, outcome.objectives)) != FASTEST.each:
        return median_s, fastest
    return median_s, outcome.winner.config if outcome.finalist(fastest) else fastest
