"""Reads another tuner's measurements, so that a sweep can try its best configs first. They are only hints."""

from collections.abc import Collection
from pathlib import Path

from ..core.config import Config
from ..core.errors import UsageError
from ..core.space import Space
from .recorded_space import recorded_times

N_BEST = 8  # configs of a file that are tried first


def begun_elsewhere(path: Path, space: Space, allowed: Collection[Config]) -> tuple[tuple[Config, ...], str]:
    """Returns the fastest allowed configs of a Kernel Tuner cache or of T4 results, and a note for the user.

    A parameter with one value may be missing in the file. The file's times are not used: each config is verified and
    measured here.

    Raises:
        UsageError: for a file that cannot be read, or without an allowed config.
    """
    times = {config: seconds for config, seconds in recorded_times(path).items() if seconds is not None}
    constant = {name: each.values[0] for name, each in space.parameters.items() if len(each.values) == 1}
    found = []
    for config in sorted(times, key=lambda config: times[config] or 0.0):
        own = {name: config.get(name, constant.get(name)) for name in space.parameters}
        found.append(Config({name: value for name, value in own.items() if value is not None}))
    usable = [config for config in dict.fromkeys(found) if config in allowed]
    if not usable:
        names = ", ".join(next(iter(times), {}))
        raise UsageError(
            f"{path} has {len(times)} measured configs{f' of {names}' if names else ''}, and none of them is allowed "
            f"here: name a file of this kernel, whose parameters are {', '.join(space.parameters)}"
        )
    return tuple(
        usable[:N_BEST]
    ), f"{path}: {min(N_BEST, len(usable))} of its {len(times)} measured configs are tried first"
