"""Tunes a problem at its first use: reads the outcome in the user's cache, or lets one process tune while others wait.

An outcome says which configs were tried on this machine, and which one is the fastest. It holds for one problem and its
``Surroundings``; if any of them changes, its file has another name. It is data like a record's: each field has its
check in its type. What tunes is a function, ``Tuner``, of plain data: in packages it is that of an installed autotune.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from ..core import schema
from ..core.config import Config, as_config
from ..core.definition import Kernel, baked_values, problem_name, runtime_fields
from ..core.device import Device, as_device
from ..core.errors import Status, TrialFailure, UsageError, one_line
from ..core.files import lock
from ..core.kept import keep, make_folder, take
from ..core.problem import Problem, named_fields
from . import gpu
from .lookup import DEFAULT, FIRST_USE, Choice
from .wisdom import Evidence, as_source_key

ENVIRONMENT = "AUTOTUNE_FIRST_USE"
FORMAT = 2  # requests, answers and files have it
FOLDER, SUFFIX = "first-use", ".first"
SECONDS = 6.0  # time of work on the device, unless the caller says so
LEAST_N, USUAL_N, TIMED_N, MOST_N = 2, 4, 8, 16  # configs: least, without a number, with a time, most
LEAST_S, MOST_S = 0.5, 60.0
WAIT_S, DEVICE_WAIT_S = 60.0, 30.0  # waits for a process that tunes the same problem, and for one that holds the device
POLL_S = 0.05
TIME = re.compile(r"(\d+(?:\.\d*)?) ?s")
HELP = f"a number of configs from {LEAST_N} to {MOST_N}, or a time such as '2 s', from {LEAST_S:g} to {MOST_S:g} s"
NOT_TRIED = "not_tried"  # the end of a candidate for which no time was left
PASSING = (Status.TIMED_OUT, Status.NOISY, Status.MEASURED, NOT_TRIED)  # another try may end in another way

TellLine = Callable[[str], None]
Tuner = Callable[[Mapping[str, Any], TellLine], Mapping[str, Any]]


@dataclass(frozen=True)
class Effort:
    """The effort of a first use: the number of candidates, and seconds of work on the device."""

    n: int = USUAL_N
    seconds: float = SECONDS


def effort_of(tune: object, name: str = "tune") -> Effort | None:
    """Returns the effort that ``tune`` asks for; None: no tuning. None stands for AUTOTUNE_FIRST_USE, 0 for none.

    Raises UsageError for anything but a number of configs or a time, also in the environment.
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


# ---------------------------------------------------------------------- outcomes
@dataclass(frozen=True)
class Surroundings:
    """Everything except the problem that an outcome depends on.

    ``compiler``: name, version and options. ``texts``: a digest of the definition and the template.
    """

    device: Annotated[Device, as_device]
    driver: Annotated[str, schema.as_text]
    compiler: Annotated[str, schema.as_text]
    texts: Annotated[str, schema.as_text]


@dataclass(frozen=True)
class Attempt:
    """One candidate, and how it ended: a Status or NOT_TRIED. ``origin``: the tier of the lookup."""

    config: Annotated[Config, as_config]
    origin: Annotated[str, schema.as_word]
    source_key: Annotated[str, as_source_key]
    status: Annotated[str, schema.one_of((*Status, NOT_TRIED))] = NOT_TRIED
    message: Annotated[str, schema.as_text] = ""
    median_s: Annotated[float | None, schema.optional(schema.as_seconds)] = None
    q1_s: Annotated[float | None, schema.optional(schema.as_seconds)] = None
    q3_s: Annotated[float | None, schema.optional(schema.as_seconds)] = None
    n_samples: Annotated[int, schema.as_count] = 0
    registers: Annotated[int | None, schema.optional(schema.as_count)] = None


