"""Chooses the configuration to run (the tuned one, or the nearest known one), and reports how it was chosen.

Tiers: ``exact``; ``first use`` (tuned on this machine when it was first used, at these sizes, if the caller asks for
it: ``tune_once``); ``nearest`` (the same GPU, the nearest runtime sizes) or ``architecture`` (another GPU of the same
one); ``predicted`` (not recorded, but learnt from recorded problems); ``default``. After the first two, the tier with
the least bound goes first: what nine of ten such choices did not lose when recorded problems were left out. A
configuration is chosen only if the constraints and the limits of the device allow it. Configurations tuned on ``host``
are never used on a GPU, nor vice versa.
"""

import dataclasses
import importlib.util
import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, log, prod
from pathlib import Path
from typing import Annotated, Any, Protocol

from ..core.config import Config, as_config
from ..core.definition import Device, Kernel, Launch, runtime_fields
from ..core.errors import TrialFailure, UsageError
from ..core.html import preformatted
from ..core.parameter import clause
from ..core.problem import Problem, distance, replaced, size_fields
from ..core.schema import as_flag, as_text, as_word, dataclass_of, optional
from ..core.units import counted, percent, speed_up_text
from .bounds import loss_after, missed_text
from .field_types import check_field_types
from .wisdom import Entry, Evidence, Fallback, Loss, Wisdom, as_source_key, fields_text

ASKED_BESIDE = ("device", "verify", "tune")  # arguments of a package's function that are not fields of the problem
MOST_TOLD = 5  # tuned problems that an error lists
FAR = 2.0  # octaves, summed over the runtime sizes, within which a prediction is reused
NEAR = 0.5  # octaves, within which a record of this GPU needs no prediction beside it
TIERS = "exact", "first use", "nearest", "architecture", "predicted", "default"
EXACT, FIRST_USE, NEAREST, ARCHITECTURE, PREDICTED, DEFAULT = TIERS


