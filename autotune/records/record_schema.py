"""Checks the files of a recorded sweep field by field; docs/results.md explains each field."""

from typing import Any

from ..core.errors import Status
from ..core.schema import (
    Unsound,
    as_amount,
    as_config,
    as_count,
    as_device,
    as_integer,
    as_json_value,
    as_name,
    as_number,
    as_scalar,
    as_seconds,
    as_text,
    as_word,
    mapping_of,
    members_of,
    optional,
    sealed,
    sequence_of,
    value_text,
)
from .figure import figures_of
from .trial import Trial

FORMAT = 1
ROUNDING = 1e-9  # relative rounding error of quartiles and means


class Newer(Unsound):
    """A later version wrote the file, in an unknown format."""


def _digits(value: object) -> str:
    """Checks that a member's name is the number of a trial."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return value
    raise Unsound(f"is {value_text(value)}, must be the number of a trial")


# ---------------------------------------------------------------------- a line of trials.jsonl
TRIAL = {field: figure.check for field, figure in figures_of(Trial).items()}
SUM = "sum"  # the member of a line that contains its checksum
_TRIAL = tuple(TRIAL.items())
_NEEDED = ("number", "status", "config", "key", "stamp")
_others = mapping_of(as_name, as_json_value)


def as_trial(row: object) -> dict[str, Any]:
    """Returns the fields of a trial; ``others``: fields of a later version, checked as plain JSON.

    Raises:
        Unsound: when a field is missing or invalid, or when fields contradict each other.
    """
    if not isinstance(row, dict):
        raise Unsound("it is not a JSON object")
    for field in _NEEDED:
        if field not in row:
            raise Unsound(f"it lacks {field}")
    field, fields = "", {}
    try:
        for field, check in _TRIAL:
            if field in row:
                fields[field] = check(row[field])
        if len(fields) + (SUM in row) < len(row):
            others = {field: value for field, value in row.items() if field not in TRIAL and field != SUM}
            field, fields["others"] = "a field of a later version", _others(others)
    except Unsound as error:
        raise Unsound(f"{field} {error}") from None
    _check_times(fields)
    return fields


def _check_times(row: dict[str, Any]) -> None:
    """Checks that only measured trials have times, and that the median lies within quartiles and samples."""
    median_s, q1_s, q3_s, samples_s = (row.get(n) for n in ("median_s", "q1_s", "q3_s", "samples_s"))
    if median_s is None:
        return
    if row["status"] != Status.MEASURED:
        raise Unsound(f"its status is {row['status']}, but it has a median")
    low, high = median_s * (1 - ROUNDING), median_s * (1 + ROUNDING)
    if (q1_s or 0.0) > high or (q3_s or high) < low:
        raise Unsound(f"the median {median_s:g} s is not between the quartiles {q1_s} s and {q3_s} s")
    if samples_s and not (min(samples_s) <= high and max(samples_s) >= low):
        raise Unsound(f"the median {median_s:g} s is not among its samples")


# ---------------------------------------------------------------------- sweep.json
problem = mapping_of(as_name, as_json_value)

_added = members_of(
    {"name": as_name, "since": as_scalar, "condition": mapping_of(as_name, sequence_of(optional(as_scalar)))},
    needed=("name", "since", "condition"),
)
_sweep = members_of(
    {
        "format": as_count,
        "kernel": as_name,
        "definition": as_text,
        "problem": problem,
        **dict.fromkeys(("baked", "runtime"), sequence_of(as_name)),
        "device": as_device,
        **dict.fromkeys(("clock", "compiler", "started", "machine", "commit"), as_text),
        "default": as_config,
        "refused": mapping_of(as_text, as_count),
        "stale": sequence_of(as_count),
        "space": mapping_of(as_name, sequence_of(as_scalar)),
        "n_before": as_count,
        "added": sequence_of(_added),
        "settings": mapping_of(as_text, as_json_value),
        "versions": mapping_of(as_text, as_text),
    },
    needed=("kernel", "problem", "device", "default"),
    other=as_json_value,
)


def as_sweep(content: object) -> dict[str, object]:
    """Returns the content of sweep.json.

    Raises:
        Newer: when a later version wrote it.
        Unsound: when a member is missing or invalid.
    """
    check_format(content, FORMAT)
    about: dict[str, Any] = _sweep(sealed(content))
    for kind in ("baked", "runtime"):
        if unknown := [field for field in about.get(kind, ()) if field not in about["problem"]]:
            raise Unsound(f"{kind} names {unknown[0]}, which is not a field of problem")
    return about


def check_format(content: Any, known: int) -> None:
    """Raises Newer when a later version wrote ``content``."""
    written = content.get("format", known) if isinstance(content, dict) else known
    if type(written) is int and written > known:
        raise Newer(f"was written by a newer autotune (format {written}, this one knows {known}): update autotune")


# ---------------------------------------------------------------------- verdict.json
_row = members_of(
    {
        **TRIAL,
        "median_s": as_seconds,
        "interval_s": sequence_of(as_seconds, 2),
        "relation": as_word,
        "sustained": members_of(
            {
                "short_s": as_seconds,
                "sustained_s": as_seconds,
                "n": as_count,
                "duration_s": as_amount,
                "joules": optional(as_amount),
            },
            needed=("short_s", "sustained_s", "n"),
        ),
        "checked_launches": as_count,
    },
    needed=("config", "median_s"),
    other=as_json_value,
)
_ALWAYS = ("number", "key", "q1_s", "q3_s", "clock_hz", "registers", "shared_bytes", "spill_bytes", "max_error")


def as_finalist(value: Any) -> dict[str, object]:
    """Checks a config of the final round; missing optional fields become None."""
    row: dict[str, object] = _row(value)
    return {**dict.fromkeys(_ALWAYS), **row}


_verdict = members_of(
    {
        "winner": as_finalist,
        "default": optional(as_finalist),
        "speed_up": optional(as_amount),
        "objectives": sequence_of(as_text),
        "ties": sequence_of(as_integer),
        "preference_among_ties": as_text,
        **dict.fromkeys(("finalist_samples", "placements", "checked_launches"), as_count),
        **dict.fromkeys(("n_configs", "compile_processes"), as_count),
        "finalists": sequence_of(as_finalist),
        "counts": mapping_of(as_word, as_count),
        "stamps": mapping_of(_digits, as_word),
        "ceilings": optional(mapping_of(as_word, as_json_value)),
        "spent_s": mapping_of(as_word, as_amount),
        "idle_share": as_number,
    },
    needed=("winner",),
    other=as_json_value,
)


def as_verdict(content: object) -> dict[str, object]:
    """Returns the content of verdict.json; without a final round ``finalists`` is ().

    Raises:
        Unsound: when a member is missing or invalid.
    """
    verdict: dict[str, Any] = {"finalists": (), **_verdict(sealed(content))}
    if verdict["finalists"] and not any(f["config"] == verdict["winner"]["config"] for f in verdict["finalists"]):
        raise Unsound("the winner is not among the finalists")
    return verdict


# ---------------------------------------------------------------------- digests.json
_digests = members_of(
    {
        "codes": mapping_of(as_text, mapping_of(_digits, as_word)),
        "conditions": mapping_of(_digits, as_word),
        "texts": mapping_of(as_text, mapping_of(as_word, as_word)),
    },
    needed=("codes", "conditions"),
)


def as_digests(content: Any) -> dict[str, Any]:
    """Returns the content of digests.json. Raises Unsound when a member is missing or invalid."""
    digests: dict[str, Any] = _digests(sealed(content))
    return digests