@dataclass(frozen=True)
class TunedHere:
    """One outcome. ``winner``: the number of the fastest attempt; None: no candidate was right, and ``why`` says more.

    ``checked``: the problems at which the winner was checked. ``took_s``: wall time of everything.
    """

    kernel: Annotated[str, schema.as_name]
    problem: Annotated[Mapping[str, object], schema.mapping_of(schema.as_name, schema.as_json_value)]
    surroundings: Annotated[Surroundings, schema.dataclass_of(Surroundings)]
    at: Annotated[str, schema.as_word] = ""  # time of the end, UTC
    took_s: Annotated[float, schema.as_amount] = 0.0
    attempts: Annotated[tuple[Attempt, ...], schema.sequence_of(schema.dataclass_of(Attempt))] = ()
    winner: Annotated[int | None, schema.optional(schema.as_count)] = None
    checked: Annotated[tuple[str, ...], schema.sequence_of(schema.as_text)] = ()
    why: Annotated[str, schema.as_text] = ""

    @property
    def fastest(self) -> Attempt | None:
        return None if self.winner is None else self.attempts[self.winner]

    @property
    def default_s(self) -> float | None:
        """Returns the median of the kernel's default, if it was timed."""
        return next((one.median_s for one in self.attempts if one.origin == DEFAULT), None)

    @property
    def n_timed(self) -> int:
        return sum(one.median_s is not None for one in self.attempts)

    @property
    def is_final(self) -> bool:
        """Returns whether another first use would probably end like this one."""
        return self.winner is not None or not any(one.status in PASSING for one in self.attempts)

    @property
    def path(self) -> Path:
        """Returns the path of its file, which depends on the problem and the surroundings alone."""
        asked = json.dumps([FORMAT, self.kernel, self.problem, asdict(self.surroundings)], default=str)
        return folder_of_outcomes() / f"{self.kernel}-{hashlib.sha256(asked.encode()).hexdigest()[:32]}{SUFFIX}"

    def told(self) -> str:
        """Returns the outcome in one line, without the config."""
        n, device = self.n_timed, self.surroundings.device.name
        n_failed = sum(one.status not in (Status.MEASURED, NOT_TRIED) for one in self.attempts)
        more = f"; {n_failed} more failed" if n_failed else ""
        return f"the fastest of {n} config{'s' * (n != 1)} on this machine's {device}, {self.at[:10]}{more}"

    def as_json(self) -> str:
        """Returns the text of its file, for ``checked_outcome``."""
        return json.dumps({"format": FORMAT, **asdict(self)}, default=dict, allow_nan=False)


_unkept: dict[Path, TunedHere] = {}  # outcomes of this process that could not be written


def checked_outcome(text: bytes) -> TunedHere:
    """Returns the outcome in the text of a file. Raises Unsound when any value is not one of an outcome."""
    content = schema.parse(text)
    written = content.pop("format", None) if isinstance(content, dict) else None
    if written != FORMAT:
        raise schema.Unsound(f"it has format {schema.value_text(written)}, this reader knows {FORMAT}")
    found: TunedHere = schema.dataclass_of(TunedHere)(content)
    if found.winner is not None and not (found.winner < len(found.attempts) and found.attempts[found.winner].median_s):
        raise schema.Unsound(f"its winner {found.winner} is not among those that were timed")
    return found


def folder_of_outcomes() -> Path:
    """Returns the folder in the user's cache, which need not exist."""
    return gpu.cache_folder().parent / FOLDER


def read_outcome(path: Path, tell: TellLine) -> TunedHere | None:
    """Returns the outcome in a file, or of this process if it could not be written; None without one.

    ``tell`` takes a line if the file is damaged or may not be trusted.
    """
    if path in _unkept or not path.exists():
        return _unkept.get(path)
    try:
        make_folder(path.parent.parent, FOLDER)
        if (found := take(path)) is None:
            raise schema.Unsound("it is incomplete, or not as it was written")
        return checked_outcome(found[0])
    except UsageError as error:
        tell(one_line(str(error)))
    except (OSError, schema.Unsound) as error:
        tell(f"{path} is not used, and made anew at the next first use: {one_line(str(error))}")
    return None


def keep_outcome(outcome: TunedHere) -> str | None:
    """Writes an outcome as a whole. Returns None, or one line that says why only this process will know it."""
    try:
        make_folder(outcome.path.parent.parent, FOLDER)
        keep(outcome.path, outcome.as_json().encode(), {})
        return None
    except (OSError, UsageError) as error:
        _unkept[outcome.path] = outcome
        return one_line(str(error))


def all_outcomes(tell: TellLine) -> Iterator[TunedHere]:
    """Yields the outcomes in the user's cache; ``tell`` takes a line for each file that cannot be used."""
    found = (read_outcome(path, tell) for path in sorted(folder_of_outcomes().glob(f"*{SUFFIX}")))
    return (one for one in found if one is not None)


def fastest_here(kernel: Kernel[Problem], problem: Problem, device: Device, tell: TellLine) -> tuple[Config, ...]:
    """Returns the configs that were the fastest at first uses of exactly this problem on ``device``, the latest first.

    They are in the kernel's space. ``tell`` takes a line for each file that cannot be used.
    """
    found = dict[Config, None]()
    for outcome in sorted(all_outcomes(tell), key=lambda one: one.at, reverse=True):
        place = outcome.kernel, dict(outcome.problem), outcome.surroundings.device.name
        if place == (kernel.name, named_fields(problem), device.name) and (fastest := outcome.fastest) is not None:
            with suppress(UsageError):  # another version of the kernel had this config
                found[kernel.space.parse(fastest.config)] = None
    return tuple(found)


