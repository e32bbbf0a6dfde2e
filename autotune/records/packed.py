"""The table of a finished sweep, trials.csv: a head of what all trials have in common, and one line a trial.

    # {"begun": "2026-11-26T15:22:09+00:00", "parameters": {"STORE": [1, "direct"]}, "same": {"status": "measured"}}
    WGS,number,key,code,median_ns,q1_ns,q3_ns,registers,after_s,sum
    64,0,r5AMUgxC,2EtVMDZfmxs,57088,56384,57536,128,13,8Q

The columns before ``number`` are parameters. What is the same in all trials is in the head: parameters with their place
among the others, and figures. Cells are as ``cell`` writes them; a figure that follows from others (rates) has an empty
one. ``sum`` is a checksum of its line, the names and the head.
"""

import csv
import io
import json
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice, product, repeat
from pathlib import Path
from typing import Any
from zlib import crc32

from ..core.config import Config, columns_of, configs_of, without_collection
from ..core.files import content_of
from ..core.schema import (
    Check,
    Unsound,
    as_json_value,
    as_name,
    as_scalar,
    as_text,
    as_word,
    mapping_of,
    members_of,
)
from .cell import JSON, number_of, value_cell, value_of_cell
from .figure import OTHERS, defaults_of, figures_of, is_near
from .trial import Trial, contradiction

TABLE, SUM = "trials.csv", "sum"
N_BLOCK = 5000  # lines that are read at a time, so that their text is not held as a whole
SUMS = [a + b for a, b in product(string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_", repeat=2)]
OF_CONFIG = "config."  # begins the column of a parameter that has the name of another column
FIGURES = {name: figure for name, figure in figures_of(Trial).items() if name not in ("config", "samples_s")}
NEEDED_COLUMNS = ("number", "status")
COLUMNS = {figure.cell.column(name): name for name, figure in FIGURES.items()}
DEFAULTS = defaults_of(Trial)
# the defaults that a class does not keep as its attributes, for each trial of a table
MADE = {name: repeat(value) for name, value in DEFAULTS.items() if not hasattr(Trial, name)}

AFTER = "after_s"  # the column of seconds from ``begun`` in the head to the end of a trial

Columns = dict[str, Sequence[Any]]
# figure -> another figure from which it follows, and how: a table does not write it, since the rest of its record tells
Known = Mapping[str, tuple[str, Callable[[Any], Any]]]


@dataclass(frozen=True)
class TrialTable:
    """Trials by column, without those whose lines are damaged.

    ``n``: how many. ``parameters``: name -> its values; None where a config does not have it. ``figures``: field of a
    trial -> its values; a field that no trial has is left out. ``others``: column of a later version -> JSON values.
    ``damaged``: number of a line -> why it is left out; 0 is the whole file.
    """

    n: int = 0
    parameters: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    figures: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    others: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    damaged: Mapping[int, str] = field(default_factory=dict)

    @staticmethod
    def of(trials: Sequence[Trial]) -> "TrialTable":
        """Returns trials by column."""
        later = dict.fromkeys(name for trial in trials for name in trial.others)
        return TrialTable(
            len(trials),
            columns_of([trial.config for trial in trials]),
            {name: [getattr(trial, name) for trial in trials] for name in figures_of(Trial) if name != "config"},
            {name: [trial.others.get(name) for trial in trials] for name in later},
        )

    def configs(self) -> list[Config]:
        """Returns the config of each trial."""
        made: dict[tuple[bool, ...], Iterator[Config]] = {}
        rows = list(zip(*self.parameters.values(), strict=True)) if self.parameters else [()] * self.n
        masks = [tuple([value is not None for value in row]) for row in rows]
        for mask in dict.fromkeys(masks):
            names = [name for name, is_there in zip(self.parameters, mask, strict=True) if is_there]
            own = [row for row, its_own in zip(rows, masks, strict=True) if its_own == mask]
            made[mask] = iter(configs_of(names, (tuple(value for value in row if value is not None) for row in own)))
        return [next(made[mask]) for mask in masks]

    @without_collection()
    def trials(self) -> list[Trial]:
        """Returns the trials in the order of the table."""
        columns = {**MADE, "config": self.configs(), **self.figures}
        names = list(columns)
        made = [_trial(dict(zip(names, row))) for row in zip(*columns.values())]  # noqa: B905
        for name, values in self.others.items():
            for trial, value in zip(made, values, strict=True):
                if value is not None:
                    vars(trial)[OTHERS] = {**trial.others, name: value}
        return made


def _trial(values: dict[str, Any]) -> Trial:
    """Returns the trial with these values and the class's defaults; ``__init__`` takes longer."""
    trial = Trial.__new__(Trial)
    object.__setattr__(trial, "__dict__", values)
    return trial


# ---------------------------------------------------------------------- writing
def table_text(trials: Sequence[Trial], known: Known) -> str:
    """Returns the text of the table. What ``known`` says is not written."""
    columns: dict[str, list[str]] = {}
    parameters: dict[str, list[object]] = {}
    for place, (name, values) in enumerate(columns_of([trial.config for trial in trials]).items()):
        cells = ["" if value is None else value_cell(value) for value in values]
        if len(set(cells)) > 1:
            columns[_place(name)] = cells
        else:
            parameters[name] = [place, cells[0]]
    begun = min((trial.at for trial in trials if _seconds_between(trial.at, trial.at) == 0), default="")
    figures = {column: cells for column, cells in _figure_cells(trials, known, begun).items() if any(cells)}
    for name in dict.fromkeys(name for trial in trials for name in trial.others):
        figures[name] = [JSON.write(trial.others[name]) if name in trial.others else "" for trial in trials]
    same = {name: cells[0] for name, cells in figures.items() if name != "number" and len(set(cells)) == 1}
    columns |= {name: cells for name, cells in figures.items() if name not in same}
    head = {"begun": begun, "parameters": parameters, "same": same}
    first = "# " + json.dumps({name: part for name, part in head.items() if part}, ensure_ascii=False)
    seed, out = _seed(first, columns), io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*columns, SUM])
    writer.writerows([*row, _sum(seed, row)] for row in zip(*columns.values(), strict=True))
    return f"{first}\n{out.getvalue()}"


