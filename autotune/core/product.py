"""Enumerates the allowed combinations where constraints say what they read, without looking at every combination.

Parameters that no constraint connects are in different groups, and the allowed combinations are the product of those of
all groups. In a group, the parameters of the constraint with the fewest combinations get their values first. A
constraint is evaluated as soon as all parameters that it reads have values: an expression on NumPy columns, a function
once for each combination of these parameters. A product of more than MOST_ALLOWED combinations is sampled.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, prod

import numpy as np

from .config import Config, Value, configs_of, without_collection
from .device import Device
from .errors import UsageError
from .parameter import Constraint
from .problem import Problem
from .row_tests import NO, RAISED, YES, RowTest, ValueNumbers

MOST_ALLOWED = 1_000_000  # configs; a larger space is sampled
N_DRAWN = 100_000  # configs in a sample
MOST_ROWS = 1 << 22  # combinations of a group in memory; a larger group is sampled
MOST_TRIED = 1 << 28  # combinations of a group that are tried exhaustively
MOST_WALKED = 1 << 29  # the same limit where a sample shows that few of them are allowed
MOST_DRAWN = 1 << 26  # random combinations that are tried for a sample
BLOCK = 1 << 16  # combinations tried in one step
SEED = 20231107  # the same space always has the same sample


class Product:
    """The allowed combinations.

    Args:
        choices: the values of each parameter.
        constraints: each one states what it ``reads``, and is called with configs of these parameters only.

    ``n_allowed`` is estimated where a group is sampled. ``refused`` counts combinations by the reason of the constraint
    that decided first. ``unjudged``: each constraint that raised, with one config at which it did, and the error.
    """

    def __init__(
        self,
        choices: Mapping[str, Sequence[Value]],
        constraints: Sequence[Constraint],
        problem: Problem,
        device: Device,
    ) -> None:
        self.names = tuple(choices)
        self._choices = {name: tuple(values) for name, values in choices.items()}
        self._generator = np.random.default_rng(SEED)
        tests = [RowTest(each, self._choices, problem, device) for each in constraints]
        groups = [self._group(names, tests) for names in _joined(self.names, [test.reads for test in tests])]
        n_all = prod(len(values) for values in self._choices.values())
        self.refused: Counter[str] = Counter()
        n_allowed = 1
        for group in groups:
            n_others = n_all // group.n_combinations * n_allowed
            self.refused.update({reason: n * n_others for reason, n in group.refused.items()})
            n_all, n_allowed = n_all // group.n_combinations, n_allowed * group.n_allowed
        self.n_allowed = n_allowed
        if (vain := next((group for group in groups if group.n_drawn and not group.n_accepted), None)) is not None:
            raise UsageError(
                f"none of {vain.n_drawn} combinations of {', '.join(vain.rows)} is allowed, which were drawn at random "
                f"from {vain.n_before:.3g}: {', '.join(vain.refused)}; there may be one, so write constraints of fewer "
                "parameters, or leave values out"
            )
        self.is_sample = n_allowed > MOST_ALLOWED or any(group.left for group in groups)
        self.unjudged = [(test.constraint, *test.fault) for test in tests if test.fault is not None]
        self._rows = self._ordered(self._together(groups))

    def configs(self) -> tuple[Config, ...]:
        """Returns the allowed configurations in the order of the declarations, or those of a sample."""
        columns = []
        for name, numbers in self._rows.items():
            values = np.empty(len(self._choices[name]), object)
            values[:] = self._choices[name]
            columns.append(values[numbers].tolist())
        with without_collection():
            return configs_of(self.names, zip(*columns, strict=True))

    # ------------------------------------------------------------------ groups
    def _group(self, names: Sequence[str], tests: Sequence[RowTest]) -> "_Group":
        group = _Group({name: len(self._choices[name]) for name in names})
        waiting = [test for test in tests if test.reads and test.reads[0] in names]
        late: list[RowTest] = []
        while waiting or group.left:
            fewest = min(waiting, key=group.n_more, default=None)
            new = tuple(group.left) if fewest is None else tuple(each for each in fewest.reads if each in group.left)
            ready = [test for test in waiting if not set(test.reads) - set(new) - set(group.rows)]
            more = prod(group.left[name] for name in new)
            if group.n_rows * more > MOST_TRIED or not group.extend(new, ready, late):
                break
            waiting = [test for test in waiting if test not in ready]
        if group.left:
            sample = group.sampled([*late, *(test for test in waiting if test not in late)], self._generator)
            is_short = sample.n_before <= MOST_WALKED and sample.n_allowed < MOST_ROWS // 2
            if not is_short or not group.extend(tuple(group.left), waiting, late):
                return sample
        group.keep(late)
        return group

    # ------------------------------------------------------------------ the product of all groups
    def _together(self, groups: "Sequence[_Group]") -> ValueNumbers:
        """Returns all rows of the product of the groups, or a random sample."""
        rows: ValueNumbers = {}
        if not self.is_sample:
            before, n_all = 1, prod(group.n_rows for group in groups)
            for group in groups:
                after = n_all // (before * group.n_rows) if n_all else 0
                rows |= {name: np.tile(np.repeat(each, after), before) for name, each in group.rows.items()}
                before *= group.n_rows
            return rows
        n_drawn = N_DRAWN if all(group.n_rows for group in groups) else 0
        for group in groups:
            if group.n_drawn and n_drawn:  # its rows are a sample already: each is used equally often
                drawn = np.resize(self._generator.permutation(group.n_rows), n_drawn)
            else:
                drawn = self._generator.integers(group.n_rows or 1, size=n_drawn)
            rows |= {name: each[drawn] for name, each in group.rows.items()}
        return rows

    def _ordered(self, rows: ValueNumbers) -> ValueNumbers:
        """Returns the rows in the order of the declarations, each once."""
        keys = [np.zeros(1, np.int64)]
        n_key = 1
        for name in self.names:
            n = len(self._choices[name])
            n_key *= n
            if n_key >= 1 << 62:
                keys.append(np.zeros(1, np.int64))
                n_key = n
            keys[-1] = keys[-1] * n + rows[name]
        order = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])
        is_new = np.zeros(len(order), bool)
        is_new[:1] = True
        for key in keys:
            is_new[1:] |= key[order][1:] != key[order][:-1]
        order = order[is_new]
        return {name: rows[name][order] for name in self.names}


@dataclass
class _Group:
    """Parameters that constraints connect, and their combinations so far.

    ``left``: the parameters without a value so far, with their numbers of values.
    """

    left: dict[str, int]
    rows: ValueNumbers = field(default_factory=dict)
    n_rows: int = 1
    refused: Counter[str] = field(default_factory=Counter)
    n_drawn: int = 0  # random combinations that were tried; 0: all combinations were tried
    n_accepted: int = 0
    n_before: int = 1  # combinations from which they were drawn

    def __post_init__(self) -> None:
        self.n_combinations = prod(self.left.values())

    @property
    def n_allowed(self) -> int:
        """Returns how many combinations are allowed; an estimate where the group is sampled."""
        return self.n_before * self.n_accepted // self.n_drawn if self.n_drawn else self.n_rows

    def n_more(self, test: RowTest) -> int:
        """Returns the number of combinations of the parameters for which a constraint still waits."""
        return prod(self.left.get(name, 1) for name in test.reads)

    def extend(self, new: Sequence[str], ready: Sequence[RowTest], late: list[RowTest]) -> bool:
        """Gives ``new`` parameters all their values, and keeps the rows that ``ready`` constraints allow.

        Returns False, and changes nothing, where more than MOST_ROWS rows would remain.
        """
        sizes = [self.left[name] for name in new]
        before, n_new = self.rows, prod(sizes)
        n_left = prod(self.left.values()) // n_new
        kept: list[ValueNumbers] = []
        n_kept, refused = 0, Counter(self.refused)
        for start in range(0, self.n_rows * n_new, BLOCK):
            row, number = np.divmod(np.arange(start, min(start + BLOCK, self.n_rows * n_new)), n_new)
            rows = {name: each[row] for name, each in before.items()}
            for name, size in zip(reversed(new), reversed(sizes), strict=True):
                number, rows[name] = np.divmod(number, size)
            rows = self._tested(rows, ready, n_left, late)
            kept.append({name: each.astype(np.int32) for name, each in rows.items()})
            n_kept += len(next(iter(rows.values())))
            if n_kept > MOST_ROWS:
                self.refused = refused
                return False
        self.rows = _whole(kept, (*before, *new))
        self.n_rows = len(next(iter(self.rows.values())))
        for name in new:
            del self.left[name]
        return True

    def keep(self, tests: Sequence[RowTest]) -> None:
        """Keeps the rows that these constraints, which raised before, allow now."""
        if tests:
            self.rows = self._tested(self.rows, tests, 1, [], is_last=True)
            self.n_rows = len(next(iter(self.rows.values())))

    def sampled(self, tests: Sequence[RowTest], generator: np.random.Generator) -> "_Group":
        """Returns random combinations with all parameters that are ``left``, as far as the constraints allow them."""
        found = replace(self, refused=Counter())
        found.n_combinations, found.n_before = self.n_combinations, self.n_rows * prod(self.left.values())
        kept: list[ValueNumbers] = []
        while found.n_accepted < N_DRAWN and found.n_drawn < MOST_DRAWN and self.n_rows:
            row = generator.integers(self.n_rows, size=BLOCK)
            rows = {name: each[row] for name, each in self.rows.items()}
            rows |= {name: generator.integers(size, size=BLOCK) for name, size in self.left.items()}
            rows = found._tested(rows, tests, 1, [], is_last=True)
            kept.append(rows)
            found.n_accepted += len(next(iter(rows.values())))
            found.n_drawn += BLOCK
        found.rows, found.n_rows = _whole(kept, (*self.rows, *self.left)), found.n_accepted
        scale = found.n_before // max(1, found.n_drawn)
        found.refused = self.refused + Counter({why: n * scale for why, n in found.refused.items()})
        return found

    def _tested(
        self, rows: ValueNumbers, tests: Sequence[RowTest], n_left: int, late: list[RowTest], is_last: bool = False
    ) -> ValueNumbers:
        """Returns the rows that constraints allow. One that raises at a row is called again after all others."""
        for test in tests:
            n_rows = len(next(iter(rows.values())))
            judged = test.judged(rows, n_rows)
            is_kept = judged == YES if is_last else judged != NO
            if not is_last and test not in late and (judged == RAISED).any():
                late.append(test)
            n_refused = n_rows - int(np.count_nonzero(is_kept))
            if not n_refused:
                continue
            if is_last and (is_fault := judged == RAISED).any():
                self.refused[test.told_fault(rows, is_fault)] += int(np.count_nonzero(is_fault)) * n_left
                n_refused -= int(np.count_nonzero(is_fault))
            if n_refused:
                self.refused[test.constraint.reason] += n_refused * n_left
            rows = {name: each[is_kept] for name, each in rows.items()}
        return rows


def _whole(parts: Sequence[ValueNumbers], names: Sequence[str]) -> ValueNumbers:
    none = np.zeros(0, np.int32)
    return {name: np.concatenate([none, *(part[name] for part in parts)], dtype=np.int32) for name in names}


def _joined(names: Sequence[str], reads: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yields the groups of connected names, in the order of their first names."""
    of = {name: {name} for name in names}
    for each in reads:
        together = set().union(*(of[name] for name in each))
        of |= dict.fromkeys(together, together)
    done: set[str] = set()
    for name in names:
        if name not in done:
            done |= of[name]
            yield [other for other in names if other in of[name]]


def value_distance(a: Value | None, b: Value | None) -> tuple[int, float]:
    """Returns (1 if two values of a parameter differ, else 0; absolute log-ratio of numbers). None: no value."""
    if a == b:
        return 0, 0.0
    if isinstance(a, (int, float)) and isinstance(b, (int, float)) and a > 0 and b > 0:
        return 1, abs(log(a / b))
    return 1, 0.0
