"""The tuning space: parameters, the constraints between them, and every allowed configuration.

A space is enumerated before anything runs, so a search never proposes an impossible config. A parameter declared with
``when`` is absent from configurations that do not fulfil its condition.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Lock

from .config import Config, Value, config_value_text
from .device import Device
from .enumerate import Enumerator, drawn_configs
from .enumeration import Enumeration
from .errors import UsageError
from .expressions import checked_expression, names_of, value_of
from .parameter import Constraint, Parameter, Predicate, completed_config
from .problem import Problem
from .product import Product
from .schema import MOST_WHOLE

KEPT = 256  # enumerations kept per space, one for each problem and device
MOST_CONFIGS = 1 << 20  # configs in all of them, so that a campaign's memory does not grow with its problems


@dataclass(frozen=True)
class _When:
    values: tuple[Value, ...]
    condition: tuple[tuple[str, tuple[Value | None, ...]], ...]


def when(values: tuple[Value, ...], **condition: Value | tuple[Value | None, ...]) -> _When:
    """Declares the values of a parameter that exists only under a condition: ``SG_SIZE=when((4, 8),
    ALGORITHM="subgroup")``. A condition value of None also matches configs that lack the other parameter.
    """
    as_tuples = ((name, v if isinstance(v, tuple) else (v,)) for name, v in condition.items())
    return _When(values, tuple(as_tuples))


@dataclass(frozen=True)
class _Since:
    value: Value
    values: tuple[Value, ...] | _When


def since(value: Value, values: tuple[Value, ...] | _When) -> _Since:
    """Declares the values of a parameter that is newer than some recorded configs: ``UNROLL=since(4, (1, 2, 4, 8))``.

    ``value`` describes what the kernel did before, so older configs get it. Their records and winners stay valid if it
    gives the machine code that was measured. ``values`` may come from ``when``.
    """
    return _Since(value, values)


class Space:
    """Parameters in the order of their declaration, and the constraints added with ``@space.constraint``."""

    def __init__(self, /, **parameters: tuple[Value, ...] | _When | _Since) -> None:
        self.parameters: dict[str, Parameter] = {}
        self.constraints: list[Constraint] = []
        # A search needs the same enumerations again and again, including those of other problems.
        self._kept: OrderedDict[Hashable, Enumeration] = OrderedDict()
        self._keeping = Lock()  # a campaign's worker runs several sweeps at a time
        for name, declared in parameters.items():
            given = declared.values if isinstance(declared, _Since) else declared
            before = declared.value if isinstance(declared, _Since) else None
            values, condition = (given.values, given.condition) if isinstance(given, _When) else (given, ())
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise ValueError(
                    f"parameter {name} is {values!r}; it must be a tuple of values, as {name}=({values!r},) or "
                    f"{name}=(64, 128)"
                )
            if not values or len(set(values)) != len(values):
                raise ValueError(f"parameter {name} needs distinct values, has {values}")
            if len({config_value_text(value) for value in values}) != len(values):
                raise ValueError(
                    f"parameter {name} has values that print alike: {values}; each must differ in its text"
                )
            for other, _ in condition:
                if other not in self.parameters:
                    raise ValueError(f"parameter {name} depends on {other}, which must be declared before it")
            if isinstance(declared, _Since) and before not in values:
                raise ValueError(f"parameter {name} is {before} in older configs, which is not one of {values}")
            self.parameters[name] = Parameter(name, tuple(values), condition, before)

    @property
    def added(self) -> tuple[Parameter, ...]:
        """Returns the parameters that older recorded configs may lack."""
        return tuple(parameter for parameter in self.parameters.values() if parameter.since is not None)

    def completed(self, config: Mapping[str, Value]) -> Config:
        """Returns a recorded ``config`` with the values of parameters that were added later."""
        return completed_config(config, self.added)

    def constraint(
        self, reason: str, /, reads: Iterable[str] | None = None, **condition: Value | tuple[Value, ...]
    ) -> Callable[[Predicate], Predicate]:
        """Decorates a pure function ``predicate(problem, config, device)`` that must be true of each config. ``reason``
        states what is true then. The predicate is called as soon as the parameters that it reads have values. With a
        condition (``MMA="wgmma"``, or a tuple of values) only configs that fulfil the condition are checked.

        ``reads``: the only parameters that it depends on. Where all constraints state theirs, each is called once for
        each combination of them, with a config that may lack all others.

        Raises:
            UsageError: when ``reads`` or the condition names an unknown parameter, or the condition an unknown value.
        """
        if reads is None:
            return self._rule(reason, condition, is_heuristic=False)
        names = tuple(dict.fromkeys((*reads, *condition)))
        for name in names:
            self.check_values(name, ())
        return self._rule(reason, condition, is_heuristic=False, reads=names)

    def require(self, text: str, reason: str = "") -> None:
        """Adds a constraint as an expression of parameters: ``space.require("WGS * UNROLL <= 512")``.

        An expression is evaluated for many configurations at once, so spaces of billions of combinations can be
        enumerated if their constraints are expressions. ``reason``: the text that messages show in its place.

        Raises:
            UsageError: when it is not an expression of parameters, or could take long to evaluate.
        """
        expression = checked_expression(text, self.parameters, "the constraint")

        def holds(problem: Problem, config: Config, device: Device) -> bool:
            return bool(value_of(expression, config))

        reads, name = names_of(expression), repr(text.strip())
        self.constraints.append(Constraint(name, reason or text.strip(), holds, False, reads, expression))
        self._kept.clear()

    def heuristic(self, reason: str, **condition: Value | tuple[Value, ...]) -> Callable[[Predicate], Predicate]:
        """Decorates a constraint that only searches obey: configs that it refuses would run, but slowly. Configs that a
        user asks for, or that were tuned elsewhere, are not held to it, since a heuristic may depend on the problem's
        sizes and the device, and a config also serves others.

        Raises:
            UsageError: as ``constraint``.
        """
        return self._rule(reason, condition, is_heuristic=True)

    def _rule(
        self,
        reason: str,
        condition: Mapping[str, Value | tuple[Value, ...]],
        *,
        is_heuristic: bool,
        reads: tuple[str, ...] | None = None,
    ) -> Callable[[Predicate], Predicate]:
        asked_of = {name: v if isinstance(v, tuple) else (v,) for name, v in condition.items()}
        for name, values in asked_of.items():
            self.check_values(name, values)

        def add(predicate: Predicate) -> Predicate:
            def holds(problem: Problem, config: Config, device: Device) -> bool:
                for name, values in asked_of.items():
                    if config.get(name) not in values:
                        return True
                return bool(predicate(problem, config, device))

            name = getattr(predicate, "__name__", "constraint")
            self.constraints.append(Constraint(name, reason, holds if asked_of else predicate, is_heuristic, reads))
            self._kept.clear()
            return predicate

        return add

    def broken(self, problem: Problem, config: Config, device: Device) -> Constraint | None:
        """Returns the first constraint that refuses ``config``, or None; one that raises refuses.

        Heuristics are ignored.
        """
        for constraint in self.constraints:
            if constraint.is_heuristic:
                continue
            try:
                if not constraint.holds(problem, config, device):
                    return constraint
            except Exception as error:  # a user's predicate may raise anything
                return replace(constraint, reason=constraint.answers(error))
        return None

    def first_allowed(self, problem: Problem, device: Device, choices: Iterable[Mapping[str, Value]]) -> Config:
        """Returns the first of ``choices`` that constraints and heuristics allow; if there is none, the first that
        constraints allow; if there is none either, the last.

        Raises:
            ValueError: when ``choices`` is empty.
        """
        slow: Config | None = None
        choice: Mapping[str, Value] | None = None
        for choice in choices:
            if self.allows(problem, choice, device):
                config = self.parse(choice)
                if self._is_worthwhile(problem, config, device):
                    return config
                slow = slow or config
        if slow is not None:
            return slow
        if choice is None:
            raise ValueError("there is no configuration to choose from")
        return Config(choice)

    def _is_worthwhile(self, problem: Problem, config: Config, device: Device) -> bool:
        """Returns whether all heuristics allow a config that the constraints allow."""
        heuristics = [constraint for constraint in self.constraints if constraint.is_heuristic]
        with suppress(Exception):  # a user's predicate may raise anything
            return all(heuristic.holds(problem, config, device) for heuristic in heuristics)
        return False

    def enumerate(
        self, problem: Problem, device: Device, restrict: Mapping[str, tuple[Value, ...]] | None = None
    ) -> Enumeration:
        """Returns every config that all constraints and heuristics allow for ``problem`` on ``device``.

        ``restrict`` narrows parameters to some of their values (``{"ALGORITHM": ("register",)}``).
        """
        for name, values in (restrict or {}).items():
            self.check_values(name, values)
        asked = problem, device, tuple(sorted((restrict or {}).items()))
        with self._keeping:
            if (found := self._kept.get(asked)) is not None:
                self._kept.move_to_end(asked)
                return found
        found = self._enumerate(*asked)
        with self._keeping:
            self._kept[asked] = found
            while len(self._kept) > 1 and self._is_full:
                self._kept.popitem(last=False)
        return found

    @property
    def _is_full(self) -> bool:
        n_configs = sum(len(enumeration.configs) for enumeration in self._kept.values())
        return len(self._kept) > KEPT or n_configs > MOST_CONFIGS

    def _enumerate(
        self, problem: Problem, device: Device, restrict: tuple[tuple[str, tuple[Value, ...]], ...]
    ) -> Enumeration:
        if self._says_what_it_reads and all(values for _, values in restrict):
            choices = {
                name: tuple(value for value in each.values if value in dict(restrict).get(name, each.values))
                for name, each in self.parameters.items()
            }
            product = Product(choices, self.constraints, problem, device)
            n_allowed = product.n_allowed if product.is_sample else 0
            refused = {why: min(n, MOST_WHOLE - 1) for why, n in product.refused.items()}  # limit of records
            return Enumeration(product.configs(), refused, n_allowed, tuple(product.unjudged))
        given = tuple(self.parameters.values()), self.constraints, problem, device, dict(restrict)
        if (drawn := drawn_configs(*given)) is not None:
            return Enumeration(drawn[0], n_allowed=drawn[1])
        found = Enumerator(*given)
        return Enumeration(tuple(map(Config, found.configs)), dict(found.refused))

    @property
    def _says_what_it_reads(self) -> bool:
        """Returns whether all parameters exist in all configurations, and all constraints say what they read."""
        exist = [not parameter.condition for parameter in self.parameters.values()]
        return bool(exist) and all(exist) and all(constraint.reads is not None for constraint in self.constraints)

    def nearest(self, problem: Problem, device: Device, wanted: Mapping[str, Value]) -> Config:
        """Returns the same as ``enumerate(problem, device).nearest(wanted)``, without visiting configs farther away.

        Raises:
            UsageError: when no config is allowed.
        """
        if self._says_what_it_reads:
            return self.enumerate(problem, device).nearest(wanted)
        found = Enumerator(tuple(self.parameters.values()), self.constraints, problem, device, {}, wanted)
        return Config(found.configs[0]) if found.configs else self.enumerate(problem, device).nearest(wanted)

    def check_values(self, name: str, values: tuple[Value, ...]) -> None:
        """Raises UsageError unless ``name`` is a parameter and ``values`` are among its own."""
        if name not in self.parameters:
            raise UsageError(f"{name!r} is not a parameter (has {', '.join(self.parameters)})")
        for value in values:
            if value not in self.parameters[name].values:
                allowed = ", ".join(map(str, self.parameters[name].values))
                raise UsageError(f"{name}={value} is not in the space; {name} may be {allowed}")

    def parse(self, given: Mapping[str, Value]) -> Config:
        """Returns ``given`` as a Config of this space, complete and in its order.

        A missing parameter that was added later gets the value of older configs.

        Raises:
            UsageError: for a parameter or value outside the space, one that does not apply, or one missing.
        """
        for name, value in given.items():
            self.check_values(name, (value,))
        chosen: dict[str, Value] = {}
        for name, parameter in self.parameters.items():
            if parameter.applies(chosen):
                if name not in given and parameter.since is not None:
                    chosen[name] = parameter.since
                    continue
                if name not in given:
                    raise UsageError(f"the configuration lacks {name} (one of {', '.join(map(str, parameter.values))})")
                chosen[name] = given[name]
            elif name in given:
                needs = " and ".join(f"{o} in {{{', '.join(map(str, v))}}}" for o, v in parameter.condition)
                raise UsageError(f"{name} means nothing here: it needs {needs}")
        return Config(chosen)

    def changes(self, problem: Problem, config: Config, device: Device) -> dict[str, tuple[Value, ...]]:
        """Returns, for each parameter, the other values that alone would make a refused ``config`` allowed.

        Parameters without such values are left out.
        """
        found: dict[str, tuple[Value, ...]] = {}
        for name in config:
            others = tuple(
                value
                for value in self.parameters[name].values
                if value != config[name] and self.allows(problem, {**config, name: value}, device)
            )
            if others:
                found[name] = others
        return found

    def allows(self, problem: Problem, values: Mapping[str, Value], device: Device) -> bool:
        """Returns whether ``values`` are a complete config of this space that no constraint refuses."""
        try:
            return self.broken(problem, self.parse(values), device) is None
        except UsageError:
            return False