def _place(parameter: str) -> str:
    return OF_CONFIG + parameter if parameter in COLUMNS or parameter == SUM else parameter


def _figure_cells(trials: Sequence[Trial], known: Known, begun: str) -> dict[str, list[str]]:
    columns = {}
    for name, figure in FIGURES.items():
        write, empty = figure.cell.write, (None, DEFAULTS.get(name)) if name not in NEEDED_COLUMNS else ()
        values = [getattr(trial, name) for trial in trials]
        if name in known:
            source, formula = known[name]
            given = [getattr(trial, source) for trial in trials]
            values = [
                None if other is not None and is_near(value, formula(other)) else value
                for value, other in zip(values, given, strict=True)
            ]
        columns[figure.cell.column(name)] = ["" if value in empty else write(value) for value in values]
    after = [_seconds_between(begun, trial.at) for trial in trials]
    if None not in after:
        columns[AFTER] = [str(seconds) for seconds in after]
        del columns["at"]
    return columns


def _seconds_between(first: str, then: str) -> int | None:
    """Returns the whole seconds between two times as trials state them; None for any other text."""
    try:
        moments = [datetime.fromisoformat(text) for text in (first, then)]
        exact = [moment.isoformat(timespec="seconds") for moment in moments]
        return int((moments[1] - moments[0]).total_seconds()) if exact == [first, then] else None
    except (ValueError, TypeError):
        return None


def _seed(head: str, names: Iterable[str]) -> int:
    return crc32("\0".join([head, *names]).encode(errors="surrogatepass"))


def _sum(seed: int, row: Sequence[str]) -> str:
    """Returns 12 bits of a CRC-32 as two characters."""
    return SUMS[crc32("\0".join(row).encode("utf-8", "surrogatepass"), seed) >> 20]


