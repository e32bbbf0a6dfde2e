"""The content of `autotune show`: one line for each of many sweeps, or all details of one sweep."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ..core.config import Value
from ..core.errors import Status, UsageError
from ..core.units import percent, seconds_text
from ..records.checks_made import lacking
from ..records.edge_sizes import verified_on
from ..records.figure import figures_of, stated
from ..records.objectives import ENERGY, TIME, Objective, front, values_of
from ..records.outcome import SAME, Finalist, Outcome
from ..records.record import SweepRecord
from ..records.trial import Trial
from ..runtime.bounds import loss_after, missed_text
from ..source.registry import recorded_kernel
from ..validity.as_measured import validity_text
from ..validity.untried import NewValues, untried
from .failing_values import FailingValues, failing_values
from .fields import assignments
from .importance import importances

NO_PROOF = ("compiler", "code", "conditions", "relation", "samples_s")  # fields of a finalist that `details` omits
KNOWN = {"winner", "default", "speed_up", "ties", "preference_among_ties", "finalists", "counts", "n_configs"}
KNOWN |= {"ceilings", "spent_s", "objectives"}


@dataclass(frozen=True)
class Overview:
    """One sweep as one line: its task and its result. Times are in seconds; None: not known yet."""

    path: str
    device: str
    kernel: str
    problem: Mapping[str, Value]
    clock: str
    finished: bool
    n_trials: int
    n_failed: int
    best_s: float | None
    default_s: float | None
    speed_up: float | None
    speed_up_interval: tuple[float, float] | None
    efficiency: float | None  # the winner's share of the measured roofline
    config: Mapping[str, Value] | None


def overview(sweep: SweepRecord) -> Overview:
    """Returns the line for a sweep."""
    winner, default = sweep.winner, sweep.default
    return Overview(
        path=str(sweep.path),
        device=sweep.device.name,
        kernel=sweep.kernel,
        problem=dict(sweep.problem),
        clock=clock_name(sweep),
        finished=sweep.outcome is not None,
        n_trials=sum(sweep.counts.values()),
        n_failed=sum(n for status, n in sweep.counts.items() if status != Status.MEASURED),
        best_s=winner.median_s if winner else None,
        default_s=default.median_s if default else None,
        speed_up=sweep.speed_up,
        speed_up_interval=sweep.speed_up_interval,
        efficiency=efficiency_of(sweep, winner),
        config=dict(winner.config) if winner else None,
    )


def place(line: Overview) -> tuple[object, ...]:
    """Returns the sort key of a line: devices and kernels by name, problems by their numbers."""
    fields = [(0, v, "") if isinstance(v, (int, float)) else (1, 0, str(v)) for v in line.problem.values()]
    return line.device, line.kernel, fields


def winner_text(line: Overview) -> str:
    """Returns the winner of a line as text, or the fastest config so far."""
    config = assignments(line.config) if line.config else "no config timed"
    return config if line.finished else f"{config} (so far)"


def clock_name(sweep: SweepRecord) -> str:
    """Returns the name of the clock of a sweep's times, which older records lack."""
    return sweep.about.clock or "device time"


def details(sweep: SweepRecord) -> dict[str, object]:
    """Returns the overview and all details of the record."""
    winner, default = proof(sweep, sweep.winner), proof(sweep, sweep.default)
    expected, bound = loss_after(sweep.n_tried, _n_configs(sweep)) or (None, None)
    on_front = front_of(sweep, sweep.objectives) if len(sweep.objectives) > 1 else []
    return {
        **asdict(overview(sweep)),
        "holds": holds(sweep),
        "untried": newer_values(sweep),
        "winner": winner.as_json() if winner else None,
        "default": default.as_json() if default else None,
        "speed_up_interval": sweep.speed_up_interval,
        "counts": dict(sweep.counts),
        "n_configs": sweep.outcome.n_configs if sweep.outcome else None,
        "expected_loss": expected,
        "bound": bound,
        "failures": [asdict(each) for each in failures(sweep)],
        "spent": spent(sweep).as_json(),
        "best_so_far_s": best_so_far(sweep.trials),
        "objectives": list(map(str, sweep.objectives)),
        "front": [{"config": dict(each.config), **(values_of(sweep.objectives, each) or {})} for each in on_front],
        "importance": [each.as_json() for each in importances(sweep.trials)],
        "sweep": dict(sweep.about.content),
        "verdict": dict(sweep.outcome.content) if sweep.outcome is not None else None,
    }


