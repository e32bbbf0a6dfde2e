"""The content of a record's sweep.json: the kernel, the problem, the device, and how the sweep ran."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ..core.config import Config, Value
from ..core.device import Device, device_of
from ..core.parameter import Parameter, completed_config
from ..runtime.wisdom import fields_text


@dataclass(frozen=True)
class About:
    """The problem and kernel that a sweep tunes, its device, and its settings.

    A field that an older record lacks is empty. ``content`` is the whole content of sweep.json.
    """

    kernel: str
    problem: Mapping[str, Value]
    device: Device
    default: Config
    definition: str = ""  # the kernel's name, or the path of its definition
    baked: tuple[str, ...] = ()  # names of the problem's fields that are constants of the source
    runtime: tuple[str, ...] = ()
    clock: str = ""
    compiler: str = ""  # compiler of the trials that do not name one themselves
    started: str = ""  # UTC, ISO 8601
    machine: str = ""
    commit: str = ""
    refused: Mapping[str, int] = field(default_factory=dict)  # constraint -> number of configs that it refuses
    stale: tuple[int, ...] = ()  # numbers of the trials that no longer held when the sweep last ran
    space: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    n_before: int = 0  # trials from before the space grew, which do not count for the trials that are asked for
    added: tuple[Parameter, ...] = ()  # parameters that older configs lack, with their values in these
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def read(content: Mapping[str, Any]) -> "About":
        """Returns the content of a sweep.json, which record_schema has checked."""
        own = {f.name: content[f.name] for f in fields(About) if f.name in content}
        added = tuple(map(_parameter, content.get("added", ())))
        default = completed_config(content["default"], added)
        own |= {"device": device_of(content["device"]), "default": default, "added": added}
        return About(**own | {"content": content})

    def as_json(self) -> dict[str, object]:
        """Returns the content of sweep.json."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "content"}
        added = [{"name": p.name, "since": p.since, "condition": dict(p.condition)} for p in self.added]
        return content | {"device": asdict(self.device), "default": dict(self.default), "added": added}

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


def _parameter(row: Mapping[str, Any]) -> Parameter:
    condition = tuple((name, tuple(values)) for name, values in row["condition"].items())
    return Parameter(row["name"], (row["since"],), condition, row["since"])