# ---------------------------------------------------------------------- reading
@without_collection()
def read_table(folder: Path, known: Known) -> TrialTable:
    """Returns the table of the sweep in ``folder``; empty if there is none.

    Raises:
        Unsound: when its head or its names cannot be read.
        OSError: when the file cannot be read.
    """
    try:
        text = content_of(folder / TABLE).decode(errors="surrogateescape")
    except FileNotFoundError:
        return TrialTable()
    first, _, rest = text.partition("\n")
    first = first.rstrip("\r")
    csv.field_size_limit(max(len(rest) + 1, csv.field_size_limit()))
    try:
        rows = csv.reader(io.StringIO(rest, newline=""), strict=True)
        names = next(rows, [])
        if names[-1:] != [SUM] or "number" not in names or len(set(names)) != len(names):
            raise Unsound(f"its columns have no number, do not end with {SUM}, or one of them is there twice")
        for name in names:
            as_name(name.removeprefix(OF_CONFIG))
        if any(name != _place(name.removeprefix(OF_CONFIG)) for name in names[: names.index("number")]):
            raise Unsound("a parameter has the name of a figure")
        reading = _Reading(_head(first), names[:-1], _seed(first, names[:-1]))
        while block := list(islice(rows, N_BLOCK)):
            reading.add(block)
    except csv.Error as error:
        raise Unsound(f"it is not a table: {error}") from error
    return reading.table(known)


_head_members = members_of(
    {
        "begun": as_text,
        "parameters": mapping_of(as_name, as_json_value),
        "same": mapping_of(as_word, as_text),
    }
)


def _head(line: str) -> dict[str, Any]:
    if not line.startswith("# "):
        raise Unsound("its first line is not a head")
    head: dict[str, Any] = _head_members(JSON.read(line[2:]))
    for value in head.get("parameters", {}).values():
        if not (isinstance(value, list) and [type(each) for each in value] == [int, str]):
            raise Unsound("a parameter in its head has no place, or no value")
    return head


NO_EMPTY = object()  # says that no cell of a column may be empty


class _CellColumn:
    """The values of a column; equal cells share their value, and are read once where there are many of them."""

    def __init__(self, name: str, read: Callable[[str], Any], check: Check, empty: Any = NO_EMPTY) -> None:
        self.values: list[Any] = []
        self._name, self._read, self._check, self._empty = name, read, check, empty
        self._known: dict[str, Any] = {} if empty is NO_EMPTY else {"": empty}

    def add(self, cells: Sequence[str]) -> dict[int, str]:
        """Adds the values of more cells; returns place -> what is wrong there."""
        read, check, known, damaged = self._read, self._check, self._known, dict[int, str]()
        distinct = set(cells)
        try:
            if 2 * len(distinct) > len(cells) > 1:
                if "" in distinct and "" in known:
                    self.values += [check(read(cell)) if cell else self._empty for cell in cells]
                else:
                    self.values += list(map(check, map(read, cells)))
                return damaged
            known |= {cell: check(read(cell)) for cell in distinct - known.keys()}
        except (ValueError, OverflowError, RecursionError):  # look for the cells
            for cell in distinct - known.keys():
                try:
                    known[cell] = check(read(cell))
                except (ValueError, OverflowError, RecursionError) as error:
                    known[cell] = self._empty
                    damaged |= {i: f"{self._name} {error}" for i, each in enumerate(cells) if each == cell}
        self.values += [known[cell] for cell in cells]
        return damaged