def holds(sweep: SweepRecord) -> str:
    """Returns in words whether the winner still holds today; "" without a winner or a definition."""
    if sweep.winner is None:
        return ""
    return validity_text(sweep.folder, sweep.device, sweep.winner.config, sweep.winner.key)


def newer_values(sweep: SweepRecord) -> dict[str, NewValues]:
    """Returns the values that the sweep could not try, by parameter; none if its definition is not installed."""
    try:
        return untried(recorded_kernel(sweep.about.content, {}), sweep.about)
    except UsageError:
        return {}


def missed(sweep: SweepRecord) -> str:
    """Returns in words what the winner may lose against configs that were not tried, newer ones among them."""
    return missed_text(sweep.n_tried, _n_configs(sweep))


def _n_configs(sweep: SweepRecord) -> int | None:
    return None if newer_values(sweep) else sweep.n_configs


@dataclass(frozen=True)
class Proof:
    """A measured config with the evidence that it is correct, and its number of samples."""

    measured: Finalist
    verified_on: tuple[str, ...] = ()  # names of the problems; the last is the timed one
    reproduce: str | None = None  # the command; None: its trial is missing
    efficiency: float | None = None  # share of the measured roofline

    def as_json(self) -> dict[str, object]:
        """Returns the known members; unknown ones are left out."""
        row = self.measured.as_json()
        members = {name: value for name, value in row.items() if name not in NO_PROOF and value is not None}
        members["n_samples"] = self.measured.n_samples or 0
        lacks = lacking(self.measured.checks, self.measured.rule or 0) or None
        own = {
            "without": lacks,
            "verified_on": self.verified_on,
            "reproduce": self.reproduce,
            "efficiency": self.efficiency,
        }
        return members | {name: value for name, value in own.items() if value is not None}


def proof(sweep: SweepRecord, chosen: Finalist | None) -> Proof | None:
    """Returns the evidence for a measured config."""
    if chosen is None:
        return None
    trial = _trial_of(sweep, chosen)
    sizes = verified_on(sweep.about, chosen, sweep.trials)
    if not sizes and sweep.outcome is not None and chosen.config == sweep.outcome.winner.config:
        sizes = sweep.outcome.verified_on
    if trial is None:
        return Proof(chosen, sizes)
    return Proof(chosen, sizes, sweep.about.reproduce(chosen.config), efficiency_of(sweep, chosen))


def checks_text(chosen: Finalist | Trial) -> str:
    """Returns what is known of the checks that a config passed; "" if all usual ones are known."""
    if not chosen.rule:
        return "which checks it passed was not recorded: `autotune verify --records` makes today's"
    lacks, where = lacking(chosen.checks, chosen.rule), f"on {chosen.checked_on}" if chosen.checked_on else ""
    text = ", ".join([*([where] if where else []), *([f"without {', '.join(lacks)}"] if lacks else [])])
    return f"correct as far as checked: {text}" if text else ""


def efficiency_of(sweep: SweepRecord, chosen: Finalist | None) -> float | None:
    """Returns a config's share of the measured roofline, from its time in the final round."""
    trial = None if chosen is None else _trial_of(sweep, chosen)
    if chosen is None or trial is None or not (trial.efficiency and trial.median_s and chosen.median_s):
        return None
    return trial.efficiency * trial.median_s / chosen.median_s


def _trial_of(sweep: SweepRecord, chosen: Finalist) -> Trial | None:
    alike = [trial for trial in sweep.trials if trial.config == chosen.config]
    return next((trial for trial in alike if trial.number == chosen.number), alike[0] if alike else None)


def verified_sizes(verified_on: Sequence[str], problem: Mapping[str, object]) -> str:
    """Returns the fields in which each verified problem differs from the timed one."""
    own = set(assignments(problem).split(","))
    different = [",".join(p for p in name.split(",") if p not in own) or "the timed size" for name in verified_on]
    return "; ".join(dict.fromkeys(different))


@dataclass(frozen=True)
class Failures:
    """The trials that failed with one status; ``number`` and the fields after it describe the first trial."""

    status: Status
    n: int
    number: int
    config: Mapping[str, Value]
    message: str
    launch: str  # its grid and block; "" if it was not launched
    reproduce: str  # the command
    values: tuple[FailingValues, ...] = ()  # values with which all configs failed with this status


