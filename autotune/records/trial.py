"""The record of a trial: one config, its status, and all figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

from ..core.config import Config
from ..core.errors import Status, TrialFailure
from ..core.schema import (
    Unsound,
    as_amount,
    as_config,
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
)
from .figure import Figure

MOST_TRIALS = 10**9
_STALE = "([stale trials](design/trial.md#stale-trials))"
_CONFIG = "the parameters; in tables, one column each, empty where a config does not have the parameter"
_EFFICIENCY = "the least time by the measured roofline, over the median"
_METRICS = "the values of the sweep's own [metrics](objectives.md); in tables `metric.<name>`"
_VERIFIED = "the problems it was checked at; the last is the timed one"
_IDENTITY = "the variant's hash; the hash of all texts that the outcome depends on"
_CODE = (
    "the compiler; the digest of the machine code; where it was verified, the digest of geometry, mathematics and "
    f"protocol {_STALE}"
)
_FAILURE = "why it failed; the command that verifies this config alone"
_WALL = "wall times; missing where the step failed"
_MEMORY = "shared memory of a block, static and dynamic; spilled by a thread"
_GEOMETRY = "launch geometry, three numbers each"
_SEVERAL = (
    "of [several launches](kernels-launches.md) each one's function, geometry and figures, those above being the "
    "largest; bytes of the workspace"
)
_TIME = "time of one launch: median, quartiles, every sample"
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
_amount, _count, _seconds, _sizes = map(optional, (as_amount, as_count, as_seconds, sequence_of(as_count)))
_number = partial(Figure, in_exports=True, in_metrics=True)
_final = partial(Figure, in_verdict=True, in_exports=True, in_metrics=True)


@dataclass(frozen=True)
class Trial:
    """The trial of one config: the status with which it ended, why, and everything that was measured.

    Times are in seconds of the device clock that the sweep names. A field that is added here with its Figure is
    recorded and checked, and becomes a column of tables and a row of docs/results.md; the Figure's flags add further
    places.
    """

    number: Annotated[int, Figure(trial_number, "the trial's number in its sweep, from 0", in_verdict=True)]
    status: Annotated[Status, Figure(_status, "see [sweeps.md](sweeps.md); only `measured` has times", in_exports=True)]
    config: Annotated[Config, Figure(as_config, _CONFIG, in_verdict=True)]
    key: Annotated[str | None, Figure(optional(as_word), _IDENTITY, in_verdict=True, in_exports=True)]
    stamp: Annotated[str, Figure(as_word, _IDENTITY)]
    compiler: Annotated[str, Figure(as_text, _CODE, in_verdict=True)] = ""
    code: Annotated[str, Figure(as_word, _CODE, in_verdict=True)] = ""
    conditions: Annotated[str, Figure(as_word, _CODE, in_verdict=True)] = ""
    message: Annotated[str, Figure(as_text, _FAILURE, in_exports=True)] = ""
    reproduce: Annotated[str, Figure(as_text, _FAILURE, in_exports=True)] = ""
    at: Annotated[str, Figure(as_text, "when it ended", "UTC")] = ""
    compile_s: Annotated[float | None, Figure(_amount, _WALL, "s", in_metrics=True)] = None
    verify_s: Annotated[float | None, Figure(_amount, _WALL, "s")] = None
    measure_s: Annotated[float | None, Figure(_amount, _WALL, "s")] = None
    registers: Annotated[int | None, _final(_count, "registers of a thread", "per thread", "registers")] = None
    shared_bytes: Annotated[int | None, _final(_count, _MEMORY, "bytes", "shared bytes")] = None
    spill_bytes: Annotated[int | None, _final(_count, _MEMORY, "bytes", "bytes spilled")] = None
    grid: Annotated[tuple[int, ...] | None, Figure(_sizes, _GEOMETRY, "blocks", in_exports=True)] = None
    block: Annotated[tuple[int, ...] | None, Figure(_sizes, _GEOMETRY, "threads", in_exports=True)] = None
    launches: Annotated[tuple[Mapping[str, object], ...], Figure(sequence_of(_launch), _SEVERAL)] = ()
    workspace_bytes: Annotated[int, Figure(as_count, _SEVERAL, "bytes")] = 0
    median_s: Annotated[float | None, Figure(_seconds, _TIME, "s", in_verdict=True)] = None
    q1_s: Annotated[float | None, Figure(_seconds, _TIME, "s", in_verdict=True)] = None
    q3_s: Annotated[float | None, Figure(_seconds, _TIME, "s", in_verdict=True)] = None
    samples_s: Annotated[tuple[float, ...], Figure(sequence_of(as_seconds), _TIME, "s", in_verdict=True)] = ()
    cold: Annotated[bool | None, Figure(optional(as_flag), _TAKEN, in_verdict=True)] = None
    stopped_early: Annotated[bool | None, Figure(optional(as_flag), _TAKEN)] = None
    n_throttled: Annotated[int | None, _number(_count, _TAKEN, "samples")] = None
    clock_hz: Annotated[float | None, _final(_amount, "median SM clock; 0 where there is none", "Hz")] = None
    gb_per_s: Annotated[float | None, _number(_amount, _RATE, "GB/s")] = None
    tflop_per_s: Annotated[float | None, _number(_amount, _RATE, "TFLOP/s")] = None
    efficiency: Annotated[float | None, _number(_amount, _EFFICIENCY, "of the roofline")] = None
    joules: Annotated[float | None, Figure(_amount, _ENERGY, "J", in_verdict=True, in_exports=True)] = None
    watts: Annotated[float | None, Figure(_amount, _ENERGY, "W", in_verdict=True, in_exports=True)] = None
    metrics: Annotated[Mapping[str, float], Figure(mapping_of(as_name, as_number), _METRICS, in_verdict=True)] = field(
        default_factory=dict, hash=False
    )
    max_error: Annotated[float | None, _final(_amount, _ERROR, "of rms(reference)")] = None
    rms_error: Annotated[float | None, _final(_amount, _ERROR, "of rms(reference)")] = None
    verified_on: Annotated[tuple[str, ...], Figure(sequence_of(as_text), _VERIFIED, in_verdict=True)] = ()
    others: Mapping[str, object] = field(default_factory=dict, hash=False)  # fields of a later version, unchanged

    def refuted(self, failure: TrialFailure) -> "Trial":
        """Returns the trial as a failed one, without its times."""
        return replace(
            self,
            status=failure.status,
            message=failure.message,
            samples_s=(),
            median_s=None,
            q1_s=None,
            q3_s=None,
            gb_per_s=None,
            tflop_per_s=None,
            efficiency=None,
            joules=None,
            watts=None,
            metrics={},
        )
