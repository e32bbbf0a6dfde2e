"""The row that a sweep records for each trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.config import Config
from ..core.errors import Status, TrialFailure


@dataclass(frozen=True)
class Trial:
    """One config taken through the stations: where it ended, why, and everything measured on the way.

    ``stamp`` hashes all that the outcome depends on (source, definition, protocol, compiler): a trial whose stamp
    is not today's is stale. Times are in seconds and rates in 1/s, of the device's clock that the sweep names.
    """

    number: int
    status: Status
    config: Config
    key: str | None  # key of the variant
    stamp: str
    compiler: str = ""  # the compiler of the binary
    code: str = ""  # digest of the machine code, independent of source text
    conditions: str = ""  # digest of all else that the outcome depends on: geometry, mathematics, protocol
    message: str = ""
    reproduce: str = ""
    at: str = ""  # UTC, ISO 8601
    compile_s: float | None = None
    verify_s: float | None = None
    measure_s: float | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None  # static and dynamic
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    launches: tuple[Mapping[str, Any], ...] = ()  # of several launches, each one's function, geometry and figures
    workspace_bytes: int = 0
    median_s: float | None = None
    q1_s: float | None = None
    q3_s: float | None = None
    samples_s: tuple[float, ...] = ()
    cold: bool | None = None
    stopped_early: bool | None = None
    clock_hz: float | None = None
    n_throttled: int | None = None
    gb_per_s: float | None = None
    tflop_per_s: float | None = None
    efficiency: float | None = None  # least time of the measured roofline / median
    joules: float | None = None  # energy of the device for one launch, where it was measured
    watts: float | None = None  # mean power meanwhile
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)  # of the sweep's own, by name
    max_error: float | None = None  # relative to rms(reference)
    rms_error: float | None = None
    verified_on: tuple[str, ...] = ()

    def refuted(self, failure: TrialFailure) -> "Trial":
        """Returns the trial as one that failed after all, without its times."""
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
