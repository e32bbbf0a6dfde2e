"""Enumerates the allowed configurations of a space without looking at every combination.

Parameters get values one after another, in the order of their declaration. Constraints see incomplete configurations. A
constraint that refuses one cuts off all combinations that begin with it. A constraint that reads a parameter without a
value is called again once this parameter has one.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .config import Config, Value
from .device import Device
from .parameter import Constraint, Parameter
from .problem import Problem
from .product import MOST_ALLOWED, N_DRAWN, SEED, value_distance

N_TRIED = 2000  # random combinations, from which the number of allowed ones is estimated


class _Unassigned(Exception):
    """A predicate has read a parameter that has no value yet."""


class _Partial(Mapping[str, Value]):
    """The values assigned so far. It is immutable and hashed by identity, so predicates may cache derived values."""

    __slots__ = ("_open", "_values")

    def __init__(self, values: dict[str, Value], still_open: dict[str, None]) -> None:
        self._values = values
        self._open = still_open

    def __getitem__(self, name: str) -> Value:
        if name in self._open:
            raise _Unassigned(name)
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        if name in self._open:
            raise _Unassigned(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"{name!r} is not a parameter of this configuration") from None

    def __iter__(self) -> Iterator[str]:
        self._need_all()
        return iter(self._values)

    def __len__(self) -> int:
        self._need_all()
        return len(self._values)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def _need_all(self) -> None:
        if self._open:
            raise _Unassigned(next(reversed(self._open)))


class _Tree:
    """The tree of all combinations: each level has the values of one parameter, where that parameter exists."""

    def __init__(self, parameters: Sequence[Parameter], restrict: Mapping[str, tuple[Value, ...]]) -> None:
        self.parameters = parameters
        self._choices = [tuple(v for v in p.values if v in restrict.get(p.name, p.values)) for p in parameters]
        # The parameters that decide whether others exist.
        self._deciding = sorted({other for p in parameters for other, _ in p.condition})
        self._counts: dict[tuple[Value | None, ...], int] = {}

    def assignments(self, values: dict[str, Value], index: int) -> Iterator[dict[str, Value]]:
        """Yields these values with each value of the next parameter, or as they are where it does not exist."""
        parameter = self.parameters[index]
        if not parameter.applies(values):
            yield values
        else:
            for value in self._choices[index]:
                yield {**values, parameter.name: value}

    def count(self, values: dict[str, Value], index: int) -> int:
        """Returns the number of combinations that begin with these values."""
        if index == len(self.parameters):
            return 1
        key = (index, *(values.get(name) for name in self._deciding))
        if key not in self._counts:
            self._counts[key] = sum(self.count(more, index + 1) for more in self.assignments(values, index))
        return self._counts[key]

    def drawn(self, generator: random.Random) -> dict[str, Value]:
        """Returns a random combination; all combinations are equally likely."""
        values: dict[str, Value] = {}
        for index, parameter in enumerate(self.parameters):
            if parameter.name in self._deciding:
                ways = list(self.assignments(values, index))
                values = generator.choices(ways, [self.count(way, index + 1) for way in ways])[0]
            elif parameter.applies(values):
                values[parameter.name] = generator.choice(self._choices[index])
        return values

    def place(self, config: Config) -> tuple[int, ...]:
        """Returns a sort key that puts configurations in the order of the declarations."""
        return tuple(p.values.index(config[p.name]) for p in self.parameters if p.name in config)


def drawn_configs(
    parameters: Sequence[Parameter],
    constraints: Sequence[Constraint],
    problem: Problem,
    device: Device,
    restrict: Mapping[str, tuple[Value, ...]],
) -> tuple[tuple[Config, ...], int] | None:
    """Returns a sample of the allowed configurations and an estimate of their number; None where they can be listed."""
    tree, generator = _Tree(parameters, restrict), random.Random(SEED)
    n_all = tree.count({}, 0)
    if n_all <= MOST_ALLOWED:
        return None

    def allowed() -> Config | None:
        config = Config(tree.drawn(generator))
        try:
            is_allowed = all(constraint.holds(problem, config, device) for constraint in constraints)
        except Exception:  # a user's predicate may raise anything
            is_allowed = False
        return config if is_allowed else None

    some = [config for config in (allowed() for _ in range(N_TRIED)) if config is not None]
    n_allowed = n_all * len(some) // N_TRIED
    if n_allowed <= MOST_ALLOWED:
        return None
    n_more = N_DRAWN * N_TRIED // max(len(some), N_TRIED // 20)
    found = {*some, *(config for config in (allowed() for _ in range(n_more)) if config is not None)}
    return tuple(sorted(found, key=tree.place)), n_allowed


class Enumerator:
    """One enumeration. ``configs``: the values of each allowed configuration, in the order of the declarations.
    ``refused``: the number of refused ones, by the reason of the constraint that decided first.

    ``near``: if it is given, only the allowed config nearest to it is searched: the one with the fewest parameters that
    differ, then the smallest log-ratios.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        constraints: Sequence[Constraint],
        problem: Problem,
        device: Device,
        restrict: Mapping[str, tuple[Value, ...]],
        near: Mapping[str, Value] | None = None,
    ) -> None:
        self._parameters, self._tree = parameters, _Tree(parameters, restrict)
        names = [p.name for p in parameters]
        self._open = [dict.fromkeys(names[i:]) for i in range(len(names) + 1)]
        self._problem, self._device, self._near = problem, device, near
        self._least = (len(parameters) + 1, 0.0)
        self.configs: list[dict[str, Value]] = []
        self.refused: Counter[str] = Counter()
        waiting = self._ask([(constraint, "") for constraint in constraints], "", {}, 0)
        if waiting is not None:
            self._extend({}, 0, waiting)

    def _extend(
        self,
        values: dict[str, Value],
        index: int,
        waiting: list[tuple[Constraint, str]],
        away: tuple[int, float] = (0, 0.0),
    ) -> None:
        if index == len(self._parameters):
            if self._near is not None:
                self._least, self.configs = away, []
            self.configs.append(values)
            return
        parameter = self._parameters[index]
        for more in self._tree.assignments(values, index):
            if self._near is not None:
                farther = value_distance(more.get(parameter.name), self._near.get(parameter.name))
                there = away[0] + farther[0], away[1] + farther[1]
                if there >= self._least:  # no config below this node is nearer
                    continue
            else:
                there = away
            undecided = self._ask(waiting, parameter.name, more, index + 1)
            if undecided is not None:
                self._extend(more, index + 1, undecided, there)

    def _ask(
        self, waiting: list[tuple[Constraint, str]], assigned: str, values: dict[str, Value], index: int
    ) -> list[tuple[Constraint, str]] | None:
        """Returns the undecided constraints with the parameters that they wait for, or None if one refuses."""
        partial: Any = _Partial(values, self._open[index])  # takes the place of a Config
        undecided = []
        for constraint, name in waiting:
            if name != assigned:
                undecided.append((constraint, name))
                continue
            try:
                if not constraint.holds(self._problem, partial, self._device):
                    self.refused[constraint.reason] += self._tree.count(values, index)
                    return None
            except _Unassigned as missing:
                undecided.append((constraint, str(missing)))
            except Exception as error:
                if not self._open[index]:
                    self.refused[constraint.answers(error)] += 1
                    return None
                # An earlier constraint may refuse the values at which this one raises, so it is called again later.
                undecided.append((constraint, next(reversed(self._open[index]))))
        return undecided
