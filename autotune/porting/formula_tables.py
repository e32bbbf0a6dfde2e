"""What only Python functions of a call can say: for each config its launch, its macros and its source."""

from dataclasses import dataclass, field

from .formulas import Formulas


@dataclass(frozen=True)
class Row:
    """A config that functions allow, and what they say of it."""

    config: tuple[object, ...]
    grid: tuple[int, int, int]
    shared_bytes: int
    defines: str  # lines before the source
    source: int = 0  # number of its text, if each config has its own


@dataclass(frozen=True)
class FormulaTable:
    """All rows, and the texts that they name; no text where all have the same."""

    rows: tuple[Row, ...]
    sources: tuple[str, ...] = field(default=(), repr=False)


def table_of(formulas: Formulas) -> FormulaTable | None:
    """Returns what functions say of each config; None where texts say everything.

    Raises:
        UsageError: when there are too many configs to ask about each.
    """
    call = formulas.call
    if not call.has_functions:
        return None
    numbers: dict[str, int] = {}
    rows = []
    for config in call.configs():
        text = call.source.text if call.generate is None else call.generated(config)
        number, said = numbers.setdefault(text, len(numbers)), formulas.said(config)
        rows.append(Row(tuple(config.values()), said.grid, said.shared_bytes, said.defines, number))
    return FormulaTable(tuple(rows), tuple(numbers) if len(numbers) > 1 else ())
