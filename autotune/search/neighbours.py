"""Recorded sweeps near the problem to tune.

A neighbour is a sweep of the same kernel for another problem, or on another device of the same kind, or a sweep of this
problem on this device from before the definition changed. Only ratios of times within one sweep are used, never times
of two devices.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from heapq import merge
from math import isfinite
from pathlib import Path
from threading import Lock

import numpy as np

from ..core.config import Config, parse_value
from ..core.definition import Device, Kernel, problem_name
from ..core.parameter import Parameter
from ..core.problem import Problem, named_fields
from ..records.damage import Damaged, tell
from ..records.folder import FILES, SHARED_NAME, SWEEP, SweepFolder
from ..records.objectives import FASTEST, Objective
from ..records.paths import kernel_path, part, sweep_path
from ..records.record import earlier_medians, medians
from ..transfer.neighbour import (
    MISMATCH,
    OTHER_DEVICE,
    SAME_ARCHITECTURE,
    SAME_DEVICE,
    Neighbour,
    kinship,
    octave,
)

N_READ = {SAME_DEVICE: 20, SAME_ARCHITECTURE: 6, OTHER_DEVICE: 3}  # most sweeps whose trials are read
ABSENT = -1

Candidate = tuple[float, str, str]  # distance, folder of the device and kernel, name
Stamp = tuple[str, int, int]  # path of a file, its modification time in ns, its size in bytes


def known(results: Path, kernel: Kernel[Problem], problem: Problem, device: Device) -> tuple[Neighbour, ...]:
    """Returns the nearest recorded sweeps under ``results``: same device before same architecture before other devices.

    The result never includes other kinds of device, or this problem on this device; it always includes this problem on
    other devices of the architecture. All folder names are compared, but only the returned sweeps are read, and read
    again only after a change. Sweeps that are damaged or without a measurement are skipped.
    """
    name = problem_name(problem)
    own = str(sweep_path(results, device.name, kernel.name, name))
    found: dict[int, list[Iterator[Candidate]]] = {kin: [] for kin in N_READ}
    with _lock:
        for shelf in _shelves(results, kernel.name):
            other = next((about[1] for each in shelf.names if (about := _about(shelf.folder, each))), None)
            if other is not None and other.kind == device.kind:
                found[kinship(other, device)].append(shelf.nearest_first(part(name)))
        return tuple(
            neighbour
            for kin, candidates in found.items()
            for neighbour in _nearest(_read(merge(*candidates), own, kin, kernel.space.added), N_READ[kin])
        )


def winners_elsewhere(results: Path, kernel: Kernel[Problem], problem: Problem, device: Device) -> tuple[Config, ...]:
    """Returns the winners of this problem on other devices of the architecture."""
    name, own = part(problem_name(problem)), str(kernel_path(results, device.name, kernel.name))
    found: list[tuple[Config, float]] = []
    with _lock:
        for shelf in _shelves(results, kernel.name):
            about = _about(shelf.folder, name)
            if shelf.folder != own and about is not None and kinship(about[1], device) == SAME_ARCHITECTURE:
                found += _measured(shelf.folder, name, kernel.space.added)[:1]
    return tuple(dict.fromkeys(config for config, _ in found))


def earlier(folder: SweepFolder, problem: Problem, device: Device, allowed: Container[Config]) -> Neighbour | None:
    """Returns the outdated trials of the sweep in ``folder``, of this problem on this device, as a neighbour.

    Only configs that are still ``allowed`` count; None if none of them was measured.
    """
    median_s = {config: median for config, median in earlier_medians(folder).items() if config in allowed}
    return Neighbour(named_fields(problem), device, SAME_DEVICE, 0.0, _best_first(median_s)) if median_s else None


# ---------------------------------------------------------------------- folders
class _Shelf:
    """The sweeps of one kernel on one device, by the fields in their names. It is kept between calls.

    ``_octaves``: float64 [n_names, n_fields], log2 of numbers. ``_words``: int64 [n_names, n_fields], 0 for a number,
    ABSENT for a missing field, else a code of the word.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.names: list[str] = []
        self._fields: tuple[str, ...] = ()  # fields of the first name
        self._octaves, self._words = np.empty((0, 0)), np.empty((0, 0), np.int64)

    def look(self) -> None:
        """Reads the folder again; raises OSError if it does not exist."""
        present = {name for name in os.listdir(self.folder) if not SHARED_NAME.fullmatch(name)}
        added = sorted(present.difference(self.names))
        if len(present) != len(self.names) + len(added):  # some are gone
            self.names, added = [], sorted(present)
        if not self.names:
            self._fields = tuple(_fields(added[0])) if added else ()
            self._octaves, self._words = np.empty((0, len(self._fields))), np.empty((0, len(self._fields)), np.int64)
        if added:
            points = [self._point(name) for name in added]
            self._octaves = np.vstack([self._octaves, np.array([octaves for octaves, _ in points])])
            self._words = np.vstack([self._words, np.array([words for _, words in points], np.int64)])
            self.names += added

    def nearest_first(self, name: str) -> Iterator[Candidate]:
        """Yields (distance in octaves, folder, name) of each sweep, the nearest first."""
        octaves, words = self._point(name)
        apart = np.where(self._words == words, np.abs(self._octaves - octaves), MISMATCH).sum(axis=1)
        apart += MISMATCH * len(_fields(name).keys() - set(self._fields))
        beyond, n_wanted = -1.0, 32
        while beyond < apart.max():
            last = np.partition(apart, min(n_wanted, len(apart)) - 1)[min(n_wanted, len(apart)) - 1]
            indices = np.flatnonzero((apart > beyond) & (apart <= last))
            yield from sorted((float(apart[i]), self.folder, self.names[i]) for i in indices)
            beyond, n_wanted = last, 8 * n_wanted

    def _point(self, name: str) -> tuple[list[float], list[int]]:
        """Returns a row of ``_octaves`` and one of ``_words``."""
        fields = _fields(name)
        pairs = [fields.get(field, (0.0, ABSENT)) for field in self._fields]
        return [octave for octave, _ in pairs], [word for _, word in pairs]


