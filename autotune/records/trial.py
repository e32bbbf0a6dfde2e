"""The record of a trial: one config, its status, and all figures."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import partial
from typing import Annotated, Any, TypeVar

from ..core.config import Config, as_config
from ..core.errors import Status, TrialFailure
from ..core.schema import (
    Unsound,
    as_amount,
    as_count,
    as_flag,
    as_name,
    as_number,
    as_seconds,
    as_text,
    as_word,
    mapping_of,
    members_of,
    one_of,
    optional,
    sequence_of,
    value_text,
)
from .cell import DIGEST, EXTENT, FLAG, JSON, LAUNCHES, TEXT, WORDS, rounded, samples_of, samples_text
from .figure import Figure, checked_fields, defaults_of, figures_of

MOST_TRIALS = 10**7  # more than one sweep can hold
_STALE = "([stale trials](design/trial.md#stale-trials))"
_CONFIG = "the parameters; in tables, one column each, empty where a config does not have the parameter"
_EFFICIENCY = "the least time by the measured roofline, over the median"
_METRICS = "the values of the sweep's own [metrics](objectives.md); in tables `metric.<name>`"
_SIZES = (
    "the number of the rule by which its edge sizes were drawn, and the seed, from which they follow (`show` lists "
    "them); the trial whose output stood in for NumPy's at the timed size, and the parts of it that NumPy computed, too"
)
_SAME = "the trial with this machine code and these launches, which was measured: all figures are its own"
_VERIFIED = "in older records, the problems it was checked at; the last is the timed one"
_CHECKS = "the [checks](#checks) that it passed; older records do not say"
_CHECKED_ON = "the device that made these checks of the same machine code, if it is not that of the times"
_IDENTITY = "the variant's hash; the hash of all other texts that the outcome depends on"
_CODE = (
    "the compiler; the digest of the machine code; where it was verified, the digest of geometry, mathematics and "
    f"protocol {_STALE}"
)
_FAILURE = "why it failed"
_WALL = "wall times; missing where the step failed"
_MEMORY = "shared memory of a block, static and dynamic; spilled by a thread"
_GEOMETRY = "launch geometry, three numbers each"
_SEVERAL = (
    "of [several launches](kernels-launches.md) each one's function, geometry and figures, those above being the "
    "largest; bytes of the workspace"
)
_TIME = "time of one launch: median, quartiles, number of samples; the samples only in verdict.json"
_TAKEN = (
    "whether the L2 was flushed before each sample; whether measuring was cut short because the config was clearly "
    "slower; samples thrown away because the clock was throttled"
)
_RATE = "rate at which the work that every variant must do was done"
_ENERGY = (
    "energy of one of many back-to-back launches, and the mean power meanwhile, of the whole device; missing where "
    "nobody asked"
)
_ERROR = "relative to rms(reference), over all verified sizes"


def trial_number(value: Any) -> int:
    """Checks for the number of a trial."""
    if as_count(value) < MOST_TRIALS:
        return int(value)
    raise Unsound(f"is {value}, must be less than {MOST_TRIALS}")


def trial_number_text(value: object) -> str:
    """Checks for the number of a trial as the name of a member."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < len(str(MOST_TRIALS)):
        return value
    raise Unsound(f"is {value_text(value)}, must be the number of a trial")


_status_word = one_of([status.value for status in Status])


def _status(value: object) -> Status:
    return Status(_status_word(value))


_launch = members_of(
    {
        "function": as_name,
        **dict.fromkeys(("grid", "block"), sequence_of(as_count)),
        **dict.fromkeys(("registers", "spill_bytes", "shared_bytes"), optional(as_count)),
    },
    needed=("function", "grid", "block"),
)
_samples = sequence_of(as_seconds)


def _as_samples(value: object) -> Any:
    """Checks samples, as a list or as the text of ``samples_text``."""
    return _samples(samples_of(value) if isinstance(value, str) else value)


_amount, _count, _seconds, _sizes = map(optional, (as_amount, as_count, as_seconds, sequence_of(as_count)))
_NS, _MS, _MHZ, _3_DIGITS = rounded(7, "n"), rounded(2, "m", 0.1), rounded(4, "M"), rounded(3)
_number = partial(Figure, in_exports=True, in_metrics=True)
_final = partial(Figure, in_verdict=True, in_exports=True, in_metrics=True)
_time = partial(Figure, _seconds, _TIME, "s", cell=_NS, in_verdict=True)
_wall = partial(Figure, _amount, _WALL, "s", cell=_MS)
_digest = partial(Figure, as_word, cell=DIGEST, in_verdict=True)


