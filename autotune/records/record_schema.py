"""Checks the files of a recorded sweep field by field; docs/results.md explains each field."""

from typing import Any

from ..core.errors import Status
from ..core.schema import (
    Unsound,
    amount,
    anything,
    config,
    count,
    device,
    fields,
    integer,
    mapping,
    name,
    number,
    optional,
    scalar,
    sealed,
    seconds,
    sequence,
    shown,
    text,
    word,
)
from .figure import figures_of
from .trial import Trial

FORMAT = 1
ROUNDING = 1e-9  # relative rounding error of quartiles and means


class Newer(Unsound):
    """The file was written by a later version, whose format is unknown."""


def _digits(value: Any) -> str:
    """Checks for the number of a trial as a member's name."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return value
    raise Unsound(f"is {shown(value)}, must be the number of a trial")


# ---------------------------------------------------------------------- a line of trials.jsonl
TRIAL = {field: figure.check for field, figure in figures_of(Trial).items()}
SUM = "sum"  # the member of a line that holds its checksum
_TRIAL = tuple(TRIAL.items())
_NEEDED = ("number", "status", "config", "key", "stamp")
_others = mapping(name, anything)


def trial(row: Any) -> dict[str, Any]:
    """Returns the fields of a trial; ``others`` are those that a later version added, checked for what JSON may hold.

    Raises:
        Unsound: when one is missing or cannot be, or when they contradict each other.
    """
    if not isinstance(row, dict):
        raise Unsound("it is not a JSON object")
    for field in _NEEDED:
        if field not in row:
            raise Unsound(f"it lacks {field}")
    field, found = "", {}
    try:
        for field, check in _TRIAL:
            if field in row:
                found[field] = check(row[field])
        if len(found) + (SUM in row) < len(row):
            others = {field: value for field, value in row.items() if field not in TRIAL and field != SUM}
            field, found["others"] = "a field of a later version", _others(others)
    except Unsound as error:
        raise Unsound(f"{field} {error}") from None
    _check_times(found)
    return found


def _check_times(row: dict[str, Any]) -> None:
    """Checks that only measured trials have times, with the median within quartiles and samples."""
    median_s, q1_s, q3_s, samples_s = (row.get(n) for n in ("median_s", "q1_s", "q3_s", "samples_s"))
    if median_s is None:
        return
    if row["status"] != Status.MEASURED:
        raise Unsound(f"its status is {row['status']}, and it has a median")
    low, high = median_s * (1 - ROUNDING), median_s * (1 + ROUNDING)
    if (q1_s or 0.0) > high or (q3_s or high) < low:
        raise Unsound(f"the median {median_s:g} s is not between the quartiles {q1_s} s and {q3_s} s")
    if samples_s and not (min(samples_s) <= high and max(samples_s) >= low):
        raise Unsound(f"the median {median_s:g} s is not among its samples")


# ---------------------------------------------------------------------- sweep.json
problem = mapping(name, anything)

_added = fields(
    {"name": name, "since": scalar, "condition": mapping(name, sequence(optional(scalar)))},
    needed=("name", "since", "condition"),
)
_sweep = fields(
    {
        "format": count,
        "kernel": name,
        "definition": text,
        "problem": problem,
        **dict.fromkeys(("baked", "runtime"), sequence(name)),
        "device": device,
        **dict.fromkeys(("clock", "compiler", "started", "machine", "commit"), text),
        "default": config,
        "refused": mapping(text, count),
        "stale": sequence(count),
        "space": mapping(name, sequence(scalar)),
        "added": sequence(_added),
        "settings": mapping(text, anything),
        "versions": mapping(text, text),
    },
    needed=("kernel", "problem", "device", "default"),
    other=anything,
)


def sweep(content: Any) -> dict[str, Any]:
    """Returns the content of sweep.json.

    Raises:
        Newer: when a later version wrote it.
        Unsound: when something is missing or cannot be.
    """
    check_format(content, FORMAT)
    about: dict[str, Any] = _sweep(sealed(content))
    for kind in ("baked", "runtime"):
        if unknown := [field for field in about.get(kind, ()) if field not in about["problem"]]:
            raise Unsound(f"{kind} names {unknown[0]}, which is no field of problem")
    return about


def check_format(content: Any, known: int) -> None:
    """Raises Newer when a later version wrote ``content``."""
    written = content.get("format", known) if isinstance(content, dict) else known
    if type(written) is int and written > known:
        raise Newer(f"was written by a newer autotune (format {written}, this one knows {known}): update autotune")


# ---------------------------------------------------------------------- verdict.json
_row = fields(
    {
        **TRIAL,
        "median_s": seconds,
        "interval_s": sequence(seconds, 2),
        "relation": word,
        "sustained": fields(
            {"short_s": seconds, "sustained_s": seconds, "n": count, "duration_s": amount, "joules": optional(amount)},
            needed=("short_s", "sustained_s", "n"),
        ),
        "checked_launches": count,
    },
    needed=("config", "median_s"),
    other=anything,
)
_ALWAYS = ("number", "key", "q1_s", "q3_s", "clock_hz", "registers", "shared_bytes", "spill_bytes", "max_error")


def finalist(value: Any) -> dict[str, Any]:
    """Checks a config of the final round; missing optional fields become None."""
    row: dict[str, Any] = _row(value)
    return {**dict.fromkeys(_ALWAYS), **row}


_verdict = fields(
    {
        "winner": finalist,
        "default": optional(finalist),
        "speed_up": optional(amount),
        "objectives": sequence(text),
        "ties": sequence(integer),
        "preference_among_ties": text,
        **dict.fromkeys(("finalist_samples", "placements", "checked_launches"), count),
        **dict.fromkeys(("n_configs", "compile_processes"), count),
        "finalists": sequence(finalist),
        "counts": mapping(word, count),
        "stamps": mapping(_digits, word),
        "ceilings": optional(mapping(word, anything)),
        "spent_s": mapping(word, amount),
        "idle_share": number,
    },
    needed=("winner",),
    other=anything,
)


def verdict(content: Any) -> dict[str, Any]:
    """Returns the content of verdict.json; without a final round ``finalists`` is ().

    Raises:
        Unsound: when something is missing or cannot be.
    """
    found: dict[str, Any] = {"finalists": (), **_verdict(sealed(content))}
    if found["finalists"] and not any(f["config"] == found["winner"]["config"] for f in found["finalists"]):
        raise Unsound("the winner is none of the finalists")
    return found


# ---------------------------------------------------------------------- digests.json
_digests = fields(
    {
        "codes": mapping(text, mapping(_digits, word)),
        "conditions": mapping(_digits, word),
        "texts": mapping(text, mapping(word, word)),
    },
    needed=("codes", "conditions"),
)


def digests(content: Any) -> dict[str, Any]:
    """Returns the content of digests.json. Raises Unsound when something is missing or cannot be."""
    found: dict[str, Any] = _digests(sealed(content))
    return found
