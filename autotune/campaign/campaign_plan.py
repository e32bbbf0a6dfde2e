"""The plan of a campaign, read from a TOML file: a kernel, a grid of problems, and the budget of each.

kernel = "ddc"
pilots = 4                      # problems, spread over the grid, that go first, with pilot_effort

[grid]                          # every combination of these values ...
ratio = [8, 16]
decimation = [4, 8, 16, 32]
sample_bits = [8, 10]

[problem]                       # ... is a problem; fields that are not in the grid are computed or fixed here
taps = "ratio * decimation"
n_pols = 2

[[problems]]                    # single problems, in addition to the grid or in place of it
ratio = 12
decimation = 7
sample_bits = 9

[sweep]  # for each problem: effort, trials, time, sampler, samples, finalists, sustained, checked_launches, hints, seed
effort = "quick"
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.definition import AnyKernel, problem_name
from ..core.errors import UsageError
from ..devices import Target
from ..records.as_recorded import problem_of
from ..records.folder import SWEEP, SweepFolder, find_sweeps
from ..records.paths import kernel_path, part
from ..search import names_module
from ..source.registry import kernel_reference, load_kernel
from ..sweep.problem_list import TYPES as OF_PROBLEMS
from ..sweep.problem_list import problem_values, toml_of
from ..sweep.request import problem_on
from ..sweep.settings import Settings, effort
from ..system.limits import FROM_ZERO, SEED, check_numbers, check_type
from ..system.setting import FILES, settings_given
from .draw import Draw, read_draw

KEYS = {"kernel", "results", "devices", "pilots", "pilot_effort", "revisit", "grid", "problem", "problems", "sweep"}
KEYS |= {"draw", "seed", "recorded", "ranges", "work"}
DEEP = 60  # trials of a drawn problem, unless the file says so
TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    **OF_PROBLEMS,
    "results": (str, "a path"),
    "devices": ((str, list), "a device's name, or a list of names"),
    "pilot_effort": (str, "the name of an effort"),
    "sweep": (dict, "a table"),
    "recorded": (bool, "true or false"),
}
N_REVISIT = 8
OF_AN_EFFORT = ("effort", "trials", "time", "sampler", "finalists")  # pilots take these from their own effort


@dataclass(frozen=True)
class CampaignPlan:
    """A campaign's problems and settings."""

    kernel: str  # the name or path that registry.load_kernel takes
    values: tuple[dict[str, object], ...]  # the fields of each problem
    n_pilots: int
    pilot: Settings
    settings: Settings
    n_revisit: int = N_REVISIT
    devices: tuple[str, ...] | None = None  # None: every GPU of this machine, or host if there is none
    draw: Draw = field(default_factory=Draw)
    with_recorded: bool = False

    def problems(self, target: Target) -> list[Any]:
        """Returns the problems for this kind of device, without duplicates; pilots, spread over the grid, come first.

        Of drawn and recorded problems, those with the fewest trials come first: their winners have the widest bounds.

        Raises:
            UsageError: for values that are not a problem of the kernel.
        """
        kernel = load_kernel(self.kernel)
        problems = dict.fromkeys(_problem(kernel, values, target) for values in self.values)
        ordered = far_apart(list(problems))
        if not self.draw.n and not self.with_recorded:
            return ordered
        folder = kernel_path(self.settings.results, target.device.name, kernel.name)
        recorded = find_sweeps(folder) if self.with_recorded and folder.is_dir() else []
        further = [*self.draw.problems(kernel)]
        for sweep in recorded:
            with suppress(UsageError):  # the definition no longer allows this problem
                further.append(problem_of(kernel, sweep.about()))
        whole = dict.fromkeys((*ordered, *far_apart([*dict.fromkeys(further)])))
        return sorted(whole, key=lambda problem: _n_trials(folder / part(problem_name(problem))))

    def settings_of(self, index: int) -> Settings:
        """Returns the settings of a problem's first sweep; its final round is short if a second sweep follows."""
        settings = self.pilot if index < self.n_pilots else self.settings
        if not self.n_revisit:
            return settings
        return replace(settings, finalists=2, finalist_samples=9, placements=1, sustained=0.0, checked_launches=0)

    def settings_again(self, index: int, kind: str) -> Settings:
        """Returns the settings of a problem's second sweep; its new trials begin with the neighbours' best configs."""
        first = self.pilot if index < self.n_pilots else self.settings
        if first.trials is None and first.sampler == "exhaustive":
            return first
        trials = first.budget(kind, sys.maxsize) + self.n_revisit
        return replace(first, trials=trials, hints=min(Settings.hints, self.n_revisit), trust_recorded=True)