@dataclass(frozen=True)
class Choice:
    """The chosen configuration and the reason. ``evidence`` was measured at ``tuned_on``; predictions and the default
    have none.

    ``verified``: the sweep, the first use or ``verify=True`` compared its outputs with the reference.

    ``expected_loss``: the slowdown relative to the best config; 0.1 is a tenth slower; ``bound``: what nine of ten such
    choices do not exceed. Exact tier: what sweeps with as few trials missed, more for a portfolio's member
    (``regret``). Other tiers: ``left_out``, what such choices lost on recorded problems that were left out to measure
    them. None: unknown, also for the tier of first use, whose config is the fastest of a few.
    """

    kernel: str
    device: str
    baked: Mapping[str, object]
    runtime: Mapping[str, object] | None  # the requested sizes; None if they were not known
    config: Config
    tier: str
    why: str
    source_key: str
    evidence: Evidence | None = None
    tuned_on: str = ""
    expected_loss: float | None = None
    left_out: Loss | None = None
    verified: bool = False
    regret: float = 0.0
    bound: float | None = None

    @property
    def _asked(self) -> str:
        problem = fields_text(self.baked) + (f"|{fields_text(self.runtime)}" if self.runtime else "")
        return f"{self.kernel}[{problem}] on {self.device}"

    @property
    def line(self) -> str:
        """Returns the choice in one line, for a log."""
        return f"{self._asked}: {self.tier}: {self.why}; expected slowdown {self.loss}; {self.config}"

    def __str__(self) -> str:
        lines = [
            self._asked,
            f"  config    {self.config}",
            f"  tier      {self.tier}: {self.why}",
            f"  expected slowdown: {self.loss}",
            f"  verified  {'yes' if self.verified else 'no'}",
        ]
        if self.evidence is not None:
            lines.append(f"  evidence  {evidence_text(self.evidence)} ({self.tuned_on})")
        return "\n".join([*lines, f"  source    sources/{self.source_key}.cu"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    @property
    def loss(self) -> str:
        """Returns the expected loss in words, with what it was measured on."""
        if self.tier == EXACT and self.evidence is not None:
            return missed_text(self.evidence.n_tried, self.evidence.n_configs, self.regret)
        return loss_text(self.expected_loss, self.left_out, self.tier)

    def as_json(self) -> dict[str, object]:
        return {**dataclasses.asdict(self), "config": dict(self.config)}


@dataclass(frozen=True)
class Prediction:
    """A rendered configuration for a problem without a record; ``why`` says how it was derived.

    ``left_out``: what such choices lose; None: unknown.
    """

    config: Annotated[Config, as_config]
    source_key: Annotated[str, as_source_key]
    why: Annotated[str, as_text]
    verified: Annotated[bool, as_flag] = False
    tier: Annotated[str, as_word] = PREDICTED
    left_out: Annotated[Loss | None, optional(dataclass_of(Loss))] = None


class Predicting(Protocol):
    """Predicts configurations where records are missing."""

    def predicted(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Prediction | str:
        """Returns the configuration that is best to run without a trial, or a line that says why there is none."""

    def default(self, kernel: Kernel[Problem], problem: Problem, device: Device) -> Prediction | str:
        """Returns the kernel's own default for this problem and device, or a line that says why there is none."""

    def loss(self, kernel: Kernel[Problem], problem: Problem, device: Device, tier: str, config: Config) -> Loss | None:
        """Returns what choices of ``tier`` like ``config`` lose; None: unknown."""


class Verifying(Predicting, Protocol):
    """A predictor that can check its predictions."""

    def verifying(self) -> Predicting:
        """Returns a predictor that checks its predictions at edge sizes, on the current GPU."""


def choose(
    wisdom: Wisdom,
    kernel: Kernel[Problem],
    baked: Mapping[str, object],
    runtime: Mapping[str, object] | None,
    device: Device,
    predicting: Predicting | None = None,
) -> Choice:
    """Returns the configuration with which to run ``kernel`` on ``device``.

    ``runtime``: the runtime fields, or None if they are not known yet; then the entry nearest to the sizes of
    ``asked_problem`` stands for all sizes. ``predicting``: a predictor for problems without a record.

    Raises:
        UsageError: when these baked fields were not tuned (the message lists the tuned ones, and the command to tune
            these), or when the device can run neither a tuned nor the default configuration.
    """
    kernel.check_arch(device)
    entries = [e for e in wisdom.entries if e.kernel == kernel.name and _same(e.baked, baked)]
    fallbacks = [f for f in wisdom.fallbacks if f.kernel == kernel.name and _same(f.baked, baked)]
    if not entries and not fallbacks and predicting is None:
        raise UsageError(_unknown(wisdom, kernel.name, baked, ()))
    tune = _command(wisdom, kernel.name, baked)
    problem = asked_problem(wisdom, kernel, {**baked, **(runtime or {})})
    sizes = {name: getattr(problem, name) for name in runtime_fields(type(problem))}
    by_distance = _by_distance(kernel, problem, sizes)
    entries = sorted((e for e in entries if e.device.kind == device.kind), key=by_distance)
    refused: list[str] = []

    def allowed(known: Entry | Fallback) -> bool:
        # without sizes, an entry is checked at its own
        at = problem
        if runtime is None and isinstance(known, Entry):
            at = kernel.problem({**baked, **known.runtime})
        reason = refusal(kernel, at, known.config, device)
        if reason:
            refused.append(f"{known.config} cannot run here: {reason}")
        return reason is None

    relatives = [e for e in entries if e.device.arch == device.arch]
    same_gpu = [e for e in relatives if e.device.name == device.name]
    relatives = [e for e in relatives if e.device.name != device.name]
    request, able = (kernel.name, device, baked, runtime), predicting

    def loss(tier: str, config: Config) -> Loss | None:
        return able.loss(kernel, problem, device, tier, config) if able is not None else None

    predicted: Prediction | None = None
    measured = next(filter(allowed, same_gpu), None) or next(filter(allowed, relatives), None)
    is_own = measured is not None and measured.device.name == device.name
    if measured is not None and is_own and (runtime is None or dict(measured.runtime) == sizes):
        more = "; each call chooses again for its own sizes" if runtime is None else ""
        return _of_entry(request, measured, EXACT, f"tuned on this device at {_at(measured)}{more}", refused)
    is_near = measured is not None and is_own and _octaves(kernel, problem, measured) <= NEAR
    if able is not None and not is_near:
        found = able.predicted(kernel, problem, device)
        if isinstance(found, str):
            refused.append(found)
        else:
            predicted = found
    if measured is not None:
        tier = NEAREST if is_own else ARCHITECTURE
        left_out = loss(tier, measured.config)
        if predicted is None or _bound(left_out, device) <= _bound(predicted.left_out, device):
            why = f"tuned on this device at {_at(measured)}, the nearest size to {fields_text(sizes)}"
            if not is_own:
                other = measured.device
                why = f"not tuned on {device.name}; tuned on {other.name}, also {device.arch}, at {_at(measured)}"
            return _of_entry(request, measured, tier, why, refused, left_out)
    if predicted is not None:
        return _of_prediction(request, predicted, refused)
    why = f"not tuned on {device.name} nor on another {device.arch} GPU; tune it: {tune}"
    if able is not None:
        if not isinstance(default := able.default(kernel, problem, device), str):
            return _of_prediction(request, dataclasses.replace(default, why=f"{default.why}; {why}"), refused)
        refused.append(default)
    for fallback in filter(allowed, fallbacks):
        left_out = loss(DEFAULT, fallback.config)
        plain = Prediction(fallback.config, fallback.source_key, why, tier=DEFAULT, left_out=left_out)
        return _of_prediction(request, plain, refused)
    if not entries and not fallbacks:
        raise UsageError(_unknown(wisdom, kernel.name, baked, refused))
    raise UsageError(
        f"{kernel.name}[{fields_text(baked)}] cannot run on {device.name}: {'; '.join(refused)}. Tune it there: {tune}"
    )


def asked_problem(wisdom: Wisdom, kernel: Kernel[Problem], values: Mapping[str, object]) -> Problem:
    """Returns the problem that a user means by the fields ``values``; recorded problems come before the tuned ones.

    Raises:
        UsageError: as ``Kernel.problem_with``, and for a value of another type than its field.
    """
    usual = kernel.tuned[0]
    is_text = {name: isinstance(getattr(usual, name, None), str) for name in values}  # 16 may be the text of a field
    values = {name: str(v) if is_text[name] and type(v) in (int, float) else v for name, v in values.items()}
    check_field_types(kernel.name, values, usual)
    own = (entry for entry in wisdom.entries if entry.kernel == kernel.name)
    alike = [e for e in own if all(values.get(name, value) == value for name, value in e.baked.items())]
    found = (replaced(kernel.tuned[0], {**entry.baked, **entry.runtime}) for entry in alike)
    return kernel.problem_with(values, known=[*(problem for problem in found if problem is not None), *kernel.tuned])


def refusal(kernel: Kernel[Problem], problem: Problem, config: Config, device: Device) -> str | None:
    """Returns why ``device`` cannot run ``config`` on ``problem``, or None."""
    try:
        if (reason := kernel.unsupported(config, device)) is not None:
            return reason
        if (broken := kernel.space.broken(problem, config, device)) is not None:
            return f"it {clause(broken.reason)}"
        exceeded = (_exceeded(step, device) for step in kernel.launch(problem, config).steps)
        return next((why for why in exceeded if why is not None), None)
    except TrialFailure as failure:
        return failure.message


def loss_text(loss: float | None, left_out: Loss | None = None, tier: str = "") -> str:
    """Returns the expected loss as text, with the problems on which it was measured."""
    if tier == FIRST_USE:
        return "measured here as the fastest of these; a sweep may find a faster one"
    if left_out is None:
        return "unknown" if loss is None else percent(loss)
    on = f"from {counted(left_out.n, 'held-out problem')}"
    known = f"{percent(left_out.median)} (median; at most {percent(left_out.bound)} in nine of ten, {on})"
    where = f"others of {left_out.where}" if left_out.where.startswith("sm_") else left_out.where
    return known if loss is not None else f"unknown on this GPU; on {where}: {known}"


def evidence_text(evidence: Evidence) -> str:
    """Returns the evidence in one line."""
    quartiles = (
        f" (quartiles {1e6 * evidence.q1_s:.4g} to {1e6 * evidence.q3_s:.4g})"
        if evidence.q1_s and evidence.q3_s
        else ""
    )
    parts = [f"median {1e6 * evidence.median_s:.4g} us{quartiles}"]
    if evidence.speed_up is not None:
        parts.append(speed_up_text(evidence.speed_up, evidence.speed_up_interval))
    if evidence.max_error is not None:
        parts.append(f"largest error {evidence.max_error:.2g} x rms")
    parts.append(
        f"verified on {counted(len(evidence.verified_on), 'problem')}" if evidence.verified_on else "unverified"
    )
    if evidence.without:
        parts.append(f"correct as far as checked: without {', '.join(evidence.without)}")
    if evidence.checked_launches:
        parts.append(f"{evidence.checked_launches} further launches checked, all correct")
    if evidence.registers is not None:
        parts.append(f"{evidence.registers} registers")
    return ", ".join(parts)


def report_choice(folder: Path, kernel: str, values: Mapping[str, object], device: str | None = None) -> dict[str, Any]:
    """Returns the choice of the emitted package in ``folder`` for the problem ``values``, from the package's own code.

    The result has the fields of its ``Choice``, and in ``text`` the printed form.

    Raises:
        UsageError: when the folder is not a package, lacks the kernel, or knows nothing about the problem.
    """
    start = folder.resolve() / "__init__.py"
    if not (start.with_name("wisdom.json").is_file() and start.is_file()):
        raise UsageError(
            f"{folder} is not a package written by `autotune emit` (wisdom.json or __init__.py is missing)"
        )
    name = f"autotune_emitted_{start.parent.name}"
    for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[loaded]  # the folder may have been rewritten, or be another one of the same name
    spec = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[str(start.parent)])
    assert spec is not None and spec.loader is not None
    package = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    if kernel not in package.__all__:
        raise UsageError(f"{folder} has no kernel {kernel!r} (it has {', '.join(package.__all__)})")
    function = getattr(package, kernel)
    parameters = inspect.signature(function)
    try:
        parameters.bind(**values)
    except TypeError as error:
        fields = ", ".join(name for name in parameters.parameters if name not in ASKED_BESIDE)
        raise UsageError(f"{kernel}: {error} (its problem has {fields})") from error
    try:
        choice = function(**values, device=device).choice
    except package.UsageError as error:  # the package has its own class of that name
        raise UsageError(str(error)) from error
    return {**choice.as_json(), "text": str(choice)}


# ---------------------------------------------------------------------- helpers
LookupRequest = tuple[str, Device, Mapping[str, Any], Mapping[str, Any] | None]


def _of_entry(
    request: LookupRequest, entry: Entry, tier: str, why: str, refused: list[str], left_out: Loss | None = None
) -> Choice:
    """Returns the choice for ``entry``; ``left_out``: the tier's loss. An exact choice has the entry's own regret."""
    is_verified, evidence = bool(entry.evidence.verified_on), entry.evidence
    choice = _of_prediction(
        request, Prediction(entry.config, entry.source_key, why, is_verified, tier, left_out), refused
    )
    tuned_on = f"{entry.device.name}, {_at(entry)}, {evidence.date[:10]}".rstrip(", ")
    choice = dataclasses.replace(choice, evidence=evidence, tuned_on=tuned_on)
    if tier != EXACT:
        return choice
    loss, bound = loss_after(evidence.n_tried, evidence.n_configs, entry.regret) or (None, None)
    return dataclasses.replace(choice, expected_loss=loss, bound=bound, regret=entry.regret)


def _of_prediction(request: LookupRequest, found: Prediction, refused: list[str]) -> Choice:
    kernel, device, baked, runtime = request
    loss = found.left_out if found.left_out and found.left_out.where == device.name else None
    return Choice(
        kernel=kernel,
        device=device.name,
        baked=dict(baked),
        runtime=runtime,
        config=found.config,
        tier=found.tier,
        why=found.why + (f" ({'; '.join(refused)})" if refused else ""),
        source_key=found.source_key,
        expected_loss=None if loss is None else loss.median,
        bound=None if loss is None else loss.bound,
        left_out=found.left_out,
        verified=found.verified,
    )


def _bound(loss: Loss | None, device: Device) -> float:
    """Returns the bound of choices on this device, or on devices that were left out; that of another one is unknown."""
    return loss.bound if loss is not None and loss.where in (device.name, device.arch) else inf


def _octaves(kernel: Kernel[Problem], problem: Problem, entry: Entry) -> float:
    """Returns the distance of a record: that of its work or, if larger, of its most distant size."""
    at = replaced(problem, entry.runtime)
    if at is None:
        return inf
    works = [max(1.0, float(kernel.work(each).bytes)) for each in (problem, at)]
    apart = [distance({name: getattr(at, name)}, {name: getattr(problem, name)}) for name in size_fields(problem)]
    return max([*apart, abs(log(works[0] / works[1]))]) / log(2)


def _same(fields: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    return dict(fields) == dict(wanted)


def _by_distance(kernel: Kernel[Problem], problem: Problem, sizes: Mapping[str, object]) -> Callable[[Entry], Any]:
    def key(entry: Entry) -> tuple[bool, float, str, str]:
        octaves = _octaves(kernel, problem, entry)
        return dict(entry.runtime) != sizes, octaves, entry.device.name, fields_text(entry.runtime)

    return key


def _exceeded(launch: Launch, device: Device) -> str | None:
    limits = [("threads in a block", prod(launch.block), device.max_threads_per_block)]
    limits += [(f"blockDim.{a}", n, most) for a, n, most in zip("xyz", launch.block, device.max_block, strict=True)]
    limits += [(f"gridDim.{a}", n, most) for a, n, most in zip("xyz", launch.grid, device.max_grid, strict=True)]
    limits += [("bytes of dynamic shared memory", launch.shared_bytes, device.max_shared_bytes)]
    return next((f"{n} {what}, the device has {most}" for what, n, most in limits if n > most), None)


def _at(entry: Entry) -> str:
    return fields_text(entry.runtime or entry.baked) or "its own size"


def _command(wisdom: Wisdom, kernel: str, baked: Mapping[str, object]) -> str:
    """Returns the command that tunes a problem; it names a kernel that is not installed by the path of its file."""
    named = wisdom.definitions.get(kernel, kernel)
    problem = ["--problem", fields_text(baked)] if baked else []
    return shlex.join(["autotune", "sweep", "--kernel", named, *problem])


def _unknown(wisdom: Wisdom, kernel: str, baked: Mapping[str, object], refused: Iterable[str]) -> str:
    """Returns the error for an untuned problem: why there is no prediction, the command that would tune the problem,
    and the tuned problems with the most fields in common.
    """
    lines = [f"{kernel} was not tuned for {fields_text(baked)}", *dict.fromkeys(refused)]
    lines = ["; ".join(lines), f"To tune it: {_command(wisdom, kernel, baked)}"]
    tuned = sorted(wisdom.baked_sets(kernel), key=lambda fields: sum(fields[n] != baked.get(n) for n in fields))
    for fields in tuned[:MOST_TOLD]:
        on = sorted({e.device.name for e in wisdom.entries if e.kernel == kernel and _same(e.baked, fields)})
        lines.append(f"  tuned: {fields_text(fields)} ({', '.join(on) or 'default only'})")
    if len(tuned) > MOST_TOLD:
        lines.append(f"  and {len(tuned) - MOST_TOLD} more")
    return "\n".join(lines if tuned else [*lines, f"No problem of {kernel} was tuned"])