_shelf = lru_cache(maxsize=256)(_Shelf)
_lock = Lock()  # reading changes shelves, and a campaign reads from several threads


def _shelves(results: Path, kernel: str) -> Iterator[_Shelf]:
    """Yields the current sweeps of ``kernel``, one shelf for each device with sweeps."""
    try:
        devices = sorted(os.listdir(results))
    except OSError:
        return
    for device in devices:
        shelf = _shelf(os.path.join(results, device, part(kernel)))
        try:
            shelf.look()
        except OSError:
            continue  # a file, or a device without sweeps of this kernel
        yield shelf


def _read(candidates: Iterable[Candidate], own: str, kin: int, added: tuple[Parameter, ...]) -> Iterator[Neighbour]:
    for distance, folder, name in candidates:
        if os.path.join(folder, name) == own:
            continue
        about = _about(folder, name)
        if about is not None and (measured := _measured(folder, name, added)):
            yield Neighbour(about[0], about[1], kin, distance, measured)


def _nearest(neighbours: Iterable[Neighbour], n: int) -> Iterator[Neighbour]:
    """Yields the neighbours with this very problem, and the first ``n`` others."""
    n_others = 0
    for neighbour in neighbours:
        yield neighbour
        n_others += neighbour.distance > 0
        if n_others == n:
            return


def _fields(name: str) -> dict[str, tuple[float, int]]:
    """Parses ``taps=256,window=hann`` into (log2 of a number, 0) or (0, code of a word) by field."""
    fields = {}
    for piece in re.split(r",(?=[A-Za-z_]\w*=)", name):
        field, _, text = piece.partition("=")
        number = _number(parse_value(text))
        fields[field] = (0.0, hash(text) or 1) if number is None else (octave(number), 0)
    return fields


def _number(value: object) -> float | None:
    """Returns ``value`` as a finite number, or None for words, ``inf`` and ``nan``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    with suppress(OverflowError):
        return float(value) if isfinite(value) else None
    return None


# ---------------------------------------------------------------------- files, read again when they have changed
def _about(folder: str, name: str) -> tuple[Mapping[str, object], Device] | None:
    return _read_about(*stamp) if (stamp := _stamp(folder, name, SWEEP)) else None


def _measured(folder: str, name: str, added: tuple[Parameter, ...]) -> tuple[tuple[Config, float], ...]:
    stamps = tuple(_stamp(folder, name, file) for file in FILES)
    return _read_measured(os.path.join(folder, name), stamps, added) if any(stamps) else ()


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
) -> tuple[tuple[Config, float], ...]:
    """Returns configs with the ratio of their median to the least one; damaged lines are skipped, with a warning.

    The fastest config comes first; if it took part in a final round, the winner of that round comes first.
    """
    folder = SweepFolder(Path(path), added)
    measured, outcome = _best_first(medians(folder)), folder.current_outcome()
    if not measured or outcome is None or tuple(map(Objective.read, outcome.objectives)) != FASTEST.each:
        return measured
    winner = outcome.winner.config if outcome.finalist(measured[0][0]) else measured[0][0]
    return tuple(sorted(measured, key=lambda pair: pair[0] != winner))


def _best_first(median_s: Mapping[Config, float]) -> tuple[tuple[Config, float], ...]:
    best = min(median_s.values(), default=1.0)
    return tuple(sorted(((c, m / best) for c, m in median_s.items()), key=lambda pair: pair[1]))