def read_plan(path: Path, results: Path | None = None, **given: object) -> CampaignPlan:
    """Returns the plan in the file ``path``; ``results`` and other keys that are ``given`` and not None override it.

    Raises:
        UsageError: for a file that does not exist, is not TOML, or has a wrong value; the message names the key.
    """
    text = toml_of(path, "the campaign")
    try:
        return _plan(path, {**text, **{name: value for name, value in given.items() if value is not None}}, results)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _plan(path: Path, text: Mapping[str, Any], results: Path | None) -> CampaignPlan:
    if unknown := set(text) - KEYS:
        raise UsageError(f"unknown key {', '.join(sorted(unknown))}; the keys are {', '.join(sorted(KEYS))}")
    for name, (kinds, wanted) in TYPES.items():
        if name in text:
            check_type(name, text[name], kinds, wanted)
    check_numbers(text, {**dict.fromkeys(("pilots", "revisit", "draw"), FROM_ZERO), "seed": SEED})
    if "kernel" not in text:
        raise UsageError('it needs kernel = "..."')
    kernel = load_kernel(text["kernel"])
    folder = (results or Path(text.get("results", "results"))).resolve()
    devices = text.get("devices", "auto")
    if not devices or not all(isinstance(device, str) for device in devices):
        raise UsageError(f"devices={devices!r} must be a device's name, or a list of names")
    fields, draw = text.get("sweep", {}), read_draw(text, kernel)
    with_recorded = text.get("recorded", False)
    is_listed = bool(text.get("grid") or text.get("problems"))
    if draw.n and not fields.keys() & {"trials", "effort"}:
        fields = {**fields, "trials": DEEP}
    pilot = {name: value for name, value in fields.items() if name not in OF_AN_EFFORT}
    return CampaignPlan(
        kernel=kernel_reference(kernel),
        values=tuple(problem_values(text, kernel)) if is_listed or not (draw.n or with_recorded) else (),
        n_pilots=text.get("pilots", 0),
        pilot=_settings({**pilot, "effort": text.get("pilot_effort", "normal")}, folder),
        settings=_settings(fields, folder),
        n_revisit=text.get("revisit", 0 if draw.n or with_recorded else N_REVISIT),
        devices=None if devices == "auto" else tuple([devices] if isinstance(devices, str) else devices),
        draw=draw,
        with_recorded=with_recorded,
    )


def far_apart(problems: list[Any]) -> list[object]:
    """Orders problems so that the first few, however many, lie far apart in the logarithms of their fields.

    The first problem is the one in the middle; each next one is the farthest from all earlier ones (Gonzalez,
    Clustering to minimize the maximum intercluster distance, 1985). So early sweeps inform the search of all others.
    """
    if len(problems) < 3:
        return problems
    rows = np.array([[_level(v) for v in vars(p).values()] for p in problems])
    rows -= rows.mean(axis=0)
    rows /= np.maximum(rows.std(axis=0), 1e-9)
    order = [int(np.argmin((rows**2).sum(axis=1)))]
    distance = np.full(len(problems), np.inf)
    while len(order) < len(problems):
        distance = np.minimum(distance, ((rows - rows[order[-1]]) ** 2).sum(axis=1))
        distance[order] = -1.0
        order.append(int(np.argmax(distance)))
    return [problems[i] for i in order]


# ---------------------------------------------------------------------- parts of the file
def _problem(kernel: AnyKernel, values: Mapping[str, object], target: Target) -> Any:
    try:
        return problem_on(kernel, values, target)
    except UsageError as error:
        named = ", ".join(f"{name}={value}" for name, value in values.items())
        raise UsageError(f"the campaign's problem {named}: {error}") from error


def _n_trials(folder: Path) -> int:
    return len(SweepFolder(folder).trials()) if (folder / SWEEP).is_file() else 0


def _settings(table: Mapping[str, Any], results: Path) -> Settings:
    given = {name: value for name, value in table.items() if name != "effort"}
    try:
        own = settings_given(Settings, given, FILES)
    except UsageError as error:
        raise UsageError(f"[sweep] {error}, effort") from error
    if names_module(str(own.get("sampler", ""))):
        raise UsageError(
            f"sampler={own['sampler']!r} names a module to import, which a campaign's file may not do; "
            "register its class in the entry-point group autotune.samplers and give that name"
        )
    return Settings(results=results, **effort(table.get("effort", "normal")) | own)


def _level(value: object) -> float:
    return float(np.log2(abs(value) + 1)) if isinstance(value, (int, float)) else float(len(str(value)))
