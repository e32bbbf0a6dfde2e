"""Tunes a problem at its first use: reads what is kept, or lets one process tune while the others wait.

What tunes is a function, ``Tuner``, that takes and returns plain data: in packages it is that of an installed autotune.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.definition import Kernel, problem_name
from ..core.errors import UsageError
from ..core.files import lock
from ..core.kept import make_folder
from ..core.problem import Problem, named_fields
from .tuned_here import Attempt, Surroundings, TunedHere, keep_outcome, outcome_path, read_outcome

ENVIRONMENT = "AUTOTUNE_FIRST_USE"
REQUEST_FORMAT = 1
SECONDS = 3.0  # time of work on the device, unless the caller says so
LEAST_N, USUAL_N, TIMED_N, MOST_N = 2, 4, 8, 16  # configs: least, without a number, with a time, most
LEAST_S, MOST_S = 0.5, 60.0
WAIT_S, DEVICE_WAIT_S = 60.0, 30.0  # waits for a process that tunes the same problem, and for one that holds the device
POLL_S = 0.05
TIME = re.compile(r"(\d+(?:\.\d*)?) ?s")
HELP = f"a number of configs from {LEAST_N} to {MOST_N}, or a time such as '2 s', from {LEAST_S:g} to {MOST_S:g} s"

TellLine = Callable[[str], None]
Tuner = Callable[[Mapping[str, Any], TellLine], Mapping[str, Any]]


@dataclass(frozen=True)
class Effort:
    """The effort of a first use: the number of candidates, and seconds of work on the device."""

    n: int = USUAL_N
    seconds: float = SECONDS


@dataclass(frozen=True)
class Contender:
    """A config that may be the fastest, and its ``origin``, as in ``tuned_here.Attempt``."""

    config: Config
    origin: str
    source_key: str


@dataclass(frozen=True)
class TuningPlace:
    """The device and the surroundings in which a problem is tuned.

    ``identifier``: the device as the tuner names it, cuda:0. ``free_bytes``: memory there that is not in use; None:
    unknown. ``reference``: the name or path by which the tuner finds the definition.
    """

    surroundings: Surroundings
    identifier: str
    reference: str
    free_bytes: int | None = None


def effort_of(tune: object, name: str = "tune") -> Effort | None:
    """Returns the effort that ``tune`` asks for; None: no tuning. None stands for AUTOTUNE_FIRST_USE, 0 for none.

    Raises:
        UsageError: for anything but a number of configs or a time, also in the environment.
    """
    if tune is None:
        given = os.environ.get(ENVIRONMENT)
        return effort_of(given, ENVIRONMENT) if given else None
    text = str(tune) if isinstance(tune, int | str) and not isinstance(tune, bool) else ""
    if text == "0":
        return None
    if text.isdecimal() and LEAST_N <= int(text) <= MOST_N:
        return Effort(int(text))
    if (found := TIME.fullmatch(text)) and LEAST_S <= float(found[1]) <= MOST_S:
        return Effort(TIMED_N, float(found[1]))
    raise UsageError(f"{name}={tune!r} must be {HELP}; 0 is none")


_unkept: dict[Path, TunedHere] = {}  # outcomes of this process that could not be written


def kept_outcome(path: Path, tell: TellLine) -> TunedHere | None:
    """Returns the outcome that this process or an earlier one found, or None."""
    return _unkept.get(path) or read_outcome(path, tell)


def tuned_once(
    kernel: Kernel[Problem],
    problem: Problem,
    place: TuningPlace,
    candidates: Callable[[], Sequence[Contender]],
    effort: Effort,
    tuner: Tuner,
    tell: TellLine,
    wait_s: float = WAIT_S,
) -> TunedHere | str:
    """Returns the kept outcome of ``problem``, or tunes it and keeps the outcome; or one line that says why not.

    While another process tunes the same problem, this one waits, and then takes what is kept; it does not tune itself.
    """
    path = outcome_path(kernel.name, named_fields(problem), place.surroundings)
    if (known := kept_outcome(path, tell)) is not None:
        return known
    name = f"{kernel.name}[{problem_name(problem)}]"
    with _alone(path, wait_s, lambda: tell(f"{name}: waiting, since another process tunes it")) as is_first:
        if (known := kept_outcome(path, tell)) is not None:
            return known
        if not is_first:
            return f"another process began to tune it, and has kept nothing after at most {wait_s:g} s"
        found = candidates()
        if len(found) < LEAST_N:
            return "no config but the default is known to be promising, so there is nothing to compare"
        tell(f"{name}: first use on {place.surroundings.device.name}, trying {len(found)} configs")
        answer = tuner(_request(kernel, problem, place, found, effort), tell)
        if refused := answer.get("refused"):
            return str(refused)
        outcome = _outcome_of(kernel, problem, place, found, answer)
        if answer["is_final"] and (why := keep_outcome(path, outcome)) is not None:
            _unkept[path] = outcome
            tell(f"{name}: its first use is not kept for other processes: {why}")
        return outcome


def _request(
    kernel: Kernel[Problem], problem: Problem, place: TuningPlace, candidates: Sequence[Contender], effort: Effort
) -> dict[str, Any]:
    """Returns what a Tuner needs, as plain data."""
    return {
        "format": REQUEST_FORMAT,
        "kernel": kernel.name,
        "reference": place.reference,
        "problem": named_fields(problem),
        "identifier": place.identifier,
        "free_bytes": place.free_bytes,
        "seconds": effort.seconds,
        "wait_s": DEVICE_WAIT_S,
        "candidates": [{**asdict(one), "config": dict(one.config)} for one in candidates],
    }


def _outcome_of(
    kernel: Kernel[Problem],
    problem: Problem,
    place: TuningPlace,
    candidates: Sequence[Contender],
    answer: Mapping[str, Any],
) -> TunedHere:
    """Returns the outcome in the answer of a Tuner."""
    pairs = zip(candidates, answer["attempts"], strict=True)
    return TunedHere(
        kernel=kernel.name,
        problem=named_fields(problem),
        surroundings=place.surroundings,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        took_s=round(float(answer["took_s"]), 3),
        attempts=tuple(Attempt(one.config, one.origin, one.source_key, **ended) for one, ended in pairs),
        winner=answer["winner"],
        checked=tuple(answer["checked"]),
        why=answer["why"],
    )


@contextmanager
def _alone(path: Path, wait_s: float, waits: Callable[[], None]) -> Iterator[bool]:
    """Holds the lock of an outcome. Yields whether nobody else held it before; if the wait is too long, without it.

    If there can be no lock, since the cache cannot be written or has none, yields True.
    """
    try:
        make_folder(path.parent.parent, path.parent.name)
        file = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except (OSError, UsageError):
        yield True
        return
    try:
        is_first, end = True, time.monotonic() + wait_s
        with suppress(UsageError):
            while not lock(file, path.parent, ""):
                if is_first:
                    waits()
                is_first = False
                if time.monotonic() > end:
                    break
                time.sleep(POLL_S)
        yield is_first
    finally:
        os.close(file)  # this also frees the lock
