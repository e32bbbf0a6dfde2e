"""Evaluates a constraint at many combinations: an expression on columns, a function once per distinct argument."""

from collections.abc import Mapping
from math import prod

import numpy as np

from .columns import NotVectorised, column_of, truths
from .config import Config, Value
from .device import Device
from .errors import UsageError
from .parameter import Constraint
from .problem import Problem

MOST_ASKED = 1 << 23  # calls of a function, each of which takes microseconds
MOST_KNOWN = 1 << 20  # answers of a function that are cached
NO, YES, RAISED = 0, 1, 2  # a constraint's verdict on a combination
ValueNumbers = dict[str, np.ndarray]  # parameter -> the index of its value, for each row


class RowTest:
    """A constraint that is evaluated for rows of combinations."""

    def __init__(
        self,
        constraint: Constraint,
        choices: Mapping[str, tuple[Value, ...]],
        problem: Problem,
        device: Device,
    ) -> None:
        self.constraint, self._problem, self._device = constraint, problem, device
        self.reads = constraint.reads or tuple(choices)[:1]
        self._choices = {name: choices[name] for name in self.reads}
        self.fault: tuple[Config, Exception] | None = None
        self._columns: dict[str, np.ndarray] | None = None
        if constraint.text:
            try:
                self._columns = {name: column_of(values) for name, values in self._choices.items()}
            except NotVectorised:
                self._columns = None
        self._known: dict[int, int] = {}  # combination of the parameters that it reads -> verdict
        self._n_asked = 0

    def judged(self, rows: ValueNumbers, n_rows: int) -> np.ndarray:
        """Returns NO, YES or RAISED for each row: int8 [n_rows]."""
        if self._columns is not None:
            try:
                found = truths(self.constraint.text, {name: self._columns[name][rows[name]] for name in self.reads})
                return np.broadcast_to(found, n_rows).astype(np.int8)
            except NotVectorised:
                pass  # these rows need Python, as where one divides by zero
        key = np.zeros(n_rows, object if prod(map(len, self._choices.values())) >= 1 << 62 else np.int64)
        for name, values in self._choices.items():
            key = key * len(values) + rows[name]
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        keys, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        said = [self._asked(number, rows, row) for number, row in zip(keys.tolist(), first.tolist(), strict=True)]
        return np.array(said, np.int8)[inverse]

    def _asked(self, key: int, rows: ValueNumbers, row: int) -> int:
        if key not in self._known:
            self._n_asked += 1
            if self._n_asked > MOST_ASKED:
                raise UsageError(
                    f"{self.constraint.name} would be asked about more than {MOST_ASKED} combinations, one by one: "
                    "write it as arithmetic over parameters, or so that it takes fewer of them"
                )
            try:
                self._known[key] = int(
                    bool(self.constraint.holds(self._problem, self._config(rows, row), self._device))
                )
            except Exception:  # a user's predicate may raise anything; it counts if no other constraint refuses the row
                self._known[key] = RAISED
        return self._known[key]

    def told_fault(self, rows: ValueNumbers, is_fault: np.ndarray) -> str:
        """Returns the reason to refuse rows at which the predicate raises; keeps the first config and error."""
        config = self._config(rows, int(np.argmax(is_fault)))
        try:
            self.constraint.holds(self._problem, config, self._device)
        except Exception as error:
            self.fault = self.fault or (config, error)
            return self.constraint.answers(error)
        return self.constraint.reason

    def _config(self, rows: ValueNumbers, row: int) -> Config:
        return Config({name: values[int(rows[name][row])] for name, values in self._choices.items()})