# ---------------------------------------------------------------------- the first use
@dataclass(frozen=True)
class FirstUse:
    """Reads the outcomes of problems' first uses, or makes them, and chooses by them.

    Args:
        tell: takes lines of progress.
        place: returns where a kernel is tuned: the surroundings, the device as the tuner names it (cuda:0), and the
            name or path by which the tuner finds the definition.
        candidates: returns up to so many configs that the device allows, the most promising first.
        key_of: renders a config, and returns the key of its source.
        tuner: returns what tunes. Like the others, it raises UsageError or TrialFailure if it cannot.
    """

    effort: Effort
    tell: TellLine
    place: Callable[[Kernel[Problem], Device], tuple[Surroundings, str, str]]
    candidates: Callable[[Kernel[Problem], Problem, Device, int], Sequence[Attempt]]
    key_of: Callable[[Kernel[Problem], Problem, Config], str]
    tuner: Callable[[], Tuner]

    def choice(self, kernel: Kernel[Problem], problem: Problem, device: Device, may_not: str = "") -> Choice | str:
        """Returns the choice of the fastest config, or one line that says why there is none.

        ``may_not``: why nothing may be tuned now, so that only what is kept counts.
        """
        try:
            outcome = self.outcome(kernel, problem, device, may_not)
            if isinstance(outcome, str):
                return outcome
            if (best := outcome.fastest) is None or best.median_s is None:
                return outcome.why
            if self.key_of(kernel, problem, kernel.space.parse(best.config)) != best.source_key:
                outcome.path.unlink(missing_ok=True)
                return "the outcome that was kept belongs to another source; the next start tunes it again"
        except (UsageError, TrialFailure, schema.Unsound) as error:
            return one_line(str(error))
        evidence = Evidence(best.median_s, best.q1_s, best.q3_s, outcome.default_s, verified_on=outcome.checked)
        return Choice(
            kernel=kernel.name,
            device=device.name,
            baked=baked_values(problem),
            runtime={name: getattr(problem, name) for name in runtime_fields(type(problem))},
            config=best.config,
            tier=FIRST_USE,
            why=outcome.told(),
            source_key=best.source_key,
            evidence=replace(
                evidence, registers=best.registers, compiler=outcome.surroundings.compiler, date=outcome.at
            ),
            tuned_on=f"{device.name}, {problem_name(problem)}, {outcome.at[:10]}",
            verified=True,
        )

    def outcome(self, kernel: Kernel[Problem], problem: Problem, device: Device, may_not: str = "") -> TunedHere | str:
        """Returns the outcome that is kept, or tunes and keeps it; or one line that says why not.

        While another process tunes the same problem, this one waits, and takes what is kept; it does not tune itself.
        """
        (around, identifier, reference), is_gpu = self.place(kernel, device), device.kind == "cuda"
        asked = TunedHere(kernel.name, named_fields(problem), around)
        may_not = may_not or (is_gpu and gpu.shares_faults()) or ""
        if (known := read_outcome(asked.path, self.tell)) or may_not:
            return known or may_not
        tuner, name = self.tuner(), f"{kernel.name}[{problem_name(problem)}]"
        waiting = f"{name}: waiting, since another process tunes it"
        with _alone(asked.path, WAIT_S, lambda: self.tell(waiting)) as is_first:
            if known := read_outcome(asked.path, self.tell):
                return known
            if not is_first:
                return f"another process began to tune it, and has kept nothing after at most {WAIT_S:g} s"
            asked = replace(asked, attempts=tuple(self.candidates(kernel, problem, device, self.effort.n)))
            if len(asked.attempts) < LEAST_N:
                return "no config but the default is known to be promising, so there is nothing to compare"
            self.tell(f"{name}: first use on {device.name}, trying {len(asked.attempts)} configs")
            if is_gpu:
                gpu.synchronize()  # the caller's earlier work would disturb the timing
            free_bytes = gpu.free_bytes(int(identifier.partition(":")[2])) if is_gpu else None
            request = {"format": FORMAT, "reference": reference, "identifier": identifier, "free_bytes": free_bytes}
            limits = {"seconds": self.effort.seconds, "wait_s": DEVICE_WAIT_S}
            answer = tuner({**request, **limits, "outcome": asked.as_json()}, self.tell)
            if "refused" in answer:
                return str(answer["refused"])
            outcome = replace(checked_outcome(answer["outcome"].encode()), problem=asked.problem, surroundings=around)
            if outcome.is_final and (why := keep_outcome(outcome)) is not None:
                self.tell(f"{name}: its first use is not kept for other processes: {why}")
            return outcome


@contextmanager
def _alone(path: Path, wait_s: float, waits: Callable[[], None]) -> Iterator[bool]:
    """Holds the lock of an outcome. Yields whether nobody else held it before; if the wait is too long, without it.

    If there can be no lock, since the cache cannot be written or has none, yields True.
    """
    is_first, end = True, time.monotonic() + wait_s
    with ExitStack() as stack:
        with suppress(OSError, UsageError):
            make_folder(path.parent.parent, FOLDER)
            file = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            stack.callback(os.close, file)  # this also frees the lock
            while not lock(file, path.parent, "") and (is_first or time.monotonic() <= end):
                if is_first:
                    waits()
                is_first = False
                time.sleep(POLL_S)
        yield is_first
