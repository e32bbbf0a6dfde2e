"""Settings of a sweep: its budget, search and measurement, by numbers or by the name of an effort."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from ..core.config import Value
from ..core.errors import UsageError
from ..devices import device_module
from ..records.measurement import Protocol
from ..records.objectives import FIGURES
from ..search import SAMPLERS
from ..system.limits import COUNT, DEADLINE, DURATION, FROM_ZERO, SAMPLES, SEED
from ..system.setting import CALLS, COMMANDS, Setting, check_settings, with_old_names

GPU, HOST = (device_module(kind).defaults for kind in ("cuda", "host"))  # defaults of both devices, for help texts
EFFORTS: dict[str, dict[str, object]] = {
    "quick": {"trials": 12, "finalists": 3, "finalist_samples": 20, "placements": 1},
    "normal": {},
    "full": {"sampler": "exhaustive", "finalists": 8, "finalist_samples": 80, "checked_launches": 5000},
}
EFFORTS_HELP = (
    "quick: 12 trials (the default config, recorded winners of this and similar problems, predictions of a model, and "
    "a short search around them). "
    f"normal: {GPU.trials} trials (host: {HOST.trials}). full: every configuration, twice the samples "
    "in a final round of 8, and 5000 further launches of the winner (or one second of them)."
)


@with_old_names
@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one sweep, for calls, the options of `autotune sweep`, and `[sweep]` in a campaign's file."""

    trials: Annotated[
        int | None,
        Setting(
            "Configurations to try.",
            COUNT,
            f"{GPU.trials}; host: {HOST.trials}; set by --effort; all with --sampler exhaustive",
        ),
    ] = None
    time: Annotated[
        float | None,
        Setting("Start no new trial after this time. The final round follows.", DURATION, "no limit", was=("time_s",)),
    ] = None
    sampler: Annotated[
        str,
        Setting(
            f"auto (exhaustive if the budget allows), {', '.join(SAMPLERS)}, optuna:NSGAIISampler (any of "
            "Optuna's by its class; optuna:package.module.Class of another package), or an installed one."
        ),
    ] = "auto"
    seed: Annotated[int, Setting("Seed of the sampler.", SEED, "0")] = 0
    hints: Annotated[
        int,
        Setting(
            "How many candidates of recorded sweeps are tried first. Recorded winners are tried first, too: those of "
            "this problem (on similar devices, or before the kernel was edited). 0 is a cold start: no earlier sweep "
            "is used.",
            FROM_ZERO,
            was=("n_hints",),
        ),
    ] = 4
    only: Annotated[
        tuple[str, ...] | Mapping[str, tuple[Value, ...]],
        Setting("Search only ALGORITHM=register, WGS=64, ...; repeat for more values.", was=("restrict",)),
    ] = ()
    samples: Annotated[int, Setting("Timed launches per trial.", SAMPLES)] = Protocol.n_samples
    finalists: Annotated[
        int,
        Setting("How many of the best configs are timed again in the final round.", COUNT, was=("n_finalists",)),
    ] = 5
    finalist_samples: Annotated[int, Setting("Timed launches of each finalist.", SAMPLES, where=CALLS)] = 40
    placements: Annotated[
        int,
        Setting(
            "Placements of the buffers, for close configs in a final round; the device has a limit, too.",
            COUNT,
            where=CALLS,
        ),
    ] = 4
    sustained: Annotated[
        float,
        Setting("Also launch each finalist back to back for this many seconds.", DURATION, "0", was=("sustained_s",)),
    ] = 0.0
    checked_launches: Annotated[
        int | None,
        Setting(
            "Further launches of the winner to check, to catch rare races.",
            FROM_ZERO,
            f"{GPU.checked_launches}; host: {HOST.checked_launches}; set by --effort",
        ),
    ] = None
    trust_recorded: Annotated[
        bool,
        Setting("Whether a recorded trial's output stands in for the reference of the timed problem.", where=CALLS),
    ] = False
    objectives: Annotated[
        tuple[str, ...],
        Setting(
            "What to minimise: time, energy (joules per launch, if the device has a meter), or a --metric; "
            "max:NAME maximises. Two objectives give the Pareto front, and the first chooses the winner.",
            usual="time",
            option="--objective",
        ),
    ] = ("time",)
    metrics: Annotated[
        Mapping[str, str],
        Setting(
            "Your own figure for each trial, NAME=EXPRESSION: an expression of parameters, sizes, earlier metrics "
            f"and {', '.join(FIGURES)} (seconds, joules, watts, bytes); for example 'gbps=8*n/time/1e9'.",
            option="--metric",
            words="a dict of expressions by name",
        ),
    ] = field(default_factory=dict)
    energy_time: Annotated[
        float,
        Setting(
            "To measure energy, launch each config back to back for this many seconds.", DURATION, was=("energy_s",)
        ),
    ] = 0.5
    hot: Annotated[bool, Setting("Keep the cache warm between launches (the record says so).")] = False
    deadline: Annotated[
        float,
        Setting("Time limit for a verification or measurement, in seconds.", DEADLINE, was=("launch_deadline_s",)),
    ] = 60.0
    results: Annotated[Path, Setting("The folder for recorded sweeps.", where=COMMANDS)] = Path("results")
    begin_from: Annotated[
        Path | None,
        Setting(
            "A cache of Kernel Tuner, or T4 results: its fastest configs are tried first; its times are not used.",
            where=COMMANDS,
        ),
    ] = None
    dashboard: Annotated[
        Path | None,
        Setting("A journal to write, which `optuna-dashboard FILE` shows while the sweep runs.", where=COMMANDS),
    ] = None

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def protocol(self) -> Protocol:
        """Returns how trials are measured."""
        return Protocol(n_samples=self.samples, cold=not self.hot)

    def budget(self, kind: str, n_configs: int) -> int:
        """Returns the number of trials of a sweep over ``n_configs`` on a device of this kind."""
        if self.trials is None and self.sampler == "exhaustive":
            return n_configs
        return min(n_configs, self.trials or device_module(kind).defaults.trials)

    def n_placements(self, kind: str) -> int:
        """Returns the number of placements of the buffers in a final round."""
        return min(self.placements, device_module(kind).defaults.most_placements)

    def n_checked(self, kind: str) -> int:
        """Returns the number of further launches of the winner to check."""
        given = self.checked_launches
        return device_module(kind).defaults.checked_launches if given is None else given


def effort(name: str) -> dict[str, Any]:
    """Returns the fields of Settings that an effort fixes.

    Raises:
        UsageError: for an unknown name.
    """
    if not isinstance(name, str) or name not in EFFORTS:
        raise UsageError(f"unknown effort {name!r}; choose one of {', '.join(EFFORTS)}")
    return EFFORTS[name]
