"""Turns (problem, device, config) into numbers, from which trees predict times.

No column needs knowledge of a kernel. Numbers are octaves and words are numbered, so a tree can split either.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ..core.config import Config
from ..core.definition import Device, Kernel
from ..core.problem import Problem, named_fields
from ..core.schema import as_name, as_text, mapping_of, sequence_of
from .distance import is_number, octave
from .occupancy import COLUMNS, occupancy

ABSENT = -99.0  # the number of a field or parameter that is missing
OCTAVES_OF_A_STEP = 2.0  # numbers so many octaves apart or more are one step apart, like two words
LEAST_STEP = 0.2  # steps between two numbers that are nearly equal


@dataclass(frozen=True)
class ModelColumns:
    """The columns of one kernel: its problem's ``fields``, its ``parameters``, and the ``words`` that any of them has.

    In order: the fields; bytes, operations and multiprocessors; the parameters; how the launch fills the device; then,
    from ``n_plain`` on, how each parameter, and all of them, differ from the kernel's own default, the *rule*.
    """

    fields: Annotated[tuple[str, ...], sequence_of(as_name)]
    parameters: Annotated[tuple[str, ...], sequence_of(as_name)]
    words: Annotated[Mapping[str, tuple[str, ...]], mapping_of(as_name, sequence_of(as_text))]  # values but numbers

    @staticmethod
    def of(problems: Iterable[tuple[Mapping[str, object], Sequence[Config]]]) -> "ModelColumns":
        """Returns the columns for these problems and configs."""
        fields, parameters, words = dict[str, None](), dict[str, None](), dict[str, set[str]]()
        for problem, configs in problems:
            for names, values in ((fields, [problem]), (parameters, configs)):
                for name, value in (item for each in values for item in each.items()):
                    names[name] = None
                    if not is_number(value):
                        words.setdefault(name, set()).add(str(value))
        ordered = {name: tuple(sorted(words[name])) for name in sorted(words)}
        return ModelColumns(tuple(sorted(fields)), tuple(sorted(parameters)), ordered)

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the name of each column, for people."""
        plain = (*self.fields, "bytes", "operations", "multiprocessors", *self.parameters, *COLUMNS)
        return (*plain, *(f"{name} off the rule" for name in self.parameters), "steps from the rule", "is the rule")

    @property
    def n_plain(self) -> int:
        """Returns the number of columns that do not compare with the rule."""
        return len(self.fields) + 3 + len(self.parameters) + len(COLUMNS)

    def table(
        self, kernel: Kernel[Any], problem: Problem, device: Device, configs: Sequence[Config], rule: Config
    ) -> np.ndarray:
        """Returns the columns of each config, float [n_configs, n_columns]."""
        fields, work = named_fields(problem), kernel.work(problem)
        fixed = [self._number(name, fields.get(name)) for name in self.fields]
        fixed += [octave(float(work.bytes)), octave(float(work.flops)), float(device.n_multiprocessors)]
        own = np.array([[self._number(name, each.get(name)) for name in self.parameters] for each in (*configs, rule)])
        own, at_rule = own[:-1].reshape(len(configs), -1), own[-1]
        filled = occupancy(kernel, problem, configs, device)
        differ = own != at_rule
        sizes = (own != ABSENT) & (at_rule != ABSENT) & np.array([name not in self.words for name in self.parameters])
        off = np.where(sizes, own - at_rule, differ)
        each = np.minimum(1.0, LEAST_STEP + np.abs(own - at_rule) / OCTAVES_OF_A_STEP)
        steps = np.where(sizes & differ, each, differ).sum(axis=1)
        parts = (np.tile(fixed, (len(configs), 1)), own, filled, off, np.sqrt(steps)[:, None], (steps == 0)[:, None])
        return np.hstack(parts)

    def _number(self, name: str, value: object) -> float:
        if value is None:
            return ABSENT
        if is_number(value):
            return octave(float(value))
        words = self.words.get(name, ())
        return float(words.index(str(value))) if str(value) in words else -1.0