class _Reading:
    """A table while it is read, in blocks. Lines with a wrong checksum, or an unsound cell, are left out."""

    def __init__(self, head: Mapping[str, Any], names: list[str], seed: int) -> None:
        self.damaged: dict[int, str] = {}
        self._names, self._seed, self._begun = names, seed, head.get("begun", "")
        self._lines: list[int] = []
        self._seen: set[int] = set()  # hashes of the rows so far
        self._n_read = 2  # lines: the head, and the names
        parameters = {name.removeprefix(OF_CONFIG): None for name in names[: names.index("number")]}
        for name, (place, cell) in head.get("parameters", {}).items():
            pairs = list(parameters.items())
            parameters = dict([*pairs[:place], (name, cell), *pairs[place:]])
        same = dict(head.get("same", {}))
        if lacking := [name for name in NEEDED_COLUMNS if name not in {*names, *same}]:
            raise Unsound(f"it lacks the column {lacking[0]}")
        self._columns = {name: self._column(name) for name in (*names[names.index("number") :], *same)}
        self._parameters = {name: _CellColumn(name, value_of_cell, as_scalar, None) for name in parameters}
        self._same = {**{_place(name): cell for name, cell in parameters.items() if cell is not None}, **same}

    def _column(self, name: str) -> "_CellColumn":
        if name == AFTER:
            return _CellColumn(name, self._moment, str, "")
        if name in COLUMNS:
            figure = FIGURES[COLUMNS[name]]
            empty = NO_EMPTY if name in NEEDED_COLUMNS else DEFAULTS.get(COLUMNS[name])
            return _CellColumn(name, figure.cell.read, figure.check, empty)
        return _CellColumn(name, JSON.read, as_json_value, None)

    def _moment(self, cell: str) -> str:
        begun = datetime.fromisoformat(self._begun)
        return (begun + timedelta(seconds=number_of(cell))).isoformat(timespec="seconds")

    def add(self, rows: list[list[str]]) -> None:
        """Reads the next rows."""
        n_cells, seed, lines, kept = len(self._names) + 1, self._seed, [], []
        for line, row in enumerate(rows, self._n_read + 1):
            sum_ = row.pop() if len(row) == n_cells else None
            if sum_ is not None and _sum(seed, row) == sum_:
                if (whole := hash(tuple(row))) in self._seen:
                    self.damaged[line] = "it repeats another line"
                    continue
                self._seen.add(whole)
                lines.append(line)
                kept.append(row)
            else:
                wrong = f"it has {len(row)} cells, and there are {n_cells} columns"
                self.damaged[line] = wrong if sum_ is None else "it does not have the checksum that it states"
        self._n_read += len(rows)
        self._lines += lines
        cells: dict[str, Sequence[str]] = dict(zip(self._names, zip(*kept, strict=True), strict=False))
        cells |= {name: [cell] * len(kept) for name, cell in self._same.items() if name not in cells}
        parameters = ((_place(name), column) for name, column in self._parameters.items())
        for name, column in (*self._columns.items(), *parameters):
            for i, why in column.add(cells.get(name, ())).items():
                self.damaged.setdefault(lines[i], why)

    def table(self, known: Known) -> TrialTable:
        """Returns the whole table."""
        parameters: Columns = {name: column.values for name, column in self._parameters.items()}
        figures: Columns = {COLUMNS[name]: each.values for name, each in self._columns.items() if name in COLUMNS}
        if AFTER in self._columns:
            figures["at"] = self._columns[AFTER].values
        others: Columns = {n: each.values for n, each in self._columns.items() if n not in COLUMNS and n != AFTER}
        self._check_times(figures)
        good = [i for i, line in enumerate(self._lines) if line not in self.damaged]
        if len(good) < len(self._lines):
            parameters, figures, others = (_only(good, each) for each in (parameters, figures, others))
        return TrialTable(len(good), parameters, _filled(figures, known), others, self.damaged)

    def _check_times(self, figures: Mapping[str, Sequence[Any]]) -> None:
        """Leaves out rows whose times contradict their status or each other."""
        n = len(self._lines)
        times = [figures.get(name) or [None] * n for name in ("status", "median_s", "q1_s", "q3_s")]
        for i, (status, median_s, q1_s, q3_s) in enumerate(zip(*times, strict=True)):
            if median_s is not None and (why := contradiction(status, median_s, q1_s, q3_s)):
                self.damaged.setdefault(self._lines[i], why)


def _only(rows: Sequence[int], columns: Columns) -> Columns:
    return {name: [values[i] for i in rows] for name, values in columns.items()}


def _filled(figures: Columns, known: Known) -> Columns:
    """Returns the figures with those that follow from others."""
    for name, (source, formula) in known.items():
        n = max(len(figures.get(each, ())) for each in (source, name))
        others, given = (figures.get(each) or [DEFAULTS.get(each)] * n for each in (source, name))
        blank = DEFAULTS.get(name)
        figures[name] = [
            formula(other) if value == blank and other is not None and other != "" else value
            for value, other in zip(given, others, strict=True)
        ]
    return {name: values for name, values in figures.items() if values}
