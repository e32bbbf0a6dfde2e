"""Converts a recorded sweep to an Optuna study, for Optuna's importances and plots."""

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from ..core.config import Value
from ..core.errors import UsageError
from ..system.limits import check_type
from .folder import find_sweeps
from .objectives import Direction, values_of
from .outcome import Finalist
from .record import SweepRecord
from .trial import Trial
from .trial_log import as_row, plain_number

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import CategoricalDistribution
    from optuna.trial import FrozenTrial

N_NAMED = 8  # sweeps that an error names
_quieting = RLock()  # a campaign has threads, and Optuna's verbosity applies to all of them
LEFT_OUT = ("config", "samples_s")  # config: the study's parameters; samples: too long for hover texts


def optuna_study(path: str | os.PathLike[str]) -> "optuna.Study":
    """Returns the sweep at or under ``path`` as an Optuna study in memory, with the content that autotune.study states.

    Raises:
        UsageError: when there is no recorded sweep, or more than one.
    """
    import optuna

    check_type("path", path, (str, os.PathLike), "a path")
    sweep = _only_sweep(Path(path))
    distributions = distributions_of(sweep.about.space, sweep.trials)
    final = {finalist.config: finalist for finalist in sweep.finalists}
    with quiet():
        study = optuna.create_study(study_name=sweep.title, directions=directions_of(sweep))
    name_objectives(study, sweep)
    for name, value in about(sweep).items():
        study.set_user_attr(name, value)
    for trial in sweep.trials:
        study.add_trial(frozen(sweep, trial, distributions, final.get(trial.config)))
    return study


def _only_sweep(path: Path) -> SweepRecord:
    folders = find_sweeps(path)
    if len(folders) > 1:
        more = f" and {len(folders) - N_NAMED} more" if len(folders) > N_NAMED else ""
        named = ", ".join(str(folder.path) for folder in folders[:N_NAMED])
        raise UsageError(f"{path} holds {len(folders)} sweeps, but a study shows one; name one of {named}{more}")
    return SweepRecord.of(folders[0])


def distributions_of(
    space: Mapping[str, Iterable[Value]], trials: Iterable[Trial]
) -> "dict[str, CategoricalDistribution]":
    """Returns parameter -> its values: those of the space in its order, then others that occur in trials."""
    from optuna.distributions import CategoricalDistribution

    values: dict[str, dict[Value, None]] = {name: dict.fromkeys(given) for name, given in space.items()}
    for trial in trials:
        for name, value in trial.config.items():
            values.setdefault(name, {})[value] = None
    return {name: CategoricalDistribution(list(given)) for name, given in values.items() if given}


def directions_of(sweep: SweepRecord) -> "list[Direction]":
    """Returns the direction of each objective."""
    return [objective.direction for objective in sweep.objectives]


def name_objectives(study: "optuna.Study", sweep: SweepRecord) -> None:
    """Names the objectives of a study; plots show these names at their axes."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names([objective.title for objective in sweep.objectives])


def frozen(
    sweep: SweepRecord,
    trial: Trial,
    distributions: "Mapping[str, CategoricalDistribution]",
    final: Finalist | None = None,
) -> "FrozenTrial":
    """Returns a trial of a sweep as an Optuna trial; ``final``: its measurement in the final round, or None."""
    from optuna.trial import FrozenTrial, TrialState

    values = values_of(sweep.objectives, trial)
    started, ended = _times(trial, sweep.about.started)
    return FrozenTrial(
        number=trial.number,  # the study numbers its trials itself
        trial_id=trial.number,
        state=TrialState.FAIL if values is None else TrialState.COMPLETE,
        value=None,
        values=None if values is None else list(values.values()),
        params=dict(trial.config),
        distributions={name: distributions[name] for name in trial.config},
        user_attrs=_attributes(trial, final),
        system_attrs={},
        intermediate_values={},
        datetime_start=started,
        datetime_complete=ended,
    )


def _attributes(trial: Trial, final: Finalist | None) -> dict[str, object]:
    """Returns the recorded fields of a trial except parameters and samples, as JSON values."""
    fields = {name: value for name, value in as_row(trial).items() if name not in LEFT_OUT}
    if final is not None:
        fields["final_median_s"] = final.median_s
    return {name: _plain(value) for name, value in fields.items() if value not in (None, "", ())}


def about(sweep: SweepRecord) -> dict[str, object]:
    """Returns the user attributes of a sweep's study, as JSON values."""
    winner = sweep.winner
    attributes = {
        "kernel": sweep.kernel,
        "problem": dict(sweep.problem),
        "device": sweep.device.name,
        "clock": sweep.about.clock,
        "objectives": list(map(str, sweep.objectives)),
        "path": str(sweep.path),
        "default": dict(sweep.about.default),
        "winner": dict(winner.config) if winner else None,
        "winner_median_s": winner.median_s if winner else None,
    }
    return {name: _plain(value) for name, value in attributes.items() if value not in (None, "")}


def _times(trial: Trial, sweep_started: str) -> tuple[datetime, datetime]:
    """Returns the start and the end of a trial on the device, in local time as in Optuna's own trials.

    A trial without a time starts with its sweep, or in 1970, since Optuna requires a start.
    """
    started = datetime.fromtimestamp(0)
    for text in (trial.at, sweep_started):
        with suppress(ValueError, OverflowError):
            started = datetime.fromisoformat(text).astimezone().replace(tzinfo=None)
            break
    with suppress(OverflowError):
        return started, started + timedelta(seconds=(trial.verify_s or 0.0) + (trial.measure_s or 0.0))
    return started, started


def _plain(value: object) -> Any:
    return json.loads(json.dumps(value, default=plain_number))


@contextmanager
def quiet() -> Iterator[None]:
    """Prevents Optuna's message about a new study; its verbosity is restored afterwards."""
    import optuna

    with _quieting:
        before = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            yield
        finally:
            optuna.logging.set_verbosity(before)
