"""The content of a record's sweep.json: the kernel, the problem, the device, and how the sweep ran.

What the sweeps of a kernel have in common (``shared``) is written once, in files beside them with a digest in their
names: ``setup-<digest>.json`` and ``space-<digest>.json``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Annotated, Any

from ..core.config import Config, Value, as_config
from ..core.device import Device, as_device
from ..core.parameter import Parameter, completed_config
from ..core.schema import (
    Check,
    Unsound,
    as_amount,
    as_count,
    as_json_value,
    as_name,
    as_scalar,
    as_text,
    as_word,
    mapping_of,
    members_of,
    optional,
    sequence_of,
)
from ..runtime.wisdom import fields_text
from ..system.shell import command
from .figure import Figure, as_members, checked_fields, figures_of, stated

_row = members_of(
    {"name": as_name, "since": as_scalar, "condition": mapping_of(as_name, sequence_of(optional(as_scalar)))},
    needed=("name", "since", "condition"),
)
_work = members_of({"flops": as_amount, "bytes": as_amount, "unit": as_word})


def _parameter(value: object) -> Parameter:
    row: Mapping[str, Any] = _row(value)
    condition = tuple((name, tuple(values)) for name, values in row["condition"].items())
    return Parameter(row["name"], (row["since"],), condition, row["since"])


def _parameter_row(parameter: Parameter) -> dict[str, object]:
    return {"name": parameter.name, "since": parameter.since, "condition": dict(parameter.condition)}


_by_reason, _in_order = mapping_of(as_text, as_count), sequence_of(as_count)


def _refused(value: object) -> Any:
    """Checks numbers of configs by reason, as older records have them, or in the order of the constraints."""
    return _in_order(value) if isinstance(value, list) else _by_reason(value)


SETUP, SPACE = SHARED = "setup", "space"
_setup, _space = partial(Figure, shared=SETUP), partial(Figure, shared=SPACE)
_names: Check = sequence_of(as_name)
_KERNEL = "the kernel's name; that name again, or the path of its definition"
_PROBLEM = "every field by name; the fields that are constants of the source; those that are arguments"
_CLOCK = "`GPU time` or `host time`; the compiler with its version and options"
_REFUSED = "the reasons of the constraints; how many configs each of them refused, in that order"
_SPACE = "the values of each parameter; those that configs have which are older than a parameter"
_STARTED = (
    "the time in UTC; system and CPUs; versions of Python and packages; commit of autotune, with `+changes` if it was "
    "edited"
)
_STALE = (
    "numbers of trials that no longer held when it last ran; how many trials are from before the space grew, and so do "
    "not count for those that are asked for"
)


@dataclass(frozen=True, kw_only=True)
class About:
    """The problem and kernel that a sweep tunes, its device, and its settings.

    A field that an older record lacks is empty.
    """

    kernel: Annotated[str, _space(as_name, _KERNEL)]
    definition: Annotated[str, _space(as_text, _KERNEL)] = ""
    problem: Annotated[Mapping[str, Value], Figure(mapping_of(as_name, as_json_value), _PROBLEM, plain=dict)]
    baked: Annotated[tuple[str, ...], _space(_names, _PROBLEM, plain=list)] = ()
    runtime: Annotated[tuple[str, ...], _space(_names, _PROBLEM, plain=list)] = ()
    work: Annotated[
        Mapping[str, Any],
        Figure(_work, "operations, bytes and unit of the work that every variant must do", plain=dict),
    ] = field(default_factory=dict)
    device: Annotated[Device, _setup(as_device, "name, kind, architecture and limits", plain=asdict)]
    clock: Annotated[str, _setup(as_text, _CLOCK)] = ""
    compiler: Annotated[str, _setup(as_text, _CLOCK)] = ""  # a trial may name its own
    default: Annotated[Config, Figure(as_config, "the config to compare with", plain=dict)]
    constraints: Annotated[tuple[str, ...], _space(sequence_of(as_text), _REFUSED, plain=list)] = ()
    refused: Annotated[Mapping[str, int], Figure(_refused, _REFUSED, plain=dict)] = field(default_factory=dict)
    space: Annotated[
        Mapping[str, tuple[Value, ...]], _space(mapping_of(as_name, sequence_of(as_scalar)), _SPACE, plain=dict)
    ] = field(default_factory=dict)
    added: Annotated[
        tuple[Parameter, ...],
        _space(sequence_of(_parameter), _SPACE, plain=lambda added: [_parameter_row(each) for each in added]),
    ] = ()
    settings: Annotated[
        Mapping[str, Any],
        _setup(
            mapping_of(as_text, as_json_value),
            "budget, sampler, seed, restriction, measuring protocol, deadlines",
            plain=dict,
        ),
    ] = field(default_factory=dict)
    started: Annotated[str, Figure(as_text, _STARTED)] = ""
    machine: Annotated[str, _setup(as_text, _STARTED)] = ""
    versions: Annotated[Mapping[str, str], _setup(mapping_of(as_text, as_text), _STARTED, plain=dict)] = field(
        default_factory=dict
    )
    commit: Annotated[str, _setup(as_text, _STARTED)] = ""
    preference_among_ties: Annotated[str, _space(as_text, "the rule that chooses among ties")] = ""
    stale: Annotated[tuple[int, ...], Figure(sequence_of(as_count), _STALE, plain=list)] = ()
    n_before: Annotated[int, Figure(as_count, _STALE)] = 0
    others: Mapping[str, object] = field(default_factory=dict)  # members of a later version, unchanged

    @staticmethod
    def read(content: Mapping[str, Any]) -> "About":
        """Returns what a sweep.json says, together with its setup.

        Raises:
            Unsound: when a member is missing or invalid.
        """
        found = checked_fields(About, content, ("kernel", "problem", "device", "default"))
        for kind in ("baked", "runtime"):
            if unknown := [name for name in found.get(kind, ()) if name not in found["problem"]]:
                raise Unsound(f"{kind} names {unknown[0]}, which is not a field of problem")
        if isinstance(counts := found.get("refused"), tuple):
            reasons = found.get("constraints", ())
            if len(reasons) != len(counts):
                raise Unsound(f"refused has {len(counts)} numbers, and there are {len(reasons)} constraints")
            found["refused"] = {reason: n for reason, n in zip(reasons, counts, strict=True) if n}
        return About(**found).completed(())

    @cached_property
    def content(self) -> Mapping[str, object]:
        """Returns all members as JSON."""
        return as_members(self)

    def as_files(self) -> dict[str, dict[str, object]]:
        """Returns the members of sweep.json, under "", and those of each file that sweeps share."""
        reasons = tuple(dict.fromkeys((*self.constraints, *self.refused)))
        content = stated(replace(self, constraints=reasons))
        content["refused"] = [self.refused.get(reason, 0) for reason in reasons]
        files: dict[str, dict[str, object]] = {"": {}, **{name: {} for name in SHARED}}
        for name, value in content.items():
            files[FIGURES[name].shared if name in FIGURES else ""][name] = value
        return files

    def completed(self, added: Iterable[Parameter]) -> "About":
        """Returns a copy with further ``added`` parameters."""
        own = {parameter.name: parameter for parameter in (*self.added, *added)}
        together = tuple(own.values())
        return replace(self, added=together, default=completed_config(self.default, together))

    @property
    def baked_values(self) -> dict[str, Value]:
        """Returns the problem's fields that are constants of the source."""
        return {name: self.problem[name] for name in self.baked}

    @property
    def runtime_values(self) -> dict[str, Value]:
        """Returns the problem's fields that are arguments of the kernel."""
        return {name: self.problem[name] for name in self.runtime}

    @property
    def problem_name(self) -> str:
        """Returns all fields of the problem, as ``taps=256,decimation=16,...``."""
        return fields_text(self.problem)

    def reproduce(self, config: Mapping[str, Value], seed: int = 0) -> str:
        """Returns the command that verifies a config of this sweep alone; ``seed``: of its sizes and values."""
        of_kernel = ["--kernel", self.definition or self.kernel, "--problem", self.problem_name]
        of_config = ["--config", str(Config(config)), *(["--seed", str(seed)] if seed else [])]
        return command("autotune", "verify", *of_kernel, *of_config, "--device", self.device.kind)


FIGURES = figures_of(About)
