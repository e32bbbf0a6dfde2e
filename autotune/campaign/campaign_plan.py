"""The plan of a campaign, read from a TOML file: a kernel, a grid of problems, and the budget of each."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from ..core.definition import AnyKernel, problem_name
from ..core.errors import UsageError
from ..devices import Target
from ..records.as_recorded import problem_of
from ..records.folder import SWEEP, SweepFolder, find_sweeps
from ..records.paths import kernel_path, part
from ..search import names_module
from ..source.registry import kernel_reference, load_kernel
from ..sweep.problem_list import ProblemList, problem_values, toml_of
from ..sweep.request import problem_on
from ..sweep.settings import Settings, effort
from ..system.limits import FROM_ZERO
from ..system.setting import FILES, Setting, of_file, settings_given, shared
from .draw import Draw, check_draw

DEEP = 60  # trials of a drawn problem, unless the file says so
DEVICES = "a device's name, or a list of names"
N_REVISIT = 8
OF_AN_EFFORT = ("effort", "trials", "time", "sampler", "finalists")  # pilots take these from their own effort


@dataclass(frozen=True, kw_only=True)
class CampaignFile(Draw, ProblemList):
    """The keys of a campaign's file."""

    results: Annotated[str, Setting("The folder for recorded sweeps.", words="a path")] = "results"
    devices: Annotated[str | list[str], Setting("Where to tune.", None, "every GPU, or host", words=DEVICES)] = "auto"
    pilots: Annotated[int, Setting("Problems, spread over the grid, that go first.", FROM_ZERO, "0")] = 0
    pilot_effort: Annotated[str, Setting("Effort of the pilots.", words="the name of an effort")] = "normal"
    revisit: Annotated[
        int | None, Setting("Trials of the second look.", FROM_ZERO, f"{N_REVISIT}; 0 for drawn and recorded problems")
    ] = None
    sweep: Annotated[Mapping[str, Any], Setting("Of each problem: `effort`, and settings as above.")] = field(
        default_factory=dict
    )
    recorded: Annotated[bool, Setting("Whether to tune each problem that the results have, too.")] = False


@dataclass(frozen=True)
class CampaignPlan:
    """A campaign's problems and settings."""

    kernel: str  # the name or path that registry.load_kernel takes
    values: tuple[dict[str, object], ...]  # the fields of each problem
    n_pilots: int
    pilot: Settings
    settings: Settings
    n_revisit: int
    devices: tuple[str, ...] | None  # None: every GPU of this machine, or host if there is none
    draw: Draw
    with_recorded: bool

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
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return _plan(of_file(CampaignFile, {**text, **given}), results)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _plan(file: CampaignFile, results: Path | None) -> CampaignPlan:
    kernel, fields = load_kernel(file.kernel), file.sweep
    folder = (results or Path(file.results)).resolve()
    check_draw(draw := Draw(**shared(file, Draw)), kernel)
    devices = [file.devices] if isinstance(file.devices, str) else file.devices
    if not devices or not all(isinstance(device, str) for device in devices):
        raise UsageError(f"devices={devices!r} must be {DEVICES}")
    is_found = bool(draw.n or file.recorded)
    if draw.n and not fields.keys() & {"trials", "effort"}:
        fields = {**fields, "trials": DEEP}
    pilot = {name: value for name, value in fields.items() if name not in OF_AN_EFFORT}
    return CampaignPlan(
        kernel=kernel_reference(kernel),
        values=tuple(problem_values(file, kernel)) if file.grid or file.problems or not is_found else (),
        n_pilots=file.pilots,
        pilot=_settings({**pilot, "effort": file.pilot_effort}, folder),
        settings=_settings(fields, folder),
        n_revisit=(0 if is_found else N_REVISIT) if file.revisit is None else file.revisit,
        devices=None if devices == ["auto"] else tuple(devices),
        draw=draw,
        with_recorded=file.recorded,
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
        raise UsageError(f"[sweep] {error}; effort is another") from error
    if names_module(str(own.get("sampler", ""))):
        raise UsageError(
            f"sampler={own['sampler']!r} names a module to import, which a campaign's file may not do; "
            "register its class in the entry-point group autotune.samplers and give that name"
        )
    return Settings(results=results, **effort(table.get("effort", "normal")) | own)


def _level(value: object) -> float:
    return float(np.log2(abs(value) + 1)) if isinstance(value, (int, float)) else float(len(str(value)))
