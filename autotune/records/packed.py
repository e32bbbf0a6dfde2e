"""The table of a finished sweep, trials.csv: a head of what all trials have in common, and one line a trial.

    # {"parameters": {"WGS": null, "STORE": "direct"}, "same": {"compiler": "NVRTC 13.0.88 sm_90", "cold": "1"}}
    WGS,number,key,code,median_ns,q1_ns,q3_ns,registers,sum
    64,0,r5AMUgxC,2EtVMDZfmxs,57088,56384,57536,128,8Q

A parameter, or another column, that has one value in the whole sweep is in the head. Cells are as ``cell`` writes them; a
figure that follows from others (rates) has an empty one. ``sum`` is a checksum of its line, the names and the head.
"""

import csv
import io
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from typing import Any

from ..core.config import Config, merged_order
from ..core.files import content_of, write_whole
from ..core.schema import Check, Unsound, as_json_value, as_name, as_scalar
from .cell import JSON, value_cell, value_of_cell
from .figure import OTHERS, defaults_of, figures_of
from .trial import Trial, contradiction

TABLE, SUM = "trials.csv", "sum"
N_SUM = 2  # characters of a line's checksum
OF_CONFIG = "config."  # begins the column of a parameter that has the name of another column
FIGURES = {name: figure for name, figure in figures_of(Trial).items() if name not in ("config", "samples_s")}
NEEDED_COLUMNS = ("number", "status")
COLUMNS = {figure.cell.column(name): name for name, figure in FIGURES.items()}
DEFAULTS = defaults_of(Trial)

Derived = Mapping[str, Callable[[float], float]]  # figure -> its value from a median in seconds, where it follows


@dataclass(frozen=True)
class Table:
    """The trials of a packed table by column, without those whose lines are damaged.

    ``configs``: of each trial. ``figures``: field of a trial -> its values; a field that no trial has is left out.
    ``others``: column of a later version -> JSON values. ``damaged``: number of a line -> why it is left out.
    """

    configs: Sequence[Config] = ()
    figures: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    others: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    damaged: Mapping[int, str] = field(default_factory=dict)

    def trials(self) -> list[Trial]:
        """Returns the trials in the order of the table."""
        names, columns = list(self.figures), list(self.figures.values())
        rows: Iterable[tuple[Any, ...]] = zip(*columns, strict=True) if columns else ()
        made = [
            Trial(config=config, **dict(zip(names, row, strict=True)))
            for config, row in zip(self.configs, rows, strict=True)
        ]
        if not self.others:
            return made
        rest = zip(*self.others.values(), strict=True)
        own = [{n: v for n, v in zip(self.others, row, strict=True) if v is not None} for row in rest]
        for trial, others in zip(made, own, strict=True):
            vars(trial)[OTHERS] = others
        return made


def columns_of(trials: Sequence[Trial]) -> Table:
    """Returns trials by column."""
    figures = {name: [getattr(trial, name) for trial in trials] for name in figures_of(Trial) if name != "config"}
    later = dict.fromkeys(name for trial in trials for name in trial.others)
    others = {name: [trial.others.get(name) for trial in trials] for name in later}
    return Table([trial.config for trial in trials], figures, others)


# ---------------------------------------------------------------------- writing
def write_table(folder: Path, trials: Sequence[Trial], derived: Derived) -> None:
    """Writes the table of these trials whole, and flushes it to the disk."""
    write_whole(folder / TABLE, text_of(trials, derived).encode(), is_durable=True)


def text_of(trials: Sequence[Trial], derived: Derived) -> str:
    """Returns the text of the table; ``derived``: figures that are not written where they follow from the median."""
    parameters = merged_order(trial.config for trial in trials)
    cells = {_column(name): _parameter_cells(trials, name) for name in parameters}
    varying = {column: own for column, own in cells.items() if len(set(own)) > 1 or not trials}
    head: dict[str, Any] = {
        "parameters": {
            name: None if _column(name) in varying else cells[_column(name)][0] for name in parameters
        }
    }
    columns = _figure_cells(trials, derived)
    for name in dict.fromkeys(name for trial in trials for name in trial.others):
        columns[name] = [JSON.write(trial.others[name]) if name in trial.others else "" for trial in trials]
    head["same"] = {name: own[0] for name, own in columns.items() if name != "number" and len(set(own)) == 1}
    varying |= {name: own for name, own in columns.items() if name not in head["same"]}
    head["same"] = {name: cell for name, cell in head["same"].items() if cell}
    lines = [f"# {json.dumps(head, ensure_ascii=False)}"]
    seed, out = _seed(lines[0], varying), io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*varying, SUM])
    writer.writerows([*row, _sum(seed, row)] for row in zip(*varying.values(), strict=True))
    return f"{lines[0]}\n{out.getvalue()}"


