"""The outcomes of tuning at first use, in the user's cache: which configs were tried on this machine, and the fastest.

An outcome holds for one problem and its ``Surroundings``; if any of them changes, its file has another name. It is data
like a record's, and each value is checked when it is read.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..core.config import Config
from ..core.definition import Kernel
from ..core.device import Device, device_of
from ..core.errors import Status, UsageError, one_line
from ..core.kept import facts_path, keep, make_folder, take
from ..core.problem import Problem, named_fields
from ..core.schema import (
    Unsound,
    as_amount,
    as_config,
    as_count,
    as_device,
    as_json_value,
    as_name,
    as_seconds,
    as_text,
    as_word,
    mapping_of,
    members_of,
    one_of,
    optional,
    parse,
    sequence_of,
)
from . import gpu
from .lookup import DEFAULT
from .wisdom import as_source_key

FORMAT = 1
FOLDER, SUFFIX = "first-use", ".first"
NOT_TRIED = "not_tried"  # the end of a candidate for which no time was left


@dataclass(frozen=True)
class Surroundings:
    """Everything except the problem that an outcome depends on.

    ``compiler``: name, version and options. ``texts``: a digest of the definition and the template.
    """

    device: Device
    driver: str
    compiler: str
    texts: str


@dataclass(frozen=True)
class Attempt:
    """One candidate, and how it ended: a Status or NOT_TRIED. ``origin``: the tier of the lookup."""

    config: Config
    origin: str
    source_key: str
    status: str
    message: str = ""
    median_s: float | None = None
    q1_s: float | None = None
    q3_s: float | None = None
    n_samples: int = 0
    registers: int | None = None


@dataclass(frozen=True)
class TunedHere:
    """One outcome. ``winner``: the number of the fastest attempt; None: no candidate was right, and ``why`` says more.

    ``checked``: the problems at which the winner was checked. ``took_s``: wall time of everything.
    """

    kernel: str
    problem: Mapping[str, object]
    surroundings: Surroundings
    at: str  # time of the end, UTC
    took_s: float
    attempts: tuple[Attempt, ...]
    winner: int | None = None
    checked: tuple[str, ...] = ()
    why: str = ""

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

    def told(self) -> str:
        """Returns the outcome in one line, without the config."""
        n, when = self.n_timed, self.at[:10]
        failed = [one for one in self.attempts if one.status not in (Status.MEASURED, NOT_TRIED)]
        more = f"; {len(failed)} more failed" if failed else ""
        return (
            f"the fastest of {n} config{'s' * (n != 1)} on this machine's {self.surroundings.device.name}, {when}{more}"
        )


def folder_of_outcomes() -> Path:
    """Returns the folder in the user's cache, which need not exist."""
    return gpu.cache_folder().parent / FOLDER


def outcome_path(kernel: str, problem: Mapping[str, object], surroundings: Surroundings) -> Path:
    """Returns the path of an outcome."""
    asked = json.dumps([FORMAT, kernel, problem, asdict(surroundings)], default=str)
    return folder_of_outcomes() / f"{kernel}-{hashlib.sha256(asked.encode()).hexdigest()[:32]}{SUFFIX}"


def read_outcome(path: Path, tell: Callable[[str], None]) -> TunedHere | None:
    """Returns the outcome in a file; None without one. ``tell`` takes a line if it is damaged or may not be trusted."""
    if not path.exists():
        return None
    try:
        make_folder(path.parent.parent, path.parent.name)
        found = take(path)
        if found is None:
            raise Unsound("it is incomplete, or not as it was written")
        return _outcome(parse(found[0]))
    except UsageError as error:
        tell(one_line(str(error)))
    except (OSError, Unsound) as error:
        tell(f"{path} is not used, and made anew at the next first use: {one_line(str(error))}")
    return None


def keep_outcome(path: Path, outcome: TunedHere) -> str | None:
    """Writes an outcome as a whole. Returns None, or one line that says why it cannot be kept."""
    try:
        make_folder(path.parent.parent, path.parent.name)
        keep(path, json.dumps({"format": FORMAT, **asdict(outcome)}, default=dict, allow_nan=False).encode(), {})
    except OSError as error:
        return f"{path.parent} cannot be written ({error.strerror})"
    except UsageError as error:
        return one_line(str(error))
    return None


def all_outcomes(tell: Callable[[str], None]) -> Iterator[TunedHere]:
    """Yields the outcomes in the user's cache; ``tell`` takes a line for each file that cannot be used."""
    for path in sorted(folder_of_outcomes().glob(f"*{SUFFIX}")):
        if (found := read_outcome(path, tell)) is not None:
            yield found


def fastest_here(
    kernel: Kernel[Problem], problem: Problem, device: Device, tell: Callable[[str], None]
) -> tuple[Config, ...]:
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


def forget_outcome(path: Path) -> None:
    """Removes an outcome, if there is one."""
    for each in (path, facts_path(path)):
        each.unlink(missing_ok=True)


# ---------------------------------------------------------------------- reading
_VALUES = mapping_of(as_name, as_json_value)
_ATTEMPT = {
    "config": as_config,
    "origin": as_word,
    "source_key": as_source_key,
    "status": one_of((*Status, NOT_TRIED)),
    "message": as_text,
    **dict.fromkeys(("median_s", "q1_s", "q3_s"), optional(as_seconds)),
    "n_samples": as_count,
    "registers": optional(as_count),
}
_SURROUNDINGS = {"device": as_device, **dict.fromkeys(("driver", "compiler", "texts"), as_text)}
_CONTENT = {
    "format": as_count,
    "kernel": as_name,
    "problem": _VALUES,
    "surroundings": members_of(_SURROUNDINGS, needed=tuple(_SURROUNDINGS)),
    "at": as_word,
    "took_s": as_amount,
    "attempts": sequence_of(members_of(_ATTEMPT, needed=tuple(_ATTEMPT))),
    "winner": optional(as_count),
    "checked": sequence_of(as_text),
    "why": as_text,
}
_checked = members_of(_CONTENT, needed=tuple(_CONTENT))


def _outcome(content: Any) -> TunedHere:
    if isinstance(content, dict) and content.get("format") != FORMAT:
        raise Unsound(f"it has format {content.get('format')}, this reader knows {FORMAT}")
    values = _checked(content)
    attempts = tuple(Attempt(**{**row, "config": Config(row["config"])}) for row in values["attempts"])
    winner = values["winner"]
    if winner is not None and not (winner < len(attempts) and attempts[winner].median_s):
        raise Unsound(f"its winner {winner} is not among those that were timed")
    around = Surroundings(**{**values["surroundings"], "device": device_of(values["surroundings"]["device"])})
    del values["format"]
    return TunedHere(**{**values, "surroundings": around, "attempts": attempts})