def failures(sweep: SweepRecord) -> list[Failures]:
    """Returns one entry for each status of failed trials, the most frequent first."""
    trials = sweep.trials
    first: dict[Status, Trial] = {}
    counts: Counter[Status] = Counter()
    for trial in trials:
        if trial.status != Status.MEASURED:
            first.setdefault(trial.status, trial)
            counts[trial.status] += 1
    groups = [
        Failures(
            status,
            counts[status],
            t.number,
            dict(t.config),
            t.message,
            launch_text(t),
            sweep.about.reproduce(t.config, t.seed or 0),
            tuple(failing_values(trials, status)),
        )
        for status, t in first.items()
    ]
    return sorted(groups, key=lambda each: -each.n)


def launch_text(trial: Trial) -> str:
    """Returns the grid and the block of a trial as ``grid 13x30x1, block 16x4x1``; "" if it was not launched."""
    parts = (("grid", trial.grid), ("block", trial.block))
    return ", ".join(f"{what} {'x'.join(map(str, extents))}" for what, extents in parts if extents is not None)


def best_so_far(trials: Sequence[Trial]) -> list[float | None]:
    """Returns the best median after each trial, in seconds; None before the first measured one."""
    bests: list[float | None] = []
    best: float | None = None
    for trial in trials:
        if trial.median_s is not None and (best is None or trial.median_s < best):
            best = trial.median_s
        bests.append(best)
    return bests


@dataclass(frozen=True)
class Spent:
    """The wall time of a sweep by activity, in seconds. ``others``: further figures of its outcome."""

    seconds: Mapping[str, float]
    others: Mapping[str, float]

    @property
    def total_s(self) -> float:
        return sum(self.seconds.values())

    @property
    def shares(self) -> dict[str, float]:
        """Returns activity -> share of the total; {} if no time is known."""
        total_s = self.total_s
        return {what: seconds / total_s for what, seconds in self.seconds.items()} if total_s else {}

    def as_json(self) -> dict[str, object]:
        return {"total_s": self.total_s, "seconds": dict(self.seconds), "shares": self.shares, **self.others}


def spent(sweep: SweepRecord) -> Spent:
    """Returns the wall time of a sweep by activity."""
    content = stated(sweep.outcome) if sweep.outcome else {}
    others = {name: value for name, value in content.items() if name not in KNOWN and isinstance(value, (int, float))}
    return Spent(sweep.outcome.spent_s if sweep.outcome else {}, others)


def resources_text(measured: Trial) -> str:
    """Returns the resources of a config as text, such as ``72 registers, 0 bytes spilled``; "" if unknown."""
    values = {figure.noun: getattr(measured, name) for name, figure in figures_of(Trial).items() if figure.noun}
    return ", ".join(f"{value} {noun}" for noun, value in values.items() if value is not None)


def figures_text(measured: Trial) -> str:
    """Returns energy, power and metrics of a config as text; "" if none is known."""
    parts = []
    if measured.joules is not None:
        power = "" if measured.watts is None else f" at {measured.watts:.0f} W"
        parts.append(f"{objective_text(ENERGY, measured.joules)} of energy a launch{power}")
    return ", ".join([*parts, *(f"{name} {value:.4g}" for name, value in measured.metrics.items())])


def objective_text(name: str, value: float) -> str:
    """Returns the value of an objective as text, with its unit."""
    if name == TIME:
        return seconds_text(value)
    if name != ENERGY:
        return f"{value:.4g}"
    return f"{value:.3f} J" if value >= 1 else f"{1e3 * value:.4g} mJ"


def front_of(sweep: SweepRecord, objectives: Sequence[Objective]) -> list[Trial]:
    """Returns the Pareto front of the objectives: in the final round, or in the search so far."""
    return [*front(objectives, sweep.finalists)] or [*front(objectives, sweep.trials)]


def ties_text(outcome: Outcome | None) -> str:
    """Returns how many configs tie with the fastest, and which one wins; "" without ties."""
    if outcome is None or not (n := len(outcome.ties)):
        return ""
    tied = "1 other config ties" if n == 1 else f"{n} other configs tie"
    rule = outcome.preference_among_ties or "the smaller one"
    return f"{tied} with the fastest (within {percent(SAME)}); among ties the one with {rule} wins"


def finalist_time(measured: Finalist) -> str:
    """Returns a finalist's median as text, with its interval, or with its quartiles if there is no interval."""
    text = seconds_text(measured.median_s)
    if measured.interval_s is not None:
        low, high = measured.interval_s
        return f"{text} (95 % interval {seconds_text(low)} .. {seconds_text(high)})"
    return f"{text} (quartiles {seconds_text(measured.q1_s)} .. {seconds_text(measured.q3_s)})"