def _column(parameter: str) -> str:
    return OF_CONFIG + parameter if parameter in COLUMNS or parameter == SUM else parameter


def _parameter_cells(trials: Sequence[Trial], name: str) -> list[str]:
    return [value_cell(trial.config[name]) if name in trial.config else "" for trial in trials]


def _figure_cells(trials: Sequence[Trial], derived: Derived) -> dict[str, list[str]]:
    columns = {}
    for name, figure in FIGURES.items():
        write, empty = figure.cell.write, (None, DEFAULTS.get(name)) if name not in NEEDED_COLUMNS else ()
        values = [getattr(trial, name) for trial in trials]
        if (formula := derived.get(name)) is not None:
            values = [
                None if value and trial.median_s and abs(formula(trial.median_s) - value) <= NEAR * value else value
                for value, trial in zip(values, trials, strict=True)
            ]
        columns[figure.cell.column(name)] = ["" if value in empty else write(value) for value in values]
    return columns


NEAR = 1e-6  # relative difference of a figure from what follows from others


def _seed(head: str, names: Iterable[str]) -> bytes:
    return sha256("\0".join([head, *names]).encode(errors="surrogatepass")).digest()


def _sum(seed: bytes, row: Sequence[str]) -> str:
    data = "\0".join(row).encode(errors="surrogatepass")
    return urlsafe_b64encode(sha256(seed + data).digest()[:3]).decode()[:N_SUM]


# ---------------------------------------------------------------------- reading
def read_table(path: Path, derived: Derived) -> Table:
    """Returns the table of the sweep in the folder ``path``; empty if there is none.

    Raises:
        Unsound: when its head or its names cannot be read.
        OSError: when the file cannot be read.
    """
    try:
        data = content_of(path / TABLE)
    except FileNotFoundError:
        return Table()
    text = data.decode(errors="surrogateescape")
    first, _, rest = text.partition("\n")
    head, first = _head(first.rstrip("\r")), first.rstrip("\r")
    csv.field_size_limit(max(len(rest) + 1, csv.field_size_limit()))
    try:
        names, *rows = csv.reader(io.StringIO(rest, newline=""), strict=True)
    except (ValueError, csv.Error) as error:
        raise Unsound(f"it is no table: {error}") from error
    if not names or names[-1] != SUM or len(set(names)) != len(names):
        raise Unsound(f"the names of its columns do not end with {SUM}, or one is there twice")
    return _Reading(names[:-1], head, rows, _seed(first, names[:-1])).table(derived)


def _head(line: str) -> Mapping[str, Mapping[str, str | None]]:
    if not line.startswith("# "):
        raise Unsound("its first line is no head")
    head = JSON.read(line[2:])
    parts = [head.get(name) if isinstance(head, dict) else None for name in ("parameters", "same")]
    if not all(isinstance(part, dict) for part in parts):
        raise Unsound("its first line lacks the parameters, or what all trials have in common")
    for part in parts:
        if any(not isinstance(cell, str) and (cell is not None or part is parts[1]) for cell in part.values()):
            raise Unsound("a cell in its first line is no text")
    for name in parts[0]:
        as_name(name)
    return head  # type: ignore[no-any-return]


