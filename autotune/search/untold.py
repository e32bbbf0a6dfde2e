"""Makes recorded spaces harder: a hidden constraint, unknown to the search, makes most configs fail."""

from dataclasses import replace
from math import prod

from ..core.errors import UsageError
from ..recommend.distance import is_number
from .features import levels_of
from .recorded_space import RecordedSpace


def with_failures(space: RecordedSpace, share: float) -> RecordedSpace:
    """Returns ``space`` with an additional ``share`` of failing configs: the largest ones.

    The size of a config is the product of the two parameters with the most values; ties go by the product of all
    parameters. Parameters that some config lacks, or that are not always positive numbers, do not count.

    Raises:
        UsageError: for a share outside of [0, 1), a space without such a parameter, or if all configs would fail.
    """
    if not 0 <= share < 1:
        raise UsageError(f"a share of {share:g} of the configs cannot fail; give one from 0 to below 1")
    if share == 0:
        return space
    levels = levels_of(space.configs)
    names = [
        (-len(values), name)
        for name, values in zip(levels.names, levels.values, strict=True)
        if all(is_number(v) and float(v) > 0 for v in values) and all(name in config for config in space.configs)
    ]
    if not names:
        raise UsageError(f"{space.name} has no parameter of positive numbers, which the size of configs needs")
    sized = [name for _, name in sorted(names, key=lambda one: one[0])]
    sizes = [
        (prod(float(config[name]) for name in sized[:2]), prod(float(config[name]) for name in sized))
        for config in space.configs
    ]
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    left = set(order[: int(len(order) * (1 - share))])
    seconds = tuple(s if i in left else None for i, s in enumerate(space.seconds))
    if all(s is None for s in seconds):
        raise UsageError(f"no config of {space.name} is left when {share:.0%} fail; give a smaller share")
    return replace(space, name=f"{space.name}, {share:.0%} fail untold", seconds=seconds)