NEEDED = ("number", "status", "config")
OF_OLDER = ("reproduce", "sum")  # members of lines that follow from others
OF_TIMES = (  # figures that only a config without a fault has
    *("n_samples", "median_s", "q1_s", "q3_s", "gb_per_s", "tflop_per_s", "efficiency", "joules", "watts"),
)
ROUNDING = 1e-6  # relative rounding error of medians and quartiles


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The trial of one config: the status with which it ended, why, and everything that was measured.

    Times are in seconds of the device clock that the sweep names. A field that is added here with its Figure is
    recorded and checked, and becomes a column of tables and a row of docs/record.md; the Figure's flags add further
    places.
    """

    number: Annotated[int, Figure(trial_number, "the trial's number in its sweep, from 0", in_verdict=True)]
    status: Annotated[
        Status, Figure(_status, "see [sweeps.md](sweeps.md); only `measured` has times", cell=TEXT, in_exports=True)
    ]
    config: Annotated[Config, Figure(as_config, _CONFIG, plain=dict, in_verdict=True)]
    key: Annotated[str | None, Figure(optional(as_word), _IDENTITY, cell=DIGEST, in_verdict=True, in_exports=True)] = (
        None
    )
    stamp: Annotated[str, Figure(as_word, _IDENTITY, cell=DIGEST)] = ""
    compiler: Annotated[str, Figure(as_text, _CODE, cell=TEXT, in_verdict=True)] = ""
    code: Annotated[str, _digest(_CODE)] = ""
    conditions: Annotated[str, _digest(_CODE)] = ""
    message: Annotated[str, Figure(as_text, _FAILURE, cell=TEXT, in_exports=True)] = ""
    at: Annotated[str, Figure(as_text, "when it ended", "UTC", cell=TEXT)] = ""
    compile_s: Annotated[float | None, _wall(in_metrics=True)] = None
    verify_s: Annotated[float | None, _wall()] = None
    measure_s: Annotated[float | None, _wall()] = None
    registers: Annotated[int | None, _final(_count, "registers of a thread", "per thread", "registers")] = None
    shared_bytes: Annotated[int | None, _final(_count, _MEMORY, "bytes", "shared bytes")] = None
    spill_bytes: Annotated[int | None, _final(_count, _MEMORY, "bytes", "bytes spilled")] = None
    grid: Annotated[tuple[int, ...] | None, Figure(_sizes, _GEOMETRY, "blocks", cell=EXTENT, in_exports=True)] = None
    block: Annotated[tuple[int, ...] | None, Figure(_sizes, _GEOMETRY, "threads", cell=EXTENT, in_exports=True)] = None
    launches: Annotated[
        tuple[Mapping[str, object], ...], Figure(sequence_of(_launch), _SEVERAL, cell=LAUNCHES, plain=list)
    ] = ()
    workspace_bytes: Annotated[int, Figure(as_count, _SEVERAL, "bytes")] = 0
    median_s: Annotated[float | None, _time()] = None
    q1_s: Annotated[float | None, _time()] = None
    q3_s: Annotated[float | None, _time()] = None
    n_samples: Annotated[int | None, Figure(_count, _TIME)] = None
    samples_s: Annotated[tuple[float, ...], Figure(_as_samples, _TIME, "s", plain=samples_text, in_verdict=True)] = ()
    cold: Annotated[bool | None, Figure(optional(as_flag), _TAKEN, cell=FLAG, in_verdict=True)] = None
    stopped_early: Annotated[bool | None, Figure(optional(as_flag), _TAKEN, cell=FLAG)] = None
    n_throttled: Annotated[int | None, _number(_count, _TAKEN, "samples")] = None
    clock_hz: Annotated[float | None, _final(_amount, "median SM clock; 0 where there is none", "Hz", cell=_MHZ)] = None
    gb_per_s: Annotated[float | None, _number(_amount, _RATE, "GB/s", cell=rounded(7))] = None
    tflop_per_s: Annotated[float | None, _number(_amount, _RATE, "TFLOP/s", cell=rounded(7))] = None
    efficiency: Annotated[float | None, _number(_amount, _EFFICIENCY, "of the roofline", cell=rounded(7))] = None
    joules: Annotated[float | None, Figure(_amount, _ENERGY, "J", in_verdict=True, in_exports=True)] = None
    watts: Annotated[float | None, Figure(_amount, _ENERGY, "W", in_verdict=True, in_exports=True)] = None
    metrics: Annotated[
        Mapping[str, float], Figure(mapping_of(as_name, as_number), _METRICS, cell=JSON, in_verdict=True)
    ] = field(default_factory=dict, hash=False)
    max_error: Annotated[float | None, _final(_amount, _ERROR, "of rms(reference)", cell=_3_DIGITS)] = None
    rms_error: Annotated[float | None, _final(_amount, _ERROR, "of rms(reference)", cell=_3_DIGITS)] = None
    checks: Annotated[
        tuple[str, ...], Figure(sequence_of(as_word), _CHECKS, cell=WORDS, plain=list, in_verdict=True)
    ] = ()
    checked_on: Annotated[str, Figure(as_text, _CHECKED_ON, cell=TEXT, in_verdict=True)] = ""
    rule: Annotated[int | None, Figure(_count, _SIZES)] = None
    seed: Annotated[int | None, Figure(_count, _SIZES)] = None
    stand_in: Annotated[int | None, Figure(_count, _SIZES)] = None
    numpy_parts: Annotated[str, Figure(as_text, _SIZES, cell=TEXT)] = ""
    same_as: Annotated[int | None, Figure(_count, _SAME)] = None
    verified_on: Annotated[tuple[str, ...], Figure(sequence_of(as_text), _VERIFIED, cell=JSON, plain=list)] = ()
    others: Mapping[str, object] = field(default_factory=dict, hash=False)  # fields of a later version, unchanged

    @staticmethod
    def read(row: object) -> "Trial":
        """Returns the trial of a JSON object; ``others``: fields of a later version, as plain JSON.

        Raises:
            Unsound: when a field is missing or invalid, or when fields contradict each other.
        """
        found = checked_fields(Trial, row, NEEDED, OF_OLDER)
        if samples_s := found.get("samples_s"):
            found.setdefault("n_samples", len(samples_s))
        return consistent(Trial(**found))

    def refuted(self, failure: TrialFailure) -> "Trial":
        """Returns the trial as a failed one, without its times."""
        none: dict[str, Any] = dict.fromkeys(OF_TIMES)
        return replace(self, status=failure.status, message=failure.message, samples_s=(), metrics={}, **none)


T = TypeVar("T", bound=Trial)


def times_of(trial: Trial) -> tuple[float, ...]:
    """Returns the recorded times of single launches in seconds: the samples, or the median alone; () without a time."""
    return trial.samples_s or (() if trial.median_s is None else (trial.median_s,))


def contradiction(status: Status, median_s: float, q1_s: float | None, q3_s: float | None) -> str:
    """Returns why such times cannot be: only measured trials have times, and medians lie within quartiles."""
    if status != Status.MEASURED:
        return f"its status is {status}, but it has a median"
    if (q1_s or 0.0) > median_s * (1 + ROUNDING) or (q3_s or median_s) < median_s * (1 - ROUNDING):
        return f"the median {median_s:g} s is not between the quartiles {q1_s} s and {q3_s} s"
    return ""


def consistent(trial: T) -> T:
    """Returns the trial if its times do not contradict each other.

    Raises:
        Unsound: otherwise.
    """
    if (median_s := trial.median_s) is None:
        return trial
    why = contradiction(trial.status, median_s, trial.q1_s, trial.q3_s)
    low, high = median_s * (1 - ROUNDING), median_s * (1 + ROUNDING)
    if trial.samples_s and not (min(trial.samples_s) <= high and max(trial.samples_s) >= low):
        why = f"the median {median_s:g} s is not among its samples"
    if why:
        raise Unsound(why)
    return trial


def as_recorded_trial(trial: T) -> T:
    """Returns a trial as its record gives it back: each figure is checked, and rounded as its cell writes it.

    Raises:
        Unsound: when a figure is not what its declaration allows; the message names it.
    """
    values: dict[str, Any] = {}
    defaults = defaults_of(type(trial))
    for name, figure in figures_of(type(trial)).items():
        value = getattr(trial, name)
        value = value.item() if hasattr(value, "item") else value  # a NumPy number
        try:
            default = defaults.get(name, MISSING)
            if type(value) is type(default) and value == default:
                continue
            if value is None:
                values[name] = figure.check(None)
            elif figure.plain is not None:
                values[name] = figure.check(json.loads(json.dumps(figure.plain(value))))
            else:
                values[name] = figure.check(figure.cell.read(figure.cell.write(value)))
        except Exception as error:  # it is a figure of anybody's device or definition
            why = str(error) if isinstance(error, Unsound) else f"is {value_text(value)}: {error}"
            raise Unsound(f"{name} {why}") from None
    if values.get("median_s") is not None and values.get("n_samples") is None:
        values["n_samples"] = len(trial.samples_s)
    return consistent(replace(trial, **values))