class _Reading:
    """A table while it is read. Lines with a wrong checksum, or an unsound cell, are left out."""

    def __init__(self, names: Sequence[str], head: Mapping[str, Any], rows: list[list[str]], seed: bytes) -> None:
        self.damaged: dict[int, str] = {}
        self._lines, kept = [], []
        for number, row in enumerate(rows, 3):
            if len(row) == len(names) + 1 and _sum(seed, row[:-1]) == row[-1]:
                self._lines.append(number)
                kept.append(row)
            elif len(row) == len(names) + 1:
                self.damaged[number] = "it does not have the checksum that it states"
            else:
                self.damaged[number] = f"it has {len(row)} cells, and there are {len(names) + 1} columns"
        self._parameters = head["parameters"]
        same = {_column(name): cell for name, cell in self._parameters.items() if cell is not None} | head["same"]
        self._cells: dict[str, Sequence[str]] = {name: [cell] * len(kept) for name, cell in same.items()}
        self._cells |= zip(names, zip(*kept, strict=True), strict=False) if kept else {}

    def table(self, derived: Derived) -> Table:
        """Returns the table. Raises Unsound when a column is missing."""
        if not self._lines:
            return Table(damaged=self.damaged)
        columns = [_column(name) for name in self._parameters]
        if lacking := [name for name in (*columns, *NEEDED_COLUMNS) if name not in self._cells]:
            raise Unsound(f"it lacks the column {lacking[0]}")
        configs = self._configs([self._cells.pop(name) for name in columns])
        figures = {
            name: self._values(column, self._cells.pop(column), FIGURES[name].check, FIGURES[name].cell.read, DEFAULTS.get(name))
            for column, name in COLUMNS.items()
            if column in self._cells
        }
        others = {name: self._values(name, cells, as_json_value, JSON.read, None) for name, cells in self._cells.items()}
        self._check_times(figures)
        good = [i for i, line in enumerate(self._lines) if line not in self.damaged]
        if len(good) < len(self._lines):
            configs = [configs[i] for i in good]
            figures, others = ({n: [v[i] for i in good] for n, v in each.items()} for each in (figures, others))
        return Table(configs, figures | _derived(figures, derived), others, self.damaged)

    def _values(self, name: str, cells: Sequence[str], check: Check, read: Callable[[str], Any], empty: Any) -> list[Any]:
        """Returns the values of a column; equal cells are read once, and share their value."""
        known: dict[str, Any] = {"": empty}
        for cell in set(cells) - {""}:
            try:
                known[cell] = check(read(cell))
            except (Unsound, RecursionError) as error:
                known[cell] = empty
                self._leave_out((i for i, each in enumerate(cells) if each == cell), f"{name} {error}")
        return [known[cell] for cell in cells]

    def _leave_out(self, rows: Iterable[int], why: str) -> None:
        for i in rows:
            self.damaged.setdefault(self._lines[i], why)

    def _configs(self, columns: list[Sequence[str]]) -> list[Config]:
        """Returns the configs of the rows; equal ones are one object."""
        names = list(self._parameters)
        read = [self._values(n, cells, as_scalar, value_of_cell, None) for n, cells in zip(names, columns, strict=True)]
        known: dict[tuple[str, ...], Config] = {}
        rows = zip(*columns, strict=True) if columns else repeat((), len(self._lines))
        configs = []
        for i, row in enumerate(rows):
            if row not in known:
                values = {name: values[i] for name, values in zip(names, read, strict=True)}
                known[row] = Config({name: value for name, value in values.items() if value is not None})
            configs.append(known[row])
        return configs

    def _check_times(self, figures: Mapping[str, Sequence[Any]]) -> None:
        """Leaves out rows whose times contradict their status or each other."""
        n = len(self._lines)
        times = [figures.get(name) or [None] * n for name in ("status", "median_s", "q1_s", "q3_s")]
        for i, (status, median_s, q1_s, q3_s) in enumerate(zip(*times, strict=True)):
            if median_s is not None and (why := contradiction(status, median_s, q1_s, q3_s)):
                self._leave_out([i], why)


def _derived(figures: Mapping[str, Sequence[Any]], derived: Derived) -> dict[str, list[Any]]:
    """Returns the figures that follow from the medians, where they are not given."""
    medians = figures.get("median_s", ())
    return {
        name: [
            formula(median_s) if value is None and median_s else value
            for value, median_s in zip(figures.get(name) or [None] * len(medians), medians, strict=True)
        ]
        for name, formula in derived.items()
        if medians
    }
