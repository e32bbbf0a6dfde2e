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
from pathlib import Path
from typing import Any
from zlib import crc32

from ..core.config import Config, columns_of, configs_of
from ..core.files import content_of, write_whole
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
SIX_BITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
OF_CONFIG = "config."  # begins the column of a parameter that has the name of another column
FIGURES = {name: figure for name, figure in figures_of(Trial).items() if name not in ("config", "samples_s")}
NEEDED_COLUMNS = ("number", "status")
COLUMNS = {figure.cell.column(name): name for name, figure in FIGURES.items()}
DEFAULTS = defaults_of(Trial)

AFTER = "after_s"  # the column of seconds from ``begun`` in the head to the end of a trial


# figure -> another figure from which it follows, and how: a table does not write it, since the rest of its record tells
Known = Mapping[str, tuple[str, Callable[[Any], Any]]]


@dataclass(frozen=True)
class Table:
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
    def of(trials: Sequence[Trial]) -> "Table":
        """Returns trials by column."""
        later = dict.fromkeys(name for trial in trials for name in trial.others)
        return Table(
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

    def trials(self) -> list[Trial]:
        """Returns the trials in the order of the table."""
        names = list(self.figures)
        rows: Iterable[tuple[Any, ...]] = zip(*self.figures.values(), strict=True) if names else ()
        pairs = zip(self.configs(), rows, strict=True)
        made = [Trial(config=config, **dict(zip(names, row, strict=True))) for config, row in pairs]
        for name, values in self.others.items():
            for trial, value in zip(made, values, strict=True):
                if value is not None:
                    vars(trial)[OTHERS] = {**trial.others, name: value}
        return made


# ---------------------------------------------------------------------- writing
def write_table(folder: Path, trials: Sequence[Trial], known: Known) -> None:
    """Writes the table of these trials whole, and flushes it to the disk."""
    write_whole(folder / TABLE, text_of(trials, known).encode(errors="surrogateescape"), is_durable=True)


def text_of(trials: Sequence[Trial], known: Known) -> str:
    """Returns the text of the table. What ``known`` says is not written."""
    columns: dict[str, list[str]] = {}
    parameters: dict[str, list[object]] = {}
    for place, (name, values) in enumerate(columns_of([trial.config for trial in trials]).items()):
        cells = ["" if value is None else value_cell(value) for value in values]
        if len(set(cells)) > 1:
            columns[_column(name)] = cells
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


def _column(parameter: str) -> str:
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
    bits = crc32("\0".join(row).encode(errors="surrogatepass"), seed)
    return SIX_BITS[bits >> 26] + SIX_BITS[bits >> 20 & 63]


# ---------------------------------------------------------------------- reading
def read_table(folder: Path, known: Known) -> Table:
    """Returns the table of the sweep in ``folder``; empty if there is none.

    Raises:
        Unsound: when its head or its names cannot be read.
        OSError: when the file cannot be read.
    """
    try:
        text = content_of(folder / TABLE).decode(errors="surrogateescape")
    except FileNotFoundError:
        return Table()
    first, _, rest = text.partition("\n")
    first = first.rstrip("\r")
    csv.field_size_limit(max(len(rest) + 1, csv.field_size_limit()))
    try:
        names, *rows = csv.reader(io.StringIO(rest, newline=""), strict=True)
    except (ValueError, csv.Error) as error:
        raise Unsound(f"it is no table: {error}") from error
    if names[-1:] != [SUM] or "number" not in names or len(set(names)) != len(names):
        raise Unsound(f"its columns have no number, do not end with {SUM}, or one of them is there twice")
    return _Reading(_head(first), names[:-1], rows, _seed(first, names[:-1])).table(known)


_head_members = members_of(
    {
        "begun": as_text,
        "parameters": mapping_of(as_name, as_json_value),
        "same": mapping_of(as_word, as_text),
    }
)


def _head(line: str) -> dict[str, Any]:
    if not line.startswith("# "):
        raise Unsound("its first line is no head")
    head: dict[str, Any] = _head_members(JSON.read(line[2:]))
    for value in head.get("parameters", {}).values():
        if not (isinstance(value, list) and [type(each) for each in value] == [int, str]):
            raise Unsound("a parameter in its head has no place, or no value")
    return head


class _Reading:
    """A table while it is read. Lines with a wrong checksum, or an unsound cell, are left out."""

    def __init__(self, head: Mapping[str, Any], names: list[str], rows: list[list[str]], seed: int) -> None:
        self.damaged: dict[int, str] = {}
        self._lines, kept = [], []
        for line, row in enumerate(rows, 3):
            if len(row) != len(names) + 1:
                self.damaged[line] = f"it has {len(row)} cells, and there are {len(names) + 1} columns"
            elif _sum(seed, row[:-1]) != row[-1]:
                self.damaged[line] = "it does not have the checksum that it states"
            else:
                self._lines.append(line)
                kept.append(row)
        n, self._begun = len(kept), head.get("begun", "")
        cells: dict[str, Sequence[str]] = dict(zip(names, zip(*kept, strict=True), strict=False))
        of_config = names[: names.index("number")]
        self._figures: dict[str, Sequence[str]] = {name: [cell] * n for name, cell in head.get("same", {}).items()}
        self._figures |= {name: cells.get(name, ()) for name in names[len(of_config) :]}
        self._config = {name.removeprefix(OF_CONFIG): cells.get(name, ()) for name in of_config}
        for name, (place, cell) in head.get("parameters", {}).items():
            pairs = list(self._config.items())
            self._config = dict([*pairs[:place], (name, [cell] * n), *pairs[place:]])

    def table(self, known: Known) -> Table:
        """Returns the table. Raises Unsound when a column is missing."""
        if not self._lines:
            return Table(damaged=self.damaged)
        if lacking := [name for name in NEEDED_COLUMNS if name not in self._figures]:
            raise Unsound(f"it lacks the column {lacking[0]}")
        parameters: dict[str, Sequence[Any]] = {}
        parameters |= {n: self._values(n, cells, value_of_cell, as_scalar, None) for n, cells in self._config.items()}
        after = self._figures.pop(AFTER, None)
        figures: dict[str, Sequence[Any]] = {}
        for column, name in COLUMNS.items():
            if (cells := self._figures.pop(column, None)) is not None:
                figure = FIGURES[name]
                figures[name] = self._values(column, cells, figure.cell.read, figure.check, DEFAULTS.get(name))
        if after is not None:
            figures["at"] = self._values(AFTER, after, self._moment, str, "")
        others: dict[str, Sequence[Any]] = {}
        others |= {n: self._values(n, cells, JSON.read, as_json_value, None) for n, cells in self._figures.items()}
        self._check_times(figures)
        good = [i for i, line in enumerate(self._lines) if line not in self.damaged]
        if len(good) < len(self._lines):
            parameters, figures, others = (_only(good, each) for each in (parameters, figures, others))
        return Table(len(good), parameters, _filled(figures, known), others, self.damaged)

    def _moment(self, cell: str) -> str:
        begun = datetime.fromisoformat(self._begun)
        return (begun + timedelta(seconds=number_of(cell))).isoformat(timespec="seconds")

    def _values(
        self, name: str, cells: Sequence[str], read: Callable[[str], Any], check: Check, empty: Any
    ) -> list[Any]:
        """Returns the values of a column; equal cells are read once, and share their value."""
        values: dict[str, Any] = {"": empty}
        for cell in set(cells) - {""}:
            try:
                values[cell] = check(read(cell))
            except (ValueError, OverflowError, RecursionError) as error:
                values[cell] = empty
                self._leave_out((i for i, each in enumerate(cells) if each == cell), f"{name} {error}")
        return [values[cell] for cell in cells]

    def _leave_out(self, rows: Iterable[int], why: str) -> None:
        for i in rows:
            self.damaged.setdefault(self._lines[i], why)

    def _check_times(self, figures: Mapping[str, Sequence[Any]]) -> None:
        """Leaves out rows whose times contradict their status or each other."""
        n = len(self._lines)
        times = [figures.get(name) or [None] * n for name in ("status", "median_s", "q1_s", "q3_s")]
        for i, (status, median_s, q1_s, q3_s) in enumerate(zip(*times, strict=True)):
            if median_s is not None and (why := contradiction(status, median_s, q1_s, q3_s)):
                self._leave_out([i], why)


def _only(rows: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    return {name: [values[i] for i in rows] for name, values in columns.items()}


def _filled(figures: dict[str, Sequence[Any]], known: Known) -> dict[str, Sequence[Any]]:
    """Returns the figures with those that follow from others."""
    for name, (source, formula) in known.items():
        others = figures.get(source, ())
        given = figures.get(name) or [DEFAULTS.get(name)] * len(others)
        figures[name] = [
            formula(other) if value == DEFAULTS.get(name) and other is not None else value
            for value, other in zip(given, others, strict=True)
        ]
    return {name: values for name, values in figures.items() if values}
