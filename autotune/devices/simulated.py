"""A device whose times come from a formula, to try campaigns, searches and lookups without hardware.

The device computes nothing, so every variant counts as right. A time is 100 us times a penalty for each parameter that
is not at its best value and for neighbouring parameters that do not fit each other, plus 0.5 % of noise. The best
values drift slowly with the problem, so that neighbouring problems resemble each other, as on real devices. Some
configs fail to compile. ``auto`` never chooses this device, and its records are never used for another device.
"""

import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..core.definition import Device, Launch, Tolerance
from ..core.device import Ceilings
from ..core.digest import digest
from ..core.errors import Status, TrialFailure
from ..core.kept import keep, take
from ..rendering.render import Variant
from ..runtime.comparison import OutputComparison
from ..system.cache import cache_dir
from ..system.limits import DURATION, from_environment
from .base import TIMED_ALIGN, Argument, Binary, Defaults, Finding, LaunchRun, Sample

kind = "simulated"
clock = "simulated time"
builds = ("formula",)
defaults = Defaults(checked_launches=1, has_full_sizes=False, caches=(kind,))  # a formula has no races
N_DEVICES = 8
COMPILE_S = 0.02  # AUTOTUNE_SIMULATED_COMPILE_S overrides it
NOISE = 0.005
LEAST_JOULES = 0.03  # energy of a launch: this much to twice as much
FAILING = 0.05  # share of variants that do not compile
CEILINGS = Ceilings(bytes_per_s=4e12, flops_per_s=6e13)


def identifiers() -> list[str]:
    """Returns ``simulated:0``, ``simulated:1``, ... (N_DEVICES of them)."""
    return [f"simulated:{i}" for i in range(N_DEVICES)]


def describe(identifier: str) -> Device:
    """Returns the limits of a large GPU."""
    return Device(name="simulated", kind=kind, arch="simulated", n_multiprocessors=132, max_clock_hz=1e9)


def lock_name(identifier: str) -> str:
    """Returns one lock name per device."""
    return identifier.replace(":", "-")


def compiler(device: Device) -> str:
    """Returns a version that changes with the formula."""
    return "formula 1"


def compile(variant: Variant, device: Device, builds: Sequence[str] | None = None) -> Binary:
    """Writes a file with the inputs of the formula.

    Raises:
        TrialFailure: compile_failed, for a share FAILING of the variants.
    """
    began = time.monotonic()
    path = cache_dir(kind) / f"{variant.key}.penalty"
    cached = take(path) is not None
    if not cached:
        time.sleep(_compile_s())
        keep(path, str(penalty(variant)).encode(), {"variant": variant.name})
    if _unit("fails", variant.name) < FAILING:
        raise TrialFailure(Status.COMPILE_FAILED, f"{variant.name}: the formula says no")
    registers = 32 + int(200 * _unit("registers", str(variant.config)))
    took_s = time.monotonic() - began
    code, files = digest(penalty(variant), registers), {"formula": path}
    return Binary(variant.name, variant.kernel, variant.key, code, files, registers, 0, 0, took_s, cached)


@cache
def _compile_s() -> float:
    return from_environment("AUTOTUNE_SIMULATED_COMPILE_S", COMPILE_S, DURATION)


def penalty(variant: Variant) -> float:
    """Returns the slowdown against the best possible config, at least 1."""
    problem = variant.name.partition("[")[2].partition("|")[0]
    numbers = [float(v) for _, _, v in (f.partition("=") for f in problem.split(",")) if v.replace(".", "").isdigit()]
    drift = float(np.sum(np.log2(np.abs(numbers) + 1)))
    total = 0.1
    items = list(variant.config.items())
    for name, value in items:
        level = float(np.log2(value)) if isinstance(value, (int, float)) and value > 0 else 4 * _unit(name, str(value))
        best = 2 + 4 * _unit(name, "best") + 0.1 * drift * (_unit(name, "drift") - 0.5)
        total += 0.06 * (level - best) ** 2 * (0.2 + _unit(name, "weight"))
    for (a, x), (b, y) in pairwise(items):
        total += 0.1 * _unit(f"{a}{x}", f"{b}{y}")
    return 1.0 + total


def compiled_anew(variant: Variant, device: Device) -> str:
    """Returns the same digest again, since a formula is deterministic."""
    return compile(variant, device).code


@dataclass
class _Buffer:
    """A buffer that holds what was written last, since no launch changes it."""

    data: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def write(self, data: np.ndarray) -> None:
        self.data = data

    def read(self) -> np.ndarray:
        return self.data.copy()

    def keep(self) -> None:
        pass

    restore = hold_another = free = keep

    def poison(self, pattern: int) -> None:
        pass

    def damage(self) -> str | None:
        return None

    def compare(self, reference: np.ndarray, tolerance: Tolerance, key: str) -> OutputComparison:
        return OutputComparison(0, int(reference.size), 0.0, 0.0)


class _Function:
    def __init__(self, path: Path) -> None:
        self._penalty = float(path.read_text())
        self._joules = LEAST_JOULES * (1 + _unit("joules", path.read_text()))
        self._random = np.random.default_rng(zlib.crc32(path.name.encode()) ^ time.monotonic_ns() & 0xFFFFFFFF)

    def launch(self, launch: Launch, arguments: Sequence[Argument], *, seed: int = 0) -> None:
        pass

    def samples(self, launch: Launch, arguments: Sequence[Argument], n: int, *, cold: bool) -> list[Sample]:
        noise = np.abs(self._random.normal(0.0, NOISE, n))
        return [Sample(1e-4 * self._penalty * (1.0 + float(extra)), 1e9) for extra in noise]

    def stream(self, launch: Launch, arguments: Sequence[Argument], seconds: float) -> LaunchRun:
        """Returns times of which the second half is a tenth slower, as on a GPU at its power limit."""
        n = max(4, round(seconds / (1e-4 * self._penalty)))
        taken = [
            sample.seconds * (1.1 if 2 * i >= n else 1.0)
            for i, sample in enumerate(self.samples(launch, arguments, n, cold=False))
        ]
        return LaunchRun(taken, n, self._joules * n)


class _Session:
    check_builds = builds
    timed_build = "formula"
    keep_bytes = 8 << 30

    def __init__(self, device: Device) -> None:
        self.device = device

    def load(self, binary: Binary, build: str) -> _Function:
        return _Function(binary.files[build])

    def clock_hz(self) -> float:
        return 0.0

    def release(self) -> None:
        """Does nothing, since the session keeps no memory."""

    def ceilings(self) -> Ceilings:
        return CEILINGS

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: np.dtype[np.generic], *, written: bool, align: int = TIMED_ALIGN
    ) -> _Buffer:
        return _Buffer(np.zeros(shape, dtype))


def open(identifier: str) -> _Session:
    """Opens the device in the worker process."""
    return _Session(describe(identifier))


def findings() -> list[Finding]:
    """Returns an empty list, since the device has no requirements."""
    return []


def _unit(*words: str) -> float:
    """Returns a number from 0 to 1 that depends only on these words."""
    return zlib.crc32("\0".join(words).encode()) / 2**32
